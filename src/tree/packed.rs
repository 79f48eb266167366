//! Trees of many messages, packed one after another: what is kept when a message's tree is needed for the next one.
//!
//! A few large vectors instead of many small ones: adding a tree copies it and allocates nothing once warm.

use super::{Link, Made, Node, Problem, Tree};

/// Trees in the order they were added.
#[derive(Default)]
pub struct PackedTrees {
    nodes: Vec<Node>,
    problems: Vec<Problem>,
    links: Vec<Link>,
    /// The contents of made buffers, and how long each is and how it was made.
    made: Vec<u8>,
    buffers: Vec<(usize, Made)>,
    text: String,
    names: Vec<(u32, u32)>,
    /// Where each tree ends.
    ends: Vec<Ends>,
}

#[derive(Clone, Copy, Default)]
struct Ends {
    nodes: usize,
    problems: usize,
    links: usize,
    made: usize,
    buffers: usize,
    text: usize,
    names: usize,
}

impl PackedTrees {
    /// Adds a copy of a tree; returns its place.
    pub fn push(&mut self, tree: &Tree) -> usize {
        self.nodes.extend_from_slice(&tree.nodes);
        self.problems.extend_from_slice(&tree.problems);
        self.links.extend_from_slice(&tree.links);
        for (bytes, made) in tree.made.iter().take(tree.made_used) {
            self.made.extend_from_slice(bytes);
            self.buffers.push((bytes.len(), *made));
        }
        self.text.push_str(&tree.text);
        self.names.extend_from_slice(&tree.names);
        self.ends.push(self.end());
        self.ends.len() - 1
    }

    /// Makes a tree what the one at a place was.
    pub fn unpack(&self, at: usize, tree: &mut Tree) {
        tree.clear();
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or_default();
        let Some(end) = self.ends.get(at) else { return };
        // Which marks there are was not kept.
        tree.seen = u8::MAX;
        tree.nodes.extend_from_slice(self.nodes.get(start.nodes..end.nodes).unwrap_or(&[]));
        tree.problems.extend_from_slice(self.problems.get(start.problems..end.problems).unwrap_or(&[]));
        tree.links.extend_from_slice(self.links.get(start.links..end.links).unwrap_or(&[]));
        let mut from = start.made;
        for (length, made) in self.buffers.get(start.buffers..end.buffers).unwrap_or(&[]) {
            let (buffer, mut bytes) = tree.open_buffer(*made);
            bytes.extend_from_slice(self.made.get(from..from + length).unwrap_or(&[]));
            tree.put_buffer(buffer, bytes);
            from += length;
        }
        tree.text.push_str(self.text.get(start.text..end.text).unwrap_or(""));
        tree.names.extend_from_slice(self.names.get(start.names..end.names).unwrap_or(&[]));
    }

    /// How many bytes they take.
    pub fn bytes(&self) -> usize {
        size_of_val(self.nodes.as_slice())
            + size_of_val(self.problems.as_slice())
            + size_of_val(self.links.as_slice())
            + self.made.len()
            + size_of_val(self.buffers.as_slice())
            + self.text.len()
            + size_of_val(self.names.as_slice())
            + size_of_val(self.ends.as_slice())
    }

    /// Empties them, keeping of each part what was allocated up to so many bytes.
    pub fn clear(&mut self, keep: usize) {
        clear(&mut self.nodes, keep);
        clear(&mut self.problems, keep);
        clear(&mut self.links, keep);
        clear(&mut self.made, keep);
        clear(&mut self.buffers, keep);
        self.text.clear();
        self.text.shrink_to(keep);
        clear(&mut self.names, keep);
        clear(&mut self.ends, keep);
    }

    fn end(&self) -> Ends {
        Ends {
            nodes: self.nodes.len(),
            problems: self.problems.len(),
            links: self.links.len(),
            made: self.made.len(),
            buffers: self.buffers.len(),
            text: self.text.len(),
            names: self.names.len(),
        }
    }
}

fn clear<T>(all: &mut Vec<T>, keep: usize) {
    all.clear();
    all.shrink_to(keep / size_of::<T>().max(1));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use crate::tree::{Buffer, Kind, LinkKind, Severity, Sym, TypeRef};

    /// A tree in which every part holds something that tells it from the others.
    fn tree(n: u32) -> Tree {
        let mut tree = Tree::new();
        let (buffer, mut bytes) = tree.open_buffer(Made::Decompressed);
        bytes.extend(std::iter::repeat_n(n as u8, n as usize));
        tree.put_buffer(buffer, bytes);
        let value = tree.own_text(&format!("text {n}"));
        let name = tree.dynamic_name(&format!("name {n}"));
        for _ in 0..=n {
            let node =
                Node { value, name, ty: TypeRef(n), start: 0, bits: n, end: 0, buffer, kind: Kind::Bytes, marks: 0 };
            tree.leaf(node);
        }
        tree.problem(Problem::new(Severity::Note, 0, "odd", i64::from(n), 0));
        tree.link(LinkKind::SentAgain, 0, u64::from(n), 5);
        tree
    }

    #[test]
    fn every_tree_comes_out_as_it_went_in_whatever_was_there_before() {
        let mut packed = PackedTrees::default();
        assert_eq!((packed.push(&tree(3)), packed.push(&Tree::new()), packed.push(&tree(1))), (0, 1, 2));
        let mut out = tree(9);
        for (at, n) in [(2, 1u32), (0, 3), (2, 1)] {
            packed.unpack(at, &mut out);
            let nodes = out.nodes();
            assert_eq!(nodes.len(), n as usize + 1);
            assert_eq!(out.owned(nodes[0].value), format!("text {n}"));
            assert_eq!(out.dynamic(nodes[0].name), Some(format!("name {n}").as_str()));
            assert_eq!(out.bytes(Buffer(1), &[]), vec![n as u8; n as usize]);
            assert_eq!(out.made(Buffer(1)), Some(Made::Decompressed));
            assert_eq!((out.problems()[0].a, out.links()[0].record), (i64::from(n), u64::from(n)));
        }
        packed.unpack(1, &mut out);
        assert!(out.is_empty() && out.problems().is_empty() && out.links().is_empty());
        assert_eq!(out.dynamic(Sym(Sym::DYNAMIC)), None);
    }

    #[test]
    fn a_giant_leaves_nothing_behind() {
        let mut packed = PackedTrees::default();
        packed.push(&tree(100_000));
        assert!(packed.bytes() > 3_000_000);
        packed.clear(1000);
        assert_eq!(packed.bytes(), 0);
        assert!(packed.nodes.capacity() * size_of::<Node>() <= 1000 && packed.made.capacity() <= 1000);
    }
}
