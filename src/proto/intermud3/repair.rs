//! Handles text that deviates from the grammar: adds a problem in its place, and reads on as far as
//! possible.
//!
//! Separators and closing brackets are here too, since most deviations show there.

use super::nodes::node;
use super::text::begins_value;
use super::value::{Inside, PacketRun, Sort};
use crate::table::{LayoutId, ReadAs, ValueRead};
use crate::tree::{Kind, Node, Problem, Severity, Sym, mark};

impl PacketRun<'_> {
    /// The byte at the current position.
    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.peek_at(0)
    }

    /// The byte at a distance from the current position.
    #[inline]
    pub(super) fn peek_at(&self, ahead: usize) -> Option<u8> {
        let at = self.pos + ahead;
        if at < self.end { self.bytes.get(at).copied() } else { None }
    }

    /// Adds a problem to the node that comes next.
    pub(super) fn say_here(&mut self, severity: Severity, text: &'static str) {
        self.say(severity, self.tree.len(), text, self.pos);
    }

    /// Adds a problem to a node, at a byte of the packet.
    pub(super) fn say(&mut self, severity: Severity, node: u32, text: &'static str, at: usize) {
        if !self.silent {
            self.tree.problem(Problem::new(severity, node, text, at as i64, 0));
        }
    }

    /// Skips blanks, which the document allows only inside texts.
    pub(super) fn blanks(&mut self) {
        let from = self.pos;
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.pos += 1;
        }
        if self.pos > from && !self.blanks_noted {
            self.blanks_noted = true;
            let node = self.top.node;
            self.say(Severity::Note, node, "blanks between values, first at byte {a}", from);
        }
    }

    /// The comma behind an element.
    #[inline]
    pub(super) fn comma(&mut self) {
        if self.bytes.get(self.pos) == Some(&b',') && self.pos < self.end {
            self.pos += 1;
            return;
        }
        self.no_comma();
    }

    fn no_comma(&mut self) {
        self.blanks();
        let last = self.tree.len().saturating_sub(1);
        match self.peek() {
            Some(b',') => self.pos += 1,
            None => {}
            Some(b'}' | b']') => self.say(
                Severity::Note,
                self.top.node,
                "no comma before the closing bracket at byte {a}",
                self.pos,
            ),
            Some(b'/') if self.peek_at(1) == Some(b')') => self.say(
                Severity::Note,
                self.top.node,
                "no comma before the closing bracket at byte {a}",
                self.pos,
            ),
            Some(b':') => {
                self.say(
                    Severity::Error,
                    last,
                    "a colon where a comma belongs, at byte {a}",
                    self.pos,
                );
                self.pos += 1;
            }
            Some(byte) if begins_value(byte) => self.say(
                Severity::Error,
                last,
                "no comma between two values, at byte {a}",
                self.pos,
            ),
            Some(_) => self.stray = true,
        }
    }

    /// The colon behind a key.
    pub(super) fn colon(&mut self) {
        self.blanks();
        match self.peek() {
            Some(b':') => self.pos += 1,
            Some(b',' | b'}' | b']') | None => {
                self.say_here(Severity::Error, "a key without a value, before byte {a}")
            }
            _ => self.say_here(Severity::Error, "no colon between key and value, at byte {a}"),
        }
    }

    /// A colon without a key before it.
    pub(super) fn stray_colon(&mut self) {
        self.say_here(Severity::Error, "a colon without a key, at byte {a}");
        self.pos += 1;
    }

    /// A comma with nothing before it.
    pub(super) fn nothing(&mut self) {
        let rest = self.bytes.get(self.pos + 1..self.end).unwrap_or(&[]);
        let closes = matches!(rest.trim_ascii_start().first(), Some(b'}' | b']'))
            || rest.trim_ascii_start().starts_with(b"/)");
        if self.top.count == 0 && closes && !self.top.value_next {
            self.say(
                Severity::Note,
                self.top.node,
                "a lone comma in an empty container, at byte {a}",
                self.pos,
            );
            self.pos += 1;
        } else if self.top.sort == Sort::Mapping && !self.top.value_next {
            self.say(
                Severity::Error,
                self.top.node,
                "a comma where a key belongs, at byte {a}",
                self.pos,
            );
            self.pos += 1;
        } else {
            self.empty();
        }
    }

    /// An empty slot: FluffOS writes objects and functions so.
    pub(super) fn empty(&mut self) {
        self.say_here(
            Severity::Note,
            "an empty slot at byte {a}: FluffOS writes an object or a function so",
        );
        let (name, ty) = self.slot();
        let ty = if self.tables.symbols(ty).is_some() { self.types.any } else { ty };
        let mut leaf = node(name, ty, Kind::Null, self.claimed, self.pos);
        leaf.marks = self.marks(ty);
        let index = self.tree.leaf(leaf);
        self.complete(index, index);
    }

    /// A closing bracket.
    pub(super) fn close(&mut self, byte: u8) {
        let sort = match byte {
            b'}' => Sort::Array,
            b']' => Sort::Mapping,
            _ => Sort::Class,
        };
        if sort != self.top.sort {
            if self.keep.stack.iter().any(|f| f.sort == sort) {
                self.say(Severity::Error, self.top.node, "not closed before byte {a}", self.pos);
                return self.finish();
            }
            self.say(
                Severity::Error,
                self.top.node,
                "closed by the bracket of another kind, at byte {a}",
                self.pos,
            );
        }
        self.pos += 1;
        match self.peek() {
            Some(b')') => self.pos += 1,
            _ => self.say(
                Severity::Error,
                self.top.node,
                "no `)` behind the bracket, at byte {a}",
                self.pos,
            ),
        }
        self.finish();
    }

    /// The outermost container is complete.
    fn finish(&mut self) {
        if self.top.value_next {
            let (name, ty) = self.slot();
            let leaf = node(name, ty, Kind::Null, self.claimed, self.claimed);
            self.tree.leaf(leaf);
            self.top.count += 1;
        }
        if let Some(pair) = self.top.pair.take() {
            self.tree.close(pair, self.claimed * 8);
        }
        if self.read_by_count() {
            return;
        }
        self.check_count();
        let last = if self.pos > self.claimed {
            self.syntax(self.types.close_name, self.claimed)
        } else {
            u32::MAX
        };
        let index = self.top.node;
        if let Some(frame) = self.keep.stack.pop() {
            self.top = frame;
        }
        self.complete(index, last);
    }

    /// Adds a note if an array has more or fewer elements than its positions.
    fn check_count(&mut self) {
        let Inside::Positions(layout) = self.top.inside else {
            return;
        };
        let Some(positions) = self.tables.layout(layout).and_then(|l| l.positions) else {
            return;
        };
        let count = self.top.count;
        let expected = if count < u32::from(positions.required) {
            positions.required
        } else if count > u32::from(positions.count) {
            positions.count
        } else {
            return;
        };
        self.tree.problem(Problem::new(
            Severity::Note,
            self.top.node,
            "{a} elements, where {b} are expected",
            i64::from(count),
            i64::from(expected),
        ));
    }

    /// The text ended inside brackets.
    pub(super) fn unclosed(&mut self) {
        let node = self.tree.len().saturating_sub(1);
        self.say(
            Severity::Error,
            node,
            "the text ends at byte {a}, before its brackets are closed",
            self.pos,
        );
        self.silent = true;
        while !self.outside() {
            self.finish();
        }
        self.top.count = self.top.count.max(1);
    }

    /// Brackets are nested deeper than the bound: shows the rest as plain bytes.
    pub(super) fn too_deep(&mut self) {
        let index = self.tree.len();
        self.tree.problem(Problem::new(
            Severity::Error,
            index,
            "brackets within brackets, more than {a} deep, from byte {b} on: no further",
            i64::from(super::value::MAX_DEPTH),
            self.pos as i64,
        ));
        self.rest_undecoded();
    }

    /// The packet has more values than the bound: shows the rest as plain bytes.
    #[cold]
    pub(super) fn too_many(&mut self) {
        let most = i64::from(super::value::MAX_NODES);
        let index = self.tree.len();
        let text = "more than {a} values in one packet: undecoded from byte {b} on";
        self.tree.problem(Problem::new(Severity::Error, index, text, most, self.pos as i64));
        self.rest_undecoded();
    }

    fn rest_undecoded(&mut self) {
        self.pos = self.end;
        let index = self.undecoded();
        // The bytes may hold a secret.
        if let Some(node) = self.tree.get_mut(index) {
            node.marks |= mark::SECRET;
        }
        self.claimed = self.pos;
        self.silent = true;
        while !self.outside() {
            self.finish();
        }
        self.top.count = self.top.count.max(1);
    }

    /// Invalid bytes in the place of a value, up to the possible start of the next one.
    pub(super) fn garbage(&mut self) {
        let index = self.no_value();
        self.complete(index, index);
    }

    /// Invalid bytes where no value belongs.
    pub(super) fn set_aside(&mut self) {
        let index = self.no_value();
        self.comma();
        self.grow(index);
        self.claimed = self.pos;
    }

    fn no_value(&mut self) -> u32 {
        self.say_here(Severity::Error, "no value can be read at byte {a}");
        // A value at a secret's place is a secret, whatever it looks like.
        let (_, ty) = self.slot();
        let marks = self.marks(ty);
        self.pos = self.garbage_end(self.pos + 1);
        let index = self.undecoded();
        if let Some(node) = self.tree.get_mut(index) {
            node.marks |= marks & mark::SECRET;
        }
        index
    }

    fn undecoded(&mut self) -> u32 {
        let ty = self.tables.undecoded_type();
        let mut leaf = node(Sym::UNDECODED, ty, Kind::Undecoded, self.claimed, self.pos);
        leaf.value = Node::place(self.claimed, self.pos - self.claimed);
        self.tree.leaf(leaf)
    }

    fn garbage_end(&self, mut at: usize) -> usize {
        if self.outside() {
            return self.end;
        }
        while let Some(found) =
            self.bytes.get(at..self.end).and_then(|rest| memchr::memchr3(b',', b'}', b']', rest))
        {
            let here = at + found;
            let next = self.bytes.get(here + 1).filter(|_| here + 1 < self.end);
            if self.bytes.get(here) == Some(&b',') || matches!(next, None | Some(b')')) {
                return here;
            }
            at = here + 1;
        }
        self.end
    }

    /// The bytes behind the value, and the NUL. If the value is a packet and another one begins
    /// behind it, that one is left to be read by itself.
    pub(super) fn behind(&mut self, packet: bool) {
        let from = self.pos;
        let noted = std::mem::replace(&mut self.blanks_noted, true);
        self.blanks();
        if self.pos > from && !noted {
            self.say(
                Severity::Note,
                self.top.node,
                "blanks behind the value, from byte {a} on",
                from,
            );
        }
        let mut end = self.bytes.len();
        if packet && self.begins_packet() {
            end = self.pos;
            let text = "another packet begins at byte {a}, behind the same length";
            self.tree.problem(Problem::new(Severity::Note, 0, text, end as i64, 0));
        } else if self.pos < self.end {
            let rest = self.end - self.pos;
            let index = self.tree.len();
            self.tree.problem(Problem::new(
                Severity::Warning,
                index,
                "{a bytes} behind the value, from byte {b} on",
                rest as i64,
                self.pos as i64,
            ));
            self.pos = self.end;
            self.undecoded();
            self.claimed = self.pos;
        }
        self.pos = end;
        if self.claimed < end {
            let name = self.types.end_name;
            let from = self.claimed;
            let index = self.syntax(name, from);
            if let Some(n) = self.tree.get_mut(index) {
                n.kind = Kind::Bytes;
            }
        }
    }

    /// Reads the mapping at the top again, as a list of pairs.
    pub(super) fn read_as_pairs(&mut self) {
        let at = self.top.began as u32;
        if let Err(place) = self.keep.pairs_at.binary_search(&at) {
            self.keep.pairs_at.insert(place, at);
        }
        self.back_to_bracket();
    }

    /// Goes back to the bracket that opens the container at the top, and forgets the container.
    fn back_to_bracket(&mut self) {
        let frame = self.top;
        self.again += self.pos - frame.began;
        self.tree.back_to(frame.before);
        self.forget_numbers();
        self.pos = frame.began;
        self.claimed = frame.claimed;
        if let Some(outer) = self.keep.stack.pop() {
            self.top = outer;
        }
    }

    /// The positions of the array whose bracket is at `at`, if its number of elements has its own.
    pub(super) fn form(&self, at: usize) -> Option<LayoutId> {
        let forms = &self.keep.forms;
        let place = forms.binary_search_by_key(&at, |(bracket, _)| *bracket as usize).ok()?;
        forms.get(place).map(|(_, form)| *form)
    }

    /// If the array at the top has a number of elements for which the tables have positions of
    /// their own: reads it again, with these.
    fn read_by_count(&mut self) -> bool {
        use std::fmt::Write;
        let Inside::Positions(layout) = self.top.inside else { return false };
        let tables = self.tables;
        let Some((layout, positions)) = tables.layout(layout).and_then(|l| Some((l, l.positions?)))
        else {
            return false;
        };
        let count = self.top.count;
        let fits = (u32::from(positions.required)..=u32::from(positions.count)).contains(&count);
        if fits || self.silent || self.again > self.bytes.len() * 4 + 65_536 {
            return false;
        }
        self.keep.text.clear();
        let _ = write!(self.keep.text, "{} of {count}", tables.name(layout.name));
        let named = |name: &str| match tables
            .type_named(name)
            .and_then(|ty| tables.type_def(ty))
            .map(|def| &def.read)
        {
            Some(ReadAs::Layout { layout, .. }) => Some(*layout),
            _ => None,
        };
        let Some(mut form) = named(&self.keep.text) else { return false };
        if !self.suits(form) {
            self.keep.text.push_str(" otherwise");
            form = named(&self.keep.text).unwrap_or(form);
        }
        let frame = self.top;
        let forms = &mut self.keep.forms;
        if let Err(place) =
            forms.binary_search_by_key(&(frame.began as u32), |(bracket, _)| *bracket)
        {
            forms.insert(place, (frame.began as u32, form));
        }
        self.back_to_bracket();
        if frame.node == 0 {
            self.open_root(0);
        }
        true
    }

    /// Whether no element of the array at the top is a text where these positions have a number.
    fn suits(&self, form: LayoutId) -> bool {
        let tables = self.tables;
        let Some(layout) = tables.layout(form) else { return false };
        self.elements().zip(0..).all(|(element, place)| {
            let wanted = tables
                .position(layout, place)
                .and_then(|(_, ty)| tables.type_def(ty))
                .map(|def| &def.read);
            let number = matches!(wanted, Some(ReadAs::Value(ValueRead::Int | ValueRead::Uint)));
            !(number && matches!(element.kind, Kind::Text(_)))
        })
    }

    /// Whether the mapping that begins here is shown as a list of pairs: a key is not a text or
    /// occurs twice, or too many bytes were read again already.
    pub(super) fn as_pairs(&self) -> bool {
        if self.again > self.bytes.len() * 4 + 65_536 {
            return true;
        }
        if self.width(2).is_some() {
            return false;
        }
        let inner = self.bytes.get(self.pos + 2..self.end).unwrap_or(&[]);
        let first = inner.trim_ascii_start().first();
        first.is_some_and(|b| *b != b'"' && (*b == b':' || *b == b'(' || begins_value(*b)))
            || self.keep.pairs_at.binary_search(&(self.pos as u32)).is_ok()
    }

    /// Adds a note if a value has another type than the tables say.
    pub(super) fn expect(&mut self, read: Option<&ReadAs>, found: &'static str) {
        let expected = match read {
            Some(ReadAs::Value(ValueRead::Int | ValueRead::Uint)) => 0,
            Some(ReadAs::Value(ValueRead::Float)) => 1,
            Some(ReadAs::Value(ValueRead::Text)) => 2,
            Some(
                ReadAs::Value(ValueRead::Array | ValueRead::Packet)
                | ReadAs::Layout { .. }
                | ReadAs::List { .. },
            ) => 3,
            Some(ReadAs::Value(ValueRead::Mapping { .. })) => 4,
            _ => return,
        };
        let texts = match found {
            "a text" => TEXT_FOUND,
            "a float" => FLOAT_FOUND,
            "a number" => NUMBER_FOUND,
            "an array" => ARRAY_FOUND,
            _ => MAPPING_FOUND,
        };
        match texts.get(expected) {
            Some(text) if !text.is_empty() => self.say_here(Severity::Note, text),
            _ => {}
        }
    }
}

