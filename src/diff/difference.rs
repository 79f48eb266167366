//! The differences as outputs report them: one for each message or field, with the records of both
//! captures.

use std::collections::HashSet;

use super::bounds::DiffBounds;
use super::compare::{Comparison, Finding, LostMessages, PairFindings, UnreadBytes, scope};
use super::detail::{ALLOCATION, DetailMessage, DetailStore};
use super::detail_lines::{FieldComparer, FieldLine};
use super::digest::{CaptureDigest, MessageDigest, MessageName, NO_PEER};
use super::lane_digest::LossCause;
use super::renaming::{Naming, Said};

/// What differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DifferenceKind {
    /// A message of the first capture alone.
    OnlyA,
    /// A message of the second capture alone.
    OnlyB,
    /// A field's value.
    Value,
    /// The form in which something is written.
    Form,
    /// The order of messages.
    Order,
    /// A refusal that the other capture does not have.
    Refused,
    /// The time until a reply.
    Latency,
    /// How many bytes of a direction are not understood, or not opened by any key.
    Unread,
}

impl DifferenceKind {
    /// All of them, in the order in which they are counted.
    pub const ALL: [DifferenceKind; 8] = [
        DifferenceKind::OnlyA,
        DifferenceKind::OnlyB,
        DifferenceKind::Value,
        DifferenceKind::Form,
        DifferenceKind::Order,
        DifferenceKind::Refused,
        DifferenceKind::Latency,
        DifferenceKind::Unread,
    ];

    /// The word in the JSON.
    pub fn word(self) -> &'static str {
        match self {
            DifferenceKind::OnlyA => "only_a",
            DifferenceKind::OnlyB => "only_b",
            DifferenceKind::Value => "value",
            DifferenceKind::Form => "form",
            DifferenceKind::Order => "order",
            DifferenceKind::Refused => "refused",
            DifferenceKind::Latency => "latency",
            DifferenceKind::Unread => "unread",
        }
    }
}

/// A record of one of the captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordOf {
    /// Its number.
    pub record: u64,
    /// `tcp` or `udp`.
    pub transport: &'static str,
    /// The number of its stream.
    pub stream: u32,
}

/// What differs at one place of two messages, or a message that only one capture has.
#[derive(Clone, Debug)]
pub struct FieldDifference {
    /// What differs.
    pub kind: DifferenceKind,
    /// The field's path; `None` where it is about the message.
    pub path: Option<String>,
    /// The values as JSON, on the side that has one.
    pub values: [Option<String>; 2],
    /// For numbers that identify another thing than in other messages.
    pub identity: Option<IdentityDifference>,
}

/// Numbers that stand for something else than they did elsewhere.
#[derive(Clone, Debug)]
pub struct IdentityDifference {
    /// The kind of thing that they identify: `player`, `node`.
    pub kind: String,
    /// The records in which one of them is paired with another number.
    pub elsewhere: [Option<RecordOf>; 2],
    /// Whether it is the first capture's number that has another partner there; otherwise the
    /// second one's.
    pub of_a: bool,
    /// How many more messages show the same.
    pub more: u32,
}

/// A message, or two messages that belong together, with all that differs.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The record of the first capture.
    pub a: Option<RecordOf>,
    /// The record of the second capture.
    pub b: Option<RecordOf>,
    /// The message's name.
    pub message: String,
    /// What the message carries, where its name does not say it.
    pub carries: Option<String>,
    /// What the message is about.
    pub info: String,
    /// Each difference.
    pub fields: Vec<FieldDifference>,
    /// All fields that are compared, where they were looked at.
    pub(super) lines: Vec<FieldLine>,
}

/// Two streams that belong together, and what differs in them.
#[derive(Clone, Debug)]
pub struct Section {
    /// What is known of the session, for people.
    pub session: String,
    /// The number of the session pair: sections of one session have the same one.
    pub session_key: [Option<u32>; 2],
    /// The protocol.
    pub protocol: &'static str,
    /// The service.
    pub service: String,
    /// The streams, such as `tcp 3`.
    pub streams: [Option<String>; 2],
    /// What differs.
    pub differences: Vec<Difference>,
    /// Differences of each kind that are only counted, because there are too many.
    pub(super) not_reported: [u64; 8],
    pub(super) lost: Vec<LostMessages>,
    /// Messages that are the same.
    pub same: u64,
}

