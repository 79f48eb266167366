//! One direction of a TCP stream: sequence numbers in, bytes in order and gaps of known length out.
//!
//! It knows what its sender sent and what the receiver acknowledged, and nothing of connections: when one begins, is
//! reset, or is replaced stands in `tcp`.
//!
//! Sequence numbers become positions of 64 bits that never wrap: [`ORIGIN`] is the first number met, and what comes
//! later lies within half of the number space of the next byte expected.

use super::delivery::{Delivery, Out};
use super::pieces::{Pieces, Span, head, tail};
use super::sink::{Cause, End, FlowSink, Note, Totals};
use super::{Limits, elapsed};
use crate::capture::Moment;

/// Position of the first sequence number met. Earlier ones turn up where the capture began in the middle.
const ORIGIN: u64 = 1 << 32;
/// The largest window there is (RFC 7323): nothing further away can belong to the stream.
const WINDOW: u64 = 1 << 30;
/// How far an acknowledgement may run ahead of everything captured and still be believed.
const ACK_REACH: u64 = 1 << 26;
/// Segments in a row, each continuing the one before, that prove a jump in the numbers to be real.
const JUMP_PROOF: u8 = 3;
/// How much may wait for the start of a stream that was joined in the middle, in segments and in bytes.
const START_SEGMENTS: usize = 16;
const START_BYTES: usize = 64 << 10;

/// The payload of one segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Payload<'a> {
    pub seq: u32,
    pub bytes: &'a [u8],
    /// Its length on the wire.
    pub len: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Phase {
    /// No sequence number of this direction is known.
    #[default]
    Unknown,
    /// A number is known, but not where the stream begins; bytes wait.
    Anchored,
    /// Bytes are delivered.
    Started,
    /// The end was told.
    Ended,
}

/// One direction.
#[derive(Debug, Default)]
pub(super) struct Half {
    phase: Phase,
    /// The segment after the last one that was too far away, and how many continued each other.
    stray: (u32, u8),
    /// Sequence number of [`ORIGIN`].
    anchor: u32,
    /// What was told to the consumer so far.
    told: Delivery,
    /// The furthest position captured.
    high: u64,
    /// The furthest position acknowledged.
    acked: u64,
    /// What was acknowledged when patience was looked at last, and the time before that.
    ripening: u64,
    ripe: u64,
    /// Position of the FIN.
    fin: Option<u64>,
    pieces: Pieces,
}

impl Half {
    /// Memory held by waiting bytes.
    pub(super) fn cost(&self) -> usize {
        self.pieces.cost()
    }

    pub(super) fn ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// Whether nothing was delivered or given up yet.
    pub(super) fn untouched(&self) -> bool {
        self.told.next == self.told.start || self.phase < Phase::Started
    }

    /// Whether something waits for earlier bytes.
    pub(super) fn waits(&self) -> bool {
        !self.ended() && (!self.pieces.is_empty() || self.fin.is_some())
    }

    /// Whether a sequence number is exactly what comes next.
    pub(super) fn expects(&self, seq: u32) -> bool {
        self.phase == Phase::Started && self.position(seq) == self.told.next
    }

    /// The first byte of the stream has this sequence number: a SYN tells so, or what answers one.
    pub(super) fn begin(&mut self, seq: u32) {
        if self.phase >= Phase::Started {
            return;
        }
        self.anchor_at(seq);
        let start = self.position(seq);
        self.phase = Phase::Started;
        self.told.start_at(start, seq);
        self.acked = self.acked.max(start);
    }

    /// Forgets everything but what was told, to begin another connection under the same number.
    pub(super) fn restart(&mut self) {
        *self = Half::default();
    }

    /// Goes on after an end, at the offset reached: the stream was given up too early.
    pub(super) fn resume(&mut self) {
        if self.told.start == 0 {
            self.restart();
        } else {
            self.phase = Phase::Started;
            self.fin = None;
            self.told.totals = Totals::default();
        }
    }

    /// Whether a sequence number lies within `reach` of where this direction stands.
    pub(super) fn near(&self, seq: u32, reach: u64) -> bool {
        self.told.start != 0 && self.position(seq).abs_diff(self.told.next) <= reach
    }

    /// How many of `len` bytes from a sequence number on lie beyond what was delivered or given up.
    pub(super) fn beyond(&self, seq: u32, len: u64) -> u64 {
        let position = self.position(seq);
        if self.told.start == 0 { len } else { (position + len).saturating_sub(self.told.next.max(position)) }
    }

    /// Whether bytes before this sequence number are still to come.
    pub(super) fn lacks(&self, seq: u32) -> bool {
        self.phase == Phase::Started && self.position(seq) > self.told.next
    }

    /// The sender's next byte will have this sequence number, if nothing of it is known yet.
    pub(super) fn stands_at(&mut self, seq: u32) {
        self.anchor_at(seq);
    }

