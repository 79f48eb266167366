//! Reads connections that are older than the capture: they show no connect packet and no handshake,
//! and may begin within a message.

use super::super::Opening;
use super::direction::Stage;
use super::joined_key::JoinedKey;
use super::keys::{KeyRing, KeystreamStart, SessionHint, write_session_line};
use super::keystream::{Keystream, MAX_BYTES, Position, WINDOW};
use super::net_log;
use super::search::MessageReader;
use super::service_search::{MAX_CLEAR_BYTES, find_clear_service, find_service};
use super::session::MoulSession;
use super::settings::MoulSettings;
use crate::capture::Moment;
use crate::digits::counted;
use crate::session::Secret;
use crate::session::{Context, EventKind, Side};
use crate::table::{ServiceId, Tables};

/// The most bytes by which a keystream is advanced, whatever a key file asks for: more would take
/// seconds.
const MAX_USED: u64 = 1 << 30;

impl MoulSession {
    /// Handles a connection whose first captured bytes are not its beginning.
    pub(super) fn mark_joined(&mut self) {
        for direction in &mut self.directions {
            direction.stage = Stage::Joined;
        }
        if let Some((service, name)) = self.known.take() {
            self.service = Some(service);
            self.service_name = name;
        }
    }

    /// Finds out whether the connection is in clear or which session key opens it. Returns whether
    /// there is more to do.
    pub(super) fn decide_joined(
        &mut self,
        last: bool,
        at: Moment,
        context: &mut Context<'_>,
    ) -> bool {
        if self.logged {
            return self.decide_logged(last, context);
        }
        if let Some(key) = self.joined_by.take() {
            return self.open_other_direction(key, last, at, context);
        }
        let [client, server] = &self.directions;
        // To find the position of a session key takes more bytes than to recognise messages in
        // clear, so wait longer if there are session keys.
        let enough = if MoulSettings::of(context.settings).keys.has_sessions() {
            MAX_BYTES
        } else {
            MAX_CLEAR_BYTES
        };
        let full =
            client.stream.waiting().len() >= enough || server.stream.waiting().len() >= enough;
        let opening = Opening {
            client: client.stream.waiting(),
            server: server.stream.waiting(),
            ends: self.ends,
            whole: false,
            last: last || full,
            known: None,
        };
        if let Some((service, _)) = find_service(&opening, &mut MessageReader::new(context)) {
            self.join_in_clear(service, Stage::Lost, at, context);
            return true;
        }
        if self.try_session_keys(at, context) {
            return true;
        }
        if !(last || full) {
            self.wait_for_more();
            return false;
        }
        if let Some(service) = self.find_clear_service(context) {
            self.join_in_clear(service, Stage::Messages, at, context);
            return true;
        }
        let text =
            "captured from the middle, without its handshake: it cannot be decrypted".to_string();
        self.stop_decrypting(EventKind::NoKey, text, at, context);
        true
    }

    /// Finds out which service a log is of. Returns whether there is more to do.
    fn decide_logged(&mut self, last: bool, context: &mut Context<'_>) -> bool {
        let [client, server] = &self.directions;
        let waiting = [client.stream.waiting(), server.stream.waiting()];
        let last = last || waiting.iter().any(|bytes| bytes.len() >= MAX_CLEAR_BYTES);
        let found = net_log::find_service(waiting, last, &mut MessageReader::new(context));
        let Some(service) = found else {
            self.wait_for_more();
            return false;
        };
        self.name_service(service, context.tables);
        for direction in &mut self.directions {
            direction.stage = Stage::Messages;
            // Both directions are read in the order in which their bytes came.
            direction.stream.hide();
        }
        true
    }

    /// The service of a connection whose few bytes are all messages in clear.
    fn find_clear_service(&self, context: &mut Context<'_>) -> Option<ServiceId> {
        let [client, server] = &self.directions;
        let opening = Opening {
            client: client.stream.waiting(),
            server: server.stream.waiting(),
            ends: self.ends,
            whole: false,
            last: true,
            known: None,
        };
        find_clear_service(&opening, &mut MessageReader::new(context))
    }

