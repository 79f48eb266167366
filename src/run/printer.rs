//! Prints records onto a stream: collects them in batches, which a pool of threads formats.

use std::io::{self, Write};
use std::sync::Arc;

use super::pool::{FormatBatch, FormatPool, TextSink};
use super::text::{Meter, most_text};
use super::writer::RecordWriter;
use crate::pipeline::Output;
use crate::print::{PrintedTime, PrintedTimes};
use crate::proto::LazyTables;
use crate::record::{Body, Record, StoredRecord};
use crate::tree::Tree;

/// Bytes of records in a batch for another thread: large enough that handing it over costs little,
/// and small enough to stay in a core's cache until it is formatted.
const BATCH: usize = 512 << 10;
/// Bytes that the records of an empty batch keep allocated together.
const KEEP: usize = 4 << 20;
/// A message of this many bytes, its tree included, may become tens of MiB of text.
const LARGE: usize = 128 << 10;

/// Prints records onto a stream.
pub struct Printer<W: Write> {
    pool: FormatPool<RecordFormat, W>,
    times: PrintedTimes,
    batch: RecordBatch,
    /// A batch with so many bytes is formatted.
    enough: usize,
}

/// Records that wait to be formatted.
#[derive(Default)]
struct RecordBatch {
    /// The records, and behind the used ones others whose memory is used again.
    records: Vec<(StoredRecord, PrintedTime)>,
    used: usize,
    bytes: usize,
}

/// Formats records.
#[derive(Clone)]
struct RecordFormat {
    writer: RecordWriter,
    tables: Arc<[LazyTables]>,
    /// The most bytes of text that one message may have.
    most: usize,
}

impl<W: Write + Send + 'static> Printer<W> {
    /// Prints records, which refer to `tables`, onto `to`, on `threads` threads with the one that
    /// decodes. `max_output` is how many bytes of text are allowed in addition to those that each
    /// byte of a message allows; messages that would exceed it are printed without their fields.
    pub fn new(
        writer: RecordWriter,
        tables: Arc<[LazyTables]>,
        max_output: Option<u64>,
        threads: usize,
        to: W,
    ) -> Self {
        let times = PrintedTimes::in_zone(writer.zone());
        let format = RecordFormat { writer, tables, most: most_text(max_output) };
        let pool = FormatPool::new(format, Meter::new(max_output), to, threads);
        let enough = if pool.has_threads() { BATCH } else { 0 };
        Printer { pool, times, batch: RecordBatch::default(), enough }
    }

    /// Writes everything that was printed so far.
    pub fn flush(&mut self) {
        self.pool.flush(&mut self.batch);
    }

    /// How many messages were printed without their fields.
    pub fn shortened(&self) -> u64 {
        self.pool.shortened()
    }

    /// The first error of writing.
    pub fn take_error(&mut self) -> Option<io::Error> {
        self.pool.take_error()
    }

    fn hand_on(&mut self) {
        if self.batch.bytes >= self.enough {
            self.pool.add(&mut self.batch);
        }
    }
}

impl<W: Write + Send + 'static> Output for Printer<W> {
    fn record(&mut self, record: &Record<'_>) {
        if self.pool.has_failed() {
            return;
        }
        self.batch.push(record, self.times.next(record));
        // A message is complete once its tree came.
        if !matches!(record.body, Body::Message { .. }) {
            self.hand_on();
        }
    }

    fn take_tree(&mut self, tree: &mut Tree) {
        if !self.pool.has_failed() {
            self.batch.take_tree(tree);
            self.hand_on();
        }
    }

    fn wants_more(&mut self, may_block: bool) -> bool {
        if may_block {
            self.flush();
        }
        !self.pool.has_failed()
    }
}

impl RecordBatch {
    fn push(&mut self, record: &Record<'_>, time: PrintedTime) {
        match self.records.get_mut(self.used) {
            Some((stored, of)) => {
                stored.store(record);
                *of = time;
            }
            None => self.records.push((StoredRecord::new(record), time)),
        }
        self.used += 1;
        if let (false, Some((stored, _))) =
            (matches!(record.body, Body::Message { .. }), self.last())
        {
            self.bytes += stored.size();
        }
    }

    /// Takes the tree of the last record.
    fn take_tree(&mut self, tree: &mut Tree) {
        if let Some((stored, _)) = self.last() {
            stored.take_tree(tree);
            self.bytes += stored.size();
        }
    }

    fn last(&mut self) -> Option<&mut (StoredRecord, PrintedTime)> {
        self.records.get_mut(self.used.checked_sub(1)?)
    }

    /// Empties it, and gives back memory beyond [`KEEP`].
    fn clear(&mut self) {
        (self.used, self.bytes) = (0, 0);
        let mut left = KEEP;
        self.records.retain(|(stored, _)| match left.checked_sub(stored.allocated()) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        });
    }
}

impl FormatBatch for RecordFormat {
    type Batch = RecordBatch;

    fn format(&mut self, batch: &mut RecordBatch, to: &mut TextSink<'_>) {
        let RecordFormat { writer, tables, most } = self;
        for (stored, time) in batch.records.iter().take(batch.used) {
            let Some(tables) = LazyTables::of(tables, stored.protocol()) else { continue };
            if stored.size() > LARGE {
                to.wait_for_turn();
            }
            stored.view(tables.get(), |record| to.text().record(writer, record, *time, *most));
        }
        batch.clear();
    }
}
