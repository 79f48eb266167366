//! `--spans`: every node with its name, type and place, so that a program can point at bytes.

use super::super::page::Pen;
use super::strings::escaped;
use super::value::{Memory, View, value};
use crate::tree::{Kind, Node, Sym, mark};

/// The children of a node as an array of spans.
pub(super) fn spans_of(view: &View<'_>, memory: &mut Memory, node: u32, pen: &mut Pen<'_>) {
    let list = view.tree.get(node).is_some_and(|n| n.kind == Kind::List);
    let mut element = 0usize;
    pen.byte(b'[');
    for (i, (index, child)) in view.tree.children(node).enumerate() {
        if i > 0 {
            pen.byte(b',');
        }
        span(view, memory, (index, child), list.then_some(element), pen);
        element += usize::from(!child.has(mark::SPAN));
    }
    pen.byte(b']');
}

fn span(view: &View<'_>, memory: &mut Memory, (index, node): (u32, &Node), element: Option<usize>, pen: &mut Pen<'_>) {
    pen.fixed(b"{\"name\":");
    match element {
        Some(n) if node.name == Sym::ELEMENT => {
            pen.fixed(b"\"[");
            pen.number(n as u64);
            pen.fixed(b"]\"");
        }
        _ => string(view.tree.dynamic(node.name).unwrap_or_else(|| view.tables.name(node.name)), pen),
    }
    pen.fixed(b",\"type\":");
    string(view.tables.type_def(node.ty).map_or("", |t| &t.text), pen);
    place(node, pen);
    let hidden = view.redact && node.has(mark::SECRET);
    if hidden || !matches!(node.kind, Kind::Struct | Kind::List) {
        pen.fixed(b",\"value\":");
        value(view, memory, index, pen);
    }
    let children = node.end > index + 1;
    if !hidden && (children || matches!(node.kind, Kind::Struct | Kind::List)) {
        if node.has(mark::OWN_BUFFER) {
            let made = view.tree.get(index + 1).and_then(|child| view.tree.made(child.buffer));
            if let Some(made) = made {
                pen.fixed(b",\"buffer\":");
                string(made.word(), pen);
            }
        }
        pen.fixed(b",\"fields\":");
        spans_of(view, memory, index, pen);
    }
    pen.byte(b'}');
}

fn string(text: &str, pen: &mut Pen<'_>) {
    pen.byte(b'"');
    escaped(pen, text.as_bytes());
    pen.byte(b'"');
}

/// Offset and length in bytes, and in bits where the value does not begin and end with a byte.
fn place(node: &Node, pen: &mut Pen<'_>) {
    let (bit, bits) = (node.start % 8, node.bits);
    pen.fixed(b",\"offset\":");
    pen.number(u64::from(node.start / 8));
    pen.fixed(b",\"length\":");
    pen.number(u64::from((bit + bits).div_ceil(8)));
    if bit != 0 || bits % 8 != 0 {
        pen.fixed(b",\"bit_offset\":");
        pen.number(u64::from(bit));
        pen.fixed(b",\"bit_length\":");
        pen.number(u64::from(bits));
    }
}
