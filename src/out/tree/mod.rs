//! Annotated trees for the eye: one line for the message, one line a field with its value, its name and what it means.

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
use crate::table::{Tables, spaces};
use crate::tree::{Kind, Node, Severity, Sym, Tree, mark};
pub use meaning::meaning;
pub use past::{History, Past};
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
#[derive(Default)]
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
    pub fn record(&mut self, record: &Record<'_>, past: &Past, out: &mut Vec<u8>) {
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
    pub fn body(&mut self, tables: &Tables, tree: &Tree, bytes: &[u8], past: &Past, out: &mut Vec<u8>) {
        let view = View { tables, tree, bytes, past, redact: self.style.redact };
        let mut tie = 0;
        match tree.get(0) {
            // One value that was asked for by its type.
            Some(value) if !matches!(value.kind, Kind::Struct | Kind::List) => {
                out.extend_from_slice(b"    value  ");
                self.value(&view, 0, value, out);
            }
            _ => self.children(&view, 0, 1, &mut tie, out),
        }
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

    fn children(&mut self, view: &View<'_>, parent: u32, depth: usize, tie: &mut usize, out: &mut Vec<u8>) {
        let list = view.tree.get(parent).is_some_and(|n| n.kind == Kind::List);
        let shown = || view.tree.members(parent);
        let width = if list { 0 } else { shown().map(|(_, n)| name_width(view, n.name)).max().unwrap_or(0) };
        for (element, (index, node)) in shown().enumerate() {
            spaces(out, depth * 4);
            let element = (list && node.name == Sym::ELEMENT).then_some(element);
            let nested = self.is_nested(view, index, node);
            self.name(view, node.name, element, if nested { 0 } else { width + 2 }, *tie, out);
            if nested {
                self.nested(view, index, node, depth, tie, out);
            } else {
                self.value(view, index, node, out);
                *tie += 1;
            }
        }
    }

    /// Appends a name, or the number of an element, in at least `width` characters.
    fn name(&self, view: &View<'_>, name: Sym, element: Option<usize>, width: usize, tie: usize, out: &mut Vec<u8>) {
        let paint = if self.style.bytes { self.style.paint.tie(tie) } else { &self.style.paint.field };
        if let (None, Some(name)) = (element, view.tables.name_forms(name))
            && paint.0.is_empty()
            && name.width == name.text.len()
        {
            name.plain.append_padded(if width == 0 { 0 } else { width.max(name.width + 2) }, out);
            return;
        }
        out.extend_from_slice(paint.0.as_bytes());
        let used = match element {
            Some(element) => {
                let before = out.len();
                out.push(b'[');
                super::json::number(out, element);
                out.push(b']');
                out.len() - before
            }
            None => {
                let name = view.tree.dynamic(name).unwrap_or_else(|| view.tables.name(name));
                out.extend_from_slice(name.as_bytes());
                name.chars().count()
            }
        };
        out.extend_from_slice(paint.1.as_bytes());
        spaces(out, if width == 0 { 0 } else { width.saturating_sub(used).max(2) });
    }

    /// Whether a value has lines of its own below its name.
    fn is_nested(&self, view: &View<'_>, index: u32, node: &Node) -> bool {
        let hidden = view.redact && node.has(mark::SECRET);
        match node.kind {
            Kind::Struct => !hidden,
            Kind::List => !hidden && !value::is_short_list(view, index, node),
            _ => false,
        }
    }

    fn nested(&mut self, view: &View<'_>, index: u32, node: &Node, depth: usize, tie: &mut usize, out: &mut Vec<u8>) {
        if node.kind == Kind::List && view.tree.children(index).all(|(_, n)| n.has(mark::SPAN)) {
            out.extend_from_slice(b"  none");
        }
        out.push(b'\n');
        self.children(view, index, depth + 1, tie, out);
    }

    /// Appends a value on the line of its name, with what it means, and ends the line.
    fn value(&mut self, view: &View<'_>, index: u32, node: &Node, out: &mut Vec<u8>) {
        if view.redact && node.has(mark::SECRET) {
            let _ = writeln!(out, "<redacted, {} bytes>", node.bits.div_ceil(8));
            return;
        }
        if node.kind == Kind::List {
            value::short_list(view, index, out);
            out.push(b'\n');
            return;
        }
        let quick = view.tables.quick(node.ty);
        if quick.symbols.is_some() || quick.shown {
            let of = (std::ptr::from_ref(view.tables).addr(), node.ty.0);
            let paint = &self.style.paint.meaning;
            if matches!(node.kind, Kind::Unsigned | Kind::Signed | Kind::Unsigned64 | Kind::Signed64) {
                self.kept.append(of, node, out, |out| explained(view, node, paint, out));
            } else {
                explained(view, node, paint, out);
            }
        } else {
            value::scalar(view, node, out);
        }
        if let Some((name, record)) = view.past.name(index) {
            out.extend_from_slice(b"  ");
            value::quoted(name, out);
            let _ = write!(out, " (inferred, record {record})");
        }
        out.push(b'\n');
    }
}

/// Appends a value and what it means, where its type says anything about that.
fn explained(view: &View<'_>, node: &Node, paint: &(String, String), out: &mut Vec<u8>) {
    value::scalar(view, node, out);
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
}

fn name_width(view: &View<'_>, name: Sym) -> usize {
    let dynamic = || view.tree.dynamic(name).map_or(0, |name| name.chars().count());
    view.tables.name_forms(name).map_or_else(dynamic, |name| name.width)
}

fn painted(out: &mut Vec<u8>, paint: &(String, String), text: &str) {
    out.extend_from_slice(paint.0.as_bytes());
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(paint.1.as_bytes());
}
