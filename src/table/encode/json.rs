//! Reads JSON for encoding: a flat list of values that point into the text.
//!
//! Numbers stay text until it is known what they are for, so that integers of 64 bits and floats
//! lose nothing. Neither depth nor size of the text can exhaust the stack. It knows JSON, and no
//! tables.

use std::borrow::Cow;

/// How deep objects and lists may lie within each other.
const MAX_DEPTH: usize = 1024;

/// How many values there may be, each of which takes 32 bytes.
const MAX_VALUES: usize = 4 << 20;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonKind {
    /// `null`
    Null,
    /// `false`
    False,
    /// `true`
    True,
    /// A number, as it is written.
    Number,
    /// A string.
    Text,
    /// A list.
    List,
    /// An object.
    Object,
}

impl JsonKind {
    /// What messages call it.
    pub fn word(self) -> &'static str {
        match self {
            JsonKind::Null => "null",
            JsonKind::False => "false",
            JsonKind::True => "true",
            JsonKind::Number => "a number",
            JsonKind::Text => "a text",
            JsonKind::List => "a list",
            JsonKind::Object => "an object",
        }
    }
}

/// A part of the text, or of the texts that had escapes.
#[derive(Clone, Copy, Debug, Default)]
struct Piece {
    from: u32,
    length: u32,
    unescaped: bool,
}

#[derive(Clone, Copy, Debug)]
struct JsonNode {
    kind: JsonKind,
    key: Piece,
    text: Piece,
    /// The index behind its last descendant.
    end: u32,
}

/// Why a text is no JSON: the byte at which it goes wrong, and what was expected there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// The offset in the text.
    pub at: usize,
    /// What was expected.
    pub expected: &'static str,
}

impl std::fmt::Display for JsonError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no JSON: byte {}: expected {}", self.at, self.expected)
    }
}

/// A JSON value with all that it contains. Values are known by their index; 0 is the outermost.
#[derive(Debug)]
pub struct Json<'a> {
    source: Cow<'a, str>,
    nodes: Vec<JsonNode>,
    unescaped: String,
}

impl<'a> Json<'a> {
    /// Reads one value, which must be all of the text.
    ///
    /// # Errors
    /// The text is no JSON.
    pub fn parse(source: &'a str) -> Result<Json<'a>, JsonError> {
        let reader = Reader { source, at: 0, nodes: Vec::new(), unescaped: String::new() };
        let (nodes, unescaped) = reader.read()?;
        Ok(Json { source: Cow::Borrowed(source), nodes, unescaped })
    }

    /// The outermost value.
    pub const ROOT: u32 = 0;

    /// What a value is.
    pub fn kind(&self, node: u32) -> JsonKind {
        self.nodes.get(node as usize).map_or(JsonKind::Null, |node| node.kind)
    }

    /// The key of a value in an object.
    pub fn key(&self, node: u32) -> &str {
        self.nodes.get(node as usize).map_or("", |node| self.piece(node.key))
    }

    /// A string's content, or a number as it is written.
    pub fn text(&self, node: u32) -> &str {
        self.nodes.get(node as usize).map_or("", |node| self.piece(node.text))
    }

    /// The index behind a value's last descendant.
    pub fn end(&self, node: u32) -> u32 {
        self.nodes.get(node as usize).map_or(node + 1, |node| node.end)
    }

    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The values of an object or a list.
    pub fn children(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let end = self.end(node);
        let mut next = node + 1;
        std::iter::from_fn(move || {
            let child = (next < end).then_some(next)?;
            next = self.end(child).max(child + 1);
            Some(child)
        })
    }

    /// The value of a key of an object.
    pub fn get(&self, object: u32, key: &str) -> Option<u32> {
        if self.kind(object) != JsonKind::Object {
            return None;
        }
        self.children(object).find(|child| self.key(*child) == key)
    }

    /// The text of a key of an object, if it is a string.
    pub fn text_of(&self, object: u32, key: &str) -> Option<&str> {
        let node = self.get(object, key)?;
        (self.kind(node) == JsonKind::Text).then(|| self.text(node))
    }

    fn piece(&self, piece: Piece) -> &str {
        let of = if piece.unescaped { &self.unescaped } else { &*self.source };
        of.get(piece.from as usize..(piece.from + piece.length) as usize).unwrap_or("")
    }

    /// Where a value stands, as a path such as `fields.rooms[2].name`. Keys of `root` are the
    /// first.
    pub fn path(&self, root: u32, node: u32) -> String {
        let mut path = String::new();
        let mut at = root;
        while at < node && node < self.end(at) {
            let of = at;
            for (place, child) in self.children(of).enumerate() {
                if child <= node && node < self.end(child) {
                    match self.kind(of) {
                        JsonKind::List => path.push_str(&format!("[{place}]")),
                        _ if path.is_empty() => path.push_str(self.key(child)),
                        _ => path.push_str(&format!(".{}", self.key(child))),
                    }
                    at = child;
                    break;
                }
            }
            if at == of {
                break;
            }
        }
        path
    }

    /// The value at a path below a value, as `field` of a problem has it.
    pub fn find(&self, root: u32, path: &str) -> Option<u32> {
        let mut at = root;
        let mut rest = path;
        while !rest.is_empty() {
            if self.kind(at) == JsonKind::List {
                let (number, behind) = rest.strip_prefix('[')?.split_once(']')?;
                at = self.children(at).nth(number.parse().ok()?)?;
                rest = behind.strip_prefix('.').unwrap_or(behind);
                continue;
            }
            // Keys that came from the traffic may have dots and brackets.
            let fits = |key: &str| {
                let behind = rest.strip_prefix(key)?;
                match behind.as_bytes().first() {
                    None | Some(b'[') => Some(behind),
                    Some(b'.') => behind.get(1..),
                    _ => None,
                }
            };
            let (child, behind) =
                self.children(at).find_map(|child| Some((child, fits(self.key(child))?)))?;
            (at, rest) = (child, behind);
        }
        Some(at)
    }
}

struct Reader<'a> {
    source: &'a str,
    at: usize,
    nodes: Vec<JsonNode>,
    unescaped: String,
}

