//! Hides what may be a key: a user types a key where a name is expected, and the error with it ends
//! up in a bug report. It knows what words, numbers and addresses look like. What looks like none
//! of them and is as long as a key is hidden. It knows no option and no file format.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::path::Path;

/// Hex digits of the shortest key there is (the 7 bytes of a session key).
const FEWEST: usize = 14;
/// Digits of the largest number of 64 bits. A longer run of digits is not a plain number.
const MAX_DECIMAL_DIGITS: usize = 20;
/// The most digits of a plain number that count: a list of numbers may be bytes, a large one is
/// none.
const MOST_OF_NUMBER: usize = 4;
/// Characters of the shortest key in base64 that can be told from a name with digits in it.
const FEWEST_BASE64: usize = 16;
/// The same for letters alone.
const FEWEST_LETTERS: usize = 20;
/// Letters of a word that ends a list of bytes. What is shorter may be bytes that are letters.
const FEWEST_OF_WORD: usize = 4;
/// Characters of the longest name.
const MAX_NAME: usize = 64;
/// UUIDs and hardware addresses, with a `0` for each hex digit.
const IDS: [&str; 2] = ["00000000-0000-0000-0000-000000000000", "00:00:00:00:00:00"];
/// How dates and times begin, with a `0` for each digit.
const TIMES: [&str; 2] = ["0000-00-00", "00:00:00"];

/// The text with everything replaced that may be a key: hex digits or numbers, also in groups;
/// base64; a word that is longer than any name. The name of a file that is there is none.
pub(super) fn without_keys(text: &str) -> Cow<'_, str> {
    let keys = keys_in(text);
    if keys.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut shown = String::new();
    let mut copied = 0;
    for key in keys {
        shown.push_str(text.get(copied..key.start).unwrap_or_default());
        shown.push_str(&format!("<{} characters that may be a key>", key.len()));
        copied = key.end;
    }
    shown.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(shown)
}

/// Pieces that are no words, with nothing but signs and very short words between them.
#[derive(Default)]
struct Stretch {
    range: Range<usize>,
    /// How many of their characters count.
    count: usize,
}

impl Stretch {
    fn add(&mut self, piece: Range<usize>, count: usize) {
        let start = if self.count > 0 { self.range.start } else { piece.start };
        self.range = start..piece.end;
        self.count += count;
    }

    /// Ends it. Returns where it is if it may be a key.
    fn end(&mut self) -> Option<Range<usize>> {
        let Stretch { range, count } = std::mem::take(self);
        (count >= FEWEST).then_some(range)
    }
}

fn keys_in(text: &str) -> Vec<Range<usize>> {
    let mut keys = Vec::new();
    let mut stretch = Stretch::default();
    let (mut at, mut known_at) = (0, 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if at >= known_at {
            let length = length_of(rest, |c| belongs_to_piece(c) || ":.[]".contains(c));
            known_at = at + length;
            if rest.get(..length).is_some_and(is_known) {
                keys.extend(stretch.end());
                at = known_at;
                continue;
            }
        }
        // A byte in a text ends after its digits: `\x8aend`.
        let is_byte = text.get(..at).is_some_and(|before| before.ends_with("\\x"));
        let length = length_of(rest, belongs_to_piece).min(if is_byte { 2 } else { usize::MAX });
        let (piece, behind) = rest.split_at_checked(length).unwrap_or_default();
        if piece.is_empty() {
            let c = rest.chars().next().unwrap_or_default();
            if c == '\n' || c.is_alphabetic() {
                keys.extend(stretch.end());
            }
            at += if rest.starts_with("\\x") { 2 } else { c.len_utf8() };
            continue;
        }
        let inner = without_folders(piece);
        let start = at + piece.find(inner).unwrap_or(0);
        let signs = length_of(behind, |c| c == '=').min(2);
        let is_assigned = behind.get(signs..).is_some_and(|b| b.starts_with(char::is_alphanumeric));
        let padding = if is_assigned { 0 } else { signs };
        let extension = behind.strip_prefix('.').filter(|_| piece.ends_with(inner));
        let is_file = extension.is_some_and(|name| name.starts_with(char::is_alphabetic));
        match count_of(inner, padding).filter(|_| !is_file) {
            None => keys.extend(stretch.end()),
            Some(0) => (),
            Some(count) => stretch.add(start..start + inner.len() + padding, count),
        }
        at += piece.len();
    }
    keys.extend(stretch.end());
    keys
}

/// How many bytes at the beginning of a text are such characters.
fn length_of(text: &str, are_such: impl Fn(char) -> bool) -> usize {
    text.find(|c| !are_such(c)).unwrap_or(text.len())
}

fn belongs_to_piece(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '-' | '_')
}

