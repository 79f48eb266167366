//! Mudmode text into the tree: arrays, mappings, classes and their contents, in one pass and
//! without recursion.
//!
//! It knows the grammar, how drivers deviate from it, and the names that tables give to positions.
//! It knows neither connections nor routers. Every element's span includes the comma behind it, and
//! every container has its brackets as spans, so that spans cover the packet without overlap.
//!
//! Grammar: "Mudmode transport protocol specification" (Way of the Force); the variants:
//! docs/intermud3.md.

use std::collections::HashSet;
use std::hash::RandomState;

use super::nodes::node;
use super::text::UnclosedQuotes;
use crate::table::{LayoutId, MessageId, ReadAs, Tables, ValueRead, ValueTypes};
use crate::tree::{Checkpoint, Kind, Problem, Severity, Sym, TextKind, Tree, TypeRef, mark};

/// Brackets within brackets are read to this depth. jq 1.6 reads JSON to a depth of 256, which
/// includes the record around them.
pub(super) const MAX_DEPTH: u16 = 250;

/// The most values and brackets read from a packet: the same bound as for a message that a table
/// describes.
pub(super) const MAX_NODES: u32 = 200_000;

/// Buffers that are kept from packet to packet, so that nothing is allocated again.
#[derive(Default)]
pub(super) struct ValueBuffers {
    pub(super) stack: Vec<OpenValue>,
    pub(super) bytes: Vec<u8>,
    pub(super) text: String,
    pub(super) pairs_at: Vec<u32>,
    /// Arrays that are read again, by the place of their bracket: their number of elements has
    /// positions of its own.
    pub(super) forms: Vec<(u32, LayoutId)>,
    /// The nodes of the values that have numbers, in the order of these.
    pub(super) numbered: Vec<u32>,
    /// Where the containers around a node end, while the nodes of a value are counted.
    pub(super) ends: Vec<u32>,
    /// The same with the copies of these containers, while a value is repeated.
    pub(super) open: Vec<(u32, u32)>,
    pub(super) seen: HashSet<u64>,
    /// What the search for closing quotes found, for the packet that follows behind the same
    /// length.
    unclosed: UnclosedQuotes,
    pub(super) hasher: RandomState,
}

/// The most memory that a connection keeps in its buffers, in bytes: there may be very many
/// connections, and few have large packets.
const KEPT: usize = 4096;

impl ValueBuffers {
    /// Gives back the memory of a large packet.
    pub(super) fn shrink(&mut self) {
        let kept = self.stack.capacity() * size_of::<OpenValue>()
            + self.bytes.capacity()
            + self.text.capacity()
            + (self.pairs_at.capacity() + self.numbered.capacity() + self.ends.capacity()) * 4
            + self.forms.capacity() * size_of::<(u32, LayoutId)>()
            + self.open.capacity() * 8
            + self.seen.capacity() * 9;
        if kept > KEPT {
            *self = ValueBuffers { hasher: self.hasher.clone(), ..ValueBuffers::default() };
        }
    }
}

/// The result of reading a packet's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FoundPacket {
    /// An array that begins with a text: the node of this text.
    pub(super) packet: Option<u32>,
    /// The message of that name, if the tables know it.
    pub(super) message: Option<MessageId>,
    /// Whether the last byte was a NUL.
    pub(super) nul: bool,
    /// Where the packet ends: before the last byte only if another packet follows that has no
    /// length of its own.
    pub(super) end: usize,
}

/// What a container is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// Not in any container yet.
    Outside,
    Array,
    Mapping,
    Class,
}

/// What the tables say of a container's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inside {
    Any,
    Elements(TypeRef),
    Positions(LayoutId),
    /// The positions of a message that only the first element names.
    Packet,
    /// The positions of a packet whose type no table knows.
    UnknownPacket,
    /// The same, in another packet; its second element is no number, so that it has no header.
    NamelessPacket,
    Keys {
        of: Option<TypeRef>,
        keys: Option<LayoutId>,
    },
}

/// A container that is open.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenValue {
    pub(super) node: u32,
    pub(super) sort: Sort,
    pub(super) inside: Inside,
    /// Elements or pairs so far.
    pub(super) count: u32,
    pub(super) level: u16,
    /// Whether it is a mapping shown as a list of pairs: its keys are not all text, or not all
    /// different.
    pub(super) pairs: bool,
    /// The open pair, if there is one.
    pub(super) pair: Option<u32>,
    /// Whether a mapping's key was read and its value comes next.
    pub(super) value_next: bool,
    pub(super) key: Sym,
    pub(super) key_type: TypeRef,
    /// The state of the tree before the container, and the offset of its start: for reading it
    /// again as pairs.
    pub(super) before: Checkpoint,
    pub(super) began: usize,
    pub(super) claimed: usize,
    pub(super) number: u64,
}

