//! Texts as mudmode writes them: finds the end of one, even if its sender escapes nothing, and
//! resolves escapes.
//!
//! It knows bytes and quotes, not trees.

use memchr::memchr2;

/// The place of a text. It decides what may follow the closing quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextPlace {
    /// A packet's type. It contains no quotes, so the first one closes it.
    Plain,
    /// A mapping's key: a colon follows.
    Key,
    /// Anywhere else.
    Value,
}

/// A text between its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quoted {
    /// Offset of its first byte, behind the opening quote.
    pub(super) start: usize,
    /// Offset of the closing quote, or of the end of everything.
    pub(super) end: usize,
    /// Offset behind it.
    pub(super) next: usize,
    /// Whether it contains backslashes.
    pub(super) escapes: bool,
    /// Whether there was a closing quote.
    pub(super) closed: bool,
    /// The first quote in it that was not escaped.
    pub(super) bare: Option<usize>,
}

/// By place, the offset from which on an earlier search found no closing quote. It keeps all
/// searches together linear.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UnclosedQuotes {
    key: Option<usize>,
    value: Option<usize>,
}

impl UnclosedQuotes {
    /// The same, with offsets that count from `from` on.
    pub(super) fn behind(self, from: usize) -> UnclosedQuotes {
        let moved = |at: Option<usize>| at.map(|at| at.saturating_sub(from));
        UnclosedQuotes { key: moved(self.key), value: moved(self.value) }
    }

    fn at(&mut self, place: TextPlace) -> &mut Option<usize> {
        if place == TextPlace::Key { &mut self.key } else { &mut self.value }
    }
}

/// The text whose first byte is at `start`. The packet's text ends at `end`.
///
/// Some senders (CoffeeMud) do not escape quotes. A quote that is followed by bytes which cannot
/// follow a text is such a quote. The text then goes on to the first quote behind which the array
/// plainly continues.
pub(super) fn quoted(
    bytes: &[u8],
    start: usize,
    end: usize,
    place: TextPlace,
    unclosed: &mut UnclosedQuotes,
) -> Quoted {
    let mut escapes = false;
    let mut at = start;
    loop {
        let Some((found, quote)) = next_mark(bytes, at, end) else {
            return Quoted { start, end, next: end, escapes, closed: false, bare: None };
        };
        if !quote {
            escapes = true;
            at = found + 2;
            continue;
        }
        let mut text =
            Quoted { start, end: found, next: found + 1, escapes, closed: true, bare: None };
        if place != TextPlace::Plain
            && !closes(bytes, found + 1, end, place)
            && let Some(last) = later(bytes, found + 1, end, place, unclosed)
        {
            text.end = last;
            text.next = last + 1;
            text.escapes = false;
            text.bare = Some(found);
        }
        return text;
    }
}

/// The next quote (true) or backslash (false).
#[inline]
fn next_mark(bytes: &[u8], at: usize, end: usize) -> Option<(usize, bool)> {
    let rest = bytes.get(at..end)?;
    let found = memchr2(b'"', b'\\', rest)?;
    Some((at + found, rest.get(found) == Some(&b'"')))
}

/// Whether the bytes behind a quote may follow a text.
#[inline]
fn closes(bytes: &[u8], next: usize, end: usize, place: TextPlace) -> bool {
    let rest = bytes.get(next..end).unwrap_or(&[]);
    match rest.first() {
        Some(b',') => true,
        Some(b':') => place == TextPlace::Key || rest.get(1).is_some_and(|b| begins_value(*b)),
        _ => after_blanks(rest),
    }
}

fn after_blanks(rest: &[u8]) -> bool {
    let rest = rest.trim_ascii_start();
    match rest.first() {
        None | Some(b',' | b':' | 0) => true,
        Some(b'}' | b']' | b'/') => matches!(rest.get(1), None | Some(b')' | 0)),
        _ => false,
    }
}

