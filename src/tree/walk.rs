//! Walking over what a node has below it.

use super::{Node, Sym, Tree, mark};

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

/// A position among the fields of a structure or the elements of a list. Skips children that are
/// only spans, and replaces see-through children by their own children.
#[derive(Clone, Copy)]
pub struct Walk {
    /// The next node to be looked at, and the one after the last.
    at: u32,
    end: u32,
}

impl Walk {
    /// Before the first field or element of the node at an index.
    #[inline(always)]
    pub fn new(index: u32, node: &Node) -> Walk {
        Walk { at: index + 1, end: node.end }
    }

    /// The next one, with its index. Always inlined: the writers' loops keep the place in
    /// registers.
    #[inline(always)]
    pub fn next<'a>(&mut self, nodes: &'a [Node]) -> Option<(u32, &'a Node)> {
        loop {
            let at = self.at;
            let node = nodes.get(..self.end as usize).unwrap_or(nodes).get(at as usize)?;
            self.at = node.end.max(at + 1);
            if node.marks & (mark::SPAN | mark::SEE_THROUGH) == 0 {
                return Some((at, node));
            }
            if node.has(mark::SEE_THROUGH) {
                self.at = at + 1;
            }
        }
    }
}

impl Tree {
    /// The first field with a name among the fields of a structure. What is only a span is no
    /// field.
    pub fn member(&self, parent: u32, name: Sym) -> Option<u32> {
        self.member_or_span(parent, name)
            .filter(|at| self.get(*at).is_some_and(|node| !node.has(mark::SPAN)))
    }

    /// As [`member`](Tree::member); where there is no such field, the first span with that name.
    #[inline]
    pub fn member_or_span(&self, parent: u32, name: Sym) -> Option<u32> {
        let nodes = self.nodes();
        let end = nodes.get(parent as usize)?.end as usize;
        let inside = nodes.get(..end).unwrap_or(nodes);
        let mut at = parent as usize + 1;
        let mut span = None;
        while let Some(node) = inside.get(at) {
            let aside = node.marks & (mark::SPAN | mark::SEE_THROUGH);
            if node.name == name {
                match aside {
                    0 => return Some(at as u32),
                    mark::SPAN => span = span.or(Some(at as u32)),
                    _ => {}
                }
            }
            at = if aside & mark::SEE_THROUGH == 0 {
                (node.end as usize).max(at + 1)
            } else {
                at + 1
            };
        }
        span
    }
}

/// Iterates over the fields of a structure or the elements of a list.
pub struct Members<'a> {
    pub(super) nodes: &'a [Node],
    pub(super) walk: Option<Walk>,
}

impl<'a> Iterator for Members<'a> {
    type Item = (u32, &'a Node);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.walk.as_mut()?.next(self.nodes)
    }
}
