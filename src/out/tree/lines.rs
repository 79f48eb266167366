//! The lines of a message's fields: names under each other, values beside them, and what these mean.

use std::io::Write;

use super::super::json::number;
use super::super::kept::Kept;
use super::Style;
use super::meaning::meaning;
use super::value::{self, View};
use crate::table::spaces;
use crate::tree::{Kind, Node, Sym, mark};

/// Writes the lines of one tree.
pub(super) struct Lines<'a> {
    view: &'a View<'a>,
    style: &'a Style,
    /// Names need nothing but their characters.
    plain: bool,
    kept: &'a mut Kept,
    /// Fields so far: each has a colour that ties it to its bytes.
    tie: usize,
    out: &'a mut Vec<u8>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(view: &'a View<'a>, style: &'a Style, kept: &'a mut Kept, out: &'a mut Vec<u8>) -> Self {
        Lines { view, style, plain: style.paint.field.0.is_empty(), kept, tie: 0, out }
    }

    /// Appends all of them.
    pub(super) fn all(mut self) {
        match self.view.tree.get(0) {
            // One value that was asked for by its type.
            Some(value) if !matches!(value.kind, Kind::Struct | Kind::List) => {
                self.out.extend_from_slice(b"    value  ");
                self.value(0, value);
            }
            Some(Node { kind: Kind::List, .. }) => self.elements(0, 1),
            _ => self.fields(0, 1),
        }
    }

    /// The fields of a structure: their values begin in the same column.
    fn fields(&mut self, parent: u32, depth: usize) {
        let view = self.view;
        let width = view.tree.members(parent).map(|(_, node)| self.width(node.name)).max().unwrap_or(0) + 2;
        for (index, node) in view.tree.members(parent) {
            spaces(self.out, depth * 4);
            if self.is_nested(index, node) {
                self.name(node.name, 0);
                self.nested(index, node, depth + 1);
            } else {
                self.name(node.name, width);
                self.value(index, node);
                self.tie += 1;
            }
        }
    }

    fn elements(&mut self, parent: u32, depth: usize) {
        let view = self.view;
        for (element, (index, node)) in view.tree.members(parent).enumerate() {
            spaces(self.out, depth * 4);
            if node.name == Sym::ELEMENT {
                self.element(element);
            } else {
                self.name(node.name, 0);
            }
            if self.is_nested(index, node) {
                self.nested(index, node, depth + 1);
            } else {
                self.out.extend_from_slice(b"  ");
                self.value(index, node);
                self.tie += 1;
            }
        }
    }

    /// Whether a value has lines of its own below its name.
    #[inline]
    fn is_nested(&self, index: u32, node: &Node) -> bool {
        match node.kind {
            Kind::Struct => !self.is_hidden(node),
            Kind::List => !self.is_hidden(node) && !value::is_short_list(self.view, index, node),
            _ => false,
        }
    }

    #[inline]
    fn is_hidden(&self, node: &Node) -> bool {
        self.view.redact && node.has(mark::SECRET)
    }

    fn nested(&mut self, index: u32, node: &Node, depth: usize) {
        if node.kind == Kind::List {
            let empty = self.view.tree.children(index).all(|(_, n)| n.has(mark::SPAN));
            self.out.extend_from_slice(if empty { b"  none\n" } else { b"\n" });
            self.elements(index, depth);
        } else {
            self.out.push(b'\n');
            self.fields(index, depth);
        }
    }

    #[inline]
    fn width(&self, name: Sym) -> usize {
        match self.view.tables.name_forms(name) {
            Some(name) => name.width,
            None => self.view.tree.dynamic(name).map_or(0, |name| name.chars().count()),
        }
    }

    /// A field's name and spaces, so that there are `width` characters, or as many as it has.
    #[inline]
    fn name(&mut self, name: Sym, width: usize) {
        match self.view.tables.name_forms(name) {
            Some(name) if self.plain && name.width == name.plain.len() => name.plain.append_padded(width, self.out),
            _ => self.painted_name(name, width),
        }
    }

    fn painted_name(&mut self, name: Sym, width: usize) {
        let text = self.view.tree.dynamic(name).unwrap_or_else(|| self.view.tables.name(name));
        let paint = if self.style.bytes { self.style.paint.tie(self.tie) } else { &self.style.paint.field };
        for part in [&paint.0, text, &paint.1] {
            self.out.extend_from_slice(part.as_bytes());
        }
        spaces(self.out, width.saturating_sub(self.width(name)));
    }

    fn element(&mut self, element: usize) {
        let paint = if self.style.bytes { self.style.paint.tie(self.tie) } else { &self.style.paint.field };
        self.out.extend_from_slice(paint.0.as_bytes());
        self.out.push(b'[');
        number(self.out, element);
        self.out.push(b']');
        self.out.extend_from_slice(paint.1.as_bytes());
    }

    /// A value on the line of its name, with what it means; ends the line.
    fn value(&mut self, index: u32, node: &Node) {
        let view = self.view;
        if self.is_hidden(node) {
            let _ = writeln!(self.out, "<redacted, {} bytes>", node.bits.div_ceil(8));
            return;
        }
        let quick = view.tables.quick(node.ty);
        if node.kind == Kind::List {
            value::short_list(view, index, self.out);
        } else if quick.symbols.is_some() || quick.shown {
            self.explained(node);
        } else {
            value::scalar(view, node, self.out);
        }
        if let Some((name, record)) = view.past.name(index) {
            self.out.extend_from_slice(b"  ");
            value::quoted(name, self.out);
            let _ = write!(self.out, " (inferred, record {record})");
        }
        self.out.push(b'\n');
    }

    /// A value whose type says what it means.
    fn explained(&mut self, node: &Node) {
        let (view, paint) = (self.view, &self.style.paint.meaning);
        let write = |out: &mut Vec<u8>| {
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
        };
        match node.kind {
            Kind::Unsigned | Kind::Signed | Kind::Unsigned64 | Kind::Signed64 => {
                let of = (std::ptr::from_ref(view.tables).addr(), node.ty.0);
                self.kept.append(of, node, self.out, write);
            }
            _ => write(self.out),
        }
    }
}
