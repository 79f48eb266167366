//! Writes messages from spans (`--spans`): every value has its type and its place, so that no
//! layout decides anything, and what is damaged comes out as it was.

use std::collections::HashMap;
use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

use super::super::Tables;
use super::super::eval::Evaluator;
use super::super::program::*;
use super::many::encode_text;
use super::{Encoding, Field, Frame, Given, JsonKind, Note, Slot, SpanLeaf, Stop};
use crate::tree::{Kind, Sym, TextKind, Tree, TypeRef, decode_text};

/// The types of some tables by their text.
#[derive(Default)]
pub(super) struct TypeTexts {
    of: Option<u32>,
    types: HashMap<String, TypeRef>,
}

impl TypeTexts {
    fn find(&mut self, tables: &Tables, text: &str) -> Option<TypeRef> {
        if self.of != Some(tables.id()) {
            let all = (0..tables.type_count()).map(TypeRef);
            let named = all.filter_map(|ty| Some((tables.type_def(ty)?.text.to_string(), ty)));
            *self = TypeTexts { of: Some(tables.id()), types: named.collect() };
        }
        self.types.get(text).copied()
    }
}

impl Encoding<'_> {
    /// Writes an array of spans.
    pub fn spans(&mut self, list: u32) -> Result<(), Stop> {
        let json = self.json;
        self.enter(list);
        for span in json.children(list) {
            self.span(span)?;
        }
        Ok(())
    }

    fn number_at(&self, span: u32, key: &str) -> Result<Option<usize>, Stop> {
        let Some(node) = self.json.get(span, key) else { return Ok(None) };
        match self.json.text(node).parse() {
            Ok(number) if self.json.kind(node) == JsonKind::Number => Ok(Some(number)),
            _ => self.fail(node, "is no place in the bytes"),
        }
    }

    fn span(&mut self, span: u32) -> Result<(), Stop> {
        let json = self.json;
        self.take(span);
        let Some(length) = self.number_at(span, "length")? else {
            return self.fail(span, "is no span: it has no length");
        };
        if length > super::MAX_BYTES {
            return self.fail(span, format!("{length} bytes are more than a message may have"));
        }
        let bits = self.number_at(span, "bit_length")?.unwrap_or(length * 8).min(length * 8);
        let start = self.pos();
        if let Some(offset) = self.number_at(span, "offset")? {
            let within = self.number_at(span, "bit_offset")?.unwrap_or(0);
            let at = offset.saturating_mul(8).saturating_add(within);
            if at != start && bits > 0 {
                let (at, start) = (at / 8, start / 8);
                return self
                    .fail(span, format!("begins at {at}, and the one before ends at {start}"));
            }
        }
        let fields = json.get(span, "fields").filter(|node| json.kind(*node) == JsonKind::List);
        match (json.get(span, "value"), fields, json.text_of(span, "buffer")) {
            (_, Some(fields), Some(made)) => self.made_span(span, fields, made, bits)?,
            (Some(value), fields, _) => self.value_span(span, value, fields, bits)?,
            (None, Some(fields), _) => self.spans(fields)?,
            (None, None, _) => return self.fail(span, "is no span: it has no value"),
        }
        let written = self.pos() - start;
        if written != bits {
            let text = format!("{} bits, where the span has {bits}", written);
            return self.fail(span, text);
        }
        Ok(())
    }

    /// A value, and perhaps its parts. Where the value does not say how it was written, these do.
    fn value_span(
        &mut self,
        span: u32,
        value: u32,
        fields: Option<u32>,
        bits: usize,
    ) -> Result<(), Stop> {
        let start = self.mark_place();
        match (self.leaf_span(span, value, bits), fields) {
            (Ok(()), Some(fields)) => self.overlay(fields),
            (Err(Stop::Failed(_)), Some(fields)) if self.parts_say(fields, value) => {
                self.back_to(start);
                self.spans(fields)
            }
            (written, _) => written,
        }
    }

    /// Whether the parts of a text have this text.
    fn parts_say(&self, fields: u32, value: u32) -> bool {
        let json = self.json;
        let mut parts = json.children(fields);
        let text = parts.find(|part| json.text_of(*part, "name") == Some("text"));
        let text = text.map_or(Some(""), |part| json.text_of(part, "value"));
        json.kind(value) == JsonKind::Text && text == Some(json.text(value))
    }

    /// A value without parts.
    fn leaf_span(&mut self, span: u32, value: u32, bits: usize) -> Result<(), Stop> {
        if bits == 0 {
            return Ok(());
        }
        let json = self.json;
        let text = json.text_of(span, "type").unwrap_or("");
        let tables = self.tables;
        let mut texts = std::mem::take(&mut self.state.types);
        let ty = texts.find(tables, text);
        self.state.types = texts;
        let captured = self.captured_bytes(span)?;
        let tells = ty.is_none_or(|ty| tables.describes_itself(ty))
            || json.text_of(span, "name") == Some(tables.name(Sym::UNDECODED));
        if let Some(bytes) = captured.filter(|_| !tells) {
            let note = Note { text: String::new(), bytes: Some(bytes) };
            self.notes.entry(value).or_default().push(note);
        } else if let Some(leaf) = self.state.leaf
            && leaf(self, &SpanLeaf { span, value, bits })?
        {
            return Ok(());
        }
        let Some(ty) = ty else {
            return self.fail(span, format!("has a type that no table has: {text}"));
        };
        let field = Field {
            name: Sym::ELEMENT,
            ty,
            span: false,
            object: span,
            frame: Frame::default(),
            given: Given::Json(value),
        };
        let leaf = SpanLeaf { span, value, bits };
        if tables.has_forms(ty)
            && self.put_captured(&leaf, |this, bytes| this.reads(&field, bytes))?
        {
            return Ok(());
        }
        let start = self.mark_place();
        let at = self.pos();
        let result = match tables.type_def(ty).map(|def| &def.read) {
            Some(ReadAs::Bytes(_)) => self.hex(value).map(|bytes| self.put_part(&bytes, bits)),
            Some(ReadAs::Text { kind, or_latin1, .. }) => {
                let kinds = [*kind, TextKind::Latin1];
                let kinds = kinds.get(..1 + usize::from(*or_latin1)).unwrap_or(&[]);
                self.text_bytes(&field, kinds).map(|bytes| self.out().put(&bytes))
            }
            _ => self.in_encodings(&field, bits),
        };
        let written = self.pos() - at;
        match result {
            Ok(()) if written == bits => Ok(()),
            // What ends with zeros, or with a mark.
            Ok(()) if written < bits && self.may_end(ty) => {
                self.put_end(ty, (bits - written) / 8);
                Ok(())
            }
            result => {
                self.back_to(start);
                self.other_leaf(&field, value, bits, result)
            }
        }
    }

    /// Bytes of which the last may have fewer than eight bits.
    fn put_part(&mut self, bytes: &[u8], bits: usize) {
        if bytes.len() * 8 <= bits || bytes.len() != bits.div_ceil(8) {
            return self.out().put(bytes);
        }
        for (at, byte) in bytes.iter().enumerate() {
            let left = bits.saturating_sub(at * 8).min(8);
            self.out().put_bits(u64::from(*byte), left as u32);
        }
    }

    /// A value that may be a text: in the encoding that has as many bits as the span.
    fn in_encodings(&mut self, field: &Field, bits: usize) -> Result<(), Stop> {
        let start = self.mark_place();
        let at = self.pos();
        let is_text =
            matches!(field.given, Given::Json(node) if self.json.kind(node) == JsonKind::Text);
        let mut result = Ok(());
        for kind in 0..if is_text { 3 } else { 1 } {
            self.back_to(start);
            self.text_kind = kind;
            result = self.value(field).map(|_: Slot| ());
            if result.is_ok() && self.pos() - at == bits {
                break;
            }
        }
        self.text_kind = 0;
        result
    }

    /// Whether zeros or a mark may stand behind values of a type.
    fn may_end(&self, ty: TypeRef) -> bool {
        let read = self.tables.type_def(ty).map(|def| &def.read);
        matches!(read, Some(ReadAs::Text { .. } | ReadAs::Digits { .. } | ReadAs::Bytes(_)))
    }

    fn put_end(&mut self, ty: TypeRef, left: usize) {
        let len = match self.tables.type_def(ty).map(|def| &def.read) {
            Some(ReadAs::Text { len, .. } | ReadAs::Digits { len, .. } | ReadAs::Bytes(len)) => {
                *len
            }
            _ => return self.out().put_zeros(left),
        };
        if matches!(len.from, LenFrom::Blanks) {
            return (0..left).for_each(|_| self.out().put(b" "));
        }
        let end = self.end_mark(len);
        if let Some(rest) = left.checked_sub(end.len()) {
            self.out().put(&end);
            self.out().put_zeros(rest);
        }
    }

    /// The mark at the end of a value. Empty where it has none.
    fn end_mark(&self, len: Len) -> Vec<u8> {
        match len.from {
            LenFrom::To(unit) => vec![unit],
            LenFrom::Until(place) => self.tables.delimiter(place).to_vec(),
            LenFrom::Blanks => vec![b' '],
            _ => Vec::new(),
        }
    }

    /// A value whose type does not say how its own bytes are written: a part of a text, or bits
    /// whose number came from elsewhere.
    fn other_leaf(
        &mut self,
        field: &Field,
        value: u32,
        bits: usize,
        failed: Result<(), Stop>,
    ) -> Result<(), Stop> {
        let text = self.json.text(value).to_string();
        self.take(value);
        if self.json.kind(value) == JsonKind::Text {
            let hex = super::super::parse_hex(&text);
            let kinds = [TextKind::Utf8, TextKind::Latin1, TextKind::Utf16];
            let texts = kinds.iter().filter_map(|kind| encode_text(*kind, &text).ok());
            let shown: Vec<Vec<u8>> = self.shown_bytes(value).map(<[u8]>::to_vec).collect();
            let mut all = shown.into_iter().chain(hex).chain(texts);
            if let Some(bytes) = all.find(|bytes| bytes.len() == bits.div_ceil(8)) {
                self.put_part(&bytes, bits);
                return Ok(());
            }
        } else if bits <= 64
            && let Ok(number) = self.number(field)
        {
            self.out().put_bits(number as u64, bits as u32);
            return Ok(());
        }
        failed?;
        self.fail(value, format!("its bytes do not fill the {bits} bits of the span"))
    }

    /// The parts of a text that say more than the text: counts and padding.
    fn overlay(&mut self, fields: u32) -> Result<(), Stop> {
        let json = self.json;
        for part in json.children(fields) {
            let (Some(value), Some(offset), Some(length)) = (
                json.get(part, "value"),
                self.number_at(part, "offset")?,
                self.number_at(part, "length")?,
            ) else {
                continue;
            };
            if json.text_of(part, "name") == Some("text")
                || !(1..=super::MAX_BYTES).contains(&length)
            {
                continue;
            }
            self.open_buffer();
            let written = self.leaf_span(part, value, length.saturating_mul(8));
            let bytes = self.close_buffer().into_bytes();
            written?;
            self.out().replace(offset.saturating_mul(8), &bytes);
        }
        Ok(())
    }

    /// The bytes that a span had, if it says them.
    pub fn captured_bytes(&self, span: u32) -> Result<Option<Vec<u8>>, Stop> {
        self.json.get(span, "bytes").map(|bytes| self.hex(bytes)).transpose()
    }

    /// Whether bytes are read as the value of a field.
    fn reads(&mut self, field: &Field, bytes: &[u8]) -> bool {
        let Given::Json(value) = field.given else { return false };
        let mut tree = Tree::new();
        let end =
            Evaluator::default().value(self.tables, field.ty, field.name, bytes, 0, &mut tree);
        let Some(node) = tree.get(0).filter(|_| end == bytes.len() * 8) else { return false };
        match node.kind {
            Kind::Text(kind) => {
                let mut text = String::new();
                decode_text(kind, &tree.content(node, bytes), &mut text);
                text == self.json.text(value)
            }
            _ => self.number(field).is_ok_and(|number| number as u64 == node.value),
        }
    }

    /// Writes a span with the bytes that it had, as long as `says` finds its value in them. Returns
    /// whether it had any.
    pub fn put_captured(
        &mut self,
        leaf: &SpanLeaf,
        says: impl FnOnce(&mut Encoding<'_>, &[u8]) -> bool,
    ) -> Result<bool, Stop> {
        let Some(bytes) = self.captured_bytes(leaf.span)? else { return Ok(false) };
        if !says(self, &bytes) {
            let text = "is not what the span's `bytes` say: values are changed without --spans";
            return self.fail(leaf.value, text);
        }
        self.out().put(&bytes);
        Ok(true)
    }

    /// A span whose content is in a buffer of its own.
    fn made_span(&mut self, span: u32, fields: u32, made: &str, bits: usize) -> Result<(), Stop> {
        self.open_buffer();
        let written = self.spans(fields);
        let content = self.close_buffer().into_bytes();
        written?;
        let captured = self.captured_bytes(span)?.unwrap_or_default();
        let length = bits.div_ceil(8);
        let own = self.state.pack.and_then(|pack| pack(made, &content, &captured));
        let packed = match own {
            Some(packed) => packed,
            None if made == "decompressed" => compressed(&content, &captured, length),
            None => return self.fail(span, format!("cannot be encoded: its content was {made}")),
        };
        if packed.len() != length {
            let text = "cannot be encoded from spans: its `bytes` have another content, and what \
                        is packed here has another length";
            return self.fail(span, text);
        }
        self.put_part(&packed, bits);
        Ok(())
    }

    /// The value of a span at the path that a problem has. A span whose content is in a buffer of
    /// its own, such as a message that is zero-coded, may have no name there.
    pub(super) fn find_span(&self, list: u32, path: &str) -> Option<u32> {
        let json = self.json;
        let (mut list, mut rest) = (list, path);
        loop {
            let named = json.children(list).find_map(|span| {
                let behind = rest.strip_prefix(json.text_of(span, "name")?)?;
                match behind.as_bytes().first() {
                    None | Some(b'[') => Some((span, behind)),
                    Some(b'.') => Some((span, behind.get(1..)?)),
                    _ => None,
                }
            });
            let Some((span, behind)) = named else {
                let made = |span: &u32| json.text_of(*span, "buffer").is_some();
                list = json.get(json.children(list).find(made)?, "fields")?;
                continue;
            };
            if behind.is_empty() {
                return Some(json.get(span, "value").unwrap_or(span));
            }
            list = json.get(span, "fields")?;
            rest = behind;
        }
    }
}

