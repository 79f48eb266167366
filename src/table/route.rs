//! Finds the numbers and texts at a path in a message, without a tree: goes through the steps that come before them and no further.
//!
//! The message has to be one that was read into an outline, so that everything in it is as its table says. What is not simple to pass over is left to the
//! evaluator: it is then not known what is there. `tests/it/filters_outlines.rs` and a fuzz target compare what is found with trees.

use std::sync::OnceLock;

use super::Tables;
use super::forms::ValueForm;
use super::program::*;
use super::reach::LayoutAnswers;
use super::way::{MAX_SLOTS, WantedFields, WayStep, size_of_value, way};
use crate::tree::{Buffer, Kind, Node, Sym, TextKind, TypeRef};

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

/// A path to numbers or texts.
#[derive(Debug)]
pub struct FieldRoute {
    steps: Box<[RouteStep]>,
    /// For each step, and for none, and each layout: the way through the layout. Made when a message first has it.
    ways: Box<[Box<[OnceLock<Way>]>]>,
    /// For each step, which layouts may have fields of its name, or objects.
    leading: Box<[LayoutAnswers]>,
}

/// A message that was read into an outline.
#[derive(Clone, Copy)]
pub struct SearchedMessage<'a> {
    /// What it is.
    pub def: &'a MessageDef,
    /// All its bytes.
    pub bytes: &'a [u8],
    /// What was made of compressed bytes among them; none if that is not known.
    pub made: &'a [u8],
    /// Whether a part of it may be in a dialect.
    pub in_dialects: bool,
}

/// The steps of a structure; `None` if only the evaluator can go this way.
type Way = Option<Box<[WayStep]>>;

/// Only the evaluator can go on.
struct Unclear;

type Walked<T> = Result<T, Unclear>;

/// Objects within each other that are gone through.
const MAX_DEPTH: u32 = 12;

