//! A node, and the list of a tree's nodes, which is used again for message after message. How nodes
//! are nested is not known here.
//!
//! Nodes of earlier messages stay in the list behind those of this one, so that several can be
//! added at once with one check of the room, and are written straight into their places. A `Vec`
//! alone would check for each node, or copy them from where they were put together.

use super::{Buffer, Kind, Sym, TypeRef};

/// One value with its place: 32 bytes, copied freely.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// The value. For text and bytes, the place of the content in `buffer`: start in bytes << 32 |
    /// length in bytes.
    pub value: u64,
    /// Its name.
    pub name: Sym,
    /// Its type in the tables.
    pub ty: TypeRef,
    /// First bit in `buffer`.
    pub start: u32,
    /// Length in bits.
    pub bits: u32,
    /// Index after its last descendant: the next sibling's, where there is one.
    pub end: u32,
    /// Which buffer `start` counts in.
    pub buffer: Buffer,
    /// How `value` is to be read.
    pub kind: Kind,
    /// Bits of [`mark`](super::mark).
    pub marks: u8,
}

impl Node {
    /// A structure without a name, a type or bytes: for nodes that are filled in later.
    pub const EMPTY: Node = Node {
        value: 0,
        name: Sym::ELEMENT,
        ty: TypeRef(0),
        start: 0,
        bits: 0,
        end: 0,
        buffer: Buffer::CAPTURED,
        kind: Kind::Struct,
        marks: 0,
    };

    /// Whether a [`mark`] is set.
    pub fn has(&self, mark: u8) -> bool {
        self.marks & mark != 0
    }

    /// Start and length in bytes of the content of a text or of bytes.
    pub fn content(&self) -> (usize, usize) {
        ((self.value >> 32) as usize, (self.value & 0xffff_ffff) as usize)
    }

    /// The value without the bits that its sign fills beyond its own width. A value that is in no
    /// bytes is as it is.
    pub fn unsigned(&self) -> u64 {
        let bits = if self.bits == 0 { 64 } else { u64::from(self.bits.min(64)) };
        if bits == 64 { self.value } else { self.value & ((1 << bits) - 1) }
    }

    /// Packs the place of a content for [`Node::value`].
    pub fn place(start: usize, len: usize) -> u64 {
        ((start as u64) << 32) | (len as u64 & 0xffff_ffff)
    }
}

/// The nodes.
#[derive(Default)]
pub(super) struct Nodes {
    /// The first `used` ones are those of this message.
    places: Vec<Node>,
    used: usize,
}

impl Nodes {
    #[inline]
    pub(super) fn as_slice(&self) -> &[Node] {
        self.places.get(..self.used).unwrap_or_default()
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.used
    }

    /// For how many nodes memory is allocated.
    pub(super) fn capacity(&self) -> usize {
        self.places.capacity()
    }

    /// A node by its index. Behind the last one nothing is found, or a node that nobody reads.
    #[inline]
    pub(super) fn place(&mut self, index: u32) -> Option<&mut Node> {
        self.places.get_mut(index as usize)
    }

    /// Keeps the first nodes only.
    #[inline]
    pub(super) fn truncate(&mut self, used: usize) {
        self.used = self.used.min(used);
    }

    #[inline(always)]
    pub(super) fn push(&mut self, node: Node) {
        match self.places.get_mut(self.used) {
            Some(place) => *place = node,
            None => self.push_beyond(node),
        }
        self.used += 1;
    }

    /// Adds `count` nodes, which the caller fills in: the first of these places.
    #[inline(always)]
    pub(super) fn room(&mut self, count: usize) -> &mut [Node] {
        let from = self.used;
        let to = self.used + count;
        if to > self.places.len() {
            self.grow(to);
        }
        self.used = to;
        self.places.get_mut(from..).unwrap_or_default()
    }

    /// Adds nodes that are complete.
    #[inline(always)]
    pub(super) fn extend<const N: usize>(&mut self, nodes: [Node; N]) {
        if let Some(places) = self.room(N).first_chunk_mut() {
            *places = nodes;
        }
    }

    #[cold]
    #[inline(never)]
    fn push_beyond(&mut self, node: Node) {
        self.grow(self.used + 1);
        if let Some(place) = self.places.get_mut(self.used) {
            *place = node;
        }
    }

    /// Makes places for `least` nodes and for a quarter more: these are filled with empty nodes, so
    /// they take memory even if they are never used.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, least: usize) {
        self.places.resize(least + least / 4 + 8, Node::EMPTY);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;

    fn named(name: u32) -> Node {
        Node { name: Sym(name), ..Node::EMPTY }
    }

    fn names(nodes: &Nodes) -> Vec<u32> {
        nodes.as_slice().iter().map(|node| node.name.0).collect()
    }

    #[test]
    fn only_nodes_of_this_message_are_seen() {
        let mut nodes = Nodes::default();
        for name in 0..100 {
            nodes.push(named(name));
        }
        nodes.extend([named(100), named(101)]);
        assert_eq!(names(&nodes), (0..102).collect::<Vec<_>>());
        nodes.truncate(1);
        nodes.truncate(2);
        nodes.room(2)[..2].fill(named(7));
        assert_eq!((names(&nodes), nodes.len()), (vec![0, 7, 7], 3));
        nodes.room(500)[..500].fill(named(8));
        assert_eq!(
            (nodes.len(), nodes.as_slice().last().map(|node| node.name)),
            (503, Some(Sym(8)))
        );
    }
}
