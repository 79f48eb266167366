//! TCP connections: which segment belongs to which stream, when a stream begins, ends and begins anew.
//!
//! What one direction's sequence numbers mean stands in `half`. Streams are numbered as Wireshark numbers them
//! (epan/dissectors/packet-tcp.c, `dissect_tcp`): a SYN without ACK whose number is not the base of its sender's direction,
//! or that comes after a FIN with ACK or a RST, starts a new stream between the same ends.

use super::half::{Half, Out, Payload};
use super::sink::{Dir, End, FlowSink, Moment, Opening, Stream, StreamId};
use super::table::{Key, List, Side, SlotId, Table};
use super::{Limits, Stats, nanos};

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

/// A segment's bytes this far behind the end of a closed stream are late copies; others begin something new.
const LATE_COPY: u64 = 1 << 24;
/// How many waiting streams are looked at to make room at once.
const RELIEF_STEPS: usize = 64;

/// A segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment<'a> {
    pub src_port: u16,
    pub dst_port: u16,
    seq: u32,
    ack: u32,
    flags: u8,
    /// Whether the header's own length makes sense. Where not, only the ports count.
    sound: bool,
    bytes: &'a [u8],
    /// Length of the payload on the wire.
    len: u64,
}

impl<'a> Segment<'a> {
    /// Reads a header (RFC 9293) from the captured bytes of an IP payload that was `missing` bytes longer. `None` where
    /// not even the fixed fields were captured.
    #[inline]
    pub(super) fn parse(data: &'a [u8], missing: u32) -> Option<Self> {
        let [
            p0,
            p1,
            p2,
            p3,
            s0,
            s1,
            s2,
            s3,
            a0,
            a1,
            a2,
            a3,
            header,
            flags,
            _,
            _,
        ] = *data.first_chunk::<16>()?;
        let header_len = usize::from(header >> 4) * 4;
        let whole = data.len() as u64 + u64::from(missing);
        Some(Segment {
            src_port: u16::from_be_bytes([p0, p1]),
            dst_port: u16::from_be_bytes([p2, p3]),
            seq: u32::from_be_bytes([s0, s1, s2, s3]),
            ack: u32::from_be_bytes([a0, a1, a2, a3]),
            flags,
            sound: header_len >= 20 && whole >= header_len as u64,
            bytes: data.get(header_len..).unwrap_or_default(),
            len: whole.saturating_sub(header_len as u64),
        })
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    fn opens(&self) -> bool {
        self.flags & (SYN | ACK) == SYN
    }

    /// Sequence number of the first payload byte.
    fn first(&self) -> u32 {
        self.seq.wrapping_add(u32::from(self.has(SYN)))
    }
}

/// A connection.
#[derive(Debug)]
struct Conn {
    id: StreamId,
    key: Key,
    low: Half,
    high: Half,
    /// Which side sends what is forward.
    forward: Side,
    /// Whether the consumer was told that it is open.
    open: bool,
    /// Whether it was given up to make room, and may go on.
    evicted: bool,
    /// Wireshark's base sequence number of either side.
    low_base: Option<u32>,
    high_base: Option<u32>,
    /// A FIN with ACK or a RST was seen, other than in the first frame.
    closing: bool,
    seen_low: bool,
    seen_high: bool,
    /// A RST was seen: how many frames ago, and when.
    reset: Option<(u64, i64)>,
    frames: u64,
    /// When patience was looked at last.
    looked: (u64, i64),
}

impl Conn {
    fn new(id: StreamId, key: Key) -> Self {
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
            looked: (0, i64::MIN),
        }
    }

    fn dir(&self, side: Side) -> Dir {
        if side == self.forward {
            Dir::Forward
        } else {
            Dir::Backward
        }
    }

    fn pair(&mut self, side: Side) -> (&mut Half, &mut Half) {
        match side {
            Side::Low => (&mut self.low, &mut self.high),
            Side::High => (&mut self.high, &mut self.low),
        }
    }