    /// The connection is in clear. Its next bytes begin a message, or where one begins is to be
    /// found, as `stage` says.
    fn join_in_clear(
        &mut self,
        service: ServiceId,
        stage: Stage,
        at: Moment,
        context: &mut Context<'_>,
    ) {
        self.name_service(service, context.tables);
        for direction in &mut self.directions {
            direction.stage = stage;
            direction.stream.set_need(1);
        }
        let at = self.first_waiting().unwrap_or(at);
        let text =
            "joined after its beginning; known by its messages, which are in clear".to_string();
        self.report(Side::Client, EventKind::Remark, text, at, context);
    }

    /// Tries the session keys that the user gave for this connection. Returns whether one opens a
    /// direction of it.
    fn try_session_keys(&mut self, at: Moment, context: &mut Context<'_>) -> bool {
        let hint = SessionHint {
            client: Some(self.ends.client),
            server: Some(self.ends.server),
            ..SessionHint::default()
        };
        let keys = &MoulSettings::of(context.settings).keys;
        for found in keys.sessions(&hint) {
            let named = found.line.service.and_then(|s| context.tables.service_named(s.name()));
            let services: Vec<ServiceId> = match self.service.or(named) {
                Some(one) => vec![one],
                None => list_encrypted_services(context.tables),
            };
            let key = JoinedKey {
                line: found.line.clone(),
                file: found.file.to_string(),
                carried: found.carried,
            };
            let Starts { places, service } = self.find_positions(&services, &key, context);
            let Some(service) = service else { continue };
            self.name_service(service, context.tables);
            self.open_joined(&key, places, at, context);
            self.joined_by = places.contains(&None).then_some(key);
            return true;
        }
        self.report_budget(at, context);
        false
    }

    /// How far the keystream of each direction was used, if the key file says so or the bytes show
    /// it, and the service of the messages that show it.
    fn find_positions(
        &self,
        services: &[ServiceId],
        key: &JoinedKey,
        context: &mut Context<'_>,
    ) -> Starts {
        let longest = self
            .directions
            .iter()
            .map(|direction| direction.stream.waiting().len())
            .max()
            .unwrap_or(0);
        let keys = &MoulSettings::of(context.settings).keys;
        let mut searched = SearchedKeystream { stream: None, refused: false };
        let mut starts = Starts { places: [None; 2], service: None };
        for (side, start) in
            [(Side::Client, key.line.client_start), (Side::Server, key.line.server_start)]
        {
            let Some(direction) = self
                .directions
                .get(side.index())
                .filter(|direction| direction.stage == Stage::Joined)
            else {
                continue;
            };
            let bytes = direction.stream.waiting();
            let services = starts.service.as_ref().map_or(services, std::slice::from_ref);
            let known = match start {
                KeystreamStart::Used(used) => Some(used.saturating_add(direction.stream.offset())),
                KeystreamStart::Sequence(number) => {
                    keystream_used_at(number, context.sequences, side, direction.stream.offset())
                }
                KeystreamStart::Search => None,
            };
            let found = match known {
                _ if bytes.is_empty() => None,
                Some(used) if used > MAX_USED => None,
                // Advancing a keystream further than a search goes takes as long as a search, so it
                // counts as one.
                Some(used) if used > keys.search.positions as u64 && !key.may_search(keys) => None,
                Some(used) if key.carried && !keys.budget.take_keystream(used) => None,
                Some(used) => {
                    services.first().map(|service| (*service, Position { used, bits: 0 }))
                }
                None => searched.keystream(key, longest, keys).and_then(|stream| {
                    stream.find_position(services, side, bytes, &mut MessageReader::new(context))
                }),
            };
            if let Some((service, position)) = found {
                starts.service = Some(service);
                *side.of(&mut starts.places) = Some(position);
            }
        }
        if starts.service.is_some() && searched.stream.is_some() {
            key.refund_search(keys);
        }
        starts
    }

