//! Streams that belong together, as far as is known while they go on.

use std::net::IpAddr;

use super::silence::{ClientKey, TrafficSpan, nanos};
use super::stream::{TiedBy, TransportStream};
use super::stream_facts::StreamFacts;
use crate::maps::SeededMap;

/// Identifies a session: the client's address, the kind of an identity such as `player_id`, and its
/// value.
pub(super) type IdentityKey = (IpAddr, String, String);

/// The facts of all streams.
pub(super) type FactsByStream = SeededMap<TransportStream, Box<StreamFacts>>;

/// Streams of one session, as far as is known.
pub(super) struct StreamGroup {
    pub(super) streams: Vec<TransportStream>,
    /// Streams that went on after the session was over, as they were until then.
    pub(super) parted: Vec<StreamFacts>,
    /// The keys of this group in [`Sessions::known`].
    pub(super) known_by: Vec<IdentityKey>,
    /// The secret that it is known by, if a message stated it.
    pub(super) session: Option<String>,
    /// When its streams had traffic, as far as was looked at them: there may have been more since.
    pub(super) traffic: TrafficSpan,
    /// Whether it takes no further streams, because it was silent.
    pub(super) closed: bool,
}

impl StreamGroup {
    /// A group of one stream.
    pub(super) fn new(id: TransportStream, now: i64) -> StreamGroup {
        StreamGroup {
            streams: vec![id],
            parted: Vec::new(),
            known_by: Vec::new(),
            session: None,
            traffic: TrafficSpan::at(now),
            closed: false,
        }
    }

    /// Its streams.
    pub(super) fn facts<'a>(
        &'a self,
        streams: &'a FactsByStream,
    ) -> impl Iterator<Item = &'a StreamFacts> {
        self.streams.iter().filter_map(|id| streams.get(id)).map(Box::as_ref).chain(&self.parted)
    }

    /// When its streams had traffic.
    pub(super) fn span(&self, streams: &FactsByStream) -> TrafficSpan {
        self.facts(streams).map(StreamFacts::span).reduce(TrafficSpan::and).unwrap_or(self.traffic)
    }

    /// When its streams had traffic. Remembers it, unless one of them is taken for going on.
    pub(super) fn look_at(&mut self, streams: &FactsByStream) -> TrafficSpan {
        let span = self.span(streams);
        if span.last < i64::MAX {
            self.traffic = span;
        }
        span
    }

    pub(super) fn size(&self) -> usize {
        self.streams.len() + self.parted.len() + self.known_by.len()
    }
}

impl StreamFacts {
    /// Its client's address, and its protocol.
    pub(super) fn client_key(&self) -> ClientKey {
        (self.client().ip(), self.protocol)
    }

    /// Whether a message that states a session is not of this stream's session.
    pub(super) fn is_of_other(&self, session: Option<&str>) -> bool {
        self.session.as_deref().zip(session).is_some_and(|(own, other)| own != other)
    }

    /// Whether it identifies its client.
    pub(super) fn is_said(&self) -> bool {
        self.tied_by == TiedBy::Said
    }

    /// Whether it belongs to its session by a guess.
    pub(super) fn is_guessed(&self) -> bool {
        self.tied_by == TiedBy::Time
    }

    /// When it had traffic. A stream that no key opens is taken for going on until it ends.
    pub(super) fn span(&self) -> TrafficSpan {
        let last = if self.unread && !self.ending.is_over() { i64::MAX } else { self.last_traffic };
        TrafficSpan { first: nanos(self.first.time).min(last), last }
    }
}
