//! Writes a datagram: header, message (zero-coded where its flags say so) and appended
//! acknowledgements. The inverse of `datagram`. `http` writes what is sent over HTTP.

use super::layer::write_part;
use super::{http, llsd, packet};
use crate::table::{
    EncodeError, EncodeStop, Encoder, Encoding, Field, Frame, Given, Json, JsonKind, MessageId,
    Slot, SpanLeaf, Tables, Written,
};

/// Writes the message of a record.
pub(super) fn encode(
    tables: &Tables,
    encoder: &mut Encoder,
    of: Written<'_>,
) -> Result<Vec<u8>, EncodeError> {
    let name = of.json.text_of(Json::ROOT, "message").unwrap_or("");
    let id = of.message;
    encoder.pack = Some(|made, content, captured| match made {
        "expanded" => Some(coded_as(content, captured)),
        "decompressed" => http::compressed_as(content, captured),
        _ => None,
    });
    encoder.leaf = Some(leaf);
    // A viewer writes no zero behind the last list of a texture entry, OpenSim does.
    encoder.open_lists = of.json.text_of(Json::ROOT, "from") == Some("client");
    let service = id.and_then(|id| tables.service(tables.message(id)?.service));
    let said = of.json.text_of(Json::ROOT, "service");
    // A capability that no table describes is no message of the tables.
    let is_http = said.or(service.map(|service| &*service.name)) == Some("http");
    encoder.write(tables, of, |encoding| match id {
        _ if of.json.kind(of.fields) == JsonKind::List => encoding.spans(of.fields),
        _ if is_http => http::encode(encoding, name, of.fields),
        Some(id) => datagram(encoding, id, of.fields),
        None => {
            let at = of.json.get(Json::ROOT, "message").unwrap_or(Json::ROOT);
            encoding.fail(at, format!("there is no message `{name}`"))
        }
    })
}

/// Writes a span whose type does not say how: of a layer, or with the bytes that it had, as long as
/// they say its value.
fn leaf(encoding: &mut Encoding<'_>, leaf: &SpanLeaf) -> Result<bool, EncodeStop> {
    if write_part(encoding, leaf)? {
        return Ok(true);
    }
    encoding.put_captured(leaf, |encoding, bytes| {
        http::says(encoding.json, leaf, bytes) || llsd::says(encoding, leaf, bytes)
    })
}

/// Zero coding as it was captured, if it was of this content.
fn coded_as(content: &[u8], captured: &[u8]) -> Vec<u8> {
    let mut found = Vec::new();
    packet::expand(captured, packet::MAX_EXPANDED, &mut found);
    if found == content { captured.to_vec() } else { zero_coded(content) }
}

