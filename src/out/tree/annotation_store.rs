//! Holds the annotations of many records in one buffer until they are printed, so that no record
//! needs an allocation.

/// The annotations of one record: what its tree shows because of earlier records.
#[derive(Clone, Copy, Default)]
pub struct Annotations<'a> {
    /// The record is the first of its day, or the first after clocks were changed.
    pub new_day: bool,
    /// The bound on names was reached with this record: from here on the oldest are forgotten.
    pub forgotten: bool,
    /// Nanoseconds since the capture's first record.
    pub since_first: i64,
    /// Nanoseconds since the record printed before; 0 for the first.
    pub since_previous: i64,
    named: &'a [InferredName],
    text: &'a str,
}

impl<'a> Annotations<'a> {
    /// The index of the next node that has a name, `u32::MAX` when there is none.
    #[inline(always)]
    pub(in crate::out) fn next(&self) -> u32 {
        self.named.first().map_or(u32::MAX, |first| first.node)
    }

    /// The name of a node's number and the record that gave it. Nodes may be asked for in any
    /// order.
    pub fn name_of(&self, node: u32) -> Option<(&'a str, u64)> {
        let at = self.named.binary_search_by_key(&node, |named| named.node).ok()?;
        let named = self.named.get(at)?;
        Some((self.text.get(named.start..named.end)?, named.record))
    }

    /// All nodes whose numbers have names, in ascending order, each with its name and the record
    /// that gave it.
    pub fn names(&self) -> impl Iterator<Item = (u32, &'a str, u64)> {
        let text = self.text;
        self.named
            .iter()
            .filter_map(|named| Some((named.node, text.get(named.start..named.end)?, named.record)))
    }

    /// The name of a node's number and the record that gave it. Nodes have to be asked for in
    /// ascending order: names of earlier nodes are dropped.
    #[inline(never)]
    pub(in crate::out) fn take(&mut self, node: u32) -> Option<(&'a str, u64)> {
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

/// The annotations of several records, kept until these are written.
#[derive(Default)]
pub struct AnnotationStore {
    named: Vec<InferredName>,
    text: String,
}

/// Which part of an [`AnnotationStore`] belongs to a record.
#[derive(Clone, Copy, Default)]
pub struct AnnotationRange {
    pub(super) new_day: bool,
    pub(super) forgotten: bool,
    pub(super) since_first: i64,
    pub(super) since_previous: i64,
    pub(super) first: usize,
    pub(super) end: usize,
}

/// A node whose number has a name: the name's place in the text, and the record that gave it.
#[derive(Clone, Copy)]
struct InferredName {
    node: u32,
    start: usize,
    end: usize,
    record: u64,
}

impl AnnotationStore {
    /// How many names there are.
    pub(super) fn len(&self) -> usize {
        self.named.len()
    }

    /// The annotations of one record.
    pub fn get(&self, at: AnnotationRange) -> Annotations<'_> {
        let named = self.named.get(at.first..at.end).unwrap_or(&[]);
        let AnnotationRange { new_day, forgotten, since_first, since_previous, .. } = at;
        Annotations { new_day, forgotten, since_first, since_previous, named, text: &self.text }
    }

    /// Empties the store. Of each allocation up to `keep` bytes are kept.
    pub fn clear(&mut self, keep: usize) {
        self.named.clear();
        self.named.shrink_to(keep / size_of::<InferredName>());
        self.text.clear();
        self.text.shrink_to(keep);
    }

    /// Drops the annotations of the record that came last.
    pub fn drop_last(&mut self, range: AnnotationRange) {
        let start = self.named.get(range.first).map_or(self.text.len(), |named| named.start);
        self.named.truncate(range.first);
        self.text.truncate(start);
    }

    /// Bytes in use.
    pub fn bytes(&self) -> usize {
        size_of_val(self.named.as_slice()) + self.text.len()
    }

    /// Everything, as if it were one record's.
    #[cfg(test)]
    pub(super) fn all(&self) -> Annotations<'_> {
        self.get(AnnotationRange { end: self.named.len(), ..AnnotationRange::default() })
    }

    /// Adds the name of a node's number, given by `record`. A record's nodes have to be added in
    /// ascending order.
    pub(super) fn call(&mut self, node: u32, name: &str, record: u64) {
        let start = self.text.len();
        self.text.push_str(name);
        self.named.push(InferredName { node, start, end: self.text.len(), record });
    }
}