/// The first quote from `at` on behind which the container plainly continues: with a comma and
/// directly behind it a value or a closing bracket, with a closing bracket, or for a key with a
/// colon.
fn later(
    bytes: &[u8],
    at: usize,
    end: usize,
    place: TextPlace,
    unclosed: &mut UnclosedQuotes,
) -> Option<usize> {
    let known = unclosed.at(place);
    if known.is_some_and(|from| at >= from) {
        return None;
    }
    let mut from = at;
    while let Some((found, quote)) = next_mark(bytes, from, end) {
        if !quote {
            from = found + 2;
            continue;
        }
        let rest = bytes.get(found + 1..end).unwrap_or(&[]);
        let good = match (place, rest.first()) {
            (TextPlace::Key, first) => first == Some(&b':'),
            (_, Some(b',')) => goes_on(rest.get(1..).unwrap_or(&[])),
            (_, Some(b'}' | b']' | b'/')) => rest.get(1) == Some(&b')'),
            _ => false,
        };
        if good {
            return Some(found);
        }
        from = found + 1;
    }
    *known = Some(at);
    None
}

fn goes_on(rest: &[u8]) -> bool {
    match rest.first() {
        None => true,
        Some(b'}' | b']' | b'/') => rest.get(1) == Some(&b')'),
        Some(b) => *b == b',' || begins_value(*b),
    }
}

/// Whether a byte may begin a value.
#[inline]
pub(super) fn begins_value(byte: u8) -> bool {
    matches!(byte, b'"' | b'(' | b'-' | b'0'..=b'9')
}

/// Resolves escapes into `out`. Returns the place in `text` of the first escape that the document
/// does not know.
pub(super) fn unescape(text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    out.clear();
    let mut odd = None;
    let mut rest = text;
    while let Some(found) = memchr::memchr(b'\\', rest) {
        let (plain, from) = rest.split_at(found);
        out.extend_from_slice(plain);
        let at = text.len() - from.len();
        match from.get(1) {
            Some(b'n') => out.push(b'\n'),
            Some(b @ (b'"' | b'\\')) => out.push(*b),
            Some(b) => {
                odd.get_or_insert(at);
                out.push(*b);
            }
            None => {
                odd.get_or_insert(at);
                out.push(b'\\');
            }
        }
        rest = from.get(2..).unwrap_or(&[]);
    }
    out.extend_from_slice(rest);
    odd
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    fn of(text: &str, place: TextPlace) -> (&str, Option<usize>) {
        let q = quoted(text.as_bytes(), 0, text.len(), place, &mut UnclosedQuotes::default());
        (&text[q.start..q.end], q.bare)
    }

    #[test]
    fn a_text_ends_at_its_quote() {
        assert_eq!(of(r#"hello",5"#, TextPlace::Value), ("hello", None));
        assert_eq!(of(r#"a \" b\\",5"#, TextPlace::Value), (r#"a \" b\\"#, None));
        assert_eq!(of(r#"key":1"#, TextPlace::Key), ("key", None));
        assert_eq!(of("never closed", TextPlace::Value), ("never closed", None));
    }

    #[test]
    fn a_quote_that_is_not_escaped_belongs_to_the_text() {
        let text = r#"Hello channel "quoted" \ slash",})"#;
        assert_eq!(of(text, TextPlace::Value), (r#"Hello channel "quoted" \ slash"#, Some(14)));
        let text = r#"he said "hi", and left",})"#;
        assert_eq!(of(text, TextPlace::Value), (r#"he said "hi", and left"#, Some(8)));
        assert_eq!(
            of(r#""quoted" only","next",})"#, TextPlace::Value),
            (r#""quoted" only"#, Some(0))
        );
    }

    #[test]
    fn where_no_later_quote_could_close_the_first_one_does() {
        assert_eq!(of(r#"tell"5,})"#, TextPlace::Value), ("tell", None));
        assert_eq!(of(r#"a" "b",])"#, TextPlace::Key), ("a", None));
        assert_eq!(of(r#"tell"5,"x",})"#, TextPlace::Plain), ("tell", None));
    }

    #[test]
    fn looking_for_a_closing_quote_stays_linear() {
        let text = "\"x".repeat(300_000);
        let mut unclosed = UnclosedQuotes::default();
        for at in (0..text.len()).step_by(2) {
            quoted(text.as_bytes(), at, text.len(), TextPlace::Value, &mut unclosed);
        }
    }

    #[test]
    fn escapes_are_the_documents_and_any_other_stands_for_its_character() {
        let mut out = Vec::new();
        assert_eq!(unescape(br#"a\"b\\c\nd"#, &mut out), None);
        assert_eq!(out, b"a\"b\\c\nd");
        assert_eq!(unescape(br"tab\t \x41", &mut out), Some(3));
        assert_eq!(out, b"tabt x41");
        assert_eq!(unescape(br"end\", &mut out), Some(3));
        assert_eq!(out, b"end\\");
    }
}
