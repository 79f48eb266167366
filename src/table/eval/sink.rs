//! What the evaluator writes to: a tree, or the outline of one.
//!
//! An outline is for those who only want to know what came, and how much of it was understood: it has no nodes, so that no time is spent
//! on them. To count a message of captured game traffic took 18,500 instructions by way of a tree, and took 14,500 by way of an outline.

use super::super::cursor::Cursor;
use super::super::program::{FixedRun, MessageDef};
use super::{Call, Run, Stop};
use crate::tree::{Buffer, BufferOrigin, Checkpoint, Node, Outline, Problem, Tree};

/// What grows while a message is read. Nodes are told one after the other, each before its children; what is told of a node later names
/// it by its index.
#[allow(clippy::len_without_is_empty)] // nobody asks
pub trait TreeSink: Sized {
    /// Forgets everything.
    fn clear(&mut self);
    /// How many nodes there are: the index the next one will have.
    fn len(&self) -> u32;
    /// Adds a node without children; returns its index.
    fn leaf(&mut self, node: Node) -> u32;
    /// Adds nodes that are complete, with all their marks together.
    fn extend_from_slice(&mut self, marks: u8, nodes: &[Node]);
    /// Adds the nodes of a run, which begins at a bit of a buffer, and whose bytes are these.
    fn run(&mut self, fixed: &FixedRun, bytes: &[u8], start: u32, buffer: Buffer);
    /// Ends a node: all nodes added since are its descendants, and it reaches to `end_bit`.
    fn close(&mut self, index: u32, end_bit: usize);
    /// Adds marks to a node.
    fn mark(&mut self, index: u32, marks: u8);
    /// Changes a node, but for its marks.
    fn amend(&mut self, index: u32, change: impl FnOnce(&mut Node));
    /// Forgets the nodes from an index on.
    fn cut(&mut self, index: u32);
    /// Adds a problem.
    fn problem(&mut self, problem: Problem);
    /// What went wrong or is worth saying, in the order it was met.
    fn problems(&self) -> &[Problem];
    /// Where it stands now.
    fn checkpoint(&self) -> Checkpoint;
    /// Forgets all that came since a checkpoint.
    fn back_to(&mut self, to: Checkpoint);

    /// Opens the next buffer that decoding makes: its number, and an empty vector to fill.
    fn open_buffer(&mut self, made: BufferOrigin) -> (Buffer, Vec<u8>);
    /// Takes the buffer that was opened, filled.
    fn put_buffer(&mut self, buffer: Buffer, bytes: Vec<u8>);

    /// Whether a message can be read into it.
    fn takes(&mut self, def: &MessageDef) -> bool;
    /// Whether something came up that only a tree can tell.
    fn is_partial(&self) -> bool;
    /// The code of a type, where there is any for this.
    fn native(tree: Code<Tree>, outline: Option<Code<Outline>>) -> Option<Code<Self>>;
    /// The run as one over a tree, for what needs its nodes or what earlier messages left behind. An outline has none of
    /// that: what it was to be has to be read into a tree.
    fn whole<'r, 'a>(run: &'r mut Run<'a, Self>) -> Option<&'r mut Run<'a, Tree>>;
}

/// The code of a type, for what it adds its nodes to.
pub type Code<T> = fn(&mut Run<'_, T>, &mut Cursor<'_>, &Call) -> Result<u64, Stop>;

impl TreeSink for Tree {
    fn clear(&mut self) {
        Tree::clear(self);
    }

    #[inline(always)]
    fn len(&self) -> u32 {
        Tree::len(self)
    }

    #[inline(always)]
    fn leaf(&mut self, node: Node) -> u32 {
        Tree::leaf(self, node)
    }

    #[inline(always)]
    fn extend_from_slice(&mut self, marks: u8, nodes: &[Node]) {
        Tree::extend_from_slice(self, marks, nodes);
    }

    #[inline(always)]
    fn run(&mut self, fixed: &FixedRun, bytes: &[u8], start: u32, buffer: Buffer) {
        let first = Tree::len(self);
        self.extend(fixed.marks, fixed.nodes.iter().map(|template| template.filled(bytes, start, first, buffer)));
    }

    #[inline(always)]
    fn close(&mut self, index: u32, end_bit: usize) {
        Tree::close(self, index, end_bit);
    }

    fn mark(&mut self, index: u32, marks: u8) {
        Tree::mark(self, index, marks);
    }

    #[inline(always)]
    fn amend(&mut self, index: u32, change: impl FnOnce(&mut Node)) {
        Tree::amend(self, index, change);
    }

    #[inline(always)]
    fn cut(&mut self, index: u32) {
        Tree::cut(self, index);
    }

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

    fn open_buffer(&mut self, made: BufferOrigin) -> (Buffer, Vec<u8>) {
        Tree::open_buffer(self, made)
    }

    fn put_buffer(&mut self, buffer: Buffer, bytes: Vec<u8>) {
        Tree::put_buffer(self, buffer, bytes);
    }

    fn takes(&mut self, _: &MessageDef) -> bool {
        true
    }

    #[inline(always)]
    fn is_partial(&self) -> bool {
        false
    }

    #[inline(always)]
    fn native(tree: Code<Tree>, _: Option<Code<Outline>>) -> Option<Code<Tree>> {
        Some(tree)
    }

    fn whole<'r, 'a>(run: &'r mut Run<'a, Tree>) -> Option<&'r mut Run<'a, Tree>> {
        Some(run)
    }
}

impl TreeSink for Outline {
    fn clear(&mut self) {
        Outline::clear(self);
    }

    #[inline(always)]
    fn len(&self) -> u32 {
        Outline::len(self)
    }

    #[inline(always)]
    fn leaf(&mut self, node: Node) -> u32 {
        Outline::leaf(self, node)
    }

    #[inline(always)]
    fn extend_from_slice(&mut self, marks: u8, nodes: &[Node]) {
        self.several(marks, nodes.len());
    }

    #[inline(always)]
    fn run(&mut self, fixed: &FixedRun, _: &[u8], _: u32, _: Buffer) {
        self.several(fixed.marks, fixed.nodes.len());
    }

    #[inline(always)]
    fn close(&mut self, _: u32, _: usize) {}

    fn mark(&mut self, _: u32, marks: u8) {
        Outline::mark(self, marks);
    }

    #[inline(always)]
    fn amend(&mut self, _: u32, _: impl FnOnce(&mut Node)) {}

    #[inline(always)]
    fn cut(&mut self, index: u32) {
        Outline::cut(self, index);
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

    fn open_buffer(&mut self, _: BufferOrigin) -> (Buffer, Vec<u8>) {
        Outline::open_buffer(self)
    }

    fn put_buffer(&mut self, _: Buffer, bytes: Vec<u8>) {
        Outline::put_buffer(self, bytes);
    }

    fn takes(&mut self, def: &MessageDef) -> bool {
        if def.tied {
            self.set_partial();
        }
        !def.tied
    }

    fn is_partial(&self) -> bool {
        Outline::is_partial(self)
    }

    #[inline(always)]
    fn native(_: Code<Tree>, outline: Option<Code<Outline>>) -> Option<Code<Outline>> {
        outline
    }

    fn whole<'r, 'a>(run: &'r mut Run<'a, Outline>) -> Option<&'r mut Run<'a, Tree>> {
        run.tree.set_partial();
        None
    }
}
