//! Runs the steps of structures. A nested structure is not a recursive call: the outer one waits on
//! a stack of its own. Most structures have few fields, and a call would cost as much as several of
//! them.

use super::super::cursor::Cursor;
use super::super::program::*;
use super::checksum::SummedField;
use super::message::Chosen;
use super::{Field, Run, Slots, Stop};
use crate::tree::{Kind, Node, Problem, ProblemText, Severity, Sym, TypeRef, mark};

/// A structure whose steps wait while those of a nested structure run.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenStructure {
    /// The step at which it goes on.
    next: usize,
    node: u32,
    frame: Slots,
}

/// The result of reading the beginning of a structure, an object or a presence.
enum Begun<'a> {
    /// It is complete. The value is the one that expressions see.
    Done(u64),
    /// Its node is open, and these fields follow. The value is there too.
    Inside(u32, &'a Layout, u64),
}

impl<'t> Run<'t> {
    /// Reads the fields of a layout, with its arguments, into the open node of a structure.
    pub fn steps(
        &mut self,
        layout: &Layout,
        args: &[u64],
        node: u32,
        cursor: &mut Cursor<'_>,
    ) -> Result<(), Stop> {
        let frame = self.enter(layout, node, cursor)?;
        let mut at = OpenStructure { next: layout.start as usize, node, frame };
        for (i, arg) in args.iter().enumerate().take(usize::from(layout.params)) {
            self.keep(&mut at.frame, i as u16, *arg);
        }
        let around = self.state.open.len();
        let result = self.run_steps(&mut at, around, cursor);
        // Closes the structures that were open where reading stopped.
        while self.state.open.len() > around {
            self.end_inner(&mut at, cursor);
        }
        self.state.depth -= 1;
        self.state.top = at.frame.base;
        result
    }

    /// Runs steps until the structure ends that began with `around` others open.
    #[inline(always)]
    fn run_steps(
        &mut self,
        at: &mut OpenStructure,
        around: usize,
        cursor: &mut Cursor<'_>,
    ) -> Result<(), Stop> {
        let tables = self.tables;
        let ops = tables.steps();
        // Of its own, so that it can be in a register.
        let mut next = at.next;
        while let Some(op) = ops.get(next) {
            next += 1;
            match op {
                LayoutStep::Field { name, ty, slot, marks, op } => {
                    let field = Field { name: *name, ty: *ty, marks: *marks };
                    if op.telling {
                        self.tell(field);
                    }
                    let begun = match op.how {
                        TypeOpKind::Little => self.little(cursor, field, op).map(Begun::Done),
                        TypeOpKind::Layout | TypeOpKind::NullOr | TypeOpKind::Family => {
                            self.begin(cursor, field, op, at.frame)
                        }
                        TypeOpKind::Native => {
                            self.native(cursor, field, op.by, at.frame).map(Begun::Done)
                        }
                        TypeOpKind::Other => self.other(cursor, field, at.frame).map(Begun::Done),
                    };
                    let begun =
                        begun.map_err(|stop| self.stopped_in(stop, *name, at.node, cursor))?;
                    let (Begun::Done(value) | Begun::Inside(_, _, value)) = begun;
                    if *slot != NO_SLOT {
                        self.keep(&mut at.frame, *slot, value);
                    }
                    if let Begun::Inside(node, layout, _) = begun {
                        let frame = self.enter(layout, node, cursor)?;
                        self.state.open.push(OpenStructure { next, ..*at });
                        (at.node, at.frame) = (node, frame);
                        next = layout.start as usize;
                    }
                }
                LayoutStep::Branch { test, otherwise } => {
                    if !self.test(test, at.frame, cursor) {
                        next = *otherwise as usize;
                    }
                }
                LayoutStep::Jump(to) => next = *to as usize,
                LayoutStep::End if self.state.open.len() <= around => return Ok(()),
                LayoutStep::End => {
                    self.end_inner(at, cursor);
                    next = at.next;
                }
                _ => next = self.rare(op, at, cursor)?.unwrap_or(next),
            }
        }
        Ok(())
    }

