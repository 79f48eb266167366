//! Finds one field of a message by its place, without a tree: goes through the steps that come before it and no further.
//!
//! The message has to be one that was read into an outline, so that everything in it is as its table says. What is not simple to pass over is left to the
//! evaluator: the answer is then [`FoundField::Unknown`]. `tests/it/filters_outlines.rs` and a fuzz target compare what it finds with trees.

use std::sync::OnceLock;

use super::Tables;
use super::program::*;
use crate::tree::{Buffer, Node, Sym, TextKind, TypeRef};

/// The path of a field: its name behind those of the objects that it is in. Lists are no part of it.
#[derive(Debug)]
pub struct FieldRoute {
    names: Box<[Sym]>,
    /// For each name, and each layout, whether the layout has no second field of this name. Looked up when a message first has it.
    single: Box<[Box<[OnceLock<bool>]>]>,
}

/// What was found at a path.
#[derive(Debug, Clone, Copy)]
pub enum FoundField {
    /// A number in the message's bytes. The node has no marks.
    Number(Node),
    /// The message has no such field.
    Absent,
    /// Only a tree can tell.
    Unknown,
}

/// Only the evaluator can go on.
struct Unclear;

type Walked<T> = Result<T, Unclear>;

/// Objects within each other that are gone through.
const MAX_DEPTH: u32 = 12;
/// Values that a layout may keep. Bits of a word tell which are there.
const MAX_SLOTS: usize = 64;

impl FieldRoute {
    /// The route to a field; `None` where fields of these names may come from elsewhere than layouts.
    pub fn new(tables: &Tables, names: Vec<Sym>) -> Option<FieldRoute> {
        let elsewhere = |name: &Sym| tables.is_builtin(*name) || tables.is_in_header(*name);
        if names.is_empty() || names.iter().any(elsewhere) {
            return None;
        }
        let layouts = || vec![OnceLock::new(); tables.layouts().len()].into_boxed_slice();
        Some(FieldRoute { single: names.iter().map(|_| layouts()).collect(), names: names.into() })
    }

    /// What is there in a message, of which `bytes` are all bytes.
    pub fn find(&self, tables: &Tables, message: &MessageDef, bytes: &[u8]) -> FoundField {
        let mut walk = FieldSearch { tables, route: self, data: bytes, pos: 0, end: bytes.len(), depth: 0 };
        walk.message(message).unwrap_or(FoundField::Unknown)
    }

    /// Whether a layout has at most one field of a name of the path.
    fn is_single(&self, tables: &Tables, layout: LayoutId, at: usize) -> bool {
        let name = self.names.get(at).copied();
        let count = || tables.fields_of(layout).filter(|(field, _)| Some(*field) == name).count();
        let known = self.single.get(at).and_then(|known| known.get(layout.0 as usize));
        known.is_some_and(|known| *known.get_or_init(|| count() < 2))
    }
}

/// On its way through a message.
struct FieldSearch<'a> {
    tables: &'a Tables,
    route: &'a FieldRoute,
    data: &'a [u8],
    /// The next byte, and the end of the region around it.
    pos: usize,
    end: usize,
    depth: u32,
}

/// The values that a layout keeps for its conditions.
struct KeptValues {
    values: [u64; MAX_SLOTS],
    present: u64,
}

impl KeptValues {
    fn keep(&mut self, slot: u16, value: u64) {
        if let Some(kept) = self.values.get_mut(usize::from(slot)) {
            *kept = value;
            self.present |= 1 << slot;
        }
    }

    fn get(&self, slot: u16) -> Option<u64> {
        self.values.get(usize::from(slot)).copied().filter(|_| self.present & 1 << slot != 0)
    }
}

