//! The evaluator: runs a layout over bytes and writes the tree.
//!
//! It knows no protocol. Running out of bytes is a normal answer where a message is read from a stream (its layout is the
//! only thing that says how long it is), and a problem in its place where a region ends too early.

mod bitstream;
mod checksum;
mod expr;
mod extent;
mod inflate;
mod leaf;
mod many;
mod memory;
mod message;
mod native;
mod numbers;
mod region;
mod sink;
mod steps;

pub use bitstream::{BITSTREAM, NoPackint, read_packint};
pub use memory::Remembered;
pub use native::Native;
pub(super) use numbers::LANGUAGE;
pub use region::OTHER_FORM;
pub use sink::TreeSink;

use super::Tables;
use super::cursor::{Cursor, Short};
use super::program::*;
use crate::tree::{Buffer, Kind, Node, Problem, Severity, Sym, Tree, TypeRef};

/// Why reading stopped before a layout's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The bytes or the region ended too early: they would have to reach to this bit.
    Short(usize),
    /// From here on no layout is known.
    Unknown,
    /// The bytes cannot be what the layout says; the problem is in the tree.
    Bad,
    /// A bound was reached; the problem is in the tree.
    Limit,
}

impl From<Short> for Stop {
    fn from(short: Short) -> Self {
        Stop::Short(short.0)
    }
}

/// What reading a message gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A whole message is in the tree; the number is its length in bytes.
    Message(MessageId, usize),
    /// The message is not complete: it has at least this many bytes, counted from its first.
    Need(usize),
    /// No message has this number. The second number is its length in bytes, where its header has one.
    Unknown(u64, Option<usize>),
    /// The message's name is known, its layout is not. The number is its length in bytes, where its header has one.
    NoLayout(MessageId, Option<usize>),
    /// The bytes cannot be this message.
    Malformed(MessageId),
}

/// A message of which all bytes are known.
#[derive(Debug, Clone, Copy)]
pub struct WholeMessage<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// The number of bytes at the end that only mark the message's end and belong to no field.
    pub behind: usize,
}

/// Bounds of one message.
#[derive(Debug, Clone, Copy)]
pub struct MessageLimits {
    /// Nodes in the tree.
    pub nodes: u32,
    /// Structures within structures.
    pub depth: u32,
    /// Bytes that the compressed regions of one message may become together.
    pub decompressed: usize,
}

impl Default for MessageLimits {
    fn default() -> Self {
        MessageLimits { nodes: 200_000, depth: 96, decompressed: 16 << 20 }
    }
}

/// What the evaluator keeps from message to message.
#[derive(Default)]
pub struct Evaluator {
    /// Kept values of the open structures, one structure after the other. Values above `top` are left over from structures that ended.
    slots: Vec<u64>,
    top: usize,
    /// Structures that are open around the one whose steps are run.
    open: Vec<steps::OpenStructure>,
    dialects: u32,
    consulted: u32,
    /// Forms that were tried in this message beside the ordinary ones.
    retries: u32,
    regions: u32,
    depth: u32,
    /// Bytes that this message's compressed regions became so far, attempts that did not fit included.
    inflated: usize,
    inflate: inflate::Inflater,
    /// Bytes that went into checksums of this message so far.
    summed: usize,
    /// Bounds.
    pub limits: MessageLimits,
    /// Which message the bytes begin with and how long it is, once what it begins with was read.
    chosen: message::Chosen,
    /// The states of the connection whose message is read, which its session puts here.
    pub states: Vec<u64>,
    /// The states that the message sets, by place and value: its session takes them over, once the message is accepted.
    pub set_states: Vec<(u32, u64)>,
    /// What tables asked to remember.
    pub memory: Remembered,
    /// What the protocol's types with code look things up in. The protocol puts it here.
    pub context: Option<Box<dyn std::any::Any + Send>>,
}

/// How a type with code was called.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// Which one it is.
    native: u32,
    /// The name its node gets.
    pub name: Sym,
    /// The type its node gets.
    pub ty: TypeRef,
    /// Marks its node gets.
    pub marks: u8,
    /// The kept values its arguments are made of ([`Run::arg`]).
    frame: Slots,
}

