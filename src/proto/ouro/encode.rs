//! Writes packets of a link: header, link header, command, body, padding. The inverse of `frame`.
//!
//! What is encrypted, in pieces or not published is not written: its spans have it as it was.

use super::packet::{self, HEADER, checksum};
use crate::table::{
    EncodeError, EncodeStop, Encoder, Encoding, Field, Frame, Given, Json, JsonKind, MessageDef,
    Slot, SpanLeaf, Tables, Written,
};
use crate::tree::{Sym, TypeRef};

/// The service of control commands, and the number of the one that opens a link.
const LINK: &str = "link";
const CONNECT: u64 = 1;

/// A span has fewer keys, those of its value included.
const MAX_KEYS: usize = 32;

/// Writes the packet of a record.
pub(super) fn encode(
    tables: &Tables,
    encoder: &mut Encoder,
    of: Written<'_>,
) -> Option<Result<Vec<u8>, EncodeError>> {
    let json = of.json;
    let is_spans = json.kind(of.fields) == JsonKind::List;
    let message = of.message.and_then(|id| tables.message(id));
    let service = message.and_then(|def| tables.service(def.service));
    // What the tables frame, and a structure by its name, is no packet of a link.
    let is_packet = json.get(of.fields, "bit_length").or(json.get(of.fields, "cmd")).is_some()
        || service.is_some_and(|s| s.header.is_empty() && s.framing.begins.is_none());
    if !is_packet && !is_spans {
        return None;
    }
    let padded = encoder.habits.end_marks > 0;
    encoder.pack = Some(|made, content, captured| {
        (made == "reassembled" && has_piece(content, captured)).then(|| captured.to_vec())
    });
    encoder.leaf = Some(later_ack);
    Some(encoder.write(tables, of, |encoding| match is_spans {
        true => encoding.spans(of.fields),
        false => write_packet(encoding, of.fields, message, padded),
    }))
}

/// Writes the span of an acknowledgement behind another one: as its difference to that one, less 1.
fn later_ack(encoding: &mut Encoding<'_>, leaf: &SpanLeaf) -> Result<bool, EncodeStop> {
    let json = encoding.json;
    let name = json.text_of(leaf.span, "type").unwrap_or("");
    let Some(ty) = encoding.tables.type_named(name).filter(|_| name == "NextAck") else {
        return Ok(false);
    };
    let is_span = |node: &u32| json.end(*node) == leaf.span && json.get(*node, "name").is_some();
    let before = (0..leaf.span).rev().take(MAX_KEYS).find(is_span);
    let number = |span| json.text(json.get(span, "value")?).parse::<u32>().ok();
    let (Some(before), Some(own)) = (before.and_then(number), number(leaf.span)) else {
        return Ok(false);
    };
    let field = Field {
        name: Sym::ELEMENT,
        ty,
        span: false,
        object: leaf.span,
        frame: Frame::default(),
        given: Given::Json(leaf.value),
    };
    encoding.put_number(&field, i128::from(own.wrapping_sub(before).wrapping_sub(1)))?;
    Ok(true)
}

/// Whether a packet's content has this piece: at its end, or behind pieces of the same length. The
/// last byte may have bits of what follows.
fn has_piece(content: &[u8], piece: &[u8]) -> bool {
    let Some((_, piece)) = piece.split_last() else { return false };
    let (all, length) = (content.len() * 8, piece.len() * 8);
    let is_at = |from: usize| {
        piece.iter().enumerate().all(|(at, byte)| {
            let (at, by) = (from / 8 + at, from % 8);
            let pair = [content.get(at), content.get(at + 1)].map(|b| b.copied().unwrap_or(0));
            (u16::from_le_bytes(pair) >> by) as u8 == *byte
        })
    };
    let ends = (length..=length + 16).filter_map(|length| all.checked_sub(length));
    let whole = (length..length + 8).flat_map(|each| (0..all).step_by(each.max(8)));
    ends.chain(whole).any(is_at)
}

/// A number of the fields, also one with a name.
fn number(json: &Json<'_>, fields: u32, name: &str) -> Option<u64> {
    let node = json.get(fields, name)?;
    json.text(json.get(node, "value").unwrap_or(node)).parse().ok()
}

fn write_packet(
    encoding: &mut Encoding<'_>,
    fields: u32,
    message: Option<&MessageDef>,
    padded: bool,
) -> Result<(), EncodeStop> {
    let tables = encoding.tables;
    let json = encoding.json;
    if json.kind(fields) != JsonKind::Object {
        return encoding.fail(fields, "is no object of fields");
    }
    for part in ["ciphertext", "payload", "fragments"] {
        if let Some(node) = json.get(fields, part) {
            return encoding.fail(node, "cannot be encoded: only from spans");
        }
    }
    encoding.state.asked.end_marks = true;
    encoding.enter(fields);
    encoding.share(fields);
    encoding.out().put_zeros(HEADER);
    if let Some(node) = encoding.lookup(fields, "link") {
        let Some(layout) = tables.layout_named("LinkHeader").and_then(|id| tables.layout(id))
        else {
            return encoding.fail(node, "cannot be encoded: the tables have no link header");
        };
        encoding.enter(node);
        encoding.layout(layout, &[], node)?;
    }
    let bit_length = number(json, fields, "bit_length");
    command(encoding, fields, message, bit_length)?;
    let bits = encoding.pos();
    if let Some(node) = encoding.lookup(fields, "bit_length") {
        encoding.take(node);
    }
    if bits as u64 > u64::from(u32::MAX) {
        return encoding.fail(fields, "is longer than a packet can be");
    }
    let stated = bit_length.filter(|stated| same_bytes(*stated, bits)).unwrap_or(bits as u64);
    encoding.out().align();
    encoding.out().replace(0, &(stated as u32).to_le_bytes());
    if padded {
        let bytes = encoding.pos() / 8;
        encoding.out().put_zeros(packet::padded(bytes).saturating_sub(bytes));
    }
    let sum = match encoding.lookup(fields, "checksum") {
        Some(node) => {
            encoding.take(node);
            let sum = json.text(node).parse::<u32>();
            match sum {
                Ok(sum) => sum,
                Err(_) => return encoding.fail(node, "is no checksum of 32 bits"),
            }
        }
        None => checksum(encoding.out().bytes().get(HEADER..).unwrap_or(&[])),
    };
    encoding.out().replace(32, &sum.to_be_bytes());
    Ok(())
}

