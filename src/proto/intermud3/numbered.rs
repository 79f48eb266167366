//! Values with numbers, as LDMud writes a value that occurs more than once: `<1>=({"a",})` where it
//! is written, `<1>` wherever it occurs again. Also the width that it writes into an empty mapping
//! (`([:2])`).
//!
//! It knows the nodes of such values, and repeats them in bounded space. It knows neither the
//! values themselves nor packets.
//!
//! Grammar: `save_value` in LDMud.

use super::nodes::node;
use super::value::{MAX_DEPTH, MAX_NODES, PacketRun};
use crate::tree::{Kind, Node, Problem, Severity, Sym, TextKind, TypeRef, decode_text, mark};

/// What it costs to repeat a node, in bytes, without its text.
const NODE: usize = 8;

/// All repeated values of a packet together may cost this many times the packet's bytes, and
/// [`SPARE`] more.
const TIMES: usize = 4;

/// What repeated values may cost in the smallest packet.
const SPARE: usize = 1024;

impl PacketRun<'_> {
    /// A `<` in the place of a value: a number that LDMud gave to the value behind it or to an
    /// earlier one, or else an object.
    pub(super) fn angle(&mut self, name: Sym, ty: TypeRef) {
        let Some((number, len)) = self.value_number() else { return self.object(name, ty) };
        match self.peek_at(len) {
            Some(b'=') => self.define(number, len + 1),
            _ => self.again(name, ty, number, len),
        }
    }

    /// How long the width of an empty mapping is that stands `ahead` of the current position, its
    /// colon included.
    pub(super) fn width(&self, ahead: usize) -> Option<usize> {
        let inner = self.bytes.get(self.pos + ahead..self.end)?.strip_prefix(b":")?;
        let digits = inner.iter().take(9).take_while(|b| b.is_ascii_digit()).count();
        (digits > 0 && inner.get(digits..)?.starts_with(b"])")).then_some(digits + 1)
    }

    /// Passes over the width of an empty mapping whose bracket was opened: how many values each key
    /// would have. It belongs to the closing bracket.
    pub(super) fn pass_width(&mut self) {
        if let Some(len) = self.width(0) {
            let text = "how many values a key has in the empty mapping, at byte {a}: LDMud writes \
                        it where it is not one";
            self.say(Severity::Note, self.top.node, text, self.pos);
            self.pos += len;
        }
    }

    /// The number between angle brackets at the current position, and their length.
    pub(super) fn value_number(&self) -> Option<(u32, usize)> {
        let inner = self.bytes.get(self.pos..self.end)?.strip_prefix(b"<")?;
        let digits = inner.iter().take(9).take_while(|b| b.is_ascii_digit()).count();
        let number = std::str::from_utf8(inner.get(..digits)?).ok()?.parse().ok()?;
        (inner.get(digits) == Some(&b'>')).then_some((number, digits + 2))
    }

    /// The value that follows has a number. Numbers count up from 1; LDMud reads no others.
    fn define(&mut self, number: u32, len: usize) {
        let next = self.keep.numbered.len() as u32 + 1;
        if number == next {
            self.say_here(
                Severity::Note,
                "a number for the value at byte {a}: LDMud writes so what occurs more than once",
            );
            self.keep.numbered.push(self.tree.len());
        } else {
            self.say_here(
                Severity::Warning,
                "a number for the value at byte {a} that is not the next one: it is passed over",
            );
        }
        self.pos += len;
        if matches!(self.peek(), None | Some(b',' | b':' | b'}' | b']')) {
            self.say_here(Severity::Error, "a number, and no value behind it at byte {a}");
        }
    }

    /// Forgets the numbers of values that are no longer in the tree. A container that is read again
    /// keeps its own, which stands before it.
    pub(super) fn forget_numbers(&mut self) {
        let len = self.tree.len();
        while self.keep.numbered.pop_if(|node| *node > len).is_some() {}
    }

    /// A value again that was written before.
    fn again(&mut self, name: Sym, ty: TypeRef, number: u32, len: usize) {
        let place =
            number.checked_sub(1).and_then(|at| self.keep.numbered.get(at as usize)).copied();
        let found = place
            .and_then(|at| Some((at, *self.tree.get(at)?)))
            .filter(|(_, n)| !n.has(mark::SPAN));
        let Some((first, value)) = found else {
            self.say_here(Severity::Error, "the number at byte {a} is that of no value before it");
            return self.number_alone(name, len);
        };
        let open =
            first == self.top.node || self.keep.stack.iter().any(|outer| outer.node == first);
        if open {
            self.say_here(
                Severity::Warning,
                "the number at byte {a} is that of the value around it, which is not repeated",
            );
            return self.number_alone(name, len);
        }
        if !self.pay_for(first, value) {
            self.say_here(
                Severity::Warning,
                "the value with the number at byte {a} is too large to be repeated here",
            );
            return self.number_alone(name, len);
        }
        let at = self.pos as i64;
        let written = i64::from(value.start / 8);
        let text =
            "the number at byte {a} stands for the value at byte {b}, which is repeated here";
        self.tree.problem(Problem::new(Severity::Note, self.tree.len(), text, at, written));
        let marks = self.marks(ty) & mark::SECRET;
        self.repeat(first, Node { name, marks: value.marks | marks, ..value }, len);
    }

    /// The number as it is written, where the value is not repeated.
    fn number_alone(&mut self, name: Sym, len: usize) {
        let next = self.pos + len;
        let mut leaf = node(name, self.types.text, Kind::Text(TextKind::Utf8), self.claimed, next);
        leaf.value = Node::place(self.pos, len);
        let index = self.tree.leaf(leaf);
        self.pos = next;
        self.complete(index, index);
    }

    /// Adds what it costs to repeat a value to what was repeated. Returns whether it may be
    /// repeated here: within the bounds of cost and depth, and only if all of it was read.
    fn pay_for(&mut self, first: u32, value: Node) -> bool {
        let most = self.bytes.len() * TIMES + SPARE;
        let count = value.end.saturating_sub(first);
        self.repeated += NODE;
        let nodes = count as usize * NODE;
        if self.repeated + nodes > most || self.tree.len() + count > MAX_NODES {
            return false;
        }
        self.repeated += nodes;
        let mut text = 0;
        let mut depth = 0;
        let mut ends = std::mem::take(&mut self.keep.ends);
        ends.clear();
        for at in first..value.end {
            let Some(inner) = self.tree.get(at) else { break };
            while ends.pop_if(|end| *end <= at).is_some() {}
            match inner.kind {
                Kind::Undecoded => text = most,
                Kind::Text(_) if !inner.has(mark::SPAN) => text += inner.content().1,
                _ => {}
            }
            text += self.tree.dynamic(inner.name).map_or(0, |name| name.raw().len());
            if inner.end > at + 1 {
                ends.push(inner.end);
                depth = depth.max(ends.len());
            }
        }
        self.keep.ends = ends;
        self.repeated += text;
        self.repeated <= most && usize::from(self.top.level) + depth <= usize::from(MAX_DEPTH)
    }

    /// Adds the nodes of a value once more. They take no bytes: those of the number belong to the
    /// value as a whole.
    fn repeat(&mut self, first: u32, value: Node, len: usize) {
        let from = self.pos;
        self.pos += len;
        let index = self.copy(value);
        if !matches!(value.kind, Kind::Struct | Kind::List) {
            return self.complete(index, index);
        }
        self.syntax(self.types.open_name, from);
        self.claimed = self.pos;
        let mut open = std::mem::take(&mut self.keep.open);
        open.clear();
        for at in first + 1..value.end {
            while let Some((_, copy)) = open.pop_if(|(end, _)| *end <= at) {
                self.tree.close(copy, self.claimed * 8);
            }
            let Some(inner) = self.tree.get(at).copied().filter(|inner| !inner.has(mark::SPAN))
            else {
                continue;
            };
            let copy = self.copy(inner);
            if matches!(inner.kind, Kind::Struct | Kind::List) {
                open.push((inner.end, copy));
            }
        }
        while let Some((_, copy)) = open.pop() {
            self.tree.close(copy, self.claimed * 8);
        }
        self.keep.open = open;
        let last = self.syntax(self.types.close_name, self.pos);
        self.complete(index, last);
    }

    /// Adds a node like another one, with no bytes. Its text becomes the tree's own, because the
    /// bytes of the text belong to the other node.
    fn copy(&mut self, of: Node) -> u32 {
        let mut copy = Node { start: (self.claimed * 8) as u32, bits: 0, ..of };
        if let Kind::Text(kind) = of.kind {
            let mut text = std::mem::take(&mut self.keep.text);
            text.clear();
            if kind == TextKind::Owned {
                text.push_str(self.tree.owned(of.value).raw());
            } else {
                let (start, len) = of.content();
                decode_text(kind, self.bytes.get(start..start + len).unwrap_or(&[]), &mut text);
            }
            copy.value = self.tree.own_text(&text);
            copy.kind = Kind::Text(TextKind::Owned);
            self.keep.text = text;
        }
        self.tree.leaf(copy)
    }
}
