//! Sessions: what one client did, over all its connections.
//!
//! Tables mark the fields by which a client identifies itself (`self`). Streams from one address
//! that name the same account, player or agent are one session. A stream that does not identify its
//! client joins the only session of its address, and stays apart if there are several.
//!
//! Everything is collected for each stream, and assembled when the session is over, which
//! `session_groups` decides, and its streams have ended. So memory depends on the number of open
//! sessions, not on the length of the capture.

mod client_session;
mod clients;
mod ending;
mod group;
mod groups;
mod map;
mod places;
mod seen_message;
mod silence;
mod story;
mod stream;
mod stream_facts;
mod values;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use client_session::put_together;
use ending::DirectionEnd;
use group::{FactsByStream, IdentityKey, StreamGroup};
use seen_message::SeenMessage;
use silence::{TrafficSpan, nanos};
use stream_facts::StreamFacts;

pub use client_session::ClientSession;
pub use map::SessionMap;
pub use story::{LastMessage, StoryLine, StoryOutcome};
pub use stream::{SessionStream, TiedBy, TransportStream};
pub use values::{Identity, IdentityValue, Place};

use super::{Account, Chat, Share};
use crate::maps::SeededMap;
use crate::record::{Body, EndedBy, Record};
use crate::session::{Counts, Event, EventKind, Learned, Side};
use crate::table::Tables;

/// The most streams of open sessions. Beyond that, the sessions idle for longest are taken as over.
const MAX_STREAMS: usize = 12_288;
/// The memory of an open stream, roughly, in bytes: here, in the flow, in its protocol's session.
const STREAM: usize = 8 << 10;
/// The most streams remembered of finished sessions, whose ends may still come. Beyond that, the
/// oldest are forgotten.
const MAX_PAST: usize = 1 << 18;
/// The part of the run's account that is left to others, in bytes. Where there is no more, little
/// is kept of further requests that wait, steps, places and identities, and what is not is counted.
const LEFT: usize = 32 << 20;
/// Sessions that are over are looked for once in so much capture time, in nanoseconds.
const LOOK_EVERY: i64 = 60 * 1_000_000_000;
/// Looking goes through all open sessions. Divided by this, their number is how many records come
/// at least before the next time.
const LOOK_FOR: usize = 64;

/// Whether a record comes from the program itself: the stream was given up to free memory.
fn is_limit(body: &Body<'_>) -> bool {
    matches!(body, Body::Event(event) if matches!(event.kind, EventKind::Limit { limit: "streams", .. }))
}

/// Whether a record shows that its stream goes on: what is said of one that is open when the
/// capture ends does not.
fn is_traffic(body: &Body<'_>) -> bool {
    match body {
        Body::Message { .. } => true,
        Body::Event(event) => !matches!(
            event.kind,
            EventKind::Remark | EventKind::Limit { .. } | EventKind::Unanswered { .. }
        ),
        Body::StreamEnd { end, .. } => matches!(end, EndedBy::Fin | EndedBy::Reset),
    }
}

/// Collects sessions: takes records in capture order, and returns finished sessions.
#[derive(Default)]
pub struct Sessions {
    ties_only: bool,
    streams: FactsByStream,
    /// The streams of each group, by the group's number, which grows.
    groups: BTreeMap<u64, StreamGroup>,
    next_group: u64,
    /// Groups that are over, and wait for the ends of their streams.
    silent: BTreeMap<u64, StreamGroup>,
    /// How many streams are kept that went on in a further session.
    parted: usize,
    /// From which time on sessions that are over are looked for.
    look_at: i64,
    /// How many records came since they were looked for.
    not_looked: usize,
    /// Streams whose sessions are over although they had not ended.
    past: BTreeSet<TransportStream>,
    /// The group that has an identity.
    pub(super) known: HashMap<IdentityKey, u64>,
    /// Protocols whose clients identify themselves, so that their streams can be joined.
    pub(super) telling: SeededMap<&'static str, bool>,
    chat: Chat,
    /// Memory of what is kept of all streams beside their places, roughly, in bytes.
    held: usize,
    share: Share,
    finished: u64,
    out: Vec<ClientSession>,
}

impl Sessions {
    /// Collects everything, as far as the account has room.
    pub fn new(account: &Account) -> Sessions {
        Sessions { share: account.share(), ..Sessions::default() }
    }

    /// Collects only what joins streams to sessions: no texts, story, places or chat.
    pub fn ties_only() -> Sessions {
        Sessions { ties_only: true, ..Sessions::default() }
    }

