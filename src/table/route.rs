//! Finds the numbers and texts at a path in a message, without a tree: goes through the steps that
//! come before them and no further.
//!
//! The message has to be one that was read into an outline, so that everything in it is as its
//! table says. What is not simple to pass over is left to the evaluator: it is then not known what
//! is there. `tests/it/filters_outlines.rs` and a fuzz target compare what is found with trees.

use std::sync::OnceLock;

use super::Tables;
use super::forms::ValueForm;
use super::program::*;
use super::reach::LayoutAnswers;
use super::search_place::{KeptValues, SearchPlace, SearchedMessage, Unclear, Walked};
use super::way::{WantedFields, WayStep, size_of_value, way};
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

/// A path to numbers, texts or objects.
#[derive(Debug)]
pub struct FieldRoute {
    steps: Box<[RouteStep]>,
    /// Whether objects and lists may be what is searched for.
    composites: bool,
    /// The types of which a value may be what is searched for.
    sought: Box<[bool]>,
    /// For each step, and for none, and each layout: the way through the layout. Made when a
    /// message first has it.
    ways: Box<[Box<[OnceLock<Way>]>]>,
    /// For each step, which layouts may have fields of its name, or objects.
    leading: Box<[LayoutAnswers]>,
}

/// The steps of a structure; `None` if only the evaluator can go this way.
type Way = Option<Box<[WayStep]>>;

/// Objects within each other that are gone through.
const MAX_DEPTH: u32 = 12;

impl FieldRoute {
    /// The route along a path to values of the types for which `is_sought` holds; `None` where
    /// fields of its names may come from elsewhere than layouts, or what is searched for may be
    /// neither numbers nor texts, nor, with `composites`, objects and lists.
    pub fn new(
        tables: &Tables,
        steps: Vec<RouteStep>,
        composites: bool,
        is_sought: impl Fn(TypeRef) -> bool,
    ) -> Option<FieldRoute> {
        let is_found_in_layouts =
            |name| !tables.names_elsewhere(name) && !tables.has_class_twice(name);
        let may_go = |step: &RouteStep| match step {
            RouteStep::Name(name) => is_found_in_layouts(*name),
            RouteStep::Anywhere(name) => {
                let forms = tables.forms_of(*name);
                is_found_in_layouts(*name)
                    && forms.is_some_and(|forms| {
                        forms.iter().all(|form| composites || !matches!(form, ValueForm::Object))
                    })
            }
            RouteStep::Element(_) => true,
        };
        if matches!(steps.first(), None | Some(RouteStep::Element(_))) || !steps.iter().all(may_go)
        {
            return None;
        }
        let layouts = |_| vec![OnceLock::new(); tables.layouts().len()].into_boxed_slice();
        let leading = steps.iter().map(|_| LayoutAnswers::new(tables)).collect();
        let sought = (0..tables.type_count()).map(|ty| is_sought(TypeRef(ty))).collect();
        let ways = (0..=steps.len()).map(layouts).collect();
        Some(FieldRoute { ways, leading, sought, composites, steps: steps.into() })
    }

    /// Whether a value at the end of the path passes a test; `None` if only a tree can tell. The
    /// test gets a node without marks, and the bytes in which its place is.
    pub fn any(
        &self,
        tables: &Tables,
        message: SearchedMessage<'_>,
        test: &mut dyn FnMut(Node, &[u8]) -> bool,
    ) -> Option<bool> {
        let place = SearchPlace::new(tables, message);
        FieldSearch { route: self, place, depth: 0, test }.message(message.def).ok()
    }

    /// The way through a layout for a step of the path, or through all of it.
    fn way(&self, tables: &Tables, layout: LayoutId, at: usize) -> Option<&[WayStep]> {
        let known = self.ways.get(at)?.get(layout.0 as usize)?;
        let seeks = |ty| self.seeks(ty, at);
        let leads = |ty| self.type_leads(tables, ty, at);
        let new = || match self.steps.get(at) {
            Some(RouteStep::Name(name)) => way(tables, layout, WantedFields::One(*name, &seeks)),
            Some(RouteStep::Anywhere(name)) => {
                way(tables, layout, WantedFields::All(*name, &seeks, &leads))
            }
            _ => way(tables, layout, WantedFields::None),
        };
        known.get_or_init(new).as_deref()
    }

    /// Whether a field of the name at a place of the path may be sought, or lead on.
    fn seeks(&self, ty: TypeRef, at: usize) -> bool {
        at + 1 < self.steps.len() || self.sought.get(ty.0 as usize).copied().unwrap_or(true)
    }

