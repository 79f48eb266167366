//! What was in a capture, counted: messages by name, problems by text, bytes by protocol, service and stream.
//!
//! Counting is all it does while records come; texts are put together when everything is told. It knows no capture and no
//! protocol, and its memory has bounds: names, texts and streams beyond them are counted together.

use std::collections::HashMap;
use std::fmt::Write;
use std::net::SocketAddr;

use super::counters::{NameCounter, OTHERS, RecentCounts};
use super::json::{number, string};
use super::paint::Marks;
use super::world::World;
use crate::captured::Escaped;
use crate::proto::{Message, Transport};
use crate::record::{Body, Counts, Outlined, Record, event_word};
use crate::table::Tables;
use crate::tree::{Problem, ProblemText, Severity, Tree};

/// Different texts of problems that are kept apart.
const TEXTS: usize = 10_000;
/// Streams that are listed one by one.
const STREAMS: usize = 10_000;

/// A stream that is over.
#[derive(Clone, Debug)]
pub struct StreamSummary {
    /// TCP or UDP.
    pub transport: Transport,
    /// Its number.
    pub stream: u32,
    /// The client's end.
    pub client: SocketAddr,
    /// The server's end.
    pub server: SocketAddr,
    /// The protocol's name.
    pub protocol: String,
    /// The service's name.
    pub service: String,
    /// The bytes of both directions.
    pub bytes: Counts,
}

