//! Reads a message into an outline, as long as everything in it is as the tables say.
//!
//! Most messages have nothing unusual: every byte is there, every region ends where its content
//! does. The outline of such a message is the number of its nodes and their marks, and this code
//! counts them without what the evaluator does besides: it makes no node and describes no damage.
//! At the first thing that is otherwise it gives up, and the evaluator reads the message again from
//! its first byte. What it counts must be what the evaluator counts: `tests/it/outlines.rs` and the
//! fuzz targets compare both.

use super::super::cursor::Cursor;
use super::super::last_object::LastObject;
use super::super::program::*;
use super::super::skip::{SkipOp, SkipProgram};
use super::leaf::ordinary_text;
use super::message::HeaderValues;
use super::{Evaluator, MessageStart, Outcome, PaddedBytes, Run, Slots, TreeSink};
use crate::table::Tables;
use crate::tree::{Buffer, DeferredPart, Deferring, Kind, Outline, Severity, TypeRef, mark};

/// Why a message or a part of it cannot be passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopped {
    /// The evaluator would stop here too, short of bytes or of a layout: the region has another
    /// form.
    Misfit,
    /// Only the evaluator can tell.
    Unclear,
}

/// The result of passing over something.
pub(super) type Skipped<T> = Result<T, Stopped>;

impl Run<'_, Outline> {
    /// Reads a message. `None` if the evaluator has to read it. If this is no message, the outline
    /// and the state are as before.
    pub(super) fn skip_message(&mut self, message: MessageStart<'_>) -> Option<Outcome> {
        let MessageStart { bytes, length, .. } = message;
        self.skip(PaddedBytes { bytes, length }, None, |skip| skip.message(message))
    }

    /// Passes over bytes: of a message, or of the part that an outline of it left out.
    #[inline(always)]
    pub(super) fn skip(
        &mut self,
        bytes: PaddedBytes<'_>,
        part: Option<DeferredPart>,
        pass: impl FnOnce(&mut Skip<'_, '_>) -> Skipped<Outcome>,
    ) -> Option<Outcome> {
        let data = bytes.bytes.get(..Cursor::MAX_BYTES).unwrap_or(bytes.bytes);
        let end = data.len().min(bytes.length);
        let (pos, nodes, marks) =
            part.map_or((0, 0, 0), |part| (end.min(part.at as usize), part.nodes, part.marks));
        let place = SkipPlace { pos, end, nodes, noted: false, failed: false };
        let Run { tables, tree, state } = self;
        let buffer = Buffer::CAPTURED;
        let last_object = None;
        let need = None;
        let mut skip = Skip { tables, tree, state, data, buffer, place, marks, last_object, need };
        let outcome = match pass(&mut skip) {
            Ok(outcome) => Some(outcome).filter(|_| !skip.place.noted),
            Err(_) => skip.need.map(Outcome::Need),
        };
        skip.hand_over();
        let errors = self.tree.problems().iter().any(|problem| problem.severity == Severity::Error);
        let whole = !errors && !self.tree.is_partial() && self.tree.len() < self.state.limits.nodes;
        let outcome = outcome.filter(|_| whole);
        if !matches!(outcome, Some(Outcome::Message(..))) {
            self.tree.clear();
            self.state.begin();
        }
        outcome
    }
}

/// Where it is, and what it counted so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct SkipPlace {
    /// The next byte, and the end of the region around it.
    pub(super) pos: usize,
    pub(super) end: usize,
    pub(super) nodes: u32,
    /// Whether the evaluator would have added a note, and an error.
    pub(super) noted: bool,
    pub(super) failed: bool,
}

/// What changes with nearly every step of a program. While its steps run, this is in their hands
/// alone, so that it can stay in registers.
#[derive(Clone, Copy)]
struct Here {
    /// How many bytes are left in the region.
    left: usize,
    nodes: u32,
    marks: u8,
}

impl Here {
    /// Passes over some bytes, with their nodes and all marks of these.
    #[inline(always)]
    fn pass(&mut self, bytes: usize, nodes: u32, marks: u8) -> Skipped<()> {
        if bytes > self.left {
            return Err(Stopped::Misfit);
        }
        self.left -= bytes;
        self.nodes += nodes;
        self.marks |= marks;
        Ok(())
    }
}

