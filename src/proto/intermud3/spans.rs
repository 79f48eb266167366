//! The spans of brackets and separators, which lie between the values of a packet.
//!
//! It knows places in a packet, and no values.

use super::nodes::node;
use super::value::PacketRun;
use crate::tree::{Kind, Node, Sym, TextKind, mark};

impl PacketRun<'_> {
    /// The opening bracket as a span.
    pub(super) fn bracket_open(&mut self) {
        self.pos += 2;
        let name = self.types.open_name;
        self.syntax(name, self.pos - 2);
        self.claimed = self.pos;
    }

    /// Adds a span of brackets and separators from the last claimed byte to here, shown from `from`
    /// on. Returns its node.
    pub(super) fn syntax(&mut self, name: Sym, from: usize) -> u32 {
        let kind = Kind::Text(TextKind::Utf8);
        let mut span = node(name, self.types.syntax, kind, self.claimed, self.pos);
        span.value = Node::place(from, self.pos - from);
        span.marks = mark::SPAN;
        self.tree.leaf(span)
    }

    /// Extends a leaf to here.
    #[inline]
    pub(super) fn grow(&mut self, leaf: u32) {
        if let Some(leaf) = self.tree.get_mut(leaf) {
            leaf.bits = ((self.pos * 8) as u32).saturating_sub(leaf.start);
        }
    }
}
