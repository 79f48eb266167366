//! One HTML page that shows a capture to readers who have neither the keys nor this program.
//!
//! The page is written from its beginning to its end while records come in. Its data is in blocks
//! of `<script type="application/octet-stream">`, in base64, and deflated (RFC 1951) but for bytes
//! that look random; the page's own script opens them. Trees and bytes are written some hundred
//! rows at a time (`chunk.rs`), so only the columns of the message list, about 50 bytes a row, stay
//! in memory. The page loads nothing: a Content-Security-Policy allows its own script and style
//! alone, by hash.
//!
//! Captured text never becomes markup: it is inside the blocks, and the script puts it into text
//! nodes.

mod chunk;
mod columns;
mod forms;
mod made_texts;
mod vault;

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::capture::Time;
use crate::captured::is_control;
use crate::digits::{counted, milliseconds, plural};
use crate::facts::{Account, Conclusion, Graph, RequestCounts, Share};
use crate::print::{conclusion_lines, format_time};
use crate::record::{Body, Record};
use crate::session::{Counts, Transport};
use crate::tree::ProblemCounts;
use chunk::ChunkBuilder;
use columns::{ReportColumns, flag};

/// Rows in a chunk at most, and bytes after which it ends: opening a record means opening one
/// chunk.
const CHUNK_ROWS: u64 = 1024;
const CHUNK_BYTES: usize = 8 << 20;

/// The most sessions in a page.
pub const MAX_SESSIONS: usize = 50_000;

/// Bytes of lines that are compressed together.
const LINES: usize = 16 << 10;

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
/// The script's files, in the order in which they need each other.
const SCRIPT: [&str; 8] = [
    include_str!("data.js"),
    include_str!("filter.js"),
    include_str!("host.js"),
    include_str!("list.js"),
    include_str!("timeline.js"),
    include_str!("detail.js"),
    include_str!("views.js"),
    include_str!("app.js"),
];

/// What goes into a report.
#[derive(Clone, Debug)]
pub struct ReportOptions {
    /// The captures' names, as the page's title.
    pub captures: Vec<String>,
    /// What the page says about its limits: a filter, hidden secrets, pseudonyms.
    pub limits: Vec<String>,
    /// Rows in the page at most; later records are counted.
    pub max_rows: u64,
    /// Whether secrets are hidden.
    pub redact: bool,
}

/// What only the whole capture tells.
#[derive(Default)]
pub struct About {
    /// How many frames there were.
    pub frames: u64,
    /// What became of the payload bytes of all recognised streams.
    pub bytes: Counts,
    /// The key files that opened connections.
    pub keys: Vec<String>,
    /// The sessions, in order.
    pub sessions: Vec<SessionRow>,
    /// How many further sessions there are: the page has at most [`MAX_SESSIONS`].
    pub sessions_left_out: u64,
    /// What is wrong, the heaviest first.
    pub conclusions: Vec<Conclusion>,
    /// The vault, or whatever the protocols keep nodes in.
    pub graph: Graph,
}

/// A session as the page shows it.
#[derive(Clone, Debug)]
pub struct ReportSession {
    /// The client's name, or its address.
    pub title: String,
    /// Whether the title is a name, and not an address.
    pub inferred: bool,
    /// What else the client is called.
    pub detail: String,
    /// Its streams.
    pub streams: Vec<(Transport, u32)>,
    /// Names of places, with the record that says each.
    pub places: Vec<(u64, String)>,
    /// Its number.
    pub number: u64,
    /// How it stands, in one word, and whether that is bad.
    pub state: (String, bool),
    /// Its first and last frame.
    pub times: [Time; 2],
    /// What it did, step by step.
    pub story: Vec<ReportStep>,
    /// How many steps more there were.
    pub steps_left_out: u64,
    /// What became of its requests, and how long their replies took.
    pub requests: RequestCounts,
    /// What packets take from the place of the capture to its servers and back, in nanoseconds:
    /// half of its streams take no longer.
    pub to_server: Option<i64>,
    /// The same to the client.
    pub to_client: Option<i64>,
}

