//! The lines of a message's fields: names under each other, values beside them, and what these mean.

use super::super::json;
use super::super::kept::Kept;
use super::super::page::{PAGE, Pen};
use super::Style;
use super::meaning::meaning;
use super::past::Past;
use super::value::{self, View};
use crate::table::Name;
use crate::tree::{Kind, Node, Sym, mark};

/// A structure or a list whose lines are being written.
#[derive(Clone, Copy)]
pub(super) struct Open {
    /// The next of its nodes to be looked at, and the one after its last.
    at: u32,
    end: u32,
    /// Spaces before its names.
    indent: usize,
    /// Characters to the column of a structure's values.
    width: usize,
    list: bool,
    /// The number of a list's next element.
    element: u64,
}

/// What is remembered from one value to the next.
#[derive(Clone, Default)]
pub(super) struct Memory {
    kept: Kept,
    /// What is open around the structure or list whose lines are being written.
    open: Vec<Open>,
}

/// Appends the lines of a tree.
pub(super) fn lines(view: &View<'_>, past: Past<'_>, style: &Style, memory: &mut Memory, pen: &mut Pen<'_>) {
    let lines = Lines { view, names: view.tables.all_names(), style, plain: style.paint.field.0.is_empty() };
    match view.tree.get(0) {
        // One value that was asked for by its type.
        Some(value) if !matches!(value.kind, Kind::Struct | Kind::List) => {
            pen.fixed(b"    value  ");
            pen.aside(|pen| lines.value((0, value), &mut { past }, &mut memory.kept, pen));
        }
        Some(root) => pen.lend(|page, at, out| lines.inside(root, past, memory, page, at, out)),
        None => {}
    }
}

/// How lines are written.
struct Lines<'a> {
    view: &'a View<'a>,
    names: &'a [Name],
    style: &'a Style,
    /// Names need nothing but their characters.
    plain: bool,
}

