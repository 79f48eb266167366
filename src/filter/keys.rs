//! The keys of a record: the one table by which filters and columns know them.
//!
//! A new key is one row of [`KEYS`]: its name as in the JSON, what its values are, what can be
//! named below it, and how it is taken from a record.

use super::symbols::SymbolPart;
use super::value::{RecordScope, RecordValue};
use crate::digits::milliseconds;
use crate::record::{Body, event_word};
use crate::session::{Event, EventKind, Message};
use crate::tree::{LinkKind, Tree};

/// What the values of a key are, which decides what they can be compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyKind {
    /// A number.
    Number,
    /// One of a known set of words.
    Word,
    /// A time.
    Time,
    /// An address with a port.
    Host,
    /// `true` or absent.
    Truth,
    /// Any text.
    Text,
    /// An object or a list.
    Composite,
}

/// What can be named below a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyParts {
    /// Nothing: the key has one value.
    None,
    /// The fields of a message, as tables declare them.
    Fields,
    /// An object with these keys.
    Object(&'static [&'static str]),
    /// A list of objects with these keys.
    List(&'static [&'static str]),
    /// An object of objects with these keys, under the paths of fields.
    ByPath(&'static [&'static str]),
}

/// A key of a record.
#[derive(Debug)]
pub(super) struct RecordKey {
    /// As in the JSON, if the JSON has it.
    pub(super) name: &'static str,
    pub(super) kind: KeyKind,
    pub(super) parts: KeyParts,
    /// Its value depends on the names that earlier records give.
    pub(super) named: bool,
    /// Its value, if the record has one.
    pub(super) get: Getter,
}

/// Takes a key's value from a record.
type Getter = for<'a> fn(&RecordScope<'a>) -> Option<RecordValue<'a>>;

/// A key that is not in the JSON: the session of a record is known only after the captures were
/// read to their end.
const SESSION: &str = "session";

/// All keys, in the order in which columns list what is found at any depth.
#[rustfmt::skip]
pub(super) static KEYS: [RecordKey; 38] = [
    key("record", KeyKind::Number, |s| int(s.record.number)),
    key("time", KeyKind::Time, |s| Some(RecordValue::Time(s.record.at.time))),
    key("frame", KeyKind::Number, |s| int(s.record.at.frame)),
    key("transport", KeyKind::Word, |s| text(s.record.transport.word())),
    key("stream", KeyKind::Number, |s| int(s.record.stream)),
    key(SESSION, KeyKind::Number, |s| s.session().and_then(int)),
    key("src", KeyKind::Host, |s| Some(RecordValue::Address(s.record.src))),
    key("dst", KeyKind::Host, |s| Some(RecordValue::Address(s.record.dst))),
    key("from", KeyKind::Word, |s| text(s.record.from.word())),
    key("protocol", KeyKind::Word, |s| text(s.record.protocol)),
    key("service", KeyKind::Word, |s| text(s.record.service)),
    key("message", KeyKind::Word, |s| match &s.record.body {
        Body::Message { message, .. } => text(message.name.raw()),
        Body::Event(Event { kind: EventKind::Unanswered { message, .. }, .. }) => text(message),
        _ => None,
    }),
    key("event", KeyKind::Word, |s| text(event_word(&s.record.body)).filter(|_| message(s).is_none())),
    key("type", KeyKind::Number, |s| message(s)?.number.and_then(int)),
    key("carries", KeyKind::Word, |s| s.carried().map(|_| RecordValue::Carried)),
    key("offset", KeyKind::Number, |s| match message(s) {
        Some(message) => int(message.offset),
        None => event(s)?.offset.and_then(int),
    }),
    key("length", KeyKind::Number, |s| match message(s) {
        Some(message) => int(message.bytes.len() as u64),
        None => event(s)?.length.and_then(int),
    }),
    key("reply_to", KeyKind::Number, |s| message(s)?.reply.and_then(|reply| int(reply.record))),
    key("elapsed_ms", KeyKind::Number, |s| message(s)?.reply.map(|reply| RecordValue::Float(milliseconds(reply.nanos)))),
    key("network_ms", KeyKind::Number, |s| {
        let network = s.record.network(message(s)?.reply?.nanos)?;
        Some(RecordValue::Float(milliseconds(network)))
    }),
    key("passed_over", KeyKind::Number, |s| match event(s)?.kind {
        EventKind::Resync { passed_over } => int(passed_over),
        _ => None,
    }),
    key("request", KeyKind::Number, |s| match event(s)?.kind {
        EventKind::Unanswered { request, .. } => int(request),
        _ => None,
    }),
    key("waited_ms", KeyKind::Number, |s| match event(s)?.kind {
        EventKind::Unanswered { waited, .. } => Some(RecordValue::Float(milliseconds(waited))),
        _ => None,
    }),
    key("in_part", KeyKind::Truth, |s| match event(s)?.kind {
        EventKind::Unanswered { part, .. } => part.then_some(RecordValue::Bool(true)),
        _ => None,
    }),
    key("text", KeyKind::Text, |s| match &s.record.body {
        Body::Event(event) => text(&event.text),
        Body::StreamEnd { text: end, .. } => text(end),
        Body::Message { .. } => None,
    }),
    key("end", KeyKind::Word, |s| match &s.record.body {
        Body::StreamEnd { end, .. } => text(end.word()),
        _ => None,
    }),
    key("key_file", KeyKind::Text, |s| match &event(s)?.kind {
        EventKind::Key { key_file, .. } => text(key_file),
        _ => None,
    }),
    key("limit", KeyKind::Text, |s| match &event(s)?.kind {
        EventKind::Limit { limit } => text(limit),
        _ => None,
    }),
    composite("sent_again", KeyParts::List(&["record", "elapsed_ms"]), |s| links(s, LinkKind::SentAgain)),
    composite("acknowledges", KeyParts::List(&["record", "elapsed_ms"]), |s| links(s, LinkKind::Acknowledges)),
    key("expects_reply", KeyKind::Truth, |s| s.expects_reply().then_some(RecordValue::Bool(true))),
    composite("refused", KeyParts::Object(&["field", "value", "name"]), |s| s.refused().map(RecordValue::Refused)),
    RecordKey { named: true, ..key("info", KeyKind::Text, |s| s.has_info().then_some(RecordValue::Info)) },
    composite("fields", KeyParts::Fields, |s| tree(s).map(|_| RecordValue::Node(0))),
    RecordKey { named: true, ..composite("names", KeyParts::ByPath(&["name", "record"]), |s| {
        s.called().next().map(|_| RecordValue::CalledNames)
    }) },
    composite("problems", KeyParts::List(&["severity", "field", "text", "bytes"]), |s| {
        (!tree(s)?.problems().is_empty()).then_some(RecordValue::Problems)
    }),
    RecordKey {
        name: "bytes",
        kind: KeyKind::Text,
        parts: KeyParts::Object(&["payload", "explained", "opaque", "undecoded", "closed", "lost"]),
        named: false,
        get: |s| match &s.record.body {
            Body::StreamEnd { counts, .. } => Some(RecordValue::Counts(*counts)),
            Body::Event(event) if !event.bytes.is_empty() => Some(RecordValue::EventBytes),
            _ => None,
        },
    },
    key("bytes_cut", KeyKind::Number, |s| event(s).map(Event::cut).filter(|cut| *cut > 0).and_then(int)),
];

