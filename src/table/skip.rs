//! Skip programs: what it takes to pass over a structure that is as its table says, and to count
//! its nodes.
//!
//! One is made of a layout when the first message with this layout is passed over. Fields of fixed
//! size that follow each other become one step, also across nested structures, whose steps become a
//! part of the outer one's. What is not that simple is left to a step that names a type.
//! `eval::skip` runs them.

use std::collections::HashSet;

use super::Tables;
use super::last_object::{LastObject, PlainNumbers};
use super::program::*;
use crate::tree::{Kind, Severity, TypeRef, mark};

/// A layout's skip program.
#[derive(Debug, Default)]
pub(super) struct SkipProgram {
    pub(super) ops: Vec<SkipOp>,
    /// How many values it keeps, those of nested structures included.
    pub(super) slots: u16,
    /// How many structures within each other it has.
    pub(super) depth: u32,
    /// The targets of its [`SkipOp::Switch`]es: values, and the places of their operations.
    pub(super) switches: Vec<Vec<(i128, u32)>>,
    pub(super) last_object: Option<LastObject>,
}

/// One step of a skip program. Places are those of operations; `back` counts bytes back from the
/// cursor; `offset` is the first slot of the structure that an expression belongs to. What comes
/// most often is one step where it could be two: each step costs as much as its work.
#[derive(Debug, Clone, Copy)]
pub(super) enum SkipOp {
    /// Bytes of fixed size, with all marks of their nodes.
    Fixed { bytes: u32, nodes: u32, marks: u8 },
    /// The same; then keeps an unsigned number, above which a word of eight bytes has `above` bits.
    FixedKeep { bytes: u32, nodes: u16, back: u16, slot: u16, marks: u8, above: u8 },
    /// Bytes of fixed size if flags are set.
    HasFixed { slot: u16, bytes: u16, nodes: u16, mask: u32, marks: u8 },
    /// Keeps a number, above which a word of eight bytes has `above` bits.
    Keep { back: u32, slot: u16, above: u8, signed: bool },
    /// Keeps the same as another slot, or 0.
    Copy { from: u16, to: u16 },
    /// Keeps this number.
    Set { slot: u16, value: u32 },
    /// Keeps the value of an expression, or 0.
    Compute { expr: ExprId, offset: u16, slot: u16 },
    /// The evaluator has a note if a byte is above 1.
    Bool { back: u32 },
    /// The evaluator has a note if a number is not one that its type expects.
    Expect { back: u32, scalar: Scalar, ty: TypeRef },
    /// Goes on elsewhere unless flags are set.
    Has { slot: u16, otherwise: u16, mask: u64 },
    /// Goes on elsewhere unless a value equals a number.
    Equals { slot: u16, otherwise: u16, value: u64 },
    /// Goes on elsewhere unless a value is there and differs from a number.
    Differs { slot: u16, otherwise: u16, value: u64 },
    /// Goes on elsewhere unless a value is above a number.
    Above { slot: u16, otherwise: u16, value: u64 },
    /// Goes on elsewhere unless a dialect is in use, or is not.
    Dialect { dialect: u32, spoken: bool, otherwise: u32 },
    /// Goes on elsewhere at the region's end.
    More { otherwise: u32 },
    /// Goes on elsewhere unless an expression holds.
    Holds { expr: ExprId, offset: u16, otherwise: u32 },
    /// Goes on elsewhere.
    Jump(u32),
    /// Goes on where the value of an expression says.
    Switch { on: ExprId, offset: u16, table: u16, otherwise: u32 },
    /// Opens a structure that begins with a presence, a boolean byte; goes on elsewhere if that is
    /// 0.
    Present { marks: u8, otherwise: u32 },
    /// Runs another program.
    Call(LayoutId),
    /// Reads a text with code. For `ascii` see [`Native::ascii`](super::Native::ascii).
    Text { native: u32, ty: TypeRef, offset: u16, ascii: u16, marks: u8 },
    /// Reads an object, and keeps the number of its class.
    Object { family: FamilyId, slot: u16, marks: u8 },
    /// Reads a value of any type that is no plain number, and keeps it.
    Value { ty: TypeRef, slot: u16, offset: u16, marks: u8 },
    /// Adds marks.
    Mark(u8),
    /// The evaluator has a remark here.
    Say(Severity),
    /// Has no known layout from here on.
    Undecoded,
    /// Gives up: the evaluator is needed.
    Leave,
    /// The end.
    End,
}