    /// Takes the next record.
    pub fn record(&mut self, record: &Record<'_>) {
        let id = (record.transport, record.stream);
        let message = match &record.body {
            Body::Message { message, .. } => Some(message.name.raw()),
            Body::Event(_) | Body::StreamEnd { .. } => None,
        };
        // Who only needs to know where messages end gets no remarks on what is in them.
        if !matches!(&record.body, Body::Event(Event { kind: EventKind::Remark, .. })) {
            self.look(nanos(record.at.time));
        }
        let session = match &record.body {
            Body::Message { message, tables, tree } => {
                SeenMessage { record, message, tables, tree }.session()
            }
            Body::Event(_) | Body::StreamEnd { .. } => None,
        };
        self.find(id, record, message, session.as_deref());
        if let Some(session) = session {
            self.identify_session(id, &session);
        }
        let room = self.share.has_room_for(LEFT);
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let held = stream.held();
        stream.set_room(room);
        let traffic = is_traffic(&record.body);
        if traffic || !stream.late && !is_limit(&record.body) {
            stream.touch(record, traffic);
        }
        match &record.body {
            Body::Message { message, tables, tree } => {
                let identities = stream.message(&SeenMessage { record, message, tables, tree });
                let chat = if self.ties_only { Vec::new() } else { self.chat.record(record, true) };
                for line in
                    chat.iter().filter(|line| line.side == Side::Client && line.relays.is_none())
                {
                    stream.said(line);
                }
                self.tells_of(record.protocol, tables);
                for identity in identities {
                    self.identify(id, &identity);
                }
            }
            Body::Event(event) => {
                stream.unread |= matches!(event.kind, EventKind::NoKey | EventKind::WrongKey);
                if let EventKind::Unanswered { request, message, waited, part } = &event.kind {
                    let outcome = StoryOutcome::Unanswered { nanos: *waited, part: *part };
                    for identity in stream.unanswered(*request, message, outcome) {
                        self.identify(id, &identity);
                    }
                } else if matches!(event.kind, EventKind::Close) {
                    stream.ending.farewell();
                }
            }
            Body::StreamEnd { end, counts, closed_in, .. } => {
                let how = *end;
                let counts = *counts;
                let closed_in = *closed_in;
                let from = record.from;
                stream.ended(&DirectionEnd { how, counts, closed_in, from }, record);
            }
        }
        let holds = self.streams.get(&id).map_or(held, |stream| stream.held());
        self.seen([held, holds]);
    }

    /// Ends the sessions that are over before a record of this time.
    #[inline]
    fn look(&mut self, now: i64) {
        self.not_looked += 1;
        if now >= self.look_at && self.not_looked > self.groups.len() / LOOK_FOR {
            self.not_looked = 0;
            self.look_at = now.saturating_add(LOOK_EVERY);
            self.end_silent(now);
        }
    }

    /// A record was taken, before and behind which its stream had so much memory.
    fn seen(&mut self, [before, behind]: [usize; 2]) {
        self.held = (self.held + behind).saturating_sub(before);
        if self.streams.len() + self.parted > MAX_STREAMS {
            self.make_room();
        }
        self.draw();
    }

    /// Says to the account how much is kept.
    fn draw(&mut self) {
        self.share.hold(self.held + (self.streams.len() + self.parted) * STREAM);
    }

    /// Looks up whether the clients of a protocol identify themselves.
    fn tells_of(&mut self, protocol: &'static str, tables: &Tables) {
        self.telling.entry(protocol).or_insert_with(|| tables.any_type_has(|facts| facts.own));
    }

