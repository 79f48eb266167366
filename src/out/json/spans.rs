//! `--spans`: every node with its name, type and place, so that a program can point at bytes.

use super::super::kept::Kept;
use super::value::{View, value};
use super::{number, string};
use crate::tree::{Kind, Node, Sym, mark};

/// The children of a node as an array of spans.
pub(super) fn spans_of(view: &View<'_>, kept: &mut Kept, node: u32, out: &mut Vec<u8>) {
    let list = view.tree.get(node).is_some_and(|n| n.kind == Kind::List);
    let mut element = 0usize;
    out.push(b'[');
    for (i, (index, child)) in view.tree.children(node).enumerate() {
        if i > 0 {
            out.push(b',');
        }
        span(view, kept, (index, child), list.then_some(element), out);
        element += usize::from(!child.has(mark::SPAN));
    }
    out.push(b']');
}

fn span(view: &View<'_>, kept: &mut Kept, (index, node): (u32, &Node), element: Option<usize>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"name\":");
    match element {
        Some(n) if node.name == Sym::ELEMENT => string(out, &format!("[{n}]")),
        _ => string(out, view.tree.dynamic(node.name).unwrap_or_else(|| view.tables.name(node.name))),
    }
    out.extend_from_slice(b",\"type\":");
    string(out, view.tables.type_def(node.ty).map_or("", |t| &t.text));
    place(node, out);
    let hidden = view.redact && node.has(mark::SECRET);
    if hidden || !matches!(node.kind, Kind::Struct | Kind::List) {
        out.extend_from_slice(b",\"value\":");
        value(view, kept, index, out);
    }
    let children = node.end > index + 1;
    if !hidden && (children || matches!(node.kind, Kind::Struct | Kind::List)) {
        if node.has(mark::OWN_BUFFER) {
            let made = view.tree.get(index + 1).and_then(|child| view.tree.made(child.buffer));
            if let Some(made) = made {
                out.extend_from_slice(b",\"buffer\":");
                string(out, made.word());
            }
        }
        out.extend_from_slice(b",\"fields\":");
        spans_of(view, kept, index, out);
    }
    out.push(b'}');
}

/// Offset and length in bytes, and in bits where the value does not begin and end with a byte.
fn place(node: &Node, out: &mut Vec<u8>) {
    let (bit, bits) = (node.start % 8, node.bits);
    out.extend_from_slice(b",\"offset\":");
    number(out, node.start / 8);
    out.extend_from_slice(b",\"length\":");
    number(out, (bit + bits).div_ceil(8));
    if bit != 0 || bits % 8 != 0 {
        out.extend_from_slice(b",\"bit_offset\":");
        number(out, bit);
        out.extend_from_slice(b",\"bit_length\":");
        number(out, bits);
    }
}