    fn out<'s, S>(&self, side: Side, sink: &'s mut S) -> Out<'s, S> {
        Out {
            sink,
            stream: self.id,
            dir: self.dir(side),
        }
    }

    fn cost(&self) -> usize {
        self.low.cost() + self.high.cost()
    }

    fn ended(&self) -> bool {
        self.open && self.low.ended() && self.high.ended()
    }

    fn pending(&self) -> bool {
        self.open
            && !self.ended()
            && (self.low.waits() || self.high.waits() || self.reset.is_some())
    }

    fn bases(&mut self, side: Side) -> (&mut Option<u32>, &mut Option<u32>) {
        match side {
            Side::Low => (&mut self.low_base, &mut self.high_base),
            Side::High => (&mut self.high_base, &mut self.low_base),
        }
    }

    /// Whether this segment starts a new stream between the same ends.
    fn replaced_by(&mut self, side: Side, segment: &Segment<'_>) -> bool {
        let closing = self.closing;
        let (base, _) = self.bases(side);
        segment.opens() && base.is_some_and(|base| base != segment.seq || closing)
    }

    /// Keeps Wireshark's base numbers. True where a SYN with ACK shows that its side has begun anew.
    fn rebase(&mut self, side: Side, segment: &Segment<'_>) -> bool {
        let first = self.frames == 0;
        let (mine, theirs) = self.bases(side);
        let anew =
            segment.has(SYN) && segment.has(ACK) && mine.is_some_and(|base| base != segment.seq);
        if anew || mine.is_none() {
            *mine = Some(if segment.has(SYN) {
                segment.seq
            } else {
                segment.seq.wrapping_sub(1)
            });
        }
        if segment.has(ACK) && theirs.is_none() {
            *theirs = Some(segment.ack.wrapping_sub(1));
        }
        if !first && (segment.flags & (FIN | ACK) == FIN | ACK || segment.has(RST)) {
            self.closing = true;
        }
        anew
    }

    /// Tells the consumer of the stream's beginning, and takes from this segment which side is which.
    fn begin<S: FlowSink>(&mut self, side: Side, segment: &Segment<'_>, at: Moment, sink: &mut S) {
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
        Stream {
            id: self.id,
            forward: self.key.end(self.forward),
            backward: self.key.end(self.forward.other()),
        }
    }

    /// What was acknowledged long enough ago is ripe.
    #[inline]
    fn look(&mut self, now: i64, limits: &Limits) {
        let both = self.seen_low && self.seen_high;
        let (frames, time) = if both {
            (limits.hole_frames, limits.hole_time)
        } else {
            (limits.blind_frames, limits.blind_time)
        };
        let (then_frames, then) = self.looked;
        if now < then {
            // A clock that was set back must not hasten anything.
            self.looked = (then_frames, now);
        } else if self.frames - then_frames >= frames || now.saturating_sub(then) >= time {
            self.looked = (self.frames, now);
            self.low.ripen(both);
            self.high.ripen(both);
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
            theirs.acknowledge(segment.ack);
        }
    }

    /// A segment of this connection.
    fn take<S: FlowSink>(
        &mut self,
        side: Side,
        segment: &Segment<'_>,
        at: Moment,
        limits: &Limits,
        sink: &mut S,
    ) -> u64 {
        self.frames += 1;
        self.look(nanos(at.time), limits);
        let base = *self.bases(side).0;
        self.anchor(side, segment, base);
        match side {
            Side::Low => self.seen_low = true,
            Side::High => self.seen_high = true,
        }
        let mut out = self.out(side, sink);
        let (mine, _) = self.pair(side);
        if mine.ended() {
            return mine.beyond(segment.first(), segment.len);
        }
        if segment.len > 0 {
            mine.data(
                Payload {
                    seq: segment.first(),
                    bytes: segment.bytes,
                    len: segment.len,
                },
                at,
                &mut out,
            );
        }
        if segment.has(FIN) {
            mine.finish_at(segment.first().wrapping_add(segment.len as u32));
        }
        if segment.has(RST) {
            if !mine.waits() && !mine.lacks(segment.seq) {
                mine.end(End::Rst, at, &mut out);
            }
            self.reset = self.reset.or(Some((self.frames, nanos(at.time))));
        }
        0
    }

    /// Delivers and ends what is due.
    #[inline]
    fn settle<S: FlowSink>(&mut self, now: Moment, limits: &Limits, sink: &mut S) {
        for side in [Side::Low, Side::High] {
            let mut out = self.out(side, sink);
            let (mine, _) = self.pair(side);
            if mine.settle(now, limits, &mut out) {
                mine.end(End::Fin, now, &mut out);
            }
        }
        if let Some((frame, time)) = self.reset {
            // Segments that were under way when the RST was sent are captured shortly after it.
            let over = self.frames - frame >= limits.hole_frames
                || nanos(now.time).saturating_sub(time) >= limits.hole_time;
            if over {
                self.end(End::Rst, now, sink);
            }
        }
    }

    /// Ends both directions.
    fn end<S: FlowSink>(&mut self, how: End, now: Moment, sink: &mut S) {
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
    fn begin_anew<S: FlowSink>(&mut self, side: Side, at: Moment, sink: &mut S) {
        let (mine, _) = self.pair(side);
        if mine.untouched() && !mine.ended() {
            mine.restart();
        } else {
            self.end(End::Replaced, at, sink);
            self.forget();
        }
    }

    /// Payload of a stream that has ended opens it again where it cannot be a late copy.
    fn revive(&mut self, side: Side, segment: &Segment<'_>) {
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
        *self = Conn {
            low_base,
            high_base,
            frames: 1,
            ..Conn::new(self.id, self.key)
        };
    }

    fn relieve<S: FlowSink>(&mut self, now: Moment, sink: &mut S) {
        for side in [Side::Low, Side::High] {
            let mut out = self.out(side, sink);
            self.pair(side).0.relieve(now, &mut out);
        }
    }
}