    /// Runs a step that is neither a field nor a branch. Returns the next step, where that is not
    /// the one behind it.
    #[inline(never)]
    fn rare(
        &mut self,
        op: &LayoutStep,
        at: &mut OpenStructure,
        cursor: &mut Cursor<'_>,
    ) -> Result<Option<usize>, Stop> {
        match op {
            LayoutStep::Word { name, slot } => {
                // If the field is absent, the last node is another field's.
                let text = self
                    .tree
                    .nodes()
                    .last()
                    .filter(|node| node.name == *name && matches!(node.kind, Kind::Text(_)));
                if let Some((from, length)) = text.map(Node::content) {
                    let number = self.tables.word_number(cursor.behind(from, length));
                    self.keep(&mut at.frame, *slot, number);
                }
            }
            LayoutStep::Switch { on, targets, otherwise } => {
                let value = self.expr(*on, at.frame, cursor);
                let found = value.and_then(|v| targets.binary_search_by_key(&v, |t| t.0).ok());
                return Ok(Some(
                    found.and_then(|i| targets.get(i)).map_or(*otherwise, |t| t.1) as usize
                ));
            }
            LayoutStep::Say { severity, concern, text } => {
                let severity = *severity;
                let concern = *concern;
                let text = ProblemText::Table(*text);
                let node = at.node;
                let a = 0;
                self.tree.problem(Problem { severity, node, text, a, b: 0, bytes: None, concern });
            }
            LayoutStep::Empty { name, ty } => {
                let list =
                    self.open_as(cursor, Field { name: *name, ty: *ty, marks: 0 }, Kind::List);
                self.tree.close(list, cursor.pos());
            }
            LayoutStep::Undecoded => return Err(Stop::Unknown),
            LayoutStep::Partial => self.tree.mark(0, mark::PARTIAL),
            LayoutStep::Last => self.state.last = true,
            LayoutStep::Remember { kind, key, value } => {
                let pair = (self.expr(*key, at.frame, cursor), self.expr(*value, at.frame, cursor));
                if let (Some(key), Some(value)) = pair {
                    self.state.memory.learn(*kind, key as u64, value as u64);
                }
            }
            LayoutStep::Checksum { sum, slot, size, from, to } => {
                let of = (
                    self.slot(at.frame, *slot),
                    self.length(*from, at.frame, cursor),
                    self.length(*to, at.frame, cursor),
                );
                if let (Some(value), Some(from), Some(to)) = of {
                    let end = cursor.pos() / 8;
                    let place = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
                    let own = (end.saturating_sub(usize::from(*size)), end);
                    let range = (place(from), place(to));
                    self.verify(SummedField { sum: *sum, value, own, range }, cursor)?;
                }
            }
            LayoutStep::Set { state, value } => {
                if let Some(value) = self.expr(*value, at.frame, cursor) {
                    self.state.set_state(*state, value as u64);
                }
            }
            LayoutStep::Chosen { number, length } => {
                let number =
                    number.and_then(|id| self.expr(id, at.frame, cursor)).map(|n| n as u64);
                let length = length
                    .and_then(|id| self.expr(id, at.frame, cursor))
                    .map(|n| usize::try_from(n).ok());
                self.state.chosen = Chosen { number, length };
            }
            LayoutStep::Field { .. }
            | LayoutStep::Branch { .. }
            | LayoutStep::Jump(_)
            | LayoutStep::End => {}
        }
        Ok(None)
    }

    /// Makes room for the kept values of a structure. Stops if structures are nested too deeply.
    #[inline(always)]
    fn enter(&mut self, layout: &Layout, node: u32, cursor: &Cursor<'_>) -> Result<Slots, Stop> {
        if self.state.depth >= self.state.limits.depth {
            return Err(self.too_deep(node, cursor));
        }
        self.state.depth += 1;
        let base = self.state.top;
        let top = base + usize::from(layout.slots);
        if self.state.slots.len() < top {
            self.state.slots.resize(top, 0);
        }
        self.state.top = top;
        Ok(Slots { base, present: 0 })
    }

    #[cold]
    #[inline(never)]
    fn too_deep(&mut self, node: u32, cursor: &Cursor<'_>) -> Stop {
        self.problem(
            Severity::Error,
            node,
            "nested more than {a} deep",
            i64::from(self.state.limits.depth),
            0,
        );
        self.tree.close(node, cursor.pos());
        Stop::Limit
    }

    /// Ends a nested structure, and goes on with the outer one.
    #[inline(always)]
    fn end_inner(&mut self, at: &mut OpenStructure, cursor: &Cursor<'_>) {
        self.tree.close(at.node, cursor.pos());
        self.state.depth -= 1;
        self.state.top = at.frame.base;
        if let Some(outer) = self.state.open.pop() {
            *at = outer;
        }
    }

    #[inline(always)]
    pub(super) fn keep(&mut self, frame: &mut Slots, slot: u16, value: u64) {
        frame.keep(&mut self.state.slots, slot, value);
    }

    /// Reads the elements of a list: structures, objects, or presences and their values.
    #[inline(never)]
    pub(super) fn composites(
        &mut self,
        cursor: &mut Cursor<'_>,
        list: u32,
        of: TypeRef,
        n: u64,
        frame: Slots,
    ) -> Result<(), Stop> {
        let op = self.tables.type_op(of);
        let field = Field { name: Sym::ELEMENT, ty: of, marks: op.marks };
        for _ in 0..n {
            self.node_limit(list)?;
            let before = cursor.pos();
            if op.telling {
                self.tell(field);
            }
            self.inlined_composite(cursor, field, &op, frame)?;
            self.has_length(list, before, cursor)?;
        }
        Ok(())
    }

