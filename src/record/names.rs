//! What earlier records of the capture tell about a record: the names of its numbers and UUIDs, and
//! the values that those which it changes had before. Where they come from is not known here.

/// The names of one record's numbers, each by the index of its node in the record's tree.
#[derive(Clone, Copy, Default)]
pub struct Names<'a> {
    named: &'a [NamedNumber],
    changed: &'a [NamedNumber],
    text: &'a str,
    /// The bound on names was reached: from here on the oldest are forgotten.
    pub forgotten: bool,
}

/// A node whose number has a name, or another value than before: the text's place, and the record
/// that gave it.
#[derive(Clone, Copy)]
struct NamedNumber {
    node: u32,
    start: usize,
    end: usize,
    record: u64,
}

impl<'a> Names<'a> {
    /// The index of the next node that has a name, `u32::MAX` when there is none.
    #[inline(always)]
    pub(crate) fn next(&self) -> u32 {
        self.named.first().map_or(u32::MAX, |first| first.node)
    }

    /// The name of a node's number and the record that gave it. Nodes may be asked for in any
    /// order.
    pub fn name_of(&self, node: u32) -> Option<(&'a str, u64)> {
        let at = self.named.binary_search_by_key(&node, |named| named.node).ok()?;
        let named = self.named.get(at)?;
        Some((self.text.get(named.start..named.end)?, named.record))
    }

    /// The value that a node's thing had before, as text, where this record has another.
    pub fn value_before(&self, node: u32) -> Option<&'a str> {
        let at = self.changed.binary_search_by_key(&node, |changed| changed.node).ok()?;
        let changed = self.changed.get(at)?;
        self.text.get(changed.start..changed.end)
    }

    /// All nodes whose numbers have names, in ascending order, each with its name and the record
    /// that gave it.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &'a str, u64)> + use<'a> {
        let text = self.text;
        self.named.iter().filter_map(move |named| {
            Some((named.node, text.get(named.start..named.end)?, named.record))
        })
    }

    /// The name of a node's number and the record that gave it. Nodes have to be asked for in
    /// ascending order: names of earlier nodes are dropped.
    #[inline(never)]
    pub(crate) fn take(&mut self, node: u32) -> Option<(&'a str, u64)> {
        while let Some((first, rest)) =
            self.named.split_first().filter(|(first, _)| first.node <= node)
        {
            self.named = rest;
            if first.node == node {
                return Some((self.text.get(first.start..first.end)?, first.record));
            }
        }
        None
    }
}

/// Holds the names of one record. Cleared, not freed, between records.
#[derive(Default)]
pub struct NameStore {
    named: Vec<NamedNumber>,
    changed: Vec<NamedNumber>,
    text: String,
    /// As [`Names::forgotten`].
    pub forgotten: bool,
}

impl NameStore {
    /// The names.
    pub fn names(&self) -> Names<'_> {
        Names {
            named: &self.named,
            changed: &self.changed,
            text: &self.text,
            forgotten: self.forgotten,
        }
    }

    /// Removes all names.
    pub fn clear(&mut self) {
        self.named.clear();
        self.changed.clear();
        self.text.clear();
        self.forgotten = false;
    }

    /// Adds the name of a node's number, given by `record`. Nodes have to be added in ascending
    /// order.
    pub fn add(&mut self, node: u32, name: &str, record: u64) {
        let start = self.text.len();
        self.text.push_str(name);
        self.named.push(NamedNumber { node, start, end: self.text.len(), record });
    }

    /// Adds the value that a node's thing had before, by `record`. Nodes have to be added in
    /// ascending order.
    pub fn add_change(&mut self, node: u32, before: &str, record: u64) {
        let start = self.text.len();
        self.text.push_str(before);
        self.changed.push(NamedNumber { node, start, end: self.text.len(), record });
    }

    /// Replaces the names by copies of others.
    pub fn copy_from(&mut self, names: Names<'_>) {
        self.named.clear();
        self.named.extend_from_slice(names.named);
        self.changed.clear();
        self.changed.extend_from_slice(names.changed);
        self.text.clear();
        self.text.push_str(names.text);
        self.forgotten = names.forgotten;
    }

    /// Bytes allocated for it.
    pub fn allocated(&self) -> usize {
        (self.named.capacity() + self.changed.capacity()) * size_of::<NamedNumber>()
            + self.text.capacity()
    }
}
