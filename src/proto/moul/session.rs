//! One MOUL connection: connect packet, key agreement, messages, in both directions.
//!
//! It knows how these follow each other; what they hold is the tables' business.

use super::super::{Context, Ends, Event, EventKind, Message, Moment, Session, Share, Side};
use super::half::{Half, Stage};
use super::recognise::is_http;
use super::requests::{Requests, transaction};
use super::unlock::{Lock, Mode, Verdict, unlock};
use crate::keys::Deriver;
use crate::table::{MessageId, Outcome, ServiceId, Stop};
use crate::tree::Sym;

/// Bytes of a direction that may wait for its key to be settled.
const WAIT: usize = 64 << 10;

/// A connection.
pub(super) struct MoulSession {
    ends: Ends,
    halves: [Half; 2],
    service: Option<ServiceId>,
    service_name: String,
    y: Option<Vec<u8>>,
    seed: Option<[u8; 7]>,
    /// The server answered the client's y, so that a key may have been agreed on.
    agreed: bool,
    deriver: Deriver,
    requests: [Requests; 2],
}

impl MoulSession {
    /// A connection whose first bytes are still to come.
    pub(super) fn new(ends: Ends) -> Self {
        MoulSession {
            ends,
            halves: [Half::new(Stage::Connect), Half::new(Stage::Handshake)],
            service: None,
            service_name: "unknown".into(),
            y: None,
            seed: None,
            agreed: false,
            deriver: Deriver::default(),
            requests: Default::default(),
        }
    }

    fn half(&mut self, side: Side) -> &mut Half {
        let [client, server] = &mut self.halves;
        match side {
            Side::Client => client,
            Side::Server => server,
        }
    }

    /// Makes what can be made of the bytes that wait; each step may let the other direction go on too.
    fn pump(&mut self, at: Moment, context: &mut Context<'_>) {
        loop {
            let mut moved = false;
            for side in [Side::Client, Side::Server] {
                while self.step(side, at, context) {
                    moved = true;
                }
            }
            if !moved {
                return;
            }
        }
    }

    /// One step of one direction; whether there may be more.
    fn step(&mut self, side: Side, at: Moment, context: &mut Context<'_>) -> bool {
        let half = self.half(side);
        let waiting = half.waiting().len();
        if waiting == 0 || waiting < half.need {
            return false;
        }
        match half.stage {
            Stage::Connect => self.connect(at, context),
            Stage::Handshake => self.handshake(side, at, context),
            Stage::Waiting => self.settle(false, at, context),
            Stage::Messages => self.message(side, at, context),
            Stage::Lost => {
                half.pass_over();
                false
            }
            Stage::Closed | Stage::Foreign => {
                let share = if half.stage == Stage::Closed { Share::Closed } else { Share::Opaque };
                half.advance(waiting);
                context.emit.account(side, share, waiting as u64);
                false
            }
        }
    }

    fn connect(&mut self, at: Moment, context: &mut Context<'_>) -> bool {
        let half = self.half(Side::Client);
        if is_http(half.waiting()) {
            return self.http(at, context);
        }
        let Some(ty) = context.tables.type_named("ConnectPacket") else { return false };
        let bytes = half.waiting();
        match context.evaluator.stream_value(context.tables, ty, Sym::ELEMENT, bytes, context.tree) {
            Ok(length) => {
                let kind = bytes.first().copied().map(u64::from);
                self.enter(kind, context);
                self.emit(Side::Client, "ConnectPacket", kind, None, length, at, context);
                true
            }
            Err(Stop::Short(bits)) => {
                half.need = bits.div_ceil(8);
                false
            }
            Err(_) => {
                half.stage = Stage::Lost;
                false
            }
        }
    }

