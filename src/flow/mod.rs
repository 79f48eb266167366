//! TCP streams and UDP datagrams out of frames.
//!
//! Frames go in as `capture` gives them; out come the bytes of each direction of each TCP stream in order, with
//! gaps of known length where the capture has none, and the datagrams of UDP, all handed to a [`FlowSink`]. This room
//! knows link layers, IP with its fragments, TCP and UDP, and no protocol above them. Its rules are told in
//! `docs/flow.md`.
//!
//! Memory is bounded by [`Limits`] however long the capture and whatever is in it. Payload that comes in order is
//! handed on from the frame itself, without a copy.

mod checksum;
mod conn;
mod delivery;
mod fragments;
mod half;
mod icmp;
mod ip;
mod link;
mod pieces;
mod segment;
mod sink;
mod table;
mod tcp;
#[cfg(test)]
mod tests;
mod udp;

use crate::capture::{Frame, Moment, Time};
use checksum::Sums;
pub use checksum::{Summed, WrongSum};
use fragments::{Bounds, Broken, Fragments};
use ip::Packet;
use link::NoIp;
use segment::Segment;
pub use sink::{Cause, Dir, End, FlowSink, Note, Opening, Stream, StreamId, Totals};
use table::Key;
use tcp::Tcp;
use udp::{Datagram, Udp};

const PROTOCOL_ICMP: u8 = 1;
const PROTOCOL_IPV4: u8 = 4;
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
const PROTOCOL_IPV6: u8 = 41;
const PROTOCOL_ICMPV6: u8 = 58;
/// IP within IP, no deeper than this.
const MOST_TUNNELS: usize = 4;

/// Bounds on memory and patience. Times are capture time, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open TCP streams; beyond, the longest idle one is ended.
    pub tcp_streams: usize,
    /// Ended TCP streams remembered, to know late copies of their segments.
    pub tcp_closed: usize,
    /// UDP conversations remembered.
    pub udp_streams: usize,
    /// Bytes of one direction that may wait for earlier ones, each segment counted with about 100 bytes more.
    pub stream_buffer: usize,
    /// The same for all streams together.
    pub total_buffer: usize,
    /// Incomplete IP datagrams.
    pub fragmented: usize,
    /// Bytes of IP fragments that may wait.
    pub fragment_buffer: usize,
    /// How long IP fragments wait for the others.
    pub fragment_time: i64,
    /// A hole that the receiver acknowledged is given up when this many frames of the stream have gone by since …
    pub hole_frames: u64,
    /// … or this much time, and later bytes are there.
    pub hole_time: i64,
    /// The same where no frame of the receiver was ever captured: a hole is given up when this many frames have gone
    /// by since later bytes came …
    pub blind_frames: u64,
    /// … or this much time.
    pub blind_time: i64,
    /// Whether checksums are judged at all.
    pub checksums: bool,
}

impl Default for Limits {
    fn default() -> Self {
        const SECOND: i64 = 1_000_000_000;
        Limits {
            tcp_streams: 16_384,
            tcp_closed: 16_384,
            udp_streams: 16_384,
            stream_buffer: 8 << 20,
            total_buffer: 32 << 20,
            fragmented: 1024,
            fragment_buffer: 4 << 20,
            fragment_time: 60 * SECOND,
            hole_frames: 32,
            hole_time: SECOND,
            blind_frames: 1024,
            blind_time: 10 * SECOND,
            checksums: false,
        }
    }
}

/// What was met on the way from frames to streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Frames, whatever they held.
    pub frames: u64,
    /// Captured bytes of these frames.
    pub bytes: u64,
    /// Frames of a link type that is not known.
    pub unsupported: u64,
    /// The first such link type.
    pub unsupported_link: Option<u16>,
    /// Frames that carry something other than IP.
    pub not_ip: u64,
    /// Frames cut by a snap length.
    pub cut: u64,
    /// Frames whose headers contradict themselves, or end too early without having been cut.
    pub malformed: u64,
    /// Frames cut within a header.
    pub headless: u64,
    /// IP packets that carry neither TCP nor UDP.
    pub other_ip: u64,
    /// IP fragments.
    pub fragments: u64,
    /// Datagrams put together from them.
    pub reassembled: u64,
    /// Datagrams of which parts were missing when patience or room ran out.
    pub fragments_dropped: u64,
    /// TCP segments.
    pub tcp: u64,
    /// UDP datagrams.
    pub udp: u64,
    /// TCP streams, by number.
    pub tcp_streams: u32,
    /// UDP streams, by number.
    pub udp_streams: u32,
    /// Payload bytes that came after their stream's end and were left out.
    pub after_end: u64,
    /// Streams of either kind ended to make room.
    pub evicted: u64,
    /// Wrong checksums, where they are judged.
    pub wrong_sums: u64,
}

