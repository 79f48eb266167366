//! LLSD, the self-describing values of Second Life, into the tree: undefined, booleans, integers,
//! reals, UUIDs, texts, dates, URIs, bytes, arrays and maps within each other.
//!
//! This file knows values, and how they become nodes; its parts know the encodings: binary,
//! notation, XML, and XML-RPC, whose values are the same. `typed` knows what tables say of the keys
//! of maps. Nothing here knows messages. The span of a value includes what stands before
//! it, such as its key and separators, and every array and map has its brackets as spans, so that
//! spans cover the bytes without overlap. Sources: the wiki's page "LLSD", and the viewer's
//! `llsdserialize.cpp` and `llsdserialize_xml.cpp`.

mod binary;
mod leaf;
mod notation;
pub(super) mod typed;
pub(super) mod write;
mod xml;
mod xmlrpc;

pub(super) use leaf::says;

use crate::maps::SeededSet;
use crate::table::{Call, Cursor, Native, Run, Stop, Tables};
use crate::tree::{
    Buffer, Checkpoint, Kind, Node, Problem, Severity, Sym, TextKind, TypeRef, mark,
};

/// The type with code. Its argument says whether bytes that are no LLSD are text.
pub(super) const LLSD: Native =
    Native { parts: &PARTS, ..Native::new("llsd", llsd).written_by(write::write_llsd) };

/// What is said of bytes that are no LLSD.
const AS_TEXT: &str = "no LLSD: shown as text";
const AS_BYTES: &str = "no LLSD: shown as bytes";

/// The types of the tables that nodes get, in the order of [`Part`].
const PARTS: [&str; 13] = [
    "LLSDUndefined",
    "LLSDBoolean",
    "LLSDInteger",
    "LLSDReal",
    "LLSDUUID",
    "LLSDString",
    "LLSDDate",
    "LLSDURI",
    "LLSDBinary",
    "LLSDArray",
    "LLSDMap",
    "LLSDPair",
    "LLSDSyntax",
];

/// A type of the tables.
#[derive(Clone, Copy)]
enum Part {
    Undefined,
    Boolean,
    Integer,
    Real,
    Uuid,
    String,
    Date,
    Uri,
    Binary,
    Array,
    Map,
    Pair,
    Syntax,
}

/// How values are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Binary,
    Notation,
    Xml,
    XmlRpc,
}

/// Why reading stopped.
enum Fault {
    /// The bytes are no LLSD from this one on.
    Bytes(&'static str, usize),
    /// A bound was reached.
    Limit(&'static str, i64),
    /// A map has a key twice: it is read again as a list of pairs.
    Repeated,
}

/// More keys of a map than this are compared by hash.
const FEW_KEYS: u32 = 16;

/// Reading one field.
struct LlsdReader<'r, 't, 'd> {
    run: &'r mut Run<'t>,
    parts: LlsdTypes,
    encoding: Encoding,
    /// The field's bytes.
    bytes: &'d [u8],
    /// Where they begin in the buffer.
    origin: usize,
    buffer: Buffer,
    pos: usize,
    /// All bytes before this one belong to a node.
    claimed: usize,
    depth: u32,
    /// The last key, or the last text that had to be decoded.
    text: String,
    /// The maps that are read as lists of pairs, by the place of what opens them.
    pairs: SeededSet<usize>,
    /// What tables say of the value that is read next, if they say something.
    expected: Option<TypeRef>,
}

/// The types of the tables that nodes get.
#[derive(Clone, Copy, Debug)]
pub(super) struct LlsdTypes([TypeRef; PARTS.len()]);

impl LlsdTypes {
    /// Looks them up.
    pub(super) fn new(tables: &Tables) -> LlsdTypes {
        LlsdTypes(PARTS.map(|name| tables.type_named(name).unwrap_or_default()))
    }
}

/// A value that stands alone, as in the body of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct LlsdBody {
    /// The name of its node.
    pub(super) name: Sym,
    /// What tables say of it, if they say something.
    pub(super) expected: Option<TypeRef>,
    /// Whether it is a value of XML-RPC.
    pub(super) is_xml_rpc: bool,
}