    /// Whether a structure may have fields of the name at a place of the path, or objects that may
    /// have them.
    fn leads(&self, tables: &Tables, layout: LayoutId, at: usize) -> bool {
        let Some((RouteStep::Anywhere(name), leading)) =
            self.steps.get(at).zip(self.leading.get(at))
        else {
            return true;
        };
        let object =
            |ty| matches!(tables.type_def(ty).map(|def| &def.read), Some(ReadAs::Family(_)));
        leading.layout_reaches(tables, layout, &|field, ty| {
            field == *name && self.seeks(ty, at) || object(ty)
        })
    }

    /// The same of values of a type.
    fn type_leads(&self, tables: &Tables, ty: TypeRef, at: usize) -> bool {
        match tables.type_def(ty).map(|def| &def.read) {
            Some(ReadAs::List { of, .. } | ReadAs::NullOr { of, .. }) => {
                self.type_leads(tables, *of, at)
            }
            Some(ReadAs::Region(region)) => {
                region.inner.iter().any(|inner| self.type_leads(tables, *inner, at))
            }
            Some(ReadAs::Layout { layout, .. }) => self.leads(tables, *layout, at),
            Some(ReadAs::Family(_) | ReadAs::Value(_)) | None => true,
            _ => false,
        }
    }
}

/// On its way through a message.
struct FieldSearch<'a> {
    route: &'a FieldRoute,
    place: SearchPlace<'a>,
    depth: u32,
    test: &'a mut dyn FnMut(Node, &[u8]) -> bool,
}

