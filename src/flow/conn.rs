//! One TCP connection: its two directions, who opened it, and how it ends or begins anew.
//!
//! It does not know of other connections; what makes a stream a new one is asked here and done in `tcp`.

use super::delivery::Out;
use super::half::{Half, Payload};
use super::segment::{ACK, FIN, RST, SYN, Segment};
use super::sink::{Dir, End, FlowSink, Note, Opening, Stream, StreamId};
use super::table::{Key, Side};
use super::{Limits, elapsed};
use crate::capture::Moment;
use crate::capture::Time;

/// A segment's bytes this far behind the end of a closed stream are late copies; others begin something new.
const LATE_COPY: u64 = 1 << 24;

/// A connection.
#[derive(Debug)]
pub(super) struct Conn {
    pub id: StreamId,
    key: Key,
    low: Half,
    high: Half,
    /// Which side sends what is forward.
    forward: Side,
    /// Whether the consumer was told that it is open.
    pub open: bool,
    /// Whether it was given up to make room, and may go on.
    pub evicted: bool,
    /// Wireshark's base sequence number of either side.
    low_base: Option<u32>,
    high_base: Option<u32>,
    /// A FIN with ACK or a RST was seen, other than in the first frame.
    closing: bool,
    seen_low: bool,
    seen_high: bool,
    /// A RST was seen: in which frame of the stream, and when.
    reset: Option<(u64, Time)>,
    frames: u64,
    /// When patience was looked at last.
    looked: (u64, Time),
}

impl Conn {
    pub(super) fn new(id: StreamId, key: Key) -> Self {
        Conn {
            id,
            key,
            low: Half::default(),
            high: Half::default(),
            forward: Side::Low,
            open: false,
            evicted: false,
            low_base: None,
            high_base: None,
            closing: false,
            seen_low: false,
            seen_high: false,
            reset: None,
            frames: 0,
            looked: (0, Time::default()),
        }
    }

    fn dir(&self, side: Side) -> Dir {
        if side == self.forward { Dir::Forward } else { Dir::Backward }
    }

    fn pair(&mut self, side: Side) -> (&mut Half, &mut Half) {
        match side {
            Side::Low => (&mut self.low, &mut self.high),
            Side::High => (&mut self.high, &mut self.low),
        }
    }

