//! Whether the bytes of one span of LLSD say its value: what separates it from the value before,
//! its key if it has one, and the value. The readers of the encodings decide it.

use super::{Encoding as Form, Fault, LlsdReader, LlsdTypes, Part, encoding_of};
use crate::digits::parse_uuid;
use crate::maps::SeededSet;
use crate::table::{Encoding, Evaluator, Json, JsonKind, SpanLeaf, parse_hex};
use crate::tree::{Buffer, Kind, Node, Sym, TextKind, Tree, decode_text};

/// What stands before a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Separator,
    Key,
}

/// Whether the bytes of a span say its value.
pub(in crate::proto::secondlife) fn says(
    encoding: &Encoding<'_>,
    leaf: &SpanLeaf,
    bytes: &[u8],
) -> bool {
    let json = encoding.json;
    let value = json.get(leaf.value, "value").unwrap_or(leaf.value);
    let text = json.text(value);
    let number = if json.kind(value) == JsonKind::Number { text.parse::<u32>().ok() } else { None };
    if json.text_of(leaf.span, "type") == Some("LLSDSyntax") {
        return match number {
            Some(count) => bytes.ends_with(&count.to_be_bytes()),
            None => memchr::memmem::find(bytes, text.as_bytes()).is_some(),
        };
    }
    // Bytes that are no LLSD.
    let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
    let plain = bytes.get(..bytes.len() - zeros).unwrap_or(&[]);
    if String::from_utf8_lossy(plain) == text || parse_hex(text).is_some_and(|hex| hex == bytes) {
        return json.kind(value) == JsonKind::Text;
    }
    let (header, _) = encoding_of(bytes);
    let places = [Before::Key, Before::Separator, Before::Nothing];
    let forms = [Form::Binary, Form::Notation, Form::Xml, Form::XmlRpc];
    places.iter().any(|before| {
        forms.iter().any(|form| {
            let from = if *before == Before::Nothing { header } else { 0 };
            let mut tree = Tree::new();
            let mut evaluator = Evaluator::default();
            let mut reader = LlsdReader {
                parts: LlsdTypes::new(encoding.tables),
                encoding: *form,
                bytes,
                origin: 0,
                buffer: Buffer::CAPTURED,
                pos: from,
                claimed: from,
                depth: 0,
                text: String::new(),
                pairs: SeededSet::default(),
                expected: None,
                run: &mut evaluator.run(encoding.tables, &mut tree),
            };
            if reader.alone(*before).is_err() {
                return false;
            }
            match tree.get(0) {
                Some(node) => is_value(node, &tree, bytes, json, value),
                None => false,
            }
        })
    })
}

impl LlsdReader<'_, '_, '_> {
    /// Reads the only value, or the key where nothing follows it.
    fn alone(&mut self, before: Before) -> Result<(), Fault> {
        if before != Before::Nothing && self.at_end(before == Before::Key, &mut Some(1))? {
            return self.fault("no value at byte {a}");
        }
        if before == Before::Key {
            self.key()?;
        }
        if before == Before::Key && self.pos == self.bytes.len() {
            return self.decoded_leaf(Sym::ELEMENT, Part::String).map(drop);
        }
        self.value(Sym::ELEMENT)?;
        if before == Before::Nothing {
            self.behind()?;
        }
        match self.pos == self.bytes.len() {
            true => Ok(()),
            false => self.fault("LLSD ends at byte {a}, before the field does"),
        }
    }
}

/// Whether a node has the value that the JSON has.
fn is_value(node: &Node, tree: &Tree, bytes: &[u8], json: &Json<'_>, value: u32) -> bool {
    let (from, length) = node.content();
    let content = || bytes.get(from..from + length).unwrap_or(&[]);
    let text = json.text(value);
    let number = || text.parse::<f64>().ok();
    match (node.kind, json.kind(value)) {
        (Kind::Null, JsonKind::Null) => true,
        (Kind::Bool, JsonKind::True) => node.value != 0,
        (Kind::Bool, JsonKind::False) => node.value == 0,
        (Kind::Signed, JsonKind::Number) => {
            // A field may be an unsigned number of 32 bits.
            let said = node.value as i64;
            text.parse::<i64>().is_ok_and(|given| given == said || given == said & 0xffff_ffff)
        }
        (Kind::F64, JsonKind::Number) => number() == Some(f64::from_bits(node.value)),
        (Kind::F64, JsonKind::Text) => {
            let said = f64::from_bits(node.value);
            number().is_some_and(|given| given == said || given.is_nan() && said.is_nan())
        }
        (Kind::UuidBe, JsonKind::Text) => {
            parse_uuid(text).is_some_and(|uuid| bytes.get(from..from + 16) == Some(&uuid[..]))
        }
        (Kind::Bytes, JsonKind::Text) if parse_hex(text).as_deref() == Some(content()) => true,
        // Numbers of more than 32 bits are bytes, or digits in a text. JSON may have them as text.
        (Kind::Bytes, JsonKind::Number | JsonKind::Text) => {
            let said = content()
                .iter()
                .try_fold(0u64, |all, byte| all.checked_mul(256).map(|all| all | u64::from(*byte)));
            said.is_some() && text.parse::<u64>().ok() == said
        }
        (Kind::Text(kind), JsonKind::Number | JsonKind::Text) => {
            let mut said = String::new();
            match kind {
                TextKind::Owned => said.push_str(tree.owned(node.value).raw()),
                _ => _ = decode_text(kind, content(), &mut said),
            }
            let given = text.parse::<u64>().ok();
            said == text
                || given.is_some()
                    && (said.parse().ok() == given || u64::from_str_radix(&said, 16).ok() == given)
        }
        _ => false,
    }
}