/// Frames in, streams and datagrams out.
#[derive(Debug)]
pub struct Flow {
    limits: Limits,
    stats: Stats,
    fragments: Fragments,
    tcp: Tcp,
    udp: Udp,
    now: Moment,
}

impl Flow {
    /// A flow that has seen nothing yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let bounds = Bounds { datagrams: limits.fragmented, bytes: limits.fragment_buffer, age: limits.fragment_time };
        Flow {
            limits,
            stats: Stats::default(),
            fragments: Fragments::new(bounds),
            tcp: Tcp::new(),
            udp: Udp::new(),
            now: Moment::default(),
        }
    }

    /// Takes the next frame of the capture, and hands on what it makes deliverable.
    pub fn frame<S: FlowSink>(&mut self, frame: &Frame<'_>, sink: &mut S) {
        self.now = Moment { frame: frame.number, time: frame.time };
        self.stats.frames += 1;
        self.stats.bytes += frame.data.len() as u64;
        let cut = (frame.wire_len as usize).saturating_sub(frame.data.len());
        self.stats.cut += u64::from(cut > 0);
        self.fragments.age(nanos(self.now.time));
        self.broken(sink);
        match link::ip(frame.link, frame.data) {
            Ok(bytes) => self.packet(bytes, bytes.len() + cut, sink),
            Err(NoIp::Other) => self.stats.not_ip += 1,
            Err(NoIp::Short) => self.unreadable(cut > 0),
            Err(NoIp::Unsupported) => {
                self.stats.unsupported += 1;
                self.stats.unsupported_link = self.stats.unsupported_link.or(Some(frame.link));
            }
        }
        self.tcp.sweep(self.now, &self.limits, sink);
    }

    /// The capture is over: delivers what still waits, tells the gaps, and ends every stream.
    pub fn finish<S: FlowSink>(&mut self, sink: &mut S) {
        self.fragments.end();
        self.broken(sink);
        self.tcp.finish(self.now, sink);
        self.udp.finish(self.now, sink);
    }

    /// What was met so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            fragments_dropped: self.fragments.dropped,
            tcp_streams: self.tcp.streams(),
            udp_streams: self.udp.streams(),
            ..self.stats
        }
    }

    fn unreadable(&mut self, cut: bool) {
        if cut {
            self.stats.headless += 1;
        } else {
            self.stats.malformed += 1;
        }
    }

    /// An IP packet, `wire_len` bytes long before it was cut, with others inside it perhaps.
    fn packet<S: FlowSink>(&mut self, bytes: &[u8], wire_len: usize, sink: &mut S) {
        let (mut bytes, mut wire_len) = (bytes, wire_len);
        let mut ip = None;
        for _ in 0..MOST_TUNNELS {
            let Ok(packet) = ip::parse(bytes, wire_len) else {
                return self.unreadable(wire_len > bytes.len());
            };
            if self.limits.checksums {
                let wrong = checksum::ip_header(bytes);
                self.stats.wrong_sums += u64::from(wrong.is_some());
                ip = ip.or(wrong);
            }
            if let Some(fragment) = packet.fragment {
                return self.fragment(&packet, fragment, ip, sink);
            }
            if !matches!(packet.protocol, PROTOCOL_IPV4 | PROTOCOL_IPV6) {
                let transports = (&mut self.tcp, &mut self.udp);
                return transport((&packet, ip), self.now, &mut self.stats, transports, &self.limits, sink);
            }
            bytes = packet.payload;
            wire_len = bytes.len() + packet.missing as usize;
        }
        self.stats.other_ip += 1;
    }

    fn fragment<S: FlowSink>(
        &mut self,
        packet: &Packet<'_>,
        fragment: ip::Fragment,
        ip: Option<WrongSum>,
        sink: &mut S,
    ) {
        self.stats.fragments += 1;
        let mut whole = Packet { fragment: None, ..*packet };
        // A datagram whose first fragment was cut cannot be put together: what there is of it counts.
        let cut = fragment.offset == 0 && packet.missing > 0;
        if !cut {
            let complete = self.fragments.add(packet, fragment);
            self.broken(sink);
            let Some(protocol) = complete else { return };
            self.stats.reassembled += 1;
            whole = Packet { protocol, payload: self.fragments.whole(), missing: 0, ..whole };
        }
        if whole.walk_extensions().is_err() || whole.fragment.is_some() {
            self.stats.malformed += 1;
            return;
        }
        let transports = (&mut self.tcp, &mut self.udp);
        transport((&whole, ip), self.now, &mut self.stats, transports, &self.limits, sink);
    }

    /// Hands on the beginnings of datagrams that were given up incomplete.
    #[inline]
    fn broken<S: FlowSink>(&mut self, sink: &mut S) {
        for broken in self.fragments.take_broken() {
            let Broken { v6, src, dst, protocol, ref payload, crowded } = broken;
            // How much is missing of a datagram its own header says. A segment is as long as what there is of it: the rest may be sent again.
            let mut packet =
                Packet { v6, src, dst, protocol, payload, missing: 0, fragment: None, final_hop: false, crowded };
            if packet.walk_extensions().is_err() || packet.fragment.is_some() {
                self.stats.malformed += 1;
                continue;
            }
            let transports = (&mut self.tcp, &mut self.udp);
            transport((&packet, None), self.now, &mut self.stats, transports, &self.limits, sink);
        }
    }
}

