//! What a record's tree shows because of earlier records: names of numbers, the line of a new day. [`Annotator`] finds it in capture order,
//! once; a tree can then be written by any thread, at any time, without state of its own.

use super::inferred::{InferenceMessage, NameInference};
use crate::out::{Body, Record, Zone};

/// What earlier records add to one record's tree.
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
    pub(super) fn next(&self) -> u32 {
        self.named.first().map_or(u32::MAX, |first| first.node)
    }

    /// The name of a node's number and the record that gave it. Nodes may be asked for in any order.
    pub fn name_of(&self, node: u32) -> Option<(&'a str, u64)> {
        let at = self.named.binary_search_by_key(&node, |named| named.node).ok()?;
        let named = self.named.get(at)?;
        Some((self.text.get(named.start..named.end)?, named.record))
    }

    /// All nodes whose numbers have names, in ascending order, each with its name and the record that gave it.
    pub fn names(&self) -> impl Iterator<Item = (u32, &'a str, u64)> {
        let text = self.text;
        self.named.iter().filter_map(|named| Some((named.node, text.get(named.start..named.end)?, named.record)))
    }

    /// The name of a node's number and the record that gave it. Nodes have to be asked for in ascending order: names of earlier nodes are
    /// dropped.
    #[inline(never)]
    pub(in crate::out) fn take(&mut self, node: u32) -> Option<(&'a str, u64)> {
        while let Some((first, rest)) = self.named.split_first().filter(|(first, _)| first.node <= node) {
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
    new_day: bool,
    forgotten: bool,
    since_first: i64,
    since_previous: i64,
    first: usize,
    end: usize,
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

    /// Adds the name of a node's number, given by `record`. A record's nodes have to be added in ascending order.
    pub(super) fn call(&mut self, node: u32, name: &str, record: u64) {
        let start = self.text.len();
        self.text.push_str(name);
        self.named.push(InferredName { node, start, end: self.text.len(), record });
    }
}

/// A record's time in nanoseconds since 1970. Times beyond the year 2262 wrap around; only differences are used.
fn nanoseconds(record: &Record<'_>) -> i64 {
    let time = record.at.time;
    time.seconds.wrapping_mul(1_000_000_000).wrapping_add(time.nanos.into())
}

/// Which time of a record is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeForm {
    /// The time of day.
    #[default]
    Absolute,
    /// Seconds since the capture's first record.
    Relative,
    /// Seconds since the record printed before.
    Delta,
}

/// Reads records in capture order and finds what to show beside later ones.
#[derive(Default)]
pub struct Annotator {
    zone: Zone,
    /// The day of the record before, counted from 1970, and how far its clocks were ahead of UTC.
    day: Option<(i64, i64)>,
    names: NameInference,
    /// The times of the first record, and of the last one that was printed, in nanoseconds.
    first: Option<i64>,
    previous: Option<i64>,
    /// The bound on names was reached, and no record that is printed said so yet.
    forgotten: bool,
}

impl Annotator {
    /// An annotator for which days begin as in a zone.
    pub fn in_zone(zone: Zone) -> Annotator {
        Annotator { zone, ..Annotator::default() }
    }

    /// Learns from the next record, which is printed. What earlier records add to it goes into `annotation_store`; the range returned finds
    /// it there.
    pub fn next(&mut self, record: &Record<'_>, annotation_store: &mut AnnotationStore) -> AnnotationRange {
        let mut range = self.see(record, annotation_store);
        self.print(record, &mut range);
        range
    }

    /// The same for a record of which it is not known yet whether it is printed. If it is, [`print`](Annotator::print) follows.
    pub fn see(&mut self, record: &Record<'_>, annotation_store: &mut AnnotationStore) -> AnnotationRange {
        let now = nanoseconds(record);
        let since_first = now.wrapping_sub(*self.first.get_or_insert(now));
        let first = annotation_store.named.len();
        self.forgotten |= self.names_in(record, annotation_store);
        AnnotationRange { since_first, first, end: annotation_store.named.len(), ..AnnotationRange::default() }
    }

    /// Completes the annotations of a record that is printed: what it owes to the record printed before it.
    pub fn print(&mut self, record: &Record<'_>, range: &mut AnnotationRange) {
        let seconds = record.at.time.seconds;
        let offset = self.zone.offset(seconds);
        let day = Some((seconds.saturating_add(offset).div_euclid(86_400), offset));
        range.new_day = day != self.day;
        self.day = day;
        let now = nanoseconds(record);
        range.since_previous = now.wrapping_sub(self.previous.replace(now).unwrap_or(now));
        range.forgotten = std::mem::take(&mut self.forgotten);
    }

    fn names_in(&mut self, record: &Record<'_>, annotation_store: &mut AnnotationStore) -> bool {
        let Body::Message { message, tables, tree } = &record.body else { return false };
        let answers = message.reply.map(|reply| reply.record);
        let seen = InferenceMessage { tables, tree, bytes: message.bytes, record: record.number, answers };
        self.names.infer(seen, annotation_store)
    }
}

/// Bytes that stay allocated for the names in one record.
const KEEP: usize = 64 << 10;

/// Annotates one record at a time, for an output that needs the annotations no longer than the record.
#[derive(Default)]
pub struct RecordAnnotator {
    annotator: Annotator,
    store: AnnotationStore,
}

impl RecordAnnotator {
    /// The annotations of the next record.
    pub fn next(&mut self, record: &Record<'_>) -> Annotations<'_> {
        self.store.clear(KEEP);
        let range = self.annotator.next(record, &mut self.store);
        self.store.get(range)
    }
}
