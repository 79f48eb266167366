//! The syntax tree of a table file. Names are not resolved yet. Each part keeps its byte offset for
//! errors.

use std::rc::Rc;

use crate::tree::{Concern, Severity};

/// The side that sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sender {
    /// The client.
    Client,
    /// The server.
    Server,
    /// Either.
    Both,
}

/// What the sender of a message waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// `expects nothing`.
    Nothing,
    /// `expects reply`.
    Reply,
    /// `expects receipt`: an acknowledgement at least. The reply may come another way.
    Receipt,
}

/// What a field says about the places of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceRole {
    /// The client enters this place with this message, and leaves the one where it was (`place`).
    Enters,
    /// It enters this place and stays in the others (`place beside`).
    Beside,
    /// The name of the place that this connection is about: the client enters it with another
    /// message (`place named`).
    Named,
}

/// A name or word of a table, with its place in the file.
#[derive(Debug, Clone)]
pub(in crate::table) struct NameAst {
    pub(in crate::table) name: String,
    pub(in crate::table) at: usize,
}

/// A declaration with its explanation and its place in the file.
#[derive(Debug, Clone)]
pub(in crate::table) struct ItemAst {
    pub(in crate::table) name: String,
    pub(in crate::table) at: usize,
    pub(in crate::table) end: usize,
    pub(in crate::table) start: usize,
    pub(in crate::table) doc: String,
    pub(in crate::table) kind: ItemKind,
}

#[derive(Debug, Clone)]
pub(in crate::table) enum ItemKind {
    Service(Box<ServiceAst>),
    Message(MessageAst),
    Struct(StructAst),
    Enum {
        flags: bool,
        base: TypeAst,
        values: Vec<EnumValueAst>,
    },
    Family {
        field: String,
        of: TypeAst,
        null: Option<u64>,
    },
    Alias {
        of: TypeAst,
        mods: Box<Mods>,
    },
    /// A type that the protocol's own code reads.
    Code,
    Dialect,
    /// `numbers low = 0xffff0000 max 65279`
    Range {
        base: u64,
        max: Option<u64>,
    },
}

#[derive(Debug, Clone)]
pub(in crate::table) struct ServiceAst {
    pub(in crate::table) number: Option<u64>,
    /// The ports of the servers whose messages these are. Empty if the protocol's code finds the
    /// service.
    pub(in crate::table) ports: Vec<u16>,
    /// Its messages are self-describing arrays.
    pub(in crate::table) positional: bool,
    /// A message may end before any of its fields.
    pub(in crate::table) optional: bool,
    /// The header's fields in wire order.
    pub(in crate::table) header: Vec<HeaderField>,
    pub(in crate::table) framing: FramingAst,
}

#[derive(Debug, Clone)]
pub(in crate::table) struct HeaderField {
    pub(in crate::table) name: String,
    pub(in crate::table) at: usize,
    pub(in crate::table) role: HeaderRole,
    pub(in crate::table) of: TypeAst,
}

/// What a field of a message's header is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderRole {
    /// The message's number.
    Number,
    /// The message's length, itself and all of the header counted.
    LengthWhole,
    /// The length of what follows it.
    LengthAfter,
    /// Something else that every message of the service has.
    Other,
}

#[derive(Debug, Clone)]
pub(in crate::table) struct MessageAst {
    pub(in crate::table) service: String,
    pub(in crate::table) direction: Sender,
    pub(in crate::table) number: NumberAst,
    pub(in crate::table) answers: Vec<NameAst>,
    /// The word behind `expects`. Without it, a message that another one answers expects a reply.
    pub(in crate::table) expects: Option<Expectation>,
    /// The message always says no.
    pub(in crate::table) refuses: bool,
    /// The message is a step of what a session is about.
    pub(in crate::table) step: bool,
    /// The side that sends it in practice, of a message of both.
    pub(in crate::table) usually: Option<Sender>,
    /// `None` where the layout is unknown.
    pub(in crate::table) body: Option<StructAst>,
}

