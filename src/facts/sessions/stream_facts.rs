//! The facts collected from one stream, for its session.

use std::net::SocketAddr;

use super::super::refusal::known_message;
use super::super::requests::is_last_reply;
use super::super::{ChatLine, InfoSource, LastReply, RequestCounts, Waiting, refused, write_info};
use super::ending::{DirectionEnd, StreamEnding};
use super::seen_message::SeenMessage;
use super::silence::nanos;
use super::story::{Story, bare_line, line_of, shorten};
use super::stream::{SessionStream, TiedBy, TransportStream};
use super::values::{Identity, Place, add_identity};
use super::{LastMessage, StoryLine, StoryOutcome};
use crate::capture::Moment;
use crate::record::{EndedBy, MessageView, Record, RoundTrips};
use crate::session::{Ends, Message, Side, Transport};
use crate::table::{MessageDef, MessageId};
use crate::tree::{LinkKind, ProblemCounts, mark};

/// The most identities kept of one stream.
const MAX_IDENTITIES: usize = 16;
/// Refused requests and unanswered ones that are kept of one stream, of either kind.
const MAX_TROUBLES: usize = 16;
/// The same, and places, where there is no more room.
const FEWEST: usize = 2;
/// Memory of the texts of an identity or place, roughly, in bytes.
const VALUE: usize = 64;

/// A request that waits for its reply.
struct AskedRequest {
    id: MessageId,
    /// Its name, if tables describe it under another one.
    name: Option<String>,
    at: Moment,
    text: String,
    carries: Option<String>,
}

impl AskedRequest {
    /// Its memory, roughly, in bytes.
    fn size(&self) -> usize {
        let held = |text: &Option<String>| text.as_ref().map_or(0, String::capacity);
        let texts = self.text.capacity() + held(&self.carries) + held(&self.name);
        size_of::<(u64, Option<AskedRequest>)>() + texts
    }
}

/// The facts collected from a stream.
pub(super) struct StreamFacts {
    pub(super) group: u64,
    /// Whether to collect only what joins it to other streams: no texts, story or places.
    ties_only: bool,
    pub(super) protocol: &'static str,
    /// Why it belongs to its session.
    pub(super) tied_by: TiedBy,
    pub(super) first: Moment,
    pub(super) last: Moment,
    /// The latest time at which one of its ends sent something, in nanoseconds since 1970.
    pub(super) last_traffic: i64,
    /// Whether no key opens it, so that nothing shows whether it is silent.
    pub(super) unread: bool,
    /// Whether its session is over, and waits for what is known at the stream's end.
    pub(super) late: bool,
    pub(super) first_record: u64,
    pub(super) last_record: u64,
    pub(super) identities: Vec<Identity>,
    /// The secret that its session is known by, if a message stated it.
    pub(super) session: Option<String>,
    /// Identities that the client stated in requests that wait for their replies.
    pub(super) claims: Vec<Identity>,
    /// Identities from requests that were refused.
    pub(super) refused: Vec<Identity>,
    pub(super) places: Vec<Place>,
    /// The name of the place that the stream is about.
    pub(super) place_name: Option<String>,
    pub(super) requests: RequestCounts,
    /// The request that waited longest for its reply.
    pub(super) slowest: Option<StoryLine>,
    pub(super) problems: ProblemCounts,
    pub(super) story: Story,
    /// Requests that were refused, and messages that refuse without having been asked.
    pub(super) refusals: Vec<StoryLine>,
    /// Requests that were never answered.
    pub(super) unanswered: Vec<StoryLine>,
    pub(super) last_message: Option<LastMessage>,
    id: TransportStream,
    service: String,
    ends: Ends,
    pub(super) ending: StreamEnding,
    messages: [u64; 2],
    round_trips: RoundTrips,
    sent_again: u64,
    acknowledged: (u64, i64),
    waiting: Waiting<AskedRequest>,
    /// Memory of the waiting requests, roughly, in bytes.
    waiting_held: usize,
    /// Places that were not kept, because there were too many.
    pub(super) places_left_out: u64,
    /// Whether the account of all streams has room for more.
    pub(super) room: bool,
}

