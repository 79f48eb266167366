//! Writes a request or a reply: first line, headers, body. The inverse of `message`.
//!
//! The body is packed and written as the headers say, and `Content-Length` is that of the body that
//! is written.

use std::io::Write;

use crate::proto::secondlife::llsd::write::{LlsdForm, LlsdWriter};
use crate::table::{EncodeStop, Encoding, Json, JsonKind, SpanLeaf, parse_hex, reads_as};

/// Fields that are known from earlier messages, and are in no bytes.
const COMPUTED: [&str; 5] = ["session_id", "asset_id", "asset_kind", "offset", "size"];

/// Writes the message of a record, from its fields.
pub(in crate::proto::secondlife) fn encode(
    encoding: &mut Encoding<'_>,
    name: &str,
    fields: u32,
) -> Result<(), EncodeStop> {
    let json = encoding.json;
    encoding.enter(fields);
    for key in COMPUTED {
        if let Some(node) = encoding.lookup(fields, key) {
            encoding.take(node);
        }
    }
    let is_request = json.get(fields, "method").is_some();
    let parts: &[&str] =
        if is_request { &["method", "target", "version"] } else { &["version", "status"] };
    let mut head = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        let Some(node) = encoding.lookup(fields, part) else {
            return encoding.fail(fields, format!("has no {part}"));
        };
        if place > 0 {
            head.push(b' ');
        }
        head.extend_from_slice(line(encoding, node)?.as_bytes());
    }
    if let Some(node) = encoding.lookup(fields, "reason") {
        head.push(b' ');
        head.extend_from_slice(line(encoding, node)?.as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    let list = encoding.lookup(fields, "headers");
    let headers = Headers::read(encoding, list)?;
    let body = match encoding.lookup(fields, "body") {
        Some(node) => headers.packed(content(encoding, name, &headers, is_request, node)?),
        None => Vec::new(),
    };
    let counts = !body.is_empty() && !headers.has("transfer-encoding", "chunked");
    for (name, value) in &headers.0 {
        let length = body.len().to_string();
        let is_length = name.eq_ignore_ascii_case("content-length");
        let value = if counts && is_length { &length } else { value };
        head.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    encoding.out().put(&head);
    encoding.out().put(&body);
    encoding.undecoded(fields).map(drop)
}

/// A text or a number that stands in a line.
fn line<'a>(encoding: &mut Encoding<'a>, node: u32) -> Result<&'a str, EncodeStop> {
    let json: &'a Json<'a> = encoding.json;
    let text = json.text(node);
    if !matches!(json.kind(node), JsonKind::Text | JsonKind::Number) {
        return encoding.fail(node, format!("is {}: expected a text", json.kind(node).word()));
    }
    if text.contains(['\r', '\n']) {
        return encoding.fail(node, "has the end of a line within");
    }
    encoding.take(node);
    Ok(text)
}

/// The headers, by their names.
struct Headers(Vec<(String, String)>);

impl Headers {
    fn read(encoding: &mut Encoding<'_>, list: Option<u32>) -> Result<Headers, EncodeStop> {
        let json = encoding.json;
        let mut all = Vec::new();
        let Some(list) = list else { return Ok(Headers(all)) };
        encoding.enter(list);
        for header in json.children(list) {
            encoding.enter(header);
            let (Some(name), Some(value)) =
                (encoding.lookup(header, "name"), encoding.lookup(header, "value"))
            else {
                return encoding.fail(header, "is no header: expected a name and a value");
            };
            let name = line(encoding, name)?.to_string();
            all.push((name, line(encoding, value)?.to_string()));
        }
        Ok(Headers(all))
    }

    fn value(&self, name: &str) -> &str {
        let mut named = self.0.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        named.next().map_or("", |(_, value)| value)
    }

    fn has(&self, name: &str, word: &str) -> bool {
        let value = self.value(name).to_ascii_lowercase();
        value.split([',', ';', ' ']).any(|known| known == word)
    }

