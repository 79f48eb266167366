//! How a connection begins: connect packet, key agreement, and the proof of a key.

use super::direction::Stage;
use super::keys::{KeyService, SessionKey, SessionLine, write_session_line};
use super::recognise::is_http;
use super::session::{MoulSession, ParsedMessage, message_name};
use super::settings::MoulSettings;
use super::unlock::{Encryption, KeyQuery, KeyVerdict, find_key};
use super::wrong_key::explain_wrong_key;
use crate::capture::Moment;
use crate::session::{Answer, RequestKey, Secret};
use crate::session::{Context, EventKind, Side};
use crate::table::{Outcome, ServiceId, Stop, Tables};
use crate::tree::Sym;

/// The most bytes of a direction that wait while its key is not decided.
const WAIT: usize = 64 << 10;

impl MoulSession {
    pub(super) fn read_connect_packet(&mut self, at: Moment, context: &mut Context<'_>) -> bool {
        let direction = self.direction(Side::Client);
        if is_http(direction.stream.waiting()) {
            return self.leave_http_alone(at, context);
        }
        let Some(ty) = context.tables.type_named("ConnectPacket") else { return false };
        let bytes = direction.stream.waiting();
        match context.evaluator.stream_value(context.tables, ty, Sym::ELEMENT, bytes, context.tree)
        {
            Ok(length) => {
                let kind = bytes.first().copied().map(u64::from);
                self.learn_service(kind, context);
                let parsed =
                    ParsedMessage { name: "ConnectPacket", number: kind, id: None, length };
                self.emit(Side::Client, parsed, at, context);
                true
            }
            Err(Stop::Short(bits)) => {
                direction.stream.set_need(bits.div_ceil(8) as usize);
                false
            }
            Err(_) => {
                direction.stage = Stage::Lost;
                false
            }
        }
    }

    /// Reads the connect packet, which names the service.
    fn learn_service(&mut self, kind: Option<u64>, context: &Context<'_>) {
        let services = context.tables.services();
        let found = services.iter().position(|s| s.number.is_some() && s.number == kind);
        self.service = found.map(|i| ServiceId(i as u32));
        let named = found.and_then(|i| services.get(i)).map(|s| s.name.to_string());
        self.service_name = named.unwrap_or_else(|| name_other_service(kind, context));
        let next = match self.service_name.as_str() {
            "file" | "simplenet" => Stage::Messages,
            _ if self.service.is_none() => Stage::Foreign,
            _ => Stage::Handshake,
        };
        let [client, server] = &mut self.directions;
        client.stage = next;
        server.stage = next;
    }

    fn leave_http_alone(&mut self, at: Moment, context: &mut Context<'_>) -> bool {
        self.service_name = "http".into();
        let line: String = {
            let bytes = self.direction(Side::Client).stream.waiting();
            let line = bytes.split(|b| *b == b'\r' || *b == b'\n').next().unwrap_or(bytes);
            String::from_utf8_lossy(line.get(..line.len().min(120)).unwrap_or(line)).into_owned()
        };
        let [client, server] = &mut self.directions;
        client.stage = Stage::Foreign;
        server.stage = Stage::Foreign;
        self.report(
            Side::Client,
            EventKind::Remark,
            format!("HTTP, left alone: {line}"),
            at,
            context,
        );
        false
    }

    /// The server sends messages without its half of the key agreement.
    fn skip_agreement(&mut self, at: Moment, tables: &Tables) {
        self.agreed = true;
        let Some(asked) = tables.message_named("Cli2Srv_Connect") else { return };
        self.requests.answer(&Answer {
            message: asked,
            from: Side::Server,
            answers: &[asked],
            key: RequestKey::NONE,
            at,
            partial: false,
            share: None,
        });
    }

    pub(super) fn read_handshake(
        &mut self,
        side: Side,
        at: Moment,
        context: &mut Context<'_>,
    ) -> bool {
        // The client's connect packet names the service. Until it came, the server's bytes cannot
        // be read.
        if self.service.is_none() {
            return false;
        }
        let y_empty = self.y.as_ref().is_some_and(Vec::is_empty);
        let direction = self.direction(side);
        let bytes = direction.stream.waiting();
        if !may_be_handshake(side, bytes) {
            // MOSS without encryption answers with messages at once.
            direction.stage = Stage::Waiting;
            if side == Side::Server {
                self.skip_agreement(at, context.tables);
            }
            return true;
        }
        let Some(service) = context.tables.service_named("handshake") else { return false };
        match context.evaluator.message(context.tables, service, side.index(), bytes, context.tree)
        {
            Outcome::Message(id, length) => {
                let data = bytes.get(2..length).unwrap_or(&[]).to_vec();
                let number = bytes.first().copied().map(u64::from);
                direction.stage = Stage::Waiting;
                match side {
                    Side::Client => self.y = Some(data),
                    Side::Server => {
                        self.seed = data.try_into().ok();
                        self.agreed = true;
                    }
                }
                let name = message_name(id, context.tables);
                self.emit(side, ParsedMessage { name, number, id: Some(id), length }, at, context);
                if y_empty && self.agreed {
                    self.start_messages(Encryption::Clear);
                }
                true
            }
            Outcome::Need(n) => {
                direction.stream.set_need(n);
                false
            }
            _ => {
                direction.stage = Stage::Waiting;
                true
            }
        }
    }

