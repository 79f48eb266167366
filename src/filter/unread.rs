//! Drops messages that a filter cannot keep before their trees are made. Most messages can be dropped this way.
//!
//! It tests the keys that are known without the fields, and asks the [`Shortcuts`] of a condition for all others. That a condition on a field holds it knows
//! only of a number whose place is found.

use std::sync::atomic::{AtomicI32, Ordering};

use super::absent::OutlineOf;
use super::path::{Path, PathStep};
use super::shortcuts::Shortcuts;
use super::value::{RecordScope, RecordValue};
use super::{BooleanExpr, Check, Filter};
use crate::out::tree::Annotations;
use crate::out::{Body, Outlined, Record};
use crate::table::{FoundField, MessageDef, Refusal};
use crate::tree::{Outline, Problem, Severity};

/// Keys of a record that are not known before a message has a tree. A message that may be a reply always gets a tree, so without one it has no keys
/// of a reply; and no message has the keys of events.
const UNKNOWN: [&str; 6] = ["expects_reply", "refused", "info", "fields", "names", "problems"];

/// Keys that most messages certainly do not have, which is known before they have a tree.
const SELDOM: [&str; 3] = ["expects_reply", "refused", "problems"];

/// A message that an outline does not decide is read twice. A counter grows by 2 for each such message, and shrinks by 1 for each decided one. When it
/// reaches `TOO_MANY`, no outlines are asked about for `WITHOUT` records.
const TOO_MANY: i32 = 64;
const WITHOUT: i32 = 8192;

/// Whether it pays to ask about outlines: a message that they do not decide is read twice.
#[derive(Default)]
pub(super) struct Worth(AtomicI32);

impl Worth {
    /// Whether it pays at present.
    fn is_given(&self) -> bool {
        self.0.load(Ordering::Relaxed) < TOO_MANY
    }

    fn decided(&self, decided: bool) {
        let now = self.0.load(Ordering::Relaxed);
        self.0.store(if decided { (now - 1).max(0) } else { now + 2 }, Ordering::Relaxed);
    }

    /// Counts a record that came with its tree. After some of them outlines are tried again.
    pub(super) fn whole(&self) {
        let now = self.0.load(Ordering::Relaxed);
        if now >= TOO_MANY {
            self.0.store(if now < TOO_MANY + WITHOUT { now + 1 } else { TOO_MANY / 2 }, Ordering::Relaxed);
        }
    }
}

impl Filter {
    /// Whether it pays to ask whether it [drops](Filter::drops) messages of which only the outline was read.
    pub fn judges_outlines(&self) -> bool {
        self.condition.may_fail_unread(self.redact) && self.worth.is_given()
    }

    /// Whether a message of which only the outline was read is certainly not kept. Names that earlier records give are not tested.
    pub fn drops(&self, record: &Record<'_, Outlined<'_>>) -> bool {
        let dropped = self.unread(record) == Some(false);
        self.worth.decided(dropped);
        dropped
    }

    /// Whether a message of which only the outline was read is kept; `None` where its fields decide, or where it teaches names. These are known
    /// as far as the filter [heard](Filter::hear) them.
    pub fn decides(&self, record: &Record<'_, Outlined<'_>>, teaches: bool) -> Option<bool> {
        let kept = if teaches { None } else { self.unread(record) };
        self.worth.decided(kept.is_some());
        kept
    }

    /// A record gave a name to a number.
    pub(super) fn hear(&self, name: &str) {
        self.condition.hear(name);
    }

    fn unread(&self, record: &Record<'_, Outlined<'_>>) -> Option<bool> {
        let Outlined { message, id, tables, outline } = &record.body;
        let Record { number, at, transport, stream, src, dst, from, protocol, service, round_trips, .. } = *record;
        let body = Body::Message { message, tables, tree: &self.no_tree };
        let record = Record { number, at, transport, stream, src, dst, from, protocol, service, round_trips, body };
        let scope = RecordScope::new(&record, Annotations::default(), &self.protocols, self.redact)
            .with_sessions(self.sessions.as_deref());
        let unread = UnreadMessage {
            scope: &scope,
            outline,
            def: tables.message(*id),
            // What lies in compressed bytes, or across bytes, cannot be searched for.
            searchable: outline.is_captured() && outline.is_aligned() && !self.redact,
            placed: outline.is_aligned() && !self.redact && outline.problems().iter().all(is_note),
        };
        self.condition.unread(&unread)
    }
}

/// A message that has no tree.
struct UnreadMessage<'s, 'a> {
    /// The record, with an empty tree.
    scope: &'s RecordScope<'a>,
    outline: &'s Outline,
    def: Option<&'s MessageDef>,
    /// Whether values can be searched for in its bytes.
    searchable: bool,
    /// Whether fields can be found by their places.
    placed: bool,
}

impl UnreadMessage<'_, '_> {
    /// Whether the values at a path are known: all of them, or that there are none.
    fn knows(&self, path: &Path) -> bool {
        is_known(path)
            || match first_key(path) {
                Some("expects_reply") => self.def.is_some_and(|def| !def.expects_reply),
                Some("refused") => self.def.is_some_and(|def| def.refusal == Refusal::Never),
                Some("problems") => self.outline.problems().is_empty(),
                _ => false,
            }
    }

