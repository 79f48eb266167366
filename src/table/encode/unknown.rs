//! Numbers that JSON does not have: counts, lengths, presences, checksums. They are zeros at first.
//! What depends on them says what they must be: a length, once its content is written; a branch,
//! once it is taken. Then they are replaced. Where a number has more bytes if it is greater, the
//! whole message is written once more, with this number from the beginning.

use super::super::program::*;
use super::expr::{Place, Value};
use super::{AskedHabits, Encoding, Field, Frame, RegionEnd, Slot, Stop};

/// A number that is computed.
#[derive(Debug)]
pub(super) struct Unknown {
    /// Once it is known.
    pub(super) value: Option<u64>,
    field: Field,
    /// How many buffers are around its own, and the bit where it stands.
    buffer: usize,
    pos: usize,
    /// The value if nothing says anything else. `None` if it must be computed.
    default: Option<u64>,
    /// The value that stands in the bytes.
    placed: u64,
}

/// What a branch that was taken says of unknown numbers.
#[derive(Clone, Debug)]
pub(super) struct Check {
    pub(super) what: Checked,
    /// A copy of the kept values of its structure.
    slots: Vec<Slot>,
    pos: usize,
    /// The object that the structure is written from.
    object: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Checked {
    /// A test, and whether it holds.
    Test(Test, bool),
    /// The value of an expression.
    Is(ExprId, i128),
}

/// How many bytes the whole message has, which its beginning says.
#[derive(Debug)]
pub(super) struct WholeLength {
    of: ExprId,
    slots: Vec<Slot>,
    /// Where the beginning ends.
    pos: usize,
    object: u32,
}

impl WholeLength {
    fn is_about(&self, encoding: &Encoding<'_>, id: u32) -> bool {
        encoding.has_slot(self.of, &self.slots, &|slot| slot == Slot::Unknown(id))
    }
}

/// A checksum that is computed once everything else is written.
#[derive(Debug)]
pub(super) struct LateSum {
    sum: Checksum,
    unknown: u32,
    size: usize,
    from: ExprId,
    to: ExprId,
    slots: Vec<Slot>,
    pos: usize,
}

/// How far a message was written, to return there.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    outer: usize,
    pos: usize,
    unknowns: usize,
    solved: usize,
    checks: usize,
    sums: usize,
    marked: usize,
    depth: u32,
    dialects: u32,
    ended: Option<RegionEnd>,
    empty_lists: u32,
    asked: AskedHabits,
}

