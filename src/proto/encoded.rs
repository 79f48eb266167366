//! Messages from JSON to bytes: records as `--json` prints them, or as `decode --json` does.
//!
//! It reads no file and prints nothing.

use std::collections::HashMap;

use super::{AllSettings, LazyTables, NamedService};
use crate::session::{Settings, Side};
use crate::suggest::offer;
use crate::table::{
    EncodeError, Encoder, Evaluator, Habits, Json, JsonKind, MessageId, Sender, Tables, Written,
};
use crate::tree::TypeRef;

/// Turns the messages of one connection into what is on the wire: encrypted, once the handshake
/// says so.
pub trait Seal {
    /// The bytes of a message on the wire. Messages come in the order in which they are sent. The
    /// settings have the keys.
    ///
    /// # Errors
    /// The handshake gives no key.
    fn seal(
        &mut self,
        settings: &Settings,
        side: Side,
        name: &str,
        bytes: Vec<u8>,
    ) -> Result<Vec<u8>, String>;
}

/// A message in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedMessage {
    /// The protocol's place among the tables.
    pub protocol: usize,
    /// Its name.
    pub name: String,
    /// All its bytes, those of its header included.
    pub bytes: Vec<u8>,
}

/// Writes messages of all protocols. It has the state of each, for those of its tables, in the same
/// order.
pub struct MessageEncoder(Vec<ProtocolEncoder>);

/// The encoder of one protocol, and what messages have set, by their stream.
struct ProtocolEncoder {
    encoder: Encoder,
    states: HashMap<String, Vec<u64>>,
}

/// The most connections of a protocol whose states are kept.
const MAX_CONNECTIONS: usize = 65_536;

/// What a message's name stands for.
enum Meant {
    Message(MessageId),
    /// A structure that begins a connection and has no number.
    Structure(TypeRef),
}

impl MessageEncoder {
    /// An encoder of messages of these tables. With `exact`, values that have a default must be
    /// there, too.
    pub fn new(all: &[LazyTables], settings: &AllSettings, exact: bool) -> MessageEncoder {
        let encoders = all.iter().map(|lazy| {
            let mut evaluator = Evaluator::default();
            lazy.protocol().prepare(&mut evaluator, settings.of(lazy));
            let mut encoder = Encoder::default();
            (encoder.context, encoder.exact) = (evaluator.context.take(), exact);
            ProtocolEncoder { encoder, states: HashMap::new() }
        });
        MessageEncoder(encoders.collect())
    }

    /// Writes the message of a record. `None` if the record is no message. `all` are the tables
    /// that the encoder was made for. `of` is the message's service and direction, if the record
    /// does not say them.
    ///
    /// # Errors
    /// There is no such message, or its fields are not those of its layout.
    pub fn encode(
        &mut self,
        all: &[LazyTables],
        json: &Json<'_>,
        of: Option<NamedService<'_>>,
    ) -> Result<Option<EncodedMessage>, EncodeError> {
        let root = Json::ROOT;
        if json.kind(root) != JsonKind::Object {
            let text = format!("is {}, where an object is expected", json.kind(root).word());
            return Err(EncodeError { path: String::new(), text });
        }
        if json.get(root, "event").is_some() {
            return Ok(None);
        }
        let Some(name) = json.text_of(root, "message") else {
            return Err(at("message", "is missing: the name of a message"));
        };
        let Some(fields) = json.get(root, "fields") else {
            return Err(at("fields", "is missing: an object of fields"));
        };
        let place = protocol(all, json, name, of)?;
        let Some((lazy, own)) = all.get(place).zip(self.0.get_mut(place)) else {
            return Err(at("protocol", "is not known"));
        };
        let ProtocolEncoder { encoder, states } = own;
        let tables = lazy.get();
        let meant = meant(tables, json, name, of);
        let message = match &meant {
            Ok(Meant::Message(id)) => Some(*id),
            _ => None,
        };
        let written = Written { json, fields, problems: json.get(root, "problems"), message };
        let stream = json.get(root, "stream").map_or("", |node| json.text(node));
        let known = states.get(stream);
        let mut before = known.map_or_else(|| tables.first_states(), Vec::clone);
        given_states(tables, json, &mut before)?;
        let write = |encoder: &mut Encoder, habits| {
            encoder.habits = habits;
            encoder.states.clone_from(&before);
            match lazy.protocol().encode(tables, encoder, written) {
                Some(result) => result,
                None => match &meant {
                    Ok(Meant::Message(id)) => encoder.message(tables, *id, written),
                    Ok(Meant::Structure(ty)) => encoder.value(tables, *ty, written),
                    Err(error) => Err(error.clone()),
                },
            }
        };
        let mut bytes = write(encoder, Habits::default())?;
        // Where the record has another length, its sender may have other habits.
        let length = json.get(root, "length").and_then(|node| json.text(node).parse().ok());
        if length.is_some_and(|length: usize| length != bytes.len()) {
            let others = Habits::all(encoder.asked, bytes.len()).skip(1);
            let mut others = others.filter_map(|habits| write(encoder, habits).ok());
            if let Some(found) = others.find(|found| Some(found.len()) == length) {
                bytes = found;
            }
        } else if encoder.asked.ends_empty && is_captured(json) {
            // Zero coding hides whether empty lists at the end were left out. Senders mostly do it.
            let early = Habits { empty_lists: Some(0), ..Habits::default() };
            if let Ok(found) = write(encoder, early)
                && found.len() == bytes.len()
            {
                bytes = found;
            }
        }
        let message = EncodedMessage { protocol: place, name: name.to_string(), bytes };
        if !stream.is_empty() && encoder.states != before {
            if states.len() >= MAX_CONNECTIONS {
                states.clear();
            }
            states.insert(stream.to_string(), encoder.states.clone());
        }
        lazy.protocol().learn(tables, encoder, &message, stream);
        Ok(Some(message))
    }
}

