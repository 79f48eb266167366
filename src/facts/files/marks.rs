//! The nodes of a message that its table marks with `file`, sorted by their roles.

use crate::facts::marks::{Mark, Marks};
use crate::record::MessageView;
use crate::table::FileRole;
use crate::tree::{Kind, Node, mark};

/// Characters of a name.
pub(super) const MAX_NAME: usize = 1024;

/// The marked nodes of a message.
pub(super) struct FileMarks<'a> {
    pub(super) values: MessageView<'a>,
    pub(super) nodes: Marks<'a, FileRole>,
}

impl<'a> FileMarks<'a> {
    /// Finds them. With `redact`, secrets are skipped.
    pub(super) fn of(values: MessageView<'a>, redact: bool) -> FileMarks<'a> {
        // An alias marks the node around a region and the one inside it: the inner one has the
        // value.
        let is_hidden = |node: &Node| redact && node.has(mark::SECRET);
        let takes =
            |node: &Node| !matches!(node.kind, Kind::Struct | Kind::Null) && !is_hidden(node);
        let holds = |kind| matches!(kind, Kind::Struct | Kind::List);
        FileMarks { values, nodes: Marks::of(&values, |facts| facts.file, takes, holds) }
    }

    /// The first node with a role, outside of list entries.
    pub(super) fn first(&self, role: FileRole) -> Option<&Mark<'a, FileRole>> {
        self.nodes.all.iter().find(|marked| marked.role == role && !self.is_listed(marked.parent))
    }

    /// The text of the first node with a role whose value is not empty.
    pub(super) fn word(&self, role: FileRole) -> Option<String> {
        let with = self
            .nodes
            .all
            .iter()
            .filter(|marked| marked.role == role && !self.is_listed(marked.parent));
        with.filter_map(|marked| self.values.word(marked.node, MAX_NAME)).next()
    }

    /// The first node with a role, as a number that is not negative.
    pub(super) fn number(&self, role: FileRole) -> Option<u64> {
        let marked = self.first(role)?;
        self.values.number(marked.node).filter(|number| i64::try_from(*number).is_ok())
    }

    /// The number of a part, without bits that have names of their own.
    pub(super) fn part_number(&self) -> Option<u64> {
        let marked = self.first(FileRole::Number)?;
        let number = self.values.number(marked.node)?;
        let flags = self.values.tables.symbols(marked.node.ty).filter(|symbols| symbols.flags);
        let named = flags
            .map_or(0, |symbols| symbols.values.iter().fold(0, |all, value| all | value.value));
        Some(number & !named).filter(|number| u32::try_from(*number).is_ok())
    }

    fn is_listed(&self, parent: u32) -> bool {
        self.nodes.within(parent, FileRole::Listed).is_some()
    }

    /// The node that ties the parts of a file together: the one marked so, or else the transaction.
    pub(super) fn key(&self) -> Option<String> {
        if let Some(id) = self.first(FileRole::Id) {
            return self.values.word(id.node, MAX_NAME);
        }
        let tables = self.values.tables;
        let tied = |node: &&Node| tables.type_def(node.ty).is_some_and(|def| def.transaction);
        self.values.word(self.values.tree.nodes().iter().find(tied)?, MAX_NAME)
    }
}
