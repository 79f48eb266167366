//! Finds the fields of a message that name things or are their numbers, by their types. It knows
//! tables and trees, and remembers nothing.

use super::stream_places::is_entered;
use crate::table::{ChangeRole, Tables, TypeDef};
use crate::tree::{Node, Sym, mark};

/// The roles of a type, as bits: its values identify things, or name them.
pub(super) const NUMBER: u8 = 1;
pub(super) const NAME: u8 = 2;
/// They are numbers of places that a client enters.
pub(super) const ENTERED: u8 = 4;
/// They are values that change, or tell of what.
pub(super) const CHANGE: u8 = 8;
/// They are numbers of things that have another number beside them.
pub(super) const SAME: u8 = 16;

/// The roles of a type's own values.
pub(super) fn role(def: &TypeDef) -> u8 {
    let number = u8::from(!def.ids.is_empty());
    let name = u8::from(!def.names.is_empty());
    let entered = u8::from(number != 0 && is_entered(def));
    let change = u8::from(change_of(def).is_some());
    let same = u8::from(same_of(def).is_some());
    (number * NUMBER) | (name * NAME) | (entered * ENTERED) | (change * CHANGE) | (same * SAME)
}

/// What a type's values are of something that changes.
pub(super) fn change_of(def: &TypeDef) -> Option<ChangeRole> {
    def.facts.as_ref()?.change
}

/// The kind of the other number of the thing that a type's values are numbers of.
pub(super) fn same_of(def: &TypeDef) -> Option<Sym> {
    def.facts.as_ref()?.same
}

/// Hands over the nodes whose types have roles, where the tree does not list them. Few trees do
/// not.
pub(super) fn walk(nodes: &[Node], tables: &Tables, add: &mut impl FnMut(u32, &Node, u8)) {
    for (index, node) in
        (0..).zip(nodes).filter(|(_, node)| tables.is_telling(node.ty) && !node.has(mark::SPAN))
    {
        add(index, node, tables.type_def(node.ty).map_or(0, role));
    }
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
        let mut tree = Tree::new();
        let mut evaluator = Evaluator::default();
        for example in tables.examples() {
            let (ExampleOf::Message(id), Some(bytes)) =
                (example.of, parse_hex(&tables.example_bytes(example)))
            else {
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
                let roles =
                    tree.nodes().iter().filter_map(|node| tables.type_def(node.ty)).map(role);
                let all = roles.fold(0, |all, role| all | role);
                assert!(
                    all & (NAME | ENTERED | SAME) == 0 || !tree.is_nameless(),
                    "{}",
                    tables.name(def.name)
                );
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
            // A tree lists fields by the types of fields, not by those of the structures in them.
            let defs = tables.layouts().iter().filter_map(|layout| tables.type_def(layout.ty));
            assert!(
                defs.clone()
                    .all(|def| def.facts.is_none() && def.ids.is_empty() && def.names.is_empty())
            );
            each_message(&tables, |def, tree| {
                let Some(fields) = tree.telling() else { return };
                let listed: Vec<u32> = fields.map(|(index, _)| index).collect();
                // A field and what it consists of may have the same facts: then the field alone is
                // listed.
                let facts = |node: &Node| {
                    tables.type_def(node.ty)?.facts.as_ref().map(|facts| format!("{facts:?}"))
                };
                let told: Vec<String> =
                    listed.iter().filter_map(|index| facts(tree.get(*index)?)).collect();
                assert!(
                    tree.nodes().iter().filter_map(facts).all(|one| told.contains(&one)),
                    "{}",
                    tables.name(def.name)
                );
                let role_of =
                    |node: &Node| tables.type_def(node.ty).map_or(0, role) & (NUMBER | NAME);
                let role_at = |index: u32| role_of(tree.get(index).unwrap());
                let mut of_tree: Vec<(u32, u8)> =
                    listed.iter().map(|index| (*index, role_at(*index))).collect();
                let mut of_walk = Vec::new();
                walk(tree.nodes(), &tables, &mut |index, node, _| {
                    of_walk.push((index, role_of(node)))
                });
                of_tree.retain(|found| found.1 != 0);
                of_walk.retain(|found| found.1 != 0);
                all += of_walk.len();
                assert_eq!(of_tree, of_walk, "{}", tables.name(def.name));
            });
        }
        assert!(all > 50, "{all}");
    }
}
