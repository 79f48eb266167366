//! The trees of a batch's messages. They stay where they are while batches come and go, so that
//! each is read into its place and none is moved.
//!
//! It knows no message.

use crate::tree::Tree;

/// Trees, the used ones first.
#[derive(Default)]
pub(super) struct BatchTrees {
    all: Vec<Tree>,
    used: usize,
    /// Whether the last used one is still to be taken from whoever read it.
    awaited: bool,
}

impl BatchTrees {
    /// Returns the place of a tree that [`take`](BatchTrees::take) brings next.
    pub(super) fn await_next(&mut self) -> usize {
        self.awaited = true;
        self.free();
        self.use_free()
    }

    /// Swaps the awaited tree for an unused one. The content of that one is arbitrary. Without an
    /// awaited tree, nothing happens.
    pub(super) fn take(&mut self, tree: &mut Tree) {
        if std::mem::take(&mut self.awaited)
            && let Some(place) = self.used.checked_sub(1).and_then(|last| self.all.get_mut(last))
        {
            std::mem::swap(place, tree);
        }
    }

    /// The first unused tree. Its content stays until [`use_free`](BatchTrees::use_free) makes it a
    /// used one, or somebody reads into it again.
    #[inline]
    #[allow(clippy::indexing_slicing)] // it is there
    pub(super) fn free(&mut self) -> &mut Tree {
        if self.used >= self.all.len() {
            self.all.resize_with(self.used + 1, Tree::new);
        }
        &mut self.all[self.used]
    }

    /// The first unused tree is used now. Returns its place.
    #[inline]
    pub(super) fn use_free(&mut self) -> usize {
        self.used += 1;
        self.used - 1
    }

    /// The first unused tree, as it was left.
    pub(super) fn get_free(&self) -> Option<&Tree> {
        self.all.get(self.used)
    }

    /// A used tree.
    pub(super) fn get(&self, at: usize) -> Option<&Tree> {
        self.all.get(at)
    }

    /// A used tree.
    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Tree> {
        self.all.get_mut(at)
    }

    /// From now on all are unused. They retain up to `keep` bytes together.
    pub(super) fn clear(&mut self, keep: usize) {
        (self.used, self.awaited) = (0, false);
        let mut left = keep;
        self.all.retain(|tree| match left.checked_sub(size_of::<Tree>() + tree.allocated()) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        });
    }
}