impl StreamFacts {
    /// The stream of a record, which is the first one; `message` is the name of the message in it.
    pub(super) fn new(group: u64, record: &Record<'_>, message: &str, ties_only: bool) -> Self {
        let ends = record.ends();
        let id = (record.transport, record.stream);
        let mut story = Story::new(ties_only);
        if record.transport == Transport::Tcp && !ties_only {
            let text = format!("connect to {} {}", record.service, ends.server);
            story.tell(StoryLine { text, ..bare_line(id, record, message) });
        }
        StreamFacts {
            group,
            ties_only,
            protocol: record.protocol,
            tied_by: TiedBy::Address,
            first: record.at,
            last: record.at,
            last_traffic: nanos(record.at.time),
            unread: false,
            late: false,
            first_record: record.number,
            last_record: record.number,
            identities: Vec::new(),
            session: None,
            claims: Vec::new(),
            refused: Vec::new(),
            places: Vec::new(),
            place_name: None,
            requests: RequestCounts::default(),
            slowest: None,
            problems: ProblemCounts::default(),
            story,
            refusals: Vec::new(),
            unanswered: Vec::new(),
            last_message: None,
            id,
            service: record.service.to_string(),
            ends,
            ending: StreamEnding::default(),
            messages: [0; 2],
            round_trips: RoundTrips::default(),
            sent_again: 0,
            acknowledged: (0, 0),
            waiting: Waiting::default(),
            waiting_held: 0,
            places_left_out: 0,
            room: true,
        }
    }

    pub(super) fn service(&self) -> &str {
        &self.service
    }

    pub(super) fn client(&self) -> SocketAddr {
        self.ends.client
    }

    /// Memory of what is kept of it beside its place, roughly, in bytes.
    pub(super) fn held(&self) -> usize {
        let identities =
            self.identities.capacity() + self.claims.capacity() + self.refused.capacity();
        let troubles = self.refusals.iter().chain(&self.unanswered);
        self.waiting_held
            + self.story.held()
            + identities * (size_of::<Identity>() + VALUE)
            + self.places.capacity() * (size_of::<Place>() + VALUE)
            + troubles.map(StoryLine::held).sum::<usize>()
            + self.ending.held()
    }

    /// Tells whether the account of all streams has room for more.
    pub(super) fn set_room(&mut self, room: bool) {
        self.room = room;
        self.story.full = !room;
    }

    /// How many things of a kind are kept, of which there may be so many where there is room.
    pub(super) fn most(&self, most: usize) -> usize {
        if self.room { most } else { FEWEST }
    }

    fn keep_refusal(&mut self, line: StoryLine) {
        if self.refusals.len() < self.most(MAX_TROUBLES) {
            self.refusals.push(line);
        }
    }

    /// Counts a record of the stream.
    pub(super) fn touch(&mut self, record: &Record<'_>, traffic: bool) {
        if traffic {
            self.last_traffic = self.last_traffic.max(nanos(record.at.time));
        }
        self.last = record.at;
        self.last_record = record.number;
        self.ending.goes_on();
        self.round_trips = record.round_trips;
        if self.service != record.service {
            self.service = record.service.to_string();
        }
    }

