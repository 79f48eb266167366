//! The telling end of one direction: where the consumer stands, what it was told, and the counts of that.
//!
//! It decides nothing. Positions are those of `half`; offsets count from the position where the stream starts.

use super::sink::{Cause, Dir, End, FlowSink, Note, StreamId, Totals};
use crate::capture::Moment;

/// Where what comes out goes.
pub(super) struct Out<'s, S> {
    pub sink: &'s mut S,
    pub stream: StreamId,
    pub dir: Dir,
}

/// Kinds of notes already told, as bits.
const TOLD_CONFLICT: u8 = 1;
const TOLD_LATE: u8 = 2;
const TOLD_IMPLAUSIBLE: u8 = 4;
const TOLD_LIMIT: u8 = 8;

/// What was told of one direction.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    /// Position of offset 0; 0 where that is not known yet.
    pub start: u64,
    /// Its sequence number.
    seq: u32,
    /// Position of the next byte to deliver.
    pub next: u64,
    pub totals: Totals,
    /// The last gap told.
    gap: (u64, u64),
    /// Of the last bytes delivered.
    last: Moment,
    notes: u8,
}

impl Delivery {
    /// Starts at a position, which has this sequence number.
    pub(super) fn start_at(&mut self, position: u64, seq: u32) {
        (self.start, self.next, self.seq) = (position, position, seq);
    }

    /// Delivers the next `len` bytes; those of them that were not captured become a gap.
    #[inline]
    pub(super) fn deliver<S: FlowSink>(&mut self, bytes: &[u8], len: u64, at: Moment, out: &mut Out<'_, S>) {
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

    /// The next `len` bytes were never captured.
    pub(super) fn give_up<S: FlowSink>(&mut self, len: u64, cause: Cause, at: Moment, out: &mut Out<'_, S>) {
        self.tell_start(out);
        out.sink.tcp_gap(out.stream, out.dir, self.next - self.start, len, cause, at);
        self.gap = (self.next, self.next + len);
        self.next += len;
        self.totals.lost += len;
        self.last = at;
    }

    #[inline]
    fn tell_start<S: FlowSink>(&self, out: &mut Out<'_, S>) {
        if self.next == self.start {
            out.sink.tcp_start(out.stream, out.dir, self.seq);
        }
    }

    /// The moment of bytes that waited for a decision: their own frame, but none before what was told already.
    pub(super) fn not_before(&self, at: Moment) -> Moment {
        at.max(self.last)
    }

    /// Bytes below the next position came again.
    pub(super) fn count_old<S: FlowSink>(&mut self, position: u64, len: u64, at: Moment, out: &mut Out<'_, S>) {
        let (gap_start, gap_end) = self.gap;
        let late = gap_end.min(position + len).saturating_sub(gap_start.max(position));
        self.totals.late += late;
        self.totals.repeated += len - late;
        if late > 0 {
            let offset = gap_start.max(position) - self.start;
            self.note(TOLD_LATE, Note::Late { offset, len: late }, at, out);
        }
    }

    /// The bytes from an offset on, of which the first stay, came again as `again`.
    pub(super) fn count_overlap<S: FlowSink>(
        &mut self,
        (offset, len): (u64, u64),
        (first, again): (&[u8], &[u8]),
        at: Moment,
        out: &mut Out<'_, S>,
    ) {
        let differs = |(a, b): (&u8, &u8)| a != b;
        self.totals.repeated += len;
        if let Some(place) = first.iter().zip(again).position(differs) {
            self.totals.conflicting += first.iter().zip(again).filter(|(a, b)| a != b).count() as u64;
            self.note(TOLD_CONFLICT, Note::Conflict { offset: offset + place as u64 }, at, out);
        }
    }

    /// A segment was too far away.
    pub(super) fn count_implausible<S: FlowSink>(&mut self, len: u64, at: Moment, out: &mut Out<'_, S>) {
        self.totals.ignored += len;
        self.note(TOLD_IMPLAUSIBLE, Note::Implausible { len }, at, out);
    }

    /// A limit was reached.
    pub(super) fn limit<S: FlowSink>(&mut self, note: Note, at: Moment, out: &mut Out<'_, S>) {
        self.note(TOLD_LIMIT, note, at, out);
    }

    /// Nothing more comes.
    pub(super) fn end<S: FlowSink>(&self, how: End, at: Moment, out: &mut Out<'_, S>) {
        out.sink.tcp_end(out.stream, out.dir, how, &self.totals, at);
    }

    fn note<S: FlowSink>(&mut self, bit: u8, note: Note, at: Moment, out: &mut Out<'_, S>) {
        if self.notes & bit == 0 {
            self.notes |= bit;
            out.sink.tcp_note(out.stream, out.dir, note, at);
        }
    }
}
