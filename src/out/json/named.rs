//! Numbers with names, as they were written before: the same few come again and again, and their text is longer than most.

use crate::table::{EnumDef, EnumId, Tables};
use crate::tree::{Kind, Node};

use super::number;

/// Values whose text is kept; one takes the place of another.
const KEPT: usize = 256;

/// What a text was made of. Tables stay where they are as long as a run.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    value: u64,
    tables: usize,
    symbols: EnumId,
    bits: u32,
    kind: Kind,
}

/// Texts of named values.
#[derive(Default)]
pub(super) struct Named {
    kept: Vec<Option<(Key, Vec<u8>)>>,
}

impl Named {
    /// Appends a value of an enum or a flag set.
    pub(super) fn write(&mut self, tables: &Tables, symbols: EnumId, node: &Node, out: &mut Vec<u8>) {
        let at = std::ptr::from_ref(tables).addr();
        let key = Key { value: node.value, tables: at, symbols, bits: node.bits, kind: node.kind };
        if self.kept.is_empty() {
            self.kept.resize(KEPT, None);
        }
        // Flags and classes differ in high and low bits alike.
        let mixed = (node.value ^ u64::from(symbols.0) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let Some(place) = self.kept.get_mut((mixed >> 56) as usize) else { return };
        match place {
            Some((known, text)) if *known == key => out.extend_from_slice(text),
            Some((known, text)) => {
                *known = key;
                text.clear();
                named(tables.enum_def(symbols), node, text);
                out.extend_from_slice(text);
            }
            None => {
                let mut text = Vec::with_capacity(64);
                named(tables.enum_def(symbols), node, &mut text);
                out.extend_from_slice(&text);
                *place = Some((key, text));
            }
        }
    }
}

fn named(symbols: Option<&EnumDef>, node: &Node, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"value\":");
    integer(node, out);
    let bits = (node.bits.clamp(1, 64)) as u64;
    let raw = if bits == 64 { node.value } else { node.value & ((1 << bits) - 1) };
    match symbols {
        Some(symbols) if symbols.flags => {
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
        }
        Some(symbols) => {
            if let Some(v) = symbols.get(node.value).or_else(|| symbols.get(raw)) {
                out.extend_from_slice(b",\"name\":");
                out.extend_from_slice(v.json.as_bytes());
            }
        }
        None => {}
    }
    out.push(b'}');
}

/// An integer: those of 64 bits as strings.
#[inline]
pub(super) fn integer(node: &Node, out: &mut Vec<u8>) {
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
