//! Finds the service of a connection whose beginning was not captured, by its messages if they are
//! in clear.
//!
//! Any bytes can be read as a few messages: other protocols, too, consist of small numbers, counts
//! and zeros. So everything is read that there is, and both directions have to be messages nearly
//! throughout. What repeats proves something once.

use std::collections::HashMap;

use super::super::Opening;
use super::PORT;
use super::evidence::{Against, weigh_message};
use super::search::{MessageReader, Search, SearchResult, search};
use crate::session::Requests;
use crate::session::Side;
use crate::table::{MessageId, Outcome, ServiceId, Tables};

/// Bytes of a direction that are searched for messages in clear.
pub(super) const MAX_CLEAR_BYTES: usize = 4096;
/// Evidence that is enough to recognise a connection by its messages alone.
const PROOF: i32 = 80;
/// The same at the port where most servers are.
const PROOF_AT_PORT: i32 = 40;
/// Evidence that is enough where the bytes are messages in clear or encrypted.
const PROOF_CLEAR: i32 = 40;
/// Of a direction, this many tenths of the bytes behind the first message have to be messages.
const MESSAGES: usize = 7;
/// Evidence against a message that decides: something in it is wrong. With less, it may be one
/// whose numbers have no names.
const NO_MESSAGE: i32 = -100;
/// How often framing may be lost in a direction.
const MAX_BREAKS: usize = 4;
/// Fewer bytes than these may be a part of one message.
const FEW: usize = 64;
/// A message proves something again if this many of its bytes, a counter, and more differ from
/// those of the one before.
const COUNTER: usize = 4;
/// As many bytes of a message are compared.
const COMPARED: usize = 64;

/// The service whose messages in clear give the most evidence, and whether client and server are
/// swapped.
pub(super) fn find_service(
    opening: &Opening<'_>,
    reader: &mut MessageReader<'_>,
) -> Option<(ServiceId, bool)> {
    let mut best = None;
    for id in services(reader.tables) {
        for (swapped, bytes) in
            [(false, [opening.client, opening.server]), (true, [opening.server, opening.client])]
        {
            let [client, server] = bytes;
            let client = Trial::of(id, Side::Client, client, reader);
            let server = Trial::of(id, Side::Server, server, reader);
            let bits = client.bits + server.bits;
            let server_port =
                if swapped { opening.ends.client.port() } else { opening.ends.server.port() };
            let enough = if server_port == PORT { PROOF_AT_PORT } else { PROOF };
            let proved = bits >= enough && client.fits() && server.fits();
            if proved && best.is_none_or(|(_, _, most)| bits > most) {
                best = Some((id, swapped, bits));
            }
        }
    }
    best.map(|(id, swapped, _)| (id, swapped))
}

/// The service as whose messages both directions can be read from their first byte on. It is known
/// from elsewhere that the connection is MOUL's, so the bytes are either these messages or
/// encrypted, which is noise: even few and equal messages prove something.
pub(super) fn find_clear_service(
    opening: &Opening<'_>,
    reader: &mut MessageReader<'_>,
) -> Option<ServiceId> {
    let mut best = None;
    for id in services(reader.tables) {
        let mut bits = 0;
        let whole = [(Side::Client, opening.client), (Side::Server, opening.server)]
            .into_iter()
            .all(|(side, bytes)| {
                let bytes = bytes.get(..MAX_CLEAR_BYTES).unwrap_or(bytes);
                let mut trial = Trial { against_noise: true, ..Trial::default() };
                reader.evaluator.memory.frozen = true;
                let end = trial.read(id, side, bytes, 0, &mut HashMap::new(), reader);
                reader.evaluator.memory.frozen = false;
                bits += trial.bits;
                end == bytes.len()
            });
        if whole && bits >= PROOF_CLEAR && best.is_none_or(|(_, most)| bits > most) {
            best = Some((id, bits));
        }
    }
    best.map(|(id, _)| id)
}

/// The services whose messages may be in clear from a connection's first byte on.
fn services(tables: &Tables) -> impl Iterator<Item = ServiceId> {
    let all = (0..).map(ServiceId).zip(tables.services());
    all.filter(|(_, service)| !service.header.is_empty() && service.name != "handshake")
        .map(|(id, _)| id)
}

