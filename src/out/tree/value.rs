//! Single values as a person reads them, and the bytes below a message.

use std::borrow::Cow;
use std::io::Write;

use super::super::json;
use super::super::paint::Paint;
use super::past::Past;
use crate::table::Tables;
use crate::tree::{Buffer, Kind, Node, Tree, mark};

/// A tree with all that is needed to read it.
pub(super) struct View<'a> {
    pub(super) tables: &'a Tables,
    pub(super) tree: &'a Tree,
    pub(super) bytes: &'a [u8],
    pub(super) past: Past<'a>,
    pub(super) redact: bool,
}

/// Bytes that are shown of a long value; the rest is counted.
const SHOWN_BYTES: usize = 32;

/// Appends a value without children.
pub(super) fn scalar(view: &View<'_>, node: &Node, out: &mut Vec<u8>) {
    match node.kind {
        Kind::Unsigned | Kind::Unsigned64 => json::number(out, node.value),
        Kind::Signed | Kind::Signed64 => json::number(out, node.value as i64),
        Kind::Null => out.extend_from_slice(b"none"),
        Kind::Bool => out.extend_from_slice(if node.value == 0 { b"false" } else { b"true" }),
        Kind::Text(_) => json::scalar(view.tables, view.tree, view.bytes, node, out),
        Kind::Bytes | Kind::Undecoded => bytes(&content(view, node), out),
        _ => unquoted(view, node, out),
    }
}

/// What JSON writes as a string or a number, without its quotes.
fn unquoted(view: &View<'_>, node: &Node, out: &mut Vec<u8>) {
    let start = out.len();
    json::scalar(view.tables, view.tree, view.bytes, node, out);
    if out.get(start) == Some(&b'"') {
        out.pop();
        out.remove(start);
    }
}

fn content<'a>(view: &View<'a>, node: &Node) -> Cow<'a, [u8]> {
    view.tree.content(node, view.bytes)
}

/// Appends a text with its quotes.
pub(super) fn quoted(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let plain = text.bytes().all(|b| b >= 0x20 && b != b'"' && b != b'\\');
    if plain {
        out.extend_from_slice(text.as_bytes());
    } else {
        json::escaped(out, text);
    }
    out.push(b'"');
}

fn bytes(all: &[u8], out: &mut Vec<u8>) {
    if all.is_empty() {
        out.extend_from_slice(b"no bytes");
        return;
    }
    for (i, b) in all.iter().take(SHOWN_BYTES).enumerate() {
        if i > 0 && i % 4 == 0 {
            out.push(b' ');
        }
        json::hex(out, &[*b]);
    }
    if all.len() > SHOWN_BYTES {
        let _ = write!(out, " … ({} bytes)", all.len());
    }
}

/// Numbers that are shown on one line: those of a patch of terrain are.
const LINE: u32 = 256;

/// Whether a list is short and flat enough for one line.
pub(super) fn is_short_list(view: &View<'_>, index: u32, node: &Node) -> bool {
    let numbers = |n: &Node| {
        matches!(n.kind, Kind::Unsigned | Kind::Signed | Kind::F32 | Kind::F64) && view.tables.symbols(n.ty).is_none()
    };
    node.kind == Kind::List
        && node.end - index <= LINE + 1
        && node.end > index + 1
        && view.tree.children(index).all(|(_, n)| numbers(n))
}

/// Appends a short list on one line.
pub(super) fn short_list(view: &View<'_>, index: u32, out: &mut Vec<u8>) {
    out.push(b'[');
    for (i, (_, node)) in view.tree.children(index).enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        scalar(view, node, out);
    }
    out.push(b']');
}

/// Appends the message's bytes, 16 a line, each in the colour of its field; made buffers follow.
pub(super) fn dump(view: &View<'_>, paint: &Paint, out: &mut Vec<u8>) {
    dump_buffer(view, Buffer::CAPTURED, paint, out);
    let mut buffers: Vec<u16> = view.tree.nodes().iter().map(|n| n.buffer.0).filter(|b| *b > 0).collect();
    buffers.sort_unstable();
    buffers.dedup();
    for buffer in buffers {
        let made = view.tree.made(Buffer(buffer)).map_or("", |m| m.word());
        let _ = writeln!(out, "      {made}:");
        dump_buffer(view, Buffer(buffer), paint, out);
    }
}

fn dump_buffer(view: &View<'_>, buffer: Buffer, paint: &Paint, out: &mut Vec<u8>) {
    let all = view.tree.bytes(buffer, view.bytes);
    let ties = ties(view, buffer, all.len());
    for (row, line) in all.chunks(16).enumerate() {
        let _ = write!(out, "      {:06x} ", row * 16);
        let mut text = String::new();
        for i in 0..16 {
            if i == 8 {
                out.push(b' ');
            }
            let Some(byte) = line.get(i) else {
                out.extend_from_slice(b"   ");
                continue;
            };
            let (tie, hidden) = ties.get(row * 16 + i).copied().unwrap_or((usize::MAX, false));
            let colour = if tie == usize::MAX { &paint.dim } else { paint.tie(tie) };
            let shown = if hidden { "**".to_string() } else { format!("{byte:02x}") };
            let _ = write!(out, " {}{shown}{}", colour.0, colour.1);
            let printable = !hidden && (0x20..0x7f).contains(byte);
            text.push_str(&colour.0);
            text.push(if printable { char::from(*byte) } else { '.' });
            text.push_str(&colour.1);
        }
        let _ = writeln!(out, "  {text}");
    }
}

/// For each byte of a buffer the number of the shown field it belongs to, and whether it is hidden.
fn ties(view: &View<'_>, buffer: Buffer, len: usize) -> Vec<(usize, bool)> {
    let mut out = vec![(usize::MAX, false); len];
    let mut tie = 0;
    for (index, node) in view.tree.nodes().iter().enumerate().skip(1) {
        let leaf = !matches!(node.kind, Kind::Struct | Kind::List) || is_short_list(view, index as u32, node);
        let hidden = view.redact && node.has(mark::SECRET);
        if hidden || (leaf && !node.has(mark::SPAN)) {
            let (from, to) = (node.start as usize / 8, (node.start + node.bits).div_ceil(8) as usize);
            if node.buffer == buffer {
                for place in out.get_mut(from..to.min(len)).unwrap_or(&mut []) {
                    place.0 = tie;
                }
            }
            tie += 1;
        }
    }
    for (from, to) in view.tree.secrets(buffer).filter(|_| view.redact) {
        for place in out.get_mut(from..to.min(len)).unwrap_or(&mut []) {
            place.1 = true;
        }
    }
    out
}
