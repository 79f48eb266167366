//! One direction of a TCP stream: takes segments, and delivers bytes in order and gaps of known
//! length.
//!
//! It knows what its sender sent and what the receiver acknowledged. It does not know connections:
//! `connection` decides when one begins, is reset, or is replaced.
//!
//! Sequence numbers become positions of 64 bits that never wrap. The first number seen has position
//! [`ORIGIN`]. Each later number gets the position nearest to the next expected byte.

use super::delivery::{Delivery, DirectionSink, Overlap};
use super::pending::{PendingBytes, Span, head, tail};
use super::segment::{FIN, Payload, RST, Segment};
use super::sink::{Cause, End, FlowSink, Note, Totals};
use super::stray::StraySegments;
use super::{FlowLimits, elapsed};
use crate::capture::{Moment, Time};

/// Position of the first sequence number seen. If the capture begins in the middle of a stream,
/// earlier numbers may follow.
const ORIGIN: u64 = 1 << 32;
/// The largest TCP window (RFC 7323). Nothing further away can belong to the stream.
const WINDOW: u64 = 1 << 30;
/// An acknowledgement further ahead of everything captured is ignored.
const ACK_REACH: u64 = 1 << 26;
/// The cut-off part of a segment may span this many runs of waiting bytes. Without this bound, a
/// frame of a few bytes could claim a length that spans all waiting runs.
const CUT_SPANS: usize = 16;
/// How many segments or bytes may wait for the start of a stream whose opening was not captured.
/// A segment of bytes that were captured before is one that was sent again if it comes so long
/// after the furthest byte, in nanoseconds. What comes sooner is a copy, or out of order.
const SENT_AGAIN_AFTER: i64 = 3_000_000;
/// … or if its receiver has asked for it so often.
const ASKED_AGAIN: u8 = 3;
const START_SEGMENTS: usize = 16;
const START_BYTES: usize = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Phase {
    /// No sequence number of this direction is known.
    #[default]
    Unknown,
    /// A number is known, but not the start of the stream. Bytes wait.
    Anchored,
    /// Bytes are delivered.
    Started,
    /// `tcp_end` was called.
    Ended,
}

/// One direction.
#[derive(Debug, Default)]
pub(super) struct DirectionState {
    phase: Phase,
    strays: StraySegments,
    /// Sequence number of [`ORIGIN`].
    anchor: u32,
    delivery: Delivery,
    /// The furthest position captured.
    high: u64,
    /// When the furthest position was captured.
    high_at: Time,
    /// The furthest position acknowledged.
    acked: u64,
    /// Since when bytes lack an acknowledgement; `None` if none do, or once they were sent again.
    unacknowledged_since: Option<Time>,
    /// Bytes that lack an acknowledgement were sent again.
    sent_again: bool,
    /// How often in a row the receiver acknowledged this position without data of its own.
    asked_again: u8,
    /// When the sender's window became 0, if it still is.
    window_closed: Option<Time>,
    /// The acknowledged positions at the last check and at the one before.
    ripening: u64,
    ripe: u64,
    /// Position of the FIN.
    fin: Option<u64>,
    pending: PendingBytes,
}

impl DirectionState {
    /// Memory held by waiting bytes.
    pub(super) fn cost(&self) -> usize {
        self.pending.cost() + self.strays.cost()
    }

    pub(super) fn ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// Whether nothing was delivered, not even as a gap.
    pub(super) fn untouched(&self) -> bool {
        self.delivery.next == self.delivery.start || self.phase < Phase::Started
    }

    /// Whether bytes or a FIN wait for earlier bytes.
    pub(super) fn waits(&self) -> bool {
        !self.ended() && (!self.pending.is_empty() || self.fin.is_some())
    }

    /// Whether it holds segments that may be given up to free memory.
    pub(super) fn holds(&self) -> bool {
        self.waits() || !self.ended() && !self.strays.is_empty()
    }

    /// Whether a sequence number is that of the next byte.
    pub(super) fn expects(&self, seq: u32) -> bool {
        self.phase == Phase::Started && self.position(seq) == self.delivery.next
    }

    /// Starts the stream, whose first byte has this sequence number according to a SYN or an answer
    /// to one.
    pub(super) fn begin(&mut self, seq: u32) {
        if self.phase >= Phase::Started {
            return;
        }
        self.anchor_at(seq);
        let start = self.position(seq);
        self.phase = Phase::Started;
        self.delivery.start_at(start, seq);
        self.acked = self.acked.max(start);
    }