    fn out<'s, S>(&self, side: Side, sink: &'s mut S) -> Out<'s, S> {
        Out { sink, stream: self.id, dir: self.dir(side) }
    }

    pub(super) fn cost(&self) -> usize {
        self.low.cost() + self.high.cost()
    }

    pub(super) fn ended(&self) -> bool {
        self.open && self.low.ended() && self.high.ended()
    }

    pub(super) fn pending(&self) -> bool {
        self.open && !self.ended() && (self.low.waits() || self.high.waits() || self.reset.is_some())
    }

    fn bases(&mut self, side: Side) -> (&mut Option<u32>, &mut Option<u32>) {
        match side {
            Side::Low => (&mut self.low_base, &mut self.high_base),
            Side::High => (&mut self.high_base, &mut self.low_base),
        }
    }

    /// Whether this segment starts a new stream between the same ends.
    pub(super) fn replaced_by(&mut self, side: Side, segment: &Segment<'_>) -> bool {
        let closing = self.closing;
        let (base, _) = self.bases(side);
        segment.opens() && base.is_some_and(|base| base != segment.seq || closing)
    }

    /// Keeps Wireshark's base numbers. True where a SYN with ACK shows that its side has begun anew. `created` says that
    /// this segment was the first of its conversation.
    pub(super) fn rebase(&mut self, side: Side, segment: &Segment<'_>, created: bool) -> bool {
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

    /// Tells the consumer of the stream's beginning, and takes from this segment which side is which.
    pub(super) fn begin<S: FlowSink>(&mut self, side: Side, segment: &Segment<'_>, at: Moment, sink: &mut S) {
        let (opening, forward) = match segment.flags & (SYN | ACK) {
            SYN => (Opening::Syn, side),
            flags if flags == SYN | ACK => (Opening::SynAck, side.other()),
            _ => (Opening::Middle, side),
        };
        self.forward = forward;
        self.open = true;
        self.evicted = false;
        sink.tcp_open(&self.stream(), opening, at);
    }

    fn stream(&self) -> Stream {
        Stream { id: self.id, forward: self.key.end(self.forward), backward: self.key.end(self.forward.other()) }
    }

    /// What was acknowledged long enough ago is ripe.
    #[inline]
    pub(super) fn look(&mut self, now: Time, limits: &Limits) {
        let both = self.seen_low && self.seen_high;
        let (frames, time) =
            if both { (limits.hole_frames, limits.hole_time) } else { (limits.blind_frames, limits.blind_time) };
        let (then_frames, then) = self.looked;
        let waited = elapsed(then, now);
        if self.frames - then_frames >= frames || waited >= time {
            self.looked = (self.frames, now);
            self.low.ripen(both);
            self.high.ripen(both);
        } else if waited < 0 || then == Time::default() {
            // A clock that was set back must not hasten anything.
            self.looked = (then_frames, now);
        }
    }

    /// What a segment says about where either direction stands.
    fn anchor(&mut self, side: Side, segment: &Segment<'_>, base: Option<u32>) {
        let other_seen = match side {
            Side::Low => self.seen_high,
            Side::High => self.seen_low,
        };
        let (mine, theirs) = self.pair(side);
        if segment.has(SYN) {
            mine.begin(segment.first());
            if segment.has(ACK) {
                theirs.begin(segment.ack);
            }
        } else if segment.len == 0 && !other_seen && segment.flags & (FIN | RST | ACK) == ACK {
            // The last step of a handshake of which the answer was not captured.
            let handshake = base.is_some_and(|base| base.wrapping_add(1) == segment.seq) && mine.expects(segment.seq);
            if handshake && mine.untouched() {
                theirs.begin(segment.ack);
            }
        }
        if segment.len == 0 && !segment.has(RST) {
            mine.stands_at(segment.seq);
        }
        if segment.flags & (ACK | RST) == ACK && !theirs.ended() {
            theirs.acknowledge(segment.ack);
        }
    }

    /// A segment of this connection.
    pub(super) fn take<S: FlowSink>(
        &mut self,
        side: Side,
        segment: &Segment<'_>,
        at: Moment,
        limits: &Limits,
        sink: &mut S,
    ) -> u64 {
        self.frames += 1;
        self.look(at.time, limits);
        let base = *self.bases(side).0;
        self.anchor(side, segment, base);
        match side {
            Side::Low => self.seen_low = true,
            Side::High => self.seen_high = true,
        }
        let mut out = self.out(side, sink);
        // What comes behind the end of both directions is told to nobody.
        for wrong in segment.sums.wrong().filter(|_| !self.ended()) {
            out.sink.tcp_note(out.stream, out.dir, Note::Checksum(wrong), at);
        }
        if segment.crowded && !self.ended() {
            out.sink.tcp_note(out.stream, out.dir, Note::FragmentLimit, at);
        }
        let (mine, _) = self.pair(side);
        if mine.ended() {
            return mine.beyond(segment.first(), segment.len);
        }
        // What a RST carries is a word about its cause (RFC 1122), and no part of the stream.
        if segment.len > 0 && !segment.has(RST) {
            mine.data(Payload { seq: segment.first(), bytes: segment.bytes, len: segment.len }, at, &mut out);
        }
        if segment.has(FIN) {
            mine.finish_at(segment.first().wrapping_add(segment.len as u32));
        }
        if segment.has(RST) {
            if !mine.waits() && !mine.lacks(segment.seq) {
                mine.end(End::Rst, at, &mut out);
            }
            self.reset = self.reset.or(Some((self.frames, at.time)));
        }
        0
    }

    /// Delivers and ends what is due.
    #[inline]
    pub(super) fn settle<S: FlowSink>(&mut self, now: Moment, limits: &Limits, sink: &mut S) {
        for side in [Side::Low, Side::High] {
            let mut out = self.out(side, sink);
            let (mine, _) = self.pair(side);
            if mine.settle(now, limits, &mut out) {
                mine.end(End::Fin, now, &mut out);
            }
        }
        if let Some((frame, time)) = self.reset {
            // Segments that were under way when the RST was sent are captured shortly after it.
            let over = self.frames - frame >= limits.hole_frames || elapsed(time, now.time) >= limits.hole_time;
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

    /// A SYN with ACK showed that its side begins anew, though no SYN was captured.
    pub(super) fn begin_anew<S: FlowSink>(&mut self, side: Side, at: Moment, sink: &mut S) {
        let (mine, _) = self.pair(side);
        if mine.untouched() && !mine.ended() {
            mine.restart();
        } else {
            self.end(End::Replaced, at, sink);
            self.forget();
        }
    }

    /// Payload of a stream that has ended opens it again where it cannot be a late copy.
    pub(super) fn revive(&mut self, side: Side, segment: &Segment<'_>) {
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

    /// Back to the beginning, under the same number.
    fn forget(&mut self) {
        let (low_base, high_base) = (self.low_base, self.high_base);
        *self = Conn { low_base, high_base, frames: 1, ..Conn::new(self.id, self.key) };
    }

    pub(super) fn relieve<S: FlowSink>(&mut self, now: Moment, sink: &mut S) {
        for side in [Side::Low, Side::High] {
            let mut out = self.out(side, sink);
            self.pair(side).0.relieve(now, &mut out);
        }
    }
}
