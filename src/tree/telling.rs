//! The fields of a message of which tables say more than how they are read: that they name things
//! or are their numbers, or a fact such as `chat` or `place`. They are listed while the message is
//! read, because a walk through the tree that looks for them takes as long as writing a tenth of
//! its JSON. What tables say of them is not known here.

use super::{Node, Tree, mark};

/// Where such fields begin.
#[derive(Default)]
pub(super) struct TellingFields {
    /// Indices of nodes, each above the one before.
    nodes: Vec<u32>,
    /// Whether all such fields are among them.
    is_complete: bool,
}

impl TellingFields {
    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.is_complete = false;
    }

    /// Becomes a copy of other ones.
    pub(super) fn copy_from(&mut self, other: &TellingFields) {
        self.nodes.clone_from(&other.nodes);
        self.is_complete = other.is_complete;
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
    /// The fields of which tables say more than how they are read, in ascending order, each with
    /// its index. `None` where the tree does not list them all: a caller then has to look at all
    /// nodes. There may be other fields among them.
    pub fn telling(&self) -> Option<impl Iterator<Item = (u32, &Node)>> {
        let mut behind = 0;
        let field = move |from: &u32| {
            let mut index = behind.max(*from);
            // A text's length may come before it.
            while self.get(index)?.has(mark::SPAN) {
                index = self.get(index)?.end.max(index + 1);
            }
            behind = index + 1;
            Some((index, self.get(index)?))
        };
        self.telling.is_complete.then(|| self.telling.nodes.iter().filter_map(field))
    }

    /// Says whether the code that fills the tree calls [`Tree::add_telling`] for every such field.
    pub fn set_telling(&mut self, is_complete: bool) {
        self.telling.set_complete(is_complete);
    }

    /// The node with this index, which may be added later, begins such a field: it is the field's
    /// node, or that of a count before it.
    #[inline]
    pub fn add_telling(&mut self, index: u32) {
        if self.telling.nodes.last().is_none_or(|last| *last < index) {
            self.telling.nodes.push(index);
        }
    }
}
