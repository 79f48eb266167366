//! Disagreement between the two programs, or with the tables: what could not be read, texts and
//! lists longer than the client's own bound, forms that only some servers write.

use super::watch::StreamWatch;
use super::words::shortened;
use super::{Conclusion, EndedStream, Kind, MAX_FINDINGS, StreamRef, Weight};
use crate::digits::counted;
use crate::record::{EndedBy, Record};
use crate::session::Message;
use crate::table::Tables;
use crate::tree::{Concern, Problem, ProblemText, Severity, Tree};

/// The most texts of problems that are told apart.
const MAX_TEXTS: usize = 64;
/// Characters of a problem's text.
const TEXT: usize = 120;

/// A text that is not made for one problem: a fixed one, or one of the tables at an address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TextKey {
    Fixed(&'static str),
    Table(usize, u32),
}

/// Problems that differ in their numbers alone.
struct ProblemGroup {
    /// Their text without its numbers.
    form: String,
    severity: Severity,
    kind: Kind,
    count: u64,
    /// The text of the first one, with its numbers, and the message.
    example: String,
    message: String,
    record: u64,
    frame: u64,
}

/// Bytes of streams without gaps that became no message.
#[derive(Default)]
struct Unread {
    events: u64,
    bytes: u64,
    streams: u64,
    first: Option<(u64, u64, String)>,
    records: Vec<u64>,
}

/// On what the traffic and the tables disagree.
#[derive(Default)]
pub(super) struct Disagreements {
    problems: Vec<ProblemGroup>,
    /// The groups of texts, found without their words.
    keys: Vec<(TextKey, Severity, usize)>,
    unread: Unread,
}

impl Disagreements {
    /// A message has problems.
    pub(super) fn message(
        &mut self,
        record: &Record<'_>,
        message: &Message<'_>,
        tables: &Tables,
        tree: &Tree,
    ) {
        for problem in tree.problems() {
            self.problem(problem, record, message, tables, tree);
        }
    }

    #[inline]
    fn problem(
        &mut self,
        problem: &Problem,
        record: &Record<'_>,
        message: &Message<'_>,
        tables: &Tables,
        tree: &Tree,
    ) {
        let Some((kind, key)) = classified(problem, tables) else { return };
        let severity = problem.severity;
        let known = key.and_then(|key| self.known(key, severity));
        let place = match known {
            Some(place) => place,
            None => {
                let text = text_of(problem, tables, tree);
                let form = without_numbers(&text);
                let same = |group: &ProblemGroup| {
                    group.severity == severity && group.kind == kind && group.form == form
                };
                let place = self.problems.iter().position(same).unwrap_or(self.problems.len());
                if place >= MAX_TEXTS {
                    return;
                }
                if place == self.problems.len() {
                    self.problems.push(ProblemGroup {
                        form,
                        severity,
                        kind,
                        count: 0,
                        example: shortened(&text, TEXT),
                        message: message.name.raw().to_string(),
                        record: record.number,
                        frame: record.at.frame,
                    });
                }
                if let Some(key) = key.filter(|_| self.keys.len() < MAX_TEXTS) {
                    self.keys.push((key, severity, place));
                }
                place
            }
        };
        if let Some(group) = self.problems.get_mut(place) {
            group.count += 1;
        }
    }

    /// The group of problems with a text that was met before. Frequent ones come to the front.
    fn known(&mut self, key: TextKey, severity: Severity) -> Option<usize> {
        let at = self.keys.iter().position(|(of, worse, _)| *of == key && *worse == severity)?;
        let (_, _, place) = *self.keys.get(at)?;
        if let Some(before) = at.checked_sub(1) {
            self.keys.swap(at, before);
        }
        Some(place)
    }

    /// A stream ended. Returns whether bytes of it became no message although all of them are
    /// there.
    pub(super) fn stream(
        &mut self,
        _stream: &StreamRef,
        watch: &StreamWatch,
        ended: &EndedStream<'_>,
    ) -> bool {
        let unread = &watch.unread;
        let gaps = watch.gaps.iter().any(|gaps| gaps.count > 0);
        // A message that the capture's end cuts off says nothing of the traffic.
        let cut_off = match watch.how() {
            EndedBy::Open | EndedBy::GivenUp | EndedBy::Timeout => 1,
            EndedBy::Fin | EndedBy::Reset => 0,
        };
        let events = unread.events.saturating_sub(cut_off);
        if events == 0 || gaps || !ended.traffic.whole {
            return false;
        }
        let bytes = unread.bytes - if cut_off > 0 { unread.last_bytes } else { 0 };
        let all = &mut self.unread;
        all.events += events;
        all.bytes += bytes;
        all.streams += 1;
        if all.records.len() < MAX_FINDINGS {
            all.records.extend(unread.first.as_ref().map(|(record, ..)| *record));
        }
        all.first = all.first.take().or_else(|| unread.first.clone());
        true
    }

