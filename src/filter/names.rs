//! The names an expression may use, and the nearest ones to those it may not.

use crate::out::EVENTS;
use crate::proto::{LazyTables, RecordNames};
use crate::suggest::suggestion;
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
/// What other programs call so, and where it is here.
const ELSEWHERE: [(&[&str], &str); 5] = [
    (&["tcp", "udp"], "a stream's number is `stream`, its transport `transport`, and ports are in `src` and `dst`"),
    (&["ip", "ipv6", "addr", "host"], "addresses are `src` and `dst`: src == 127.0.0.1"),
    (&["port", "srcport", "dstport"], "ports are in `src` and `dst`: dst matches \":14617$\""),
    (
        &["select", "test", "any", "all", "has"],
        "a condition has no functions: message == \"…\", fields.x contains \"…\"",
    ),
    (&["severity"], "it is a part of problems: problems[*].severity == error"),
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

/// All names of all tables; tables are loaded only until a name is found.
pub(super) struct Names<'a> {
    lazy: &'a [LazyTables],
}

/// What is to be said of a field's name that no table has.
pub(super) struct Unknown {
    pub(super) text: String,
    /// A known name is near: it may be a mistake.
    pub(super) near: bool,
}

impl<'a> Names<'a> {
    pub(super) fn new(lazy: &'a [LazyTables]) -> Names<'a> {
        Names { lazy }
    }

    /// How many protocols there are.
    pub(super) fn protocols(&self) -> usize {
        self.lazy.len()
    }

    fn tables(&self) -> impl Iterator<Item = &'a Tables> + Clone {
        self.lazy.iter().map(LazyTables::get)
    }

    /// Names that no table declares.
    fn extra(&self) -> impl Iterator<Item = RecordNames> {
        self.lazy.iter().map(|lazy| lazy.protocol().record_names())
    }

    fn all(&self) -> impl Iterator<Item = &'a str> {
        self.tables().flat_map(|t| t.names().iter().map(String::as_str)).filter(|name| !name.is_empty()).chain(INNER)
    }

    fn knows(&self, name: &str) -> bool {
        INNER.contains(&name) || self.tables().any(|t| t.sym(name).is_some())
    }

    /// What a record's key holds.
    pub(super) fn key(&self, name: &str) -> Result<KeyKind, String> {
        if name == "text" {
            return Ok(KeyKind::Other);
        }
        if let Some((_, kind)) = KEYS.iter().find(|(key, _)| *key == name) {
            return Ok(*kind);
        }
        if let Some((_, there)) = ELSEWHERE.iter().find(|(words, _)| words.contains(&name)) {
            return Err(format!("a record has no `{name}`; {there}"));
        }
        let near = suggestion(name, KEYS.iter().map(|k| k.0));
        Err(match self.knows(name) {
            _ if !near.is_empty() => format!("a record has no `{name}`{near}"),
            true => format!(
                "a record has no `{name}`; a message's fields are written `fields.{name}`, or `*.{name}` at any depth"
            ),
            false => match suggestion(name, self.all()) {
                near if near.is_empty() => {
                    format!("a record has no `{name}`; it has {}", list(KEYS.iter().map(|k| k.0)))
                }
                near => format!("a record has no `{name}`{}", near.replace("mean `", "mean `fields.")),
            },
        })
    }

    /// Whether a key of the record, or an element of the list it is, has a part of this name.
    pub(super) fn part(&self, key: &str, element: bool, name: &str) -> Result<(), String> {
        let known: &[&str] = match key {
            "problems" => &["severity", "field", "text", "bytes"],
            "sent_again" | "acknowledges" => &["record", "elapsed_ms"],
            "bytes" => &["payload", "explained", "opaque", "undecoded", "closed", "lost"],
            _ => return Err(format!("`{key}` is one value; there is nothing in it")),
        };
        let list = key != "bytes";
        match (list, element) {
            (true, false) => {
                Err(format!("`{key}` is a list: {key}[*].{name} asks for any of them, {key}[0].{name} for the first"))
            }
            (false, true) => Err(format!("`{key}` is no list")),
            _ => one_of(name, known, &format!("`{key}` has")),
        }
    }

    /// Whether the tables know a field's name. With `record`, a record's own keys are meant as well.
    pub(super) fn field(&self, name: &str, record: bool) -> Result<(), Unknown> {
        // Names that a number follows, such as those of positions that have no name of their own.
        let plain = name.rsplit_once('_').filter(|(_, n)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
        let known = |name| self.knows(name) || record && KEYS.iter().any(|(key, _)| *key == name);
        if known(name)
            || plain.is_some_and(|(before, _)| self.extra().any(|names| names.numbered_fields.contains(&before)))
        {
            return Ok(());
        }
        let near = suggestion(name, self.all());
        // Two letters are near to anything.
        let near = if name.chars().count() > 2 { near } else { String::new() };
        Err(Unknown { text: format!("no table has a field `{name}`{near}"), near: !near.is_empty() })
    }

    /// Whether an unquoted word on the right of a comparison can be meant so.
    pub(super) fn word(&self, word: &str, key: Option<&str>, flags: bool) -> Result<(), String> {
        match key {
            Some("from") => one_of(word, &["client", "server"], "a record is from"),
            Some("severity") => one_of(word, &["note", "warning", "error"], "a severity is"),
            Some("transport") => one_of(word, &["tcp", "udp"], "a transport is"),
            Some("event") => one_of(word, &EVENTS, "an event is"),
            Some("protocol") => {
                let known: Vec<&str> = self.lazy.iter().map(|t| t.protocol().name()).collect();
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
        let closed = self.lazy.iter().filter(|lazy| !quoted || !lazy.protocol().record_names().any_message);
        let names = || closed.clone().map(LazyTables::get).flat_map(|t| t.messages().iter().map(|m| t.name(m.name)));
        let all = self.tables().any(|t| t.message_named(name).is_some());
        if all || self.extra().any(|names| names.messages.contains(&name)) {
            return Ok(());
        }
        let near = suggestion(name, names());
        if quoted && near.is_empty() { Ok(()) } else { Err(format!("no table has a message `{name}`{near}")) }
    }

    fn service(&self, word: &str) -> Result<(), String> {
        let known = || self.tables().flat_map(|t| t.services().iter().map(|s| s.name.as_str()));
        if known().any(|k| k == word) || self.extra().any(|names| names.services.contains(&word)) {
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
            let enums = self.tables().flat_map(|t| t.enums()).filter(move |e| e.flags == flags);
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
