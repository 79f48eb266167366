//! Finds the fields of a message that name things or are their numbers, by their types. It knows tables and trees, and remembers nothing.

use super::stream_places::{is_entered, role_of_place};
use crate::table::{LayoutAnswers, LayoutId, ReadAs, Tables, TypeDef};
use crate::tree::{Node, Outline, TypeRef, mark};

/// The roles of a type, as bits: its values identify things, or name them.
pub(super) const NUMBER: u8 = 1;
pub(super) const NAME: u8 = 2;
/// There may be such values within its values.
const WITHIN: u8 = 4;
/// They are numbers of places that a client enters.
pub(super) const ENTERED: u8 = 8;

/// The roles of a type's own values.
pub(super) fn role(def: &TypeDef) -> u8 {
    let (number, name) = (u8::from(!def.ids.is_empty()), u8::from(!def.names.is_empty()));
    let entered = u8::from(number != 0 && is_entered(def));
    (number * NUMBER) | (name * NAME) | (entered * ENTERED)
}

/// The roles of each type of some tables.
pub(super) fn roles(tables: &Tables) -> Vec<u8> {
    let defs: Vec<&TypeDef> = (0..).map_while(|ty| tables.type_def(TypeRef(ty))).collect();
    let mut roles: Vec<u8> = defs.iter().map(|def| role(def)).collect();
    // Nodes that code makes may have no type.
    roles.iter_mut().take(1).for_each(|role| *role |= WITHIN);
    // Each round finds the types one structure further out.
    loop {
        let mut more = false;
        for (ty, def) in (0..).zip(&defs) {
            let known = roles.get(ty as usize).is_some_and(|role| role & WITHIN != 0);
            if !known && has_within(tables, TypeRef(ty), def, &roles) {
                roles.iter_mut().skip(ty as usize).take(1).for_each(|role| *role |= WITHIN);
                more = true;
            }
        }
        if !more {
            return roles;
        }
    }
}

/// Whether names or numbers may lie within a type's values, as far as `roles` say so of the types in it.
fn has_within(tables: &Tables, ty: TypeRef, def: &TypeDef, roles: &[u8]) -> bool {
    let any = |ty: TypeRef| roles.get(ty.0 as usize).is_some_and(|role| *role != 0);
    match &def.read {
        ReadAs::List { of, .. } | ReadAs::NullOr { of, .. } => any(*of),
        ReadAs::Region(region) => region.inner.iter().any(|ty| any(*ty)),
        ReadAs::Layout { .. } => tables.fields(ty).any(|(_, ty)| any(ty)),
        ReadAs::Family(family) => tables.families().get(family.0 as usize).is_none_or(|family| {
            let layouts = family.members.iter().filter_map(|(_, layout)| tables.layout(*layout));
            any(family.of) || layouts.map(|layout| layout.ty).any(any)
        }),
        // Which types these have is known only when they are read.
        ReadAs::Value(_) => true,
        ReadAs::Native { .. } => !tables.is_text(ty),
        _ => false,
    }
}

/// Hands over the nodes whose types have roles, where the tree does not list them.
pub(super) fn walk(nodes: &[Node], roles: &[u8], add: &mut impl FnMut(u32, &Node, u8)) {
    let mut from = 0;
    while let Some((index, node, role)) = next_with_role(nodes, from, roles) {
        // Code that frames messages makes regions of its own around their fields.
        let inside = role & WITHIN != 0 || node.has(mark::SEE_THROUGH | mark::OWN_BUFFER);
        from = if inside { index + 1 } else { node.end.max(index + 1) };
        if !node.has(mark::SPAN) {
            add(index, node, role);
        }
    }
}

/// The first node from an index on whose type has a role or that is looked into in any case, with its index and the type's role. What lies
/// in the nodes before it is skipped with them. A loop of its own, since most nodes of most messages pass through it and through nothing else.
#[inline(never)]
fn next_with_role<'a>(nodes: &'a [Node], mut from: u32, roles: &[u8]) -> Option<(u32, &'a Node, u8)> {
    loop {
        let node = nodes.get(from as usize)?;
        let role = roles.get(node.ty.0 as usize).copied().unwrap_or(0);
        if role != 0 || node.has(mark::SEE_THROUGH | mark::OWN_BUFFER) {
            return Some((from, node, role));
        }
        from = node.end.max(from + 1);
    }
}

/// Which layouts may have a field that gives a name to a number, for each protocol's tables.
#[derive(Default)]
pub(super) struct TeachingLayouts {
    known: Vec<(usize, LayoutAnswers)>,
}

