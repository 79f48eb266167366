//! Adds up what is in the messages of batches: their bytes, their problems, and the notes that were
//! left out. Threads read batches at the same time; the sums are made in the order of the batches,
//! so that a batch can ask what was in all messages before it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::facts::StreamMap;
use crate::hashing::SeededMap;
use crate::proto::{Side, Transport};
use crate::session::{Counts, SaidOnce};
use crate::tree::{Outline, Problem, ProblemCounts, Tree};

/// A stream, by its transport and number.
pub type StreamNumber = (Transport, u32);

/// The sums of one stream.
#[derive(Clone, Copy, Default)]
pub(super) struct StreamSums {
    /// Of the client's messages and of the server's.
    bytes: [Counts; 2],
    once: SaidOnce,
    /// Whether it is over.
    over: bool,
}

impl StreamSums {
    fn add(&mut self, later: &StreamSums) {
        for (sum, more) in self.bytes.iter_mut().zip(later.bytes) {
            sum.add(more);
        }
        self.once.add(later.once);
        self.over |= later.over;
    }

    fn bytes(&mut self, from: Side) -> &mut Counts {
        from.of(&mut self.bytes)
    }
}

/// A message whose content is counted.
pub(super) struct MessageToCount {
    pub(super) stream: StreamNumber,
    pub(super) from: Side,
    /// Its length in bytes.
    pub(super) length: usize,
    /// The text of a note that is [said once](crate::session::Message::once).
    pub(super) once: Option<&'static str>,
}

/// Where a batch that counts what is in its messages adds it up.
#[derive(Clone, Copy)]
pub struct Counting<'l> {
    /// The sums of all batches.
    pub all_sums: &'l AllSums,
    /// The batch's number, from 0.
    pub number: u64,
}

impl Counting<'_> {
    /// The sums of a stream in all batches before this one. Waits until these are complete.
    fn before(&self, stream: StreamNumber) -> StreamSums {
        self.all_sums.before(self.number, stream)
    }

    /// The batch is complete.
    pub(super) fn put(&self, sums: BatchSums) {
        self.all_sums.put(self.number, sums);
    }
}

/// The sums of one batch.
#[derive(Default)]
pub(super) struct BatchSums {
    streams: StreamMap<StreamSums>,
    problems: ProblemCounts,
}

impl BatchSums {
    /// Counts a message, and leaves out of its tree a note that an earlier message had. Returns
    /// whether the message has the first such note.
    pub(super) fn message(
        &mut self,
        message: &MessageToCount,
        tree: &mut Tree,
        counting: Counting<'_>,
    ) -> bool {
        let MessageToCount { stream, from, length, once } = *message;
        let said = once.filter(|text| has_note(tree.problems(), text));
        let keeps_first =
            said.is_some_and(|text| self.once(stream, counting).in_tree(text, from, tree));
        // The payload was counted when it came.
        let bytes = Counts { payload: 0, ..Counts::of_message(tree, length) };
        self.streams.of(stream).bytes(from).add(bytes);
        self.problems.add(tree.problems());
        keeps_first
    }

    /// Counts a message whose outline is whole, without a note that an earlier message had. Returns
    /// `false`, and counts nothing, if the message has the first such note: the others in it are
    /// known from a tree only.
    pub(super) fn outlined(
        &mut self,
        message: &MessageToCount,
        outline: &mut Outline,
        counting: Counting<'_>,
    ) -> bool {
        let MessageToCount { stream, from, length, once } = *message;
        if let Some(text) = once.filter(|text| has_note(outline.problems(), text)) {
            let once = self.once(stream, counting);
            if !once.is_said() {
                return false;
            }
            once.add_left_out(from, outline.leave_out(text));
        }
        self.streams.of(stream).bytes(from).explained += length as u64;
        self.problems.add(outline.problems());
        true
    }

    /// What is known of the note that a stream's messages have once.
    fn once(&mut self, stream: StreamNumber, counting: Counting<'_>) -> &mut SaidOnce {
        let once = &mut self.streams.of(stream).once;
        if !once.is_said() && counting.all_sums.said_before(counting.number, stream) {
            once.set_said();
        }
        once
    }

    /// A stream is over: its sums are not needed after this batch.
    pub(super) fn over(&mut self, stream: StreamNumber) {
        self.streams.of(stream).over = true;
    }