/// Steps are small, so that one is found without a multiplication.
const _: () = assert!(size_of::<SkipOp>() == 16);

/// Structures within a structure become a part of its program up to this depth, and while it has
/// fewer operations and slots. Bits of a word tell which slots are filled.
const DEPTH: u32 = 4;
const OPS: usize = 400;
const SLOTS: u16 = 64;

impl SkipProgram {
    /// The program of a layout.
    pub(super) fn of(tables: &Tables, layout: &Layout) -> SkipProgram {
        let program = SkipProgram { slots: layout.slots, depth: 1, ..SkipProgram::default() };
        let mut maker = Maker { tables, program, block: None, depth: 1 };
        maker.layout(layout, 0);
        maker.push(SkipOp::End);
        let last_object = LastObject::of(tables, layout, plain_numbers(tables, &maker.program.ops));
        SkipProgram { last_object, ..maker.program }
    }

    /// Its operations from a place on.
    #[inline]
    pub(super) fn from(&self, place: usize) -> &[SkipOp] {
        self.ops.get(place..).unwrap_or(&[])
    }
}

/// Makes a program.
struct Maker<'t> {
    tables: &'t Tables,
    program: SkipProgram,
    /// The last operations, if they are a [`SkipOp::Fixed`] and others that look back at its bytes:
    /// the place of the first.
    block: Option<usize>,
    /// How many structures are open.
    depth: u32,
}

/// A jump to a step, whose operation may not be known yet.
struct PendingJump {
    /// The place of the operation.
    op: usize,
    /// Which of a switch's targets; none where the operation has only one.
    target: Option<usize>,
    step: u32,
}

