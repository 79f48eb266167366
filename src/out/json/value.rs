//! Values of a tree as JSON.

use std::borrow::Cow;

use super::super::kept::Kept;
use super::named::{integer, named};
use super::{escaped, hex, number, string};
use crate::table::Tables;
use crate::tree::{Kind, Node, Sym, TextKind, Tree, decode_pieces, mark};

/// A tree with all that is needed to read it.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) tables: &'a Tables,
    pub(super) tree: &'a Tree,
    pub(super) bytes: &'a [u8],
    pub(super) redact: bool,
}

/// Puts brackets around what was appended from `start` on, each part of which begins with a comma: the first one becomes the bracket.
#[inline]
pub(super) fn enclose(out: &mut Vec<u8>, start: usize, [open, close]: [u8; 2]) {
    match out.get_mut(start) {
        Some(comma) => *comma = open,
        None => out.push(open),
    }
    out.push(close);
}

/// A structure's fields as an object; what is only a span is passed over.
pub(super) fn object(view: &View<'_>, kept: &mut Kept, node: u32, out: &mut Vec<u8>) {
    let start = out.len();
    for (index, child) in view.tree.members(node) {
        key(view, child.name, out);
        value_of(view, kept, index, child, out);
    }
    enclose(out, start, *b"{}");
}

#[inline]
fn key(view: &View<'_>, name: Sym, out: &mut Vec<u8>) {
    match view.tables.name_forms(name) {
        Some(name) => name.json.append(out),
        None => {
            out.push(b',');
            string(out, view.tree.dynamic(name).unwrap_or_default());
            out.push(b':');
        }
    }
}

/// One value.
pub(super) fn value(view: &View<'_>, kept: &mut Kept, index: u32, out: &mut Vec<u8>) {
    if let Some(node) = view.tree.get(index) {
        value_of(view, kept, index, node, out);
    }
}

#[inline]
fn value_of(view: &View<'_>, kept: &mut Kept, index: u32, node: &Node, out: &mut Vec<u8>) {
    if view.redact && node.has(mark::SECRET) {
        out.extend_from_slice(format!("\"<redacted, {} bytes>\"", node.bits.div_ceil(8)).as_bytes());
        return;
    }
    match node.kind {
        Kind::Struct => object(view, kept, index, out),
        Kind::List => list(view, kept, index, out),
        _ => match view.tables.quick(node.ty).symbols {
            Some(symbols) => named(view.tables, symbols, node, kept, out),
            None => scalar(view, node, out),
        },
    }
}

fn list(view: &View<'_>, kept: &mut Kept, node: u32, out: &mut Vec<u8>) {
    let start = out.len();
    for (index, child) in view.tree.members(node) {
        out.push(b',');
        value_of(view, kept, index, child, out);
    }
    enclose(out, start, *b"[]");
}

/// A value without children and without names.
pub(super) fn scalar(view: &View<'_>, node: &Node, out: &mut Vec<u8>) {
    match node.kind {
        Kind::Unsigned | Kind::Signed | Kind::Unsigned64 | Kind::Signed64 => integer(node, out),
        Kind::Null => out.extend_from_slice(b"null"),
        Kind::Bool => match node.value {
            0 => out.extend_from_slice(b"false"),
            1 => out.extend_from_slice(b"true"),
            n => number(out, n),
        },
        Kind::F32 => float32(f32::from_bits(node.value as u32), out),
        Kind::F64 => float64(f64::from_bits(node.value), out),
        Kind::Uuid | Kind::UuidBe => uuid(&content(view, node), node.kind == Kind::Uuid, out),
        Kind::Ipv4 => {
            let [a, b, c, d] = (node.value as u32).to_be_bytes();
            out.extend_from_slice(format!("\"{a}.{b}.{c}.{d}\"").as_bytes());
        }
        Kind::Text(TextKind::Owned) => string(out, view.tree.owned(node.value)),
        Kind::Text(kind) => text(kind, &content(view, node), out),
        Kind::Number => out.extend_from_slice(view.tree.owned(node.value).as_bytes()),
        Kind::Bytes | Kind::Undecoded => {
            out.push(b'"');
            hex(out, &content(view, node));
            out.push(b'"');
        }
        Kind::Struct | Kind::List => {}
    }
}

fn content<'a>(view: &View<'a>, node: &Node) -> Cow<'a, [u8]> {
    view.tree.content(node, view.bytes)
}

fn text(kind: TextKind, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    if !quick(kind, bytes, out) {
        decode_pieces(kind, bytes, |piece| escaped(out, piece));
    }
    out.push(b'"');
}

/// The frequent texts, all plain ASCII once decoded, without a buffer in between. Says whether it was one.
fn quick(kind: TextKind, bytes: &[u8], out: &mut Vec<u8>) -> bool {
    // Not the first that is not plain is looked for, but whether there is one: many at once.
    let plain = |b: u8| (0x20..0x7f).contains(&b) & (b != b'"') & (b != b'\\');
    let start = out.len();
    match kind {
        TextKind::Utf8 | TextKind::Latin1 => out.extend_from_slice(bytes),
        TextKind::Inverted8 => out.extend(bytes.iter().map(|b| !b)),
        TextKind::Utf16 => {
            let (units, odd) = bytes.as_chunks::<2>();
            if !odd.is_empty() || !units.iter().fold(true, |all, u| all & (u[1] == 0)) {
                return false;
            }
            out.extend(units.iter().map(|u| u[0]));
        }
        _ => return false,
    }
    let good = out.get(start..).is_some_and(|text| text.iter().fold(true, |all, b| all & plain(*b)));
    if !good {
        out.truncate(start);
    }
    good
}

fn uuid(bytes: &[u8], microsoft: bool, out: &mut Vec<u8>) {
    let mut ordered: [u8; 16] = bytes.first_chunk().copied().unwrap_or_default();
    if microsoft {
        let [a, b, c, d, e, f, g, h, rest @ ..] = ordered;
        let [i, j, k, l, m, n, o, p] = rest;
        ordered = [d, c, b, a, f, e, h, g, i, j, k, l, m, n, o, p];
    }
    out.push(b'"');
    let mut rest = &ordered[..];
    for (i, part) in [4, 2, 2, 2, 6].into_iter().enumerate() {
        if i > 0 {
            out.push(b'-');
        }
        let (now, later) = rest.split_at(part);
        hex(out, now);
        rest = later;
    }
    out.push(b'"');
}

fn float32(f: f32, out: &mut Vec<u8>) {
    if f.is_finite() && f.abs() > 3e38 {
        // Read as 64 bits, the shortest form of the largest floats lies beyond what 32 bits can hold.
        float64(f64::from(f), out);
    } else if f.is_finite() {
        out.extend_from_slice(zmij::Buffer::new().format_finite(f).as_bytes());
    } else {
        special(f64::from(f), out);
    }
}

fn float64(f: f64, out: &mut Vec<u8>) {
    if f.is_finite() {
        out.extend_from_slice(zmij::Buffer::new().format_finite(f).as_bytes());
    } else {
        special(f, out);
    }
}

fn special(f: f64, out: &mut Vec<u8>) {
    let word: &[u8] = match (f.is_nan(), f > 0.0) {
        (true, _) => b"\"NaN\"",
        (_, true) => b"\"Infinity\"",
        _ => b"\"-Infinity\"",
    };
    out.extend_from_slice(word);
}
