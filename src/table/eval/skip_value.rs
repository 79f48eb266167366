//! Passes over values that are no plain numbers: structures, objects, lists, texts with code. What
//! it cannot pass over itself, the evaluator reads in its place.

use super::super::cursor::Cursor;
use super::super::program::*;
use super::extent::Count;
use super::native::SkippedText;
use super::skip::{Skip, Skipped, Stopped};
use super::{Field, Run, Slots};
use crate::tree::{Deferring, Kind, Outline, Problem, Severity, Sym, TypeRef, mark};

impl Skip<'_, '_> {
    /// Passes over a value that is no plain number.
    pub(super) fn other(&mut self, ty: TypeRef, marks: u8, frame: Slots) -> Skipped<u64> {
        let def = self.tables.type_def(ty).ok_or(Stopped::Unclear)?;
        match &def.read {
            ReadAs::Native { native, .. } => self.text(*native, ty, marks, frame).map(|()| 0),
            ReadAs::NullOr { present, of } => self.null_or(*present, *of, marks, frame),
            ReadAs::Family(family) => self.object(*family, marks),
            ReadAs::Layout { layout, args } => {
                self.count(marks, 1);
                self.fields(*layout, args, frame).map(|()| 0)
            }
            ReadAs::List { of, len } => self.list(def, *of, *len, marks, frame),
            ReadAs::Region(region) => {
                if let Some(last) = self.last_object.take_if(|last| last.region == ty) {
                    if self.defer(marks, last, region.len, frame)? {
                        return Ok(0);
                    }
                    if self.tree.deferring() == Deferring::Only {
                        return Err(Stopped::Unclear);
                    }
                }
                self.region(marks, def, region, frame)
            }
            _ => {
                let field = Field { name: Sym::ELEMENT, ty, marks };
                self.read(|run, cursor| run.other(cursor, field, frame).ok())
            }
        }
    }

    /// Passes over an object, or none. Returns the number of its class.
    #[inline(never)]
    pub(super) fn object(&mut self, family: FamilyId, marks: u8) -> Skipped<u64> {
        let node = self.count(marks, 1);
        let family = self.tables.family(family).ok_or(Stopped::Unclear)?;
        let number = self.value(family.of, 0, Slots::default())?;
        if family.null == Some(number) {
            self.cut(node + 1);
            return Ok(number);
        }
        let member = family.numbers.find(number).and_then(|at| family.members.get(at));
        let layout = member.ok_or(Stopped::Misfit)?.1;
        self.tree.class(layout.0);
        self.structure(layout)?;
        Ok(number)
    }

    #[inline(never)]
    fn null_or(&mut self, present: TypeRef, of: TypeRef, marks: u8, frame: Slots) -> Skipped<u64> {
        let node = self.count(marks, 1);
        if self.value(present, mark::SPAN, frame)? == 0 {
            self.cut(node + 1);
            return Ok(0);
        }
        match self.tables.type_def(of).map(|def| &def.read) {
            Some(ReadAs::Layout { layout, args }) => self.fields(*layout, args, frame)?,
            _ => self.value(of, 0, frame).map(|_| ())?,
        }
        Ok(1)
    }

    fn fields(&mut self, layout: LayoutId, args: &[ExprId], frame: Slots) -> Skipped<()> {
        if args.is_empty() {
            self.structure(layout)
        } else {
            self.structure_with(layout, args, frame)
        }
    }

    /// Passes over the fields of a structure with arguments, which are computed from the values
    /// that the outer one kept.
    fn structure_with(&mut self, layout: LayoutId, args: &[ExprId], outer: Slots) -> Skipped<()> {
        let tables = self.tables;
        let program = tables.skip_program(layout).ok_or(Stopped::Unclear)?;
        let args = self.compute(|run, cursor| run.args(args, outer, cursor));
        let mut frame = self.enter(program)?;
        for (slot, arg) in (0..tables.layout(layout).map_or(0, |layout| layout.params)).zip(args) {
            self.keep(&mut frame, slot, arg);
        }
        self.steps(program, frame)
    }

    #[inline(never)]
    fn list(
        &mut self,
        def: &TypeDef,
        of: TypeRef,
        len: Len,
        marks: u8,
        frame: Slots,
    ) -> Skipped<u64> {
        let Count::Units(n) = self.length(len, frame)? else { return Err(Stopped::Unclear) };
        let node = self.count(marks, 1);
        self.elements(of, n, frame)?;
        self.check_max(def, node, n);
        Ok(0)
    }

