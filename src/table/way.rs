//! The way through a structure to one of its fields: its steps in short, in which fields of fixed
//! size that follow each other are one step. `route` goes it.

use std::collections::HashSet;

use super::Tables;
use super::program::*;
use crate::tree::{Severity, Sym, TypeRef};

/// Values that a layout may keep. Bits of a word tell which are there.
pub(super) const MAX_SLOTS: usize = 24;

/// Structures within each other that are looked into.
const MAX_DEPTH: u32 = 4;

/// One step. Places are those of steps.
#[derive(Debug, Clone, Copy)]
pub(super) enum WayStep {
    /// So many bytes.
    Skip(u32),
    /// So many bytes if flags are set.
    SkipIf { slot: u16, mask: u64, bytes: u32 },
    /// Keeps a number.
    Keep { scalar: Scalar, slot: u16 },
    /// A text with code. For `ascii` see [`Native::ascii`](super::Native::ascii).
    Text { ty: TypeRef, ascii: u16 },
    /// Any other value, which is kept if there is a slot.
    Pass { ty: TypeRef, slot: u16 },
    /// Goes on elsewhere unless a test holds.
    Branch { test: Test, otherwise: u32 },
    /// Goes on elsewhere.
    Jump(u32),
    /// The one field that is wanted.
    One { ty: TypeRef, name: Sym },
    /// A field that is wanted, among others.
    Each { ty: TypeRef, name: Sym, slot: u16 },
    /// A value in which there may be wanted ones.
    Within { ty: TypeRef, slot: u16 },
    /// Nothing that is wanted comes behind this.
    Rest,
    /// Only the evaluator can go on.
    Unclear,
}

/// A question about types.
pub(super) type OfType<'a> = &'a dyn Fn(TypeRef) -> bool;

/// The fields that a way leads to.
#[derive(Clone, Copy)]
pub(super) enum WantedFields<'a> {
    /// None: it leads to the structure's end.
    None,
    /// Its field of a name, which it has but once (or once in each branch), if it is of one of
    /// these types.
    One(Sym, OfType<'a>),
    /// That field, and all values of types in which there may be further fields of the name.
    All(Sym, OfType<'a>, OfType<'a>),
}

impl WantedFields<'_> {
    /// The step for a field, if it is wanted.
    fn step(self, name: Sym, ty: TypeRef, slot: u16) -> Option<WayStep> {
        match self {
            WantedFields::One(wanted, seeks) if name == wanted && seeks(ty) => {
                Some(WayStep::One { ty, name })
            }
            WantedFields::All(wanted, seeks, _) if name == wanted && seeks(ty) => {
                Some(WayStep::Each { ty, name, slot })
            }
            WantedFields::All(.., leads) if leads(ty) => Some(WayStep::Within { ty, slot }),
            _ => None,
        }
    }

    /// The step for one of a layout's steps, if it is wanted.
    fn step_of(self, step: &LayoutStep) -> Option<WayStep> {
        match step {
            LayoutStep::Field { name, ty, slot, .. } => self.step(*name, *ty, *slot),
            LayoutStep::Empty { name, ty } => {
                self.step(*name, *ty, NO_SLOT).map(|_| WayStep::Unclear)
            }
            _ => None,
        }
    }
}

/// The way through a layout. `None` if only the evaluator can go it.
pub(super) fn way(
    tables: &Tables,
    id: LayoutId,
    wanted: WantedFields<'_>,
) -> Option<Box<[WayStep]>> {
    let layout = tables.layout(id)?;
    let plain =
        layout.params == 0 && usize::from(layout.slots) <= MAX_SLOTS && layout.positions.is_none();
    let steps = tables.steps().get(layout.start as usize..)?;
    let steps = steps.get(..steps.iter().position(|step| matches!(step, LayoutStep::End))?)?;
    if let WantedFields::One(name, _) | WantedFields::All(name, ..) = wanted
        && may_come_twice(steps, layout.start, name)
    {
        return None;
    }
    let targets: HashSet<u32> = steps.iter().flat_map(targets_of).collect();
    let last = steps.iter().rposition(|step| wanted.step_of(step).is_some());
    let nothing = last.is_none() && !matches!(wanted, WantedFields::None);
    let mut way = if nothing { vec![WayStep::Rest] } else { Vec::new() };
    if !plain {
        way.push(WayStep::Unclear);
        return Some(way.into());
    }
    let mut places = Vec::new();
    let mut led_to = 0;
    for (step, number) in steps.iter().zip(layout.start..) {
        let joins = !targets.contains(&number);
        if !joins {
            join_branch(number, led_to, &mut way);
            led_to = way.len();
        }
        let behind = last.is_some_and(|last| places.len() > last);
        places.push(way.len() as u32);
        if behind && (!joins || last == Some(places.len() - 2)) {
            way.push(WayStep::Rest);
        }
        match wanted.step_of(step) {
            Some(step) => way.push(step),
            None => add(tables, step, joins, &mut way),
        }
    }
    places.push(way.len() as u32);
    for (at, step) in way.iter_mut().enumerate() {
        if let WayStep::Branch { otherwise: to, .. } | WayStep::Jump(to) = step {
            // Steps lead forward only, so that the way has an end.
            *to = to.checked_sub(layout.start).and_then(|to| places.get(to as usize)).copied()?;
            if *to as usize <= at {
                return None;
            }
        }
    }
    Some(way.into())
}