impl FieldSearch<'_> {
    fn message(&mut self, message: &MessageDef) -> Walked<FoundField> {
        let service = self.tables.service(message.service).ok_or(Unclear)?;
        let layout = message.layout.filter(|_| service.framing.begins.is_none()).ok_or(Unclear)?;
        for (_, _, ty) in &service.header {
            self.number(*ty)?;
        }
        Ok(self.layout(layout, Some(0))?.unwrap_or(FoundField::Absent))
    }

    /// Goes through the fields of a structure to the one with the name at a place of the path; to its end if no name is wanted.
    fn layout(&mut self, id: LayoutId, at: Option<usize>) -> Walked<Option<FoundField>> {
        let (tables, route) = (self.tables, self.route);
        let layout = tables.layout(id).ok_or(Unclear)?;
        let plain = layout.params == 0 && usize::from(layout.slots) <= MAX_SLOTS && layout.positions.is_none();
        if !plain || self.depth >= MAX_DEPTH || at.is_some_and(|at| !route.is_single(tables, id, at)) {
            return Err(Unclear);
        }
        self.depth += 1;
        let wanted = at.and_then(|at| route.names.get(at).copied());
        let (mut kept, mut step) = (KeptValues { values: [0; MAX_SLOTS], present: 0 }, layout.start);
        loop {
            let mut next = step + 1;
            match tables.step(step).ok_or(Unclear)? {
                LayoutStep::Field { name, ty, .. } if Some(*name) == wanted => {
                    return self.field(*ty, *name, at.unwrap_or(0)).map(Some);
                }
                LayoutStep::Field { ty, slot, op, .. } => {
                    let value = self.pass(*ty, op)?;
                    if *slot != NO_SLOT {
                        kept.keep(*slot, value.ok_or(Unclear)?);
                    }
                }
                LayoutStep::Branch { test, otherwise } => {
                    next = if self.holds(*test, &kept)? { next } else { *otherwise };
                }
                LayoutStep::Jump(to) => next = *to,
                LayoutStep::Partial => {}
                LayoutStep::End => break,
                _ => return Err(Unclear),
            }
            step = Some(next).filter(|next| *next > step).ok_or(Unclear)?;
        }
        self.depth -= 1;
        Ok(None)
    }

    fn holds(&self, test: Test, kept: &KeptValues) -> Walked<bool> {
        Ok(match test {
            Test::Has(slot, mask) => kept.get(slot).is_some_and(|value| value & mask == mask),
            Test::Equals(slot, number) => kept.get(slot) == Some(number),
            Test::Differs(slot, number) => kept.get(slot).is_some_and(|value| value != number),
            Test::Above(slot, number) => kept.get(slot).is_some_and(|value| value > number),
            Test::More => self.pos < self.end,
            Test::Dialect(..) | Test::General(_) => return Err(Unclear),
        })
    }

    /// The field with the name at a place of the path: the wanted one, or an object on the way.
    fn field(&mut self, ty: TypeRef, name: Sym, at: usize) -> Walked<FoundField> {
        if at + 1 < self.route.names.len() {
            return self.object(ty, at + 1);
        }
        let (start, value) = (self.pos, self.number(ty)?);
        let (start, bits, buffer) = ((start * 8) as u32, ((self.pos - start) * 8) as u32, Buffer::CAPTURED);
        let kind = self.tables.type_op(ty).scalar.kind;
        Ok(FoundField::Number(Node { value, name, ty, start, bits, end: 0, buffer, kind, marks: 0 }))
    }

    /// Goes on in an object.
    fn object(&mut self, ty: TypeRef, at: usize) -> Walked<FoundField> {
        let tables = self.tables;
        match &tables.type_def(ty).ok_or(Unclear)?.read {
            ReadAs::Layout { layout, args } if args.is_empty() => {
                Ok(self.layout(*layout, Some(at))?.unwrap_or(FoundField::Absent))
            }
            ReadAs::Region(RegionType { len, inner, zlib: None, .. }) => {
                let [inner] = inner.as_slice() else { return Err(Unclear) };
                let bytes = self.length(*len, 1)?;
                self.end = Some(self.pos + bytes).filter(|end| *end <= self.end).ok_or(Unclear)?;
                self.object(*inner, at)
            }
            ReadAs::Family(family) => {
                let family = tables.family(*family).ok_or(Unclear)?;
                if self.route.names.get(at) == Some(&family.field) {
                    return Err(Unclear);
                }
                match self.class(family)? {
                    Some(layout) => Ok(self.layout(layout, Some(at))?.unwrap_or(FoundField::Absent)),
                    None => Ok(FoundField::Absent),
                }
            }
            ReadAs::NullOr { present, of } => match self.number(*present)? {
                0 => Ok(FoundField::Absent),
                _ => self.object(*of, at),
            },
            _ => Err(Unclear),
        }
    }

    /// The layout of an object's class; `None` for no object.
    fn class(&mut self, family: &Family) -> Walked<Option<LayoutId>> {
        let number = self.number(family.of)?;
        if family.null == Some(number) {
            return Ok(None);
        }
        let member = family.numbers.find(number).and_then(|at| family.members.get(at));
        member.map(|member| Some(member.1)).ok_or(Unclear)
    }

    /// Passes over a value. Returns what conditions see of it, where that is known.
    fn pass(&mut self, ty: TypeRef, op: &TypeOp) -> Walked<Option<u64>> {
        if op.how == TypeOpKind::Little {
            return self.number(ty).map(Some);
        }
        let tables = self.tables;
        match &tables.type_def(ty).ok_or(Unclear)?.read {
            ReadAs::Int { size, .. } | ReadAs::Float { size, .. } => self.advance(usize::from(*size))?,
            ReadAs::Uuid { .. } => self.advance(16)?,
            ReadAs::Ipv4 { .. } => self.advance(4)?,
            ReadAs::Layout { layout, args } if args.is_empty() => drop(self.layout(*layout, None)?),
            ReadAs::NullOr { present, of } => {
                let present = self.number(*present)? != 0;
                if present {
                    self.pass(*of, &tables.type_op(*of))?;
                }
                return Ok(Some(present.into()));
            }
            ReadAs::Family(family) => {
                if let Some(layout) = self.class(tables.family(*family).ok_or(Unclear)?)? {
                    self.layout(layout, None)?;
                }
            }
            ReadAs::Native { native, .. } => {
                let skip = tables.native(*native).and_then(|code| code.native.skip).ok_or(Unclear)?;
                let text = skip(self.data.get(self.pos..self.end).unwrap_or(&[])).ok_or(Unclear)?;
                self.advance(text.before + text.text)?;
            }
            ReadAs::Bytes(len) | ReadAs::Region(RegionType { len, .. }) => {
                let bytes = self.length(*len, 1)?;
                self.advance(bytes)?;
            }
            ReadAs::Text { kind, len, .. } => {
                let bytes =
                    self.length(*len, if matches!(kind, TextKind::Utf16 | TextKind::Inverted16) { 2 } else { 1 })?;
                self.advance(bytes)?;
            }
            ReadAs::List { of, len } if !len.bytes => {
                let (elements, op) = (self.length(*len, 1)?, tables.type_op(*of));
                for _ in 0..elements {
                    let before = self.pos;
                    self.pass(*of, &op)?;
                    if self.pos == before {
                        return Err(Unclear);
                    }
                }
            }
            _ => return Err(Unclear),
        }
        Ok(None)
    }

    /// The length of a value whose units have `unit` bytes, in bytes.
    fn length(&mut self, len: Len, unit: usize) -> Walked<usize> {
        let units = match len.from {
            LenFrom::Inline(ty) => self.number(ty)?,
            LenFrom::Const(units) => units.into(),
            _ => return Err(Unclear),
        };
        let units = usize::try_from(units).ok().filter(|units| *units <= self.data.len()).ok_or(Unclear)?;
        Ok(if len.bytes { units } else { units * unit })
    }

    /// Reads a number of up to eight bytes.
    fn number(&mut self, ty: TypeRef) -> Walked<u64> {
        let op = self.tables.type_op(ty);
        if op.how != TypeOpKind::Little {
            return Err(Unclear);
        }
        let rest = self.data.get(self.pos..).unwrap_or(&[]);
        self.advance(op.scalar.size.into())?;
        let raw = match rest.first_chunk() {
            Some(eight) => u64::from_le_bytes(*eight),
            None => rest.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)),
        };
        Ok(op.scalar.value(raw))
    }

    fn advance(&mut self, bytes: usize) -> Walked<()> {
        self.pos = self.pos.checked_add(bytes).filter(|pos| *pos <= self.end).ok_or(Unclear)?;
        Ok(())
    }
}
