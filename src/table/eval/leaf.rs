//! Reads fields: chooses the reader of a type, and reads scalars itself.

use super::super::NativeType;
use super::super::cursor::Cursor;
use super::super::program::*;
use super::{Call, Field, Run, Slots, Stop, TreeSink};
use crate::tree::{Kind, Node, Severity, Sym, TextKind, TypeRef, is_inverted_ascii, mark};

impl<T: TreeSink> Run<'_, T> {
    /// Reads one field and adds its node. Returns the value that expressions see (0 for a field
    /// that is no number).
    pub fn field(
        &mut self,
        cursor: &mut Cursor<'_>,
        name: Sym,
        ty: TypeRef,
        marks: u8,
        frame: Slots,
    ) -> Result<u64, Stop> {
        self.quick_field(cursor, Field { name, ty, marks }, frame)
    }

    /// As [`Run::field`], but inlined into the loop over elements.
    #[inline(always)]
    pub(super) fn quick_field(
        &mut self,
        cursor: &mut Cursor<'_>,
        field: Field,
        frame: Slots,
    ) -> Result<u64, Stop> {
        let op = self.tables.type_op(field.ty);
        let field = Field { marks: field.marks | op.marks, ..field };
        if op.telling {
            self.tell(field);
        }
        match op.how {
            TypeOpKind::Little => self.little(cursor, field, &op),
            TypeOpKind::Layout | TypeOpKind::NullOr | TypeOpKind::Family => {
                self.composite(cursor, field, &op, frame)
            }
            TypeOpKind::Native => self.native(cursor, field, op.by, frame),
            TypeOpKind::Other => self.other(cursor, field, frame),
        }
    }

    /// Tells the sink that tables say more about the next field than how to read it.
    #[inline]
    pub(super) fn tell(&mut self, field: Field) {
        match field.marks & mark::SPAN {
            0 => self.tree.telling(self.tree.len()),
            // The list has no spans: it could not tell them from counts.
            _ => self.tree.set_telling(false),
        }
    }

    /// Reads a field, with a fast path for little-endian numbers, which most fields are.
    #[inline(always)]
    pub(super) fn number(
        &mut self,
        cursor: &mut Cursor<'_>,
        field: Field,
        frame: Slots,
    ) -> Result<u64, Stop> {
        let op = self.tables.type_op(field.ty);
        if op.telling {
            self.tell(field);
        }
        if op.how != TypeOpKind::Little {
            return self.field(cursor, field.name, field.ty, field.marks, frame);
        }
        self.little(cursor, Field { marks: field.marks | op.marks, ..field }, &op)
    }

    /// A number of up to 8 bytes, least significant first.
    #[inline(always)]
    pub(super) fn little(
        &mut self,
        cursor: &mut Cursor<'_>,
        field: Field,
        op: &TypeOp,
    ) -> Result<u64, Stop> {
        let start = cursor.pos();
        let value = op.scalar.value(cursor.little(op.scalar.size)?);
        let node = self.scalar(cursor, field, value, op.scalar.kind, start);
        if op.checked || (op.scalar.kind == Kind::Bool && value > 1) {
            self.check(field.ty, node, value);
        }
        Ok(value)
    }

    /// Reads a run of fields at once. Returns whether it could. Not inlined: the loop over steps
    /// leaves it no registers.
    #[inline(never)]
    pub(super) fn fixed(
        &mut self,
        fixed: &FixedRun,
        frame: &mut Slots,
        cursor: &mut Cursor<'_>,
    ) -> bool {
        let start = cursor.pos() as u32;
        let first = self.tree.len();
        let buffer = cursor.buffer();
        if first + fixed.nodes.len() as u32 > self.state.limits.nodes {
            return false;
        }
        let Some(bytes) = cursor.run(fixed.bytes as usize) else { return false };
        self.tree.run(fixed, bytes, start, buffer);
        for (value, slot) in &fixed.kept {
            self.keep(frame, *slot, value.of(bytes));
        }
        if fixed.unusual {
            self.unusual_run(fixed, bytes, first);
        }
        true
    }

    /// What is to be said of a run's fields beyond their values.
    #[inline(never)]
    fn unusual_run(&mut self, fixed: &FixedRun, bytes: &[u8], first: u32) {
        for at in &fixed.telling {
            self.tree.telling(first + at);
        }
        if fixed.checked
            || fixed.bools.iter().any(|at| bytes.get(*at as usize).is_some_and(|b| *b > 1))
        {
            self.check_run(fixed, bytes, first);
        }
    }

    #[cold]
    fn check_run(&mut self, fixed: &FixedRun, bytes: &[u8], first: u32) {
        for (index, node) in (first..).zip(&fixed.nodes) {
            self.check(node.node.ty, index, node.value(bytes));
        }
    }

    /// Adds the node of a value that began at `start`.
    #[inline(always)]
    fn scalar(
        &mut self,
        cursor: &Cursor<'_>,
        field: Field,
        value: u64,
        kind: Kind,
        start: usize,
    ) -> u32 {
        let bits = (cursor.pos() - start) as u32;
        let buffer = cursor.buffer();
        self.tree.leaf(Node { value, start: start as u32, bits, buffer, kind, ..field.node() })
    }

    #[cold]
    #[inline(never)]
    pub(super) fn check(&mut self, ty: TypeRef, node: u32, value: u64) {
        let Some(def) = self.tables.type_def(ty) else { return };
        if matches!(def.read, ReadAs::Bool) && value > 1 {
            self.problem(Severity::Note, node, "a boolean of {a}", value as i64, 0);
        }
        self.check_number(def, node, value);
    }

    /// Adds a problem if a number is not the expected one or exceeds its `max`.
    pub(super) fn check_number(&mut self, def: &TypeDef, node: u32, value: u64) {
        if let Some(expect) = def.expect.filter(|e| *e != value) {
            self.problem(
                Severity::Note,
                node,
                "{a}, where {b} is expected",
                value as i64,
                expect as i64,
            );
        }
        self.check_max(def, node, value);
    }

    /// Adds a problem if a value, count or length exceeds the `max` of its type.
    pub(super) fn check_max(&mut self, def: &TypeDef, node: u32, value: u64) {
        if let Some(max) = def.max.filter(|m| value > *m) {
            self.problem(
                Severity::Note,
                node,
                "{a}, where the client's own table says {b} at most",
                value as i64,
                max as i64,
            );
        }
    }

    /// Values of more than a few bytes, and numbers in rare byte orders.
    #[inline(never)]
    pub(super) fn other(
        &mut self,
        cursor: &mut Cursor<'_>,
        field: Field,
        frame: Slots,
    ) -> Result<u64, Stop> {
        let tables = self.tables;
        let Some(def) = tables.type_def(field.ty) else {
            return Err(Stop::Unknown);
        };
        self.node_limit(0)?;
        match &def.read {
            ReadAs::Int { .. }
            | ReadAs::Float { .. }
            | ReadAs::Ipv4 { .. }
            | ReadAs::Uuid { .. } => {
                let start = cursor.pos();
                let (value, kind) = number(cursor, &def.read)?;
                let node = self.scalar(cursor, field, value, kind, start);
                self.check(field.ty, node, value);
                Ok(value)
            }
            ReadAs::Layout { layout, args } => {
                let args = self.args(args, frame, cursor);
                let layout = tables.layout(*layout).ok_or(Stop::Unknown)?;
                let node = self.open_as(cursor, Field { ty: layout.ty, ..field }, Kind::Struct);
                let result = self.steps(layout, &args, node, cursor);
                self.tree.close(node, cursor.pos());
                result.map(|()| 0)
            }
            ReadAs::Bytes(len) => self.bytes(cursor, field, def, *len, frame),
            ReadAs::Text { .. } => self.text(cursor, field, def, frame),
            ReadAs::List { .. } => self.list(cursor, field, def, frame),
            ReadAs::Digits { .. } => self.digits(cursor, field, def, frame),
            ReadAs::Region { .. } => self.region(cursor, field, def, frame),
            _ => Err(Stop::Unknown),
        }
    }

    /// A type with code.
    #[inline(never)]
    pub(super) fn native(
        &mut self,
        cursor: &mut Cursor<'_>,
        field: Field,
        native: u32,
        frame: Slots,
    ) -> Result<u64, Stop> {
        let Field { name, ty, marks } = field;
        let Some(NativeType { native: code, parts }) = self.tables.native(native) else {
            return Err(Stop::Unknown);
        };
        let Some(read) = T::native(code.read, code.outline) else {
            T::whole(self);
            return Err(Stop::Unknown);
        };
        self.node_limit(0)?;
        if code.texts.is_empty() {
            // Its code may add any number of nodes.
            self.tree.set_telling(false);
        }
        if code.ascii != 0 && self.ordinary_text(cursor, field, code.ascii, parts) {
            return Ok(0);
        }
        let call = Call { native, name, ty, marks, frame };
        let start = cursor.pos();
        let node = self.tree.len();
        let result = read(self, cursor, &call);
        if result.is_err() && self.tree.len() == node {
            // Bytes that the code read before it failed belong to no node.
            cursor.seek(start);
        }
        result
    }
}

