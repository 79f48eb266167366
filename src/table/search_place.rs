//! A place in a message that is searched: reads what is there, and moves on. `route` says where to
//! go.

use super::Tables;
use super::program::*;
use super::way::MAX_SLOTS;
use crate::tree::{Buffer, ChosenDialects, DialectChoice, Node, TextKind, TypeRef};

/// A message that was read into an outline.
#[derive(Clone, Copy)]
pub struct SearchedMessage<'a> {
    /// What it is.
    pub def: &'a MessageDef,
    /// All its bytes.
    pub bytes: &'a [u8],
    /// What was made of compressed bytes among them; none if that is not known.
    pub made: &'a [u8],
    /// Which of its regions are in dialects.
    pub dialects: DialectChoice,
}

/// Only the evaluator can go on.
pub(super) struct Unclear;

pub(super) type Walked<T> = Result<T, Unclear>;

/// A place in a message.
#[derive(Clone, Copy)]
pub(super) struct SearchPlace<'a> {
    pub(super) tables: &'a Tables,
    /// The message's own bytes.
    captured: &'a [u8],
    dialects: DialectChoice,
    /// The message's bytes, or those that were made of a compressed region.
    pub(super) data: &'a [u8],
    /// The content of the compressed region, if there is one; none within it.
    made: &'a [u8],
    /// The dialects in use, as the bits of their numbers.
    spoken: u32,
    /// The next byte, and the end of the region around it.
    pub(super) pos: usize,
    end: usize,
}

/// The values that a layout keeps for its conditions.
pub(super) struct KeptValues {
    values: [u64; MAX_SLOTS],
    present: u64,
}

impl KeptValues {
    /// None yet.
    pub(super) fn new() -> KeptValues {
        KeptValues { values: [0; MAX_SLOTS], present: 0 }
    }

    #[inline]
    pub(super) fn keep(&mut self, slot: u16, value: u64) {
        if let Some(kept) = self.values.get_mut(usize::from(slot)) {
            *kept = value;
            self.present |= 1 << slot;
        }
    }

    #[inline]
    pub(super) fn get(&self, slot: u16) -> Option<u64> {
        self.values.get(usize::from(slot)).copied().filter(|_| self.present & 1 << slot != 0)
    }
}

