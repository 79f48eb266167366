//! Values of a tree as JSON.

use std::borrow::Cow;

use super::super::kept::Kept;
use super::super::page::{PAGE, Pen};
use super::named::{integer, named};
use super::strings::{decoded, escaped, hex, hex_block};
use crate::table::Tables;
use crate::tree::{Kind, Node, Sym, TextKind, Tree, mark};

/// A tree with all that is needed to read it.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) tables: &'a Tables,
    pub(super) tree: &'a Tree,
    pub(super) bytes: &'a [u8],
    pub(super) redact: bool,
}

/// What is remembered from one value to the next.
#[derive(Clone, Default)]
pub(super) struct Memory {
    pub(super) kept: Kept,
    /// What is open around the structure or list that is being written.
    open: Vec<Open>,
}

/// A structure or a list that is being written.
#[derive(Clone, Copy)]
struct Open {
    /// The next of its nodes to be looked at, and the one after its last.
    at: u32,
    end: u32,
    list: bool,
}

/// One value.
pub(super) fn value(view: &View<'_>, memory: &mut Memory, index: u32, pen: &mut Pen<'_>) {
    match view.tree.get(index) {
        Some(node) if matches!(node.kind, Kind::Struct | Kind::List) && !is_hidden(view, node) => {
            inside(view, memory, index, pen)
        }
        Some(node) => leaf(view, &mut memory.kept, node, pen),
        None => {}
    }
}

/// A structure as an object, a list as an array; what is only a span is passed over.
pub(super) fn inside(view: &View<'_>, memory: &mut Memory, index: u32, pen: &mut Pen<'_>) {
    if let Some(node) = view.tree.get(index) {
        pen.lend(|page, at, out| all_inside(view, memory, (index, node), page, at, out));
    }
}