impl<T: TreeSink> Run<'_, T> {
    /// Reads a text with code at once, if it is [ordinary](super::super::Native::ascii) and has
    /// characters. Returns whether it is.
    #[inline(always)]
    fn ordinary_text(
        &mut self,
        cursor: &mut Cursor<'_>,
        field: Field,
        ascii: u16,
        parts: &[Option<TypeRef>],
    ) -> bool {
        #[cfg(test)]
        if super::super::cursor::ONE_BY_ONE.get() {
            return false;
        }
        let bytes = cursor.rest();
        let start = cursor.pos();
        let index = self.tree.len();
        let Some((count, length)) = ordinary_text(bytes, ascii).filter(|(_, length)| *length > 0)
        else {
            return false;
        };
        if !start.is_multiple_of(8) || cursor.skip(length + 2).is_err() {
            return false;
        }
        let value = Node::place(start / 8 + 2, length);
        let bits = length as u32 * 8;
        let end = index + 3;
        let start = start as u32;
        let buffer = cursor.buffer();
        let kind = Kind::Text(TextKind::Inverted8);
        let whole = Node { value, start, bits: bits + 16, end, buffer, kind, ..field.node() };
        let text = Node {
            name: self.tables.text_name(),
            start: start + 16,
            bits,
            marks: field.marks | mark::SPAN,
            ..whole
        };
        let name = self.tables.count_name();
        let ty = parts.first().copied().flatten().unwrap_or(field.ty);
        let count = Node {
            value: count.into(),
            name,
            ty,
            start,
            bits: 16,
            end: index + 2,
            kind: Kind::Unsigned,
            ..text
        };
        self.tree.extend(text.marks, [whole, count, text]);
        true
    }
}