/// A step of a session's story.
#[derive(Clone, Debug)]
pub struct ReportStep {
    /// Its record.
    pub record: u64,
    /// When it came.
    pub time: Time,
    /// What it is about, and what became of it.
    pub text: String,
    /// Whether it was refused, or never answered.
    pub is_bad: bool,
}

/// A session as it is kept until the page ends: its JSON, and what ties it to rows. There may be
/// very many.
pub struct SessionRow {
    json: Box<str>,
    streams: Box<[(Transport, u32)]>,
    places: Box<[(u64, String)]>,
}

impl SessionRow {
    /// Its memory, roughly, in bytes.
    pub fn held(&self) -> usize {
        let places = self.places.iter().map(|(_, name)| size_of::<(u64, String)>() + name.len());
        size_of::<SessionRow>()
            + self.json.len()
            + size_of_val(&*self.streams)
            + places.sum::<usize>()
    }
}

impl From<ReportSession> for SessionRow {
    fn from(session: ReportSession) -> Self {
        SessionRow {
            json: session_value(&session).to_string().into(),
            streams: session.streams.into(),
            places: session.places.into(),
        }
    }
}

/// What is known of a record beyond itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowFacts<'a> {
    /// One line that says what the record is about.
    pub info: &'a str,
    /// What the message carries, where its name does not say it.
    pub carried: Option<&'a str>,
    /// The reason where the message refuses something.
    pub refused: Option<&'a str>,
    /// Whether the protocol promises a reply.
    pub expects_reply: bool,
    /// Whether the message is the last reply to its request.
    pub last_reply: bool,
    /// The request that an event says was never answered.
    pub unanswered: Option<u64>,
}

/// Writes a report.
pub struct ReportWriter<W: Write> {
    out: W,
    options: ReportOptions,
    columns: ReportColumns,
    info: DeflateEncoder<Vec<u8>>,
    /// Lines that go into `info` together.
    lines: String,
    encoder: DeflateEncoder<Vec<u8>>,
    chunk: ChunkBuilder,
    /// The first row of each chunk that was written.
    chunks: Vec<u64>,
    /// The first row of the chunk that is made.
    next: u64,
    share: Share,
    folded: u64,
    problems: ProblemCounts,
    requests: u64,
}

impl<W: Write> ReportWriter<W> {
    /// Begins a page. What waits for its end draws on the account: where there is no room for more,
    /// later records are only counted.
    ///
    /// # Errors
    /// What writing gives.
    pub fn new(mut out: W, options: ReportOptions, account: &Account) -> io::Result<Self> {
        let script = SCRIPT.join("\n");
        let policy = format!(
            "default-src 'none'; script-src '{}'; style-src '{}'; base-uri 'none'; form-action \
             'none'; require-trusted-types-for 'script'",
            hash(&script),
            hash(STYLE)
        );
        let title = html(&options.captures.join(", "));
        let (head, _) = PAGE.split_once("{{data}}").unwrap_or((PAGE, ""));
        let head = head.replace("{{policy}}", &policy).replace("{{style}}", STYLE);
        // The title goes in last: nothing in it is taken for one of the page's own marks.
        out.write_all(head.replace("{{title}}", &title).as_bytes())?;
        let chunk = ChunkBuilder::new(options.redact);
        let [info, encoder] =
            [(); 2].map(|()| DeflateEncoder::new(Vec::new(), Compression::fast()));
        let lines = String::new();
        let columns = ReportColumns::default();
        let problems = ProblemCounts::default();
        Ok(ReportWriter {
            out,
            options,
            columns,
            info,
            lines,
            encoder,
            chunk,
            chunks: Vec::new(),
            next: 0,
            share: account.share(),
            folded: 0,
            problems,
            requests: 0,
        })
    }