impl<'a> SearchPlace<'a> {
    /// The beginning of a message.
    pub(super) fn new(tables: &'a Tables, message: SearchedMessage<'a>) -> SearchPlace<'a> {
        let SearchedMessage { bytes: data, made, dialects, .. } = message;
        SearchPlace {
            tables,
            captured: data,
            dialects,
            data,
            made,
            spoken: 0,
            pos: 0,
            end: data.len(),
        }
    }

    /// Reads a number of up to eight bytes.
    pub(super) fn number(&mut self, ty: TypeRef) -> Walked<u64> {
        let op = self.tables.type_op(ty);
        if op.how != TypeOpKind::Little {
            return Err(Unclear);
        }
        self.scalar(op.scalar)
    }

    #[inline]
    pub(super) fn scalar(&mut self, scalar: Scalar) -> Walked<u64> {
        let rest = self.data.get(self.pos..).unwrap_or(&[]);
        self.advance(scalar.size.into())?;
        let raw = match rest.first_chunk() {
            Some(eight) => u64::from_le_bytes(*eight),
            None => rest.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)),
        };
        Ok(scalar.value(raw))
    }

    #[inline]
    pub(super) fn advance(&mut self, bytes: usize) -> Walked<()> {
        self.pos = self.pos.checked_add(bytes).filter(|pos| *pos <= self.end).ok_or(Unclear)?;
        Ok(())
    }

    /// The length of a value whose units have `unit` bytes, in bytes.
    pub(super) fn length(&mut self, len: Len, unit: usize, kept: &KeptValues) -> Walked<usize> {
        let units = match len.from {
            LenFrom::Inline(ty) => self.number(ty)?,
            LenFrom::Const(units) => units.into(),
            LenFrom::Expr(id) => match self.tables.ex(id) {
                Some(Ex::Slot { slot, signed: false }) => kept.get(*slot).ok_or(Unclear)?,
                _ => return Err(Unclear),
            },
            LenFrom::Rest => return Ok(self.end - self.pos),
            _ => return Err(Unclear),
        };
        let units =
            usize::try_from(units).ok().filter(|units| *units <= self.data.len()).ok_or(Unclear)?;
        Ok(if len.bytes { units } else { units * unit })
    }

    /// How many elements a list has.
    pub(super) fn elements_of(&mut self, len: Len, kept: &KeptValues) -> Walked<usize> {
        if len.bytes || matches!(len.from, LenFrom::Rest) {
            Err(Unclear)
        } else {
            self.length(len, 1, kept)
        }
    }

    /// A text with code: the place of its bytes, and their encoding.
    pub(super) fn text(&mut self, ty: TypeRef) -> Walked<(u64, TextKind)> {
        let ReadAs::Native { native, .. } = self.tables.type_def(ty).ok_or(Unclear)?.read else {
            return Err(Unclear);
        };
        let skip = self.tables.native(native).and_then(|code| code.native.skip).ok_or(Unclear)?;
        let found = skip(self.data.get(self.pos..self.end).unwrap_or(&[])).ok_or(Unclear)?;
        let place = Node::place(self.pos + found.before, found.text);
        self.advance(found.before + found.text)?;
        Ok((place, found.kind))
    }

    /// Passes over a text with code. Mostly its count tells where it ends
    /// ([`Native::ascii`](super::Native::ascii)).
    #[inline]
    pub(super) fn pass_text(&mut self, ty: TypeRef, ascii: u16) -> Walked<()> {
        let rest = self.data.get(self.pos..self.end).unwrap_or(&[]);
        match rest.first_chunk().map(|count| u16::from_le_bytes(*count)) {
            Some(count) if count & ascii != 0 => self.advance(2 + usize::from(count & !ascii)),
            _ => self.text(ty).map(drop),
        }
    }

    /// What conditions see of an object that begins here, or of none.
    pub(super) fn seen(&mut self, ty: TypeRef) -> Walked<u64> {
        let tables = self.tables;
        let begins = self.pos;
        let value = match &tables.type_def(ty).ok_or(Unclear)?.read {
            ReadAs::Family(family) => self.number(tables.family(*family).ok_or(Unclear)?.of)?,
            ReadAs::NullOr { present, .. } => u64::from(self.number(*present)? != 0),
            _ => return Err(Unclear),
        };
        self.pos = begins;
        Ok(value)
    }

    /// Enters a region that begins here, or its content. Returns the type of that, and the place
    /// behind the region.
    pub(super) fn enter(
        &mut self,
        region: &RegionType,
        kept: &KeptValues,
    ) -> Walked<(TypeRef, SearchPlace<'a>)> {
        let [inner] = region.inner.as_slice() else { return Err(Unclear) };
        let bytes = self.length(region.len, 1, kept)?;
        let mut behind = *self;
        behind.advance(bytes)?;
        self.end = behind.pos;
        if region.zlib.is_some() {
            self.data = std::mem::take(&mut self.made);
            (self.pos, self.end) = (0, self.data.len());
        }
        let is_captured = std::ptr::eq(self.data, self.captured);
        if let DialectChoice::In(ChosenDialects { buffer, at, dialects }) = self.dialects
            && (buffer == Buffer::CAPTURED) == is_captured
            && at as usize == self.pos
        {
            self.spoken |= dialects;
        }
        if self.data.is_empty() { Err(Unclear) } else { Ok((*inner, behind)) }
    }

    /// Whether a condition holds here.
    pub(super) fn holds(&self, test: Test, kept: &KeptValues) -> Walked<bool> {
        Ok(match test {
            Test::Has(slot, mask) => kept.get(slot).is_some_and(|value| value & mask == mask),
            Test::Equals(slot, number) => kept.get(slot) == Some(number),
            Test::Differs(slot, number) => kept.get(slot).is_some_and(|value| value != number),
            Test::Above(slot, number) => kept.get(slot).is_some_and(|value| value > number),
            Test::More => self.pos < self.end,
            Test::Dialect(..) if self.dialects == DialectChoice::Unknown => return Err(Unclear),
            Test::Dialect(dialect, spoken) => (self.spoken & 1 << dialect != 0) == spoken,
            Test::General(_) => return Err(Unclear),
        })
    }
}
