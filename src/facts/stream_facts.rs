//! What is collected of one stream for the session it belongs to.

use std::collections::VecDeque;
use std::net::SocketAddr;

use super::message_values::MessageValues;
use super::session_stream::{SessionStream, TransportStream};
use super::{InfoSource, LastReply, RequestCounts, Waiting, definition, refused, write_info};
use crate::capture::Moment;
use crate::record::{Counts, EndedBy, Record, RoundTrips};
use crate::session::{Message, Side};
use crate::table::{FieldFacts, MessageDef, Tables, TypeDef};
use crate::tree::{Kind, Node, Severity, Tree, mark};

/// Identities, places and steps that are kept of one stream.
const MAX_IDENTITIES: usize = 16;
const MAX_PLACES: usize = 256;
/// Steps at a stream's beginning that are kept, and the latest ones beside them.
const FIRST_STEPS: usize = 32;
const LAST_STEPS: usize = 16;
/// Characters of a name.
const MAX_NAME: usize = 64;

/// What a client said of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// What kind of thing it is: `account`, `player`, `agent`, `mud`.
    pub kind: String,
    /// Its number or UUID.
    pub id: Option<IdentityValue>,
    /// Its name, where it was said or where earlier records call the number so.
    pub name: Option<String>,
    /// The record that said so.
    pub record: u64,
}

/// A number or a UUID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentityValue {
    /// A number.
    Number(u64),
    /// A UUID's text.
    Text(String),
}

impl std::fmt::Display for IdentityValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            IdentityValue::Number(number) => write!(f, "{number}"),
            IdentityValue::Text(text) => f.write_str(text),
        }
    }
}

impl Identity {
    /// What other streams may say of the same client: its number, or where it has none its name.
    pub(super) fn values(&self) -> Vec<String> {
        let id = self.id.iter().map(|id| format!("id {id}"));
        id.chain(self.name.iter().filter(|_| self.id.is_none()).map(|name| format!("name {name}"))).collect()
    }
}

/// A place where the client was: an age, a region, a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its name, where one is known.
    pub name: Option<String>,
    /// Its number or UUID.
    pub id: Option<IdentityValue>,
    /// When the client entered it: the reply where entering is asked for.
    pub from: Moment,
    /// When the client left it, or its stream ended.
    pub to: Option<Moment>,
    /// The record that says so.
    pub record: u64,
    /// The client asked to enter, and was not answered yet.
    pub(super) pending: bool,
}

/// One line of what a person would tell of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoryLine {
    /// The record.
    pub record: u64,
    /// Its frame.
    pub at: Moment,
    /// The stream.
    pub stream: TransportStream,
    /// The message's name.
    pub message: String,
    /// What the message is about.
    pub text: String,
    /// What became of the request, where it is one.
    pub outcome: StoryOutcome,
}

/// What became of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoryOutcome {
    /// It asks for nothing, or its reply is still to come.
    None,
    /// It was answered after this many nanoseconds.
    Answered(i64),
    /// It was refused, by this name or number, after this many nanoseconds.
    Refused(String, i64),
    /// It was never answered, within this many nanoseconds.
    Unanswered(i64),
}

/// What is collected of a stream.
pub(super) struct StreamFacts {
    pub(super) group: u64,
    pub(super) protocol: String,
    /// A client has several streams of this protocol, so those that say nothing belong together.
    pub(super) joins: bool,
    pub(super) certain: bool,
    pub(super) first: Moment,
    pub(super) last: Moment,
    pub(super) first_record: u64,
    pub(super) last_record: u64,
    pub(super) identities: Vec<Identity>,
    /// What the client said of itself in requests that wait for their replies.
    pub(super) claims: Vec<Identity>,
    /// What it said in requests that were refused.
    pub(super) refused: Vec<Identity>,
    pub(super) places: Vec<Place>,
    pub(super) requests: RequestCounts,
    pub(super) problems: [u64; 3],
    pub(super) story: VecDeque<StoryLine>,
    pub(super) steps_left_out: u64,
    id: TransportStream,
    service: String,
    ends: [SocketAddr; 2],
    how: EndedBy,
    messages: [u64; 2],
    bytes: Counts,
    round_trips: RoundTrips,
    waiting: Waiting<()>,
}

