//! The output of `flow`: the trait [`FlowSink`], which receives ordered bytes of TCP streams and
//! UDP datagrams, and the types of its arguments.
//!
//! Nothing here knows how bytes are reassembled, or what they mean.

use std::net::SocketAddr;

use super::checksum::WrongSum;
use crate::capture::Moment;

/// One of the two directions of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dir {
    /// Sent by the end that opened the connection, or, if its opening was not captured, by the
    /// sender of the first captured frame.
    Forward,
    /// Sent by the other end.
    Backward,
}

impl Dir {
    /// The other direction.
    #[must_use]
    pub fn flip(self) -> Self {
        match self {
            Dir::Forward => Dir::Backward,
            Dir::Backward => Dir::Forward,
        }
    }
}

/// Number of a stream, from 0, as Wireshark's `tcp.stream` or `udp.stream`. TCP and UDP are
/// numbered separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

/// A stream and its two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The stream's number.
    pub id: StreamId,
    /// The sender of [`Dir::Forward`].
    pub forward: SocketAddr,
    /// The sender of [`Dir::Backward`].
    pub backward: SocketAddr,
}

impl Stream {}

/// What the first captured frame of a TCP stream shows of its opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpOpening {
    /// A SYN: the sender of [`Dir::Forward`] is the client, and offset 0 is the first byte of each
    /// direction.
    Syn,
    /// The answer to a SYN: the sender of [`Dir::Forward`], which receives this frame, is the
    /// client.
    SynAck,
    /// Neither: the connection is older than the capture. Only its content shows which end is the
    /// client.
    Middle,
}

/// Why bytes are given up as never captured. The limits are those of [`super::FlowLimits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The receiver acknowledged them, and they were not captured within `hole_frames` or
    /// `hole_time` after that.
    Acknowledged,
    /// Later bytes were captured but no frame of the receiver, and `blind_frames` or `blind_time`
    /// passed.
    Unanswered,
    /// A snap length cut the frame that held them.
    Cut,
    /// Too many bytes were waiting behind them, or the sequence numbers jumped by more than the
    /// largest window.
    Limit,
    /// The stream ended: later bytes were captured, or the receiver acknowledged them.
    Ended,
}

/// An anomaly in one direction of a stream. Each kind except resets, checksums and fragments is
/// noted once a direction, at its first occurrence; [`Totals`] has the counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// Bytes were captured twice with different content while the first ones were waiting. The
    /// first ones are kept. (Delivered bytes are no longer there to be compared.)
    Conflict {
        /// Offset of the first differing byte.
        offset: u64,
    },
    /// Bytes were captured after they had been given up as a gap.
    Late {
        /// Offset of the first of them.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// A segment's number is too far from the others for it to belong to this stream. The segment
    /// was ignored.
    Implausible {
        /// How many payload bytes it had.
        len: u64,
    },
    /// More bytes were waiting in this direction than [`super::FlowLimits::stream_buffer`] allows.
    StreamLimit,
    /// More bytes were waiting in all streams together than [`super::FlowLimits::total_buffer`]
    /// allows, and this stream's had waited longest.
    TotalLimit,
    /// More IP fragments were waiting than [`super::FlowLimits::fragmented`] or
    /// [`super::FlowLimits::fragment_buffer`] allow. The packet that follows is only the beginning
    /// of its datagram.
    FragmentLimit,
    /// At the end of the stream the receiver had acknowledged one number more than was captured: a
    /// FIN that was not captured, and not a byte.
    FinAssumed,
    /// A RST with a payload, mostly written by a middlebox: the captured bytes. Each is noted.
    /// Where no bytes are missing before them, they are also the last bytes of the stream.
    ResetReason(Box<[u8]>),
    /// A packet's checksum is wrong. Given only with [`super::FlowLimits::checksums`]; the packet
    /// is used all the same.
    Checksum(WrongSum),
}

/// How one direction of a TCP stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With a FIN, after everything before it was delivered or given up.
    Fin,
    /// With a RST of either side.
    Rst,
    /// It was still open at the end of the capture.
    CaptureEnd,
    /// It was idle longest when too many streams were open.
    Evicted,
    /// A new connection began between the same ends.
    Replaced,
}

/// Byte counts of one direction of a TCP stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Segments that carried payload.
    pub segments: u64,
    /// Bytes delivered.
    pub delivered: u64,
    /// Bytes given up as gaps.
    pub lost: u64,
    /// Bytes captured more than once, because they were sent or captured twice. Includes
    /// keep-alives.
    pub repeated: u64,
    /// How many of the repeated bytes differed from the first.
    pub conflicting: u64,
    /// Bytes captured after they had been given up.
    pub late: u64,
    /// Bytes that were ignored: implausibly far away, or behind a FIN.
    pub ignored: u64,
    /// Whether any segment of the sender was captured.
    pub heard: bool,
    /// How many segments of the receiver were captured since the sender's last one.
    pub unheard: u64,
    /// Segments whose bytes the sender sent again, and the frame of the first of them. A copy that
    /// comes at once is one of the capture, and is not counted.
    pub resent: u64,
    /// The frame of the first of these.
    pub first_resent: u64,
    /// How often the sender said that it takes no more bytes for now.
    pub zero_windows: u64,
    /// The frame in which it first said so.
    pub first_zero_window: u64,
    /// For how many nanoseconds it took nothing, at the longest.
    pub longest_zero_window: i64,
    /// For how many nanoseconds of the end its bytes lacked an acknowledgement, and it did not
    /// send them again.
    pub unacknowledged: i64,
}

