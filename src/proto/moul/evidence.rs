//! Measures how surely some bytes are a message. Evidence is counted in bits: random bytes would
//! pass with a chance of 1 in 2^bits.
//!
//! The trial of a key and the search for lost framing use it. It knows trees and types, but no
//! streams.

use crate::table::{Service, Tables};
use crate::tree::{Buffer, Kind, Node, Severity, TextKind, Tree, decode_text, mark};

/// What else the bytes might be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Against {
    /// The output of a wrong key: every bit is random, and a zero byte is as rare as any other.
    Noise,
    /// The inside of some other message: zeros and small numbers are everywhere there, and prove
    /// little.
    Content,
    /// Traffic of any other protocol: numbers, counters, lengths and zeros, which are small there
    /// as well.
    Others,
}

/// Evidence in bits that the tree's message is really there. Negative if it surely is not.
pub(super) fn weigh_message(
    tables: &Tables,
    service: &Service,
    sender: usize,
    tree: &Tree,
    bytes: &[u8],
    against: Against,
) -> i32 {
    if tree.problems().iter().any(|p| p.severity == Severity::Error) {
        return -100;
    }
    // A length that is right by chance leaves bytes which no field takes.
    let left_over = || tree.children(0).any(|(_, node)| node.kind == Kind::Undecoded);
    if against == Against::Others && left_over() {
        return -100;
    }
    // The chance that random bits are one of the `known` numbers is `known` in 2^width.
    let known = service.messages.get(sender).map_or(1, |m| m.len().max(1)) as u32;
    let width = if service.header.len() > 1 { 32 } else { 16 };
    let mut bits = width - (u32::BITS - known.leading_zeros()) as i32;
    // Two zeros in a row are common inside a message.
    if against == Against::Content && bytes.first_chunk::<2>() == Some(&[0, 0]) {
        bits = 2;
    }
    if against == Against::Others {
        bits = 4;
    }
    bits -= 12 * tree.problems().iter().filter(|p| p.severity == Severity::Warning).count() as i32;
    for (at, node) in tree.nodes().iter().enumerate().skip(1).take(64) {
        let mut worth = weigh_node(tables, node, bytes);
        if against == Against::Others {
            worth = worth_among_others(tables, node, worth);
        }
        // Any number may be the length of unstructured bytes, so it proves nothing by itself. Only
        // the fields behind those bytes can confirm it.
        let counts_bytes =
            node.has(mark::SPAN) && tree.nodes().get(at + 1).is_some_and(|n| n.kind == Kind::Bytes);
        if against != Against::Noise && counts_bytes {
            worth = worth.min(3);
        }
        if against != Against::Noise && is_within_text(node, bytes) {
            worth = -20;
        }
        let empty =
            against != Against::Noise && node.value == 0 && !matches!(node.kind, Kind::Text(_));
        bits += if empty { worth.min(1) } else { worth };
    }
    if against == Against::Noise {
        return bits;
    }
    // A message proves at most the information in its nonzero bytes.
    let telling = bytes.iter().take(64).filter(|b| **b != 0).count() as i32;
    bits.min(if against == Against::Others { 3 } else { 5 } * telling)
}

/// Evidence in a node, where `worth` is what it would be among the bytes of messages. Small numbers
/// are everywhere, and a number that has no name where all have one is hardly ever sent.
fn worth_among_others(tables: &Tables, node: &Node, worth: i32) -> i32 {
    match node.kind {
        Kind::Unsigned if tables.symbols(node.ty).is_some() => {
            let wide = node.bits >= 32;
            if worth < 0 { -40 } else { worth.min(if wide { 2 } else { 8 }) }
        }
        Kind::Unsigned | Kind::Signed if node.has(mark::SPAN) => worth.min(8),
        Kind::Unsigned | Kind::Signed | Kind::Bool => worth.min(2),
        _ => worth,
    }
}

/// Whether a number or a UUID reads as wide text. Its bytes are then probably the inside of a text,
/// where any number can turn up.
fn is_within_text(node: &Node, bytes: &[u8]) -> bool {
    let numbers = matches!(node.kind, Kind::Unsigned | Kind::Signed) && node.bits == 32;
    if node.buffer != Buffer::CAPTURED
        || !(numbers || matches!(node.kind, Kind::Uuid | Kind::UuidBe))
    {
        return false;
    }
    let start = (node.start / 8) as usize;
    let length = (node.bits / 8) as usize;
    let (units, _) = bytes.get(start..start + length).unwrap_or(&[]).as_chunks::<2>();
    let wide = |unit: &[u8; 2]| matches!(unit, [low, 0] if *low >= 0x20);
    !units.is_empty()
        && (units.iter().all(wide) || units.iter().all(|[high, low]| wide(&[*low, *high])))
}

fn weigh_node(tables: &Tables, node: &Node, bytes: &[u8]) -> i32 {
    match node.kind {
        Kind::Bool if node.value <= 1 => 6,
        Kind::Bool => -8,
        Kind::Unsigned if tables.symbols(node.ty).is_some() => weigh_named(tables, node),
        // A count that fits its content. The message number at the start is skipped: it was counted
        // above.
        Kind::Unsigned if node.has(mark::SPAN) && node.start > 0 => (node.bits as i32 / 2).min(12),
        Kind::Unsigned | Kind::Signed if node.has(mark::SPAN) => 0,
        Kind::Unsigned if node.bits == 32 => weigh_size(node.value),
        Kind::Signed if node.bits == 32 => weigh_size((node.value as i64).unsigned_abs()),
        Kind::Text(kind) => weigh_text(kind, node, bytes),
        _ => 0,
    }
}

/// Evidence in a number that has an enum: for it if the enum names the number, against it if not.
fn weigh_named(tables: &Tables, node: &Node) -> i32 {
    let Some(symbols) = tables.symbols(node.ty) else { return 0 };
    if symbols.flags {
        return if node.value >> 16 == 0 { 8 } else { -4 };
    }
    match symbols.get(node.value) {
        Some(_) => (node.bits as i32 - 8).clamp(2, 16),
        None => -12,
    }
}

/// Numbers in messages are mostly small; random ones are not.
fn weigh_size(value: u64) -> i32 {
    match value {
        0..=0xffff => 12,
        0x1_0000..=0xff_ffff => 5,
        _ => -2,
    }
}

/// Readable text is evidence for a message, unreadable text against it.
fn weigh_text(kind: TextKind, node: &Node, bytes: &[u8]) -> i32 {
    let (start, len) = node.content();
    // Any bytes are valid ISO 8859-1, so such text proves nothing.
    let says_nothing = matches!(kind, TextKind::InvertedLatin1 | TextKind::Owned);
    if node.buffer != Buffer::CAPTURED || len == 0 || says_nothing {
        return 1;
    }
    let mut out = String::new();
    let valid = decode_text(kind, bytes.get(start..start + len.min(128)).unwrap_or(&[]), &mut out);
    let odd = out.chars().filter(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')).count();
    let strange = out.chars().filter(|c| *c as u32 > 0x2fff).count();
    if !valid || odd > 0 || strange * 2 > out.chars().count() {
        -20
    } else {
        (len as i32 * 2).min(24)
    }
}
