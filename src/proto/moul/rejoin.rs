//! Connections that were there before the capture: no connect packet, no handshake, and perhaps in the middle of a message.

use super::super::{Context, EventKind, Moment, Opening, Side};
use super::evidence::{Against, evidence};
use super::half::Stage;
use super::requests::Requests;
use super::search::{Bench, Found, Search, search};
use super::session::MoulSession;
use crate::keys::{KeystreamStart, SessionHint, SessionKey, SessionLine};
use crate::table::{Evaluator, Outcome, ServiceId, Tables};
use crate::tree::Tree;

/// Bytes of a direction that are looked at.
const LOOK: usize = 4096;
/// Keystream positions that are tried where none is given.
const POSITIONS: u64 = 4 << 20;

/// Evidence that makes a connection known by its messages alone.
const PROOF: i32 = 90;

/// The service whose messages are found in a connection's bytes, in clear: the one that proves most, and whether the sides are
/// the other way round.
pub(super) fn service_of(opening: &Opening<'_>, bench: &mut Bench<'_>) -> Option<(ServiceId, bool)> {
    let tables = bench.tables;
    let mut best = None;
    for (i, service) in tables.services().iter().enumerate() {
        if service.header.is_empty() || service.name == "handshake" {
            continue;
        }
        let id = ServiceId(i as u32);
        for (swapped, bytes) in [(false, [opening.client, opening.server]), (true, [opening.server, opening.client])] {
            let sides = [Side::Client, Side::Server].into_iter().zip(bytes);
            let bits: i32 = sides.map(|(side, bytes)| proved(id, side, bytes, bench)).sum();
            if bits >= PROOF && best.is_none_or(|(_, _, most)| bits > most) {
                best = Some((id, swapped, bits));
            }
        }
    }
    best.map(|(id, swapped, _)| (id, swapped))
}

/// How much evidence there is that one direction holds messages of a service.
fn proved(service: ServiceId, side: Side, bytes: &[u8], bench: &mut Bench<'_>) -> i32 {
    let bytes = bytes.get(..LOOK).unwrap_or(bytes);
    let asked = Requests::default();
    let wanted =
        Search { service, side, bytes, from: 0, predicted: None, asked: &asked, last_transaction: None, last: true };
    match search(&wanted, bench) {
        // What had to be passed over speaks against it.
        Found::Join { at, bits, .. } => bits - (at as i32 / 64),
        Found::Nothing { .. } => 0,
    }
}

impl MoulSession {
    /// The first bytes are no connection's beginning.
    pub(super) fn join(&mut self) {
        for half in &mut self.halves {
            half.stage = Stage::Joined;
        }
        if let Some((service, name)) = self.known.take() {
            self.service = Some(service);
            self.service_name = name;
        }
    }

    /// Finds out how a connection's bytes come; whether there is more to do.
    pub(super) fn rejoin(&mut self, last: bool, at: Moment, context: &mut Context<'_>) -> bool {
        let [client, server] = &self.halves;
        let full = client.waiting().len() >= LOOK || server.waiting().len() >= LOOK;
        let opening = Opening {
            client: client.waiting(),
            server: server.waiting(),
            ends: self.ends,
            whole: false,
            last: last || full,
            known: None,
        };
        if let Some((service, _)) = service_of(&opening, &mut Bench::of(context)) {
            self.join_in_clear(service, at, context);
            return true;
        }
        if let Some(Opened { key, file, service, starts }) = self.joined_key(context) {
            for (half, start) in self.halves.iter_mut().zip(starts) {
                half.stage = Stage::Lost;
                half.skip_keystream(start);
                half.decrypt_from_here(key.cipher());
            }
            self.service = Some(service);
            self.service_name = context.tables.service(service).map_or(String::new(), |s| s.name.clone());
            let [client, server] = starts;
            context.emit.session_key(&SessionLine {
                client_start: KeystreamStart::Used(client),
                server_start: KeystreamStart::Used(server),
                ..self.session_line(key)
            });
            let text = format!("a session key of {file} opens this connection, joined after its handshake");
            self.say(Side::Server, EventKind::Key { key_file: file }, text, at, context);
            return true;
        }
        if !(last || full) {
            for half in &mut self.halves {
                half.need = half.waiting().len() + 1;
            }
            return false;
        }
        let text = "joined after its handshake: what it says cannot be opened".to_string();
        self.shut(EventKind::NoKey, text, at, context);
        true
    }

