//! Collects the pipeline's records when several threads work: into the batch of the thread that
//! decodes now.
//!
//! It knows neither threads nor what becomes of a batch: that is the [`BatchConsumer`]'s.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::out::{AllSums, Batch, Body, OutlineReader, Outlined, Purpose, Record, StreamNumber};
use crate::pipeline::{Output, StreamKey, StreamOver};
use crate::proto::Side;
use crate::tree::Tree;

/// Bytes of records in a batch. It is large enough that the change of threads costs little (the
/// decoder's data then moves to another core), and small enough to stay in a core's cache until it
/// is printed. Measured on two cores with 2 MiB of cache each, 45 MB of game traffic to JSON: 0.56
/// s with batches of 256 KiB, 0.47 with 512, 0.44 with 768 and with 1024, 0.57 with 2048; 0.70 with
/// one thread.
const BATCH: usize = 768 << 10;

/// A frame that closes a gap may complete many records at once. A batch that has grown to this many
/// bytes is consumed before more is added.
pub(super) const OVERFULL: usize = 4 << 20;

/// Does something with batches. Each thread has a copy, and consumes the batches that it decoded.
pub(super) trait BatchConsumer: Clone + Send + Sync {
    /// What this thread reads messages with that came as outlines.
    fn reader(&self) -> OutlineReader;

    /// The sums over the messages that were consumed. `None` if the pipeline counts them.
    fn all_sums(&self) -> Option<&AllSums>;

    /// What becomes of messages that come as outlines.
    fn purpose(&self) -> Purpose;

    /// Whether outlines of messages are enough at present.
    fn wants_outlines(&self) -> bool;

    /// How many notes of a side's messages of a stream were left out so far. `batch` has the last
    /// of these messages, and will be batch `number`.
    fn left_out(&self, number: u64, batch: &mut Batch, stream: StreamNumber, from: Side) -> u64;

    /// Consumes batch `number`, and leaves it empty.
    fn consume(&mut self, number: u64, batch: &mut Batch, reader: &mut OutlineReader);

    /// Whether it failed. It needs no more batches then.
    fn has_failed(&self) -> bool;

    /// A batch will never come. Releases the threads that wait for it.
    fn give_up(&self);
}

/// Collects records into batches, which are numbered from 0.
pub(super) struct BatchSink<C> {
    pub(super) batch: Batch,
    /// The number of this batch.
    pub(super) next: u64,
    pub(super) consumer: C,
    /// How many threads wait to decode.
    pub(super) waiting: Arc<AtomicUsize>,
    /// While a batch has fewer bytes than this, messages are added as outlines.
    outlined: usize,
}

impl<C: BatchConsumer> BatchSink<C> {
    pub(super) fn new(consumer: C) -> Self {
        BatchSink {
            batch: Batch::default(),
            next: 0,
            consumer,
            waiting: Arc::default(),
            outlined: 0,
        }
    }

    /// Chooses how much of the next batch is read as outlines: more if another thread waits when a
    /// batch is complete, otherwise less. Of fixed shares, a third to a half served two threads
    /// best, with game traffic.
    pub(super) fn balance(&mut self, waited_for: bool) {
        self.outlined = match waited_for {
            true => (self.outlined + BATCH / 16).min(BATCH),
            false => self.outlined.saturating_sub(BATCH / 64),
        };
    }

    fn consume_overfull(&mut self) {
        if self.batch.bytes() >= OVERFULL {
            self.consume();
        }
    }

    /// Another connection begins under the number of one that is over. A batch has records of one
    /// of them only: what is in its messages is added up by stream.
    fn consume_earlier(&mut self, stream: StreamNumber) {
        if self.batch.has_ended(stream) {
            self.consume();
        }
    }

    fn consume(&mut self) {
        let mut reader = self.consumer.reader();
        self.consumer.consume(self.next, &mut self.batch, &mut reader);
        self.next += 1;
    }
}

impl<C: BatchConsumer> Output for BatchSink<C> {
    fn record(&mut self, record: &Record<'_>) {
        if self.consumer.has_failed() {
            return;
        }
        self.consume_earlier((record.transport, record.stream));
        self.batch.push(record);
        // A message's tree follows. The batch is not complete before.
        if !matches!(record.body, Body::Message { .. }) {
            self.consume_overfull();
        }
    }

    fn take_tree(&mut self, tree: &mut Tree) {
        self.batch.take(tree);
        self.consume_overfull();
    }

    /// Whether the next message should come as an outline, so that its tree is made when it is
    /// consumed: at the beginning of a batch, while another thread waits to decode, and if no tree
    /// may be needed.
    fn wants_outlines(&self) -> bool {
        self.batch.bytes() < self.outlined
            || self.waiting.load(Ordering::Relaxed) > 0
            || self.consumer.wants_outlines()
    }

    fn outline(&mut self, record: &Record<'_, Outlined<'_>>) {
        if !self.consumer.has_failed() {
            self.consume_earlier((record.transport, record.stream));
            self.batch.outline(record, self.consumer.purpose());
            self.consume_overfull();
        }
    }

    fn defers(&self) -> bool {
        self.consumer.all_sums().is_some()
    }

    fn left_out(&mut self, stream: &StreamKey, from: Side) -> u64 {
        let stream = (stream.transport, stream.number);
        self.consume_earlier(stream);
        self.consumer.left_out(self.next, &mut self.batch, stream, from)
    }

    fn stream_over(&mut self, over: &StreamOver<'_>) {
        if let Some(all_sums) = self.consumer.all_sums() {
            all_sums.over(self.next, (over.key.transport, over.key.number));
        }
        self.batch.stream_over(over.into());
    }

    /// The run pauses when there is enough to consume. Before input that may block, every record
    /// is.
    fn wants_more(&mut self, may_block: bool) -> bool {
        let enough = self.batch.bytes() >= BATCH || may_block && !self.batch.is_empty();
        !enough && !self.consumer.has_failed()
    }
}
