//! The tree: the decoded content of a message, flat, in an arena that is reused for the next
//! message.
//!
//! The tree is the only product of decoding. It knows bytes, positions and values, but neither
//! tables nor protocols nor outputs: names and types are numbers here ([`Sym`], [`TypeRef`]), and
//! the tables know their meaning.

mod link;
mod nodes;
mod parts;
mod problem;
mod telling;
mod value;
mod walk;

use crate::captured::Captured;
use std::borrow::Cow;
use std::fmt;

pub use link::{LinkKind, RecordLink};
pub use nodes::Node;
pub use parts::TreeParts;
pub use problem::{Concern, Problem, ProblemCounts, ProblemText, Severity};
use telling::TellingFields;
pub use value::{Kind, TextKind, decode_pieces, decode_text, is_inverted_ascii, is_inverted_utf8};
pub use walk::{Children, Members, Walk};

/// A name: of a field, a message, a note. Below `Sym::DYNAMIC` it is one of the tables' names, from
/// there on one of the tree's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sym(pub u32);

impl Sym {
    /// First number of the names that came from the traffic itself (see [`Tree::dynamic_name`]).
    pub const DYNAMIC: u32 = 1 << 31;
    /// The name of list elements, which are known by their position.
    pub const ELEMENT: Sym = Sym(0);
    /// The name of bytes that no field claims.
    pub const UNDECODED: Sym = Sym(1);
}

/// A type of the tables, by its place in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TypeRef(pub u32);

/// The buffer a node's positions count in: [`Buffer::CAPTURED`], or one the decoding made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer(pub u16);

impl Buffer {
    /// The message's bytes as they were captured (and decrypted, where the stream is).
    pub const CAPTURED: Buffer = Buffer(0);
}

/// How captured bytes became a buffer of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferOrigin {
    /// zlib and its like.
    Decompressed,
    /// A cipher within the message.
    Decrypted,
    /// Zero coding.
    Expanded,
    /// Pieces that came in messages of their own.
    Reassembled,
}

impl BufferOrigin {
    /// The word the JSON uses (`"buffer"` of a region).
    pub fn word(self) -> &'static str {
        match self {
            BufferOrigin::Decompressed => "decompressed",
            BufferOrigin::Decrypted => "decrypted",
            BufferOrigin::Expanded => "expanded",
            BufferOrigin::Reassembled => "reassembled",
        }
    }
}

/// Marks of a node, as bits.
pub mod mark {
    /// Among the spans, not among the fields: a count, a length, padding.
    pub const SPAN: u8 = 1;
    /// Hidden where the output is to be shown around.
    pub const SECRET: u8 = 2;
    /// Without structure by nature: file contents, voice, images.
    pub const OPAQUE: u8 = 4;
    /// Not certain: decided without proof.
    pub const GUESS: u8 = 8;
    /// The children count in a buffer of their own (the `buffer` of the first child).
    pub const OWN_BUFFER: u8 = 16;
    /// A span whose children are fields of the structure around it (the coded part of a datagram).
    pub const SEE_THROUGH: u8 = 32;
    /// Bytes that nothing explains, though they may have a name: what they say is not known, and
    /// they count as undecoded. Of a tree: there are, or may be, such bytes or undecoded ones.
    pub const UNEXPLAINED: u8 = 64;
    /// Of the message: it is not the last answer to its request.
    pub const PARTIAL: u8 = 128;
    /// Of a field within the message: it is the name of a thing, or tells a place. The message
    /// itself is no field, so that the bit serves twice.
    pub const NAME: u8 = 128;
}

/// A message's nodes, problems and made buffers. Cleared, not freed, between messages.
#[derive(Default)]
pub struct Tree {
    nodes: Vec<Node>,
    problems: Vec<Problem>,
    links: Vec<RecordLink>,
    made: Vec<(Vec<u8>, BufferOrigin)>,
    made_used: usize,
    text: String,
    names: Vec<(u32, u32)>,
    /// All [`mark`]s any node may have had since the tree was cleared.
    seen: u8,
    telling: TellingFields,
}

/// The state of a tree at some moment, for returning to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    nodes: usize,
    problems: usize,
    made: usize,
    text: usize,
    names: usize,
}

impl Checkpoint {
    /// The index the next node had then.
    pub fn node(&self) -> u32 {
        self.nodes as u32
    }
}

