//! The target of the evaluator: a tree or an outline.
//!
//! An outline counts nodes and keeps problems, but has no nodes. Commands that only count messages
//! and bytes use it: reading a message of captured game traffic takes 9,900 instructions into a
//! tree, 12,200 where nothing that it names was named before, and 6,400 into an outline, which
//! mostly takes a short way ([`TreeSink::skip`]).

use super::super::cursor::Cursor;
use super::super::program::{FixedRun, Layout, MessageDef, Refusal};
use super::{Call, MessageStart, Outcome, Run, Stop};
use crate::tree::{Buffer, BufferOrigin, Checkpoint, ChosenDialects, Node, Outline, Problem, Tree};

/// Making skip programs costs as much as reading dozens of messages. So the first messages are
/// evaluated: most captures are small.
const SKIP_FROM: u32 = 64;

/// Receives the nodes of one message while it is read.
///
/// The order of calls:
///
/// - `clear` comes first, once a message.
/// - Nodes come in wire order, each before its children (`leaf`, `extend`, `run`, `numbers`). A
///   node's index is the number of nodes before it; later calls name the node by that index.
/// - A node with children is added by `leaf`, then its children are added, then `close` ends it.
///   Every node added in between is its descendant. `close` may come twice, with a later end.
/// - `amend` and `mark` change a node that was added; `cut` and `back_to` remove nodes from the
///   end, with the problems and buffers that came after a checkpoint (`back_to` only).
/// - `open_buffer` is followed by `put_buffer` with the same number before the next message; nodes
///   may refer to the buffer in between.
///
/// Nothing is borrowed from the evaluator: nodes are copied. What an implementation does not need
/// it may ignore, but `len` has to count every node, since indices depend on it.
#[allow(clippy::len_without_is_empty)] // the evaluator has no use for it
pub trait TreeSink: Sized {
    /// Forgets everything.
    fn clear(&mut self);
    /// How many nodes there are: the index the next one will have.
    fn len(&self) -> u32;
    /// Adds a node without children; returns its index.
    fn leaf(&mut self, node: Node) -> u32;
    /// Adds nodes that are complete, with all their marks together.
    fn extend<const N: usize>(&mut self, marks: u8, nodes: [Node; N]);
    /// Adds the nodes of a run, which begins at a bit of a buffer, and whose bytes are these.
    fn run(&mut self, fixed: &FixedRun, bytes: &[u8], start: u32, buffer: Buffer);
    /// Adds numbers of one type, each behind the one before. `first` is the node of the first, but
    /// for its value and its end; `value` gets the place of each, counted in bytes from the first.
    fn numbers(&mut self, first: Node, count: usize, value: impl FnMut(u32) -> u64);
    /// Ends a node: all nodes added since are its descendants, and it reaches to `end_bit`.
    fn close(&mut self, index: u32, end_bit: usize);
    /// Adds marks to a node.
    fn mark(&mut self, index: u32, marks: u8);
    /// Changes a node, but for its marks.
    fn amend(&mut self, index: u32, change: impl FnOnce(&mut Node));
    /// Forgets the nodes from an index on.
    fn cut(&mut self, index: u32);
    /// Tells that tables say more about a field than how to read it ([`Tree::telling`]): the one
    /// whose first node has this index. Comes before what is told of later fields.
    fn telling(&mut self, index: u32);
    /// Whether `telling` comes before every such field from now on.
    fn set_telling(&mut self, is_complete: bool);
    /// Tells that the fields of a class follow, whose layout is at this place.
    fn class(&mut self, layout: u32);
    /// Adds a problem.
    fn problem(&mut self, problem: Problem);
    /// The problems, in the order in which they were added.
    fn problems(&self) -> &[Problem];
    /// The state to return to.
    fn checkpoint(&self) -> Checkpoint;
    /// Removes everything since a checkpoint.
    fn back_to(&mut self, to: Checkpoint);

    /// Keeps a text that decoding made. Returns the value for a node of the kind `Owned`.
    fn own_text(&mut self, text: &str) -> u64;

    /// A region was found to be in dialects. A note says so.
    fn choose_dialects(&mut self, _chosen: ChosenDialects) {}

    /// Opens the next buffer for decoded bytes. Returns its number, and an empty vector to fill.
    fn open_buffer(&mut self, made: BufferOrigin) -> (Buffer, Vec<u8>);
    /// Takes back the open buffer, now filled.
    fn put_buffer(&mut self, buffer: Buffer, bytes: Vec<u8>);

