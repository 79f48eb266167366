//! Passes over regions: bytes of known length with a content of their own, which has to end where they do.

use super::super::program::*;
use super::Slots;
use super::extent::FoundEnd;
use super::inflate::{Inflated, PackedSizes};
use super::region::Choices;
use super::skip::{Skip, SkipPlace, Skipped, Stopped};
use crate::tree::{Checkpoint, TypeRef, mark};

impl Skip<'_, '_, '_> {
    /// Passes over the region at the message's end without a look at its content, if that is a self-contained object. Returns `false`, and stays where it is, if it
    /// is not.
    pub(super) fn defer(&mut self, marks: u8, ty: TypeRef, len: Len, frame: Slots) -> Skipped<bool> {
        let (tables, begins) = (self.run.tables, self.place);
        let count = self.length(len, frame)?;
        let FoundEnd { content, .. } = self.run.extent(&self.cursor(), &count, 1).map_err(|_| Stopped::Unclear)?;
        let family = tables.object_in(ty).ok_or(Stopped::Unclear)?;
        let number = tables.type_op(family.of);
        let fits = number.how == TypeOpKind::Little && content >= usize::from(number.scalar.size);
        let member = family.numbers.find(number.scalar.value(self.eight(0))).and_then(|at| family.members.get(at));
        if self.run.state.defers_nothing || !fits || !member.is_some_and(|member| tables.is_self_contained(member.1)) {
            self.place = begins;
            return Ok(false);
        }
        self.count(marks, 1);
        self.pass(content)?;
        self.run.tree.defer(self.run.state.context.as_ref());
        Ok(true)
    }

    pub(super) fn region(&mut self, marks: u8, def: &TypeDef, region: &RegionType, frame: Slots) -> Skipped<u64> {
        let count = self.length(region.len, frame)?;
        let FoundEnd { content, .. } = self.run.extent(&self.cursor(), &count, 1).map_err(|_| Stopped::Unclear)?;
        // Of a region that is cut off the evaluator reads what is there, and may ask about further dialects.
        let end = self.place.pos.checked_add(content).filter(|end| *end <= self.place.end).ok_or(Stopped::Unclear)?;
        let outer = std::mem::replace(&mut self.place.end, end);
        let node = self.place.nodes;
        self.run.state.regions += 1;
        match region.zlib {
            None => self.content(region, frame)?,
            Some(Zlib { keep, size }) => {
                let sizes = self.evaluate(|run, cursor| {
                    let keep = run.expr(keep, frame, cursor).unwrap_or(0).max(0) as usize;
                    let announced = run.expr(size, frame, cursor).unwrap_or(0).max(0) as usize;
                    PackedSizes { keep, announced }
                });
                self.packed(region, sizes, frame)?;
            }
        }
        self.run.state.regions -= 1;
        self.place.end = outer;
        self.marks |= marks;
        self.check_max(def, node, content as u64);
        Ok(0)
    }

    /// Passes over the content of a region, which has to end where the region does. As [`Run::bounded`].
    fn content(&mut self, region: &RegionType, frame: Slots) -> Skipped<()> {
        let begins = self.begin();
        let inner = *region.inner.first().ok_or(Stopped::Unclear)?;
        let outer_asked = std::mem::replace(&mut self.run.state.consulted, 0);
        let fits = self.attempt(inner, frame)?;
        let mut asked = std::mem::replace(&mut self.run.state.consulted, outer_asked);
        self.run.state.consulted |= asked;
        if fits {
            return Ok(());
        }
        if region.inner.len() > 1 || !region.dialects {
            return Err(Stopped::Unclear);
        }
        let spoken = self.run.state.dialects;
        let mut choices = Choices::default();
        while let Some(choice) = choices.next(asked, self.run.state) {
            self.back_to(begins)?;
            self.run.state.dialects = spoken | choice;
            let outer_asked = std::mem::replace(&mut self.run.state.consulted, 0);
            let fits = self.attempt(inner, frame)?;
            asked |= self.run.state.consulted;
            self.run.state.consulted |= outer_asked;
            self.run.state.dialects = spoken;
            if fits {
                self.run.say_dialects(begins.place.nodes, choice);
                return Ok(());
            }
        }
        Err(Stopped::Unclear)
    }

    /// Passes over a type. Returns whether it fills the region.
    fn attempt(&mut self, ty: TypeRef, frame: Slots) -> Skipped<bool> {
        match self.value(ty, 0, frame) {
            Ok(_) => Ok(self.place.pos == self.place.end && !self.place.failed),
            Err(Stopped::Misfit) => Ok(false),
            Err(Stopped::Unclear) => Err(Stopped::Unclear),
        }
    }

    /// The state before a form of a region is tried.
    fn begin(&self) -> Beginning {
        let state = &*self.run.state;
        let (place, problems) = (self.place, self.run.tree.checkpoint());
        Beginning { place, problems, depth: state.depth, top: state.top, regions: state.regions }
    }

    /// Returns to where a region began.
    fn back_to(&mut self, to: Beginning) -> Skipped<()> {
        self.node_limit()?;
        self.place = to.place;
        self.run.tree.back_to(to.problems);
        let state = &mut *self.run.state;
        (state.depth, state.top, state.regions) = (to.depth, to.top, to.regions);
        Ok(())
    }

    /// The compressed content of a region.
    fn packed(&mut self, region: &RegionType, sizes: PackedSizes, frame: Slots) -> Skipped<()> {
        let (buffer, mut bytes) = self.run.tree.open_buffer();
        let state = &mut *self.run.state;
        let room = state.limits.decompressed.saturating_sub(state.inflated);
        let raw = self.data.get(self.place.pos..self.place.end).unwrap_or(&[]);
        let (good, _) = state.inflate.unpack(raw, sizes, room, &mut bytes);
        state.inflated += bytes.len();
        let announced = sizes.announced == 0 || sizes.announced == bytes.len();
        let place = SkipPlace { pos: 0, end: bytes.len(), ..self.place };
        let slots = std::mem::take(&mut self.slots);
        let (run, marks) = (&mut *self.run, self.marks);
        let mut inside = Skip { run, data: &bytes, buffer, place, marks, slots, last_object: None };
        let whole = good == Inflated::Whole && announced && !bytes.is_empty();
        let read = if whole { inside.content(region, frame) } else { Err(Stopped::Unclear) };
        let Skip { place, marks, slots, .. } = inside;
        self.place = SkipPlace { pos: self.place.end, end: self.place.end, ..place };
        (self.marks, self.slots) = (marks | mark::OWN_BUFFER, slots);
        self.run.tree.put_buffer(bytes);
        read
    }
}

/// What is restored before another form of a region is tried.
#[derive(Clone, Copy)]
struct Beginning {
    place: SkipPlace,
    problems: Checkpoint,
    depth: u32,
    top: usize,
    regions: u32,
}
