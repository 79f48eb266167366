//! Rewrites a message: its bytes and its tree. The type of a value, or of the structure around it,
//! tells what it says about a person.

use super::Pseudonyms;
use super::leaf::{HiddenLeaf, Hide};
use super::region::write_back;
use super::values::FILLER;
use crate::digits::{parse_uuid, swap_uuid};
use crate::session::Message;
use crate::table::{Person, Tables};
use crate::tree::{BufferOrigin, Kind, Node, Sym, TextKind, Tree, TreeParts, mark};

impl Pseudonyms {
    /// Puts pseudonyms into a message: into `tree`, and into a copy of its bytes, which is
    /// returned.
    pub fn message(&mut self, message: &Message<'_>, tables: &Tables, tree: &mut Tree) -> Vec<u8> {
        self.parts.copy_of(tree);
        self.bytes.clear();
        self.bytes.extend_from_slice(message.bytes);
        let before: Vec<Vec<u8>> = self.parts.made.iter().map(|(bytes, _)| bytes.clone()).collect();
        let mut hidden = hidden(&self.parts, tables);
        if self.secrets_alone {
            hidden
                .iter_mut()
                .filter(|hide| **hide != Hide::Secret)
                .for_each(|hide| *hide = Hide::Nothing);
        }
        self.learn(&hidden, tables);
        for (index, hide) in hidden.iter().enumerate() {
            self.leaf(index, *hide, tables);
        }
        self.known.sweep(&mut self.bytes);
        self.known.sweep_text(&mut self.parts.text);
        for ((bytes, origin), before) in self.parts.made.iter_mut().zip(&before) {
            self.known.sweep(bytes);
            if *origin == BufferOrigin::Expanded {
                keep_zeros(bytes, before);
            }
        }
        self.regions(&before);
        self.parts.put_into(tree);
        std::mem::take(&mut self.bytes)
    }

    /// Remembers what tables mark, so that it is found where they mark nothing. UUIDs that are names
    /// of fields, as those of avatars are in LLSD, can have no marks.
    fn learn(&mut self, hidden: &[Hide], tables: &Tables) {
        let Pseudonyms { values, known, parts, bytes, secrets_alone, .. } = self;
        let names = (0..parts.names.len()).filter(|_| !*secrets_alone);
        let uuids =
            names.filter_map(|at| parse_uuid(parts.dynamic(Sym(Sym::DYNAMIC + at as u32))?));
        uuids.for_each(|uuid| known.uuid(uuid, values));
        for (node, hide) in parts.nodes.iter().zip(hidden) {
            let Hide::Person(person) = hide else { continue };
            match (node.kind, person) {
                (Kind::Text(kind), Person::Name | Person::Mail) => {
                    let mut text = String::new();
                    match kind {
                        TextKind::Owned => text.push_str(own_text(parts, node)),
                        _ => {
                            let content = content(parts.buffer(node.buffer, bytes), node);
                            crate::tree::decode_text(kind, content, &mut text);
                        }
                    }
                    if tables.sym(&text).is_none() {
                        known.name(&text, values);
                    }
                }
                (Kind::Uuid | Kind::UuidBe, Person::Number | Person::Name) => {
                    let (start, _) = node.content();
                    let uuid = parts
                        .buffer(node.buffer, bytes)
                        .get(start..)
                        .and_then(|rest| rest.first_chunk::<16>());
                    let written = |uuid: [u8; 16]| {
                        if node.kind == Kind::Uuid { swap_uuid(uuid) } else { uuid }
                    };
                    uuid.into_iter().for_each(|uuid| known.uuid(written(*uuid), values));
                }
                (
                    Kind::Unsigned | Kind::Signed | Kind::Unsigned64 | Kind::Signed64,
                    Person::Number,
                ) => {
                    known.number(node.value & 0xffff_ffff);
                }
                _ => {}
            }
        }
    }

    fn leaf(&mut self, index: usize, hide: Hide, tables: &Tables) {
        let Pseudonyms { values, known, shift, parts, bytes, .. } = self;
        let TreeParts { nodes, made, text, .. } = parts;
        let Some(node) = nodes.get_mut(index) else { return };
        if node.end as usize > index + 1
            || matches!(node.kind, Kind::Struct | Kind::List | Kind::Null)
        {
            return;
        }
        let place = usize::from(node.buffer.0).checked_sub(1);
        let buffer = match place {
            None => Some(bytes),
            Some(at) => made.get_mut(at).map(|(bytes, _)| bytes),
        };
        let Some(buffer) = buffer else { return };
        let def = tables.type_def(node.ty);
        let shown = def.and_then(|def| def.shown).map(|shown| tables.name(shown));
        let second = match shown {
            Some("unix_time") => Some(1),
            Some("milliseconds") => Some(1000),
            Some("microseconds") => Some(1_000_000),
            _ => None,
        };
        HiddenLeaf { values, known, shift: *shift, node, def, second, buffer, text }.hide(hide);
    }

