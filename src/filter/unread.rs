//! Drops messages that a filter cannot keep before their trees are made. Most messages can be
//! dropped this way.
//!
//! It tests the keys that are known without the fields, and asks the [`Shortcuts`] of a condition
//! for all others. That a condition on a field holds it knows only of a number whose place is
//! found.

use std::sync::atomic::{AtomicI32, Ordering};

use super::path::Path;
use super::shortcuts::{PathStart, Shortcuts};
use super::symbols::{SymbolPart, set_flags};
use super::value::{
    Leaf, RecordScope, RecordValue, found, index_of, integer, is_other_text, symbol,
};
use super::{BooleanExpr, Check, Filter};
use crate::out::tree::Annotations;
use crate::out::{Body, Outlined, Record};
use crate::table::{MessageDef, OutlineOf, Refusal, SearchedMessage};
use crate::tree::{Node, Problem, Severity};

/// A message that an outline does not decide is read twice. A counter grows by 2 for each such
/// message, and shrinks by 1 for each decided one. When it reaches `TOO_MANY`, no outlines are
/// asked about for `WITHOUT` records.
const TOO_MANY: i32 = 64;
const WITHOUT: i32 = 8192;

/// Whether it pays to ask about outlines: a message that they do not decide is read twice.
#[derive(Default)]
pub(super) struct OutlineBalance(AtomicI32);

impl OutlineBalance {
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
            self.0.store(
                if now < TOO_MANY + WITHOUT { now + 1 } else { TOO_MANY / 2 },
                Ordering::Relaxed,
            );
        }
    }
}

impl Filter {
    /// Whether it pays to ask whether it [drops](Filter::drops) messages of which only the outline
    /// was read; with `or_keeps`, whether it pays to ask what it [decides](Filter::decides) about
    /// them.
    pub fn asks_outlines(&self, or_keeps: bool) -> bool {
        let [fails, holds] = self.told_unread;
        (fails || holds && or_keeps) && self.outline_balance.is_given()
    }

    /// Whether a message of which only the outline was read is certainly not kept. Names that
    /// earlier records give are not tested.
    pub fn drops(&self, record: &Record<'_, Outlined<'_>>) -> bool {
        let dropped = self.unread(record) == Some(false);
        self.outline_balance.decided(dropped);
        dropped
    }

    /// Whether a message of which only the outline was read is kept; `None` where its fields
    /// decide, or where it gives names. These are known as far as the filter
    /// [learned](Filter::learn_name) them.
    pub fn decides(&self, record: &Record<'_, Outlined<'_>>, gives_names: bool) -> Option<bool> {
        let kept = if gives_names { None } else { self.unread(record) };
        self.outline_balance.decided(kept.is_some());
        kept
    }

    /// A record gave a name to a number.
    pub(super) fn learn_name(&self, name: &str) {
        self.condition.learn_name(name);
    }

    fn unread(&self, record: &Record<'_, Outlined<'_>>) -> Option<bool> {
        let Outlined { id, tables, outline, .. } = record.body;
        self.condition.unread(&UnreadMessage {
            filter: self,
            record,
            protocol: index_of(record.protocol, &self.protocols),
            def: tables.message(id),
            // What lies across bytes cannot be searched for.
            made: outline.made_bytes().filter(|_| outline.is_aligned() && !self.redact),
            placed: outline.is_aligned() && !self.redact && outline.problems().iter().all(is_note),
        })
    }
}

/// A message that has no tree.
struct UnreadMessage<'s, 'a> {
    filter: &'s Filter,
    record: &'s Record<'a, Outlined<'a>>,
    /// The index of its protocol among those the filter was compiled for.
    protocol: usize,
    def: Option<&'s MessageDef>,
    /// The bytes that were made of compressed ones; `None` if values cannot be searched for in
    /// these and the message's own.
    made: Option<&'s [u8]>,
    /// Whether fields can be found by their places.
    placed: bool,
}

