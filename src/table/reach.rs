//! Which names the fields of a structure can have, by the tables alone: without reading a byte.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Tables;
use super::program::*;
use crate::tree::{Outline, Sym, TypeRef};

impl Tables {
    /// Whether a structure that was read into an outline may have a field of a name, at any depth. Objects with a class are not looked into: the outline
    /// knows [their classes](crate::tree::Outline::classes).
    pub fn may_have(&self, layout: LayoutId, name: Sym) -> bool {
        if self.is_builtin(name) || self.is_in_header(name) {
            return true;
        }
        self.may_reach(layout, &|field, _| field == name)
    }

    /// Whether a structure that was read into an outline may have a field whose name and type are wanted, at any depth. Elements of lists and what else lies
    /// within a field have the name of an element. Objects with a class are not looked into.
    pub fn may_reach(&self, layout: LayoutId, wanted: &dyn Fn(Sym, TypeRef) -> bool) -> bool {
        let mut seen = vec![false; self.program.type_ops.len()];
        let (mut layouts, mut types) = (vec![layout], Vec::new());
        while let Some(layout) = layouts.pop() {
            for (field, ty) in self.fields_of(layout) {
                if wanted(field, ty) {
                    return true;
                }
                types.push(ty);
            }
            while let Some(ty) = types.pop() {
                let new = seen.get_mut(ty.0 as usize).is_some_and(|seen| !std::mem::replace(seen, true));
                if new && (wanted(Sym::ELEMENT, ty) || self.parts(ty, wanted, &mut layouts, &mut types)) {
                    return true;
                }
            }
        }
        false
    }

    pub(in crate::table) fn is_in_header(&self, name: Sym) -> bool {
        self.services().iter().flat_map(|service| &service.header).any(|(_, field, _)| *field == name)
    }

    /// The names and types of a layout's own fields.
    pub(in crate::table) fn fields_of(&self, layout: LayoutId) -> impl Iterator<Item = (Sym, TypeRef)> + '_ {
        let start = self.layout(layout).map_or(usize::MAX, |layout| layout.start as usize);
        let steps = self.steps().get(start..).unwrap_or(&[]).iter();
        steps.take_while(|step| !matches!(step, LayoutStep::End)).filter_map(|step| match step {
            LayoutStep::Field { name, ty, .. } | LayoutStep::Empty { name, ty } => Some((*name, *ty)),
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
            ReadAs::Layout { layout, .. } => layouts.push(*layout),
            ReadAs::Family(family) => {
                return self.family(*family).is_some_and(|family| wanted(family.field, family.of));
            }
            ReadAs::Region(region) => types.extend(&region.inner),
            ReadAs::NullOr { of, .. } => types.push(*of),
            // Its names come with the traffic.
            ReadAs::Value(_) => return true,
            // The nodes of code for outlines have no other names than the field's; without such code there is no outline.
            ReadAs::Native { .. } => {}
            // Numbers, texts and bytes, whose counts have names of the evaluator's own.
            _ => {}
        }
        false
    }
}

/// For which layouts something holds. Each is looked up when a message first has it.
#[derive(Debug)]
pub struct LayoutAnswers {
    /// By the layout of a message.
    messages: Box<[OnceLock<bool>]>,
    /// By the layouts of classes, 64 in each element.
    classes: [ClassAnswers; Outline::CLASS_WORDS],
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
        LayoutAnswers { messages: vec![OnceLock::new(); tables.layouts().len()].into(), classes: Default::default() }
    }

    /// Whether `look` holds for the layout of a message of which only the outline was read, or for the class of an object in it; `true` where these are not
    /// known. `look` always has to be the same.
    pub fn any(&self, layout: Option<LayoutId>, outline: &Outline, look: impl Fn(LayoutId) -> bool) -> bool {
        let (Some(layout), Some(classes)) = (layout, outline.classes()) else { return true };
        let in_message = self.messages.get(layout.0 as usize).is_none_or(|known| *known.get_or_init(|| look(layout)));
        let mut words = (0..).step_by(64).zip(classes).zip(&self.classes).filter(|((_, wanted), _)| **wanted != 0);
        in_message || words.any(|((first, wanted), known)| known.any(*wanted, first, &look))
    }
}

impl ClassAnswers {
    /// Whether it holds for any of these layouts. `first` is the first one's place.
    fn any(&self, wanted: u64, first: u32, look: impl Fn(LayoutId) -> bool) -> bool {
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