/// Methods that go along the path return whether a value passes the test.
impl FieldSearch<'_> {
    fn message(&mut self, message: &MessageDef) -> Walked<bool> {
        let service = self.place.tables.service(message.service).ok_or(Unclear)?;
        let layout = message.layout.filter(|_| service.framing.begins.is_none()).ok_or(Unclear)?;
        for (_, _, ty) in &service.header {
            self.place.number(*ty)?;
        }
        self.layout(layout, 0, true)
    }

    /// Goes through the fields of a structure, for the step of the path at a place. If it is the
    /// `last` thing that counts, not to its end.
    fn layout(&mut self, id: LayoutId, at: usize, last: bool) -> Walked<bool> {
        let tables = self.place.tables;
        let route = self.route;
        let way = route.way(tables, id, at).filter(|_| self.depth < MAX_DEPTH).ok_or(Unclear)?;
        self.depth += 1;
        let mut kept = KeptValues::new();
        let mut steps = way;
        while let Some((step, behind)) = steps.split_first() {
            steps = behind;
            match *step {
                WayStep::Skip(bytes) => self.place.advance(bytes as usize)?,
                WayStep::SkipIf { slot, mask, bytes } => {
                    if kept.get(slot).is_some_and(|value| value & mask == mask) {
                        self.place.advance(bytes as usize)?;
                    }
                }
                WayStep::Keep { scalar, slot } => kept.keep(slot, self.place.scalar(scalar)?),
                WayStep::Text { ty, ascii } => self.place.pass_text(ty, ascii)?,
                WayStep::Pass { ty, slot } => {
                    let value = self.pass(ty, &kept)?;
                    if slot != NO_SLOT {
                        kept.keep(slot, value.ok_or(Unclear)?);
                    }
                }
                WayStep::Branch { test, otherwise } => {
                    if !self.place.holds(test, &kept)? {
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
                    let seen = if slot == NO_SLOT { None } else { Some(self.place.seen(ty)?) };
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

    /// The value to which the step of the path at a place leads, which need not be passed over.
    fn field(&mut self, ty: TypeRef, name: Sym, at: usize, kept: &KeptValues) -> Walked<bool> {
        match self.route.steps.get(at + 1) {
            None => match self.composite(ty, name, kept)? {
                Some(node) => Ok((self.test)(node, self.place.data)),
                None => self.found(ty, name).map(|(found, _)| found),
            },
            Some(RouteStep::Element(place)) => self.elements(ty, *place, at + 1, kept),
            Some(_) => self.object(ty, at + 1, kept),
        }
    }

    /// The node of an object or a list, or of nothing in an object's place, which begins here;
    /// `None` for any other value. Stays where it is.
    #[inline]
    fn composite(&mut self, ty: TypeRef, name: Sym, kept: &KeptValues) -> Walked<Option<Node>> {
        if !self.route.composites
            || matches!(self.place.tables.type_op(ty).how, TypeOpKind::Little | TypeOpKind::Native)
        {
            return Ok(None);
        }
        let start = (self.place.pos * 8) as u32;
        let node = |kind| Node {
            value: 0,
            name,
            ty,
            start,
            bits: 0,
            end: 0,
            buffer: Buffer::CAPTURED,
            kind,
            marks: 0,
        };
        Ok(self.composite_kind(ty, kept)?.map(node))
    }

    /// What kind of node that is.
    fn composite_kind(&mut self, ty: TypeRef, kept: &KeptValues) -> Walked<Option<Kind>> {
        let tables = self.place.tables;
        Ok(Some(match &tables.type_def(ty).ok_or(Unclear)?.read {
            ReadAs::Layout { .. } => Kind::Struct,
            ReadAs::List { .. } => Kind::List,
            ReadAs::Family(family) => {
                let null = tables.family(*family).ok_or(Unclear)?.null;
                if null == Some(self.place.seen(ty)?) { Kind::Null } else { Kind::Struct }
            }
            ReadAs::Region(region) => {
                let begins = self.place;
                let (inner, _) = self.place.enter(region, kept)?;
                let kind = self.composite_kind(inner, kept)?;
                self.place = begins;
                return Ok(kind);
            }
            ReadAs::NullOr { of, .. } => match self.place.seen(ty)? {
                0 => Kind::Null,
                _ if matches!(tables.type_def(*of).ok_or(Unclear)?.read, ReadAs::Layout { .. }) => {
                    Kind::Struct
                }
                _ => return Err(Unclear),
            },
            _ => return Ok(None),
        }))
    }

    /// A number or a text at the end of the path: whether it passes, and the number that conditions
    /// see.
    fn found(&mut self, ty: TypeRef, name: Sym) -> Walked<(bool, u64)> {
        let start = self.place.pos;
        let op = self.place.tables.type_op(ty);
        let (value, kind, seen) = match op.how {
            TypeOpKind::Little => {
                let value = self.place.scalar(op.scalar)?;
                (value, op.scalar.kind, value)
            }
            _ => {
                let (place, kind) = self.place.text(ty)?;
                (place, Kind::Text(kind), 0)
            }
        };
        let (start, bits, buffer) =
            ((start * 8) as u32, ((self.place.pos - start) * 8) as u32, Buffer::CAPTURED);
        let node = Node { value, name, ty, start, bits, end: 0, buffer, kind, marks: 0 };
        Ok(((self.test)(node, self.place.data), seen))
    }

    /// One of several values to which a step leads, which is passed over. Also returns what
    /// conditions see of it.
    fn each(
        &mut self,
        ty: TypeRef,
        name: Sym,
        at: usize,
        kept: &KeptValues,
    ) -> Walked<(bool, Option<u64>)> {
        if at + 1 == self.route.steps.len() {
            if let Some(node) = self.composite(ty, name, kept)? {
                if (self.test)(node, self.place.data) {
                    return Ok((true, None));
                }
                let seen = self.place.seen(ty).ok();
                // Within it there may be further ones.
                return Ok((self.within(ty, at, false, kept)?, seen));
            }
            return self.found(ty, name).map(|(found, value)| (found, Some(value)));
        }
        let begins = self.place;
        let depth = self.depth;
        let found = self.field(ty, name, at, kept)?;
        (self.place, self.depth) = (begins, depth);
        Ok((found, if found { None } else { self.pass(ty, kept)? }))
    }

    /// The elements of a list, or the one at a place.
    fn elements(
        &mut self,
        ty: TypeRef,
        place: Option<usize>,
        at: usize,
        kept: &KeptValues,
    ) -> Walked<bool> {
        let ReadAs::List { of, len } = self.place.tables.type_def(ty).ok_or(Unclear)?.read else {
            return Err(Unclear);
        };
        for element in 0..self.place.elements_of(len, kept)? {
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
        let tables = self.place.tables;
        match &tables.type_def(ty).ok_or(Unclear)?.read {
            ReadAs::Layout { .. } | ReadAs::Family(_) => self.within(ty, at, true, kept),
            ReadAs::Region(region) => {
                let (inner, _) = self.place.enter(region, kept)?;
                self.object(inner, at, kept)
            }
            ReadAs::NullOr { present, of } => match self.place.number(*present)? {
                0 => Ok(false),
                _ => self.object(*of, at, kept),
            },
            _ => Err(Unclear),
        }
    }

    /// Searches a value for all fields of the name at a place of the path, and passes over it,
    /// unless it is the `last` thing that counts.
    fn within(&mut self, ty: TypeRef, at: usize, last: bool, kept: &KeptValues) -> Walked<bool> {
        let tables = self.place.tables;
        match &tables.type_def(ty).ok_or(Unclear)?.read {
            ReadAs::Layout { layout, args } if args.is_empty() => self.layout(*layout, at, last),
            ReadAs::Region(region) => {
                let (inner, behind) = self.place.enter(region, kept)?;
                let found = self.within(inner, at, true, kept)?;
                self.place = behind;
                Ok(found)
            }
            ReadAs::Family(family) => {
                let family = tables.family(*family).ok_or(Unclear)?;
                let begins = self.place;
                let Some(layout) = self.class(family)? else { return Ok(false) };
                if self.wants_class(family, at) {
                    let behind = std::mem::replace(&mut self.place, begins);
                    if self.field(family.of, family.field, at, kept)? {
                        return Ok(true);
                    }
                    self.place = behind;
                }
                match self.route.leads(tables, layout, at) {
                    true => self.layout(layout, at, last),
                    false if last => Ok(false),
                    false => self.layout(layout, self.route.steps.len(), false),
                }
            }
            ReadAs::NullOr { present, of } => match self.place.number(*present)? {
                0 => Ok(false),
                _ => self.within(*of, at, last, kept),
            },
            ReadAs::List { of, len } => {
                for _ in 0..self.place.elements_of(*len, kept)? {
                    let before = self.place.pos;
                    if self.within(*of, at, false, kept)? {
                        return Ok(true);
                    }
                    if self.place.pos == before {
                        return Err(Unclear);
                    }
                }
                Ok(false)
            }
            ReadAs::Layout { .. } => Err(Unclear),
            _ => self.pass(ty, kept).map(|_| false),
        }
    }

    /// Whether the step of the path at a place leads to the number of an object's class.
    fn wants_class(&self, family: &Family, at: usize) -> bool {
        match self.route.steps.get(at) {
            Some(RouteStep::Name(name) | RouteStep::Anywhere(name)) => {
                *name == family.field && self.route.seeks(family.of, at)
            }
            _ => false,
        }
    }

    /// The layout of an object's class; `None` for no object.
    fn class(&mut self, family: &Family) -> Walked<Option<LayoutId>> {
        let number = self.place.number(family.of)?;
        if family.null == Some(number) {
            return Ok(None);
        }
        let member = family.numbers.find(number).and_then(|at| family.members.get(at));
        member.map(|member| Some(member.1)).ok_or(Unclear)
    }

    /// Passes over a value. Returns what conditions see of it, where that is known.
    fn pass(&mut self, ty: TypeRef, kept: &KeptValues) -> Walked<Option<u64>> {
        let tables = self.place.tables;
        let through = self.route.steps.len();
        if let Some(bytes) = size_of_value(tables, ty) {
            let little = tables.type_op(ty).how == TypeOpKind::Little;
            return if little {
                self.place.number(ty).map(Some)
            } else {
                self.place.advance(bytes as usize).map(|()| None)
            };
        }
        match &tables.type_def(ty).ok_or(Unclear)?.read {
            ReadAs::Layout { layout, args } if args.is_empty() => {
                drop(self.layout(*layout, through, false)?)
            }
            ReadAs::NullOr { present, of } => {
                let present = self.place.number(*present)? != 0;
                if present {
                    self.pass(*of, kept)?;
                }
                return Ok(Some(present.into()));
            }
            ReadAs::Family(family) => {
                if let Some(layout) = self.class(tables.family(*family).ok_or(Unclear)?)? {
                    self.layout(layout, through, false)?;
                }
            }
            ReadAs::Native { .. } => drop(self.place.text(ty)?),
            ReadAs::Bytes(len) | ReadAs::Region(RegionType { len, .. }) => {
                let bytes = self.place.length(*len, 1, kept)?;
                self.place.advance(bytes)?;
            }
            ReadAs::Text { kind, len, .. } => {
                let wide = matches!(kind, TextKind::Utf16 | TextKind::Inverted16);
                let bytes = self.place.length(*len, if wide { 2 } else { 1 }, kept)?;
                self.place.advance(bytes)?;
            }
            ReadAs::List { of, len } => {
                for _ in 0..self.place.elements_of(*len, kept)? {
                    let before = self.place.pos;
                    self.pass(*of, kept)?;
                    if self.place.pos == before {
                        return Err(Unclear);
                    }
                }
            }
            _ => return Err(Unclear),
        }
        Ok(None)
    }
}
