//! What a record's tree says of the records before it. Found out once, in capture order; whoever writes the tree needs no memory of
//! its own, and may write any record at any time.

use super::inferred::{NameInference, SeenMessage};
use crate::out::{Body, Record};

/// What earlier records have to do with one.
#[derive(Clone, Copy, Default)]
pub struct Annotations<'a> {
    /// It is the first of its day.
    pub new_day: bool,
    /// From here on the oldest names are forgotten.
    pub forgotten: bool,
    named: &'a [InferredName],
    text: &'a str,
}

impl<'a> Annotations<'a> {
    /// The next node whose number is called something, or one beyond all.
    #[inline(always)]
    pub(super) fn next(&self) -> u32 {
        self.named.first().map_or(u32::MAX, |first| first.node)
    }

    /// What a node's number is called, and by which record. Nodes may be asked for in any order.
    pub fn name_of(&self, node: u32) -> Option<(&'a str, u64)> {
        let at = self.named.binary_search_by_key(&node, |named| named.node).ok()?;
        let named = self.named.get(at)?;
        Some((self.text.get(named.start..named.end)?, named.record))
    }

    /// What a node's number is called, and by which record. Nodes are asked for in their order; those before are forgotten.
    #[inline(never)]
    pub(super) fn take(&mut self, node: u32) -> Option<(&'a str, u64)> {
        while let Some((first, rest)) = self.named.split_first().filter(|(first, _)| first.node <= node) {
            self.named = rest;
            if first.node == node {
                return Some((self.text.get(first.start..first.end)?, first.record));
            }
        }
        None
    }
}

/// The annotation_store of one or more records, kept until they are written.
#[derive(Default)]
pub struct AnnotationStore {
    named: Vec<InferredName>,
    text: String,
}

/// A record's own among [`AnnotationStore`].
#[derive(Clone, Copy, Default)]
pub struct AnnotationRange {
    new_day: bool,
    forgotten: bool,
    first: usize,
    end: usize,
}

/// A node whose number has a name: where its text stands, and the record that gave it.
#[derive(Clone, Copy)]
struct InferredName {
    node: u32,
    start: usize,
    end: usize,
    record: u64,
}

impl AnnotationStore {
    /// One record's.
    pub fn get(&self, at: AnnotationRange) -> Annotations<'_> {
        let named = self.named.get(at.first..at.end).unwrap_or(&[]);
        Annotations { new_day: at.new_day, forgotten: at.forgotten, named, text: &self.text }
    }

    /// Empties them, keeping what was allocated up to so many bytes.
    pub fn clear(&mut self, keep: usize) {
        self.named.clear();
        self.named.shrink_to(keep / size_of::<InferredName>());
        self.text.clear();
        self.text.shrink_to(keep);
    }

    /// How many bytes they take.
    pub fn bytes(&self) -> usize {
        size_of_val(self.named.as_slice()) + self.text.len()
    }

    /// All of them as one record's.
    #[cfg(test)]
    pub(super) fn all(&self) -> Annotations<'_> {
        self.get(AnnotationRange { end: self.named.len(), ..AnnotationRange::default() })
    }

    /// Notes what a node's number is called, and by which record. A record's nodes come in order.
    pub(super) fn call(&mut self, node: u32, name: &str, record: u64) {
        let start = self.text.len();
        self.text.push_str(name);
        self.named.push(InferredName { node, start, end: self.text.len(), record });
    }
}

/// The records so far.
pub struct Annotator {
    day: i64,
    names: NameInference,
}

impl Default for Annotator {
    fn default() -> Self {
        Annotator { day: i64::MIN, names: NameInference::default() }
    }
}

impl Annotator {
    /// Takes in the next record; what those before it have to do with it is added to `annotation_store`.
    pub fn next(&mut self, record: &Record<'_>, annotation_store: &mut AnnotationStore) -> AnnotationRange {
        let day = record.at.time.seconds.div_euclid(86_400);
        let mut annotations = AnnotationRange {
            new_day: day != self.day,
            first: annotation_store.named.len(),
            ..AnnotationRange::default()
        };
        self.day = day;
        if let Body::Message { message, tables, tree } = &record.body {
            let answers = message.reply.map(|reply| reply.record);
            let seen = SeenMessage { tables, tree, bytes: message.bytes, record: record.number, answers };
            annotations.forgotten = self.names.infer(seen, annotation_store);
        }
        annotations.end = annotation_store.named.len();
        annotations
    }
}