impl UnreadMessage<'_, '_> {
    /// Asks about the record with an empty tree.
    fn in_scope(&self, ask: impl FnOnce(&RecordScope<'_>) -> bool) -> bool {
        let (Outlined { message, tables, .. }, filter) = (&self.record.body, self.filter);
        let Record {
            number,
            at,
            transport,
            stream,
            src,
            dst,
            from,
            protocol,
            service,
            round_trips,
            ..
        } = *self.record;
        let body = Body::Message { message, tables, tree: &filter.no_tree };
        let record = Record {
            number,
            at,
            transport,
            stream,
            src,
            dst,
            from,
            protocol,
            service,
            round_trips,
            body,
        };
        let scope =
            RecordScope::new(&record, Annotations::default(), &filter.protocols, filter.redact);
        ask(&scope.with_sessions(filter.sessions.as_deref()))
    }

    /// Whether there are certainly no values at a path.
    fn has_none(&self, start: PathStart) -> bool {
        match start {
            PathStart::ExpectsReply => self.def.is_some_and(|def| !def.expects_reply),
            PathStart::Refused => self.def.is_some_and(|def| def.refusal == Refusal::Never),
            PathStart::Problems | PathStart::Severities => {
                self.record.body.outline.problems().is_empty()
            }
            PathStart::Known | PathStart::Unknown => false,
        }
    }

    /// Whether a condition on fields or names holds, if that can be told without a tree.
    fn decide(&self, path: &Path, check: &Check, shortcuts: &Shortcuts) -> Option<bool> {
        let Outlined { message, tables, outline, .. } = self.record.body;
        let bytes = message.bytes;
        let protocol = self.protocol;
        let searched = self.made.map(|made| [bytes, made]);
        let sought = shortcuts.sought.as_ref().zip(searched);
        let in_bytes =
            || sought.is_none_or(|(sought, searched)| !sought.fails(protocol, tables, searched));
        if let Some(names) = &shortcuts.names {
            let no_name = names.fails();
            let no_field = names.is_of_names_only() || {
                let read = OutlineOf { layout: self.def?.layout, outline };
                let key = names.fields(check, protocol, tables)?;
                key.is_absent(protocol, tables, read) || !in_bytes()
            };
            return (no_name && no_field).then_some(false);
        }
        if let Some(info) = &shortcuts.info {
            let read = OutlineOf { layout: self.def?.layout, outline };
            let lacks =
                searched.is_some_and(|searched| info.lacks(protocol, tables, read, searched));
            return lacks.then_some(info.without);
        }
        let place = shortcuts.place.as_ref().filter(|_| self.placed).zip(self.def);
        let ask = || {
            let (place, def) = place?;
            let made = self.made.unwrap_or_default();
            let dialects = outline.dialects();
            let searched = SearchedMessage { def, bytes, made, dialects };
            place.any(protocol, tables, searched, &mut |node, bytes| {
                self.holds(check, node, bytes, place.part)
            })
        };
        if place.is_some_and(|(place, _)| place.is_direct) {
            return ask().or_else(|| (self.lacks(path) || !in_bytes()).then_some(false));
        }
        if self.lacks(path) || !in_bytes() { Some(false) } else { ask() }
    }

    /// Whether a condition holds for a value that was found, whose place is in these bytes, or for
    /// a part of it.
    fn holds(&self, check: &Check, node: Node, bytes: &[u8], part: Option<SymbolPart>) -> bool {
        if let Some(part) = part {
            return self.holds_for_part(check, node, part);
        }
        if let Some(holds) = check.tells_at_once(|literal| is_other_text(&node, bytes, literal)) {
            return holds;
        }
        match found(self.record.body.tables, &node, bytes) {
            Some(leaf) => check.holds_for(&leaf),
            None => self.in_scope(|scope| check.holds(scope, RecordValue::Found(node))),
        }
    }

    /// The same for a part of a value. Only numbers whose values have names have parts.
    fn holds_for_part(&self, check: &Check, node: Node, part: SymbolPart) -> bool {
        let Some(symbols) = self.record.body.tables.symbols(node.ty) else { return false };
        match (part, symbol(symbols, &node)) {
            (SymbolPart::Value, _) => check.holds_for(&integer(&node)),
            (SymbolPart::Name, Leaf::Named(_, Some(name))) => check.holds_for_name(name),
            (SymbolPart::Names, Leaf::Flags(_, bits, symbols)) => {
                set_flags(symbols, bits).any(|name| check.holds_for_name(name))
            }
            _ => false,
        }
    }

    /// Whether a path certainly leads nowhere, because the message has no field of one of its
    /// names.
    fn lacks(&self, path: &Path) -> bool {
        let (Some(def), Outlined { tables, outline, .. }) = (self.def, &self.record.body) else {
            return false;
        };
        let read = OutlineOf { layout: def.layout, outline };
        path.field_names().any(|key| key.is_absent(self.protocol, tables, read))
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
            BooleanExpr::Test(path, check, shortcuts) if shortcuts.start == PathStart::Known => {
                Some(
                    message
                        .in_scope(|scope| scope.any(path, &mut |value| check.holds(scope, value))),
                )
            }
            BooleanExpr::Test(_, _, shortcuts) if message.has_none(shortcuts.start) => Some(false),
            BooleanExpr::Test(_, check, shortcuts) if shortcuts.start == PathStart::Severities => {
                // Some of these problems may be taken out before the message becomes a record.
                let mut words = message
                    .record
                    .body
                    .outline
                    .problems()
                    .iter()
                    .map(|problem| problem.severity.word());
                (!words.any(|word| check.holds_for_name(word))).then_some(false)
            }
            BooleanExpr::Test(path, check, shortcuts) => message.decide(path, check, shortcuts),
        }
    }

