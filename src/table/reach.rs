//! Which names the fields of a structure can have, by the tables alone: without reading a byte.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Tables;
use super::program::*;
use crate::tree::{Outline, Sym, TypeRef};

impl Tables {
    /// The types of what code makes of values of a type, as far as tables declare them; none where
    /// no code reads it.
    pub fn code_parts(&self, ty: TypeRef) -> impl Iterator<Item = TypeRef> + '_ {
        let native = self.type_def(ty).and_then(|def| match def.read {
            ReadAs::Native { native, .. } => self.native(native),
            _ => None,
        });
        native.into_iter().flat_map(|native| native.parts.iter().copied().flatten())
    }

    /// Whether nodes may have a name without a field of it in a layout.
    pub fn names_elsewhere(&self, name: Sym) -> bool {
        let mut header = self.services().iter().flat_map(|service| &service.header);
        self.is_builtin(name) || header.any(|(_, field, _)| *field == name)
    }

    /// Whether a name is that of the numbers of classes, and of a field of an object that has such
    /// a number.
    pub(in crate::table) fn has_class_twice(&self, name: Sym) -> bool {
        let mut families = self.families().iter().filter(|family| family.field == name);
        families.any(|family| {
            family
                .members
                .iter()
                .any(|member| self.fields_of(member.1).any(|(field, _)| field == name))
        })
    }

    /// The names and types of a layout's own fields.
    pub fn fields_of(&self, layout: LayoutId) -> impl Iterator<Item = (Sym, TypeRef)> + '_ {
        let start = self.layout(layout).map_or(usize::MAX, |layout| layout.start as usize);
        let steps = self.steps().get(start..).unwrap_or(&[]).iter();
        steps.take_while(|step| !matches!(step, LayoutStep::End)).filter_map(|step| match step {
            LayoutStep::Field { name, ty, .. } | LayoutStep::Empty { name, ty } => {
                Some((*name, *ty))
            }
            _ => None,
        })
    }

    /// Adds what a type consists of. Returns whether it has a wanted field itself.
    fn parts(
        &self,
        ty: TypeRef,
        wanted: &dyn Fn(Sym, TypeRef) -> bool,
        layouts: &mut Vec<LayoutId>,
        types: &mut Vec<TypeRef>,
    ) -> bool {
        let Some(def) = self.type_def(ty) else { return false };
        match &def.read {
            ReadAs::List { of, .. } => types.push(*of),
            ReadAs::Layout { layout, .. } if !layouts.contains(layout) => layouts.push(*layout),
            ReadAs::Family(family) => {
                return self.family(*family).is_some_and(|family| wanted(family.field, family.of));
            }
            ReadAs::Region(region) => types.extend(&region.inner),
            ReadAs::NullOr { of, .. } => types.push(*of),
            // Its names come with the traffic.
            ReadAs::Value(_) => return true,
            // The nodes of code for outlines have no other names than the field's; without such
            // code there is no outline.
            ReadAs::Native { .. } => {}
            // Numbers, texts and bytes, whose counts have names of the evaluator's own.
            _ => {}
        }
        false
    }
}

/// The outline of a message, and the message's layout.
#[derive(Clone, Copy)]
pub struct OutlineOf<'a> {
    /// `None` where the tables have none.
    pub layout: Option<LayoutId>,
    /// What was read.
    pub outline: &'a Outline,
}

/// For which layouts something holds. Each is looked up when a message first has it.
#[derive(Debug)]
pub struct LayoutAnswers {
    /// By layout.
    layouts: Box<[OnceLock<bool>]>,
    /// By the layouts of classes, 64 in each element.
    classes: [ClassAnswers; Outline::CLASS_WORDS],
    /// Whether it holds for the layout of any class.
    any_class: OnceLock<bool>,
}

/// Which of 64 layouts were looked up, and for which of these it holds.
#[derive(Debug, Default)]
struct ClassAnswers {
    known: AtomicU64,
    holds: AtomicU64,
}

impl LayoutAnswers {
    /// Nothing is known yet.
    pub fn new(tables: &Tables) -> LayoutAnswers {
        let layouts = vec![OnceLock::new(); tables.layouts().len()].into();
        LayoutAnswers { layouts, classes: Default::default(), any_class: OnceLock::new() }
    }

