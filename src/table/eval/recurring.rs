//! Structures that recur: what was read in some bytes is kept, and copied where the same bytes come
//! again. Which structures recur, their tables say ([`Layout::recurs`]): they depend on nothing but
//! their own bytes and on dialects.

use super::super::cursor::Cursor;
use super::super::program::Layout;
use super::recent::{Recent, RecentKey, mixed};
use super::{Run, Stop};
use crate::tree::{CopiedNodes, Tree};

/// The structures met so far, by their first bytes.
#[derive(Default)]
pub(super) struct RecurringStructures {
    met: Recent<FirstBytes, SameBeginning>,
    /// How many bytes were kept.
    bytes: usize,
}

/// How many bytes a structure and what follows it have at least: these are its first bytes.
const FIRST_BYTES: usize = 16;
/// How many structures with the same first bytes are kept: clones of an object differ in their last
/// bytes.
const MOST_KEPT: usize = 8;
/// The longest structure that is kept, in bytes, and the one with the most values.
const MOST_BYTES: usize = 256;
const MOST_NODES: usize = 32;
/// When this much was kept, all is forgotten.
const MOST_KEPT_BYTES: usize = 4 << 20;

/// The first bytes of a structure, and which one of which tables it is.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct FirstBytes {
    first: [u8; FIRST_BYTES],
    tables: u32,
    layout: u32,
}

impl RecentKey for FirstBytes {
    #[inline(always)]
    fn hash(&self) -> u64 {
        self.first.as_chunks().0.iter().fold(self.layout.into(), mixed)
    }
}

/// Structures with the same first bytes.
#[derive(Default)]
struct SameBeginning {
    kept: Vec<KeptStructure>,
    /// How many were read to be kept.
    tried: usize,
}

/// A structure that was read.
struct KeptStructure {
    bytes: Box<[u8]>,
    nodes: CopiedNodes,
    /// The dialects on which it depends, and which of them were in use.
    asked: u32,
    dialects: u32,
}

impl Run<'_, Tree> {
    /// Reads a structure that recurs, whose node is open, if the same one was met before. Returns
    /// whether it did. A structure whose first bytes come for the second time is kept.
    pub(super) fn recurring(
        &mut self,
        layout: &Layout,
        node: u32,
        cursor: &mut Cursor<'_>,
    ) -> Result<bool, Stop> {
        #[cfg(test)]
        if super::super::cursor::ONE_BY_ONE.get() {
            return Ok(false);
        }
        let bytes = cursor.rest();
        let first = bytes.first_chunk::<FIRST_BYTES>().filter(|_| cursor.pos().is_multiple_of(8));
        let Some(first) = first else { return Ok(false) };
        let beginning = FirstBytes { first: *first, tables: self.tables.id(), layout: layout.ty.0 };
        let Some(met) = self.state.recurring.met.again(beginning) else { return Ok(false) };
        let dialects = self.state.dialects;
        let same = |kept: &&KeptStructure| {
            bytes.starts_with(&kept.bytes) && dialects & kept.asked == kept.dialects
        };
        let Some(kept) = met.kept.iter().find(same) else {
            return if met.tried < MOST_KEPT {
                self.keep_recurring(beginning, layout, node, cursor)
            } else {
                Ok(false)
            };
        };
        let limits = &self.state.limits;
        // A structure in it counts, too.
        if self.tree.len() as usize + kept.nodes.count() >= limits.nodes as usize
            || self.state.depth + 2 > limits.depth
        {
            return Ok(false);
        }
        self.state.consulted |= kept.asked;
        self.tree.add_copy(node, &kept.nodes, cursor.pos() / 8, cursor.buffer());
        cursor.seek(cursor.pos() + kept.bytes.len() * 8);
        self.tree.close(node, cursor.pos());
        Ok(true)
    }

    /// Reads a structure, and keeps what it read if all of it is in nodes.
    #[inline(never)]
    fn keep_recurring(
        &mut self,
        beginning: FirstBytes,
        layout: &Layout,
        node: u32,
        cursor: &mut Cursor<'_>,
    ) -> Result<bool, Stop> {
        let before = self.tree.checkpoint();
        let start = cursor.pos();
        let bytes = cursor.rest();
        let outer_asked = std::mem::replace(&mut self.state.consulted, 0);
        let result = self.steps(layout, &[], node, cursor);
        self.tree.close(node, cursor.pos());
        let asked = self.state.consulted;
        self.state.consulted |= outer_asked;
        result?;
        let bytes =
            bytes.get(..(cursor.pos() - start) / 8).filter(|bytes| bytes.len() <= MOST_BYTES);
        let nodes =
            self.tree.copy_since(&before, start / 8).filter(|nodes| nodes.count() <= MOST_NODES);
        let all = &mut self.state.recurring;
        if all.bytes > MOST_KEPT_BYTES {
            *all = RecurringStructures::default();
        }
        let Some(met) = all.met.again(beginning) else { return Ok(true) };
        met.tried += 1;
        if let (Some(bytes), Some(nodes)) = (bytes, nodes) {
            all.bytes += size_of::<KeptStructure>() + bytes.len() + nodes.size();
            met.kept.push(KeptStructure {
                bytes: bytes.into(),
                nodes,
                asked,
                dialects: self.state.dialects & asked,
            });
        }
        Ok(true)
    }
}
