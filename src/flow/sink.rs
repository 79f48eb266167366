//! What comes out of this room: ordered bytes of TCP streams and UDP datagrams, handed to a consumer.
//!
//! The consumer is a trait, so that every call is resolved when the program is built. Nothing here knows how
//! the bytes were put in order, nor what they mean.

use std::net::SocketAddr;

use super::checksum::WrongSum;
use crate::capture::Moment;

/// One of the two directions of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dir {
    /// Sent by the end that opened the connection where that was captured, else by the sender of the stream's
    /// first captured frame.
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

/// Number of a stream, from 0, as Wireshark's `tcp.stream` or `udp.stream` counts. The two count apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u32);

/// A stream and its two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The stream's number.
    pub id: StreamId,
    /// The end that sends what is [`Dir::Forward`].
    pub forward: SocketAddr,
    /// The end that sends what is [`Dir::Backward`].
    pub backward: SocketAddr,
}

impl Stream {
    /// The sender and the receiver of one direction.
    #[must_use]
    pub fn ends(&self, dir: Dir) -> (SocketAddr, SocketAddr) {
        match dir {
            Dir::Forward => (self.forward, self.backward),
            Dir::Backward => (self.backward, self.forward),
        }
    }
}

/// What the first captured frame of a TCP stream tells about its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// A SYN: the sender of [`Dir::Forward`] is the client, and offset 0 is the first byte of each direction.
    Syn,
    /// The answer to a SYN: the sender of [`Dir::Forward`], who receives this frame, is the client.
    SynAck,
    /// Neither: the connection was older than the capture, and who the client is must be told by its content.
    Middle,
}

/// Why bytes are given up as never captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The receiver acknowledged them, and they did not turn up within the patience of [`super::Limits`].
    Acknowledged,
    /// Later bytes were captured, no frame of the receiver ever was, and patience ran out.
    Unanswered,
    /// The capture cut the frame that held them (snap length).
    Cut,
    /// More bytes were waiting behind them than [`super::Limits`] allows, or the numbers jumped by more than any
    /// window.
    Limit,
    /// The stream ended: later bytes were captured, or the receiver acknowledged them.
    Ended,
}

/// Something odd about one direction of a stream. Each kind but wrong checksums and fragments is told once a direction, where it is
/// first met; the counts stand in [`Totals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Note {
    /// Bytes were sent twice with different content while the first were still waiting for their turn. The first
    /// captured were kept. (What was delivered already is no longer there to be compared.)
    Conflict {
        /// Offset of the first differing byte.
        offset: u64,
    },
    /// Bytes turned up after they had been given up as a gap.
    Late {
        /// Offset of the first of them.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// A segment lies too far from everything else to belong to this stream; it was left out.
    Implausible {
        /// How many payload bytes it had.
        len: u64,
    },
    /// More bytes were waiting in this direction than [`super::Limits::stream_buffer`] allows.
    StreamLimit,
    /// More bytes were waiting in all streams together than [`super::Limits::total_buffer`] allows, and this
    /// one had waited longest.
    TotalLimit,
    /// More IP fragments were waiting than [`super::Limits::fragmented`] or [`super::Limits::fragment_buffer`] allow: the packet that
    /// follows is only a beginning.
    FragmentLimit,
    /// The receiver acknowledged one number more than was captured when the stream ended: taken for a FIN that was not
    /// captured, and not for a byte.
    FinAssumed,
    /// A packet's checksum is wrong, where they are judged ([`super::Limits::checksums`]). What it carries counts all the same.
    Checksum(WrongSum),
}

/// How one direction of a TCP stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With a FIN, everything before it delivered or given up.
    Fin,
    /// With a RST of either side.
    Rst,
    /// It was still open when the capture ended.
    CaptureEnd,
    /// It was the longest idle one when there were too many streams.
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
    /// Bytes told as gaps.
    pub lost: u64,
    /// Bytes captured more than once (sent again, or captured twice), keep-alives included.
    pub repeated: u64,
    /// Among the repeated ones, how many differed from the first.
    pub conflicting: u64,
    /// Bytes that turned up after they had been given up.
    pub late: u64,
    /// Bytes left out: implausibly far, or behind a FIN.
    pub ignored: u64,
}

/// The consumer of streams and datagrams.
///
/// For each TCP stream there is one [`tcp_open`](Self::tcp_open), then data and gaps that tile each direction from
/// offset 0 on without overlap, and one [`tcp_end`](Self::tcp_end) for each direction. A stream that was ended as
/// [`End::Evicted`] or [`End::Replaced`] may open again under its number, as Wireshark's number stays; its offsets
/// then begin where that says.
pub trait FlowSink {
    /// The first frame of a stream.
    fn tcp_open(&mut self, stream: &Stream, opening: Opening, at: Moment);

    /// Bytes in order. `offset` counts payload bytes of that direction, from the first byte of the stream, or from
    /// the first captured one where its start was not captured. `at` is the frame that completed them: where
    /// they were waiting for earlier bytes, the frame that brought these.
    fn tcp_data(&mut self, stream: StreamId, dir: Dir, offset: u64, bytes: &[u8], at: Moment);

    /// Comes before the first data or gap of a direction: offset 0 has this sequence number.
    fn tcp_start(&mut self, stream: StreamId, dir: Dir, seq: u32) {
        let _ = (stream, dir, seq);
    }

    /// `len` bytes that were never captured. `at` is the frame with the bytes behind them, where there are any.
    fn tcp_gap(&mut self, stream: StreamId, dir: Dir, offset: u64, len: u64, cause: Cause, at: Moment);

    /// Something odd.
    fn tcp_note(&mut self, stream: StreamId, dir: Dir, note: Note, at: Moment) {
        let _ = (stream, dir, note, at);
    }

    /// Nothing more will come in this direction.
    fn tcp_end(&mut self, stream: StreamId, dir: Dir, how: End, totals: &Totals, at: Moment);

    /// A datagram. `missing` is how many of its last bytes the capture cut off.
    fn udp(&mut self, stream: &Stream, dir: Dir, bytes: &[u8], missing: u32, at: Moment);

    /// Something odd about the datagram that follows.
    fn udp_note(&mut self, stream: &Stream, dir: Dir, note: Note, at: Moment) {
        let _ = (stream, dir, note, at);
    }

    /// No more datagrams will come under this number: the capture ended, or the pair of ends was the longest
    /// idle one when there were too many.
    fn udp_end(&mut self, stream: StreamId, how: End, at: Moment) {
        let _ = (stream, how, at);
    }
}
