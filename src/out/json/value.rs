//! Values of a tree as JSON.

use std::borrow::Cow;

use super::{escaped, hex, number, string};
use crate::table::{EnumDef, Tables};
use crate::tree::{Kind, Node, Sym, TextKind, Tree, decode_text, mark};

/// A tree with all that is needed to read it.
pub(super) struct View<'a> {
    pub(super) tables: &'a Tables,
    pub(super) tree: &'a Tree,
    pub(super) bytes: &'a [u8],
    pub(super) redact: bool,
}

/// A structure's fields as an object; what is only a span is passed over.
pub(super) fn object(view: &View<'_>, node: u32, out: &mut Vec<u8>) {
    out.push(b'{');
    let mut first = true;
    for (index, child) in view.tree.members(node) {
        if !first {
            out.push(b',');
        }
        first = false;
        key(view, child.name, out);
        value_of(view, index, child, out);
    }
    out.push(b'}');
}

fn key(view: &View<'_>, name: Sym, out: &mut Vec<u8>) {
    match view.tree.dynamic(name) {
        None => out.extend_from_slice(view.tables.name_forms(name).map_or(b"\"\":", |n| n.json.as_bytes())),
        Some(text) => {
            string(out, text);
            out.push(b':');
        }
    }
}

/// One value.
pub(super) fn value(view: &View<'_>, index: u32, out: &mut Vec<u8>) {
    if let Some(node) = view.tree.get(index) {
        value_of(view, index, node, out);
    }
}

fn value_of(view: &View<'_>, index: u32, node: &Node, out: &mut Vec<u8>) {
    if view.redact && node.has(mark::SECRET) {
        out.extend_from_slice(format!("\"<redacted, {} bytes>\"", node.bits.div_ceil(8)).as_bytes());
        return;
    }
    match node.kind {
        Kind::Struct => object(view, index, out),
        Kind::List => list(view, index, out),
        _ => match view.tables.symbols(node.ty) {
            Some(symbols) => named(node, symbols, out),
            None => scalar(view, node, out),
        },
    }
}

fn list(view: &View<'_>, node: u32, out: &mut Vec<u8>) {
    out.push(b'[');
    let mut first = true;
    for (index, child) in view.tree.members(node) {
        if !first {
            out.push(b',');
        }
        first = false;
        value_of(view, index, child, out);
    }
    out.push(b']');
}

/// A value of an enum or a flag set.
fn named(node: &Node, symbols: &EnumDef, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"value\":");
    integer(node, out);
    let bits = (node.bits.clamp(1, 64)) as u64;
    let raw = if bits == 64 { node.value } else { node.value & ((1 << bits) - 1) };
    if symbols.flags {
        out.extend_from_slice(b",\"names\":[");
        let mut first = true;
        for v in symbols.values.iter().filter(|v| v.value != 0 && raw & v.value == v.value) {
            if !first {
                out.push(b',');
            }
            first = false;
            out.extend_from_slice(v.json.as_bytes());
        }
        out.push(b']');
    } else if let Some(v) = symbols.get(node.value).or_else(|| symbols.get(raw)) {
        out.extend_from_slice(b",\"name\":");
        out.extend_from_slice(v.json.as_bytes());
    }
    out.push(b'}');
}

fn integer(node: &Node, out: &mut Vec<u8>) {
    match node.kind {
        Kind::Signed => number(out, node.value as i64),
        Kind::Unsigned64 => {
            out.push(b'"');
            number(out, node.value);
            out.push(b'"');
        }
        Kind::Signed64 => {
            out.push(b'"');
            number(out, node.value as i64);
            out.push(b'"');
        }
        _ => number(out, node.value),
    }
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
    let ascii = kind == TextKind::Utf8 && bytes.iter().all(|b| (0x20..0x7f).contains(b) && *b != b'"' && *b != b'\\');
    out.push(b'"');
    if ascii {
        out.extend_from_slice(bytes);
    } else if !quick(kind, bytes, out) {
        let mut decoded = String::with_capacity(bytes.len());
        decode_text(kind, bytes, &mut decoded);
        escaped(out, &decoded);
    }
    out.push(b'"');
}

/// The frequent texts, all plain ASCII once decoded, without a buffer in between. Says whether it was one.
fn quick(kind: TextKind, bytes: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    let plain = |b: u8| (0x20..0x7f).contains(&b) && b != b'"' && b != b'\\';
    let good = match kind {
        TextKind::Inverted8 => {
            out.extend(bytes.iter().map(|b| !b));
            out.get(start..).is_some_and(|t| t.iter().all(|b| plain(*b)))
        }
        TextKind::Utf16 => {
            let (units, odd) = bytes.as_chunks::<2>();
            out.extend(units.iter().map(|u| u[0]));
            odd.is_empty() && units.iter().all(|u| u[1] == 0 && plain(u[0]))
        }
        _ => false,
    };
    if !good {
        out.truncate(start);
    }
    good
}

fn uuid(bytes: &[u8], microsoft: bool, out: &mut Vec<u8>) {
    let order: [usize; 16] = if microsoft {
        [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15]
    } else {
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]
    };
    out.push(b'"');
    for (i, from) in order.into_iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        hex(out, &[bytes.get(from).copied().unwrap_or(0)]);
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