fn datagram(encoding: &mut Encoding<'_>, id: MessageId, fields: u32) -> Result<(), EncodeStop> {
    let tables = encoding.tables;
    let json = encoding.json;
    let part = |name: &str| tables.layout_named(name).and_then(|layout| tables.layout(layout));
    let (Some(header), Some(def)) = (part("PacketHeader"), tables.message(id)) else {
        return encoding.fail(fields, "cannot be encoded: the tables have no such datagrams");
    };
    if json.kind(fields) != JsonKind::Object {
        return encoding.fail(fields, "is no object of fields");
    }
    encoding.enter(fields);
    encoding.share(fields);
    let flags = json.get(fields, "flags").map(|node| json.get(node, "value").unwrap_or(node));
    let flags = flags.and_then(|node| json.text(node).parse::<u8>().ok()).unwrap_or(0);
    let extra = json.text_of(fields, "extra").map_or(0, |hex| hex.len() / 2) as u64;
    // A message that was typed may leave out the header: it has no flags, and the number 0.
    let given = |name| json.get(fields, name).is_some();
    if encoding.state.exact || given("sequence") || given("flags") {
        let socks = given("socks");
        encoding.layout(header, &[Slot::Number(u64::from(socks))], fields)?;
        // The length of the extra header is the header's last byte, which was written as 0.
        let at = encoding.pos() - 8;
        encoding.out().replace(at, &[extra as u8]);
    } else {
        encoding.out().put_zeros(packet::HEADER);
    }
    let number = def.number.unwrap_or(0) as u32;
    let bytes = number.to_be_bytes();
    let width = match number {
        0..=0xff => 1usize,
        0x100..=0xffff => 2,
        _ => 4,
    };
    let start = encoding.pos() / 8;
    encoding.out().put(bytes.get(4 - width..).unwrap_or(&[]));
    if extra > 0
        && let Some(node) = encoding.lookup(fields, "extra")
    {
        let bytes = encoding.hex(node)?;
        encoding.take(node);
        encoding.out().put(&bytes);
    }
    if let Some(layout) = def.layout.and_then(|layout| tables.layout(layout)) {
        encoding.open_region(fields);
        let written = encoding.layout(layout, &[], fields);
        encoding.close_region();
        match written {
            Ok(()) | Err(EncodeStop::Undecoded) => {}
            Err(failed) => return Err(failed),
        }
    }
    encoding.undecoded(fields)?;
    encoding.out().align();
    encoding.resolve_all()?;
    if flags & packet::ZEROCODED != 0 {
        let plain = encoding.out().bytes().get(start..).unwrap_or(&[]).to_vec();
        encoding.out().cut(start * 8);
        let coded = zero_coded(&plain);
        encoding.out().put(&coded);
    }
    if flags & packet::ACK != 0 {
        acknowledgements(encoding, fields)?;
    }
    Ok(())
}

/// The acknowledgements behind the message, and their count.
fn acknowledgements(encoding: &mut Encoding<'_>, fields: u32) -> Result<(), EncodeStop> {
    let tables = encoding.tables;
    let json = encoding.json;
    // Where there is no room for as many as were announced, the datagram has none.
    let Some(list) = encoding.lookup(fields, "acks") else { return Ok(()) };
    let Some(name) = tables.sym("acks") else { return Ok(()) };
    let end = tables.layout_named("PacketEnd");
    let Some((_, ty)) = end.and_then(|end| tables.fields_of(end).find(|(of, _)| *of == name))
    else {
        return Ok(());
    };
    if json.kind(list) != JsonKind::List {
        return encoding.fail(list, "is no list");
    }
    let n = json.children(list).count();
    let Ok(count) = u8::try_from(n) else {
        return encoding.fail(list, format!("{n} elements: a datagram may have 255"));
    };
    let Some(crate::table::ReadAs::List { of, .. }) = tables.type_def(ty).map(|def| &def.read)
    else {
        return Ok(());
    };
    encoding.enter(list);
    for node in json.children(list) {
        encoding.value(&Field {
            name,
            ty: *of,
            span: false,
            object: fields,
            frame: Frame::default(),
            given: Given::Json(node),
        })?;
    }
    encoding.out().put(&[count]);
    Ok(())
}

/// Zero coding, as the viewer and OpenSim write it: `00 n` for up to 255 zeros.
fn zero_coded(plain: &[u8]) -> Vec<u8> {
    let mut coded = Vec::with_capacity(plain.len());
    let mut rest = plain;
    while let Some((first, behind)) = rest.split_first() {
        if *first != 0 {
            coded.push(*first);
            rest = behind;
            continue;
        }
        let zeros = rest.iter().take(255).take_while(|byte| **byte == 0).count();
        coded.extend([0, zeros as u8]);
        rest = rest.get(zeros..).unwrap_or(&[]);
    }
    coded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_counted_up_to_255() {
        assert_eq!(zero_coded(&[1, 0, 0, 2, 0]), [1, 0, 2, 2, 0, 1]);
        assert_eq!(zero_coded(&[0; 300]), [0, 255, 0, 45]);
        for n in 0..600 {
            let plain = [vec![7], vec![0; n], vec![9]].concat();
            let mut back = Vec::new();
            packet::expand(&zero_coded(&plain), packet::MAX_EXPANDED, &mut back);
            assert_eq!(back, plain);
        }
    }
}