    /// The connect packet says which service this is.
    fn enter(&mut self, kind: Option<u64>, context: &Context<'_>) {
        let services = context.tables.services();
        let found = services.iter().position(|s| s.number.is_some() && s.number == kind);
        self.service = found.map(|i| ServiceId(i as u32));
        let named = found.and_then(|i| services.get(i)).map(|s| s.name.clone());
        self.service_name = named.unwrap_or_else(|| other_service(kind, context));
        let next = match self.service_name.as_str() {
            "file" | "simplenet" => Stage::Messages,
            _ if self.service.is_none() => Stage::Foreign,
            _ => Stage::Handshake,
        };
        let [client, server] = &mut self.halves;
        client.stage = next;
        server.stage = next;
    }

    fn http(&mut self, at: Moment, context: &mut Context<'_>) -> bool {
        self.service_name = "http".into();
        let line: String = {
            let bytes = self.half(Side::Client).waiting();
            let line = bytes.split(|b| *b == b'\r' || *b == b'\n').next().unwrap_or(bytes);
            String::from_utf8_lossy(line.get(..line.len().min(120)).unwrap_or(line)).into_owned()
        };
        let [client, server] = &mut self.halves;
        client.stage = Stage::Foreign;
        server.stage = Stage::Foreign;
        self.say(Side::Client, EventKind::Remark, format!("HTTP, left alone: {line}"), at, context);
        false
    }

    fn handshake(&mut self, side: Side, at: Moment, context: &mut Context<'_>) -> bool {
        // Before the client's connect packet nothing can be said of the server's bytes.
        if self.service.is_none() {
            return false;
        }
        let y_empty = self.y.as_ref().is_some_and(Vec::is_empty);
        let half = self.half(side);
        let bytes = half.waiting();
        if !looks_like_handshake(side, bytes) {
            // MOSS without encryption answers with messages at once.
            half.stage = Stage::Waiting;
            if side == Side::Server {
                self.agreed = true;
            }
            return true;
        }
        let Some(service) = context.tables.service_named("handshake") else { return false };
        match context.evaluator.message(context.tables, service, side.index(), bytes, context.tree) {
            Outcome::Message(id, length) => {
                let data = bytes.get(2..length).unwrap_or(&[]).to_vec();
                let number = bytes.first().copied().map(u64::from);
                half.stage = Stage::Waiting;
                match side {
                    Side::Client => self.y = Some(data),
                    Side::Server => {
                        self.seed = data.try_into().ok();
                        self.agreed = true;
                    }
                }
                let name = message_name(id, context);
                self.emit(side, &name, number, None, length, at, context);
                if y_empty && self.agreed {
                    self.open(Mode::Clear);
                }
                true
            }
            Outcome::Need(n) => {
                half.need = n;
                false
            }
            _ => {
                half.stage = Stage::Waiting;
                true
            }
        }
    }

    /// Both directions go on as the key, or its absence, has them.
    fn open(&mut self, mode: Mode) {
        for half in &mut self.halves {
            if half.stage != Stage::Waiting {
                continue;
            }
            if let Mode::Encrypted(key, _) = &mode {
                half.decrypt_from_here(key.cipher());
            }
            half.stage = Stage::Messages;
            half.need = 1;
        }
    }

    /// Finds the connection's key, once enough is there to prove one.
    fn settle(&mut self, last: bool, at: Moment, context: &mut Context<'_>) -> bool {
        let both = self.halves.iter().all(|h| h.stage == Stage::Waiting);
        let (Some(service), true) = (self.service, both && self.agreed) else { return false };
        let [client, server] = &self.halves;
        let bytes = [client.waiting(), server.waiting()];
        if bytes.iter().all(|b| b.is_empty()) {
            return false;
        }
        let full = bytes.iter().any(|b| b.len() >= WAIT);
        let lock = Lock {
            service,
            ends: self.ends,
            y: self.y.as_deref().filter(|y| !y.is_empty()),
            seed: self.seed,
            bytes,
            last: last || full,
        };
        match unlock(&lock, &mut self.deriver, context) {
            Verdict::Proved(mode) => {
                self.say_mode(&mode, at, context);
                self.open(mode);
                true
            }
            Verdict::Undecided => {
                for half in &mut self.halves {
                    half.need = half.waiting().len() + 1;
                }
                false
            }
            Verdict::None => {
                self.close(at, context);
                true
            }
        }
    }

