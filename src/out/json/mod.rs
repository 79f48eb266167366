//! JSON: one object a line. The format is promised in `docs/json.md`.
//!
//! Written by hand into one buffer that is used again, since this is where most of the time goes: `serde_json` would build
//! a tree of its own for each message.

mod named;
mod spans;
mod value;

use std::net::SocketAddr;

use super::clock::Clock;
use super::kept::Kept;
use super::record::{Body, Counts, Record, event_word, write_problem_path, write_problem_text};
use crate::proto::{Event, EventKind, Message};
use crate::table::Tables;
use crate::tree::{LinkKind, Tree};

/// What the JSON writer was asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// `fields` as an array of spans.
    pub spans: bool,
    /// Secrets hidden.
    pub redact: bool,
}

/// Writes records as JSON lines into a buffer.
#[derive(Clone, Default)]
pub struct JsonWriter {
    style: Style,
    clock: Clock,
    /// The last addresses that were written, as text: they come again and again.
    ends: [Option<(SocketAddr, String)>; 4],
    next_end: usize,
    kept: Kept,
    text: String,
}

impl JsonWriter {
    /// A writer of a style.
    pub fn new(style: Style) -> Self {
        JsonWriter { style, ..JsonWriter::default() }
    }

    /// Appends a record and a line feed.
    pub fn record(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"record\":");
        number(out, record.number);
        out.extend_from_slice(b",\"time\":\"");
        self.clock.append(record.at.time, out);
        out.extend_from_slice(b"\",\"frame\":");
        number(out, record.at.frame);
        out.extend_from_slice(b",\"transport\":\"");
        out.extend_from_slice(record.transport.word().as_bytes());
        out.extend_from_slice(b"\",\"stream\":");
        number(out, u64::from(record.stream));
        out.extend_from_slice(b",\"src\":\"");
        self.endpoint(out, record.src);
        out.extend_from_slice(b"\",\"dst\":\"");
        self.endpoint(out, record.dst);
        out.extend_from_slice(b"\",\"from\":\"");
        out.extend_from_slice(record.from.word().as_bytes());
        out.extend_from_slice(b"\",\"protocol\":\"");
        out.extend_from_slice(record.protocol.as_bytes());
        out.extend_from_slice(b"\",\"service\":\"");
        out.extend_from_slice(record.service.as_bytes());
        out.extend_from_slice(b"\",");
        match &record.body {
            Body::Message { message, tables, tree } => self.message_body(message, tables, tree, out),
            Body::Event(event) => event_body(event, out),
            Body::StreamEnd { text, counts } => stream_end(text, *counts, out),
        }
        out.extend_from_slice(b"}\n");
    }

    /// Appends the keys of a message, from `message` on.
    pub fn message_body(&mut self, message: &Message<'_>, tables: &Tables, tree: &Tree, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\"message\":");
        string(out, message.name);
        if let Some(n) = message.number {
            out.extend_from_slice(b",\"type\":");
            number(out, n);
        }
        out.extend_from_slice(b",\"offset\":");
        number(out, message.offset);
        out.extend_from_slice(b",\"length\":");
        number(out, message.bytes.len() as u64);
        if let Some(reply) = message.reply {
            out.extend_from_slice(b",\"reply_to\":");
            number(out, reply.record);
            out.extend_from_slice(b",\"elapsed_ms\":");
            milliseconds(out, reply.nanos);
        }
        for kind in [LinkKind::SentAgain, LinkKind::Acknowledges] {
            links(tree, kind, out);
        }
        out.extend_from_slice(b",\"fields\":");
        self.fields(tables, tree, message.bytes, out);
        self.problems(tables, tree, message.bytes, out);
    }

    /// Appends the fields of the tree's first node, as the style asks.
    pub fn fields(&mut self, tables: &Tables, tree: &Tree, bytes: &[u8], out: &mut Vec<u8>) {
        let view = value::View { tables, tree, bytes, redact: self.style.redact };
        let kept = &mut self.kept;
        if self.style.spans { spans::spans_of(&view, kept, 0, out) } else { value::object(&view, kept, 0, out) }
    }

    /// Appends one value of the tree, as the style asks.
    pub fn value(&mut self, tables: &Tables, tree: &Tree, bytes: &[u8], node: u32, out: &mut Vec<u8>) {
        let view = value::View { tables, tree, bytes, redact: self.style.redact };
        value::value(&view, &mut self.kept, node, out);
    }

    /// Appends `,"problems":[…]` where there are any.
    pub fn problems(&mut self, tables: &Tables, tree: &Tree, bytes: &[u8], out: &mut Vec<u8>) {
        if tree.problems().is_empty() {
            return;
        }
        out.extend_from_slice(b",\"problems\":");
        let list = out.len();
        for problem in tree.problems() {
            out.extend_from_slice(b",{\"severity\":\"");
            out.extend_from_slice(problem.severity.word().as_bytes());
            out.extend_from_slice(b"\",\"field\":");
            self.text.clear();
            write_problem_path(tree, tables, problem.node, &mut self.text);
            string(out, &self.text);
            out.extend_from_slice(b",\"text\":");
            self.text.clear();
            write_problem_text(problem, tables, tree, &mut self.text);
            string(out, &self.text);
            if let Some((buffer, start, len)) = problem.bytes {
                let (from, to) = (start as usize, start as usize + len as usize);
                out.extend_from_slice(b",\"bytes\":\"");
                if self.style.redact && tree.secrets(buffer).any(|secret| secret.0 < to && from < secret.1) {
                    out.extend_from_slice(format!("<redacted, {len} bytes>").as_bytes());
                } else {
                    hex(out, tree.bytes(buffer, bytes).get(from..to).unwrap_or(&[]));
                }
                out.push(b'"');
            }
            out.push(b'}');
        }
        value::enclose(out, list, *b"[]");
    }

    fn endpoint(&mut self, out: &mut Vec<u8>, at: SocketAddr) {
        if let Some((_, text)) = self.ends.iter().flatten().find(|e| e.0 == at) {
            out.extend_from_slice(text.as_bytes());
            return;
        }
        let text = at.to_string();
        out.extend_from_slice(text.as_bytes());
        if let Some(place) = self.ends.get_mut(self.next_end % 4) {
            *place = Some((at, text));
        }
        self.next_end = self.next_end.wrapping_add(1);
    }
}

