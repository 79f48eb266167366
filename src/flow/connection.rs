//! One TCP connection: its two directions, which end opened it, and how it ends or begins anew.
//!
//! It does not know of other connections. `tcp` asks it whether a segment begins a new stream, and
//! then makes one.

use super::conversations::{EndpointPair, PairSide};
use super::delivery::DirectionSink;
use super::direction::{DirectionState, Payload};
use super::round_trip::RoundTripTimer;
use super::segment::{ACK, FIN, RST, SYN, Segment};
use super::sink::{Dir, End, FlowSink, Note, Stream, StreamId, TcpOpening};
use super::{FlowLimits, elapsed};
use crate::capture::Moment;
use crate::capture::Time;

/// Bytes up to this far from the end of a closed stream are late copies. Others begin a new
/// connection.
const LATE_COPY: u64 = 1 << 24;

/// A connection.
#[derive(Debug)]
pub(super) struct TcpConnection {
    pub id: StreamId,
    key: EndpointPair,
    low: DirectionState,
    high: DirectionState,
    low_timer: RoundTripTimer,
    high_timer: RoundTripTimer,
    /// The side whose direction is [`Dir::Forward`].
    forward: PairSide,
    /// Whether `tcp_open` was called for it.
    pub open: bool,
    /// Whether it was ended because too many streams were open. It may go on.
    pub evicted: bool,
    /// The sequence number that Wireshark takes for the one before each side's first byte.
    low_base: Option<u32>,
    high_base: Option<u32>,
    /// Whether a FIN with ACK or a RST was seen in a frame after the first.
    closing: bool,
    seen_low: bool,
    seen_high: bool,
    /// When a RST was seen.
    reset: Option<StreamMoment>,
    /// How many frames it had.
    frames: u64,
    /// When acknowledged holes were checked last.
    looked: StreamMoment,
}

/// A moment in the life of a stream.
#[derive(Clone, Copy, Debug, Default)]
struct StreamMoment {
    /// The number of frames that the stream had.
    frames: u64,
    time: Time,
}

impl TcpConnection {
    pub(super) fn new(id: StreamId, key: EndpointPair) -> Self {
        TcpConnection {
            id,
            key,
            low: DirectionState::default(),
            high: DirectionState::default(),
            low_timer: RoundTripTimer::default(),
            high_timer: RoundTripTimer::default(),
            forward: PairSide::Low,
            open: false,
            evicted: false,
            low_base: None,
            high_base: None,
            closing: false,
            seen_low: false,
            seen_high: false,
            reset: None,
            frames: 0,
            looked: StreamMoment::default(),
        }
    }

    fn dir(&self, side: PairSide) -> Dir {
        if side == self.forward { Dir::Forward } else { Dir::Backward }
    }

    fn pair(&mut self, side: PairSide) -> (&mut DirectionState, &mut DirectionState) {
        match side {
            PairSide::Low => (&mut self.low, &mut self.high),
            PairSide::High => (&mut self.high, &mut self.low),
        }
    }