    fn say_mode(&mut self, mode: &Mode, at: Moment, context: &mut Context<'_>) {
        match mode {
            Mode::Encrypted(_, file) => {
                let text = format!("a key of {file} opens this connection");
                self.say(Side::Server, EventKind::Key { key_file: file.clone() }, text, at, context);
            }
            Mode::Clear if self.seed.is_some() => {
                let text = "not encrypted, in spite of the handshake".to_string();
                self.say(Side::Server, EventKind::Remark, text, at, context);
            }
            Mode::Clear => {}
        }
    }

    fn close(&mut self, at: Moment, context: &mut Context<'_>) {
        for half in &mut self.halves {
            half.stage = Stage::Closed;
            half.need = 1;
        }
        if context.keys.is_empty() {
            let text = "encrypted, and no key was given".to_string();
            self.say(Side::Server, EventKind::NoKey, text, at, context);
        } else {
            let text = "every key was tried and none gave a message".to_string();
            self.say(Side::Server, EventKind::WrongKey, text, at, context);
        }
    }

    fn message(&mut self, side: Side, at: Moment, context: &mut Context<'_>) -> bool {
        let Some(service) = self.service else { return false };
        let half = self.half(side);
        let bytes = half.waiting();
        match context.evaluator.message(context.tables, service, side.index(), bytes, context.tree) {
            Outcome::Message(id, length) => {
                let number = context.tables.message(id).and_then(|m| m.number);
                let name = message_name(id, context);
                self.emit(side, &name, number, Some(id), length, at, context);
                true
            }
            Outcome::Need(n) if n <= context.options.max_message => {
                half.need = n.max(bytes.len() + 1);
                false
            }
            Outcome::Need(n) => {
                self.lose(side, format!("a message of at least {n} bytes is not put together"), at, context)
            }
            Outcome::NoLayout(id, Some(length)) if length <= context.options.max_message => {
                if bytes.len() < length {
                    half.need = length;
                    return false;
                }
                let number = context.tables.message(id).and_then(|m| m.number);
                let name = message_name(id, context);
                self.emit(side, &name, number, Some(id), length, at, context);
                true
            }
            Outcome::NoLayout(id, _) => {
                let name = message_name(id, context);
                self.lose(side, format!("{name}, whose layout is not known, ends the framing"), at, context)
            }
            Outcome::Unknown(number) => self.lose(side, format!("no message has the number {number}"), at, context),
            Outcome::Malformed(id) => {
                let name = message_name(id, context);
                self.lose(side, format!("this cannot be the {name} its number says"), at, context)
            }
        }
    }

    /// Framing is lost: nothing more is taken for a message in this direction.
    fn lose(&mut self, side: Side, text: String, at: Moment, context: &mut Context<'_>) -> bool {
        self.half(side).stage = Stage::Lost;
        self.say(side, EventKind::Remark, text, at, context);
        false
    }

    #[allow(clippy::too_many_arguments)] // a message's parts, and where it goes
    fn emit(
        &mut self,
        side: Side,
        name: &str,
        number: Option<u64>,
        id: Option<MessageId>,
        length: usize,
        at: Moment,
        context: &mut Context<'_>,
    ) {
        let def = id.and_then(|id| context.tables.message(id));
        let transaction = id.and_then(|_| transaction(context.tables, context.tree));
        let [client, server] = &self.requests;
        let asked = match side {
            Side::Client => server,
            Side::Server => client,
        };
        let reply = match (transaction, def) {
            (Some(t), Some(def)) if !def.answers.is_empty() => asked.answer(t, &def.answers, at),
            _ => None,
        };
        let [client, server] = &self.halves;
        let half = if side == Side::Client { client } else { server };
        let bytes = half.waiting().get(..length).unwrap_or(&[]);
        // Where the key had to be settled first, later frames have come by now.
        let at = half.completed(length).unwrap_or(at);
        context.emit.plaintext(side, half.offset(), bytes);
        let message =
            Message { name, number, service: &self.service_name, from: side, offset: half.offset(), bytes, reply };
        let record = context.emit.message(at, &message, context.tables, context.tree);
        if let (Some(t), Some(id)) = (transaction, id)
            && let Some(own) = self.requests.get_mut(side.index())
        {
            own.ask(t, id, record, at);
        }
        self.half(side).advance(length);
    }