    /// The key is decided, or that there is none: both directions go on with messages.
    pub(super) fn start_messages(&mut self, mode: Encryption) {
        for direction in &mut self.directions {
            if direction.stage != Stage::Waiting {
                continue;
            }
            if let Encryption::Encrypted(key, _) = &mode {
                direction.decrypt_from_here(key.cipher());
            }
            if direction.is_aligned() {
                direction.stage = Stage::Messages
            } else {
                direction.begin_search(false)
            }
            // The bytes that waited are read in the order in which they came, both directions
            // together.
            direction.stream.hide();
        }
    }

    /// Finds the connection's key, once enough bytes are there to prove one.
    pub(super) fn decide_encryption(
        &mut self,
        last: bool,
        at: Moment,
        context: &mut Context<'_>,
    ) -> bool {
        let both = self.directions.iter().all(|direction| direction.stage == Stage::Waiting);
        let (Some(service), true) = (self.service, both && self.agreed) else { return false };
        let [client, server] = &self.directions;
        // Bytes behind a gap prove nothing: where a message begins is not known.
        let bytes = [client, server]
            .map(|direction| if direction.is_aligned() { direction.stream.waiting() } else { &[] });
        if bytes.iter().all(|b| b.is_empty()) {
            return false;
        }
        let full = bytes.iter().any(|b| b.len() >= WAIT);
        let query = KeyQuery {
            service,
            ends: self.ends,
            y: self.y.as_deref().filter(|y| !y.is_empty()),
            seed: self.seed,
            bytes,
            last: last || full,
        };
        let verdict = find_key(&query, context);
        self.report_budget(at, context);
        match verdict {
            KeyVerdict::Proved(mode) => {
                // The event comes before the first bytes that the key opens, although later bytes
                // proved it.
                let at = self.first_waiting().unwrap_or(at);
                self.report_encryption(&mode, at, context);
                self.start_messages(mode);
                true
            }
            KeyVerdict::Undecided => {
                // Each trial reads all waiting bytes. So the more bytes wait, the more have to come
                // before the next trial.
                for direction in &mut self.directions {
                    let waiting = direction.stream.waiting().len();
                    direction.stream.set_need(waiting + (waiting / 8).max(1));
                }
                false
            }
            KeyVerdict::None => {
                self.report_no_key(at, context);
                true
            }
        }
    }

    /// A session key with the values that identify its connection.
    pub(super) fn make_session_line(&self, key: SessionKey) -> SessionLine {
        SessionLine {
            service: KeyService::from_word(&self.service_name),
            client: Some(self.ends.client),
            server: Some(self.ends.server),
            y: self.y.clone(),
            seed: self.seed,
            ..SessionLine::new(key)
        }
    }

    fn report_encryption(&mut self, mode: &Encryption, at: Moment, context: &mut Context<'_>) {
        match mode {
            Encryption::Encrypted(key, file) => {
                let text = format!("a key of {file} opens this connection");
                let secret = Secret::new(write_session_line(&self.make_session_line(*key)));
                self.report(
                    Side::Server,
                    EventKind::Key { key_file: file.clone(), secret },
                    text,
                    at,
                    context,
                );
            }
            Encryption::Clear if self.seed.is_some() => {
                let text = "not encrypted, in spite of the handshake".to_string();
                self.report(Side::Server, EventKind::Remark, text, at, context);
            }
            Encryption::Clear => {}
        }
    }

    pub(super) fn report_no_key(&mut self, at: Moment, context: &mut Context<'_>) {
        let keys = &MoulSettings::of(context.settings).keys;
        let (kind, text) = if keys.is_empty() {
            (EventKind::NoKey, "encrypted, and no key was given".to_string())
        } else {
            (
                EventKind::WrongKey,
                explain_wrong_key(keys, KeyService::from_word(&self.service_name)),
            )
        };
        self.stop_decrypting(kind, text, at, context);
    }

    /// Reports, once in a run, that keys carried by the capture are no longer tried.
    pub(super) fn report_budget(&mut self, at: Moment, context: &mut Context<'_>) {
        if MoulSettings::of(context.settings).keys.budget.should_report() {
            let text = "the keys that the capture carries have caused too much work without \
                        opening anything: from here on not all of them are tried; with --keys a \
                        key is always tried";
            self.report(
                Side::Server,
                EventKind::Limit { limit: "carried keys" },
                text.to_string(),
                at,
                context,
            );
        }
    }

    /// Gives up on this connection's messages: from here on, all of its bytes count as closed.
    pub(super) fn stop_decrypting(
        &mut self,
        kind: EventKind,
        text: String,
        at: Moment,
        context: &mut Context<'_>,
    ) {
        for direction in &mut self.directions {
            direction.stage = Stage::Encrypted;
            direction.stream.set_need(1);
        }
        self.report(Side::Server, kind, text, at, context);
    }
}

/// The name of a connection type that has no messages of its own here, as in the JSON.
fn name_other_service(kind: Option<u64>, context: &Context<'_>) -> String {
    let types = context.tables.enums().find(|e| e.name == "ConnectionType");
    let name = kind.and_then(|k| types.and_then(|t| t.get(k))).map_or("unknown", |v| &*v.name);
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

/// Whether bytes begin with a packet of the key agreement. Also true if there are too few bytes to
/// rule it out.
fn may_be_handshake(side: Side, bytes: &[u8]) -> bool {
    let length = bytes.get(1).copied();
    match (side, bytes.first()) {
        (_, None) => true,
        (Side::Client, Some(0)) => length.is_none_or(|n| (2..=66).contains(&n)),
        (Side::Server, Some(1)) => length.is_none_or(|n| n == 2 || n == 9),
        (Side::Server, Some(2)) => length.is_none_or(|n| n == 2 || n == 6),
        _ => false,
    }
}
