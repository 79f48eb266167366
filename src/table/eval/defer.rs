//! Leaves out the object at a message's end, whose length is known, and reads it later, on any
//! thread.

use super::super::last_object::{LastObject, PlainNumbers};
use super::super::program::*;
use super::super::skip::SkipProgram;
use super::skip::{Skip, SkipPlace, Skipped, Stopped};
use super::{Outcome, PaddedBytes, Run, Slots};
use crate::table::MessageId;
use crate::tree::{DeferredPart, Deferring, Outline};

impl Run<'_, Outline> {
    /// Reads the [deferred part](DeferredPart) of a message, of which an outline has the rest.
    /// `None` if the evaluator has to read the message.
    pub(super) fn skip_deferred(
        &mut self,
        id: MessageId,
        part: DeferredPart,
        bytes: PaddedBytes<'_>,
    ) -> Option<Outcome> {
        let outcome = Outcome::Message(id, bytes.length);
        self.skip(bytes, Some(part), |skip| skip.deferred(part).map(|()| outcome))
    }
}

impl<'r> Skip<'r, '_> {
    /// Passes over the fields of a message whose last object may be deferred. Most such messages
    /// have nothing but a few numbers before it.
    pub(super) fn deferring(&mut self, program: &'r SkipProgram) -> Skipped<()> {
        let last = program.last_object.as_ref();
        self.last_object = last;
        match last {
            Some(last) if self.defer_behind_numbers(program, last)? => Ok(()),
            None if self.tree.deferring() == Deferring::Only => Err(Stopped::Unclear),
            _ => self.program(program),
        }
    }

    /// Defers the object, if plain numbers are all there is before it. Returns `false`, and stays
    /// where it is, if not.
    fn defer_behind_numbers(&mut self, program: &SkipProgram, last: &LastObject) -> Skipped<bool> {
        let begins = self.place;
        let marks = self.marks;
        let Some(numbers) = last.before.filter(|numbers| numbers.bytes <= begins.end - begins.pos)
        else {
            return Ok(false);
        };
        if self.state.depth + program.depth > self.state.limits.depth {
            return Ok(false);
        }
        let PlainNumbers { bytes, nodes, marks: of_numbers, length, region_marks } = numbers;
        self.pass(bytes)?;
        self.count(of_numbers, nodes);
        let content = length.value(self.last_eight(length.size));
        self.state.depth += 1;
        let deferred = self.defer_content(
            region_marks,
            last,
            usize::try_from(content).map_err(|_| Stopped::Unclear)?,
        )?;
        self.state.depth -= 1;
        if !deferred {
            (self.place, self.marks) = (begins, marks);
        }
        Ok(deferred)
    }

    /// Passes over the region at the message's end without a look at its content. Returns `false`,
    /// and stays where it is, if that cannot be deferred.
    pub(super) fn defer(
        &mut self,
        marks: u8,
        last: &LastObject,
        len: Len,
        frame: Slots,
    ) -> Skipped<bool> {
        let begins = self.place;
        let content = self.region_length(len, frame)?;
        let deferred = self.defer_content(marks, last, content)?;
        if !deferred {
            self.place = begins;
        }
        Ok(deferred)
    }

    /// Passes over the content of the region at the message's end, if that is a self-contained
    /// object and there is nothing unusual before it.
    fn defer_content(&mut self, marks: u8, last: &LastObject, content: usize) -> Skipped<bool> {
        self.reaches(content)?;
        let tables = self.tables;
        let family = tables.family(last.family).ok_or(Stopped::Unclear)?;
        let number = tables.type_op(family.of);
        let fits = number.how == TypeOpKind::Little && content >= usize::from(number.scalar.size);
        let member = family
            .numbers
            .find(number.scalar.value(self.next_eight()))
            .and_then(|at| family.members.get(at));
        if self.state.defers_nothing
            || !fits
            || !self.tree.is_plain()
            || !member.is_some_and(|member| tables.is_self_contained(member.1))
        {
            return Ok(false);
        }
        let SkipPlace { pos, nodes, .. } = self.place;
        self.count(marks, 1);
        let at = pos as u32;
        let depth = u8::try_from(self.state.depth).map_err(|_| Stopped::Unclear)?;
        self.pass(content)?;
        let part = DeferredPart { region: last.region, at, nodes, marks: self.marks, depth };
        self.tree.defer(part, self.state.context.as_ref());
        Ok(true)
    }

    /// Passes over a deferred part. As [`region`](Skip::region) does, of which everything up to the
    /// content was passed over before.
    fn deferred(&mut self, part: DeferredPart) -> Skipped<()> {
        let def = self.tables.type_def(part.region).ok_or(Stopped::Unclear)?;
        let ReadAs::Region(region) = &def.read else { return Err(Stopped::Unclear) };
        let content = self.place.end - self.place.pos;
        self.state.regions = 1;
        self.state.depth = u32::from(part.depth);
        self.content(region, Slots::default())?;
        self.check_max(def, part.nodes, content as u64);
        Ok(())
    }
}