#[derive(Debug, Clone)]
pub(in crate::table) enum NumberAst {
    Int(u64),
    Text(String),
    /// `any`: every number that no other message has.
    Any,
    /// `low 51`: counted within a declared range.
    Within {
        range: String,
        at: usize,
        number: u64,
    },
}

#[derive(Debug, Clone, Default)]
pub(in crate::table) struct StructAst {
    /// It names the positions of a self-describing array.
    pub(in crate::table) positions: bool,
    /// The bytes may end before any of its fields, those of nested structures aside.
    pub(in crate::table) optional: bool,
    pub(in crate::table) family: Option<NameAst>,
    pub(in crate::table) parent: Option<NameAst>,
    /// The beginning of all messages of its service: its fields come before those of the parent.
    pub(in crate::table) beginning: Option<Rc<BeginningAst>>,
    pub(in crate::table) params: Vec<String>,
    pub(in crate::table) entries: Vec<Entry>,
    /// Lines that say what it is about: the first that fits is taken.
    pub(in crate::table) info: Vec<InfoAst>,
    /// The path of the value that says what it carries.
    pub(in crate::table) carries: Option<InfoAst>,
    pub(in crate::table) examples: Vec<ExampleAst>,
}

/// `info "login of {account_name}"`, `carries buffer.class`
#[derive(Debug, Clone)]
pub(in crate::table) struct InfoAst {
    pub(in crate::table) at: usize,
    pub(in crate::table) text: String,
}

#[derive(Debug, Clone)]
pub(in crate::table) struct ExampleAst {
    pub(in crate::table) at: usize,
    /// What earlier messages set: states with their values.
    pub(in crate::table) with: Vec<(NameAst, u64)>,
    /// Whether the bytes stand there as they are, and not as hex.
    pub(in crate::table) text: bool,
    /// Where the quoted texts of the bytes begin and end.
    pub(in crate::table) bytes: (usize, usize),
    /// Where the fields begin and end.
    pub(in crate::table) json: (usize, usize),
}

#[derive(Debug, Clone)]
pub(in crate::table) struct EnumValueAst {
    pub(in crate::table) name: String,
    pub(in crate::table) at: usize,
    pub(in crate::table) value: u64,
    pub(in crate::table) text: String,
}

/// A field as it was written.
#[derive(Debug, Clone)]
pub(in crate::table) struct FieldAst {
    pub(in crate::table) name: String,
    pub(in crate::table) at: usize,
    /// Whether it is not a field of its own, but a part that only describes others (a count, for
    /// example).
    pub(in crate::table) span: bool,
    pub(in crate::table) of: TypeAst,
    pub(in crate::table) mods: Option<Box<Mods>>,
}

/// `zlib(KEEP, SIZE)`: how many plain bytes come first, and the expected size of the content.
#[derive(Debug, Clone)]
pub(in crate::table) struct ZlibAst {
    pub(in crate::table) keep: ExprAst,
    pub(in crate::table) size: ExprAst,
}

#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant)] // most entries are fields
pub(in crate::table) enum Entry {
    Field(FieldAst),
    If {
        arms: Vec<(ExprAst, Vec<Entry>)>,
        otherwise: Vec<Entry>,
    },
    Match {
        on: ExprAst,
        arms: Vec<(Vec<ExprAst>, Vec<Entry>)>,
        otherwise: Vec<Entry>,
    },
    Say {
        severity: Severity,
        concern: Concern,
        text: String,
    },
    Undecoded,
    /// This answer is not the last one of its request.
    Partial,
    /// This element is the last one of its list.
    Last,
    Remember {
        kind: String,
        key: ExprAst,
        value: ExprAst,
    },
    /// `set version = protocol_level`: a state of the connection, for later messages.
    Set {
        state: String,
        at: usize,
        value: ExprAst,
    },
}