/// A problem's text and its numbers, which are put in at the end.
type ProblemKey = (&'static str, i64, i64);

/// The counts.
#[derive(Default)]
pub struct Stats {
    records: u64,
    message_count: u64,
    messages: NameCounter,
    events: HashMap<&'static str, u64>,
    /// Problems whose text is the traffic's or the tables'.
    told: NameCounter,
    /// The others, with the numbers that go into their text, and those that were met last.
    problems: HashMap<ProblemKey, u64>,
    recent: RecentCounts<ProblemKey>,
    /// Problems by severity: errors, warnings, notes.
    severities: [u64; 3],
    all: Counts,
    protocols: Vec<(String, Counts)>,
    services: Vec<(String, Counts)>,
    streams: Vec<StreamSummary>,
    stream_count: u64,
    /// What streams told of the world they belong to.
    pub world: World,
}

impl Stats {
    /// Counts a record, not its bytes.
    pub fn record(&mut self, record: &Record<'_>) {
        self.records += 1;
        match &record.body {
            Body::Message { message, tables, tree } => {
                let number = tree.get(0).map_or(u32::MAX, |root| root.name.0);
                self.message(message, number, tables);
                for problem in tree.problems() {
                    self.problem(problem, tables, Some(tree));
                }
            }
            body => *self.events.entry(event_word(body)).or_default() += 1,
        }
    }

    /// Counts a message in outline, not its bytes.
    pub fn outline(&mut self, record: &Record<'_, Outlined<'_>>) {
        self.records += 1;
        let Outlined { message, id, tables, outline } = record.body;
        let number = tables.message(id).map_or(u32::MAX, |def| def.name.0);
        self.message(message, number, tables);
        for problem in outline.problems() {
            self.problem(problem, tables, None);
        }
    }

    fn message(&mut self, message: &Message<'_>, number: u32, tables: &Tables) {
        self.message_count += 1;
        self.messages.count(std::ptr::from_ref(tables).addr(), number, message.name.raw());
    }

    /// Counts a stream that is over, and its bytes.
    pub fn stream(&mut self, line: StreamSummary) {
        self.stream_count += 1;
        self.bytes(&line.protocol, &line.service, line.bytes);
        if self.streams.len() < STREAMS {
            self.streams.push(line);
        }
    }

    /// Counts bytes of a service.
    pub fn bytes(&mut self, protocol: &str, service: &str, bytes: Counts) {
        self.all.add(bytes);
        add_to(&mut self.protocols, protocol, bytes);
        add_to(&mut self.services, service, bytes);
    }

    /// Counts a problem. Only trees have texts of their own.
    fn problem(&mut self, problem: &Problem, tables: &Tables, tree: Option<&Tree>) {
        let [errors, warnings, notes] = &mut self.severities;
        match problem.severity {
            Severity::Error => *errors += 1,
            Severity::Warning => *warnings += 1,
            Severity::Note => *notes += 1,
        }
        match problem.text {
            ProblemText::Owned(place) => {
                self.told.count_text(tree.map_or("", |tree| tree.owned(place).raw()));
            }
            ProblemText::Table(sym) => self.told.count(std::ptr::from_ref(tables).addr(), sym.0, tables.name(sym)),
            ProblemText::Fixed(text) => {
                let Some((earlier, n)) = self.recent.count((text, problem.a, problem.b)) else { return };
                let full = self.problems.len() >= TEXTS && !self.problems.contains_key(&earlier);
                *self.problems.entry(if full { (OTHERS, 0, 0) } else { earlier }).or_default() += n;
            }
        }
    }

    fn all_problems(&self) -> impl Iterator<Item = (ProblemKey, u64)> {
        let told = self.problems.iter().map(|(told, n)| (*told, *n));
        told.chain(self.recent.iter().map(|(told, n)| (*told, *n)))
    }

    /// The counts as one JSON object and a line feed.
    pub fn json(&self, frames: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"frames\":");
        number(out, frames);
        for (key, n) in [("records", self.records), ("streams", self.stream_count)] {
            field(out, key);
            number(out, n);
        }
        field(out, "messages");
        map(out, &sorted(self.messages.all().map(|(k, n)| (k.to_string(), n))));
        field(out, "events");
        map(out, &sorted(self.events.iter().map(|(k, n)| (k.to_string(), *n))));
        field(out, "problems");
        map(out, &self.problem_texts(false));
        field(out, "bytes");
        self.json_bytes(out);
        if !self.world.is_empty() {
            field(out, "learned");
            self.world.json(out);
        }
        out.extend_from_slice(b"}\n");
    }

    fn json_bytes(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        counts(self.all, out);
        for (key, list) in [("by_protocol", &self.protocols), ("by_service", &self.services)] {
            field(out, key);
            out.push(b'{');
            for (i, (name, bytes)) in list.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                string(out, name);
                out.extend_from_slice(b":{");
                counts(*bytes, out);
                out.push(b'}');
            }
            out.push(b'}');
        }
        field(out, "by_stream");
        out.push(b'{');
        for (i, line) in self.sorted_streams().into_iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            string(out, &format!("{}:{}", line.transport.word(), line.stream));
            out.extend_from_slice(b":{");
            for (key, text) in [("protocol", &line.protocol), ("service", &line.service)] {
                string(out, key);
                out.push(b':');
                string(out, text);
                out.push(b',');
            }
            let ends = format!("\"client\":\"{}\",\"server\":\"{}\",", line.client, line.server);
            out.extend_from_slice(ends.as_bytes());
            counts(line.bytes, out);
            out.push(b'}');
        }
        out.push(b'}');
        if self.unlisted() > 0 {
            field(out, "streams_not_listed");
            number(out, self.unlisted());
        }
        out.push(b'}');
    }

    /// The counts as tables for the eye.
    pub fn table(&self, frames: u64, marks: Marks) -> String {
        let mut out = String::new();
        let understood = match self.all.payload {
            0 => String::new(),
            all => format!(", {} of the payload understood", share(self.all.explained + self.all.opaque, all)),
        };
        let _ = writeln!(
            out,
            "{frames} frames, {} streams, {} messages, {}{understood}",
            self.stream_count,
            self.message_count,
            by_severity(self.severities)
        );
        let mut rows = vec![("all".to_string(), self.all)];
        rows.extend(self.protocols.iter().map(|(name, c)| (name.clone(), *c)));
        rows.extend(self.services.iter().map(|(name, c)| (format!("  {name}"), *c)));
        byte_table("bytes", &rows, &mut out);
        let rows: Vec<(String, Counts)> =
            self.sorted_streams().into_iter().map(|l| (stream_name(l, marks.arrow), l.bytes)).collect();
        byte_table("streams", &rows, &mut out);
        if self.unlisted() > 0 {
            let _ = writeln!(out, "… and {} streams that are not listed", self.unlisted());
        }
        let events = sorted(self.events.iter().map(|(k, n)| (k.to_string(), *n)));
        let messages = sorted(self.messages.all().map(|(k, n)| (k.to_string(), n)));
        for (title, list) in [("messages", messages), ("events", events), ("problems", self.problem_texts(true))] {
            if !list.is_empty() {
                let _ = writeln!(out, "\n{title}");
            }
            for (name, n) in list {
                let _ = writeln!(out, "{n:>10}  {}", Escaped(&name));
            }
        }
        self.world.table(&mut out);
        out
    }

    fn unlisted(&self) -> u64 {
        self.stream_count.saturating_sub(self.streams.len() as u64)
    }

    fn sorted_streams(&self) -> Vec<&StreamSummary> {
        let mut all: Vec<&StreamSummary> = self.streams.iter().collect();
        all.sort_by_key(|l| (l.transport.word(), l.stream));
        all
    }

    /// Problems by text; those that differ in their numbers alone together, if asked for.
    fn problem_texts(&self, together: bool) -> Vec<(String, u64)> {
        let mut texts: HashMap<String, u64> = self.told.all().map(|(text, n)| (text.to_string(), n)).collect();
        for ((text, a, b), n) in self.all_problems() {
            let mut told = String::new();
            if together {
                told = text.replace("{a}", "…").replace("{b}", "…");
            } else {
                Problem::format(text, a, b, &mut told);
            }
            *texts.entry(told).or_default() += n;
        }
        sorted(texts.into_iter())
    }
}

