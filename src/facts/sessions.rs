//! Sessions: what one client did, over all its connections.
//!
//! Tables mark the fields by which a client identifies itself (`self`). Streams from one address that name the same account,
//! player or agent are one session. A stream that does not identify its client joins the only session of its address, and
//! stays apart if there are several.
//!
//! Everything is collected for each stream, and assembled when the session is over: all its streams ended, and nothing
//! came for [`IDLE`]. So memory depends on the number of open sessions, not on the length of the capture.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

use super::client_session::{ClientSession, nanos, put_together};
use super::clients::Clients;
use super::message_values::any_type_has;
use super::seen_message::SeenMessage;
use super::session_stream::{TiedBy, TransportStream};
use super::stream_facts::StreamFacts;
use super::{Chat, Identity};
use crate::capture::{Moment, Time};
use crate::hashing::SeededMap;
use crate::record::{Body, Counts, Outlined, Record};
use crate::session::{Event, EventKind, Learned, Side};
use crate::table::{OutlineOf, Tables, TablesAnswers};
use crate::tree::TypeRef;

/// A session is over when nothing came for this long, in nanoseconds of capture time.
const IDLE: i64 = 600 * 1_000_000_000;
/// The most streams of open sessions. Beyond that, the sessions idle for longest are taken as over. A stream takes
/// about 8 KiB.
const MAX_STREAMS: usize = 16_384;
/// The most streams remembered of finished sessions, whose ends may still come. Beyond that, the oldest are forgotten.
const MAX_PAST: usize = 1 << 18;
/// The most identities of all sessions. A further one joins no streams.
const MAX_KNOWN: usize = 65_536;
/// The most bytes of requests that wait for replies, in all streams. Whether further requests were answered is not
/// known.
const MAX_HELD: usize = 64 << 20;
/// How many records that are no remarks pass between two checks for finished sessions.
const LOOK_EVERY: u64 = 4096;

/// Whether a record comes from the program itself: the stream was given up to free memory.
fn is_limit(body: &Body<'_>) -> bool {
    matches!(body, Body::Event(event) if matches!(event.kind, EventKind::Limit { limit: "streams", .. }))
}

/// Whether a client may identify itself by values of a type. What code makes has the types of its parts, or types that tables have for it and that identify nobody.
fn may_identify(tables: &Tables, ty: TypeRef) -> bool {
    let own = |ty: TypeRef| tables.type_def(ty).and_then(|def| def.facts.as_deref()).is_some_and(|facts| facts.own);
    own(ty) || tables.code_parts(ty).any(own)
}

/// Identifies a session: the client's address, the kind of an identity such as `player_id`, and its value.
type IdentityKey = (IpAddr, String, String);

/// Streams of one session, as far as is known.
#[derive(Default)]
struct StreamGroup {
    streams: Vec<TransportStream>,
    /// The keys of this group in [`Sessions::known`].
    known_by: Vec<IdentityKey>,
}

impl StreamGroup {
    fn size(&self) -> usize {
        self.streams.len() + self.known_by.len()
    }
}

/// Collects sessions: takes records in capture order, and returns finished sessions.
#[derive(Default)]
pub struct Sessions {
    ties_only: bool,
    streams: SeededMap<TransportStream, Box<StreamFacts>>,
    /// The streams of each group, by the group's number, which grows.
    groups: BTreeMap<u64, StreamGroup>,
    next_group: u64,
    /// Streams whose sessions are over although they had not ended.
    past: BTreeSet<TransportStream>,
    /// The group that has an identity.
    known: HashMap<IdentityKey, u64>,
    /// Protocols whose clients identify themselves, so that their streams can be joined.
    telling: SeededMap<&'static str, bool>,
    /// The protocol of the last outline, of which that is known.
    told: Option<&'static str>,
    /// Which layouts may have a field by which a client identifies itself.
    identifying: TablesAnswers,
    chat: Chat,
    seen: u64,
    /// Memory that requests of all streams take that wait for replies, in bytes.
    held: usize,
    finished: u64,
    out: Vec<ClientSession>,
}

impl Sessions {
    /// Collects only what joins streams to sessions: no texts, story, places or chat.
    pub fn ties_only() -> Sessions {
        Sessions { ties_only: true, ..Sessions::default() }
    }