    /// Writes the content of regions back into the bytes it came from, inner ones first.
    fn regions(&mut self, before: &[Vec<u8>]) {
        let TreeParts { nodes, made, .. } = &mut self.parts;
        for (index, node) in nodes.iter().enumerate().rev() {
            let inner =
                nodes.get(index + 1).map(|node| node.buffer).filter(|_| node.has(mark::OWN_BUFFER));
            let Some(at) = inner.and_then(|buffer| usize::from(buffer.0).checked_sub(1)) else {
                continue;
            };
            let (Some((content, origin)), Some(before)) = (made.get(at).cloned(), before.get(at))
            else {
                continue;
            };
            if content == *before || inner == Some(node.buffer) {
                continue;
            }
            let outer = match usize::from(node.buffer.0).checked_sub(1) {
                None => Some(&mut self.bytes),
                Some(at) => made.get_mut(at).map(|(bytes, _)| bytes),
            };
            let (start, end) =
                (node.start as usize / 8, (node.start as usize + node.bits as usize).div_ceil(8));
            if let Some(coded) = outer.and_then(|outer| outer.get_mut(start..end)) {
                write_back(origin, coded, before, &content);
            }
        }
    }
}

/// How to treat each node: by its own type, or by that of the structure around it.
fn hidden(parts: &TreeParts, tables: &Tables) -> Vec<Hide> {
    let mut open: Vec<(usize, Hide)> = Vec::new();
    let mut all = Vec::with_capacity(parts.nodes.len());
    for (index, node) in parts.nodes.iter().enumerate() {
        while open.last().is_some_and(|(end, _)| *end <= index) {
            open.pop();
        }
        let inherited = open.last().map_or(Hide::Nothing, |(_, hide)| *hide);
        // A name that came with the traffic says less than a mark around it.
        let own = own(node, tables)
            .filter(|own| *own != Hide::Unmarked || !matches!(inherited, Hide::Person(_)));
        let hide = own.unwrap_or_else(|| within(node, inherited, tables));
        open.push((node.end as usize, hide));
        all.push(hide);
    }
    all
}

/// How to treat a node by its own type and marks.
fn own(node: &Node, tables: &Tables) -> Option<Hide> {
    let facts = tables.type_def(node.ty).and_then(|def| def.facts.as_deref());
    if node.has(mark::SECRET) {
        return Some(Hide::Secret);
    }
    if let Some(person) = facts.and_then(|facts| facts.person) {
        return Some(Hide::Person(person));
    }
    let unread =
        node.has(mark::OPAQUE) || node.has(mark::UNEXPLAINED) || node.kind == Kind::Undecoded;
    if unread {
        return Some(Hide::Opaque);
    }
    (node.name.0 >= Sym::DYNAMIC).then_some(Hide::Unmarked)
}

/// What a node without marks is within another one: counts and lengths stay what they are.
fn within(node: &Node, inherited: Hide, tables: &Tables) -> Hide {
    let padding = node.ty == tables.padding_type();
    match (node.has(mark::SPAN), node.kind) {
        (true, Kind::Bytes) if padding => Hide::Opaque,
        (true, Kind::Bytes | Kind::Text(_)) => inherited,
        (true, _) => Hide::Nothing,
        (false, _) => inherited,
    }
}

/// The content of a text or of bytes.
fn content<'a>(buffer: &'a [u8], node: &Node) -> &'a [u8] {
    let (start, length) = node.content();
    buffer.get(start..start.saturating_add(length)).unwrap_or_default()
}

/// A text that the tree keeps.
fn own_text<'a>(parts: &'a TreeParts, node: &Node) -> &'a str {
    let (start, length) = node.content();
    parts.text.get(start..start.saturating_add(length)).unwrap_or("")
}

/// Zero-coded content needs its zeros where they were: other bytes would need more or fewer coded
/// ones.
fn keep_zeros(bytes: &mut [u8], before: &[u8]) {
    for (byte, before) in bytes.iter_mut().zip(before) {
        match (*before, *byte) {
            (0, _) => *byte = 0,
            (_, 0) => *byte = FILLER,
            _ => {}
        }
    }
}