/// What an IP packet carries, told with what is wrong with its own header.
#[inline]
fn transport<S: FlowSink>(
    (packet, ip): (&Packet<'_>, Option<WrongSum>),
    at: Moment,
    stats: &mut Stats,
    (tcp, udp): (&mut Tcp, &mut Udp),
    limits: &Limits,
    sink: &mut S,
) {
    let mut sums = Sums { ip, transport: None };
    if limits.checksums {
        sums.transport = checksum::transport(packet);
        stats.wrong_sums += u64::from(sums.transport.is_some());
    }
    match packet.protocol {
        PROTOCOL_TCP => {
            let Some(mut segment) = Segment::parse(packet.payload, packet.missing) else {
                return stats.count_unreadable(packet);
            };
            stats.tcp += 1;
            segment.sums = sums;
            segment.crowded = packet.crowded;
            let ends = Key::new(packet.v6, (&packet.src, segment.src_port), (&packet.dst, segment.dst_port));
            tcp.segment(ends, &segment, at, (limits, stats), sink);
        }
        PROTOCOL_UDP => {
            let Some(mut datagram) = Datagram::parse(packet.payload, packet.missing, packet.v6) else {
                return stats.count_unreadable(packet);
            };
            stats.udp += 1;
            datagram.sums = sums;
            datagram.crowded = packet.crowded;
            let ends = Key::new(packet.v6, (&packet.src, datagram.src_port), (&packet.dst, datagram.dst_port));
            udp.datagram(ends, &datagram, at, (limits, stats), sink);
        }
        PROTOCOL_ICMP | PROTOCOL_ICMPV6 => {
            stats.other_ip += 1;
            match icmp::quoted(packet) {
                Some((PROTOCOL_TCP, key, _)) => tcp.mention(key, at, (limits, stats), sink),
                Some((_, key, side)) => udp.mention((key, side), at, (limits, stats), sink),
                None => {}
            }
        }
        _ => stats.other_ip += 1,
    }
}

impl Stats {
    fn count_unreadable(&mut self, packet: &Packet<'_>) {
        if packet.missing > 0 {
            self.headless += 1;
        } else {
            self.malformed += 1;
        }
    }
}

/// A time as nanoseconds since 1970, for differences.
#[inline]
fn nanos(time: Time) -> i64 {
    time.seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(time.nanos))
}

/// How much time went by, in nanoseconds; none where a capture does not say when a frame was captured.
#[inline]
fn elapsed(from: Time, to: Time) -> i64 {
    match (nanos(from), nanos(to)) {
        (0, _) | (_, 0) => 0,
        (from, to) => to.saturating_sub(from),
    }
}