/// What a message told beyond its own stream.
#[derive(Default)]
pub(super) struct Told {
    pub(super) expects_reply: bool,
    /// The request that this message is the last reply to.
    pub(super) last_reply_to: Option<u64>,
    pub(super) identities: Vec<Identity>,
}

impl StreamFacts {
    pub(super) fn new(group: u64, record: &Record<'_>) -> Self {
        let ends = match record.from {
            Side::Client => [record.src, record.dst],
            Side::Server => [record.dst, record.src],
        };
        StreamFacts {
            group,
            protocol: record.protocol.to_string(),
            joins: false,
            certain: false,
            first: record.at,
            last: record.at,
            first_record: record.number,
            last_record: record.number,
            identities: Vec::new(),
            claims: Vec::new(),
            refused: Vec::new(),
            places: Vec::new(),
            requests: RequestCounts::default(),
            problems: [0; 3],
            story: VecDeque::new(),
            steps_left_out: 0,
            id: (record.transport, record.stream),
            service: record.service.to_string(),
            ends,
            how: EndedBy::Open,
            messages: [0; 2],
            bytes: Counts::default(),
            round_trips: RoundTrips::default(),
            waiting: Waiting::default(),
        }
    }

    pub(super) fn client(&self) -> SocketAddr {
        let [client, _] = self.ends;
        client
    }

    /// Notes that a record of the stream came.
    pub(super) fn touch(&mut self, record: &Record<'_>) {
        self.last = record.at;
        self.last_record = record.number;
        self.round_trips = record.round_trips;
        if self.service != record.service {
            self.service = record.service.to_string();
        }
    }

    /// Takes a message in.
    pub(super) fn message(&mut self, seen: &SeenMessage<'_, '_>) -> Told {
        let SeenMessage { record, message, tables, tree, .. } = *seen;
        if let Some(count) = self.messages.get_mut(record.from.index()) {
            *count += 1;
        }
        for problem in tree.problems() {
            let place = match problem.severity {
                Severity::Note => 0,
                Severity::Warning => 1,
                Severity::Error => 2,
            };
            self.problems.iter_mut().skip(place).take(1).for_each(|count| *count += 1);
        }
        let mut told = Told::default();
        let Some(def) = definition(message.name, tables, tree) else { return told };
        let refusal = refused(def, tables, tree).map(|refused| refused.reason(message.name.raw()));
        told.last_reply_to = self.reply(seen, refusal.as_deref());
        if let Some(request) = told.last_reply_to {
            told.identities = self.settle_claims(request, refusal.is_none());
        }
        if message.reply.is_none() && refusal.is_some() {
            self.requests.refused += 1;
        }
        if refusal.is_none() {
            let own = self.own(seen);
            // Where this is a request, it is the reply that tells whether the client may call itself so.
            if def.expects_reply {
                self.claim(own)
            } else {
                told.identities.extend(self.take_in(own))
            }
            self.place(seen, def.expects_reply);
        }
        if def.expects_reply {
            told.expects_reply = true;
            self.requests.sent += 1;
            self.waiting.ask(record.number, ());
        }
        if def.step {
            self.step(seen, def);
        }
        told
    }

    /// Notes that a message answers a request. Returns the request's record where this is its last reply.
    fn reply(&mut self, seen: &SeenMessage<'_, '_>, refusal: Option<&str>) -> Option<u64> {
        let reply = seen.message.reply?;
        let partial = refusal.is_none() && seen.tree.get(0).is_some_and(|root| root.has(mark::PARTIAL));
        if partial || self.waiting.take(reply.record).is_none() {
            return None;
        }
        let network = seen.record.network(reply.nanos);
        let refused = refusal.is_some();
        self.requests.reply(LastReply { request: reply.record, nanos: reply.nanos, network, refused });
        let outcome = match refusal {
            Some(name) => StoryOutcome::Refused(name.to_string(), reply.nanos),
            None => StoryOutcome::Answered(reply.nanos),
        };
        self.outcome(reply.record, outcome);
        if let Some(at) = self.places.iter().position(|place| place.pending && place.record == reply.record) {
            self.settle(at, seen.record.at, refusal.is_none());
        }
        Some(reply.record)
    }

