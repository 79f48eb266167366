//! Annotated trees for the eye: one line for the message, one line a field with its value, its name and what it means.

mod links;
mod meaning;
mod names;
mod past;
mod value;

use std::io::Write;

use super::paint::Paint;
use super::record::{Body, Record, format_time, problem_path, problem_text};
use crate::capture::Time;
use crate::proto::{EventKind, Message};
use crate::table::Tables;
use crate::tree::{Kind, Node, Severity, Sym, Tree, mark};
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
    text: String,
}

impl TreeWriter {
    /// A writer of a style.
    pub fn new(style: Style) -> Self {
        TreeWriter { style, text: String::new() }
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
        let mut tie = 0;
        match tree.get(0) {
            // One value that was asked for by its type.
            Some(value) if !matches!(value.kind, Kind::Struct | Kind::List) => {
                out.extend_from_slice(b"    value");
                self.value(&view, 0, value, 0, 0, &mut tie, out);
            }
            _ => self.children(&view, 0, 1, &mut tie, out),
        }
        for problem in tree.problems() {
            out.extend_from_slice(b"  ");
            let paint = if problem.severity == Severity::Note { &self.style.paint.dim } else { &self.style.paint.bad };
            painted(out, paint, "· ");
            painted(out, paint, problem.severity.word());
            let path = problem_path(tree, tables, problem.node);
            let text = problem_text(problem, tables, tree);
            let _ = if path.is_empty() { writeln!(out, ": {text}") } else { writeln!(out, ": {path}: {text}") };
        }
        if self.style.bytes {
            value::dump(&view, &self.style.paint, out);
        }
    }

    fn day_line(&mut self, time: Time, out: &mut Vec<u8>) {
        self.text.clear();
        format_time(time, &mut self.text);
        painted(out, &self.style.paint.dim, self.text.get(..10).unwrap_or(""));
        painted(out, &self.style.paint.dim, " (UTC)");
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
        self.text.clear();
        format_time(record.at.time, &mut self.text);
        let clock = self.text.get(11..self.text.len().saturating_sub(1)).unwrap_or("");
        out.extend_from_slice(clock.as_bytes());
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

    fn children(&self, view: &View<'_>, parent: u32, depth: usize, tie: &mut usize, out: &mut Vec<u8>) {
        let list = view.tree.get(parent).is_some_and(|n| n.kind == Kind::List);
        let shown = || view.tree.members(parent);
        let width =
            if list { 0 } else { shown().map(|(_, n)| name_of(view, n.name).chars().count()).max().unwrap_or(0) };
        for (element, (index, node)) in shown().enumerate() {
            for _ in 0..depth {
                out.extend_from_slice(b"    ");
            }
            let paint = if self.style.bytes { self.style.paint.tie(*tie) } else { &self.style.paint.field };
            out.extend_from_slice(paint.0.as_bytes());
            let name = name_of(view, node.name);
            let used = if list && node.name == Sym::ELEMENT {
                let before = out.len();
                let _ = write!(out, "[{element}]");
                out.len() - before
            } else {
                out.extend_from_slice(name.as_bytes());
                name.chars().count()
            };
            out.extend_from_slice(paint.1.as_bytes());
            self.value(view, index, node, width.saturating_sub(used), depth, tie, out);
        }
    }

    #[allow(clippy::too_many_arguments)] // a line's parts
    fn value(
        &self,
        view: &View<'_>,
        index: u32,
        node: &Node,
        pad: usize,
        depth: usize,
        tie: &mut usize,
        out: &mut Vec<u8>,
    ) {
        let secret = view.redact && node.has(mark::SECRET);
        let nested = !secret && matches!(node.kind, Kind::Struct | Kind::List);
        if nested && !value::is_short_list(view, index, node) {
            if view.tree.children(index).all(|(_, n)| n.has(mark::SPAN)) {
                out.extend_from_slice(if node.kind == Kind::List { b"  none" } else { b"" });
            }
            out.push(b'\n');
            self.children(view, index, depth + 1, tie, out);
            return;
        }
        for _ in 0..pad + 2 {
            out.push(b' ');
        }
        if secret {
            let _ = writeln!(out, "<redacted, {} bytes>", node.bits.div_ceil(8));
            return;
        }
        if nested {
            value::short_list(view, index, out);
        } else {
            value::scalar(view, node, out);
            let paint = &self.style.paint.meaning;
            let at = out.len();
            out.extend_from_slice(b"  ");
            out.extend_from_slice(paint.0.as_bytes());
            let said = out.len();
            meaning(view.tables, node, out);
            if out.len() == said {
                out.truncate(at);
            } else {
                out.extend_from_slice(paint.1.as_bytes());
            }
            if let Some((name, record)) = view.past.name(index) {
                out.extend_from_slice(b"  ");
                value::quoted(name, out);
                let _ = write!(out, " (inferred, record {record})");
            }
        }
        *tie += 1;
        out.push(b'\n');
    }
}

fn name_of<'a>(view: &View<'a>, name: Sym) -> &'a str {
    view.tree.dynamic(name).unwrap_or_else(|| view.tables.name(name))
}

fn painted(out: &mut Vec<u8>, paint: &(String, String), text: &str) {
    out.extend_from_slice(paint.0.as_bytes());
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(paint.1.as_bytes());
}