    /// The receiver has everything before this sequence number.
    pub(super) fn acknowledge(&mut self, ack: u32) {
        if self.phase == Phase::Unknown {
            self.anchor_at(ack);
        }
        let position = self.position(ack);
        if position <= self.reached().max(self.acked).max(ORIGIN) + ACK_REACH {
            self.acked = self.acked.max(position);
        }
    }

    /// What was acknowledged two looks ago is ripe: had it been captured out of order, it would be there by now. Where
    /// the receiver is never seen, what was captured stands in for it.
    pub(super) fn ripen(&mut self, receiver_seen: bool) {
        self.ripe = self.ripe.max(self.ripening);
        self.ripening = if receiver_seen { self.acked } else { self.reached() };
    }

    /// Takes payload: delivers what is next, keeps what is ahead.
    #[inline]
    pub(super) fn data<S: FlowSink>(&mut self, payload: Payload<'_>, at: Moment, out: &mut Out<'_, S>) {
        self.told.totals.segments += 1;
        self.anchor_at(payload.seq);
        let position = self.position(payload.seq);
        let in_order =
            self.phase == Phase::Started && position == self.told.next && self.pieces.is_empty() && self.fin.is_none();
        if in_order {
            self.told.deliver(payload.bytes, payload.len, at, out);
        } else {
            self.place(position, payload, at, out);
        }
    }

    /// The sender says that nothing comes after this sequence number.
    pub(super) fn finish_at(&mut self, seq: u32) {
        self.anchor_at(seq);
        let position = self.position(seq);
        let plausible = position >= self.reached() && position <= self.reached().max(self.acked).max(ORIGIN) + WINDOW;
        if plausible && self.fin.is_none() {
            self.fin = Some(position);
            self.high = position;
        }
    }