impl TeachingLayouts {
    /// Whether a message of which only the outline was read may have such a field.
    pub(super) fn teaches(&mut self, tables: &Tables, layout: Option<LayoutId>, outline: &Outline) -> bool {
        let id = std::ptr::from_ref(tables) as usize;
        let at = self.known.iter().position(|(of, _)| *of == id).unwrap_or_else(|| {
            self.known.push((id, LayoutAnswers::new(tables)));
            self.known.len() - 1
        });
        let look = |layout| tables.may_reach(layout, &|_, ty| teaches(tables, ty));
        self.known.get(at).is_none_or(|(_, answers)| answers.any(layout, outline, look))
    }
}

/// Whether a name or a place may be learned from values of a type. What code makes may be anything.
fn teaches(tables: &Tables, ty: TypeRef) -> bool {
    tables.type_def(ty).is_some_and(|def| {
        let code = matches!(def.read, ReadAs::Native { .. }) && !tables.is_text(ty);
        code || !def.names.is_empty() || role_of_place(def).is_some()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;
    use crate::proto::{PROTOCOLS, load_tables};
    use crate::table::{Evaluator, ExampleOf, Sender, parse_hex};
    use crate::tree::Tree;

    /// Else a filter that drops the message costs later records a name.
    #[test]
    fn a_message_that_names_something_or_tells_a_place_is_not_nameless() {
        let (mut tree, mut evaluator, mut entered) = (Tree::new(), Evaluator::default(), 0);
        for protocol in PROTOCOLS {
            let tables = load_tables(*protocol, &[]).unwrap();
            for example in tables.examples() {
                let (ExampleOf::Message(id), Some(bytes)) = (example.of, parse_hex(&tables.example_bytes(example)))
                else {
                    continue;
                };
                let def = tables.message(id).unwrap();
                let sender = usize::from(def.direction == Sender::Server);
                evaluator.message(&tables, def.service, sender, &bytes, &mut tree);
                let roles = tree.nodes().iter().filter_map(|node| tables.type_def(node.ty)).map(role);
                let all = roles.fold(0, |all, role| all | role);
                assert!(all & (NAME | ENTERED) == 0 || !tree.is_nameless(), "{}", tables.name(def.name));
                entered += usize::from(all & ENTERED != 0);
            }
        }
        assert!(entered > 0);
    }

    #[test]
    fn a_tree_lists_what_a_walk_through_it_finds() {
        let (mut tree, mut evaluator, mut all) = (Tree::new(), Evaluator::default(), 0);
        for protocol in PROTOCOLS {
            let tables = load_tables(*protocol, &[]).unwrap();
            let roles = roles(&tables);
            // A tree lists fields by the types of fields, not by those of the structures in them.
            let defs = tables.layouts().iter().filter_map(|layout| tables.type_def(layout.ty));
            assert!(defs.clone().all(|def| def.facts.is_none() && def.ids.is_empty() && def.names.is_empty()));
            for example in tables.examples() {
                let (ExampleOf::Message(id), Some(bytes)) = (example.of, parse_hex(&tables.example_bytes(example)))
                else {
                    continue;
                };
                let def = tables.message(id).unwrap();
                let sender = usize::from(def.direction == Sender::Server);
                evaluator.message(&tables, def.service, sender, &bytes, &mut tree);
                let Some(fields) = tree.telling() else { continue };
                let listed: Vec<u32> = fields.map(|(index, _)| index).collect();
                // A field and what it consists of may have the same facts: then the field alone is listed.
                let facts = |node: &Node| tables.type_def(node.ty)?.facts.as_ref().map(|facts| format!("{facts:?}"));
                let told: Vec<String> = listed.iter().filter_map(|index| facts(tree.get(*index)?)).collect();
                assert!(
                    tree.nodes().iter().filter_map(facts).all(|one| told.contains(&one)),
                    "{}",
                    tables.name(def.name)
                );
                let role_of = |node: &Node| roles[node.ty.0 as usize] & (NUMBER | NAME);
                let role_at = |index: u32| role_of(tree.get(index).unwrap());
                let mut of_tree: Vec<(u32, u8)> = listed.iter().map(|index| (*index, role_at(*index))).collect();
                let mut of_walk = Vec::new();
                walk(tree.nodes(), &roles, &mut |index, node, _| of_walk.push((index, role_of(node))));
                of_tree.retain(|found| found.1 != 0);
                of_walk.retain(|found| found.1 != 0);
                all += of_walk.len();
                assert_eq!(of_tree, of_walk, "{}", tables.name(def.name));
            }
        }
        assert!(all > 50, "{all}");
    }
}
