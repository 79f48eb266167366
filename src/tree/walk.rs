//! Walking over what a node has below it.

use super::{Node, Tree, mark};

/// Iterates over the children of a node.
pub struct Children<'a> {
    pub(super) tree: &'a Tree,
    pub(super) next: u32,
    pub(super) end: u32,
}

impl<'a> Iterator for Children<'a> {
    type Item = (u32, &'a Node);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.end {
            return None;
        }
        let index = self.next;
        let node = self.tree.get(index)?;
        self.next = node.end.max(index + 1);
        Some((index, node))
    }
}

/// Iterates over the fields of a structure or the elements of a list.
pub struct Members<'a>(pub(super) Children<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = (u32, &'a Node);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (index, node) = self.0.next()?;
            if node.marks & (mark::SPAN | mark::SEE_THROUGH) == 0 {
                return Some((index, node));
            }
            if node.has(mark::SEE_THROUGH) {
                self.0.next = index + 1;
            }
        }
    }
}
