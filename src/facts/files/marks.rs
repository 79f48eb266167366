//! The nodes of a message that its table marks with `file`, sorted by their roles.

use crate::maps::SeededMap;
use crate::record::MessageView;
use crate::table::FileRole;
use crate::tree::{Kind, Node, mark};

/// Characters of a name.
pub(super) const MAX_NAME: usize = 1024;

/// A marked node.
#[derive(Clone, Copy)]
pub(super) struct FileMark<'a> {
    pub(super) role: FileRole,
    pub(super) index: u32,
    pub(super) node: &'a Node,
    /// The structure or list that holds it.
    pub(super) parent: u32,
}

/// The marked nodes of a message.
pub(super) struct FileMarks<'a> {
    pub(super) values: MessageView<'a>,
    pub(super) all: Vec<FileMark<'a>>,
    /// The first one of each role in each structure or list, by its place among all.
    first: SeededMap<(u32, FileRole), usize>,
}

impl<'a> FileMarks<'a> {
    /// Finds them. With `redact`, secrets are skipped.
    pub(super) fn of(values: MessageView<'a>, redact: bool) -> FileMarks<'a> {
        let mut marks = FileMarks { values, all: Vec::new(), first: SeededMap::default() };
        if !values.may_have(|facts| facts.file.is_some()) {
            return marks;
        }
        let mut open: Vec<(u32, u32)> = Vec::new();
        for (index, node) in (0..).zip(values.tree.nodes()) {
            while open.last().is_some_and(|(_, end)| *end <= index) {
                open.pop();
            }
            let role = values
                .tables
                .type_def(node.ty)
                .and_then(|def| def.facts.as_deref())
                .and_then(|facts| facts.file);
            let hidden = redact && node.has(mark::SECRET);
            if let Some(role) = role.filter(|_| !hidden) {
                // An alias marks the node around a region and the one inside it: the inner one has
                // the value.
                let parent = open.last().map_or(0, |(index, _)| *index);
                if !matches!(node.kind, Kind::Struct | Kind::Null) {
                    marks.first.entry((parent, role)).or_insert(marks.all.len());
                    marks.all.push(FileMark { role, index, node, parent });
                }
            }
            if matches!(node.kind, Kind::Struct | Kind::List) {
                open.push((index, node.end));
            }
        }
        marks
    }

    /// The first node with a role, outside of list entries.
    pub(super) fn first(&self, role: FileRole) -> Option<&FileMark<'a>> {
        self.all.iter().find(|marked| marked.role == role && !self.is_listed(marked.parent))
    }

    /// The first node with a role in a structure.
    pub(super) fn within(&self, parent: u32, role: FileRole) -> Option<&FileMark<'a>> {
        self.first.get(&(parent, role)).and_then(|at| self.all.get(*at))
    }

    /// The text of the first node with a role whose value is not empty.
    pub(super) fn word(&self, role: FileRole) -> Option<String> {
        let with =
            self.all.iter().filter(|marked| marked.role == role && !self.is_listed(marked.parent));
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
        self.first.contains_key(&(parent, FileRole::Listed))
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