impl Encoding<'_> {
    /// Where writing is now.
    pub fn mark_place(&self) -> Mark {
        Mark {
            outer: self.outer.len(),
            pos: self.pos(),
            unknowns: self.unknowns.len(),
            solved: self.solved.len(),
            checks: self.checks.len(),
            sums: self.sums.len(),
            marked: self.marked.len(),
            depth: self.depth,
            dialects: self.dialects,
            ended: self.ended,
            empty_lists: self.empty_lists,
            asked: self.state.asked,
        }
    }

    /// Undoes what was written since.
    pub fn back_to(&mut self, mark: Mark) {
        while self.outer.len() > mark.outer {
            self.close_buffer();
        }
        self.out().cut(mark.pos);
        for id in self.solved.drain(mark.solved..) {
            if let Some(unknown) = self.unknowns.get_mut(id as usize) {
                unknown.value = None;
            }
        }
        self.unknowns.truncate(mark.unknowns);
        self.checks.truncate(mark.checks);
        self.sums.truncate(mark.sums);
        for node in self.marked.drain(mark.marked..) {
            if let Some(used) = self.used.get_mut(node as usize) {
                *used = super::Used::No;
            }
        }
        self.names.retain(|_, at| *at * 8 < mark.pos);
        self.depth = mark.depth;
        self.dialects = mark.dialects;
        self.ended = mark.ended;
        self.empty_lists = mark.empty_lists;
        self.state.asked = mark.asked;
        self.forget_ends();
    }

    /// Writes a number that is computed later: as it was found to be when the message was written
    /// before, or 0.
    pub(super) fn put_unknown(&mut self, field: Field, default: Option<u64>) -> Result<Slot, Stop> {
        let id = self.unknowns.len();
        let (buffer, pos) = (self.outer.len(), self.pos());
        let placed = self.found.get(id).copied().unwrap_or(0);
        self.put_number(&field, i128::from(placed as i64))?;
        self.unknowns.push(Unknown { value: None, field, buffer, pos, default, placed });
        Ok(Slot::Unknown(id as u32))
    }

    /// The numbers that were found. `None` if all of them stand in the bytes.
    pub(super) fn found_others(&self) -> Option<Vec<u64>> {
        let found = |unknown: &Unknown| unknown.value.unwrap_or(unknown.placed);
        let differs = self.unknowns.iter().any(|unknown| found(unknown) != unknown.placed);
        differs.then(|| self.unknowns.iter().map(found).collect())
    }

    /// An unknown number is known now.
    pub(super) fn settle(&mut self, id: u32, value: u64) -> Result<(), Stop> {
        let Some(unknown) = self.unknowns.get(id as usize) else { return Ok(()) };
        if unknown.value.is_some() {
            return Ok(());
        }
        let (field, buffer, pos) = (unknown.field, unknown.buffer, unknown.pos);
        let read = self.tables.type_def(field.ty).map(|def| &def.read);
        let replaced = matches!(read, Some(ReadAs::Int { .. } | ReadAs::Bool));
        if replaced {
            let bytes = self.integer_bytes(&field, i128::from(value))?;
            match self.outer.get_mut(buffer) {
                Some(outer) => outer.replace(pos, &bytes),
                None => self.out.replace(pos, &bytes),
            }
        }
        if let Some(unknown) = self.unknowns.get_mut(id as usize) {
            unknown.value = Some(value);
            if replaced {
                unknown.placed = value;
            }
            self.solved.push(id);
        }
        Ok(())
    }

    /// The expression has this value: computes the unknown number in it, or compares.
    pub(super) fn require(
        &mut self,
        id: ExprId,
        wanted: i128,
        field: &Field,
        of: &str,
    ) -> Result<(), Stop> {
        let frame = field.frame;
        match self.value_of(id, frame) {
            Value::Known(value) if value == wanted => Ok(()),
            Value::Known(value) => {
                self.fail_at(field, format!("{wanted} {of}, where the fields before say {value}"))
            }
            Value::Absent => self.fail_at(field, "its length depends on a field that is absent"),
            Value::Unknown => {
                let place = Place { slots: self.kept(frame), pos: self.pos(), left: None };
                match self.solve(id, wanted, place) {
                    Some((id, value)) => self.settle(id, value),
                    None => self.add_check(Checked::Is(id, wanted), frame, field.object),
                }
            }
        }
    }

    pub(super) fn add_check(
        &mut self,
        what: Checked,
        frame: Frame,
        object: u32,
    ) -> Result<(), Stop> {
        let slots = self.kept(frame).to_vec();
        self.checks.push(Check { what, slots, pos: self.pos(), object });
        Ok(())
    }

    /// Whether a check depends on a kept value.
    fn is_about(&self, check: &Check, wanted: Slot) -> bool {
        let is_wanted = |slot| slot == wanted;
        match &check.what {
            Checked::Test(test, _) => self.test_has_slot(test, &check.slots, &is_wanted),
            Checked::Is(id, _) => self.has_slot(*id, &check.slots, &is_wanted),
        }
    }

    /// Whether a check is fulfilled. `None` if that is not known yet.
    fn is_fulfilled(&self, check: &Check, end: Option<usize>) -> Option<bool> {
        let left = end.map(|end| end.saturating_sub(check.pos));
        let place = Place { slots: &check.slots, pos: check.pos, left };
        match &check.what {
            Checked::Test(test, wanted) => self.test(test, place).map(|holds| holds == *wanted),
            Checked::Is(id, wanted) => match self.evaluate(*id, place) {
                Value::Known(value) => Some(value == *wanted),
                Value::Absent => Some(false),
                Value::Unknown => None,
            },
        }
    }

    /// At the end of a structure or of a region, which ends at the bit `end`: what the branches say
    /// decides the numbers that no length has decided, and must be true of all others.
    pub(super) fn resolve(
        &mut self,
        unknowns: usize,
        checks: usize,
        end: Option<usize>,
    ) -> Result<(), Stop> {
        for id in unknowns..self.unknowns.len() {
            let Some(unknown) = self.unknowns.get(id).filter(|u| u.value.is_none()) else {
                continue;
            };
            let id = id as u32;
            // A checksum and the message's length are known at its end.
            if self.sums.iter().any(|sum| sum.unknown == id)
                || self.length.as_ref().is_some_and(|length| length.is_about(self, id))
            {
                continue;
            }
            let (field, default) = (unknown.field, unknown.default);
            let mut about = Vec::new();
            for (at, check) in self.checks.iter().enumerate().skip(checks) {
                if self.is_about(check, Slot::Unknown(id))
                    && self.is_fulfilled(check, end).is_none()
                {
                    about.push(at);
                }
            }
            match (about.is_empty(), default) {
                (true, Some(value)) => self.settle(id, value)?,
                (true, None) => return self.missing(&field),
                (false, _) => self.choose(id, &about, default, end)?,
            }
        }
        let wrong = self
            .checks
            .iter()
            .skip(checks)
            .position(|check| self.is_fulfilled(check, end) == Some(false));
        match wrong.and_then(|at| self.checks.get(checks + at)) {
            Some(check) => {
                let mut about = check.slots.iter().filter(|slot| self.is_about(check, **slot));
                let unknown = about.find_map(|slot| match slot {
                    Slot::Unknown(id) => self.unknowns.get(*id as usize),
                    _ => None,
                });
                match unknown {
                    Some(unknown) => {
                        self.fail_at(&unknown.field, "no number says what the other fields are")
                    }
                    None => {
                        let text = "has too many or too few bytes for these fields: how many \
                                    follow decides which ones there are";
                        self.fail(check.object, text)
                    }
                }
            }
            None => Ok(()),
        }
    }

    /// Whether all checks may be fulfilled if the region ends at the bit `end`.
    pub(super) fn are_fulfilled(&self, checks: usize, end: usize) -> bool {
        let checks = self.checks.iter().skip(checks);
        checks.map(|check| self.is_fulfilled(check, Some(end))).all(|so| so != Some(false))
    }

    /// At the end of a region, which ends at the bit `end`: what was checked is true of this region
    /// alone. What is not known yet waits.
    pub(super) fn drop_checks(&mut self, checks: usize, end: usize) {
        let mut own = self.checks.split_off(checks.min(self.checks.len()));
        own.retain(|check| self.is_fulfilled(check, Some(end)).is_none());
        self.checks.append(&mut own);
    }

    /// The first number with which all checks about it are fulfilled. Those that need the region's
    /// end wait for it.
    fn choose(
        &mut self,
        id: u32,
        about: &[usize],
        default: Option<u64>,
        end: Option<usize>,
    ) -> Result<(), Stop> {
        let mut values: Vec<u64> = default.into_iter().collect();
        values.extend([0, 1]);
        let needs_end = |check: &&Check| match check.what {
            Checked::Test(Test::General(ex), _) | Checked::Is(ex, _) => self.needs_end(ex),
            _ => false,
        };
        if end.is_none()
            && about.iter().filter_map(|at| self.checks.get(*at)).any(|c| needs_end(&c))
        {
            return Ok(());
        }
        for check in about.iter().filter_map(|at| self.checks.get(*at)) {
            let left = end.map(|end| end.saturating_sub(check.pos));
            let place = Place { slots: &check.slots, pos: check.pos, left };
            let mut near = Vec::new();
            match check.what {
                Checked::Test(Test::Has(_, mask), true) => near.push((id, mask)),
                Checked::Test(
                    Test::Equals(_, value) | Test::Differs(_, value) | Test::Above(_, value),
                    _,
                ) => {
                    near.extend([(id, value), (id, value.wrapping_add(1))]);
                }
                Checked::Test(Test::General(ex), _) | Checked::Is(ex, _) => {
                    self.candidates(ex, place, &mut near);
                }
                _ => {}
            }
            values.extend(near.into_iter().filter(|(of, _)| *of == id).map(|(_, value)| value));
        }
        let masks = about.iter().filter_map(|at| match self.checks.get(*at)?.what {
            Checked::Test(Test::Has(_, mask), true) => Some(mask),
            _ => None,
        });
        values.push(masks.fold(0, |all, mask| all | mask));
        for value in values {
            if let Some(unknown) = self.unknowns.get_mut(id as usize) {
                unknown.value = Some(value);
            }
            let fits = about
                .iter()
                .filter_map(|at| self.checks.get(*at))
                .all(|check| self.is_fulfilled(check, end) != Some(false));
            if let Some(unknown) = self.unknowns.get_mut(id as usize) {
                unknown.value = None;
            }
            if fits {
                return self.settle(id, value);
            }
        }
        match self.unknowns.get(id as usize).map(|unknown| unknown.field) {
            Some(field) => self.fail_at(&field, "no number says what the other fields are"),
            None => Ok(()),
        }
    }

    /// The beginning of the message is written: its number is that of the message, and its length is
    /// known at the end.
    pub(super) fn chosen(
        &mut self,
        number: Option<ExprId>,
        length: Option<ExprId>,
        field: &Field,
    ) -> Result<(), Stop> {
        if let (Some(id), Some(wanted)) = (number, self.number) {
            if let Some(Ex::Next(0)) = self.tables.ex(id) {
                let byte = u8::try_from(wanted).ok();
                self.certain = (self.pos() / 8, byte.into_iter().collect());
            }
            self.require(id, i128::from(wanted), field, "selects this message")?;
        }
        if let Some((name, word)) = self.word.take() {
            let written = self.last_text.as_ref().filter(|(of, _)| *of == name);
            let selects = written.is_some_and(|(_, text)| match self.any_case {
                true => text.eq_ignore_ascii_case(word.as_bytes()),
                false => text == word.as_bytes(),
            });
            if !selects {
                return self.fail_at(field, format!("begins with another word than `{word}`"));
            }
        }
        self.length = length.map(|of| WholeLength {
            of,
            slots: self.kept(field.frame).to_vec(),
            pos: self.pos(),
            object: field.object,
        });
        Ok(())
    }

    /// The message ends here: computes the length in its beginning, or compares it.
    pub(super) fn require_length(&mut self) -> Result<(), Stop> {
        let Some(length) = self.length.take() else { return Ok(()) };
        let wanted = (self.pos() / 8) as i128;
        let place = Place { slots: &length.slots, pos: length.pos, left: None };
        match self.evaluate(length.of, place) {
            Value::Known(value) if value == wanted => Ok(()),
            Value::Known(value) => self.fail(
                length.object,
                format!("has {wanted} bytes, where the fields at its beginning say {value}"),
            ),
            Value::Absent => {
                self.fail(length.object, "its length depends on a field that is absent")
            }
            Value::Unknown => match self.solve(length.of, wanted, place) {
                Some((id, value)) => self.settle(id, value),
                None => self.fail(length.object, "no number says that it has so many bytes"),
            },
        }
    }

    /// The checksum in the field before is computed at the message's end.
    pub(super) fn add_sum(
        &mut self,
        sum: Checksum,
        unknown: u32,
        size: u8,
        range: (ExprId, ExprId),
        frame: Frame,
    ) {
        let slots = self.kept(frame).to_vec();
        let (from, to) = range;
        let (size, pos) = (usize::from(size), self.pos());
        self.sums.push(LateSum { sum, unknown, size, from, to, slots, pos });
    }

    /// Computes the checksums, in the order in which they stand.
    pub(super) fn resolve_sums(&mut self) -> Result<(), Stop> {
        for late in std::mem::take(&mut self.sums) {
            let end = self.pos();
            let left = Some(end.saturating_sub(late.pos));
            let place = Place { slots: &late.slots, pos: late.pos, left };
            let at = |id| match self.evaluate(id, place) {
                Value::Known(at) => usize::try_from(at).ok(),
                _ => None,
            };
            let Some(range) = at(late.from).zip(at(late.to)) else { continue };
            let own_end = late.pos / 8;
            let own = own_end.saturating_sub(late.size)..own_end;
            let bytes = self.out.bytes().get(range.0..range.1);
            let zeroed = bytes.unwrap_or(&[]).iter().enumerate();
            let zeroed =
                zeroed.map(|(at, byte)| if own.contains(&(at + range.0)) { 0 } else { *byte });
            let value = super::super::eval::sum(late.sum, zeroed);
            self.settle(late.unknown, value)?;
        }
        Ok(())
    }
}
