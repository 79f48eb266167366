//! Collects the pipeline's records when several threads print: into the batch of the thread that decodes now.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::formatter::{Formatter, OVERFULL};
use super::ordered::OrderedWriter;
use super::text::{Meter, Text};
use crate::out::{Batch, Body, Outlined, Record, StreamNumber};
use crate::proto::Side;
use crate::tree::Tree;

/// Bytes of records in a batch. It is large enough that the change of threads costs little (the decoder's data then moves to another core),
/// and small enough to stay in a core's cache until it is printed. Measured on two cores with 2 MiB of cache each, 45 MB of game traffic to
/// JSON: 0.56 s with batches of 256 KiB, 0.47 with 512, 0.44 with 768 and with 1024, 0.57 with 2048; 0.70 with one thread.
const BATCH: usize = 768 << 10;

/// Collects records into batches, which are numbered from 0.
pub(super) struct BatchSink<W> {
    pub(super) batch: Batch,
    /// The number of this batch.
    pub(super) next: u64,
    pub(super) ordered: Arc<OrderedWriter<W>>,
    pub(super) formatter: Formatter,
    /// How many threads wait to decode.
    pub(super) waiting: Arc<AtomicUsize>,
    /// While a batch has fewer bytes than this, messages are added as outlines.
    outlined: usize,
}

impl<W: std::io::Write> BatchSink<W> {
    pub(super) fn new(formatter: Formatter, meter: Meter, to: W) -> Self {
        let ordered = Arc::new(OrderedWriter::new(meter, to));
        BatchSink { batch: Batch::default(), next: 0, ordered, formatter, waiting: Arc::default(), outlined: 0 }
    }

    /// Whether the next message should come as an outline, so that its tree is made when it is printed: at the beginning of a batch, and while another thread
    /// waits to decode. So should those that the filter may drop without their trees.
    pub(super) fn wants_outlines(&self) -> bool {
        self.batch.bytes() < self.outlined
            || self.waiting.load(Ordering::Relaxed) > 0
            || self.formatter.judges_outlines()
    }

    /// Chooses how much of the next batch is read as outlines: more if another thread waits when a batch is complete, otherwise less. Of fixed shares, a third to a half
    /// served two threads best, with game traffic.
    pub(super) fn balance(&mut self, waited_for: bool) {
        self.outlined = match waited_for {
            true => (self.outlined + BATCH / 16).min(BATCH),
            false => self.outlined.saturating_sub(BATCH / 64),
        };
    }

    /// Adds a record.
    pub(super) fn record(&mut self, record: &Record<'_>) {
        self.batch.push(record);
        // A message's tree follows. The batch is not complete before.
        if !matches!(record.body, Body::Message { .. }) {
            self.print_overfull();
        }
    }

    /// Takes the tree of the message that was the last record.
    pub(super) fn take(&mut self, tree: &mut Tree) {
        self.batch.take(tree);
        self.print_overfull();
    }

    /// Adds a message that came as an outline.
    pub(super) fn outline(&mut self, record: &Record<'_, Outlined<'_>>) {
        self.batch.outline(record);
        self.print_overfull();
    }

    /// Whether messages may be [deferred](crate::tree::Deferring).
    pub(super) fn defers(&self) -> bool {
        self.formatter.ledger().is_some()
    }

    /// How many notes of a side's messages of a stream were left out so far.
    pub(super) fn left_out(&mut self, stream: StreamNumber, from: Side) -> u64 {
        self.formatter.left_out(self.next, &mut self.batch, (stream, from))
    }

    fn print_overfull(&mut self) {
        if self.batch.bytes() >= OVERFULL {
            let mut text = Text::default();
            let mut reader = self.formatter.reader();
            self.formatter.format(self.next, &mut self.batch, &mut reader, &mut text, &self.ordered);
            self.ordered.put(self.next, text);
            self.next += 1;
        }
    }

    /// Whether the batch should be printed now. Before input that may block, every record should.
    pub(super) fn is_enough(&self, may_block: bool) -> bool {
        self.batch.bytes() >= BATCH || may_block && !self.batch.is_empty()
    }
}
