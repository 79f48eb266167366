//! Writes packets: mudmode text, with its length before it. The inverse of `value`.
//!
//! Arrays and mappings have a comma behind every element, as the specification writes them.

use super::number::{self, NumberForm};
use super::text::{self, TextPlace};
use crate::table::{
    EncodeError, EncodeStop, Encoder, Encoding, JsonKind, Layout, LayoutId, MessageId, ReadAs,
    SpanLeaf, Tables, ValueRead, Written, parse_hex,
};
use crate::tree::{Sym, TypeRef};

/// The problem of a text that is not UTF-8: its beginning.
const LATIN_1: &str = "text in ISO-8859-1, not UTF-8";

/// Writes the packet of a record.
pub(super) fn encode(
    tables: &Tables,
    encoder: &mut Encoder,
    of: Written<'_>,
) -> Result<Vec<u8>, EncodeError> {
    // The NUL behind the text is counted as part of it. Some programs leave it out.
    let nul = encoder.habits.end_marks > 0;
    encoder.leaf = Some(leaf);
    encoder.write(tables, of, |encoding| {
        if of.json.kind(of.fields) == JsonKind::List {
            return encoding.spans(of.fields);
        }
        encoding.state.asked.end_marks = true;
        let mut writer = TextWriter { encoding, text: Vec::new(), depth: 0 };
        writer.packet(of.fields, of.message)?;
        let TextWriter { encoding, mut text, .. } = writer;
        if nul && !says_no_nul(encoding, of.fields) {
            text.push(0);
        }
        let Ok(length) = u32::try_from(text.len()) else {
            return encoding.fail(of.fields, "is longer than a packet can be");
        };
        encoding.out().put(&length.to_be_bytes());
        encoding.out().put(&text);
        Ok(())
    })
}

/// Writes a span with the bytes that it had, as long as they say its value.
fn leaf(encoding: &mut Encoding<'_>, leaf: &SpanLeaf) -> Result<bool, EncodeStop> {
    encoding.put_captured(leaf, |encoding, bytes| says(encoding, leaf, bytes))
}

/// Whether the bytes of a span say its value: their last text or number does, or they are brackets.
fn says(encoding: &Encoding<'_>, leaf: &SpanLeaf, bytes: &[u8]) -> bool {
    let (json, SpanLeaf { span, value, .. }) = (encoding.json, *leaf);
    let value = json.get(value, "value").unwrap_or(value);
    let text = json.text(value);
    let has = |part: &[u8]| memchr::memmem::find(bytes, part).is_some();
    match (json.kind(value), json.text_of(span, "type")) {
        (JsonKind::Text, Some("syntax")) => {
            has(text.as_bytes()) || parse_hex(text).is_some_and(|part| has(&part))
        }
        (JsonKind::Text, Some("object")) => has(text.as_bytes()),
        (JsonKind::Text, _)
            if json.text_of(span, "name") == Some(encoding.tables.name(Sym::UNDECODED)) =>
        {
            parse_hex(text).is_some_and(|part| has(&part))
        }
        (JsonKind::Text | JsonKind::Number, _) => {
            [TextPlace::Value, TextPlace::Key, TextPlace::Plain].iter().any(
                |place| match last_token(bytes, *place) {
                    Some(Token::Text(said)) => json.kind(value) == JsonKind::Text && said == text,
                    Some(Token::Number(digits)) => is_same_number(digits, text),
                    None => false,
                },
            )
        }
        // What cannot be read is null.
        (JsonKind::Null, _) => last_token(bytes, TextPlace::Value).is_none(),
        _ => false,
    }
}

/// A text or a number as it stands in a packet.
enum Token<'b> {
    Text(String),
    Number(&'b str),
}