/// Whether a record was read from a capture: it has the number of a frame.
fn is_captured(json: &Json<'_>) -> bool {
    json.get(Json::ROOT, "frame").is_some_and(|frame| json.text(frame) != "0")
}

/// The index of the record's protocol: the one that it says, the one that was asked for, or the
/// only one that has such a message.
fn protocol(
    all: &[LazyTables],
    json: &Json<'_>,
    name: &str,
    of: Option<NamedService<'_>>,
) -> Result<usize, EncodeError> {
    let named = |wanted: &str| all.iter().position(|l| l.protocol().name() == wanted);
    if let Some(protocol) = json.text_of(Json::ROOT, "protocol") {
        return match named(protocol) {
            Some(place) => Ok(place),
            None => {
                let known = all.iter().map(|lazy| lazy.protocol().name());
                let near = offer(protocol, known);
                Err(at("protocol", &format!("there is no protocol `{protocol}`{near}")))
            }
        };
    }
    if let Some(of) = of {
        return Ok(named(of.protocol().name()).unwrap_or(usize::MAX));
    }
    let has = |lazy: &LazyTables| lazy.get().message_named(name).is_some();
    let mut found = all.iter().enumerate().filter(|(_, lazy)| has(lazy));
    match (found.next(), found.next()) {
        (Some((place, _)), None) => Ok(place),
        (None, _) => Err(unknown(all.iter().map(LazyTables::get), name)),
        _ => Err(at("protocol", "is missing, and several have a message of this name")),
    }
}

/// The states that a record says the connection is in.
fn given_states(tables: &Tables, json: &Json<'_>, to: &mut [u64]) -> Result<(), EncodeError> {
    let Some(given) = json.get(Json::ROOT, "states") else { return Ok(()) };
    let known = tables.declared().map_or(&[][..], |protocol| &protocol.states);
    for node in json.children(given) {
        let state = json.key(node);
        let place = known.iter().position(|(name, _)| *name == state);
        let Some(place) = place.and_then(|place| to.get_mut(place)) else {
            let near = offer(state, known.iter().map(|(name, _)| &**name));
            return Err(at("states", &format!("there is no state `{state}`{near}")));
        };
        *place = match json.text(node).parse() {
            Ok(value) => value,
            Err(_) => return Err(at(&json.path(Json::ROOT, node), "is no number of 64 bits")),
        };
    }
    Ok(())
}

fn at(path: &str, text: &str) -> EncodeError {
    EncodeError { path: path.to_string(), text: text.to_string() }
}

fn unknown<'t>(tables: impl Iterator<Item = &'t Tables>, name: &str) -> EncodeError {
    let all = tables.flat_map(|t| t.messages().iter().map(|m| t.name(m.name)));
    at("message", &format!("there is no message `{name}`{}", offer(name, all)))
}

/// The message of this name in the record's service and direction, or else of this name alone.
fn meant(
    tables: &Tables,
    json: &Json<'_>,
    name: &str,
    of: Option<NamedService<'_>>,
) -> Result<Meant, EncodeError> {
    let service = match json.text_of(Json::ROOT, "service") {
        Some(service) => tables.service_named(service),
        None => of.map(|of| of.service()),
    };
    let side = match json.text_of(Json::ROOT, "from") {
        Some("client") => Some(Sender::Client),
        Some("server") => Some(Sender::Server),
        _ => of.map(|of| if of.side() == Side::Client { Sender::Client } else { Sender::Server }),
    };
    let fits = |id: MessageId| {
        tables.message(id).is_some_and(|def| {
            service.is_none_or(|service| service == def.service)
                && side.is_none_or(|side| def.direction == Sender::Both || def.direction == side)
        })
    };
    let first = tables.message_named(name);
    if let Some(id) = first.filter(|id| fits(*id)) {
        return Ok(Meant::Message(id));
    }
    let places = (0..tables.messages().len() as u32).map(MessageId);
    let named = |id: &MessageId| {
        tables.message(*id).is_some_and(|def| tables.name(def.name) == name) && fits(*id)
    };
    match (places.into_iter().find(named), first, tables.type_named(name)) {
        (Some(id), ..) | (None, Some(id), _) => Ok(Meant::Message(id)),
        (None, None, Some(ty)) => Ok(Meant::Structure(ty)),
        (None, None, None) => Err(unknown(std::iter::once(tables), name)),
    }
}
