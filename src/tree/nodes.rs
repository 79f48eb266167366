//! A node of the tree. How nodes are nested is not known here.

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