impl LlsdTypes {
    /// Reads the rest of the cursor's region as one value. Returns whether it is one: an array or a
    /// map even if it is damaged, anything else only if it is complete. If not, the tree is as it
    /// was.
    pub(super) fn read(self, run: &mut Run<'_>, cursor: &mut Cursor<'_>, body: LlsdBody) -> bool {
        let start = cursor.pos();
        let bytes = cursor.rest();
        let before = run.tree.checkpoint();
        let (header, encoding) = match body.is_xml_rpc {
            true => (0, Encoding::XmlRpc),
            false => encoding_of(bytes),
        };
        let mut reader = LlsdReader {
            parts: self,
            encoding,
            bytes,
            origin: start / 8,
            buffer: cursor.buffer(),
            pos: header,
            claimed: 0,
            depth: 0,
            text: String::new(),
            pairs: SeededSet::default(),
            expected: body.expected,
            run: &mut *run,
        };
        if reader.whole(before, body.name) {
            let read = reader.claimed;
            cursor.seek(start + read * 8);
            return true;
        }
        run.tree.back_to(before);
        false
    }
}

/// A field in LLSD. Bytes that are something else are shown as bytes, or as text.
fn llsd(run: &mut Run<'_>, cursor: &mut Cursor<'_>, call: &Call) -> Result<u64, Stop> {
    let root = run.tree.len();
    if cursor.pos().is_multiple_of(8) && !cursor.rest().is_empty() {
        let parts = LlsdTypes(std::array::from_fn(|part| call.part(run.tables, part)));
        let body = LlsdBody { name: call.name, expected: None, is_xml_rpc: false };
        if parts.read(run, cursor, body) {
            run.tree.amend(root, |node| node.ty = call.ty);
            run.tree.mark(root, call.marks);
            return Ok(0);
        }
    }
    other_bytes(run, cursor, call)
}

/// Bytes that are no LLSD.
fn other_bytes(run: &mut Run<'_>, cursor: &mut Cursor<'_>, call: &Call) -> Result<u64, Stop> {
    let start = cursor.pos();
    let is_text = run.arg(call, 0, cursor) != 0;
    let (at, bytes) = cursor.take(cursor.left())?;
    let zeros = bytes.iter().rev().take_while(|byte| is_text && **byte == 0).count();
    let length = bytes.len() - zeros;
    let kind = if is_text { Kind::Text(TextKind::Utf8) } else { Kind::Bytes };
    let node = run.tree.leaf(call.node(cursor, start, kind, Node::place(at, length)));
    let content = bytes.get(..length).unwrap_or_default();
    if is_text && std::str::from_utf8(content).is_err() {
        let problem = Problem::new(Severity::Warning, node, "not valid text", 0, 0);
        run.tree.problem(problem.showing(cursor.buffer(), at, length));
    }
    if !content.is_empty() {
        let text = if is_text { AS_TEXT } else { AS_BYTES };
        run.problem(Severity::Note, node, text, 0, 0);
    }
    Ok(0)
}

/// How a field is encoded, and the length of the header that says so, if it has one. Without a
/// header XML begins with `<`; what is no notation is binary.
fn encoding_of(bytes: &[u8]) -> (usize, Encoding) {
    if let Some(inner) = bytes.strip_prefix(b"<?") {
        let end = memchr::memmem::find(inner, b"?>").unwrap_or(0);
        let name = inner.get(..end).unwrap_or_default().trim_ascii();
        // The first line end behind the header belongs to it.
        let header = end + 4 + usize::from(inner.get(end + 2) == Some(&b'\n'));
        if name.eq_ignore_ascii_case(b"llsd/binary") {
            return (header, Encoding::Binary);
        }
        if name.eq_ignore_ascii_case(b"llsd/notation") {
            return (header, Encoding::Notation);
        }
        if name.eq_ignore_ascii_case(b"llsd/xml") {
            return (header, Encoding::Xml);
        }
    }
    let encoding = match bytes {
        [b'<', ..] => Encoding::Xml,
        // Counts and lengths have four bytes, the highest first.
        [b'{' | b'[' | b's' | b'l' | b'b', 0, ..] => Encoding::Binary,
        [b'i', number @ ..] if number.len() == 4 && !number.is_ascii() => Encoding::Binary,
        [b'i', 0, _, _, _] => Encoding::Binary,
        [b'r' | b'd', number @ ..] if number.len() == 8 && !is_text(number) => Encoding::Binary,
        [b'u', id @ ..] if id.len() == 16 => Encoding::Binary,
        _ => Encoding::Notation,
    };
    (0, encoding)
}

