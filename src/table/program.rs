//! The compiled form of message tables: flat lists that refer to each other by number, made once and only read afterwards.

use super::ast::{BinaryOp, Direction, Role};
use super::eval::Native;
use super::fixed::Fixed;
use super::listed::{Declaration, Example};
use super::numbers::Numbers;
use super::positions::{Positions, ValueRead};
use super::quick::Quick;
use super::ready::Ready;
use crate::tree::{Severity, Sym, TextKind, TypeRef};

/// A name with the form JSON needs it in.
#[derive(Debug, Clone)]
pub struct Name {
    /// The name.
    pub text: String,
    /// `,"name":`
    pub json: Ready,
    /// Itself.
    pub plain: Ready,
    /// How many characters it has.
    pub width: usize,
}

/// How a type explains its values in trees.
pub type Shown = Sym;

/// A type as it stands at some field: how to read it, and what to say about it.
#[derive(Debug, Clone)]
pub struct TypeDef {
    /// How it is read.
    pub read: Read,
    /// As the table language writes it.
    pub text: String,
    /// The enum or flag set that names its values.
    pub symbols: Option<EnumId>,
    /// How trees explain it (`shown`).
    pub shown: Option<Shown>,
    /// What kinds of things it is the number of (`id`, `refers`).
    pub ids: Vec<Sym>,
    /// Whether a name beside it is another thing's (`refers`).
    pub refers: bool,
    /// What kinds of things it is the name of (`names`).
    pub names: Vec<Sym>,
    /// Marks for its nodes.
    pub marks: u8,
    /// Whether it ties replies to requests.
    pub transaction: bool,
    /// More than this is noted.
    pub max: Option<u64>,
    /// Another value is noted.
    pub expect: Option<u64>,
    /// It has at least this many bits.
    pub min_bits: u32,
}

/// The order of an integer's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Least significant first.
    Little,
    /// Most significant first.
    Big,
    /// Two units of 16 bits, the high one first, each little-endian (as a PDP-11 had it).
    Pdp,
}

/// How a type is read; which way stands in a byte of its own, too.
#[derive(Debug, Clone)]
#[repr(u8)]
pub enum Read {
    /// An integer.
    Int {
        /// Bytes: 1, 2, 4 or 8.
        size: u8,
        /// Two's complement.
        signed: bool,
        /// The order of its bytes.
        order: Order,
    },
    /// An IEEE 754 float of 4 or 8 bytes.
    Float {
        /// Bytes.
        size: u8,
        /// Most significant byte first.
        big: bool,
    },
    /// One byte, 0 or 1.
    Bool,
    /// 16 bytes.
    Uuid {
        /// As written, not in Microsoft's order.
        plain: bool,
    },
    /// 4 bytes.
    Ipv4 {
        /// Network order.
        big: bool,
    },
    /// Bytes as they are.
    Bytes(Len),
    /// Text.
    Text {
        /// The encoding.
        kind: TextKind,
        /// How long.
        len: Len,
        /// Which zero units at the end are no part of the value.
        end: TextEnd,
    },
    /// A list.
    List {
        /// The elements.
        of: TypeRef,
        /// How many.
        len: Len,
    },
    /// A structure.
    Layout {
        /// Which.
        layout: LayoutId,
        /// Its parameters.
        args: Vec<ExprId>,
    },
    /// An object whose class is told first.
    Family(FamilyId),
    /// A region of its own.
    Region {
        /// How long.
        len: Len,
        /// What it holds: the first that fits.
        inner: Vec<TypeRef>,
        /// Whether dialects may be tried.
        dialects: bool,
        /// Plain bytes before the zlib stream, and the expected size of all.
        zlib: Option<(ExprId, ExprId)>,
    },
    /// A presence, then the value or nothing.
    NullOr {
        /// The presence.
        present: TypeRef,
        /// The value.
        of: TypeRef,
    },
    /// A self-describing value, read by the protocol's own code.
    Value(ValueRead),
    /// A type with code.
    Native {
        /// Which, in [`Tables::natives`](super::Tables).
        native: u32,
        /// Its arguments.
        args: Vec<ExprId>,
    },
}

