//! Single values as a person reads them, and the bytes below a message.

use std::io::Write;

use super::super::json;
use super::super::paint::{Paint, Style};
use super::super::scratch::TextWriter;
use crate::digits::{counted, hex_pair};
use crate::print::view::PrintView;
use crate::session::Event;
use crate::tree::{Buffer, Kind, Node, mark};

/// A tree with what it refers to.
/// Bytes that are shown of a long value; the rest is counted.
const SHOWN_BYTES: usize = 32;

/// Appends the replacement for a value that is hidden.
#[inline(never)]
pub(super) fn hidden(node: &Node, w: &mut TextWriter<'_>) {
    w.fixed(b"<redacted, ");
    w.number(u64::from(node.bits.div_ceil(8)));
    w.fixed(b" bytes>");
}

/// Appends a value that fits on one line.
pub(super) fn other(view: &PrintView<'_>, index: u32, node: &Node, w: &mut TextWriter<'_>) {
    if node.kind == Kind::List { short_list(view, index, w) } else { scalar(view, node, w) }
}

/// Appends a value without children.
#[inline]
fn scalar(view: &PrintView<'_>, node: &Node, w: &mut TextWriter<'_>) {
    match node.kind {
        Kind::Unsigned | Kind::Unsigned64 => w.number(node.value),
        Kind::Signed | Kind::Signed64 => w.signed(node.value as i64),
        Kind::Null => w.fixed(b"none"),
        Kind::Bool if node.value == 0 => w.fixed(b"false"),
        Kind::Bool => w.fixed(b"true"),
        Kind::Bytes | Kind::Undecoded => {
            bytes(&view.message.tree.content(node, view.message.bytes), w)
        }
        Kind::Text(kind) => json::text(view.message.tree, view.message.bytes, node, kind, w),
        _ => json::unquoted(view.message, node, w),
    }
}

fn bytes(all: &[u8], w: &mut TextWriter<'_>) {
    if all.is_empty() {
        w.fixed(b"no bytes");
        return;
    }
    for (i, four) in all.chunks(4).take(SHOWN_BYTES / 4).enumerate() {
        if i > 0 {
            w.byte(b' ');
        }
        json::write_hex(w, four);
    }
    if all.len() > SHOWN_BYTES {
        w.word(" … (");
        w.number(all.len() as u64);
        w.fixed(b" bytes)");
    }
}

/// Numbers that are shown on one line: those of a patch of terrain are.
const LINE: u32 = 256;

/// Whether a list is short and flat enough for one line.
#[inline(never)]
pub(super) fn is_short_list(view: &PrintView<'_>, index: u32, node: &Node) -> bool {
    let numbers = |n: &Node| {
        matches!(n.kind, Kind::Unsigned | Kind::Signed | Kind::F32 | Kind::F64)
            && view.message.tables.symbols(n.ty).is_none()
    };
    node.kind == Kind::List
        && node.end - index <= LINE + 1
        && view.message.tree.members(index).next().is_some()
        && view.message.tree.members(index).all(|(_, n)| numbers(n))
}

/// Appends a short list on one line.
fn short_list(view: &PrintView<'_>, index: u32, w: &mut TextWriter<'_>) {
    w.byte(b'[');
    for (i, (_, node)) in view.message.tree.members(index).enumerate() {
        if i > 0 {
            w.fixed(b", ");
        }
        scalar(view, node, w);
    }
    w.byte(b']');
}

/// Appends the message's bytes, 16 a line, each in the colour of its field; made buffers follow.
pub(super) fn dump(view: &PrintView<'_>, paint: &Paint, out: &mut Vec<u8>) {
    let mut left = MAX_DUMP;
    dump_buffer(view, Buffer::CAPTURED, paint, &mut left, out);
    let mut buffers: Vec<u16> =
        view.message.tree.nodes().iter().map(|n| n.buffer.0).filter(|b| *b > 0).collect();
    buffers.sort_unstable();
    buffers.dedup();
    for buffer in buffers {
        let made = view.message.tree.made(Buffer(buffer)).map_or("", |m| m.word());
        let _ = writeln!(out, "      {made}:");
        dump_buffer(view, Buffer(buffer), paint, &mut left, out);
    }
}

