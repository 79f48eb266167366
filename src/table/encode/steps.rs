//! Runs the steps of structures over objects. Where a branch depends on a number that the JSON does
//! not have, its fields decide: the branch whose fields are there is taken, and the number becomes
//! what the branch says.

use super::super::program::*;
use super::expr::{Place, Value};
use super::unknown::{Checked, Mark};
use super::{
    Encoding, Failure, Field, Frame, Given, JsonKind, MAX_DEPTH, MAX_TRIES, RegionEnd, Slot, Stop,
};
use crate::tree::{Sym, TypeRef, mark};

/// A structure whose steps run.
#[derive(Clone, Copy)]
struct Structure {
    frame: Frame,
    object: u32,
}

/// A branch that was taken though another one may be right.
struct Choice {
    mark: Mark,
    slots: Vec<Slot>,
    /// The steps of the others, each with what is true then.
    others: Vec<(usize, Option<Checked>)>,
}

/// What is known of a branch before it is written.
enum Branch {
    Taken,
    Passed,
    /// Either may be right; this one is tried first.
    Either(bool),
}

impl Encoding<'_> {
    /// Writes the fields of a layout from an object.
    pub fn layout(&mut self, layout: &Layout, args: &[Slot], object: u32) -> Result<(), Stop> {
        if self.depth >= MAX_DEPTH {
            return self.fail(object, format!("nested more than {MAX_DEPTH} deep"));
        }
        let base = self.slots.len();
        let length = usize::from(layout.slots);
        self.slots.resize(base + length, Slot::Absent);
        for (slot, arg) in self.slots.iter_mut().skip(base).zip(args) {
            *slot = *arg;
        }
        self.depth += 1;
        let structure = Structure { frame: Frame { base, length }, object };
        let result = self.run(layout, structure);
        self.depth = self.depth.saturating_sub(1);
        self.slots.truncate(base);
        result
    }

    /// Runs a layout's steps. Where something is wrong behind a branch that was only tried, takes
    /// the other one.
    fn run(&mut self, layout: &Layout, at: Structure) -> Result<(), Stop> {
        let (unknowns, checks) = (self.unknowns.len(), self.checks.len());
        let mut choices: Vec<Choice> = Vec::new();
        let mut next = layout.start as usize;
        let mut first: Option<Box<Failure>> = None;
        loop {
            let result = self.run_from(next, at, &mut choices).and_then(|()| {
                self.resolve(unknowns, checks, None)?;
                self.nothing_left(layout, at.object)
            });
            let mut failure = match result {
                Err(Stop::Failed(failure)) => failure,
                other => return other,
            };
            if failure.missing.is_some() && failure.node == at.object {
                // A field that is missing may be there under a wrong name.
                failure = self.wrong_name(layout, at.object).unwrap_or(failure);
            }
            let other = loop {
                let Some(choice) = choices.last_mut() else { break None };
                match choice.others.pop() {
                    Some(other) => break Some((choice.mark, choice.slots.clone(), other)),
                    None => choices.truncate(choices.len() - 1),
                }
            };
            self.tries += 1;
            let Some((mark, slots, (step, check))) = other.filter(|_| self.tries < MAX_TRIES)
            else {
                return Err(Stop::Failed(better(first, failure)));
            };
            first = Some(better(first, failure));
            self.back_to(mark);
            for (to, from) in self.slots.iter_mut().skip(at.frame.base).zip(slots) {
                *to = from;
            }
            self.slots.truncate(at.frame.base + at.frame.length);
            match check {
                Some(Checked::Test(Test::More, false)) => self.end_region(step, at.object),
                None => {}
                Some(check) => self.add_check(check, at.frame, at.object)?,
            }
            next = step;
        }
    }

    fn run_from(
        &mut self,
        from: usize,
        at: Structure,
        choices: &mut Vec<Choice>,
    ) -> Result<(), Stop> {
        let steps = self.tables.steps();
        let mut next = from;
        while let Some(step) = steps.get(next) {
            next += 1;
            match step {
                LayoutStep::Field { name, ty, slot, marks, op } => {
                    let span = (marks | op.marks) & mark::SPAN != 0;
                    let value = self.step_field(at, *name, *ty, span)?;
                    if let Some(end) = self.ended.filter(|end| self.pos() > end.pos) {
                        return self.behind_end(end);
                    }
                    self.keep(at.frame, *slot, value);
                }
                LayoutStep::Branch { test, otherwise } => {
                    let otherwise = *otherwise as usize;
                    let place = Place { slots: self.kept(at.frame), pos: self.pos(), left: None };
                    let taken = match self.test(test, place) {
                        Some(holds) => holds,
                        None => self.branch(*test, next, otherwise, at, choices)?,
                    };
                    if !taken {
                        next = otherwise;
                    }
                }
                LayoutStep::Jump(to) => next = *to as usize,
                LayoutStep::Switch { on, targets, otherwise } => {
                    next = match self.value_of(*on, at.frame) {
                        Value::Known(value) => {
                            let found = targets.binary_search_by_key(&value, |t| t.0).ok();
                            let found = found.and_then(|at| targets.get(at));
                            found.map_or(*otherwise, |t| t.1) as usize
                        }
                        Value::Absent => *otherwise as usize,
                        Value::Unknown => self.switch(*on, targets, *otherwise, at, choices)?,
                    };
                }
                LayoutStep::End => return Ok(()),
                LayoutStep::Undecoded => {
                    self.undecoded(at.object)?;
                    return Err(Stop::Undecoded);
                }
                _ => self.rare(step, at)?,
            }
        }
        Ok(())
    }

    fn rare(&mut self, step: &LayoutStep, at: Structure) -> Result<(), Stop> {
        match step {
            LayoutStep::Word { name, slot } => {
                let text = self.last_text.as_ref().filter(|(of, _)| of == name);
                if let Some(number) = text.map(|(_, text)| self.tables.word_number(text)) {
                    self.keep(at.frame, *slot, Slot::Number(number));
                }
            }
            LayoutStep::Empty { name, .. } => {
                if let Some(node) = self.lookup_sym(at.object, *name) {
                    if self.json.children(node).next().is_some() {
                        return self.fail(node, "must be empty here");
                    }
                    self.take(node);
                }
            }
            LayoutStep::Remember { kind, key, value } => {
                let pair = (self.value_of(*key, at.frame), self.value_of(*value, at.frame));
                if let (Value::Known(key), Value::Known(value)) = pair {
                    self.state.memory.learn(*kind, key as u64, value as u64);
                }
            }
            LayoutStep::Set { state, value } => {
                if let Value::Known(value) = self.value_of(*value, at.frame) {
                    let place = *state as usize;
                    if self.state.states.len() <= place {
                        self.state.states.resize(place + 1, 0);
                    }
                    if let Some(state) = self.state.states.get_mut(place) {
                        *state = value as u64;
                    }
                }
            }
            LayoutStep::Chosen { number, length } => {
                let (name, ty, given) = (Sym::ELEMENT, TypeRef(0), Given::Json(at.object));
                let field =
                    Field { name, ty, span: true, object: at.object, frame: at.frame, given };
                self.chosen(*number, *length, &field)?;
            }
            LayoutStep::Checksum { sum, slot, size, from, to } => {
                let slot = self.kept(at.frame).get(usize::from(*slot)).copied();
                if let Some(Slot::Unknown(unknown)) = slot {
                    self.add_sum(*sum, unknown, *size, (*from, *to), at.frame);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn keep(&mut self, frame: Frame, slot: u16, value: Slot) {
        if usize::from(slot) < frame.length
            && let Some(place) = self.slots.get_mut(frame.base + usize::from(slot))
        {
            *place = value;
        }
    }

    /// Writes a field from the object's value, or computes it.
    fn step_field(
        &mut self,
        at: Structure,
        name: Sym,
        ty: TypeRef,
        span: bool,
    ) -> Result<Slot, Stop> {
        // The message may have a field with the name of the text that selects it.
        let selects = span && self.word.is_some_and(|(word, _)| word == name);
        let given = match self.lookup_sym(at.object, name).filter(|_| !selects) {
            Some(node) => Given::Json(node),
            None if !span && self.undecoded(at.object)? => return Err(Stop::Undecoded),
            None => Given::Nothing,
        };
        let field = Field { name, ty, span, object: at.object, frame: at.frame, given };
        let start = self.pos();
        let Some(end) = self.last_end.filter(|end| end.blank && end.pos == start) else {
            return self.value(&field);
        };
        let mark = self.mark_place();
        let slot = self.value(&field)?;
        match self.out.bytes().get(start / 8) {
            // The blank before it is none that a program would send.
            Some(b'\r' | b'\n' | 0) => {
                self.back_to(mark);
                self.out().cut(start - end.bits);
                self.last_end = None;
                self.value(&field)
            }
            _ => Ok(slot),
        }
    }

    /// Whether to take a branch whose test is not known: what is in the object decides.
    fn branch(
        &mut self,
        test: Test,
        then: usize,
        otherwise: usize,
        at: Structure,
        choices: &mut Vec<Choice>,
    ) -> Result<bool, Stop> {
        if matches!(test, Test::More) && self.ended.is_some() {
            return Ok(false);
        }
        let taken = match self.look(then, otherwise, at.object) {
            Branch::Taken => true,
            Branch::Passed => false,
            Branch::Either(first) => {
                let first = first && !self.is_left_out(test, otherwise, at.object);
                let other = if first { otherwise } else { then };
                let check = matches!(test, Test::More) || self.about_unknowns(&test, at.frame);
                let check = check.then_some(Checked::Test(test, !first));
                let slots = self.kept(at.frame).to_vec();
                let mark = self.mark_place();
                choices.push(Choice { mark, slots, others: vec![(other, check)] });
                first
            }
        };
        if matches!(test, Test::More) && !taken {
            self.end_region(then, at.object);
        } else if matches!(test, Test::More) || self.about_unknowns(&test, at.frame) {
            self.add_check(Checked::Test(test, taken), at.frame, at.object)?;
        }
        Ok(taken)
    }

    /// The region ends here: the field at the step `from`, which is only there if it goes on, is
    /// absent.
    fn end_region(&mut self, from: usize, object: u32) {
        let steps = self.tables.steps().get(from..).unwrap_or(&[]);
        let name = steps.iter().find_map(|step| match step {
            LayoutStep::Field { name, .. } => Some(*name),
            _ => None,
        });
        let pos = self.pos();
        self.ended = self.ended.or(name.map(|name| RegionEnd { pos, object, name }));
    }

    /// A value behind the region's end: what is absent before it is missing.
    fn behind_end<T>(&self, end: RegionEnd) -> Result<T, Stop> {
        let missing = Some(end.name);
        let text = "is missing: a field behind it is there".to_string();
        Err(Stop::Failed(Box::new(Failure { node: end.object, missing, text })))
    }

    /// Whether a test depends on a number that is computed, or on how many bytes follow.
    fn about_unknowns(&self, test: &Test, frame: Frame) -> bool {
        self.test_has_slot(test, self.kept(frame), &|slot| matches!(slot, Slot::Unknown(_)))
            || matches!(test, Test::General(id) if self.needs_end(*id))
    }

    /// Whether a test uses a kept value that is so.
    pub(super) fn test_has_slot(
        &self,
        test: &Test,
        slots: &[Slot],
        so: &impl Fn(Slot) -> bool,
    ) -> bool {
        match test {
            Test::Has(slot, _)
            | Test::Equals(slot, _)
            | Test::Differs(slot, _)
            | Test::Above(slot, _) => slots.get(usize::from(*slot)).copied().is_some_and(so),
            Test::Dialect(..) | Test::More => false,
            Test::General(id) => self.has_slot(*id, slots, so),
        }
    }

    fn has_unknown(&self, id: ExprId, frame: Frame) -> bool {
        self.has_slot(id, self.kept(frame), &|slot| matches!(slot, Slot::Unknown(_)))
    }

    /// Whether an expression uses a kept value that is so.
    pub(super) fn has_slot(&self, id: ExprId, slots: &[Slot], so: &impl Fn(Slot) -> bool) -> bool {
        let has = |id: &ExprId| self.has_slot(*id, slots, so);
        match self.tables.ex(id) {
            Some(Ex::Slot { slot, .. }) => slots.get(usize::from(*slot)).copied().is_some_and(so),
            Some(Ex::Binary(_, a, b)) => has(a) || has(b),
            Some(Ex::Not(a) | Ex::Recall(_, a)) => has(a),
            Some(Ex::In(a, list)) => has(a) || list.iter().any(has),
            _ => false,
        }
    }

    /// What the object says of a branch: its steps are those from `then` to `otherwise`.
    fn look(&self, then: usize, otherwise: usize, object: u32) -> Branch {
        let steps = self.tables.steps();
        let inside = steps.get(then..otherwise).unwrap_or(&[]);
        let end = match inside.last() {
            Some(LayoutStep::Jump(to)) if *to as usize > otherwise => *to as usize,
            _ => otherwise,
        };
        let behind = steps.get(otherwise..end).unwrap_or(&[]);
        let fields = |steps: &[LayoutStep]| -> Vec<Sym> {
            let names = steps.iter().filter_map(|step| match step {
                LayoutStep::Field { name, marks, op, .. }
                    if (marks | op.marks) & mark::SPAN == 0 =>
                {
                    Some(*name)
                }
                LayoutStep::Empty { name, .. } => Some(*name),
                _ => None,
            });
            names.collect()
        };
        let (ours, others) = (fields(inside), fields(behind));
        let there = |names: &[Sym], not: &[Sym]| {
            names.iter().any(|name| !not.contains(name) && self.lookup_sym(object, *name).is_some())
        };
        let said = |steps: &[LayoutStep]| {
            steps.iter().any(|step| match step {
                LayoutStep::Say { text, .. } => self.is_said(object, self.tables.name(*text)),
                _ => false,
            })
        };
        let only_says = |steps: &[LayoutStep]| {
            steps.iter().any(|step| matches!(step, LayoutStep::Say { .. }))
                && !steps.iter().any(|step| matches!(step, LayoutStep::Field { .. }))
        };
        match (there(&ours, &others), there(&others, &ours)) {
            (true, false) => return Branch::Taken,
            (false, true) => return Branch::Passed,
            _ => {}
        }
        if said(inside) {
            return Branch::Taken;
        }
        if said(behind) || only_says(inside) {
            return Branch::Passed;
        }
        if only_says(behind) && there(&ours, &[]) {
            return Branch::Taken;
        }
        let first = inside.iter().find_map(|step| match step {
            LayoutStep::Field { marks, op, .. } => Some((marks | op.marks) & mark::SPAN != 0),
            _ => None,
        });
        match first {
            // A field that the object does not have.
            Some(false) if !there(&ours, &[]) => Branch::Passed,
            // Only computed numbers: they are there if anything else is.
            Some(true) if ours.is_empty() => Branch::Either(self.unused(object).next().is_some()),
            Some(_) => Branch::Either(true),
            None => Branch::Either(false),
        }
    }

    /// The step of a choice between layouts whose number is not known.
    fn switch(
        &mut self,
        on: ExprId,
        targets: &[(i128, u32)],
        otherwise: u32,
        at: Structure,
        choices: &mut Vec<Choice>,
    ) -> Result<usize, Stop> {
        let known = self.has_unknown(on, at.frame);
        let mut others: Vec<(usize, Option<Checked>)> = vec![(otherwise as usize, None)];
        others.extend(
            targets
                .iter()
                .rev()
                .map(|(value, step)| (*step as usize, known.then_some(Checked::Is(on, *value)))),
        );
        let first = others.pop().unwrap_or((otherwise as usize, None));
        let slots = self.kept(at.frame).to_vec();
        let mark = self.mark_place();
        choices.push(Choice { mark, slots, others });
        if let Some(check) = first.1 {
            self.add_check(check, at.frame, at.object)?;
        }
        Ok(first.0)
    }

    /// At a structure's end: bytes that no field claims, or keys that it does not have.
    fn nothing_left(&mut self, layout: &Layout, object: u32) -> Result<(), Stop> {
        if self.json.kind(object) != JsonKind::Object || self.shared == Some(object) {
            return Ok(());
        }
        match self.unused(object).next() {
            None => Ok(()),
            Some(node) if self.json.key(node) == "undecoded" => Ok(()),
            Some(node) => {
                let names = self.names_of(layout);
                let key = self.json.key(node);
                let near = match names.contains(&key) {
                    true => ": not with these values of the fields before it".to_string(),
                    false => crate::suggest::suggestion(key, names.into_iter()),
                };
                let of = self.tables.name(layout.name);
                self.fail(node, format!("is no field of {of}{near}"))
            }
        }
    }

    /// The values of an object that were not written yet.
    fn unused(&self, object: u32) -> impl Iterator<Item = u32> + '_ {
        self.json
            .children(object)
            .filter(|child| self.used.get(*child as usize) == Some(&super::Used::No))
    }

    /// The names of a layout's fields, those of all branches.
    fn names_of(&self, layout: &Layout) -> Vec<&str> {
        let steps = self.tables.steps().iter().skip(layout.start as usize);
        let steps = steps.take_while(|step| !matches!(step, LayoutStep::End));
        let names = steps.filter_map(|step| match step {
            LayoutStep::Field { name, .. } => Some(self.tables.name(*name)),
            _ => None,
        });
        names.collect()
    }

    /// The first key of an object that no field of the layout has.
    fn wrong_name(&self, layout: &Layout, object: u32) -> Option<Box<Failure>> {
        if self.shared == Some(object) {
            return None;
        }
        let names = self.names_of(layout);
        let is_wrong = |child: &u32| {
            let key = self.json.key(*child);
            key != "undecoded" && !names.contains(&key)
        };
        let node = self.unused(object).find(is_wrong)?;
        let near = crate::suggest::suggestion(self.json.key(node), names.iter().copied());
        let text = format!("is no field of {}{near}", self.tables.name(layout.name));
        Some(Box::new(Failure { node, missing: None, text }))
    }
}

/// Of two failures of the same structure, the one that says more: a wrong value rather than a
/// missing or unknown one.
fn better(first: Option<Box<Failure>>, second: Box<Failure>) -> Box<Failure> {
    match first {
        Some(first) if first.node >= second.node && first.missing.is_none() => first,
        _ => second,
    }
}
