//! Reassembles TCP streams and collects UDP datagrams from captured frames.
//!
//! [`Flow`] takes frames as `capture` reads them. It calls a [`FlowSink`] with the bytes of each
//! direction of each TCP stream in order, with gaps of known length for bytes that were not
//! captured, and with the datagrams of UDP. It knows link layers, IP with fragments, TCP and UDP,
//! and no protocol above them. `docs/flow.md` has the rules.
//!
//! [`FlowLimits`] bounds memory, whatever the capture's length and content. Payload that is in
//! order is borrowed from the frame, without a copy.

mod checksum;
mod connection;
mod conversations;
mod delivery;
mod direction;
mod fragments;
mod hosts;
mod icmp;
mod ip;
mod link;
mod not_read;
mod pending;
mod remaining;
mod round_trip;
mod segment;
mod sink;
mod stray;
mod tcp;
#[cfg(test)]
mod tests;
mod tunnel;
mod udp;

use crate::capture::{Frame, Moment, Time};
use checksum::WrongSums;
pub use checksum::{Summed, WrongSum};
use conversations::{Endpoint, PacketEnds};
use fragments::{FragmentBounds, Fragments};
pub use hosts::hosts;
use ip::IpPacket;
pub use not_read::{NotRead, NotReadCounts};
use remaining::Remaining;
use segment::{FIN, RST, SYN, Segment};
pub use sink::{
    Cause, Dir, End, FlowSink, FrameStream, Note, Stream, StreamId, TcpOpening, Totals,
};
use tcp::Tcp;
use udp::{Datagram, Udp};

const PROTOCOL_ICMP: u8 = 1;
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
const PROTOCOL_ICMPV6: u8 = 58;
/// Frames of several interfaces or cores may come out of order by less than so many nanoseconds.
pub const CLOCK_STEP: i64 = 1_000_000_000;

/// Bounds on memory, and on how long missing bytes are waited for. Times are capture time in
/// nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowLimits {
    /// The most open TCP streams. For one more, the stream that was idle longest is ended.
    pub tcp_streams: usize,
    /// The most ended TCP streams that are remembered, to recognise late copies of their segments.
    pub tcp_closed: usize,
    /// The most UDP conversations. For one more, the one that was idle longest is forgotten.
    pub udp_streams: usize,
    /// The most bytes of one direction that wait for earlier ones. Each segment counts about 100
    /// bytes more.
    pub stream_buffer: usize,
    /// The most bytes of all streams together that wait for earlier ones.
    pub total_buffer: usize,
    /// The most incomplete IP datagrams.
    pub fragmented: usize,
    /// The most bytes of IP fragments that wait.
    pub fragment_buffer: usize,
    /// How long IP fragments wait for the others.
    pub fragment_time: i64,
    /// A hole that the receiver acknowledged is given up if later bytes are there and, since the
    /// acknowledgement, this many frames of the stream have passed …
    pub hole_frames: u64,
    /// … or this much time.
    pub hole_time: i64,
    /// If no frame of the receiver was captured: a hole is given up if, since later bytes came,
    /// this many frames of the stream have passed …
    pub blind_frames: u64,
    /// … or this much time.
    pub blind_time: i64,
    /// Whether checksums are checked.
    pub checksums: bool,
}

