//! The list of what not to compare: fields by their paths (`fields.buffer.time_sent`,
//! `*.time_sent`), and messages by their names (`Cli2Auth_PingRequest`, `*PingRequest`).
//!
//! A path has the form that filters have. An entry may be both: the name of a message, a blank, and
//! a path within it. Behind a message's name may stand what it carries
//! (`Game2Cli_PropagateBuffer plNotifyMsg`).

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::captured::Captured;
use crate::filter::{FilterError, Paths, RecordValue};
use crate::proto::LazyTables;
use crate::record::{Body, Record};
use crate::suggest::suggestion;

/// Entries of a list. Each costs time for every message.
const MOST: usize = 1000;

/// What is not compared.
#[derive(Default)]
pub struct IgnoreList {
    messages: Vec<NamePattern>,
    fields: Vec<IgnoredFields>,
}

/// Fields of all messages, or of some.
struct IgnoredFields {
    of: Option<NamePattern>,
    paths: Paths,
}

/// A message's name; `*` matches any characters. Behind a blank may stand what the message carries.
#[derive(Debug)]
struct NamePattern {
    text: String,
    /// Whether it says what the message carries.
    carries: bool,
    /// Whether a message had such a name, where no table has one: in some protocols senders name
    /// messages.
    met: Option<AtomicBool>,
}

/// An entry that is wrong.
#[derive(Debug)]
pub struct IgnoreError {
    entry: String,
    why: Why,
}

#[derive(Debug)]
enum Why {
    Path(FilterError),
    TooMany,
    Empty,
    /// No message has this name. The second text is what was probably meant.
    Unknown(String, String),
}

impl IgnoreError {
    /// What was expected, without the entry: of an entry that was read from a file, which may be
    /// one that holds keys.
    pub fn unquoted(&self) -> String {
        match &self.why {
            Why::Path(error) => {
                format!(
                    "column {}: expected the name of a message, or the path of a field",
                    error.column()
                )
            }
            Why::TooMany => format!("one entry too many: there may be {MOST}"),
            Why::Empty => "expected the name of a message, or the path of a field".into(),
            Why::Unknown(..) => {
                "expected the name of a message, or the path of a field: no table has this name"
                    .into()
            }
        }
    }
}

impl fmt::Display for IgnoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Why::Path(error) => error.fmt(f),
            Why::TooMany => {
                write!(
                    f,
                    "`{}` is one entry too many: there may be {MOST}",
                    Captured::new(&self.entry).escaped()
                )
            }
            Why::Empty => f.write_str(
                "an empty entry; expected the name of a message, or the path of a field",
            ),
            Why::Unknown(name, near) => {
                write!(f, "no table has a message `{}`{near}", Captured::new(name).escaped())
            }
        }
    }
}

impl std::error::Error for IgnoreError {}

impl NamePattern {
    fn new(text: &str, tables: &[LazyTables]) -> Result<NamePattern, Why> {
        let (name, carries) = match text.split_once(char::is_whitespace) {
            Some((name, _)) => (name, true),
            None => (text, false),
        };
        let mut pattern = NamePattern { text: name.to_owned(), carries: false, met: None };
        let names = || {
            let declared = tables
                .iter()
                .map(LazyTables::get)
                .flat_map(|t| t.messages().iter().map(|m| t.name(m.name)));
            declared.chain(
                tables.iter().flat_map(|lazy| lazy.protocol().record_names().messages).copied(),
            )
        };
        if !names().any(|name| pattern.fits(name)) {
            let near = if name.contains('*') { String::new() } else { suggestion(name, names()) };
            if carries || !near.is_empty() {
                return Err(Why::Unknown(name.to_owned(), near));
            }
            pattern.met = Some(AtomicBool::new(false));
        }
        pattern.text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        pattern.carries = carries;
        Ok(pattern)
    }

    /// Whether a message of the captures has such a name, and carries this.
    fn takes(&self, name: &str, carried: Option<&str>) -> bool {
        let fits = match (self.carries, carried) {
            (true, Some(carried)) => self.fits(&format!("{name} {carried}")),
            (true, None) => false,
            (false, _) => self.fits(name),
        };
        if let Some(met) = self.met.as_ref().filter(|_| fits) {
            met.store(true, Ordering::Relaxed);
        }
        fits
    }

    fn is_unmet(&self) -> bool {
        self.met.as_ref().is_some_and(|met| !met.load(Ordering::Relaxed))
    }

    fn fits(&self, name: &str) -> bool {
        let mut parts = self.text.split('*');
        let first = parts.next().unwrap_or_default();
        let Some(mut rest) = name.strip_prefix(first) else { return false };
        let mut parts: Vec<&str> = parts.collect();
        let Some(last) = parts.pop() else { return rest.is_empty() };
        for part in parts {
            let Some(at) = rest.find(part) else { return false };
            rest = rest.get(at + part.len()..).unwrap_or_default();
        }
        rest.ends_with(last)
    }
}

