//! Reads a message into an outline, as long as everything in it is as the tables say.
//!
//! Most messages have nothing unusual: every byte is there, every region ends where its content does. The outline of such a message is the number of its nodes and their marks, and this
//! code counts them without what the evaluator does besides: it makes no node and describes no damage. At the first thing that is otherwise it gives up, and the evaluator reads the
//! message again from its first byte. What it counts must be what the evaluator counts: `tests/it/outlines.rs` and the fuzz targets compare both.

use super::super::cursor::Cursor;
use super::super::program::*;
use super::super::skip::{SkipOp, SkipProgram};
use super::extent::Count;
use super::message::HeaderValues;
use super::{Field, MessageStart, Outcome, Run, Slots, TreeSink};
use crate::tree::{Buffer, Deferring, Kind, Outline, Problem, ProblemText, Severity, Sym, TypeRef, mark};

/// What a text with code consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkippedText {
    /// How many bytes come before the text itself.
    pub before: usize,
    /// How many bytes the text has.
    pub text: usize,
    /// How many nodes its code would add.
    pub nodes: u32,
    /// The note that it would add to its node.
    pub note: Option<&'static str>,
}

/// Why a message or a part of it cannot be passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopped {
    /// The evaluator would stop here too, short of bytes or of a layout: the region has another form.
    Misfit,
    /// Only the evaluator can tell.
    Unclear,
}

/// The result of passing over something.
pub(super) type Skipped<T> = Result<T, Stopped>;