impl Tree {
    /// An empty tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// Empties it, keeping what was allocated.
    pub fn clear(&mut self) {
        self.nodes.clear();
        self.problems.clear();
        self.links.clear();
        for (bytes, _) in
            self.made.iter_mut().take(self.made_used).filter(|m| m.0.capacity() > Self::KEEP_MADE)
        {
            *bytes = Vec::new();
        }
        self.made_used = 0;
        self.text.clear();
        self.names.clear();
        self.seen = 0;
        self.telling.clear();
    }

    /// Becomes a copy of another tree, with what was allocated for it before.
    pub fn copy_from(&mut self, other: &Tree) {
        self.clear();
        self.nodes.extend_from_slice(&other.nodes);
        self.problems.extend_from_slice(&other.problems);
        self.links.extend_from_slice(&other.links);
        for (bytes, origin) in other.made.iter().take(other.made_used) {
            match self.made.get_mut(self.made_used) {
                Some(made) => {
                    made.0.clear();
                    made.0.extend_from_slice(bytes);
                    made.1 = *origin;
                }
                None => self.made.push((bytes.clone(), *origin)),
            }
            self.made_used += 1;
        }
        self.text.push_str(&other.text);
        self.names.extend_from_slice(&other.names);
        self.seen = other.seen;
        self.telling.copy_from(&other.telling);
    }

    /// How many bytes its content takes.
    #[inline]
    pub fn size(&self) -> usize {
        size_of_val(self.nodes.as_slice())
            + size_of_val(self.problems.as_slice())
            + size_of_val(self.links.as_slice())
            + self.made.iter().take(self.made_used).map(|(bytes, _)| bytes.len()).sum::<usize>()
            + self.text.len()
            + size_of_val(self.names.as_slice())
            + self.telling.size()
    }

    /// How many bytes are allocated for it.
    pub fn allocated(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.problems.capacity() * size_of::<Problem>()
            + self.links.capacity() * size_of::<RecordLink>()
            + self.made.iter().map(|(bytes, _)| bytes.capacity()).sum::<usize>()
            + self.text.capacity()
            + self.names.capacity() * size_of::<(u32, u32)>()
            + self.telling.allocated()
    }

    /// Whether every captured byte is certain to be in a field of its own: nothing opaque,
    /// undecoded or in a buffer of its own.
    pub fn is_plain(&self) -> bool {
        self.seen & (mark::OPAQUE | mark::OWN_BUFFER | mark::UNEXPLAINED) == 0
    }

    /// Whether it is certain that nothing in the message names a thing or tells a place.
    pub fn is_nameless(&self) -> bool {
        self.seen & (mark::NAME | mark::PARTIAL) == 0
    }

    /// All nodes, each before its children; the first is the message.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node at an index.
    pub fn get(&self, index: u32) -> Option<&Node> {
        self.nodes().get(index as usize)
    }

    /// The node at an index, to be changed.
    pub fn get_mut(&mut self, index: u32) -> Option<&mut Node> {
        // The caller may set any mark and any type through the reference.
        self.seen = u8::MAX;
        self.telling.set_complete(false);
        self.nodes.get_mut(index as usize)
    }

    /// How many nodes there are: the index the next one will have.
    pub fn len(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// Whether there is no node yet.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() == 0
    }

    /// Adds a node without children; returns its index.
    #[inline(always)]
    pub fn leaf(&mut self, mut node: Node) -> u32 {
        let index = self.nodes.len() as u32;
        node.end = index + 1;
        self.seen |= node.marks | if node.kind == Kind::Undecoded { mark::UNEXPLAINED } else { 0 };
        self.nodes.push(node);
        index
    }

    /// Ends a node: all nodes added since are its descendants, and it reaches to `end_bit`.
    #[inline]
    pub fn close(&mut self, index: u32, end_bit: usize) {
        let end = self.nodes.len() as u32;
        if let Some(node) = self.nodes.get_mut(index as usize) {
            node.end = end;
            node.bits = (end_bit as u32).saturating_sub(node.start);
        }
    }

    /// Adds marks to a node.
    pub fn mark(&mut self, index: u32, marks: u8) {
        self.seen |= marks;
        if let Some(node) = self.nodes.get_mut(index as usize) {
            node.marks |= marks;
        }
    }

    /// Changes a node, but for its marks: what it is turned out later.
    #[inline]
    pub fn amend(&mut self, index: u32, change: impl FnOnce(&mut Node)) {
        if let Some(node) = self.nodes.get_mut(index as usize) {
            change(node);
        }
    }