impl Reader<'_> {
    fn read(mut self) -> Result<(Vec<JsonNode>, String), JsonError> {
        if self.source.len() > u32::MAX as usize {
            return Err(JsonError { at: 0, expected: "less than 4 GiB" });
        }
        let mut open: Vec<usize> = Vec::new();
        let mut key = Piece::default();
        loop {
            self.blanks();
            let node = self.nodes.len();
            if node == MAX_VALUES {
                return Err(JsonError { at: self.at, expected: "fewer values" });
            }
            self.nodes.push(JsonNode { kind: JsonKind::Null, key, text: Piece::default(), end: 0 });
            let kind = self.value(node)?;
            let mut empty = false;
            if matches!(kind, JsonKind::Object | JsonKind::List) {
                if open.len() == MAX_DEPTH {
                    return Err(self.error("a value that is nested less deeply"));
                }
                open.push(node);
                self.blanks();
                let close = if kind == JsonKind::Object { b'}' } else { b']' };
                empty = self.peek() == Some(close);
                if !empty && kind == JsonKind::List {
                    key = Piece::default();
                    continue;
                }
            } else {
                self.close(node);
            }
            // Behind a value: a comma, or the ends of what is open.
            let mut begun = matches!(kind, JsonKind::Object) && !empty;
            loop {
                let Some(outer) = open.last().copied() else {
                    self.blanks();
                    return match self.peek() {
                        None => Ok((self.nodes, self.unescaped)),
                        Some(_) => Err(self.error("the end of the text")),
                    };
                };
                let of_object =
                    self.nodes.get(outer).is_some_and(|node| node.kind == JsonKind::Object);
                self.blanks();
                match self.peek() {
                    Some(b'}') if of_object && !begun => self.at += 1,
                    Some(b']') if !of_object && !begun => self.at += 1,
                    Some(b',') if !begun && !empty => {
                        self.at += 1;
                        self.blanks();
                        key = if of_object { self.member()? } else { Piece::default() };
                        break;
                    }
                    Some(b'"') if begun => {
                        key = self.member()?;
                        break;
                    }
                    _ if begun => return Err(self.error("a key in quotes")),
                    _ if of_object => return Err(self.error("`,` or `}`")),
                    _ => return Err(self.error("`,` or `]`")),
                }
                (begun, empty) = (false, false);
                open.pop();
                self.close(outer);
            }
        }
    }

    fn close(&mut self, node: usize) {
        let end = self.nodes.len() as u32;
        if let Some(node) = self.nodes.get_mut(node) {
            node.end = end;
        }
    }

    fn error(&self, expected: &'static str) -> JsonError {
        JsonError { at: self.at, expected }
    }

    fn peek(&self) -> Option<u8> {
        self.source.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    /// A key and its colon.
    fn member(&mut self) -> Result<Piece, JsonError> {
        if self.peek() != Some(b'"') {
            return Err(self.error("a key in quotes"));
        }
        let key = self.string()?;
        self.blanks();
        if self.peek() != Some(b':') {
            return Err(self.error("`:`"));
        }
        self.at += 1;
        Ok(key)
    }

    /// A value up to its opening bracket, if it has one.
    fn value(&mut self, node: usize) -> Result<JsonKind, JsonError> {
        let (kind, text) = match self.peek() {
            Some(b'{') => {
                self.at += 1;
                (JsonKind::Object, Piece::default())
            }
            Some(b'[') => {
                self.at += 1;
                (JsonKind::List, Piece::default())
            }
            Some(b'"') => (JsonKind::Text, self.string()?),
            Some(b'-' | b'0'..=b'9') => (JsonKind::Number, self.number()?),
            Some(b't') => (self.word("true", JsonKind::True)?, Piece::default()),
            Some(b'f') => (self.word("false", JsonKind::False)?, Piece::default()),
            Some(b'n') => (self.word("null", JsonKind::Null)?, Piece::default()),
            _ => return Err(self.error("a value")),
        };
        if let Some(node) = self.nodes.get_mut(node) {
            (node.kind, node.text) = (kind, text);
        }
        Ok(kind)
    }

    fn word(&mut self, word: &'static str, kind: JsonKind) -> Result<JsonKind, JsonError> {
        if !self.source.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return Err(self.error("a value"));
        }
        self.at += word.len();
        Ok(kind)
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return Err(self.error("a digit"));
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Piece, JsonError> {
        let from = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(Piece { from: from as u32, length: (self.at - from) as u32, unescaped: false })
    }

    fn string(&mut self) -> Result<Piece, JsonError> {
        self.at += 1;
        let from = self.at;
        let bytes = self.source.as_bytes();
        let rest = bytes.get(from..).unwrap_or(&[]);
        let Some(plain) = rest.iter().position(|b| *b == b'"' || *b == b'\\' || *b < b' ') else {
            self.at = bytes.len();
            return Err(self.error("the end of a string"));
        };
        self.at = from + plain;
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(Piece { from: from as u32, length: plain as u32, unescaped: false });
        }
        let begins = self.unescaped.len();
        let mut copied = from;
        loop {
            match self.peek() {
                None => return Err(self.error("the end of a string")),
                Some(b'"') => {
                    self.unescaped.push_str(self.source.get(copied..self.at).unwrap_or(""));
                    self.at += 1;
                    break;
                }
                Some(b'\\') => {
                    self.unescaped.push_str(self.source.get(copied..self.at).unwrap_or(""));
                    self.at += 1;
                    let c = self.escape()?;
                    self.unescaped.push(c);
                    copied = self.at;
                }
                Some(0..b' ') => return Err(self.error("a control character as an escape")),
                Some(_) => self.at += 1,
            }
        }
        let length = (self.unescaped.len() - begins) as u32;
        Ok(Piece { from: begins as u32, length, unescaped: true })
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        let byte = self.peek();
        self.at += 1;
        Ok(match byte {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let unit = self.unit()?;
                if (0xd800..0xdc00).contains(&unit) {
                    let behind = self.source.get(self.at..).unwrap_or("");
                    if !behind.starts_with("\\u") {
                        return Err(self.error("the second half of a surrogate pair"));
                    }
                    self.at += 2;
                    let low = self.unit()?;
                    if !(0xdc00..0xe000).contains(&low) {
                        return Err(self.error("the second half of a surrogate pair"));
                    }
                    let c = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                    return char::from_u32(c).ok_or(self.error("a character"));
                }
                char::from_u32(unit).ok_or(self.error("the first half of a surrogate pair"))?
            }
            _ => {
                self.at -= 1;
                return Err(self.error("an escape"));
            }
        })
    }

    fn unit(&mut self) -> Result<u32, JsonError> {
        let digits = self.source.as_bytes().get(self.at..self.at + 4).unwrap_or(&[]);
        let unit = digits
            .iter()
            .try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)?))
            .filter(|_| digits.len() == 4)
            .ok_or(self.error("four hex digits"))?;
        self.at += 4;
        Ok(unit)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn values_are_found_by_key_and_path() {
        let text = r#"{"a": [1, {"b.c": "x\u00e9\ud83d\ude00\n"}, []], "d": {}, "e": -1.5e3, "f": [null, true, false]}"#;
        let json = Json::parse(text).unwrap();
        let node = json.find(0, "a[1].b.c").unwrap();
        assert_eq!((json.text(node), json.path(0, node).as_str()), ("xé😀\n", "a[1].b.c"));
        assert_eq!(json.text(json.get(0, "e").unwrap()), "-1.5e3");
        assert_eq!(json.children(0).count(), 4);
        let kinds: Vec<JsonKind> =
            json.children(json.get(0, "f").unwrap()).map(|node| json.kind(node)).collect();
        assert_eq!(kinds, [JsonKind::Null, JsonKind::True, JsonKind::False]);
        assert_eq!(json.find(0, "a[3]"), None);
        assert_eq!(json.children(json.find(0, "a[2]").unwrap()).count(), 0);
    }

    #[test]
    fn more_values_than_memory_is_for_are_refused() {
        let text = |values: usize| format!("[{}0]", "0,".repeat(values - 2));
        assert!(Json::parse(&text(MAX_VALUES)).is_ok());
        let error = Json::parse(&text(MAX_VALUES + 1)).unwrap_err();
        assert_eq!((error.at, error.expected), (2 * MAX_VALUES - 1, "fewer values"));
    }

    #[test]
    fn what_is_no_json_is_said_with_its_place() {
        for (text, at) in [
            ("", 0),
            ("{", 1),
            ("{\"a\"}", 4),
            ("[1,]", 3),
            ("[1 2]", 3),
            ("{\"a\":1,}", 7),
            ("01", 1),
            ("\"\\x\"", 2),
            ("\"\\ud800\"", 7),
            ("nul", 0),
            ("1 1", 2),
            ("{,}", 1),
            ("[,1]", 1),
            ("[}", 1),
            ("\"a\nb\"", 2),
        ] {
            assert_eq!(Json::parse(text).map(|_| ()).map_err(|e| e.at), Err(at), "{text}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(Json::parse(&deep).map(|_| ()).map_err(|e| e.at), Err(1025));
    }
}
