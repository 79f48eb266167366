//! JSON: one object a line. The format is promised in `docs/json.md`.
//!
//! Most of a run's time is spent here. So the text is appended to a buffer that is used again;
//! `serde_json` would build a tree of its own for each message.

mod answers;
mod events;
mod flow;
mod named;
mod object;
mod round_trips;
mod spans;
mod strings;
mod value;
#[cfg(feature = "answers")]
mod whole;

use super::clock::Clock;
use super::problem::{any_name, problem_text_into, write_path};
use super::scratch::{Scratch, TextWriter};
use super::table_cache::Label;
use super::view::PrintView;
use crate::facts::{InfoSource, Refused, definition};
use crate::record::{Body, Record};
use crate::record::{MessageView, Names};
use crate::session::Counts;
use crate::session::Message;
use crate::tree::{LinkKind, Node, Problem, RecordLink, TextKind, Tree};
pub use answers::called;
use flow::FlowTexts;
pub use object::{JsonObject, json_list, json_object};
pub use round_trips::json_round_trips;
pub(super) use strings::{escaped as write_escaped, hex as write_hex};
use value::TooDeep;
pub(super) use value::text;
#[cfg(feature = "answers")]
pub use whole::{indented, one_line};

/// How JSON is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct JsonOptions {
    /// Whether `fields` is an array of spans.
    pub spans: bool,
    /// Whether secrets are replaced by their length.
    pub redact: bool,
}

/// Writes records as JSON lines into a buffer.
#[derive(Clone, Default)]
pub struct JsonWriter {
    formatter: JsonFormatter,
    scratch: Scratch,
}

/// What a writer remembers.
#[derive(Clone, Default)]
struct JsonFormatter {
    options: JsonOptions,
    clock: Clock,
    /// Where records go, as text.
    flows: FlowTexts,
    state: value::ValueState,
    text: String,
}

impl JsonWriter {
    /// A writer with these options.
    pub fn new(options: JsonOptions) -> Self {
        JsonWriter {
            formatter: JsonFormatter { options, ..JsonFormatter::default() },
            scratch: Scratch::default(),
        }
    }

    /// Appends a record and a line feed.
    pub fn record(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        let mut w = self.scratch.writer(out);
        self.formatter.record(record, &mut w);
        w.finish();
    }

    /// Appends the keys of a message, from `message` on.
    pub fn message_body(
        &mut self,
        message: &Message<'_>,
        view: MessageView<'_>,
        out: &mut Vec<u8>,
    ) {
        let mut w = self.scratch.writer(out);
        let view = self.formatter.view(view);
        self.formatter.message_body(message, &view, Names::default(), &mut w);
        w.finish();
    }

    /// Appends the fields of the tree's first node, as the options ask.
    pub fn fields(&mut self, view: MessageView<'_>, out: &mut Vec<u8>) {
        let mut w = self.scratch.writer(out);
        self.formatter.fields(&self.formatter.view(view), &mut w);
        w.finish();
    }

    /// Appends one value of the tree, by the writer's options.
    pub fn value(&mut self, view: MessageView<'_>, node: u32, out: &mut Vec<u8>) {
        let mut w = self.scratch.writer(out);
        value::value(&self.formatter.view(view), &mut self.formatter.state, node, &mut w);
        w.finish();
    }

    /// Appends `,"problems":[…]` where there are any.
    pub fn problems(&mut self, view: MessageView<'_>, out: &mut Vec<u8>) {
        if !view.tree.problems().is_empty() {
            out.extend_from_slice(b",\"problems\":");
            self.problem_list(view, out);
        }
    }

    /// Appends the array of a message's problems.
    pub fn problem_list(&mut self, view: MessageView<'_>, out: &mut Vec<u8>) {
        let mut w = self.scratch.writer(out);
        self.formatter.problems(&self.formatter.view(view), None, &mut w);
        w.finish();
    }

    /// Appends the object of one of a message's problems; nothing where there is no such.
    pub fn problem(&mut self, view: MessageView<'_>, index: usize, out: &mut Vec<u8>) {
        let mut w = self.scratch.writer(out);
        if let Some(problem) = view.tree.problems().get(index) {
            self.formatter.problem(&self.formatter.view(view), problem, &mut w);
        }
        w.finish();
    }

    /// Appends the object of what earlier records call a message's numbers; nothing where they call
    /// none of them anything.
    pub fn names(&mut self, view: MessageView<'_>, names: Names<'_>, out: &mut Vec<u8>) {
        let mut w = self.scratch.writer(out);
        let view = self.formatter.view(view);
        self.formatter.name_object(names, &view, b"{\"", &mut w);
        w.finish();
    }