/// Whether a stated length ends in the same byte: bodies that no table describes are whole bytes in
/// JSON, and bits in the packet.
fn same_bytes(stated: u64, bits: usize) -> bool {
    stated.div_ceil(8) == (bits as u64).div_ceil(8)
}

/// The command and its body.
fn command(
    encoding: &mut Encoding<'_>,
    fields: u32,
    message: Option<&MessageDef>,
    bit_length: Option<u64>,
) -> Result<(), EncodeStop> {
    let tables = encoding.tables;
    let json = encoding.json;
    let Some(layout) = tables.layout_named("Command") else {
        return encoding.fail(fields, "cannot be encoded: the tables have no commands");
    };
    let given = (number(json, fields, "cmd"), number(json, fields, "control_cmd"));
    let (Some(cmd), control) = (match (given, message) {
        // A message that was typed may leave out its number.
        ((None, None), Some(def)) if !encoding.state.exact => usual_numbers(tables, def),
        (given, _) => given,
    }) else {
        return encoding.fail(fields, "has no `cmd`");
    };
    let user = number(json, fields, "user_cmd");
    // Old versions have one number for both kinds of commands. Where the number is 0 in both, an
    // old packet ends behind it.
    let start = encoding.pos() as u64;
    let old = match (control, user) {
        (Some(_), _) if cmd != 0 => true,
        (Some(0), _) => bit_length == Some(start + 1),
        (_, Some(user)) => user != cmd,
        _ => false,
    };
    let of = |name: &str| -> Option<TypeRef> {
        let sym = tables.sym(name)?;
        tables.fields_of(layout).find(|(field, _)| *field == sym).map(|(_, ty)| ty)
    };
    put(encoding, fields, ("cmd", cmd), of("cmd"))?;
    if let Some(control) = control {
        if cmd == 0 && !old {
            put(encoding, fields, ("control_cmd", control), of("cmd"))?;
        } else if let Some(node) = encoding.lookup(fields, "control_cmd") {
            encoding.take(node);
        }
    }
    if let Some(node) = encoding.lookup(fields, "user_cmd") {
        encoding.take(node);
    }
    if json.get(fields, "cookie").is_some()
        && let Some(layout) = tables.layout_named("Cookies").and_then(|id| tables.layout(id))
    {
        encoding.layout(layout, &[], fields)?;
    }
    if let Some(node) = encoding.lookup(fields, "body")
        && json.kind(node) == JsonKind::Text
    {
        let bytes = encoding.hex(node)?;
        encoding.take(node);
        let at = encoding.pos() as u64;
        let bits = bit_length.and_then(|stated| stated.checked_sub(at));
        let bits = bits.filter(|bits| bits.div_ceil(8) == bytes.len() as u64);
        let mut left = bits.unwrap_or(bytes.len() as u64 * 8);
        for byte in bytes {
            let take = left.min(8);
            encoding.out().put_bits(u64::from(byte), take as u32);
            left -= take;
        }
        return Ok(());
    }
    let Some(layout) = message.and_then(|def| def.layout).and_then(|id| tables.layout(id)) else {
        return Ok(());
    };
    encoding.open_region(fields);
    let written = encoding.layout(layout, &[] as &[Slot], fields);
    encoding.close_region();
    match written {
        Ok(()) => encoding.undecoded(fields).map(|_| ()),
        Err(EncodeStop::Undecoded) => Ok(()),
        Err(failed) => Err(failed),
    }
}

/// `cmd` and `control_cmd` of a message, as new versions write them. A link is opened in the old
/// way.
fn usual_numbers(tables: &Tables, def: &MessageDef) -> (Option<u64>, Option<u64>) {
    let of_link = tables.service(def.service).is_some_and(|service| &*service.name == LINK);
    match (of_link, def.number) {
        (true, Some(CONNECT)) => (Some(CONNECT), Some(CONNECT)),
        (true, number) => (Some(0), number),
        (false, number) => (number, None),
    }
}

/// A number of the packet itself.
fn put(
    encoding: &mut Encoding<'_>,
    fields: u32,
    (name, number): (&str, u64),
    ty: Option<TypeRef>,
) -> Result<(), EncodeStop> {
    let Some(ty) = ty else {
        return encoding.fail(fields, format!("cannot be encoded: no table has `{name}`"));
    };
    let given = encoding.lookup(fields, name).map_or(Given::Number(number), Given::Json);
    let field = Field {
        name: encoding.tables.sym(name).unwrap_or_default(),
        ty,
        span: false,
        object: fields,
        frame: Frame::default(),
        given,
    };
    encoding.value(&field).map(|_| ())
}