#[derive(Debug, Clone, Default)]
pub(in crate::table) struct Mods {
    pub(in crate::table) max: Option<u64>,
    pub(in crate::table) expect: Option<ExprAst>,
    pub(in crate::table) shown: Option<NameAst>,
    pub(in crate::table) ids: Vec<String>,
    pub(in crate::table) refers: bool,
    pub(in crate::table) names: Vec<String>,
    pub(in crate::table) secret: bool,
    pub(in crate::table) opaque: bool,
    pub(in crate::table) unexplained: bool,
    pub(in crate::table) transaction: bool,
    pub(in crate::table) terminated: bool,
    pub(in crate::table) trimmed: bool,
    pub(in crate::table) optional: bool,
    pub(in crate::table) dialects: bool,
    pub(in crate::table) checksum: Option<Box<ChecksumAst>>,
    pub(in crate::table) facts: FactMods,
}

/// `checksum crc32(0, here - 4)`
#[derive(Debug, Clone)]
pub(in crate::table) struct ChecksumAst {
    pub(in crate::table) name: NameAst,
    pub(in crate::table) from: ExprAst,
    pub(in crate::table) to: ExprAst,
}

/// Modifiers that say nothing about how a field is read.
#[derive(Debug, Clone, Default)]
pub(in crate::table) struct FactMods {
    pub(in crate::table) own: bool,
    pub(in crate::table) place: Option<PlaceRole>,
    pub(in crate::table) leaves_unless: Vec<ExprAst>,
    pub(in crate::table) volatile: bool,
    pub(in crate::table) echoed: bool,
    pub(in crate::table) unordered: bool,
    pub(in crate::table) continues: bool,
    pub(in crate::table) local: bool,
    pub(in crate::table) same: Option<NameAst>,
    pub(in crate::table) person: Option<NameAst>,
    pub(in crate::table) chat: Option<NameAst>,
    pub(in crate::table) file: Option<NameAst>,
    pub(in crate::table) graph: Option<NameAst>,
    pub(in crate::table) share: Option<NameAst>,
    pub(in crate::table) change: Option<NameAst>,
    pub(in crate::table) refuses_unless: Vec<ExprAst>,
    pub(in crate::table) refuses_unless_texts: Vec<String>,
    pub(in crate::table) identity: Vec<String>,
}

/// The modifiers of a field that has none.
pub(in crate::table) static NO_MODS: Mods = Mods {
    max: None,
    expect: None,
    shown: None,
    ids: Vec::new(),
    refers: false,
    names: Vec::new(),
    secret: false,
    opaque: false,
    unexplained: false,
    transaction: false,
    terminated: false,
    trimmed: false,
    optional: false,
    dialects: false,
    checksum: None,
    facts: FactMods {
        own: false,
        place: None,
        leaves_unless: Vec::new(),
        volatile: false,
        echoed: false,
        unordered: false,
        continues: false,
        local: false,
        same: None,
        person: None,
        chat: None,
        file: None,
        graph: None,
        share: None,
        change: None,
        refuses_unless: Vec::new(),
        refuses_unless_texts: Vec::new(),
        identity: Vec::new(),
    },
};

impl Mods {
    /// Whether these are [`NO_MODS`] themselves, those of a field that has none: most fields are
    /// so.
    pub(in crate::table) fn are_none(&self) -> bool {
        std::ptr::eq(self, &NO_MODS)
    }
}

#[derive(Debug, Clone)]
pub(in crate::table) struct TypeAst {
    pub(in crate::table) at: usize,
    pub(in crate::table) kind: TypeKind,
}