/// Appends `,"acknowledges":[…]` and its like where there are any.
fn links(tree: &Tree, kind: LinkKind, out: &mut Vec<u8>) {
    let mut first = true;
    for link in tree.links().iter().filter(|l| l.kind == kind) {
        if first {
            out.extend_from_slice(b",\"");
            out.extend_from_slice(kind.word().as_bytes());
            out.extend_from_slice(b"\":[");
        } else {
            out.push(b',');
        }
        first = false;
        out.extend_from_slice(b"{\"record\":");
        number(out, link.record);
        out.extend_from_slice(b",\"elapsed_ms\":");
        milliseconds(out, link.nanos);
        out.push(b'}');
    }
    if !first {
        out.push(b']');
    }
}

/// Appends one value without children.
pub fn scalar(tables: &Tables, tree: &Tree, bytes: &[u8], node: &crate::tree::Node, out: &mut Vec<u8>) {
    value::scalar(&value::View { tables, tree, bytes, redact: false }, node, out);
}

fn event_body(event: &Event, out: &mut Vec<u8>) {
    let name = event_word(&Body::Event(event));
    out.extend_from_slice(b"\"event\":\"");
    out.extend_from_slice(name.as_bytes());
    out.push(b'"');
    for (key, value) in [("offset", event.offset), ("length", event.length)] {
        if let Some(n) = value {
            out.extend_from_slice(format!(",\"{key}\":").as_bytes());
            number(out, n);
        }
    }
    match &event.kind {
        EventKind::Key { key_file } => {
            out.extend_from_slice(b",\"key_file\":");
            string(out, key_file);
        }
        EventKind::Resync { passed_over } => {
            out.extend_from_slice(b",\"passed_over\":");
            number(out, *passed_over);
        }
        EventKind::Limit { limit } => {
            out.extend_from_slice(b",\"limit\":");
            string(out, limit);
        }
        _ => {}
    }
    out.extend_from_slice(b",\"text\":");
    string(out, &event.text);
}