    /// Whether a message can be read into it.
    fn takes(&mut self, def: &MessageDef) -> bool;
    /// Whether the message needs a tree: an outline cannot represent something in it.
    fn is_partial(&self) -> bool;
    /// Which of a type's two readers writes to this sink, if there is one.
    fn native(tree: Code<Tree>, outline: Option<Code<Outline>>) -> Option<Code<Self>>;
    /// Reads a message the short way, if this sink has one and the message has nothing unusual.
    fn skip(run: &mut Run<'_, Self>, message: MessageStart<'_>) -> Option<Outcome>;
    /// Reads a structure that recurs ([`Layout::recurs`]), whose node is open, if this sink keeps
    /// such structures and has the same one. Returns whether it did.
    fn recurring(
        run: &mut Run<'_, Self>,
        layout: &Layout,
        node: u32,
        cursor: &mut Cursor<'_>,
    ) -> Result<bool, Stop>;
    /// The run over a tree, for code that reads nodes back or uses what earlier messages left in
    /// memory. An outline returns `None` and becomes partial: the message has to be read again,
    /// into a tree.
    fn whole<'r, 'a>(run: &'r mut Run<'a, Self>) -> Option<&'r mut Run<'a, Tree>>;
}

/// The code of a type, for this kind of sink.
pub type Code<T> = fn(&mut Run<'_, T>, &mut Cursor<'_>, &Call) -> Result<u64, Stop>;

impl TreeSink for Tree {
    fn clear(&mut self) {
        Tree::clear(self);
    }

    #[inline]
    fn len(&self) -> u32 {
        Tree::len(self)
    }

    #[inline(always)]
    fn leaf(&mut self, node: Node) -> u32 {
        Tree::leaf(self, node)
    }

    #[inline(always)]
    fn extend<const N: usize>(&mut self, marks: u8, nodes: [Node; N]) {
        Tree::extend(self, marks, nodes);
    }

    #[inline]
    fn run(&mut self, fixed: &FixedRun, bytes: &[u8], start: u32, buffer: Buffer) {
        let first = Tree::len(self);
        fixed.fill(self.room(fixed.marks, fixed.nodes.len()), bytes, start, first, buffer);
    }

    #[inline(always)]
    fn numbers(&mut self, first: Node, count: usize, mut value: impl FnMut(u32) -> u64) {
        let mut node = Node { end: Tree::len(self), ..first };
        for place in self.room(first.marks, count).iter_mut().take(count) {
            node.value = value((node.start - first.start) / 8);
            node.end += 1;
            *place = node;
            node.start += node.bits;
        }
    }

    #[inline]
    fn close(&mut self, index: u32, end_bit: usize) {
        Tree::close(self, index, end_bit);
    }

    fn mark(&mut self, index: u32, marks: u8) {
        Tree::mark(self, index, marks);
    }

    #[inline]
    fn amend(&mut self, index: u32, change: impl FnOnce(&mut Node)) {
        Tree::amend(self, index, change);
    }

    #[inline]
    fn cut(&mut self, index: u32) {
        Tree::cut(self, index);
    }

    #[inline]
    fn telling(&mut self, index: u32) {
        self.add_telling(index);
    }

    fn set_telling(&mut self, is_complete: bool) {
        Tree::set_telling(self, is_complete);
    }

    #[inline]
    fn class(&mut self, _: u32) {}

    fn problem(&mut self, problem: Problem) {
        Tree::problem(self, problem);
    }

    fn problems(&self) -> &[Problem] {
        Tree::problems(self)
    }

    fn checkpoint(&self) -> Checkpoint {
        Tree::checkpoint(self)
    }

    fn back_to(&mut self, to: Checkpoint) {
        Tree::back_to(self, to);
    }

    fn own_text(&mut self, text: &str) -> u64 {
        Tree::own_text(self, text)
    }

    fn open_buffer(&mut self, made: BufferOrigin) -> (Buffer, Vec<u8>) {
        Tree::open_buffer(self, made)
    }

    fn put_buffer(&mut self, buffer: Buffer, bytes: Vec<u8>) {
        Tree::put_buffer(self, buffer, bytes);
    }

    fn takes(&mut self, _: &MessageDef) -> bool {
        true
    }