    /// Handles a message. Returns the identities that the client has from now on.
    pub(super) fn message(&mut self, seen: &SeenMessage<'_>) -> Vec<Identity> {
        let SeenMessage { record, message, tables, tree, .. } = *seen;
        if let Some(count) = self.messages.get_mut(record.from.index()) {
            *count += 1;
        }
        self.problems.add(tree.problems());
        for link in tree.links() {
            match link.kind {
                LinkKind::SentAgain => self.sent_again += 1,
                LinkKind::Acknowledges => {
                    let (count, sum) = self.acknowledged;
                    self.acknowledged = (count + 1, sum.saturating_add(link.nanos));
                }
            }
        }
        self.unread = false;
        let mut identities = Vec::new();
        self.remember_last(record, message);
        let Some((id, def)) = known_message(message.name, tables, tree) else { return identities };
        let asks = message.expects_reply(def);
        let values = MessageView { tables, tree, bytes: message.bytes };
        let refusal = refused(def, &values).map(|refused| match refused.value {
            Some(_) => refused.reason(message.name.raw(), &values),
            // The line of a message whose text refuses says more than that text.
            None => self.text_of(seen, def).0,
        });
        let known = MessageFacts { def, refusal: refusal.as_deref() };
        let counted = self.reply(seen, &known);
        if let Some(request) = counted {
            identities = self.settle_claims(request, refusal.is_none());
        }
        if let Some(why) = &refusal {
            self.refuse_unasked(seen, def, why, counted);
        }
        if refusal.is_none() {
            let own = self.own(seen);
            // An identity in a request counts only once the reply accepts it.
            if asks {
                self.claim(own)
            } else {
                identities.extend(self.take_in(own))
            }
            if !self.ties_only {
                self.place(seen, asks);
            }
        }
        let (text, carries) =
            if asks || def.step { self.text_of(seen, def) } else { (String::new(), None) };
        // A message that was sent again is not another step, nor is one that brings things and has
        // none.
        let brings_nothing = carries.is_none()
            && def
                .layout
                .and_then(|layout| tables.layout(layout))
                .is_some_and(|layout| matches!(tables.carries_of(layout), Some((_, Some(_)))));
        if def.step
            && !brings_nothing
            && !tree.links().iter().any(|link| link.kind == LinkKind::SentAgain)
        {
            self.step(seen, &text, carries.as_deref());
        }
        if asks {
            self.requests.sent += 1;
            let name = message.name.raw();
            let name = (name != tables.name(def.name)).then(|| name.to_string());
            self.ask(record.number, AskedRequest { id, name, at: record.at, text, carries });
        }
        identities
    }

    /// Remembers a request until its reply comes, where there is room for it.
    fn ask(&mut self, record: u64, asked: AskedRequest) {
        if !self.room {
            return self.waiting.forget_one();
        }
        self.waiting_held += asked.size();
        let forgotten = self.waiting.ask(record, asked);
        self.waiting_held -= forgotten.map_or(0, |asked| asked.size());
    }

    fn take_asked(&mut self, record: u64) -> Option<AskedRequest> {
        let asked = self.waiting.take(record)?;
        self.waiting_held -= asked.size();
        Some(asked)
    }

    fn remember_last(&mut self, record: &Record<'_>, message: &Message<'_>) {
        // After lost bytes, messages are found late.
        if self.last_message.as_ref().is_some_and(|last| last.at.frame > record.at.frame) {
            return;
        }
        let mut name = self.last_message.take().map(|last| last.message).unwrap_or_default();
        name.clear();
        name.push_str(message.name.raw());
        let number = record.number;
        let at = record.at;
        let from = record.from;
        let stream = self.id;
        self.last_message = Some(LastMessage { record: number, at, from, stream, message: name });
    }

    /// Notes that a message answers a request. Returns the request's record if this is its last
    /// reply.
    fn reply(&mut self, seen: &SeenMessage<'_>, known: &MessageFacts<'_>) -> Option<u64> {
        let reply = seen.message.reply?;
        let asked = self.waiting.get(reply.record)?;
        if !is_last_reply(known.def, asked.id, known.refusal.is_some(), Some(seen.tree)) {
            return None;
        }
        let asked = self.take_asked(reply.record)?;
        let network = seen.record.network(reply.nanos);
        let refused = known.refusal.is_some();
        self.requests.reply(LastReply {
            request: reply.record,
            nanos: reply.nanos,
            network,
            refused,
        });
        let outcome = match known.refusal {
            Some(name) => StoryOutcome::Refused(name.to_string(), Some(reply.nanos)),
            None => StoryOutcome::Answered(reply.nanos),
        };
        self.story.outcome(reply.record, outcome.clone());
        let slowest = self.requests.slowest.is_some_and(|slowest| slowest.record == reply.record);
        if refused || slowest && !self.ties_only {
            let name = asked.name.clone().unwrap_or_else(|| {
                let def = seen.tables.message(asked.id);
                def.map_or("", |def| seen.tables.name(def.name)).to_string()
            });
            let line = self.asked_line(reply.record, &name, asked, outcome);
            if slowest {
                self.slowest = Some(line.clone());
            }
            if refused {
                self.story.trouble(&line);
                self.keep_refusal(line);
            }
        }
        if let Some(at) =
            self.places.iter().position(|place| place.pending && place.record == reply.record)
        {
            self.settle(at, seen.record.at, known.refusal.is_none());
        }
        Some(reply.record)
    }