fn stream_end(text: &str, counts: Counts, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"event\":\"stream_end\",\"bytes\":");
    write_counts(counts, out);
    out.extend_from_slice(b",\"text\":");
    string(out, text);
}

/// Appends byte counts as an object.
pub fn write_counts(c: Counts, out: &mut Vec<u8>) {
    let all = [
        ("payload", c.payload),
        ("explained", c.explained),
        ("opaque", c.opaque),
        ("undecoded", c.undecoded),
        ("closed", c.closed),
        ("lost", c.lost),
    ];
    for (i, (key, n)) in all.into_iter().enumerate() {
        out.extend_from_slice(if i == 0 { b"{\"" } else { b",\"" });
        out.extend_from_slice(key.as_bytes());
        out.extend_from_slice(b"\":");
        number(out, n);
    }
    out.push(b'}');
}

/// Appends an integer.
#[inline]
pub fn number(out: &mut Vec<u8>, n: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
}

/// Appends nanoseconds as milliseconds with at most three decimals.
fn milliseconds(out: &mut Vec<u8>, nanos: i64) {
    let micros = nanos / 1000;
    if micros < 0 {
        out.push(b'-');
    }
    number(out, micros.unsigned_abs() / 1000);
    let decimals = micros.unsigned_abs() % 1000;
    if decimals > 0 {
        let digits = [decimals / 100, decimals / 10 % 10, decimals % 10].map(|digit| b'0' + digit as u8);
        let used = digits.iter().rposition(|digit| *digit != b'0').map_or(0, |at| at + 1);
        out.push(b'.');
        out.extend_from_slice(digits.get(..used).unwrap_or(&digits));
    }
}

/// Appends bytes as lower-case hex.
pub fn hex(out: &mut Vec<u8>, bytes: &[u8]) {
    let (blocks, rest) = bytes.as_chunks::<16>();
    out.reserve(bytes.len() * 2);
    for block in blocks {
        out.extend_from_slice(block.map(hex_pair).as_flattened());
    }
    for byte in rest {
        out.extend_from_slice(&hex_pair(*byte));
    }
}

/// The two digits of a byte: computed, so that many are done at once.
#[inline(always)]
fn hex_pair(byte: u8) -> [u8; 2] {
    [byte >> 4, byte & 15].map(|n| n + b'0' + if n > 9 { b'a' - b'9' - 1 } else { 0 })
}

/// Appends a JSON string with its quotes.
pub fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    escaped(out, text);
    out.push(b'"');
}

/// Appends a text as it stands between the quotes of a JSON string.
pub fn escaped(out: &mut Vec<u8>, text: &str) {
    let mut rest = text.as_bytes();
    while let Some(at) = special(rest) {
        let (plain, from) = rest.split_at(at);
        out.extend_from_slice(plain);
        let Some((byte, after)) = from.split_first() else { break };
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            other => out.extend_from_slice(format!("\\u{other:04x}").as_bytes()),
        }
        rest = after;
    }
    out.extend_from_slice(rest);
}

/// Where the first byte is that JSON has escaped: eight are looked at together, since nearly all are plain.
fn special(bytes: &[u8]) -> Option<usize> {
    let needs = |b: u8| b < 0x20 || b == b'"' || b == b'\\';
    let (words, tail) = bytes.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        if word.iter().fold(false, |found, b| found | needs(*b)) {
            return word.iter().position(|b| needs(*b)).map(|at| i * 8 + at);
        }
    }
    tail.iter().position(|b| needs(*b)).map(|at| words.len() * 8 + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped() {
        let mut out = Vec::new();
        string(&mut out, "a\"b\\\n\u{1}é");
        assert_eq!(String::from_utf8_lossy(&out), r#""a\"b\\\n\u0001é""#);
    }

    #[test]
    fn milliseconds_have_three_decimals_at_most() {
        let mut out = Vec::new();
        for nanos in [3_400_999, 0, 999, 1_000, -1_500_000, 2_000_000_000, 12_034_000] {
            milliseconds(&mut out, nanos);
            out.push(b' ');
        }
        assert_eq!(String::from_utf8_lossy(&out), "3.4 0 0 0.001 -1.5 2000 12.034 ");
    }
}
