//! The structures of a message whose content was copied from an earlier one: their texts are
//! copied, too.

use super::super::copied_texts::CopiedTexts;
use super::super::scratch::{TextMark, TextWriter};
use crate::tree::StructureCopy;

/// Deeper than this, no text is copied: within it something may lie too deep for JSON.
const DEPTH: u8 = 60;
/// As deep is nothing.
const NOWHERE: u8 = u8::MAX;

/// Goes through these structures, in the order in which they are written.
pub(super) struct CopiesToWrite<'a> {
    /// Those that were not met yet.
    rest: &'a [StructureCopy],
    /// The first one of them; no index is larger where there are none.
    next: u32,
    texts: &'a mut CopiedTexts,
    /// The structure whose text is to be kept: its number, how deep it lies, and where its text
    /// begins.
    number: u64,
    depth: u8,
    begin: TextMark,
}

impl<'a> CopiesToWrite<'a> {
    /// Those of a tree from an index on. Where secrets are hidden there must be none: a copy may
    /// have some.
    #[inline(always)]
    pub(super) fn new(
        rest: &'a [StructureCopy],
        index: u32,
        texts: &'a mut CopiedTexts,
    ) -> CopiesToWrite<'a> {
        let mut copies = CopiesToWrite {
            rest,
            next: 0,
            texts,
            number: 0,
            depth: NOWHERE,
            begin: TextMark::default(),
        };
        copies.pass(index);
        copies
    }

    /// Leaves those before an index behind.
    #[inline(always)]
    fn pass(&mut self, index: u32) {
        while let Some((first, behind)) = self.rest.split_first() {
            if first.node >= index {
                self.next = first.node;
                return;
            }
            self.rest = behind;
        }
        self.next = u32::MAX;
    }

    /// Appends the text of a structure, if it is one of them and its text is known. Returns whether
    /// it did. If the text is not known, it is to be kept once it is written.
    #[inline(always)]
    pub(super) fn write(&mut self, index: u32, depth: u8, w: &mut TextWriter<'_>) -> bool {
        index >= self.next && w.by_copy(|w| self.write_due(index, depth, w))
    }

    #[inline(never)]
    fn write_due(&mut self, index: u32, depth: u8, w: &mut TextWriter<'_>) -> bool {
        self.pass(index);
        let Some(copy) = self.rest.first().filter(|copy| copy.node == index && depth < DEPTH)
        else {
            return false;
        };
        if let Some(text) = self.texts.find(copy.number) {
            w.raw(text);
            self.pass(index + 1);
            return true;
        }
        (self.number, self.depth, self.begin) = (copy.number, depth + 1, w.mark());
        false
    }

    /// Keeps the text of the structure that ends at this depth, if it is to be kept.
    #[inline(always)]
    pub(super) fn end(&mut self, depth: u8, w: &mut TextWriter<'_>) {
        if depth == self.depth {
            w.by_copy(|w| self.keep(w));
        }
    }

    #[cold]
    #[inline(never)]
    fn keep(&mut self, w: &TextWriter<'_>) {
        self.depth = NOWHERE;
        if let Some(text) = w.since(self.begin) {
            self.texts.keep(self.number, text);
        }
    }
}
