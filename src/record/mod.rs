//! What every output is handed: one record, a message or an event with its place in the capture.

mod message_view;
mod names;
mod stored;

use std::net::SocketAddr;

use crate::capture::{Moment, Time};
use crate::session::{Counts, Ends, Event, EventKind, Message, Side, Transport};
use crate::table::Tables;
use crate::tree::Tree;
pub use message_view::MessageView;
pub use names::{NameStore, Names};
pub(crate) use stored::StoredBody;
pub use stored::StoredRecord;

/// One record.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    /// Its number, from 1.
    pub number: u64,
    /// The frame that completed it.
    pub at: Moment,
    /// The time of the capture's first record.
    pub start: Time,
    /// TCP or UDP.
    pub transport: Transport,
    /// The stream's number.
    pub stream: u32,
    /// The sender.
    pub src: SocketAddr,
    /// The receiver.
    pub dst: SocketAddr,
    /// Client or server.
    pub from: Side,
    /// The protocol's name.
    pub protocol: &'static str,
    /// The service's name.
    pub service: &'a str,
    /// How long the network takes to either end of the stream, as far as the capture shows it by
    /// then.
    pub round_trips: RoundTrips,
    /// What earlier records call the numbers in a message. Empty if nobody asked for names.
    pub names: Names<'a>,
    /// A message, an event, or a direction's end.
    pub body: Body<'a>,
}

/// How long packets take from the place of the capture to an end of a stream, and their
/// acknowledgements back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// In nanoseconds.
    pub nanos: i64,
    /// The opening of the connection was measured. Otherwise only acknowledgements of data were,
    /// which may have been held back, so that it is at most as long.
    pub opening: bool,
}

/// The way to both ends of a stream. Together they are the way from the client to the server and
/// back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundTrips {
    /// To the client and back; `None` where the capture does not show it.
    pub client: Option<RoundTrip>,
    /// To the server and back; `None` where the capture does not show it.
    pub server: Option<RoundTrip>,
}

/// What the packets of a stream show beside its bytes, client's and server's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamTraffic {
    /// Whether the stream's beginning was captured. Of UDP only the messages can tell that.
    pub whole: bool,
    /// What the client sent, and what the server sent.
    pub sides: [SideTraffic; 2],
}

impl StreamTraffic {
    /// Of a stream whose packets are not there: nothing is taken to be missing.
    pub fn unknown() -> StreamTraffic {
        let side = SideTraffic { heard: true, ..SideTraffic::default() };
        StreamTraffic { whole: true, sides: [side; 2] }
    }
}

/// What the packets of one side of a stream show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SideTraffic {
    /// Whether any packet of it was captured.
    pub heard: bool,
    /// How many packets of the other side were captured since its last one.
    pub unheard: u64,
    /// Packets with payload.
    pub packets: u64,
    /// Those whose bytes it sent again.
    pub resent: u64,
    /// The frame of the first of these.
    pub first_resent: u64,
    /// How often it said that it takes no more bytes for now.
    pub zero_windows: u64,
    /// The frame in which it first said so.
    pub first_zero_window: u64,
    /// For how many nanoseconds it took nothing, at the longest.
    pub longest_zero_window: i64,
    /// For how many nanoseconds of the end its bytes lacked an acknowledgement, and it did not
    /// send them again.
    pub unacknowledged: i64,
}

impl RoundTrips {
    /// To one end and back.
    pub fn to(&self, side: Side) -> Option<RoundTrip> {
        match side {
            Side::Client => self.client,
            Side::Server => self.server,
        }
    }

    /// From the client to the server and back, in nanoseconds, where both parts are known.
    pub fn whole(&self) -> Option<i64> {
        Some(self.client?.nanos.saturating_add(self.server?.nanos))
    }
}

impl Record<'_> {
    /// The addresses of the client and of the server.
    pub fn ends(&self) -> Ends {
        match self.from {
            Side::Client => Ends { client: self.src, server: self.dst },
            Side::Server => Ends { client: self.dst, server: self.src },
        }
    }

    /// Of `elapsed` nanoseconds that its sender took to reply: how many the network took, from the
    /// place of the capture to the sender and back; `None` where the capture does not show it.
    pub fn network(&self, elapsed: i64) -> Option<i64> {
        self.round_trips.to(self.from).map(|trip| trip.nanos.min(elapsed))
    }
}

/// What a record is.
#[derive(Clone, Copy)]
pub enum Body<'a> {
    /// A message.
    Message {
        /// What the session said of it.
        message: &'a Message<'a>,
        /// The tables its tree refers to.
        tables: &'a Tables,
        /// Its fields.
        tree: &'a Tree,
    },
    /// An event.
    Event(&'a Event),
    /// The end of a direction.
    StreamEnd {
        /// How it ended.
        end: EndedBy,
        /// The same for people.
        text: &'a str,
        /// Its bytes.
        counts: Counts,
        /// The frame in which its sender closed or reset it. The record comes later where bytes
        /// were missing.
        closed_in: Option<u64>,
    },
}

/// How a direction of a stream ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndedBy {
    /// Its end said so: a FIN, or the protocol's own farewell.
    Fin,
    /// A RST.
    Reset,
    /// The capture ended first.
    #[default]
    Open,
    /// Nothing came any more, and a new connection began between the same ends.
    Timeout,
    /// There were more streams than are kept.
    GivenUp,
}

impl EndedBy {
    /// The word in the JSON.
    pub fn word(self) -> &'static str {
        match self {
            EndedBy::Fin => "fin",
            EndedBy::Reset => "reset",
            EndedBy::Open => "open",
            EndedBy::Timeout => "timeout",
            EndedBy::GivenUp => "given_up",
        }
    }
}

/// The names of all events.
#[rustfmt::skip]
pub const EVENTS: [&str; 13] = [
    "key", "no_key", "wrong_key", "gap", "undecoded", "resync", "limit", "unanswered", "checksum", "stream_end", "open", "close", "remark",
];

/// The name of an event as in the JSON; empty for a message.
pub fn event_word(body: &Body<'_>) -> &'static str {
    let Body::Event(event) = body else {
        return if matches!(body, Body::StreamEnd { .. }) { "stream_end" } else { "" };
    };
    match &event.kind {
        EventKind::Key { .. } => "key",
        EventKind::NoKey => "no_key",
        EventKind::WrongKey => "wrong_key",
        EventKind::Gap => "gap",
        EventKind::Undecoded => "undecoded",
        EventKind::Resync { .. } => "resync",
        EventKind::Limit { .. } => "limit",
        EventKind::Unanswered { .. } => "unanswered",
        EventKind::Checksum => "checksum",
        EventKind::Open => "open",
        EventKind::Close => "close",
        EventKind::Remark => "remark",
    }
}