    fn say(&mut self, from: Side, kind: EventKind, text: String, at: Moment, context: &mut Context<'_>) {
        let event = Event { kind, service: self.service_name.clone(), from, offset: None, length: None, text };
        context.emit.event(at, event);
    }

    /// Waiting bytes that will never be a message.
    fn give_up(&mut self, side: Side, text: &str, at: Moment, context: &mut Context<'_>) {
        let service = self.service_name.clone();
        let half = self.half(side);
        half.pass_over();
        let (offset, length) = half.take_passed();
        if length == 0 {
            return;
        }
        let event = Event {
            kind: EventKind::Undecoded,
            service,
            from: side,
            offset: Some(offset),
            length: Some(length),
            text: text.to_string(),
        };
        context.emit.event(at, event);
    }
}

impl Session for MoulSession {
    fn data(&mut self, from: Side, _offset: u64, bytes: &[u8], at: Moment, context: &mut Context<'_>) {
        self.half(from).push(bytes, at);
        self.pump(at, context);
    }

    fn gap(&mut self, from: Side, offset: u64, length: u64, at: Moment, context: &mut Context<'_>) {
        self.give_up(from, "cut off by a gap", at, context);
        let service = self.service_name.clone();
        let half = self.half(from);
        half.skip_keystream(length);
        half.jump(offset + length);
        if matches!(half.stage, Stage::Messages | Stage::Connect | Stage::Handshake) {
            half.stage = Stage::Lost;
        }
        let text = format!("{length} bytes were never captured");
        let event = Event { kind: EventKind::Gap, service, from, offset: Some(offset), length: Some(length), text };
        context.emit.event(at, event);
    }

    fn end(&mut self, from: Side, at: Moment, context: &mut Context<'_>) {
        if self.half(from).stage == Stage::Waiting {
            self.settle(true, at, context);
            self.pump(at, context);
        }
        let text = match self.half(from).stage {
            Stage::Messages => "the stream ended within a message",
            Stage::Lost => "where a message begins is not known",
            Stage::Foreign => "another protocol",
            _ => "the stream ended within the connection's opening",
        };
        self.give_up(from, text, at, context);
    }

    fn service(&self) -> &str {
        &self.service_name
    }
}

/// The name of a connection type that has no messages of its own here, as in the JSON.
fn other_service(kind: Option<u64>, context: &Context<'_>) -> String {
    let types = context.tables.enums().iter().find(|e| e.name == "ConnectionType");
    let name = kind.and_then(|k| types.and_then(|t| t.get(k))).map_or("unknown", |v| v.name.as_str());
    let name = name.strip_prefix("kConnType").unwrap_or(name);
    if name == "SimpleNet" {
        return "simplenet".into();
    }
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

fn message_name(id: MessageId, context: &Context<'_>) -> String {
    context.tables.message(id).map_or(String::new(), |m| context.tables.name(m.name).to_string())
}

/// Whether bytes begin with a packet of the key agreement; when too few are there to tell, they may.
fn looks_like_handshake(side: Side, bytes: &[u8]) -> bool {
    let length = bytes.get(1).copied();
    match (side, bytes.first()) {
        (_, None) => true,
        (Side::Client, Some(0)) => length.is_none_or(|n| (2..=66).contains(&n)),
        (Side::Server, Some(1)) => length.is_none_or(|n| n == 2 || n == 9),
        (Side::Server, Some(2)) => length.is_none_or(|n| n == 2 || n == 6),
        _ => false,
    }
}