/// Every part begins with what stands before it, which is the bracket for the first one: so the opening bracket is not written by who
/// opens, but is the lead of the first part, or comes with the closing one.
#[inline(never)]
fn all_inside(
    view: &View<'_>,
    memory: &mut Memory,
    (index, node): (u32, &Node),
    page: &mut [u8; PAGE],
    at: usize,
    out: &mut Vec<u8>,
) -> usize {
    let mut pen = Pen::at((page, at, out));
    let (nodes, names) = (view.tree.nodes(), view.tables.all_names());
    memory.open.clear();
    let mut lead = if node.kind == Kind::List { b'[' } else { b'{' };
    let mut here = Open { at: index + 1, end: node.end, list: node.kind == Kind::List };
    loop {
        let next = if here.at < here.end { nodes.get(here.at as usize) } else { None };
        let Some(node) = next else {
            if lead != b',' {
                pen.byte(lead);
            }
            pen.byte(if here.list { b']' } else { b'}' });
            lead = b',';
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
        match names.get(node.name.0 as usize).and_then(|name| name.json.block()) {
            _ if here.list => pen.byte(lead),
            Some((block, length)) => pen.led(lead, block, length),
            None => pen.aside(|pen| long_key(view, node.name, lead, pen)),
        }
        lead = b',';
        if matches!(node.kind, Kind::Struct | Kind::List) && !is_hidden(view, node) {
            memory.open.push(here);
            let list = node.kind == Kind::List;
            lead = if list { b'[' } else { b'{' };
            here = Open { at: at + 1, end: node.end, list };
        } else {
            leaf(view, &mut memory.kept, node, &mut pen);
        }
    }
}

/// The name of a field that is long, or came from the traffic.
#[inline(never)]
fn long_key(view: &View<'_>, name: Sym, lead: u8, pen: &mut Pen<'_>) {
    pen.byte(lead);
    if let Some(name) = view.tables.name_forms(name) {
        pen.text(name.json.bytes().get(1..).unwrap_or(&[]));
    } else {
        pen.byte(b'"');
        escaped(pen, view.tree.dynamic(name).unwrap_or_default().as_bytes());
        pen.fixed(b"\":");
    }
}

#[inline(always)]
fn is_hidden(view: &View<'_>, node: &Node) -> bool {
    view.redact && node.has(mark::SECRET)
}

#[cold]
#[inline(never)]
fn hidden(node: &Node, pen: &mut Pen<'_>) {
    pen.fixed(b"\"<redacted, ");
    pen.number(u64::from(node.bits.div_ceil(8)));
    pen.fixed(b" bytes>\"");
}

/// A value without children.
#[inline(always)]
fn leaf(view: &View<'_>, kept: &mut Kept, node: &Node, pen: &mut Pen<'_>) {
    if is_hidden(view, node) {
        pen.aside(|pen| hidden(node, pen));
        return;
    }
    match view.tables.quick(node.ty).symbols {
        Some(symbols) => named(view.tables, symbols, node, kept, pen),
        None if node.kind == Kind::Unsigned => pen.number(node.value),
        None => pen.aside(|pen| scalar(view, node, pen)),
    }
}

/// A value without children and without names.
#[inline(never)]
pub(super) fn scalar(view: &View<'_>, node: &Node, pen: &mut Pen<'_>) {
    match node.kind {
        Kind::Unsigned | Kind::Signed | Kind::Unsigned64 | Kind::Signed64 => integer(node, pen),
        Kind::Null => pen.fixed(b"null"),
        Kind::Bool => match node.value {
            0 => pen.fixed(b"false"),
            1 => pen.fixed(b"true"),
            n => pen.number(n),
        },
        Kind::F32 if f32::from_bits(node.value as u32).is_finite() => unquoted(view, node, pen),
        Kind::F64 if f64::from_bits(node.value).is_finite() => unquoted(view, node, pen),
        Kind::Number => unquoted(view, node, pen),
        Kind::Text(_)
        | Kind::Bytes
        | Kind::Undecoded
        | Kind::F32
        | Kind::F64
        | Kind::Uuid
        | Kind::UuidBe
        | Kind::Ipv4 => {
            pen.byte(b'"');
            unquoted(view, node, pen);
            pen.byte(b'"');
        }
        Kind::Struct | Kind::List => {}
    }
}

/// What is not a plain number, as it stands between quotes where JSON has them.
pub(super) fn unquoted(view: &View<'_>, node: &Node, pen: &mut Pen<'_>) {
    match node.kind {
        Kind::Text(TextKind::Owned) => escaped(pen, view.tree.owned(node.value).as_bytes()),
        Kind::Text(kind) => decoded(pen, kind, &content(view, node)),
        Kind::Bytes | Kind::Undecoded => hex(pen, &content(view, node)),
        Kind::Number => pen.text(view.tree.owned(node.value).as_bytes()),
        Kind::F32 => float32(f32::from_bits(node.value as u32), pen),
        Kind::F64 => float64(f64::from_bits(node.value), pen),
        Kind::Uuid | Kind::UuidBe => uuid(&content(view, node), node.kind == Kind::Uuid, pen),
        Kind::Ipv4 => {
            let [a, b, c, d] = (node.value as u32).to_be_bytes();
            pen.number(a.into());
            for part in [b, c, d] {
                pen.byte(b'.');
                pen.number(part.into());
            }
        }
        _ => {}
    }
}

#[inline]
fn content<'a>(view: &View<'a>, node: &Node) -> Cow<'a, [u8]> {
    view.tree.content(node, view.bytes)
}

fn uuid(bytes: &[u8], microsoft: bool, pen: &mut Pen<'_>) {
    let mut ordered: [u8; 16] = bytes.first_chunk().copied().unwrap_or_default();
    if microsoft {
        let [a, b, c, d, e, f, g, h, rest @ ..] = ordered;
        let [i, j, k, l, m, n, o, p] = rest;
        ordered = [d, c, b, a, f, e, h, g, i, j, k, l, m, n, o, p];
    }
    let digits = hex_block(&ordered);
    let mut rest = &digits[..];
    for (i, part) in [4, 2, 2, 2, 6].into_iter().enumerate() {
        if i > 0 {
            pen.byte(b'-');
        }
        let (now, later) = rest.split_at(part);
        pen.text(now.as_flattened());
        rest = later;
    }
}

fn float32(f: f32, pen: &mut Pen<'_>) {
    if f.is_finite() && f.abs() > 3e38 {
        // Read as 64 bits, the shortest form of the largest floats lies beyond what 32 bits can hold.
        float64(f64::from(f), pen);
    } else if f.is_finite() {
        pen.text(zmij::Buffer::new().format_finite(f).as_bytes());
    } else {
        special(f64::from(f), pen);
    }
}

fn float64(f: f64, pen: &mut Pen<'_>) {
    if f.is_finite() {
        pen.text(zmij::Buffer::new().format_finite(f).as_bytes());
    } else {
        special(f, pen);
    }
}

fn special(f: f64, pen: &mut Pen<'_>) {
    let word: &[u8] = match (f.is_nan(), f > 0.0) {
        (true, _) => b"NaN",
        (_, true) => b"Infinity",
        _ => b"-Infinity",
    };
    pen.text(word);
}