impl Call {
    /// The node of a value of `kind` that begins at the bit `start` and ends at the cursor.
    #[inline]
    pub fn node(&self, cursor: &Cursor<'_>, start: usize, kind: Kind, value: u64) -> Node {
        Node {
            value,
            name: self.name,
            ty: self.ty,
            start: start as u32,
            bits: (cursor.pos() - start) as u32,
            end: 0,
            buffer: cursor.buffer(),
            kind,
            marks: self.marks,
        }
    }

    /// A type its parts have ([`Native::parts`]); its own where the tables have none of that name.
    pub fn part(&self, tables: &Tables, index: usize) -> TypeRef {
        let parts = tables.native(self.native).map(|native| &native.parts);
        parts.and_then(|parts| parts.get(index).copied().flatten()).unwrap_or(self.ty)
    }
}

/// The kept values of one structure.
#[derive(Debug, Clone, Copy, Default)]
pub struct Slots {
    base: usize,
    present: u64,
}

/// A field that is about to be read: the name and type of its node, and marks beside those of the type.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    name: Sym,
    ty: TypeRef,
    marks: u8,
}

impl Field {
    /// A node of it, with nothing in it.
    #[inline]
    fn node(self) -> Node {
        let Field { name, ty, marks } = self;
        Node { value: 0, name, ty, start: 0, bits: 0, end: 0, buffer: Buffer::CAPTURED, kind: Kind::Struct, marks }
    }
}

/// One run of the evaluator: tables, tree (or the outline of one) and state together.
pub struct Run<'a, T: TreeSink = Tree> {
    /// The tables.
    pub tables: &'a Tables,
    /// The tree that grows.
    pub tree: &'a mut T,
    /// The evaluator's state.
    pub state: &'a mut Evaluator,
}

impl Evaluator {
    /// A state of the connection: what this message set, or an earlier one.
    fn state(&self, place: u32) -> Option<u64> {
        let set = self.set_states.iter().find(|(state, _)| *state == place);
        set.map(|(_, value)| *value).or_else(|| self.states.get(place as usize).copied())
    }

    /// Sets a state. Each is kept once, so that there are never more than a connection has.
    fn set_state(&mut self, place: u32, value: u64) {
        match self.set_states.iter_mut().find(|(state, _)| *state == place) {
            Some((_, kept)) => *kept = value,
            None => self.set_states.push((place, value)),
        }
    }

    /// Reads the message that begins at `bytes`, of a service and a sender (0 client, 1 server), into a cleared tree or its outline. Where
    /// the outline is not whole after it, the outcome says nothing either.
    pub fn message<T: TreeSink>(
        &mut self,
        tables: &Tables,
        service: ServiceId,
        sender: usize,
        bytes: &[u8],
        tree: &mut T,
    ) -> Outcome {
        tree.clear();
        self.begin();
        let mut run = Run { tables, tree, state: self };
        run.message(service, sender, bytes, None)
    }

    /// The same of a message of which all bytes are known. What its layout does not use of them is undecoded.
    pub fn framed<T: TreeSink>(
        &mut self,
        tables: &Tables,
        service: ServiceId,
        sender: usize,
        whole: WholeMessage<'_>,
        tree: &mut T,
    ) -> Outcome {
        tree.clear();
        self.begin();
        let mut run = Run { tables, tree, state: self };
        run.message(service, sender, whole.bytes, Some(whole.behind))
    }

    /// Reads a type over all of `bytes`, from a bit on, into a cleared tree; what is left over is undecoded. Returns the bit it ended at.
    pub fn value(
        &mut self,
        tables: &Tables,
        ty: TypeRef,
        name: Sym,
        bytes: &[u8],
        bit: usize,
        tree: &mut Tree,
    ) -> usize {
        tree.clear();
        self.begin();
        self.regions = 1;
        let mut cursor = Cursor::new(bytes, Buffer::CAPTURED).at_bit(bit);
        let mut run = Run { tables, tree, state: self };
        run.bounded(&mut cursor, name, &[ty], true, Slots::default())
    }