impl FieldRoute {
    /// The route along a path; `None` where fields of its names may come from elsewhere than layouts, or what is searched for may be neither numbers nor texts.
    pub fn new(tables: &Tables, steps: Vec<RouteStep>) -> Option<FieldRoute> {
        let may_go = |step: &RouteStep| match step {
            RouteStep::Name(name) => !tables.names_elsewhere(*name),
            RouteStep::Anywhere(name) => {
                let forms = tables.forms_of(*name);
                !tables.names_elsewhere(*name)
                    && forms.is_some_and(|forms| {
                        forms.iter().all(|form| matches!(form, ValueForm::Int(_) | ValueForm::Text(_)))
                    })
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

    /// Whether a value at the end of the path passes a test; `None` if only a tree can tell. The test gets a node without marks, and the bytes in which its place is.
    pub fn any(
        &self,
        tables: &Tables,
        message: SearchedMessage<'_>,
        test: &mut dyn FnMut(Node, &[u8]) -> bool,
    ) -> Option<bool> {
        let SearchedMessage { def, bytes: data, made, in_dialects } = message;
        let (pos, end, depth) = (0, data.len(), 0);
        FieldSearch { tables, route: self, data, made, in_dialects, pos, end, depth, test }.message(def).ok()
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
    /// The content of the compressed region, if there is one; none within it.
    made: &'a [u8],
    in_dialects: bool,
    /// The next byte, and the end of the region around it.
    pos: usize,
    end: usize,
    depth: u32,
    test: &'a mut dyn FnMut(Node, &[u8]) -> bool,
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

/// Methods that go along the path return whether a value passes the test.
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
                    let value = self.pass(ty, &kept)?;
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
                WayStep::One { ty, name } => return self.field(ty, name, at, &kept),
                WayStep::Each { ty, name, slot } => {
                    let (found, value) = self.each(ty, name, at, &kept)?;
                    if found {
                        return Ok(true);
                    }
                    if slot != NO_SLOT {
                        kept.keep(slot, value.ok_or(Unclear)?);
                    }
                }
                WayStep::Within { ty, slot } => {
                    let seen = if slot == NO_SLOT { None } else { Some(self.seen(ty)?) };
                    if self.within(ty, at, false, &kept)? {
                        return Ok(true);
                    }
                    seen.into_iter().for_each(|value| kept.keep(slot, value));
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
            Test::Dialect(_, spoken) if !self.in_dialects => !spoken,
            Test::Dialect(..) | Test::General(_) => return Err(Unclear),
        })
    }

    /// The value to which the step of the path at a place leads, which need not be passed over.
    fn field(&mut self, ty: TypeRef, name: Sym, at: usize, kept: &KeptValues) -> Walked<bool> {
        match self.route.steps.get(at + 1) {
            None => self.found(ty, name).map(|(found, _)| found),
            Some(RouteStep::Element(place)) => self.elements(ty, *place, at + 1, kept),
            Some(_) => self.object(ty, at + 1, kept),
        }
    }

    /// A value at the end of the path: whether it passes, and the number that conditions see.
    fn found(&mut self, ty: TypeRef, name: Sym) -> Walked<(bool, u64)> {
        let (start, op) = (self.pos, self.tables.type_op(ty));
        let (value, kind, seen) = match op.how {
            TypeOpKind::Little => {
                let value = self.scalar(op.scalar)?;
                (value, op.scalar.kind, value)
            }
            _ => {
                let (place, kind) = self.text(ty)?;
                (place, Kind::Text(kind), 0)
            }
        };
        let (start, bits, buffer) = ((start * 8) as u32, ((self.pos - start) * 8) as u32, Buffer::CAPTURED);
        let node = Node { value, name, ty, start, bits, end: 0, buffer, kind, marks: 0 };
        Ok(((self.test)(node, self.data), seen))
    }

    /// A text with code: the place of its bytes, and their encoding.
    fn text(&mut self, ty: TypeRef) -> Walked<(u64, TextKind)> {
        let ReadAs::Native { native, .. } = self.tables.type_def(ty).ok_or(Unclear)?.read else { return Err(Unclear) };
        let skip = self.tables.native(native).and_then(|code| code.native.skip).ok_or(Unclear)?;
        let found = skip(self.data.get(self.pos..self.end).unwrap_or(&[])).ok_or(Unclear)?;
        let place = Node::place(self.pos + found.before, found.text);
        self.advance(found.before + found.text)?;
        Ok((place, found.kind))
    }

    /// One of several values to which a step leads, which is passed over. Also returns what conditions see of it.
    fn each(&mut self, ty: TypeRef, name: Sym, at: usize, kept: &KeptValues) -> Walked<(bool, Option<u64>)> {
        if at + 1 == self.route.steps.len() {
            return self.found(ty, name).map(|(found, value)| (found, Some(value)));
        }
        let (data, made, pos, end, depth) = (self.data, self.made, self.pos, self.end, self.depth);
        let found = self.field(ty, name, at, kept)?;
        (self.data, self.made, self.pos, self.end, self.depth) = (data, made, pos, end, depth);
        Ok((found, if found { None } else { self.pass(ty, kept)? }))
    }

    /// The elements of a list, or the one at a place.
    fn elements(&mut self, ty: TypeRef, place: Option<usize>, at: usize, kept: &KeptValues) -> Walked<bool> {
        let ReadAs::List { of, len } = self.tables.type_def(ty).ok_or(Unclear)?.read else { return Err(Unclear) };
        for element in 0..self.elements_of(len, kept)? {
            match place {
                Some(place) if place != element => drop(self.pass(of, kept)?),
                Some(_) => return self.field(of, Sym::ELEMENT, at, kept),
                None if self.each(of, Sym::ELEMENT, at, kept)?.0 => return Ok(true),
                None => {}
            }
        }
        Ok(false)
    }

    /// Goes on in an object, which need not be passed over.
    fn object(&mut self, ty: TypeRef, at: usize, kept: &KeptValues) -> Walked<bool> {
        let tables = self.tables;
        match &tables.type_def(ty).ok_or(Unclear)?.read {
            ReadAs::Layout { layout, args } if args.is_empty() => self.layout(*layout, at, true),
            ReadAs::Region(region) => {
                let inner = self.enter(region, kept)?;
                self.object(inner, at, kept)
            }
            ReadAs::Family(family) => match self.class(tables.family(*family).ok_or(Unclear)?, at)? {
                Some(layout) if self.route.leads(tables, layout, at) => self.layout(layout, at, true),
                _ => Ok(false),
            },
            ReadAs::NullOr { present, of } => match self.number(*present)? {
                0 => Ok(false),
                _ => self.object(*of, at, kept),
            },
            _ => Err(Unclear),
        }
    }

    /// Searches a value for all fields of the name at a place of the path, and passes over it, unless it is the `last` thing that counts.
    fn within(&mut self, ty: TypeRef, at: usize, last: bool, kept: &KeptValues) -> Walked<bool> {
        let tables = self.tables;
        match &tables.type_def(ty).ok_or(Unclear)?.read {
            ReadAs::Layout { layout, args } if args.is_empty() => self.layout(*layout, at, last),
            ReadAs::Region(region) => {
                let (data, made, pos, end) = (self.data, self.made, self.pos, self.end);
                let inner = self.enter(region, kept)?;
                let found = self.within(inner, at, true, kept)?;
                (self.data, self.made, self.pos, self.end) = (data, made, pos, end);
                let bytes = self.length(region.len, 1, kept)?;
                self.advance(bytes)?;
                Ok(found)
            }
            ReadAs::Family(family) => match self.class(tables.family(*family).ok_or(Unclear)?, at)? {
                Some(layout) if self.route.leads(tables, layout, at) => self.layout(layout, at, last),
                Some(layout) if !last => self.layout(layout, self.route.steps.len(), false),
                _ => Ok(false),
            },
            ReadAs::NullOr { present, of } => match self.number(*present)? {
                0 => Ok(false),
                _ => self.within(*of, at, last, kept),
            },
            ReadAs::List { of, len } => {
                for _ in 0..self.elements_of(*len, kept)? {
                    let before = self.pos;
                    if self.within(*of, at, false, kept)? {
                        return Ok(true);
                    }
                    if self.pos == before {
                        return Err(Unclear);
                    }
                }
                Ok(false)
            }
            ReadAs::Layout { .. } => Err(Unclear),
            _ => self.pass(ty, kept).map(|_| false),
        }
    }

    /// Enters a region that begins here, or its content. Returns the type of that.
    fn enter(&mut self, region: &RegionType, kept: &KeptValues) -> Walked<TypeRef> {
        let [inner] = region.inner.as_slice() else { return Err(Unclear) };
        let bytes = self.length(region.len, 1, kept)?;
        self.end = self.pos.checked_add(bytes).filter(|end| *end <= self.end).ok_or(Unclear)?;
        if region.zlib.is_some() {
            self.data = std::mem::take(&mut self.made);
            (self.pos, self.end) = (0, self.data.len());
        }
        if self.data.is_empty() { Err(Unclear) } else { Ok(*inner) }
    }

    /// How many elements a list has.
    fn elements_of(&mut self, len: Len, kept: &KeptValues) -> Walked<usize> {
        if len.bytes || matches!(len.from, LenFrom::Rest) { Err(Unclear) } else { self.length(len, 1, kept) }
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

    /// What conditions see of an object that begins here, or of none.
    fn seen(&mut self, ty: TypeRef) -> Walked<u64> {
        let (tables, begins) = (self.tables, self.pos);
        let value = match &tables.type_def(ty).ok_or(Unclear)?.read {
            ReadAs::Family(family) => self.number(tables.family(*family).ok_or(Unclear)?.of)?,
            ReadAs::NullOr { present, .. } => u64::from(self.number(*present)? != 0),
            _ => return Err(Unclear),
        };
        self.pos = begins;
        Ok(value)
    }

    /// Passes over a value. Returns what conditions see of it, where that is known.
    fn pass(&mut self, ty: TypeRef, kept: &KeptValues) -> Walked<Option<u64>> {
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
                    self.pass(*of, kept)?;
                }
                return Ok(Some(present.into()));
            }
            ReadAs::Family(family) => {
                if let Some(layout) = self.class(tables.family(*family).ok_or(Unclear)?, through)? {
                    self.layout(layout, through, false)?;
                }
            }
            ReadAs::Native { .. } => drop(self.text(ty)?),
            ReadAs::Bytes(len) | ReadAs::Region(RegionType { len, .. }) => {
                let bytes = self.length(*len, 1, kept)?;
                self.advance(bytes)?;
            }
            ReadAs::Text { kind, len, .. } => {
                let wide = matches!(kind, TextKind::Utf16 | TextKind::Inverted16);
                let bytes = self.length(*len, if wide { 2 } else { 1 }, kept)?;
                self.advance(bytes)?;
            }
            ReadAs::List { of, len } => {
                for _ in 0..self.elements_of(*len, kept)? {
                    let before = self.pos;
                    self.pass(*of, kept)?;
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
    fn length(&mut self, len: Len, unit: usize, kept: &KeptValues) -> Walked<usize> {
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
