//! Types: how to read a value, and what tables say about it.

use super::TableText;
use super::facts::FieldFacts;
use super::ids::{EnumId, ExprId, FamilyId, LayoutId};
use super::positions::ValueRead;
use crate::tree::{Sym, TextKind, TypeRef};

/// A type as one field uses it: how to read a value, and what the table says about values.
#[derive(Debug, Clone)]
pub struct TypeDef {
    /// How it is read.
    pub read: ReadAs,
    /// Its text in the table language.
    pub text: TableText,
    /// The enum or flag set that names its values.
    pub symbols: Option<EnumId>,
    /// How trees explain it (`shown`).
    pub shown: Option<Sym>,
    /// The kinds of things that its values are numbers of (`id`, `refers`).
    pub ids: Vec<Sym>,
    /// Whether a name beside it belongs to another thing (`refers`).
    pub refers: bool,
    /// The kinds of things that its values name (`names`).
    pub names: Vec<Sym>,
    /// Marks for its nodes.
    pub marks: u8,
    /// Whether it links replies to requests.
    pub transaction: bool,
    /// The largest value without a note.
    pub max: Option<u64>,
    /// The expected value: any other gets a note.
    pub expect: Option<u64>,
    /// Facts about the field.
    pub facts: Option<Box<FieldFacts>>,
    /// It has at least this many bits.
    pub min_bits: u32,
}

impl TypeDef {
    /// Whether its values are texts.
    pub fn is_text(&self) -> bool {
        matches!(self.read, ReadAs::Text { .. }) || self.text.split(' ').next() == Some("string")
    }

    /// A type without any facts, to be filled in.
    pub(in crate::table) fn blank() -> TypeDef {
        TypeDef {
            read: ReadAs::Bool,
            text: TableText::default(),
            symbols: None,
            shown: None,
            ids: Vec::new(),
            refers: false,
            names: Vec::new(),
            facts: None,
            marks: 0,
            transaction: false,
            max: None,
            expect: None,
            min_bits: 0,
        }
    }
}

/// The order of an integer's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// Least significant first.
    Little,
    /// Most significant first.
    Big,
    /// Two units of 16 bits, the high one first, each little-endian (as a PDP-11 had it).
    Pdp,
}

/// How a type is read. `repr(u8)` keeps the variant in a byte of its own, which is faster to match
/// on.
#[derive(Debug, Clone)]
#[repr(u8)]
pub enum ReadAs {
    /// An integer.
    Int {
        /// Bytes: 1, 2, 4 or 8.
        size: u8,
        /// Two's complement.
        signed: bool,
        /// The order of its bytes.
        order: ByteOrder,
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
        /// Whether the bytes are Latin-1 where they are not `kind`, which is UTF-8.
        or_latin1: bool,
        /// How long.
        len: Len,
        /// Which zero units at the end are no part of the value.
        end: TextEnd,
    },
    /// A number in digits, as text.
    Digits {
        /// The base: 10 or 16.
        radix: u8,
        /// How long the text is.
        len: Len,
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
    /// An object that begins with the number of its class.
    Family(FamilyId),
    /// A region of its own.
    Region(RegionType),
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
        /// Which, in the list that the tables were loaded with.
        native: u32,
        /// Its arguments.
        args: Vec<ExprId>,
    },
}

/// A region: bytes with a content of their own.
#[derive(Debug, Clone)]
pub struct RegionType {
    /// How long.
    pub len: Len,
    /// Its possible contents: the first one that fits.
    pub inner: Vec<TypeRef>,
    /// Whether dialects may be tried.
    pub dialects: bool,
    /// How its content is compressed, if it is.
    pub zlib: Option<Zlib>,
}

/// How a region is compressed.
#[derive(Debug, Clone, Copy)]
pub struct Zlib {
    /// How many plain bytes come before the zlib stream.
    pub keep: ExprId,
    /// The size that the content should have, plain bytes included; 0 where the message does not
    /// say.
    pub size: ExprId,
}

/// Which zero units at the end of a text are no part of its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextEnd {
    /// None.
    Whole,
    /// One, which is required (`terminated`).
    Zero,
    /// All of them (`trimmed`).
    Zeros,
}

/// The length of a value.
#[derive(Debug, Clone, Copy)]
pub struct Len {
    /// The source of the number.
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
    /// These bytes, by their place in the tables, or the end of the region.
    Until(u32),
    /// Blanks, the end of a line, or the end of the region.
    Blanks,
    /// The element that says that it is the last.
    Last,
}