/// How much is the same, and how much differs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DifferenceSum {
    /// Pairs of messages that are the same.
    pub same: u64,
    /// Differences of each kind, in the order of [`DifferenceKind::ALL`].
    pub kinds: [u64; 8],
    /// Messages that fell into gaps of the first capture, and of the second one.
    pub lost: [u64; 2],
    /// The same for messages that fell into bytes which were captured and could not be read.
    pub unread_messages: [u64; 2],
    /// Bytes of each capture that could not be read.
    pub unread_bytes: [u64; 2],
    /// Messages of each capture that were sent again, and are not compared.
    pub sent_again: [u64; 2],
    /// Pairs of numbers that were seen once in each capture, differ, and were taken for renamed.
    pub renamed_once: u64,
    /// Messages of each capture that were not compared, because its memory was used up.
    pub not_compared: [u64; 2],
    /// Differences among these that are only counted.
    pub not_reported: u64,
}

impl DifferenceSum {
    /// The sum of some sections.
    pub fn new(sections: &[Section], comparison: &Comparison<'_>) -> DifferenceSum {
        let not_compared = [comparison.a.beyond, comparison.b.beyond];
        let sent_again = [comparison.a.sent_again, comparison.b.sent_again];
        let unread_bytes = [comparison.a.unread(), comparison.b.unread()];
        let renamed_once = comparison.renamed_once;
        let mut sum = DifferenceSum {
            not_compared,
            sent_again,
            unread_bytes,
            renamed_once,
            ..DifferenceSum::default()
        };
        for section in sections {
            sum.same += section.same;
            for field in section.differences.iter().flat_map(|difference| &difference.fields) {
                let place = DifferenceKind::ALL.iter().position(|kind| *kind == field.kind);
                place
                    .and_then(|place| sum.kinds.get_mut(place))
                    .into_iter()
                    .for_each(|count| *count += 1);
            }
            for (count, more) in sum.kinds.iter_mut().zip(section.not_reported) {
                *count += more;
                sum.not_reported += more;
            }
            for lost in &section.lost {
                let counts = if lost.unread { &mut sum.unread_messages } else { &mut sum.lost };
                if let Some(count) = counts.get_mut(lost.side) {
                    *count += lost.messages;
                }
            }
        }
        sum
    }

    /// All differences.
    pub fn differences(&self) -> u64 {
        self.kinds.iter().sum()
    }
}

/// Everything that differs, with the fields of the messages that were looked at. Streams without
/// differences and losses are sections too, since they have messages that are the same.
pub fn differences(
    comparison: &Comparison<'_>,
    details: [&DetailStore; 2],
    bounds: DiffBounds,
) -> Vec<Section> {
    let mut reported = HashSet::new();
    let mut left = bounds.texts;
    let pairs = comparison.pairs.iter().enumerate();
    let section = |(number, pair)| {
        SectionMaker { comparison, details, number, reported: &mut reported, left: &mut left }
            .section(pair)
    };
    pairs.map(section).collect()
}

struct SectionMaker<'c, 'd> {
    comparison: &'c Comparison<'d>,
    details: [&'c DetailStore; 2],
    number: usize,
    /// Contradictions that were reported already.
    reported: &'c mut HashSet<Naming>,
    /// How many more bytes of text may be reported.
    left: &'c mut usize,
}

/// Two messages that belong together, with their fields where these are known.
struct Two<'c> {
    a: &'c MessageDigest,
    b: &'c MessageDigest,
    details: [Option<&'c DetailMessage>; 2],
}

impl<'c> SectionMaker<'c, '_> {
    fn section(&mut self, found: &PairFindings) -> Section {
        let a = self.comparison.a;
        let b = self.comparison.b;
        let stream =
            |digest: &'c CaptureDigest, place: Option<u32>| digest.streams.get(place? as usize);
        let both = [stream(a, found.pair.a), stream(b, found.pair.b)];
        let any = both.iter().flatten().next();
        let who = |digest: &CaptureDigest, place: Option<u32>| {
            digest
                .sessions
                .get(place? as usize)
                .map(|session| session.who.clone())
                .filter(|who| !who.is_empty())
        };
        let [in_a, in_b] = found.pair.sessions;
        let mut not_reported = [0; 8];
        let mut differences = Vec::new();
        for finding in &found.findings {
            if *self.left == 0 {
                let place = DifferenceKind::ALL.iter().position(|kind| *kind == kind_of(finding));
                place
                    .and_then(|place| not_reported.get_mut(place))
                    .into_iter()
                    .for_each(|count| *count += 1);
            } else if let Some(difference) = self.difference(found, finding) {
                *self.left = self.left.saturating_sub(difference.weight());
                differences.push(difference);
            }
        }
        Section {
            session: who(a, in_a).or_else(|| who(b, in_b)).unwrap_or_default(),
            session_key: found.pair.sessions,
            protocol: any.map_or("", |stream| stream.protocol),
            service: any.map_or(String::new(), |stream| stream.service.clone()),
            streams: both
                .map(|stream| stream.map(|s| format!("{} {}", s.transport.word(), s.number))),
            differences,
            not_reported,
            lost: found.lost.clone(),
            same: found.same,
        }
    }

