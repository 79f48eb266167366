//! Annotated trees for people: one line for the message, then one line for each field with its
//! value, the value's name and its meaning.

mod answers;
mod lines;
mod links;
mod meaning;
mod problems;
mod value;

use std::io::Write;

use super::Zone;
use super::clock::Clock;
use super::json;
use super::paint::{Paint, Style};
use super::scratch::{Scratch, TextWriter};
use super::{PrintedTime, TimeForm};
use crate::capture::Time;
use crate::captured::{Captured, Escaped};
use crate::digits::counted;
use crate::facts::{InfoSource, definition};
use crate::print::view::PrintView;
use crate::record::{Body, MessageView, Names, Record};
use crate::session::{Event, EventKind, Message};
use crate::table::Tables;
use lines::{LineState, lines};
pub use meaning::{meaning, time_of};
use problems::problem_lines;

/// How trees are written.
#[derive(Clone, Debug, Default)]
pub struct TreeOptions {
    /// Colours.
    pub paint: Paint,
    /// Whether secrets are replaced by their length.
    pub redact: bool,
    /// The bytes below each message.
    pub bytes: bool,
    /// Which time is shown for each record.
    pub time: TimeForm,
    /// The zone of times of day.
    pub zone: Zone,
}

/// Writes records as trees into a buffer.
#[derive(Clone, Default)]
pub struct TreeWriter {
    formatter: TreeFormatter,
    scratch: Scratch,
}

/// What a writer remembers.
#[derive(Clone, Default)]
struct TreeFormatter {
    options: TreeOptions,
    clock: Clock,
    state: LineState,
    text: String,
}

impl TreeWriter {
    /// A writer with these options.
    pub fn new(options: TreeOptions) -> Self {
        let clock = Clock::in_zone(options.zone.clone());
        TreeWriter {
            formatter: TreeFormatter { options, clock, ..TreeFormatter::default() },
            scratch: Scratch::default(),
        }
    }

    /// The zone of its times.
    pub fn zone(&self) -> Zone {
        self.formatter.options.zone.clone()
    }

    /// Appends a record.
    pub fn record(&mut self, record: &Record<'_>, time: PrintedTime, out: &mut Vec<u8>) {
        let mut w = self.scratch.writer(out);
        self.formatter.record(record, time, &mut w);
        w.finish();
    }

    /// Appends the fields, problems and, where asked for, bytes of a tree.
    pub fn body(&mut self, message: MessageView<'_>, names: Names<'_>, out: &mut Vec<u8>) {
        let mut w = self.scratch.writer(out);
        self.formatter.body(message, names, &mut w);
        w.finish();
    }

    /// Appends the line of a message, and the one that says what it is about, without its fields.
    pub fn message_line(
        &mut self,
        message: &Message<'_>,
        view: MessageView<'_>,
        out: &mut Vec<u8>,
    ) {
        let mut w = self.scratch.writer(out);
        let view = PrintView { message: view, redact: self.formatter.options.redact };
        self.formatter.message_line(message, &view, Names::default(), &mut w);
        w.finish();
    }
}

impl TreeFormatter {
    fn record(&mut self, record: &Record<'_>, time: PrintedTime, w: &mut TextWriter<'_>) {
        let names = record.names;
        if time.new_day {
            self.day_line(record.at.time, w);
        }
        self.head(record, time, w);
        match &record.body {
            Body::Message { message, tables, tree } => {
                let view = PrintView {
                    message: MessageView { tables, tree, bytes: message.bytes },
                    redact: self.options.redact,
                };
                self.message_line(message, &view, names, w);
                self.body(view.message, names, w);
                if names.forgotten {
                    painted(w, &self.options.paint.dim, self.options.paint.marks.rule);
                    painted(
                        w,
                        &self.options.paint.dim,
                        "the oldest names are forgotten from here on",
                    );
                    w.byte(b'\n');
                }
            }
            Body::Event(event) => self.event(event, w),
            Body::StreamEnd { text, counts, .. } => {
                painted(w, &self.options.paint.dim, self.options.paint.marks.rule);
                let out = w.vec();
                let _ = write!(out, "{}: {}", Escaped(text), counted(counts.payload, "byte"));
                let parts = [
                    ("explained", counts.explained),
                    ("opaque", counts.opaque),
                    ("undecoded", counts.undecoded),
                    ("not opened by any key", counts.closed),
                    ("lost", counts.lost),
                ];
                for (word, n) in parts.into_iter().filter(|p| p.1 > 0) {
                    let _ = write!(out, ", {n} {word}");
                }
                out.push(b'\n');
            }
        }
    }

    fn event(&self, event: &Event, w: &mut TextWriter<'_>) {
        let paint = match event.kind {
            EventKind::Key { .. } | EventKind::Open | EventKind::Close | EventKind::Remark => {
                &self.options.paint.meaning
            }
            _ => &self.options.paint.bad,
        };
        painted(w, paint, self.options.paint.marks.rule);
        painted_captured(w, paint, Captured::new(&event.text));
        let out = w.vec();
        if let (Some(offset), Some(length)) = (event.offset, event.length) {
            // The text may have said how many bytes there are.
            let bytes = counted(length, "byte");
            let said = length == 0 || event.text.starts_with(&bytes);
            let _ = if said {
                write!(out, "  at {offset}")
            } else {
                write!(out, "  {bytes} at {offset}")
            };
        }
        out.push(b'\n');
        if self.options.bytes && !event.bytes.is_empty() {
            value::dump_event(event, self.options.redact, &self.options.paint, out);
        }
    }

