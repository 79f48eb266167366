//! UDP datagrams and their conversations. Each pair of ends is a conversation, numbered from 0 in
//! order of their first datagrams, like Wireshark's `udp.stream`.
//!
//! It keeps no content of datagrams.

use super::FlowContext;
use super::checksum::WrongSums;
use super::conversations::{ConversationTable, List, PacketEnds, PairSide, SlotId};
use super::remaining::Remaining;
use super::sink::{Dir, End, FlowSink, Note, Stream, StreamId};
use crate::capture::Moment;

/// Bytes of a UDP header.
const HEADER: usize = 8;

/// A datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Datagram<'a> {
    pub src_port: u16,
    pub dst_port: u16,
    pub bytes: &'a [u8],
    /// How many more bytes it had on the wire.
    pub missing: u32,
    pub sums: WrongSums,
    /// Whether its end is missing because too many IP fragments were waiting and this datagram's
    /// were given up.
    pub crowded: bool,
}

impl<'a> Datagram<'a> {
    /// Reads a header (RFC 768) from the captured bytes of an IP payload that was `missing` bytes
    /// longer. The length field bounds the payload. `None` if the header is cut or its length is
    /// too small for a header.
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
            sums: WrongSums::default(),
            crowded: false,
        })
    }

    /// Its content, in the network of its packet.
    pub(super) fn remaining(&self, packet: Remaining<'a>) -> Remaining<'a> {
        let wire_len = self.bytes.len() + self.missing as usize;
        Remaining { bytes: self.bytes, wire_len, ..packet }
    }
}

#[derive(Debug)]
struct Conversation {
    stream: Stream,
    forward: PairSide,
    /// Whether the sink got a datagram of it.
    open: bool,
}

/// All conversations.
#[derive(Debug)]
pub(super) struct Udp {
    table: ConversationTable<Conversation>,
    streams: u32,
}

impl Udp {
    pub(super) fn new() -> Self {
        Udp { table: ConversationTable::new(), streams: 0 }
    }

    /// How many streams were numbered.
    pub(super) fn streams(&self) -> u32 {
        self.streams
    }

    /// Delivers a datagram. Returns its stream.
    pub(super) fn datagram<S: FlowSink>(
        &mut self,
        ends: PacketEnds,
        datagram: &Datagram<'_>,
        context: &mut FlowContext<'_>,
        sink: &mut S,
    ) -> Option<StreamId> {
        let at = context.at;
        let id = match self.table.find(&ends.pair) {
            Some(id) => id,
            None => self.create(ends, context, sink),
        };
        self.table.touch(id);
        let conversation = self.table.get_mut(id)?;
        if !conversation.open {
            *conversation =
                Conversation { open: true, ..Conversation::new(conversation.stream.id, ends) };
        }
        let dir = if ends.sender == conversation.forward { Dir::Forward } else { Dir::Backward };
        for wrong in datagram.sums.wrong() {
            sink.udp_note(&conversation.stream, dir, Note::Checksum(wrong), at);
        }
        if datagram.crowded {
            sink.udp_note(&conversation.stream, dir, Note::FragmentLimit, at);
        }
        sink.udp(&conversation.stream, dir, datagram.bytes, datagram.missing, at);
        Some(conversation.stream.id)
    }

    /// Numbers the conversation of a packet that an ICMP error quotes.
    pub(super) fn mention<S: FlowSink>(
        &mut self,
        ends: PacketEnds,
        context: &mut FlowContext<'_>,
        sink: &mut S,
    ) {
        if self.table.find(&ends.pair).is_none() {
            self.create(ends, context, sink);
        }
    }

    /// Ends every stream, in order of their numbers.
    pub(super) fn finish<S: FlowSink>(&mut self, now: Moment, sink: &mut S) {
        let mut open = Vec::with_capacity(self.table.count(List::Open));
        let mut next = self.table.oldest(List::Open);
        while let Some(id) = next {
            next = self.table.after(List::Open, id);
            open.extend(
                self.table
                    .get(id)
                    .filter(|conversation| conversation.open)
                    .map(|conversation| conversation.stream.id),
            );
        }
        open.sort_unstable();
        for id in open {
            sink.udp_end(id, End::CaptureEnd, now);
        }
        self.table = ConversationTable::new();
    }

    fn create<S: FlowSink>(
        &mut self,
        ends: PacketEnds,
        context: &mut FlowContext<'_>,
        sink: &mut S,
    ) -> SlotId {
        if self.table.count(List::Open) >= context.limits.udp_streams.max(1)
            && let Some(oldest) = self.table.oldest(List::Open)
            && let Some(old) = self.table.remove(oldest)
            && old.open
        {
            context.stats.evicted += 1;
            sink.udp_end(old.stream.id, End::Evicted, context.at);
        }
        let id = StreamId(self.streams);
        self.streams = self.streams.saturating_add(1);
        self.table.insert(ends.pair, Conversation::new(id, ends))
    }
}

impl Conversation {
    fn new(id: StreamId, PacketEnds { pair, sender }: PacketEnds) -> Self {
        let stream = Stream { id, forward: pair.end(sender), backward: pair.end(sender.other()) };
        Conversation { stream, forward: sender, open: false }
    }
}