impl Default for FlowLimits {
    fn default() -> Self {
        const SECOND: i64 = 1_000_000_000;
        FlowLimits {
            tcp_streams: 12_288,
            tcp_closed: 16_384,
            udp_streams: 12_288,
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

/// Counts of frames, packets and streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowStats {
    /// Frames of any kind.
    pub frames: u64,
    /// Captured bytes of these frames.
    pub bytes: u64,
    /// The times of the earliest and of the latest frame. Frames without a time do not count.
    pub times: Option<(Time, Time)>,
    /// Frames of a damaged clock: their times are the first or the last that can be written.
    pub wrong_times: u64,
    /// Frames cut by a snap length.
    pub cut: u64,
    /// The first of them.
    pub first_cut: u64,
    /// How many bytes of it were captured.
    pub cut_to: u64,
    /// How many bytes all of them lack.
    pub cut_bytes: u64,
    /// The first frame that is earlier than one before it by more than [`CLOCK_STEP`].
    pub back: Option<u64>,
    /// By how many nanoseconds a frame is earlier than one before it, at most.
    pub back_by: i64,
    /// IP fragments.
    pub fragments: u64,
    /// Datagrams reassembled from fragments.
    pub reassembled: u64,
    /// Datagrams whose fragments were given up incomplete, because of their age or their number.
    pub fragments_dropped: u64,
    /// TCP segments.
    pub tcp: u64,
    /// UDP datagrams.
    pub udp: u64,
    /// TCP streams that were numbered.
    pub tcp_streams: u32,
    /// UDP streams that were numbered.
    pub udp_streams: u32,
    /// Payload bytes that came after their stream's end and were ignored.
    pub after_end: u64,
    /// Streams of either transport that were ended because too many were open.
    pub evicted: u64,
    /// Wrong checksums, if checksums are checked.
    pub wrong_sums: u64,
}

/// Frames in, streams and datagrams out.
///
/// ```
/// use moulsniff::capture::{Capture, Moment};
/// use moulsniff::flow::{
///     Cause, Dir, End, Flow, FlowLimits, FlowSink, Stream, StreamId, TcpOpening, Totals,
/// };
///
/// /// Counts the bytes of TCP streams.
/// #[derive(Default)]
/// struct Counter(usize);
///
/// impl FlowSink for Counter {
///     fn tcp_open(&mut self, _: &Stream, _: TcpOpening, _: Moment) {}
///     fn tcp_data(&mut self, _: StreamId, _: Dir, _offset: u64, bytes: &[u8], _: Moment) {
///         self.0 += bytes.len();
///     }
///     fn tcp_gap(
///         &mut self,
///         _: StreamId,
///         _: Dir,
///         _offset: u64,
///         _len: u64,
///         _: Cause,
///         _: Moment,
///     ) {
///     }
///     fn tcp_end(&mut self, _: StreamId, _: Dir, _: End, _: &Totals, _: Moment) {}
///     fn udp(&mut self, _: &Stream, _: Dir, _bytes: &[u8], _missing: u32, _: Moment) {}
/// }
///
/// let mut capture = Capture::open("captures/moul/kind_game.pcap")?;
/// let (mut flow, mut counter) = (Flow::new(FlowLimits::default()), Counter::default());
/// while let Some(frame) = capture.next_frame()? {
///     flow.frame(&frame, &mut counter);
/// }
/// flow.finish(&mut counter);
/// assert!(counter.0 > 0 && flow.stats().tcp_streams > 0);
/// # Ok::<(), moulsniff::capture::CaptureError>(())
/// ```
#[derive(Debug)]
pub struct Flow {
    fragments: Fragments,
    transports: Transports,
}

/// Everything behind IP: the streams of TCP and UDP, and the counts.
#[derive(Debug)]
struct Transports {
    limits: FlowLimits,
    stats: FlowStats,
    not_read: NotReadCounts,
    now: Moment,
    tcp: Tcp,
    udp: Udp,
    /// What the last frame is a part of.
    found: Option<FrameStream>,
}

/// The shared state for handling a segment or a datagram.
struct FlowContext<'a> {
    limits: &'a FlowLimits,
    stats: &'a mut FlowStats,
    not_read: &'a mut NotReadCounts,
    at: Moment,
}

impl Flow {
    /// A flow before the first frame.
    #[must_use]
    pub fn new(limits: FlowLimits) -> Self {
        let bounds = FragmentBounds {
            datagrams: limits.fragmented,
            bytes: limits.fragment_buffer,
            age: limits.fragment_time,
        };
        let transports = Transports {
            limits,
            stats: FlowStats::default(),
            not_read: NotReadCounts::default(),
            now: Moment::default(),
            tcp: Tcp::new(),
            udp: Udp::new(),
            found: None,
        };
        Flow { fragments: Fragments::new(bounds), transports }
    }

    /// Counts a frame without a network packet, which is read elsewhere.
    pub fn count_other(&mut self, frame: &Frame<'_>) {
        let stats = &mut self.transports.stats;
        stats.frames += 1;
        stats.bytes += frame.data.len() as u64;
        stats.count_cut(frame);
    }

    /// Takes the next frame of the capture, and delivers to `sink` whatever it completes.
    pub fn frame<S: FlowSink>(&mut self, frame: &Frame<'_>, sink: &mut S) {
        let cut = (frame.wire_len as usize).saturating_sub(frame.data.len());
        let transports = &mut self.transports;
        transports.now = Moment { frame: frame.number, time: frame.time };
        transports.found = None;
        let stats = &mut transports.stats;
        stats.frames += 1;
        stats.bytes += frame.data.len() as u64;
        stats.count_cut(frame);
        stats.count_time(frame);
        self.fragments.age(nanos(frame.time));
        self.deliver_incomplete(sink);
        let whole = Remaining::of_frame(frame.data, frame.data.len() + cut);
        match link::ip(frame.link, whole) {
            Ok(packet) => self.packet(packet, None, sink),
            Err(reason) => self.transports.not_read.add(reason),
        }
        let transports = &mut self.transports;
        transports.tcp.sweep(transports.now, &transports.limits, sink);
    }

