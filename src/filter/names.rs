//! The names an expression may use, and the nearest ones to those it may not.

use std::collections::HashSet;

use crate::near::suggestion;
use crate::table::Tables;

/// The keys of records, with what stands there.
const KEYS: [(&str, KeyKind); 25] = [
    ("record", KeyKind::Number),
    ("time", KeyKind::Time),
    ("frame", KeyKind::Number),
    ("transport", KeyKind::Word),
    ("stream", KeyKind::Number),
    ("src", KeyKind::Other),
    ("dst", KeyKind::Other),
    ("from", KeyKind::Word),
    ("protocol", KeyKind::Word),
    ("service", KeyKind::Word),
    ("message", KeyKind::Word),
    ("event", KeyKind::Word),
    ("type", KeyKind::Number),
    ("offset", KeyKind::Number),
    ("length", KeyKind::Number),
    ("reply_to", KeyKind::Number),
    ("elapsed_ms", KeyKind::Number),
    ("passed_over", KeyKind::Number),
    ("fields", KeyKind::Other),
    ("problems", KeyKind::Other),
    ("sent_again", KeyKind::Other),
    ("acknowledges", KeyKind::Other),
    ("bytes", KeyKind::Other),
    ("key_file", KeyKind::Other),
    ("limit", KeyKind::Other),
];
/// Keys within these, and of values with names.
const INNER: [&str; 15] = [
    "text",
    "severity",
    "field",
    "bytes",
    "record",
    "elapsed_ms",
    "payload",
    "explained",
    "opaque",
    "undecoded",
    "closed",
    "lost",
    "value",
    "name",
    "names",
];
const EVENTS: [&str; 12] = [
    "key",
    "no_key",
    "wrong_key",
    "gap",
    "undecoded",
    "resync",
    "limit",
    "stream_end",
    "checksum",
    "open",
    "close",
    "remark",
];

/// What a record's key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyKind {
    /// A number.
    Number,
    /// One of a set of words.
    Word,
    /// A time.
    Time,
    /// Anything.
    Other,
}

/// All names of all tables.
pub(super) struct Names<'a> {
    pub(super) tables: &'a [&'a Tables],
    all: HashSet<&'a str>,
}

impl<'a> Names<'a> {
    pub(super) fn new(tables: &'a [&'a Tables]) -> Names<'a> {
        let mut all: HashSet<&str> = tables.iter().flat_map(|t| t.names()).collect();
        all.extend(INNER);
        Names { tables, all }
    }

    /// What a record's key holds.
    pub(super) fn key(&self, name: &str) -> Result<KeyKind, String> {
        if name == "text" {
            return Ok(KeyKind::Other);
        }
        if let Some((_, kind)) = KEYS.iter().find(|(key, _)| *key == name) {
            return Ok(*kind);
        }
        let near = suggestion(name, KEYS.iter().map(|k| k.0));
        Err(match self.all.contains(name) {
            _ if !near.is_empty() => format!("a record has no `{name}`{near}"),
            true => format!(
                "a record has no `{name}`; a message's fields are written `fields.{name}`, or `*.{name}` at any depth"
            ),
            false => match suggestion(name, self.all.iter().copied()) {
                near if near.is_empty() => {
                    format!("a record has no `{name}`; it has {}", list(KEYS.iter().map(|k| k.0)))
                }
                near => format!("a record has no `{name}`{}", near.replace("mean `", "mean `fields.")),
            },
        })
    }

    /// Whether the tables know a field's name; else something to say, which is a mistake only if a name is near.
    pub(super) fn field(&self, name: &str) -> Result<(), (String, bool)> {
        if self.all.contains(name) {
            return Ok(());
        }
        let near = suggestion(name, self.all.iter().copied());
        let wrong = !near.is_empty();
        Err((format!("no table has a field `{name}`{near}"), wrong))
    }

    /// Whether an unquoted word on the right of a comparison can be meant so.
    pub(super) fn word(&self, word: &str, key: Option<&str>, flags: bool) -> Result<(), String> {
        match key {
            Some("from") => one_of(word, &["client", "server"], "a record is from"),
            Some("transport") => one_of(word, &["tcp", "udp"], "a transport is"),
            Some("event") => one_of(word, &EVENTS, "an event is"),
            Some("protocol") => {
                let known: Vec<&str> = self.tables.iter().map(|t| t.protocol()).collect();
                one_of(word, &known, "a protocol is")
            }
            Some("service") => self.service(word),
            Some("message") => self.message(word, false),
            Some(key) if matches!(self.key(key), Ok(KeyKind::Number)) => {
                Err(format!("`{key}` is a number, not `{word}`"))
            }
            Some("time") => Err(format!("`{word}` is no time; one is written 2026-11-20T09:30:27Z")),
            _ => self.symbol(word, flags),
        }
    }

    /// A message's name. In quotes only a name that is nearly one of the tables' is taken for a mistake: protocols of text have names of
    /// their own.
    pub(super) fn message(&self, name: &str, quoted: bool) -> Result<(), String> {
        let closed = self.tables.iter().filter(|t| !quoted || t.protocol() != "intermud3");
        let names = || closed.clone().flat_map(|t| t.messages().iter().map(|m| t.name(m.name)));
        let all = self.tables.iter().any(|t| t.message_named(name).is_some());
        if all || name == "ConnectPacket" {
            return Ok(());
        }
        let near = suggestion(name, names());
        if quoted && near.is_empty() { Ok(()) } else { Err(format!("no table has a message `{name}`{near}")) }
    }

    fn service(&self, word: &str) -> Result<(), String> {
        let known = || self.tables.iter().flat_map(|t| t.services().iter().map(|s| s.name.as_str()));
        if known().any(|k| k == word) || word == "unknown" || word == "http" {
            return Ok(());
        }
        match suggestion(word, known()) {
            near if near.is_empty() => Ok(()),
            near => Err(format!("there is no service `{word}`{near}")),
        }
    }

    /// The name of a value of an enum, or of a flag.
    fn symbol(&self, word: &str, flags: bool) -> Result<(), String> {
        let of = |flags: bool| {
            let enums = self.tables.iter().flat_map(|t| t.enums()).filter(move |e| e.flags == flags);
            enums.flat_map(|e| &e.values).map(|v| v.name.as_str())
        };
        if of(flags).any(|name| name == word) {
            return Ok(());
        }
        if !flags && of(true).any(|name| name == word) {
            return Err(format!("`{word}` is a flag: whether it is set is asked with `has {word}`"));
        }
        if flags && of(false).any(|name| name == word) {
            return Err(format!("`{word}` is a value of an enum, not a flag: it is compared with `== {word}`"));
        }
        let near = suggestion(word, of(flags));
        Err(match (flags, near.is_empty()) {
            (true, _) => format!("no table has a flag `{word}`{near}"),
            (false, true) => format!("no enum has a value `{word}`; text is written in quotes: \"{word}\""),
            (false, false) => format!("no enum has a value `{word}`{near} (text is written in quotes)"),
        })
    }
}

fn one_of(word: &str, known: &[&str], what: &str) -> Result<(), String> {
    if known.contains(&word) {
        return Ok(());
    }
    let near = suggestion(word, known.iter().copied());
    Err(format!("{what} {}, not `{word}`{near}", list(known.iter().copied())))
}

fn list<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: Vec<&str> = words.collect();
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}