    /// Adds a record as the next row.
    ///
    /// # Errors
    /// What writing gives.
    pub fn record(&mut self, record: &Record<'_>, facts: RowFacts<'_>) -> io::Result<()> {
        let mut flags = 0;
        match &record.body {
            Body::Message { tree, .. } => {
                self.problems.add(tree.problems());
                flags |= tree
                    .problems()
                    .iter()
                    .fold(0, |all, problem| all | flag::NOTE << problem.severity.index());
            }
            _ => flags |= flag::EVENT,
        }
        if facts.expects_reply {
            flags |= flag::EXPECTS;
            self.requests += 1;
        }
        let full = self.columns.rows() >= self.options.max_rows || !self.share.has_room_for(1);
        // No row comes behind one that is missing.
        if full || self.folded > 0 {
            self.folded += 1;
            return Ok(());
        }
        self.columns.push(record, flags, facts);
        self.line(facts.info)?;
        self.share.hold(self.columns.held() + self.info.get_ref().len());
        match &record.body {
            Body::Message { message, tables, tree } => {
                self.chunk.message(message, tables, tree, record.names)
            }
            _ => self.chunk.event(),
        }
        let is_full = self.chunk.rows() >= CHUNK_ROWS || self.chunk.bytes() >= CHUNK_BYTES;
        if is_full { self.write_chunk() } else { Ok(()) }
    }

    /// Ends the page.
    ///
    /// # Errors
    /// What writing gives.
    pub fn finish(mut self, about: About) -> io::Result<W> {
        if self.chunk.rows() > 0 {
            self.write_chunk()?;
        }
        self.info.write_all(self.lines.as_bytes())?;
        let info = self.info.finish()?;
        write_block(&mut self.out, "data-info", &info)?;
        let mut columns = DeflateEncoder::new(Vec::new(), Compression::fast());
        self.columns.write(&mut columns)?;
        write_block(&mut self.out, "data-columns", &columns.finish()?)?;
        for (number, session) in (1..).zip(&about.sessions) {
            self.columns.tell_session(number, session);
        }
        let bytes = about.bytes;
        let problems = self.problems;
        if about.sessions_left_out > 0 {
            let limit = format!(
                "{} {} left out; {} messages are not.",
                counted(about.sessions_left_out, "more session"),
                plural(about.sessions_left_out, "is", "are"),
                plural(about.sessions_left_out, "its", "their")
            );
            self.options.limits.push(limit);
        }
        let meta = json!({
            "frames": about.frames,
            "bytes": { "payload": bytes.payload, "explained": bytes.explained, "opaque": bytes.opaque,
                       "undecoded": bytes.undecoded, "closed": bytes.closed, "lost": bytes.lost },
            "captures": self.options.captures, "keys": about.keys, "limits": self.options.limits,
            "start": self.columns.start(), "rows": self.columns.rows(), "folded": self.folded, "chunks": self.chunks,
            "columns": self.columns.list(), "messages": self.columns.names(), "texts": self.columns.reasons(),
            "requests": self.requests,
            "vault": vault::vault(&about.graph),
            "problems": { "error": problems.errors, "warning": problems.warnings, "note": problems.notes },
            "program": concat!("moulsniff ", env!("CARGO_PKG_VERSION")),
        });
        let sessions = about.sessions.iter().map(|session| session.json.to_string());
        let mut conclusions = Vec::new();
        conclusion_lines(&about.conclusions, &mut conclusions);
        let conclusions = String::from_utf8_lossy(&conclusions);
        let conclusions = conclusions.lines().map(str::to_string);
        let streams = self.columns.streams().map(|stream| stream.to_string());
        let block = meta_block(&meta, sessions, streams, conclusions)?;
        write_block(&mut self.out, "data-meta", &block)?;
        let (_, foot) = PAGE.split_once("{{data}}").unwrap_or_default();
        self.out.write_all(foot.replace("{{script}}", &SCRIPT.join("\n")).as_bytes())?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Adds a row's line. Control characters become spaces.
    fn line(&mut self, text: &str) -> io::Result<()> {
        if text.contains(is_control) {
            self.lines.extend(text.chars().map(|c| if is_control(c) { ' ' } else { c }))
        } else {
            self.lines.push_str(text)
        }
        self.lines.push('\n');
        if self.lines.len() >= LINES {
            self.info.write_all(self.lines.as_bytes())?;
            self.lines.clear();
        }
        Ok(())
    }

    fn write_chunk(&mut self) -> io::Result<()> {
        let number = self.chunks.len();
        if !self.chunk.stored().is_empty() {
            write_block(&mut self.out, &format!("data-stored-{number}"), self.chunk.stored())?;
        }
        self.chunks.push(self.next);
        self.next += self.chunk.rows();
        self.chunk.write(&mut self.encoder)?;
        let block = self.encoder.reset(Vec::new())?;
        write_block(&mut self.out, &format!("data-chunk-{number}"), &block)
    }
}

/// The object `meta`, with three more members: lists of which each item is JSON already. There may
/// be very many items, so no tree of JSON is made of them.
fn meta_block(
    meta: &Value,
    sessions: impl Iterator<Item = String>,
    streams: impl Iterator<Item = String>,
    conclusions: impl Iterator<Item = String>,
) -> io::Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    let text = meta.to_string();
    encoder.write_all(text.strip_suffix('}').unwrap_or(&text).as_bytes())?;
    write_list(&mut encoder, "sessions", sessions)?;
    write_list(&mut encoder, "streams", streams)?;
    write_list(&mut encoder, "conclusions", conclusions)?;
    encoder.write_all(b"}")?;
    encoder.finish()
}