/// Passes over one buffer's bytes.
pub(super) struct Skip<'r, 'd> {
    pub(super) tables: &'r Tables,
    pub(super) tree: &'r mut Outline,
    pub(super) state: &'r mut Evaluator,
    pub(super) data: &'d [u8],
    pub(super) buffer: Buffer,
    pub(super) place: SkipPlace,
    /// All marks of the nodes counted so far.
    pub(super) marks: u8,
    /// The object at the message's end, if it may be [deferred](Deferring).
    pub(super) last_object: Option<&'r LastObject>,
    /// How many bytes the message has at least, if a region that no other one contains ends behind
    /// those that are there.
    pub(super) need: Option<usize>,
}

impl<'r, 'd> Skip<'r, 'd> {
    fn message(&mut self, message: MessageStart<'_>) -> Skipped<Outcome> {
        let MessageStart { service, sender, behind, .. } = message;
        let tables = self.tables;
        let service = tables.service(service).ok_or(Stopped::Unclear)?;
        if service.framing.begins.is_some() || service.header.is_empty() {
            return Err(Stopped::Unclear);
        }
        self.count(0, 1);
        let mut header = HeaderValues::default();
        for (role, _, ty) in &service.header {
            let value = self.value(*ty, mark::SPAN, Slots::default())?;
            header.take(*role, value, self.place.pos);
        }
        let id = tables.message_id(service, sender, header.number).ok_or(Stopped::Unclear)?;
        let def = tables.message(id).filter(|def| self.tree.takes(def));
        let layout = def.and_then(|def| def.layout).ok_or(Stopped::Unclear)?;
        if behind.is_some_and(|behind| behind > 0) {
            return Err(Stopped::Unclear);
        }
        let whole = header.whole.or(behind.map(|_| self.place.end));
        if let Some(whole) = whole {
            if whole > self.place.end || whole < self.place.pos {
                return Err(Stopped::Unclear);
            }
            self.place.end = whole;
            self.state.regions += 1;
        }
        let program = tables.skip_program(layout).ok_or(Stopped::Unclear)?;
        match (self.tree.deferring(), whole) {
            (Deferring::Never, _) | (Deferring::Possible, Some(_)) => self.program(program)?,
            (Deferring::Only, Some(_)) => return Err(Stopped::Unclear),
            (_, None) => self.deferring(program)?,
        }
        match whole {
            Some(whole) if whole != self.place.pos => Err(Stopped::Unclear),
            _ => Ok(Outcome::Message(id, self.place.pos)),
        }
    }

    /// Passes over the fields of a structure without arguments.
    pub(super) fn structure(&mut self, layout: LayoutId) -> Skipped<()> {
        self.program(self.tables.skip_program(layout).ok_or(Stopped::Unclear)?)
    }

    /// Runs a program.
    pub(super) fn program(&mut self, program: &SkipProgram) -> Skipped<()> {
        let frame = self.enter(program)?;
        self.steps(program, frame)
    }

    /// Makes room for the kept values of a program.
    #[inline(always)]
    pub(super) fn enter(&mut self, program: &SkipProgram) -> Skipped<Slots> {
        let state = &mut *self.state;
        if state.depth + program.depth > state.limits.depth {
            return Err(Stopped::Unclear);
        }
        state.depth += 1;
        let base = state.top;
        state.top = base + usize::from(program.slots);
        if state.slots.len() < state.top {
            state.slots.resize(state.top, 0);
        }
        Ok(Slots { base, present: 0 })
    }