fn last_token(bytes: &[u8], place: TextPlace) -> Option<Token<'_>> {
    let (mut at, mut last) = (0, None);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let end = bytes.len();
                let found = text::quoted(bytes, at + 1, end, place, &mut Default::default());
                let content = bytes.get(found.start..found.end).unwrap_or(&[]);
                let content = if found.escapes { unescaped(content) } else { content.to_vec() };
                let latin1 = |bytes: Vec<u8>| bytes.into_iter().map(char::from).collect();
                let text = String::from_utf8(content);
                last = Some(Token::Text(text.unwrap_or_else(|odd| latin1(odd.into_bytes()))));
                at = found.next.max(at + 1);
            }
            b'+' | b'-' | b'.' | b'0'..=b'9' => {
                let found = number::scan(bytes, at, bytes.len());
                let digits = bytes.get(at..found.end).and_then(|d| std::str::from_utf8(d).ok());
                if found.form != NumberForm::Bad {
                    last = digits.map(Token::Number).or(last);
                }
                at = found.end.max(at + 1);
            }
            _ => at += 1,
        }
    }
    last
}

fn is_same_number(one: &str, other: &str) -> bool {
    if let (Ok(one), Ok(other)) = (one.parse::<i128>(), other.parse::<i128>()) {
        return one == other;
    }
    match (one.parse::<f64>(), other.parse::<f64>()) {
        (Ok(one), Ok(other)) => one == other,
        // More digits than any number has.
        _ => one.trim_start_matches(['+', '0']) == other.trim_start_matches('0'),
    }
}

fn says_no_nul(encoding: &Encoding<'_>, fields: u32) -> bool {
    encoding.says(fields, |text| text.starts_with("the text has no NUL at its end"))
}

struct TextWriter<'e, 'a> {
    encoding: &'e mut Encoding<'a>,
    text: Vec<u8>,
    depth: usize,
}

/// The deepest nesting that is written.
const MAX_DEPTH: usize = 250;

impl TextWriter<'_, '_> {
    /// A packet: an array whose first element is its type. The message's name decides the
    /// positions.
    fn packet(&mut self, fields: u32, message: Option<MessageId>) -> Result<(), EncodeStop> {
        let tables = self.encoding.tables;
        let json = self.encoding.json;
        self.encoding.enter(fields);
        // What is no packet has its value under this name.
        if json.get(fields, "type").is_none()
            && let Some(value) = json.get(fields, "value")
        {
            return self.value(value, None);
        }
        let message = message.and_then(|id| tables.message(id));
        let layout = message.and_then(|def| def.layout).or_else(|| super::header(tables));
        self.array(fields, Elements::Positions(layout))
    }

    /// The elements of an array, in the order of the JSON.
    fn array(&mut self, node: u32, of: Elements) -> Result<(), EncodeStop> {
        let json = self.encoding.json;
        self.deeper(node)?;
        let of = match of {
            Elements::Positions(Some(layout)) => Elements::Positions(Some(self.form(layout, node))),
            other => other,
        };
        self.text.extend_from_slice(b"({");
        for (at, child) in json.children(node).enumerate() {
            let ty = match of {
                Elements::Positions(layout) => self.position(layout, at, child)?,
                Elements::All(ty) => ty,
            };
            self.value(child, ty)?;
            self.text.push(b',');
        }
        self.text.extend_from_slice(b"})");
        self.depth -= 1;
        Ok(())
    }