    /// Appends the object of what a message says no with.
    pub fn refusal(&mut self, view: MessageView<'_>, refused: &Refused<'_>, out: &mut Vec<u8>) {
        let mut w = self.scratch.writer(out);
        let view = self.formatter.view(view);
        self.formatter.refused(refused, &view, &mut w);
        w.finish();
    }

    /// Appends the array of a message's links of a kind.
    pub fn links(&mut self, tree: &Tree, kind: LinkKind, out: &mut Vec<u8>) {
        let mut w = self.scratch.writer(out);
        links(tree, kind, &mut w);
        w.finish();
    }

    /// Appends the object of one link.
    pub fn link(&mut self, to: &RecordLink, out: &mut Vec<u8>) {
        let mut w = self.scratch.writer(out);
        link(to, &mut w);
        w.finish();
    }
}

impl JsonFormatter {
    fn view<'a>(&self, message: MessageView<'a>) -> PrintView<'a> {
        PrintView { message, redact: self.options.redact }
    }

    fn record(&mut self, record: &Record<'_>, w: &mut TextWriter<'_>) {
        w.fixed(b"{\"record\":");
        w.number(record.number);
        w.fixed(b",\"time\":\"");
        self.clock.append(record.at.time, w);
        w.fixed(b"\",\"frame\":");
        w.number(record.at.frame);
        self.flows.append(record, w);
        match &record.body {
            Body::Message { message, tables, tree } => {
                let view = self.view(MessageView { tables, tree, bytes: message.bytes });
                self.message_body(message, &view, record.names, w);
            }
            Body::Event(event) => events::event_body(event, self.options.redact, w),
            Body::StreamEnd { end, text, counts, .. } => {
                events::stream_end(*end, text, *counts, w.vec())
            }
        }
        w.fixed(b"}\n");
    }

    fn message_body(
        &mut self,
        message: &Message<'_>,
        view: &PrintView<'_>,
        names: Names<'_>,
        w: &mut TextWriter<'_>,
    ) {
        w.fixed(b"\"message\":");
        strings::quoted(w, TextKind::Utf8, message.name.raw().as_bytes());
        if let Some(n) = message.number {
            w.fixed(b",\"type\":");
            w.number(n);
        }
        let def = definition(message.name, view.message.tables, view.message.tree);
        let source = InfoSource::new(message, def, view.message, view.redact);
        if let Some(carried) = source.carried() {
            w.fixed(b",\"carries\":");
            strings::quoted(w, TextKind::Utf8, carried.as_bytes());
        }
        w.fixed(b",\"offset\":");
        w.number(message.offset);
        w.fixed(b",\"length\":");
        w.number(message.bytes.len() as u64);
        if let Some(reply) = message.reply {
            w.fixed(b",\"reply_to\":");
            w.number(reply.record);
            w.fixed(b",\"elapsed_ms\":");
            milliseconds(w, reply.nanos);
        }
        for kind in [LinkKind::SentAgain, LinkKind::Acknowledges] {
            if view.message.tree.links().iter().any(|link| link.kind == kind) {
                w.fixed(b",\"");
                w.word(kind.word());
                w.fixed(b"\":");
                links(view.message.tree, kind, w);
            }
        }
        self.before_fields(message, def, &source, view, names, w);
        w.fixed(b",\"fields\":");
        self.state.depth.too_deep = None;
        self.fields(view, w);
        self.name_object(names, view, b",\"names\":{\"", w);
        let too_deep = self.state.depth.too_deep.take();
        if !view.message.tree.problems().is_empty() || too_deep.is_some() {
            w.fixed(b",\"problems\":");
            self.problems(view, too_deep, w);
        }
    }

    fn fields(&mut self, view: &PrintView<'_>, w: &mut TextWriter<'_>) {
        let state = &mut self.state;
        if self.options.spans {
            spans::spans_of(view, state, 0, 0, w)
        } else {
            value::inside(view, state, 0, w)
        }
    }

    /// Appends the array of problems. `too_deep`, where something was too deep for JSON, is one
    /// more.
    fn problems(
        &mut self,
        view: &PrintView<'_>,
        too_deep: Option<TooDeep>,
        w: &mut TextWriter<'_>,
    ) {
        w.byte(b'[');
        if let Some(TooDeep { first, count }) = too_deep {
            w.fixed(b"{\"severity\":\"note\",\"field\":\"");
            self.path(view, first, w);
            w.fixed(b"\",\"text\":\"deeper than jq reads: ");
            w.number(count.into());
            w.fixed(b" of these values are written as text\"}");
            if !view.message.tree.problems().is_empty() {
                w.byte(b',');
            }
        }
        for (i, problem) in view.message.tree.problems().iter().enumerate() {
            if i > 0 {
                w.byte(b',');
            }
            self.problem(view, problem, w);
        }
        w.byte(b']');
    }

    fn problem(&mut self, view: &PrintView<'_>, problem: &Problem, w: &mut TextWriter<'_>) {
        let PrintView { message: MessageView { tables, tree, bytes }, redact } = *view;
        w.fixed(b"{\"severity\":\"");
        w.word(problem.severity.word());
        w.fixed(b"\",\"field\":\"");
        self.path(view, problem.node, w);
        w.fixed(b"\",\"text\":\"");
        strings::escaped(
            w,
            problem_text_into(problem, tables, tree, &mut self.text).raw().as_bytes(),
        );
        w.byte(b'"');
        if let Some((buffer, start, len)) = problem.bytes {
            let from = start as usize;
            let to = start as usize + len as usize;
            w.fixed(b",\"bytes\":\"");
            if redact && tree.secrets(buffer).any(|secret| secret.0 < to && from < secret.1) {
                w.raw(format!("<redacted, {len} bytes>").as_bytes());
            } else {
                strings::hex(w, tree.bytes(buffer, bytes).get(from..to).unwrap_or(&[]));
            }
            w.byte(b'"');
        }
        w.byte(b'}');
    }

    /// Appends the path of a node, escaped for JSON, without quotes.
    fn path(&mut self, view: &PrintView<'_>, node: u32, w: &mut TextWriter<'_>) {
        let cache = value::cache(&mut self.state.caches, view.message.tables);
        write_path(view.message.tree, node, w, |name, w| {
            let name = match cache.labels.get(name.0 as usize) {
                Some(label) if label.length() <= Label::MOST => {
                    let name = value::key_text(label);
                    w.raw(name);
                    name
                }
                _ => {
                    let name =
                        any_name(view.message.tree, view.message.tables, name).raw().as_bytes();
                    strings::escaped(w, name);
                    name
                }
            };
            !name.is_empty()
        });
    }
}