impl Maker<'_> {
    fn push(&mut self, op: SkipOp) {
        self.block = None;
        self.program.ops.push(op);
    }

    fn here(&mut self) -> u32 {
        self.block = None;
        self.program.ops.len() as u32
    }

    /// Bytes of fixed size. They join those before them where nothing can jump in between.
    fn fixed(&mut self, more: u32, count: u32, mark: u8) {
        if let Some(block) = self.block.filter(|block| self.has_room(*block, more, count)) {
            let mut ops = self.program.ops.iter_mut().skip(block);
            match ops.next() {
                Some(SkipOp::Fixed { bytes, nodes, marks }) => {
                    *bytes += more;
                    *nodes += count;
                    *marks |= mark;
                }
                Some(SkipOp::FixedKeep { bytes, nodes, back, marks, .. }) => {
                    *bytes += more;
                    *nodes += count as u16;
                    *back += more as u16;
                    *marks |= mark;
                }
                _ => {}
            }
            for op in ops {
                match op {
                    SkipOp::Keep { back, .. }
                    | SkipOp::Bool { back }
                    | SkipOp::Expect { back, .. } => *back += more,
                    _ => {}
                }
            }
            return;
        }
        self.block = Some(self.program.ops.len());
        self.program.ops.push(SkipOp::Fixed { bytes: more, nodes: count, marks: mark });
    }

    /// Whether further bytes may join those of an operation, whose numbers are small.
    fn has_room(&self, block: usize, more: u32, count: u32) -> bool {
        match self.program.ops.get(block) {
            Some(SkipOp::FixedKeep { nodes, back, .. }) => {
                more < 1 << 8 && count < 1 << 8 && *back < 1 << 15 && *nodes < 1 << 15
            }
            _ => true,
        }
    }

    /// The steps of a layout whose slots begin at `offset`.
    fn layout(&mut self, layout: &Layout, offset: u16) {
        let tables = self.tables;
        let first = layout.start as usize;
        let steps = tables.steps().get(first..).unwrap_or(&[]);
        let steps = steps
            .get(..steps.iter().position(|step| matches!(step, LayoutStep::End)).unwrap_or(0))
            .unwrap_or(&[]);
        let targets: HashSet<u32> = steps.iter().flat_map(jumps).collect();
        let mut places = Vec::with_capacity(steps.len() + 1);
        let mut pending = Vec::new();
        for (step, number) in steps.iter().zip(layout.start..) {
            if targets.contains(&number) {
                self.branch_ends(number, &mut pending);
            }
            places.push(self.program.ops.len() as u32);
            self.step(step, offset, &mut pending);
        }
        let end = layout.start + steps.len() as u32;
        if targets.contains(&end) {
            self.branch_ends(end, &mut pending);
        }
        places.push(self.program.ops.len() as u32);
        for PendingJump { op, target, step } in pending {
            let place =
                step.checked_sub(layout.start).and_then(|at| places.get(at as usize)).copied();
            self.resolve(op, target, place);
        }
    }

    /// A branch may go on at a step, and that step comes now. If only bytes of fixed size are
    /// between them, the branch and these become one operation.
    fn branch_ends(&mut self, step: u32, pending: &mut Vec<PendingJump>) {
        self.block = None;
        let Some(branch) =
            pending.pop_if(|branch| branch.step == step && branch.op + 2 == self.program.ops.len())
        else {
            return;
        };
        if let Some([SkipOp::Has { slot, mask, .. }, SkipOp::Fixed { bytes, nodes, marks }]) =
            self.program.ops.get(branch.op..)
            && *mask != 0
            && let (Ok(mask), Ok(bytes), Ok(nodes)) =
                ((*mask).try_into(), (*bytes).try_into(), (*nodes).try_into())
        {
            let joined = SkipOp::HasFixed { slot: *slot, bytes, nodes, mask, marks: *marks };
            self.program.ops.truncate(branch.op);
            self.program.ops.push(joined);
            return;
        }
        pending.push(branch);
    }

    fn step(&mut self, step: &LayoutStep, offset: u16, pending: &mut Vec<PendingJump>) {
        let mut jump = |op: SkipOp, maker: &mut Self, step: u32| {
            pending.push(PendingJump { op: maker.program.ops.len(), target: None, step });
            maker.push(op);
        };
        match step {
            LayoutStep::Field { ty, slot, marks, op, .. } => {
                let slot = if *slot == NO_SLOT { NO_SLOT } else { slot + offset };
                self.value(SkippedField { ty: *ty, marks: *marks, slot, offset }, op);
            }
            LayoutStep::Branch { test, otherwise } => {
                let op = match *test {
                    Test::Has(slot, mask) => {
                        SkipOp::Has { slot: slot + offset, otherwise: 0, mask }
                    }
                    Test::Equals(slot, value) => {
                        SkipOp::Equals { slot: slot + offset, otherwise: 0, value }
                    }
                    Test::Differs(slot, value) => {
                        SkipOp::Differs { slot: slot + offset, otherwise: 0, value }
                    }
                    Test::Above(slot, value) => {
                        SkipOp::Above { slot: slot + offset, otherwise: 0, value }
                    }
                    Test::Dialect(dialect, spoken) => {
                        SkipOp::Dialect { dialect, spoken, otherwise: 0 }
                    }
                    Test::More => SkipOp::More { otherwise: 0 },
                    Test::General(expr) => SkipOp::Holds { expr, offset, otherwise: 0 },
                };
                jump(op, self, *otherwise);
            }
            LayoutStep::Jump(to) => jump(SkipOp::Jump(0), self, *to),
            LayoutStep::Switch { on, targets, otherwise } => {
                let table = self.program.switches.len() as u16;
                let op = self.program.ops.len();
                jump(SkipOp::Switch { on: *on, offset, table, otherwise: 0 }, self, *otherwise);
                self.program.switches.push(targets.iter().map(|(value, _)| (*value, 0)).collect());
                pending.extend(targets.iter().enumerate().map(|(target, (_, step))| PendingJump {
                    op,
                    target: Some(target),
                    step: *step,
                }));
            }
            LayoutStep::Empty { .. } => self.fixed(0, 1, 0),
            LayoutStep::Say { severity, .. } => self.push(SkipOp::Say(*severity)),
            LayoutStep::Undecoded => self.push(SkipOp::Undecoded),
            LayoutStep::Partial => self.push(SkipOp::Mark(mark::PARTIAL)),
            LayoutStep::Word { .. }
            | LayoutStep::Last
            | LayoutStep::Remember { .. }
            | LayoutStep::Checksum { .. }
            | LayoutStep::Set { .. }
            | LayoutStep::Chosen { .. }
            | LayoutStep::End => self.push(SkipOp::Leave),
        }
    }

    /// Fills in where an operation jumps to.
    fn resolve(&mut self, at: usize, target: Option<usize>, place: Option<u32>) {
        let Some(op) = self.program.ops.get_mut(at) else { return };
        let Some(place) = place else {
            *op = SkipOp::Leave;
            return;
        };
        match op {
            SkipOp::Switch { table, otherwise, .. } => match target {
                None => *otherwise = place,
                Some(target) => {
                    let targets = self.program.switches.get_mut(usize::from(*table));
                    targets
                        .and_then(|targets| targets.get_mut(target))
                        .into_iter()
                        .for_each(|target| target.1 = place);
                }
            },
            SkipOp::Has { otherwise, .. }
            | SkipOp::Equals { otherwise, .. }
            | SkipOp::Differs { otherwise, .. }
            | SkipOp::Above { otherwise, .. } => match u16::try_from(place) {
                Ok(place) => *otherwise = place,
                Err(_) => *op = SkipOp::Leave,
            },
            SkipOp::Dialect { otherwise, .. }
            | SkipOp::More { otherwise }
            | SkipOp::Holds { otherwise, .. }
            | SkipOp::Present { otherwise, .. }
            | SkipOp::Jump(otherwise) => *otherwise = place,
            _ => {}
        }
    }

    /// A value of a type.
    fn value(&mut self, read: SkippedField, op: &TypeOp) {
        let SkippedField { ty, marks, slot, offset } = read;
        match op.how {
            TypeOpKind::Little => self.number(read, op),
            TypeOpKind::Layout => {
                self.fixed(0, 1, marks);
                self.structure(LayoutId(op.by), &[], offset);
                self.keep(slot, 0);
            }
            TypeOpKind::NullOr => self.presence(read),
            TypeOpKind::Native => match self.tables.native(op.by).map(|code| code.native) {
                Some(code) if code.skip.is_some() => {
                    self.push(SkipOp::Text { native: op.by, ty, offset, ascii: code.ascii, marks });
                    self.keep(slot, 0);
                }
                _ => self.push(SkipOp::Value { ty, slot, offset, marks }),
            },
            TypeOpKind::Family => match self.tables.type_def(ty).map(|def| &def.read) {
                Some(ReadAs::Family(family)) => {
                    self.push(SkipOp::Object { family: *family, slot, marks })
                }
                _ => self.push(SkipOp::Leave),
            },
            _ => self.push(SkipOp::Value { ty, slot, offset, marks }),
        }
    }

    fn keep(&mut self, slot: u16, value: u32) {
        if slot != NO_SLOT {
            self.push(SkipOp::Set { slot, value });
        }
    }

    fn number(&mut self, SkippedField { ty, marks, slot, .. }: SkippedField, op: &TypeOp) {
        let back = u32::from(op.scalar.size);
        let scalar = op.scalar;
        self.fixed(back, 1, marks);
        let ops = &mut self.program.ops;
        if op.scalar.kind == Kind::Bool {
            ops.push(SkipOp::Bool { back });
        }
        if op.checked {
            ops.push(SkipOp::Expect { back, scalar, ty });
        }
        if slot == NO_SLOT {
            return;
        }
        let above = 64 - scalar.size * 8;
        if let Some(SkipOp::Fixed { bytes, nodes, marks }) = ops.last().copied()
            && !scalar.signed
            && nodes < 1 << 15
        {
            ops.pop();
            ops.push(SkipOp::FixedKeep {
                bytes,
                nodes: nodes as u16,
                back: back as u16,
                slot,
                marks,
                above,
            });
        } else {
            ops.push(SkipOp::Keep { back, slot, above, signed: scalar.signed });
        }
    }

    /// A presence, then the value or nothing.
    fn presence(&mut self, read: SkippedField) {
        let SkippedField { ty, marks, slot, offset } = read;
        let tables = self.tables;
        let Some(ReadAs::NullOr { present, of }) = tables.type_def(ty).map(|def| &def.read) else {
            return self.push(SkipOp::Leave);
        };
        let flag = tables.type_op(*present);
        let plain =
            flag.how == TypeOpKind::Little && flag.scalar.kind == Kind::Bool && !flag.checked;
        let inner = match tables.type_def(*of).map(|def| &def.read) {
            Some(ReadAs::Layout { layout, args })
                if plain && (args.is_empty() || self.fits(*layout)) =>
            {
                (*layout, args)
            }
            _ => return self.push(SkipOp::Value { ty, slot, offset, marks }),
        };
        let present = self.program.ops.len();
        self.push(SkipOp::Present { marks: marks | mark::SPAN | flag.marks, otherwise: 0 });
        self.structure(inner.0, inner.1, offset);
        self.keep(slot, 1);
        if slot == NO_SLOT {
            let behind = self.here();
            return self.resolve(present, None, Some(behind));
        }
        let jump = self.program.ops.len();
        self.push(SkipOp::Jump(0));
        let absent = self.here();
        self.resolve(present, None, Some(absent));
        self.keep(slot, 0);
        let behind = self.here();
        self.resolve(jump, None, Some(behind));
    }

    /// The fields of a structure whose node is open. With arguments it has to fit.
    fn structure(&mut self, id: LayoutId, args: &[ExprId], offset: u16) {
        let tables = self.tables;
        let Some(layout) = tables.layout(id).filter(|_| self.fits(id)) else {
            return self.push(SkipOp::Call(id));
        };
        let first = self.program.slots;
        for (arg, slot) in args.iter().zip(first..first + layout.params) {
            self.argument(*arg, offset, slot);
        }
        self.program.slots += layout.slots;
        self.depth += 1;
        self.program.depth = self.program.depth.max(self.depth);
        self.layout(layout, first);
        self.depth -= 1;
    }

    /// Whether a structure may become a part of this program.
    fn fits(&self, id: LayoutId) -> bool {
        let slots = self.tables.layout(id).map_or(SLOTS, |layout| layout.slots.min(SLOTS));
        self.depth < DEPTH && self.program.ops.len() < OPS && self.program.slots + slots <= SLOTS
    }

    /// The argument of a structure that became a part of this program.
    fn argument(&mut self, arg: ExprId, offset: u16, slot: u16) {
        self.push(match self.tables.ex(arg) {
            Some(Ex::Slot { slot: from, .. }) => SkipOp::Copy { from: from + offset, to: slot },
            _ => SkipOp::Compute { expr: arg, offset, slot },
        });
    }
}

