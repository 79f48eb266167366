//! TCP connections: which segment belongs to which stream, when a stream begins, ends and begins anew.
//!
//! What a connection is stands in `conn`, what one direction's sequence numbers mean in `half`. Streams are numbered
//! as Wireshark numbers them (epan/dissectors/packet-tcp.c, `dissect_tcp`): a SYN without ACK whose number is not the
//! base of its sender's direction, or that comes after a FIN with ACK or a RST, starts a new stream between the same
//! ends.

use super::conn::Conn;
use super::segment::Segment;
use super::sink::{End, FlowSink, StreamId};
use super::table::{Key, List, Side, SlotId, Table};
use super::{Limits, Stats};
use crate::capture::Moment;

/// How many waiting streams are looked at to make room at once.
const RELIEF_STEPS: usize = 64;

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
        Tcp { table: Table::new(), streams: 0, waiting: 0, hand: None }
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
        let (id, created) = self.conversation(key, side, segment, at, sink);
        if !(segment.measured && segment.full()) {
            if let Some(conn) = self.table.get_mut(id) {
                conn.rebase(side, segment, created);
            }
            stats.malformed += 1;
            return;
        }
        let Some(conn) = self.table.get_mut(id) else {
            return;
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
    pub(super) fn mention<S: FlowSink>(&mut self, key: Key, at: Moment, room: (&Limits, &mut Stats), sink: &mut S) {
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
        self.table = Table::new();
        self.waiting = 0;
        self.hand = None;
    }

    /// The slot of the conversation a segment belongs to, and whether it was made for it.
    fn conversation<S: FlowSink>(
        &mut self,
        key: Key,
        side: Side,
        segment: &Segment<'_>,
        at: Moment,
        sink: &mut S,
    ) -> (SlotId, bool) {
        if let Some(id) = self.table.find(&key) {
            let replaced = self.table.get_mut(id).is_some_and(|conn| conn.replaced_by(side, segment));
            if !replaced {
                return (id, false);
            }
            self.drop_slot(id, End::Replaced, at, sink);
        }
        (self.create(key), true)
    }

    fn create(&mut self, key: Key) -> SlotId {
        let id = StreamId(self.streams);
        self.streams = self.streams.saturating_add(1);
        self.table.insert(key, Conn::new(id, key))
    }

    /// Ends the longest idle stream where there are too many, and forgets the longest closed one.
    fn make_room<S: FlowSink>(&mut self, at: Moment, (limits, stats): (&Limits, &mut Stats), sink: &mut S) {
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
    fn relieve<S: FlowSink>(&mut self, current: SlotId, now: Moment, limits: &Limits, sink: &mut S) {
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