    /// Called after the last frame: delivers everything that still waits, reports the gaps, and
    /// ends every stream.
    pub fn finish<S: FlowSink>(&mut self, sink: &mut S) {
        self.fragments.end();
        self.deliver_incomplete(sink);
        let now = self.transports.now;
        self.transports.tcp.finish(now, sink);
        self.transports.udp.finish(now, sink);
    }

    /// The counts so far.
    #[must_use]
    pub fn stats(&self) -> FlowStats {
        FlowStats {
            fragments_dropped: self.fragments.dropped,
            tcp_streams: self.transports.tcp.streams(),
            udp_streams: self.transports.udp.streams(),
            ..self.transports.stats
        }
    }

    /// What the last frame is a part of; of one that completes several packets, the last of them.
    #[must_use]
    pub fn frame_stream(&self) -> Option<FrameStream> {
        self.transports.found
    }

    /// How many frames were not read so far, and why.
    #[must_use]
    pub fn not_read(&self) -> &NotReadCounts {
        &self.transports.not_read
    }

    /// An IP packet. `header_sum` is set if the checksum of an IP header before it is wrong.
    fn packet<S: FlowSink>(
        &mut self,
        rest: Remaining<'_>,
        mut header_sum: Option<WrongSum>,
        sink: &mut S,
    ) {
        let packet = match ip::parse(rest) {
            Ok(packet) => packet,
            Err(reason) => return self.transports.not_read.add(reason),
        };
        if self.transports.limits.checksums {
            let wrong = checksum::ip_header(rest.bytes);
            self.transports.stats.wrong_sums += u64::from(wrong.is_some());
            header_sum = header_sum.or(wrong);
        }
        match packet.fragment {
            Some(fragment) => self.fragment(&packet, fragment, header_sum, sink),
            None => self.whole_packet(&packet, header_sum, sink),
        }
    }

    /// An IP packet that is no fragment. It may hold another one.
    #[inline]
    fn whole_packet<S: FlowSink>(
        &mut self,
        packet: &IpPacket<'_>,
        header_sum: Option<WrongSum>,
        sink: &mut S,
    ) {
        let inner = match tunnel::within(packet) {
            Some(inner) => Some(inner),
            None => self.transports.take(packet, header_sum, sink),
        };
        match inner {
            Some(Ok(inner)) => self.packet(inner, header_sum, sink),
            Some(Err(reason)) => self.transports.not_read.add(reason),
            None => {}
        }
    }

    fn fragment<S: FlowSink>(
        &mut self,
        packet: &IpPacket<'_>,
        fragment: ip::Fragment,
        header_sum: Option<WrongSum>,
        sink: &mut S,
    ) {
        self.transports.stats.fragments += 1;
        self.transports.found = Some(FrameStream::Fragment);
        let mut whole = IpPacket { fragment: None, ..*packet };
        // A datagram whose first fragment was cut cannot be reassembled. Only that fragment is
        // delivered.
        let cut = fragment.offset == 0 && packet.missing > 0;
        if !cut {
            let complete = self.fragments.add(packet, fragment);
            self.deliver_incomplete(sink);
            let Some(protocol) = complete else { return };
            self.transports.stats.reassembled += 1;
            let payload = self.fragments.take_whole();
            whole = IpPacket { protocol, payload: &payload, missing: 0, ..whole };
            self.reassembled(whole, header_sum, sink);
            return self.fragments.reuse(payload);
        }
        self.reassembled(whole, header_sum, sink);
    }

    /// A packet that came in fragments, or its beginning. Behind the fragment header, extension
    /// headers may follow.
    fn reassembled<S: FlowSink>(
        &mut self,
        mut packet: IpPacket<'_>,
        header_sum: Option<WrongSum>,
        sink: &mut S,
    ) {
        match packet.walk_extensions() {
            Ok(()) if packet.fragment.is_none() => self.whole_packet(&packet, header_sum, sink),
            Ok(()) => self.transports.not_read.add(NotRead::Damaged),
            Err(reason) => self.transports.not_read.add(reason),
        }
    }