    fn body(&mut self, message: MessageView<'_>, names: Names<'_>, w: &mut TextWriter<'_>) {
        let view = PrintView { message, redact: self.options.redact };
        lines(&view, names, &self.options, &mut self.state, w);
        problem_lines(message.tree, message.tables, &self.options.paint, &mut self.text, w);
        if self.options.bytes {
            value::dump(&view, &self.options.paint, w.vec());
        }
    }

    fn day_line(&mut self, time: Time, w: &mut TextWriter<'_>) {
        let dim = &self.options.paint.dim;
        w.raw(dim.on.as_bytes());
        self.clock.append_date(time, w);
        w.raw(dim.off.as_bytes());
        w.byte(b'\n');
    }

    /// `#12  frame 57  09:30:27.123456  tcp 3  auth  client ▸ server  `
    fn head(&mut self, record: &Record<'_>, time: PrintedTime, w: &mut TextWriter<'_>) {
        let dim = &self.options.paint.dim;
        w.raw(dim.on.as_bytes());
        w.byte(b'#');
        w.number(record.number);
        w.fixed(b"  frame ");
        w.number(record.at.frame);
        w.fixed(b"  ");
        match self.options.time {
            TimeForm::Absolute => self.clock.append_clock(record.at.time, w),
            TimeForm::Relative => seconds(w, time.since_first),
            TimeForm::Delta => seconds(w, time.since_previous),
        }
        w.fixed(b"  ");
        w.word(record.transport.word());
        w.byte(b' ');
        w.number(record.stream.into());
        w.fixed(b"  ");
        w.raw(record.service.as_bytes());
        w.fixed(b"  ");
        w.word(record.from.word());
        w.word(self.options.paint.marks.arrow);
        w.word(record.from.other().word());
        w.raw(dim.off.as_bytes());
        w.fixed(b"  ");
    }

    fn message_line(
        &mut self,
        message: &Message<'_>,
        view: &PrintView<'_>,
        names: Names<'_>,
        w: &mut TextWriter<'_>,
    ) {
        let PrintView { message: MessageView { tables, tree, .. }, redact } = *view;
        let def = definition(message.name, tables, tree);
        let source = InfoSource::new(message, def, view.message, redact);
        painted_captured(w, &self.options.paint.name, message.name);
        if let Some(carried) = source.carried() {
            w.byte(b' ');
            painted_captured(w, &self.options.paint.name, Captured::new(&carried));
        }
        if let Some(n) = message.number {
            w.fixed(b" (");
            message_number(n, view.message.tables, w);
            w.byte(b')');
        }
        w.fixed(b"  ");
        w.number(message.bytes.len() as u64);
        w.fixed(b" bytes at ");
        w.number(message.offset);
        if let Some(reply) = message.reply {
            w.fixed(b"   [reply to record ");
            w.number(reply.record);
            w.fixed(b", ");
            json::milliseconds(w, reply.nanos);
            w.fixed(b" ms]");
        }
        if !tree.links().is_empty() {
            links::links(message.reply.map(|r| r.record), tree.links(), w);
        }
        answers::answers(message, def, source, names, &self.options.paint, &mut self.text, w);
    }
}

/// Appends a message's number: `29`, or `Low 254, 4294902014` where the protocol's literature
/// counts in ranges.
fn message_number(number: u64, tables: &Tables, w: &mut TextWriter<'_>) {
    let Some((range, within)) = tables.number_in_range(number) else { return w.number(number) };
    let mut name = range.chars();
    if let Some(first) = name.next() {
        let _ = write!(w.vec(), "{}{} ", first.to_ascii_uppercase(), name.as_str());
    }
    if within > u64::from(u16::MAX) {
        let _ = write!(w.vec(), "0x{within:X}, ");
    } else {
        w.number(within);
        if within == number {
            return;
        }
        w.fixed(b", ");
    }
    w.number(number);
}

/// Appends nanoseconds as seconds with six decimals and an `s`.
fn seconds(w: &mut TextWriter<'_>, nanos: i64) {
    let micros = nanos.unsigned_abs() / 1000;
    let sign = if nanos < 0 { "-" } else { "" };
    w.raw(format!("{sign}{}.{:06} s", micros / 1_000_000, micros % 1_000_000).as_bytes());
}

fn painted(w: &mut TextWriter<'_>, paint: &Style, text: &'static str) {
    w.raw(paint.on.as_bytes());
    w.word(text);
    w.raw(paint.off.as_bytes());
}

fn painted_captured(w: &mut TextWriter<'_>, paint: &Style, text: Captured<'_>) {
    w.raw(paint.on.as_bytes());
    w.captured(text);
    w.raw(paint.off.as_bytes());
}
