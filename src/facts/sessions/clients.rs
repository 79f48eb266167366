//! The clients behind each address that said who they are, and which of them a stream belongs to
//! that says nothing of its client. Where there are several, that is a guess, by time.

use std::collections::HashMap;

use super::silence::{ClientKey, TrafficSpan};
use super::stream_facts::StreamFacts;

/// Clients that identified themselves.
#[derive(Default)]
pub(super) struct Clients {
    by_address: HashMap<ClientKey, Vec<KnownClient>>,
}

/// A client's streams.
struct KnownClient {
    group: u64,
    /// When it had its first and its last traffic.
    traffic: TrafficSpan,
    /// The first and the last frame of those of its streams that identify it, in order.
    streams: Vec<StreamFrames>,
    /// The streams that it was given by a guess: the service, and the first frame.
    given: Vec<(String, u64)>,
}

/// From one frame to another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct StreamFrames {
    first: u64,
    last: u64,
}

impl KnownClient {
    /// Its first stream that began after a frame.
    fn next(&self, frame: u64) -> Option<StreamFrames> {
        self.streams.get(self.streams.partition_point(|stream| stream.first < frame)).copied()
    }

    /// Whether it was given a stream of a service for the same login: what it opened after the
    /// earlier one of both had not ended when the later one began.
    fn has(&self, service: &str, began: u64) -> bool {
        self.given.iter().filter(|(given, _)| given == service).any(|(_, other)| {
            let earlier = began.min(*other);
            let later = began.max(*other);
            self.next(earlier).is_none_or(|next| next.last >= later)
        })
    }
}

impl Clients {
    /// Adds a group, which had traffic from one time to another, with its streams. It is a client
    /// if one of them identifies it.
    pub(super) fn add<'a>(
        &mut self,
        group: u64,
        traffic: TrafficSpan,
        streams: impl Iterator<Item = &'a StreamFacts>,
    ) {
        let mut key = None;
        let mut own = Vec::new();
        let mut given = Vec::new();
        for stream in streams {
            if stream.is_said() {
                key = Some(stream.client_key());
                own.push(StreamFrames { first: stream.first.frame, last: stream.last.frame });
            } else if stream.is_guessed() {
                given.push((stream.service().to_string(), stream.first.frame));
            }
        }
        if let Some(key) = key {
            own.sort_unstable();
            self.by_address.entry(key).or_default().push(KnownClient {
                group,
                traffic,
                streams: own,
                given,
            });
        }
    }

    /// The only client of a stream's address and protocol without silence between the two.
    pub(super) fn only(&self, stream: &StreamFacts) -> Option<u64> {
        let clients = self.by_address.get(&stream.client_key())?;
        let mut near = clients.iter().filter(|client| !client.traffic.is_apart(stream.span()));
        let only = near.next()?;
        near.next().is_none().then_some(only.group)
    }

    /// The group whose next stream begins soonest after a stream began. Groups that have no stream
    /// of its service yet are preferred.
    pub(super) fn next_of(&mut self, stream: &StreamFacts) -> Option<u64> {
        let began = stream.first.frame;
        let service = stream.service();
        let clients = self.by_address.get_mut(&stream.client_key())?;
        let near = clients.iter_mut().filter(|client| !client.traffic.is_apart(stream.span()));
        let after = near
            .filter_map(|client| Some(((client.has(service, began), client.next(began)?), client)));
        let (_, client) = after.min_by_key(|(key, _)| *key)?;
        client.given.push((service.to_string(), began));
        Some(client.group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_comes_again_asks_again_for_each_service() {
        let span = |first, last| StreamFrames { first, last };
        let streams = vec![span(20, 90), span(30, 95), span(220, 290)];
        let given = vec![("file".to_string(), 10)];
        let client =
            KnownClient { group: 1, traffic: TrafficSpan { first: 0, last: 0 }, streams, given };
        assert_eq!(
            [12, 85, 200, 210].map(|began| client.has("file", began)),
            [true, true, false, false]
        );
        assert!(!client.has("gatekeeper", 12));
    }
}
