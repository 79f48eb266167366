//! One session, assembled from its streams when it is over.

use std::net::IpAddr;

use super::super::{Latencies, RequestCounts};
use super::silence::nanos;
use super::stream::SessionStream;
use super::stream_facts::StreamFacts;
use super::values::add_identity;
use super::{Identity, LastMessage, Place, StoryLine};
use crate::capture::{Moment, Time};
use crate::session::Side;
use crate::tree::ProblemCounts;

/// The most identities kept of one session.
const MAX_WHO: usize = 256;

/// A finished session.
#[derive(Clone, Debug)]
pub struct ClientSession {
    /// Its number, from 1, in the order in which sessions are over.
    pub number: u64,
    /// The protocol's name.
    pub protocol: String,
    /// The client's address.
    pub client: IpAddr,
    /// The frame of its first record.
    pub start: Moment,
    /// The frame of its last record.
    pub end: Moment,
    /// The identities that the client stated, the latest of each kind last.
    pub who: Vec<Identity>,
    /// Identities that were refused: a failed login, another account's player.
    pub refused: Vec<Identity>,
    /// Its streams, in the order of their first records.
    pub streams: Vec<SessionStream>,
    /// The places of the client, in order.
    pub places: Vec<Place>,
    /// How many places are left out, because there are too many.
    pub places_left_out: u64,
    /// The counts of requests and replies.
    pub requests: RequestCounts,
    /// The request that waited longest for its reply.
    pub slowest: Option<StoryLine>,
    /// Round trips from the capturing machine to its servers, one for each stream that shows it.
    pub to_server: Latencies,
    /// Round trips to the client.
    pub to_client: Latencies,
    /// Problems of its messages by severity.
    pub problems: ProblemCounts,
    /// Its story: the main steps, in order.
    pub story: Vec<StoryLine>,
    /// How many steps the story leaves out, because there are too many.
    pub steps_left_out: u64,
    /// Requests that were refused, and messages that refuse without having been asked: the first
    /// ones of each stream.
    pub refusals: Vec<StoryLine>,
    /// Requests that were never answered: the first ones of each stream.
    pub unanswered: Vec<StoryLine>,
    /// How many requests have an unknown outcome, because too many waited.
    pub forgotten: u64,
    /// Its last message.
    pub last_message: Option<LastMessage>,
    /// Number of its first record.
    pub first_record: u64,
    /// Number of its last record.
    pub last_record: u64,
}

/// Assembles a session from its streams, which are in order.
pub(super) fn put_together(
    number: u64,
    mut streams: impl Iterator<Item = StreamFacts>,
) -> Option<ClientSession> {
    let first = streams.next()?;
    let mut session = ClientSession {
        number,
        protocol: first.protocol.to_string(),
        client: first.client().ip(),
        start: first.first,
        end: first.last,
        who: Vec::new(),
        refused: Vec::new(),
        streams: Vec::new(),
        places: Vec::new(),
        places_left_out: 0,
        requests: RequestCounts::default(),
        slowest: None,
        to_server: Latencies::default(),
        to_client: Latencies::default(),
        problems: ProblemCounts::default(),
        story: Vec::new(),
        steps_left_out: 0,
        refusals: Vec::new(),
        unanswered: Vec::new(),
        forgotten: 0,
        last_message: None,
        first_record: first.first_record,
        last_record: first.last_record,
    };
    let mut who = Vec::new();
    let mut refused = Vec::new();
    let mut slowest = Vec::new();
    for stream in std::iter::once(first).chain(streams) {
        if stream.last_record > session.last_record {
            session.last_record = stream.last_record;
            session.end = stream.last;
        }
        let summary = stream.summary();
        for (times, trip) in [
            (&mut session.to_server, summary.round_trips.server),
            (&mut session.to_client, summary.round_trips.client),
        ] {
            trip.map(|trip| times.add(trip.nanos));
        }
        session.streams.push(summary);
        session.forgotten += stream.forgotten();
        session.last_message = session
            .last_message
            .into_iter()
            .chain(stream.last_message)
            .max_by_key(|last| (last.at.frame, last.record));
        who.extend(stream.identities.into_iter().chain(stream.claims));
        refused.extend(stream.refused);
        session.refusals.extend(stream.refusals);
        session.unanswered.extend(stream.unanswered);
        session.places_left_out += stream.places_left_out;
        session.places.extend(stream.places.into_iter().filter(|place| !place.pending));
        session.requests.add(&stream.requests);
        slowest.extend(stream.slowest);
        session.problems.add_counts(stream.problems);
        session.steps_left_out += stream.story.left_out;
        session.story.extend(stream.story.lines);
    }
    for (all, list) in [(who, &mut session.who), (refused, &mut session.refused)] {
        let mut all = all;
        all.sort_by_key(|identity| identity.record);
        for identity in all {
            if list.len() < MAX_WHO {
                add_identity(list, identity);
            }
        }
    }
    session.slowest = slowest
        .into_iter()
        .find(|line| session.requests.slowest.is_some_and(|all| all.record == line.record));
    session.refused.retain(|refused| !session.who.iter().any(|known| known.is(refused)));
    session.refusals.sort_by_key(|line| line.record);
    session.unanswered.sort_by_key(|line| line.record);
    session.places = in_order(session.places);
    // After lost bytes messages are found late, so the story is sorted by time.
    session.story.sort_by_key(|line| (line.at.frame, line.record));
    Some(session)
}

/// Places in order. Entering one leaves the one before it, on any stream. The same place twice in a
/// row is one visit, unless the client had left it.
fn in_order(mut places: Vec<Place>) -> Vec<Place> {
    places.sort_by_key(|place| place.record);
    let mut all: Vec<Place> = Vec::new();
    for place in places {
        if let Some(before) = all.last_mut().filter(|before| !before.beside && !place.beside) {
            let still_there = before.to.is_none_or(|to| nanos(to.time) >= nanos(place.from.time));
            if still_there && before.is(&place) {
                before.to = place.to;
                continue;
            }
            if still_there {
                before.to = Some(place.from);
            }
        }
        all.push(place);
    }
    all
}

impl ClientSession {
    /// The latest identity of each kind, in the order of the kinds' names.
    pub fn latest(&self) -> Vec<&Identity> {
        let mut latest: Vec<&Identity> = Vec::new();
        for identity in &self.who {
            match latest.iter_mut().find(|have| have.kind == identity.kind) {
                Some(have) => *have = identity,
                None => latest.push(identity),
            }
        }
        latest.sort_by(|a, b| a.kind.cmp(&b.kind));
        latest
    }

    /// How long before its end a time was, in nanoseconds.
    pub fn since(&self, time: Time) -> i64 {
        nanos(self.end.time) - nanos(time)
    }

    /// How long it lasted, in nanoseconds.
    pub fn duration(&self) -> i64 {
        nanos(self.end.time) - nanos(self.start.time)
    }

    /// The mean time to an acknowledgement on all its streams, in nanoseconds. `None` if there were
    /// none.
    pub fn mean_acknowledgement(&self) -> Option<i64> {
        let all = self.streams.iter().map(|stream| stream.acknowledged);
        let (count, sum) = all.fold((0, 0_i64), |(count, sum), (more, nanos)| {
            (count + more, sum.saturating_add(nanos))
        });
        sum.checked_div(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// Messages of the client and of the server.
    pub fn messages(&self) -> [u64; 2] {
        let sum =
            |side: Side| self.streams.iter().filter_map(|s| s.messages.get(side.index())).sum();
        [sum(Side::Client), sum(Side::Server)]
    }
}