/// How many bytes before a compressed stream may be in clear.
const MAX_PLAIN: usize = 4;

/// The content as it was compressed, if it was captured like this, or compressed here: behind as
/// many bytes in clear as give the wanted length.
fn compressed(content: &[u8], captured: &[u8], length: usize) -> Vec<u8> {
    let places =
        || (0..=MAX_PLAIN).filter_map(|keep| Some((keep, content.split_at_checked(keep)?)));
    let is_same = |(keep, (plain, rest)): &(usize, (&[u8], &[u8]))| {
        captured.split_at_checked(*keep).is_some_and(|(before, stream)| {
            before == *plain && !stream.is_empty() && reads_as(ZlibDecoder::new(stream), rest)
        })
    };
    if places().any(|place| is_same(&place)) {
        return captured.to_vec();
    }
    let pack = |(_, (plain, rest)): (usize, (&[u8], &[u8]))| {
        let mut packer = ZlibEncoder::new(plain.to_vec(), Compression::default());
        packer.write_all(rest).and_then(|()| packer.finish()).unwrap_or_default()
    };
    places().map(pack).find(|packed| packed.len() == length).unwrap_or_default()
}

/// Whether a stream has exactly this content, up to its end or to what is wrong with it.
pub fn reads_as(stream: impl Read, content: &[u8]) -> bool {
    let mut found = Vec::new();
    let most = content.len() as u64 + 1;
    // What came before damage was read.
    let _ = stream.take(most).read_to_end(&mut found);
    found == content
}