    /// A body, compressed and in chunks where the headers say so.
    fn packed(&self, content: Vec<u8>) -> Vec<u8> {
        let level = flate2::Compression::default();
        let coded = |word| self.has("content-encoding", word);
        let packed = if coded("gzip") || coded("x-gzip") {
            let mut packer = flate2::write::GzEncoder::new(Vec::new(), level);
            packer.write_all(&content).and_then(|()| packer.finish()).unwrap_or_default()
        } else if coded("deflate") {
            let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), level);
            packer.write_all(&content).and_then(|()| packer.finish()).unwrap_or_default()
        } else {
            content
        };
        if !self.has("transfer-encoding", "chunked") {
            return packed;
        }
        let size = format!("{:x}\r\n", packed.len());
        [size.as_bytes(), &packed, b"\r\n0\r\n\r\n"].concat()
    }
}

/// What is in the body.
fn content(
    encoding: &mut Encoding<'_>,
    name: &str,
    headers: &Headers,
    is_request: bool,
    node: u32,
) -> Result<Vec<u8>, EncodeStop> {
    let json = encoding.json;
    let kind = headers.value("content-type").to_ascii_lowercase();
    if json.kind(node) == JsonKind::Text {
        // A file is shown in hex, and so is what is no text.
        let is_file = ["image/", "application/octet-stream", "application/vnd.ll.", "audio/"]
            .iter()
            .any(|file| kind.starts_with(file));
        let bytes = match is_file {
            true => encoding.hex(node)?,
            false => json.text(node).as_bytes().to_vec(),
        };
        encoding.take(node);
        return Ok(bytes);
    }
    let is_xml_rpc = name.starts_with("login_to_simulator") && kind.starts_with("text/xml");
    let form = match () {
        () if is_xml_rpc => LlsdForm::XmlRpc,
        () if kind.contains("llsd+binary") => LlsdForm::Binary,
        () if kind.contains("llsd+notation") => LlsdForm::Notation,
        () => LlsdForm::Xml,
    };
    let mut writer = LlsdWriter { encoding, form, named: form != LlsdForm::Xml, out: Vec::new() };
    writer.document(node)?;
    let document = writer.out;
    if !is_xml_rpc {
        return Ok(document);
    }
    let (before, behind) = match is_request {
        true => (format!("<methodCall><methodName>{name}</methodName>"), "</methodCall>"),
        false => ("<methodResponse>".to_string(), "</methodResponse>"),
    };
    let before = format!("<?xml version=\"1.0\"?>{before}");
    Ok([before.as_bytes(), &document, behind.as_bytes()].concat())
}

/// Whether the bytes of a span are its value with what separates it from others.
pub(in crate::proto::secondlife) fn says(json: &Json<'_>, leaf: &SpanLeaf, bytes: &[u8]) -> bool {
    let separates = |byte: &u8| matches!(byte, b' ' | b'\t' | b':' | b'\r' | b'\n');
    let text = json.text(json.get(leaf.value, "value").unwrap_or(leaf.value));
    if parse_hex(text).is_some_and(|file| file == bytes) {
        return true;
    }
    let text = text.as_bytes();
    let Some(at) = memchr::memmem::find(bytes, text) else { return false };
    let behind = bytes.get(at + text.len()..).unwrap_or(&[]);
    bytes.iter().take(at).all(separates) && behind.iter().all(separates)
}

/// The content compressed as it was captured, with gzip or without a header, if it was like this.
pub(in crate::proto::secondlife) fn compressed_as(
    content: &[u8],
    captured: &[u8],
) -> Option<Vec<u8>> {
    let same = reads_as(flate2::read::MultiGzDecoder::new(captured), content)
        || reads_as(flate2::read::DeflateDecoder::new(captured), content);
    (same && !captured.is_empty()).then(|| captured.to_vec())
}
