//! Reads batches on several threads, and gives their records to an output that counts them, in
//! order.

use std::sync::Arc;

use super::batch_sink::{BatchConsumer, OVERFULL};
use super::choice::reading;
use super::sequencer::Sequencer;
use crate::filter::Filter;
use crate::out::{
    AllSums, Batch, BatchReading, Counting, OutlineReader, Purpose, RecordChoice, Replay,
    StreamNumber,
};
use crate::pipeline::Setup;
use crate::proto::{LazyTables, Side};
use crate::table::MessageLimits;

/// Bytes that each part of a batch keeps allocated for the next one.
const KEEP: usize = 1 << 20;

/// Gives the records of batches to an output. All threads share it.
pub(super) struct Replayer<O> {
    to: Arc<Sequencer<O>>,
    filter: Option<Arc<Filter>>,
    tables: Arc<[LazyTables]>,
    limits: MessageLimits,
    all_sums: Arc<AllSums>,
}

impl<O> Replayer<O> {
    /// Gives `to` the records of runs with `setup`. Which of them it wants is what `filter` keeps,
    /// which needs no names.
    pub(super) fn new(to: O, filter: Option<Arc<Filter>>, setup: &Setup) -> Self {
        let tables = Arc::clone(&setup.tables);
        let limits = setup.options.limits();
        Replayer {
            to: Arc::new(Sequencer::new(to)),
            filter,
            tables,
            limits,
            all_sums: Arc::default(),
        }
    }
}

impl<O> Clone for Replayer<O> {
    fn clone(&self) -> Self {
        let Replayer { to, filter, tables, limits, all_sums } = self;
        let to = Arc::clone(to);
        let tables = Arc::clone(tables);
        let all_sums = Arc::clone(all_sums);
        Replayer { to, filter: filter.clone(), tables, limits: *limits, all_sums }
    }
}

impl<O: Replay + Send> BatchConsumer for Replayer<O> {
    fn reader(&self) -> OutlineReader {
        OutlineReader::new(self.limits)
    }

    fn all_sums(&self) -> Option<&AllSums> {
        Some(&self.all_sums)
    }

    fn purpose(&self) -> Purpose {
        if self.filter.is_some() { Purpose::Choice } else { Purpose::Outlines }
    }

    fn wants_outlines(&self) -> bool {
        self.filter.as_ref().is_none_or(|filter| RecordChoice::asks_outlines(&**filter, true))
    }

    fn left_out(&self, number: u64, batch: &mut Batch, stream: StreamNumber, from: Side) -> u64 {
        let mut reader = self.reader();
        let reading = reading(&self.tables, &mut reader, self.filter.as_deref());
        let counting = Counting { all_sums: &self.all_sums, number };
        batch.left_out(stream, from, &mut BatchReading { outlines: true, ..reading }, counting)
    }

    fn consume(&mut self, number: u64, batch: &mut Batch, reader: &mut OutlineReader) {
        let counting = Counting { all_sums: &self.all_sums, number };
        let reading = reading(&self.tables, reader, self.filter.as_deref());
        let mut reading = BatchReading { outlines: true, ..reading };
        batch.choose(&mut reading, Some(counting));
        batch.count_ended(counting);
        batch.put_sums(counting);
        self.to.take(number, |to| batch.replay(&mut reading, to));
        if batch.bytes() > OVERFULL {
            *reading.reader = OutlineReader::new(self.limits);
        }
        batch.clear(KEEP);
    }

    fn has_failed(&self) -> bool {
        false
    }

    fn give_up(&self) {
        self.to.end();
        self.all_sums.end();
    }
}
