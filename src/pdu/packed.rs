//! Writes a message's tree in few bytes, for a packet that carries it.
//!
//! All numbers are LEB128 (`leb128`), signed ones zigzag-coded; a text is its length in bytes and
//! UTF-8. In order:
//!
//! - the bytes `MSn1`, and 8 bytes, little-endian: the [fingerprint](super::fingerprint) of the
//!   tables;
//! - flags: 1 sent by the server, 2 UDP, 4 a number follows, 8 a reply follows, 16 no reply will
//!   come, 32 no problems follow;
//! - the stream, the record's number, the offset in the stream, the service, the message's name, a
//!   line that says what it is about, its number, the record that it answers and the nanoseconds
//!   since (signed);
//! - the number of names and labels, each: 0, or the name's number in the tables plus 1; the text;
//! - the number of nodes, each: its name (1 is the first in the list), type, kind, marks, buffer,
//!   the distance of its first bit from the one of the node before it (signed), its bits, how many
//!   descendants follow it, its value, and the label that names the value, 0 for none. The value of
//!   a text of the tree's own is a text; that of another text, of bytes or a UUID is the start and
//!   the length of the content; any other is a number;
//! - the number of made buffers, each: how it was made, its length, its bytes;
//! - the number of problems, each: severity, node, text, 0 or 1 and then buffer, start and length
//!   of bytes to show;
//! - the number of links, each: kind, node, record, nanoseconds (signed).

use std::collections::HashMap;

use crate::leb128::{put, zigzag};
use crate::record::Record;
use crate::session::{Message, Side, Transport};
use crate::table::Tables;
use crate::tree::{
    BufferOrigin, Concern, Kind, LinkKind, Node, Problem, ProblemText, Severity, Sym, TextKind,
    Tree, TreeParts,
};

/// What every packed tree begins with.
pub(super) const MAGIC: [u8; 4] = *b"MSn1";

/// Flags.
pub(super) const FROM_SERVER: u8 = 1;
pub(super) const OVER_UDP: u8 = 2;
pub(super) const HAS_NUMBER: u8 = 4;
pub(super) const HAS_REPLY: u8 = 8;
pub(super) const NO_REPLY: u8 = 16;
/// Nobody has to read the nodes to find problems behind them.
pub(super) const NO_PROBLEMS: u8 = 32;

/// The kinds, each at the place of its number.
pub(super) const KINDS: [Kind; 23] = [
    Kind::Struct,
    Kind::List,
    Kind::Null,
    Kind::Unsigned,
    Kind::Signed,
    Kind::Unsigned64,
    Kind::Signed64,
    Kind::F32,
    Kind::F64,
    Kind::Bool,
    Kind::Uuid,
    Kind::UuidBe,
    Kind::Ipv4,
    Kind::Bytes,
    // No packet has this number. It keeps its place, so that the others keep theirs.
    Kind::Bytes,
    Kind::Undecoded,
    Kind::Text(TextKind::Utf8),
    Kind::Text(TextKind::Latin1),
    Kind::Text(TextKind::Utf16),
    Kind::Text(TextKind::Inverted8),
    Kind::Text(TextKind::Inverted16),
    Kind::Text(TextKind::InvertedLatin1),
    Kind::Text(TextKind::Owned),
];

/// How a buffer was made, by number.
pub(super) const ORIGINS: [BufferOrigin; 4] = [
    BufferOrigin::Decompressed,
    BufferOrigin::Decrypted,
    BufferOrigin::Expanded,
    BufferOrigin::Reassembled,
];
/// Severities by number.
pub(super) const CONCERNS: [Concern; 4] =
    [Concern::None, Concern::Unhandled, Concern::UnknownVersion, Concern::TooLong];
pub(super) const SEVERITIES: [Severity; 3] = [Severity::Note, Severity::Warning, Severity::Error];
/// What earlier records are, by number.
pub(super) const LINKS: [LinkKind; 2] = [LinkKind::Acknowledges, LinkKind::SentAgain];

/// Whether the value of a node of this kind is a text of the tree's own.
pub(super) fn is_owned(kind: Kind) -> bool {
    kind == Kind::Text(TextKind::Owned)
}

/// Packs trees. What it allocates is used again.
#[derive(Default)]
pub(super) struct Packer {
    /// Names and labels of the message at hand: how many, and their bytes.
    count: u64,
    texts: Vec<u8>,
    names: HashMap<Sym, u64>,
    labels: HashMap<String, u64>,
    nodes: Vec<u8>,
    parts: TreeParts,
    text: String,
}

/// A message with what its packed form needs.
#[derive(Clone, Copy)]
pub(super) struct PackSource<'a> {
    pub(super) message: &'a Message<'a>,
    pub(super) tables: &'a Tables,
    pub(super) tree: &'a Tree,
    /// What it is about.
    pub(super) info: &'a str,
    /// The tables' [fingerprint](super::fingerprint).
    pub(super) fingerprint: u64,
}