    pub(super) fn steps(&mut self, program: &SkipProgram, mut frame: Slots) -> Skipped<()> {
        let data = self.data;
        let mut here = self.here();
        let mut ops = program.ops.as_slice();
        loop {
            let Some((op, behind)) = ops.split_first() else { return Err(Stopped::Unclear) };
            ops = behind;
            match *op {
                SkipOp::Fixed { bytes, nodes, marks } => here.pass(bytes as usize, nodes, marks)?,
                SkipOp::FixedKeep { bytes, nodes, back, slot, marks, above } => {
                    here.pass(bytes as usize, nodes.into(), marks)?;
                    let top = self.eight(here, back.into()).wrapping_shl(above.into());
                    self.keep(&mut frame, slot, top.wrapping_shr(above.into()));
                }
                SkipOp::HasFixed { .. } => ops = self.flags(op, ops, frame, &mut here)?,
                SkipOp::Has { slot, otherwise, mask } => {
                    if self.kept(frame, slot).is_none_or(|value| value & mask != mask) {
                        ops = program.from(usize::from(otherwise));
                    }
                }
                SkipOp::Keep { back, slot, above, signed } => {
                    let top = self.eight(here, back).wrapping_shl(above.into());
                    let plain = top.wrapping_shr(above.into());
                    let value =
                        if signed { (top as i64).wrapping_shr(above.into()) as u64 } else { plain };
                    self.keep(&mut frame, slot, value);
                }
                SkipOp::Equals { slot, otherwise, value } => {
                    if self.kept(frame, slot) != Some(value) {
                        ops = program.from(usize::from(otherwise));
                    }
                }
                SkipOp::Differs { slot, otherwise, value } => {
                    if self.kept(frame, slot).is_none_or(|kept| kept == value) {
                        ops = program.from(usize::from(otherwise));
                    }
                }
                SkipOp::Above { slot, otherwise, value } => {
                    if self.kept(frame, slot).is_none_or(|kept| kept <= value) {
                        ops = program.from(usize::from(otherwise));
                    }
                }
                SkipOp::Jump(to) => ops = program.from(to as usize),
                SkipOp::Bool { back } => self.place.noted |= self.byte(here, back) > 1,
                SkipOp::Text { ascii, marks, .. } => {
                    let rest = data.get(self.place.end - here.left..self.place.end).unwrap_or(&[]);
                    match ordinary_text(rest, ascii) {
                        Some((_, length)) => {
                            here.pass(2 + length, 2 + u32::from(length > 0), marks | mark::SPAN)?
                        }
                        None => here = self.unusual_text(op, frame, here)?,
                    }
                }
                SkipOp::Present { marks, otherwise } => {
                    if !self.is_present(&mut here, marks)? {
                        ops = program.from(otherwise as usize);
                    }
                }
                SkipOp::Object { slot, .. } | SkipOp::Value { slot, .. } => {
                    self.put(here);
                    let value = self.nested(op, frame)?;
                    here = self.here();
                    if slot != NO_SLOT {
                        self.keep(&mut frame, slot, value);
                    }
                }
                SkipOp::End => break,
                _ => {
                    self.put(here);
                    // A copy, so that the frame itself stays in registers.
                    let mut lent = frame;
                    if let Some(place) = self.rare(op, program, &mut lent)? {
                        ops = program.from(place as usize);
                    }
                    frame = lent;
                    here = self.here();
                }
            }
        }
        self.put(here);
        self.state.depth -= 1;
        self.state.top = frame.base;
        Ok(())
    }

