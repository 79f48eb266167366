//! Fields: which reader a type needs, and the scalars themselves.

use super::super::cursor::Cursor;
use super::super::fixed::Fixed;
use super::super::program::*;
use super::super::quick::{How, Quick};
use super::{Call, Frame, Run, Stop};
use crate::tree::{Kind, Node, Severity, Sym, TypeRef};

impl Run<'_> {
    /// Reads one field and adds its node; returns the value expressions see (0 for what is no number).
    pub fn field(
        &mut self,
        cursor: &mut Cursor<'_>,
        name: Sym,
        ty: TypeRef,
        marks: u8,
        frame: Frame,
    ) -> Result<u64, Stop> {
        self.quick_field(cursor, name, ty, marks, frame)
    }

    /// The same, to stand within the loops over steps and elements.
    #[inline(always)]
    pub(super) fn quick_field(
        &mut self,
        cursor: &mut Cursor<'_>,
        name: Sym,
        ty: TypeRef,
        marks: u8,
        frame: Frame,
    ) -> Result<u64, Stop> {
        let quick = self.tables.quick(ty);
        self.step(cursor, (name, ty, marks | quick.marks), &quick, frame)
    }

    /// The same, of a type that was looked up.
    #[inline(always)]
    pub(super) fn step(
        &mut self,
        cursor: &mut Cursor<'_>,
        (name, ty, marks): (Sym, TypeRef, u8),
        quick: &Quick,
        frame: Frame,
    ) -> Result<u64, Stop> {
        match quick.how {
            How::Little => {
                let start = cursor.pos();
                let value = quick.scalar.bits().value(cursor.little(quick.scalar.size)?);
                let node = self.scalar(cursor, name, ty, (value, quick.scalar.kind), (start, marks));
                if quick.checked || value > quick.scalar.usual() {
                    self.check(ty, node, value);
                }
                Ok(value)
            }
            How::Layout => self.structure(cursor, name, quick.layout, &[], marks).map(|()| 0),
            How::Other => self.other(cursor, name, ty, marks, frame),
        }
    }

    /// Reads a run of fields at once; whether it could be.
    #[inline]
    pub(super) fn fixed(&mut self, fixed: &Fixed, frame: &mut Frame, cursor: &mut Cursor<'_>) -> bool {
        let (start, first, buffer) = (cursor.pos() as u32, self.tree.len(), cursor.buffer());
        if first + fixed.nodes.len() as u32 > self.state.limits.nodes {
            return false;
        }
        let Some(bytes) = cursor.run(fixed.bytes as usize) else { return false };
        let slots = self.state.slots.get_mut(frame.base..).unwrap_or_default();
        let (mut present, mut odd) = (frame.present, fixed.checked);
        let nodes = fixed.nodes.iter().map(|template| {
            let (value, unusual) = template.value(bytes);
            odd |= unusual;
            if let Some(place) = slots.get_mut(usize::from(template.slot)) {
                *place = value;
                present |= 1 << (template.slot & 63);
            }
            let mut node = template.node;
            node.value = value;
            node.start += start;
            node.end += first;
            node.buffer = buffer;
            node
        });
        self.tree.extend(fixed.marks, nodes);
        frame.present = present;
        if odd {
            self.check_run(fixed, first);
        }
        true
    }

    #[cold]
    fn check_run(&mut self, fixed: &Fixed, first: u32) {
        for (node, t) in (first..).zip(&fixed.nodes) {
            let value = self.tree.get(node).map_or(0, |node| node.value);
            self.check(t.node.ty, node, value);
        }
    }

    /// Adds the node of a value that was read from `start` on.
    #[inline(always)]
    fn scalar(
        &mut self,
        cursor: &Cursor<'_>,
        name: Sym,
        ty: TypeRef,
        (value, kind): (u64, Kind),
        (start, marks): (usize, u8),
    ) -> u32 {
        let (bits, buffer) = ((cursor.pos() - start) as u32, cursor.buffer());
        self.tree.leaf(Node { value, name, ty, start: start as u32, bits, end: 0, buffer, kind, marks })
    }

    #[cold]
    #[inline(never)]
    fn check(&mut self, ty: TypeRef, node: u32, value: u64) {
        let Some(def) = self.tables.type_def(ty) else { return };
        if matches!(def.read, Read::Bool) && value > 1 {
            self.problem(Severity::Note, node, "a boolean of {a}", value as i64, 0);
        }
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

    /// What is more than a few bytes, and numbers in rare orders of bytes.
    #[inline(never)]
    fn other(&mut self, cursor: &mut Cursor<'_>, name: Sym, ty: TypeRef, marks: u8, frame: Frame) -> Result<u64, Stop> {
        let tables = self.tables;
        let Some(def) = tables.type_def(ty) else {
            return Err(Stop::Unknown);
        };
        self.node_limit(0)?;
        match &def.read {
            Read::Int { .. } | Read::Float { .. } | Read::Ipv4 { .. } | Read::Uuid { .. } => {
                let start = cursor.pos();
                let read = number(cursor, &def.read)?;
                let node = self.scalar(cursor, name, ty, read, (start, marks));
                self.check(ty, node, read.0);
                Ok(read.0)
            }
            Read::Layout { layout, args } => {
                let args = self.args(args, frame, cursor);
                self.structure(cursor, name, *layout, &args, marks).map(|()| 0)
            }
            Read::Family(family) => self.object(cursor, name, ty, *family, marks),
            Read::NullOr { present, of } => self.null_or(cursor, name, ty, *present, *of, marks, frame),
            Read::Native { native, args } => {
                let args = self.args(args, frame, cursor);
                let call = Call { native: *native, name, ty, marks, args, depth: self.state.depth };
                let (start, node) = (cursor.pos(), self.tree.len());
                let result = match tables.native(*native) {
                    Some((native, _)) => (native.read)(self, cursor, &call),
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
        let class = self.quick_field(cursor, family.field, family.of, 0, Frame::default());
        let result = match class {
            Ok(number) if family.null == Some(number) => {
                self.make_null(node, cursor);
                return Ok(number);
            }
            Ok(number) => {
                let member = family.numbers.find(number).and_then(|at| family.members.get(at));
                match member.and_then(|m| tables.layout(m.1)) {
                    Some(layout) => {
                        self.tree.retype(node, layout.ty);
                        self.steps(layout, &[], node, cursor).map(|()| number)
                    }
                    None => Err(Stop::Unknown),
                }
            }
            Err(stop) => Err(stop),
        };
        self.tree.close(node, cursor.pos());
        result
    }

    /// Turns the structure that was just begun into "no object".
    fn make_null(&mut self, node: u32, cursor: &Cursor<'_>) {
        self.tree.cut(node + 1);
        self.tree.set_kind(node, Kind::Null);
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
        let there = self.quick_field(cursor, tables.present_name(), present, crate::tree::mark::SPAN, frame);
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

/// A number in one of the rarer orders of bytes, or the place of a UUID.
fn number(cursor: &mut Cursor<'_>, read: &Read) -> Result<(u64, Kind), Stop> {
    Ok(match read {
        Read::Int { size, signed, order } => integer(cursor, *size, *signed, *order)?,
        Read::Float { size: 4, .. } => (u64::from(u32::from_be_bytes(cursor.array()?)), Kind::F32),
        Read::Float { .. } => (u64::from_be_bytes(cursor.array()?), Kind::F64),
        Read::Uuid { plain } => (Node::place(cursor.skip(16)?, 16), if *plain { Kind::UuidBe } else { Kind::Uuid }),
        _ => (u64::from(u32::from_be_bytes(cursor.array()?)), Kind::Ipv4),
    })
}

fn integer(cursor: &mut Cursor<'_>, size: u8, signed: bool, order: Order) -> Result<(u64, Kind), Stop> {
    let value = match (size, order) {
        (2, _) => u64::from(u16::from_be_bytes(cursor.array()?)),
        (4, Order::Pdp) => u64::from(u32::from_le_bytes(cursor.array()?).rotate_right(16)),
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
