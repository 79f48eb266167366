//! The parts of a record's tree that depend on earlier records: names of numbers, the line of a new
//! day. [`Annotator`] makes them once, in capture order. After that, any thread can write the tree
//! at any time, without state of its own.

use super::annotation_store::{AnnotationRange, AnnotationStore, Annotations};
use super::inferred::{InferenceMessage, NameInference};
use crate::out::{Body, Outlined, Record, Zone};
use crate::table::OutlineOf;

/// A record's time in nanoseconds since 1970. Times beyond the year 2262 wrap around; only
/// differences are used.
fn nanoseconds<B>(record: &Record<'_, B>) -> i64 {
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

    /// Learns from the next record, which is printed. What earlier records add to it goes into
    /// `annotation_store`; the range returned finds it there.
    pub fn next(
        &mut self,
        record: &Record<'_>,
        annotation_store: &mut AnnotationStore,
    ) -> AnnotationRange {
        let mut range = self.see(record, annotation_store);
        self.print(record, &mut range);
        range
    }

    /// The same for a record that may not be printed. If it is printed, the caller then calls
    /// [`print`](Annotator::print).
    pub fn see(
        &mut self,
        record: &Record<'_>,
        annotation_store: &mut AnnotationStore,
    ) -> AnnotationRange {
        let now = nanoseconds(record);
        let since_first = now.wrapping_sub(*self.first.get_or_insert(now));
        let first = annotation_store.len();
        self.forgotten |= self.names_in(record, annotation_store);
        AnnotationRange {
            since_first,
            first,
            end: annotation_store.len(),
            ..AnnotationRange::default()
        }
    }

    /// The same for a record that names nothing, answers nothing and is not printed.
    pub fn pass<B>(&mut self, record: &Record<'_, B>) {
        self.first.get_or_insert(nanoseconds(record));
    }

    /// Completes the annotations of a record that is printed, with those that depend on the record
    /// printed before it.
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
        let stream = (record.transport, record.stream);
        let seen = InferenceMessage {
            tables,
            tree,
            bytes: message.bytes,
            record: record.number,
            answers,
            stream,
        };
        self.names.infer(seen, annotation_store)
    }
}

/// Bytes that stay allocated for the names in one record.
const KEEP: usize = 64 << 10;

/// Annotates one record at a time, for an output that needs the annotations no longer than the
/// record.
#[derive(Default)]
pub struct RecordAnnotator {
    annotator: Annotator,
    store: AnnotationStore,
}

impl RecordAnnotator {
    /// One that tells which [names](RecordAnnotator::new_names) it learned.
    pub fn telling_names() -> RecordAnnotator {
        let annotator = Annotator { names: NameInference::telling(), ..Annotator::default() };
        RecordAnnotator { annotator, ..RecordAnnotator::default() }
    }

    /// The names that numbers got since the last call.
    pub fn new_names(&mut self) -> impl Iterator<Item = String> {
        self.annotator.names.new_names()
    }

    /// Whether the annotations of later records may depend on a message of which only the outline
    /// was read. It is no reply.
    pub fn learns_from(&mut self, record: &Record<'_, Outlined<'_>>) -> bool {
        let Outlined { id, tables, outline, .. } = record.body;
        let layout = tables.message(id).and_then(|def| def.layout);
        self.annotator.names.learns_from(tables, OutlineOf { layout, outline })
    }

    /// The annotations of the next record.
    pub fn next(&mut self, record: &Record<'_>) -> Annotations<'_> {
        self.store.clear(KEEP);
        let range = self.annotator.next(record, &mut self.store);
        self.store.get(range)
    }
}