impl Lines<'_> {
    /// The fields of a structure, whose values begin in the same column, or the elements of a list, with all that is in them.
    #[inline(never)]
    fn inside(
        &self,
        root: &Node,
        mut past: Past<'_>,
        memory: &mut Memory,
        page: &mut [u8; PAGE],
        at: usize,
        out: &mut Vec<u8>,
    ) -> usize {
        let mut pen = Pen::at((page, at, out));
        let nodes = self.view.tree.nodes();
        // Fields so far: each has a colour that ties it to its bytes.
        let mut tie = 0;
        memory.open.clear();
        let mut here = self.open(0, root, 4);
        loop {
            let next = if here.at < here.end { nodes.get(here.at as usize) } else { None };
            let Some(node) = next else {
                let Some(outer) = memory.open.pop() else { return pen.written() };
                here = outer;
                continue;
            };
            let at = here.at;
            here.at = node.end.max(at + 1);
            if node.marks & (mark::SPAN | mark::SEE_THROUGH) != 0 {
                if node.has(mark::SEE_THROUGH) {
                    here.at = at + 1;
                }
                continue;
            }
            spaces(here.indent, &mut pen);
            let nested = self.is_nested(at, node);
            if here.list {
                pen.aside(|pen| self.element(node.name, &here, tie, nested, pen));
                here.element += 1;
            } else {
                self.name(node.name, if nested { 0 } else { here.width }, tie, &mut pen);
            }
            if nested {
                let inner = self.open(at, node, here.indent + 4);
                if inner.list && self.view.tree.children(at).all(|(_, n)| n.has(mark::SPAN)) {
                    pen.fixed(b"  none\n");
                } else {
                    pen.byte(b'\n');
                }
                memory.open.push(here);
                here = inner;
            } else {
                self.value((at, node), &mut past, &mut memory.kept, &mut pen);
                tie += 1;
            }
        }
    }

    /// What is to be known of a structure or a list while its lines are written.
    #[inline(never)]
    fn open(&self, index: u32, node: &Node, indent: usize) -> Open {
        let list = node.kind == Kind::List;
        let width = if list { 0 } else { self.widest(index, node.end) };
        Open { at: index + 1, end: node.end, indent, width: width + 2, list, element: 0 }
    }

    /// The characters of a structure's longest name.
    #[inline(always)]
    fn widest(&self, index: u32, end: u32) -> usize {
        let (nodes, mut widest, mut next) = (self.view.tree.nodes(), 0, index + 1);
        while let Some(node) = nodes.get(next as usize).filter(|_| next < end) {
            if node.marks & (mark::SPAN | mark::SEE_THROUGH) == 0 {
                widest = widest.max(self.width(node.name));
            }
            next = if node.has(mark::SEE_THROUGH) { next + 1 } else { node.end.max(next + 1) };
        }
        widest
    }

    /// Whether a value has lines of its own below its name.
    #[inline(always)]
    fn is_nested(&self, index: u32, node: &Node) -> bool {
        match node.kind {
            Kind::Struct => !self.is_hidden(node),
            Kind::List => !self.is_hidden(node) && !value::is_short_list(self.view, index, node),
            _ => false,
        }
    }

    #[inline(always)]
    fn is_hidden(&self, node: &Node) -> bool {
        self.view.redact && node.has(mark::SECRET)
    }

    #[inline(always)]
    fn width(&self, name: Sym) -> usize {
        match self.names.get(name.0 as usize) {
            Some(name) => name.width,
            None => self.view.tree.dynamic(name).map_or(0, |name| name.chars().count()),
        }
    }

    /// A field's name and spaces, so that there are `width` characters, or as many as it has.
    #[inline(always)]
    fn name(&self, name: Sym, width: usize, tie: usize, pen: &mut Pen<'_>) {
        let known = self.names.get(name.0 as usize).filter(|_| self.plain);
        match known.filter(|known| known.width == known.plain.len()).and_then(|known| known.plain.block()) {
            Some((block, length)) if width <= block.len() => pen.block(block, length.max(width)),
            _ => pen.aside(|pen| self.any_name(name, width, tie, pen)),
        }
    }

    /// A name that is painted or long, or came from the traffic.
    #[inline(never)]
    fn any_name(&self, name: Sym, width: usize, tie: usize, pen: &mut Pen<'_>) {
        let text = self.view.tree.dynamic(name).unwrap_or_else(|| self.view.tables.name(name));
        let paint = self.paint(tie);
        for part in [&paint.0, text, &paint.1] {
            pen.text(part.as_bytes());
        }
        spaces(width.saturating_sub(self.width(name)), pen);
    }

    /// What stands before an element of a list: its number, or the name it has.
    #[inline(never)]
    fn element(&self, name: Sym, here: &Open, tie: usize, nested: bool, pen: &mut Pen<'_>) {
        if name == Sym::ELEMENT {
            let paint = self.paint(tie);
            pen.text(paint.0.as_bytes());
            pen.byte(b'[');
            pen.number(here.element);
            pen.byte(b']');
            pen.text(paint.1.as_bytes());
        } else {
            self.name(name, 0, tie, pen);
        }
        if !nested {
            pen.fixed(b"  ");
        }
    }

    /// The colour of a name.
    fn paint(&self, tie: usize) -> &(String, String) {
        if self.style.bytes { self.style.paint.tie(tie) } else { &self.style.paint.field }
    }

    /// A value on the line of its name, with what it means; ends the line.
    #[inline(always)]
    fn value(&self, (index, node): (u32, &Node), past: &mut Past<'_>, kept: &mut Kept, pen: &mut Pen<'_>) {
        let quick = self.view.tables.quick(node.ty);
        if self.is_hidden(node) {
            pen.aside(|pen| value::hidden(node, pen));
            return;
        }
        let integer = matches!(node.kind, Kind::Unsigned | Kind::Signed | Kind::Unsigned64 | Kind::Signed64);
        if integer && (quick.symbols.is_some() || quick.shown) {
            self.explained(node, kept, pen);
        } else if node.kind == Kind::Unsigned {
            pen.number(node.value);
        } else {
            pen.aside(|pen| value::other(self.view, index, node, pen));
        }
        if let Some((name, record)) = past.take(index) {
            pen.aside(|pen| inferred(name, record, pen));
        }
        pen.byte(b'\n');
    }

    /// A number whose type says what it means.
    #[inline(always)]
    fn explained(&self, node: &Node, kept: &mut Kept, pen: &mut Pen<'_>) {
        let (tables, paint) = (self.view.tables, &self.style.paint.meaning);
        let of = (std::ptr::from_ref(tables).addr(), node.ty.0);
        kept.append(of, node, pen, |out| {
            match node.kind {
                Kind::Signed | Kind::Signed64 => json::number(out, node.value as i64),
                _ => json::number(out, node.value),
            }
            let at = out.len();
            out.extend_from_slice(b"  ");
            out.extend_from_slice(paint.0.as_bytes());
            let said = out.len();
            meaning(tables, node, out);
            if out.len() == said {
                out.truncate(at);
            } else {
                out.extend_from_slice(paint.1.as_bytes());
            }
        });
    }
}

/// What a number is called elsewhere.
#[inline(never)]
fn inferred(name: &str, record: u64, pen: &mut Pen<'_>) {
    pen.fixed(b"  \"");
    json::write_escaped(pen, name.as_bytes());
    pen.fixed(b"\" (inferred, record ");
    pen.number(record);
    pen.byte(b')');
}

#[inline(always)]
fn spaces(count: usize, pen: &mut Pen<'_>) {
    const SPACES: [u8; 64] = [b' '; 64];
    let mut left = count;
    while left > SPACES.len() {
        pen.fixed(&SPACES);
        left -= SPACES.len();
    }
    pen.block(&SPACES, left);
}