fn add_to(list: &mut Vec<(String, Counts)>, name: &str, bytes: Counts) {
    if let Some((_, known)) = list.iter_mut().find(|(known, _)| known == name) {
        known.add(bytes);
        return;
    }
    if list.len() < STREAMS {
        list.push((name.to_string(), bytes));
    }
}

/// The most frequent first, then by name.
fn sorted(list: impl Iterator<Item = (String, u64)>) -> Vec<(String, u64)> {
    let mut all: Vec<(String, u64)> = list.collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    all
}

fn field(out: &mut Vec<u8>, key: &str) {
    out.push(b',');
    string(out, key);
    out.push(b':');
}

fn map(out: &mut Vec<u8>, list: &[(String, u64)]) {
    out.push(b'{');
    for (i, (key, n)) in list.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        string(out, key);
        out.push(b':');
        number(out, *n);
    }
    out.push(b'}');
}

/// Byte counts as the keys of an object that is open already.
fn counts(bytes: Counts, out: &mut Vec<u8>) {
    let mut text = Vec::new();
    super::json::write_counts(bytes, &mut text);
    let inner = text.strip_prefix(b"{").and_then(|t| t.strip_suffix(b"}"));
    out.extend_from_slice(inner.unwrap_or(&[]));
}

fn stream_name(l: &StreamSummary, arrow: &str) -> String {
    format!("{} {}  {} {}  {}{arrow}{}", l.transport.word(), l.stream, l.protocol, l.service, l.client, l.server)
}

/// A share of `all` in per cent. Only the whole is 100.00 %.
/// `1 error, 2 warnings, 134 notes`, without those that did not occur.
fn by_severity(counts: [u64; 3]) -> String {
    let words = [("error", "errors"), ("warning", "warnings"), ("note", "notes")];
    let said = counts.iter().zip(words).filter(|(n, _)| **n > 0);
    let said: Vec<String> = said.map(|(n, (one, more))| format!("{n} {}", if *n == 1 { one } else { more })).collect();
    if said.is_empty() { "0 problems".to_string() } else { said.join(", ") }
}

fn share(part: u64, all: u64) -> String {
    let text = format!("{:.2} %", part as f64 * 100.0 / all as f64);
    if part < all && text == "100.00 %" { "99.99 %".into() } else { text }
}

fn byte_table(title: &str, rows: &[(String, Counts)], out: &mut String) {
    if rows.is_empty() {
        return;
    }
    let width = rows.iter().map(|(name, _)| name.chars().count()).chain([title.len()]).max().unwrap_or(0);
    let _ = write!(out, "\n{title:<width$}");
    for word in ["payload", "explained", "opaque", "undecoded", "closed", "lost"] {
        let _ = write!(out, " {word:>12}");
    }
    out.push('\n');
    for (name, c) in rows {
        let _ = write!(out, "{name:<width$}");
        for n in [c.payload, c.explained, c.opaque, c.undecoded, c.closed, c.lost] {
            let _ = write!(out, " {n:>12}");
        }
        out.push('\n');
    }
}