/// Whether a structure may have two fields of a name, of steps that begin with number `first` and
/// lead forward only. It has one where each branch has one.
fn may_come_twice(steps: &[LayoutStep], first: u32, name: Sym) -> bool {
    // Which steps may come behind a field of the name.
    let mut behind = vec![false; steps.len() + 1];
    for (at, step) in steps.iter().enumerate() {
        let is_behind = behind.get(at).copied().unwrap_or(false);
        let has_name = match step {
            LayoutStep::Field { name: own, .. } | LayoutStep::Empty { name: own, .. } => {
                *own == name
            }
            _ => false,
        };
        if has_name && is_behind {
            return true;
        }
        if has_name || is_behind {
            let next = (!matches!(step, LayoutStep::Jump(_))).then_some(at + 1);
            let others =
                targets_of(step).filter_map(|to| to.checked_sub(first)).map(|to| to as usize);
            for to in others.chain(next) {
                behind.get_mut(to).into_iter().for_each(|behind| *behind = true);
            }
        }
    }
    false
}

/// Where a step may go on besides the next one.
fn targets_of(step: &LayoutStep) -> impl Iterator<Item = u32> {
    let (one, several) = match step {
        LayoutStep::Branch { otherwise: to, .. } | LayoutStep::Jump(to) => (Some(*to), &[][..]),
        LayoutStep::Switch { targets, otherwise, .. } => (Some(*otherwise), &**targets),
        _ => (None, &[][..]),
    };
    one.into_iter().chain(several.iter().map(|target| target.1))
}

/// A branch may go on at a step, and that step comes now. If nothing but bytes of fixed size are
/// between them, to which nothing leads but the branch, the branch and these become one step.
/// `led_to` is the last place to which something leads.
fn join_branch(number: u32, led_to: usize, way: &mut Vec<WayStep>) {
    if let [.., WayStep::Branch { test: Test::Has(slot, mask), otherwise }, WayStep::Skip(bytes)] =
        *way.as_slice()
        && otherwise == number
        && mask != 0
        && led_to + 1 < way.len()
    {
        way.truncate(way.len() - 2);
        way.push(WayStep::SkipIf { slot, mask, bytes });
    }
}

/// Adds a step, of which the target is still that of the layout's. If it `joins`, nothing leads to
/// it but the step before.
fn add(tables: &Tables, step: &LayoutStep, joins: bool, way: &mut Vec<WayStep>) {
    let step = match step {
        LayoutStep::Field { ty, slot, op, .. } => match size_with_parts(tables, *ty, MAX_DEPTH) {
            Some(bytes) if *slot == NO_SLOT => {
                if let Some(WayStep::Skip(before)) = way.last_mut().filter(|_| joins) {
                    *before = before.saturating_add(bytes);
                    return;
                }
                WayStep::Skip(bytes)
            }
            _ if op.how == TypeOpKind::Little => WayStep::Keep { scalar: op.scalar, slot: *slot },
            _ if op.how == TypeOpKind::Native && *slot == NO_SLOT => WayStep::Text {
                ty: *ty,
                ascii: tables.native(op.by).map_or(0, |code| code.native.ascii),
            },
            _ => WayStep::Pass { ty: *ty, slot: *slot },
        },
        LayoutStep::Branch { test, otherwise } => {
            WayStep::Branch { test: *test, otherwise: *otherwise }
        }
        LayoutStep::Jump(to) => WayStep::Jump(*to),
        LayoutStep::Switch { on, targets, otherwise } => match tables.ex(*on) {
            Some(Ex::Slot { slot, signed: false }) => {
                return add_switch(*slot, targets, *otherwise, way);
            }
            _ => WayStep::Unclear,
        },
        LayoutStep::Partial | LayoutStep::Say { severity: Severity::Note, .. } => return,
        _ => WayStep::Unclear,
    };
    way.push(step);
}

/// Adds a jump by a value: a branch for each target.
fn add_switch(slot: u16, targets: &[(i128, u32)], otherwise: u32, way: &mut Vec<WayStep>) {
    // Without the value none of the branches is taken.
    way.push(WayStep::Branch { test: Test::Has(slot, 0), otherwise });
    for (value, to) in
        targets.iter().filter_map(|(value, to)| Some((u64::try_from(*value).ok()?, *to)))
    {
        way.push(WayStep::Branch { test: Test::Differs(slot, value), otherwise: to });
    }
    way.push(WayStep::Jump(otherwise));
}

/// As [`size_of_value`], also for structures without conditions.
fn size_with_parts(tables: &Tables, ty: TypeRef, depth: u32) -> Option<u32> {
    let ReadAs::Layout { layout, args } = &tables.type_def(ty)?.read else {
        return size_of_value(tables, ty);
    };
    let layout = tables
        .layout(*layout)
        .filter(|layout| args.is_empty() && layout.params == 0 && depth > 0)?;
    let steps = tables.steps().get(layout.start as usize..)?.iter();
    let mut steps = steps.take_while(|step| !matches!(step, LayoutStep::End));
    steps.try_fold(0, |before: u32, step| match step {
        LayoutStep::Field { ty, .. } => {
            before.checked_add(size_with_parts(tables, *ty, depth - 1)?)
        }
        _ => None,
    })
}

/// The size of all values of a type, in bytes; `None` where they differ or are not plain.
pub(super) fn size_of_value(tables: &Tables, ty: TypeRef) -> Option<u32> {
    let op = tables.type_op(ty);
    if op.how == TypeOpKind::Little {
        return Some(op.scalar.size.into());
    }
    match tables.type_def(ty)?.read {
        ReadAs::Int { size, .. } | ReadAs::Float { size, .. } => Some(size.into()),
        ReadAs::Uuid { .. } => Some(16),
        ReadAs::Ipv4 { .. } => Some(4),
        _ => None,
    }
}