/// The count before an ordinary text at the start of some bytes
/// ([`Native::ascii`](super::super::Native::ascii)), and the number of its characters.
#[inline(always)]
pub(super) fn ordinary_text(bytes: &[u8], ascii: u16) -> Option<(u16, usize)> {
    let (count, rest) = bytes.split_first_chunk()?;
    let count = u16::from_le_bytes(*count);
    let length = usize::from(count & !ascii);
    let text = rest.get(..length).filter(|_| count & ascii != 0)?;
    is_inverted_ascii(text).then_some((count, length))
}

/// A number in one of the rarer byte orders, or the position of a UUID.
fn number(cursor: &mut Cursor<'_>, read: &ReadAs) -> Result<(u64, Kind), Stop> {
    Ok(match read {
        ReadAs::Int { size, signed, order } => integer(cursor, *size, *signed, *order)?,
        ReadAs::Float { size: 4, .. } => {
            (u64::from(u32::from_be_bytes(cursor.array()?)), Kind::F32)
        }
        ReadAs::Float { .. } => (u64::from_be_bytes(cursor.array()?), Kind::F64),
        ReadAs::Uuid { plain } => {
            (Node::place(cursor.skip(16)?, 16), if *plain { Kind::UuidBe } else { Kind::Uuid })
        }
        _ => (u64::from(u32::from_be_bytes(cursor.array()?)), Kind::Ipv4),
    })
}

fn integer(
    cursor: &mut Cursor<'_>,
    size: u8,
    signed: bool,
    order: ByteOrder,
) -> Result<(u64, Kind), Stop> {
    let value = match (size, order) {
        (2, _) => u64::from(u16::from_be_bytes(cursor.array()?)),
        (3, _) => {
            let [high, middle, low] = cursor.array()?;
            u64::from(u32::from_be_bytes([0, high, middle, low]))
        }
        (4, ByteOrder::Pdp) => u64::from(u32::from_le_bytes(cursor.array()?).rotate_right(16)),
        (4, _) => u64::from(u32::from_be_bytes(cursor.array()?)),
        _ => u64::from_be_bytes(cursor.array()?),
    };
    if !signed {
        return Ok((value, if size == 8 { Kind::Unsigned64 } else { Kind::Unsigned }));
    }
    let above = 64 - u32::from(size) * 8;
    let value = ((value << above) as i64 >> above) as u64;
    Ok((value, if size == 8 { Kind::Signed64 } else { Kind::Signed }))
}