    /// Delivers the beginnings of datagrams that were given up incomplete.
    #[inline]
    fn deliver_incomplete<S: FlowSink>(&mut self, sink: &mut S) {
        for datagram in self.fragments.take_incomplete() {
            // A UDP header states how much of its datagram is missing. A TCP segment is taken to
            // end with its captured part, because the rest may be sent again.
            let packet = IpPacket {
                v6: datagram.v6,
                src: datagram.src,
                dst: datagram.dst,
                protocol: datagram.protocol,
                payload: &datagram.payload,
                missing: 0,
                fragment: None,
                final_hop: false,
                crowded: datagram.crowded,
                network: datagram.network,
                headers_left: datagram.headers_left,
            };
            self.reassembled(packet, None, sink);
        }
    }
}

impl Transports {
    /// Handles an IP packet's payload. `header_sum` is set if the checksum of the IP header is
    /// wrong. Returns what a datagram carries that is a tunnel's.
    #[inline]
    fn take<'a, S: FlowSink>(
        &mut self,
        packet: &IpPacket<'a>,
        header_sum: Option<WrongSum>,
        sink: &mut S,
    ) -> Option<Result<Remaining<'a>, NotRead>> {
        let Transports { limits, stats, not_read, now, tcp, udp, found } = self;
        let mut sums = WrongSums { ip: header_sum, transport: None };
        if limits.checksums {
            sums.transport = checksum::transport(packet);
            stats.wrong_sums += u64::from(sums.transport.is_some());
        }
        let mut context = FlowContext { limits, stats, not_read, at: *now };
        match packet.protocol {
            PROTOCOL_TCP => {
                let Some(mut segment) = Segment::parse(packet.payload, packet.missing) else {
                    return Some(Err(packet.remaining().too_short()));
                };
                context.stats.tcp += u64::from(segment.measured && segment.full());
                segment.sums = sums;
                segment.crowded = packet.crowded;
                let ends = packet.ends(segment.src_port, segment.dst_port);
                *found = Some(FrameStream::Tcp {
                    stream: tcp.segment(ends, &segment, &mut context, sink),
                    src: ends.pair.end(ends.sender),
                    first: segment.first(),
                    length: segment.len,
                    marks: segment.has(SYN) || segment.has(FIN) || segment.has(RST),
                });
            }
            PROTOCOL_UDP => {
                let Some(mut datagram) = Datagram::parse(packet.payload, packet.missing, packet.v6)
                else {
                    return Some(Err(packet.remaining().too_short()));
                };
                let ends = packet.ends(datagram.src_port, datagram.dst_port);
                let content = datagram.remaining(packet.remaining());
                let inner = tunnel::within_datagram(packet, datagram.dst_port, content);
                if inner.is_some() {
                    udp.mention(ends, &mut context, sink);
                    return inner;
                }
                context.stats.udp += 1;
                datagram.sums = sums;
                datagram.crowded = packet.crowded;
                let stream = udp.datagram(ends, &datagram, &mut context, sink);
                *found = stream.map(|stream| FrameStream::Udp { stream });
            }
            PROTOCOL_ICMP | PROTOCOL_ICMPV6 => {
                context.not_read.add(NotRead::Ip(packet.protocol));
                match icmp::quoted(packet) {
                    Some((PROTOCOL_TCP, ends)) => tcp.mention(ends.pair, &mut context, sink),
                    Some((_, ends)) => udp.mention(ends, &mut context, sink),
                    None => {}
                }
            }
            protocol => context.not_read.add(NotRead::Ip(protocol)),
        }
        None
    }
}

impl IpPacket<'_> {
    fn ends(&self, src_port: u16, dst_port: u16) -> PacketEnds {
        let src = Endpoint { address: &self.src, port: src_port };
        let dst = Endpoint { address: &self.dst, port: dst_port };
        PacketEnds::new(self.v6, src, dst)
    }
}

impl FlowStats {
    /// Counts a frame that a snap length cut.
    #[inline]
    fn count_cut(&mut self, frame: &Frame<'_>) {
        let there = frame.data.len() as u64;
        let lacks = u64::from(frame.wire_len).saturating_sub(there);
        if lacks == 0 {
            return;
        }
        if self.cut == 0 {
            (self.first_cut, self.cut_to) = (frame.number, there);
        }
        self.cut += 1;
        self.cut_bytes += lacks;
    }

    #[inline]
    fn count_time(&mut self, frame: &Frame<'_>) {
        let time = frame.time;
        if time.seconds == 0 && time.nanos == 0 {
            return;
        }
        if time.is_of_damaged_clock() {
            self.wrong_times += 1;
        }
        let (first, last) = self.times.get_or_insert((time, time));
        if time > *last {
            *last = time;
        } else {
            let wrong = time.is_of_damaged_clock() || last.is_of_damaged_clock();
            let back = if wrong { 0 } else { elapsed(time, *last) };
            if back > CLOCK_STEP && self.back.is_none() {
                self.back = Some(frame.number);
            }
            self.back_by = self.back_by.max(back);
            if time < *first {
                *first = time;
            }
        }
    }
}

/// A time as nanoseconds since 1970, for differences.
#[inline]
fn nanos(time: Time) -> i64 {
    time.seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(time.nanos))
}

/// The nanoseconds between two times; 0 if the capture does not record one of them.
#[inline]
pub fn elapsed(from: Time, to: Time) -> i64 {
    match (nanos(from), nanos(to)) {
        (0, _) | (_, 0) => 0,
        (from, to) => to.saturating_sub(from),
    }
}
