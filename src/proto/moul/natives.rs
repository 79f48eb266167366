//! The types of MOUL that need code: Plasma's texts, which are inverted and come in several
//! encodings, and times of 32 or 64 bits.
//!
//! A text becomes one text, with its count and its bytes as spans. This file does not know which
//! field a text or time is or what it means.

use crate::table::{
    Call, Cursor, EncodeStop, Encoding, Field, Given, Native, READ_AS_LATIN_1, Run, Slot, Stop,
};
use crate::tree::{
    Concern, Kind, Node, Problem, Severity, TextKind, is_inverted_ascii, is_inverted_utf8, mark,
};

/// The types with code, by the names tables use.
pub const NATIVES: [Native; 4] = {
    let parts: &[&str] = &["SafeCount"];
    [
        Native {
            parts,
            ..Native::new("safe_string", read_safe_string).written_by(write_safe_string)
        },
        Native {
            parts,
            ..Native::new("safe_wstring", read_safe_wstring).written_by(write_safe_wstring)
        },
        Native { parts, ..Native::new("p_string", read_p_string).written_by(write_p_string) },
        Native::new("wide_time", read_wide_time).written_by(write_wide_time),
    ]
};

/// The note of a text that holds a zero. The count decides where the text ends, but programs that
/// keep it as a C string lose what follows the zero.
const ZERO_INSIDE: &str = "a zero inside the text, where a C string ends";

/// The note of a text whose count has none of its four highest bits set.
const OLD_COUNT: &str = "a count as it was written before 2003";

/// A text holds a zero.
fn report_zero(run: &mut Run<'_>, node: u32) {
    let problem = Problem::new(Severity::Note, node, ZERO_INSIDE, 0, 0);
    run.tree.problem(problem.concerning(Concern::TooLong));
}

/// The largest number that JSON readers keep exactly.
const EXACT: u64 = 1 << 53;

/// A SafeString: a u16 count of bytes, its four highest bits set, then the bytes, every one
/// inverted.
///
/// The argument says whether two more bytes follow a count without those bits (the form used before
/// 2003).
fn read_safe_string(run: &mut Run<'_>, cursor: &mut Cursor<'_>, call: &Call) -> Result<u64, Stop> {
    let start = cursor.pos();
    let count = u16::from_le_bytes(cursor.array()?);
    let old = count & 0xf000 == 0;
    let pad = if old && run.arg(call, 0, cursor) != 0 { 2 } else { 0 };
    if pad > 0 {
        cursor.skip(pad)?;
    }
    let len = usize::from(count & 0x0fff);
    let (at, bytes) = cursor.take(len)?;
    let (kind, note) =
        if is_inverted_ascii(bytes) { (TextKind::Inverted8, None) } else { find_form(bytes) };
    let place = Node::place(at, len);
    let node = Spans { start, count, pad, place, len, tail: 0, kind }.add(run, cursor, call);
    if old {
        run.problem(Severity::Note, node, OLD_COUNT, 0, 0);
    }
    if let Some(note) = note {
        run.tree.problem(Problem::new(Severity::Note, node, note, 0, 0).showing(
            cursor.buffer(),
            at,
            len,
        ));
    }
    let zero = if kind == TextKind::Utf8 { 0 } else { !0 };
    if bytes.contains(&zero) {
        report_zero(run, node);
    }
    Ok(0)
}

/// A text with a u16 count of bytes before it: UTF-8 as the client writes it, or Latin-1 as it
/// reads it and others write it.
fn read_p_string(run: &mut Run<'_>, cursor: &mut Cursor<'_>, call: &Call) -> Result<u64, Stop> {
    let start = cursor.pos();
    let count = u16::from_le_bytes(cursor.array()?);
    let len = usize::from(count);
    let (at, bytes) = cursor.take(len)?;
    let valid = std::str::from_utf8(bytes).is_ok();
    let kind = if valid { TextKind::Utf8 } else { TextKind::Latin1 };
    let place = Node::place(at, len);
    let node = Spans { start, count, pad: 0, place, len, tail: 0, kind }.add(run, cursor, call);
    if !valid {
        run.tree.problem(Problem::new(Severity::Note, node, READ_AS_LATIN_1, 0, 0).showing(
            cursor.buffer(),
            at,
            len,
        ));
    }
    if bytes.contains(&0) {
        report_zero(run, node);
    }
    Ok(0)
}

/// The year 2242, in seconds since 1970.
const WIDE_END: u64 = 1 << 33;

