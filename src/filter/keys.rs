//! The keys of a record: the one table by which filters and columns know them.
//!
//! A new key is one row of [`KEYS`]: its name as in the JSON, what its values are, what can be named below it, and how
//! it is taken from a record.

use super::value::RecordValue;
use crate::out::{Body, Record, event_word};
use crate::proto::{Event, EventKind, Message};
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
}

/// A key of a record.
#[derive(Debug)]
pub(super) struct RecordKey {
    /// As in the JSON.
    pub(super) name: &'static str,
    pub(super) kind: KeyKind,
    pub(super) parts: KeyParts,
    /// Its value, if the record has one.
    pub(super) get: Getter,
}

/// Takes a key's value from a record.
type Getter = for<'a> fn(&'a Record<'a>) -> Option<RecordValue<'a>>;

/// All keys, in the order in which columns list what is found at any depth.
#[rustfmt::skip]
pub(super) static KEYS: [RecordKey; 28] = [
    key("record", KeyKind::Number, |r| int(r.number)),
    key("time", KeyKind::Time, |r| Some(RecordValue::Time(r.at.time))),
    key("frame", KeyKind::Number, |r| int(r.at.frame)),
    key("transport", KeyKind::Word, |r| text(r.transport.word())),
    key("stream", KeyKind::Number, |r| int(r.stream)),
    key("src", KeyKind::Host, |r| Some(RecordValue::Address(r.src))),
    key("dst", KeyKind::Host, |r| Some(RecordValue::Address(r.dst))),
    key("from", KeyKind::Word, |r| text(r.from.word())),
    key("protocol", KeyKind::Word, |r| text(r.protocol)),
    key("service", KeyKind::Word, |r| text(r.service)),
    key("message", KeyKind::Word, |r| match &r.body {
        Body::Message { message, .. } => text(message.name.raw()),
        Body::Event(Event { kind: EventKind::Unanswered { message, .. }, .. }) => text(message),
        _ => None,
    }),
    key("event", KeyKind::Word, |r| text(event_word(&r.body)).filter(|_| message(r).is_none())),
    key("type", KeyKind::Number, |r| message(r)?.number.and_then(int)),
    key("offset", KeyKind::Number, |r| match message(r) {
        Some(message) => int(message.offset),
        None => event(r)?.offset.and_then(int),
    }),
    key("length", KeyKind::Number, |r| match message(r) {
        Some(message) => int(message.bytes.len() as u64),
        None => event(r)?.length.and_then(int),
    }),
    key("reply_to", KeyKind::Number, |r| message(r)?.reply.and_then(|reply| int(reply.record))),
    key("elapsed_ms", KeyKind::Number, |r| message(r)?.reply.map(|reply| RecordValue::Float(milliseconds(reply.nanos)))),
    key("passed_over", KeyKind::Number, |r| match event(r)?.kind {
        EventKind::Resync { passed_over } => int(passed_over),
        _ => None,
    }),
    key("request", KeyKind::Number, |r| match event(r)?.kind {
        EventKind::Unanswered { request, .. } => int(request),
        _ => None,
    }),
    key("waited_ms", KeyKind::Number, |r| match event(r)?.kind {
        EventKind::Unanswered { waited, .. } => Some(RecordValue::Float(milliseconds(waited))),
        _ => None,
    }),
    key("text", KeyKind::Text, |r| match &r.body {
        Body::Event(event) => text(&event.text),
        Body::StreamEnd { text: end, .. } => text(end),
        Body::Message { .. } => None,
    }),
    key("key_file", KeyKind::Text, |r| match &event(r)?.kind {
        EventKind::Key { key_file, .. } => text(key_file),
        _ => None,
    }),
    key("limit", KeyKind::Text, |r| match &event(r)?.kind {
        EventKind::Limit { limit } => text(limit),
        _ => None,
    }),
    composite("sent_again", KeyParts::List(&["record", "elapsed_ms"]), |r| links(r, LinkKind::SentAgain)),
    composite("acknowledges", KeyParts::List(&["record", "elapsed_ms"]), |r| links(r, LinkKind::Acknowledges)),
    composite("fields", KeyParts::Fields, |r| tree(r).map(|_| RecordValue::Node(0))),
    composite("problems", KeyParts::List(&["severity", "field", "text", "bytes"]), |r| {
        (!tree(r)?.problems().is_empty()).then_some(RecordValue::Problems)
    }),
    composite("bytes", KeyParts::Object(&["payload", "explained", "opaque", "undecoded", "closed", "lost"]), |r| match r.body {
        Body::StreamEnd { counts, .. } => Some(RecordValue::Counts(counts)),
        _ => None,
    }),
];

/// The keys of values that have names, such as those of an enum.
pub(super) const SYMBOL_KEYS: [&str; 3] = ["value", "name", "names"];

impl RecordKey {
    /// The key with a name.
    pub(super) fn named(name: &str) -> Option<&'static RecordKey> {
        KEYS.iter().find(|key| key.name == name)
    }
}

/// The names of all parts below keys, and of the parts of values with names.
pub(super) fn part_names() -> impl Iterator<Item = &'static str> + Clone {
    let parts = KEYS.iter().flat_map(|key| match key.parts {
        KeyParts::Object(names) | KeyParts::List(names) => names,
        KeyParts::None | KeyParts::Fields => &[],
    });
    parts.copied().chain(SYMBOL_KEYS)
}

/// Nanoseconds as the milliseconds in the JSON.
pub(super) fn milliseconds(nanos: i64) -> f64 {
    (nanos / 1000) as f64 / 1000.0
}

const fn key(name: &'static str, kind: KeyKind, get: Getter) -> RecordKey {
    RecordKey { name, kind, parts: KeyParts::None, get }
}

const fn composite(name: &'static str, parts: KeyParts, get: Getter) -> RecordKey {
    RecordKey { name, kind: KeyKind::Composite, parts, get }
}

fn int<'a>(number: impl Into<i128>) -> Option<RecordValue<'a>> {
    Some(RecordValue::Int(number.into()))
}

fn text(text: &str) -> Option<RecordValue<'_>> {
    Some(RecordValue::Text(text))
}

fn message<'a>(record: &'a Record<'a>) -> Option<&'a Message<'a>> {
    match &record.body {
        Body::Message { message, .. } => Some(message),
        _ => None,
    }
}

fn tree<'a>(record: &'a Record<'a>) -> Option<&'a Tree> {
    match &record.body {
        Body::Message { tree, .. } => Some(tree),
        _ => None,
    }
}

fn event<'a>(record: &'a Record<'a>) -> Option<&'a Event> {
    match &record.body {
        Body::Event(event) => Some(event),
        _ => None,
    }
}

fn links<'a>(record: &'a Record<'a>, kind: LinkKind) -> Option<RecordValue<'a>> {
    tree(record)?.links().iter().any(|link| link.kind == kind).then_some(RecordValue::Links(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_its_own_name_and_composites_have_parts() {
        for (at, key) in KEYS.iter().enumerate() {
            assert!(KEYS.iter().skip(at + 1).all(|other| other.name != key.name), "{}", key.name);
            assert_eq!(key.kind == KeyKind::Composite, key.parts != KeyParts::None, "{}", key.name);
        }
    }
}