    fn deeper(&mut self, node: u32) -> Result<(), EncodeStop> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.encoding.fail(node, format!("nested more than {MAX_DEPTH} deep"));
        }
        Ok(())
    }

    /// The positions whose names the elements have: those that were expected, or others with the
    /// same names for arrays of this length.
    fn form(&self, layout: LayoutId, node: u32) -> LayoutId {
        let tables = self.encoding.tables;
        let json = self.encoding.json;
        let fits = |layout: &Layout| {
            let count = layout.positions.map_or(0, |positions| usize::from(positions.count));
            count > 0
                && json.children(node).enumerate().all(|(at, child)| {
                    match tables.position(layout, at as u32) {
                        Some((name, _)) => tables.name(name) == json.key(child),
                        None => json.key(child) == format!("extra_{at}"),
                    }
                })
        };
        if tables.layout(layout).is_some_and(fits) {
            return layout;
        }
        let other = tables.layouts().iter().position(fits);
        other.map_or(layout, |at| LayoutId(at as u32))
    }

    /// The type of the element at a place. Elements have no names in the text, so that they have to
    /// stand in their order.
    fn position(
        &mut self,
        layout: Option<LayoutId>,
        at: usize,
        child: u32,
    ) -> Result<Option<TypeRef>, EncodeStop> {
        let tables = self.encoding.tables;
        let key = self.encoding.json.key(child);
        let named = layout.and_then(|layout| tables.layout(layout));
        match named.and_then(|layout| tables.position(layout, at as u32)) {
            Some((name, ty)) if tables.name(name) == key => Ok(Some(ty)),
            _ if key == format!("extra_{at}") => Ok(None),
            Some((name, _)) => {
                let text = format!("is no position here: the next one is {}", tables.name(name));
                self.encoding.fail(child, text)
            }
            None => {
                let text = format!("is no position here: further ones are called extra_{at}");
                self.encoding.fail(child, text)
            }
        }
    }

    fn value(&mut self, node: u32, ty: Option<TypeRef>) -> Result<(), EncodeStop> {
        let json = self.encoding.json;
        let tables = self.encoding.tables;
        let read = ty.and_then(|ty| tables.type_def(ty)).map(|def| &def.read);
        match json.kind(node) {
            JsonKind::Number => {
                self.encoding.take(node);
                self.text.extend_from_slice(json.text(node).as_bytes());
                Ok(())
            }
            JsonKind::Text => self.string(node, read),
            JsonKind::Object if ty.and_then(|ty| tables.symbols(ty)).is_some() => {
                self.encoding.take(node);
                match json.get(node, "value") {
                    Some(value) => self.value(value, None),
                    None => self.encoding.fail(node, "has no value"),
                }
            }
            JsonKind::Object => {
                self.encoding.enter(node);
                self.object(node, read)
            }
            JsonKind::List => {
                self.encoding.enter(node);
                match read {
                    Some(ReadAs::Value(ValueRead::Mapping { .. })) => self.pairs(node),
                    Some(ReadAs::List { of, .. }) => self.array(node, Elements::All(Some(*of))),
                    _ => self.array(node, Elements::All(None)),
                }
            }
            kind => {
                let text =
                    format!("is {}: mudmode has numbers, texts, arrays, mappings", kind.word());
                self.encoding.fail(node, text)
            }
        }
    }

    /// An array with positions, or a mapping.
    fn object(&mut self, node: u32, read: Option<&ReadAs>) -> Result<(), EncodeStop> {
        match read {
            Some(ReadAs::Layout { layout, .. }) => {
                self.array(node, Elements::Positions(Some(*layout)))
            }
            Some(ReadAs::Value(ValueRead::Packet)) => {
                let name = self.encoding.json.text_of(node, "type").unwrap_or("").to_string();
                let tables = self.encoding.tables;
                let message = tables.message_named(&name).and_then(|id| tables.message(id));
                let layout = message.and_then(|def| def.layout).or_else(|| super::header(tables));
                self.array(node, Elements::Positions(layout))
            }
            Some(ReadAs::Value(ValueRead::Mapping { of, keys, array })) => {
                // In the place of this mapping there may be an array with positions.
                let layout = array.and_then(|ty| match self.encoding.tables.type_def(ty)?.read {
                    ReadAs::Layout { layout, .. } => Some(layout),
                    _ => None,
                });
                let first = self.encoding.json.children(node).next();
                let first = first.map(|child| self.encoding.json.key(child).to_string());
                match (layout, first) {
                    (Some(layout), Some(first)) if self.begins(layout, &first) => {
                        self.array(node, Elements::Positions(Some(layout)))
                    }
                    _ => self.mapping(node, *of, *keys),
                }
            }
            _ => self.mapping(node, None, None),
        }
    }

    fn begins(&self, layout: LayoutId, key: &str) -> bool {
        let tables = self.encoding.tables;
        let first = tables.layout(layout).and_then(|layout| tables.position(layout, 0));
        first.is_some_and(|(name, _)| tables.name(name) == key)
    }

    fn mapping(
        &mut self,
        node: u32,
        of: Option<TypeRef>,
        keys: Option<LayoutId>,
    ) -> Result<(), EncodeStop> {
        let json = self.encoding.json;
        self.deeper(node)?;
        self.text.extend_from_slice(b"([");
        for child in json.children(node) {
            let key = json.key(child);
            self.quoted(key.as_bytes());
            self.text.push(b':');
            let ty = keys.and_then(|keys| self.encoding.tables.key(keys, key)).or(of);
            self.value(child, ty)?;
            self.text.push(b',');
        }
        self.text.extend_from_slice(b"])");
        self.depth -= 1;
        Ok(())
    }

    /// A mapping that JSON has as a list of pairs, since its keys are not all texts.
    fn pairs(&mut self, node: u32) -> Result<(), EncodeStop> {
        let json = self.encoding.json;
        self.deeper(node)?;
        self.text.extend_from_slice(b"([");
        for pair in json.children(node) {
            let mut parts = json.children(pair);
            let (Some(key), Some(value), None) = (parts.next(), parts.next(), parts.next()) else {
                return self.encoding.fail(pair, "is no pair of a key and a value");
            };
            self.encoding.enter(pair);
            self.value(key, None)?;
            self.text.push(b':');
            self.value(value, None)?;
            self.text.push(b',');
        }
        self.text.extend_from_slice(b"])");
        self.depth -= 1;
        Ok(())
    }

    /// A text; a number beyond 2^53 is a text in JSON, too.
    fn string(&mut self, node: u32, read: Option<&ReadAs>) -> Result<(), EncodeStop> {
        self.encoding.take(node);
        let text = self.encoding.json.text(node).to_string();
        let is_number = matches!(read, Some(ReadAs::Value(ValueRead::Int | ValueRead::Uint)));
        let digits = text.strip_prefix('-').unwrap_or(&text);
        if is_number && digits.len() > 15 && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            self.text.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        let latin1 = self.encoding.says(node, |problem| problem.starts_with(LATIN_1));
        let shown = self.encoding.shown_bytes(node).next().filter(|_| latin1).map(<[u8]>::to_vec);
        let bytes = if latin1 { latin1_bytes(&text) } else { None };
        match (shown, bytes) {
            // As it was sent: with its escapes.
            (Some(shown), Some(bytes)) if unescaped(&shown) == bytes => {
                self.text.push(b'"');
                self.text.extend_from_slice(&shown);
                self.text.push(b'"');
            }
            (_, Some(bytes)) => self.quoted(&bytes),
            _ => self.quoted(text.as_bytes()),
        }
        Ok(())
    }

    /// A text between quotes, with escapes for quotes, backslashes and line feeds.
    fn quoted(&mut self, bytes: &[u8]) {
        self.text.push(b'"');
        for byte in bytes {
            match byte {
                b'"' | b'\\' => self.text.extend_from_slice(&[b'\\', *byte]),
                b'\n' => self.text.extend_from_slice(b"\\n"),
                _ => self.text.push(*byte),
            }
        }
        self.text.push(b'"');
    }
}

/// What an array holds.
#[derive(Clone, Copy)]
enum Elements {
    /// A value at each position.
    Positions(Option<LayoutId>),
    /// Values of one type.
    All(Option<TypeRef>),
}

fn latin1_bytes(text: &str) -> Option<Vec<u8>> {
    text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect()
}

fn unescaped(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    super::text::unescape(bytes, &mut out);
    out
}
