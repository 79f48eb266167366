//! Hides words that may be keys: a user types a key where a name is expected, and the error with it
//! ends up in a bug report. It knows the forms in which keys are written down, and no option and no
//! file format.

use std::borrow::Cow;
use std::path::Path;

/// Hex digits of the shortest key there is (the 7 bytes of a session key).
const FEWEST_HEX_DIGITS: usize = 14;
/// Digits of the largest number of 64 bits. A longer run of digits is not a plain number.
const MAX_DECIMAL_DIGITS: usize = 20;
/// Characters of the shortest key in base64 that can be told from a name.
const FEWEST_BASE64: usize = 20;

/// The text with every word replaced that may be a key: many hex digits, or base64. The name of a
/// file that is there is none.
pub(super) fn without_keys(text: &str) -> Cow<'_, str> {
    let mut shown = String::new();
    let mut copied = 0;
    let mut at = 0;
    for piece in text.split_inclusive(|c| !belongs_to_word(c)) {
        let word = piece.trim_end_matches(|c| !belongs_to_word(c));
        let key = key_in(word);
        if !key.is_empty() && !Path::new(word).exists() {
            let begin = at + word.find(key).unwrap_or(0);
            shown.push_str(text.get(copied..begin).unwrap_or_default());
            shown.push_str(&format!("<{} characters that may be a key>", key.len()));
            copied = begin + key.len();
        }
        at += piece.len();
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    shown.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(shown)
}

fn belongs_to_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | ':' | '-' | '_' | '.')
}

/// The part of a word that may be a key; empty where none is. An option's name before it
/// (`--key=…`) is no part of it.
fn key_in(word: &str) -> &str {
    let word = word.trim_end_matches([':', '.', '-']).trim_start_matches('-');
    let value = word
        .trim_end_matches('=')
        .rfind('=')
        .map_or(word, |at| word.get(at + 1..).unwrap_or_default());
    let value = value.strip_prefix("0x").unwrap_or(value);
    if is_base64(value) {
        return value;
    }
    // A key may have become a part of a path, with a line and a column behind it.
    let may_be_hex = |part: &&str| is_hex(part) || is_mistyped_hex(part);
    let mut parts = value.split('/').map(|part| {
        let place = |c: char| c == ':' || c.is_ascii_digit();
        match part.find(':').filter(|at| part.get(*at..).is_some_and(|p| p.chars().all(place))) {
            Some(at) if !is_hex(part) => part.get(..at).unwrap_or(part),
            _ => part,
        }
    });
    parts.find(may_be_hex).unwrap_or_default()
}

/// Hex digits without anything between them, or with a colon between bytes.
fn is_hex(word: &str) -> bool {
    if word.contains(':') && word.split(':').any(|byte| byte.len() != 2) {
        return false;
    }
    let mut digits = word.chars().filter(|c| *c != ':');
    let count = digits.clone().count();
    let letters = digits.clone().any(|c| c.is_ascii_alphabetic());
    digits.all(|c| c.is_ascii_hexdigit())
        && count >= if letters { FEWEST_HEX_DIGITS } else { MAX_DECIMAL_DIGITS + 1 }
}

/// A key with a character too much or a wrong one: hex digits, letters and decimal digits among
/// them, make a long part of a single word.
fn is_mistyped_hex(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && word.split(|c: char| !c.is_ascii_hexdigit()).any(|part| {
            let letters = part.bytes().filter(u8::is_ascii_alphabetic).count();
            part.len() >= FEWEST_HEX_DIGITS && letters > 0 && letters < part.len()
        })
}

/// Base64 that no name looks like: it is padded, or has a plus sign.
fn is_base64(word: &str) -> bool {
    let digits = word.trim_end_matches('=');
    let padding = word.len() - digits.len();
    let all =
        digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'));
    all && word.len() >= FEWEST_BASE64 && padding <= 2 && (padding > 0 || digits.contains('+'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_a_key_is_not_shown() {
        let hidden = |count: usize| format!("<{count} characters that may be a key>");
        let hex = "8a4f0d2b9c3e5d7f".repeat(4);
        let bytes = "8a:4f:0d:2b:9c:3e:5d";
        let base64 = "ik8NK5w+XX+KTw0rnD5df4pPDSucPl1/ik8NK5w+XX8=";
        for key in [
            &hex,
            bytes,
            base64,
            &"7".repeat(32),
            "8a4f0d2b9c3e5d",
            &hex.to_uppercase(),
            &format!("{hex}zz"),
        ] {
            for (before, behind) in [
                ("`", "`: no such file"),
                ("", ": expected a file"),
                ("argument '--key=", "' found"),
                ("0x", "."),
            ] {
                let shown =
                    without_keys(&format!("{before}{key}{behind}\nand {key} again")).into_owned();
                assert_eq!(shown, format!("{before}{0}{behind}\nand {0} again", hidden(key.len())));
            }
        }
    }

    #[test]
    fn a_key_in_a_path_is_not_shown() {
        let hex = "8a4f0d2b9c3e5d7f".repeat(4);
        let hidden = "<64 characters that may be a key>";
        for (before, behind) in [("/srv/", ": no such file"), ("", ":1:1: no table"), ("a/", "/b")]
        {
            let shown = without_keys(&format!("{before}{hex}{behind}")).into_owned();
            assert_eq!(shown, format!("{before}{hidden}{behind}"));
        }
    }

    #[test]
    fn names_numbers_and_addresses_are() {
        for text in [
            "ea489821-6c35-4bd0-9dae-bb17c585e680: 18446744073709551615 of 18446744073709551615",
            "captures/8a4f0d2b9c3e5d7f8a4f0d2b9c3e5d7f.pcapng:12:3: no such file",
            "[2001:0db8:0000:0000:0000:0000:0000:0001]:14617, aa:bb:cc:dd:ee:ff, tcp:14000=moul",
            "Cli2AuthVaultNodeFetchOfThePlayer1 2026-11-20T09:30:27.123456Z",
            "",
        ] {
            assert_eq!(without_keys(text), text);
        }
    }
}