    /// The server refuses a message that is not a request, or nothing in particular. If it refuses
    /// a request, that is `counted`.
    fn refuse_unasked(
        &mut self,
        seen: &SeenMessage<'_>,
        def: &MessageDef,
        why: &str,
        counted: Option<u64>,
    ) {
        if counted.is_some() || seen.record.from == Side::Client {
            return;
        }
        self.requests.refused += 1;
        // The request of a reply may be among lost bytes.
        let answers = seen.message.reply.is_none() && !def.answers.is_empty();
        let unasked = if answers { "of no request captured before it" } else { "unasked" };
        let mut text = unasked.to_string();
        let mut nanos = None;
        if let Some(reply) = seen.message.reply {
            self.story
                .outcome(reply.record, StoryOutcome::Refused(why.to_string(), Some(reply.nanos)));
            self.places.retain(|place| place.record != reply.record);
            text = format!("of #{}", reply.record);
            nanos = Some(reply.nanos);
        }
        let outcome = StoryOutcome::Refused(why.to_string(), nanos);
        self.keep_refusal(StoryLine { outcome, text, ..line_of(self.id, seen.record) });
    }

    /// A line about a request that waited.
    fn asked_line(
        &self,
        record: u64,
        message: &str,
        asked: AskedRequest,
        outcome: StoryOutcome,
    ) -> StoryLine {
        let AskedRequest { at, text, carries, .. } = asked;
        StoryLine {
            record,
            at,
            stream: self.id,
            message: message.to_string(),
            carries,
            text,
            times: 1,
            outcome,
        }
    }

    /// A request will never be answered, or no more than in part. Returns the identities that the
    /// client stated in it: the server did not refuse them.
    pub(super) fn unanswered(
        &mut self,
        request: u64,
        message: &str,
        outcome: StoryOutcome,
    ) -> Vec<Identity> {
        if let Some(asked) = self.take_asked(request) {
            self.requests.unanswered += 1;
            self.story.outcome(request, outcome.clone());
            let line = self.asked_line(request, message, asked, outcome);
            self.story.trouble(&line);
            if self.unanswered.len() < self.most(MAX_TROUBLES) {
                self.unanswered.push(line);
            }
        }
        self.settle_claims(request, true)
    }

    /// Keeps the identities in a request until its reply comes.
    fn claim(&mut self, own: Vec<Identity>) {
        let room = self.most(MAX_IDENTITIES).saturating_sub(self.claims.len());
        self.claims.extend(own.into_iter().take(room));
    }

    /// A request was accepted or refused: returns the identities in it if it was accepted.
    fn settle_claims(&mut self, request: u64, accepted: bool) -> Vec<Identity> {
        if !self.claims.iter().any(|claim| claim.record == request) {
            return Vec::new();
        }
        let (settled, left) =
            std::mem::take(&mut self.claims).into_iter().partition(|claim| claim.record == request);
        self.claims = left;
        if accepted {
            return self.take_in(settled);
        }
        // The client's identity was known before, so the refusal is about something else.
        let known = |claim: &Identity| {
            self.identities.iter().any(|have| {
                have.kind == claim.kind && have.id == claim.id && have.name == claim.name
            })
        };
        let settled: Vec<Identity> = settled.into_iter().filter(|claim| !known(claim)).collect();
        for claim in
            settled.into_iter().take(self.most(MAX_IDENTITIES).saturating_sub(self.refused.len()))
        {
            add_identity(&mut self.refused, claim);
        }
        Vec::new()
    }

    /// Keeps an identity of the client, and returns it.
    fn take_in(&mut self, found: Vec<Identity>) -> Vec<Identity> {
        for identity in &found {
            if self.identities.len() < self.most(MAX_IDENTITIES) {
                add_identity(&mut self.identities, identity.clone());
            }
        }
        found
    }

    /// One direction of the stream ended, with this record.
    pub(super) fn ended(&mut self, end: &DirectionEnd, record: &Record<'_>) {
        if end.how == EndedBy::Reset && self.ending.how() != EndedBy::Reset {
            let text = format!("{} connection reset", record.service);
            self.story.tell(StoryLine { text, ..line_of(self.id, record) });
        }
        self.ending.direction(end);
        self.leave();
    }

    /// It goes on after silence, in another session.
    pub(super) fn parts(&mut self) {
        self.ending.silence();
        self.leave();
    }

