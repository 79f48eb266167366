//! Counts bytes by how well they were understood. Only this file decides how the bytes of a message
//! or event count.
//!
//! Every captured payload byte is counted once, as explained, opaque, undecoded or closed; bytes
//! that were never captured are counted as lost.

use crate::tree::{Buffer, Kind, Tree, mark};

/// Byte counts of a direction, a stream, a service or the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All captured payload bytes.
    pub payload: u64,
    /// Bytes of named fields.
    pub explained: u64,
    /// Bytes without structure by nature, such as compressed sound.
    pub opaque: u64,
    /// Bytes that no field claims.
    pub undecoded: u64,
    /// Bytes that no key opened.
    pub closed: u64,
    /// Bytes that were never captured.
    pub lost: u64,
}

impl Counts {
    /// Whether all bytes were captured and read.
    pub fn is_whole(&self) -> bool {
        self.undecoded == 0 && self.closed == 0 && self.lost == 0
    }

    /// The counts of a message of `length` captured bytes, by its tree.
    pub fn of_message(tree: &Tree, length: usize) -> Counts {
        let payload = length as u64;
        let (opaque, undecoded) = opaque_and_undecoded(tree);
        let explained = payload.saturating_sub(opaque + undecoded);
        Counts {
            payload: payload.max(undecoded),
            explained,
            opaque,
            undecoded,
            ..Counts::default()
        }
    }

    /// Takes some counts out of these, and adds others in their place.
    pub fn exchange(&mut self, old: Counts, new: Counts) {
        let change = |all: &mut u64, old: u64, new: u64| *all = all.saturating_sub(old) + new;
        change(&mut self.payload, old.payload, new.payload);
        change(&mut self.explained, old.explained, new.explained);
        change(&mut self.opaque, old.opaque, new.opaque);
        change(&mut self.undecoded, old.undecoded, new.undecoded);
        change(&mut self.closed, old.closed, new.closed);
        change(&mut self.lost, old.lost, new.lost);
    }

    /// Adds other counts to these.
    pub fn add(&mut self, other: Counts) {
        self.payload += other.payload;
        self.explained += other.explained;
        self.opaque += other.opaque;
        self.undecoded += other.undecoded;
        self.closed += other.closed;
        self.lost += other.lost;
    }
}

/// How many of a message's captured bytes are opaque, and how many no field claims or explains. A
/// region with content of its own (decompressed, decrypted) is split in the proportions of that
/// content.
fn opaque_and_undecoded(tree: &Tree) -> (u64, u64) {
    if tree.is_plain() {
        return (0, 0);
    }
    let mut opaque = 0u64;
    let mut undecoded = 0u64;
    let nodes = tree.nodes();
    let mut at = 0;
    while let Some(node) = nodes.get(at) {
        at += 1;
        let bits = u64::from(node.bits);
        if node.has(mark::OWN_BUFFER) {
            let content = ContentBits::of(tree, at as u32, node.end);
            let part = |n: u64| (bits * n).div_ceil(content.all.max(1));
            opaque += part(content.opaque);
            // A region without content could not be decompressed, so none of its bytes are
            // explained.
            undecoded += if content.all == 0 { bits } else { part(content.undecoded) };
            at = node.end as usize;
        } else if node.buffer == Buffer::CAPTURED {
            if node.kind == Kind::Undecoded || node.has(mark::UNEXPLAINED) {
                undecoded += bits;
            } else if node.has(mark::OPAQUE) {
                opaque += bits;
                at = node.end as usize;
            }
        }
    }
    (opaque / 8, undecoded.div_ceil(8))
}

/// The bits of the nodes that read a region's own buffer.
#[derive(Default)]
struct ContentBits {
    opaque: u64,
    undecoded: u64,
    all: u64,
}

impl ContentBits {
    /// Sums up the nodes from `first` to before `end`.
    fn of(tree: &Tree, first: u32, end: u32) -> ContentBits {
        let nodes = tree.nodes().get(first as usize..end as usize).unwrap_or(&[]);
        let mut sums = ContentBits::default();
        for node in nodes.iter().filter(|n| !matches!(n.kind, Kind::Struct | Kind::List)) {
            let bits = u64::from(node.bits);
            sums.all += bits;
            if node.kind == Kind::Undecoded || node.has(mark::UNEXPLAINED) {
                sums.undecoded += bits;
            } else if node.has(mark::OPAQUE) {
                sums.opaque += bits;
            }
        }
        sums
    }
}