    /// A record gave a name to a number.
    fn learn_name(&self, name: &str) {
        match self {
            BooleanExpr::And(list) | BooleanExpr::Or(list) => {
                list.iter().for_each(|part| part.learn_name(name))
            }
            BooleanExpr::Not(condition) => condition.learn_name(name),
            BooleanExpr::Test(_, check, shortcuts) => {
                shortcuts.names.iter().for_each(|names| names.learn_name(name, check));
                shortcuts.info.iter().for_each(|info| info.learn_name(name));
            }
        }
    }

    /// Whether that may ever be `Some(holds)`.
    pub(super) fn may_be_told_unread(&self, holds: bool, redact: bool) -> bool {
        let may = |part: &BooleanExpr| part.may_be_told_unread(holds, redact);
        match self {
            BooleanExpr::And(list) => {
                if holds {
                    list.iter().all(may)
                } else {
                    list.iter().any(may)
                }
            }
            BooleanExpr::Or(list) => {
                if holds {
                    list.iter().any(may)
                } else {
                    list.iter().all(may)
                }
            }
            BooleanExpr::Not(condition) => condition.may_be_told_unread(!holds, redact),
            BooleanExpr::Test(_, _, shortcuts) if shortcuts.start == PathStart::Known => true,
            BooleanExpr::Test(path, _, shortcuts) => {
                let Shortcuts { start, sought, place, names, info } = &**shortcuts;
                let info =
                    info.as_ref().filter(|_| !redact).is_some_and(|info| info.without == holds);
                let in_bytes = !redact && (place.is_some() || sought.is_some() && !holds) || info;
                let absent = *start != PathStart::Unknown
                    || path.field_names().next().is_some()
                    || names.is_some();
                in_bytes || absent && !holds
            }
        }
    }
}

/// Whether a problem says nothing of damage.
fn is_note(problem: &Problem) -> bool {
    problem.severity == Severity::Note
}