/// Reading one packet.
pub(super) struct PacketRun<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) pos: usize,
    /// Where the text ends: before the NUL that closes it.
    pub(super) end: usize,
    /// Offset up to which all bytes belong to a node.
    pub(super) claimed: usize,
    pub(super) tree: &'a mut Tree,
    pub(super) tables: &'a Tables,
    pub(super) types: ValueTypes,
    /// The positions of a packet whose type is not known.
    pub(super) header: Option<LayoutId>,
    pub(super) keep: &'a mut ValueBuffers,
    pub(super) top: OpenValue,
    pub(super) unclosed: UnclosedQuotes,
    pub(super) message: Option<MessageId>,
    /// Whether blanks between tokens were noted already.
    pub(super) blanks_noted: bool,
    /// Whether the end or a bound was reached: open containers are then closed without a problem.
    pub(super) silent: bool,
    /// Whether the last value is complete: bytes behind it belong to no value.
    pub(super) stray: bool,
    /// Bytes that were read again as pairs.
    pub(super) again: usize,
    /// What the values cost that numbers repeated.
    pub(super) repeated: usize,
    /// Numbers the mappings, so that the keys of two mappings are kept apart.
    pub(super) mappings: u64,
}

/// The length field before a packet.
#[derive(Clone, Copy)]
pub(super) struct LengthPrefix {
    pub(super) name: Sym,
    pub(super) ty: TypeRef,
    /// In bytes.
    pub(super) size: usize,
}

impl ValueBuffers {
    /// Reads a packet, its length field first, into a tree. Without a length field, it is one that
    /// follows another packet behind the same length.
    pub(super) fn read(
        &mut self,
        bytes: &[u8],
        prefix: Option<LengthPrefix>,
        header: Option<LayoutId>,
        tables: &Tables,
        tree: &mut Tree,
    ) -> FoundPacket {
        tree.clear();
        self.stack.clear();
        self.pairs_at.clear();
        self.forms.clear();
        self.numbered.clear();
        self.seen.clear();
        let types = *tables.value_types();
        let LengthPrefix { name, ty, size } =
            prefix.unwrap_or(LengthPrefix { name: types.open_name, ty: types.int, size: 0 });
        let size = size.min(bytes.len());
        let unclosed = std::mem::take(&mut self.unclosed);
        let root = tree.leaf(node(Sym::ELEMENT, types.array, Kind::Struct, 0, 0));
        let length = bytes.iter().take(size).fold(0, |n, b| n << 8 | u64::from(*b));
        if size > 0 {
            let mut length_node = node(name, ty, Kind::Unsigned, 0, size);
            length_node.value = length;
            length_node.marks = mark::SPAN;
            tree.leaf(length_node);
        }
        let nul = bytes.len() > size && bytes.last() == Some(&0);
        let top = OpenValue::outside(tree.checkpoint(), types.any);
        let mut run = PacketRun {
            bytes,
            pos: size,
            end: bytes.len() - usize::from(nul),
            claimed: size,
            tree,
            tables,
            types,
            header,
            keep: self,
            top,
            unclosed: if prefix.is_none() { unclosed } else { UnclosedQuotes::default() },
            message: None,
            blanks_noted: false,
            silent: false,
            stray: false,
            again: 0,
            repeated: 0,
            mappings: 0,
        };
        let packet = run.whole(root);
        let message = run.message;
        let end = run.pos;
        let unclosed = run.unclosed;
        self.unclosed = unclosed.behind(end);
        FoundPacket { packet, message, nul: nul && end == bytes.len(), end }
    }
}

impl OpenValue {
    fn outside(before: Checkpoint, any: TypeRef) -> OpenValue {
        OpenValue {
            node: 0,
            sort: Sort::Outside,
            inside: Inside::Any,
            count: 0,
            level: 0,
            pairs: false,
            pair: None,
            value_next: false,
            key: Sym::ELEMENT,
            key_type: any,
            before,
            began: 0,
            claimed: 0,
            number: 0,
        }
    }
}