const TEXT_FOUND: [&str; 5] = [
    "a text at byte {a}, where a number is expected",
    "a text at byte {a}, where a float is expected",
    "",
    "a text at byte {a}, where an array is expected",
    "a text at byte {a}, where a mapping is expected",
];
const FLOAT_FOUND: [&str; 5] = [
    "a float at byte {a}, where an integer is expected",
    "",
    "a float at byte {a}, where a text is expected",
    "a float at byte {a}, where an array is expected",
    "a float at byte {a}, where a mapping is expected",
];
const NUMBER_FOUND: [&str; 5] = [
    "",
    "an integer at byte {a}, where a float is expected",
    "a number at byte {a}, where a text is expected",
    "a number at byte {a}, where an array is expected",
    "a number at byte {a}, where a mapping is expected",
];
const ARRAY_FOUND: [&str; 5] = [
    "an array at byte {a}, where a number is expected",
    "an array at byte {a}, where a float is expected",
    "an array at byte {a}, where a text is expected",
    "",
    "an array at byte {a}, where a mapping is expected",
];
const MAPPING_FOUND: [&str; 5] = [
    "a mapping at byte {a}, where a number is expected",
    "a mapping at byte {a}, where a float is expected",
    "a mapping at byte {a}, where a text is expected",
    "a mapping at byte {a}, where an array is expected",
    "",
];
