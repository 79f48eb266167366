//! All TCP connections: which stream a segment belongs to, and when streams begin, end, and begin
//! anew.
//!
//! `connection` handles one connection, `direction` the sequence numbers of one direction. Streams
//! are numbered as Wireshark numbers them (epan/dissectors/packet-tcp.c, `dissect_tcp`): a SYN
//! without ACK whose number is not the base of its sender's direction, or that comes after a FIN
//! with ACK or a RST, starts a new stream between the same ends.

use super::connection::TcpConnection;
use super::conversations::{ConversationTable, EndpointPair, List, PacketEnds, SlotId};
use super::not_read::NotRead;
use super::segment::Segment;
use super::sink::{End, FlowSink, StreamId};
use super::{FlowContext, FlowLimits};
use crate::capture::Moment;

/// How many waiting streams a segment may flush to free memory.
const RELIEF_STEPS: usize = 64;

/// All connections.
#[derive(Debug)]
pub(super) struct Tcp {
    table: ConversationTable<TcpConnection>,
    streams: u32,
    /// Memory held by waiting bytes, in all streams together.
    waiting: usize,
    /// The stream that the next `sweep` checks.
    hand: Option<SlotId>,
}

impl Tcp {
    pub(super) fn new() -> Self {
        Tcp { table: ConversationTable::new(), streams: 0, waiting: 0, hand: None }
    }

    /// How many streams were numbered.
    pub(super) fn streams(&self) -> u32 {
        self.streams
    }

    /// Memory held by waiting bytes.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// How many streams are remembered.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.table.count(List::Open) + self.table.count(List::Closed)
    }

    /// Handles a segment, and delivers the bytes that it completes. Returns its stream.
    pub(super) fn segment<S: FlowSink>(
        &mut self,
        ends: PacketEnds,
        segment: &Segment<'_>,
        context: &mut FlowContext<'_>,
        sink: &mut S,
    ) -> StreamId {
        let at = context.at;
        let limits = context.limits;
        let side = ends.sender;
        let (id, created) = self.conversation(ends, segment, at, sink);
        let stream = self.table.get(id).map_or(StreamId(self.streams), |conn| conn.id);
        if !(segment.measured && segment.full()) {
            // Wireshark numbers streams of damaged headers too.
            if let Some(conn) = self.table.get_mut(id) {
                conn.rebase(side, segment, created);
            }
            context.not_read.add(NotRead::Damaged);
            return stream;
        }
        let Some(conn) = self.table.get_mut(id) else {
            return stream;
        };
        let before = conn.cost();
        let anew = conn.rebase(side, segment, created);
        if anew {
            conn.begin_anew(side, at, sink);
        } else if conn.ended() {
            conn.revive(side, segment);
        }
        let opens = !conn.open;
        if opens {
            conn.begin(side, segment, at, sink);
        }
        context.stats.after_end += conn.take(side, segment, at, limits, sink);
        conn.settle(at, limits, sink);
        self.waiting = self.waiting + conn.cost() - before;
        self.file(id);
        if opens {
            self.evict_surplus(context, sink);
        }
        if self.waiting > limits.total_buffer {
            self.relieve(id, at, limits, sink);
        }
        stream
    }

    /// Numbers the conversation of a packet that an ICMP error quotes.
    pub(super) fn mention<S: FlowSink>(
        &mut self,
        pair: EndpointPair,
        context: &mut FlowContext<'_>,
        sink: &mut S,
    ) {
        if self.table.find(&pair).is_none() {
            self.create(pair);
            self.evict_surplus(context, sink);
        }
    }

    /// Checks one of the waiting streams, in turn, for holes to give up. Called once a frame, so
    /// that a stream without further frames is checked too.
    pub(super) fn sweep<S: FlowSink>(&mut self, now: Moment, limits: &FlowLimits, sink: &mut S) {
        let Some(id) = self.hand.or_else(|| self.table.oldest(List::Pending)) else {
            return;
        };
        self.hand = self.table.after(List::Pending, id);
        let Some(conn) = self.table.get_mut(id) else {
            return;
        };
        let before = conn.cost();
        conn.look(now.time, limits);
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
        self.table = ConversationTable::new();
        self.waiting = 0;
        self.hand = None;
    }

    /// The slot of the conversation that a segment belongs to, and whether the segment is its
    /// first.
    fn conversation<S: FlowSink>(
        &mut self,
        ends: PacketEnds,
        segment: &Segment<'_>,
        at: Moment,
        sink: &mut S,
    ) -> (SlotId, bool) {
        if let Some(id) = self.table.find(&ends.pair) {
            let replaced =
                self.table.get_mut(id).is_some_and(|conn| conn.replaced_by(ends.sender, segment));
            if !replaced {
                return (id, false);
            }
            self.drop_slot(id, End::Replaced, at, sink);
        }
        (self.create(ends.pair), true)
    }

    fn create(&mut self, pair: EndpointPair) -> SlotId {
        let id = StreamId(self.streams);
        self.streams = self.streams.saturating_add(1);
        self.table.insert(pair, TcpConnection::new(id, pair))
    }

    /// Ends the stream that was idle longest if too many are open, and forgets the one closed
    /// longest ago if too many are closed.
    fn evict_surplus<S: FlowSink>(&mut self, context: &mut FlowContext<'_>, sink: &mut S) {
        if self.table.count(List::Open) > context.limits.tcp_streams.max(1)
            && let Some(oldest) = self.table.oldest(List::Open)
        {
            context.stats.evicted += 1;
            self.evict(oldest, context.at, sink);
        }
        while self.table.count(List::Closed) > context.limits.tcp_closed
            && let Some(oldest) = self.table.oldest(List::Closed)
        {
            self.drop_slot(oldest, End::Evicted, context.at, sink);
        }
    }

    /// Ends a stream because too many are open, and keeps its number among the closed ones.
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

    /// Moves a conversation to the lists that its state belongs to.
    #[inline]
    fn file(&mut self, id: SlotId) {
        let Some(conn) = self.table.get(id) else {
            return;
        };
        let ended = conn.ended();
        let pending = conn.pending();
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

    /// Frees memory: the streams that have waited longest give up their holes first, then the
    /// `current` one.
    fn relieve<S: FlowSink>(
        &mut self,
        current: SlotId,
        now: Moment,
        limits: &FlowLimits,
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

    fn relieve_one<S: FlowSink>(
        &mut self,
        id: SlotId,
        now: Moment,
        limits: &FlowLimits,
        sink: &mut S,
    ) {
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
        if self.table.get(id).is_some_and(TcpConnection::ended) {
            self.table.close(id);
        }
    }
}