    fn elements(&mut self, of: TypeRef, n: u64, frame: Slots) -> Skipped<()> {
        let op = self.tables.type_op(of);
        if op.how == TypeOpKind::Little && !op.checked && op.scalar.kind != Kind::Bool {
            let bytes =
                usize::try_from(n).ok().and_then(|n| n.checked_mul(usize::from(op.scalar.size)));
            self.pass(bytes.ok_or(Stopped::Unclear)?)?;
            self.count(if n > 0 { op.marks } else { 0 }, n as u32);
            return self.node_limit();
        }
        if let Some((layout, present)) = self.plain_structure(of) {
            return self.structures(layout, present, op.marks, n);
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

    /// The layout of a structure without arguments, if a type is one; if it begins with a presence
    /// that is a plain byte, that byte's marks.
    fn plain_structure(&self, ty: TypeRef) -> Option<(LayoutId, Option<u8>)> {
        let (tables, op) = (self.tables, self.tables.type_op(ty));
        match op.how {
            TypeOpKind::Layout => Some((LayoutId(op.by), None)),
            TypeOpKind::NullOr => {
                let ReadAs::NullOr { present, of } = &tables.type_def(ty)?.read else {
                    return None;
                };
                let flag = tables.type_op(*present);
                let inner = tables.type_op(*of);
                let plain = flag.how == TypeOpKind::Little
                    && flag.scalar.kind == Kind::Bool
                    && !flag.checked;
                (plain && inner.how == TypeOpKind::Layout)
                    .then_some((LayoutId(inner.by), Some(flag.marks)))
            }
            _ => None,
        }
    }

    /// Passes over structures of the same layout, or over presences and structures.
    fn structures(
        &mut self,
        layout: LayoutId,
        present: Option<u8>,
        marks: u8,
        n: u64,
    ) -> Skipped<()> {
        let program = self.tables.skip_program(layout).ok_or(Stopped::Unclear)?;
        for _ in 0..n {
            let before = self.place.pos;
            self.count(marks, 1);
            let mut there = true;
            if let Some(marks) = present {
                self.pass(1)?;
                there = self.last_byte() != 0;
                self.place.noted |= self.last_byte() > 1;
                self.count(marks | mark::SPAN, u32::from(there));
            }
            if there {
                let frame = self.enter(program)?;
                self.steps(program, frame)?;
            }
            self.node_limit()?;
            if self.place.pos == before {
                return Err(Stopped::Unclear);
            }
        }
        Ok(())
    }

    #[inline(always)]
    pub(super) fn length(&mut self, len: Len, frame: Slots) -> Skipped<Count> {
        let n = match len.from {
            LenFrom::Inline(ty) => self.value(ty, mark::SPAN, frame)?,
            LenFrom::Expr(id) => {
                let length = self.compute(|run, cursor| run.length(id, frame, cursor));
                length.ok_or(Stopped::Unclear)?
            }
            LenFrom::Const(n) => u64::from(n),
            LenFrom::Rest => return Ok(Count::Rest),
            _ => return Err(Stopped::Unclear),
        };
        Ok(if len.bytes { Count::Bytes(n) } else { Count::Units(n) })
    }

    /// A type with code: a text, or whatever its code finds.
    #[inline(never)]
    pub(super) fn text(
        &mut self,
        native: u32,
        ty: TypeRef,
        marks: u8,
        frame: Slots,
    ) -> Skipped<()> {
        let skip = self.tables.native(native).and_then(|code| code.native.skip);
        let rest = self.data.get(self.place.pos..self.place.end).unwrap_or(&[]);
        let Some(SkippedText { before, text, nodes, note, .. }) = skip.and_then(|skip| skip(rest))
        else {
            let field = Field { name: Sym::ELEMENT, ty, marks };
            return self
                .read(|run, cursor| run.native(cursor, field, native, frame).ok())
                .map(|_| ());
        };
        let at = self.place.pos + before;
        self.pass(before + text)?;
        let node = self.count(marks | mark::SPAN, nodes);
        if let Some(note) = note {
            self.tree.problem(Problem::new(Severity::Note, node, note, 0, 0).showing(
                self.buffer,
                at,
                text,
            ));
        }
        Ok(())
    }

    #[inline]
    pub(super) fn check_max(&mut self, def: &TypeDef, node: u32, value: u64) {
        if def.max.is_some() {
            self.run().check_max(def, node, value);
        }
    }

    /// Lets the evaluator read something here.
    fn read(
        &mut self,
        read: impl FnOnce(&mut Run<'_, Outline>, &mut Cursor<'_>) -> Option<u64>,
    ) -> Skipped<u64> {
        self.hand_over();
        let mut cursor = self.cursor();
        let value = read(&mut self.run(), &mut cursor);
        self.place.nodes = self.tree.len();
        let pos = cursor.pos();
        self.place.pos = pos / 8;
        value.filter(|_| pos.is_multiple_of(8)).ok_or(Stopped::Unclear)
    }
}
