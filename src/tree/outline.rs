//! The outline of a tree: facts about a message as a whole, without its nodes.

use std::any::Any;
use std::sync::Arc;

use super::{Buffer, Checkpoint, Kind, Node, Problem, Tree, TypeRef, mark};

/// How many nodes a tree would have, which marks they would have, and what there is to say about
/// them. Cleared, not freed, between messages.
#[derive(Default)]
pub struct Outline {
    nodes: u32,
    problems: Vec<Problem>,
    /// All [`mark`]s any node may have had since it was cleared.
    seen: u8,
    /// Whether something came up that only a tree can show.
    partial: bool,
    /// How many buffers were made.
    made: u16,
    /// The content of the buffer that was made last, and its number; 0 if it is not kept. The
    /// memory is used again.
    buffer: Vec<u8>,
    kept: u16,
    classes: ClassSet,
    dialects: DialectChoice,
    /// Whether a node begins or ends within a byte.
    unaligned: bool,
    /// Whether a part of messages may be deferred, and whether a part of this one was.
    deferring: Deferring,
    deferred: Option<DeferredPart>,
    /// The evaluator's context, if a part of this message or of an earlier one was deferred.
    context: Option<SharedContext>,
}

/// What an evaluator knows besides the tables and the message, as one or several threads may use
/// it.
pub type SharedContext = Arc<dyn Any + Send + Sync>;

/// A region whose content fits only in dialects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChosenDialects {
    /// Where its first byte is.
    pub buffer: Buffer,
    /// The place of that byte.
    pub at: u32,
    /// The dialects, as the bits of their numbers.
    pub dialects: u32,
}

/// Which regions of a message are in dialects, as far as an outline knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DialectChoice {
    /// None is.
    #[default]
    Nowhere,
    /// This one, and everything in it.
    In(ChosenDialects),
    /// Perhaps several.
    Unknown,
}

/// The object at a message's end that an outline leaves out, and what the outline knows of
/// everything before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeferredPart {
    /// The type of the region that the object fills.
    pub region: TypeRef,
    /// The place of its first byte in the message.
    pub at: u32,
    /// How many nodes there are before it.
    pub nodes: u32,
    /// All their [`mark`]s, and those of the region.
    pub marks: u8,
    /// How many structures are around it.
    pub depth: u8,
}

/// Whether an outline may leave out the content of an object at the message's end that depends on
/// no other message. Somebody reads the whole message later, from its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deferring {
    /// It has to be complete.
    #[default]
    Never,
    /// It may.
    Possible,
    /// Only an outline that does is wanted.
    Only,
}

/// The classes of the objects in a message, by the places of their layouts. A set of bits, since
/// adding to it must cost nearly nothing.
#[derive(Clone, Copy, Default)]
struct ClassSet {
    low: [u64; Outline::CLASS_WORDS],
    /// Whether there is one beyond these bits.
    high: bool,
}

impl ClassSet {
    fn is_empty(&self) -> bool {
        !self.high && self.low.iter().fold(0, |all, bits| all | bits) == 0
    }
}

impl Outline {
    /// Forgets everything.
    #[inline]
    pub fn clear(&mut self) {
        self.nodes = 0;
        self.problems.clear();
        self.seen = 0;
        self.partial = false;
        self.made = 0;
        self.kept = 0;
        self.classes = ClassSet::default();
        self.dialects = DialectChoice::Nowhere;
        self.unaligned = false;
        self.deferred = None;
    }

    /// Whether a part of messages may be deferred. It holds for all messages until it is called
    /// again.
    pub fn set_deferring(&mut self, deferring: Deferring) {
        self.deferring = deferring;
    }

    /// Whether a part of messages may be deferred.
    pub fn deferring(&self) -> Deferring {
        self.deferring
    }

    /// Whether nothing came up yet but plain fields: no object, no problem, and no buffer was made.
    pub fn is_plain(&self) -> bool {
        self.problems.is_empty() && self.made == 0 && self.classes.is_empty()
    }

    /// A part of the message is deferred: the outline knows nothing of it. `context` is what it has
    /// to be read with.
    pub fn defer(&mut self, part: DeferredPart, context: Option<&SharedContext>) {
        self.deferred = Some(part);
        if self.context.as_ref().map(Arc::as_ptr) != context.map(Arc::as_ptr) {
            self.context = context.cloned();
        }
    }

    /// What a deferred message has to be read with.
    pub fn context(&self) -> Option<&SharedContext> {
        self.context.as_ref().filter(|_| self.deferred.is_some())
    }

    /// The part of the message that was deferred.
    pub fn deferred(&self) -> Option<DeferredPart> {
        self.deferred
    }

    /// Whether this is all there is to know: every captured byte is explained, and nothing came up
    /// that only a tree can tell.
    pub fn is_whole(&self) -> bool {
        !self.partial && self.seen & (mark::OPAQUE | mark::UNEXPLAINED) == 0
    }