    fn difference(&mut self, found: &PairFindings, finding: &Finding) -> Option<Difference> {
        let a = found.pair.a;
        let b = found.pair.b;
        match *finding {
            Finding::OnlyA(index) => self.only(0, index, a),
            Finding::OnlyB(index) => self.only(1, index, b),
            Finding::Moved(at) => {
                self.both(at, |two, _| (vec![plain(DifferenceKind::Order, two)], Vec::new()))
            }
            Finding::Refused(at) => self.both(at, |two, _| (vec![refusal(two)], Vec::new())),
            Finding::Slower(at) => self.both(at, |two, _| (vec![slower(two)], Vec::new())),
            Finding::Changed(at) => self.both(at, |two, maker| maker.changed(two)),
            Finding::Renamed { at, naming, known, by, more } => {
                self.reported.insert(naming);
                self.both(at, |two, maker| maker.renamed(two, [naming, known], Some(by), more))
            }
            Finding::Unread(unread) => Some(self.unread([a, b], unread)),
            Finding::Once { at, naming } => {
                self.both(at, |two, maker| maker.renamed(two, [naming, naming], None, 0))
            }
        }
    }

    fn only(&self, side: usize, index: u32, stream: Option<u32>) -> Option<Difference> {
        let digest = if side == 0 { self.comparison.a } else { self.comparison.b };
        let message = digest.message(index)?;
        let record = Some(record_of(digest, message, stream?));
        let info = self
            .details
            .get(side)?
            .get(message.record)
            .map_or(String::new(), |detail| detail.info.clone());
        let kind = if side == 0 { DifferenceKind::OnlyA } else { DifferenceKind::OnlyB };
        let field = FieldDifference { kind, path: None, values: [None, None], identity: None };
        let (a, b) = if side == 0 { (record, None) } else { (None, record) };
        let MessageName { message, carries } = digest.name(message);
        Some(Difference { a, b, message, carries, info, fields: vec![field], lines: Vec::new() })
    }

    /// Bytes of a direction that could not be read.
    fn unread(&self, streams: [Option<u32>; 2], unread: UnreadBytes) -> Difference {
        let of = |side: usize, digest: &CaptureDigest| {
            let stream = *streams.get(side)?;
            let record = *unread.records.get(side)?;
            let stream = digest.streams.get(stream? as usize)?;
            Some(RecordOf {
                record: record?,
                transport: stream.transport.word(),
                stream: stream.number,
            })
        };
        let (path, what) = match unread.cause {
            LossCause::Closed => ("bytes.closed", "that no key opens"),
            LossCause::Undecoded | LossCause::Gap => ("bytes.undecoded", "that are in no message"),
        };
        let info = format!("bytes of the {} {what}", unread.from.word());
        let values = unread.bytes.map(|bytes| Some(bytes.to_string()));
        let fields = vec![FieldDifference {
            kind: DifferenceKind::Unread,
            path: Some(path.to_string()),
            values,
            identity: None,
        }];
        let a = of(0, self.comparison.a);
        let b = of(1, self.comparison.b);
        let message = String::new();
        Difference { a, b, message, carries: None, info, fields, lines: Vec::new() }
    }