    /// Takes the next record. `called` says what earlier records call the number in a node of its tree.
    pub fn record<'a>(&mut self, record: &Record<'_>, called: &dyn Fn(u32) -> Option<&'a str>) {
        let id = (record.transport, record.stream);
        if !self.streams.contains_key(&id) {
            if !matches!(record.body, Body::Message { .. }) && self.past.contains(&id) {
                return;
            }
            let message = match &record.body {
                Body::Message { message, .. } => message.name.raw(),
                Body::Event(_) | Body::StreamEnd { .. } => "",
            };
            self.open(id, record, message);
        }
        let room = self.held < MAX_HELD;
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let held = stream.held;
        if !is_limit(&record.body) {
            stream.touch(record);
        }
        match &record.body {
            Body::Message { message, tables, tree } => {
                let identities = stream.message(&SeenMessage { record, message, tables, tree, called }, room);
                let chat = if self.ties_only { Vec::new() } else { self.chat.record(record, called, true) };
                for line in chat.iter().filter(|line| line.side == Side::Client && line.relays.is_none()) {
                    stream.said(line);
                }
                self.tells_of(record.protocol, tables);
                for identity in identities {
                    self.identify(id, &identity);
                }
            }
            Body::Event(event) => {
                if let EventKind::Unanswered { request, message, waited } = &event.kind {
                    for identity in stream.unanswered(*request, message, *waited) {
                        self.identify(id, &identity);
                    }
                } else if matches!(event.kind, EventKind::Close) {
                    stream.closed();
                }
            }
            Body::StreamEnd { end, counts, .. } => stream.ended(*end, *counts, record),
        }
        let holds = self.streams.get(&id).map_or(held, |stream| stream.held);
        // Who only needs to know where messages end gets no remarks on what is in them.
        let remark = matches!(&record.body, Body::Event(Event { kind: EventKind::Remark, .. }));
        self.seen(!remark, [held, holds], record.at.time);
    }

    /// Whether the tree of a message that answers nothing can tell more than its outline about what joins streams to sessions.
    pub fn wants_tree(&mut self, record: &Record<'_, Outlined<'_>>) -> bool {
        let Outlined { id, tables, outline, .. } = record.body;
        let layout = tables.message(id).and_then(|def| def.layout);
        self.identifying.reaches(tables, OutlineOf { layout, outline }, &|_, ty| may_identify(tables, ty))
    }

    /// Takes the next record, a message whose tree is [not wanted](Sessions::wants_tree), if only ties are collected.
    pub fn outline(&mut self, record: &Record<'_, Outlined<'_>>) {
        let (id, room) = ((record.transport, record.stream), self.held < MAX_HELD);
        if !self.streams.contains_key(&id) {
            self.open(id, record, record.body.message.name.raw());
        }
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let held = stream.held;
        stream.touch(record);
        stream.outline(record, room);
        let holds = stream.held;
        if self.told != Some(record.protocol) {
            self.told = Some(record.protocol);
            self.tells_of(record.protocol, record.body.tables);
        }
        self.seen(true, [held, holds], record.at.time);
    }

    /// A record was taken, before and behind which its stream had so much memory.
    fn seen(&mut self, counts: bool, [before, behind]: [usize; 2], now: Time) {
        self.held = (self.held + behind).saturating_sub(before);
        self.seen += u64::from(counts);
        if counts && self.seen.is_multiple_of(LOOK_EVERY) || self.streams.len() > MAX_STREAMS {
            self.end_idle(now);
        }
    }

    /// Looks up whether the clients of a protocol identify themselves.
    fn tells_of(&mut self, protocol: &'static str, tables: &Tables) {
        self.telling.entry(protocol).or_insert_with(|| any_type_has(tables, |facts| facts.own));
    }

    /// A stream ended: adds its bytes, and the facts of the protocol's session. Nothing is kept if the stream's session
    /// is over already.
    pub fn stream_over(&mut self, id: TransportStream, counts: [Counts; 2], learned: &[Learned]) {
        if let Some(stream) = self.streams.get_mut(&id).filter(|_| !self.ties_only) {
            stream.over(counts, learned.iter().filter(|learned| learned.of_stream).cloned().collect());
        }
    }

    /// The sessions that are over since the last call, in the order of their first records.
    pub fn take_finished(&mut self) -> Vec<ClientSession> {
        std::mem::take(&mut self.out)
    }

    /// The capture is over: every session is. They are put together one by one, since there may be very many.
    pub fn finish(&mut self) -> impl Iterator<Item = ClientSession> {
        let groups: Vec<u64> = self.groups.keys().copied().collect();
        let before = self.take_finished();
        let over = self.over(&groups);
        before.into_iter().chain(over.into_iter().filter_map(|group| self.put_together(&group)))
    }

    fn open<B>(&mut self, id: TransportStream, record: &Record<'_, B>, message: &str) {
        let group = self.next_group;
        self.next_group += 1;
        self.streams.insert(id, Box::new(StreamFacts::new(group, record, message, self.ties_only)));
        self.groups.insert(group, StreamGroup { streams: vec![id], known_by: Vec::new() });
    }

    /// The client of a stream told its identity: the stream joins those with the same identity.
    fn identify(&mut self, id: TransportStream, identity: &Identity) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.tied_by = TiedBy::Said;
        let own = stream.group;
        let address = stream.client().ip();
        for value in identity.values() {
            let key = (address, identity.kind.clone(), value);
            match self.known.get(&key) {
                Some(group) if *group != own && self.groups.contains_key(group) => return self.join(own, *group),
                Some(group) if *group == own => {}
                _ if self.known.len() >= MAX_KNOWN => {}
                _ => {
                    self.known.insert(key.clone(), own);
                    self.groups.entry(own).or_default().known_by.push(key);
                }
            }
        }
    }

    /// Merges two groups. The smaller one moves, so that a stream rarely moves even if many groups are merged.
    fn join(&mut self, one: u64, other: u64) {
        let size = |group: u64| self.groups.get(&group).map_or(0, StreamGroup::size);
        let (from, to) = if size(one) > size(other) { (other, one) } else { (one, other) };
        let Some(moved) = self.groups.remove(&from) else { return };
        for id in &moved.streams {
            if let Some(stream) = self.streams.get_mut(id) {
                stream.group = to;
            }
        }
        for key in &moved.known_by {
            self.known.insert(key.clone(), to);
        }
        let joined = self.groups.entry(to).or_default();
        joined.streams.extend(moved.streams);
        joined.known_by.extend(moved.known_by);
    }

    /// Ends the sessions that are idle. Where too many streams are open, also the one that is idle for longest.
    fn end_idle(&mut self, now: Time) {
        let last = |streams: &SeededMap<TransportStream, Box<StreamFacts>>, ids: &[TransportStream]| {
            ids.iter().filter_map(|id| streams.get(id)).map(|stream| nanos(stream.last.time)).max().unwrap_or(0)
        };
        let mut idle: Vec<(i64, u64)> =
            self.groups.iter().map(|(g, own)| (last(&self.streams, &own.streams), *g)).collect();
        idle.sort_unstable();
        let crowded = self.streams.len().saturating_sub(MAX_STREAMS / 4 * 3);
        let many = if self.streams.len() > MAX_STREAMS { crowded } else { 0 };
        let over = |(place, (last, _)): &(usize, (i64, u64))| *place < many || nanos(now) - *last > IDLE;
        let groups: Vec<u64> = idle.into_iter().enumerate().filter(over).map(|(_, (_, group))| group).collect();
        if !groups.is_empty() {
            self.end(&groups);
        }
    }

    /// Ends some groups.
    fn end(&mut self, groups: &[u64]) {
        for group in self.over(groups) {
            let session = self.put_together(&group);
            self.out.extend(session);
        }
    }

    /// Removes some groups, in the order of their first records. Streams that do not identify their client first join
    /// the only session of their address.
    fn over(&mut self, groups: &[u64]) -> Vec<StreamGroup> {
        self.join_to_the_only_ones(groups);
        self.join_by_time(groups);
        self.gather_uncertain(groups);
        let mut over: Vec<StreamGroup> = groups.iter().filter_map(|group| self.groups.remove(group)).collect();
        let first = |id: &TransportStream| self.streams.get(id).map(|stream| stream.first_record);
        over.sort_by_cached_key(|group| group.streams.iter().filter_map(first).min());
        over
    }

    /// Makes a session of a removed group.
    fn put_together(&mut self, group: &StreamGroup) -> Option<ClientSession> {
        for key in &group.known_by {
            self.known.remove(key);
        }
        let mut streams: Vec<StreamFacts> =
            group.streams.iter().filter_map(|id| self.streams.remove(id)).map(|stream| *stream).collect();
        self.past.extend(group.streams.iter().copied());
        while self.past.len() > MAX_PAST {
            self.past.pop_first();
        }
        streams.sort_by_key(|stream| stream.first_record);
        self.held -= streams.iter().map(|stream| stream.held).sum::<usize>().min(self.held);
        self.finished += 1;
        put_together(self.finished, streams)
    }

    /// Joins streams that identify no client to the session of their address and protocol, where there is only one.
    fn join_to_the_only_ones(&mut self, groups: &[u64]) {
        // `None` where there are several.
        let mut only: HashMap<(IpAddr, &'static str), Option<u64>> = HashMap::new();
        for (group, own) in &self.groups {
            for stream in
                own.streams.iter().filter_map(|id| self.streams.get(id)).filter(|stream| stream.tied_by == TiedBy::Said)
            {
                let known = only.entry((stream.client().ip(), stream.protocol)).or_insert(Some(*group));
                *known = known.filter(|known| known == group);
            }
        }
        for group in groups {
            let Some(stream) = self.lonely(*group) else { continue };
            let found = only.get(&(stream.client().ip(), stream.protocol));
            if let Some(Some(found)) = found {
                self.join(*group, *found);
            }
        }
    }

    /// Joins streams that identify no client, where their address has several sessions: to the session that goes on soonest after the stream began
    /// and has no stream of its service yet. Clients ask one server for the next, so this is mostly right. It is marked as a guess.
    fn join_by_time(&mut self, groups: &[u64]) {
        let mut lonely: Vec<(Moment, u64)> = groups
            .iter()
            .filter_map(|group| self.lonely(*group).filter(|stream| self.tells(stream)).map(|s| (s.first, *group)))
            .collect();
        lonely.sort_unstable_by_key(|(at, group)| (at.frame, *group));
        if lonely.is_empty() {
            return;
        }
        let mut clients = Clients::default();
        for (group, own) in &self.groups {
            let streams = own.streams.iter().filter_map(|id| self.streams.get(id)).map(Box::as_ref);
            clients.add(*group, streams.filter(|stream| stream.tied_by == TiedBy::Said));
        }
        for (_, group) in lonely {
            let Some(stream) = self.lonely(group) else { continue };
            let id = stream.id();
            let names_somebody = !stream.refused.is_empty() || !stream.claims.is_empty();
            let (found, tied_by) = match names_somebody {
                false => (clients.next_of(stream), TiedBy::Time),
                // A client that asked to be a player is that player, or is not known.
                true => (self.known_as(stream), TiedBy::Said),
            };
            let Some(found) = found else { continue };
            if let Some(stream) = self.streams.get_mut(&id) {
                stream.tied_by = tied_by;
            }
            self.join(group, found);
        }
    }

    /// The group of the identity that a stream's client asked for: the request was refused, or its reply was lost.
    fn known_as(&self, stream: &StreamFacts) -> Option<u64> {
        let address = stream.client().ip();
        let key = |identity: &Identity| {
            identity.values().into_iter().map(|value| (address, identity.kind.clone(), value)).collect::<Vec<_>>()
        };
        stream.refused.iter().chain(&stream.claims).flat_map(key).find_map(|key| self.known.get(&key).copied())
    }

    /// Whether clients of a stream's protocol identify themselves.
    fn tells(&self, stream: &StreamFacts) -> bool {
        self.telling.get(stream.protocol) == Some(&true)
    }

    /// Streams of one address and protocol without an identity are one session among those that end together.
    fn gather_uncertain(&mut self, groups: &[u64]) {
        let mut first: HashMap<(IpAddr, &'static str), u64> = HashMap::new();
        for group in groups {
            let Some(stream) = self.lonely(*group).filter(|stream| self.tells(stream)) else { continue };
            let key = (stream.client().ip(), stream.protocol);
            match first.get(&key) {
                Some(known) => self.join(*group, *known),
                None => drop(first.insert(key, *group)),
            }
        }
    }

    /// The only stream of a group, if it does not identify its client.
    fn lonely(&self, group: u64) -> Option<&StreamFacts> {
        let [id] = self.groups.get(&group)?.streams.as_slice() else { return None };
        self.streams.get(id).map(Box::as_ref).filter(|stream| stream.tied_by != TiedBy::Said)
    }
}
