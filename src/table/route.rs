//! Finds the numbers at a path in a message, without a tree: goes through the steps that come before them and no further.
//!
//! The message has to be one that was read into an outline, so that everything in it is as its table says. What is not simple to pass over is left to the
//! evaluator: it is then not known what is there. `tests/it/filters_outlines.rs` and a fuzz target compare what is found with trees.

use std::sync::OnceLock;

use super::Tables;
use super::forms::ValueForm;
use super::program::*;
use super::reach::LayoutAnswers;
use super::way::{MAX_SLOTS, WantedFields, WayStep, size_of_value, way};
use crate::tree::{Buffer, Node, Sym, TextKind, TypeRef};

/// A step of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteStep {
    /// The field of a name.
    Name(Sym),
    /// All fields of a name, in an object and in everything within it.
    Anywhere(Sym),
    /// The element of a list at a place, or all of them.
    Element(Option<usize>),
}

/// A path to numbers.
#[derive(Debug)]
pub struct FieldRoute {
    steps: Box<[RouteStep]>,
    /// For each step, and for none, and each layout: the way through the layout. Made when a message first has it.
    ways: Box<[Box<[OnceLock<Way>]>]>,
    /// For each step, which layouts may have fields of its name, or objects.
    leading: Box<[LayoutAnswers]>,
}

/// The steps of a structure; `None` if only the evaluator can go this way.
type Way = Option<Box<[WayStep]>>;

/// Only the evaluator can go on.
struct Unclear;

type Walked<T> = Result<T, Unclear>;

/// Objects within each other that are gone through.
const MAX_DEPTH: u32 = 12;

impl FieldRoute {
    /// The route along a path; `None` where fields of its names may come from elsewhere than layouts, or what is searched for may be no numbers.
    pub fn new(tables: &Tables, steps: Vec<RouteStep>) -> Option<FieldRoute> {
        let may_go = |step: &RouteStep| match step {
            RouteStep::Name(name) => !tables.names_elsewhere(*name),
            RouteStep::Anywhere(name) => {
                let forms = tables.forms_of(*name);
                !tables.names_elsewhere(*name)
                    && forms.is_some_and(|forms| forms.iter().all(|form| matches!(form, ValueForm::Int(_))))
            }
            RouteStep::Element(_) => true,
        };
        if matches!(steps.first(), None | Some(RouteStep::Element(_))) || !steps.iter().all(may_go) {
            return None;
        }
        let layouts = |_| vec![OnceLock::new(); tables.layouts().len()].into_boxed_slice();
        let leading = steps.iter().map(|_| LayoutAnswers::new(tables)).collect();
        Some(FieldRoute { ways: (0..=steps.len()).map(layouts).collect(), leading, steps: steps.into() })
    }

    /// Whether a number at the end of the path passes a test, in a message of which `bytes` are all bytes; `None` if only a tree can tell. Nodes have no marks.
    pub fn any(
        &self,
        tables: &Tables,
        message: &MessageDef,
        bytes: &[u8],
        test: &mut dyn FnMut(Node) -> bool,
    ) -> Option<bool> {
        let (pos, end, depth) = (0, bytes.len(), 0);
        FieldSearch { tables, route: self, data: bytes, pos, end, depth, test }.message(message).ok()
    }

    /// The way through a layout for a step of the path, or through all of it.
    fn way(&self, tables: &Tables, layout: LayoutId, at: usize) -> Option<&[WayStep]> {
        let known = self.ways.get(at)?.get(layout.0 as usize)?;
        let new = || match self.steps.get(at) {
            Some(RouteStep::Name(name)) => way(tables, layout, WantedFields::One(*name)),
            Some(RouteStep::Anywhere(name)) => {
                way(tables, layout, WantedFields::All(*name, &|ty| self.type_leads(tables, ty, at)))
            }
            _ => way(tables, layout, WantedFields::None),
        };
        known.get_or_init(new).as_deref()
    }