    /// Passes over fixed bytes that follow if flags are set, and over those of the next operations
    /// that look at the same flags. Returns the operations behind.
    #[inline(always)]
    fn flags<'p>(
        &self,
        op: &SkipOp,
        mut ops: &'p [SkipOp],
        frame: Slots,
        here: &mut Here,
    ) -> Skipped<&'p [SkipOp]> {
        let SkipOp::HasFixed { slot, mut bytes, mut nodes, mut mask, mut marks } = *op else {
            return Ok(ops);
        };
        let value = self.kept(frame, slot).unwrap_or(0) as u32;
        loop {
            if value & mask == mask {
                here.pass(usize::from(bytes), u32::from(nodes), marks)?;
            }
            match ops.split_first() {
                Some((
                    SkipOp::HasFixed { slot: same, bytes: b, nodes: n, mask: m, marks: k },
                    behind,
                )) if *same == slot => {
                    (bytes, nodes, mask, marks, ops) = (*b, *n, *m, *k, behind);
                }
                _ => return Ok(ops),
            }
        }
    }

    /// Passes over a presence. Returns whether something follows.
    #[inline(always)]
    fn is_present(&mut self, here: &mut Here, marks: u8) -> Skipped<bool> {
        here.pass(1, 2, marks)?;
        let present = self.byte(*here, 1);
        self.place.noted |= present > 1;
        here.nodes -= u32::from(present == 0);
        Ok(present != 0)
    }

    /// Passes over a text that has to be looked at more closely.
    fn unusual_text(&mut self, op: &SkipOp, frame: Slots, here: Here) -> Skipped<Here> {
        let SkipOp::Text { native, ty, offset, marks, .. } = *op else {
            return Err(Stopped::Unclear);
        };
        self.put(here);
        self.text(native, ty, marks, frame.from(offset))?;
        Ok(self.here())
    }

    /// Passes over an object, or a value of any type. Returns what is kept of it.
    #[inline(always)]
    fn nested(&mut self, op: &SkipOp, frame: Slots) -> Skipped<u64> {
        match *op {
            SkipOp::Object { family, marks, .. } => self.object(family, marks),
            SkipOp::Value { ty, offset, marks, .. } => self.other(ty, marks, frame.from(offset)),
            _ => Err(Stopped::Unclear),
        }
    }

    /// Runs an operation that few messages have. Returns the place of the next one, if it is not
    /// the one behind.
    #[inline(never)]
    fn rare(
        &mut self,
        op: &SkipOp,
        program: &SkipProgram,
        frame: &mut Slots,
    ) -> Skipped<Option<u32>> {
        match *op {
            SkipOp::Call(layout) => self.structure(layout)?,
            SkipOp::Copy { from, to } => {
                let value = self.kept(*frame, from).unwrap_or(0);
                self.keep(frame, to, value);
            }
            SkipOp::Set { slot, value } => self.keep(frame, slot, u64::from(value)),
            SkipOp::More { otherwise } => {
                return Ok((self.place.pos >= self.place.end).then_some(otherwise));
            }
            SkipOp::Dialect { dialect, spoken, otherwise } => {
                return Ok((self.run().speaks(dialect) != spoken).then_some(otherwise));
            }
            SkipOp::Expect { back, scalar, ty } => {
                let value = scalar.value(self.eight(self.here(), back));
                let def = self.tables.type_def(ty).ok_or(Stopped::Unclear)?;
                let fits = def.expect.is_none_or(|expected| expected == value)
                    && def.max.is_none_or(|max| value <= max);
                self.place.noted |= !fits;
            }
            SkipOp::Compute { expr, offset, slot } => {
                let inner = frame.from(offset);
                let value = self.compute(|run, cursor| run.word(expr, inner, cursor));
                self.keep(frame, slot, value);
            }
            SkipOp::Holds { expr, offset, otherwise } => {
                let inner = frame.from(offset);
                let value = self.compute(|run, cursor| run.expr(expr, inner, cursor));
                return Ok(value.is_none_or(|value| value == 0).then_some(otherwise));
            }
            SkipOp::Switch { on, offset, table, otherwise } => {
                let inner = frame.from(offset);
                let value = self.compute(|run, cursor| run.expr(on, inner, cursor));
                let targets =
                    program.switches.get(usize::from(table)).map_or(&[][..], Vec::as_slice);
                let found = value
                    .and_then(|value| targets.binary_search_by_key(&value, |target| target.0).ok());
                return Ok(Some(
                    found.and_then(|at| targets.get(at)).map_or(otherwise, |target| target.1),
                ));
            }
            SkipOp::Mark(marks) => self.marks |= marks,
            SkipOp::Say(severity) => {
                self.place.noted = true;
                self.place.failed |= severity == Severity::Error;
            }
            SkipOp::Undecoded => return Err(Stopped::Misfit),
            _ => return Err(Stopped::Unclear),
        }
        Ok(None)
    }

    /// Passes over a value of a type, with marks of its field. Returns the value that expressions
    /// see.
    #[inline(always)]
    pub(super) fn value(&mut self, ty: TypeRef, marks: u8, frame: Slots) -> Skipped<u64> {
        let op = self.tables.type_op(ty);
        if op.how != TypeOpKind::Little || op.checked {
            return self.other(ty, marks | op.marks, frame);
        }
        self.pass(usize::from(op.scalar.size))?;
        self.count(marks | op.marks, 1);
        let value = op.scalar.value(self.eight(self.here(), u32::from(op.scalar.size)));
        self.place.noted |= op.scalar.kind == Kind::Bool && value > 1;
        Ok(value)
    }

    pub(super) fn node_limit(&self) -> Skipped<()> {
        if self.place.nodes < self.state.limits.nodes { Ok(()) } else { Err(Stopped::Unclear) }
    }

    /// The evaluator, over the same outline.
    pub(super) fn run(&mut self) -> Run<'_, Outline> {
        Run { tables: self.tables, tree: self.tree, state: self.state }
    }

    /// Lets the evaluator compute something, which needs no nodes.
    #[inline]
    pub(super) fn compute<R>(
        &mut self,
        act: impl FnOnce(&mut Run<'_, Outline>, &Cursor<'_>) -> R,
    ) -> R {
        let cursor = self.cursor();
        act(&mut self.run(), &cursor)
    }

    /// Gives the outline its nodes.
    pub(super) fn hand_over(&mut self) {
        self.tree.cut(self.place.nodes);
        self.tree.several(self.marks, (self.place.nodes - self.tree.len()) as usize);
    }

    pub(super) fn cursor(&self) -> Cursor<'d> {
        Cursor::region(self.data, self.buffer, self.place.pos, self.place.end)
    }

    /// What the steps of a program take along, and give back before anybody else goes on.
    #[inline(always)]
    fn here(&self) -> Here {
        Here { left: self.place.end - self.place.pos, nodes: self.place.nodes, marks: self.marks }
    }

    #[inline(always)]
    fn put(&mut self, here: Here) {
        self.place.pos = self.place.end - here.left;
        self.place.nodes = here.nodes;
        self.marks = here.marks;
    }

    /// Counts nodes, with all their marks together. Returns the index of the first one.
    #[inline(always)]
    pub(super) fn count(&mut self, marks: u8, nodes: u32) -> u32 {
        let first = self.place.nodes;
        self.place.nodes += nodes;
        self.marks |= marks;
        first
    }

    /// Forgets the nodes from an index on.
    pub(super) fn cut(&mut self, index: u32) {
        self.place.nodes = self.place.nodes.min(index);
    }

    #[inline(always)]
    pub(super) fn keep(&mut self, frame: &mut Slots, slot: u16, value: u64) {
        frame.keep(&mut self.state.slots, slot, value);
    }

    #[inline(always)]
    pub(super) fn kept(&self, frame: Slots, slot: u16) -> Option<u64> {
        frame.kept(&self.state.slots, slot)
    }

    /// Passes over some bytes of the region.
    #[inline(always)]
    pub(super) fn pass(&mut self, bytes: usize) -> Skipped<()> {
        if bytes > self.place.end - self.place.pos {
            return Err(Stopped::Misfit);
        }
        self.place.pos += bytes;
        Ok(())
    }

    /// The byte before the next one.
    #[inline(always)]
    pub(super) fn last_byte(&self) -> u8 {
        self.data.get(self.place.pos.wrapping_sub(1)).copied().unwrap_or(0)
    }

    /// Eight bytes as a number, the first one lowest. The first `bytes` of them come before the
    /// next byte.
    pub(super) fn last_eight(&self, bytes: u8) -> u64 {
        self.eight(self.here(), bytes.into())
    }

    /// The next eight bytes as a number, the first one lowest.
    pub(super) fn next_eight(&self) -> u64 {
        self.eight(self.here(), 0)
    }

    /// Eight bytes as a number, the first one lowest, from `back` bytes before a place on. Zeros
    /// follow the buffer's last byte.
    #[inline(always)]
    fn eight(&self, here: Here, back: u32) -> u64 {
        let at = (self.place.end - here.left).wrapping_sub(back as usize);
        match self.data.get(at..).and_then(<[u8]>::first_chunk) {
            Some(eight) => u64::from_le_bytes(*eight),
            None => few(self.data, at),
        }
    }

    /// The byte that is `back` bytes before a place.
    #[inline(always)]
    fn byte(&self, here: Here, back: u32) -> u8 {
        let at = (self.place.end - here.left).wrapping_sub(back as usize);
        self.data.get(at).copied().unwrap_or(0)
    }
}

/// Less than eight bytes, from a place to the end, as a number, the first one lowest.
#[cold]
#[inline(never)]
fn few(bytes: &[u8], at: usize) -> u64 {
    bytes
        .get(at..)
        .unwrap_or(&[])
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}