    /// The client is no longer where it was.
    fn leave(&mut self) {
        if let Some(place) = self.places.last_mut().filter(|place| !place.pending) {
            place.to.get_or_insert(self.last);
        }
    }

    pub(super) fn summary(&self) -> SessionStream {
        let Ends { client, server } = self.ends;
        SessionStream {
            id: self.id,
            service: self.service.clone(),
            client,
            server,
            start: self.first,
            end: self.last,
            how: self.ending.how(),
            closed_by: self.ending.closed_by(),
            messages: self.messages,
            bytes: self.ending.bytes(),
            round_trips: self.round_trips,
            sent_again: self.sent_again,
            acknowledged: self.acknowledged,
            tied_by: self.tied_by,
            learned: self.ending.learned().to_vec(),
        }
    }

    /// The identities that a message states for the client itself.
    fn own(&self, source: &SeenMessage<'_>) -> Vec<Identity> {
        let mut found: Vec<Identity> = Vec::new();
        if !source.may_identify() {
            return found;
        }
        for (index, node, def, _) in source.marked(|facts| facts.own) {
            // A secret tells sessions apart, but not who somebody is.
            if node.has(mark::SECRET) {
                continue;
            }
            let kinds = if def.ids.is_empty() { &def.names } else { &def.ids };
            let Some(kind) = kinds.first().map(|kind| source.tables.name(*kind).to_string()) else {
                continue;
            };
            let (id, name) = source.id_and_name(index, node);
            // The first one of a kind counts: nested messages may identify other clients.
            let said = |have: &Identity| {
                have.kind == kind
                    && (have.id.is_some() && id.is_some() || id.is_none() && have.id.is_none())
            };
            if id.is_none() && name.is_none() || found.iter().any(said) {
                continue;
            }
            add_identity(&mut found, Identity { kind, id, name, record: source.record.number });
        }
        found
    }

    /// What a message is about, in one line, and what it carries; nothing if texts are not
    /// collected.
    fn text_of(&self, seen: &SeenMessage<'_>, def: &MessageDef) -> (String, Option<String>) {
        let SeenMessage { record, message, tables, tree } = *seen;
        let mut text = String::new();
        if self.ties_only {
            return (text, None);
        }
        let source = InfoSource::new(
            message,
            Some(def),
            MessageView { tables, tree, bytes: message.bytes },
            true,
        );
        write_info(source, record.names, &mut text);
        shorten(&mut text);
        (text, source.carried().map(|carried| carried.into_owned()))
    }

    /// Keeps a step of the story. If the step is a request, its reply becomes part of the step.
    fn step(&mut self, seen: &SeenMessage<'_>, text: &str, carries: Option<&str>) {
        let asked = seen.message.reply.map(|reply| reply.record);
        if asked.is_some_and(|asked| self.story.has(asked)) {
            return;
        }
        self.story.tell(StoryLine {
            text: text.to_string(),
            carries: carries.map(str::to_string),
            ..line_of(self.id, seen.record)
        });
    }

    /// The client said something to others.
    pub(super) fn said(&mut self, chat: &ChatLine) {
        if self.story.has(chat.record) {
            return;
        }
        let to: Vec<&str> = chat
            .to
            .iter()
            .filter_map(|to| to.name.as_deref().or(to.id.as_deref()))
            .take(3)
            .collect();
        let to = if to.is_empty() { String::new() } else { format!(" to {}", to.join(", ")) };
        let channel =
            chat.channel.as_ref().map_or(String::new(), |channel| format!(" on {channel}"));
        let mut text = chat.text.clone();
        shorten(&mut text);
        self.story.tell(StoryLine {
            record: chat.record,
            at: chat.at,
            stream: self.id,
            message: chat.message.clone(),
            carries: None,
            text: format!("say \"{text}\"{to}{channel}"),
            times: 1,
            outcome: StoryOutcome::None,
        });
    }

    /// How many requests were forgotten, because too many waited.
    pub(super) fn forgotten(&self) -> u64 {
        self.waiting.forgotten()
    }
}

/// A message that the tables know, and why it refuses, if it does.
struct MessageFacts<'a> {
    def: &'a MessageDef,
    refusal: Option<&'a str>,
}