/// Seconds since 1970, in 32 bits. A time that these cannot say is 0xffffffff, and 64 signed bits
/// follow. Older writers mean 0xffffffff itself: then what follows is hardly ever a time before
/// 1970 or from 2038 to [`WIDE_END`], and only such a time is taken for the 64 bits.
fn read_wide_time(run: &mut Run<'_>, cursor: &mut Cursor<'_>, call: &Call) -> Result<u64, Stop> {
    let start = cursor.pos();
    let seconds = u32::from_le_bytes(cursor.array()?);
    let behind = cursor.rest().first_chunk().map(|bytes| i64::from_le_bytes(*bytes));
    let wide = behind.filter(|wide| {
        let beyond = *wide < 0 || *wide > i64::from(i32::MAX);
        seconds == u32::MAX && beyond && wide.abs_diff(0) < WIDE_END
    });
    if wide.is_some() {
        cursor.skip(8)?;
    }
    let (value, kind) = match wide {
        Some(seconds) if seconds.unsigned_abs() <= EXACT => (seconds as u64, Kind::Signed),
        Some(seconds) => (seconds as u64, Kind::Signed64),
        None => (u64::from(seconds), Kind::Unsigned),
    };
    run.tree.leaf(call.node(cursor, start, kind, value));
    Ok(value)
}

/// How to read the bytes of a SafeString that is not inverted ASCII. Every known program inverts
/// what it writes. But readers take a first byte without the highest bit as the sign of a text that
/// is not inverted, so they misread a name that begins with a letter beyond ASCII. The tree shows
/// what the sender meant.
#[cold]
fn find_form(bytes: &[u8]) -> (TextKind, Option<&'static str>) {
    let taken_for_plain = bytes.first().is_some_and(|b| b & 0x80 == 0);
    if is_inverted_utf8(bytes) {
        let note = taken_for_plain.then_some("readers take this text for one that is not inverted");
        return (TextKind::Inverted8, note);
    }
    if taken_for_plain && std::str::from_utf8(bytes).is_ok() {
        return (TextKind::Utf8, Some("not inverted"));
    }
    (TextKind::InvertedLatin1, Some(READ_AS_LATIN_1))
}

/// A SafeWString: a u16 count of UTF-16 units, its four highest bits set, then the units, every one
/// inverted, then a zero unit.
///
/// The argument says whether an empty text has the zero unit too.
fn read_safe_wstring(run: &mut Run<'_>, cursor: &mut Cursor<'_>, call: &Call) -> Result<u64, Stop> {
    let start = cursor.pos();
    let count = u16::from_le_bytes(cursor.array()?);
    let len = usize::from(count & 0x0fff) * 2;
    let (at, bytes) = cursor.take(len)?;
    let mut tail = 0;
    let mut end = 0;
    if len > 0 || run.arg(call, 0, cursor) != 0 {
        end = u16::from_le_bytes(cursor.array()?);
        tail = 2;
    }
    let kind = TextKind::Inverted16;
    let node = Spans { start, count, pad: 0, place: Node::place(at, len), len, tail, kind }
        .add(run, cursor, call);
    run.check_text(node, kind, cursor.buffer(), at, bytes);
    if bytes.as_chunks::<2>().0.contains(&[!0, !0]) {
        report_zero(run, node);
    }
    if end != 0 {
        run.problem(
            Severity::Note,
            node,
            "the text ends with {a} instead of zero",
            i64::from(end),
            0,
        );
    }
    Ok(0)
}

/// Writes a count of up to 12 bits, the four highest bits set.
fn put_count(encoding: &mut Encoding<'_>, field: &Field, n: usize) -> Result<(), EncodeStop> {
    match u16::try_from(n) {
        Ok(n) if n <= 0x0fff => {
            encoding.out().put(&(n | 0xf000).to_le_bytes());
            Ok(())
        }
        _ => encoding.fail_at(field, format!("{n} units do not fit this text: it has 4095")),
    }
}

fn write_safe_string(encoding: &mut Encoding<'_>, field: &Field) -> Result<Slot, EncodeStop> {
    let kinds = [TextKind::Inverted8, TextKind::Utf8, TextKind::InvertedLatin1];
    let bytes = encoding.text_bytes(field, &kinds)?;
    let old = matches!(field.given, Given::Json(node) if encoding.is_said(node, OLD_COUNT));
    if old && bytes.len() <= 0x0fff {
        encoding.out().put(&(bytes.len() as u16).to_le_bytes());
        let pad = if encoding.arg(field, 0) != 0 { 2 } else { 0 };
        encoding.out().put_zeros(pad);
    } else {
        put_count(encoding, field, bytes.len())?;
    }
    encoding.out().put(&bytes);
    Ok(Slot::Number(0))
}

