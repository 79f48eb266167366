//! One MOUL connection: connect packet, key agreement, messages, in both directions.
//!
//! It knows the order in which these come. The tables know what a message contains.

use super::direction::{Direction, Stage};
use super::joined_key::JoinedKey;
use super::net_log;
use super::recognise::may_begin;
use super::sdl::downloads::Downloads;
use super::sdl::store::Added;
use crate::capture::Moment;
use crate::captured::Captured;
use crate::session::{Answer, ReplyShare, Request, RequestKey, Requests, is_partial, request_key};
use crate::session::{Context, Ends, Event, EventKind, Message, Session, Share, Side, Start};
use crate::table::{MessageId, READ_AS_LATIN_1, ServiceId, Tables};
use crate::tree::Tree;

/// The most requests of both sides that are remembered.
const REQUESTS: usize = 2048;

/// A connection.
pub(super) struct MoulSession {
    pub(super) ends: Ends,
    pub(super) directions: [Direction; 2],
    pub(super) service: Option<ServiceId>,
    pub(super) service_name: String,
    pub(super) y: Option<Vec<u8>>,
    pub(super) seed: Option<[u8; 7]>,
    /// The server answered the client's half of the key agreement, so a key may be in use.
    pub(super) agreed: bool,
    pub(super) requests: Requests,
    /// Files of state descriptors that the client fetches.
    downloads: Downloads,
    /// The connection's beginning was not captured.
    pub(super) joined: bool,
    /// No more client bytes follow the waiting ones for now: the server has answered, or the
    /// stream has ended.
    pub(super) alone: bool,
    /// A session key that opened one direction of a connection older than the capture, while the
    /// other waits for more bytes.
    pub(super) joined_by: Option<JoinedKey>,
    /// Texts in Latin-1, of which only the first one of the connection gets a note.
    pub(super) latin: LatinTexts,
    /// Whether a log tells of it: it has no handshake, and is in clear.
    pub(super) logged: bool,
    /// The service of this server, if an earlier connection named it.
    pub(super) known: Option<(ServiceId, String)>,
}

/// Texts of 8-bit units that are not UTF-8. A server that writes Latin-1 does so in every such
/// text, so only the first one of a connection gets a note. Further ones are counted, and an event
/// gives their number where their direction ends.
#[derive(Debug, Default)]
pub(super) struct LatinTexts {
    /// Whether a message had the note.
    noted: bool,
    /// How many texts of the client and of the server are without a note.
    without_note: [u64; 2],
}

impl LatinTexts {
    /// Removes the note from a message, if an earlier text had it.
    pub(super) fn note_once(&mut self, from: Side, tree: &mut Tree) {
        if tree.problems().iter().any(|problem| problem.has_text(READ_AS_LATIN_1)) {
            let is_first = !std::mem::replace(&mut self.noted, true);
            *from.of(&mut self.without_note) += tree.remove_notes(READ_AS_LATIN_1, is_first);
        }
    }
}

impl MoulSession {
    /// A connection before its first byte. Even if its start was not seen, the first bytes may be
    /// the connect packet.
    pub(super) fn new(start: &Start<'_>, tables: &Tables) -> Self {
        let mut session =
            Self::with_requests(start.ends, Requests::new(tables, REQUESTS).answered_once());
        session.joined = !start.whole;
        if let Some(name) = start.service {
            session.known = tables.service_named(name).map(|id| (id, name.to_string()));
        }
        if let Some(log) = net_log::expected(start.ends) {
            session.begin_in_log(log.service, tables);
        }
        session
    }

    fn with_requests(ends: Ends, requests: Requests) -> Self {
        MoulSession {
            ends,
            directions: [Direction::new(Stage::Connect), Direction::new(Stage::Handshake)],
            service: None,
            service_name: "unknown".into(),
            y: None,
            seed: None,
            agreed: false,
            requests,
            downloads: Downloads::default(),
            joined: false,
            alone: false,
            joined_by: None,
            latin: LatinTexts::default(),
            known: None,
            logged: false,
        }
    }

