//! Which fields of a message name things or are their numbers, listed while the message is read: a walk through the tree that looks for them
//! takes as long as writing a tenth of its JSON. What the names mean is not known here.

use super::Tree;

/// Where such fields begin.
#[derive(Default)]
pub(super) struct NamingFields {
    /// Indices of nodes, each above the one before.
    nodes: Vec<u32>,
    /// Whether all such fields are among them.
    is_complete: bool,
}

impl NamingFields {
    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.is_complete = false;
    }

    /// Forgets those from a node on.
    pub(super) fn cut(&mut self, index: u32) {
        while self.nodes.last().is_some_and(|last| *last >= index) {
            self.nodes.pop();
        }
    }

    /// Says whether all such fields are listed.
    pub(super) fn set_complete(&mut self, is_complete: bool) {
        self.is_complete = is_complete;
    }

    /// How many bytes the list takes.
    pub(super) fn size(&self) -> usize {
        size_of_val(self.nodes.as_slice())
    }

    /// How many bytes are allocated for it.
    pub(super) fn allocated(&self) -> usize {
        self.nodes.capacity() * size_of::<u32>()
    }
}

impl Tree {
    /// Where fields begin that, by their types, name things or are their numbers, in ascending order: the index of each field's node, or of a
    /// count before it. `None` where the tree does not list them all.
    pub fn naming(&self) -> Option<&[u32]> {
        self.naming.is_complete.then_some(self.naming.nodes.as_slice())
    }

    /// Says whether the code that fills the tree calls [`Tree::add_naming`] for every such field.
    pub fn set_naming(&mut self, is_complete: bool) {
        self.naming.set_complete(is_complete);
    }

    /// The node with this index, which may be added later, begins a field that names a thing or is its number.
    #[inline]
    pub fn add_naming(&mut self, index: u32) {
        if self.naming.nodes.last().is_none_or(|last| *last < index) {
            self.naming.nodes.push(index);
        }
    }
}