    fn out<'s, S>(&self, side: PairSide, sink: &'s mut S) -> DirectionSink<'s, S> {
        DirectionSink { sink, stream: self.id, dir: self.dir(side) }
    }

    pub(super) fn cost(&self) -> usize {
        self.low.cost() + self.high.cost()
    }

    pub(super) fn ended(&self) -> bool {
        self.open && self.low.ended() && self.high.ended()
    }

    pub(super) fn pending(&self) -> bool {
        self.open
            && !self.ended()
            && (self.low.holds() || self.high.holds() || self.reset.is_some())
    }

    fn bases(&mut self, side: PairSide) -> (&mut Option<u32>, &mut Option<u32>) {
        match side {
            PairSide::Low => (&mut self.low_base, &mut self.high_base),
            PairSide::High => (&mut self.high_base, &mut self.low_base),
        }
    }

    /// Whether this segment begins a new stream between the same ends.
    pub(super) fn replaced_by(&mut self, side: PairSide, segment: &Segment<'_>) -> bool {
        let closing = self.closing;
        let (base, _) = self.bases(side);
        segment.opens() && base.is_some_and(|base| base != segment.seq || closing)
    }

    /// Updates Wireshark's base numbers. Returns whether a SYN with ACK shows that its side has
    /// begun anew. `created` is set for the first segment of the conversation.
    pub(super) fn rebase(&mut self, side: PairSide, segment: &Segment<'_>, created: bool) -> bool {
        let (mine, theirs) = self.bases(side);
        let answer = segment.has(SYN) && segment.has(ACK);
        let anew = answer && mine.is_some_and(|base| base != segment.seq);
        if anew || (mine.is_none() && segment.measured) {
            let before = segment.seq.wrapping_sub(1);
            *mine = Some(if segment.has(SYN) { segment.seq } else { before });
        }
        if segment.has(ACK) && theirs.is_none() && segment.measured {
            *theirs = Some(segment.ack.wrapping_sub(1));
        }
        let last = segment.flags & (FIN | ACK) == FIN | ACK || segment.has(RST);
        if last && !created && segment.full() {
            self.closing = true;
        }
        anew
    }

    /// Calls `tcp_open`. This segment decides which direction is forward.
    pub(super) fn begin<S: FlowSink>(
        &mut self,
        side: PairSide,
        segment: &Segment<'_>,
        at: Moment,
        sink: &mut S,
    ) {
        let (opening, forward) = match segment.flags & (SYN | ACK) {
            SYN => (TcpOpening::Syn, side),
            flags if flags == SYN | ACK => (TcpOpening::SynAck, side.other()),
            _ => (TcpOpening::Middle, side),
        };
        self.forward = forward;
        self.open = true;
        self.evicted = false;
        sink.tcp_open(&self.stream(), opening, at);
    }

    fn stream(&self) -> Stream {
        Stream {
            id: self.id,
            forward: self.key.end(self.forward),
            backward: self.key.end(self.forward.other()),
        }
    }

    /// Lets holes ripen if enough frames or time have passed since the last check.
    #[inline]
    pub(super) fn look(&mut self, now: Time, limits: &FlowLimits) {
        let both = self.seen_low && self.seen_high;
        let (frames, time) = if both {
            (limits.hole_frames, limits.hole_time)
        } else {
            (limits.blind_frames, limits.blind_time)
        };
        let waited = elapsed(self.looked.time, now);
        if self.frames - self.looked.frames >= frames || waited >= time {
            self.looked = StreamMoment { frames: self.frames, time: now };
            self.low.ripen(both);
            self.high.ripen(both);
        } else if waited < 0 || self.looked.time == Time::default() {
            // If the clock was set back, the wait begins again: no hole may be given up early
            // because of it.
            self.looked.time = now;
        }
    }

    /// Updates the positions of both directions by a segment's sequence and acknowledgement
    /// numbers.
    fn anchor(&mut self, side: PairSide, segment: &Segment<'_>, base: Option<u32>) {
        let other_seen = match side {
            PairSide::Low => self.seen_high,
            PairSide::High => self.seen_low,
        };
        let (mine, theirs) = self.pair(side);
        if segment.has(SYN) {
            mine.begin(segment.first());
            if segment.has(ACK) {
                theirs.begin(segment.ack);
            }
        } else if segment.len == 0 && !other_seen && segment.flags & (FIN | RST | ACK) == ACK {
            // The last step of a handshake whose second step was not captured.
            let handshake = base.is_some_and(|base| base.wrapping_add(1) == segment.seq)
                && mine.expects(segment.seq);
            if handshake && mine.untouched() {
                theirs.begin(segment.ack);
            }
        }
        if segment.len == 0 && !segment.has(RST) {
            mine.stands_at(segment.seq);
        }
        if segment.flags & (ACK | RST) == ACK && !theirs.ended() {
            theirs.acknowledge(segment.ack, segment.len == 0);
        }
    }

    /// Handles a segment. Returns how many payload bytes it has behind the end of its direction.
    pub(super) fn take<S: FlowSink>(
        &mut self,
        side: PairSide,
        segment: &Segment<'_>,
        at: Moment,
        limits: &FlowLimits,
        sink: &mut S,
    ) -> u64 {
        self.frames += 1;
        self.look(at.time, limits);
        let base = *self.bases(side).0;
        self.anchor(side, segment, base);
        self.time(side, segment, at, sink);
        match side {
            PairSide::Low => self.seen_low = true,
            PairSide::High => self.seen_high = true,
        }
        self.pair(side).0.hear(segment, at);
        let mut out = self.out(side, sink);
        // Nothing is reported after both directions have ended.
        for wrong in segment.sums.wrong().filter(|_| !self.ended()) {
            out.sink.tcp_note(out.stream, out.dir, Note::Checksum(wrong), at);
        }
        if segment.crowded && !self.ended() {
            out.sink.tcp_note(out.stream, out.dir, Note::FragmentLimit, at);
        }
        let over = self.ended();
        let (mine, _) = self.pair(side);
        if mine.ended() {
            if segment.has(RST) && segment.len > 0 && !over {
                let reason = Note::ResetReason(segment.bytes.into());
                out.sink.tcp_note(out.stream, out.dir, reason, at);
                return 0;
            }
            return mine.beyond(segment.first(), segment.len);
        }
        // The payload of a RST explains its cause (RFC 9293). Wireshark takes it for the end of the
        // stream; so do we, where no bytes are missing before it.
        let is_next = !segment.has(RST) || mine.expects(segment.first()) && !mine.waits();
        if segment.has(RST) && segment.len > 0 {
            let reason = Note::ResetReason(segment.bytes.into());
            out.sink.tcp_note(out.stream, out.dir, reason, at);
        }
        if segment.len > 0 && is_next {
            mine.data(
                Payload { seq: segment.first(), bytes: segment.bytes, len: segment.len },
                at,
                &mut out,
            );
        }
        if segment.flags & (FIN | RST) != 0 {
            mine.ends_at(segment.first().wrapping_add(segment.len as u32), at, &mut out);
        }
        let fin =
            segment.has(FIN) && mine.finish_at(segment.first().wrapping_add(segment.len as u32));
        if fin || segment.has(RST) {
            out.sink.tcp_closing(out.stream, out.dir, at);
        }
        if segment.has(RST) {
            if !mine.waits() && !mine.lacks(segment.seq) {
                mine.end(End::Rst, at, &mut out);
            }
            self.reset = self.reset.or(Some(StreamMoment { frames: self.frames, time: at.time }));
        }
        0
    }

    /// Measures the round trip to either end: from a segment to its acknowledgement.
    #[inline]
    fn time<S: FlowSink>(
        &mut self,
        side: PairSide,
        segment: &Segment<'_>,
        at: Moment,
        sink: &mut S,
    ) {
        let (mine, theirs) = match side {
            PairSide::Low => (&mut self.low_timer, &mut self.high_timer),
            PairSide::High => (&mut self.high_timer, &mut self.low_timer),
        };
        let shorter = segment.has(ACK).then(|| theirs.acknowledged(segment.ack, at.time)).flatten();
        mine.sent(segment, at.time);
        if let Some(trip) = shorter.filter(|_| !self.ended()) {
            sink.tcp_round_trip(self.id, self.dir(side.other()), trip.nanos, trip.opening);
        }
    }

    /// Delivers bytes that are in order, gives up ripe holes, and ends complete directions.
    #[inline]
    pub(super) fn settle<S: FlowSink>(&mut self, now: Moment, limits: &FlowLimits, sink: &mut S) {
        for side in [PairSide::Low, PairSide::High] {
            let mut out = self.out(side, sink);
            let (mine, _) = self.pair(side);
            if mine.settle(now, limits, &mut out) {
                mine.end(End::Fin, now, &mut out);
            }
        }
        if let Some(reset) = self.reset {
            // Segments that were on their way when the RST was sent are captured shortly after it.
            let over = self.frames - reset.frames >= limits.hole_frames
                || elapsed(reset.time, now.time) >= limits.hole_time;
            if over {
                self.end(End::Rst, now, sink);
            }
        }
    }

    /// Ends both directions.
    pub(super) fn end<S: FlowSink>(&mut self, how: End, now: Moment, sink: &mut S) {
        if !self.open {
            return;
        }
        let how = if self.reset.is_some() { End::Rst } else { how };
        for side in [self.forward, self.forward.other()] {
            let mut out = self.out(side, sink);
            self.pair(side).0.end(how, now, &mut out);
        }
    }

    /// Restarts the connection because of a SYN with ACK, although no SYN was captured.
    pub(super) fn begin_anew<S: FlowSink>(&mut self, side: PairSide, at: Moment, sink: &mut S) {
        let (mine, _) = self.pair(side);
        if mine.untouched() && !mine.ended() {
            mine.restart();
        } else {
            self.end(End::Replaced, at, sink);
            self.forget();
        }
    }

    /// Opens an ended stream again if this segment's payload cannot be a late copy.
    pub(super) fn revive(&mut self, side: PairSide, segment: &Segment<'_>) {
        if segment.len == 0 || segment.has(SYN) {
            return;
        }
        if self.evicted {
            self.low.resume();
            self.high.resume();
            self.open = false;
        } else if !self.pair(side).0.near(segment.first(), LATE_COPY) {
            self.forget();
        }
    }

    /// Resets everything but the stream's number and Wireshark's base numbers.
    fn forget(&mut self) {
        let low_base = self.low_base;
        let high_base = self.high_base;
        *self = TcpConnection {
            low_base,
            high_base,
            frames: 1,
            ..TcpConnection::new(self.id, self.key)
        };
    }

    /// Gives up all holes, to free memory.
    pub(super) fn relieve<S: FlowSink>(&mut self, now: Moment, sink: &mut S) {
        for side in [PairSide::Low, PairSide::High] {
            let mut out = self.out(side, sink);
            self.pair(side).0.relieve(now, &mut out);
        }
    }
}