/// Whether bytes are printable characters.
fn is_text(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| (b' '..0x7f).contains(byte))
}

impl LlsdReader<'_, '_, '_> {
    /// Reads the value. Returns whether it is LLSD: an array or a map even if it is damaged,
    /// anything else only if it is complete.
    fn whole(&mut self, before: Checkpoint, name: Sym) -> bool {
        let root = before.node();
        let result = self.value(name).and_then(|()| self.behind());
        let is_container = self
            .run
            .tree
            .get(root)
            .is_some_and(|node| matches!(node.kind, Kind::Struct | Kind::List));
        let last = self.run.tree.len().saturating_sub(1);
        match result {
            Ok(()) if is_container && self.pos > self.claimed => {
                let name = self.run.tables.value_types().end_name;
                // Within the bound: a value was added before.
                let _ = self.syntax(name, self.claimed);
                self.end(root);
            }
            Ok(()) => self.grow(root),
            Err(_) if !is_container => return false,
            Err(Fault::Bytes(text, at)) => {
                let at = (self.origin + at) as i64;
                self.run.problem(Severity::Error, last, text, at, 0);
            }
            Err(Fault::Limit(text, most)) => {
                self.run.problem(Severity::Error, last, text, most, 0);
            }
            Err(Fault::Repeated) => {}
        }
        true
    }

    /// Passes over what may stand behind the value: blanks, the zero that ends a text, and the end
    /// of the XML's root.
    fn behind(&mut self) -> Result<(), Fault> {
        match self.encoding {
            Encoding::Xml => self.root_end()?,
            Encoding::XmlRpc => self.rpc_blanks(),
            _ => {}
        }
        if self.encoding != Encoding::Binary {
            let blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0;
            self.pos += self.rest().iter().take_while(|byte| blank(byte)).count();
        }
        if self.pos < self.bytes.len() {
            return self.fault("LLSD ends at byte {a}, before the field does");
        }
        Ok(())
    }

    /// A value of any kind at its place.
    fn value(&mut self, name: Sym) -> Result<(), Fault> {
        let (node, expected) = (self.run.tree.len(), self.expected);
        let result = match self.encoding {
            Encoding::Binary => self.binary_value(name),
            Encoding::Notation => self.notation_value(name),
            Encoding::Xml => self.xml_value(name),
            Encoding::XmlRpc => self.rpc_value(name),
        };
        self.expected = None;
        if let Some(expected) = expected {
            self.take_type(node, expected);
        }
        result
    }

    /// Passes over what opens or closes an array or a map, or over what separates its elements.
    /// Returns whether it ends here. `left`: how many elements are still announced.
    fn at_end(&mut self, is_map: bool, left: &mut Option<u32>) -> Result<bool, Fault> {
        match self.encoding {
            Encoding::Binary => self.binary_end(if is_map { b'}' } else { b']' }, left),
            Encoding::Notation => self.notation_end(if is_map { b'}' } else { b']' }),
            Encoding::Xml => self.xml_end(if is_map { b"map" } else { b"array" }),
            Encoding::XmlRpc => self.rpc_end(is_map),
        }
    }

    /// A map's key, into `text`.
    fn key(&mut self) -> Result<(), Fault> {
        match self.encoding {
            Encoding::Binary => self.binary_key(),
            Encoding::Notation => self.notation_key(),
            Encoding::Xml => self.xml_key(),
            Encoding::XmlRpc => self.rpc_key(),
        }
    }

    /// An array or a map. What opens it begins at `from` and was passed over; `count` is the number
    /// of elements that it announces.
    fn container(
        &mut self,
        name: Sym,
        is_map: bool,
        from: usize,
        count: Option<u32>,
    ) -> Result<(), Fault> {
        let before = self.run.tree.checkpoint();
        let (claimed, inside, expected) = (self.claimed, self.pos, self.expected);
        let result = self.elements(name, is_map, from, count);
        if !matches!(result, Err(Fault::Repeated)) {
            return result;
        }
        self.run.tree.back_to(before);
        (self.claimed, self.pos, self.expected) = (claimed, inside, expected);
        self.pairs.insert(from);
        self.elements(name, is_map, from, count)
    }

    fn elements(
        &mut self,
        name: Sym,
        is_map: bool,
        from: usize,
        count: Option<u32>,
    ) -> Result<(), Fault> {
        let is_pairs = is_map && self.pairs.contains(&from);
        let (part, kind) = match (is_map, is_pairs) {
            (true, false) => (Part::Map, Kind::Struct),
            (true, true) => (Part::Map, Kind::List),
            (false, _) => (Part::Array, Kind::List),
        };
        let node = self.begin(name, part, kind)?;
        if is_pairs {
            let text = "a key stands in this map twice: shown as a list of pairs";
            self.run.problem(Severity::Note, node, text, 0, 0);
        }
        let result = self.inside(node, is_map, is_pairs, from, count);
        self.end(node);
        result
    }

    fn inside(
        &mut self,
        node: u32,
        is_map: bool,
        is_pairs: bool,
        from: usize,
        count: Option<u32>,
    ) -> Result<(), Fault> {
        let types = self.run.tables.value_types();
        let expected = self.expected.take();
        match count {
            Some(count) => {
                let name = self.run.tables.count_name();
                self.leaf(name, Part::Syntax, Kind::Unsigned, count.into(), mark::SPAN)?;
            }
            None => {
                self.syntax(types.open_name, from)?;
            }
        }
        let mut left = count;
        let mut keys = SeededSet::default();
        loop {
            let at = self.pos;
            if self.at_end(is_map, &mut left)? {
                self.syntax(types.close_name, at)?;
                return Ok(());
            }
            if !is_map {
                self.expected = self.type_of_element(expected);
                self.value(Sym::ELEMENT)?;
                continue;
            }
            self.key()?;
            if is_pairs {
                self.pair()?;
                continue;
            }
            if self.is_known_key(node, &mut keys) {
                return Err(Fault::Repeated);
            }
            let name = match self.field_of_key(expected) {
                Some((name, ty)) => {
                    self.expected = Some(ty);
                    name
                }
                None => {
                    self.expected = self.type_of_value(expected);
                    self.run.tree.dynamic_name(&self.text)
                }
            };
            self.value(name)?;
        }
    }

    /// A key and its value as an element of a list.
    fn pair(&mut self) -> Result<(), Fault> {
        let pair = self.begin(Sym::ELEMENT, Part::Pair, Kind::Struct)?;
        let place = self.run.tree.own_text(&self.text);
        let key = self.run.tables.sym("key").unwrap_or(Sym::ELEMENT);
        let result = self
            .leaf(key, Part::String, Kind::Text(TextKind::Owned), place, 0)
            .and_then(|_| self.value(self.run.tables.value_name()));
        self.end(pair);
        result
    }

    /// Whether the map `node` has the key in `text` already.
    fn is_known_key(&mut self, node: u32, keys: &mut SeededSet<Box<str>>) -> bool {
        let tree = &self.run.tree;
        // The map is still open: its node does not know yet where it ends.
        let known = || {
            let children = std::iter::successors(tree.get(node + 1), |child| tree.get(child.end));
            children.filter_map(|child| match tree.dynamic(child.name) {
                Some(name) => Some(name.raw()),
                None if child.has(mark::SPAN) => None,
                None => Some(self.run.tables.name(child.name)),
            })
        };
        if keys.is_empty() && known().take(FEW_KEYS as usize).count() < FEW_KEYS as usize {
            return known().any(|key| key == self.text);
        }
        if keys.is_empty() {
            keys.extend(known().map(Box::from));
        }
        !keys.insert(self.text.as_str().into())
    }

    /// A node over the bytes that no node claims yet.
    fn leaf(
        &mut self,
        name: Sym,
        part: Part,
        kind: Kind,
        value: u64,
        marks: u8,
    ) -> Result<u32, Fault> {
        let most = self.run.state.limits.nodes;
        if self.run.tree.len() >= most {
            return Err(Fault::Limit("more than {a} values: LLSD is read no further", most.into()));
        }
        let node = self.run.tree.leaf(Node {
            value,
            name,
            ty: self.part(part),
            start: ((self.origin + self.claimed) * 8) as u32,
            bits: ((self.pos - self.claimed) * 8) as u32,
            end: 0,
            buffer: self.buffer,
            kind,
            marks,
        });
        self.claimed = self.pos;
        Ok(node)
    }

    /// What holds values together, from the byte `from` on, as a span.
    fn syntax(&mut self, name: Sym, from: usize) -> Result<u32, Fault> {
        let place = self.place(from, self.pos.saturating_sub(from));
        self.leaf(name, Part::Syntax, Kind::Text(TextKind::Utf8), place, mark::SPAN)
    }

    /// A text whose content is as it was captured.
    fn text_leaf(
        &mut self,
        name: Sym,
        part: Part,
        from: usize,
        length: usize,
    ) -> Result<(), Fault> {
        let place = self.place(from, length);
        let node = self.leaf(name, part, Kind::Text(TextKind::Utf8), place, 0)?;
        let content = self.bytes.get(from..from + length).unwrap_or_default();
        if std::str::from_utf8(content).is_err() {
            let problem = Problem::new(Severity::Warning, node, "not valid text", 0, 0);
            self.run.tree.problem(problem.showing(self.buffer, self.origin + from, length));
        }
        Ok(())
    }

    /// A text that had to be decoded into `text`.
    fn decoded_leaf(&mut self, name: Sym, part: Part) -> Result<u32, Fault> {
        let place = self.run.tree.own_text(&self.text);
        self.leaf(name, part, Kind::Text(TextKind::Owned), place, 0)
    }

    /// An integer or a real in digits. Other digits are shown as text.
    fn number_leaf(
        &mut self,
        name: Sym,
        part: Part,
        from: usize,
        length: usize,
    ) -> Result<(), Fault> {
        let digits = self.bytes.get(from..from + length).unwrap_or_default();
        let digits = std::str::from_utf8(digits).unwrap_or_default().trim_ascii();
        let number = match part {
            Part::Integer => digits.parse().ok().map(|n: i32| (Kind::Signed, i64::from(n) as u64)),
            _ => digits.parse().ok().map(|n: f64| (Kind::F64, n.to_bits())),
        };
        match number {
            Some((kind, value)) => self.leaf(name, part, kind, value, 0).map(drop),
            None => {
                self.text_leaf(name, part, from, length)?;
                let node = self.run.tree.len().saturating_sub(1);
                self.run.problem(Severity::Note, node, "no number of LLSD", 0, 0);
                Ok(())
            }
        }
    }

    /// Bytes that are written as text. They are shown in hex.
    fn encoded_bytes_leaf(
        &mut self,
        name: Sym,
        is_hex: bool,
        from: usize,
        length: usize,
    ) -> Result<(), Fault> {
        use base64::Engine;
        let mut digits = self.bytes.get(from..from + length).unwrap_or_default().to_vec();
        digits.retain(|byte| !byte.is_ascii_whitespace());
        let decoded = if is_hex {
            std::str::from_utf8(&digits).ok().and_then(crate::table::parse_hex)
        } else {
            base64::engine::general_purpose::STANDARD.decode(&digits).ok()
        };
        let Some(decoded) = decoded else {
            self.text_leaf(name, Part::Binary, from, length)?;
            let node = self.run.tree.len().saturating_sub(1);
            self.run.problem(Severity::Note, node, "these are no bytes as LLSD writes them", 0, 0);
            return Ok(());
        };
        self.text.clear();
        for byte in decoded {
            for digit in [byte >> 4, byte & 15] {
                self.text.extend(char::from_digit(digit.into(), 16));
            }
        }
        self.decoded_leaf(name, Part::Binary).map(drop)
    }

    /// Opens the node of what has values inside.
    fn begin(&mut self, name: Sym, part: Part, kind: Kind) -> Result<u32, Fault> {
        let most = self.run.state.limits.depth;
        if self.depth >= most {
            return Err(Fault::Limit("nested more than {a} deep", most.into()));
        }
        self.depth += 1;
        let pos = std::mem::replace(&mut self.pos, self.claimed);
        let node = self.leaf(name, part, kind, 0, 0);
        self.pos = pos;
        node
    }

    /// Closes it.
    fn end(&mut self, node: u32) {
        self.depth = self.depth.saturating_sub(1);
        self.run.tree.close(node, (self.origin + self.claimed) * 8);
    }

    /// Lets the only value of the field reach to its end.
    fn grow(&mut self, node: u32) {
        self.claimed = self.pos;
        self.run.tree.close(node, (self.origin + self.claimed) * 8);
    }

    fn part(&self, part: Part) -> TypeRef {
        self.parts.0.get(part as usize).copied().unwrap_or_default()
    }

    fn place(&self, from: usize, length: usize) -> u64 {
        Node::place(self.origin + from, length)
    }

    fn rest(&self) -> &[u8] {
        self.bytes.get(self.pos..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.pos).copied()
    }

    /// Passes over a number of bytes. Returns where they begin.
    fn take(&mut self, count: usize) -> Result<usize, Fault> {
        let from = self.pos;
        if count > self.rest().len() {
            self.pos = self.bytes.len();
            return self.fault("LLSD goes on beyond the field's end, byte {a}");
        }
        self.pos += count;
        Ok(from)
    }

    /// The next bytes as they are.
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let from = self.take(N)?;
        match self.bytes.get(from..).and_then(|rest| rest.first_chunk()) {
            Some(bytes) => Ok(*bytes),
            None => self.fault("LLSD goes on beyond the field's end, byte {a}"),
        }
    }

    /// The bytes are no LLSD from here on.
    fn fault<T>(&self, text: &'static str) -> Result<T, Fault> {
        Err(Fault::Bytes(text, self.pos))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use crate::print::json::{JsonOptions, JsonWriter};
    use crate::proto::{load_tables, protocol_named};
    use crate::record::MessageView;
    use crate::table::{Evaluator, Tables};
    use crate::tree::{Kind, Sym, Tree};
    use std::sync::OnceLock;

    fn tables() -> &'static Tables {
        static TABLES: OnceLock<Tables> = OnceLock::new();
        TABLES.get_or_init(|| load_tables(protocol_named("secondlife").unwrap(), &[]).unwrap())
    }

    /// The JSON of a field, and of what is wrong with it. The spans of the field have to cover the
    /// bytes one after the other.
    fn read(bytes: &[u8]) -> (String, String) {
        let tables = tables();
        let ty = tables.type_named("LLSD").unwrap();
        let mut tree = Tree::new();
        Evaluator::default().value(tables, ty, Sym::ELEMENT, bytes, 0, &mut tree);
        covers(&tree, 0);
        let (mut json, mut problems) = (Vec::new(), Vec::new());
        let mut writer = JsonWriter::new(JsonOptions::default());
        writer.fields(MessageView { tables, tree: &tree, bytes }, &mut json);
        writer.problems(MessageView { tables, tree: &tree, bytes }, &mut problems);
        (String::from_utf8(json).unwrap(), String::from_utf8(problems).unwrap())
    }

    fn covers(tree: &Tree, parent: u32) {
        let node = tree.get(parent).unwrap();
        let mut at = node.start;
        for (index, child) in tree.children(parent) {
            assert_eq!(child.start, at, "where a span begins");
            at = child.start + child.bits;
            covers(tree, index);
        }
        if matches!(node.kind, Kind::Struct | Kind::List) {
            assert_eq!(at, node.start + node.bits, "where the last span ends");
        }
    }

    fn is(bytes: &[u8], json: &str) {
        assert_eq!(read(bytes), (json.to_string(), String::new()));
    }

    fn is_text(text: &str, json: &str) {
        is(text.as_bytes(), json);
    }

    #[test]
    fn values_of_every_kind_in_binary() {
        is(b"{\0\0\0\x02k\0\0\0\x02on1k\0\0\0\x03off0}", r#"{"on":true,"off":false}"#);
        let numbers = b"i\xff\xff\xff\xffr\x3f\xf8\0\0\0\0\0\0d\0\0\0\0\0\0\xf0\x3f";
        let others = b"!u\0\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0fs\0\0\0\x02itl\0\0\0\x01/b\0\0\0\x02\0\xff";
        let list =
            [&b"<? LLSD/Binary ?>\n{\0\0\0\x01k\0\0\0\x01a[\0\0\0\x08"[..], numbers, others, b"]}"]
                .concat();
        is(
            &list,
            r#"{"a":[-1,1.5,1.0,null,"00010203-0405-0607-0809-0a0b0c0d0e0f","it","/","00ff"]}"#,
        );
    }

    #[test]
    fn values_of_every_kind_as_notation() {
        is_text(
            r#"{'t':true,"f":0,'s':s(2)"it",'l':l"http://a/",'d':d"2006-02-01T14:29:53Z",'r':r-1.5e3}"#,
            r#"{"t":true,"f":false,"s":"it","l":"http://a/","d":"2006-02-01T14:29:53Z","r":-1500.0}"#,
        );
        is_text(
            "<? llsd/notation ?>\n{ 'x' : [ !, i5 , u00010203-0405-0607-0809-0a0b0c0d0e0f ], \
             'b':[b16\"00FF\",b64\"AP8=\",b(1)\"z\"] }\n",
            r#"{"x":[null,5,"00010203-0405-0607-0809-0a0b0c0d0e0f"],"b":["00ff","00ff","7a"]}"#,
        );
        is_text(r"{'it\'s':'a\tb\x41'}", r#"{"it's":"a\tbA"}"#);
    }

    #[test]
    fn values_of_every_kind_in_xml() {
        is_text(
            "<?xml version='1.0' ?>\n<llsd> <map><key>a &amp; \
             b</key><string>&lt;&#233;&gt;</string><key>n</key><integer>-5</integer>\n<!-- all \
             --><key>l</key><array><undef/><real>0.25</real><real/><boolean>1</\
             boolean><uuid>00010203-0405-0607-0809-0a0b0c0d0e0f</uuid><binary>AP8=</binary><array/\
             ><map></map></array></map> </llsd>\n\0",
            r#"{"a & b":"<é>","n":-5,"l":[null,0.25,0.0,true,"00010203-0405-0607-0809-0a0b0c0d0e0f","00ff",[],{}]}"#,
        );
    }

    #[test]
    fn a_key_that_stands_twice_makes_a_list_of_pairs() {
        let (json, problems) = read(b"{'a':{'b':i1,'c':i2,'b':i3}}");
        assert_eq!(
            json,
            r#"{"a":[{"key":"b","value":1},{"key":"c","value":2},{"key":"b","value":3}]}"#
        );
        assert!(problems.contains("a key stands in this map twice"), "{problems}");
        let many: String = (0..40).map(|n| format!("'k{n}':i{n},")).collect();
        is_text(&format!("{{{}}}", many.trim_end_matches(',')), &{
            let all: Vec<String> = (0..40).map(|n| format!(r#""k{n}":{n}"#)).collect();
            format!("{{{}}}", all.join(","))
        });
        let (json, _) = read(format!("{{{many}'k30':i0}}").as_bytes());
        assert!(json.contains(r#"{"key":"k30","value":0}"#), "{json}");
    }

    #[test]
    fn what_came_before_damage_is_kept() {
        let (json, problems) = read(b"{'a':i1,'b':[i2,?]}");
        assert_eq!(json, r#"{"a":1,"b":[2],"undecoded":"2c3f5d7d"}"#);
        assert!(problems.contains("no value of LLSD begins at byte 16"), "{problems}");
        for (bytes, text) in [
            (&b"{'a':i1"[..], "LLSD goes on beyond the field's end"),
            (b"{'a':'x", "has no closing quote"),
            (b"{\0\0\0\x01k\0\0\0\x09a", "LLSD goes on beyond the field's end"),
            (b"{\0\0\0\x01k\0\0\0\x01a1i", "no closing bracket"),
            (b"<llsd><map><key>a</key><what/></map></llsd>", "no element of LLSD"),
            (b"<llsd><map><key>a</key><string>a<b/></string></map></llsd>", "an element within"),
        ] {
            let (json, problems) = read(bytes);
            assert!(problems.contains(text), "{json} {problems}");
        }
        let (json, problems) = read(b"{\0\0\0\x02k\0\0\0\x01a1}");
        assert_eq!(json, r#"{"a":true}"#);
        assert!(problems.contains("1 fewer elements than announced"), "{problems}");
    }

    #[test]
    fn nesting_has_a_bound() {
        let deep = [vec![b'['; 500], vec![b']'; 500]].concat();
        let (_, problems) = read(&deep);
        assert!(problems.contains("nested more than 96 deep"), "{problems}");
        // Every map is read twice, and no more.
        let deep = "{'a':!,'a':".repeat(90) + "!" + &"}".repeat(90);
        assert!(read(deep.as_bytes()).1.contains("twice"));
    }

    #[test]
    fn other_bytes_are_shown_as_they_are() {
        for other in [&b"\xe9\x8b\x0d"[..], b"hello", b"i5 and more", b"true story"] {
            let (_, problems) = read(other);
            assert!(problems.contains("no LLSD: shown as bytes"), "{problems}");
        }
    }
}