    /// A client that asked to enter a place was answered.
    fn settle(&mut self, at: usize, now: Moment, entered: bool) {
        if !entered {
            self.places.remove(at);
            return;
        }
        if let Some(before) = at.checked_sub(1).and_then(|before| self.places.get_mut(before)) {
            before.to.get_or_insert(now);
        }
        if let Some(place) = self.places.get_mut(at) {
            place.pending = false;
            place.from = now;
        }
    }

    /// A request will never be answered.
    /// Returns what the client said of itself in it: no reply refused that.
    pub(super) fn unanswered(&mut self, request: u64, waited: i64) -> Vec<Identity> {
        if self.waiting.take(request).is_some() {
            self.requests.unanswered += 1;
            self.outcome(request, StoryOutcome::Unanswered(waited));
        }
        self.settle_claims(request, true)
    }

    /// Keeps what a request says of the client until its reply comes.
    fn claim(&mut self, own: Vec<Identity>) {
        let room = MAX_IDENTITIES.saturating_sub(self.claims.len());
        self.claims.extend(own.into_iter().take(room));
    }

    /// A request was accepted or refused: returns what it said of the client where that holds now.
    fn settle_claims(&mut self, request: u64, accepted: bool) -> Vec<Identity> {
        if !self.claims.iter().any(|claim| claim.record == request) {
            return Vec::new();
        }
        let (settled, left) = std::mem::take(&mut self.claims).into_iter().partition(|claim| claim.record == request);
        self.claims = left;
        if accepted {
            return self.take_in(settled);
        }
        for claim in settled.into_iter().take(MAX_IDENTITIES.saturating_sub(self.refused.len())) {
            add_identity(&mut self.refused, claim);
        }
        Vec::new()
    }

    /// Takes in what the client is, and returns it.
    fn take_in(&mut self, found: Vec<Identity>) -> Vec<Identity> {
        for identity in &found {
            if self.identities.len() < MAX_IDENTITIES {
                add_identity(&mut self.identities, identity.clone());
            }
        }
        found
    }

    fn outcome(&mut self, request: u64, outcome: StoryOutcome) {
        if let Some(line) = self.story.iter_mut().find(|line| line.record == request) {
            line.outcome = outcome;
        }
    }

    /// One direction of the stream ended.
    pub(super) fn ended(&mut self, how: EndedBy, counts: Counts, from: Side) {
        self.bytes.add(counts);
        if self.how == EndedBy::Open || from == Side::Server {
            self.how = how;
        }
        if let Some(place) = self.places.last_mut().filter(|place| !place.pending) {
            place.to.get_or_insert(self.last);
        }
    }

    /// The protocol itself said that the connection is over.
    pub(super) fn closed(&mut self) {
        self.how = EndedBy::Fin;
    }

    pub(super) fn summary(&self) -> SessionStream {
        let [client, server] = self.ends;
        SessionStream {
            id: self.id,
            service: self.service.clone(),
            client,
            server,
            start: self.first,
            end: self.last,
            how: self.how,
            messages: self.messages,
            bytes: self.bytes,
            round_trips: self.round_trips,
            certain: self.certain,
        }
    }

    /// What a message says of the client itself.
    fn own(&self, source: &SeenMessage<'_, '_>) -> Vec<Identity> {
        let mut found: Vec<Identity> = Vec::new();
        for (index, node, def, _) in source.marked(|facts| facts.own) {
            let kinds = if def.ids.is_empty() { &def.names } else { &def.ids };
            let Some(kind) = kinds.first().map(|kind| source.tables.name(*kind).to_string()) else { continue };
            let (id, name) = source.id_and_name(index, node);
            if id.is_none() && name.is_none() {
                continue;
            }
            add_identity(&mut found, Identity { kind, id, name, record: source.record.number });
        }
        found
    }