    /// Delivers what can be delivered and gives up what patience has run out for. True when the FIN is reached.
    pub(super) fn settle<S: FlowSink>(&mut self, now: Moment, limits: &Limits, out: &mut Out<'_, S>) -> bool {
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
            } else if self.pieces.cost() > limits.stream_buffer {
                self.told.limit(Note::StreamLimit, now, out);
                Cause::Limit
            } else {
                return false;
            };
            self.skip_to(end, cause, now, out);
        }
        self.fin == Some(self.told.next)
    }

    /// Gives up every hole, because room is needed.
    pub(super) fn relieve<S: FlowSink>(&mut self, now: Moment, out: &mut Out<'_, S>) {
        if self.pieces.is_empty() {
            return;
        }
        self.told.limit(Note::TotalLimit, now, out);
        self.flush(Cause::Limit, now, out);
    }

    /// Delivers what is left, gives up what was acknowledged and never captured, and says that this was all.
    pub(super) fn end<S: FlowSink>(&mut self, how: End, now: Moment, out: &mut Out<'_, S>) {
        if self.ended() {
            return;
        }
        self.flush(Cause::Ended, now, out);
        if self.phase == Phase::Anchored {
            self.start_here(ORIGIN);
        }
        if self.phase == Phase::Started {
            self.give_up_tail(now, out);
        }
        self.phase = Phase::Ended;
        let how = if self.fin.is_some() { End::Fin } else { how };
        self.told.end(how, now, out);
    }

    /// What was sent, as the FIN or an acknowledgement proves, and never captured.
    fn give_up_tail<S: FlowSink>(&mut self, now: Moment, out: &mut Out<'_, S>) {
        let sent = self.fin.unwrap_or(self.acked);
        if self.fin.is_none() && sent == self.told.next + 1 {
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

    /// The position nearest to where the stream stands that has this sequence number.
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

    /// Where the stream stands: sequence numbers are taken for the nearest position.
    fn here(&self) -> u64 {
        if self.phase >= Phase::Started { self.told.next } else { ORIGIN }
    }

    /// The furthest position captured.
    fn reached(&self) -> u64 {
        self.high.max(self.told.next)
    }

    /// The slow path: out of order, repeated, cut off by a FIN, or before the start is known.
    #[inline(never)]
    fn place<S: FlowSink>(&mut self, position: u64, payload: Payload<'_>, at: Moment, out: &mut Out<'_, S>) {
        let Some(position) = self.plausible(position, payload, at, out) else {
            return;
        };
        let mut end = position + payload.len;
        if let Some(fin) = self.fin.filter(|fin| *fin < end) {
            self.told.totals.ignored += end - fin.max(position);
            end = fin.max(position);
        }
        if self.phase == Phase::Anchored {
            // A keep-alive repeats a byte that is older than the capture.
            let sent = if self.high == 0 { self.acked.max(ORIGIN) } else { self.acked };
            if payload.len == 1 && end <= sent {
                self.told.totals.repeated += 1;
            } else {
                self.fill(position, end, payload.bytes, at, out);
            }
            return;
        }
        let old = self.told.next.min(end).saturating_sub(position);
        if old > 0 {
            self.told.count_old(position, old, at, out);
        }
        self.fill(position + old, end, tail(payload.bytes, old), at, out);
        self.drain(Some(at), out);
    }

    /// Delivers or keeps what is new among the bytes from one position to another.
    fn fill<S: FlowSink>(&mut self, mut here: u64, end: u64, mut bytes: &[u8], at: Moment, out: &mut Out<'_, S>) {
        // Offsets of a stream joined in the middle count from what was captured of it so far.
        let start = match (self.phase, self.pieces.first()) {
            (Phase::Anchored, Some((first, _))) => first,
            _ => self.told.start,
        };
        while here < end {
            let until = match self.pieces.span(here, end) {
                Span::Taken { end, bytes: first } => {
                    let place = (here - start, end - here);
                    self.told.count_overlap(place, (first, head(bytes, end - here)), at, out);
                    end
                }
                Span::Free { end } if self.phase == Phase::Started && here == self.told.next => {
                    self.told.deliver(head(bytes, end - here), end - here, at, out);
                    end
                }
                Span::Free { end } => {
                    self.pieces.put(here, head(bytes, end - here), end - here, at);
                    self.high = self.high.max(end);
                    end
                }
            };
            bytes = tail(bytes, until - here);
            here = until;
        }
    }

    /// The position of a segment that may belong here. A jump is believed once several segments agree on it.
    fn plausible<S: FlowSink>(
        &mut self,
        position: u64,
        payload: Payload<'_>,
        at: Moment,
        out: &mut Out<'_, S>,
    ) -> Option<u64> {
        if position.abs_diff(self.here()) <= WINDOW {
            self.stray = (0, 0);
            return Some(position);
        }
        let (expected, count) = self.stray;
        let count = if count > 0 && expected == payload.seq { count + 1 } else { 1 };
        self.stray = (payload.seq.wrapping_add(payload.len as u32), count);
        if count <= JUMP_PROOF || self.phase != Phase::Started {
            self.told.count_implausible(payload.len, at, out);
            return None;
        }
        self.stray = (0, 0);
        self.flush(Cause::Limit, at, out);
        let next = self.seq(self.told.next);
        let jump = u64::from(payload.seq.wrapping_sub(next));
        self.told.give_up(jump, Cause::Limit, at, out);
        Some(self.told.next)
    }

    /// Where the first hole ends, if there is one with something behind it.
    fn hole_end(&self) -> Option<u64> {
        let behind = self.pieces.first().map(|(start, _)| start).or(self.fin)?;
        (behind > self.told.next).then_some(behind)
    }

    /// Gives up what lies before a position.
    fn skip_to<S: FlowSink>(&mut self, position: u64, cause: Cause, now: Moment, out: &mut Out<'_, S>) {
        if position > self.told.next {
            let at = self.pieces.first().map_or(now, |(_, at)| self.told.not_before(at));
            self.told.give_up(position - self.told.next, cause, at, out);
        }
    }

    /// A stream joined in the middle starts when nothing earlier is to be expected.
    fn start_if_due(&mut self, now: Moment, limits: &Limits) -> bool {
        let Some((first, at)) = self.pieces.first().or(self.fin.map(|fin| (fin, now))) else {
            return false;
        };
        let waited = elapsed(at.time, now.time);
        let due = self.acked >= first
            || self.pieces.count() >= START_SEGMENTS
            || self.pieces.cost() > START_BYTES
            || waited >= limits.hole_time;
        if due {
            self.start_here(first);
        }
        due
    }

    fn start_here(&mut self, first: u64) {
        self.phase = Phase::Started;
        self.told.start_at(first, self.seq(first));
        self.acked = self.acked.max(first);
    }

    /// Delivers everything, holes given up.
    fn flush<S: FlowSink>(&mut self, cause: Cause, now: Moment, out: &mut Out<'_, S>) {
        if self.phase == Phase::Anchored
            && let Some((first, _)) = self.pieces.first()
        {
            self.start_here(first);
        }
        self.drain(None, out);
        while let Some((start, _)) = self.pieces.first() {
            self.skip_to(start, cause, now, out);
            self.drain(None, out);
        }
    }

    /// Delivers waiting pieces that are next. `filled` is the frame that brought what they waited for; without
    /// one each keeps its own frame.
    fn drain<S: FlowSink>(&mut self, filled: Option<Moment>, out: &mut Out<'_, S>) {
        while let Some((start, at)) = self.pieces.first().filter(|(start, _)| *start <= self.told.next) {
            let Some((_, piece)) = self.pieces.pop() else {
                break;
            };
            let old = self.told.next - start;
            if old < piece.len {
                let at = filled.unwrap_or(self.told.not_before(at));
                self.told.deliver(tail(&piece.bytes, old), piece.len - old, at, out);
            }
        }
    }
}