    /// Reads a structure that begins a stream's bytes, into a cleared tree: how many bytes it has, or how many are needed at least.
    pub fn stream_value(
        &mut self,
        tables: &Tables,
        ty: TypeRef,
        name: Sym,
        bytes: &[u8],
        tree: &mut Tree,
    ) -> Result<usize, Stop> {
        tree.clear();
        self.begin();
        let mut cursor = Cursor::new(bytes, Buffer::CAPTURED);
        let mut run = Run { tables, tree, state: self };
        run.field(&mut cursor, name, ty, 0, Slots::default())?;
        Ok(cursor.pos().div_ceil(8))
    }

    /// A run over a cleared tree, for a protocol that lays out the frame of its messages with its own code.
    pub fn run<'a>(&'a mut self, tables: &'a Tables, tree: &'a mut Tree) -> Run<'a> {
        tree.clear();
        self.begin();
        Run { tables, tree, state: self }
    }

    fn begin(&mut self) {
        self.top = 0;
        self.open.clear();
        self.dialects = 0;
        self.consulted = 0;
        self.retries = 0;
        self.regions = 0;
        self.depth = 0;
        self.inflated = 0;
        self.summed = 0;
        self.set_states.clear();
    }
}

impl<T: TreeSink> Run<'_, T> {
    /// Opens a structure's node at the cursor.
    #[inline]
    pub fn open(&mut self, cursor: &Cursor<'_>, name: Sym, ty: TypeRef, marks: u8) -> u32 {
        self.open_as(cursor, Field { name, ty, marks }, Kind::Struct)
    }

    /// Opens a node that will have children.
    #[inline(always)]
    fn open_as(&mut self, cursor: &Cursor<'_>, field: Field, kind: Kind) -> u32 {
        let (start, buffer) = (cursor.pos() as u32, cursor.buffer());
        self.tree.leaf(Node { start, buffer, kind, ..field.node() })
    }

    /// Adds a problem with a fixed text.
    pub fn problem(&mut self, severity: Severity, node: u32, text: &'static str, a: i64, b: i64) {
        self.tree.problem(Problem::new(severity, node, text, a, b));
    }

    /// Stops where a message has more values than are kept.
    #[inline]
    fn node_limit(&mut self, node: u32) -> Result<(), Stop> {
        if self.tree.len() < self.state.limits.nodes { Ok(()) } else { Err(self.too_many_nodes(node)) }
    }

    #[cold]
    fn too_many_nodes(&mut self, node: u32) -> Stop {
        let limit = i64::from(self.state.limits.nodes);
        self.problem(Severity::Error, node, "more than {a} values in one message", limit, 0);
        Stop::Limit
    }

    /// Evaluates arguments of a type.
    fn args(&mut self, args: &[ExprId], frame: Slots, cursor: &Cursor<'_>) -> [u64; 4] {
        let mut values = [0; 4];
        for (place, arg) in values.iter_mut().zip(args) {
            *place = self.word(*arg, frame, cursor);
        }
        values
    }

    /// Adds the reason why reading stopped as a problem of the node in which it stopped.
    pub(super) fn say_stop(&mut self, stop: Option<Stop>, node: u32, cursor: &Cursor<'_>) {
        match stop {
            Some(Stop::Short(bits)) => {
                let missing = bits.saturating_sub(cursor.limit()).div_ceil(8);
                let left = cursor.left() as i64;
                self.problem(
                    Severity::Error,
                    node,
                    "the region ends {a} bytes too early; {b} bytes before its end",
                    missing as i64,
                    left,
                );
            }
            Some(Stop::Unknown) => self.problem(Severity::Note, node, "no layout is known from here on", 0, 0),
            Some(Stop::Bad | Stop::Limit) | None => {}
        }
    }

    /// Shows the rest of the region as undecoded, if there is any.
    pub fn undecoded(&mut self, cursor: &mut Cursor<'_>) {
        let bits = cursor.left_bits();
        if bits == 0 {
            return;
        }
        let start = cursor.pos();
        cursor.seek(cursor.limit());
        self.tree.leaf(Node {
            value: Node::place(start / 8, bits.div_ceil(8)),
            name: Sym::UNDECODED,
            ty: self.tables.undecoded_type(),
            start: start as u32,
            bits: bits as u32,
            end: 0,
            buffer: cursor.buffer(),
            kind: Kind::Undecoded,
            marks: 0,
        });
    }
}