    /// Whether `look` holds for the layout of a message of which only the outline was read, or for
    /// the class of an object in it; `true` where these are not known. `look` always has to be the
    /// same. A [deferred](Outline::deferred) object may be of any class.
    pub fn any(
        &self,
        tables: &Tables,
        read: OutlineOf<'_>,
        look: &dyn Fn(LayoutId) -> bool,
    ) -> bool {
        let OutlineOf { layout, outline } = read;
        let (Some(layout), Some(classes)) = (layout, outline.classes()) else { return true };
        if self.one(layout, look) {
            return true;
        }
        if outline.deferred().is_some() {
            let mut all =
                tables.families().iter().flat_map(|family| &family.members).map(|member| member.1);
            return *self.any_class.get_or_init(|| all.any(look));
        }
        // Most of these words are 0, so four are looked at together first.
        for (four, wanted) in (0..).zip(classes.as_chunks::<4>().0) {
            let [a, b, c, d] = wanted;
            if a | b | c | d == 0 {
                continue;
            }
            for (word, wanted) in (four * 4..).zip(wanted).filter(|(_, wanted)| **wanted != 0) {
                let Some(answers) = self.classes.get(word) else { return true };
                if answers.any(*wanted, word as u32 * 64, &|layout| self.one(layout, look)) {
                    return true;
                }
            }
        }
        false
    }

    /// As [`any`](LayoutAnswers::any) for whether a structure may have a field whose name and type
    /// are wanted, at any depth. Elements of lists and what else lies within a field have the name
    /// of an element. `wanted` always has to be the same.
    pub fn reaches(
        &self,
        tables: &Tables,
        read: OutlineOf<'_>,
        wanted: &dyn Fn(Sym, TypeRef) -> bool,
    ) -> bool {
        self.any(tables, read, &|layout| self.may_reach(tables, layout, wanted))
    }

    /// The same for one layout.
    pub(in crate::table) fn layout_reaches(
        &self,
        tables: &Tables,
        layout: LayoutId,
        wanted: &dyn Fn(Sym, TypeRef) -> bool,
    ) -> bool {
        self.one(layout, &|layout| self.may_reach(tables, layout, wanted))
    }

    /// Whether it holds for a layout.
    #[inline]
    fn one(&self, layout: LayoutId, look: &dyn Fn(LayoutId) -> bool) -> bool {
        let Some(known) = self.layouts.get(layout.0 as usize) else { return true };
        known.get().copied().unwrap_or_else(|| {
            let holds = look(layout);
            *known.get_or_init(|| holds)
        })
    }

    /// Whether a structure or the header before it has a wanted field. Objects with a class are not
    /// looked into: the outline knows [their classes](Outline::classes).
    fn may_reach(
        &self,
        tables: &Tables,
        layout: LayoutId,
        wanted: &dyn Fn(Sym, TypeRef) -> bool,
    ) -> bool {
        if tables
            .services()
            .iter()
            .flat_map(|service| &service.header)
            .any(|(_, name, ty)| wanted(*name, *ty))
        {
            return true;
        }
        let mut layouts = vec![layout];
        let mut types = Vec::new();
        let mut at = 0;
        while let Some(layout) = layouts.get(at).copied() {
            at += 1;
            match self.layouts.get(layout.0 as usize).and_then(OnceLock::get) {
                Some(true) => return true,
                Some(false) => continue,
                None => {}
            }
            for (field, ty) in tables.fields_of(layout) {
                if wanted(field, ty) {
                    return true;
                }
                types.push(ty);
            }
            while let Some(ty) = types.pop() {
                if wanted(Sym::ELEMENT, ty) || tables.parts(ty, wanted, &mut layouts, &mut types) {
                    return true;
                }
            }
        }
        // None of the structures in it has one either.
        let looked_at = layouts.iter().filter_map(|layout| self.layouts.get(layout.0 as usize));
        looked_at.for_each(|known| _ = known.set(false));
        false
    }
}

/// The same for the tables of several protocols, which are told apart by their addresses.
#[derive(Debug, Default)]
pub struct TablesAnswers {
    known: Vec<(usize, LayoutAnswers)>,
}

impl TablesAnswers {
    /// As [`LayoutAnswers::reaches`].
    pub fn reaches(
        &mut self,
        tables: &Tables,
        read: OutlineOf<'_>,
        wanted: &dyn Fn(Sym, TypeRef) -> bool,
    ) -> bool {
        let id = std::ptr::from_ref(tables).addr();
        let at = self.known.iter().position(|(of, _)| *of == id).unwrap_or_else(|| {
            self.known.push((id, LayoutAnswers::new(tables)));
            self.known.len() - 1
        });
        self.known.get(at).is_none_or(|(_, answers)| answers.reaches(tables, read, wanted))
    }
}

impl ClassAnswers {
    /// Whether it holds for any of these layouts. `first` is the first one's place.
    #[inline]
    fn any(&self, wanted: u64, first: u32, look: &dyn Fn(LayoutId) -> bool) -> bool {
        let mut new = wanted & !self.known.load(Ordering::Acquire);
        while new != 0 {
            let bit = new & new.wrapping_neg();
            if look(LayoutId(first + bit.trailing_zeros())) {
                self.holds.fetch_or(bit, Ordering::Relaxed);
            }
            self.known.fetch_or(bit, Ordering::Release);
            new &= !bit;
        }
        wanted & self.holds.load(Ordering::Relaxed) != 0
    }
}
