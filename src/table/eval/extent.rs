//! Bytes and texts that end at a mark (a zero, a blank, the end of a line), and numbers written in
//! digits.

use super::super::cursor::Cursor;
use super::super::program::*;
use super::{Field, Run, Slots, Stop};
use crate::tree::{Kind, Node, Severity, TextKind, TypeRef, mark};

/// A length as known before reading.
pub(super) enum Count {
    Units(u64),
    Bytes(u64),
    Rest,
    Zero,
    To(u8),
    /// Up to these bytes, by their index in the tables.
    Until(u32),
    /// Up to a blank.
    Blanks,
    /// Up to the element that says that it is the last.
    Last,
}

/// How many bytes a value has, and how many of them are its content. The others mark its end.
pub(super) struct FoundEnd {
    pub(super) all: usize,
    pub(super) content: usize,
}

/// JSON shows numbers up to this one as numbers, larger ones as text.
const EXACT: u64 = 1 << 53;

/// So many bytes are not there.
#[cold]
fn beyond(cursor: &Cursor<'_>, bytes: u64) -> Stop {
    Stop::Short(bytes.saturating_mul(8).saturating_add(cursor.pos() as u64))
}

impl Run<'_> {
    /// Finds the end of a value whose units have `unit` bytes.
    #[inline]
    pub(super) fn extent(
        &self,
        cursor: &Cursor<'_>,
        count: &Count,
        unit: usize,
    ) -> Result<FoundEnd, Stop> {
        let found = match count {
            Count::Units(_) | Count::Bytes(_) | Count::Rest => {
                let bytes = self.byte_len(cursor, count, unit as u64);
                // A length that is no number of this machine's memory is beyond any buffer.
                let n = usize::try_from(bytes).map_err(|_| beyond(cursor, bytes))?;
                FoundEnd { all: n, content: n }
            }
            // Only lists end so.
            Count::Last => FoundEnd { all: 0, content: 0 },
            Count::Zero => {
                let content = zero_at(cursor.rest(), unit)
                    .ok_or(Stop::Short((cursor.limit() + unit * 8) as u64))?;
                FoundEnd { all: content + unit, content }
            }
            Count::To(end) => {
                let rest = cursor.rest();
                match memchr::memchr2(*end, 0, rest) {
                    None => FoundEnd { all: rest.len(), content: rest.len() },
                    // The zero ends the surrounding value, which will read it.
                    Some(n) if *end != 0 && rest.get(n) == Some(&0) => {
                        FoundEnd { all: n, content: n }
                    }
                    Some(n) => FoundEnd { all: n + 1, content: n },
                }
            }
            Count::Until(place) => {
                let end = self.tables.delimiter(*place);
                match memchr::memmem::find(cursor.rest(), end) {
                    Some(content) => FoundEnd { all: content + end.len(), content },
                    None => self.to_the_end(cursor)?,
                }
            }
            Count::Blanks => {
                let rest = cursor.rest();
                let ends = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0);
                let Some(content) = rest.iter().position(ends) else {
                    return self.to_the_end(cursor);
                };
                let blanks = rest
                    .iter()
                    .skip(content)
                    .take_while(|byte| matches!(byte, b' ' | b'\t'))
                    .count();
                if content + blanks == rest.len() {
                    // More blanks may follow in a stream.
                    self.to_the_end(cursor)?;
                }
                FoundEnd { all: content + blanks, content }
            }
        };
        Ok(found)
    }

    /// The rest of the region. In a stream more may come, so the end is not known.
    fn to_the_end(&self, cursor: &Cursor<'_>) -> Result<FoundEnd, Stop> {
        if self.state.regions == 0 {
            return Err(Stop::Short(cursor.limit() as u64 + 8));
        }
        Ok(FoundEnd { all: cursor.left(), content: cursor.left() })
    }

    /// Elements up to a mark, which becomes a span, or up to the region's end.
    pub(super) fn elements_until(
        &mut self,
        cursor: &mut Cursor<'_>,
        node: u32,
        of: TypeRef,
        place: u32,
        frame: Slots,
    ) -> Result<(), Stop> {
        let tables = self.tables;
        let end = tables.delimiter(place);
        loop {
            let rest = cursor.rest();
            if rest.starts_with(end) {
                self.ending(end.len(), cursor);
                return Ok(());
            }
            if self.state.regions == 0 && (rest.is_empty() || end.starts_with(rest)) {
                return Err(Stop::Short((cursor.pos() + end.len() * 8) as u64));
            }
            if rest.is_empty() {
                return Ok(());
            }
            self.element(cursor, node, of, frame)?;
        }
    }

    /// Adds the bytes of an end mark as a span.
    pub(super) fn ending(&mut self, bytes: usize, cursor: &mut Cursor<'_>) {
        let start = cursor.pos();
        let buffer = cursor.buffer();
        let Ok(at) = cursor.skip(bytes) else { return };
        self.tree.leaf(Node {
            value: Node::place(at, bytes),
            name: self.tables.end_name(),
            ty: self.tables.padding_type(),
            start: start as u32,
            bits: (bytes * 8) as u32,
            end: 0,
            buffer,
            kind: Kind::Bytes,
            marks: mark::SPAN,
        });
    }

    /// A number in digits. With other characters it stays a text with a problem, and expressions
    /// see 0.
    pub(super) fn digits(
        &mut self,
        cursor: &mut Cursor<'_>,
        field: Field,
        def: &TypeDef,
        frame: Slots,
    ) -> Result<u64, Stop> {
        let ReadAs::Digits { radix, len } = def.read else { return Err(Stop::Unknown) };
        let count = self.count(cursor, len, frame)?;
        let FoundEnd { all, content } = self.extent(cursor, &count, 1)?;
        let start = cursor.pos() as u32;
        let buffer = cursor.buffer();
        let bytes = cursor.peek(all)?.unwrap_or(&[]);
        let at = cursor.skip(all)?;
        let text = bytes.get(..content).unwrap_or(bytes).trim_ascii();
        let node = Node { start, bits: (all * 8) as u32, buffer, ..field.node() };
        let read = std::str::from_utf8(text)
            .ok()
            .and_then(|text| i64::from_str_radix(text, u32::from(radix)).ok());
        let Some(value) = read else {
            let value = Node::place(at, content);
            let kind = Kind::Text(TextKind::Latin1);
            let node = self.tree.leaf(Node { value, kind, ..node });
            self.problem(Severity::Error, node, "no number, in base {a}", i64::from(radix), 0);
            return Ok(0);
        };
        let kind = if value.unsigned_abs() <= EXACT { Kind::Signed } else { Kind::Signed64 };
        let node = self.tree.leaf(Node { value: value as u64, kind, ..node });
        self.check_number(def, node, value as u64);
        Ok(value as u64)
    }
}

/// The offset of the first zero unit.
pub(super) fn zero_at(bytes: &[u8], unit: usize) -> Option<usize> {
    if unit == 1 {
        return memchr::memchr(0, bytes);
    }
    bytes.as_chunks::<2>().0.iter().position(|u| *u == [0, 0]).map(|i| i * 2)
}
