//! Numbers with names: values of enums and flag sets.

use super::super::scratch::TextWriter;
use super::super::value_texts::{ValueKey, ValueTexts};
use super::{escaped_bytes, number};
use crate::table::{EnumDef, EnumId, Tables};
use crate::tree::{Kind, Node};

/// Appends a value of an enum or a flag set: its number and names. `meaning` is the number of the
/// enum or flag set, from 1.
#[inline(never)]
pub(super) fn named(
    tables: &Tables,
    meaning: u32,
    node: &Node,
    value_texts: &mut ValueTexts,
    w: &mut TextWriter<'_>,
) {
    let key = ValueKey::new(meaning, node);
    let symbols = EnumId(meaning.wrapping_sub(1));
    match value_texts.find(key) {
        Some(text) => text.append(w),
        None => value_texts.append(key, w, |out| write(tables.enum_def(symbols), node, out)),
    }
}

fn write(symbols: Option<&EnumDef>, node: &Node, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"value\":");
    match node.kind {
        Kind::Signed => number(out, node.value as i64),
        Kind::Unsigned64 => quoted(node.value, out),
        Kind::Signed64 => quoted(node.value as i64, out),
        _ => number(out, node.value),
    }
    let raw = node.unsigned();
    match symbols {
        Some(symbols) if symbols.flags => {
            out.extend_from_slice(b",\"names\":[");
            let mut first = true;
            for v in symbols.values.iter().filter(|v| v.value != 0 && raw & v.value == v.value) {
                if !first {
                    out.push(b',');
                }
                first = false;
                name(&v.name, out);
            }
            out.push(b']');
        }
        Some(symbols) => {
            if let Some(v) = symbols.get(node.value).or_else(|| symbols.get(raw)) {
                out.extend_from_slice(b",\"name\":");
                name(&v.name, out);
            }
        }
        None => {}
    }
    out.push(b'}');
}

/// Appends a value's name with quotes around it.
fn name(name: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    escaped_bytes(out, name.as_bytes());
    out.push(b'"');
}

fn quoted(n: impl itoa::Integer, out: &mut Vec<u8>) {
    out.push(b'"');
    number(out, n);
    out.push(b'"');
}

/// Appends an integer: one of 64 bits as a string.
#[inline]
pub(super) fn integer(node: &Node, w: &mut TextWriter<'_>) {
    match node.kind {
        Kind::Signed => w.signed(node.value as i64),
        Kind::Unsigned64 => {
            w.byte(b'"');
            w.number(node.value);
            w.byte(b'"');
        }
        Kind::Signed64 => {
            w.byte(b'"');
            w.signed(node.value as i64);
            w.byte(b'"');
        }
        _ => w.number(node.value),
    }
}