    /// Whether a structure may have fields of the name at a place of the path, or objects that may have them.
    fn leads(&self, tables: &Tables, layout: LayoutId, at: usize) -> bool {
        let Some((RouteStep::Anywhere(name), leading)) = self.steps.get(at).zip(self.leading.get(at)) else {
            return true;
        };
        let object = |ty| matches!(tables.type_def(ty).map(|def| &def.read), Some(ReadAs::Family(_)));
        leading.layout_reaches(tables, layout, &|field, ty| field == *name || object(ty))
    }

    /// The same of values of a type.
    fn type_leads(&self, tables: &Tables, ty: TypeRef, at: usize) -> bool {
        match tables.type_def(ty).map(|def| &def.read) {
            Some(ReadAs::List { of, .. } | ReadAs::NullOr { of, .. }) => self.type_leads(tables, *of, at),
            Some(ReadAs::Region(region)) => region.inner.iter().any(|inner| self.type_leads(tables, *inner, at)),
            Some(ReadAs::Layout { layout, .. }) => self.leads(tables, *layout, at),
            Some(ReadAs::Family(_) | ReadAs::Value(_)) | None => true,
            _ => false,
        }
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
    test: &'a mut dyn FnMut(Node) -> bool,
}

/// The values that a layout keeps for its conditions.
struct KeptValues {
    values: [u64; MAX_SLOTS],
    present: u64,
}

impl KeptValues {
    #[inline]
    fn keep(&mut self, slot: u16, value: u64) {
        if let Some(kept) = self.values.get_mut(usize::from(slot)) {
            *kept = value;
            self.present |= 1 << slot;
        }
    }

    #[inline]
    fn get(&self, slot: u16) -> Option<u64> {
        self.values.get(usize::from(slot)).copied().filter(|_| self.present & 1 << slot != 0)
    }
}

/// Methods that go along the path return whether a number passes the test.
impl FieldSearch<'_> {
    fn message(&mut self, message: &MessageDef) -> Walked<bool> {
        let service = self.tables.service(message.service).ok_or(Unclear)?;
        let layout = message.layout.filter(|_| service.framing.begins.is_none()).ok_or(Unclear)?;
        for (_, _, ty) in &service.header {
            self.number(*ty)?;
        }
        self.layout(layout, 0, true)
    }