    /// How many notes of a side's messages of a stream were left out so far.
    pub(super) fn left_out(
        &mut self,
        stream: StreamNumber,
        from: Side,
        counting: Counting<'_>,
    ) -> u64 {
        counting.before(stream).once.left_out(from) + self.streams.of(stream).once.left_out(from)
    }

    /// A direction ended. Returns the bytes of all its messages.
    pub(super) fn end(
        &mut self,
        stream: StreamNumber,
        from: Side,
        counting: Counting<'_>,
    ) -> Counts {
        let sums = self.streams.of(stream);
        let mut bytes = *counting.before(stream).bytes(from);
        bytes.add(*sums.bytes(from));
        bytes
    }
}

fn has_note(problems: &[Problem], text: &str) -> bool {
    problems.iter().any(|problem| problem.has_text(text))
}

/// The sums over all streams.
#[derive(Clone, Copy, Default)]
pub struct MessageTotals {
    /// The bytes of messages. `payload` stays 0: it is counted when it is captured.
    pub bytes: Counts,
    /// Their problems.
    pub problems: ProblemCounts,
}

/// The sums of all batches so far.
#[derive(Default)]
pub struct AllSums {
    state: Mutex<AllSumsState>,
    moved: Condvar,
}

#[derive(Default)]
struct AllSumsState {
    /// All batches before this one are added.
    next: u64,
    /// Batches that were ready before one that comes before them.
    early: BTreeMap<u64, BatchSums>,
    streams: SeededMap<StreamNumber, StreamSums>,
    /// Streams that are over with a batch that is not added yet, and the number of this batch. In
    /// later batches the stream's number means another connection.
    ends: BTreeSet<(StreamNumber, u64)>,
    totals: MessageTotals,
    /// Whether a batch will never come. Nobody waits any more then.
    over: bool,
}

impl AllSums {
    /// The sums over all streams. Call it when all batches are written.
    pub fn totals(&self) -> MessageTotals {
        self.lock().totals
    }

    /// Releases the threads that wait for a batch that will never come.
    pub fn end(&self) {
        self.lock().over = true;
        self.moved.notify_all();
    }

    /// A stream is over, and its last record is in batch `number` or one before it. Call it before
    /// a later batch is read.
    pub fn over(&self, number: u64, stream: StreamNumber) {
        let mut state = self.lock();
        if number >= state.next {
            state.ends.insert((stream, number));
        }
    }

    /// Adds the sums of batch `number`, which is complete.
    fn put(&self, number: u64, sums: BatchSums) {
        let mut state = self.lock();
        state.early.insert(number, sums);
        let mut next = state.next;
        while let Some(sums) = state.early.remove(&next) {
            state.add(&sums);
            next = state.next;
        }
        self.moved.notify_all();
    }

    /// The sums of a stream over all batches before `number`. Waits until these are complete.
    fn before(&self, number: u64, id: StreamNumber) -> StreamSums {
        self.wait(number, |_| false).stream(id)
    }

    /// Whether a batch before `number` has the note that a stream's messages have once. Waits for
    /// these batches only until one has it.
    fn said_before(&self, number: u64, id: StreamNumber) -> bool {
        let is_said = |state: &AllSumsState| {
            let of_another = state.ends.range((id, 0)..(id, number)).next().is_some();
            !of_another && state.stream(id).once.is_said()
        };
        is_said(&self.wait(number, is_said))
    }

    /// Waits until all batches before `number` are complete, or until what is complete suffices.
    fn wait(
        &self,
        number: u64,
        suffices: impl Fn(&AllSumsState) -> bool,
    ) -> MutexGuard<'_, AllSumsState> {
        let mut state = self.lock();
        while state.next < number && !state.over && !suffices(&state) {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    fn lock(&self) -> MutexGuard<'_, AllSumsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AllSumsState {
    /// The sums of a stream.
    fn stream(&self, id: StreamNumber) -> StreamSums {
        self.streams.get(&id).copied().unwrap_or_default()
    }

    fn add(&mut self, sums: &BatchSums) {
        let number = self.next;
        self.next += 1;
        self.totals.problems.add_counts(sums.problems);
        for (id, more) in sums.streams.iter() {
            more.bytes.iter().for_each(|bytes| self.totals.bytes.add(*bytes));
            let stream = self.streams.entry(*id).or_default();
            stream.add(more);
            if stream.over {
                self.streams.remove(id);
                self.ends.remove(&(*id, number));
            }
        }
    }
}
