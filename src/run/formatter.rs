//! Formats batches of records as text, those that a filter keeps. Several threads do so at the same time; only the annotations, which depend on earlier records, are
//! made by one thread at a time, in the order of the batches.

use std::io::Write;
use std::sync::Arc;

use super::ordered::OrderedWriter;
use super::sequencer::Sequencer;
use super::text::Text;
use super::writer::RecordWriter;
use crate::filter::Filter;
use crate::out::tree::{Annotations, Annotator};
use crate::out::{
    Batch, BatchReading, Body, Counting, Ledger, OutlineReader, Outlined, Record, RecordChoice, StreamNumber,
};
use crate::pipeline::Setup;
use crate::proto::{LazyTables, Side};
use crate::table::MessageLimits;

/// A frame that closes a gap may complete many records at once. A batch that has grown to this many bytes is printed before more is added.
pub(super) const OVERFULL: usize = 4 << 20;
/// Bytes that each part of a batch keeps allocated for the next one.
const KEEP: usize = 1 << 20;

/// Text of this many bytes is written if it is next: what is written early stays in the core's cache.
const READY: usize = 64 << 10;
/// Text of this many bytes is written before more is made. For all threads together that is 32 MiB.
const PART: usize = 4 << 20;
/// A message of this many bytes, its tree included, may become tens of MiB of text: only the thread whose batch is written next makes such
/// text, so that there is one at a time.
const LARGE: usize = 128 << 10;

/// Whether a record's text may be very large.
fn is_large(record: &Record<'_>) -> bool {
    matches!(record.body, Body::Message { message, tree, .. } if message.bytes.len() + tree.size() > LARGE)
}

/// Turns batches into text. Each thread has one.
#[derive(Clone)]
pub struct Formatter {
    pub(super) writer: RecordWriter,
    tables: Arc<[LazyTables]>,
    /// The bounds of each message.
    limits: MessageLimits,
    /// The most bytes of text that one message may have.
    pub(super) most: usize,
    /// Which records are formatted. All threads share it.
    filter: Option<Arc<Filter>>,
    /// Makes the annotations of trees, which depend on earlier records. All threads share it.
    annotator: Option<Arc<Sequencer<Annotator>>>,
    /// Counts what is in messages, if they are [deferred](crate::tree::Deferring). All threads share it.
    ledger: Option<Arc<Ledger>>,
}

impl Formatter {
    /// Formats the records of runs with `setup`.
    pub fn new(writer: RecordWriter, setup: &Setup) -> Formatter {
        let (tables, limits) = (Arc::clone(&setup.tables), setup.options.limits());
        // Pseudonyms are put into trees before anything is written.
        let ledger = setup.pseudonyms.is_none().then(Arc::default);
        Formatter { writer, tables, limits, most: usize::MAX, filter: None, annotator: None, ledger }
    }

    /// Formats, of batches, the records that `filter` keeps.
    pub(super) fn for_batches(self, filter: Option<Arc<Filter>>) -> Formatter {
        let annotator = self.annotator(filter.as_deref()).map(|annotator| Arc::new(Sequencer::new(annotator)));
        Formatter { filter, annotator, ..self }
    }

    /// What makes the annotations that the text or the filter needs.
    pub(super) fn annotator(&self, filter: Option<&Filter>) -> Option<Annotator> {
        self.writer.annotator().or_else(|| filter.is_some_and(Filter::wants_names).then(Annotator::default))
    }

    /// Whether outlines of messages are enough at present, since the filter drops many messages by these.
    pub(super) fn judges_outlines(&self) -> bool {
        self.filter.as_ref().is_some_and(|filter| filter.judges_outlines())
    }

    /// The sums over the messages that were formatted, if it counts them.
    pub(super) fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_deref()
    }

    /// How many notes of a side's messages of a stream were left out so far. `batch` has the last of these messages, and will be batch `number`.
    pub(super) fn left_out(&self, number: u64, batch: &mut Batch, direction: (StreamNumber, Side)) -> u64 {
        let Some(ledger) = &self.ledger else { return 0 };
        let (mut reader, learns) = (self.reader(), self.annotator.is_some());
        let reading = &mut reading(&self.tables, &mut reader, self.filter.as_deref(), learns);
        batch.left_out(direction, reading, Counting { ledger, number })
    }

    /// Reads those messages of a batch that came as outlines.
    pub(super) fn reader(&self) -> OutlineReader {
        OutlineReader::new(self.limits)
    }

    /// Appends the text of batch `number`, and empties the batch. If the text becomes long, writes its beginning to
    /// `ordered`.
    pub(super) fn format<W: Write>(
        &mut self,
        number: u64,
        batch: &mut Batch,
        reader: &mut OutlineReader,
        text: &mut Text,
        ordered: &OrderedWriter<W>,
    ) {
        let Formatter { writer, tables, filter, annotator, ledger, most, .. } = self;
        let mut counting = ledger.as_deref().map(|ledger| Counting { ledger, number });
        let mut reading = reading(tables, reader, filter.as_deref(), annotator.is_some());
        // Messages are read before the wait for the annotator, so that other threads wait less for this one.
        if filter.is_some() {
            batch.choose(&mut reading, counting);
            // It is complete: batches after it need not wait until it is written.
            counting.take().into_iter().for_each(|counting| batch.put_sums(counting));
        } else if annotator.is_some() {
            batch.read(tables, reading.reader);
        }
        if let Some(annotator) = annotator {
            annotator.take(number, |annotator| batch.remember(&mut reading, annotator));
        }
        let mut ready = READY;
        batch.each(&mut reading, counting, |record, annotations| {
            if text.len() > PART || is_large(record) {
                ordered.put_part(number, text);
            } else if text.len() > ready {
                ordered.put_ready_part(number, text);
                ready = text.len() + READY;
            }
            text.record(writer, record, annotations, *most);
        });
        counting.into_iter().for_each(|counting| batch.put_sums(counting));
        if batch.bytes() > OVERFULL {
            *reader = self.reader();
        }
        batch.clear(KEEP);
    }

    /// Releases the threads that wait for a batch which will never be formatted.
    pub(super) fn give_up(&self) {
        if let Some(annotator) = &self.annotator {
            annotator.end();
        }
        if let Some(ledger) = &self.ledger {
            ledger.end();
        }
    }
}

/// What a batch is read with. With `learns`, the names in records that the filter does not keep matter.
fn reading<'r>(
    tables: &'r [LazyTables],
    reader: &'r mut OutlineReader,
    filter: Option<&'r Filter>,
    learns: bool,
) -> BatchReading<'r> {
    BatchReading { tables, reader, choice: filter.map(|filter| filter as &dyn RecordChoice), learns }
}

impl RecordChoice for Filter {
    fn drops(&self, record: &Record<'_, Outlined<'_>>) -> bool {
        Filter::drops(self, record)
    }

    fn judges_outlines(&self) -> bool {
        !Filter::wants_names(self) && Filter::judges_outlines(self)
    }

    fn wants_names(&self) -> bool {
        Filter::wants_names(self)
    }

    fn keeps(&self, record: &Record<'_>, annotations: Annotations<'_>) -> bool {
        Filter::keeps(self, record, annotations)
    }
}