    /// A log begins with messages, of a service that its name tells or its messages.
    fn begin_in_log(&mut self, service: Option<&str>, tables: &Tables) {
        self.logged = true;
        self.joined = false;
        let service = service.and_then(|name| tables.service_named(name));
        for direction in &mut self.directions {
            direction.stage = if service.is_some() { Stage::Messages } else { Stage::Joined };
        }
        if let Some(service) = service {
            self.name_service(service, tables);
        }
    }

    /// The connection is one of this service.
    pub(super) fn name_service(&mut self, service: ServiceId, tables: &Tables) {
        self.service = Some(service);
        self.service_name = tables.service(service).map_or(String::new(), |s| s.name.to_string());
    }

    pub(super) fn direction(&mut self, side: Side) -> &mut Direction {
        let [client, server] = &mut self.directions;
        match side {
            Side::Client => client,
            Side::Server => server,
        }
    }

    /// Reads all that can be read of the waiting bytes. Bytes that were hidden while the key was
    /// not decided are shown piece by piece, in the order in which both sides sent them. So
    /// messages come out in that order too.
    pub(super) fn read_all(&mut self, at: Moment, context: &mut Context<'_>) {
        self.read_shown(at, context);
        while let Some((side, at)) = self.next_hidden() {
            if side == Side::Server {
                self.read_without_more(Side::Client, at, context);
            }
            self.direction(side).stream.reveal();
            self.read_shown(at, context);
        }
    }

    /// The side whose hidden bytes came first, and the frame that brought them.
    fn next_hidden(&self) -> Option<(Side, Moment)> {
        let sides = [Side::Client, Side::Server].into_iter().zip(&self.directions);
        let hidden =
            sides.filter_map(|(side, direction)| Some((side, direction.stream.next_hidden()?)));
        hidden.min_by_key(|(_, at)| at.frame)
    }

    /// The frame that brought the first waiting byte of either side.
    pub(super) fn first_waiting(&self) -> Option<Moment> {
        self.directions
            .iter()
            .filter_map(|direction| direction.stream.completed(1))
            .min_by_key(|at| at.frame)
    }

    /// Reads all that can be read of the shown bytes. A step of one direction may unblock the
    /// other, so both are tried until neither moves.
    fn read_shown(&mut self, at: Moment, context: &mut Context<'_>) {
        loop {
            let mut moved = false;
            for side in [Side::Client, Side::Server] {
                while self.take_step(side, at, context) {
                    moved = true;
                }
            }
            if !moved {
                return;
            }
        }
    }

    /// Takes one step in one direction. Returns whether there may be more to do.
    fn take_step(&mut self, side: Side, at: Moment, context: &mut Context<'_>) -> bool {
        let direction = self.direction(side);
        let waiting = direction.stream.waiting().len();
        if !direction.stream.is_ready() {
            return false;
        }
        match direction.stage {
            Stage::Connect => self.read_connect_packet(at, context),
            Stage::Handshake => self.read_handshake(side, at, context),
            Stage::Waiting => self.decide_encryption(false, at, context),
            Stage::Messages => self.read_message(side, at, context),
            Stage::Joined => self.decide_joined(false, at, context),
            Stage::Lost => self.find_next_message(side, false, at, context),
            Stage::Encrypted | Stage::Foreign => {
                let share =
                    if direction.stage == Stage::Encrypted { Share::Closed } else { Share::Opaque };
                if direction.stage == Stage::Foreign {
                    context.emit.plaintext(
                        side,
                        direction.stream.offset(),
                        direction.stream.waiting(),
                    );
                }
                direction.stream.advance(waiting);
                context.emit.account(side, share, waiting as u64);
                false
            }
        }
    }

