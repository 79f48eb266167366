//! Reads regions: bytes of known length with a content of their own, read in the form that fits
//! them.

use super::super::cursor::Cursor;
use super::super::program::*;
use super::extent::FoundEnd;
use super::inflate::{Inflated, PackedSizes};
use super::{Evaluator, Field, Run, Slots, Stop};
use crate::tree::{
    Buffer, BufferOrigin, Concern, Kind, Node, Problem, ProblemText, Severity, Sym, TypeRef, mark,
};

/// The note of a region that was not read as the first of its types.
pub const OTHER_FORM: &str = "read in its form number {a}, which fits the bytes";

impl Run<'_> {
    pub(super) fn region(
        &mut self,
        cursor: &mut Cursor<'_>,
        Field { name, marks, .. }: Field,
        def: &TypeDef,
        frame: Slots,
    ) -> Result<u64, Stop> {
        let ReadAs::Region(region) = &def.read else {
            return Err(Stop::Unknown);
        };
        let count = self.count(cursor, region.len, frame)?;
        let FoundEnd { all, content: n } = self.extent(cursor, &count, 1)?;
        // If no more bytes can come, the available part of a cut-off region is read.
        let missing = if self.state.regions > 0 { n.saturating_sub(cursor.left()) } else { 0 };
        let outer = cursor.narrow(n - missing)?;
        self.state.regions += 1;
        let node = self.tree.len();
        match region.zlib {
            None => {
                self.bounded(cursor, name, &region.inner, region.dialects, frame);
            }
            Some(Zlib { keep, size }) => {
                let keep = self.expr(keep, frame, cursor).unwrap_or(0).max(0) as usize;
                let announced = self.expr(size, frame, cursor).unwrap_or(0).max(0) as usize;
                self.inflated(cursor, name, region, PackedSizes { keep, announced }, frame);
            }
        }
        self.state.regions -= 1;
        self.tree.mark(node, marks);
        self.check_max(def, node, n as u64);
        cursor.restore(outer);
        if missing > 0 {
            return Err(Stop::Short(cursor.pos() as u64 + missing as u64 * 8));
        }
        if all > n {
            self.ending(all - n, cursor);
        }
        Ok(0)
    }

    /// Reads the rest of the cursor's region as the first of `types` that fits it exactly. If none
    /// fits, reads it as the first one, and the bytes left over are undecoded. Returns the bit at
    /// which the type ended. The cursor goes to the region's end.
    pub fn bounded(
        &mut self,
        cursor: &mut Cursor<'_>,
        name: Sym,
        inner: &[TypeRef],
        dialects: bool,
        frame: Slots,
    ) -> usize {
        let start = *cursor;
        let before = self.tree.checkpoint();
        // What a form sets that does not fit is dropped.
        let states = match self.state.set_states.as_slice() {
            [] => Vec::new(),
            set => set.to_vec(),
        };
        let last = self.state.last;
        let mut asked = 0;
        let spoken = self.state.dialects;
        for (i, ty) in inner.iter().enumerate() {
            let outer_asked = std::mem::replace(&mut self.state.consulted, 0);
            let fits = self.attempt(cursor, name, *ty, frame);
            if i == 0 {
                asked = self.state.consulted;
            }
            self.state.consulted |= outer_asked;
            if fits {
                if i > 0 {
                    self.problem(Severity::Note, before_node(before), OTHER_FORM, i as i64 + 1, 0);
                }
                return cursor.pos();
            }
            if inner.len() > 1 || (dialects && asked != 0) {
                self.tree.back_to(before);
                self.state.set_states.clone_from(&states);
                self.state.last = last;
                *cursor = start;
            }
        }
        if dialects && asked != 0 {
            let mut choices = Choices::default();
            while let Some(choice) = choices.next(asked, self.state) {
                self.state.dialects = spoken | choice;
                let outer_asked = std::mem::replace(&mut self.state.consulted, 0);
                let fits = inner.first().is_some_and(|ty| self.attempt(cursor, name, *ty, frame));
                // Another form may lead to a place that asks about a further dialect.
                asked |= self.state.consulted;
                self.state.consulted |= outer_asked;
                self.state.dialects = spoken;
                if fits {
                    self.in_dialects(before_node(before), choice);
                    return cursor.pos();
                }
                self.tree.back_to(before);
                self.state.set_states.clone_from(&states);
                self.state.last = last;
                *cursor = start;
            }
        }
        if (inner.len() > 1 || (dialects && asked != 0))
            && let Some(ty) = inner.first()
        {
            self.attempt(cursor, name, *ty, frame);
        }
        let end = cursor.pos();
        self.leave(cursor, before_node(before));
        end
    }

    /// Reads a layout's fields over the rest of the cursor's region into an open node. Bytes that
    /// no field claims are undecoded.
    pub fn layout_into(&mut self, layout: &Layout, node: u32, cursor: &mut Cursor<'_>) {
        self.state.regions += 1;
        let result = self.steps(layout, &[], node, cursor);
        self.state.regions -= 1;
        let stopped = result.is_err();
        let innermost = self.tree.len().saturating_sub(1).max(node);
        self.say_stop(result.err(), if stopped { innermost } else { node }, cursor);
        let left = cursor.left() as i64;
        self.undecoded(cursor);
        if !stopped && left > 0 {
            let last = self.tree.len().saturating_sub(1);
            let text = "{a bytes} that no field claims";
            self.problem(Severity::Warning, last, text, left, 0);
        }
    }

    /// Reads a type in the region. Returns whether it fills the region exactly without an error. An
    /// error becomes a problem.
    fn attempt(&mut self, cursor: &mut Cursor<'_>, name: Sym, ty: TypeRef, frame: Slots) -> bool {
        let node = self.tree.len();
        let problems = self.tree.problems().len();
        let depth = self.state.depth;
        let result = self.field(cursor, name, ty, 0, frame);
        self.state.depth = depth;
        let innermost =
            self.tree.len().saturating_sub(1).max(node.min(self.tree.len().saturating_sub(1)));
        if result.is_err() {
            if self.tree.len() == node {
                self.open_empty(cursor, name, ty);
            }
            self.say_stop(
                result.err(),
                innermost.max(node).min(self.tree.len().saturating_sub(1)),
                cursor,
            );
        }
        let clean = self
            .tree
            .problems()
            .get(problems..)
            .unwrap_or(&[])
            .iter()
            .all(|p| p.severity != Severity::Error);
        result.is_ok() && cursor.left_bits() == 0 && clean
    }

    /// Adds an empty structure for a type that failed before it had a node.
    fn open_empty(&mut self, cursor: &Cursor<'_>, name: Sym, ty: TypeRef) {
        let node = self.open(cursor, name, ty, 0);
        self.tree.close(node, cursor.pos());
    }

    /// Adds the rest of a region as undecoded: inside the structure that was read there, or behind
    /// the value.
    fn leave(&mut self, cursor: &mut Cursor<'_>, node: u32) {
        let left = cursor.left_bits();
        if left == 0 {
            return;
        }
        let mut ahead = *cursor;
        if left < 8 && ahead.bits(left as u32) == Ok(0) {
            // A bit stream may end within a byte, whose other bits are zero.
            self.pad(cursor);
            return;
        }
        self.show_left(cursor, node, left);
    }

    /// The bits up to the region's end as padding: a span, not a field.
    fn pad(&mut self, cursor: &mut Cursor<'_>) {
        let start = cursor.pos();
        let bits = cursor.left_bits();
        cursor.seek(cursor.limit());
        self.tree.leaf(Node {
            value: Node::place(start / 8, 1),
            name: self.tables.padding_name(),
            ty: self.tables.padding_type(),
            start: start as u32,
            bits: bits as u32,
            end: 0,
            buffer: cursor.buffer(),
            kind: Kind::Bytes,
            marks: mark::SPAN,
        });
    }

    /// A region is in dialects.
    pub(super) fn in_dialects(&mut self, node: u32, dialects: u32) {
        let tables = self.tables;
        for i in (0..32).filter(|i| dialects & (1 << i) != 0) {
            if let Some(text) = tables.dialect(i) {
                let text = ProblemText::Table(text);
                self.tree.problem(Problem {
                    severity: Severity::Note,
                    node,
                    text,
                    a: 0,
                    b: 0,
                    bytes: None,
                    concern: Concern::None,
                });
            }
        }
    }

    /// Reads a compressed region, whose content becomes a buffer of its own.
    fn inflated(
        &mut self,
        cursor: &mut Cursor<'_>,
        name: Sym,
        region: &RegionType,
        sizes: PackedSizes,
        frame: Slots,
    ) {
        let start = cursor.pos();
        let raw = cursor.rest();
        let (buffer, mut bytes) = self.tree.open_buffer(BufferOrigin::Decompressed);
        let room = self.state.limits.decompressed.saturating_sub(self.state.inflated);
        let (good, used) = self.state.inflate.unpack(raw, sizes, room, &mut bytes);
        self.state.inflated += bytes.len();
        let node = self.tree.len();
        let mut inside = Cursor::new(&bytes, buffer);
        self.bounded(&mut inside, name, &region.inner, region.dialects, frame);
        let found = bytes.len();
        if !matches!(good, Inflated::Whole) && self.is_structure(node, buffer) {
            // Captured bytes that could not be unpacked follow the content.
            bytes.extend_from_slice(raw.get(used..).unwrap_or(&[]));
            let mut behind = Cursor::new(&bytes, buffer);
            behind.seek(found * 8);
            self.undecoded(&mut behind);
            self.tree.close(node, behind.pos());
        }
        self.tree.put_buffer(buffer, bytes);
        cursor.seek(cursor.limit());
        self.tree.amend(node, |node| {
            node.start = start as u32;
            node.bits = (cursor.pos() - start) as u32;
            node.buffer = cursor.buffer();
        });
        self.tree.mark(node, mark::OWN_BUFFER);
        match good {
            Inflated::Broken => {
                self.problem(
                    Severity::Error,
                    node,
                    "the compressed bytes are damaged after {a bytes} of content",
                    found as i64,
                    0,
                );
            }
            Inflated::Limit => {
                let most = self.state.limits.decompressed as i64;
                let text = "the content becomes longer than what is kept: {a} bytes in a message \
                            (--max-decompressed)";
                self.problem(Severity::Error, node, text, most, 0);
            }
            Inflated::LeftOver(n) => {
                self.problem(
                    Severity::Warning,
                    node,
                    "{a bytes} behind the compressed content",
                    n as i64,
                    0,
                );
            }
            Inflated::Whole => {}
        }
        if sizes.announced != 0 && found != sizes.announced {
            self.problem(
                Severity::Note,
                node,
                "{a bytes} of content, where {b} were announced",
                found as i64,
                sizes.announced as i64,
            );
        }
    }

    /// Bytes of a region that no field claims.
    fn show_left(&mut self, cursor: &mut Cursor<'_>, node: u32, left: usize) {
        let structure = self.is_structure(node, cursor.buffer());
        let said =
            self.tree.problems().iter().any(|p| p.node >= node && p.severity == Severity::Error)
                || self.tree.problems().iter().any(|p| {
                    p.node >= node
                        && p.text == ProblemText::Fixed("no layout is known from here on")
                });
        self.undecoded(cursor);
        if !said {
            let last = self.tree.len() - 1;
            self.problem(
                Severity::Warning,
                last,
                "{a bytes} that no field claims",
                left.div_ceil(8) as i64,
                0,
            );
        }
        if structure {
            self.tree.close(node, cursor.pos());
        }
    }

    fn is_structure(&self, node: u32, buffer: Buffer) -> bool {
        self.tree.get(node).is_some_and(|n| n.kind == Kind::Struct && n.buffer == buffer)
    }
}

