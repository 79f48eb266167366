//! Values with a length: bytes, texts, lists.

use super::super::cursor::Cursor;
use super::super::program::*;
use super::extent::{Count, FoundEnd, zero_at};
use super::{Field, Run, Slots, Stop};
use crate::tree::{
    Buffer, Kind, Node, Problem, Severity, Sym, TextKind, TypeRef, decode_pieces,
    is_inverted_ascii, mark,
};

/// The note of a text that is declared as UTF-8 or Latin-1 and is the latter.
pub const READ_AS_LATIN_1: &str = "not UTF-8: read as Latin-1";

impl Run<'_> {
    /// Evaluates a length. A count that comes before the value is read here and becomes a span.
    pub(super) fn count(
        &mut self,
        cursor: &mut Cursor<'_>,
        len: Len,
        frame: Slots,
    ) -> Result<Count, Stop> {
        let n = match len.from {
            LenFrom::Const(n) => u64::from(n),
            LenFrom::Rest => return Ok(Count::Rest),
            LenFrom::Zero => return Ok(Count::Zero),
            LenFrom::To(unit) => return Ok(Count::To(unit)),
            LenFrom::Until(place) => return Ok(Count::Until(place)),
            LenFrom::Blanks => return Ok(Count::Blanks),
            LenFrom::Last => return Ok(Count::Last),
            LenFrom::Inline(ty) => {
                let field = Field { name: self.tables.count_name(), ty, marks: mark::SPAN };
                self.number(cursor, field, frame)?
            }
            LenFrom::Expr(id) => match self.length(id, frame, cursor) {
                Some(n) => n,
                None => {
                    let node = self.tree.len().saturating_sub(1);
                    self.problem(
                        Severity::Error,
                        node,
                        "a length below zero or without a value",
                        0,
                        0,
                    );
                    return Err(Stop::Bad);
                }
            },
        };
        Ok(if len.bytes { Count::Bytes(n) } else { Count::Units(n) })
    }

    /// A length in bytes, for units of `unit` bytes. An overflow becomes the largest number, which
    /// no buffer can hold.
    pub(super) fn byte_len(&self, cursor: &Cursor<'_>, count: &Count, unit: u64) -> u64 {
        match count {
            Count::Units(n) => n.saturating_mul(unit),
            Count::Bytes(n) => *n,
            Count::Rest => cursor.left() as u64 / unit * unit,
            Count::Zero | Count::To(_) | Count::Until(_) | Count::Blanks | Count::Last => 0,
        }
    }

    pub(super) fn bytes(
        &mut self,
        cursor: &mut Cursor<'_>,
        field: Field,
        def: &TypeDef,
        len: Len,
        frame: Slots,
    ) -> Result<u64, Stop> {
        let count = self.count(cursor, len, frame)?;
        let FoundEnd { all: n, content } = self.extent(cursor, &count, 1)?;
        let start = cursor.pos();
        let at = cursor.skip(n)?;
        let value = Node::place(at, content);
        let start = start as u32;
        let bits = (n * 8) as u32;
        let buffer = cursor.buffer();
        let node =
            self.tree.leaf(Node { value, start, bits, buffer, kind: Kind::Bytes, ..field.node() });
        self.check_max(def, node, n as u64);
        Ok(0)
    }

    pub(super) fn text(
        &mut self,
        cursor: &mut Cursor<'_>,
        field: Field,
        def: &TypeDef,
        frame: Slots,
    ) -> Result<u64, Stop> {
        let ReadAs::Text { mut kind, or_latin1, len, end } = def.read else {
            return Err(Stop::Unknown);
        };
        let unit = if matches!(kind, TextKind::Utf16 | TextKind::Inverted16) { 2 } else { 1 };
        let count = self.count(cursor, len, frame)?;
        let start = cursor.pos();
        let FoundEnd { all: n, content } = self.extent(cursor, &count, unit)?;
        let bytes = cursor.peek(n)?;
        let at = cursor.skip(n)?;
        let bytes = bytes.unwrap_or(&[]);
        let content = match end {
            _ if matches!(len.from, LenFrom::Const(_)) => zero_at(bytes, unit).unwrap_or(content),
            TextEnd::Zero if ends_with_zero(bytes, unit) => n - unit,
            TextEnd::Zero | TextEnd::Whole => content,
            TextEnd::Zeros => content.saturating_sub(zeros_at_end(bytes, unit)),
        };
        let of_text = bytes.get(..content).unwrap_or(bytes);
        let in_latin1 = or_latin1 && !of_text.is_ascii() && std::str::from_utf8(of_text).is_err();
        if in_latin1 {
            kind = TextKind::Latin1;
        }
        let value = Node::place(at, content);
        let start = start as u32;
        let bits = (n * 8) as u32;
        let buffer = cursor.buffer();
        let text = Node { value, start, bits, buffer, kind: Kind::Text(kind), ..field.node() };
        let node = self.tree.leaf(text);
        match (len.from, end) {
            (LenFrom::Const(_), _) if content < n => self.fixed_text(node, text, content + unit),
            (LenFrom::Const(_), _) => {}
            (_, TextEnd::Zero) if content == n => {
                self.problem(Severity::Note, node, "no zero at the text's end", 0, 0);
            }
            _ => {}
        }
        if in_latin1 {
            self.tree.problem(
                Problem::new(Severity::Note, node, READ_AS_LATIN_1, 0, 0)
                    .showing(buffer, at, content),
            );
        }
        self.check_text(node, kind, buffer, at, of_text);
        self.check_max(def, node, (n / unit) as u64);
        Ok(0)
    }

    /// A text of fixed size ends at its first zero. The bytes after the first `used` ones become
    /// padding.
    fn fixed_text(&mut self, node: u32, text: Node, used: usize) {
        let (at, _) = text.content();
        let all = text.bits as usize / 8;
        if used == all {
            return;
        }
        let mut head = text;
        let mut pad = text;
        head.bits = (used * 8) as u32;
        head.name = self.tables.text_name();
        head.marks |= mark::SPAN;
        pad.start += head.bits;
        pad.bits -= head.bits;
        pad.name = self.tables.padding_name();
        pad.ty = self.tables.padding_type();
        pad.kind = Kind::Bytes;
        pad.value = Node::place(at + used, all - used);
        pad.marks |= mark::SPAN;
        self.tree.leaf(head);
        self.tree.leaf(pad);
        self.tree.close(node, (text.start + text.bits) as usize);
    }

    /// Adds a problem to a text's node where the text is not valid, with its bytes, which begin at
    /// byte `at` of `buffer`.
    pub fn check_text(
        &mut self,
        node: u32,
        kind: TextKind,
        buffer: Buffer,
        at: usize,
        bytes: &[u8],
    ) {
        let len = bytes.len();
        let plain = match kind {
            TextKind::Utf8 => bytes.is_ascii() || std::str::from_utf8(bytes).is_ok(),
            TextKind::Latin1 | TextKind::InvertedLatin1 | TextKind::Owned => true,
            TextKind::Inverted8 => is_inverted_ascii(bytes),
            TextKind::Utf16 => {
                len.is_multiple_of(2)
                    && !bytes.as_chunks::<2>().0.iter().any(|u| u[1] & 0xf8 == 0xd8)
            }
            TextKind::Inverted16 => {
                len.is_multiple_of(2)
                    && !bytes.as_chunks::<2>().0.iter().any(|u| !u[1] & 0xf8 == 0xd8)
            }
        };
        if plain || decode_pieces(kind, bytes, |_| {}) {
            return;
        }
        self.tree.problem(
            Problem::new(Severity::Warning, node, "not valid text", 0, 0).showing(buffer, at, len),
        );
    }

    pub(super) fn list(
        &mut self,
        cursor: &mut Cursor<'_>,
        field: Field,
        def: &TypeDef,
        frame: Slots,
    ) -> Result<u64, Stop> {
        let ReadAs::List { of, len } = def.read else { return Err(Stop::Unknown) };
        let count = self.count(cursor, len, frame)?;
        let node = self.open_as(cursor, field, Kind::List);
        let result = self.elements(cursor, node, of, &count, frame);
        self.tree.close(node, cursor.pos());
        if let Count::Units(n) = count {
            self.check_max(def, node, n);
        }
        result.map(|()| 0)
    }

    fn elements(
        &mut self,
        cursor: &mut Cursor<'_>,
        node: u32,
        of: TypeRef,
        count: &Count,
        frame: Slots,
    ) -> Result<(), Stop> {
        let end = match count {
            Count::Units(n) => return self.counted_elements(cursor, node, of, *n, frame),
            Count::Bytes(n) => n.saturating_mul(8).saturating_add(cursor.pos() as u64),
            Count::Zero => return self.ended_elements(cursor, node, of, frame),
            Count::Until(place) => return self.elements_until(cursor, node, of, *place, frame),
            Count::Last => return self.elements_until_last(cursor, node, of, frame),
            Count::Rest | Count::To(_) | Count::Blanks => cursor.limit() as u64,
        };
        if end > cursor.limit() as u64 {
            return Err(Stop::Short(end));
        }
        while (cursor.pos() as u64) < end {
            self.element(cursor, node, of, frame)?;
        }
        Ok(())
    }

    /// Elements up to a zero byte, which is a span of its own, or to the region's end.
    fn ended_elements(
        &mut self,
        cursor: &mut Cursor<'_>,
        node: u32,
        of: TypeRef,
        frame: Slots,
    ) -> Result<(), Stop> {
        while let Some(next) = cursor.rest().first() {
            if *next != 0 {
                self.element(cursor, node, of, frame)?;
                continue;
            }
            let start = cursor.pos();
            let at = cursor.skip(1)?;
            self.tree.leaf(Node {
                value: Node::place(at, 1),
                name: self.tables.end_name(),
                ty: self.tables.padding_type(),
                start: start as u32,
                bits: 8,
                end: 0,
                buffer: cursor.buffer(),
                kind: Kind::Bytes,
                marks: mark::SPAN,
            });
            break;
        }
        Ok(())
    }

    /// Reads elements until one says `last`. If none does, the bytes end too early.
    fn elements_until_last(
        &mut self,
        cursor: &mut Cursor<'_>,
        node: u32,
        of: TypeRef,
        frame: Slots,
    ) -> Result<(), Stop> {
        let outer = std::mem::take(&mut self.state.last);
        let mut result = Ok(());
        while result.is_ok() && !self.state.last {
            result = self.element(cursor, node, of, frame);
        }
        self.state.last = outer;
        result
    }

    fn counted_elements(
        &mut self,
        cursor: &mut Cursor<'_>,
        node: u32,
        of: TypeRef,
        n: u64,
        frame: Slots,
    ) -> Result<(), Stop> {
        let least = self.tables.type_def(of).map_or(0, |d| u64::from(d.min_bits));
        let wanted = n.saturating_mul(least).saturating_add(cursor.pos() as u64);
        if self.state.regions == 0 && wanted > cursor.limit() as u64 {
            return Err(Stop::Short(wanted));
        }
        let op = self.tables.type_op(of);
        match op.how {
            TypeOpKind::Layout | TypeOpKind::NullOr | TypeOpKind::Family => {
                self.composites(cursor, node, of, n, frame)
            }
            _ => (0..n).try_for_each(|_| self.element(cursor, node, of, frame)),
        }
    }

    pub(super) fn element(
        &mut self,
        cursor: &mut Cursor<'_>,
        node: u32,
        of: TypeRef,
        frame: Slots,
    ) -> Result<(), Stop> {
        self.node_limit(node)?;
        let before = cursor.pos();
        self.quick_field(cursor, Field { name: Sym::ELEMENT, ty: of, marks: 0 }, frame)?;
        self.has_length(node, before, cursor)
    }

    /// Stops reading the elements of a list if one has no bytes: there would be no end of them.
    #[inline(always)]
    pub(super) fn has_length(
        &mut self,
        node: u32,
        before: usize,
        cursor: &Cursor<'_>,
    ) -> Result<(), Stop> {
        if cursor.pos() == before {
            self.problem(Severity::Error, node, "a list whose elements have no length", 0, 0);
            return Err(Stop::Bad);
        }
        Ok(())
    }
}

/// Whether the last unit is zero.
fn ends_with_zero(bytes: &[u8], unit: usize) -> bool {
    let last = bytes.len().checked_sub(unit).and_then(|content| bytes.get(content..));
    last.is_some_and(|unit| unit.iter().all(|b| *b == 0))
}

/// How many bytes the zero units at the end take.
fn zeros_at_end(bytes: &[u8], unit: usize) -> usize {
    bytes.iter().rev().take_while(|b| **b == 0).count() / unit * unit
}