    /// Emits a message, links it to the request that it answers, and learns from it.
    pub(super) fn emit(
        &mut self,
        side: Side,
        parsed: ParsedMessage<'_>,
        at: Moment,
        context: &mut Context<'_>,
    ) {
        let ParsedMessage { name, number, id, length } = parsed;
        let def = id.and_then(|id| context.tables.message(id));
        let [client, server] = &self.directions;
        let direction = if side == Side::Client { client } else { server };
        let bytes = direction.stream.waiting().get(..length).unwrap_or(&[]);
        // If the bytes waited for the key, the frame of this call is later than theirs.
        let at = direction.stream.completed(length).unwrap_or(at);
        let key = def.and_then(|def| {
            if def.tied || def.echoes {
                request_key(def, context.tables, context.tree, bytes)
            } else {
                Some(RequestKey::NONE)
            }
        });
        let reply = match (id, key, def) {
            (Some(message), Some(key), Some(def)) if !def.answers.is_empty() => {
                let partial = is_partial(context.tree);
                let share = ReplyShare::of(def, context.tree);
                let answer =
                    Answer { message, from: side, answers: &def.answers, key, at, partial, share };
                self.requests.answer_in(&answer, context.tree)
            }
            _ => None,
        };
        let asked = id.filter(|id| self.requests.is_request(*id)).zip(key);
        context.emit.plaintext(side, direction.stream.offset(), bytes);
        let message = Message {
            name: Captured::new(name),
            number,
            service: &self.service_name,
            from: side,
            offset: direction.stream.offset(),
            bytes,
            reply,
            no_reply: false,
        };
        let learned = match self.service_name.as_str() {
            "auth" => {
                self.downloads.observe(name, context.tables, context.tree, bytes, context.evaluator)
            }
            _ => Vec::new(),
        };
        let record = context.emit.message(at, &message, context.tables, context.tree);
        if let Some((message, key)) = asked {
            self.requests.remember(Request {
                message,
                from: side,
                key,
                record,
                at,
                answered: false,
                several: false,
            });
        }
        let direction = self.direction(side);
        let transaction = key.filter(|key| !key.is_none()).map(|key| key.exact);
        direction.last_transaction = transaction.or(direction.last_transaction);
        direction.stream.advance(length);
        for (file, added) in learned {
            self.report(side, EventKind::Remark, describe_added(&file, &added), at, context);
        }
    }

    /// Reads a client's waiting bytes as a whole message, although only a further byte would prove
    /// it. No further byte comes for now: the server has answered, or the stream has ended.
    pub(super) fn read_without_more(&mut self, side: Side, at: Moment, context: &mut Context<'_>) {
        let direction = self.direction(side);
        let waiting = direction.stream.waiting().len();
        if side == Side::Client
            && direction.stage == Stage::Messages
            && direction.stream.need() == waiting + 1
            && waiting > 0
        {
            direction.stream.set_need(waiting);
            self.alone = true;
            self.read_shown(at, context);
            self.alone = false;
        }
    }

    pub(super) fn report(
        &mut self,
        from: Side,
        kind: EventKind,
        text: String,
        at: Moment,
        context: &mut Context<'_>,
    ) {
        let event = Event::new(kind, &self.service_name, from, text);
        context.emit.event(at, event);
    }

    /// Reports waiting bytes that will never be a message.
    pub(super) fn give_up(
        &mut self,
        side: Side,
        text: &str,
        at: Moment,
        context: &mut Context<'_>,
    ) {
        let direction = self.direction(side);
        direction.emit_plaintext(side, direction.stream.waiting().len(), context.emit);
        direction.stream.pass(usize::MAX, context.options.max_undecoded);
        self.give_up_passed(side, text, at, context);
    }

    /// Reports the bytes that were skipped.
    pub(super) fn give_up_passed(
        &mut self,
        side: Side,
        text: &str,
        at: Moment,
        context: &mut Context<'_>,
    ) {
        let direction = self.direction(side);
        let passed = direction.stream.take_passed();
        if passed.length == 0 {
            return;
        }
        let event = Event::new(EventKind::Undecoded, &self.service_name, side, text);
        context.emit.event(at, event.about(passed.offset, passed.length).with_passed(passed));
    }

