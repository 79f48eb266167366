//! One direction of a TCP stream: sequence numbers in, bytes in order and gaps of known length out.
//!
//! It knows what its sender sent and what the receiver acknowledged, and nothing of connections: when one begins, is
//! reset, or is replaced stands in `tcp`.
//!
//! Sequence numbers become positions of 64 bits that never wrap: [`ORIGIN`] is the first number met, and what comes
//! later lies within half of the number space of the next byte expected.

use super::pieces::{Pieces, Span, head, tail};
use super::sink::{Cause, Dir, End, FlowSink, Moment, Note, StreamId, Totals};
use super::{Limits, nanos};

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

/// Where what comes out goes.
pub(super) struct Out<'s, S> {
    pub sink: &'s mut S,
    pub stream: StreamId,
    pub dir: Dir,
}

/// The payload of one segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Payload<'a> {
    pub seq: u32,
    pub bytes: &'a [u8],
    /// Its length on the wire.
    pub len: u64,
}

/// Kinds of notes already told, as bits.
const TOLD_CONFLICT: u8 = 1;
const TOLD_LATE: u8 = 2;
const TOLD_IMPLAUSIBLE: u8 = 4;
const TOLD_LIMIT: u8 = 8;

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
    told: u8,
    /// The segment after the last one that was too far away, and how many continued each other.
    stray: (u32, u8),
    /// Sequence number of [`ORIGIN`].
    anchor: u32,
    /// Position of offset 0.
    start: u64,
    /// Position of the next byte to deliver.
    next: u64,
    /// The furthest position captured.
    high: u64,
    /// The furthest position acknowledged.
    acked: u64,
    /// What was acknowledged when patience was looked at last, and the time before that.
    ripening: u64,
    ripe: u64,
    /// Position of the FIN.
    fin: Option<u64>,
    /// The last gap told.
    gap: (u64, u64),
    pieces: Pieces,
    /// Of the last bytes delivered.
    last: Moment,
    totals: Totals,
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
        self.next == self.start || self.phase < Phase::Started
    }

    /// Whether something waits for earlier bytes.
    pub(super) fn waits(&self) -> bool {
        !self.ended() && (!self.pieces.is_empty() || self.fin.is_some())
    }

    /// Whether a sequence number is exactly what comes next.
    pub(super) fn expects(&self, seq: u32) -> bool {
        self.phase == Phase::Started && self.position(seq) == self.next
    }

    /// The first byte of the stream has this sequence number: a SYN tells so, or what answers one.
    pub(super) fn begin(&mut self, seq: u32) {
        if self.phase >= Phase::Started {
            return;
        }
        self.anchor_at(seq);
        let start = self.position(seq);
        self.phase = Phase::Started;
        (self.start, self.next) = (start, start);
        self.high = self.high.max(start);
        self.acked = self.acked.max(start);
    }

    /// Forgets everything but what was told, to begin another connection under the same number.
    pub(super) fn restart(&mut self) {
        *self = Half::default();
    }

    /// Goes on after an end, at the offset reached: the stream was given up too early.
    pub(super) fn resume(&mut self) {
        if self.start == 0 {
            self.restart();
        } else {
            self.phase = Phase::Started;
            self.fin = None;
            self.totals = Totals::default();
        }
    }

    /// Whether a sequence number lies within `reach` of where this direction stands.
    pub(super) fn near(&self, seq: u32, reach: u64) -> bool {
        self.start != 0 && self.position(seq).abs_diff(self.next) <= reach
    }

    /// How many of `len` bytes from a sequence number on lie beyond what was delivered or given up.
    pub(super) fn beyond(&self, seq: u32, len: u64) -> u64 {
        let position = self.position(seq);
        if self.start == 0 {
            len
        } else {
            (position + len).saturating_sub(self.next.max(position))
        }
    }

    /// Whether bytes before this sequence number are still to come.
    pub(super) fn lacks(&self, seq: u32) -> bool {
        self.phase == Phase::Started && self.position(seq) > self.next
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
        if position <= self.high.max(self.acked).max(ORIGIN) + ACK_REACH {
            self.acked = self.acked.max(position);
        }
    }

    /// What was acknowledged two looks ago is ripe: had it been captured out of order, it would be there by now. Where
    /// the receiver is never seen, what was captured stands in for it.
    pub(super) fn ripen(&mut self, receiver_seen: bool) {
        self.ripe = self.ripe.max(self.ripening);
        self.ripening = if receiver_seen { self.acked } else { self.high };
    }

    /// Takes payload: delivers what is next, keeps what is ahead.
    #[inline]
    pub(super) fn data<S: FlowSink>(
        &mut self,
        payload: Payload<'_>,
        at: Moment,
        out: &mut Out<'_, S>,
    ) {
        self.totals.segments += 1;
        self.anchor_at(payload.seq);
        let position = self.position(payload.seq);
        let in_order = self.phase == Phase::Started
            && position == self.next
            && self.pieces.is_empty()
            && self.fin.is_none();
        if in_order {
            self.deliver(payload.bytes, payload.len, at, out);
        } else {
            self.place(position, payload, at, out);
        }
    }

    /// The sender says that nothing comes after this sequence number.
    pub(super) fn finish_at(&mut self, seq: u32) {
        self.anchor_at(seq);
        let position = self.position(seq);
        let plausible = position >= self.next.max(self.high)
            && position <= self.high.max(self.acked).max(ORIGIN) + WINDOW;
        if plausible && self.fin.is_none() {
            self.fin = Some(position);
            self.high = position;
        }
    }

    /// Delivers what can be delivered and gives up what patience has run out for. True when the FIN is reached.
    pub(super) fn settle<S: FlowSink>(
        &mut self,
        now: Moment,
        limits: &Limits,
        out: &mut Out<'_, S>,
    ) -> bool {
        if !self.waits() {
            return false;
        }
        if self.phase == Phase::Anchored && !self.start_if_due(now, limits) {
            return false;
        }
        loop {
            self.drain(None, out);
            let Some(end) = self.hole_end() else { break };
            let cause = if end <= self.ripe {
                Cause::Acknowledged
            } else if self.pieces.cost() > limits.stream_buffer {
                self.note(TOLD_LIMIT, Note::StreamLimit, now, out);
                Cause::Limit
            } else {
                return false;
            };
            self.skip_to(end, cause, now, out);
        }
        self.fin == Some(self.next)
    }

    /// Gives up every hole, because room is needed.
    pub(super) fn relieve<S: FlowSink>(&mut self, now: Moment, out: &mut Out<'_, S>) {
        if self.pieces.is_empty() {
            return;
        }
        self.note(TOLD_LIMIT, Note::TotalLimit, now, out);
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
        out.sink
            .tcp_end(out.stream, out.dir, how, &self.totals, now);
    }

    /// What was sent, as the FIN or an acknowledgement proves, and never captured.
    fn give_up_tail<S: FlowSink>(&mut self, now: Moment, out: &mut Out<'_, S>) {
        let sent = self.fin.unwrap_or(self.acked);
        if self.fin.is_none() && sent == self.next + 1 {
            out.sink
                .tcp_note(out.stream, out.dir, Note::FinAssumed, now);
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
        let here = if self.phase >= Phase::Started {
            self.next
        } else {
            ORIGIN
        };
        let here_seq = self.anchor.wrapping_add(here.wrapping_sub(ORIGIN) as u32);
        here.wrapping_add_signed(i64::from(seq.wrapping_sub(here_seq) as i32))
    }

    /// The slow path: out of order, repeated, cut off by a FIN, or before the start is known.
    #[inline(never)]
    fn place<S: FlowSink>(
        &mut self,
        position: u64,
        payload: Payload<'_>,
        at: Moment,
        out: &mut Out<'_, S>,
    ) {
        let Some(position) = self.plausible(position, payload, at, out) else {
            return;
        };
        let (mut here, mut bytes) = (position, payload.bytes);
        let mut end = position + payload.len;
        if let Some(fin) = self.fin.filter(|fin| *fin < end) {
            self.totals.ignored += end - fin.max(here);
            end = fin.max(here);
        }
        let floor = if self.high == 0 {
            ORIGIN.max(self.acked)
        } else {
            self.acked
        };
        if self.phase == Phase::Anchored && payload.len == 1 && end <= floor {
            // A keep-alive repeats a byte that is older than the capture.
            self.totals.repeated += 1;
            return;
        }
        if self.phase == Phase::Started && here < self.next {
            let old = self.next.min(end) - here;
            self.count_old(here, old, at, out);
            bytes = tail(bytes, old);
            here += old;
        }
        while here < end {
            let until = match self.pieces.span(here, end) {
                Span::Taken { end, bytes: there } => {
                    let differing = there
                        .iter()
                        .zip(head(bytes, end - here))
                        .position(|(a, b)| a != b);
                    let count = there
                        .iter()
                        .zip(head(bytes, end - here))
                        .filter(|(a, b)| a != b)
                        .count();
                    self.count_overlap(here, end - here, differing, count as u64, at, out);
                    end
                }
                Span::Free { end } if self.phase == Phase::Started && here == self.next => {
                    self.deliver(head(bytes, end - here), end - here, at, out);
                    end
                }
                Span::Free { end } => {
                    self.pieces
                        .put(here, head(bytes, end - here), end - here, at);
                    self.high = self.high.max(end);
                    end
                }
            };
            bytes = tail(bytes, until - here);
            here = until;
        }
        if self.phase == Phase::Started {
            self.drain(Some(at), out);
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
        let here = if self.phase >= Phase::Started {
            self.next
        } else {
            ORIGIN
        };
        if position.abs_diff(here) <= WINDOW {
            self.stray = (0, 0);
            return Some(position);
        }
        let (expected, count) = self.stray;
        let count = if count > 0 && expected == payload.seq {
            count + 1
        } else {
            1
        };
        self.stray = (payload.seq.wrapping_add(payload.len as u32), count);
        if count > JUMP_PROOF && self.phase == Phase::Started {
            self.stray = (0, 0);
            self.flush(Cause::Limit, at, out);
            let next_seq = self
                .anchor
                .wrapping_add(self.next.wrapping_sub(ORIGIN) as u32);
            self.give_up(
                u64::from(payload.seq.wrapping_sub(next_seq)),
                Cause::Limit,
                at,
                out,
            );
            return Some(self.next);
        }
        self.totals.ignored += payload.len;
        self.note(
            TOLD_IMPLAUSIBLE,
            Note::Implausible { len: payload.len },
            at,
            out,
        );
        None
    }

    /// Where the first hole ends, if there is one with something behind it.
    fn hole_end(&self) -> Option<u64> {
        let behind = self.pieces.first().map(|(start, _)| start).or(self.fin)?;
        (behind > self.next).then_some(behind)
    }

    /// A stream joined in the middle starts when nothing earlier is to be expected.
    fn start_if_due(&mut self, now: Moment, limits: &Limits) -> bool {
        let Some((first, at)) = self.pieces.first().or(self.fin.map(|fin| (fin, now))) else {
            return false;
        };
        let waited = nanos(now.time).saturating_sub(nanos(at.time));
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
        (self.start, self.next) = (first, first);
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
        while let Some((start, at)) = self.pieces.first().filter(|(start, _)| *start <= self.next) {
            let Some((_, piece)) = self.pieces.pop() else {
                break;
            };
            let old = self.next - start;
            if old < piece.len {
                let at = filled.unwrap_or(at.max(self.last));
                self.deliver(tail(&piece.bytes, old), piece.len - old, at, out);
            }
        }
    }

    #[inline]
    fn deliver<S: FlowSink>(&mut self, bytes: &[u8], len: u64, at: Moment, out: &mut Out<'_, S>) {
        if !bytes.is_empty() {
            out.sink
                .tcp_data(out.stream, out.dir, self.next - self.start, bytes, at);
        }
        let there = bytes.len() as u64;
        self.next += there;
        self.totals.delivered += there;
        self.last = at;
        if len > there {
            self.give_up(len - there, Cause::Cut, at, out);
        }
        self.high = self.high.max(self.next);
    }

    fn skip_to<S: FlowSink>(
        &mut self,
        position: u64,
        cause: Cause,
        now: Moment,
        out: &mut Out<'_, S>,
    ) {
        if position > self.next {
            let at = self.pieces.first().map_or(now, |(_, at)| at.max(self.last));
            self.give_up(position - self.next, cause, at, out);
        }
    }

    fn give_up<S: FlowSink>(&mut self, len: u64, cause: Cause, at: Moment, out: &mut Out<'_, S>) {
        out.sink
            .tcp_gap(out.stream, out.dir, self.next - self.start, len, cause, at);
        self.gap = (self.next, self.next + len);
        self.next += len;
        self.totals.lost += len;
        self.last = at;
    }

    fn count_old<S: FlowSink>(
        &mut self,
        position: u64,
        len: u64,
        at: Moment,
        out: &mut Out<'_, S>,
    ) {
        let (gap_start, gap_end) = self.gap;
        let late = gap_end
            .min(position + len)
            .saturating_sub(gap_start.max(position));
        self.totals.late += late;
        self.totals.repeated += len - late;
        if late > 0 {
            let offset = gap_start.max(position) - self.start;
            self.note(TOLD_LATE, Note::Late { offset, len: late }, at, out);
        }
    }

    fn count_overlap<S: FlowSink>(
        &mut self,
        position: u64,
        len: u64,
        differing: Option<usize>,
        count: u64,
        at: Moment,
        out: &mut Out<'_, S>,
    ) {
        self.totals.repeated += len;
        self.totals.conflicting += count;
        if let Some(first) = differing {
            let start = if self.phase == Phase::Started {
                self.start
            } else {
                self.pieces.first().map_or(position, |(start, _)| start)
            };
            let offset = (position + first as u64).saturating_sub(start);
            self.note(TOLD_CONFLICT, Note::Conflict { offset }, at, out);
        }
    }

    fn note<S: FlowSink>(&mut self, bit: u8, note: Note, at: Moment, out: &mut Out<'_, S>) {
        if self.told & bit == 0 {
            self.told |= bit;
            out.sink.tcp_note(out.stream, out.dir, note, at);
        }
    }
}
