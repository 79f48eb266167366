//! Where records go: the contract between the pipeline and everything that prints, counts, follows
//! or collects.
//!
//! It names the arguments of an output. It knows no output and no protocol.

use crate::out::{EndedStream, Outlined, Record, RoundTrips};
use crate::proto::{Ends, Learned, Side, Transport};
use crate::session::Counts;
use crate::tree::Tree;

/// Receives the records of a capture.
///
/// A command of the program is a plan (what to read, and how) and one of these. Only
/// [`record`](Output::record) is required. Every other method has a default that does nothing.
///
/// # Order of the calls
///
/// All calls come from one thread at a time, in the order of the capture. For each record there is
/// exactly one call: `record`, or [`outline`](Output::outline) where the output asked for outlines.
/// Record numbers are 1, 2, 3 … without holes, counted before any filter.
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
/// it (see [`Batch`](crate::out::Batch)). The exception is the tree that `take_tree` lends mutably.
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

    /// Whether outlines of messages are enough for now. Called before each call of a session. While
    /// it returns `true`, a message whose tree has no more than its outline comes as
    /// [`outline`](Output::outline). All other messages still come as [`record`](Output::record).
    fn wants_outlines(&self) -> bool {
        false
    }

    /// Whether to call [`wants_tree`](Output::wants_tree) for each message that would come as an
    /// outline. Called like [`wants_outlines`](Output::wants_outlines).
    fn chooses_outlines(&self) -> bool {
        false
    }

    /// Whether the output wants the tree of a message that would come as an outline. Whether it
    /// answers a request is not known yet, so that `record` never has a reply.
    fn wants_tree(&mut self, _record: &Record<'_, Outlined<'_>>) -> bool {
        false
    }

    /// Whether the output looks into messages later, on any thread: it counts their bytes and
    /// problems, and leaves out what is [said once](crate::session::Message::once). It then takes
    /// messages with a [deferred](crate::tree::Deferring) part, as outlines. The same for the whole
    /// run.
    fn defers(&self) -> bool {
        false
    }

    /// How many notes of a side's messages of a stream were left out so far, if the output
    /// [defers](Output::defers).
    fn left_out(&mut self, _stream: &StreamKey, _from: Side) -> u64 {
        0
    }

    /// The next record, a message that was read into an outline. Never called while
    /// [`wants_outlines`](Output::wants_outlines) and [`defers`](Output::defers) return `false`.
    fn outline(&mut self, _record: &Record<'_, Outlined<'_>>) {}

    /// The next plaintext bytes of a direction of a recognised stream. `offset` counts from the
    /// direction's first byte, handshake included; a gap shows as an offset beyond the end of the
    /// bytes before it. For UDP each call is one datagram and `offset` is 0.
    fn plaintext(&mut self, _stream: &StreamKey, _from: Side, _offset: u64, _bytes: &[u8]) {}

    /// Both directions of a recognised stream ended.
    fn stream_over(&mut self, _stream: &StreamOver<'_>) {}

    /// Whether reading goes on. Called after each frame. With `may_block`, reading the next frame
    /// may block: an output that shows records at once has to write them before this returns. After
    /// `false`, the caller ends the run or, if the output only paused to hand its records to
    /// another thread, goes on with the next frame later.
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
    /// Facts that the stream told about its network, for `stats`.
    pub learned: Vec<Learned>,
}

impl From<&StreamOver<'_>> for EndedStream {
    fn from(over: &StreamOver<'_>) -> EndedStream {
        let StreamOver { key, ends, protocol, service, counts, round_trips, learned } = over;
        EndedStream {
            stream: (key.transport, key.number),
            ends: *ends,
            protocol,
            service: service.to_string(),
            counts: *counts,
            round_trips: *round_trips,
            learned: learned.clone(),
        }
    }
}
