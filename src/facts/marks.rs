//! The nodes of a message that its table gives a role: in a file that is transferred, in a store of
//! nodes. It knows no role by name.

use std::hash::Hash;

use crate::maps::SeededMap;
use crate::record::MessageView;
use crate::table::FieldFacts;
use crate::tree::{Kind, Node};

/// A node with a role.
#[derive(Clone, Copy)]
pub(super) struct Mark<'a, R> {
    pub(super) role: R,
    pub(super) index: u32,
    pub(super) node: &'a Node,
    /// What holds it: the index of a node.
    pub(super) parent: u32,
}

/// The nodes of a message with roles, in its order.
pub(super) struct Marks<'a, R> {
    pub(super) all: Vec<Mark<'a, R>>,
    /// The first one of each role in each parent, by its place among all.
    first: SeededMap<(u32, R), usize>,
}

impl<'a, R: Copy + Eq + Hash> Marks<'a, R> {
    /// Finds the nodes of which the table's facts give a role and that `takes` wants. `holds` says
    /// of which kinds the parents are.
    pub(super) fn of(
        view: &MessageView<'a>,
        role: impl Fn(&FieldFacts) -> Option<R>,
        takes: impl Fn(&Node) -> bool,
        holds: impl Fn(Kind) -> bool,
    ) -> Marks<'a, R> {
        let mut marks = Marks { all: Vec::new(), first: SeededMap::default() };
        if !view.may_have(|facts| role(facts).is_some()) {
            return marks;
        }
        let mut open: Vec<(u32, u32)> = Vec::new();
        for (index, node) in (0..).zip(view.tree.nodes()) {
            while open.last().is_some_and(|(_, end)| *end <= index) {
                open.pop();
            }
            let facts = view.tables.type_def(node.ty).and_then(|def| def.facts.as_deref());
            if let Some(role) = facts.and_then(&role).filter(|_| takes(node)) {
                let parent = open.last().map_or(0, |(index, _)| *index);
                marks.first.entry((parent, role)).or_insert(marks.all.len());
                marks.all.push(Mark { role, index, node, parent });
            }
            if holds(node.kind) {
                open.push((index, node.end));
            }
        }
        marks
    }

    /// The first node with a role in a parent.
    pub(super) fn within(&self, parent: u32, role: R) -> Option<&Mark<'a, R>> {
        self.first.get(&(parent, role)).and_then(|at| self.all.get(*at))
    }
}