    pub(super) fn conclude(&self, all: &mut Vec<Conclusion>) {
        if let Some((_, frame, why)) = &self.unread.first {
            let Unread { events, bytes, streams, records, .. } = &self.unread;
            let text = format!(
                "{} at {} of {} could not be given to a message although nothing is missing: {}",
                counted(*bytes, "byte"),
                counted(*events, "place"),
                counted(*streams, "connection"),
                shortened(why, TEXT)
            );
            let conclusion = Conclusion::new(Weight::Trouble, Kind::Unread, text)
                .showing(records.clone(), vec![*frame])
                .sized(*bytes);
            all.push(conclusion.more("moulsniff … -x -Y 'event in {undecoded, resync}'"));
        }
        for severity in [Severity::Error, Severity::Warning] {
            let own =
                |group: &&ProblemGroup| group.kind == Kind::Unread && group.severity == severity;
            let own: Vec<&ProblemGroup> = self.problems.iter().filter(own).collect();
            all.extend(together(&own, severity));
        }
        for kind in [Kind::UnknownVersion, Kind::Unhandled, Kind::TooLong, Kind::Dialect] {
            for group in self.problems.iter().filter(|group| group.kind == kind) {
                all.push(group.conclude());
            }
        }
    }
}

/// What a problem is about, and its text where that is not made for this problem; `None` for one
/// that says nothing of the two programs.
fn classified(problem: &Problem, tables: &Tables) -> Option<(Kind, Option<TextKey>)> {
    let kind = match (problem.concern, problem.text) {
        (Concern::Unhandled, _) => Kind::Unhandled,
        (Concern::UnknownVersion, _) => Kind::UnknownVersion,
        (Concern::TooLong, _) => Kind::TooLong,
        (Concern::None, _) if problem.severity > Severity::Note => Kind::Unread,
        (Concern::None, ProblemText::Table(sym)) if tables.is_dialect(sym) => Kind::Dialect,
        (Concern::None, _) => return None,
    };
    let key = match problem.text {
        ProblemText::Fixed(text) => Some(TextKey::Fixed(text)),
        ProblemText::Table(sym) => Some(TextKey::Table(std::ptr::from_ref(tables).addr(), sym.0)),
        ProblemText::ShortFor(_) | ProblemText::Owned(_) => None,
    };
    Some((kind, key))
}

/// The text of a problem, with its numbers.
fn text_of(problem: &Problem, tables: &Tables, tree: &Tree) -> String {
    let mut text = String::new();
    match problem.text {
        ProblemText::Owned(place) => text.push_str(tree.owned(place).raw()),
        ProblemText::Table(sym) => text.push_str(tables.name(sym)),
        ProblemText::Fixed(_) | ProblemText::ShortFor(_) => {
            problem.write_numbered(|sym| tables.name(sym), &mut text)
        }
    }
    text
}

/// A text without its digits, and without the `s` of what they count: `1 byte` and `2 bytes` are
/// alike.
fn without_numbers(text: &str) -> String {
    let is_digit = |c: char| c.is_ascii_digit();
    let mut form = String::new();
    let mut counted = false;
    for word in text.split_inclusive(' ') {
        let end = if counted { word.strip_suffix("s ").unwrap_or(word) } else { word };
        form.extend(end.trim_end().chars().filter(|c| !is_digit(*c)));
        counted = word.trim_end().chars().all(is_digit);
    }
    form
}

/// One conclusion for all problems of one severity.
fn together(groups: &[&ProblemGroup], severity: Severity) -> Option<Conclusion> {
    let worst = groups.iter().max_by_key(|group| group.count)?;
    let count: u64 = groups.iter().map(|group| group.count).sum();
    let (weight, what) = match severity {
        Severity::Error => (Weight::Trouble, "something could not be read"),
        _ => (Weight::Hint, "something is not as the protocol asks"),
    };
    let further = match groups.len() {
        1 => String::new(),
        n => format!(", and {} other kinds", n - 1),
    };
    let often = if groups.len() > 1 { ", most often" } else { "" };
    let text = format!(
        "{what} at {}{often}: {} ({}, record {}){further}",
        counted(count, "place"),
        worst.example,
        worst.message,
        worst.record
    );
    let records = groups.iter().map(|group| group.record).collect();
    let frames = groups.iter().map(|group| group.frame).collect();
    let word = severity.word();
    let conclusion = Conclusion::new(weight, Kind::Unread, text).showing(records, frames);
    Some(conclusion.sized(count).more(format!("moulsniff … -Y 'problems[*].severity == {word}'")))
}

impl ProblemGroup {
    fn conclude(&self) -> Conclusion {
        let ProblemGroup { count, example, message, record, frame, .. } = self;
        let subject = match self.kind {
            Kind::TooLong => "a value is larger than its bound: ",
            Kind::Dialect => "some messages are ",
            _ => "",
        };
        let text = match count {
            1 => format!("{subject}{example} ({message}, record {record})"),
            n => format!(
                "{subject}{example} ({}, the first one {message}, record {record})",
                counted(*n, "message")
            ),
        };
        let weight = if self.severity > Severity::Note && self.kind == Kind::UnknownVersion {
            Weight::Trouble
        } else {
            Weight::Hint
        };
        Conclusion::new(weight, self.kind, text)
            .showing(vec![*record], vec![*frame])
            .sized(*count)
            .more(format!("moulsniff … -Y 'record == {record}'"))
    }
}
