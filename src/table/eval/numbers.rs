//! Types of the language whose values tell their own length or begin within a byte: integers of
//! variable length, bits with the most significant first, names of counted labels, addresses. Every
//! protocol can use them.

use std::fmt::Write;
use std::net::Ipv6Addr;

use super::super::cursor::Cursor;
use super::super::program::ReadAs;
use super::{Call, Run, Stop};
use crate::tree::{Kind, Severity, TextKind};

/// The largest number that JSON shows as a number.
const MAX_SAFE: u64 = 1 << 53;

/// Adds the node of a value that begins at the bit `start` and ends at the cursor.
fn leaf(
    run: &mut Run<'_>,
    cursor: &Cursor<'_>,
    call: &Call,
    start: usize,
    value: u64,
    kind: Kind,
) -> Result<u64, Stop> {
    let node = run.tree.leaf(call.node(cursor, start, kind, value));
    if let Some(def) =
        run.tables.type_def(call.ty).filter(|def| def.expect.is_some() || def.max.is_some())
    {
        run.check_number(def, node, value);
    }
    Ok(value)
}

/// An integer of variable length that does not end within `most` bytes, or has too many bits.
fn endless(run: &mut Run<'_>, cursor: &Cursor<'_>, call: &Call, start: usize) -> Result<u64, Stop> {
    leaf(run, cursor, call, start, 0, Kind::Unsigned)?;
    let node = run.tree.len().saturating_sub(1);
    run.problem(
        Severity::Error,
        node,
        "an integer of variable length goes on after {a} bytes",
        (cursor.pos() - start) as i64 / 8,
        0,
    );
    Err(Stop::Bad)
}

/// The most bytes of an integer with seven bits a byte: the argument, or 10.
fn most(run: &mut Run<'_>, cursor: &Cursor<'_>, call: &Call) -> usize {
    match run.arg(call, 0, cursor) {
        0 => 10,
        most => most.min(10) as usize,
    }
}

/// JSON shows numbers that never exceed 32 bits as numbers, all others as text.
fn kind(bytes: usize, signed: bool) -> Kind {
    match (bytes <= 5, signed) {
        (true, false) => Kind::Unsigned,
        (true, true) => Kind::Signed,
        (false, false) => Kind::Unsigned64,
        (false, true) => Kind::Signed64,
    }
}

/// Seven bits a byte, the least significant first. The highest bit says that another byte follows.
/// Returns the value, its bits, and whether it ended.
fn sevens(cursor: &mut Cursor<'_>, most: usize) -> Result<(u64, u32, bool), Stop> {
    let mut value = 0u64;
    let mut bits = 0u32;
    for _ in 0..most {
        let [byte] = cursor.array()?;
        let part = u64::from(byte & 0x7f);
        value |= part.checked_shl(bits).unwrap_or(0);
        let lost = bits > 57 && part >> (64 - bits.min(64)) != 0;
        bits += 7;
        if byte < 0x80 {
            return Ok((value, bits, !lost));
        }
    }
    Ok((value, bits, false))
}

pub(in crate::table) fn leb128(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
) -> Result<u64, Stop> {
    let start = cursor.pos();
    let most = most(run, cursor, call);
    match sevens(cursor, most)? {
        (value, _, true) => leaf(run, cursor, call, start, value, kind(most, false)),
        _ => endless(run, cursor, call, start),
    }
}

pub(in crate::table) fn sleb128(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
) -> Result<u64, Stop> {
    let start = cursor.pos();
    let most = most(run, cursor, call);
    let (value, bits, _) = sevens(cursor, most)?;
    let above = 64 - bits.min(64);
    let value = ((value << above) as i64 >> above) as u64;
    leaf(run, cursor, call, start, value, kind(most, true))
}

/// The lowest bit is the sign.
pub(in crate::table) fn zigzag(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
) -> Result<u64, Stop> {
    let start = cursor.pos();
    let most = most(run, cursor, call);
    match sevens(cursor, most)? {
        (value, _, true) => leaf(
            run,
            cursor,
            call,
            start,
            (value >> 1) ^ (value & 1).wrapping_neg(),
            kind(most, true),
        ),
        _ => endless(run, cursor, call, start),
    }
}

/// Seven bits a byte, the most significant first.
pub(in crate::table) fn vlq(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
) -> Result<u64, Stop> {
    let start = cursor.pos();
    let most = most(run, cursor, call);
    let mut value = 0u64;
    for _ in 0..most {
        let [byte] = cursor.array()?;
        let lost = value >> 57 != 0;
        value = value << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 && !lost {
            return leaf(run, cursor, call, start, value, kind(most, false));
        }
    }
    endless(run, cursor, call, start)
}

/// The two highest bits of the first byte say how many bytes there are: 1, 2, 4 or 8, the most
/// significant first.
pub(in crate::table) fn prefixint(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
) -> Result<u64, Stop> {
    let start = cursor.pos();
    let [first] = cursor.array()?;
    let mut value = u64::from(first & 0x3f);
    for _ in 1..1usize << (first >> 6) {
        let [byte] = cursor.array()?;
        value = value << 8 | u64::from(byte);
    }
    leaf(run, cursor, call, start, value, Kind::Unsigned64)
}