impl RecordKey {
    /// The key with a name.
    pub(super) fn named(name: &str) -> Option<&'static RecordKey> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// Whether it is the number of the session that a record belongs to.
    pub(super) fn is_session(&self) -> bool {
        self.name == SESSION
    }

    /// Whether what is found under a name at any depth of a record depends on the names that
    /// earlier records give.
    pub(super) fn is_named_anywhere(name: &str) -> bool {
        KEYS.iter().filter(|key| key.named).any(|key| {
            key.name == name
                || matches!(key.parts, KeyParts::ByPath(names) if names.contains(&name))
        })
    }
}

/// The names of all parts below keys, and of the parts of values with names.
pub(super) fn part_names() -> impl Iterator<Item = &'static str> + Clone {
    let parts = KEYS.iter().flat_map(|key| match key.parts {
        KeyParts::Object(names) | KeyParts::List(names) | KeyParts::ByPath(names) => names,
        KeyParts::None | KeyParts::Fields => &[],
    });
    parts.copied().chain(SymbolPart::KEYS.map(|(key, _)| key))
}

const fn key(name: &'static str, kind: KeyKind, get: Getter) -> RecordKey {
    RecordKey { name, kind, parts: KeyParts::None, named: false, get }
}

const fn composite(name: &'static str, parts: KeyParts, get: Getter) -> RecordKey {
    RecordKey { name, kind: KeyKind::Composite, parts, named: false, get }
}

fn int<'a>(number: impl Into<i128>) -> Option<RecordValue<'a>> {
    Some(RecordValue::Int(number.into()))
}

fn text(text: &str) -> Option<RecordValue<'_>> {
    Some(RecordValue::Text(text))
}

fn message<'a>(scope: &RecordScope<'a>) -> Option<&'a Message<'a>> {
    match &scope.record.body {
        Body::Message { message, .. } => Some(message),
        _ => None,
    }
}

fn tree<'a>(scope: &RecordScope<'a>) -> Option<&'a Tree> {
    match &scope.record.body {
        Body::Message { tree, .. } => Some(tree),
        _ => None,
    }
}

fn event<'a>(scope: &RecordScope<'a>) -> Option<&'a Event> {
    match &scope.record.body {
        Body::Event(event) => Some(event),
        _ => None,
    }
}

fn links<'a>(scope: &RecordScope<'a>, kind: LinkKind) -> Option<RecordValue<'a>> {
    tree(scope)?.links().iter().any(|link| link.kind == kind).then_some(RecordValue::Links(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_its_own_name_and_composites_have_parts() {
        for (at, key) in KEYS.iter().enumerate() {
            assert!(KEYS.iter().skip(at + 1).all(|other| other.name != key.name), "{}", key.name);
            assert!(key.kind != KeyKind::Composite || key.parts != KeyParts::None, "{}", key.name);
        }
    }
}