/// Appends the links of a kind as an array.
fn links(tree: &Tree, kind: LinkKind, w: &mut TextWriter<'_>) {
    w.byte(b'[');
    for (i, of) in tree.links().iter().filter(|l| l.kind == kind).enumerate() {
        if i > 0 {
            w.byte(b',');
        }
        link(of, w);
    }
    w.byte(b']');
}

fn link(of: &RecordLink, w: &mut TextWriter<'_>) {
    w.fixed(b"{\"record\":");
    w.number(of.record);
    w.fixed(b",\"elapsed_ms\":");
    milliseconds(w, of.nanos);
    w.byte(b'}');
}

/// Appends a value that is neither a plain number nor a text, without the quotes that JSON would
/// have.
#[inline]
pub(super) fn unquoted(message: MessageView<'_>, node: &Node, w: &mut TextWriter<'_>) {
    value::unquoted(&PrintView { message, redact: false }, node, w);
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
pub(super) fn milliseconds(w: &mut TextWriter<'_>, nanos: i64) {
    let micros = nanos / 1000;
    if micros < 0 {
        w.byte(b'-');
    }
    w.number(micros.unsigned_abs() / 1000);
    let decimals = micros.unsigned_abs() % 1000;
    if decimals > 0 {
        let [a, b, c] =
            [decimals / 100, decimals / 10 % 10, decimals % 10].map(|digit| b'0' + digit as u8);
        let zeros = [c, b].iter().take_while(|digit| **digit == b'0').count();
        w.block(&[b'.', a, b, c], 4 - zeros);
    }
}

/// Appends a JSON string with its quotes.
pub fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    escaped(out, text);
    out.push(b'"');
}

/// Appends a text, escaped for JSON, without its quotes.
pub fn escaped(out: &mut Vec<u8>, text: &str) {
    escaped_bytes(out, text.as_bytes());
}

/// The same for UTF-8 as bytes. JSON would allow DEL, C1 and bidirectional controls as they are;
/// they are escaped for those who print JSON on a terminal.
fn escaped_bytes(out: &mut Vec<u8>, mut rest: &[u8]) {
    while let Some(at) = strings::first_special(rest) {
        let (plain, from) = rest.split_at(at);
        out.extend_from_slice(plain);
        let Some((byte, after)) = from.split_first() else { break };
        rest = after;
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x80.. => match strings::control(from) {
                Some((c, length)) => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
                    }
                    rest = from.get(length..).unwrap_or(&[]);
                }
                // Another character whose first byte is the same.
                None => out.push(*byte),
            },
            other => out.extend_from_slice(format!("\\u{other:04x}").as_bytes()),
        }
    }
    out.extend_from_slice(rest);
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
        let mut scratch = Scratch::default();
        let mut w = scratch.writer(&mut out);
        for nanos in [3_400_999, 0, 999, 1_000, -1_500_000, 2_000_000_000, 12_034_000] {
            milliseconds(&mut w, nanos);
            w.byte(b' ');
        }
        w.finish();
        assert_eq!(String::from_utf8_lossy(&out), "3.4 0 0 0.001 -1.5 2000 12.034 ");
    }
}