/// Appends the bytes of an event, as those of a message. With `redact` all are hidden, because what
/// they say is not known.
pub(super) fn dump_event(event: &Event, redact: bool, paint: &Paint, out: &mut Vec<u8>) {
    dump_bytes(&event.bytes, &vec![(usize::MAX, redact); event.bytes.len()], paint, out);
    if event.cut() > 0 {
        let _ = writeln!(out, "      and {} (--max-undecoded)", counted(event.cut(), "more byte"));
    }
}

/// Bytes that `-x` shows of a message with all its buffers. In colour a byte takes some 40 bytes of
/// text, and several threads hold such texts at a time.
const MAX_DUMP: usize = 64 << 10;

/// Appends the bytes of a buffer, at most `left`, and counts them there; says how many are not
/// shown.
fn dump_buffer(
    view: &PrintView<'_>,
    buffer: Buffer,
    paint: &Paint,
    left: &mut usize,
    out: &mut Vec<u8>,
) {
    let whole = view.message.tree.bytes(buffer, view.message.bytes);
    let all = whole.get(..*left).unwrap_or(whole);
    *left -= all.len();
    dump_bytes(all, &ties(view, buffer, all.len()), paint, out);
    if all.len() < whole.len() {
        let _ = writeln!(out, "      and {}", counted(whole.len() - all.len(), "more byte"));
    }
}

/// Appends bytes, 16 a line; `ties` has for each of them the number of its field, and whether it is
/// hidden.
fn dump_bytes(all: &[u8], ties: &[(usize, bool)], paint: &Paint, out: &mut Vec<u8>) {
    for (row, line) in all.chunks(16).enumerate() {
        let _ = write!(out, "      {:06x} ", row * 16);
        let ties = ties.get(row * 16..).unwrap_or_default();
        for (at, (byte, (tie, hidden))) in line.iter().zip(ties).enumerate() {
            out.extend_from_slice(if at == 8 { b"  " } else { b" " });
            let shown = if *hidden { *b"**" } else { hex_pair(*byte) };
            painted(dump_paint(paint, *tie), &shown, out);
        }
        let missing = (16 - line.len()) * 3 + usize::from(line.len() <= 8);
        out.resize(out.len() + missing + 2, b' ');
        for (byte, (tie, hidden)) in line.iter().zip(ties) {
            let printable = !hidden && (0x20..0x7f).contains(byte);
            painted(dump_paint(paint, *tie), &[if printable { *byte } else { b'.' }], out);
        }
        out.push(b'\n');
    }
}

/// The colour of a byte that belongs to the field of a number.
fn dump_paint(paint: &Paint, tie: usize) -> &Style {
    if tie == usize::MAX { &paint.dim } else { paint.tie(tie) }
}

fn painted(paint: &Style, text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(paint.on.as_bytes());
    out.extend_from_slice(text);
    out.extend_from_slice(paint.off.as_bytes());
}

/// For each byte of a buffer the number of the shown field it belongs to, and whether it is hidden.
fn ties(view: &PrintView<'_>, buffer: Buffer, len: usize) -> Vec<(usize, bool)> {
    let mut out = vec![(usize::MAX, false); len];
    let mut tie = 0;
    for (index, node) in view.message.tree.nodes().iter().enumerate().skip(1) {
        let leaf = !matches!(node.kind, Kind::Struct | Kind::List)
            || is_short_list(view, index as u32, node);
        let hidden = view.redact && node.has(mark::SECRET);
        if hidden || (leaf && !node.has(mark::SPAN)) {
            let from = node.start as usize / 8;
            let to = (node.start + node.bits).div_ceil(8) as usize;
            if node.buffer == buffer {
                for place in out.get_mut(from..to.min(len)).unwrap_or(&mut []) {
                    place.0 = tie;
                }
            }
            tie += 1;
        }
    }
    for (from, to) in view.message.tree.secrets(buffer).filter(|_| view.redact) {
        for place in out.get_mut(from..to.min(len)).unwrap_or(&mut []) {
            place.1 = true;
        }
    }
    out
}
