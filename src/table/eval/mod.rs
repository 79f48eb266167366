//! The evaluator: runs a layout over bytes and writes the tree.
//!
//! It knows no protocol. In a stream only the layout tells how long a message is, so running out of
//! bytes is a normal result there. If a region ends too early, it is a problem in its place.

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
mod steps;
mod stopped;

pub(super) use bitstream::*;
pub use bitstream::{NoPackint, read_packint};
pub(super) use checksum::sum;
pub use many::READ_AS_LATIN_1;
pub use memory::Remembered;
pub(super) use numbers::*;
pub use region::OTHER_FORM;

use super::Tables;
use super::cursor::{Cursor, Short};
use super::program::*;
use crate::tree::{Buffer, Kind, Node, Problem, Severity, Sym, Tree, TypeRef};

/// Why reading stopped before a layout's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The bytes or the region ended too early. They would have to reach this bit.
    Short(u64),
    /// No layout is known from here on.
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

/// The result of reading a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A whole message is in the tree; the number is its length in bytes.
    Message(MessageId, usize),
    /// The message is not complete: it has at least this many bytes, counted from its first.
    Need(usize),
    /// No message has this number. The second value is its length in bytes, if its header has one.
    Unknown(u64, Option<usize>),
    /// The message's name is known, but not its layout. The number is its length in bytes, if its
    /// header has one.
    NoLayout(MessageId, Option<usize>),
    /// The bytes cannot be this message.
    Malformed(MessageId),
    /// The message states this length in bytes, which is more than the service's tables allow.
    TooLong(MessageId, usize, u64),
}

impl Outcome {
    /// A message that has to reach a bit. One that does not fit this machine's memory never does.
    fn need(bits: u64) -> Outcome {
        Outcome::Need(usize::try_from(bits.div_ceil(8)).unwrap_or(usize::MAX))
    }
}

/// The complete bytes of a message.
#[derive(Debug, Clone, Copy)]
pub struct WholeMessage<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// The number of bytes at the end that only mark the message's end and belong to no field.
    pub behind: usize,
}

/// The bytes that a message begins with, and what is known of it before it is read.
#[derive(Debug, Clone, Copy)]
pub struct MessageStart<'a> {
    service: ServiceId,
    /// 0 client, 1 server.
    sender: usize,
    bytes: &'a [u8],
    /// If the bytes are the whole message: how many at its end only mark it.
    behind: Option<usize>,
}

/// The bounds of one message.
#[derive(Debug, Clone, Copy)]
pub struct MessageLimits {
    /// The most nodes in the tree.
    pub nodes: u32,
    /// The deepest nesting of structures.
    pub depth: u32,
    /// The most bytes that all compressed regions of one message may unpack to.
    pub decompressed: usize,
}

impl Default for MessageLimits {
    fn default() -> Self {
        MessageLimits { nodes: 200_000, depth: 96, decompressed: 16 << 20 }
    }
}

/// The evaluator's state from message to message.
#[derive(Default)]
pub struct Evaluator {
    /// Kept values of the open structures, one structure after the other. Values above `top` are
    /// left over from structures that ended.
    slots: Vec<u64>,
    top: usize,
    /// The open structures around the one whose steps run.
    open: Vec<steps::OpenStructure>,
    dialects: u32,
    consulted: u32,
    /// How many forms besides the ordinary ones were tried in this message.
    retries: u32,
    regions: u32,
    depth: u32,
    /// Whether the element that is read says that it is the last one of its list.
    last: bool,
    /// The field for which the bytes did not suffice, until the problem says so.
    missing: Option<stopped::MissingField>,
    /// Bytes that this message's compressed regions have unpacked to so far, including attempts
    /// that did not fit.
    inflated: usize,
    inflate: inflate::Inflater,
    /// Bytes that went into checksums of this message so far.
    summed: usize,
    /// Bounds.
    pub limits: MessageLimits,
    /// Which message it is and how long, once its beginning was read.
    chosen: message::Chosen,
    /// The states of the connection whose message is read. Its session puts them here.
    pub states: Vec<u64>,
    /// The states that the message sets, by index and value. Its session takes them over once it
    /// accepts the message.
    pub set_states: Vec<(u32, u64)>,
    /// The values that tables remember.
    pub memory: Remembered,
    /// A store for the protocol's types with code. The protocol puts it here, and another one when
    /// it changes.
    pub context: Option<Box<dyn std::any::Any + Send>>,
    /// What these types keep from message to message to save work.
    pub scratch: Option<Box<dyn std::any::Any + Send>>,
}

/// The call of a type with code.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// The type with code.
    native: u32,
    /// The name for its node.
    pub name: Sym,
    /// The type for its node.
    pub ty: TypeRef,
    /// Marks for its node.
    pub marks: u8,
    /// The kept values from which its arguments are computed ([`Run::arg`]).
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

    /// The type of one of its parts ([`Native::parts`]). Its own type if the tables have none of
    /// that name.
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