    /// Ends a direction: an event gives the number of its Latin-1 texts without a note.
    pub(super) fn count_latin_texts(&mut self, from: Side, at: Moment, context: &mut Context<'_>) {
        let text = match *from.of(&mut self.latin.without_note) {
            0 => return,
            1 => "1 more text is not UTF-8: read as Latin-1".to_string(),
            n => format!("{n} more texts are not UTF-8: read as Latin-1"),
        };
        self.report(from, EventKind::Remark, text, at, context);
    }
}

impl Session for MoulSession {
    fn data(
        &mut self,
        from: Side,
        _offset: u64,
        bytes: &[u8],
        at: Moment,
        context: &mut Context<'_>,
    ) {
        if std::mem::take(&mut self.joined) && !(from == Side::Client && may_begin(bytes)) {
            self.mark_joined();
        }
        if from == Side::Server {
            self.read_without_more(Side::Client, at, context);
        }
        self.direction(from).push(bytes, at);
        self.read_all(at, context);
    }

    fn gap(&mut self, from: Side, offset: u64, length: u64, at: Moment, context: &mut Context<'_>) {
        self.lose_bytes(from, offset, length, at, context);
        self.read_all(at, context);
    }

    fn held(&self) -> usize {
        let waiting: usize = self.directions.iter().map(|direction| direction.stream.held()).sum();
        waiting + self.requests.held() + self.downloads.held()
    }

    fn relieve(&mut self, at: Moment, context: &mut Context<'_>) {
        self.downloads = Downloads::default();
        self.make_room(at, context);
    }

    fn end(&mut self, from: Side, at: Moment, context: &mut Context<'_>) {
        self.read_without_more(from, at, context);
        let stage = self.direction(from).stage;
        match stage {
            Stage::Waiting => {
                self.decide_encryption(true, at, context);
                self.read_all(at, context);
            }
            Stage::Joined if !self.direction(from).stream.waiting().is_empty() => {
                self.decide_joined(true, at, context);
                self.read_all(at, context);
            }
            _ => self.try_once_more(from, at, context),
        }
        while self.direction(from).stage == Stage::Lost
            && self.find_next_message(from, true, at, context)
        {
            self.read_all(at, context);
        }
        let text = match self.direction(from).stage {
            Stage::Messages => "the stream ended within a message",
            Stage::Lost => "where a message begins is not known",
            _ => "the stream ended within the connection's opening",
        };
        if self.direction(from).stage == Stage::Lost {
            self.requests.lose_replies(from, at);
        }
        self.give_up(from, text, at, context);
        self.count_latin_texts(from, at, context);
        self.requests.report_unanswered(from, &self.service_name, at, context);
    }

    fn is_clear(&self) -> bool {
        false
    }

    fn service(&self) -> &str {
        &self.service_name
    }
}

/// A message all of whose bytes have come.
pub(super) struct ParsedMessage<'a> {
    pub(super) name: &'a str,
    pub(super) number: Option<u64>,
    pub(super) id: Option<MessageId>,
    /// The number of its bytes, which are the first waiting ones.
    pub(super) length: usize,
}

pub(super) fn message_name(id: MessageId, tables: &Tables) -> &str {
    tables.message(id).map_or("", |m| tables.name(m.name))
}

/// Says in words what a fetched descriptor file brought.
fn describe_added(file: &str, added: &Added) -> String {
    let mut text = match (added.descriptors, &added.error) {
        (0, Some(error)) => return error.to_string(),
        (1, _) => format!("{file}: one state descriptor, known from here on"),
        (count, _) => format!("{file}: {count} state descriptors, known from here on"),
    };
    for (name, version) in added.replaced.iter().take(4) {
        text.push_str(&format!("; `{name}` {version} is another one than before"));
    }
    if let Some(error) = &added.error {
        text.push_str(&format!("; {error}"));
    }
    text
}