    /// Forgets everything, for another connection under the same number.
    pub(super) fn restart(&mut self) {
        *self = DirectionState::default();
    }

    /// Continues after an end at the same offset, because the stream was evicted too early.
    pub(super) fn resume(&mut self) {
        if self.delivery.start == 0 {
            self.restart();
        } else {
            self.phase = Phase::Started;
            self.fin = None;
            self.delivery.totals = Totals::default();
        }
    }

    /// Whether a sequence number is within `reach` of the next byte.
    pub(super) fn near(&self, seq: u32, reach: u64) -> bool {
        self.delivery.start != 0 && self.position(seq).abs_diff(self.delivery.next) <= reach
    }

    /// How many of the `len` bytes from a sequence number on are beyond what was delivered.
    pub(super) fn beyond(&self, seq: u32, len: u64) -> u64 {
        let position = self.position(seq);
        if self.delivery.start == 0 {
            len
        } else {
            (position + len).saturating_sub(self.delivery.next.max(position))
        }
    }

    /// Whether bytes before this sequence number are missing.
    pub(super) fn lacks(&self, seq: u32) -> bool {
        self.phase == Phase::Started && self.position(seq) > self.delivery.next
    }

    /// The sender's next byte has this sequence number. Ignored if one is known already.
    pub(super) fn stands_at(&mut self, seq: u32) {
        self.anchor_at(seq);
    }

    /// The receiver has everything before this sequence number. `bare` says that it sent nothing
    /// else.
    pub(super) fn acknowledge(&mut self, ack: u32, bare: bool) {
        if self.phase == Phase::Unknown {
            self.anchor_at(ack);
        }
        self.strays.confirm(ack);
        let position = self.position(ack);
        let again = bare && position == self.acked && position < self.reached();
        self.asked_again = if again { self.asked_again.saturating_add(1) } else { 0 };
        if position <= self.reached().max(self.acked).max(ORIGIN) + ACK_REACH
            && position > self.acked
        {
            self.acked = position;
            (self.unacknowledged_since, self.sent_again) = (None, false);
            self.delivery.totals.unacknowledged = 0;
        }
    }

