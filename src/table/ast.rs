//! What a table file says, as it was written: names not yet resolved. Each part keeps its byte offset for errors.

use crate::tree::Severity;

/// Who sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The client.
    Client,
    /// The server.
    Server,
    /// Either.
    Both,
}

/// A declaration with its explanation and its place in the file.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) name: String,
    pub(super) at: usize,
    pub(super) end: usize,
    pub(super) start: usize,
    pub(super) doc: String,
    pub(super) kind: ItemKind,
}

#[derive(Debug, Clone)]
pub(super) enum ItemKind {
    Service(ServiceAst),
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
        mods: Mods,
    },
    Dialect,
    /// `numbers low = 0xffff0000 max 65279`
    Range {
        base: u64,
        max: Option<u64>,
    },
}

#[derive(Debug, Clone)]
pub(super) struct ServiceAst {
    pub(super) number: Option<u64>,
    /// Its messages are self-describing arrays.
    pub(super) positional: bool,
    /// A message may end before any of its fields.
    pub(super) optional: bool,
    /// The header's fields in wire order.
    pub(super) header: Vec<HeaderField>,
}

#[derive(Debug, Clone)]
pub(super) struct HeaderField {
    pub(super) name: String,
    pub(super) at: usize,
    pub(super) role: Role,
    pub(super) of: TypeAst,
}

/// What a field of a message's header is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
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
pub(super) struct MessageAst {
    pub(super) service: String,
    pub(super) direction: Direction,
    pub(super) number: NumberAst,
    pub(super) answers: Vec<(String, usize)>,
    /// `None` where the layout is unknown.
    pub(super) body: Option<StructAst>,
}

#[derive(Debug, Clone)]
pub(super) enum NumberAst {
    Int(u64),
    Text(String),
    /// `low 51`: counted within a declared range.
    Within {
        range: String,
        at: usize,
        number: u64,
    },
}

#[derive(Debug, Clone, Default)]
pub(super) struct StructAst {
    /// It names the positions of a self-describing array.
    pub(super) positions: bool,
    /// The bytes may end before any of its fields, those of nested structures aside.
    pub(super) optional: bool,
    pub(super) family: Option<(String, usize)>,
    pub(super) parent: Option<(String, usize)>,
    pub(super) params: Vec<String>,
    pub(super) entries: Vec<Entry>,
    pub(super) examples: Vec<ExampleAst>,
}

#[derive(Debug, Clone)]
pub(super) struct ExampleAst {
    pub(super) at: usize,
    /// The bytes as hex, or as they are.
    pub(super) bytes: String,
    /// Whether they stand there as they are.
    pub(super) text: bool,
    pub(super) json: String,
}

#[derive(Debug, Clone)]
pub(super) struct EnumValueAst {
    pub(super) name: String,
    pub(super) at: usize,
    pub(super) value: u64,
    pub(super) text: String,
    pub(super) doc: String,
}

#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant)] // most entries are fields
pub(super) enum Entry {
    Field { name: String, at: usize, span: bool, of: TypeAst, mods: Mods },
    If { arms: Vec<(Expr, Vec<Entry>)>, otherwise: Vec<Entry> },
    Match { on: Expr, arms: Vec<(Vec<Expr>, Vec<Entry>)>, otherwise: Vec<Entry> },
    Say { severity: Severity, text: String },
    Undecoded,
    Remember { kind: String, key: Expr, value: Expr },
}

#[derive(Debug, Clone, Default)]
pub(super) struct Mods {
    pub(super) max: Option<u64>,
    pub(super) expect: Option<Expr>,
    pub(super) shown: Option<(String, usize)>,
    pub(super) ids: Vec<String>,
    pub(super) refers: bool,
    pub(super) names: Vec<String>,
    pub(super) secret: bool,
    pub(super) opaque: bool,
    pub(super) unexplained: bool,
    pub(super) transaction: bool,
    pub(super) terminated: bool,
    pub(super) trimmed: bool,
    pub(super) optional: bool,
    pub(super) dialects: bool,
}

#[derive(Debug, Clone)]
pub(super) struct TypeAst {
    pub(super) at: usize,
    pub(super) kind: TypeKind,
}

#[derive(Debug, Clone)]
pub(super) enum TypeKind {
    /// A name with arguments: a builtin, an alias, a struct, an enum, a type with code.
    Named { name: String, args: Vec<Expr> },
    /// `{ fields }`
    Inline(Vec<Entry>),
    /// `T[N]`, also of `bytes`, `utf8`, …
    Many { of: Box<TypeAst>, len: LenAst, bytes: bool },
    /// `region as A | B`
    As { region: Box<TypeAst>, zlib: Option<(Expr, Expr)>, inner: Vec<TypeAst> },
    /// `mapping`, `mapping of T`, `mapping { key: T }`
    Mapping { of: Option<Box<TypeAst>>, keys: Vec<Entry> },
    /// `null_or(bool) T`
    NullOr { present: Box<TypeAst>, of: Box<TypeAst> },
}

#[derive(Debug, Clone)]
pub(super) enum LenAst {
    Expr(Expr),
    Inline(String),
    Rest,
    Zero,
    /// Text up to this unit, which may be missing at the region's end.
    To(u64),
}

#[derive(Debug, Clone)]
pub(super) struct Expr {
    pub(super) at: usize,
    pub(super) kind: ExprKind,
}

#[derive(Debug, Clone)]
pub(super) enum ExprKind {
    Int(i128),
    Name(String),
    Path(String, String),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    In(Box<Expr>, Vec<Expr>),
    Remaining,
    More,
    Dialect(String),
    Recall(String, Box<Expr>),
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
    /// `&`
    BitAnd,
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
