//! How sure is it that bytes are a message? Counted in bits: what bytes taken at random would have to hit by chance.
//!
//! Used where a key is tried, and where framing was lost: there a message must prove itself. It knows trees and types, no stream.

use crate::table::{Service, Tables};
use crate::tree::{Kind, Severity, TextKind, Tree, decode_text, mark};

/// Evidence that the tree's message is really there, in bits; negative where it is surely not.
pub(super) fn evidence(tables: &Tables, service: &Service, sender: usize, tree: &Tree, bytes: &[u8]) -> i32 {
    let known = service.messages.get(sender).map_or(1, |m| m.len().max(1)) as u32;
    let mut bits = 16 - (u32::BITS - known.leading_zeros()) as i32;
    if tree.problems().iter().any(|p| p.severity == Severity::Error) {
        return -100;
    }
    let unusual = tree.problems().iter().filter(|p| p.severity == Severity::Warning).count();
    bits -= 12 * unusual as i32;
    for node in tree.nodes().iter().skip(1).take(64) {
        bits += match node.kind {
            Kind::Bool => {
                if node.value <= 1 {
                    6
                } else {
                    -8
                }
            }
            Kind::Unsigned if tables.symbols(node.ty).is_some() => named(tables, node),
            // A count that its content bears out; the message's own number was counted above.
            Kind::Unsigned if node.has(mark::SPAN) && node.start > 0 => (node.bits as i32 / 2).min(12),
            Kind::Unsigned | Kind::Signed if node.has(mark::SPAN) => 0,
            Kind::Unsigned if node.bits == 32 => small(node.value),
            Kind::Signed if node.bits == 32 => small((node.value as i64).unsigned_abs()),
            Kind::Text(kind) => text(kind, node, bytes),
            _ => 0,
        };
    }
    bits
}

/// A number that an enum names, or does not.
fn named(tables: &Tables, node: &crate::tree::Node) -> i32 {
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

/// Text that can be read speaks for a message, text that cannot speaks against it.
fn text(kind: TextKind, node: &crate::tree::Node, bytes: &[u8]) -> i32 {
    let (start, len) = node.content();
    if node.buffer != crate::tree::Buffer::CAPTURED || len == 0 {
        return 2;
    }
    let mut out = String::new();
    let valid = decode_text(kind, bytes.get(start..start + len.min(128)).unwrap_or(&[]), &mut out);
    let odd = out.chars().filter(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')).count();
    let strange = out.chars().filter(|c| *c as u32 > 0x2fff).count();
    if !valid || odd > 0 || strange * 2 > out.chars().count() { -20 } else { (len as i32 * 2).min(24) }
}