impl Packer {
    /// Appends the packed form of a message.
    pub(super) fn pack(&mut self, record: &Record<'_>, source: PackSource<'_>, out: &mut Vec<u8>) {
        let PackSource { tables, tree, fingerprint, .. } = source;
        (self.count, self.text) = (0, String::new());
        [&mut self.texts, &mut self.nodes].into_iter().for_each(Vec::clear);
        self.names.clear();
        self.labels.clear();
        self.parts.copy_of(tree);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&fingerprint.to_le_bytes());
        head(record, source, out);
        let mut before = 0;
        for (index, node) in (1..).zip(tree.nodes()) {
            self.node(index, before, node, tables, tree);
            before = node.start;
        }
        put(out, self.count);
        out.extend_from_slice(&self.texts);
        put(out, tree.nodes().len() as u64);
        out.extend_from_slice(&self.nodes);
        put(out, self.parts.made.len() as u64);
        for (bytes, origin) in &self.parts.made {
            out.push(place(&ORIGINS, origin));
            put(out, bytes.len() as u64);
            out.extend_from_slice(bytes);
        }
        put(out, self.parts.problems.len() as u64);
        for problem in tree.problems() {
            self.problem(problem, tables, tree, out);
        }
        put(out, tree.links().len() as u64);
        for link in tree.links() {
            out.push(place(&LINKS, &link.kind));
            put(out, link.node.into());
            put(out, link.record);
            put(out, zigzag(link.nanos));
        }
    }

    fn node(&mut self, next: u32, before: u32, node: &Node, tables: &Tables, tree: &Tree) {
        let name = self.name(node.name, tables, tree);
        let label = self.label(node, tables);
        let to = &mut self.nodes;
        put(to, name);
        put(to, node.ty.0.into());
        to.extend_from_slice(&[place(&KINDS, &node.kind), node.marks]);
        put(to, node.buffer.0.into());
        put(to, zigzag(i64::from(node.start) - i64::from(before)));
        put(to, node.bits.into());
        put(to, node.end.saturating_sub(next).into());
        if is_owned(node.kind) {
            put_text(to, tree.owned(node.value).raw());
        } else if node.kind.is_place() {
            put(to, node.value >> 32);
            put(to, node.value & 0xffff_ffff);
        } else {
            put(to, node.value);
        }
        put(to, label);
    }

    /// The place of a node's name among the names of this message, from 1.
    fn name(&mut self, name: Sym, tables: &Tables, tree: &Tree) -> u64 {
        if let Some(place) = self.names.get(&name) {
            return *place;
        }
        let number = if name.0 < Sym::DYNAMIC { u64::from(name.0) + 1 } else { 0 };
        let text = tree.dynamic(name).map_or_else(|| tables.name(name), |dynamic| dynamic.raw());
        self.count += 1;
        put(&mut self.texts, number);
        put_text(&mut self.texts, text);
        self.names.insert(name, self.count);
        self.count
    }

    /// The place of the text that names a node's value, from 1; 0 where nothing does.
    fn label(&mut self, node: &Node, tables: &Tables) -> u64 {
        let Some(symbols) = tables.symbols(node.ty) else { return 0 };
        if !matches!(node.kind, Kind::Unsigned | Kind::Signed | Kind::Unsigned64 | Kind::Signed64) {
            return 0;
        }
        self.text.clear();
        if symbols.flags {
            for bit in symbols
                .values
                .iter()
                .filter(|bit| bit.value != 0 && node.value & bit.value == bit.value)
            {
                self.text.push_str(if self.text.is_empty() { "" } else { " | " });
                self.text.push_str(&bit.name);
            }
        } else if let Some(value) = symbols.get(node.value) {
            self.text.push_str(&value.name);
        }
        if self.text.is_empty() {
            return 0;
        }
        if let Some(place) = self.labels.get(&self.text) {
            return *place;
        }
        self.count += 1;
        put(&mut self.texts, 0);
        put_text(&mut self.texts, &self.text);
        self.labels.insert(self.text.clone(), self.count);
        self.count
    }

    fn problem(&mut self, problem: &Problem, tables: &Tables, tree: &Tree, out: &mut Vec<u8>) {
        out.push(place(&SEVERITIES, &problem.severity));
        put(out, problem.node.into());
        match problem.text {
            ProblemText::Owned(place) => put_text(out, tree.owned(place).raw()),
            ProblemText::Table(name) => put_text(out, tables.name(name)),
            ProblemText::Fixed(_) | ProblemText::ShortFor(_) => {
                self.text.clear();
                problem.write_numbered(|name| tables.name(name), &mut self.text);
                put_text(out, &self.text);
            }
        }
        // The lowest bit says whether bytes follow.
        let concern = u64::from(place(&CONCERNS, &problem.concern));
        put(out, u64::from(problem.bytes.is_some()) | concern << 1);
        if let Some((buffer, start, length)) = problem.bytes {
            put(out, buffer.0.into());
            put(out, start.into());
            put(out, length.into());
        }
    }
}

/// What there is to say of the message as a whole.
fn head(record: &Record<'_>, source: PackSource<'_>, out: &mut Vec<u8>) {
    let PackSource { message, tree, info, .. } = source;
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    out.push(
        flag(record.from == Side::Server, FROM_SERVER)
            | flag(record.transport == Transport::Udp, OVER_UDP)
            | flag(message.number.is_some(), HAS_NUMBER)
            | flag(message.reply.is_some(), HAS_REPLY)
            | flag(message.no_reply, NO_REPLY)
            | flag(tree.problems().is_empty(), NO_PROBLEMS),
    );
    put(out, record.stream.into());
    put(out, record.number);
    put(out, message.offset);
    put_text(out, record.service);
    put_text(out, message.name.raw());
    put_text(out, info);
    if let Some(number) = message.number {
        put(out, number);
    }
    if let Some(reply) = message.reply {
        put(out, reply.record);
        put(out, zigzag(reply.nanos));
    }
}

pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// The place of something in a list that has it.
fn place<T: PartialEq>(list: &[T], of: &T) -> u8 {
    list.iter().position(|one| one == of).unwrap_or(0) as u8
}