    /// Whether nothing in the message names a thing or tells a place.
    pub fn is_nameless(&self) -> bool {
        self.seen & (mark::NAME | mark::PARTIAL) == 0
    }

    /// The bytes that decoding made, besides which all nodes would be in the captured bytes; none
    /// if it made no buffer. `None` if they are not kept: there were several buffers, or a very
    /// large one.
    pub fn made_bytes(&self) -> Option<&[u8]> {
        match (self.made, self.kept) {
            (0, _) => Some(&[]),
            (1, 1) => Some(&self.buffer),
            _ => None,
        }
    }

    /// Whether all nodes begin and end with whole bytes.
    pub fn is_aligned(&self) -> bool {
        !self.unaligned
    }

    /// An object of a class began, whose layout is at this place.
    #[inline]
    pub fn class(&mut self, layout: u32) {
        match self.classes.low.get_mut(layout as usize / 64) {
            Some(bits) => *bits |= 1 << (layout % 64),
            None => self.classes.high = true,
        }
    }

    /// The layouts of the classes of all objects, and perhaps of some more: a bit for each, 64 in a
    /// word. `None` where they are not known.
    pub fn classes(&self) -> Option<&[u64; Outline::CLASS_WORDS]> {
        (!self.classes.high).then_some(&self.classes.low)
    }

    /// How many words the [classes](Outline::classes) are.
    pub const CLASS_WORDS: usize = 16;

    /// A region was found to be in dialects.
    pub fn choose_dialects(&mut self, chosen: ChosenDialects) {
        self.dialects = match self.dialects {
            DialectChoice::Nowhere => DialectChoice::In(chosen),
            _ => DialectChoice::Unknown,
        };
    }

    /// Which regions are in dialects.
    pub fn dialects(&self) -> DialectChoice {
        self.dialects
    }

    /// Whether something came up that only a tree can tell.
    pub fn is_partial(&self) -> bool {
        self.partial
    }

    /// Only a tree can tell what this message is.
    pub fn set_partial(&mut self) {
        self.partial = true;
    }

    /// How many nodes there would be.
    #[inline]
    #[allow(clippy::len_without_is_empty)] // no caller needs it
    pub fn len(&self) -> u32 {
        self.nodes
    }

    /// Counts a node; returns the index it would have.
    #[inline]
    pub fn leaf(&mut self, node: Node) -> u32 {
        let index = self.nodes;
        self.nodes += 1;
        self.seen |= node.marks | if node.kind == Kind::Undecoded { mark::UNEXPLAINED } else { 0 };
        self.unaligned |= !(node.start | node.bits).is_multiple_of(8);
        index
    }

    /// Counts nodes, with all their marks together. Returns the index that the first one would
    /// have.
    #[inline]
    pub fn several(&mut self, marks: u8, nodes: usize) -> u32 {
        let first = self.nodes;
        self.nodes += nodes as u32;
        self.seen |= marks;
        first
    }

    /// A node has further marks.
    pub fn mark(&mut self, marks: u8) {
        self.seen |= marks;
    }

    /// Forgets the nodes from an index on.
    #[inline]
    pub fn cut(&mut self, index: u32) {
        self.nodes = self.nodes.min(index);
    }

    /// The problems, in the order in which they were added.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Takes out the problems with a fixed text, which was said of an earlier message. Returns how
    /// many there were.
    #[inline]
    pub fn leave_out(&mut self, text: &'static str) -> u64 {
        let before = self.problems.len();
        if before == 0 {
            return 0;
        }
        self.problems.retain(|problem| !problem.has_text(text));
        (before - self.problems.len()) as u64
    }

    /// Adds a problem. As many are kept as in a tree.
    #[inline]
    pub fn problem(&mut self, problem: Problem) {
        if self.problems.len() < Tree::MAX_PROBLEMS {
            self.problems.push(problem);
        }
    }

    /// Opens the next buffer that decoding makes.
    pub fn open_buffer(&mut self) -> (Buffer, Vec<u8>) {
        self.made = self.made.saturating_add(1);
        self.kept = 0;
        let mut bytes = std::mem::take(&mut self.buffer);
        bytes.clear();
        (Buffer(self.made), bytes)
    }

    /// Takes back the buffer with the number that [`Outline::open_buffer`] gave.
    pub fn put_buffer(&mut self, buffer: Buffer, bytes: Vec<u8>) {
        if bytes.capacity() <= Tree::KEEP_MADE {
            self.buffer = bytes;
            self.kept = buffer.0;
        }
    }

    /// The state to return to.
    pub fn checkpoint(&self) -> Checkpoint {
        let made = usize::from(self.made);
        Checkpoint {
            nodes: self.nodes as usize,
            problems: self.problems.len(),
            made,
            text: 0,
            names: 0,
        }
    }

    /// Removes everything since a checkpoint.
    pub fn back_to(&mut self, to: Checkpoint) {
        self.cut(to.node());
        self.problems.truncate(to.problems);
        self.made = self.made.min(to.made as u16);
    }
}