    /// Whether a condition on fields or names holds, if that can be told without a tree.
    fn decide(&self, check: &Check, shortcuts: &Shortcuts) -> Option<bool> {
        let (view, protocol) = (self.scope.message?, self.scope.protocol);
        let sought = shortcuts.sought.as_ref().filter(|_| self.searchable);
        let in_bytes = || sought.is_none_or(|sought| !sought.fails(protocol, view.tables, view.bytes));
        if let Some(names) = &shortcuts.names {
            let no_name = names.fails();
            let no_field = names.is_of_names_only() || {
                let read = OutlineOf { layout: self.def?.layout, outline: self.outline };
                let key = names.fields(check, protocol, view.tables)?;
                key.is_absent(protocol, view.tables, read) || !in_bytes()
            };
            return (no_name && no_field).then_some(false);
        }
        if !in_bytes() {
            return Some(false);
        }
        let place = shortcuts.place.as_ref().filter(|_| self.placed)?;
        match place.find(protocol, view.tables, self.def?, view.bytes) {
            FoundField::Number(node) => Some(check.holds(self.scope, RecordValue::Found(node))),
            FoundField::Absent => Some(false),
            FoundField::Unknown => None,
        }
    }

    /// Whether a path certainly leads nowhere, because the message has no field of one of its names.
    fn lacks(&self, path: &Path) -> bool {
        let Some((view, def)) = self.scope.message.zip(self.def) else { return false };
        let read = OutlineOf { layout: def.layout, outline: self.outline };
        path.field_names().any(|key| key.is_absent(self.scope.protocol, view.tables, read))
    }
}

impl BooleanExpr {
    /// Whether it holds, if that is known without fields; else `None`.
    fn unread(&self, message: &UnreadMessage<'_, '_>) -> Option<bool> {
        let among = |list: &[BooleanExpr], decides: bool| {
            let mut all = Some(!decides);
            for part in list {
                match part.unread(message) {
                    Some(holds) if holds == decides => return Some(decides),
                    Some(_) => {}
                    None => all = None,
                }
            }
            all
        };
        match self {
            BooleanExpr::And(list) => among(list, false),
            BooleanExpr::Or(list) => among(list, true),
            BooleanExpr::Not(condition) => condition.unread(message).map(|holds| !holds),
            BooleanExpr::Test(path, check, _) if message.knows(path) => {
                let scope = message.scope;
                Some(scope.any(path, &mut |value| check.holds(scope, value)))
            }
            BooleanExpr::Test(path, ..) if message.lacks(path) => Some(false),
            BooleanExpr::Test(path, check, _) if is_severity(path) => {
                // Some of these problems may be taken out before the message becomes a record.
                let mut words = message.outline.problems().iter().map(|problem| problem.severity.word());
                let fails = !words.any(|word| check.holds(message.scope, RecordValue::Text(word)));
                fails.then_some(false)
            }
            BooleanExpr::Test(_, check, shortcuts) => message.decide(check, shortcuts),
        }
    }

    /// A record gave a name to a number.
    fn hear(&self, name: &str) {
        match self {
            BooleanExpr::And(list) | BooleanExpr::Or(list) => list.iter().for_each(|part| part.hear(name)),
            BooleanExpr::Not(condition) => condition.hear(name),
            BooleanExpr::Test(_, check, shortcuts) => shortcuts.names.iter().for_each(|names| names.hear(name, check)),
        }
    }

    /// Whether that may ever be `Some(false)`.
    fn may_fail_unread(&self, redact: bool) -> bool {
        match self {
            BooleanExpr::And(list) => list.iter().any(|part| part.may_fail_unread(redact)),
            BooleanExpr::Or(list) => list.iter().all(|part| part.may_fail_unread(redact)),
            BooleanExpr::Not(condition) => condition.is_known(),
            BooleanExpr::Test(path, _, shortcuts) => {
                let Shortcuts { sought, place, names } = &**shortcuts;
                let seldom = first_key(path).is_some_and(|key| SELDOM.contains(&key));
                let in_bytes = !redact && (sought.is_some() || place.is_some());
                is_known(path) || seldom || path.field_names().next().is_some() || in_bytes || names.is_some()
            }
        }
    }

    /// Whether all of it is known without fields.
    fn is_known(&self) -> bool {
        !self.any_path(&|path| !is_known(path))
    }
}

/// Whether a problem says nothing of damage.
fn is_note(problem: &Problem) -> bool {
    problem.severity == Severity::Note
}

/// Whether a path leads to nothing but what is known without fields.
fn is_known(path: &Path) -> bool {
    first_key(path).is_some_and(|key| !UNKNOWN.contains(&key))
}

/// Whether a path leads to the severities of the problems.
fn is_severity(path: &Path) -> bool {
    match path.steps.as_slice() {
        [PathStep::Key(first), PathStep::All, PathStep::Key(last)] => {
            first.record.is_some_and(|key| key.name == "problems") && last.text == "severity"
        }
        _ => false,
    }
}

/// The key of the record that a path begins with.
fn first_key(path: &Path) -> Option<&'static str> {
    match path.steps.first()? {
        PathStep::Key(key) => key.record.map(|key| key.name),
        _ => None,
    }
}
