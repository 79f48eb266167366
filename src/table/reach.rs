//! Which names the fields of a structure can have, by the tables alone: without reading a byte.

use super::Tables;
use super::program::*;
use crate::tree::{Sym, TypeRef};

impl Tables {
    /// Whether a structure that was read into an outline may have a field of a name, at any depth. Objects with a class are not looked into: the outline
    /// knows [their classes](crate::tree::Outline::classes).
    pub fn may_have(&self, layout: LayoutId, name: Sym) -> bool {
        if self.is_builtin(name) || self.is_in_header(name) {
            return true;
        }
        let mut seen = vec![false; self.program.type_ops.len()];
        let (mut layouts, mut types) = (vec![layout], Vec::new());
        while let Some(layout) = layouts.pop() {
            for (field, ty) in self.fields_of(layout) {
                if field == name {
                    return true;
                }
                types.push(ty);
            }
            while let Some(ty) = types.pop() {
                let new = seen.get_mut(ty.0 as usize).is_some_and(|seen| !std::mem::replace(seen, true));
                if new && self.parts(ty, name, &mut layouts, &mut types) {
                    return true;
                }
            }
        }
        false
    }

    fn is_in_header(&self, name: Sym) -> bool {
        self.services().iter().flat_map(|service| &service.header).any(|(_, field, _)| *field == name)
    }

    /// The names and types of a layout's own fields.
    fn fields_of(&self, layout: LayoutId) -> impl Iterator<Item = (Sym, TypeRef)> + '_ {
        let start = self.layout(layout).map_or(usize::MAX, |layout| layout.start as usize);
        let steps = self.steps().get(start..).unwrap_or(&[]).iter();
        steps.take_while(|step| !matches!(step, LayoutStep::End)).filter_map(|step| match step {
            LayoutStep::Field { name, ty, .. } | LayoutStep::Empty { name, ty } => Some((*name, *ty)),
            _ => None,
        })
    }

    /// Adds what a type consists of. Returns whether it has a field of this name itself.
    fn parts(&self, ty: TypeRef, name: Sym, layouts: &mut Vec<LayoutId>, types: &mut Vec<TypeRef>) -> bool {
        let Some(def) = self.type_def(ty) else { return false };
        match &def.read {
            ReadAs::List { of, .. } => types.push(*of),
            ReadAs::Layout { layout, .. } => layouts.push(*layout),
            ReadAs::Family(family) => return self.family(*family).is_some_and(|family| family.field == name),
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
