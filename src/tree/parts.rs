//! A tree in parts: for code that stores trees and reads them back, and for code that replaces
//! values.
//!
//! It is made of copies, so nothing that has to be fast uses it.

use super::{Buffer, BufferOrigin, Node, Problem, RecordLink, Sym, Tree};

/// All that a [`Tree`] holds.
#[derive(Clone, Debug, Default)]
pub struct TreeParts {
    /// The nodes, each before its children.
    pub nodes: Vec<Node>,
    /// The problems.
    pub problems: Vec<Problem>,
    /// Links to earlier records.
    pub links: Vec<RecordLink>,
    /// The buffers that decoding made, from [`Buffer`] 1 on.
    pub made: Vec<(Vec<u8>, BufferOrigin)>,
    /// The texts that are the tree's own; nodes and problems refer to places in it.
    pub text: String,
    /// The names that came from the traffic, as start and length in `text`; the first one is
    /// `Sym(Sym::DYNAMIC)`.
    pub names: Vec<(u32, u32)>,
}

impl TreeParts {
    /// Copies what a tree holds. What was here before is gone.
    pub fn copy_of(&mut self, tree: &Tree) {
        self.nodes.clear();
        self.nodes.extend_from_slice(tree.nodes());
        self.problems.clone_from(&tree.problems);
        self.links.clone_from(&tree.links);
        self.made.clear();
        self.made.extend(tree.made.iter().take(tree.made_used).cloned());
        self.text.clone_from(&tree.text);
        self.names.clone_from(&tree.names);
    }

    /// Makes `tree` hold all this. What it held before is gone.
    pub fn put_into(&self, tree: &mut Tree) {
        tree.clear();
        tree.seen = u8::MAX;
        tree.nodes.extend_from_slice(&self.nodes);
        tree.problems.extend_from_slice(&self.problems);
        tree.links.extend_from_slice(&self.links);
        for (bytes, origin) in &self.made {
            let (buffer, mut made) = tree.open_buffer(*origin);
            made.extend_from_slice(bytes);
            tree.put_buffer(buffer, made);
        }
        tree.text.push_str(&self.text);
        tree.names.extend_from_slice(&self.names);
    }

    /// The bytes of a buffer, where `captured` are the message's own; empty where there is no such
    /// buffer.
    pub fn buffer<'a>(&'a self, buffer: Buffer, captured: &'a [u8]) -> &'a [u8] {
        match usize::from(buffer.0).checked_sub(1) {
            None => captured,
            Some(at) => self.made.get(at).map_or(&[], |(bytes, _)| bytes),
        }
    }

    /// The text of a name that came from the traffic.
    pub fn dynamic(&self, name: Sym) -> Option<&str> {
        let (start, length) = *self.names.get(name.0.checked_sub(Sym::DYNAMIC)? as usize)?;
        self.text.get(start as usize..(start as usize).saturating_add(length as usize))
    }
}