fn write_safe_wstring(encoding: &mut Encoding<'_>, field: &Field) -> Result<Slot, EncodeStop> {
    let bytes = encoding.text_bytes(field, &[TextKind::Inverted16])?;
    put_count(encoding, field, bytes.len() / 2)?;
    encoding.out().put(&bytes);
    if !bytes.is_empty() || encoding.arg(field, 0) != 0 {
        encoding.out().put_zeros(2);
    }
    Ok(Slot::Number(0))
}

fn write_p_string(encoding: &mut Encoding<'_>, field: &Field) -> Result<Slot, EncodeStop> {
    let bytes = encoding.text_bytes(field, &[TextKind::Utf8, TextKind::Latin1])?;
    match u16::try_from(bytes.len()) {
        Ok(n) => encoding.out().put(&n.to_le_bytes()),
        Err(_) => {
            let n = bytes.len();
            return encoding
                .fail_at(field, format!("{n} bytes do not fit this text: it has 65535"));
        }
    }
    encoding.out().put(&bytes);
    Ok(Slot::Number(0))
}

/// A time from 2038 on, or before 1970, is written in 64 bits. 0xffffffff is written as it is.
fn write_wide_time(encoding: &mut Encoding<'_>, field: &Field) -> Result<Slot, EncodeStop> {
    let value = encoding.number(field)?;
    if value == i128::from(u32::MAX) || (0..=i128::from(i32::MAX)).contains(&value) {
        encoding.out().put(&(value as u32).to_le_bytes());
        return Ok(Slot::Number(value as u64));
    }
    let Some(wide) = i64::try_from(value).ok().filter(|wide| wide.unsigned_abs() < WIDE_END) else {
        return encoding.fail_at(field, format!("{value} is no time before the year 2242"));
    };
    encoding.out().put(&u32::MAX.to_le_bytes());
    encoding.out().put(&wide.to_le_bytes());
    Ok(Slot::Number(wide as u64))
}

/// Positions of the parts of a text: `start` in bits, all others in bytes.
struct Spans {
    start: usize,
    count: u16,
    pad: usize,
    place: u64,
    len: usize,
    tail: usize,
    kind: TextKind,
}

impl Spans {
    /// Adds the text, and its parts as spans below it; returns the text's node. The cursor is
    /// behind it.
    #[inline(always)]
    fn add(&self, run: &mut Run<'_>, cursor: &Cursor<'_>, call: &Call) -> u32 {
        let tables = run.tables;
        let marks = call.marks | mark::SPAN;
        let whole = call.node(cursor, self.start, Kind::Text(self.kind), self.place);
        let value = u64::from(self.count);
        let name = tables.count_name();
        let ty = call.part(tables, 0);
        let count = Node { value, name, ty, kind: Kind::Unsigned, bits: 16, marks, ..whole };
        let name = tables.text_name();
        let start = whole.start + 16;
        let bits = (self.len * 8) as u32;
        let node = run.tree.leaf(whole);
        run.tree.leaf(count);
        let text = add_padding(run, Node { name, start, bits, marks, ..whole }, self.pad);
        if self.len > 0 {
            run.tree.leaf(text);
        }
        add_padding(run, Node { start: text.start + bits, ..text }, self.tail);
        run.tree.close(node, cursor.pos());
        node
    }
}