impl PacketRun<'_> {
    /// Reads the whole text: one value, and bytes behind it that should not be there. Returns the
    /// node of the packet's type.
    fn whole(&mut self, root: u32) -> Option<u32> {
        self.blanks();
        let packet = self.begins_packet();
        if packet {
            self.open_root(root);
        } else if self.pos >= self.end {
            self.say(Severity::Error, root, "a packet without a value", 0);
            self.top.count = 1;
        } else {
            let text = if self.bytes.get(self.pos..).is_some_and(|t| t.starts_with(b"({")) {
                "not a packet: the array does not begin with a text"
            } else {
                "not a packet: the value is not an array"
            };
            self.say(Severity::Note, root, text, 0);
        }
        while self.top.sort != Sort::Outside || self.top.count == 0 {
            self.step();
        }
        self.behind(packet);
        self.tree.close(root, self.pos * 8);
        packet
            .then(|| self.tree.children(root).find(|(_, n)| !n.has(mark::SPAN)).map(|(i, _)| i))
            .flatten()
    }

    /// Whether an array begins here whose first element is a text.
    pub(super) fn begins_packet(&self) -> bool {
        let rest = self.bytes.get(self.pos..self.end).unwrap_or(&[]);
        rest.strip_prefix(b"({")
            .is_some_and(|inner| inner.trim_ascii_start().first() == Some(&b'"'))
    }

    pub(super) fn open_root(&mut self, root: u32) {
        self.keep.stack.push(self.top);
        let before = self.tree.checkpoint();
        let sort = Sort::Array;
        let inside = Inside::Packet;
        let level = 1;
        let began = self.pos;
        let claimed = self.claimed;
        self.top =
            OpenValue { node: root, sort, inside, level, before, began, claimed, ..self.top };
        self.bracket_open();
    }

    /// Takes one step inside a container: reads an element or a key, or closes it. Each step
    /// advances or closes a container.
    fn step(&mut self) {
        let byte = match self.bytes.get(self.pos) {
            Some(byte) if self.pos < self.end && *byte > b' ' => *byte,
            _ => {
                self.blanks();
                match self.peek() {
                    Some(byte) => byte,
                    None => return self.unclosed(),
                }
            }
        };
        if self.top.sort == Sort::Outside {
            return self.value(byte);
        }
        if self.tree.len() >= MAX_NODES {
            return self.too_many();
        }
        match byte {
            b',' => self.nothing(),
            b'}' | b']' => self.close(byte),
            b'/' if self.peek_at(1) == Some(b')') => self.close(byte),
            _ if std::mem::take(&mut self.stray) => self.set_aside(),
            _ if self.top.sort == Sort::Mapping && !self.top.value_next => self.key(byte),
            b':' => self.stray_colon(),
            _ => self.value(byte),
        }
    }

    /// A value at its place.
    pub(super) fn value(&mut self, byte: u8) {
        let (name, ty) = self.slot();
        match byte {
            b'"' => self.text(name, ty),
            b'0'..=b'9' | b'-' => self.number(name, ty),
            b'(' => self.container(name, ty),
            b'<' => self.angle(name, ty),
            b'+' | b'.' => self.number(name, ty),
            _ => self.garbage(),
        }
    }

    /// Name and type of the next element.
    pub(super) fn slot(&mut self) -> (Sym, TypeRef) {
        let any = self.types.any;
        let layout = match self.top.inside {
            Inside::Elements(ty) if self.top.sort != Sort::Outside => return (Sym::ELEMENT, ty),
            Inside::Positions(layout) => Some(layout),
            Inside::Packet | Inside::UnknownPacket => self.header,
            Inside::NamelessPacket => None,
            Inside::Keys { .. } if self.top.pairs && !self.top.value_next => {
                return (Sym::ELEMENT, any);
            }
            Inside::Keys { .. } if self.top.pairs => return (Sym::ELEMENT, self.top.key_type),
            Inside::Keys { .. } => return (self.top.key, self.top.key_type),
            _ if self.top.sort == Sort::Outside => return (self.types.value_name, any),
            _ => return (Sym::ELEMENT, any),
        };
        let tables = self.tables;
        let position =
            layout.and_then(|l| tables.layout(l)).and_then(|l| tables.position(l, self.top.count));
        position.unwrap_or_else(|| (self.extra(), any))
    }

    /// The name of an element that has none in the tables: `extra_N`.
    fn extra(&mut self) -> Sym {
        use std::fmt::Write;
        self.keep.text.clear();
        let _ = write!(self.keep.text, "extra_{}", self.top.count);
        self.tree.dynamic_name(&self.keep.text)
    }

    /// Opens an array, mapping or class.
    fn container(&mut self, name: Sym, ty: TypeRef) {
        let sort = match self.peek_at(1) {
            Some(b'{') => Sort::Array,
            Some(b'[') => Sort::Mapping,
            Some(b'/') => Sort::Class,
            _ => return self.garbage(),
        };
        let pairs = sort == Sort::Mapping && self.as_pairs();
        let level = self.top.level + 1 + u16::from(pairs);
        if level > MAX_DEPTH {
            return self.too_deep();
        }
        self.mappings += 1;
        let before = self.tree.checkpoint();
        let marks = self.marks(ty);
        let (inside, kind, ty) = self.inside(sort, ty, pairs);
        let index = self.tree.len();
        let mut container = node(name, ty, kind, self.claimed, self.claimed);
        container.marks = marks;
        self.tree.leaf(container);
        if sort == Sort::Class {
            self.say_here(Severity::Note, "a class at byte {a}, which FluffOS writes");
        }
        let frame = OpenValue {
            node: index,
            sort,
            inside,
            level,
            pairs,
            before,
            began: self.pos,
            claimed: self.claimed,
            number: self.mappings,
            ..OpenValue::outside(before, self.types.any)
        };
        self.keep.stack.push(std::mem::replace(&mut self.top, frame));
        self.bracket_open();
        if sort == Sort::Mapping {
            self.pass_width();
        }
    }

    /// For a container that is read as a type: what the tables say of its elements, its kind in the
    /// tree, and the type of its node.
    fn inside(&mut self, sort: Sort, ty: TypeRef, pairs: bool) -> (Inside, Kind, TypeRef) {
        let tables = self.tables;
        let read = tables.type_def(ty).map(|d| &d.read);
        let mapping_kind = if pairs { Kind::List } else { Kind::Struct };
        match (sort, read) {
            (Sort::Array, Some(ReadAs::Layout { layout, .. })) => {
                (Inside::Positions(self.form(self.pos).unwrap_or(*layout)), Kind::Struct, ty)
            }
            (Sort::Array, Some(ReadAs::List { of, .. })) => (Inside::Elements(*of), Kind::List, ty),
            (Sort::Array, Some(ReadAs::Value(ValueRead::Packet))) if self.begins_packet() => {
                (Inside::Packet, Kind::Struct, ty)
            }
            (Sort::Array, Some(ReadAs::Value(ValueRead::Mapping { array: Some(array), .. }))) => {
                self.inside(sort, *array, pairs)
            }
            (Sort::Array, read) => {
                self.expect(read, "an array");
                (Inside::Any, Kind::List, self.marked_or(ty, self.types.array))
            }
            (Sort::Mapping, Some(ReadAs::Value(ValueRead::Mapping { of, keys, .. }))) => {
                let inside = Inside::Keys { of: *of, keys: *keys };
                (inside, mapping_kind, ty)
            }
            (Sort::Mapping, read) => {
                self.expect(read, "a mapping");
                let inside = Inside::Keys { of: None, keys: None };
                (inside, mapping_kind, self.marked_or(ty, self.types.mapping))
            }
            _ => (Inside::Any, Kind::List, self.types.array),
        }
    }

    /// Ends a value: its separator belongs to it. `last` is the node's own last leaf, if it has
    /// one, and grows with it.
    pub(super) fn complete(&mut self, index: u32, last: u32) {
        let is_key = self.top.pairs && !self.top.value_next;
        if is_key {
            self.colon();
        } else if self.top.sort != Sort::Outside {
            self.comma();
        }
        self.grow(last);
        if last != index {
            self.tree.close(index, self.pos * 8);
        }
        self.claimed = self.pos;
        if is_key {
            self.top.key_type = self.pair_type(index);
            self.top.value_next = true;
            return;
        }
        if let Some(pair) = self.top.pair.take() {
            self.tree.close(pair, self.pos * 8);
        }
        self.top.value_next = false;
        if self.top.inside == Inside::Packet && self.top.count == 0 {
            self.resolve(index);
        }
        self.top.count += 1;
    }

    /// Reads the first element of a packet, which says what the others are.
    fn resolve(&mut self, index: u32) {
        let tables = self.tables;
        let Some(first) = self.tree.get(index) else {
            return;
        };
        let name = match first.kind {
            Kind::Text(TextKind::Utf8) => {
                let (start, len) = first.content();
                std::str::from_utf8(self.bytes.get(start..start + len).unwrap_or(&[])).ok()
            }
            _ => None,
        };
        let message = name.and_then(|n| tables.message_named(n));
        let layout = message.and_then(|m| tables.message(m)).and_then(|m| m.layout);
        let form = layout.and_then(|_| self.form(self.top.began));
        let outermost = self.keep.stack.len() == 1;
        if outermost {
            self.message = message;
        }
        self.top.inside = match layout {
            Some(layout) => Inside::Positions(form.unwrap_or(layout)),
            None => {
                self.tree.problem(Problem::new(
                    Severity::Note,
                    index,
                    "no table knows this packet type",
                    0,
                    0,
                ));
                let next = self
                    .bytes
                    .get(self.pos..self.end)
                    .and_then(|rest| rest.iter().find(|b| **b > b' '));
                let routed = outermost || matches!(next, Some(b'0'..=b'9' | b'-') | None);
                if routed { Inside::UnknownPacket } else { Inside::NamelessPacket }
            }
        };
        let root = self.top.node;
        if let Some(ty) = layout.and_then(|l| tables.layout(l)).map(|l| l.ty)
            && let Some(root) = self.tree.get_mut(root)
        {
            root.ty = ty;
        }
    }
}