/// Which zero units at the end of a text are no part of its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextEnd {
    /// None.
    Whole,
    /// One, which has to be there (`terminated`).
    Zero,
    /// As many as there are (`trimmed`).
    Zeros,
}

/// How long something is.
#[derive(Debug, Clone, Copy)]
pub struct Len {
    /// Where the number comes from.
    pub from: LenFrom,
    /// Whether it counts bytes rather than units.
    pub bytes: bool,
}

/// Where a length comes from.
#[derive(Debug, Clone, Copy)]
pub enum LenFrom {
    /// Always the same.
    Const(u32),
    /// An expression.
    Expr(ExprId),
    /// An integer before it.
    Inline(TypeRef),
    /// The end of the region.
    Rest,
    /// A zero unit; for a list a zero byte or the end of the region.
    Zero,
    /// This unit, or the end of the region.
    To(u8),
}

/// A place in the list of layouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LayoutId(pub u32);
/// A place in the list of enums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EnumId(pub u32);
/// A place in the list of families.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FamilyId(pub u32);
/// A place in the list of expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ExprId(pub u32);
/// A place in the list of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MessageId(pub u32);
/// A place in the list of services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ServiceId(pub u32);

/// A structure's steps.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Its name.
    pub name: Sym,
    /// Its type, for outputs.
    pub ty: TypeRef,
    /// First step among the program's; they go on to an [`Op::End`].
    pub start: u32,
    /// How many values it keeps for expressions; the parameters are the first.
    pub slots: u16,
    /// How many parameters.
    pub params: u16,
    /// Where it names the positions of an array: how many there are, and how many of them have to be there.
    pub positions: Option<Positions>,
    /// It has at least this many bits.
    pub min_bits: u32,
}

/// "No slot": the value is not needed by any expression.
pub const NO_SLOT: u16 = u16::MAX;

/// One step of a layout. Which one it is stands in a byte of its own, not among unused values of a field: telling it from that takes longer.
#[derive(Debug, Clone)]
#[repr(u8)]
pub enum Op {
    /// Read a field.
    Field {
        /// Its name.
        name: Sym,
        /// Its type.
        ty: TypeRef,
        /// Where its value is kept, or [`NO_SLOT`].
        slot: u16,
        /// Marks for its node.
        marks: u8,
        /// Its type in short.
        quick: Quick,
        /// The run that begins here, by place and 1; or 0.
        fixed: u32,
    },
    /// Go on if the test holds, else jump.
    Branch {
        /// What is asked.
        test: Test,
        /// Where to go if it does not hold.
        otherwise: u32,
    },
    /// Jump.
    Jump(u32),
    /// Jump by a value.
    Switch {
        /// The value.
        on: ExprId,
        /// Values with their targets, sorted by value.
        targets: Box<[(i128, u32)]>,
        /// Where to go for any other.
        otherwise: u32,
    },
    /// Say something about the structure.
    Say {
        /// How bad.
        severity: Severity,
        /// What.
        text: Sym,
    },
    /// An empty list, for one that is missing at the region's end.
    Empty {
        /// Its name.
        name: Sym,
        /// Its type.
        ty: TypeRef,
    },
    /// The rest of the region has no known layout.
    Undecoded,
    /// Keep a value for later messages.
    Remember {
        /// The kind of thing.
        kind: Sym,
        /// Its number.
        key: ExprId,
        /// What is known of it.
        value: ExprId,
    },
    /// The layout's end.
    End,
}

/// A condition, with short forms for the frequent ones.
#[derive(Debug, Clone, Copy)]
pub enum Test {
    /// Flags are set; at least one.
    Has(u16, u64),
    /// A value equals a number.
    Equals(u16, u64),
    /// A value is there and does not equal a number.
    Differs(u16, u64),
    /// A value is above a number.
    Above(u16, u64),
    /// A dialect is spoken, or is not.
    Dialect(u32, bool),
    /// The region goes on.
    More,
    /// Anything else.
    General(ExprId),
}

