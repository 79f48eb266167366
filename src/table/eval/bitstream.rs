//! The types of OuroDev's bit streams: values that begin and end at any bit, the least significant
//! bit first.
//!
//! `docs/ouro.md` documents their encoding. This file knows no protocol, and reads nothing beyond
//! the cursor's region.

use super::super::cursor::{Cursor, Short};
use super::{Call, Run, Stop};
use crate::tree::{Kind, Node, Severity, Sym, TextKind, mark};

/// A packed integer could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoPackint {
    /// The region ends within it.
    Short(Short),
    /// It exceeds 32 bits: all bits of its fields are set.
    Endless,
}

/// A packed integer: fields of `width` bits (1 to 32), each twice as wide as the one before, up to
/// 32. All but the last have all bits set, and the value is the sum of all. A field of 32 bits is
/// always the last.
pub fn read_packint(cursor: &mut Cursor<'_>, width: u64) -> Result<u32, NoPackint> {
    let mut width = width.clamp(1, 32) as u32;
    let mut sum = 0u64;
    loop {
        let field = cursor.bits(width).map_err(NoPackint::Short)?;
        sum += field;
        if field < (1 << width) - 1 || width == 32 {
            return u32::try_from(sum).map_err(|_| NoPackint::Endless);
        }
        width = (width * 2).min(32);
    }
}

/// An integer of 2, 10, 24 or 32 bits. The two bits before it tell its width.
fn read_autobits(cursor: &mut Cursor<'_>) -> Result<u64, Short> {
    let width = match cursor.bits(2)? {
        0 => 2,
        1 => 10,
        2 => 24,
        _ => 32,
    };
    cursor.bits(width)
}

fn width(run: &mut Run<'_>, cursor: &Cursor<'_>, call: &Call) -> u32 {
    run.arg(call, 0, cursor).min(32) as u32
}

/// The document allows 32 bits, but layouts made from it ask for 64.
fn wide(run: &mut Run<'_>, cursor: &Cursor<'_>, call: &Call) -> (u32, Kind) {
    let width = run.arg(call, 0, cursor);
    if width > 32 {
        (width.min(64) as u32, Kind::Unsigned64)
    } else {
        (width as u32, Kind::Unsigned)
    }
}

pub(in crate::table) fn bits(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
) -> Result<u64, Stop> {
    let start = cursor.pos();
    let (width, kind) = wide(run, cursor, call);
    let value = cursor.bits(width)?;
    number(run, cursor, call, start, value, kind)
}

pub(in crate::table) fn maybe_bits(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
) -> Result<u64, Stop> {
    let start = cursor.pos();
    let (width, kind) = wide(run, cursor, call);
    let value = if cursor.bits(1)? == 1 { cursor.bits(width)? } else { 0 };
    number(run, cursor, call, start, value, kind)
}

pub(in crate::table) fn autobits(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
) -> Result<u64, Stop> {
    let start = cursor.pos();
    let value = read_autobits(cursor)?;
    number(run, cursor, call, start, value, Kind::Unsigned)
}

/// Two autobits: the lower half, then the upper one.
pub(in crate::table) fn autobits2(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
) -> Result<u64, Stop> {
    let start = cursor.pos();
    let low = read_autobits(cursor)?;
    let high = read_autobits(cursor)?;
    number(run, cursor, call, start, low | high << 32, Kind::Unsigned64)
}

/// Zero bits to the next byte's start, then whole bytes.
pub(in crate::table) fn alignedbits(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
) -> Result<u64, Stop> {
    let start = cursor.pos();
    let bits = run.arg(call, 0, cursor);
    let clean = align(cursor)?;
    let len = usize::try_from(bits.div_ceil(8)).unwrap_or(usize::MAX);
    let at = cursor.skip(len)?;
    let node = run.tree.leaf(call.node(cursor, start, Kind::Bytes, Node::place(at, len)));
    say_padding(run, node, clean);
    Ok(0)
}

pub(in crate::table) fn packint(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
) -> Result<u64, Stop> {
    let start = cursor.pos();
    packed(run, cursor, call, start)
}

pub(in crate::table) fn maybe_packint(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
) -> Result<u64, Stop> {
    let start = cursor.pos();
    if cursor.bits(1)? == 0 {
        return number(run, cursor, call, start, 0, Kind::Unsigned);
    }
    packed(run, cursor, call, start)
}

fn packed(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
    start: usize,
) -> Result<u64, Stop> {
    let width = run.arg(call, 0, cursor);
    match read_packint(cursor, width) {
        Ok(value) => number(run, cursor, call, start, u64::from(value), Kind::Unsigned),
        Err(NoPackint::Short(short)) => Err(short.into()),
        Err(NoPackint::Endless) => {
            // It has no node of its own: its bits belong to the next node.
            let node = run.tree.len();
            let text = "the packed integer at bit {a} has no end: it is more than 32 bits can hold";
            run.problem(Severity::Error, node, text, start as i64, 0);
            Err(Stop::Bad)
        }
    }
}

pub(in crate::table) fn string(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
) -> Result<u64, Stop> {
    let start = cursor.pos();
    text(run, cursor, call, start).map(|_| 0)
}

pub(in crate::table) fn maybe_string(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
) -> Result<u64, Stop> {
    let start = cursor.pos();
    if cursor.bits(1)? == 0 {
        run.tree.leaf(call.node(cursor, start, Kind::Null, 0));
        return Ok(0);
    }
    text(run, cursor, call, start).map(|_| 1)
}

pub(in crate::table) fn alignedstring(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
) -> Result<u64, Stop> {
    let start = cursor.pos();
    let clean = align(cursor)?;
    let node = text(run, cursor, call, start)?;
    say_padding(run, node, clean);
    Ok(0)
}