/// Bits of which the most significant come first, in a byte and in the number.
pub(in crate::table) fn bitsbe(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
) -> Result<u64, Stop> {
    let start = cursor.pos();
    let width = run.arg(call, 0, cursor).clamp(1, 64) as usize;
    let mut value = 0u64;
    let mut left = width;
    while left > 0 {
        let within = cursor.pos() % 8;
        let take = left.min(8 - within);
        let mut byte = *cursor;
        byte.seek(cursor.pos() - within);
        let whole = byte.bits(8)? as u8;
        let part = u64::from(whole << within >> (8 - take));
        value = value << take | part;
        cursor.seek(cursor.pos() + take);
        left -= take;
    }
    leaf(
        run,
        cursor,
        call,
        start,
        value,
        if width > 32 { Kind::Unsigned64 } else { Kind::Unsigned },
    )
}

/// The value of an expression, without bytes of its own.
pub(in crate::table) fn computed(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
) -> Result<u64, Stop> {
    let start = cursor.pos();
    let value = match run.tables.type_def(call.ty).map(|def| &def.read) {
        Some(ReadAs::Native { args, .. }) => {
            args.first().and_then(|arg| run.length(*arg, call.frame, cursor))
        }
        _ => None,
    };
    let Some(value) = value else {
        leaf(run, cursor, call, start, 0, Kind::Unsigned)?;
        let node = run.tree.len().saturating_sub(1);
        run.problem(
            Severity::Error,
            node,
            "what this is computed from is absent, or gives no number of 64 bits",
            0,
            0,
        );
        return Err(Stop::Bad);
    };
    leaf(
        run,
        cursor,
        call,
        start,
        value,
        if value <= MAX_SAFE { Kind::Unsigned } else { Kind::Unsigned64 },
    )
}

/// How many bytes the text of a name may have: 255 of a name, each with an escape.
pub(in crate::table) const LONGEST_NAME: usize = 255 * 4;

/// Labels, each behind a byte with its length, up to an empty one. A byte from 192 on begins an
/// offset of 14 bits, from the message's first byte (or from the argument), where the name
/// continues. An offset may only lead backwards, so every name ends.
pub(in crate::table) fn labels(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
) -> Result<u64, Stop> {
    let start = cursor.pos();
    let base = run.arg(call, 0, cursor) as usize;
    let mut text = String::new();
    let mut ahead = *cursor;
    let mut lowest = cursor.pos() / 8;
    let mut jumped = false;
    loop {
        let [length] = ahead.array()?;
        if !jumped {
            *cursor = ahead;
        }
        let length = usize::from(length);
        if length == 0 {
            break;
        }
        if length < 0x40 {
            let Some(label) = ahead.peek(length)? else { return Err(Stop::Bad) };
            ahead.skip(length)?;
            if !jumped {
                *cursor = ahead;
            }
            append_label(&mut text, label);
        } else {
            let [low] = ahead.array()?;
            if !jumped {
                *cursor = ahead;
            }
            let to = base.saturating_add((length & 0x3f) << 8 | usize::from(low));
            if length < 0xc0 || to >= lowest {
                return bad_name(run, cursor, call, start, &text);
            }
            (lowest, jumped) = (to, true);
            ahead.seek(to * 8);
        }
        if text.len() > LONGEST_NAME {
            return bad_name(run, cursor, call, start, &text);
        }
    }
    if text.is_empty() {
        text.push('.');
    }
    name(run, cursor, call, start, &text)
}

/// Adds a label to a name. A byte outside printable ASCII becomes a backslash and three digits, as
/// in zone files.
fn append_label(text: &mut String, label: &[u8]) {
    if !text.is_empty() {
        text.push('.');
    }
    for byte in label {
        let _ = match byte {
            b'.' | b'\\' => write!(text, "\\{}", char::from(*byte)),
            b'!'..=b'~' => write!(text, "{}", char::from(*byte)),
            _ => write!(text, "\\{byte:03}"),
        };
    }
}

fn name(
    run: &mut Run<'_>,
    cursor: &Cursor<'_>,
    call: &Call,
    start: usize,
    text: &str,
) -> Result<u64, Stop> {
    run.state.inflated += text.len();
    if run.state.inflated > run.state.limits.decompressed {
        let most = run.state.limits.decompressed as i64;
        run.problem(
            Severity::Error,
            0,
            "the names of one message become longer than {a} bytes",
            most,
            0,
        );
        return Err(Stop::Limit);
    }
    let value = run.tree.own_text(text);
    leaf(run, cursor, call, start, value, Kind::Text(TextKind::Owned)).map(|_| 0)
}

fn bad_name(
    run: &mut Run<'_>,
    cursor: &Cursor<'_>,
    call: &Call,
    start: usize,
    text: &str,
) -> Result<u64, Stop> {
    name(run, cursor, call, start, text)?;
    let node = run.tree.len().saturating_sub(1);
    run.problem(
        Severity::Error,
        node,
        "a name goes on where it cannot: only further in front",
        0,
        0,
    );
    Ok(0)
}

pub(in crate::table) fn ipv6(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
) -> Result<u64, Stop> {
    let start = cursor.pos();
    let address = Ipv6Addr::from(cursor.array::<16>()?);
    name(run, cursor, call, start, &address.to_string())
}

pub(in crate::table) fn mac(
    run: &mut Run<'_>,
    cursor: &mut Cursor<'_>,
    call: &Call,
) -> Result<u64, Stop> {
    let start = cursor.pos();
    let bytes = cursor.array::<6>()?.map(|byte| format!("{byte:02x}"));
    name(run, cursor, call, start, &bytes.join(":"))
}