fn before_node(at: crate::tree::Checkpoint) -> u32 {
    at.node()
}

/// The most forms of a region tried besides the ordinary one.
const MAX_ATTEMPTS: usize = 24;

/// The most forms tried in one message: regions may be nested, each with forms of its own.
const MAX_RETRIES: u32 = 200;

/// The sets of dialects that were tried for a region besides the ordinary form.
#[derive(Default)]
pub(super) struct Choices {
    tried: [u32; MAX_ATTEMPTS],
    count: usize,
}

impl Choices {
    /// The next set to try, of the dialects asked about so far. `None` if there is none, or too
    /// many were tried.
    pub(super) fn next(&mut self, asked: u32, state: &mut Evaluator) -> Option<u32> {
        let choice = next_choice(asked, self.tried.get(..self.count)?)?;
        *self.tried.get_mut(self.count)? = choice;
        if state.retries >= MAX_RETRIES {
            return None;
        }
        self.count += 1;
        state.retries += 1;
        Some(choice)
    }
}

/// The next set of dialects to try: the smallest one not tried yet, from the six lowest dialects
/// asked about.
fn next_choice(asked: u32, tried: &[u32]) -> Option<u32> {
    let mut six = 0;
    let mut rest = asked;
    for _ in 0..6 {
        let lowest = rest & rest.wrapping_neg();
        six |= lowest;
        rest &= !lowest;
    }
    let mut set = 0u32;
    let mut best = None;
    loop {
        // All subsets except the empty one, which is the ordinary form, in the order of their
        // numbers.
        set = set.wrapping_sub(six) & six;
        if set == 0 {
            return best;
        }
        let smaller = best.is_none_or(|best: u32| set.count_ones() < best.count_ones());
        if smaller && !tried.contains(&set) {
            best = Some(set);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_sets_of_dialects_are_tried_first_and_each_once() {
        let mut tried = Vec::new();
        while let Some(choice) = next_choice(0b1011, &tried) {
            tried.push(choice);
        }
        assert_eq!(tried, [0b1, 0b10, 0b1000, 0b11, 0b1001, 0b1010, 0b1011]);
        assert_eq!(next_choice(0, &[]), None);
        let mut all = Vec::new();
        while let Some(choice) = next_choice(u32::MAX, &all) {
            all.push(choice);
        }
        assert_eq!(all.len(), 63, "of the six lowest");
    }
}