/// Text up to a zero byte, at any bit, as a node that begins at `start`. It is read as ISO 8859-1:
/// the encoding is not documented, and this one shows every byte.
fn text(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
    start: usize,
) -> Result<u32, Stop> {
    let first = cursor.pos();
    let mut text = String::new();
    loop {
        match cursor.bits(8) {
            Ok(0) => break,
            Ok(byte) => text.push(char::from(byte as u8)),
            Err(short) => {
                cursor.seek(first);
                return Err(short.into());
            }
        }
    }
    let place = run.tree.own_text(&text);
    Ok(run.tree.leaf(call.node(cursor, start, Kind::Text(TextKind::Owned), place)))
}

/// Nothing, or an index into a table that both sides have, or the text itself.
pub(in crate::table) fn indexstring(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
) -> Result<u64, Stop> {
    let start = cursor.pos();
    if cursor.bits(1)? == 0 {
        run.tree.leaf(call.node(cursor, start, Kind::Null, 0));
        return Ok(0);
    }
    if cursor.bits(1)? == 1 {
        return index(run, cursor, call, start, true);
    }
    text(run, cursor, call, start).map(|_| 1)
}

/// An index into a table that both sides have, or the number itself in 32 bits.
pub(in crate::table) fn indexgeneric(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
) -> Result<u64, Stop> {
    let start = cursor.pos();
    if cursor.bits(1)? == 1 {
        return index(run, cursor, call, start, false);
    }
    let value = cursor.bits(32)?;
    number(run, cursor, call, start, value, Kind::Unsigned)
}

/// The index behind the flags, as a structure `{ index }` that begins at `start` and has the flags
/// as spans.
fn index(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
    start: usize,
    nullable: bool,
) -> Result<u64, Stop> {
    let from = cursor.pos();
    let width = width(run, cursor, call);
    let value = cursor.bits(width)?;
    let node = run.tree.leaf(call.node(cursor, start, Kind::Struct, 0));
    let name = |word: &str| run.tables.sym(word).unwrap_or(call.name);
    let in_table = name("in_table");
    let index = name("index");
    let present = run.tables.present_name();
    let ty = run.tables.type_named("Flag").unwrap_or(call.ty);
    let mut part = |name: Sym, ty, (from, to): (usize, usize), value, marks| {
        run.tree.leaf(Node {
            value,
            name,
            ty,
            start: from as u32,
            bits: (to - from) as u32,
            end: 0,
            buffer: cursor.buffer(),
            kind: Kind::Unsigned,
            marks,
        });
    };
    if nullable {
        part(present, ty, (start, start + 1), 1, mark::SPAN);
    }
    part(in_table, ty, (from - 1, from), 1, mark::SPAN);
    part(index, call.ty, (from, cursor.pos()), value, 0);
    run.tree.close(node, cursor.pos());
    Ok(value)
}

pub(in crate::table) fn float32(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
) -> Result<u64, Stop> {
    let start = cursor.pos();
    let value = cursor.bits(32)?;
    number(run, cursor, call, start, value, Kind::F32)
}

pub(in crate::table) fn maybe_float32(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
) -> Result<u64, Stop> {
    let start = cursor.pos();
    let value = if cursor.bits(1)? == 1 { cursor.bits(32)? } else { 0 };
    number(run, cursor, call, start, value, Kind::F32)
}

/// Goes to the next byte's start. Returns whether all bits passed over were zero.
fn align(cursor: &mut Cursor<'_>) -> Result<bool, Short> {
    let pad = cursor.pos().next_multiple_of(8) - cursor.pos();
    Ok(cursor.bits(pad as u32)? == 0)
}

fn say_padding(run: &mut Run<'_>, node: u32, clean: bool) {
    if !clean {
        run.problem(
            Severity::Note,
            node,
            "the bits before it, up to the byte's end, are not all zero",
            0,
            0,
        );
    }
}

/// Adds the node of a number that begins at the bit `start` and ends at the cursor. Returns the
/// number.
fn number(
    run: &mut Run<'_>,
    cursor: &Cursor<'_>,
    call: &Call,
    start: usize,
    value: u64,
    kind: Kind,
) -> Result<u64, Stop> {
    run.tree.leaf(call.node(cursor, start, kind, value));
    Ok(value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tree::Buffer;

    fn packed(bytes: &[u8], width: u64) -> Result<u32, NoPackint> {
        read_packint(&mut Cursor::new(bytes, Buffer::CAPTURED), width)
    }

    #[test]
    fn packed_integers_grow_by_doubling() {
        assert_eq!(packed(&[0b0], 1), Ok(0));
        assert_eq!(packed(&[0b001], 1), Ok(1));
        assert_eq!(packed(&[0b011], 1), Ok(2));
        assert_eq!(packed(&[0b101], 1), Ok(3));
        assert_eq!(packed(&[0b000_0111], 1), Ok(4));
        assert_eq!(packed(&[0x7f, 0], 1), Ok(19));
        assert_eq!(packed(&[0b110], 3), Ok(6));
        assert_eq!(packed(&[0b111, 0], 3), Ok(7));
        assert_eq!(packed(&[0xff; 4], 32), Ok(u32::MAX), "a field of 32 bits is the last");
    }

    #[test]
    fn a_packed_integer_that_never_ends_is_given_up() {
        assert_eq!(packed(&[0xff; 200], 1), Err(NoPackint::Endless));
        assert!(matches!(packed(&[0xff; 3], 1), Err(NoPackint::Short(_))));
    }
}