/// One more member of an object that has some: a list.
fn write_list(
    out: &mut impl Write,
    name: &str,
    items: impl Iterator<Item = String>,
) -> io::Result<()> {
    write!(out, ",\"{name}\":[")?;
    for (at, item) in items.enumerate() {
        let comma = if at > 0 { "," } else { "" };
        write!(out, "{comma}{item}")?;
    }
    out.write_all(b"]")
}

/// A session as the page's script knows it; times in milliseconds.
fn session_value(session: &ReportSession) -> Value {
    let RequestCounts { sent, answered, refused, unanswered, latency, network, slowest, .. } =
        &session.requests;
    let ms = |nanos: Option<i64>| nanos.map(milliseconds);
    let time = |time: Time| {
        let mut text = String::new();
        format_time(time, &mut text);
        text
    };
    let story = session.story.iter();
    let story: Vec<Value> =
        story.map(|step| json!([step.record, time(step.time), step.text, step.is_bad])).collect();
    let [from, to] = session.times.map(time);
    let (state, is_bad) = &session.state;
    json!({
        "number": session.number, "state": state, "bad": is_bad, "from": from, "to": to,
        "story": story, "steps_left_out": session.steps_left_out,
        "title": session.title, "inferred": session.inferred, "detail": session.detail,
        "sent": sent, "answered": answered, "refused": refused, "unanswered": unanswered,
        "p50": ms(latency.percentile(50)), "p95": ms(latency.percentile(95)), "max": ms(latency.max()),
        "network": ms(network.percentile(50)),
        "to_server": ms(session.to_server), "to_client": ms(session.to_client),
        "slowest": slowest.map(|slowest| slowest.record),
        "slowest_network": ms(slowest.and_then(|slowest| slowest.network)),
    })
}

fn write_block(out: &mut impl Write, id: &str, bytes: &[u8]) -> io::Result<()> {
    write!(out, "<script type=\"application/octet-stream\" id=\"{id}\">")?;
    let mut encoder = EncoderWriter::new(&mut *out, &STANDARD);
    encoder.write_all(bytes)?;
    encoder.finish()?;
    drop(encoder);
    writeln!(out, "</script>")
}

/// A source of a Content-Security-Policy: the hash of a script or style, without its quotes.
fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes())))
}

/// A text, escaped for markup.
fn html(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '{' => out.push_str("&#123;"),
            c if is_control(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