/// All connections.
#[derive(Debug)]
pub(super) struct Tcp {
    table: Table<Conn>,
    streams: u32,
    /// Memory held by bytes that wait, in all streams together.
    waiting: usize,
    /// Where the next look for patience run out goes.
    hand: Option<SlotId>,
}

impl Tcp {
    pub(super) fn new() -> Self {
        Tcp {
            table: Table::new(),
            streams: 0,
            waiting: 0,
            hand: None,
        }
    }

    /// How many streams there were.
    pub(super) fn streams(&self) -> u32 {
        self.streams
    }

    /// Memory held by bytes that wait.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many streams are remembered.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.table.count(List::Open) + self.table.count(List::Closed)
    }

    /// Takes a segment, told with its ends and its sender.
    pub(super) fn segment<S: FlowSink>(
        &mut self,
        (key, side): (Key, Side),
        segment: &Segment<'_>,
        at: Moment,
        (limits, stats): (&Limits, &mut Stats),
        sink: &mut S,
    ) {
        let id = self.conversation(key, side, segment, at, sink);
        if !segment.sound {
            stats.malformed += 1;
            return;
        }
        let Some(conn) = self.table.get_mut(id) else {
            return;
        };
        let before = conn.cost();
        let anew = conn.rebase(side, segment);
        if anew {
            conn.begin_anew(side, at, sink);
        } else if conn.ended() {
            conn.revive(side, segment);
        }
        let opens = !conn.open;
        if opens {
            conn.begin(side, segment, at, sink);
        }
        stats.after_end += conn.take(side, segment, at, limits, sink);
        conn.settle(at, limits, sink);
        self.waiting = self.waiting + conn.cost() - before;
        self.file(id);
        if opens {
            self.make_room(at, (limits, stats), sink);
        }
        if self.waiting > limits.total_buffer {
            self.relieve(id, at, limits, sink);
        }
    }

    /// Numbers a conversation that is only spoken of, in an ICMP error.
    pub(super) fn mention<S: FlowSink>(
        &mut self,
        key: Key,
        at: Moment,
        room: (&Limits, &mut Stats),
        sink: &mut S,
    ) {
        if self.table.find(&key).is_none() {
            self.create(key);
            self.make_room(at, room, sink);
        }
    }

    /// Looks at one of the streams that wait, whichever has its turn: so that one without further frames is not
    /// forgotten.
    pub(super) fn sweep<S: FlowSink>(&mut self, now: Moment, limits: &Limits, sink: &mut S) {
        let Some(id) = self.hand.or_else(|| self.table.oldest(List::Pending)) else {
            return;
        };
        self.hand = self.table.after(List::Pending, id);
        let Some(conn) = self.table.get_mut(id) else {
            return;
        };
        let before = conn.cost();
        conn.look(nanos(now.time), limits);
        conn.settle(now, limits, sink);
        self.waiting = self.waiting + conn.cost() - before;
        self.file(id);
    }

    /// Ends every stream, oldest first.
    pub(super) fn finish<S: FlowSink>(&mut self, now: Moment, sink: &mut S) {
        let mut open = Vec::with_capacity(self.table.count(List::Open));
        let mut next = self.table.oldest(List::Open);
        while let Some(id) = next {
            next = self.table.after(List::Open, id);
            open.extend(self.table.get(id).map(|conn| (conn.id, id)));
        }
        open.sort_unstable();
        for (_, id) in open {
            if let Some(conn) = self.table.get_mut(id) {
                conn.end(End::CaptureEnd, now, sink);
            }
        }
        self.table = Table::new();
        self.waiting = 0;
        self.hand = None;
    }

    /// The slot of the conversation a segment belongs to, made if need be.
    fn conversation<S: FlowSink>(
        &mut self,
        key: Key,
        side: Side,
        segment: &Segment<'_>,
        at: Moment,
        sink: &mut S,
    ) -> SlotId {
        if let Some(id) = self.table.find(&key) {
            let replaced = self
                .table
                .get_mut(id)
                .is_some_and(|conn| conn.replaced_by(side, segment));
            if !replaced {
                return id;
            }
            self.drop_slot(id, End::Replaced, at, sink);
        }
        self.create(key)
    }

    fn create(&mut self, key: Key) -> SlotId {
        let id = StreamId(self.streams);
        self.streams = self.streams.saturating_add(1);
        self.table.insert(key, Conn::new(id, key))
    }

    /// Ends the longest idle stream where there are too many, and forgets the longest closed one.
    fn make_room<S: FlowSink>(
        &mut self,
        at: Moment,
        (limits, stats): (&Limits, &mut Stats),
        sink: &mut S,
    ) {
        if self.table.count(List::Open) > limits.tcp_streams.max(1)
            && let Some(oldest) = self.table.oldest(List::Open)
        {
            stats.evicted += 1;
            self.evict(oldest, at, sink);
        }
        while self.table.count(List::Closed) > limits.tcp_closed
            && let Some(oldest) = self.table.oldest(List::Closed)
        {
            self.drop_slot(oldest, End::Evicted, at, sink);
        }
    }

    /// Ends a stream to make room, and keeps its number among the closed ones.
    fn evict<S: FlowSink>(&mut self, id: SlotId, at: Moment, sink: &mut S) {
        let Some(conn) = self.table.get_mut(id) else {
            return;
        };
        let before = conn.cost();
        conn.end(End::Evicted, at, sink);
        conn.evicted = conn.open;
        self.waiting -= before;
        self.unpend(id);
        self.table.close(id);
    }

    fn drop_slot<S: FlowSink>(&mut self, id: SlotId, how: End, at: Moment, sink: &mut S) {
        self.unpend(id);
        if let Some(mut conn) = self.table.remove(id) {
            self.waiting -= conn.cost();
            conn.end(how, at, sink);
        }
    }

    /// Puts a conversation into the lists where it belongs.
    #[inline]
    fn file(&mut self, id: SlotId) {
        let Some(conn) = self.table.get(id) else {
            return;
        };
        let (ended, pending) = (conn.ended(), conn.pending());
        if pending {
            self.table.set_pending(id, true);
        } else {
            self.unpend(id);
        }
        if ended {
            self.table.close(id);
        } else {
            self.table.touch(id);
        }
    }

    fn unpend(&mut self, id: SlotId) {
        if self.hand == Some(id) {
            self.hand = self.table.after(List::Pending, id);
        }
        self.table.set_pending(id, false);
    }

    /// Makes room: those that have waited longest give up their holes first, then the one that came last.
    fn relieve<S: FlowSink>(
        &mut self,
        current: SlotId,
        now: Moment,
        limits: &Limits,
        sink: &mut S,
    ) {
        let mut next = self.table.oldest(List::Pending);
        for _ in 0..RELIEF_STEPS {
            let Some(id) = next else { break };
            next = self.table.after(List::Pending, id);
            self.relieve_one(id, now, limits, sink);
            if self.waiting <= limits.total_buffer {
                return;
            }
        }
        self.relieve_one(current, now, limits, sink);
    }

    fn relieve_one<S: FlowSink>(&mut self, id: SlotId, now: Moment, limits: &Limits, sink: &mut S) {
        let Some(conn) = self.table.get_mut(id) else {
            return;
        };
        let before = conn.cost();
        conn.relieve(now, sink);
        conn.settle(now, limits, sink);
        self.waiting = self.waiting + conn.cost() - before;
        if !conn.pending() {
            self.unpend(id);
        }
        if self.table.get(id).is_some_and(Conn::ended) {
            self.table.close(id);
        }
    }
}
