//! One stream of a session, as outputs show it.

use std::net::SocketAddr;

use crate::capture::Moment;
use crate::record::{EndedBy, RoundTrips};
use crate::session::Counts;
use crate::session::{Learned, LearnedValue, Side, Transport};

/// A stream of either transport.
pub type TransportStream = (Transport, u32);

/// One stream of a session.
#[derive(Clone, Debug)]
pub struct SessionStream {
    /// Its transport and number.
    pub id: TransportStream,
    /// The service's name.
    pub service: String,
    /// The client's address and port.
    pub client: SocketAddr,
    /// The server's address and port.
    pub server: SocketAddr,
    /// The frame of its first record.
    pub start: Moment,
    /// The frame of its last record.
    pub end: Moment,
    /// How it ended.
    pub how: EndedBy,
    /// The side that closed or reset it, if one did.
    pub closed_by: Option<Side>,
    /// Messages of the client and of the server.
    pub messages: [u64; 2],
    /// Bytes of both directions.
    pub bytes: Counts,
    /// Messages that are marked as sent again.
    pub sent_again: u64,
    /// Acknowledgements within the protocol's messages, those that were repeated included, and the
    /// nanoseconds from the acknowledged messages on, added up.
    pub acknowledged: (u64, i64),
    /// The round trips to its ends, as far as the capture shows them.
    pub round_trips: RoundTrips,
    /// Why it belongs to the session.
    pub tied_by: TiedBy,
    /// The protocol session's facts about the stream at its end.
    pub learned: Vec<Learned>,
}

impl SessionStream {
    /// How long acknowledgements took on average, in nanoseconds; `None` where there were none.
    pub fn mean_acknowledgement(&self) -> Option<i64> {
        let (count, sum) = self.acknowledged;
        sum.checked_div(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// Messages that were never captured, as the sequence numbers within the protocol's messages
    /// show it; `None` where it has none.
    pub fn lost(&self) -> Option<u64> {
        let facts = self
            .learned
            .iter()
            .flat_map(|learned| &learned.facts)
            .filter(|(key, _)| *key == "lost");
        let counts = facts.map(|(_, value)| match value {
            LearnedValue::Count(count) => *count,
            LearnedValue::Text(_) | LearnedValue::Microseconds(_) => 0,
        });
        counts.reduce(|sum, count| sum + count)
    }
}

/// Why a stream belongs to its session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TiedBy {
    /// A message in it identifies the client.
    Said,
    /// Only one client has its address.
    #[default]
    Address,
    /// A guess: several clients have the address, and of those this client's next stream begins
    /// first.
    Time,
}
