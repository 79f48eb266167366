//! Formats batches of records as text. Several threads do so at the same time; only the annotations, which depend on earlier records, are made
//! by one thread at a time, in the order of the batches.

use std::io::Write;
use std::sync::Arc;

use super::ordered::OrderedWriter;
use super::sequencer::Sequencer;
use super::text::Text;
use super::writer::RecordWriter;
use crate::out::tree::Annotator;
use crate::out::{Batch, Body, Counting, Ledger, OutlineReader, Record, StreamNumber};
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
    /// Makes the annotations of trees, which depend on earlier records. All threads share it.
    annotator: Option<Arc<Sequencer<Annotator>>>,
    /// Counts what is in messages, if they are [deferred](crate::tree::Deferring). All threads share it.
    ledger: Option<Arc<Ledger>>,
}

impl Formatter {
    /// Formats the records of runs with `setup`.
    pub fn new(writer: RecordWriter, setup: &Setup) -> Formatter {
        let (tables, limits) = (Arc::clone(&setup.tables), setup.options.limits());
        let annotator = writer.annotator().map(|annotator| Arc::new(Sequencer::new(annotator)));
        // Pseudonyms are put into trees before anything is written.
        let ledger = setup.pseudonyms.is_none().then(Arc::default);
        Formatter { writer, tables, limits, most: usize::MAX, annotator, ledger }
    }

    /// Leaves annotations to the caller, which makes them before it adds records to batches. `None` if no annotations
    /// are wanted.
    pub(super) fn take_annotator(&mut self) -> Option<Annotator> {
        self.annotator.take().and_then(|_| self.writer.annotator())
    }

    /// Leaves it to the caller to count what is in messages: it needs all trees before they are written.
    pub(super) fn defer_nothing(&mut self) {
        self.ledger = None;
    }

    /// The sums over the messages that were formatted, if it counts them.
    pub(super) fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_deref()
    }

    /// How many notes of a side's messages of a stream were left out so far. `batch` has the last of these messages, and will be batch `number`.
    pub(super) fn left_out(&self, number: u64, batch: &mut Batch, stream: StreamNumber, from: Side) -> u64 {
        let Some(ledger) = &self.ledger else { return 0 };
        batch.left_out(stream, from, &self.tables, &mut self.reader(), Counting { ledger, number })
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
        if let Some(annotator) = &self.annotator {
            // Messages are read before the wait, so that other threads wait less for this one.
            batch.read(&self.tables, reader);
            annotator.take(number, |annotator| batch.remember(&self.tables, reader, annotator));
        }
        let mut ready = READY;
        let counting = self.ledger.as_deref().map(|ledger| Counting { ledger, number });
        batch.each(&self.tables, reader, counting, |record, annotations| {
            if text.len() > PART || is_large(record) {
                ordered.put_part(number, text);
            } else if text.len() > ready {
                ordered.put_ready_part(number, text);
                ready = text.len() + READY;
            }
            text.record(&mut self.writer, record, annotations, self.most);
        });
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
