//! Annotated trees for the eye: one line for the message, one line a field with its value, its name and what it means.

mod lines;
mod links;
mod meaning;
mod mix;
mod names;
mod past;
mod value;

use std::io::Write;

use super::clock::Clock;
use super::json;
use super::page::{Page, Pen};
use super::paint::Paint;
use super::problem::{with_numbers, write_path};
use super::record::{Body, Record};
use crate::capture::Time;
use crate::proto::{Event, EventKind, Message};
use crate::table::Tables;
use crate::tree::{Severity, Tree};
use lines::{Memory, lines};
pub use meaning::meaning;
pub use past::{History, Past, PastAt, Pasts};
use value::View;

/// What the tree writer was asked for.
#[derive(Clone, Debug, Default)]
pub struct Style {
    /// Colours.
    pub paint: Paint,
    /// Secrets hidden.
    pub redact: bool,
    /// The bytes below each message.
    pub bytes: bool,
}

/// Writes records as trees into a buffer.
#[derive(Clone, Default)]
pub struct TreeWriter {
    hand: Hand,
    page: Page,
}

/// What a writer remembers.
#[derive(Clone, Default)]
struct Hand {
    style: Style,
    clock: Clock,
    memory: Memory,
    text: String,
}

impl TreeWriter {
    /// A writer of a style.
    pub fn new(style: Style) -> Self {
        TreeWriter { hand: Hand { style, ..Hand::default() }, page: Page::default() }
    }

    /// Appends a record; `past` is what those before it have to do with it.
    pub fn record(&mut self, record: &Record<'_>, past: Past<'_>, out: &mut Vec<u8>) {
        let mut pen = self.page.pen(out);
        self.hand.record(record, past, &mut pen);
        pen.end();
    }

    /// Appends the fields, problems and, where asked for, bytes of a tree.
    pub fn body(&mut self, tables: &Tables, tree: &Tree, bytes: &[u8], past: Past<'_>, out: &mut Vec<u8>) {
        let mut pen = self.page.pen(out);
        self.hand.body(tables, tree, bytes, past, &mut pen);
        pen.end();
    }

    /// Appends the line of a message alone.
    pub fn message_line(&mut self, message: &Message<'_>, tree: &Tree, out: &mut Vec<u8>) {
        let mut pen = self.page.pen(out);
        self.hand.message_line(message, tree, &mut pen);
        pen.end();
    }
}

impl Hand {
    fn record(&mut self, record: &Record<'_>, past: Past<'_>, pen: &mut Pen<'_>) {
        if past.new_day {
            self.day_line(record.at.time, pen);
        }
        self.head(record, pen);
        match &record.body {
            Body::Message { message, tables, tree } => {
                self.message_line(message, tree, pen);
                self.body(tables, tree, message.bytes, past, pen);
                if past.forgotten {
                    painted(pen, &self.style.paint.dim, "── the oldest names are forgotten from here on\n");
                }
            }
            Body::Event(event) => self.event(event, pen),
            Body::StreamEnd { text, counts } => {
                painted(pen, &self.style.paint.dim, "── ");
                let out = pen.whole();
                let _ = write!(out, "{text}: {} bytes", counts.payload);
                let parts = [
                    ("explained", counts.explained),
                    ("opaque", counts.opaque),
                    ("undecoded", counts.undecoded),
                    ("closed for want of a key", counts.closed),
                    ("lost", counts.lost),
                ];
                for (word, n) in parts.into_iter().filter(|p| p.1 > 0) {
                    let _ = write!(out, ", {n} {word}");
                }
                out.push(b'\n');
            }
        }
    }

    fn event(&self, event: &Event, pen: &mut Pen<'_>) {
        let paint = match event.kind {
            EventKind::Key { .. } | EventKind::Open | EventKind::Close | EventKind::Remark => &self.style.paint.meaning,
            _ => &self.style.paint.bad,
        };
        painted(pen, paint, "── ");
        painted(pen, paint, &event.text);
        let out = pen.whole();
        if let (Some(offset), Some(length)) = (event.offset, event.length) {
            // The text may have said how many.
            let said = length == 0 || event.text.starts_with(&format!("{length} bytes"));
            let _ = if said { write!(out, "  at {offset}") } else { write!(out, "  {length} bytes at {offset}") };
        }
        out.push(b'\n');
    }

    fn body(&mut self, tables: &Tables, tree: &Tree, bytes: &[u8], past: Past<'_>, pen: &mut Pen<'_>) {
        let view = View { tables, tree, bytes, redact: self.style.redact };
        lines(&view, past, &self.style, &mut self.memory, pen);
        for problem in tree.problems() {
            pen.fixed(b"  ");
            let paint = if problem.severity == Severity::Note { &self.style.paint.dim } else { &self.style.paint.bad };
            painted(pen, paint, "· ");
            painted(pen, paint, problem.severity.word());
            pen.fixed(b": ");
            if write_path(tree, tables, problem.node, false, pen) {
                pen.fixed(b": ");
            }
            pen.text(with_numbers(problem, tables, tree, &mut self.text).as_bytes());
            pen.byte(b'\n');
        }
        if self.style.bytes {
            value::dump(&view, &self.style.paint, pen.whole());
        }
    }

    fn day_line(&mut self, time: Time, pen: &mut Pen<'_>) {
        let dim = &self.style.paint.dim;
        pen.text(dim.0.as_bytes());
        self.clock.append_date(time, pen);
        pen.text(dim.1.as_bytes());
        painted(pen, dim, " (UTC)");
        pen.byte(b'\n');
    }

    /// `#12  frame 57  09:30:27.123456  tcp 3  auth  client ▸ server  `
    fn head(&mut self, record: &Record<'_>, pen: &mut Pen<'_>) {
        let dim = &self.style.paint.dim;
        pen.text(dim.0.as_bytes());
        pen.byte(b'#');
        pen.number(record.number);
        pen.fixed(b"  frame ");
        pen.number(record.at.frame);
        pen.fixed(b"  ");
        self.clock.append_clock(record.at.time, pen);
        pen.fixed(b"  ");
        pen.text(record.transport.word().as_bytes());
        pen.byte(b' ');
        pen.number(record.stream.into());
        pen.fixed(b"  ");
        pen.text(record.service.as_bytes());
        pen.fixed(b"  ");
        pen.text(record.from.word().as_bytes());
        pen.text(" ▸ ".as_bytes());
        pen.text(record.from.other().word().as_bytes());
        pen.text(dim.1.as_bytes());
        pen.fixed(b"  ");
    }

    fn message_line(&self, message: &Message<'_>, tree: &Tree, pen: &mut Pen<'_>) {
        painted(pen, &self.style.paint.name, message.name);
        if let Some(n) = message.number {
            pen.fixed(b" (");
            pen.number(n);
            pen.byte(b')');
        }
        pen.fixed(b"  ");
        pen.number(message.bytes.len() as u64);
        pen.fixed(b" bytes at ");
        pen.number(message.offset);
        if let Some(reply) = message.reply {
            pen.fixed(b"   [reply to record ");
            pen.number(reply.record);
            pen.fixed(b", ");
            json::milliseconds(pen, reply.nanos);
            pen.fixed(b" ms]");
        }
        if !tree.links().is_empty() {
            links::links(message.reply.map(|r| r.record), tree.links(), pen);
        }
        pen.byte(b'\n');
    }
}

fn painted(pen: &mut Pen<'_>, paint: &(String, String), text: &str) {
    if paint.0.is_empty() {
        pen.text(text.as_bytes());
    } else {
        [&paint.0, text, &paint.1].iter().for_each(|part| pen.text(part.as_bytes()));
    }
}