/// An expression.
#[derive(Debug, Clone)]
pub enum Ex {
    /// A number.
    Const(i128),
    /// A kept value.
    Slot {
        /// Where.
        slot: u16,
        /// Whether it is two's complement.
        signed: bool,
    },
    /// An operation.
    Binary(BinaryOp, ExprId, ExprId),
    /// `not`
    Not(ExprId),
    /// `in`
    In(ExprId, Vec<ExprId>),
    /// Bytes left in the region.
    Remaining,
    /// Whether the region goes on.
    More,
    /// Whether a dialect is spoken.
    Dialect(u32),
    /// What was remembered.
    Recall(Sym, ExprId),
}

/// An enum or a flag set.
#[derive(Debug, Clone)]
pub struct EnumDef {
    /// Its name.
    pub name: String,
    /// Whether its values are bits.
    pub flags: bool,
    /// Its explanation.
    pub doc: String,
    /// Its values, sorted by number.
    pub values: Vec<EnumValue>,
    /// Where each of them is.
    pub numbers: Numbers,
    /// The integer it is usually read from.
    pub base: TypeRef,
}

/// A named number.
#[derive(Debug, Clone)]
pub struct EnumValue {
    /// The number.
    pub value: u64,
    /// Its name.
    pub name: String,
    /// Its name as JSON writes it, with its quotes.
    pub json: String,
    /// A text for people.
    pub text: String,
    /// Its explanation.
    pub doc: String,
}

impl EnumDef {
    /// The value with a number.
    pub fn get(&self, value: u64) -> Option<&EnumValue> {
        self.values.get(self.numbers.find(value)?)
    }
}

/// Objects of a class told by number.
#[derive(Debug, Clone)]
pub struct Family {
    /// Its name.
    pub name: String,
    /// The name of the field that tells the class.
    pub field: Sym,
    /// The type of that field.
    pub of: TypeRef,
    /// The number that stands for no object.
    pub null: Option<u64>,
    /// Class numbers and layouts, sorted.
    pub members: Vec<(u64, LayoutId)>,
    /// Where each class is.
    pub numbers: Numbers,
}

/// A service: how its messages begin.
#[derive(Debug, Clone)]
pub struct Service {
    /// Its name as in the JSON.
    pub name: String,
    /// The protocol's number for it.
    pub number: Option<u64>,
    /// Whether its messages are self-describing arrays, found and read by the protocol's own code.
    pub positional: bool,
    /// A message may end before any of its fields.
    pub optional: bool,
    /// The header's fields.
    pub header: Vec<(Role, Sym, TypeRef)>,
    /// Messages by number and sender: `[client, server]`, sorted by number.
    pub messages: [Vec<(u64, MessageId)>; 2],
    /// Its explanation.
    pub doc: String,
}

/// A message.
#[derive(Debug, Clone)]
pub struct MessageDef {
    /// Its name.
    pub name: Sym,
    /// Its service.
    pub service: ServiceId,
    /// Who sends it.
    pub direction: Direction,
    /// Its number, where it has one.
    pub number: Option<u64>,
    /// Its layout, where it is known.
    pub layout: Option<LayoutId>,
    /// Whether something in it ties it to other messages: a transaction.
    pub tied: bool,
    /// The requests it answers.
    pub answers: Vec<MessageId>,
    /// Its explanation.
    pub doc: String,
}

/// All compiled parts.
#[derive(Default)]
pub struct Program {
    pub(crate) names: Vec<Name>,
    pub(crate) types: Vec<TypeDef>,
    /// The same in short.
    pub(crate) quick: Vec<Quick>,
    pub(crate) layouts: Vec<Layout>,
    pub(crate) ops: Vec<Op>,
    pub(crate) fixed: Vec<Fixed>,
    pub(crate) exprs: Vec<Ex>,
    pub(crate) enums: Vec<EnumDef>,
    pub(crate) families: Vec<Family>,
    pub(crate) services: Vec<Service>,
    pub(crate) messages: Vec<MessageDef>,
    pub(crate) examples: Vec<Example>,
    pub(crate) declarations: Vec<Declaration>,
    pub(crate) dialects: Vec<Sym>,
    /// The types with code, and the types they make parts of.
    pub(crate) natives: Vec<(Native, Vec<Option<TypeRef>>)>,
}
