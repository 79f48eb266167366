//! Annotated trees for the eye: one line for the message, one line a field with its value, its name and what it means.

mod lines;
mod links;
mod meaning;
mod names;
mod past;
mod value;

use std::io::Write;

use super::clock::Clock;
use super::kept::Kept;
use super::paint::Paint;
use super::record::{Body, Record, write_problem_path, write_problem_text};
use crate::capture::Time;
use crate::proto::{EventKind, Message};
use crate::table::Tables;
use crate::tree::{Severity, Tree};
use lines::Lines;
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
    style: Style,
    clock: Clock,
    kept: Kept,
    text: String,
}

impl TreeWriter {
    /// A writer of a style.
    pub fn new(style: Style) -> Self {
        TreeWriter { style, ..TreeWriter::default() }
    }

    /// Appends a record; `past` is what those before it have to do with it.
    pub fn record(&mut self, record: &Record<'_>, past: Past<'_>, out: &mut Vec<u8>) {
        if past.new_day {
            self.day_line(record.at.time, out);
        }
        self.head(record, out);
        match &record.body {
            Body::Message { message, tables, tree } => {
                self.message_line(message, tree, out);
                self.body(tables, tree, message.bytes, past, out);
                if past.forgotten {
                    painted(out, &self.style.paint.dim, "── the oldest names are forgotten from here on\n");
                }
            }
            Body::Event(event) => {
                let paint = match event.kind {
                    EventKind::Key { .. } | EventKind::Open | EventKind::Close | EventKind::Remark => {
                        &self.style.paint.meaning
                    }
                    _ => &self.style.paint.bad,
                };
                painted(out, paint, "── ");
                painted(out, paint, &event.text);
                if let (Some(offset), Some(length)) = (event.offset, event.length) {
                    // The text may have said how many.
                    let said = length == 0 || event.text.starts_with(&format!("{length} bytes"));
                    let _ =
                        if said { write!(out, "  at {offset}") } else { write!(out, "  {length} bytes at {offset}") };
                }
                out.push(b'\n');
            }
            Body::StreamEnd { text, counts } => {
                painted(out, &self.style.paint.dim, "── ");
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

    /// Appends the fields, problems and, where asked for, bytes of a tree.
    pub fn body(&mut self, tables: &Tables, tree: &Tree, bytes: &[u8], past: Past<'_>, out: &mut Vec<u8>) {
        let view = View { tables, tree, bytes, past, redact: self.style.redact };
        Lines::new(&view, &self.style, &mut self.kept, out).all();
        for problem in tree.problems() {
            out.extend_from_slice(b"  ");
            let paint = if problem.severity == Severity::Note { &self.style.paint.dim } else { &self.style.paint.bad };
            painted(out, paint, "· ");
            painted(out, paint, problem.severity.word());
            out.extend_from_slice(b": ");
            self.text.clear();
            write_problem_path(tree, tables, problem.node, &mut self.text);
            if !self.text.is_empty() {
                self.text.push_str(": ");
            }
            write_problem_text(problem, tables, tree, &mut self.text);
            out.extend_from_slice(self.text.as_bytes());
            out.push(b'\n');
        }
        if self.style.bytes {
            value::dump(&view, &self.style.paint, out);
        }
    }

    fn day_line(&mut self, time: Time, out: &mut Vec<u8>) {
        let dim = &self.style.paint.dim;
        out.extend_from_slice(dim.0.as_bytes());
        self.clock.append_date(time, out);
        out.extend_from_slice(dim.1.as_bytes());
        painted(out, dim, " (UTC)");
        out.push(b'\n');
    }

    /// `#12  frame 57  09:30:27.123456  tcp 3  auth  client ▸ server  `
    fn head(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        let dim = &self.style.paint.dim;
        out.extend_from_slice(dim.0.as_bytes());
        out.push(b'#');
        super::json::number(out, record.number);
        out.extend_from_slice(b"  frame ");
        super::json::number(out, record.at.frame);
        out.extend_from_slice(b"  ");
        self.clock.append_clock(record.at.time, out);
        out.extend_from_slice(b"  ");
        out.extend_from_slice(record.transport.word().as_bytes());
        out.push(b' ');
        super::json::number(out, record.stream);
        out.extend_from_slice(b"  ");
        out.extend_from_slice(record.service.as_bytes());
        out.extend_from_slice(b"  ");
        out.extend_from_slice(record.from.word().as_bytes());
        out.extend_from_slice(" ▸ ".as_bytes());
        out.extend_from_slice(record.from.other().word().as_bytes());
        out.extend_from_slice(dim.1.as_bytes());
        out.extend_from_slice(b"  ");
    }

    /// Appends the line of a message alone.
    pub fn message_line(&self, message: &Message<'_>, tree: &Tree, out: &mut Vec<u8>) {
        painted(out, &self.style.paint.name, message.name);
        if let Some(n) = message.number {
            out.extend_from_slice(b" (");
            super::json::number(out, n);
            out.push(b')');
        }
        out.extend_from_slice(b"  ");
        super::json::number(out, message.bytes.len());
        out.extend_from_slice(b" bytes at ");
        super::json::number(out, message.offset);
        if let Some(reply) = message.reply {
            let micros = reply.nanos / 1000;
            let _ = write!(out, "   [reply to record {}, {} ms]", reply.record, micros as f64 / 1000.0);
        }
        links::links(message.reply.map(|r| r.record), tree.links(), out);
        out.push(b'\n');
    }
}

fn painted(out: &mut Vec<u8>, paint: &(String, String), text: &str) {
    out.extend_from_slice(paint.0.as_bytes());
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(paint.1.as_bytes());
}
