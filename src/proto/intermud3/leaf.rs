//! Adds nodes for texts, numbers, odd values and the keys of mappings.
//!
//! It knows one value at a time. [`super::value`] knows the containers around it.

use std::hash::BuildHasher;

use super::nodes::node;
use super::number::{self, NumberForm, odd};
use super::text::{self, Quoted, TextPlace};
use super::value::{Inside, PacketRun, Sort};
use crate::captured::Captured;
use crate::table::{ReadAs, ValueRead};
use crate::tree::{Buffer, Kind, Node, Problem, Severity, Sym, TextKind, TypeRef, mark};

/// Larger integers are text in JSON, because jq 1.6 and JavaScript would round them.
const EXACT: u64 = 1 << 53;

/// Up to this many keys of a mapping are compared one by one; more of them by hash.
const FEW_KEYS: u32 = 16;

impl PacketRun<'_> {
    /// A text.
    pub(super) fn text(&mut self, name: Sym, ty: TypeRef) {
        let place = match self.top.inside {
            Inside::Packet => TextPlace::Plain,
            Inside::Keys { .. } if !self.top.value_next => TextPlace::Key,
            _ => TextPlace::Value,
        };
        let found = self.quoted(place);
        let (value, kind) = self.content(&found);
        let marks = self.marks(ty);
        let ty = self.text_type(ty);
        let mut leaf = node(name, ty, Kind::Text(kind), self.claimed, found.next);
        leaf.value = value;
        leaf.marks = marks;
        if found.bare.is_some() {
            leaf.marks |= mark::GUESS;
        }
        let index = self.tree.leaf(leaf);
        self.pos = found.next;
        self.complete(index, index);
    }

    /// The text whose opening quote is here. Adds a problem if it is malformed.
    fn quoted(&mut self, place: TextPlace) -> Quoted {
        let start = self.pos + 1;
        let found = text::quoted(self.bytes, start, self.end, place, &mut self.unclosed);
        if let Some(bare) = found.bare {
            let index = self.tree.len();
            self.tree.problem(Problem::new(
                Severity::Warning,
                index,
                "a quote that is not escaped, at byte {a}: the text is taken unchanged up to byte \
                 {b}",
                bare as i64,
                found.end as i64,
            ));
        }
        if !found.closed {
            self.say_here(Severity::Error, "the text that begins at byte {a} has no closing quote");
        }
        found
    }

    /// A text's content for its node: a place in the captured bytes, or in the tree if escapes were
    /// resolved.
    fn content(&mut self, found: &Quoted) -> (u64, TextKind) {
        let bytes = self.bytes.get(found.start..found.end).unwrap_or(&[]);
        let ascii = bytes.is_ascii();
        if bytes.iter().fold(false, |odd, b| odd | (*b < b' ') | (*b == 0x7f)) {
            self.control(bytes, found.start);
        }
        if !found.escapes {
            let kind = if ascii || std::str::from_utf8(bytes).is_ok() {
                TextKind::Utf8
            } else {
                self.latin1(found);
                TextKind::Latin1
            };
            return (Node::place(found.start, bytes.len()), kind);
        }
        if let Some(at) = text::unescape(bytes, &mut self.keep.bytes) {
            self.say(
                Severity::Note,
                self.tree.len(),
                "unknown escape at byte {a}: read as the character itself",
                found.start + at,
            );
        }
        let place = match std::str::from_utf8(&self.keep.bytes) {
            Ok(text) => self.tree.own_text(text),
            Err(_) => {
                self.keep.text.clear();
                self.keep.text.extend(self.keep.bytes.iter().map(|b| char::from(*b)));
                let place = self.tree.own_text(&self.keep.text);
                self.latin1(found);
                place
            }
        };
        (place, TextKind::Owned)
    }

    fn latin1(&mut self, found: &Quoted) {
        let mut problem = Problem::new(
            Severity::Note,
            self.tree.len(),
            "text in ISO-8859-1, not UTF-8, at byte {a}",
            found.start as i64,
            0,
        );
        let len = found.end.saturating_sub(found.start) as u32;
        problem.bytes = Some((Buffer::CAPTURED, found.start as u32, len));
        self.tree.problem(problem);
    }

    #[cold]
    fn control(&mut self, bytes: &[u8], start: usize) {
        let index = self.tree.len();
        if let Some(at) = bytes.iter().position(|b| *b == 0) {
            self.say(
                Severity::Warning,
                index,
                "a NUL inside a text, at byte {a}: FluffOS reads no further",
                start + at,
            );
        }
        let bare_cr = |at: &usize| *at == 0 || bytes.get(at - 1) != Some(&b'\\');
        if let Some(at) = bytes.iter().position(|b| *b == b'\r').filter(bare_cr) {
            self.say(
                Severity::Note,
                index,
                "a carriage return in a text, at byte {a}: FluffOS writes a newline so",
                start + at,
            );
        }
        let other = |b: &u8| matches!(*b, 1..=0x0c | 0x0e..=0x1f | 0x7f);
        if let Some(at) = bytes.iter().position(other) {
            self.say(
                Severity::Note,
                index,
                "a control character in a text, at byte {a}",
                start + at,
            );
        }
    }

    /// A number.
    pub(super) fn number(&mut self, name: Sym, ty: TypeRef) {
        let found = number::scan(self.bytes, self.pos, self.end);
        if found.form == NumberForm::Bad {
            return self.garbage();
        }
        if found.odd != 0 {
            for (_, text) in odd::TEXTS.iter().filter(|t| found.odd & t.0 != 0) {
                self.say_here(Severity::Note, text);
            }
        }
        let bytes = self.bytes.get(self.pos..found.end).unwrap_or(&[]);
        let (value, kind) = match found.form {
            NumberForm::Float => self.float(bytes),
            _ => self.integer(bytes),
        };
        let integer =
            matches!(kind, Kind::Unsigned | Kind::Signed | Kind::Unsigned64 | Kind::Signed64);
        let own = if found.form == NumberForm::Float { self.types.float } else { self.types.int };
        let marks = self.marks(ty);
        let fits = ty == self.types.any || self.check_number(ty, found.form, bytes, value, kind);
        let named = self.tables.symbols(ty).is_some();
        let own = if integer && value != 0 { self.marked_or(ty, own) } else { own };
        let ty = if ty == self.types.any || !fits || named && !integer { own } else { ty };
        let mut leaf = node(name, ty, kind, self.claimed, found.end);
        leaf.value = value;
        leaf.marks = marks;
        let index = self.tree.leaf(leaf);
        self.pos = found.end;
        self.complete(index, index);
    }

    fn float(&mut self, bytes: &[u8]) -> (u64, Kind) {
        let text = std::str::from_utf8(bytes).unwrap_or("0");
        let value: f64 = text.parse().unwrap_or(f64::NAN);
        if value.is_infinite() {
            self.say_here(Severity::Note, "a float beyond what 64 bits hold, at byte {a}");
        }
        (value.to_bits(), Kind::F64)
    }

    /// The smallest kind that an integer fits. An integer beyond 64 bits stays text, without
    /// leading zeros.
    fn integer(&mut self, bytes: &[u8]) -> (u64, Kind) {
        let negative = bytes.first() == Some(&b'-');
        let signed = usize::from(matches!(bytes.first(), Some(b'-' | b'+')));
        let digits = bytes.get(signed..).unwrap_or(&[]);
        let zeros =
            digits.iter().take(digits.len().saturating_sub(1)).take_while(|d| **d == b'0').count();
        let significant = digits.get(zeros..).unwrap_or(&[]);
        match number::magnitude(significant) {
            Some(n) if n <= EXACT && negative => ((n as i64).wrapping_neg() as u64, Kind::Signed),
            Some(n) if n <= EXACT => (n, Kind::Unsigned),
            Some(n) if !negative => (n, Kind::Unsigned64),
            Some(n) if n <= 1 << 63 => ((n as i64).wrapping_neg() as u64, Kind::Signed64),
            _ => {
                self.say_here(Severity::Note, "an integer of more than 64 bits, at byte {a}");
                if zeros == 0 && signed == usize::from(negative) {
                    let place = Node::place(self.pos, bytes.len());
                    return (place, Kind::Text(TextKind::Utf8));
                }
                self.keep.text.clear();
                self.keep.text.push_str(if negative { "-" } else { "" });
                self.keep.text.extend(significant.iter().map(|d| char::from(*d)));
                let place = self.tree.own_text(&self.keep.text);
                (place, Kind::Text(TextKind::Owned))
            }
        }
    }

    /// Whether a number is what the tables expect. 0 means an absent value of any type and gets no
    /// note.
    fn check_number(
        &mut self,
        ty: TypeRef,
        form: NumberForm,
        bytes: &[u8],
        value: u64,
        kind: Kind,
    ) -> bool {
        let tables = self.tables;
        let Some(def) = tables.type_def(ty) else { return false };
        let fits = match (&def.read, form) {
            (ReadAs::Value(ValueRead::Any | ValueRead::Float), _) => true,
            (ReadAs::Value(ValueRead::Int), NumberForm::Int) => true,
            (ReadAs::Value(ValueRead::Uint), NumberForm::Int) => {
                if bytes.first() == Some(&b'-') && value != 0 {
                    self.say_here(
                        Severity::Note,
                        "a negative number at byte {a}, where 0 or more is expected",
                    );
                }
                true
            }
            (_, NumberForm::Int) if value == 0 && matches!(kind, Kind::Unsigned | Kind::Signed) => {
                false
            }
            (read, form) => {
                self.expect(
                    Some(read),
                    if form == NumberForm::Float { "a float" } else { "a number" },
                );
                false
            }
        };
        if let (Some(max), Kind::Unsigned) = (def.max, kind)
            && value > max
        {
            let index = self.tree.len();
            let text = "{a}, where the documents say {b} at most";
            self.tree.problem(Problem::new(Severity::Note, index, text, value as i64, max as i64));
        }
        fits
    }

    /// A reference to an object, as drivers of another family write it: text up to its bracket.
    pub(super) fn object(&mut self, name: Sym, ty: TypeRef) {
        let rest = self.bytes.get(self.pos..self.end).unwrap_or(&[]);
        let Some(len) = memchr::memchr(b'>', rest) else {
            return self.garbage();
        };
        self.say_here(
            Severity::Warning,
            "a reference to an object at byte {a}, which has no place on this network",
        );
        let found = Quoted {
            start: self.pos,
            end: self.pos + len + 1,
            next: self.pos + len + 1,
            escapes: false,
            closed: true,
            bare: None,
        };
        let (value, kind) = self.content(&found);
        let marks = self.marks(ty);
        let kind = Kind::Text(kind);
        let mut leaf = node(name, self.types.object, kind, self.claimed, found.next);
        leaf.value = value;
        leaf.marks = marks;
        let index = self.tree.leaf(leaf);
        self.pos = found.next;
        self.complete(index, index);
    }

    /// A mapping's key: it names the value's node or, if the mapping is shown as pairs, has a node
    /// of its own.
    pub(super) fn key(&mut self, byte: u8) {
        if self.top.pairs {
            if self.top.pair.is_none() {
                let at = self.claimed;
                let pair = node(Sym::ELEMENT, self.types.pair, Kind::List, at, at);
                self.top.pair = Some(self.tree.leaf(pair));
            }
            return match byte {
                b':' => self.empty(),
                _ => self.value(byte),
            };
        }
        if byte != b'"' {
            let numbered = byte == b'<' && self.value_number().is_some();
            let value = byte == b':' || byte == b'(' || numbered || text::begins_value(byte);
            return if value { self.read_as_pairs() } else { self.set_aside() };
        }
        let found = self.quoted(TextPlace::Key);
        let (value, kind) = self.content(&found);
        let name = self.take_name(value, kind);
        if self.known_key(name) {
            return self.read_as_pairs();
        }
        self.top.key = name;
        self.keep.text.clear();
        if let Some(text) = self.tree.dynamic(name) {
            self.keep.text.push_str(text.raw());
        }
        let key = std::mem::take(&mut self.keep.text);
        self.top.key_type = self.key_type(&key);
        self.keep.text = key;
        self.top.value_next = true;
        self.pos = found.next;
        self.colon();
    }

    /// A key's text as a name of the tree's own.
    fn take_name(&mut self, value: u64, kind: TextKind) -> Sym {
        let mut text = std::mem::take(&mut self.keep.text);
        text.clear();
        if kind == TextKind::Owned {
            text.push_str(self.tree.owned(value).raw());
        } else {
            let start = (value >> 32) as usize;
            let len = (value & 0xffff_ffff) as usize;
            let bytes = self.bytes.get(start..start + len).unwrap_or(&[]);
            crate::tree::decode_text(kind, bytes, &mut text);
        }
        let name = self.tree.dynamic_name(&text);
        self.keep.text = text;
        name
    }

    /// The type of the value whose key is a node of its own.
    pub(super) fn pair_type(&mut self, key: u32) -> TypeRef {
        let Some(Node { kind: Kind::Text(kind), value, .. }) = self.tree.get(key).copied() else {
            return self.key_type("");
        };
        let name = self.take_name(value, kind);
        self.key_type(self.tree.dynamic(name).map_or("", Captured::raw))
    }

    /// The type of the value at a key.
    fn key_type(&self, key: &str) -> TypeRef {
        let Inside::Keys { of, keys } = self.top.inside else {
            return self.types.any;
        };
        keys.and_then(|k| self.tables.key(k, key)).or(of).unwrap_or(self.types.any)
    }

    /// Whether the mapping has this key already.
    fn known_key(&mut self, name: Sym) -> bool {
        let hash = |run: &Self, key: Sym| {
            run.keep.hasher.hash_one((run.top.number, run.tree.dynamic(key)))
        };
        if self.top.count >= FEW_KEYS {
            if self.top.count == FEW_KEYS {
                let mut seen = std::mem::take(&mut self.keep.seen);
                seen.extend(self.keys().map(|key| hash(self, key)));
                self.keep.seen = seen;
            }
            let hash = hash(self, name);
            if self.keep.seen.insert(hash) {
                return false;
            }
        }
        let key = self.tree.dynamic(name);
        self.keys().any(|other| self.tree.dynamic(other) == key)
    }

    fn keys(&self) -> impl Iterator<Item = Sym> + '_ {
        self.elements().map(|node| node.name)
    }

    /// The elements of the open container. Its node has no end yet, so its children run to the end
    /// of the tree.
    pub(super) fn elements(&self) -> impl Iterator<Item = &Node> + '_ {
        let mut next = self.top.node + 1;
        std::iter::from_fn(move || {
            let node = self.tree.get(next)?;
            next = node.end.max(next + 1);
            Some(node)
        })
        .filter(|node| !node.has(mark::SPAN))
    }

    /// The marks a type asks for.
    pub(super) fn marks(&self, ty: TypeRef) -> u8 {
        self.tables.type_def(ty).map_or(0, |d| d.marks)
    }

    /// The type of a text's node: the one in the tables or, if they expect something else, plain
    /// text.
    fn text_type(&mut self, ty: TypeRef) -> TypeRef {
        let tables = self.tables;
        match tables.type_def(ty).map(|d| &d.read) {
            Some(ReadAs::Value(ValueRead::Text)) => ty,
            Some(read) => {
                self.expect(Some(read), "a text");
                self.marked_or(ty, self.types.text)
            }
            None => self.types.text,
        }
    }

    /// The type of a value of which tables expect another kind: theirs if they mark the value as
    /// personal data or as volatile, which holds for any kind; else the plain type of its own kind.
    pub(super) fn marked_or(&self, ty: TypeRef, plain: TypeRef) -> TypeRef {
        let facts = self.tables.type_def(ty).and_then(|def| def.facts.as_deref());
        if facts.is_some_and(|facts| facts.person.is_some() || facts.volatile) { ty } else { plain }
    }

    /// Whether the value is in no container, for errors.
    pub(super) fn outside(&self) -> bool {
        self.top.sort == Sort::Outside
    }
}