    /// Goes through the fields of a structure, for the step of the path at a place. If it is the `last` thing that counts, not to its end.
    fn layout(&mut self, id: LayoutId, at: usize, last: bool) -> Walked<bool> {
        let (tables, route) = (self.tables, self.route);
        let way = route.way(tables, id, at).filter(|_| self.depth < MAX_DEPTH).ok_or(Unclear)?;
        self.depth += 1;
        let (mut kept, mut steps) = (KeptValues { values: [0; MAX_SLOTS], present: 0 }, way);
        while let Some((step, behind)) = steps.split_first() {
            steps = behind;
            match *step {
                WayStep::Skip(bytes) => self.advance(bytes as usize)?,
                WayStep::SkipIf { slot, mask, bytes } => {
                    if kept.get(slot).is_some_and(|value| value & mask == mask) {
                        self.advance(bytes as usize)?;
                    }
                }
                WayStep::Keep { scalar, slot } => kept.keep(slot, self.scalar(scalar)?),
                WayStep::Pass { ty, slot } => {
                    let value = self.pass(ty)?;
                    if slot != NO_SLOT {
                        kept.keep(slot, value.ok_or(Unclear)?);
                    }
                }
                WayStep::Branch { test, otherwise } => {
                    if !self.holds(test, &kept)? {
                        steps = way.get(otherwise as usize..).ok_or(Unclear)?;
                    }
                }
                WayStep::Jump(to) => steps = way.get(to as usize..).ok_or(Unclear)?,
                WayStep::One { ty, name } => return self.field(ty, name, at),
                WayStep::Each { ty, name, slot } => {
                    let (found, value) = self.each(ty, name, at)?;
                    if found {
                        return Ok(true);
                    }
                    if slot != NO_SLOT {
                        kept.keep(slot, value.ok_or(Unclear)?);
                    }
                }
                WayStep::Within(ty) => {
                    if self.within(ty, at, false)? {
                        return Ok(true);
                    }
                }
                WayStep::Rest if last => break,
                WayStep::Rest => {}
                WayStep::Unclear => return Err(Unclear),
            }
        }
        self.depth -= 1;
        Ok(false)
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

    /// The value to which the step of the path at a place leads, which need not be passed over.
    fn field(&mut self, ty: TypeRef, name: Sym, at: usize) -> Walked<bool> {
        match self.route.steps.get(at + 1) {
            None => self.found(ty, name).map(|(found, _)| found),
            Some(RouteStep::Element(place)) => self.elements(ty, *place, at + 1),
            Some(_) => self.object(ty, at + 1),
        }
    }

    /// A number at the end of the path: whether it passes, and its value.
    fn found(&mut self, ty: TypeRef, name: Sym) -> Walked<(bool, u64)> {
        let (start, value) = (self.pos, self.number(ty)?);
        let (start, bits, buffer) = ((start * 8) as u32, ((self.pos - start) * 8) as u32, Buffer::CAPTURED);
        let kind = self.tables.type_op(ty).scalar.kind;
        Ok(((self.test)(Node { value, name, ty, start, bits, end: 0, buffer, kind, marks: 0 }), value))
    }

    /// One of several values to which a step leads, which is passed over. Also returns what conditions see of it.
    fn each(&mut self, ty: TypeRef, name: Sym, at: usize) -> Walked<(bool, Option<u64>)> {
        if at + 1 == self.route.steps.len() {
            return self.found(ty, name).map(|(found, value)| (found, Some(value)));
        }
        let (pos, end, depth) = (self.pos, self.end, self.depth);
        let found = self.field(ty, name, at)?;
        (self.pos, self.end, self.depth) = (pos, end, depth);
        Ok((found, if found { None } else { self.pass(ty)? }))
    }

    /// The elements of a list, or the one at a place.
    fn elements(&mut self, ty: TypeRef, place: Option<usize>, at: usize) -> Walked<bool> {
        let ReadAs::List { of, len } = self.tables.type_def(ty).ok_or(Unclear)?.read else { return Err(Unclear) };
        for element in 0..self.elements_of(len)? {
            match place {
                Some(place) if place != element => drop(self.pass(of)?),
                Some(_) => return self.field(of, Sym::ELEMENT, at),
                None if self.each(of, Sym::ELEMENT, at)?.0 => return Ok(true),
                None => {}
            }
        }
        Ok(false)
    }

    /// Goes on in an object, which need not be passed over.
    fn object(&mut self, ty: TypeRef, at: usize) -> Walked<bool> {
        let tables = self.tables;
        match &tables.type_def(ty).ok_or(Unclear)?.read {
            ReadAs::Layout { layout, args } if args.is_empty() => self.layout(*layout, at, true),
            ReadAs::Region(RegionType { len, inner, zlib: None, .. }) => {
                let [inner] = inner.as_slice() else { return Err(Unclear) };
                self.end = self.region(*len)?;
                self.object(*inner, at)
            }
            ReadAs::Family(family) => match self.class(tables.family(*family).ok_or(Unclear)?, at)? {
                Some(layout) if self.route.leads(tables, layout, at) => self.layout(layout, at, true),
                _ => Ok(false),
            },
            ReadAs::NullOr { present, of } => match self.number(*present)? {
                0 => Ok(false),
                _ => self.object(*of, at),
            },
            _ => Err(Unclear),
        }
    }

    /// Searches a value for all fields of the name at a place of the path, and passes over it, unless it is the `last` thing that counts.
    fn within(&mut self, ty: TypeRef, at: usize, last: bool) -> Walked<bool> {
        let tables = self.tables;
        match &tables.type_def(ty).ok_or(Unclear)?.read {
            ReadAs::Layout { layout, args } if args.is_empty() => self.layout(*layout, at, last),
            ReadAs::Region(RegionType { len, inner, zlib: None, .. }) => {
                let [inner] = inner.as_slice() else { return Err(Unclear) };
                let (end, outer) = (self.region(*len)?, self.end);
                self.end = end;
                let found = self.within(*inner, at, true)?;
                (self.pos, self.end) = (end, outer);
                Ok(found)
            }
            ReadAs::Family(family) => match self.class(tables.family(*family).ok_or(Unclear)?, at)? {
                Some(layout) if self.route.leads(tables, layout, at) => self.layout(layout, at, last),
                Some(layout) if !last => self.layout(layout, self.route.steps.len(), false),
                _ => Ok(false),
            },
            ReadAs::NullOr { present, of } => match self.number(*present)? {
                0 => Ok(false),
                _ => self.within(*of, at, last),
            },
            ReadAs::List { of, len } => {
                for _ in 0..self.elements_of(*len)? {
                    let before = self.pos;
                    if self.within(*of, at, false)? {
                        return Ok(true);
                    }
                    if self.pos == before {
                        return Err(Unclear);
                    }
                }
                Ok(false)
            }
            ReadAs::Region(_) | ReadAs::Layout { .. } => Err(Unclear),
            _ => self.pass(ty).map(|_| false),
        }
    }

    /// Where a region ends that begins here with its length.
    fn region(&mut self, len: Len) -> Walked<usize> {
        let bytes = self.length(len, 1)?;
        self.pos.checked_add(bytes).filter(|end| *end <= self.end).ok_or(Unclear)
    }

    /// How many elements a list has.
    fn elements_of(&mut self, len: Len) -> Walked<usize> {
        if len.bytes { Err(Unclear) } else { self.length(len, 1) }
    }

    /// The layout of an object's class; `None` for no object.
    fn class(&mut self, family: &Family, at: usize) -> Walked<Option<LayoutId>> {
        if let Some(RouteStep::Name(name) | RouteStep::Anywhere(name)) = self.route.steps.get(at)
            && *name == family.field
        {
            return Err(Unclear);
        }
        let number = self.number(family.of)?;
        if family.null == Some(number) {
            return Ok(None);
        }
        let member = family.numbers.find(number).and_then(|at| family.members.get(at));
        member.map(|member| Some(member.1)).ok_or(Unclear)
    }

    /// Passes over a value. Returns what conditions see of it, where that is known.
    fn pass(&mut self, ty: TypeRef) -> Walked<Option<u64>> {
        let (tables, through) = (self.tables, self.route.steps.len());
        if let Some(bytes) = size_of_value(tables, ty) {
            let little = tables.type_op(ty).how == TypeOpKind::Little;
            return if little { self.number(ty).map(Some) } else { self.advance(bytes as usize).map(|()| None) };
        }
        match &tables.type_def(ty).ok_or(Unclear)?.read {
            ReadAs::Layout { layout, args } if args.is_empty() => drop(self.layout(*layout, through, false)?),
            ReadAs::NullOr { present, of } => {
                let present = self.number(*present)? != 0;
                if present {
                    self.pass(*of)?;
                }
                return Ok(Some(present.into()));
            }
            ReadAs::Family(family) => {
                if let Some(layout) = self.class(tables.family(*family).ok_or(Unclear)?, through)? {
                    self.layout(layout, through, false)?;
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
            ReadAs::List { of, len } => {
                for _ in 0..self.elements_of(*len)? {
                    let before = self.pos;
                    self.pass(*of)?;
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
        self.scalar(op.scalar)
    }

    #[inline]
    fn scalar(&mut self, scalar: Scalar) -> Walked<u64> {
        let rest = self.data.get(self.pos..).unwrap_or(&[]);
        self.advance(scalar.size.into())?;
        let raw = match rest.first_chunk() {
            Some(eight) => u64::from_le_bytes(*eight),
            None => rest.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)),
        };
        Ok(scalar.value(raw))
    }

    #[inline]
    fn advance(&mut self, bytes: usize) -> Walked<()> {
        self.pos = self.pos.checked_add(bytes).filter(|pos| *pos <= self.end).ok_or(Unclear)?;
        Ok(())
    }
}