#[derive(Debug, Clone)]
pub(in crate::table) enum TypeKind {
    /// A name with arguments: a builtin, an alias, a struct, an enum, a type with code.
    Named { name: String, args: Vec<ExprAst> },
    /// `{ fields }`
    Inline(Vec<Entry>),
    /// `T[N]`, also of `bytes`, `utf8`, …
    Many { of: Box<TypeAst>, len: LenAst, bytes: bool },
    /// `region as A | B`
    As { region: Box<TypeAst>, zlib: Option<ZlibAst>, inner: Vec<TypeAst> },
    /// `mapping`, `mapping of T`, `mapping { key: T }`, `mapping or POSITIONS`
    Mapping { of: Option<Box<TypeAst>>, keys: Vec<Entry>, array: Option<Box<TypeAst>> },
    /// `null_or(bool) T`
    NullOr { present: Box<TypeAst>, of: Box<TypeAst> },
}

#[derive(Debug, Clone)]
pub(in crate::table) enum LenAst {
    Expr(ExprAst),
    Inline(Box<TypeAst>),
    Rest,
    Zero,
    /// Text up to this unit, which may be missing at the region's end.
    To(u64),
    /// Up to these bytes, which may be missing at the region's end.
    Until(Vec<u8>),
    /// Up to a blank.
    Blanks,
    /// Elements, of which one says that it is the last.
    Last,
}

#[derive(Debug, Clone)]
pub(in crate::table) struct ExprAst {
    pub(in crate::table) at: usize,
    /// How many expressions are within each other here, itself included.
    pub(in crate::table) depth: u16,
    pub(in crate::table) kind: ExprKind,
}

impl ExprAst {
    /// An expression without others in it.
    pub(in crate::table) fn leaf(at: usize, kind: ExprKind) -> ExprAst {
        ExprAst { at, depth: 1, kind }
    }
}

#[derive(Debug, Clone)]
pub(in crate::table) enum ExprKind {
    Int(i128),
    /// A text that a field is compared with.
    Text(String),
    Name(String),
    Path(String, String),
    Binary(BinaryOp, Box<ExprAst>, Box<ExprAst>),
    Not(Box<ExprAst>),
    In(Box<ExprAst>, Vec<ExprAst>),
    Remaining,
    More,
    Dialect(String),
    Recall(String, Box<ExprAst>),
    /// `next(3)`: the byte behind the next 3.
    Next(u32),
    /// `state.version`
    State(String),
}

/// Operators of expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Rem,
    /// `&`
    BitAnd,
    /// `^`
    BitXor,
    /// `|`
    BitOr,
    /// `<<`
    Shl,
    /// `>>`
    Shr,
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `has`
    Has,
    /// `and`
    And,
    /// `or`
    Or,
}

/// What all messages of a service begin with, and what it says of them.
#[derive(Debug, Clone, Default)]
pub(in crate::table) struct BeginningAst {
    /// The structure.
    pub(in crate::table) structure: Option<NameAst>,
    /// What the numbers of messages are compared with, unless a text selects them.
    pub(in crate::table) number: Option<ExprAst>,
    /// How many bytes a message has.
    pub(in crate::table) length: Option<ExprAst>,
}

/// How the messages of a service follow each other, where the table says so.
#[derive(Debug, Clone, Default)]
pub(in crate::table) struct FramingAst {
    /// `begins STRUCT`: the structure that every message begins with.
    pub(in crate::table) begins: Option<NameAst>,
    /// `selects EXPR`: what the numbers of messages are compared with.
    pub(in crate::table) selects: Option<ExprAst>,
    /// `anycase`: letters of a text that selects are compared without their case.
    pub(in crate::table) any_case: bool,
    /// `length EXPR`: how many bytes a message has.
    pub(in crate::table) length: Option<ExprAst>,
    /// `max N`: no message is longer.
    pub(in crate::table) max: Option<u64>,
    pub(in crate::table) frame: ServiceFrame,
    /// `resync BYTES`: what every message begins with.
    pub(in crate::table) resync: Option<Vec<u8>>,
}

/// Where a message of a service ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ServiceFrame {
    /// Where its layout or its length says.
    #[default]
    Layout,
    /// Behind these bytes, which are no part of any field.
    Ends(Vec<u8>),
    /// After this many bytes.
    Fixed(u32),
    /// Where the datagram ends, or the stream.
    Whole,
}