    /// Reads a structure, an object, or a presence and its value, outside of the steps of another
    /// structure.
    #[inline(never)]
    pub(super) fn composite(
        &mut self,
        cursor: &mut Cursor<'_>,
        field: Field,
        op: &TypeOp,
        frame: Slots,
    ) -> Result<u64, Stop> {
        self.inlined_composite(cursor, field, op, frame)
    }

    #[inline(always)]
    fn inlined_composite(
        &mut self,
        cursor: &mut Cursor<'_>,
        field: Field,
        op: &TypeOp,
        frame: Slots,
    ) -> Result<u64, Stop> {
        match self.begin(cursor, field, op, frame)? {
            Begun::Done(value) => Ok(value),
            Begun::Inside(node, layout, value) => {
                let result = self.steps(layout, &[], node, cursor);
                self.tree.close(node, cursor.pos());
                result.map(|()| value)
            }
        }
    }

    /// Begins a structure, an object or a presence.
    #[inline(always)]
    fn begin(
        &mut self,
        cursor: &mut Cursor<'_>,
        field: Field,
        op: &TypeOp,
        frame: Slots,
    ) -> Result<Begun<'t>, Stop> {
        let tables = self.tables;
        self.node_limit(0)?;
        if op.how == TypeOpKind::Layout {
            let layout = tables.layout(LayoutId(op.by)).ok_or(Stop::Unknown)?;
            return Ok(Begun::Inside(
                self.open_as(cursor, Field { ty: layout.ty, ..field }, Kind::Struct),
                layout,
                0,
            ));
        }
        let node = self.open_as(cursor, field, Kind::Struct);
        let begun = match tables.type_def(field.ty).map(|def| &def.read) {
            Some(ReadAs::NullOr { present, of }) => {
                self.presence(cursor, node, *present, *of, frame)
            }
            Some(ReadAs::Family(family)) => self.class(cursor, node, *family),
            _ => Err(Stop::Unknown),
        };
        if !matches!(begun, Ok(Begun::Inside(..))) {
            self.tree.close(node, cursor.pos());
        }
        begun
    }

    /// A presence and then the value or nothing. If the value is a structure, the presence becomes
    /// its first span.
    #[inline(always)]
    fn presence(
        &mut self,
        cursor: &mut Cursor<'_>,
        node: u32,
        present: TypeRef,
        of: TypeRef,
        frame: Slots,
    ) -> Result<Begun<'t>, Stop> {
        let tables = self.tables;
        let there = self.number(
            cursor,
            Field { name: tables.present_name(), ty: present, marks: mark::SPAN },
            frame,
        )?;
        if there == 0 {
            self.make_null(node);
            return Ok(Begun::Done(0));
        }
        let op = tables.type_op(of);
        if op.how == TypeOpKind::Layout {
            let layout = tables.layout(LayoutId(op.by)).ok_or(Stop::Unknown)?;
            return Ok(Begun::Inside(node, layout, 1));
        }
        match tables.type_def(of).map(|def| &def.read) {
            Some(ReadAs::Layout { layout, args }) => {
                let args = self.args(args, frame, cursor);
                self.steps(tables.layout(*layout).ok_or(Stop::Unknown)?, &args, node, cursor)?;
            }
            _ => {
                self.field(cursor, tables.value_name(), of, 0, frame)?;
            }
        }
        Ok(Begun::Done(1))
    }

    /// The class of an object.
    #[inline(always)]
    fn class(
        &mut self,
        cursor: &mut Cursor<'_>,
        node: u32,
        family: FamilyId,
    ) -> Result<Begun<'t>, Stop> {
        let tables = self.tables;
        let family = tables.family(family).ok_or(Stop::Unknown)?;
        let class = Field { name: family.field, ty: family.of, marks: 0 };
        let number = self.number(cursor, class, Slots::default())?;
        if family.null == Some(number) {
            self.make_null(node);
            return Ok(Begun::Done(number));
        }
        let (_, id) = family
            .numbers
            .find(number)
            .and_then(|at| family.members.get(at))
            .ok_or(Stop::Unknown)?;
        let layout = tables.layout(*id).ok_or(Stop::Unknown)?;
        self.tree.amend(node, |node| node.ty = layout.ty);
        Ok(Begun::Inside(node, layout, number))
    }

    /// Turns the structure that was just begun into "no object".
    fn make_null(&mut self, node: u32) {
        self.tree.cut(node + 1);
        self.tree.amend(node, |node| node.kind = Kind::Null);
    }
}
