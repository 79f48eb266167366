//! JSON that the program puts together as one value before it writes it: schemas, lists, what
//! commands answer once. Records never are.

use serde_json::Value;

use crate::captured::is_control;

/// A value as JSON in one line. Controls in its texts are escaped as those of records are;
/// `serde_json` would write some of them as they are.
pub fn one_line(value: &Value) -> String {
    without_controls(value.to_string())
}

/// The same, indented.
pub fn indented(value: &Value) -> String {
    without_controls(format!("{value:#}"))
}

/// Escapes control characters. Line feeds are JSON's layout here; all others are within strings.
fn without_controls(json: String) -> String {
    let raw = |c: char| c != '\n' && is_control(c);
    if !json.contains(raw) {
        return json;
    }
    json.chars().fold(String::with_capacity(json.len() + 64), |mut out, c| {
        if raw(c) {
            out.push_str(&format!("\\u{:04x}", u32::from(c)))
        } else {
            out.push(c)
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_no_raw_controls() {
        let value = serde_json::json!({ "a\u{202e}": ["\u{9b}\u{7f}\n\u{1b}é\u{2028}", { "b": "\u{61c}" }] });
        for text in [one_line(&value), indented(&value)] {
            assert!(!text.chars().any(|c| c != '\n' && is_control(c)), "{text}");
            assert_eq!(serde_json::from_str::<Value>(&text).ok().as_ref(), Some(&value));
        }
    }
}