/// One direction, read as messages of a service.
#[derive(Debug, Default)]
struct Trial {
    /// The evidence in its messages.
    bits: i32,
    /// Bytes of messages.
    messages: usize,
    /// Bytes behind the first message that belong to none.
    others: usize,
    /// Bytes before the first message.
    before: usize,
    /// If they are no messages they are encrypted, and not of another protocol.
    against_noise: bool,
}

impl Trial {
    fn of(service: ServiceId, side: Side, bytes: &[u8], reader: &mut MessageReader<'_>) -> Trial {
        let bytes = bytes.get(..MAX_CLEAR_BYTES).unwrap_or(bytes);
        let whole = Trial::of_whole(service, side, bytes, reader);
        if whole.messages > 0 && whole.others == 0 {
            return whole;
        }
        let asked = Requests::default();
        let mut trial = Trial::default();
        let mut seen = HashMap::new();
        let mut from = 0;
        for _ in 0..=MAX_BREAKS {
            let places = Search { from, ..Search::anywhere(service, side, bytes, &asked) };
            let SearchResult::Join { at, .. } = search(&places, reader) else { break };
            if trial.messages == 0 {
                trial.before = at;
            } else {
                trial.others += at - from;
            }
            reader.evaluator.memory.frozen = true;
            let end = trial.read(service, side, bytes, at, &mut seen, reader);
            reader.evaluator.memory.frozen = false;
            from = end;
            if end >= bytes.len() {
                return trial;
            }
        }
        if trial.messages == 0 {
            trial.before = bytes.len();
        } else {
            trial.others += bytes.len() - from;
        }
        trial
    }

    /// The same, if the first byte begins a message and all others belong to messages. The last one
    /// may be long, such as a part of a file: behind it nothing is found.
    fn of_whole(
        service: ServiceId,
        side: Side,
        bytes: &[u8],
        reader: &mut MessageReader<'_>,
    ) -> Trial {
        let mut trial = Trial::default();
        reader.evaluator.memory.frozen = true;
        let end = trial.read(service, side, bytes, 0, &mut HashMap::new(), reader);
        reader.evaluator.memory.frozen = false;
        trial.others = bytes.len() - end;
        trial
    }

    /// Reads messages from a place on. Returns where the bytes are no message any more.
    fn read<'b>(
        &mut self,
        service: ServiceId,
        side: Side,
        bytes: &'b [u8],
        from: usize,
        seen: &mut HashMap<(MessageId, usize), &'b [u8]>,
        reader: &mut MessageReader<'_>,
    ) -> usize {
        let tables = reader.tables;
        let Some(def) = tables.service(service) else { return bytes.len() };
        let mut at = from;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let read = reader.evaluator.message(tables, service, side.index(), rest, reader.tree);
            let (id, length) = match read {
                Outcome::Message(id, length) => (id, length.max(1)),
                // The rest of it was not captured yet.
                Outcome::Need(length) if length <= reader.max_message => return bytes.len(),
                _ => return at,
            };
            let whole = rest.get(..length).unwrap_or(rest);
            let against = if self.against_noise { Against::Noise } else { Against::Others };
            let bits = weigh_message(tables, def, side.index(), reader.tree, whole, against);
            if bits <= NO_MESSAGE {
                return at;
            }
            let first = whole.get(..COMPARED).unwrap_or(whole);
            self.bits += match seen.insert((id, length), first) {
                _ if bits < 0 || self.against_noise => bits,
                None => bits,
                Some(before) => {
                    let differ = before.iter().zip(first).filter(|(a, b)| a != b).count();
                    let news = differ.saturating_sub(COUNTER).min(16) as i32;
                    bits * news / 16
                }
            };
            self.messages += length;
            at += length;
        }
        at
    }

    /// Whether the direction may be one of the service: most of it is messages, or it is too short
    /// to tell.
    fn fits(&self) -> bool {
        if self.messages == 0 {
            return self.before < FEW;
        }
        self.messages * 10 >= (self.messages + self.others) * MESSAGES
    }
}
