//! Which streams belong together, and when their session is over: the decisions of [`Sessions`].
//!
//! A session is over when its streams were silent for as long as `silence` says. Whether it is can
//! be asked at any time, with the same answer: nothing here depends on how many records came since
//! it was asked last. A session of a client that said who it is waits for streams of its address
//! that may be its own and go on, and those wait for each other.

use std::collections::HashMap;

use super::Sessions;
use super::clients::Clients;
use super::group::StreamGroup;
use super::silence::{ClientKey, TrafficSpan};
use super::stream::TiedBy;
use super::stream_facts::StreamFacts;
use super::{Identity, IdentityValue, TransportStream};

/// The most identities of all sessions. A further one joins no streams.
const MAX_KNOWN: usize = 65_536;

impl Sessions {
    /// The client of a stream told its identity: the stream joins those with the same identity.
    pub(super) fn identify(&mut self, id: TransportStream, identity: &Identity) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| !stream.late) else { return };
        stream.tied_by = TiedBy::Said;
        let own = stream.group;
        let address = stream.client().ip();
        for value in identity.values() {
            let key = (address, identity.kind.clone(), value);
            if let Some(group) =
                self.known.get(&key).copied().filter(|group| self.groups.contains_key(group))
            {
                if group == own {
                    continue;
                }
                if self.are_other_sessions(own, group) {
                    // The client logged in again: what comes from now on is of this session.
                    self.groups.entry(group).and_modify(|group| {
                        group.known_by.retain(|known| *known != key);
                    });
                } else if self.are_apart(own, group) {
                    self.close(group);
                } else {
                    return self.join(own, group);
                }
            }
            if self.known.len() < MAX_KNOWN {
                self.known.insert(key.clone(), own);
                self.groups.entry(own).and_modify(|group| group.known_by.push(key));
            }
        }
    }

    /// A message states the secret by which the session of a stream is known: the stream joins
    /// those with the same one.
    pub(super) fn identify_session(&mut self, id: TransportStream, session: &str) {
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| !stream.late) else { return };
        if stream.session.as_deref() == Some(session) {
            return;
        }
        stream.session = Some(session.to_string());
        if let Some(group) = self.groups.get_mut(&stream.group) {
            group.session.get_or_insert_with(|| session.to_string());
        }
        let identity = Identity {
            kind: "session".to_string(),
            id: Some(IdentityValue::Text(session.to_string())),
            name: None,
            record: stream.last_record,
        };
        self.identify(id, &identity);
    }

    /// Whether messages state that two groups are different sessions.
    fn are_other_sessions(&self, one: u64, other: u64) -> bool {
        let session = |group: u64| self.groups.get(&group)?.session.as_deref();
        session(one).zip(session(other)).is_some_and(|(one, other)| one != other)
    }

    /// Merges two groups. The smaller one moves, so that a stream rarely moves even if many groups
    /// are merged.
    fn join(&mut self, one: u64, other: u64) {
        let size = |group: u64| self.groups.get(&group).map_or(0, StreamGroup::size);
        let (from, to) = if size(one) > size(other) { (other, one) } else { (one, other) };
        self.merge(from, to);
    }

    /// Adds a group to another one.
    fn merge(&mut self, from: u64, to: u64) {
        if !self.groups.contains_key(&to) {
            return;
        }
        let Some(moved) = self.groups.remove(&from) else { return };
        for id in &moved.streams {
            if let Some(stream) = self.streams.get_mut(id) {
                stream.group = to;
            }
        }
        for key in &moved.known_by {
            self.known.insert(key.clone(), to);
        }
        let Some(joined) = self.groups.get_mut(&to) else { return };
        joined.streams.extend(moved.streams);
        joined.parted.extend(moved.parted);
        joined.known_by.extend(moved.known_by);
        joined.session = joined.session.take().or(moved.session);
        joined.traffic = joined.traffic.and(moved.traffic);
    }

    /// Whether there is silence between two groups. Only if it may be so, each stream is looked at.
    fn are_apart(&mut self, one: u64, other: u64) -> bool {
        let known = |group: u64| self.groups.get(&group).map(|group| group.traffic);
        let (Some(first), Some(second)) = (known(one), known(other)) else { return false };
        first.is_apart(second) && self.look_at(one).is_apart(self.look_at(other))
    }

    /// When the streams of a group had traffic.
    pub(super) fn span_of(&self, group: &StreamGroup) -> TrafficSpan {
        group.span(&self.streams)
    }

    fn look_at(&mut self, number: u64) -> TrafficSpan {
        self.groups
            .get_mut(&number)
            .map_or(TrafficSpan::at(0), |group| group.look_at(&self.streams))
    }

    /// A group takes no further streams.
    pub(super) fn close(&mut self, number: u64) {
        let Some(group) = self.groups.get_mut(&number) else { return };
        group.closed = true;
        for key in group.known_by.drain(..) {
            self.known.remove(&key);
        }
    }

    /// Ends the sessions that are silent.
    pub(super) fn end_silent(&mut self, now: i64) {
        let mut due = Vec::new();
        let mut others = Vec::new();
        let anybody_tells = self.telling.values().any(|tells| *tells);
        for (number, group) in &mut self.groups {
            let traffic = group.look_at(&self.streams);
            if traffic.is_silent_at(now) || group.closed {
                due.push(*number);
            } else if anybody_tells {
                others.push(*number);
            }
        }
        // Streams that go on and identify nobody: from when on.
        let mut going_on: HashMap<ClientKey, i64> = HashMap::new();
        for number in others {
            if let Some(stream) = self.lonely(number).filter(|stream| self.tells(stream)) {
                let since = stream.span().first;
                let first = going_on.entry(stream.client_key()).or_insert(since);
                *first = since.min(*first);
            }
        }
        self.tie(&due);
        due.retain(|number| {
            let Some(group) = self.groups.get(number) else { return false };
            let other =
                self.facts(group).next().and_then(|stream| going_on.get(&stream.client_key()));
            other.is_none_or(|first| {
                self.lonely(*number).is_none() && group.traffic.is_silent_at(*first)
            })
        });
        self.gather_uncertain(&due);
        self.end(&due);
    }

    /// Joins streams that do not identify their client to sessions of their address.
    pub(super) fn tie(&mut self, groups: &[u64]) {
        let mut lonely: Vec<(u64, u64)> = groups
            .iter()
            .filter_map(|group| {
                self.lonely(*group)
                    .filter(|stream| self.tells(stream))
                    .map(|s| (s.first.frame, *group))
            })
            .collect();
        if lonely.is_empty() {
            return;
        }
        lonely.sort_unstable();
        let mut clients = Clients::default();
        for (number, group) in &self.groups {
            clients.add(*number, self.span_of(group), self.facts(group));
        }
        for (_, number) in lonely {
            let Some(stream) = self.lonely(number) else { continue };
            let names_somebody = !stream.refused.is_empty() || !stream.claims.is_empty();
            let found = match clients.only(stream) {
                Some(only) => Some((only, TiedBy::Address)),
                // A client that asked to be a player is that player, or is not known.
                None if names_somebody => self.known_as(stream).map(|group| (group, TiedBy::Said)),
                None => clients.next_of(stream).map(|group| (group, TiedBy::Time)),
            };
            let Some((found, tied_by)) = found else { continue };
            self.mark(number, tied_by);
            self.merge(number, found);
        }
    }

    /// Says why the only stream of a group belongs to its session.
    fn mark(&mut self, number: u64, tied_by: TiedBy) {
        let Some(group) = self.groups.get_mut(&number) else { return };
        group.parted.iter_mut().for_each(|stream| stream.tied_by = tied_by);
        for id in &group.streams {
            if let Some(stream) = self.streams.get_mut(id) {
                stream.tied_by = tied_by;
            }
        }
    }

    /// The group of the identity that a stream's client asked for: the request was refused, or its
    /// reply was lost.
    fn known_as(&self, stream: &StreamFacts) -> Option<u64> {
        let address = stream.client().ip();
        let key = |identity: &Identity| {
            identity
                .values()
                .into_iter()
                .map(|value| (address, identity.kind.clone(), value))
                .collect::<Vec<_>>()
        };
        stream
            .refused
            .iter()
            .chain(&stream.claims)
            .flat_map(key)
            .find_map(|key| self.known.get(&key).copied())
    }

    /// Whether clients of a stream's protocol identify themselves.
    fn tells(&self, stream: &StreamFacts) -> bool {
        self.telling.get(stream.protocol) == Some(&true)
    }

    /// Streams of one address and protocol without an identity are one session among those that end
    /// together.
    pub(super) fn gather_uncertain(&mut self, groups: &[u64]) {
        let mut first: HashMap<ClientKey, u64> = HashMap::new();
        for group in groups {
            let Some(stream) = self.lonely(*group).filter(|stream| self.tells(stream)) else {
                continue;
            };
            match first.get(&stream.client_key()) {
                Some(known) => self.merge(*group, *known),
                None => drop(first.insert(stream.client_key(), *group)),
            }
        }
    }

    /// The only stream of a group, if it does not identify its client.
    fn lonely(&self, group: u64) -> Option<&StreamFacts> {
        let mut all = self.facts(self.groups.get(&group)?);
        all.next().filter(|stream| all.next().is_none() && !stream.is_said())
    }

    /// The streams of a group.
    pub(super) fn facts<'a>(
        &'a self,
        group: &'a StreamGroup,
    ) -> impl Iterator<Item = &'a StreamFacts> {
        group.facts(&self.streams)
    }
}
