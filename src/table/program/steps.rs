//! Layouts: the steps that read a structure, their conditions and expressions.

use super::super::text::BinaryOp;
use super::ids::{ExprId, InfoId};
use super::positions::Positions;
use super::type_op::TypeOp;
use crate::tree::{Concern, Severity, Sym, TypeRef};

/// A structure's steps.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Its name.
    pub name: Sym,
    /// Its type, for outputs.
    pub ty: TypeRef,
    /// First step among the program's; they go on to an [`LayoutStep::End`].
    pub start: u32,
    /// How many values it keeps for expressions; the parameters are the first.
    pub slots: u16,
    /// How many parameters.
    pub params: u16,
    /// If it names the positions of an array: how many there are, and how many are required.
    pub positions: Option<Positions>,
    /// It has at least this many bits.
    pub min_bits: u32,
    /// Its info lines.
    pub info: Option<InfoId>,
    /// The path of the value that says what it carries, as the only field of an info line.
    pub carries: Option<InfoId>,
}

/// "No slot": no expression needs the value.
pub const NO_SLOT: u16 = u16::MAX;

/// One step of a layout, in 32 bytes. `repr(u8)` keeps the variant in a byte of its own: to find it
/// among the unused values of a field takes longer. The fields are in memory as they are written.
#[derive(Debug, Clone)]
#[repr(u8)]
pub enum LayoutStep {
    /// Read a field.
    Field {
        /// Marks for its node.
        marks: u8,
        /// Where its value is kept, or [`NO_SLOT`].
        slot: u16,
        /// Its name.
        name: Sym,
        /// Its type.
        ty: TypeRef,
        /// Its type in short.
        op: TypeOp,
    },
    /// Go on if the test holds, else jump.
    Branch {
        /// The test.
        test: Test,
        /// Where to go if it does not hold.
        otherwise: u32,
    },
    /// Keep the number of the word that the text field before this step is, or 0.
    Word {
        /// The field's name.
        name: Sym,
        /// Where the number is kept.
        slot: u16,
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
    /// Add a remark to the structure.
    Say {
        /// Its severity.
        severity: Severity,
        /// What it says of the programs that talk.
        concern: Concern,
        /// Its text.
        text: Sym,
    },
    /// Adds an empty list in place of one that is missing at the region's end.
    Empty {
        /// Its name.
        name: Sym,
        /// Its type.
        ty: TypeRef,
    },
    /// The rest of the region has no known layout.
    Undecoded,
    /// The message is not the last answer to its request.
    Partial,
    /// This element is the last one of its list.
    Last,
    /// Keep a value for later messages.
    Remember {
        /// The kind of thing.
        kind: Sym,
        /// Its number.
        key: ExprId,
        /// What is known of it.
        value: ExprId,
    },
    /// Compares the field before it with a checksum of the message's bytes.
    Checksum {
        /// How it is computed.
        sum: Checksum,
        /// Where the field's value is kept.
        slot: u16,
        /// How many bytes the field has.
        size: u8,
        /// The first byte that counts.
        from: ExprId,
        /// The byte behind the last one.
        to: ExprId,
    },
    /// Sets a state of the connection for later messages.
    Set {
        /// The state's place.
        state: u32,
        /// Its new value.
        value: ExprId,
    },
    /// The beginning of a message was read: tells which message it is, and how long.
    Chosen {
        /// What the numbers of messages are compared with.
        number: Option<ExprId>,
        /// How many bytes the message has.
        length: Option<ExprId>,
    },
    /// The layout's end.
    End,
}

const _: () = assert!(size_of::<LayoutStep>() == 32);

/// How a checksum is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// The sum of all bytes, in 8 bits.
    Sum8,
    /// All bytes, one after the other joined by exclusive or.
    Xor8,
    /// As in IP: the complement of the sum of all units of 16 bits.
    Internet,
    /// Adler-32, as in zlib.
    Adler32,
    /// CRC-16/ARC.
    Crc16,
    /// CRC-16/CCITT-FALSE.
    Crc16Ccitt,
    /// CRC-32, as in Ethernet and gzip.
    Crc32,
    /// CRC-32C.
    Crc32c,
}

impl Checksum {
    /// All of them, by the word that tables use.
    pub const WORDS: [(&str, Checksum); 8] = [
        ("sum8", Checksum::Sum8),
        ("xor8", Checksum::Xor8),
        ("internet", Checksum::Internet),
        ("adler32", Checksum::Adler32),
        ("crc16", Checksum::Crc16),
        ("crc16ccitt", Checksum::Crc16Ccitt),
        ("crc32", Checksum::Crc32),
        ("crc32c", Checksum::Crc32c),
    ];
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
    /// A dialect is in use, or is not.
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
    /// Whether a dialect is in use.
    Dialect(u32),
    /// A remembered value.
    Recall(Sym, ExprId),
    /// A state of the connection, by its place.
    State(u32),
    /// Bytes of the message, or of the buffer that is read, before the next one.
    Here,
    /// The byte behind this many others, which all stay where they are.
    Next(u32),
}

/// The result of a binary operation on numbers. `None` if it exceeds 64 bits.
pub fn apply(op: BinaryOp, a: i128, b: i128) -> Option<i128> {
    let shift = u32::try_from(b).ok().filter(|b| *b < 64);
    let value = match op {
        BinaryOp::Add => a.checked_add(b)?,
        BinaryOp::Sub => a.checked_sub(b)?,
        BinaryOp::Mul => a.checked_mul(b)?,
        BinaryOp::Div => a.checked_div(b)?,
        BinaryOp::Rem => a.checked_rem(b)?,
        BinaryOp::BitAnd => a & b,
        BinaryOp::BitXor => a ^ b,
        BinaryOp::BitOr => a | b,
        BinaryOp::Shl => a.checked_shl(shift?)?,
        BinaryOp::Shr => a >> shift?,
        BinaryOp::Eq => i128::from(a == b),
        BinaryOp::Ne => i128::from(a != b),
        BinaryOp::Lt => i128::from(a < b),
        BinaryOp::Le => i128::from(a <= b),
        BinaryOp::Gt => i128::from(a > b),
        BinaryOp::Ge => i128::from(a >= b),
        BinaryOp::Has => i128::from(b != 0 && a & b == b),
        BinaryOp::And => i128::from(a != 0 && b != 0),
        BinaryOp::Or => i128::from(a != 0 || b != 0),
    };
    let range = i128::from(i64::MIN)..=i128::from(u64::MAX);
    range.contains(&value).then_some(value)
}
