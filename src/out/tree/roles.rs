//! Finds the fields of a message that name things or are their numbers, by their types. It knows tables and trees, and remembers nothing.

use super::stream_places::{is_entered, role_of_place};
use crate::table::{ReadAs, Tables, TypeDef};
use crate::tree::{Node, TypeRef, mark};

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
    let types = || (0..tables.type_count()).map(TypeRef);
    let own = |ty| if tables.is_telling(ty) { tables.type_def(ty).map_or(0, role) } else { 0 };
    let mut roles: Vec<u8> = types().map(own).collect();
    // Nodes that code makes may have no type.
    roles.iter_mut().take(1).for_each(|role| *role |= WITHIN);
    let mut open: Vec<(TypeRef, ReadAs)> = types().filter_map(|ty| Some((ty, tables.read_of(ty)?))).collect();
    open.retain(|(_, read)| has_parts(read));
    // Each round finds the types one structure further out.
    loop {
        let before = open.len();
        open.retain(|(ty, read)| {
            let found = has_within(tables, read, &roles);
            roles.iter_mut().skip(ty.0 as usize).take(usize::from(found)).for_each(|role| *role |= WITHIN);
            !found
        });
        if open.len() == before {
            return roles;
        }
    }
}

/// Whether anything else may lie within values that are read so.
fn has_parts(read: &ReadAs) -> bool {
    matches!(
        read,
        ReadAs::List { .. }
            | ReadAs::NullOr { .. }
            | ReadAs::Region(_)
            | ReadAs::Layout { .. }
            | ReadAs::Family(_)
            | ReadAs::Value(_)
            | ReadAs::Native { .. }
    )
}

/// Whether names or numbers may lie within values that are read so, as far as `roles` say so of the types in them.
fn has_within(tables: &Tables, read: &ReadAs, roles: &[u8]) -> bool {
    let any = |ty: TypeRef| roles.get(ty.0 as usize).is_some_and(|role| *role != 0);
    match read {
        ReadAs::List { of, .. } | ReadAs::NullOr { of, .. } => any(*of),
        ReadAs::Region(region) => region.inner.iter().any(|ty| any(*ty)),
        ReadAs::Layout { layout, .. } => tables.layout_fields(*layout).any(|(_, ty)| any(ty)),
        ReadAs::Family(family) => tables.families().get(family.0 as usize).is_none_or(|family| {
            let layouts = family.members.iter().filter_map(|(_, layout)| tables.layout(*layout));
            any(family.of) || layouts.map(|layout| layout.ty).any(any)
        }),
        // Which types these have is known only when they are read.
        ReadAs::Value(_) => true,
        ReadAs::Native { .. } => !tables.reads_text(read),
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

/// Whether a name or a place may be learned from values of a type. What code makes may be anything.
pub(super) fn teaches(tables: &Tables, ty: TypeRef) -> bool {
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
    use crate::table::{Evaluator, ExampleOf, MessageDef, Sender, parse_hex};
    use crate::tree::Tree;

    /// Reads the message of each example of a protocol.
    fn each_message(tables: &Tables, mut each: impl FnMut(&MessageDef, &Tree)) {
        let (mut tree, mut evaluator) = (Tree::new(), Evaluator::default());
        for example in tables.examples() {
            let (ExampleOf::Message(id), Some(bytes)) = (example.of, parse_hex(&tables.example_bytes(example))) else {
                continue;
            };
            let def = tables.message(id).unwrap();
            let sender = usize::from(def.direction == Sender::Server);
            evaluator.message(tables, def.service, sender, &bytes, &mut tree);
            each(def, &tree);
        }
    }

    /// Else a filter that drops the message costs later records a name.
    #[test]
    fn a_message_that_names_something_or_tells_a_place_is_not_nameless() {
        let mut entered = 0;
        for protocol in PROTOCOLS {
            let tables = load_tables(*protocol, &[]).unwrap();
            each_message(&tables, |def, tree| {
                let roles = tree.nodes().iter().filter_map(|node| tables.type_def(node.ty)).map(role);
                let all = roles.fold(0, |all, role| all | role);
                assert!(all & (NAME | ENTERED) == 0 || !tree.is_nameless(), "{}", tables.name(def.name));
                entered += usize::from(all & ENTERED != 0);
            });
        }
        assert!(entered > 0);
    }

    #[test]
    fn a_tree_lists_what_a_walk_through_it_finds() {
        let mut all = 0;
        for protocol in PROTOCOLS {
            let tables = load_tables(*protocol, &[]).unwrap();
            let roles = roles(&tables);
            // A tree lists fields by the types of fields, not by those of the structures in them.
            let defs = tables.layouts().iter().filter_map(|layout| tables.type_def(layout.ty));
            assert!(defs.clone().all(|def| def.facts.is_none() && def.ids.is_empty() && def.names.is_empty()));
            each_message(&tables, |def, tree| {
                let Some(fields) = tree.telling() else { return };
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
            });
        }
        assert!(all > 50, "{all}");
    }
}