/// A value to be read.
#[derive(Clone, Copy)]
struct SkippedField {
    ty: TypeRef,
    /// Marks for its node, with those of its type.
    marks: u8,
    /// Where its value is kept, or [`NO_SLOT`].
    slot: u16,
    /// The first slot of its structure.
    offset: u16,
}

/// The numbers of a program that consists of these and a region.
fn plain_numbers(tables: &Tables, ops: &[SkipOp]) -> Option<PlainNumbers> {
    let [
        SkipOp::Fixed { bytes, nodes, marks },
        SkipOp::Value { ty, marks: region_marks, .. },
        SkipOp::End,
    ] = *ops
    else {
        return None;
    };
    let ReadAs::Region(RegionType { len: Len { from: LenFrom::Inline(length), .. }, .. }) =
        tables.type_def(ty)?.read
    else {
        return None;
    };
    let op = tables.type_op(length);
    let plain = op.how == TypeOpKind::Little && !op.checked && op.scalar.kind != Kind::Bool;
    plain.then(|| PlainNumbers {
        bytes: bytes as usize + usize::from(op.scalar.size),
        nodes: nodes + 1,
        marks: marks | op.marks | mark::SPAN,
        length: op.scalar,
        region_marks,
    })
}

/// The steps that a step may jump to.
fn jumps(step: &LayoutStep) -> Vec<u32> {
    match step {
        LayoutStep::Branch { otherwise, .. } | LayoutStep::Jump(otherwise) => vec![*otherwise],
        LayoutStep::Switch { targets, otherwise, .. } => {
            targets.iter().map(|target| target.1).chain([*otherwise]).collect()
        }
        _ => Vec::new(),
    }
}
