//! Runs of fields whose places are known before anything is read: numbers, and structures of nothing else, one after the other.
//! Their nodes are made ready when tables are loaded; reading them is one check of the length and a copy with the values put in.
//!
//! Of the 88 values that a message of captured game traffic has on average, 50 stand in such runs; with them its 23,100 instructions,
//! counted, became 21,700.
//!
//! Where a run cannot be read as one (it begins within a byte, the bytes end too early), its fields are read as any others.

use std::collections::HashSet;

use super::program::*;
use super::quick::{Bits, How, Quick};
use crate::tree::{Buffer, Kind, Node, Sym, TypeRef};

/// A run.
#[derive(Debug, Clone)]
pub struct Fixed {
    /// All its bytes.
    pub(crate) bytes: u32,
    /// The step behind it.
    pub(crate) next: u32,
    /// All marks of its nodes together.
    pub(crate) marks: u8,
    /// Whether some value is held against what is expected.
    pub(crate) checked: bool,
    pub(crate) nodes: Box<[Template]>,
    /// Values that are kept, and where.
    pub(crate) kept: Box<[(Value, u16)]>,
    /// Which of its bytes are booleans, that may have other values than they should.
    pub(crate) bools: Box<[u32]>,
}

/// A value of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Value {
    /// Among the eight bytes from there on; none for a structure.
    bits: Bits,
    /// Where its bytes are in the run.
    at: u32,
}

impl Value {
    /// The value, where the run's bytes are these, with eight more behind them.
    #[inline(always)]
    pub(crate) fn of(self, bytes: &[u8]) -> u64 {
        let at = self.at as usize;
        let eight = bytes.get(at..at + 8).and_then(|eight| eight.first_chunk());
        self.bits.value(eight.map_or(0, |eight| u64::from_le_bytes(*eight)))
    }
}

/// A node of a run: `start` counts from the run's first bit, `end` from its first node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Template {
    pub(crate) node: Node,
    pub(crate) value: Value,
}

impl Template {
    /// The node with its value, where the run's bytes are these, its first bit is `start` and its first node `first`.
    #[inline(always)]
    pub(crate) fn filled(&self, bytes: &[u8], start: u32, first: u32, buffer: Buffer) -> Node {
        let Node { start: from, end, .. } = self.node;
        Node { value: self.value.of(bytes), start: from + start, end: end + first, buffer, ..self.node }
    }
}

/// Runs of fewer nodes are not worth it.
const LEAST: usize = 2;
/// Longer ones are cut, so that a short message is not held up by a long run that does not fit.
const MOST: usize = 64;
/// Structures within structures of one run.
const DEPTH: usize = 8;

/// Finds the runs of a program; each step that begins one is told.
pub(super) fn find(p: &mut Program) {
    let targets = targets(&p.ops);
    let mut found = Vec::new();
    for layout in p.layouts.iter().filter(|layout| layout.positions.is_none()) {
        let steps = p.ops.iter().enumerate().skip(layout.start as usize);
        let mut covered = 0;
        for (at, _) in steps.take_while(|(_, op)| !matches!(op, Op::End)) {
            // What is jumped to begins a run of its own, whatever runs pass over it.
            if at < covered && !targets.contains(&(at as u32)) {
                continue;
            }
            let mut run = Building::default();
            let mut next = at;
            while run.nodes.len() < MOST && p.ops.get(next).is_some_and(|op| run.field(p, op, true, DEPTH)) {
                next += 1;
            }
            covered = covered.max(next);
            if run.nodes.len() >= LEAST {
                found.push((at, run.done(next as u32)));
            }
        }
    }
    for (at, fixed) in found {
        if let Some(Op::Field { fixed: place, .. }) = p.ops.get_mut(at) {
            p.fixed.push(fixed);
            *place = p.fixed.len() as u32;
        }
    }
}

/// The steps that others jump to.
fn targets(ops: &[Op]) -> HashSet<u32> {
    let mut all = HashSet::new();
    for op in ops {
        match op {
            Op::Branch { otherwise, .. } => all.extend([*otherwise]),
            Op::Jump(to) => all.extend([*to]),
            Op::Switch { targets, otherwise, .. } => all.extend(targets.iter().map(|t| t.1).chain([*otherwise])),
            _ => {}
        }
    }
    all
}

#[derive(Default)]
struct Building {
    nodes: Vec<Template>,
    kept: Vec<(Value, u16)>,
    bytes: u32,
    checked: bool,
}

impl Building {
    /// Adds a field, if its place is known.
    fn field(&mut self, p: &Program, op: &Op, outermost: bool, depth: usize) -> bool {
        let Op::Field { name, ty, slot, marks, quick, .. } = op else { return false };
        match quick.how {
            How::Little => {
                let value = self.number((*name, *ty, *marks), quick);
                if outermost && *slot != NO_SLOT {
                    self.kept.push((value, *slot));
                }
                true
            }
            How::Layout => depth > 0 && self.structure(p, (*name, *marks), LayoutId(quick.by), depth - 1),
            _ => false,
        }
    }

    /// The run, behind which the step `next` stands.
    fn done(self, next: u32) -> Fixed {
        let Building { nodes, kept, bytes, checked } = self;
        let marks = nodes.iter().fold(0, |all, t| all | t.node.marks);
        let bools = nodes.iter().filter(|t| t.node.kind == Kind::Bool).map(|t| t.value.at).collect();
        Fixed { bytes, next, marks, checked, nodes: nodes.into(), kept: kept.into(), bools }
    }

    fn number(&mut self, (name, ty, marks): (Sym, TypeRef, u8), quick: &Quick) -> Value {
        let bits = u32::from(quick.scalar.size) * 8;
        let template = self.template((name, ty, marks), quick.scalar.kind, bits);
        let value = Value { bits: quick.scalar.bits(), ..template.value };
        self.nodes.push(Template { value, ..template });
        self.checked |= quick.checked;
        self.bytes += u32::from(quick.scalar.size);
        value
    }

    /// A structure, all of it or nothing.
    fn structure(&mut self, p: &Program, (name, marks): (Sym, u8), layout: LayoutId, depth: usize) -> bool {
        let Some(layout) = p.layouts.get(layout.0 as usize) else { return false };
        let (index, bytes) = (self.nodes.len(), self.bytes);
        let template = self.template((name, layout.ty, marks), Kind::Struct, 0);
        self.nodes.push(template);
        for op in p.ops.get(layout.start as usize..).unwrap_or(&[]) {
            if matches!(op, Op::End) {
                let end = self.nodes.len() as u32;
                if let Some(t) = self.nodes.get_mut(index) {
                    t.node.end = end;
                    t.node.bits = (self.bytes - bytes) * 8;
                }
                return true;
            }
            if !self.field(p, op, false, depth) {
                break;
            }
        }
        self.nodes.truncate(index);
        self.bytes = bytes;
        false
    }

    fn template(&self, (name, ty, marks): (Sym, TypeRef, u8), kind: Kind, bits: u32) -> Template {
        let (start, end) = (self.bytes * 8, self.nodes.len() as u32 + 1);
        let node = Node { value: 0, name, ty, start, bits, end, buffer: Buffer::CAPTURED, kind, marks };
        Template { node, value: Value { bits: Bits::NONE, at: self.bytes } }
    }
}