    fn join_in_clear(&mut self, service: ServiceId, at: Moment, context: &mut Context<'_>) {
        self.service = Some(service);
        self.service_name = context.tables.service(service).map_or(String::new(), |s| s.name.clone());
        for half in &mut self.halves {
            half.stage = Stage::Lost;
            half.need = 1;
        }
        let text = "joined after its beginning; known by its messages, which are in clear".to_string();
        self.say(Side::Client, EventKind::Remark, text, at, context);
    }

    /// A session key that was given for this connection, with the keystream used before its first captured bytes.
    fn joined_key(&self, context: &mut Context<'_>) -> Option<Opened> {
        let hint =
            SessionHint { client: Some(self.ends.client), server: Some(self.ends.server), ..SessionHint::default() };
        let keys = context.keys;
        for found in keys.sessions(&hint) {
            let named = found.line.service.and_then(|s| context.tables.service_named(s.name()));
            let services: Vec<ServiceId> = match self.service.or(named) {
                Some(one) => vec![one],
                None => all_services(context.tables),
            };
            for service in services {
                if let Some(starts) = self.positions(service, found.line, context) {
                    return Some(Opened { key: found.line.key, file: found.file.to_string(), service, starts });
                }
            }
        }
        None
    }

    /// Where the keystreams of both directions stand, if a key proves itself in at least one.
    fn positions(&self, service: ServiceId, line: &SessionLine, context: &mut Context<'_>) -> Option<[u64; 2]> {
        let mut starts = [0; 2];
        let mut proved = false;
        for (side, start) in [(Side::Client, line.client_start), (Side::Server, line.server_start)] {
            let bytes = self.halves.get(side.index()).map_or(&[][..], |h| h.waiting());
            let tried = Position { key: line.key, start, service, side, bytes };
            let used = tried.find(context.tables, context.evaluator, context.tree);
            if let (Some(used), Some(place)) = (used, starts.get_mut(side.index())) {
                *place = used;
                proved |= !bytes.is_empty();
            }
        }
        proved.then_some(starts)
    }
}

/// A connection that a session key opens.
struct Opened {
    key: SessionKey,
    file: String,
    service: ServiceId,
    starts: [u64; 2],
}

fn all_services(tables: &Tables) -> Vec<ServiceId> {
    let encrypted = ["auth", "game", "gatekeeper", "csr"];
    encrypted.into_iter().filter_map(|name| tables.service_named(name)).collect()
}

/// A key whose keystream position is looked for.
struct Position<'a> {
    key: SessionKey,
    start: KeystreamStart,
    service: ServiceId,
    side: Side,
    bytes: &'a [u8],
}

impl Position<'_> {
    /// How much keystream was used before the first byte. A position that is not given is searched for, on the assumption that the capture
    /// begins with a message.
    fn find(&self, tables: &Tables, evaluator: &mut Evaluator, tree: &mut Tree) -> Option<u64> {
        if let KeystreamStart::Used(used) = self.start {
            return Some(used);
        }
        let head = self.bytes.get(..512.min(self.bytes.len()))?;
        let service = tables.service(self.service)?;
        let mut running = self.key.cipher();
        let mut number = vec![0; 2];
        let mut plain = Vec::new();
        for used in 0..POSITIONS {
            number.copy_from_slice(head.get(..2)?);
            running.clone().apply(&mut number);
            let value = u64::from(u16::from_le_bytes(*number.first_chunk::<2>()?));
            if tables.message_id(service, self.side.index(), value).is_some() {
                plain.clear();
                running.clone().apply_into(head, &mut plain);
                if self.proves(tables, evaluator, tree, &plain) {
                    return Some(used);
                }
            }
            running.skip(1);
        }
        None
    }

    fn proves(&self, tables: &Tables, evaluator: &mut Evaluator, tree: &mut Tree, plain: &[u8]) -> bool {
        let Some(service) = tables.service(self.service) else { return false };
        let (mut at, mut bits) = (0, 0);
        while let Some(rest) = plain.get(at..).filter(|r| !r.is_empty()) {
            match evaluator.message(tables, self.service, self.side.index(), rest, tree) {
                Outcome::Message(_, n) => {
                    let whole = rest.get(..n).unwrap_or(rest);
                    bits += evidence(tables, service, self.side.index(), tree, whole, Against::Noise);
                    at += n.max(1);
                }
                Outcome::Need(_) => break,
                _ => return false,
            }
        }
        // Many positions are tried: each must prove more.
        bits >= 44
    }
}
