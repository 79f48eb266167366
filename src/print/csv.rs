//! Cells of comma-separated values. It knows text, and nothing of what a cell is about.

use std::io::Write;

use crate::captured::{CONTROL_LEADS, Escaped, is_control};

/// Appends a cell between commas, as RFC 4180 has it. Line feeds, with or without a carriage return
/// before them, and tabs stay; other controls are escaped. Text that a spreadsheet would take for a
/// formula gets an apostrophe before it, which spreadsheets read as "this is text".
pub fn csv_cell(text: &str, out: &mut Vec<u8>) {
    let guard = if is_formula(text) { "'" } else { "" };
    let quote = if text.contains([',', '"', '\n']) { "\"" } else { "" };
    out.extend_from_slice(quote.as_bytes());
    out.extend_from_slice(guard.as_bytes());
    let mut rest = text;
    while let Some(at) = rest.bytes().position(may_be_special) {
        let (before, behind) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.extend_from_slice(before.as_bytes());
        let mut chars = behind.chars();
        let c = chars.next().unwrap_or_default();
        rest = chars.as_str();
        let own = behind.get(..c.len_utf8()).unwrap_or_default();
        match c {
            '"' => out.extend_from_slice(b"\"\""),
            '\n' | '\t' => out.push(c as u8),
            '\r' if rest.starts_with('\n') => out.push(b'\r'),
            c if is_control(c) => {
                let _ = write!(out, "{}", Escaped(own));
            }
            _ => out.extend_from_slice(own.as_bytes()),
        }
    }
    out.extend_from_slice(rest.as_bytes());
    out.extend_from_slice(quote.as_bytes());
}

/// Whether a byte is a quotation mark, or a control or may begin one.
fn may_be_special(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == 0x7f || CONTROL_LEADS.contains(&byte)
}

/// Whether a spreadsheet may take a cell for a formula: a number is none.
fn is_formula(text: &str) -> bool {
    const BEGINNINGS: [char; 11] =
        ['=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'];
    let number = || {
        text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'))
            && text.parse::<f64>().is_ok()
    };
    text.starts_with(BEGINNINGS) && !number() && text != "-Infinity"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        csv_cell(text, &mut out);
        String::from_utf8(out).unwrap_or_default()
    }

    #[test]
    fn a_csv_cell_is_no_formula_and_has_no_controls() {
        for formula in ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "-x", "\t=1"] {
            assert_eq!(written(formula), format!("'{formula}"));
        }
        assert_eq!(written("=\"a\",\n"), "\"'=\"\"a\"\",\n\"");
        for plain in ["-5", "+5", "-1.5e-7", "a=b", "", "[-1,2]"] {
            assert_eq!(written(plain).trim_matches('"'), plain);
        }
        assert_eq!(written("a\r\nb\rc\td"), "\"a\r\nb\\rc\td\"");
        assert_eq!(written("a\u{1b}b\u{7f}\n"), "\"a\\u001bb\\u007f\n\"");
        assert_eq!(
            written("\u{c2}\u{9b}\u{e2}\u{202e}\u{2013}"),
            "\u{c2}\\u009b\u{e2}\\u202e\u{2013}"
        );
    }
}
