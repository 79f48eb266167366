//! Fields: which reader a type needs, and the scalars themselves.

use super::super::cursor::Cursor;
use super::super::program::*;
use super::{Call, Frame, Run, Stop};
use crate::tree::{Kind, Node, Severity, Sym, TypeRef};

impl Run<'_> {
    /// Reads one field and adds its node; returns the value expressions see (0 for what is no number).
    #[inline]
    pub fn field(
        &mut self,
        cursor: &mut Cursor<'_>,
        name: Sym,
        ty: TypeRef,
        marks: u8,
        frame: Frame,
    ) -> Result<u64, Stop> {
        let tables = self.tables;
        let Some(def) = tables.type_def(ty) else {
            return Err(Stop::Unknown);
        };
        let start = cursor.pos();
        let (value, kind) = match &def.read {
            Read::Int { size, signed, order } => integer(cursor, *size, *signed, *order)?,
            Read::Bool => (u64::from(cursor.array::<1>()?[0]), Kind::Bool),
            Read::Float { size: 4, big } => {
                let raw = cursor.array::<4>()?;
                let bits = if *big { u32::from_be_bytes(raw) } else { u32::from_le_bytes(raw) };
                (u64::from(bits), Kind::F32)
            }
            Read::Float { big, .. } => {
                let raw = cursor.array::<8>()?;
                (if *big { u64::from_be_bytes(raw) } else { u64::from_le_bytes(raw) }, Kind::F64)
            }
            Read::Uuid { plain } => {
                let at = cursor.skip(16)?;
                (Node::place(at, 16), if *plain { Kind::UuidBe } else { Kind::Uuid })
            }
            Read::Ipv4 { big } => {
                let raw = cursor.array::<4>()?;
                (u64::from(if *big { u32::from_be_bytes(raw) } else { u32::from_le_bytes(raw) }), Kind::Ipv4)
            }
            _ => return self.composite(cursor, name, ty, def, marks | def.marks, frame),
        };
        let node = self.tree.leaf(Node {
            value,
            name,
            ty,
            start: start as u32,
            bits: (cursor.pos() - start) as u32,
            end: 0,
            buffer: cursor.buffer(),
            kind,
            marks: marks | def.marks,
        });
        if kind == Kind::Bool && value > 1 {
            self.problem(Severity::Note, node, "a boolean of {a}", value as i64, 0);
        }
        if def.expect.is_some() || def.max.is_some() {
            self.check(def, node, value);
        }
        Ok(value)
    }

    #[cold]
    fn check(&mut self, def: &TypeDef, node: u32, value: u64) {
        if let Some(expect) = def.expect.filter(|e| *e != value) {
            self.problem(Severity::Note, node, "{a}, where {b} is expected", value as i64, expect as i64);
        }
        self.check_max(def, node, value);
    }

    /// Notes a value, count or length beyond what the protocol's own tables allow.
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

    fn composite(
        &mut self,
        cursor: &mut Cursor<'_>,
        name: Sym,
        ty: TypeRef,
        def: &TypeDef,
        marks: u8,
        frame: Frame,
    ) -> Result<u64, Stop> {
        if self.tree.len() >= self.state.limits.nodes {
            self.problem(
                Severity::Error,
                0,
                "more than {a} values in one message",
                i64::from(self.state.limits.nodes),
                0,
            );
            return Err(Stop::Limit);
        }
        match &def.read {
            Read::Layout { layout, args } => {
                let args = self.args(args, frame, cursor);
                self.structure(cursor, name, *layout, &args, marks)
            }
            Read::Family(family) => self.object(cursor, name, ty, *family, marks),
            Read::NullOr { present, of } => self.null_or(cursor, name, ty, *present, *of, marks, frame),
            Read::Native { native, args } => {
                let args = self.args(args, frame, cursor);
                let call = Call { name, ty, marks, args, depth: self.state.depth };
                let (start, node) = (cursor.pos(), self.tree.len());
                let result = match self.tables.native(*native) {
                    Some(function) => function(self, cursor, &call),
                    None => Err(Stop::Unknown),
                };
                if result.is_err() && self.tree.len() == node {
                    // What it read before it failed belongs to no node.
                    cursor.seek(start);
                }
                result
            }
            Read::Bytes(len) => self.bytes(cursor, name, ty, def, *len, marks, frame),
            Read::Text { kind, len, end } => self.text(cursor, name, ty, def, (*kind, *len, *end), marks, frame),
            Read::List { of, len } => self.list(cursor, name, ty, def, (*of, *len), marks, frame),
            Read::Region { .. } => self.region(cursor, name, def, marks, frame),
            _ => Err(Stop::Unknown),
        }
    }

    /// An object whose class is told by number.
    fn object(
        &mut self,
        cursor: &mut Cursor<'_>,
        name: Sym,
        ty: TypeRef,
        family: FamilyId,
        marks: u8,
    ) -> Result<u64, Stop> {
        let tables = self.tables;
        let Some(family) = tables.family(family) else {
            return Err(Stop::Unknown);
        };
        let node = self.open(cursor, name, ty, marks);
        let class = self.field(cursor, family.field, family.of, 0, Frame::default());
        let result = match class {
            Ok(number) if family.null == Some(number) => {
                self.make_null(node, cursor);
                return Ok(number);
            }
            Ok(number) => match family.members.binary_search_by_key(&number, |m| m.0) {
                Ok(i) => {
                    let layout = family.members.get(i).and_then(|m| tables.layout(m.1));
                    match layout {
                        Some(layout) => {
                            if let Some(n) = self.tree.get_mut(node) {
                                n.ty = layout.ty;
                            }
                            self.steps(layout, &[], node, cursor).map(|()| number)
                        }
                        None => Err(Stop::Unknown),
                    }
                }
                Err(_) => Err(Stop::Unknown),
            },
            Err(stop) => Err(stop),
        };
        self.tree.close(node, cursor.pos());
        result
    }

    /// Turns the structure that was just begun into "no object".
    fn make_null(&mut self, node: u32, cursor: &Cursor<'_>) {
        self.tree.cut(node + 1);
        if let Some(n) = self.tree.get_mut(node) {
            n.kind = Kind::Null;
        }
        self.tree.close(node, cursor.pos());
    }

    /// A presence and then the value or nothing. A structure takes the presence in as its first span.
    #[allow(clippy::too_many_arguments)] // one field's parts
    fn null_or(
        &mut self,
        cursor: &mut Cursor<'_>,
        name: Sym,
        ty: TypeRef,
        present: TypeRef,
        of: TypeRef,
        marks: u8,
        frame: Frame,
    ) -> Result<u64, Stop> {
        let tables = self.tables;
        let node = self.open(cursor, name, ty, marks);
        let there = self.field(cursor, tables.present_name(), present, crate::tree::mark::SPAN, frame);
        let result = match there {
            Ok(0) => {
                self.make_null(node, cursor);
                return Ok(0);
            }
            Ok(_) => match tables.type_def(of).map(|d| &d.read) {
                Some(Read::Layout { layout, args }) => {
                    let args = self.args(args, frame, cursor);
                    match tables.layout(*layout) {
                        Some(layout) => self.steps(layout, &args, node, cursor),
                        None => Err(Stop::Unknown),
                    }
                }
                _ => self.field(cursor, tables.value_name(), of, 0, frame).map(|_| ()),
            },
            Err(stop) => Err(stop),
        };
        self.tree.close(node, cursor.pos());
        result.map(|()| 1)
    }
}

#[inline]
fn integer(cursor: &mut Cursor<'_>, size: u8, signed: bool, order: Order) -> Result<(u64, Kind), Stop> {
    let value = match (size, order) {
        (1, _) => u64::from(cursor.array::<1>()?[0]),
        (2, Order::Big) => u64::from(u16::from_be_bytes(cursor.array()?)),
        (2, _) => u64::from(u16::from_le_bytes(cursor.array()?)),
        (4, Order::Little) => u64::from(u32::from_le_bytes(cursor.array()?)),
        (4, Order::Big) => u64::from(u32::from_be_bytes(cursor.array()?)),
        (4, Order::Pdp) => u64::from(u32::from_le_bytes(cursor.array()?).rotate_right(16)),
        (_, Order::Big) => u64::from_be_bytes(cursor.array()?),
        _ => u64::from_le_bytes(cursor.array()?),
    };
    if !signed {
        return Ok((value, if size == 8 { Kind::Unsigned64 } else { Kind::Unsigned }));
    }
    let above = 64 - u32::from(size) * 8;
    let value = ((value << above) as i64 >> above) as u64;
    Ok((value, if size == 8 { Kind::Signed64 } else { Kind::Signed }))
}