    fn both(
        &mut self,
        at: Said,
        tell: impl FnOnce(&Two<'c>, &mut Self) -> (Vec<FieldDifference>, Vec<FieldLine>),
    ) -> Option<Difference> {
        let a = self.comparison.a;
        let b = self.comparison.b;
        let left = a.message(at.a)?;
        let right = b.message(at.b)?;
        let [of_a, of_b] = self.details;
        let details = [of_a.get(left.record), of_b.get(right.record)];
        let pair = self.comparison.pairs.get(self.number)?.pair;
        let (fields, lines) = tell(&Two { a: left, b: right, details }, self);
        let MessageName { message, carries } = a.name(left);
        (!fields.is_empty()).then(|| Difference {
            a: pair.a.map(|stream| record_of(a, left, stream)),
            b: pair.b.map(|stream| record_of(b, right, stream)),
            message,
            carries,
            info: details[0].or(details[1]).map_or(String::new(), |detail| detail.info.clone()),
            fields,
            lines,
        })
    }

    /// Fields whose values differ, and forms.
    fn changed(&mut self, two: &Two<'_>) -> (Vec<FieldDifference>, Vec<FieldLine>) {
        let [Some(a), Some(b)] = two.details else { return (vec![unseen()], Vec::new()) };
        let lines = self.lines(a, b, two.a.peer != NO_PEER && two.b.peer != NO_PEER, None);
        let mut out = Vec::new();
        let form = two.a.form != two.b.form;
        if form {
            out.push(form_difference(a, b));
        }
        for line in lines.iter().filter(|line| !line.same) {
            // A part in another form has other fields: reported once.
            if form && line.values.contains(&None) {
                continue;
            }
            let identity = match line.against {
                Some((naming, ..)) if !self.reported.insert(naming) => continue,
                Some((naming, known, by)) => Some(self.identity(naming, known, Some(by), 0)),
                None => None,
            };
            let path = Some(line.path.clone());
            let values = line.values.clone();
            out.push(FieldDifference { kind: DifferenceKind::Value, path, values, identity });
        }
        if out.is_empty() && lines.iter().all(|line| line.same) {
            out.push(unseen());
        }
        (out, lines)
    }

    fn lines(
        &self,
        a: &DetailMessage,
        b: &DetailMessage,
        tied: bool,
        sought: Option<Naming>,
    ) -> Vec<FieldLine> {
        let renaming = &self.comparison.renaming;
        let scope = scope(self.number);
        let mut comparer = FieldComparer { renaming, scope, tied, sought, lines: Vec::new() };
        comparer.compare("fields", &a.fields, &b.fields);
        comparer.lines
    }

    /// A number that is paired with another one than in other messages; or, if no other message has
    /// it, a number that occurs once.
    fn renamed(
        &self,
        two: &Two<'_>,
        names: [Naming; 2],
        by: Option<Said>,
        more: u32,
    ) -> (Vec<FieldDifference>, Vec<FieldLine>) {
        let [naming, known] = names;
        let lines = match two.details {
            [Some(a), Some(b)] => self.lines(a, b, false, by.is_none().then_some(naming)),
            _ => Vec::new(),
        };
        let here =
            lines.iter().find(|line| line.against.is_some_and(|(other, ..)| other == naming));
        let identity = Some(self.identity(naming, known, by, more));
        let field = FieldDifference {
            kind: DifferenceKind::Value,
            path: Some(here.map_or("fields".to_string(), |line| line.path.clone())),
            values: here.map_or([None, None], |line| line.values.clone()),
            identity,
        };
        (vec![field], lines)
    }

    fn identity(
        &self,
        naming: Naming,
        known: Naming,
        by: Option<Said>,
        more: u32,
    ) -> IdentityDifference {
        let find = |digest: &CaptureDigest, index: u32| {
            let message = digest.message(index)?;
            let stream = digest.streams.get(message.stream as usize)?;
            Some(RecordOf {
                record: message.record,
                transport: stream.transport.word(),
                stream: stream.number,
            })
        };
        IdentityDifference {
            kind: self.comparison.kind_name(naming.kind).to_string(),
            elsewhere: by.map_or([None, None], |by| {
                [find(self.comparison.a, by.a), find(self.comparison.b, by.b)]
            }),
            of_a: known.a == naming.a,
            more,
        }
    }
}

/// The kind of a finding whose fields are not looked at.
fn kind_of(finding: &Finding) -> DifferenceKind {
    match finding {
        Finding::OnlyA(_) => DifferenceKind::OnlyA,
        Finding::OnlyB(_) => DifferenceKind::OnlyB,
        Finding::Moved(_) => DifferenceKind::Order,
        Finding::Changed(_) | Finding::Renamed { .. } | Finding::Once { .. } => {
            DifferenceKind::Value
        }
        Finding::Refused(_) => DifferenceKind::Refused,
        Finding::Slower(_) => DifferenceKind::Latency,
        Finding::Unread(_) => DifferenceKind::Unread,
    }
}

impl Difference {
    /// The message's name, and behind it what the message carries.
    pub(super) fn name(&self) -> String {
        match &self.carries {
            Some(carried) => format!("{} {carried}", self.message),
            None => self.message.clone(),
        }
    }

