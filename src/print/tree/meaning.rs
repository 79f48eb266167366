//! Appends the meaning of a number: its name in an enum, the time that it encodes, or a protocol's
//! own explanation.

use std::io::Write;

use crate::capture::Time;
use crate::print::clock::{format_time, second_text};
use crate::table::{EnumDef, Scale, Tables};
use crate::tree::{Kind, Node};

/// Appends what a number means, where its type says anything about that.
pub fn meaning(tables: &Tables, node: &Node, out: &mut Vec<u8>) {
    if !matches!(node.kind, Kind::Unsigned | Kind::Signed | Kind::Unsigned64 | Kind::Signed64) {
        return;
    }
    if let Some(symbols) = tables.symbols(node.ty) {
        named(symbols, node, out);
        return;
    }
    let Some(def) = tables.type_def(node.ty) else { return };
    let Some(shown) = def.shown else { return };
    match tables.name(shown) {
        "unix_time" => unix_time(node.value as i64, out),
        "unix_microseconds" => unix_time((node.value / 1_000_000) as i64, out),
        "ntp_time" => ntp_time(node.value, out),
        "ipv4" => {
            let _ = write!(out, "{}", std::net::Ipv4Addr::from(node.value as u32));
        }
        "hex" => {
            let _ = write!(out, "0x{:x}", node.value);
        }
        "milliseconds" => {
            let _ = write!(out, "ms");
        }
        "seconds" => {
            let _ = write!(out, "s");
        }
        "microseconds" => {
            let _ = write!(out, "µs");
        }
        "bits" => {
            let _ = write!(out, "0b{:b}", node.value);
        }
        word => {
            if let Some(meaning) = tables.meaning(word) {
                (meaning.write)(node.value, out);
            } else if let Some(scale) = Scale::of_word(word) {
                scale.write(node.value as i64, node.bits, out);
            }
        }
    }
}

/// The time that a number is, where its type says that it is one.
pub fn time_of(tables: &Tables, node: &Node) -> Option<String> {
    let shown = tables.name(tables.type_def(node.ty)?.shown?);
    if !shown.starts_with("unix_") {
        return None;
    }
    let mut text = Vec::new();
    meaning(tables, node, &mut text);
    String::from_utf8(text).ok().filter(|text| !text.is_empty())
}

/// Appends what some bytes mean, where a word of the protocol's own explains them. More than eight
/// bytes have no such meaning.
pub(super) fn meaning_of_bytes(word: &str, tables: &Tables, bytes: &[u8], out: &mut Vec<u8>) {
    if let Some(meaning) = tables.meaning(word).filter(|_| (1..=8).contains(&bytes.len())) {
        let value = bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
        (meaning.write)(value, out);
    }
}

fn named(symbols: &EnumDef, node: &Node, out: &mut Vec<u8>) {
    let raw = node.unsigned();
    if symbols.flags {
        let mut first = true;
        let mut left = raw;
        for v in symbols.values.iter().filter(|v| v.value != 0 && raw & v.value == v.value) {
            if !first {
                out.extend_from_slice(b" | ");
            }
            first = false;
            left &= !v.value;
            out.extend_from_slice(v.name.as_bytes());
        }
        if left != 0 && left != raw {
            let _ = write!(out, " | 0x{left:x}");
        }
        return;
    }
    if let Some(v) = symbols.get(raw).or_else(|| symbols.get(node.value)) {
        out.extend_from_slice(v.name.as_bytes());
        if !v.text.is_empty() {
            let _ = write!(out, "  \"{}\"", v.text);
        }
    }
}

/// Seconds since 1900 in 32 bits, then a fraction of 32 bits. Seconds below 2^31 are of 2036 and
/// later (RFC 4330). All zeros are no time.
fn ntp_time(value: u64, out: &mut Vec<u8>) {
    if value == 0 {
        return;
    }
    const FROM_1900_TO_1970: i64 = 2_208_988_800;
    let (seconds, fraction) = ((value >> 32) as i64, value & 0xffff_ffff);
    let era = if seconds >> 31 == 0 { 1 << 32 } else { 0 };
    let nanos = (fraction * 1_000_000_000) >> 32;
    let mut text = String::new();
    let seconds = seconds + era - FROM_1900_TO_1970;
    format_time(Time { seconds, nanos: nanos as u32, digits: 9 }, &mut text);
    let text = text.trim_end_matches('Z').replace('T', " ");
    let _ = write!(out, "{text} UTC");
}

fn unix_time(seconds: i64, out: &mut Vec<u8>) {
    if seconds == 0 {
        return;
    }
    match second_text(seconds) {
        Some(text) => out.extend_from_slice(&text),
        None => {
            let mut text = String::new();
            format_time(Time { seconds, nanos: 0, digits: 0 }, &mut text);
            out.extend_from_slice(text.trim_end_matches('Z').as_bytes());
        }
    }
    // Where the date ends.
    let time = out.len().saturating_sub("T00:00:00".len());
    if let Some(t) = out.get_mut(time) {
        *t = b' ';
    }
    out.extend_from_slice(b" UTC");
}