impl Slots {
    /// Keeps a value among those of all open structures.
    #[inline(always)]
    fn keep(&mut self, values: &mut [u64], slot: u16, value: u64) {
        if let Some(place) = values.get_mut(self.base + usize::from(slot)) {
            *place = value;
            self.present |= 1 << (slot & 63);
        }
    }

    /// A kept value. `None` if it was not kept yet: the slot may hold the value of an earlier
    /// structure.
    #[inline(always)]
    fn kept(self, values: &[u64], slot: u16) -> Option<u64> {
        if self.present & (1 << (slot & 63)) == 0 {
            return None;
        }
        values.get(self.base + usize::from(slot)).copied()
    }
}

/// A field that is about to be read: the name and type of its node, and marks beside those of the
/// type.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    name: Sym,
    ty: TypeRef,
    marks: u8,
}

impl Field {
    /// An empty node for it.
    #[inline]
    fn node(self) -> Node {
        let Field { name, ty, marks } = self;
        Node { name, ty, marks, ..Node::EMPTY }
    }
}

/// One run of the evaluator: tables, tree and state.
pub struct Run<'a> {
    /// The tables.
    pub tables: &'a Tables,
    /// The tree to write to.
    pub tree: &'a mut Tree,
    /// The evaluator's state.
    pub state: &'a mut Evaluator,
}

impl Evaluator {
    /// A state of the connection, as set by this message or an earlier one.
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

    /// Reads the message at the start of `bytes`, of a service and a sender (0 client, 1 server),
    /// into a cleared tree.
    pub fn message(
        &mut self,
        tables: &Tables,
        service: ServiceId,
        sender: usize,
        bytes: &[u8],
        tree: &mut Tree,
    ) -> Outcome {
        let start = MessageStart { service, sender, bytes, behind: None };
        self.run(tables, tree).message(start)
    }

    /// As [`message`](Self::message), for a message whose bytes are all known. Bytes that its
    /// layout does not use are undecoded.
    pub fn framed(
        &mut self,
        tables: &Tables,
        service: ServiceId,
        sender: usize,
        whole: WholeMessage<'_>,
        tree: &mut Tree,
    ) -> Outcome {
        let WholeMessage { bytes, behind } = whole;
        let start = MessageStart { service, sender, bytes, behind: Some(behind) };
        self.run(tables, tree).message(start)
    }

    /// Reads a type over all of `bytes`, from a bit on, into a cleared tree. Bytes left over are
    /// undecoded. Returns the bit at which the type ended.
    pub fn value(
        &mut self,
        tables: &Tables,
        ty: TypeRef,
        name: Sym,
        bytes: &[u8],
        bit: usize,
        tree: &mut Tree,
    ) -> usize {
        let mut run = self.run(tables, tree);
        run.state.regions = 1;
        let mut cursor = Cursor::new(bytes, Buffer::CAPTURED).at_bit(bit);
        run.bounded(&mut cursor, name, &[ty], true, Slots::default())
    }

    /// Reads a structure at the start of a stream's bytes into a cleared tree. Returns how many
    /// bytes it has, or how many are needed at least.
    pub fn stream_value(
        &mut self,
        tables: &Tables,
        ty: TypeRef,
        name: Sym,
        bytes: &[u8],
        tree: &mut Tree,
    ) -> Result<usize, Stop> {
        let mut run = self.run(tables, tree);
        run.tree.set_telling(true);
        let mut cursor = Cursor::new(bytes, Buffer::CAPTURED);
        run.field(&mut cursor, name, ty, 0, Slots::default())?;
        Ok(cursor.pos().div_ceil(8))
    }

    /// A run over a cleared tree, for a protocol whose own code reads the frame of its messages.
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
        (self.last, self.missing) = (false, None);
        self.inflated = 0;
        self.summed = 0;
        self.set_states.clear();
    }
}

impl Run<'_> {
    /// Opens a structure's node at the cursor.
    #[inline]
    pub fn open(&mut self, cursor: &Cursor<'_>, name: Sym, ty: TypeRef, marks: u8) -> u32 {
        self.open_as(cursor, Field { name, ty, marks }, Kind::Struct)
    }

    /// Opens a node that will have children.
    #[inline(always)]
    fn open_as(&mut self, cursor: &Cursor<'_>, field: Field, kind: Kind) -> u32 {
        let start = cursor.pos() as u32;
        let buffer = cursor.buffer();
        self.tree.leaf(Node { start, buffer, kind, ..field.node() })
    }

    /// Adds a problem with a fixed text.
    pub fn problem(&mut self, severity: Severity, node: u32, text: &'static str, a: i64, b: i64) {
        self.tree.problem(Problem::new(severity, node, text, a, b));
    }

    /// Stops if a message has more nodes than the bound.
    #[inline]
    fn node_limit(&mut self, node: u32) -> Result<(), Stop> {
        if self.tree.len() < self.state.limits.nodes {
            Ok(())
        } else {
            Err(self.too_many_nodes(node))
        }
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
