//! UDP datagrams and the conversations they belong to, numbered as Wireshark's `udp.stream`: one for each pair of
//! ends, from 0, in order of their first datagram.
//!
//! It keeps nothing of a datagram's content.

use super::checksum::Sums;
use super::sink::{Dir, End, FlowSink, Note, Stream, StreamId};
use super::table::{Key, List, Side, Table};
use super::{Limits, Stats};
use crate::capture::Moment;

const HEADER: usize = 8;

/// A datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Datagram<'a> {
    pub src_port: u16,
    pub dst_port: u16,
    pub bytes: &'a [u8],
    /// How many more bytes it had on the wire.
    pub missing: u32,
    /// Its checksums that are wrong, and its packet's.
    pub sums: Sums,
    /// The rest of it was in IP fragments that were no longer waited for, because too many did.
    pub crowded: bool,
}

impl<'a> Datagram<'a> {
    /// Reads a header (RFC 768) from the captured bytes of an IP payload that was `missing` bytes longer. The length
    /// field bounds the payload. `None` where the header is cut off or its length impossible.
    pub(super) fn parse(data: &'a [u8], missing: u32, v6: bool) -> Option<Self> {
        let ([s0, s1, d0, d1, l0, l1, ..], rest) = data.split_first_chunk::<HEADER>()?;
        let there = rest.len() + missing as usize;
        let len = match usize::from(u16::from_be_bytes([*l0, *l1])) {
            // A jumbogram (RFC 2675).
            0 if v6 => there,
            length => length.checked_sub(HEADER)?,
        };
        let bytes = rest.get(..len).unwrap_or(rest);
        Some(Datagram {
            src_port: u16::from_be_bytes([*s0, *s1]),
            dst_port: u16::from_be_bytes([*d0, *d1]),
            bytes,
            missing: u32::try_from(len - bytes.len()).unwrap_or(u32::MAX),
            sums: Sums::default(),
            crowded: false,
        })
    }
}

#[derive(Debug)]
struct Conversation {
    stream: Stream,
    forward: Side,
    /// Whether the consumer has seen a datagram of it.
    open: bool,
}

/// All conversations.
#[derive(Debug)]
pub(super) struct Udp {
    table: Table<Conversation>,
    streams: u32,
}

impl Udp {
    pub(super) fn new() -> Self {
        Udp { table: Table::new(), streams: 0 }
    }

    /// How many streams there were.
    pub(super) fn streams(&self) -> u32 {
        self.streams
    }

    /// Takes a datagram, told with its ends and its sender.
    pub(super) fn datagram<S: FlowSink>(
        &mut self,
        (key, side): (Key, Side),
        datagram: &Datagram<'_>,
        at: Moment,
        room: (&Limits, &mut Stats),
        sink: &mut S,
    ) {
        let id = match self.table.find(&key) {
            Some(id) => id,
            None => self.create(key, side, at, room, sink),
        };
        self.table.touch(id);
        let Some(conversation) = self.table.get_mut(id) else {
            return;
        };
        if !conversation.open {
            *conversation = Conversation { open: true, ..Conversation::new(conversation.stream.id, key, side) };
        }
        let dir = if side == conversation.forward { Dir::Forward } else { Dir::Backward };
        for wrong in datagram.sums.wrong() {
            sink.udp_note(&conversation.stream, dir, Note::Checksum(wrong), at);
        }
        if datagram.crowded {
            sink.udp_note(&conversation.stream, dir, Note::FragmentLimit, at);
        }
        sink.udp(&conversation.stream, dir, datagram.bytes, datagram.missing, at);
    }

    /// Numbers a conversation that is only spoken of, in an ICMP error.
    pub(super) fn mention<S: FlowSink>(
        &mut self,
        (key, side): (Key, Side),
        at: Moment,
        room: (&Limits, &mut Stats),
        sink: &mut S,
    ) {
        if self.table.find(&key).is_none() {
            self.create(key, side, at, room, sink);
        }
    }

    /// Ends every stream, in order of their numbers.
    pub(super) fn finish<S: FlowSink>(&mut self, now: Moment, sink: &mut S) {
        let mut open = Vec::with_capacity(self.table.count(List::Open));
        let mut next = self.table.oldest(List::Open);
        while let Some(id) = next {
            next = self.table.after(List::Open, id);
            open.extend(
                self.table.get(id).filter(|conversation| conversation.open).map(|conversation| conversation.stream.id),
            );
        }
        open.sort_unstable();
        for id in open {
            sink.udp_end(id, End::CaptureEnd, now);
        }
        self.table = Table::new();
    }

    fn create<S: FlowSink>(
        &mut self,
        key: Key,
        side: Side,
        at: Moment,
        (limits, stats): (&Limits, &mut Stats),
        sink: &mut S,
    ) -> u32 {
        if self.table.count(List::Open) >= limits.udp_streams.max(1)
            && let Some(oldest) = self.table.oldest(List::Open)
            && let Some(old) = self.table.remove(oldest)
            && old.open
        {
            stats.evicted += 1;
            sink.udp_end(old.stream.id, End::Evicted, at);
        }
        let id = StreamId(self.streams);
        self.streams = self.streams.saturating_add(1);
        self.table.insert(key, Conversation::new(id, key, side))
    }
}

impl Conversation {
    fn new(id: StreamId, key: Key, side: Side) -> Self {
        let stream = Stream { id, forward: key.end(side), backward: key.end(side.other()) };
        Conversation { stream, forward: side, open: false }
    }
}
