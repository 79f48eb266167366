//! Passes over regions: bytes of known length with a content of their own, which has to end where
//! they do.

use super::super::cursor::Cursor;
use super::super::program::*;
use super::Slots;
use super::extent::Count;
use super::inflate::{Inflated, PackedSizes};
use super::region::Choices;
use super::skip::{Skip, SkipPlace, Skipped, Stopped};
use crate::tree::{Checkpoint, ChosenDialects, TypeRef, mark};

impl Skip<'_, '_> {
    /// How many bytes a region has, as its length says.
    #[inline]
    pub(super) fn region_length(&mut self, len: Len, frame: Slots) -> Skipped<usize> {
        match self.length(len, frame)? {
            Count::Units(n) | Count::Bytes(n) => usize::try_from(n).map_err(|_| Stopped::Unclear),
            Count::Rest => Ok(self.place.end - self.place.pos),
            _ => Err(Stopped::Unclear),
        }
    }

    /// Whether all bytes of a region's content are there. If they are not, but may still come,
    /// nothing else is to be known of the message. Of a region that is cut off within another one
    /// the evaluator reads what is there, and may ask about further dialects.
    #[inline]
    pub(super) fn reaches(&mut self, content: usize) -> Skipped<()> {
        if content <= self.place.end - self.place.pos {
            return Ok(());
        }
        if self.state.regions == 0 && content <= Cursor::MAX_BYTES / 2 {
            self.need = Some(self.place.pos + content);
        }
        Err(Stopped::Unclear)
    }

    #[inline(never)]
    pub(super) fn region(
        &mut self,
        marks: u8,
        def: &TypeDef,
        region: &RegionType,
        frame: Slots,
    ) -> Skipped<u64> {
        let content = self.region_length(region.len, frame)?;
        self.reaches(content)?;
        let outer = std::mem::replace(&mut self.place.end, self.place.pos + content);
        let node = self.place.nodes;
        self.state.regions += 1;
        match region.zlib {
            None => self.content(region, frame)?,
            Some(Zlib { keep, size }) => {
                let sizes = self.compute(|run, cursor| {
                    let keep = run.expr(keep, frame, cursor).unwrap_or(0).max(0) as usize;
                    let announced = run.expr(size, frame, cursor).unwrap_or(0).max(0) as usize;
                    PackedSizes { keep, announced }
                });
                self.packed(region, sizes, frame)?;
            }
        }
        self.state.regions -= 1;
        self.place.end = outer;
        self.marks |= marks;
        self.check_max(def, node, content as u64);
        Ok(0)
    }

    /// Passes over the content of a region, which has to end where the region does. As
    /// [`Run::bounded`](super::Run::bounded).
    #[inline]
    pub(super) fn content(&mut self, region: &RegionType, frame: Slots) -> Skipped<()> {
        let inner = *region.inner.first().ok_or(Stopped::Unclear)?;
        if region.dialects && region.inner.len() == 1 {
            return self.content_in_dialects(inner, frame);
        }
        if self.attempt(inner, frame)? { Ok(()) } else { Err(Stopped::Unclear) }
    }

    /// The content of a region in the first form that fits.
    fn content_in_dialects(&mut self, inner: TypeRef, frame: Slots) -> Skipped<()> {
        let begins = self.begin();
        let outer_asked = std::mem::replace(&mut self.state.consulted, 0);
        let fits = self.attempt(inner, frame)?;
        let mut asked = std::mem::replace(&mut self.state.consulted, outer_asked);
        self.state.consulted |= asked;
        if fits {
            return Ok(());
        }
        let spoken = self.state.dialects;
        let mut choices = Choices::default();
        while let Some(choice) = choices.next(asked, self.state) {
            self.back_to(begins)?;
            self.state.dialects = spoken | choice;
            let outer_asked = std::mem::replace(&mut self.state.consulted, 0);
            let fits = self.attempt(inner, frame)?;
            asked |= self.state.consulted;
            self.state.consulted |= outer_asked;
            self.state.dialects = spoken;
            if fits {
                let buffer = self.buffer;
                let at = begins.place.pos as u32;
                self.run().in_dialects(
                    begins.place.nodes,
                    ChosenDialects { buffer, at, dialects: choice },
                );
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
        let state = &*self.state;
        let place = self.place;
        let problems = self.tree.checkpoint();
        Beginning { place, problems, depth: state.depth, top: state.top, regions: state.regions }
    }

    /// Returns to where a region began.
    fn back_to(&mut self, to: Beginning) -> Skipped<()> {
        self.node_limit()?;
        self.place = to.place;
        self.tree.back_to(to.problems);
        let state = &mut *self.state;
        (state.depth, state.top, state.regions) = (to.depth, to.top, to.regions);
        Ok(())
    }

    /// The compressed content of a region.
    fn packed(&mut self, region: &RegionType, sizes: PackedSizes, frame: Slots) -> Skipped<()> {
        let (buffer, mut bytes) = self.tree.open_buffer();
        let state = &mut *self.state;
        let room = state.limits.decompressed.saturating_sub(state.inflated);
        let raw = self.data.get(self.place.pos..self.place.end).unwrap_or(&[]);
        let (good, _) = state.inflate.unpack(raw, sizes, room, &mut bytes);
        state.inflated += bytes.len();
        let announced = sizes.announced == 0 || sizes.announced == bytes.len();
        let place = SkipPlace { pos: 0, end: bytes.len(), ..self.place };
        let Skip { tables, marks, .. } = *self;
        let tree = &mut *self.tree;
        let state = &mut *self.state;
        let last_object = None;
        let need = None;
        let mut inside =
            Skip { tables, tree, state, data: &bytes, buffer, place, marks, last_object, need };
        let whole = good == Inflated::Whole && announced && !bytes.is_empty();
        let read = if whole { inside.content(region, frame) } else { Err(Stopped::Unclear) };
        let Skip { place, marks, .. } = inside;
        self.place = SkipPlace { pos: self.place.end, end: self.place.end, ..place };
        self.marks = marks | mark::OWN_BUFFER;
        self.tree.put_buffer(buffer, bytes);
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
