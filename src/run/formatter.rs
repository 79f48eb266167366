//! Formats batches of records as text, those that a filter keeps. Several threads do so at the same
//! time; only the annotations, which depend on earlier records, are made by one thread at a time,
//! in the order of the batches.

use std::io::{self, Write};
use std::sync::Arc;

use super::batch_sink::{BatchConsumer, OVERFULL};
use super::choice::reading;
use super::ordered::OrderedWriter;
use super::sequencer::Sequencer;
use super::text::Text;
use super::writer::RecordWriter;
use crate::filter::Filter;
use crate::out::tree::Annotator;
use crate::out::{
    AllSums, Batch, BatchReading, Body, Counting, OutlineReader, Purpose, Record, RecordChoice,
    StreamNumber,
};
use crate::pipeline::Setup;
use crate::proto::{LazyTables, Side};
use crate::table::MessageLimits;

/// Bytes that each part of a batch keeps allocated for the next one.
const KEEP: usize = 1 << 20;

/// Text of this many bytes is written if it is next: what is written early stays in the core's
/// cache.
const READY: usize = 64 << 10;
/// Text of this many bytes is written before more is made. For all threads together that is 32 MiB.
const PART: usize = 4 << 20;
/// A message of this many bytes, its tree included, may become tens of MiB of text: only the thread
/// whose batch is written next makes such text, so that there is one at a time.
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
    /// Counts what is in messages, if they are [deferred](crate::tree::Deferring). All threads
    /// share it.
    all_sums: Option<Arc<AllSums>>,
}

impl Formatter {
    /// Formats the records of runs with `setup`.
    pub fn new(writer: RecordWriter, setup: &Setup) -> Formatter {
        let tables = Arc::clone(&setup.tables);
        let limits = setup.options.limits();
        // Pseudonyms are put into trees before anything is written.
        let all_sums = setup.pseudonyms.is_none().then(Arc::default);
        Formatter {
            writer,
            tables,
            limits,
            most: usize::MAX,
            filter: None,
            annotator: None,
            all_sums,
        }
    }

    /// Formats, of batches, the records that `filter` keeps.
    pub(super) fn for_batches(self, filter: Option<Arc<Filter>>) -> Formatter {
        let annotator =
            self.annotator(filter.as_deref()).map(|annotator| Arc::new(Sequencer::new(annotator)));
        Formatter { filter, annotator, ..self }
    }

    /// What makes the annotations that the text or the filter needs.
    pub(super) fn annotator(&self, filter: Option<&Filter>) -> Option<Annotator> {
        self.writer
            .annotator()
            .or_else(|| filter.is_some_and(Filter::wants_names).then(Annotator::default))
    }

    /// Appends the text of batch `number`, and empties the batch. If the text becomes long, writes
    /// its beginning to `ordered`.
    fn format<W: Write>(
        &mut self,
        number: u64,
        batch: &mut Batch,
        reader: &mut OutlineReader,
        text: &mut Text,
        ordered: &OrderedWriter<W>,
    ) {
        let Formatter { writer, tables, filter, annotator, all_sums, most, .. } = self;
        let mut counting = all_sums.as_deref().map(|all_sums| Counting { all_sums, number });
        let learns = annotator.is_some();
        let mut reading = BatchReading { learns, ..reading(tables, reader, filter.as_deref()) };
        // Messages are read before the wait for the annotator, so that other threads wait less for
        // this one.
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
            *reader = OutlineReader::new(self.limits);
        }
        batch.clear(KEEP);
    }
}

/// Formats batches, and writes their texts in order.
pub(super) struct TextBatches<W> {
    formatter: Formatter,
    pub(super) ordered: Arc<OrderedWriter<W>>,
    text: Text,
}

impl<W> TextBatches<W> {
    pub(super) fn new(formatter: Formatter, ordered: OrderedWriter<W>) -> Self {
        TextBatches { formatter, ordered: Arc::new(ordered), text: Text::default() }
    }
}

impl<W> Clone for TextBatches<W> {
    fn clone(&self) -> Self {
        TextBatches {
            formatter: self.formatter.clone(),
            ordered: Arc::clone(&self.ordered),
            text: Text::default(),
        }
    }
}

impl<W: Write + Send> BatchConsumer for TextBatches<W> {
    fn reader(&self) -> OutlineReader {
        OutlineReader::new(self.formatter.limits)
    }

    fn all_sums(&self) -> Option<&AllSums> {
        self.formatter.all_sums.as_deref()
    }

    fn purpose(&self) -> Purpose {
        Purpose::Trees
    }

    /// A filter drops many messages by these.
    fn wants_outlines(&self) -> bool {
        self.formatter
            .filter
            .as_ref()
            .is_some_and(|filter| RecordChoice::asks_outlines(&**filter, false))
    }

    fn left_out(&self, number: u64, batch: &mut Batch, stream: StreamNumber, from: Side) -> u64 {
        let Formatter { tables, filter, annotator, all_sums: Some(all_sums), .. } = &self.formatter
        else {
            return 0;
        };
        let mut reader = self.reader();
        let learns = annotator.is_some();
        let reading =
            &mut BatchReading { learns, ..reading(tables, &mut reader, filter.as_deref()) };
        batch.left_out(stream, from, reading, Counting { all_sums, number })
    }

    fn consume(&mut self, number: u64, batch: &mut Batch, reader: &mut OutlineReader) {
        self.formatter.format(number, batch, reader, &mut self.text, &self.ordered);
        self.text = self.ordered.put(number, std::mem::take(&mut self.text));
    }

    fn has_failed(&self) -> bool {
        self.ordered.has_failed()
    }

    fn give_up(&self) {
        self.ordered.fail(io::Error::other("a worker thread ended too early"));
        self.formatter.annotator.iter().for_each(|annotator| annotator.end());
        self.formatter.all_sums.iter().for_each(|all_sums| all_sums.end());
    }
}