/// Whether an entry, or its first word, is a path: it begins with a key that only paths have.
fn is_path(word: &str) -> bool {
    let word = word.trim_start_matches('.');
    word == "fields" || word.starts_with("fields.") || word.starts_with("*.")
}

impl IgnoreList {
    /// Adds a line of a file. Empty ones, and those that begin with `#`, are comments. A list may
    /// name messages that these captures do not have.
    ///
    /// # Errors
    /// As [`add`](IgnoreList::add).
    pub fn add_line(&mut self, line: &str, tables: &[LazyTables]) -> Result<(), IgnoreError> {
        let text = line.split(" #").next().unwrap_or_default().trim();
        if text.is_empty() || text.starts_with('#') {
            return Ok(());
        }
        if let Some(pattern) = self.add_entry(text, tables)? {
            pattern.met = None;
        }
        Ok(())
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// A path that names no field of `tables`, a name that is nearly one of a message, no text, and
    /// more than a thousand entries.
    pub fn add(&mut self, entry: &str, tables: &[LazyTables]) -> Result<(), IgnoreError> {
        self.add_entry(entry, tables).map(drop)
    }

    /// Adds an entry. Returns its name, if it has one.
    fn add_entry(
        &mut self,
        entry: &str,
        tables: &[LazyTables],
    ) -> Result<Option<&mut NamePattern>, IgnoreError> {
        let text = entry.trim();
        let fail = |why| IgnoreError { entry: text.to_string(), why };
        if self.messages.len() + self.fields.len() >= MOST {
            return Err(fail(Why::TooMany));
        }
        if text.is_empty() {
            return Err(fail(Why::Empty));
        }
        let (name, path) = match text.rsplit_once(char::is_whitespace) {
            Some((name, path)) if is_path(path) && !is_path(name) => (Some(name), Some(path)),
            _ if is_path(text) => (None, Some(text)),
            _ => (Some(text), None),
        };
        let of = name.map(|name| NamePattern::new(name, tables)).transpose().map_err(fail)?;
        match (of, path) {
            (of, Some(path)) => {
                let paths =
                    Paths::compile(path, tables, false).map_err(|error| fail(Why::Path(error)))?;
                self.fields.push(IgnoredFields { of, paths });
                Ok(self.fields.last_mut().and_then(|fields| fields.of.as_mut()))
            }
            (of, None) => {
                self.messages.extend(of);
                Ok(self.messages.last_mut())
            }
        }
    }

    /// Whether a message, which carries this, is not compared at all.
    pub fn ignores(&self, message: &str, carried: Option<&str>) -> bool {
        self.messages.iter().any(|pattern| pattern.takes(message, carried))
    }

    /// Finds an entry with a name that no table and, now that both captures are read, no message
    /// has.
    ///
    /// # Errors
    /// The name was a mistake.
    pub fn verdict(&self) -> Result<(), IgnoreError> {
        let names =
            self.messages.iter().chain(self.fields.iter().filter_map(|fields| fields.of.as_ref()));
        let unmet = names.into_iter().find(|pattern| pattern.is_unmet());
        unmet.map_or(Ok(()), |pattern| {
            let entry = pattern.text.clone();
            let why = Why::Unknown(pattern.text.clone(), String::new());
            Err(IgnoreError { entry, why })
        })
    }

    /// Puts the nodes of a record's tree that are not compared into `nodes`, in ascending order.
    /// The record's message carries `carried`.
    pub(super) fn nodes(&self, record: &Record<'_>, carried: Option<&str>, nodes: &mut Vec<u32>) {
        nodes.clear();
        let Body::Message { message, .. } = &record.body else { return };
        let name = message.name.raw();
        let takes =
            |fields: &&IgnoredFields| fields.of.as_ref().is_none_or(|of| of.takes(name, carried));
        for fields in self.fields.iter().filter(takes) {
            let scope = fields.paths.scope(record);
            for path in fields.paths.paths() {
                scope.any(path, &mut |value| {
                    if let RecordValue::Node(node) = value {
                        nodes.push(node);
                    }
                    false
                });
            }
        }
        nodes.sort_unstable();
        nodes.dedup();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_characters() {
        let fits = |pattern: &str, name| {
            NamePattern { text: pattern.into(), carries: false, met: None }.fits(name)
        };
        assert!(fits("Ping", "Ping") && !fits("Ping", "PingReply") && !fits("Ping", "APing"));
        assert!(
            fits("*Ping*", "Cli2Auth_PingRequest") && fits("Cli2*Request", "Cli2Auth_PingRequest")
        );
        assert!(!fits("Cli2*Reply", "Cli2Auth_PingRequest") && fits("*", ""));
    }

    #[test]
    fn a_path_is_told_from_a_name() {
        assert!(
            is_path("fields.a")
                && is_path("*.time_sent")
                && is_path(".fields.a")
                && is_path("fields")
        );
        assert!(!is_path("*PingRequest") && !is_path("channel-m") && !is_path("Fields.a"));
    }
}
