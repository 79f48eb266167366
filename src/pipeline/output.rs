//! Where records go: the contract between the pipeline and everything that prints, counts, follows
//! or collects.
//!
//! It names the arguments of an output. It knows no output and no protocol.

use crate::record::{Record, RoundTrips, StreamTraffic};
use crate::session::{Counts, Ends, Learned, Side, Transport};
use crate::tree::Tree;

/// Receives the records of a capture.
///
/// A command of the program is a plan (what to read, and how) and one of these. Only
/// [`record`](Output::record) is required. Every other method has a default that does nothing.
///
/// # Order of the calls
///
/// All calls come from one thread, in the order of the capture. Record numbers are 1, 2, 3 …
/// without holes, counted before any filter.
///
/// - [`take_tree`](Output::take_tree) follows each `record` of a message at once.
/// - [`plaintext`](Output::plaintext) comes before the records of the messages in it.
/// - [`stream_over`](Output::stream_over) comes after the last record of its stream. Every stream
///   that was recognised gets one.
/// - [`wants_more`](Output::wants_more) comes after each frame, when all records that the frame
///   completed were handed over.
///
/// # What may be kept
///
/// Nothing. A record and all it refers to (names, bytes, tree, tables, event) is borrowed for the
/// call, and its memory is reused for the next record. An output that needs something later copies
/// it (see [`StoredRecord`](crate::record::StoredRecord)). The exception is the tree that
/// `take_tree` lends mutably.
///
/// # Gaps and counts
///
/// An output never has to count bytes. Those that were never captured are an event of the kind
/// `gap`, and each end of a direction is a record with the final counts of that direction;
/// `stream_over` has the counts of both. In these, `payload` counts the captured bytes and equals
/// `explained + opaque + undecoded + closed`. `lost` is not part of it.
///
/// # Errors
///
/// An output that fails (a full disk, a closed pipe) remembers its error, ignores further calls,
/// and returns `false` from `wants_more`.
pub trait Output {
    /// The next record: a message with its tree, an event, or the end of a direction.
    fn record(&mut self, record: &Record<'_>);

    /// The tree of the last record, which was a message. The pipeline does not use its content
    /// again, so an output that keeps messages may swap it for any other tree instead of copying
    /// it.
    fn take_tree(&mut self, _tree: &mut Tree) {}

    /// The next record, which a filter drops. An output hears of it only if it is within a
    /// [`Filtered`](super::Filtered) one.
    fn dropped(&mut self, _record: &Record<'_>) {}

    /// The next plaintext bytes of a direction of a recognised stream. `offset` counts from the
    /// direction's first byte, handshake included; a gap shows as an offset beyond the end of the
    /// bytes before it. For UDP each call is one datagram and `offset` is 0.
    fn plaintext(&mut self, _stream: &StreamKey, _from: Side, _offset: u64, _bytes: &[u8]) {}

    /// Both directions of a recognised stream ended.
    fn stream_over(&mut self, _stream: &StreamOver<'_>) {}

    /// Whether reading goes on. Called after each frame. With `may_block`, reading the next frame
    /// may block: an output that shows records at once has to write them before this returns.
    fn wants_more(&mut self, _may_block: bool) -> bool {
        true
    }
}

/// A stream of either transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamKey {
    /// TCP or UDP.
    pub transport: Transport,
    /// Its number, from 0, as Wireshark counts. TCP and UDP are numbered separately.
    pub number: u32,
}

/// A recognised stream that ended.
#[derive(Clone, Debug)]
pub struct StreamOver<'a> {
    /// Its transport and number.
    pub key: StreamKey,
    /// Its two ends.
    pub ends: Ends,
    /// The protocol's name.
    pub protocol: &'static str,
    /// The service's name.
    pub service: &'a str,
    /// The final byte counts of the client's and of the server's direction.
    pub counts: [Counts; 2],
    /// The round trips to its ends, as far as the capture shows them.
    pub round_trips: RoundTrips,
    /// What its packets show beside the bytes.
    pub traffic: StreamTraffic,
    /// Facts that the stream told about its network, for `stats`.
    pub learned: Vec<Learned>,
}