    /// Forgets the nodes from an index on.
    pub fn cut(&mut self, index: u32) {
        self.nodes.truncate(index as usize);
        self.telling.cut(index);
    }

    /// The children of a node, with their indices.
    pub fn children(&self, parent: u32) -> Children<'_> {
        Children { tree: self, next: parent + 1, end: self.get(parent).map_or(0, |n| n.end) }
    }

    /// The fields of a structure or the elements of a list, with their indices: children without
    /// what is only a span, and the children of see-through ones in their place.
    pub fn members(&self, parent: u32) -> Members<'_> {
        Members { nodes: self.nodes(), walk: self.get(parent).map(|node| Walk::new(parent, node)) }
    }

    /// The problems, in the order in which they were added.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Removes the problems with a fixed text, all but the first where `but_one` is set. Returns
    /// how many it removed.
    pub fn remove_notes(&mut self, text: &str, but_one: bool) -> u64 {
        let before = self.problems.len();
        let mut spare = but_one;
        self.problems.retain(|problem| !problem.has_text(text) || std::mem::take(&mut spare));
        (before - self.problems.len()) as u64
    }

    /// Adds a problem. A message keeps at most [`Tree::MAX_PROBLEMS`].
    #[inline]
    pub fn problem(&mut self, problem: Problem) {
        if self.problems.len() < Self::MAX_PROBLEMS {
            self.problems.push(problem);
        }
    }

    /// Links to earlier records.
    pub fn links(&self) -> &[RecordLink] {
        &self.links
    }

    /// Links the message to an earlier record.
    pub fn link(&mut self, kind: LinkKind, node: u32, record: u64, nanos: i64) {
        self.links.push(RecordLink { kind, node, record, nanos });
    }

    /// Made buffers larger than this are given back, else many messages with a large one in another
    /// place each would add up.
    const KEEP_MADE: usize = 1 << 20;

    /// More problems than this are not kept for one message.
    pub const MAX_PROBLEMS: usize = 256;

    /// The state to return to.
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            nodes: self.nodes.len(),
            problems: self.problems.len(),
            made: self.made_used,
            text: self.text.len(),
            names: self.names.len(),
        }
    }

    /// Removes everything since a checkpoint.
    pub fn back_to(&mut self, to: Checkpoint) {
        self.nodes.truncate(to.nodes);
        self.telling.cut(to.node());
        self.problems.truncate(to.problems);
        self.made_used = to.made.min(self.made_used);
        self.text.truncate(to.text);
        self.names.truncate(to.names);
    }

    /// Opens the next made buffer: its number, and an empty vector to fill (with the capacity of
    /// earlier messages). Hand the bytes back with [`Tree::put_buffer`].
    pub fn open_buffer(&mut self, made: BufferOrigin) -> (Buffer, Vec<u8>) {
        if self.made.len() == self.made_used {
            self.made.push((Vec::new(), made));
        }
        let mut bytes = Vec::new();
        if let Some(entry) = self.made.get_mut(self.made_used) {
            entry.1 = made;
            bytes = std::mem::take(&mut entry.0);
            bytes.clear();
        }
        self.made_used += 1;
        (Buffer(self.made_used.min(usize::from(u16::MAX)) as u16), bytes)
    }

    /// Stores a made buffer under the number [`Tree::open_buffer`] gave.
    pub fn put_buffer(&mut self, buffer: Buffer, bytes: Vec<u8>) {
        if let Some(entry) = usize::from(buffer.0).checked_sub(1).and_then(|i| self.made.get_mut(i))
        {
            entry.0 = bytes;
        }
    }

    /// The bytes of a buffer, where `captured` are the message's own.
    pub fn bytes<'a>(&'a self, buffer: Buffer, captured: &'a [u8]) -> &'a [u8] {
        match usize::from(buffer.0).checked_sub(1) {
            None => captured,
            Some(i) => self.made.get(i).map_or(&[], |(bytes, _)| bytes),
        }
    }

    /// The content of a text or of bytes. Bytes that begin or end within a byte are shifted so that
    /// their first bit is a byte's first.
    pub fn content<'a>(&'a self, node: &Node, captured: &'a [u8]) -> Cow<'a, [u8]> {
        let (start, len) = node.content();
        let whole = self.bytes(node.buffer, captured);
        let odd = !node.start.is_multiple_of(8) || !node.bits.is_multiple_of(8);
        let bits = matches!(node.kind, Kind::Bytes | Kind::Undecoded)
            && odd
            && start == node.start as usize / 8;
        // Bits that begin within a byte may end one byte later than as many bits that begin with
        // one.
        let end = if bits {
            node.start.saturating_add(node.bits).div_ceil(8) as usize
        } else {
            start.saturating_add(len)
        };
        let bytes = whole.get(start..end).unwrap_or(&[]);
        if bits {
            Cow::Owned(shifted(bytes, node.start % 8, node.bits))
        } else {
            Cow::Borrowed(bytes)
        }
    }

    /// The bytes of a buffer that hold a secret, from and to: secrets themselves, and regions whose
    /// content, in a buffer of its own, has one.
    pub fn secrets(&self, buffer: Buffer) -> impl Iterator<Item = (usize, usize)> + '_ {
        let inside = |at: usize, node: &Node| {
            let within = self.nodes().get(at + 1..node.end as usize).unwrap_or(&[]);
            node.has(mark::OWN_BUFFER) && within.iter().any(|n| n.has(mark::SECRET))
        };
        let here = self.nodes().iter().enumerate().filter(move |(_, n)| n.buffer == buffer);
        let secret = here.filter(move |(at, n)| n.has(mark::SECRET) || inside(*at, n));
        secret.map(|(_, n)| {
            (n.start as usize / 8, n.start.saturating_add(n.bits).div_ceil(8) as usize)
        })
    }

    /// How a buffer was made; `None` for the captured bytes.
    pub fn made(&self, buffer: Buffer) -> Option<BufferOrigin> {
        usize::from(buffer.0).checked_sub(1).and_then(|i| self.made.get(i)).map(|(_, made)| *made)
    }

    /// Keeps a text of the tree's own (decoded from an escaped or foreign form); returns the place
    /// for [`Node::value`].
    pub fn own_text(&mut self, text: &str) -> u64 {
        let start = self.text.len();
        self.text.push_str(text);
        Node::place(start, text.len())
    }

    /// The same for a text that is put together in its place.
    pub fn own_format(&mut self, text: fmt::Arguments<'_>) -> u64 {
        let start = self.text.len();
        // Only a value that cannot be shown would fail, and then its text ends there.
        let _ = fmt::Write::write_fmt(&mut self.text, text);
        Node::place(start, self.text.len() - start)
    }

    /// A text kept by [`Tree::own_text`] or [`Tree::own_format`].
    pub fn owned(&self, place: u64) -> Captured<'_> {
        let start = (place >> 32) as usize;
        let len = (place & 0xffff_ffff) as usize;
        Captured::new(self.text.get(start..start + len).unwrap_or(""))
    }

    /// A name that came from the traffic (a key, a variable).
    pub fn dynamic_name(&mut self, name: &str) -> Sym {
        let start = self.text.len() as u32;
        self.text.push_str(name);
        self.names.push((start, name.len() as u32));
        Sym(Sym::DYNAMIC + (self.names.len() as u32 - 1))
    }

    /// The text of a dynamic name.
    pub fn dynamic(&self, name: Sym) -> Option<Captured<'_>> {
        let (start, len) = *self.names.get(name.0.checked_sub(Sym::DYNAMIC)? as usize)?;
        self.text.get(start as usize..(start + len) as usize).map(Captured::new)
    }
}

/// Bits from a bit of the first byte on, as bytes; what is beyond them in the last one is zero.
fn shifted(bytes: &[u8], first: u32, bits: u32) -> Vec<u8> {
    let next = bytes.iter().skip(1).copied().chain([0]);
    let mut out: Vec<u8> = bytes
        .iter()
        .zip(next)
        .map(|(low, high)| ((u16::from(high) << 8 | u16::from(*low)) >> first) as u8)
        .take(bits.div_ceil(8) as usize)
        .collect();
    if let Some(last) = out.last_mut().filter(|_| !bits.is_multiple_of(8)) {
        *last &= (1 << (bits % 8)) - 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_that_begin_and_end_within_bytes_are_all_shown() {
        let node = Node {
            kind: Kind::Undecoded,
            start: 7,
            bits: 10,
            value: Node::place(0, 2),
            ..Node::EMPTY
        };
        assert_eq!(*Tree::default().content(&node, &[0x80, 0xff, 0x01]), [0xff, 0x03]);
    }
}