    /// A segment of the sender was captured.
    #[inline]
    pub(super) fn hear(&mut self, segment: &Segment<'_>, at: Moment) {
        let totals = &mut self.delivery.totals;
        totals.heard = true;
        totals.unheard = 0;
        // A bare acknowledgement does not tell that its sender could have sent bytes again.
        if segment.len > 0 || segment.flags & (FIN | RST) != 0 {
            let since = self.unacknowledged_since;
            totals.unacknowledged = since.map_or(0, |since| elapsed(since, at.time));
        }
        match (segment.closes_window(), self.window_closed) {
            (true, None) => {
                totals.zero_windows += 1;
                if totals.first_zero_window == 0 {
                    totals.first_zero_window = at.frame;
                }
                self.window_closed = Some(at.time);
            }
            (false, Some(since)) => {
                let closed = elapsed(since, at.time);
                totals.longest_zero_window = totals.longest_zero_window.max(closed);
                self.window_closed = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
    }

    /// A segment of the receiver was captured.
    #[inline]
    pub(super) fn hear_receiver(&mut self) {
        self.delivery.totals.unheard += 1;
    }

    /// Counts a segment of bytes that came before, if its sender sent it again.
    fn count_resent(&mut self, position: u64, len: u64, at: Moment) {
        // One byte keeps a connection alive, or asks whether a window is open again.
        let known = self.phase == Phase::Started && len > 1 && position < self.reached();
        let asked = self.asked_again >= ASKED_AGAIN && position == self.acked;
        if known && (asked || elapsed(self.high_at, at.time) > SENT_AGAIN_AFTER) {
            (self.unacknowledged_since, self.sent_again) = (None, true);
            let totals = &mut self.delivery.totals;
            totals.unacknowledged = 0;
            totals.resent += 1;
            if totals.first_resent == 0 {
                totals.first_resent = at.frame;
            }
        }
    }

    /// Called at each check. A hole that was acknowledged two checks ago is ripe: bytes captured
    /// out of order would have come by now. If no frame of the receiver was captured, the furthest
    /// captured byte counts as acknowledged.
    pub(super) fn ripen(&mut self, receiver_seen: bool) {
        self.ripe = self.ripe.max(self.ripening);
        self.ripening = if receiver_seen { self.acked } else { self.reached() };
    }

    /// Handles payload: delivers it if it is next, keeps it if it is ahead.
    #[inline]
    pub(super) fn data<S: FlowSink>(
        &mut self,
        payload: Payload<'_>,
        at: Moment,
        out: &mut DirectionSink<'_, S>,
    ) {
        self.delivery.totals.segments += 1;
        self.anchor_at(payload.seq);
        let position = self.position(payload.seq);
        let reached = self.reached();
        let in_order = self.phase == Phase::Started
            && position == self.delivery.next
            && self.pending.is_empty()
            && self.strays.is_empty()
            && self.fin.is_none();
        if in_order {
            self.delivery.deliver(payload.bytes, payload.len, at, out);
        } else {
            self.count_resent(position, payload.len, at);
            self.place(position, payload, at, out);
        }
        if self.reached() > reached {
            self.high_at = at.time;
            if self.reached() > self.acked && !self.sent_again {
                self.unacknowledged_since.get_or_insert(at.time);
            }
        }
    }

    /// The sender's FIN has this sequence number. Returns whether it can belong to the stream and
    /// is the first.
    pub(super) fn finish_at(&mut self, seq: u32) -> bool {
        self.anchor_at(seq);
        let position = self.position(seq);
        let plausible = position >= self.reached()
            && position <= self.reached().max(self.acked).max(ORIGIN) + WINDOW;
        let first = plausible && self.fin.is_none();
        if first {
            self.fin = Some(position);
            self.high = position;
        }
        first
    }

    /// Delivers bytes that are in order, and gives up holes that are ripe or exceed a limit.
    /// Returns whether the FIN is reached.
    pub(super) fn settle<S: FlowSink>(
        &mut self,
        now: Moment,
        limits: &FlowLimits,
        out: &mut DirectionSink<'_, S>,
    ) -> bool {
        if self.strays.are_confirmed() {
            self.jump(now, out);
        }
        if !self.waits() {
            return false;
        }
        if self.phase == Phase::Anchored && !self.start_if_due(now, limits) {
            return false;
        }
        loop {
            self.drain(None, out);
            let Some(end) = self.hole_end() else { break };
            let cause = if end <= self.ripe && end <= self.acked {
                Cause::Acknowledged
            } else if end <= self.ripe {
                Cause::Unanswered
            } else if self.pending.cost() > limits.stream_buffer {
                self.delivery.limit(Note::StreamLimit, now, out);
                Cause::Limit
            } else {
                return false;
            };
            self.skip_to(end, cause, now, out);
        }
        self.fin == Some(self.delivery.next)
    }

    /// Gives up every hole, to free memory.
    pub(super) fn relieve<S: FlowSink>(&mut self, now: Moment, out: &mut DirectionSink<'_, S>) {
        self.drop_strays(now, out);
        if self.pending.is_empty() {
            return;
        }
        self.delivery.limit(Note::TotalLimit, now, out);
        self.flush(Cause::Limit, now, out);
    }

    /// Delivers all waiting bytes, gives up bytes that were acknowledged but never captured, and
    /// ends the direction.
    pub(super) fn end<S: FlowSink>(
        &mut self,
        how: End,
        now: Moment,
        out: &mut DirectionSink<'_, S>,
    ) {
        if self.ended() {
            return;
        }
        if self.strays.suffice_at_end() {
            self.jump(now, out);
        }
        self.drop_strays(now, out);
        self.flush(Cause::Ended, now, out);
        if self.phase == Phase::Anchored {
            self.start_here(ORIGIN);
        }
        if self.phase == Phase::Started {
            self.give_up_tail(now, out);
        }
        self.phase = Phase::Ended;
        let how = if self.fin.is_some() { End::Fin } else { how };
        if let Some(since) = self.window_closed.take() {
            let totals = &mut self.delivery.totals;
            totals.longest_zero_window = totals.longest_zero_window.max(elapsed(since, now.time));
        }
        self.delivery.end(how, now, out);
    }

    /// Gives up bytes at the end that were never captured, although a FIN or an acknowledgement
    /// proves that they were sent.
    fn give_up_tail<S: FlowSink>(&mut self, now: Moment, out: &mut DirectionSink<'_, S>) {
        let sent = self.fin.unwrap_or(self.acked);
        if self.fin.is_none() && sent == self.delivery.next + 1 {
            out.sink.tcp_note(out.stream, out.dir, Note::FinAssumed, now);
        } else {
            self.skip_to(sent, Cause::Ended, now, out);
        }
    }

    fn anchor_at(&mut self, seq: u32) {
        if self.phase == Phase::Unknown {
            self.phase = Phase::Anchored;
            self.anchor = seq;
        }
    }

    /// The position of a sequence number: of all positions with this number, the one nearest to
    /// `here`.
    #[inline]
    fn position(&self, seq: u32) -> u64 {
        let here = self.here();
        let here_seq = self.seq(here);
        here.wrapping_add_signed(i64::from(seq.wrapping_sub(here_seq) as i32))
    }

    /// The sequence number of a position.
    fn seq(&self, position: u64) -> u32 {
        self.anchor.wrapping_add(position.wrapping_sub(ORIGIN) as u32)
    }

    /// The position of the next byte, or the origin while that is not known.
    fn here(&self) -> u64 {
        if self.phase >= Phase::Started { self.delivery.next } else { ORIGIN }
    }

    /// The furthest position captured.
    fn reached(&self) -> u64 {
        self.high.max(self.delivery.next)
    }

    /// Handles payload that is not simply next: out of order, repeated, beyond a FIN, or before the
    /// start is known.
    #[inline(never)]
    fn place<S: FlowSink>(
        &mut self,
        position: u64,
        payload: Payload<'_>,
        at: Moment,
        out: &mut DirectionSink<'_, S>,
    ) {
        let Some(position) = self.plausible(position, payload, at, out) else {
            return;
        };
        let mut end = position + payload.len;
        if let Some(fin) = self.fin.filter(|fin| *fin < end) {
            self.delivery.totals.ignored += end - fin.max(position);
            end = fin.max(position);
        }
        if self.phase == Phase::Anchored {
            // A keep-alive repeats one byte, here one from before the capture.
            let sent = if self.high == 0 { self.acked.max(ORIGIN) } else { self.acked };
            if payload.len == 1 && end <= sent {
                self.delivery.totals.repeated += 1;
            } else {
                self.fill(position, end, payload.bytes, at, out);
            }
            return;
        }
        let old = self.delivery.next.min(end).saturating_sub(position);
        if old > 0 {
            self.delivery.count_old(position, old, at, out);
        }
        self.fill(position + old, end, tail(payload.bytes, old), at, out);
        self.drain(Some(at), out);
    }

    /// Delivers or keeps those of the bytes between two positions that are new.
    fn fill<S: FlowSink>(
        &mut self,
        mut here: u64,
        end: u64,
        mut bytes: &[u8],
        at: Moment,
        out: &mut DirectionSink<'_, S>,
    ) {
        // As long as the start is not known, offsets count from the first waiting byte.
        let start = match (self.phase, self.pending.first()) {
            (Phase::Anchored, Some((first, _))) => first,
            _ => self.delivery.start,
        };
        let mut cut_spans = 0;
        while here < end && cut_spans < CUT_SPANS {
            cut_spans += usize::from(bytes.is_empty());
            let until = match self.pending.span(here, end) {
                Span::Taken { end, bytes: first } => {
                    let offset = here - start;
                    let len = end - here;
                    let overlap = Overlap { offset, len, first, again: head(bytes, len) };
                    self.delivery.count_overlap(overlap, at, out);
                    end
                }
                Span::Free { end }
                    if self.phase == Phase::Started && here == self.delivery.next =>
                {
                    self.delivery.deliver(head(bytes, end - here), end - here, at, out);
                    end
                }
                Span::Free { end } => {
                    self.pending.put(here, head(bytes, end - here), end - here, at);
                    self.high = self.high.max(end);
                    end
                }
            };
            bytes = tail(bytes, until - here);
            here = until;
        }
        self.delivery.totals.ignored += end.saturating_sub(here);
    }

    /// The sender's last number is this one. If the segments that were kept end there, they belong
    /// to the stream.
    pub(super) fn ends_at<S: FlowSink>(
        &mut self,
        seq: u32,
        at: Moment,
        out: &mut DirectionSink<'_, S>,
    ) {
        if self.strays.end_at(seq) {
            self.jump(at, out);
        }
    }

    /// The position of a segment, or `None` if it is not known yet to belong to the stream. A jump
    /// in the numbers is taken as real when several segments have continued the first one.
    fn plausible<S: FlowSink>(
        &mut self,
        position: u64,
        payload: Payload<'_>,
        at: Moment,
        out: &mut DirectionSink<'_, S>,
    ) -> Option<u64> {
        if position.abs_diff(self.here()) <= WINDOW {
            self.drop_strays(at, out);
            return Some(position);
        }
        if self.strays.prove(&payload) {
            self.jump(at, out);
            return Some(self.position(payload.seq));
        }
        let dropped = self.strays.add(&payload, at);
        self.count_strays(dropped, at, out);
        None
    }

    /// Goes on behind a jump with the segments that were kept there.
    fn jump<S: FlowSink>(&mut self, now: Moment, out: &mut DirectionSink<'_, S>) {
        let strays = std::mem::take(&mut self.strays);
        let start = strays.start();
        if self.phase < Phase::Started && !self.waits() {
            // The number that was known from before was wrong.
            *self =
                DirectionState { delivery: std::mem::take(&mut self.delivery), ..Self::default() };
            self.begin(start);
        } else {
            self.flush(Cause::Limit, now, out);
            self.fin = None;
            let jump = start.wrapping_sub(self.seq(self.delivery.next));
            let at = self.delivery.not_before(strays.first_moment().unwrap_or(now));
            self.delivery.give_up(jump.into(), Cause::Limit, at, out);
        }
        for segment in strays.into_segments() {
            let at = self.delivery.not_before(segment.at);
            self.delivery.deliver(&segment.bytes, segment.len, at, out);
        }
    }

    /// Gives up segments that are too far away.
    fn drop_strays<S: FlowSink>(&mut self, now: Moment, out: &mut DirectionSink<'_, S>) {
        if !self.strays.is_empty() {
            let strays = std::mem::take(&mut self.strays);
            self.count_strays(strays, now, out);
        }
    }

    fn count_strays<S: FlowSink>(
        &mut self,
        strays: StraySegments,
        now: Moment,
        out: &mut DirectionSink<'_, S>,
    ) {
        for segment in strays.into_segments() {
            self.delivery.count_implausible(segment.len, now, out);
        }
    }

    /// The end of the first hole, if bytes wait behind it.
    fn hole_end(&self) -> Option<u64> {
        let behind = self.pending.first().map(|(start, _)| start).or(self.fin)?;
        (behind > self.delivery.next).then_some(behind)
    }

    /// Gives up everything before a position.
    fn skip_to<S: FlowSink>(
        &mut self,
        position: u64,
        cause: Cause,
        now: Moment,
        out: &mut DirectionSink<'_, S>,
    ) {
        if position > self.delivery.next {
            let at = self.pending.first().map_or(now, |(_, at)| self.delivery.not_before(at));
            self.delivery.give_up(position - self.delivery.next, cause, at, out);
        }
    }

    /// Starts a stream whose opening was not captured, if no earlier bytes are likely to come.
    /// Returns whether it did.
    fn start_if_due(&mut self, now: Moment, limits: &FlowLimits) -> bool {
        let Some((first, at)) = self.pending.first().or(self.fin.map(|fin| (fin, now))) else {
            return false;
        };
        let waited = elapsed(at.time, now.time);
        let due = self.acked >= first
            || self.pending.count() >= START_SEGMENTS
            || self.pending.cost() > START_BYTES
            || waited >= limits.hole_time;
        if due {
            self.start_here(first);
        }
        due
    }

    fn start_here(&mut self, first: u64) {
        self.phase = Phase::Started;
        self.delivery.start_at(first, self.seq(first));
        self.acked = self.acked.max(first);
    }

    /// Delivers all waiting bytes, and gives up the holes.
    fn flush<S: FlowSink>(&mut self, cause: Cause, now: Moment, out: &mut DirectionSink<'_, S>) {
        if self.phase == Phase::Anchored
            && let Some((first, _)) = self.pending.first()
        {
            self.start_here(first);
        }
        self.drain(None, out);
        while let Some((start, _)) = self.pending.first() {
            self.skip_to(start, cause, now, out);
            self.drain(None, out);
        }
    }

    /// Delivers waiting bytes that are next. `filled` is the frame with the bytes that they waited
    /// for. Without it, they keep their own frame.
    fn drain<S: FlowSink>(&mut self, filled: Option<Moment>, out: &mut DirectionSink<'_, S>) {
        while let Some((start, at)) =
            self.pending.first().filter(|(start, _)| *start <= self.delivery.next)
        {
            let Some((_, piece)) = self.pending.pop() else {
                break;
            };
            let old = self.delivery.next - start;
            if old < piece.len {
                let at = filled.unwrap_or(self.delivery.not_before(at));
                self.delivery.deliver(tail(&piece.bytes, old), piece.len - old, at, out);
            }
        }
    }
}
