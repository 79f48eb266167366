//! `--spans`: every node with its name, type and place, so that a program can point at bytes.

use super::super::problem::any_name;
use super::super::scratch::TextWriter;
use super::strings::{escaped, hex};
use super::value::{ENTRIES_BESIDE, MAX_ENTRIES, ValueState, too_deep_text, value};
use crate::print::view::PrintView;
use crate::table::{NAN_32, NAN_64};
use crate::tree::{Kind, Node, Sym, TextKind, decode_pieces, mark};

/// How deep spans lie within each other at most: each level is an object, with its key, and an
/// array of JSON.
const MAX_SPAN_DEPTH: usize = (MAX_ENTRIES - ENTRIES_BESIDE) / 3 - 1;

/// The children of a node, which lies `depth` levels below the message, as an array of spans.
pub(super) fn spans_of(
    view: &PrintView<'_>,
    state: &mut ValueState,
    node: u32,
    depth: usize,
    w: &mut TextWriter<'_>,
) {
    let list = view.message.tree.get(node).is_some_and(|n| n.kind == Kind::List);
    let mut element = 0usize;
    w.byte(b'[');
    for (i, (index, child)) in view.message.tree.children(node).enumerate() {
        if i > 0 {
            w.byte(b',');
        }
        let name = SpanName { node: child, element: list.then_some(element) };
        span(view, state, index, name, depth, w);
        element += usize::from(!child.has(mark::SPAN));
    }
    w.byte(b']');
}

/// A node that is a span, and its number where it is an element of a list.
struct SpanName<'a> {
    node: &'a Node,
    element: Option<usize>,
}

fn span(
    view: &PrintView<'_>,
    state: &mut ValueState,
    index: u32,
    name: SpanName<'_>,
    depth: usize,
    w: &mut TextWriter<'_>,
) {
    let SpanName { node, element } = name;
    w.fixed(b"{\"name\":");
    match element {
        Some(n) if node.name == Sym::ELEMENT => {
            w.fixed(b"\"[");
            w.number(n as u64);
            w.fixed(b"]\"");
        }
        _ => string(any_name(view.message.tree, view.message.tables, node.name).raw(), w),
    }
    w.fixed(b",\"type\":");
    string(view.message.tables.type_def(node.ty).map_or("", |t| &t.text), w);
    place(node, w);
    let hidden = view.redact && node.has(mark::SECRET);
    if !hidden && depth >= MAX_SPAN_DEPTH && node.end > index + 1 {
        w.fixed(b",\"value\":");
        too_deep_text(view, &mut state.depth.too_deep, index, w);
        return w.byte(b'}');
    }
    let children = node.end > index + 1;
    if hidden || !matches!(node.kind, Kind::Struct | Kind::List) {
        w.fixed(b",\"value\":");
        value(view, state, index, w);
        if let Some((from, to)) = untold(view, node, children) {
            bytes(view, node, from, to, w);
        }
    }
    if !hidden && (children || matches!(node.kind, Kind::Struct | Kind::List)) {
        if node.has(mark::OWN_BUFFER) {
            let made = view
                .message
                .tree
                .get(index + 1)
                .and_then(|child| view.message.tree.made(child.buffer));
            if let Some(made) = made {
                w.fixed(b",\"buffer\":");
                string(made.word(), w);
                let (from, to) = place_of(node);
                bytes(view, node, from, to, w);
            }
        }
        w.fixed(b",\"fields\":");
        spans_of(view, state, index, depth + 1, w);
    }
    w.byte(b'}');
}

/// Where the bytes of a value begin and end that it does not tell: all bytes of one that describes
/// itself, has several forms or may refer to an earlier one, those of a NaN, and the content of a
/// text that is not valid.
fn untold(view: &PrintView<'_>, node: &Node, children: bool) -> Option<(usize, usize)> {
    let all = place_of(node);
    let (from, length) = node.content();
    let is_untold = match node.kind {
        Kind::Undecoded if !children && length * 8 != node.bits as usize => true,
        Kind::F32 => f32::from_bits(node.value as u32).is_nan() && node.value as u32 != NAN_32,
        Kind::F64 => f64::from_bits(node.value).is_nan() && node.value != NAN_64,
        _ => false,
    };
    let tables = view.message.tables;
    let has_forms = tables.refers(node.ty) || tables.has_forms(node.ty);
    if is_untold || !children && (tables.describes_itself(node.ty) || has_forms) {
        return Some(all);
    }
    let Kind::Text(kind) = node.kind else { return None };
    let content = view.message.tree.bytes(node.buffer, view.message.bytes);
    let content = content.get(from..from.checked_add(length)?)?;
    (kind != TextKind::Owned && !decode_pieces(kind, content, |_| {}))
        .then_some((from, from + length))
}

fn place_of(node: &Node) -> (usize, usize) {
    (node.start as usize / 8, (node.start as usize + node.bits as usize).div_ceil(8))
}

/// Bytes of a node, where its value or its content does not tell them. Not where secrets are
/// hidden: they may lie within.
fn bytes(view: &PrintView<'_>, node: &Node, from: usize, to: usize, w: &mut TextWriter<'_>) {
    if view.redact || node.bits == 0 {
        return;
    }
    let all = view.message.tree.bytes(node.buffer, view.message.bytes);
    w.fixed(b",\"bytes\":\"");
    hex(w, all.get(from..to).unwrap_or(&[]));
    w.byte(b'"');
}

fn string(text: &str, w: &mut TextWriter<'_>) {
    w.byte(b'"');
    escaped(w, text.as_bytes());
    w.byte(b'"');
}

/// Offset and length in bytes, and in bits where the value does not begin and end with a byte.
fn place(node: &Node, w: &mut TextWriter<'_>) {
    let bit = node.start % 8;
    let bits = node.bits;
    w.fixed(b",\"offset\":");
    w.number(u64::from(node.start / 8));
    w.fixed(b",\"length\":");
    w.number(u64::from((bit + bits).div_ceil(8)));
    if bit != 0 || !bits.is_multiple_of(8) {
        w.fixed(b",\"bit_offset\":");
        w.number(u64::from(bit));
        w.fixed(b",\"bit_length\":");
        w.number(u64::from(bits));
    }
}