    /// A message by which the client enters a place, or asks to.
    fn place(&mut self, source: &SeenMessage<'_, '_>, pending: bool) {
        let mut entered = None;
        for (index, node, ..) in source.marked(|facts| facts.place) {
            let (id, name) = source.id_and_name(index, node);
            let (record, from) = (source.record.number, source.record.at);
            let place = entered.get_or_insert(Place { name: None, id: None, from, to: None, record, pending });
            place.id = place.id.take().or(id);
            place.name = place.name.take().or(name);
        }
        let Some(place) = entered.filter(|place| place.id.is_some() || place.name.is_some()) else { return };
        let here = self.places.last_mut().filter(|last| !last.pending && last.to.is_none());
        if let Some(last) = here
            && !pending
        {
            if last.id == place.id && last.name == place.name {
                return;
            }
            last.to = Some(source.record.at);
        }
        if self.places.len() < MAX_PLACES {
            self.places.push(place);
        }
    }

    /// Keeps a step of the story.
    fn step(&mut self, seen: &SeenMessage<'_, '_>, def: &MessageDef) {
        let SeenMessage { record, message, tables, tree, called } = *seen;
        let mut text = String::new();
        let source = InfoSource { tables, tree, bytes: message.bytes, layout: def.layout, redact: true };
        write_info(source, called, &mut text);
        self.story.push_back(StoryLine {
            record: record.number,
            at: record.at,
            stream: self.id,
            message: message.name.raw().to_string(),
            text,
            outcome: StoryOutcome::None,
        });
        if self.story.len() > FIRST_STEPS + LAST_STEPS {
            self.story.remove(FIRST_STEPS);
            self.steps_left_out += 1;
        }
    }
}

/// A message with all that is needed to read it.
#[derive(Clone, Copy)]
pub(super) struct SeenMessage<'a, 'n> {
    pub(super) record: &'a Record<'a>,
    pub(super) message: &'a Message<'a>,
    pub(super) tables: &'a Tables,
    pub(super) tree: &'a Tree,
    /// What earlier records call the number in a node.
    pub(super) called: &'a dyn Fn(u32) -> Option<&'n str>,
}

impl<'a> SeenMessage<'a, '_> {
    /// The nodes whose facts are as asked for.
    fn marked(
        &self,
        which: impl Fn(&FieldFacts) -> bool,
    ) -> impl Iterator<Item = (u32, &'a Node, &'a TypeDef, &'a FieldFacts)> {
        let (tables, tree) = (self.tables, self.tree);
        (0..).zip(tree.nodes()).filter_map(move |(index, node)| {
            let def = tables.type_def(node.ty)?;
            let facts = def.facts.as_deref().filter(|facts| which(facts))?;
            Some((index, node, def, facts))
        })
    }

    /// A node as a number that identifies something, with what it is called; or as a name.
    fn id_and_name(&self, index: u32, node: &Node) -> (Option<IdentityValue>, Option<String>) {
        let called = || (self.called)(index).map(str::to_string);
        let values = MessageValues { tables: self.tables, tree: self.tree, bytes: self.message.bytes };
        match node.kind {
            Kind::Unsigned | Kind::Signed | Kind::Unsigned64 | Kind::Signed64 if node.value != 0 => {
                (Some(IdentityValue::Number(node.value)), called())
            }
            Kind::Uuid | Kind::UuidBe => match values.word(node, MAX_NAME) {
                Some(text) => (Some(IdentityValue::Text(text)), called()),
                None => (None, None),
            },
            Kind::Text(_) => (None, values.text(node, MAX_NAME)),
            _ => (None, None),
        }
    }
}

/// Adds what a client said of itself to what is known; the same thing said twice is kept once.
pub(super) fn add_identity(known: &mut Vec<Identity>, identity: Identity) {
    let same = |have: &&mut Identity| {
        have.kind == identity.kind
            && (have.id == identity.id || have.id.is_none() || identity.id.is_none())
            && (have.name == identity.name
                || have.name.is_none()
                || identity.name.is_none()
                || have.id == identity.id && have.id.is_some())
    };
    match known.iter_mut().find(same) {
        Some(have) => {
            have.id = have.id.take().or(identity.id);
            have.name = identity.name.or(have.name.take());
        }
        None => known.push(identity),
    }
}