/// Whether a word is shown whatever its digits: a file that is there, an address, a UUID, a time.
fn is_known(word: &str) -> bool {
    let word = word.trim_end_matches([':', '.', '-', '=']);
    let inner = word.trim_start_matches('[').trim_end_matches(']');
    let shape: String =
        inner.chars().map(|c| if c.is_ascii_hexdigit() { '0' } else { c }).collect();
    let is_time = || {
        TIMES.iter().any(|time| shape.starts_with(time))
            && inner.chars().all(|c| c.is_ascii_digit() || ":-.+TZ".contains(c))
    };
    IDS.contains(&shape.as_str())
        || is_time()
        || inner.parse::<IpAddr>().is_ok()
        || word.parse::<SocketAddr>().is_ok()
        || word.contains(|c: char| c.is_ascii_alphanumeric()) && Path::new(word).exists()
}

/// The piece without what is a path around a name: words of small letters.
fn without_folders(piece: &str) -> &str {
    let is_folder = |part: &str| part.bytes().all(|b| b.is_ascii_lowercase() || b"-_".contains(&b));
    let mut inner = piece;
    while let Some((_, rest)) = inner.split_once('/').filter(|(folder, _)| is_folder(folder)) {
        inner = rest;
    }
    while let Some((rest, _)) = inner.rsplit_once('/').filter(|(_, folder)| is_folder(folder)) {
        inner = rest;
    }
    inner
}

/// How many characters of a piece count: those of what is no word, and only a few of a number. A
/// very short word counts nothing, and a longer one is `None`.
fn count_of(piece: &str, padding: usize) -> Option<usize> {
    let characters = piece.bytes().filter(u8::is_ascii_alphanumeric).count();
    let digits = piece.bytes().filter(u8::is_ascii_digit).count();
    if piece.split('/').any(|part| part.len() > MAX_NAME) {
        return Some(characters);
    }
    if digits == characters {
        let count = |number: &str| match number.len() {
            0..=MAX_DECIMAL_DIGITS => number.len().min(MOST_OF_NUMBER),
            length => length,
        };
        return Some(piece.split(|c: char| !c.is_ascii_digit()).map(count).sum());
    }
    // No name begins with a digit, and a letter by itself is no byte.
    let is_hex = characters > 1
        && piece.bytes().all(|b| b.is_ascii_hexdigit() || !b.is_ascii_alphanumeric());
    if is_hex || piece.starts_with(|c: char| c.is_ascii_digit()) {
        return Some(characters);
    }
    let fewest = if digits > 0 { FEWEST_BASE64 } else { FEWEST_LETTERS };
    let signs = piece.matches('+').count() + padding;
    if characters >= fewest && 3 * characters < 8 * (words_of(piece) + 2 * signs) {
        return Some(characters);
    }
    let is_short = characters < FEWEST_OF_WORD || digits > 0 && characters < FEWEST_BASE64;
    is_short.then_some(0)
}

/// How many words and numbers a name consists of: three in `Cli2Auth`. A name has few and long
/// ones, and base64 many and short ones.
fn words_of(piece: &str) -> usize {
    let mut words = 0;
    let mut before = b'_';
    for (at, now) in piece.bytes().enumerate() {
        let after = piece.as_bytes().get(at + 1).copied().unwrap_or(b'_');
        words += usize::from(match now {
            b'0'..=b'9' => !before.is_ascii_digit(),
            b'A'..=b'Z' => !before.is_ascii_uppercase() || after.is_ascii_lowercase(),
            b'a'..=b'z' => !before.is_ascii_alphabetic(),
            _ => false,
        });
        before = now;
    }
    words
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
            "8a4f 1234 9c3e 5d7f 8a4f",
            "8a4f:0d2b:9c3e:5d7f:8a4f",
            "[138, 79, 13, 43, 156, 62, 93]".trim_matches(['[', ']']),
            "138u8, 79u8, 13u8, 43u8, 156u8",
            "8aend\\x4f \\x0dA!\\x2b\\x9cof\\x3e\\x5d\\x7f",
            "8a%4f%0d%2b%9c%3e%5d",
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
        for (before, behind) in [("/srv/", ": no such file"), ("", ": no table"), ("a/", "/b")] {
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
            "2026-11-20 09:30:27.123 to 09:30:28, tcp:13000, 13001 and 13005: u8, u16, u32 and i64",
            "did you mean `kInt32_1`, `kInt32_2`, `kUInt32_3`, `kNodeType_VNodeMgrLow`?",
            "/srv/data1/2026-11-20/captures_of_a_long_evening_with_many_players/x1/y2.pcap: no such",
            "",
        ] {
            assert_eq!(without_keys(text), text);
        }
    }
}
