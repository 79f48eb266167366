//! Hides words that may be keys: a user types a key where a name is expected, and the error with it
//! ends up in a bug report. It knows the forms in which keys are written down, and no option and no
//! file format.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

/// Hex digits of the shortest key there is (the 7 bytes of a session key).
const FEWEST_HEX_DIGITS: usize = 14;
/// Digits of the largest number of 64 bits. A longer run of digits is not a plain number.
const MAX_DECIMAL_DIGITS: usize = 20;
/// Characters of the shortest key in base64 that can be told from a name.
const FEWEST_BASE64: usize = 20;
/// Characters of the longest name.
const MAX_NAME: usize = 64;
/// Bytes of the shortest key in decimal that can be told from a list of numbers.
const FEWEST_NUMBERS: usize = 8;
/// The same for numbers that say that they are in hex.
const FEWEST_BYTES: usize = 4;
/// What stands between the bytes of a list, the longer first.
const SEPARATORS: [&str; 8] = [", ", ",", "; ", ":", "-", "_", " ", "\\"];

/// The text with everything replaced that may be a key: many hex digits, also in groups; base64; a
/// list of bytes; a word that is longer than any name. The name of a file that is there is none.
pub(super) fn without_keys(text: &str) -> Cow<'_, str> {
    let mut shown = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let length = length_of(rest, belongs_to_word);
        let word = rest.get(..length).unwrap_or_default();
        let is_file = Path::new(word.trim_end_matches([':', '.', '-'])).exists();
        if let Some(key) = key_in(rest, word.len()).filter(|_| !is_file) {
            shown.push_str(text.get(copied..at + key.start).unwrap_or_default());
            shown.push_str(&format!("<{} characters that may be a key>", key.len()));
            copied = at + key.end;
            at = copied;
        } else {
            at += length.max(rest.chars().next().map_or(1, char::len_utf8));
        }
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

/// How many bytes at the beginning of a text are such characters.
fn length_of(text: &str, are_such: impl Fn(char) -> bool) -> usize {
    text.find(|c| !are_such(c)).unwrap_or(text.len())
}

/// The first key that begins in the first `within` bytes.
fn key_in(text: &str, within: usize) -> Option<Range<usize>> {
    let mut at = 0;
    while at < within {
        let rest = text.get(at..)?;
        let run = rest.get(..length_of(rest, |c| c.is_ascii_alphanumeric()))?;
        if run.is_empty() && !rest.starts_with('+') {
            at += rest.chars().next().map_or(1, char::len_utf8);
            continue;
        }
        let length = length_of_bytes(rest)
            .or_else(|| length_of_base64(rest))
            .or_else(|| (is_hex(run) && !has_extension(rest, run.len())).then_some(run.len()))
            .or_else(|| {
                let word = length_of(rest, |c| c.is_ascii_alphanumeric() || "_-".contains(c));
                (word > MAX_NAME).then_some(word)
            });
        if let Some(length) = length {
            return Some(at..at + length);
        }
        at += run.len().max(1);
    }
    None
}

/// Whether the extension of a file follows the first `length` bytes.
fn has_extension(text: &str, length: usize) -> bool {
    let behind = text.get(length..).and_then(|behind| behind.strip_prefix('.'));
    behind.is_some_and(|extension| extension.starts_with(|c: char| c.is_alphanumeric()))
}

/// Hex digits, or more decimal digits than a number has. A key with a character too much or a wrong
/// one counts, too: letters and digits among many hex digits make a part of it.
fn is_hex(word: &str) -> bool {
    word.split(|c: char| !c.is_ascii_hexdigit()).any(|part| {
        let letters = part.bytes().filter(u8::is_ascii_alphabetic).count();
        let fewest = if letters > 0 { FEWEST_HEX_DIGITS } else { MAX_DECIMAL_DIGITS + 1 };
        part.len() >= fewest && (part == word || letters < part.len())
    })
}

/// Base64 that no name looks like: it is padded, or has a plus sign.
fn length_of_base64(text: &str) -> Option<usize> {
    let digits = length_of(text, |c| c.is_ascii_alphanumeric() || "+/".contains(c));
    let (digits, behind) = text.split_at_checked(digits)?;
    let signs = length_of(behind, |c| c == '=');
    // What is assigned to a name is no padding, but a third sign is no padding either.
    let is_name = behind.get(signs..)?.starts_with(|c: char| c.is_alphanumeric()) && signs < 3;
    let padding = if is_name { 0 } else { signs.min(2) };
    let length = digits.len() + padding;
    (length >= FEWEST_BASE64 && (padding > 0 || digits.contains('+'))).then_some(length)
}

/// A list of bytes: hex digits in groups of one size, the last of which may be shorter, or decimal
/// numbers. Addresses have larger groups with colons between them, and UUIDs groups of many sizes.
fn length_of_bytes(text: &str) -> Option<usize> {
    let prefix = ["0x", "x"].into_iter().find(|prefix| text.starts_with(prefix)).unwrap_or("");
    let mut size = None;
    let (mut at, mut hex, mut digits, mut letters) = (0, 0, 0, 0);
    let mut is_hex = true;
    let (mut is_decimal, mut decimal, mut numbers) = (true, 0, 0);
    loop {
        let rest = text.get(at..)?;
        let digits_at = if rest.starts_with(prefix) { prefix.len() } else { 0 };
        let rest = rest.get(digits_at..)?;
        let group = rest.get(..length_of(rest, |c| c.is_ascii_alphanumeric()))?;
        is_decimal &= group.parse::<u8>().is_ok();
        let first = *size.get_or_insert(group.len());
        let all_hex = group.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hex &= all_hex && group.len() % 2 == 0 && group.len() <= first;
        if group.is_empty() || !(is_hex || is_decimal) {
            break;
        }
        at += digits_at + group.len();
        if is_hex {
            hex = at;
            digits += group.len();
            letters += group.bytes().filter(u8::is_ascii_alphabetic).count();
        }
        if is_decimal {
            decimal = at;
            numbers += 1;
        }
        // A shorter group is the last.
        is_hex &= group.len() == first;
        let rest = text.get(at..)?;
        let Some(separator) = SEPARATORS.into_iter().find(|s| rest.starts_with(s)) else { break };
        is_hex &= separator != ":" || first == 2;
        at += separator.len();
    }
    if numbers >= FEWEST_NUMBERS {
        return Some(decimal);
    }
    let groups = digits / size.unwrap_or(1).max(1);
    let mixed = 0 < letters && letters < digits && digits >= FEWEST_HEX_DIGITS;
    let prefixed = !prefix.is_empty() && groups >= FEWEST_BYTES;
    (groups > 1 && (mixed || prefixed)).then_some(hex)
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
            "8a4f 0d2b 9c3e 5d7f",
            "8a-4f-0d-2b-9c-3e-5d",
            "8a4f0d2b_9c3e5d7f_8a4f",
            "0x8a, 0x4f, 0x0d, 0x2b, 0x9c, 0x3e, 0x5d",
            &format!("{}L", "7".repeat(154)),
            &"ik8NK5w-XX_KTw0rnD5df4pPDSucPl1_ik8NK5w".repeat(2),
            &["138"; 64].join(","),
        ] {
            for (before, behind) in [
                ("`", "`: no such file"),
                ("", ": expected a file"),
                ("argument '--key=", "' found"),
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