/// What a frame is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameStream {
    /// A segment of a TCP stream.
    Tcp {
        /// The stream.
        stream: StreamId,
        /// The sender.
        src: SocketAddr,
        /// The sequence number of the first payload byte.
        first: u32,
        /// How many payload bytes it had on the wire.
        length: u64,
        /// Whether it opens, closes or resets the connection.
        marks: bool,
    },
    /// A datagram of a UDP stream.
    Udp {
        /// The stream.
        stream: StreamId,
    },
    /// An IP fragment that completes nothing.
    Fragment,
}

/// Receives streams and datagrams.
///
/// # Order of the calls
///
/// All calls are made within [`Flow::frame`](super::Flow::frame) and
/// [`Flow::finish`](super::Flow::finish), on the caller's thread. The moments of the calls for one
/// direction never decrease.
///
/// For each TCP stream:
///
/// 1. one [`tcp_open`](Self::tcp_open);
/// 2. for each direction, one [`tcp_start`](Self::tcp_start) before its first data or gap, unless
///    it has none;
/// 3. for each direction, [`tcp_data`](Self::tcp_data) and [`tcp_gap`](Self::tcp_gap) that cover it
///    from offset 0 on, each beginning at the offset where the one before ended. The calls for the
///    two directions are interleaved in the order in which they became deliverable;
/// 4. one [`tcp_end`](Self::tcp_end) for each direction, after which no data of that direction
///    follows.
///
/// [`tcp_note`](Self::tcp_note), [`tcp_round_trip`](Self::tcp_round_trip) and
/// [`tcp_closing`](Self::tcp_closing) may come at any time between `tcp_open` and the last
/// `tcp_end`. A stream that ended as [`End::Evicted`] or [`End::Replaced`] may begin again with
/// `tcp_open` under the same number, because Wireshark keeps the number. After `Evicted` its
/// offsets go on from where they were if they can, after `Replaced` they begin at 0.
///
/// For each UDP conversation: [`udp`](Self::udp) for each datagram, in the order of the capture,
/// each after its [`udp_note`](Self::udp_note)s; then one [`udp_end`](Self::udp_end).
///
/// Bytes are lent for the duration of the call. They may be copied, not kept.
pub trait FlowSink {
    /// A stream begins.
    fn tcp_open(&mut self, stream: &Stream, opening: TcpOpening, at: Moment);

    /// The next bytes of a direction. `offset` counts its payload bytes from the start of the
    /// stream, or from the first captured byte if the start was not captured. `at` is the frame
    /// that completed the bytes. If they had to wait for earlier ones, it is the frame with those.
    fn tcp_data(&mut self, stream: StreamId, dir: Dir, offset: u64, bytes: &[u8], at: Moment);

    /// The sequence number of offset 0.
    fn tcp_start(&mut self, stream: StreamId, dir: Dir, seq: u32) {
        let _ = (stream, dir, seq);
    }

    /// The round trip of a direction, from the capturing machine to its receiver and back, takes
    /// `nanos` nanoseconds: less than measured before. With `opening`, the opening of the
    /// connection was measured. Otherwise only acknowledgements of data were, which the receiver
    /// may have delayed: the true round trip may be shorter.
    fn tcp_round_trip(&mut self, stream: StreamId, dir: Dir, nanos: i64, opening: bool) {
        let _ = (stream, dir, nanos, opening);
    }

    /// The next `len` bytes of a direction were never captured. `at` is the frame with the bytes
    /// after them, if there are any. [`Totals::lost`] counts them.
    fn tcp_gap(
        &mut self,
        stream: StreamId,
        dir: Dir,
        offset: u64,
        len: u64,
        cause: Cause,
        at: Moment,
    );

    /// An anomaly.
    fn tcp_note(&mut self, stream: StreamId, dir: Dir, note: Note, at: Moment) {
        let _ = (stream, dir, note, at);
    }

    /// The sender of a direction closed or reset the connection in this frame. The direction's end
    /// comes later where bytes before it are missing.
    fn tcp_closing(&mut self, stream: StreamId, dir: Dir, at: Moment) {
        let _ = (stream, dir, at);
    }

    /// A direction has ended.
    fn tcp_end(&mut self, stream: StreamId, dir: Dir, how: End, totals: &Totals, at: Moment);

    /// A datagram. `missing` is how many bytes at its end were not captured.
    fn udp(&mut self, stream: &Stream, dir: Dir, bytes: &[u8], missing: u32, at: Moment);

    /// An anomaly of the datagram that follows.
    fn udp_note(&mut self, stream: &Stream, dir: Dir, note: Note, at: Moment) {
        let _ = (stream, dir, note, at);
    }

    /// A conversation has ended: the capture did, or too many conversations were open and this one
    /// was idle longest.
    fn udp_end(&mut self, stream: StreamId, how: End, at: Moment) {
        let _ = (stream, how, at);
    }
}
