//! Finds runs of fields: those whose offsets are known before anything is read.

use super::super::program::*;
use crate::hashing::SeededSet;
use crate::tree::{Kind, Node, Sym, TypeRef, mark};

/// The fewest nodes of a run: a shorter one saves nothing.
const LEAST: usize = 2;
/// The most nodes of a run: a short message would fail to read a long run, and then read its fields
/// one by one.
const MOST: usize = 64;
/// A structure of more nodes is not part of a run, because each field of its type would have to
/// count them again.
const LARGEST: usize = 256;
/// Structures within structures of one run.
const DEPTH: usize = 8;

/// Finds the runs of a program, and puts the number of each into the step that begins it.
pub(super) fn find(p: &mut Program) {
    let targets = targets(&p.steps);
    let mut found = Vec::new();
    for layout in p.layouts.iter().filter(|layout| layout.positions.is_none()) {
        let steps = p.steps.iter().enumerate().skip(layout.start as usize);
        let mut covered = 0;
        for (at, _) in steps.take_while(|(_, op)| !matches!(op, LayoutStep::End)) {
            // A jump may enter in the middle of a longer run, so its target begins a run of its
            // own.
            if at < covered && !targets.contains(&(at as u32)) {
                continue;
            }
            let mut run = Building::default();
            let mut next = at;
            while run.nodes.len() < MOST
                && p.steps.get(next).is_some_and(|op| run.field(p, op, true, DEPTH))
            {
                next += 1;
            }
            covered = covered.max(next);
            if run.nodes.len() >= LEAST {
                found.push((at, run.done(next as u32)));
            }
        }
    }
    for (at, fixed) in found {
        if let Some(LayoutStep::Field { fixed: place, .. }) = p.steps.get_mut(at) {
            p.runs.push(fixed);
            *place = p.runs.len() as u32;
        }
    }
}

/// The steps that others jump to.
fn targets(ops: &[LayoutStep]) -> SeededSet<u32> {
    let mut all = SeededSet::default();
    for op in ops {
        match op {
            LayoutStep::Branch { otherwise, .. } => all.extend([*otherwise]),
            LayoutStep::Jump(to) => all.extend([*to]),
            LayoutStep::Switch { targets, otherwise, .. } => {
                all.extend(targets.iter().map(|t| t.1).chain([*otherwise]))
            }
            _ => {}
        }
    }
    all
}

#[derive(Default)]
struct Building {
    nodes: Vec<RunNode>,
    kept: Vec<(RunValue, u16)>,
    bytes: u32,
    checked: bool,
    telling: Vec<u32>,
}

impl Building {
    /// Adds a field, if its place is known.
    fn field(&mut self, p: &Program, op: &LayoutStep, outermost: bool, depth: usize) -> bool {
        let LayoutStep::Field { name, ty, slot, marks, op, .. } = op else { return false };
        match op.how {
            // A tree does not list such a span. Only the steps themselves see it.
            TypeOpKind::Little if op.telling && (*marks | op.marks) & mark::SPAN != 0 => false,
            TypeOpKind::Little => {
                let value = self.number(*name, *ty, *marks, op);
                if outermost && *slot != NO_SLOT {
                    self.kept.push((value, *slot));
                }
                true
            }
            TypeOpKind::Layout => {
                depth > 0 && self.structure(p, *name, *marks, LayoutId(op.by), depth - 1)
            }
            _ => false,
        }
    }

    /// The finished run; `next` is the step behind it.
    fn done(self, next: u32) -> FixedRun {
        let Building { nodes, kept, bytes, checked, telling } = self;
        let marks = nodes.iter().fold(0, |all, node| all | node.node.marks);
        let bools: Box<[u32]> =
            nodes.iter().filter(|node| node.node.kind == Kind::Bool).map(|node| node.at).collect();
        let signed = (0..)
            .zip(&nodes)
            .filter(|(_, node)| node.is_signed())
            .map(|(index, _)| index)
            .collect();
        FixedRun {
            bytes,
            next,
            marks,
            unusual: checked || !bools.is_empty() || !telling.is_empty(),
            checked,
            nodes: nodes.into(),
            kept: kept.into(),
            signed,
            bools,
            telling: telling.into(),
        }
    }

    fn number(&mut self, name: Sym, ty: TypeRef, marks: u8, op: &TypeOp) -> RunValue {
        let bits = u32::from(op.scalar.size) * 8;
        let value = RunValue { bits: op.scalar.bits(), at: self.bytes };
        if op.telling {
            self.telling.push(self.nodes.len() as u32);
        }
        self.add(Node {
            value: value.bits.mask,
            name,
            ty,
            bits,
            kind: op.scalar.kind,
            marks,
            ..Node::EMPTY
        });
        self.checked |= op.checked;
        self.bytes += u32::from(op.scalar.size);
        value
    }

    /// A structure, all of it or nothing.
    fn structure(
        &mut self,
        p: &Program,
        name: Sym,
        marks: u8,
        layout: LayoutId,
        depth: usize,
    ) -> bool {
        let Some(layout) = p.layouts.get(layout.0 as usize) else { return false };
        let index = self.nodes.len();
        let bytes = self.bytes;
        self.add(Node { name, ty: layout.ty, marks, ..Node::EMPTY });
        for op in p.steps.get(layout.start as usize..).unwrap_or(&[]) {
            if matches!(op, LayoutStep::End) {
                let end = self.nodes.len() as u32;
                if let Some(RunNode { node, .. }) = self.nodes.get_mut(index) {
                    node.end = end;
                    node.bits = (self.bytes - bytes) * 8;
                }
                return true;
            }
            if self.nodes.len() >= LARGEST || !self.field(p, op, false, depth) {
                break;
            }
        }
        self.nodes.truncate(index);
        self.telling.retain(|at| (*at as usize) < index);
        self.bytes = bytes;
        false
    }

    /// Adds a node where the run's bytes end so far.
    fn add(&mut self, node: Node) {
        let start = self.bytes * 8;
        let end = self.nodes.len() as u32 + 1;
        self.nodes.push(RunNode { node: Node { start, end, ..node }, at: self.bytes });
    }
}