impl Run<'_, Outline> {
    /// Reads a message. `None` if the evaluator has to read it; then the outline and the state are as before.
    pub(super) fn skip_message(&mut self, message: MessageStart<'_>) -> Option<Outcome> {
        let data = message.bytes.get(..Cursor::MAX_BYTES).unwrap_or(message.bytes);
        let slots = std::mem::take(&mut self.state.slots);
        let place = SkipPlace { pos: 0, end: data.len(), nodes: 0, noted: false, failed: false };
        let mut skip = Skip { run: self, data, buffer: Buffer::CAPTURED, place, marks: 0, slots, last_object: None };
        let outcome = skip.message(message).ok().filter(|_| !skip.place.noted);
        skip.hand_over();
        let errors = self.tree.problems().iter().any(|problem| problem.severity == Severity::Error);
        let whole = !errors && !self.tree.is_partial() && self.tree.len() < self.state.limits.nodes;
        let outcome = outcome.filter(|_| whole);
        if outcome.is_none() {
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

/// Passes over one buffer's bytes.
pub(super) struct Skip<'r, 'a, 'd> {
    pub(super) run: &'r mut Run<'a, Outline>,
    pub(super) data: &'d [u8],
    pub(super) buffer: Buffer,
    pub(super) place: SkipPlace,
    /// All marks of the nodes counted so far.
    pub(super) marks: u8,
    /// The evaluator's kept values. It gets them back for its own part of the work.
    pub(super) slots: Vec<u64>,
    /// The type of the region at the message's end whose content may be [deferred](Deferring).
    pub(super) last_object: Option<TypeRef>,
}

impl<'d> Skip<'_, '_, 'd> {
    fn message(&mut self, message: MessageStart<'_>) -> Skipped<Outcome> {
        let MessageStart { service, sender, behind, .. } = message;
        let tables = self.run.tables;
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
        let def = tables.message(id).filter(|def| self.run.tree.takes(def));
        let layout = def.and_then(|def| def.layout).ok_or(Stopped::Unclear)?;
        if behind.is_some_and(|behind| behind > 0) {
            return Err(Stopped::Unclear);
        }
        let whole = header.whole.or(behind.map(|_| self.place.end));
        if let Some(whole) = whole {
            if whole > self.place.end {
                return Err(Stopped::Unclear);
            }
            self.place.end = whole;
            self.run.state.regions += 1;
        } else if self.run.tree.deferring() != Deferring::Never {
            self.last_object = tables.skip_program(layout).and_then(|program| program.last_object);
        }
        if self.run.tree.deferring() == Deferring::Only && self.last_object.is_none() {
            return Err(Stopped::Unclear);
        }
        self.structure(layout)?;
        match whole {
            Some(whole) if whole != self.place.pos => Err(Stopped::Unclear),
            _ => Ok(Outcome::Message(id, self.place.pos)),
        }
    }

    /// Passes over the fields of a structure without arguments.
    fn structure(&mut self, layout: LayoutId) -> Skipped<()> {
        let program = self.run.tables.skip_program(layout).ok_or(Stopped::Unclear)?;
        let frame = self.enter(program)?;
        self.steps(program, frame)
    }

    /// Passes over the fields of a structure with arguments, which are computed from the values that the outer one kept.
    fn structure_with(&mut self, layout: LayoutId, args: &[ExprId], outer: Slots) -> Skipped<()> {
        let tables = self.run.tables;
        let program = tables.skip_program(layout).ok_or(Stopped::Unclear)?;
        let args = self.evaluate(|run, cursor| run.args(args, outer, cursor));
        let mut frame = self.enter(program)?;
        for (slot, arg) in (0..tables.layout(layout).map_or(0, |layout| layout.params)).zip(args) {
            self.keep(&mut frame, slot, arg);
        }
        self.steps(program, frame)
    }

    /// Makes room for the kept values of a program.
    #[inline(always)]
    fn enter(&mut self, program: &SkipProgram) -> Skipped<Slots> {
        let state = &mut *self.run.state;
        if state.depth + program.depth > state.limits.depth {
            return Err(Stopped::Unclear);
        }
        state.depth += 1;
        let base = state.top;
        state.top = base + usize::from(program.slots);
        if self.slots.len() < state.top {
            self.slots.resize(state.top, 0);
        }
        Ok(Slots { base, present: 0 })
    }

    fn steps(&mut self, program: &SkipProgram, mut frame: Slots) -> Skipped<()> {
        let mut next = 0;
        loop {
            let op = program.ops.get(next).ok_or(Stopped::Unclear)?;
            next += 1;
            match *op {
                SkipOp::Fixed { bytes, nodes, marks } => {
                    self.pass(bytes as usize)?;
                    self.count(marks, nodes);
                }
                SkipOp::Keep { back, slot, scalar } => {
                    let value = scalar.value(self.eight(back));
                    self.keep(&mut frame, slot, value);
                }
                SkipOp::Has { slot, otherwise, mask } => {
                    if self.kept(frame, slot).is_none_or(|value| value & mask != mask) {
                        next = otherwise as usize;
                    }
                }
                SkipOp::Equals { slot, otherwise, value } => {
                    if self.kept(frame, slot) != Some(value) {
                        next = otherwise as usize;
                    }
                }
                SkipOp::Differs { slot, otherwise, value } => {
                    if self.kept(frame, slot).is_none_or(|kept| kept == value) {
                        next = otherwise as usize;
                    }
                }
                SkipOp::Above { slot, otherwise, value } => {
                    if self.kept(frame, slot).is_none_or(|kept| kept <= value) {
                        next = otherwise as usize;
                    }
                }
                SkipOp::Jump(to) => next = to as usize,
                SkipOp::Bool { back } => self.place.noted |= self.eight(back) & 0xff > 1,
                SkipOp::Text { native, ty, offset, marks } => self.text(native, ty, marks, frame.from(offset))?,
                SkipOp::Present { marks, otherwise } => {
                    self.pass(1)?;
                    let present = self.eight(1) & 0xff;
                    self.count(marks, if present == 0 { 1 } else { 2 });
                    self.place.noted |= present > 1;
                    if present == 0 {
                        next = otherwise as usize;
                    }
                }
                SkipOp::Value { ty, slot, offset, marks } => {
                    let value = self.value(ty, marks, frame.from(offset))?;
                    if slot != NO_SLOT {
                        self.keep(&mut frame, slot, value);
                    }
                }
                SkipOp::Call(layout) => self.structure(layout)?,
                SkipOp::Copy { from, to } => {
                    let value = self.kept(frame, from).unwrap_or(0);
                    self.keep(&mut frame, to, value);
                }
                SkipOp::Set { slot, value } => self.keep(&mut frame, slot, u64::from(value)),
                SkipOp::End => break,
                _ => next = self.rare(op, program, &mut frame, next)?,
            }
        }
        self.run.state.depth -= 1;
        self.run.state.top = frame.base;
        Ok(())
    }

    /// Runs an operation that few messages have. Returns the next one.
    #[inline(never)]
    fn rare(&mut self, op: &SkipOp, program: &SkipProgram, frame: &mut Slots, next: usize) -> Skipped<usize> {
        match *op {
            SkipOp::More { otherwise } if self.place.pos >= self.place.end => return Ok(otherwise as usize),
            SkipOp::More { .. } => {}
            SkipOp::Dialect { dialect, spoken, otherwise } => {
                return Ok(if self.run.speaks(dialect) == spoken { next } else { otherwise as usize });
            }
            SkipOp::Expect { back, scalar, ty } => {
                let value = scalar.value(self.eight(back));
                let def = self.run.tables.type_def(ty).ok_or(Stopped::Unclear)?;
                let fits =
                    def.expect.is_none_or(|expected| expected == value) && def.max.is_none_or(|max| value <= max);
                self.place.noted |= !fits;
            }
            SkipOp::Compute { expr, offset, slot } => {
                let inner = frame.from(offset);
                let value = self.evaluate(|run, cursor| run.word(expr, inner, cursor));
                self.keep(frame, slot, value);
            }
            SkipOp::Holds { expr, offset, otherwise } => {
                let inner = frame.from(offset);
                let value = self.evaluate(|run, cursor| run.expr(expr, inner, cursor));
                return Ok(if value.is_some_and(|value| value != 0) { next } else { otherwise as usize });
            }
            SkipOp::Switch { on, offset, table, otherwise } => {
                let inner = frame.from(offset);
                let value = self.evaluate(|run, cursor| run.expr(on, inner, cursor));
                let targets = program.switches.get(usize::from(table)).map_or(&[][..], Vec::as_slice);
                let found = value.and_then(|value| targets.binary_search_by_key(&value, |target| target.0).ok());
                return Ok(found.and_then(|at| targets.get(at)).map_or(otherwise, |target| target.1) as usize);
            }
            SkipOp::Mark(marks) => self.marks |= marks,
            SkipOp::Say(severity) => {
                self.place.noted = true;
                self.place.failed |= severity == Severity::Error;
            }
            SkipOp::Undecoded => return Err(Stopped::Misfit),
            _ => return Err(Stopped::Unclear),
        }
        Ok(next)
    }

    /// Passes over a value of a type, with marks of its field. Returns the value that expressions see.
    #[inline(always)]
    pub(super) fn value(&mut self, ty: TypeRef, marks: u8, frame: Slots) -> Skipped<u64> {
        let op = self.run.tables.type_op(ty);
        if op.how != TypeOpKind::Little || op.checked {
            return self.other(ty, marks | op.marks, frame);
        }
        self.pass(usize::from(op.scalar.size))?;
        self.count(marks | op.marks, 1);
        let value = op.scalar.value(self.eight(u32::from(op.scalar.size)));
        self.place.noted |= op.scalar.kind == Kind::Bool && value > 1;
        Ok(value)
    }

    /// Passes over a value that is no plain number.
    #[inline(never)]
    fn other(&mut self, ty: TypeRef, marks: u8, frame: Slots) -> Skipped<u64> {
        let tables = self.run.tables;
        let def = tables.type_def(ty).ok_or(Stopped::Unclear)?;
        match &def.read {
            ReadAs::Native { native, .. } => self.text(*native, ty, marks, frame).map(|()| 0),
            ReadAs::NullOr { present, of } => {
                let node = self.count(marks, 1);
                if self.value(*present, mark::SPAN, frame)? == 0 {
                    self.cut(node + 1);
                    return Ok(0);
                }
                match tables.type_def(*of).map(|def| &def.read) {
                    Some(ReadAs::Layout { layout, args }) => self.fields(*layout, args, frame)?,
                    _ => self.value(*of, 0, frame).map(|_| ())?,
                }
                Ok(1)
            }
            ReadAs::Family(family) => {
                let node = self.count(marks, 1);
                let family = tables.family(*family).ok_or(Stopped::Unclear)?;
                let number = self.value(family.of, 0, Slots::default())?;
                if family.null == Some(number) {
                    self.cut(node + 1);
                    return Ok(number);
                }
                let member = family.numbers.find(number).and_then(|at| family.members.get(at));
                let layout = member.ok_or(Stopped::Misfit)?.1;
                self.run.tree.class(layout.0);
                self.structure(layout)?;
                Ok(number)
            }
            ReadAs::Layout { layout, args } => {
                self.count(marks, 1);
                self.fields(*layout, args, frame).map(|()| 0)
            }
            ReadAs::List { of, len } => {
                let Count::Units(n) = self.length(*len, frame)? else { return Err(Stopped::Unclear) };
                let node = self.count(marks, 1);
                self.elements(*of, n, frame)?;
                self.check_max(def, node, n);
                Ok(0)
            }
            ReadAs::Region(region) if self.last_object == Some(ty) => {
                self.last_object = None;
                match self.defer(marks, ty, region.len, frame)? {
                    true => Ok(0),
                    false if self.run.tree.deferring() == Deferring::Only => Err(Stopped::Unclear),
                    false => self.region(marks, def, region, frame),
                }
            }
            ReadAs::Region(region) => self.region(marks, def, region, frame),
            _ => {
                let field = Field { name: Sym::ELEMENT, ty, marks };
                self.read(|run, cursor| run.other(cursor, field, frame).ok())
            }
        }
    }

    fn fields(&mut self, layout: LayoutId, args: &[ExprId], frame: Slots) -> Skipped<()> {
        if args.is_empty() { self.structure(layout) } else { self.structure_with(layout, args, frame) }
    }

    #[inline(always)]
    pub(super) fn length(&mut self, len: Len, frame: Slots) -> Skipped<Count> {
        let n = match len.from {
            LenFrom::Inline(ty) => self.value(ty, mark::SPAN, frame)?,
            LenFrom::Expr(id) => {
                let length = self.evaluate(|run, cursor| run.length(id, frame, cursor));
                length.ok_or(Stopped::Unclear)?
            }
            LenFrom::Const(n) => u64::from(n),
            LenFrom::Rest => return Ok(Count::Rest),
            _ => return Err(Stopped::Unclear),
        };
        Ok(if len.bytes { Count::Bytes(n) } else { Count::Units(n) })
    }

    fn elements(&mut self, of: TypeRef, n: u64, frame: Slots) -> Skipped<()> {
        let op = self.run.tables.type_op(of);
        if op.how == TypeOpKind::Little && !op.checked && op.scalar.kind != Kind::Bool {
            let bytes = usize::try_from(n).ok().and_then(|n| n.checked_mul(usize::from(op.scalar.size)));
            self.pass(bytes.ok_or(Stopped::Unclear)?)?;
            self.count(if n > 0 { op.marks } else { 0 }, n as u32);
            return self.node_limit();
        }
        for _ in 0..n {
            let before = self.place.pos;
            self.value(of, 0, frame)?;
            self.node_limit()?;
            if self.place.pos == before {
                return Err(Stopped::Unclear);
            }
        }
        Ok(())
    }

    pub(super) fn node_limit(&self) -> Skipped<()> {
        if self.place.nodes < self.run.state.limits.nodes { Ok(()) } else { Err(Stopped::Unclear) }
    }

    /// A type with code: a text, or whatever its code finds.
    #[inline]
    fn text(&mut self, native: u32, ty: TypeRef, marks: u8, frame: Slots) -> Skipped<()> {
        let skip = self.run.tables.native(native).and_then(|code| code.native.skip);
        let rest = self.data.get(self.place.pos..self.place.end).unwrap_or(&[]);
        let Some(SkippedText { before, text, nodes, note }) = skip.and_then(|skip| skip(rest)) else {
            let field = Field { name: Sym::ELEMENT, ty, marks };
            return self.read(|run, cursor| run.native(cursor, field, native, frame).ok()).map(|_| ());
        };
        let at = self.place.pos + before;
        self.pass(before + text)?;
        let node = self.count(marks | mark::SPAN, nodes);
        if let Some(note) = note {
            let bytes = Some((self.buffer, at as u32, text as u32));
            let text = ProblemText::Fixed(note);
            self.run.tree.problem(Problem { severity: Severity::Note, node, text, a: 0, b: 0, bytes });
        }
        Ok(())
    }

    pub(super) fn check_max(&mut self, def: &TypeDef, node: u32, value: u64) {
        if def.max.is_some() {
            self.run.check_max(def, node, value);
        }
    }

    /// Lets the evaluator read something here.
    fn read(&mut self, read: impl FnOnce(&mut Run<'_, Outline>, &mut Cursor<'_>) -> Option<u64>) -> Skipped<u64> {
        let (value, pos) = self.evaluate(|run, cursor| (read(run, cursor), cursor.pos()));
        self.place.pos = pos / 8;
        value.filter(|_| pos.is_multiple_of(8)).ok_or(Stopped::Unclear)
    }

    /// Lets the evaluator do something, with what it needs.
    pub(super) fn evaluate<R>(&mut self, act: impl FnOnce(&mut Run<'_, Outline>, &mut Cursor<'_>) -> R) -> R {
        self.hand_over();
        let result = act(self.run, &mut self.cursor());
        std::mem::swap(&mut self.run.state.slots, &mut self.slots);
        self.place.nodes = self.run.tree.len();
        result
    }

    /// Gives the evaluator its kept values back, and the outline its nodes.
    fn hand_over(&mut self) {
        let tree = &mut *self.run.tree;
        tree.cut(self.place.nodes);
        tree.several(self.marks, (self.place.nodes - tree.len()) as usize);
        std::mem::swap(&mut self.run.state.slots, &mut self.slots);
    }

    pub(super) fn cursor(&self) -> Cursor<'d> {
        Cursor::region(self.data, self.buffer, self.place.pos, self.place.end)
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
    fn cut(&mut self, index: u32) {
        self.place.nodes = self.place.nodes.min(index);
    }

    #[inline(always)]
    fn keep(&mut self, frame: &mut Slots, slot: u16, value: u64) {
        frame.keep(&mut self.slots, slot, value);
    }

    #[inline(always)]
    fn kept(&self, frame: Slots, slot: u16) -> Option<u64> {
        frame.kept(&self.slots, slot)
    }

    /// Passes over some bytes of the region.
    #[inline(always)]
    pub(super) fn pass(&mut self, bytes: usize) -> Skipped<()> {
        let to = self.place.pos.saturating_add(bytes);
        if to > self.place.end {
            return Err(Stopped::Misfit);
        }
        self.place.pos = to;
        Ok(())
    }

    /// Eight bytes as a number, the first one lowest, from `back` bytes before this place on. Zeros follow the buffer's last byte.
    #[inline(always)]
    pub(super) fn eight(&self, back: u32) -> u64 {
        let rest = self.data.get(self.place.pos.wrapping_sub(back as usize)..).unwrap_or(&[]);
        rest.first_chunk().map_or_else(|| few(rest), |eight| u64::from_le_bytes(*eight))
    }
}

/// Less than eight bytes as a number, the first one lowest.
#[cold]
#[inline(never)]
fn few(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