    /// A stream ended: adds its bytes, and the facts of the protocol's session. Nothing is kept if
    /// the stream's session was handed out already.
    pub fn stream_over(&mut self, id: TransportStream, counts: [Counts; 2], learned: &[Learned]) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.ending.stream();
        if !self.ties_only {
            let before = stream.held();
            let own = learned.iter().filter(|learned| learned.of_stream);
            let most = stream.most(usize::MAX);
            stream.ending.facts(counts, own.take(most).cloned().collect());
            self.held = (self.held + stream.held()).saturating_sub(before);
        }
        if stream.late {
            let number = stream.group;
            self.complete(number);
        }
    }

    /// The sessions that are over since the last call, in the order of their first records.
    pub fn take_finished(&mut self) -> Vec<ClientSession> {
        std::mem::take(&mut self.out)
    }

    /// The capture is over: every session is. They are put together one by one, since there may be
    /// very many.
    pub fn finish(&mut self) -> impl Iterator<Item = ClientSession> {
        let before = self.take_finished();
        let open: Vec<u64> = self.groups.keys().copied().collect();
        self.tie(&open);
        self.gather_uncertain(&open);
        let all: Vec<u64> = open.into_iter().chain(self.silent.keys().copied()).collect();
        let over = self.removed(&all);
        before.into_iter().chain(over.into_iter().filter_map(|(_, group)| self.put_together(group)))
    }

    /// Makes sure that a record's stream is there. What comes after silence, if it is a message, is
    /// of a further session, and so is a message after the session was over, or one that states
    /// another session.
    fn find(
        &mut self,
        id: TransportStream,
        record: &Record<'_>,
        message: Option<&str>,
        session: Option<&str>,
    ) {
        let now = TrafficSpan::at(nanos(record.at.time));
        let identities = match self.streams.get(&id) {
            None if message.is_none() && self.past.contains(&id) => return,
            None => Vec::new(),
            Some(stream) if !stream.late && stream.is_of_other(session) => {
                self.part(id, false);
                Vec::new()
            }
            Some(stream) if message.is_none() || !stream.late && !stream.span().is_apart(now) => {
                return;
            }
            Some(stream) => {
                let group = self.groups.get(&stream.group).filter(|_| !stream.late);
                if group.is_some_and(|group| !self.span_of(group).is_apart(now)) {
                    return;
                }
                self.part(id, true)
            }
        };
        let group = self.next_group;
        self.next_group += 1;
        let facts = StreamFacts::new(group, record, message.unwrap_or_default(), self.ties_only);
        self.streams.insert(id, Box::new(facts));
        self.groups.insert(group, StreamGroup::new(id, now.first));
        for identity in identities {
            self.streams
                .get_mut(&id)
                .into_iter()
                .for_each(|stream| stream.identities.push(identity.clone()));
            self.identify(id, &identity);
        }
    }

    /// A stream goes on in another session, because its own was over or `closes` says that it is:
    /// what was known of it until then stays there. Returns whose stream it is.
    fn part(&mut self, id: TransportStream, closes: bool) -> Vec<Identity> {
        let Some(mut stream) = self.streams.remove(&id) else { return Vec::new() };
        stream.parts();
        let number = stream.group;
        let late = stream.late;
        let identities = stream.identities.clone();
        let groups = if late { &mut self.silent } else { &mut self.groups };
        let Some(group) = groups.get_mut(&number) else { return identities };
        group.streams.retain(|other| *other != id);
        group.parted.push(*stream);
        self.parted += 1;
        if late {
            self.complete(number)
        } else if closes {
            self.close(number)
        }
        identities
    }

    /// Ends some groups, in the order of their first records. What is known only at the end of
    /// their streams is waited for.
    pub(super) fn end(&mut self, groups: &[u64]) {
        for (number, group) in self.removed(groups) {
            for id in &group.streams {
                if let Some(stream) = self.streams.get_mut(id) {
                    stream.late = true;
                }
            }
            for key in &group.known_by {
                self.known.remove(key);
            }
            self.silent.insert(number, group);
            self.complete(number);
        }
    }

    /// Hands out a session that is over, once its streams have ended.
    fn complete(&mut self, number: u64) {
        let Some(group) = self.silent.get(&number) else { return };
        if group
            .streams
            .iter()
            .filter_map(|id| self.streams.get(id))
            .all(|stream| stream.ending.is_over())
            && let Some(group) = self.silent.remove(&number)
        {
            let session = self.put_together(group);
            self.out.extend(session);
        }
    }

    /// Ends the sessions that are idle for longest, because there are too many streams. What comes
    /// at the end of their streams is not waited for.
    fn make_room(&mut self) {
        let all = self.silent.iter().chain(&self.groups);
        let last_traffic = |group: &StreamGroup| {
            self.facts(group).map(|stream| stream.last_traffic).max().unwrap_or(i64::MIN)
        };
        let mut idle: Vec<(i64, u64)> =
            all.map(|(number, group)| (last_traffic(group), *number)).collect();
        idle.sort_unstable();
        idle.truncate((self.streams.len() + self.parted).saturating_sub(MAX_STREAMS / 4 * 3));
        let groups: Vec<u64> = idle.into_iter().map(|(_, number)| number).collect();
        self.tie(&groups);
        self.gather_uncertain(&groups);
        for (_, group) in self.removed(&groups) {
            let session = self.put_together(group);
            self.out.extend(session);
        }
    }

    /// Takes out groups, in the order of their first records.
    fn removed(&mut self, groups: &[u64]) -> Vec<(u64, StreamGroup)> {
        let take = |number: &u64| {
            Some((*number, self.groups.remove(number).or_else(|| self.silent.remove(number))?))
        };
        let mut all: Vec<(u64, StreamGroup)> = groups.iter().filter_map(take).collect();
        all.sort_by_cached_key(|(_, group)| {
            self.facts(group).map(|stream| stream.first_record).min()
        });
        all
    }

    /// Makes a session of a removed group.
    fn put_together(&mut self, group: StreamGroup) -> Option<ClientSession> {
        for key in &group.known_by {
            self.known.remove(key);
        }
        let held: usize = self.facts(&group).map(StreamFacts::held).sum();
        self.held = self.held.saturating_sub(held);
        self.parted -= group.parted.len().min(self.parted);
        let StreamGroup { streams: mut open, mut parted, .. } = group;
        open.sort_by_cached_key(|id| self.streams.get(id).map(|stream| stream.first_record));
        parted.sort_by_key(|stream| stream.first_record);
        self.past.extend(open.iter().copied());
        while self.past.len() > MAX_PAST {
            self.past.pop_first();
        }
        // One by one, so that the memory of each is free for what becomes of it.
        let mut open = open.iter().filter_map(|id| self.streams.remove(id)).peekable();
        let mut parted = parted.into_iter().peekable();
        let in_order = std::iter::from_fn(|| match (parted.peek(), open.peek()) {
            (Some(one), Some(other)) if one.first_record <= other.first_record => parted.next(),
            (_, Some(_)) => open.next().map(|stream| *stream),
            (_, None) => parted.next(),
        });
        self.finished += 1;
        let session = put_together(self.finished, in_order);
        self.draw();
        session
    }
}