/// Adds bytes without meaning, if there are any, before a node. Returns the node, which now begins
/// behind them.
fn add_padding(run: &mut Run<'_>, before: Node, bytes: usize) -> Node {
    if bytes == 0 {
        return before;
    }
    let name = run.tables.padding_name();
    let ty = run.tables.padding_type();
    let bits = (bytes * 8) as u32;
    let value = Node::place(before.start as usize / 8, bytes);
    run.tree.leaf(Node { name, ty, value, bits, kind: Kind::Bytes, ..before });
    Node { start: before.start + bits, ..before }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;
    use crate::table::{Evaluator, TableSource, Tables};
    use crate::tree::{Sym, Tree, decode_text};

    const TABLE: &str = "protocol moul
        type SafeCount = u16
        dialect old
        dialect ended
        struct Text { text: safe_string(dialect old) }
        struct Plain { text: p_string }
        struct Wide { text: safe_wstring(dialect ended) }
        struct Region { inner: bytes[*] as Two dialects }
        struct Two { a: safe_string(dialect old), b: safe_wstring(dialect ended), last: u8 }";

    fn tables() -> Tables {
        let source = TableSource { name: "test".into(), text: TABLE.into() };
        Tables::load("moul", vec![source], &NATIVES).unwrap()
    }

    /// Reads some bytes by a type: the texts, the end, the problems.
    fn read(of: &str, bytes: &[u8]) -> (Vec<String>, usize, usize) {
        let tables = tables();
        let mut tree = Tree::new();
        let ty = tables.type_named(of).unwrap();
        let end = Evaluator::default().value(&tables, ty, Sym::ELEMENT, bytes, 0, &mut tree);
        let texts = tree
            .nodes()
            .iter()
            .filter(|n| !n.has(mark::SPAN))
            .filter_map(|n| text_of(n, bytes))
            .collect();
        (texts, end / 8, tree.problems().len())
    }

    fn text_of(node: &Node, bytes: &[u8]) -> Option<String> {
        let Kind::Text(kind) = node.kind else { return None };
        let (at, len) = node.content();
        let mut out = String::new();
        decode_text(kind, &bytes[at..at + len], &mut out);
        Some(out)
    }

    fn safe(text: &[u8]) -> Vec<u8> {
        let count = 0xf000 | text.len() as u16;
        count.to_le_bytes().into_iter().chain(text.iter().map(|b| !b)).collect()
    }

    fn one(text: &str, end: usize, problems: usize) -> (Vec<String>, usize, usize) {
        (vec![text.to_string()], end, problems)
    }

    #[test]
    fn names_are_turned_round() {
        assert_eq!(read("Text", &safe(b"cSfxBird01")), one("cSfxBird01", 12, 0));
        assert_eq!(read("Text", &safe(b"")), one("", 2, 0));
        assert_eq!(read("Text", &safe("xПривет".as_bytes())), one("xПривет", 15, 0));
    }

    #[test]
    fn a_first_letter_beyond_ascii_is_shown_as_it_was_sent() {
        assert_eq!(read("Text", &safe("Üser Ñame".as_bytes())), one("Üser Ñame", 13, 1));
    }

    #[test]
    fn what_is_not_utf_8_is_latin_1() {
        assert_eq!(read("Text", &safe(b"cDoor~\xdcn\xefcode")), one("cDoor~Ünïcode", 15, 1));
    }

    #[test]
    fn plain_texts_are_utf_8_or_latin_1() {
        assert_eq!(read("Plain", "\x07\0Nämé!".as_bytes()), one("Nämé!", 9, 0));
        assert_eq!(read("Plain", b"\x04\0N\xe4m\xe9"), one("Nämé", 6, 1));
        assert_eq!(read("Plain", &[0, 0]), one("", 2, 0));
    }

    #[test]
    fn a_text_that_is_not_inverted_stays() {
        assert_eq!(read("Text", b"\x05\xf0Plain"), one("Plain", 7, 1));
    }

    #[test]
    fn the_old_count() {
        assert_eq!(read("Text", &[2, 0, !b'o', !b'k']), one("ok", 4, 1));
    }

    #[test]
    fn a_zero_inside_a_text_is_noted() {
        assert_eq!(read("Text", &safe(b"a\0b")), one("a\0b", 5, 1));
        assert_eq!(read("Plain", b"\x03\0a\0b"), one("a\0b", 5, 1));
        let wide = [3, 0xf0, !b'a', 0xff, 0xff, 0xff, !b'b', 0xff, 0, 0];
        assert_eq!(read("Wide", &wide), one("a\0b", 10, 1));
    }

    #[test]
    fn wide_texts_end_with_a_zero_unless_they_are_empty() {
        assert_eq!(read("Wide", &[2, 0xf0, !b'h', 0xff, !b'i', 0xff, 0, 0]), one("hi", 8, 0));
        assert_eq!(read("Wide", &[0, 0xf0]), one("", 2, 0));
    }

    #[test]
    fn a_region_tells_how_an_empty_text_ends() {
        let ended = [0, 0xf0, 0, 0xf0, 0, 0, 7];
        let (texts, end, problems) = read("Region", &ended);
        assert_eq!((texts, end), (vec![String::new(), String::new()], 7));
        assert!(problems > 0, "which dialect fitted is noted");
        assert_eq!(
            read("Region", &[0, 0xf0, 0, 0xf0, 7]),
            (vec![String::new(), String::new()], 5, 0)
        );
    }

    #[test]
    fn cut_anywhere_it_stays_within_the_bytes() {
        let whole = [0x02, 0xf0, !b'o', !b'k', 0x01, 0xf0, !b'h', 0xff, 0, 0, 7];
        for cut in 0..whole.len() {
            let (_, end, _) = read("Region", &whole[..cut]);
            assert!(end <= cut);
        }
    }
}