    /// The memory that it takes, roughly.
    fn weight(&self) -> usize {
        let text = |text: &String| text.len() + ALLOCATION;
        let values =
            |values: &[Option<String>; 2]| values.iter().flatten().map(text).sum::<usize>();
        let field = |field: &FieldDifference| {
            let path = field.path.as_ref().map_or(0, text);
            size_of::<FieldDifference>() + ALLOCATION + path + values(&field.values)
        };
        let line =
            |line: &FieldLine| size_of::<FieldLine>() + text(&line.path) + values(&line.values);
        let own = size_of::<Difference>() + text(&self.name()) + text(&self.info) + 2 * ALLOCATION;
        own + self.fields.iter().map(field).sum::<usize>()
            + self.lines.iter().map(line).sum::<usize>()
    }
}

fn record_of(digest: &CaptureDigest, message: &MessageDigest, stream: u32) -> RecordOf {
    let stream = digest.streams.get(stream as usize);
    RecordOf {
        record: message.record,
        transport: stream.map_or("", |stream| stream.transport.word()),
        stream: stream.map_or(0, |stream| stream.number),
    }
}

fn plain(kind: DifferenceKind, _: &Two<'_>) -> FieldDifference {
    FieldDifference { kind, path: None, values: [None, None], identity: None }
}

/// Two messages differ, and their fields were not kept because too many differ.
fn unseen() -> FieldDifference {
    let path = Some("fields".to_string());
    FieldDifference { kind: DifferenceKind::Value, path, values: [None, None], identity: None }
}

fn refusal(two: &Two<'_>) -> FieldDifference {
    let of = |detail: Option<&DetailMessage>| detail.and_then(|detail| detail.refused.clone());
    let [a, b] = two.details;
    let refused = [of(a), of(b)];
    let path = refused.iter().flatten().map(|[path, ..]| path.clone()).next();
    let value = |detail: Option<&DetailMessage>| {
        let path = path.as_ref()?;
        find_path(&detail?.fields, path.strip_prefix("fields.")?)
            .map(super::detail::DetailValue::json)
    };
    let values = [value(a), value(b)];
    FieldDifference { kind: DifferenceKind::Refused, path, values, identity: None }
}

/// The value at a path of names.
fn find_path<'v>(
    value: &'v super::detail::DetailValue,
    path: &str,
) -> Option<&'v super::detail::DetailValue> {
    path.split('.').try_fold(value, |value, name| match &value.content {
        super::detail::DetailContent::Struct(parts) => parts.iter().find(|part| part.name == name),
        _ => None,
    })
}

fn slower(two: &Two<'_>) -> FieldDifference {
    let milliseconds = |nanos: i64| Some(serde_json::Value::from(nanos as f64 / 1e6).to_string());
    let values = [milliseconds(two.a.elapsed), milliseconds(two.b.elapsed)];
    FieldDifference {
        kind: DifferenceKind::Latency,
        path: Some("elapsed_ms".to_string()),
        values,
        identity: None,
    }
}

fn form_difference(a: &DetailMessage, b: &DetailMessage) -> FieldDifference {
    let alone = |own: &DetailMessage, other: &DetailMessage| -> Vec<[String; 2]> {
        own.forms.iter().filter(|form| !other.forms.contains(form)).cloned().collect()
    };
    let in_a = alone(a, b);
    let in_b = alone(b, a);
    let path = in_a.iter().chain(&in_b).map(|[path, _]| path.clone()).next();
    let words = |forms: &[[String; 2]]| {
        let words: Vec<&str> = forms.iter().map(|[_, text]| text.as_str()).collect();
        let text = if words.is_empty() { "as usual".to_string() } else { words.join("; ") };
        Some(serde_json::Value::from(text).to_string())
    };
    FieldDifference {
        kind: DifferenceKind::Form,
        path,
        values: [words(&in_a), words(&in_b)],
        identity: None,
    }
}
