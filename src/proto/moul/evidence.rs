//! How sure is it that bytes are a message? The evidence is counted in bits: bytes taken at random would pass with a chance of 1 in 2^bits.
//!
//! This is asked where a key is tried, and where framing was lost. It knows trees and types, no stream.

use crate::table::{Service, Tables};
use crate::tree::{Buffer, Kind, Node, Severity, TextKind, Tree, decode_text, mark};

/// What else the bytes might be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Against {
    /// What a wrong key gives: every bit is chance, and zeros are as rare as anything.
    Noise,
    /// The inside of some message: zeros and small numbers are everywhere, and prove little.
    Content,
}

/// Evidence that the tree's message is really there, in bits; negative where it is surely not.
pub(super) fn evidence(
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
    // The chance that random bits are one of the `known` numbers is `known` in 2^width.
    let known = service.messages.get(sender).map_or(1, |m| m.len().max(1)) as u32;
    let width = if service.header.len() > 1 { 32 } else { 16 };
    let mut bits = width - (u32::BITS - known.leading_zeros()) as i32;
    // Inside a message, two zeros are no rarity.
    if against == Against::Content && bytes.first_chunk::<2>() == Some(&[0, 0]) {
        bits = 2;
    }
    bits -= 12 * tree.problems().iter().filter(|p| p.severity == Severity::Warning).count() as i32;
    for (at, node) in tree.nodes().iter().enumerate().skip(1).take(64) {
        let mut worth = of_node(tables, node, bytes);
        // Any number is a possible count of bytes without a structure: only what follows them can confirm it.
        let counts_bytes = node.has(mark::SPAN) && tree.nodes().get(at + 1).is_some_and(|n| n.kind == Kind::Bytes);
        if against == Against::Content && counts_bytes {
            worth = worth.min(3);
        }
        if against == Against::Content && is_text(node, bytes) {
            worth = -20;
        }
        let empty = against == Against::Content && node.value == 0 && !matches!(node.kind, Kind::Text(_));
        bits += if empty { worth.min(1) } else { worth };
    }
    if against == Against::Noise {
        return bits;
    }
    // A few bytes that are not zero cannot prove more than they hold.
    let telling = bytes.iter().take(64).filter(|b| **b != 0).count() as i32;
    bits.min(5 * telling)
}

/// Whether a number or a UUID reads as wide text: then the bytes are likely the inside of a text, in which any number can be found.
fn is_text(node: &Node, bytes: &[u8]) -> bool {
    let numbers = matches!(node.kind, Kind::Unsigned | Kind::Signed) && node.bits == 32;
    if node.buffer != Buffer::CAPTURED || !(numbers || matches!(node.kind, Kind::Uuid | Kind::UuidBe)) {
        return false;
    }
    let (start, length) = ((node.start / 8) as usize, (node.bits / 8) as usize);
    let (units, _) = bytes.get(start..start + length).unwrap_or(&[]).as_chunks::<2>();
    let wide = |unit: &[u8; 2]| matches!(unit, [low, 0] if *low >= 0x20);
    !units.is_empty() && (units.iter().all(wide) || units.iter().all(|[high, low]| wide(&[*low, *high])))
}

fn of_node(tables: &Tables, node: &Node, bytes: &[u8]) -> i32 {
    match node.kind {
        Kind::Bool if node.value <= 1 => 6,
        Kind::Bool => -8,
        Kind::Unsigned if tables.symbols(node.ty).is_some() => named(tables, node),
        // A count that fits its content. The message's own number, at the start, was counted above.
        Kind::Unsigned if node.has(mark::SPAN) && node.start > 0 => (node.bits as i32 / 2).min(12),
        Kind::Unsigned | Kind::Signed if node.has(mark::SPAN) => 0,
        Kind::Unsigned if node.bits == 32 => small(node.value),
        Kind::Signed if node.bits == 32 => small((node.value as i64).unsigned_abs()),
        Kind::Text(kind) => text(kind, node, bytes),
        _ => 0,
    }
}

/// A number that an enum names, or does not.
fn named(tables: &Tables, node: &Node) -> i32 {
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
fn small(value: u64) -> i32 {
    match value {
        0..=0xffff => 12,
        0x1_0000..=0xff_ffff => 5,
        _ => -2,
    }
}

/// Legible text is evidence for a message, illegible text against it.
fn text(kind: TextKind, node: &Node, bytes: &[u8]) -> i32 {
    let (start, len) = node.content();
    // Any bytes can be ISO 8859-1.
    let says_nothing = matches!(kind, TextKind::InvertedLatin1 | TextKind::Owned);
    if node.buffer != Buffer::CAPTURED || len == 0 || says_nothing {
        return 1;
    }
    let mut out = String::new();
    let valid = decode_text(kind, bytes.get(start..start + len.min(128)).unwrap_or(&[]), &mut out);
    let odd = out.chars().filter(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')).count();
    let strange = out.chars().filter(|c| *c as u32 > 0x2fff).count();
    if !valid || odd > 0 || strange * 2 > out.chars().count() { -20 } else { (len as i32 * 2).min(24) }
}
