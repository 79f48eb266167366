//! Calls the sink for one direction, and keeps the state for these calls: the next position, the
//! counts, and which notes were given.
//!
//! It decides nothing. Positions are those of `direction`; offsets count from the position where
//! the stream starts.

use std::ops::Range;

use super::sink::{Cause, Dir, End, FlowSink, Note, StreamId, Totals};
use crate::capture::Moment;

/// The sink, with the arguments that are the same in all calls for a direction.
pub(super) struct DirectionSink<'s, S> {
    pub sink: &'s mut S,
    pub stream: StreamId,
    pub dir: Dir,
}

// Kinds of notes that were given, as bits.
const NOTED_CONFLICT: u8 = 1;
const NOTED_LATE: u8 = 2;
const NOTED_IMPLAUSIBLE: u8 = 4;
const NOTED_LIMIT: u8 = 8;

/// Bytes that were captured twice.
pub(super) struct Overlap<'a> {
    /// Offset of the first of them.
    pub offset: u64,
    /// Their number on the wire.
    pub len: u64,
    /// The captured bytes that came first and are kept.
    pub first: &'a [u8],
    /// The captured bytes that came later.
    pub again: &'a [u8],
}

/// The state of delivery in one direction.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    /// Position of offset 0; 0 if that is not known yet.
    pub start: u64,
    /// The sequence number of `start`.
    seq: u32,
    /// Position of the next byte to deliver.
    pub next: u64,
    pub totals: Totals,
    /// Positions of the last gap.
    gap: Range<u64>,
    /// The moment of the last delivery.
    last: Moment,
    notes: u8,
}

impl Delivery {
    /// Starts the stream at `position`, whose sequence number is `seq`.
    pub(super) fn start_at(&mut self, position: u64, seq: u32) {
        (self.start, self.next, self.seq) = (position, position, seq);
    }

    /// Delivers the next `len` bytes. `bytes` are those that were captured; the rest becomes a gap.
    #[inline]
    pub(super) fn deliver<S: FlowSink>(
        &mut self,
        bytes: &[u8],
        len: u64,
        at: Moment,
        out: &mut DirectionSink<'_, S>,
    ) {
        if !bytes.is_empty() {
            self.tell_start(out);
            out.sink.tcp_data(out.stream, out.dir, self.next - self.start, bytes, at);
        }
        let there = bytes.len() as u64;
        self.next += there;
        self.totals.delivered += there;
        self.last = at;
        if len > there {
            self.give_up(len - there, Cause::Cut, at, out);
        }
    }

    /// Delivers the next `len` bytes as a gap.
    pub(super) fn give_up<S: FlowSink>(
        &mut self,
        len: u64,
        cause: Cause,
        at: Moment,
        out: &mut DirectionSink<'_, S>,
    ) {
        self.tell_start(out);
        out.sink.tcp_gap(out.stream, out.dir, self.next - self.start, len, cause, at);
        self.gap = self.next..self.next + len;
        self.next += len;
        self.totals.lost += len;
        self.last = at;
    }

    #[inline]
    fn tell_start<S: FlowSink>(&self, out: &mut DirectionSink<'_, S>) {
        if self.next == self.start {
            out.sink.tcp_start(out.stream, out.dir, self.seq);
        }
    }

    /// The moment of delivery for bytes that came at `at` and then waited: not before the last
    /// delivery.
    pub(super) fn not_before(&self, at: Moment) -> Moment {
        at.max(self.last)
    }

    /// Counts `len` bytes from `position` on, all before the next position, as repeated or as late.
    pub(super) fn count_old<S: FlowSink>(
        &mut self,
        position: u64,
        len: u64,
        at: Moment,
        out: &mut DirectionSink<'_, S>,
    ) {
        let gap = self.gap.clone();
        let late = gap.end.min(position + len).saturating_sub(gap.start.max(position));
        self.totals.late += late;
        self.totals.repeated += len - late;
        if late > 0 {
            let offset = gap.start.max(position) - self.start;
            self.note(NOTED_LATE, Note::Late { offset, len: late }, at, out);
        }
    }

    /// Counts bytes that came a second time while the first ones were waiting.
    pub(super) fn count_overlap<S: FlowSink>(
        &mut self,
        overlap: Overlap<'_>,
        at: Moment,
        out: &mut DirectionSink<'_, S>,
    ) {
        let Overlap { offset, len, first, again } = overlap;
        self.totals.repeated += len;
        let mut pairs = first.iter().zip(again);
        if let Some(place) = pairs.position(|(a, b)| a != b) {
            self.totals.conflicting += 1 + pairs.filter(|(a, b)| a != b).count() as u64;
            self.note(NOTED_CONFLICT, Note::Conflict { offset: offset + place as u64 }, at, out);
        }
    }

    /// Counts the bytes of a segment that lies too far away.
    pub(super) fn count_implausible<S: FlowSink>(
        &mut self,
        len: u64,
        at: Moment,
        out: &mut DirectionSink<'_, S>,
    ) {
        self.totals.ignored += len;
        self.note(NOTED_IMPLAUSIBLE, Note::Implausible { len }, at, out);
    }

    /// Notes that a limit was reached.
    pub(super) fn limit<S: FlowSink>(
        &mut self,
        note: Note,
        at: Moment,
        out: &mut DirectionSink<'_, S>,
    ) {
        self.note(NOTED_LIMIT, note, at, out);
    }

    /// Ends the direction.
    pub(super) fn end<S: FlowSink>(&self, how: End, at: Moment, out: &mut DirectionSink<'_, S>) {
        out.sink.tcp_end(out.stream, out.dir, how, &self.totals, at);
    }

    fn note<S: FlowSink>(
        &mut self,
        bit: u8,
        note: Note,
        at: Moment,
        out: &mut DirectionSink<'_, S>,
    ) {
        if self.notes & bit == 0 {
            self.notes |= bit;
            out.sink.tcp_note(out.stream, out.dir, note, at);
        }
    }
}
