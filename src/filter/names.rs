//! The names that expressions may use, and suggestions for misspelt ones.

use super::hints;
use super::keys::{KEYS, KeyKind, KeyParts, RecordKey, part_names};
use super::named::NamedExpressions;
use crate::proto::{LazyTables, RecordNames};
use crate::record::EVENTS;
use crate::suggest::{offer, suggestion};
use crate::table::Tables;

const SEVERITIES: [&str; 3] = ["note", "warning", "error"];

/// All names of all tables, and those that filters and columns have. A table is compiled only when
/// a name was not found before it.
pub(super) struct FilterNames<'a> {
    lazy: &'a [LazyTables],
    named: &'a NamedExpressions,
}

/// A word that no table has, and the suggestion for it.
pub(super) struct Unknown {
    pub(super) text: String,
    /// Set if a known word is near, so that it is a mistake.
    pub(super) near: bool,
}

/// The set of words on the right of a comparison with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vocabulary {
    /// Those of a key with [`KeyKind::Word`].
    Key(&'static str),
    /// Severities of problems.
    Severity,
    /// Names of enum values.
    EnumValue,
    /// Names of flags.
    Flag,
}

impl<'a> FilterNames<'a> {
    pub(super) fn new(lazy: &'a [LazyTables], named: &'a NamedExpressions) -> FilterNames<'a> {
        FilterNames { lazy, named }
    }

    /// Filters and columns that have names.
    pub(super) fn named(&self) -> &'a NamedExpressions {
        self.named
    }

    /// How many protocols there are.
    pub(super) fn protocols(&self) -> usize {
        self.lazy.len()
    }

    fn tables(&self) -> impl Iterator<Item = &'a Tables> + Clone {
        self.lazy.iter().map(LazyTables::get)
    }

    /// Names that records can have although no table declares them.
    fn undeclared(&self) -> impl Iterator<Item = RecordNames> {
        self.lazy.iter().map(|lazy| lazy.protocol().record_names())
    }

    fn all(&self) -> impl Iterator<Item = &'a str> {
        let parts: Vec<&'a str> = part_names().collect();
        self.tables()
            .flat_map(|t| t.names().iter().map(|name| &**name))
            .filter(|name| !name.is_empty())
            .chain(parts)
    }

    fn knows(&self, name: &str) -> bool {
        part_names().any(|part| part == name) || self.tables().any(|t| t.sym(name).is_some())
    }

    /// The record's key with a name.
    ///
    /// # Errors
    /// There is no such key: the key that was probably meant.
    pub(super) fn key(&self, name: &str) -> Result<&'static RecordKey, String> {
        if let Some(key) = RecordKey::named(name) {
            return Ok(key);
        }
        let hint = match hints::foreign_key(name) {
            Some(hint) => format!("; {hint}"),
            None => self.meant_by(name),
        };
        Err(format!("a record has no `{name}`{hint}"))
    }

    /// What was probably meant by a word at the beginning of a condition that is no key.
    fn meant_by(&self, word: &str) -> String {
        if let Some(meant) = self.kind_of(word) {
            return meant;
        }
        let near_key = suggestion(word, KEYS.iter().map(|key| key.name));
        if !near_key.is_empty() {
            return near_key;
        }
        if self.knows(word) {
            return format!(
                "; a message's fields are written `fields.{word}`, or `*.{word}` at any depth"
            );
        }
        let near_message = offer(word, self.messages());
        if !near_message.is_empty() {
            return near_message.replace("mean `", "mean `message == ");
        }
        match suggestion(word, self.all()) {
            near if near.is_empty() => {
                format!("; it has {}", list(KEYS.iter().map(|key| key.name)))
            }
            near => near.replace("mean `", "mean `fields."),
        }
    }

    /// What a word is, if it is a value that some key can have.
    fn kind_of(&self, word: &str) -> Option<String> {
        let said =
            |what: &str, condition: &str| Some(format!("; it is {what}: {condition} == {word}"));
        if EVENTS.contains(&word) {
            return said("an event", "event");
        }
        if SEVERITIES.contains(&word) {
            return said("a severity", "problems[*].severity");
        }
        if self.lazy.iter().any(|t| t.protocol().name() == word) {
            return said("a protocol", "protocol");
        }
        if self.services().any(|service| service == word) {
            return said("a service", "service");
        }
        if self.messages().any(|message| message == word) {
            return said("a message", "message");
        }
        if self.symbols(false).any(|name| name == word) {
            return said("a value of an enum", "fields.x");
        }
        let flag = self.symbols(true).any(|name| name == word);
        flag.then(|| format!("; it is a flag: fields.x has {word}"))
    }

    /// Whether `name` is a part of a key, or of the elements of the list that the key is.
    pub(super) fn part(&self, key: &RecordKey, element: bool, name: &str) -> Result<(), String> {
        let key_name = key.name;
        if let Some(hint) = hints::foreign_part(key_name, name) {
            return Err(format!("`{key_name}` has no parts: there is nothing in it; {hint}"));
        }
        match (key.parts, element) {
            (KeyParts::Fields, _) => Ok(()),
            (KeyParts::None, _) => {
                Err(format!("`{key_name}` is one value; there is nothing in it"))
            }
            (KeyParts::List(_), false) => Err(format!(
                "`{key_name}` is a list: {key_name}[*].{name} asks for any of them, \
                 {key_name}[0].{name} for the first"
            )),
            (KeyParts::Object(_), true) => Err(format!("`{key_name}` is no list")),
            // The names directly below are paths of fields.
            (KeyParts::ByPath(_), false) => Ok(()),
            (KeyParts::Object(known), false)
            | (KeyParts::List(known) | KeyParts::ByPath(known), true) => {
                one_of(name, known, &format!("`{key_name}` has"))
            }
        }
    }

    /// Whether tables know a field's name. With `record`, a record's own keys count as well.
    ///
    /// # Errors
    /// They do not: says so, and which name may have been meant.
    pub(super) fn field(&self, name: &str, record: bool) -> Result<(), String> {
        let numbered = name
            .rsplit_once('_')
            .filter(|(_, n)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
        let known = self.knows(name)
            || record && RecordKey::named(name).is_some()
            || numbered.is_some_and(|(before, _)| {
                self.undeclared().any(|names| names.numbered_fields.contains(&before))
            });
        if known {
            return Ok(());
        }
        // Every name of one or two letters is near to some other.
        let near = if name.chars().count() > 2 { offer(name, self.all()) } else { String::new() };
        Err(format!("no table has a field `{name}`{near}"))
    }

    /// Whether a word belongs to a vocabulary.
    ///
    /// # Errors
    /// The word does not belong to it. [`Unknown::near`] is false if it may still occur in traffic.
    pub(super) fn word(
        &self,
        word: &str,
        vocabulary: Vocabulary,
        quoted: bool,
    ) -> Result<(), Unknown> {
        let fixed = match vocabulary {
            Vocabulary::Key("from") => one_of(word, &["client", "server"], "a record is from"),
            Vocabulary::Key("transport") => one_of(word, &["tcp", "udp"], "a transport is"),
            Vocabulary::Key("end") => one_of(
                word,
                &["fin", "reset", "open", "timeout", "given_up"],
                "the end of a stream is",
            ),
            Vocabulary::Key("event") => one_of(word, &EVENTS, "an event is"),
            Vocabulary::Key("protocol") => {
                let known: Vec<&str> = self.lazy.iter().map(|t| t.protocol().name()).collect();
                one_of(word, &known, "a protocol is")
            }
            // A class, a kind, a number without a name; in quotes any text.
            Vocabulary::Key("carries") if quoted || word.parse::<i64>().is_ok() => Ok(()),
            Vocabulary::Key("carries") => self.symbol(word, false),
            Vocabulary::Key("service") => return self.service(word),
            Vocabulary::Key(_) => return self.message(word, quoted),
            Vocabulary::Severity => one_of(word, &SEVERITIES, "a severity is"),
            Vocabulary::EnumValue => self.symbol(word, false),
            Vocabulary::Flag => self.symbol(word, true),
        };
        fixed.map_err(|text| Unknown { text, near: true })
    }

    fn messages(&self) -> impl Iterator<Item = &'a str> {
        let declared = self.tables().flat_map(|t| t.messages().iter().map(|m| t.name(m.name)));
        declared.chain(self.undeclared().flat_map(|names| names.messages).copied())
    }

    fn services(&self) -> impl Iterator<Item = &'a str> {
        let declared = self.lazy.iter().flat_map(|lazy| {
            let other = lazy.protocol().record_names().other_services;
            let names = lazy.get().services().iter().map(|s| &*s.name);
            names.filter(move |name| other.iter().all(|(unsaid, _)| unsaid != name))
        });
        declared.chain(self.undeclared().flat_map(|names| names.services).copied())
    }

    /// The names of all enum values, or of all flags.
    fn symbols(&self, flags: bool) -> impl Iterator<Item = &'a str> {
        let enums = self.tables().flat_map(|t| t.enums()).filter(move |e| e.flags == flags);
        enums.flat_map(|e| &e.values).map(|v| &*v.name)
    }

    /// A message's name. In quotes only a name that is nearly a known one is a mistake, because
    /// some protocols name messages as they like; one that is a part of a known one is doubtful.
    fn message(&self, name: &str, quoted: bool) -> Result<(), Unknown> {
        let undeclared = self.undeclared().any(|names| names.messages.contains(&name));
        if undeclared || self.tables().any(|t| t.message_named(name).is_some()) {
            return Ok(());
        }
        let closed =
            self.lazy.iter().filter(|lazy| !quoted || !lazy.protocol().record_names().any_message);
        let declared =
            closed.map(LazyTables::get).flat_map(|t| t.messages().iter().map(|m| t.name(m.name)));
        let undeclared = self.undeclared().flat_map(|names| names.messages).copied();
        let names: Vec<&str> = declared.chain(undeclared).collect();
        let all = || names.iter().copied();
        let unknown = |near: String| format!("no table has a message `{name}`{near}");
        let near = if quoted { suggestion(name, all()) } else { offer(name, all()) };
        let near = match near {
            near if near.is_empty() => self.kind_of(name).unwrap_or_default(),
            near => near,
        };
        if !quoted || !near.is_empty() || hints::wildcard(name).is_some() {
            return Err(Unknown { text: unknown(near), near: true });
        }
        match offer(name, all()) {
            near if near.is_empty() => Ok(()),
            near => Err(Unknown { text: unknown(near), near: false }),
        }
    }

    fn service(&self, word: &str) -> Result<(), Unknown> {
        if self.services().any(|known| known == word) {
            return Ok(());
        }
        let mut other = self.undeclared().flat_map(|names| names.other_services);
        if let Some((_, service)) = other.find(|(unsaid, _)| *unsaid == word) {
            let text =
                format!("no record has the service `{word}`; such messages have `{service}`");
            return Err(Unknown { text, near: true });
        }
        let near = match suggestion(word, self.services()) {
            near if near.is_empty() => self.kind_of(word).unwrap_or_default(),
            near => near,
        };
        Err(Unknown { text: format!("there is no service `{word}`{near}"), near: !near.is_empty() })
    }

    /// The name of an enum value, or of a flag.
    fn symbol(&self, word: &str, flags: bool) -> Result<(), String> {
        if self.symbols(flags).any(|name| name == word) {
            return Ok(());
        }
        if let Some(hint) = hints::foreign_constant(word).filter(|_| !flags) {
            return Err(format!("no enum has a value `{word}`{hint}"));
        }
        if !flags && self.symbols(true).any(|name| name == word) {
            return Err(format!(
                "`{word}` is a flag: whether it is set is asked with `has {word}`"
            ));
        }
        if flags && self.symbols(false).any(|name| name == word) {
            return Err(format!(
                "`{word}` is a value of an enum, not a flag: it is compared with `== {word}`"
            ));
        }
        let near = offer(word, self.symbols(flags));
        Err(match (flags, near.is_empty()) {
            (true, _) => format!("no table has a flag `{word}`{near}"),
            (false, true) => {
                format!("no enum has a value `{word}`; text is written in quotes: \"{word}\"")
            }
            (false, false) => {
                format!("no enum has a value `{word}`{near} (text is written in quotes)")
            }
        })
    }

    /// The remark on a quoted text that looks like the name of an enum value or a flag and is
    /// similar to one.
    pub(super) fn misspelt_symbol(&self, text: &str) -> Option<String> {
        let mut letters = text.chars();
        let camel = letters.next() == Some('k') && letters.next().is_some_and(char::is_uppercase);
        let capitals = text.contains('_')
            && text.chars().all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit());
        if !(camel || capitals) || text.chars().any(|c| !c.is_alphanumeric() && c != '_') {
            return None;
        }
        let all = || self.symbols(false).chain(self.symbols(true));
        if all().any(|name| name == text) {
            return None;
        }
        let near = suggestion(text, all());
        (!near.is_empty()).then(|| format!("no enum has a value `{text}`{near}"))
    }
}

/// The vocabulary of a key, if its values are words.
pub(super) fn vocabulary_of(key: &RecordKey) -> Option<Vocabulary> {
    (key.kind == KeyKind::Word).then_some(Vocabulary::Key(key.name))
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