    /// Opens the directions whose keystream was found, and reports the key.
    fn open_joined(
        &mut self,
        key: &JoinedKey,
        starts: [Option<Position>; 2],
        at: Moment,
        context: &mut Context<'_>,
    ) {
        let mut text = format!(
            "a session key of {} opens this connection, joined after its handshake",
            key.file
        );
        let mut line = self.make_session_line(key.line.key);
        for (side, start) in [Side::Client, Side::Server].into_iter().zip(starts) {
            let Some(Position { used, bits }) = start else { continue };
            let direction = self.direction(side);
            let before = KeystreamStart::Used(used.saturating_sub(direction.stream.offset()));
            direction.stage = Stage::Lost;
            direction.stream.set_need(1);
            direction.decrypt_at(key.line.key.cipher(), used);
            if bits > 0 {
                let side = side.word();
                text.push_str(&format!(
                    "; the {side}'s keystream was found after {} ({bits} bits of evidence)",
                    counted(used, "byte")
                ));
            }
            match side {
                Side::Client => line.client_start = before,
                Side::Server => line.server_start = before,
            }
        }
        let at = self.first_waiting().unwrap_or(at);
        let secret = Secret::new(write_session_line(&line));
        self.report(
            Side::Server,
            EventKind::Key { key_file: key.file.clone(), secret },
            text,
            at,
            context,
        );
    }

    /// Tries a key that opened one direction on the other one again, now that more bytes are there.
    /// Returns whether it opened it.
    fn open_other_direction(
        &mut self,
        key: JoinedKey,
        last: bool,
        at: Moment,
        context: &mut Context<'_>,
    ) -> bool {
        let Some(service) = self.service else { return false };
        let starts = self.find_positions(&[service], &key, context);
        if starts.service.is_some() {
            self.open_joined(&key, starts.places, at, context);
            return true;
        }
        let waiting = self
            .directions
            .iter()
            .filter(|direction| direction.stage == Stage::Joined)
            .map(|direction| direction.stream.waiting().len())
            .max();
        if !last && waiting.is_none_or(|waiting| waiting < MAX_BYTES) {
            self.wait_for_more();
            self.joined_by = Some(key);
            return false;
        }
        let text =
            "the position of this direction's keystream was not found: what it says stays closed";
        for side in [Side::Client, Side::Server] {
            let direction = self.direction(side);
            if direction.stage == Stage::Joined && !direction.stream.waiting().is_empty() {
                direction.stage = Stage::Encrypted;
                direction.stream.set_need(1);
                self.report(side, EventKind::WrongKey, text.to_string(), at, context);
            }
        }
        true
    }

    /// Sets how many bytes must wait before the next attempt: 32 times as many each time, so that
    /// there are few attempts.
    fn wait_for_more(&mut self) {
        for direction in
            self.directions.iter_mut().filter(|direction| direction.stage == Stage::Joined)
        {
            let waiting = direction.stream.waiting().len();
            direction.stream.set_need((waiting * 32).clamp(WINDOW, MAX_BYTES).max(waiting + 1));
        }
    }
}

/// How many bytes of a keystream were used before `offset`, if its first byte encrypted the byte
/// with TCP sequence number `number`. `None` if that byte comes later, or if the stream's sequence
/// numbers are not known.
fn keystream_used_at(
    number: u32,
    sequences: [Option<u32>; 2],
    side: Side,
    offset: u64,
) -> Option<u64> {
    let first = (*sequences.get(side.index())?)?;
    let here = first.wrapping_add(offset as u32);
    let used = here.wrapping_sub(number);
    (used <= u32::MAX / 2).then_some(u64::from(used))
}

/// The positions in the keystreams of client and server, and the service of the messages that prove
/// them.
struct Starts {
    places: [Option<Position>; 2],
    service: Option<ServiceId>,
}

/// The keystream in which both directions are searched. It is generated once.
struct SearchedKeystream {
    stream: Option<Keystream>,
    /// No more searches are allowed.
    refused: bool,
}

impl SearchedKeystream {
    /// The keystream, long enough for `bytes` bytes of a direction. `None` if no search is allowed.
    fn keystream(&mut self, key: &JoinedKey, bytes: usize, keys: &KeyRing) -> Option<&Keystream> {
        if self.stream.is_none() && !self.refused {
            self.refused = !key.may_search(keys);
            self.stream = (!self.refused)
                .then(|| Keystream::generate(&key.line.key, keys.search.positions, bytes));
        }
        self.stream.as_ref()
    }
}

fn list_encrypted_services(tables: &Tables) -> Vec<ServiceId> {
    let encrypted = ["auth", "game", "gatekeeper", "csr"];
    encrypted.into_iter().filter_map(|name| tables.service_named(name)).collect()
}