    #[inline]
    fn is_partial(&self) -> bool {
        false
    }

    #[inline]
    fn native(tree: Code<Tree>, _: Option<Code<Outline>>) -> Option<Code<Tree>> {
        Some(tree)
    }

    #[inline]
    fn skip(_: &mut Run<'_, Tree>, _: MessageStart<'_>) -> Option<Outcome> {
        None
    }

    #[inline(never)]
    fn recurring(
        run: &mut Run<'_, Tree>,
        layout: &Layout,
        node: u32,
        cursor: &mut Cursor<'_>,
    ) -> Result<bool, Stop> {
        run.recurring(layout, node, cursor)
    }

    fn whole<'r, 'a>(run: &'r mut Run<'a, Tree>) -> Option<&'r mut Run<'a, Tree>> {
        Some(run)
    }
}

impl TreeSink for Outline {
    fn clear(&mut self) {
        Outline::clear(self);
    }

    #[inline]
    fn len(&self) -> u32 {
        Outline::len(self)
    }

    #[inline]
    fn leaf(&mut self, node: Node) -> u32 {
        Outline::leaf(self, node)
    }

    #[inline]
    fn extend<const N: usize>(&mut self, marks: u8, _: [Node; N]) {
        self.several(marks, N);
    }

    #[inline]
    fn run(&mut self, fixed: &FixedRun, _: &[u8], _: u32, _: Buffer) {
        self.several(fixed.marks, fixed.nodes.len());
    }

    #[inline]
    fn numbers(&mut self, first: Node, count: usize, _: impl FnMut(u32) -> u64) {
        self.several(first.marks, count);
    }

    #[inline]
    fn close(&mut self, _: u32, _: usize) {}

    fn mark(&mut self, _: u32, marks: u8) {
        Outline::mark(self, marks);
    }

    #[inline]
    fn amend(&mut self, _: u32, _: impl FnOnce(&mut Node)) {}

    #[inline]
    fn cut(&mut self, index: u32) {
        Outline::cut(self, index);
    }

    #[inline]
    fn telling(&mut self, _: u32) {}

    #[inline]
    fn set_telling(&mut self, _: bool) {}

    #[inline]
    fn class(&mut self, layout: u32) {
        Outline::class(self, layout);
    }

    fn problem(&mut self, problem: Problem) {
        Outline::problem(self, problem);
    }

    fn problems(&self) -> &[Problem] {
        Outline::problems(self)
    }

    fn checkpoint(&self) -> Checkpoint {
        Outline::checkpoint(self)
    }

    fn back_to(&mut self, to: Checkpoint) {
        Outline::back_to(self, to);
    }

    fn own_text(&mut self, _: &str) -> u64 {
        0
    }

    fn choose_dialects(&mut self, chosen: ChosenDialects) {
        Outline::choose_dialects(self, chosen);
    }

    fn open_buffer(&mut self, _: BufferOrigin) -> (Buffer, Vec<u8>) {
        Outline::open_buffer(self)
    }

    fn put_buffer(&mut self, buffer: Buffer, bytes: Vec<u8>) {
        Outline::put_buffer(self, buffer, bytes);
    }

    fn takes(&mut self, def: &MessageDef) -> bool {
        // Its fields tell which request it belongs to and what it refuses.
        let asked = def.tied || def.echoes || def.shares.is_some() || def.refusal != Refusal::Never;
        if asked {
            self.set_partial();
        }
        !asked
    }

    fn is_partial(&self) -> bool {
        Outline::is_partial(self)
    }

    #[inline]
    fn native(_: Code<Tree>, outline: Option<Code<Outline>>) -> Option<Code<Outline>> {
        outline
    }

    #[inline]
    fn skip(run: &mut Run<'_, Outline>, message: MessageStart<'_>) -> Option<Outcome> {
        if run.state.outlined < SKIP_FROM {
            run.state.outlined += 1;
            return None;
        }
        run.skip_message(message)
    }

    #[inline]
    fn recurring(
        _: &mut Run<'_, Outline>,
        _: &Layout,
        _: u32,
        _: &mut Cursor<'_>,
    ) -> Result<bool, Stop> {
        Ok(false)
    }

    fn whole<'r, 'a>(run: &'r mut Run<'a, Outline>) -> Option<&'r mut Run<'a, Tree>> {
        run.tree.set_partial();
        None
    }
}
