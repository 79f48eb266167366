//! Bytes in the forms in which people copy them: hex with all kinds of separators, arrays and
//! string literals of programming languages, base64, and the dumps of `xxd`, `hexdump -C`, `od` and
//! Wireshark.
//!
//! [`read_dump`] tells the form by the text alone. It knows no protocol and prints nothing. Its
//! errors name a place and quote nothing of the text, which may be a key.

mod hexdump;
mod literals;

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

/// Lines of plain digits that are at least so long, and all but the last of which have one length,
/// were wrapped by the program that printed them.
const WRAPPED: usize = 32;

/// The most bytes for which the `*` of a dump stands.
const MOST_REPEATED: usize = 16 << 20;

/// The bytes of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dump {
    /// The form that the text has.
    pub form: DumpForm,
    /// The bytes, in the pieces that the text has: a line each, or a dump each.
    pub pieces: Vec<Vec<u8>>,
}

/// A form of bytes in text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpForm {
    /// Hex digits, two a byte.
    Digits,
    /// Hex digits in lines that one program wrapped.
    WrappedDigits,
    /// A list of numbers with `0x`.
    Array,
    /// A list of decimal numbers.
    DecimalArray,
    /// String literals with escapes.
    Literal,
    /// Base64.
    Base64,
    /// A hex dump.
    HexDump,
    /// A hex dump whose groups of bytes are written backwards (`xxd -e`).
    SwappedHexDump,
}

impl DumpForm {
    /// What to say of a text in this form. `None` where nobody could read it in another way.
    pub fn remark(self) -> Option<&'static str> {
        Some(match self {
            DumpForm::Digits | DumpForm::Array | DumpForm::Literal | DumpForm::HexDump => {
                return None;
            }
            DumpForm::WrappedDigits => "read as hex digits in wrapped lines",
            DumpForm::DecimalArray => "read as decimal numbers",
            DumpForm::Base64 => "read as base64",
            DumpForm::SwappedHexDump => "read as a hex dump with swapped groups (xxd -e)",
        })
    }
}

/// Why a text gives no bytes. Its text is one line for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpError {
    /// The line, from 1; 0 where the text has only one.
    line: usize,
    /// The character of the line, from 1; 0 for the line as a whole.
    column: usize,
    why: &'static str,
}

impl DumpError {
    fn new(line: usize, column: usize, why: &'static str) -> DumpError {
        DumpError { line, column, why }
    }
}

impl fmt::Display for DumpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.column) {
            (0, 0) => f.write_str(self.why),
            (0, column) => write!(f, "character {column} {}", self.why),
            (line, 0) => write!(f, "line {line}: {}", self.why),
            (line, column) => write!(f, "line {line}, character {column} {}", self.why),
        }
    }
}

/// Reads the bytes of a text.
///
/// # Errors
/// The text has none of the forms, or a damaged byte.
pub fn read_dump(text: &str) -> Result<Dump, DumpError> {
    let text = text.trim_start_matches('\u{feff}');
    let read = hexdump::read(text)
        .or_else(|| literals::read_strings(text))
        .or_else(|| literals::read_arrays(text))
        .unwrap_or_else(|| read_digits(text));
    read.map_err(|error| DumpError {
        line: if text.trim().lines().count() > 1 { error.line } else { 0 },
        ..error
    })
}

/// Whether a character stands between the digits of two bytes.
fn separates(c: char) -> bool {
    c.is_whitespace() || matches!(c, ':' | '-' | ',' | '.' | ';')
}

/// Hex digits, a piece a line, or base64.
fn read_digits(text: &str) -> Result<Dump, DumpError> {
    let mut pieces = Vec::new();
    let mut failed = None;
    for (at, line) in text.lines().enumerate() {
        match read_line(line, at + 1) {
            Ok(bytes) if bytes.is_empty() => {}
            Ok(bytes) => pieces.push((line.trim().len(), bytes)),
            Err(error) => {
                failed.get_or_insert(error);
            }
        }
    }
    if let Some(error) = failed {
        return read_base64(text).ok_or(error);
    }
    let lengths = pieces.iter().map(|(length, _)| *length);
    let most = lengths.clone().max().unwrap_or(0);
    let wrapped = pieces.len() > 1
        && most >= WRAPPED
        && lengths.take(pieces.len() - 1).all(|length| length == most);
    let pieces: Vec<Vec<u8>> = pieces.into_iter().map(|(_, bytes)| bytes).collect();
    Ok(if wrapped {
        Dump { form: DumpForm::WrappedDigits, pieces: vec![pieces.concat()] }
    } else {
        Dump { form: DumpForm::Digits, pieces }
    })
}

/// A line of hex digits.
fn read_line(line: &str, number: usize) -> Result<Vec<u8>, DumpError> {
    let mut bytes = Vec::with_capacity(line.len() / 2);
    let mut high = None;
    for (at, c) in line.chars().enumerate().filter(|(_, c)| !separates(*c)) {
        let Some(digit) = c.to_digit(16) else {
            let why =
                "is no hex digit; bytes are written as two digits each, such as 1a00 or 1a:00";
            return Err(DumpError::new(number, at + 1, why));
        };
        match high.take() {
            None => high = Some(digit),
            Some(high) => bytes.push((high * 16 + digit) as u8),
        }
    }
    if high.is_some() {
        let why = "half a byte is left over: bytes are written as two hex digits each";
        return Err(DumpError::new(number, 0, why));
    }
    Ok(bytes)
}

