//! Reads fields: chooses the reader of a type, and reads scalars itself.

use super::super::NativeType;
use super::super::cursor::Cursor;
use super::super::program::*;
use super::{Call, Field, Run, Slots, Stop};
use crate::tree::{Concern, Kind, Node, Problem, Severity, Sym, TypeRef, mark};

/// The text of a problem: a number, a count or a length exceeds the bound of the client.
const OVER_THE_BOUND: &str = "{a}, where the client's own table says {b} at most";

impl Run<'_> {
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

    /// Tells the tree that tables say more about the next field than how to read it.
    #[inline]
    pub(super) fn tell(&mut self, field: Field) {
        match field.marks & mark::SPAN {
            0 => self.tree.add_telling(self.tree.len()),
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
            let problem =
                Problem::new(Severity::Note, node, OVER_THE_BOUND, value as i64, max as i64);
            self.tree.problem(problem.concerning(Concern::TooLong));
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
        let Some(NativeType { native: code, .. }) = self.tables.native(native) else {
            return Err(Stop::Unknown);
        };
        self.node_limit(0)?;
        let call = Call { native, name, ty, marks, frame };
        let start = cursor.pos();
        let node = self.tree.len();
        let result = (code.read)(self, cursor, &call);
        self.tell_since(node);
        if result.is_err() && self.tree.len() == node {
            // Bytes that the code read before it failed belong to no node.
            cursor.seek(start);
        }
        result
    }

    /// Tells of the annotated fields among the nodes from an index on, which code added.
    fn tell_since(&mut self, from: u32) {
        for at in from..self.tree.len() {
            let Some(node) = self.tree.get(at) else { return };
            if self.tables.is_telling(node.ty) {
                match node.marks & mark::SPAN {
                    0 => self.tree.add_telling(at),
                    _ => self.tree.set_telling(false),
                }
            }
        }
    }
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