/// Base64: lines of one text, or a text a line. `None` where the text rather is damaged hex.
fn read_base64(text: &str) -> Option<Dump> {
    let lines: Vec<&str> = text.split_whitespace().collect();
    let all = lines.concat();
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '-' | '_' | '=');
    if all.len() < 4 || !all.chars().all(is_base64) {
        return None;
    }
    let count = |what: fn(&char) -> bool| all.chars().filter(what).count();
    let mixed = count(char::is_ascii_lowercase) > 0 && count(char::is_ascii_uppercase) > 0;
    let signs = all.contains(['+', '/', '_', '=']);
    // Few characters of base64 happen to be hex digits.
    let few_hex = count(char::is_ascii_hexdigit) * 4 <= all.len() * 3;
    // Zeros.
    let zeros = all.contains("AAAA") && all.len().is_multiple_of(4);
    if !(all.contains('=') || zeros || (mixed || signs) && few_hex) {
        return None;
    }
    let decode = |line: &str| {
        let line = line.trim_end_matches('=');
        STANDARD_NO_PAD.decode(line).or_else(|_| URL_SAFE_NO_PAD.decode(line)).ok()
    };
    let longest = lines.iter().map(|line| line.len()).max()?;
    let before_last = lines.get(..lines.len() - 1)?;
    let pieces = if before_last.iter().all(|line| line.len() == longest && !line.ends_with('=')) {
        vec![decode(&all)?]
    } else {
        lines.iter().map(|line| decode(line)).collect::<Option<Vec<_>>>()?
    };
    Some(Dump { form: DumpForm::Base64, pieces })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::{DumpForm, read_dump};

    const BYTES: [u8; 10] = [0x1a, 0, 7, 0, 0, 0, 0xe9, 3, 0, 0];

    fn hold(text: &str, form: DumpForm) {
        let dump = read_dump(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!((dump.form, dump.pieces), (form, vec![BYTES.to_vec()]), "{text}");
    }

    fn mistake(text: &str) -> String {
        read_dump(text).unwrap_err().to_string()
    }

    #[test]
    fn digits_have_many_separators() {
        for text in [
            "1a000700 0000e9030000",
            "1a:00:07:00:00:00:e9:03:00:00",
            "1A-00-07-00-00-00-E9-03-00-00",
            "1A, 00, 07, 00, 00, 00, E9, 03, 00, 00",
            "\u{feff}1A 00 07 00 00 00 E9 03 00 00\r\n",
        ] {
            hold(text, DumpForm::Digits);
        }
    }

    #[test]
    fn a_line_is_a_piece_unless_a_program_wrapped_it() {
        let dump = read_dump("1a00\n\n0700 00\n").unwrap();
        assert_eq!(dump.pieces, [vec![0x1a, 0], vec![7, 0, 0]]);
        let line = "ab".repeat(30);
        let dump = read_dump(&format!("{line}\n{line}\nabab\n")).unwrap();
        assert_eq!((dump.form, dump.pieces), (DumpForm::WrappedDigits, vec![vec![0xab; 62]]));
    }

    #[test]
    fn base64_is_not_damaged_hex() {
        hold("GgAHAAAA6QMAAA==", DumpForm::Base64);
        hold("GgAHAAAA6QMAAA", DumpForm::Base64);
        assert_eq!(
            mistake("1a0007zz"),
            "character 7 is no hex digit; bytes are written as two digits each, such as 1a00 or \
             1a:00"
        );
        assert!(mistake("1a00\n070\n").starts_with("line 2: half a byte"));
        assert!(mistake("1A000700000Oe9030000").starts_with("character 12 "));
    }

    #[test]
    fn languages_have_arrays() {
        for text in [
            "0x1a, 0x00, 0x07, 0x00, 0x00, 0x00, 0xe9, 0x03, 0x00, 0x00",
            "0x1a 0x0 0x7 0x0 0x0 0x0 0xe9 0x3 0x0 0x0",
            "0x1a0007000000e9030000",
            "/* Frame (10 bytes) */\nstatic const unsigned char pkt1[10] = {\n0x1a, 0x00, 0x07, \
             0x00, 0x00, /* ..... */\n0x00, 0xe9, 0x03, 0x00, 0x00  /* ..... */\n};\n",
            "[]byte{0x1a, 0x00, 0x07, 0x00, 0x00, 0x00, 0xe9, 0x03, 0x00, 0x00}",
            "&[0x1au8, 0, 7, 0, 0, 0, 0xe9, 3, 0, 0]",
            "{(byte)0x1a, 0x00, 0x07, 0x00, 0x00, 0x00, (byte)0xe9, 0x03, 0x00, 0x00}",
        ] {
            hold(text, DumpForm::Array);
        }
        for text in ["[26, 0, 7, 0, 0, 0, 233, 3, 0, 0]", "[26 0 7 0 0 0 233 3 0 0]"] {
            hold(text, DumpForm::DecimalArray);
        }
        hold("bytes([26, 0, 7, 0, 0, 0, 233, 3, 0, 0])", DumpForm::DecimalArray);
        assert!(mistake("{0x1a, 0x123}").starts_with("character 8 is more than a byte"));
        assert!(mistake("{0x1a,\n 0xg1}").starts_with("line 2, character 2 "));
        assert_eq!(read_dump("{0x01, 0x02};\n{0x03};").unwrap().pieces, [vec![1, 2], vec![3]]);
    }

    #[test]
    fn languages_have_strings() {
        for text in [
            r"\x1a\x00\x07\x00\x00\x00\xe9\x03\x00\x00",
            r#"b'\x1a\x00\x07\x00\x00\x00\xe9\x03\x00\x00'"#,
            r#""\x1a\x00\x07\x00\x00" "\x00\xe9\x03\x00\x00""#,
            "\"\\x1a\\x00\\x07\\x00\\x00\" \\\n\"\\x00\\xe9\\x03\\x00\\x00\"",
            r#"char packet[] = "\x1a\0\a\0\0\0\351\3\0\0";"#,
        ] {
            hold(text, DumpForm::Literal);
        }
        let dump = read_dump(r#"b'\x1a\x00A\n\'"'"#).unwrap();
        assert_eq!(dump.pieces, [b"\x1a\0A\n'\"".to_vec()]);
        assert_eq!(read_dump("b'\\x01'\nb'\\x02'").unwrap().pieces, [vec![1], vec![2]]);
        assert!(mistake(r"\x1a\x0g").starts_with("character 5 "));
    }

    #[test]
    fn programs_dump() {
        for text in [
            "00000000: 1a00 0700 0000 e903 0000                 ..........\n",
            "00000000: 1a00 0700 0000 e903 0000",
            "00000000  1a 00 07 00 00 00 e9 03  00 00                    |..........|\n0000000a\n",
            "0000000 1a 00 07 00 00 00 e9 03 00 00\n0000012\n",
            "000000 1a 00 07 00 00 00 e9 03 00 00\n00000a\n",
            "0000   1a 00 07 00 00 00 e9 03 00 00                     ..........\n",
            "0000   1a 00 07 00 00 00 e9 03 00 00",
            "00000000: 1a000700 0000e903 0000",
            "Buffer contents:\n     1a 00 07 00 00 00 e9 03  00 00                         \
             ........ ..\n",
        ] {
            hold(text, DumpForm::HexDump);
        }
        let text = "00000000: 64636261 68676665                    abcdefgh";
        let dump = read_dump(text).unwrap();
        assert_eq!(
            (dump.form, dump.pieces),
            (DumpForm::SwappedHexDump, vec![b"abcdefgh".to_vec()])
        );
    }

    #[test]
    fn text_beside_a_dump_is_no_byte() {
        let dump =
            read_dump("00000000: 6162 2063 6465 6620                      ab cdef \n").unwrap();
        assert_eq!(dump.pieces, [b"ab cdef ".to_vec()]);
        let text = "00000000: 6162 6364 6566 6768 6162 6364 6566 6768  \
                    abcdefghabcdefgh\n00000010: 6162                                     ab\n";
        assert_eq!(read_dump(text).unwrap().pieces, [b"abcdefghabcdefghab".to_vec()]);
        let text = "00000000  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  \
             |................|\n*\n00000030  61 62                                             \
             |ab|\n00000032\n";
        assert_eq!(read_dump(text).unwrap().pieces, [[&[0; 48][..], b"ab"].concat()]);
    }

    #[test]
    fn several_dumps_are_several_pieces() {
        let text = "0000  01 02\n0000  03 04\n\n0000  05\n";
        assert_eq!(read_dump(text).unwrap().pieces, [vec![1, 2], vec![3, 4], vec![5]]);
    }

    #[test]
    fn damage_in_a_dump_has_a_place() {
        let line = "1a 00 07 00 00 00 e9 03 00 00 00 00 00 00 00 00";
        let damaged = line.replace("e9", "e?");
        assert!(
            mistake(&format!("0000  {line}\n0010  {damaged}\n0020  00\n"))
                .starts_with("line 2, character 25 is no")
        );
        assert!(
            mistake(&format!("0000  {line}\n0010  {damaged}\n"))
                .starts_with("line 2, character 25 ")
        );
        assert!(
            mistake(&format!("0000  {line}\n0020  {line}\n0030  00\n")).starts_with("line 2: ")
        );
        assert!(mistake(&format!("0000  {line}\n0010  00 01\n0020  00\n")).starts_with("line 3: "));
    }

    #[test]
    fn words_in_the_order_of_a_machine_are_refused() {
        let words = "0000000 001a 0007 0000 03e9 0000\n000000a\n";
        assert!(mistake(words).contains("hexdump -C"));
    }

    #[test]
    fn no_text_is_no_piece() {
        assert!(read_dump("").unwrap().pieces.is_empty());
        assert!(read_dump(" \n").unwrap().pieces.is_empty());
    }
}
