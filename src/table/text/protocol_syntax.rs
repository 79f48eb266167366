//! The syntax tree of a protocol's declaration. Nothing is resolved here.

/// The declaration of a protocol as a whole.
#[derive(Debug, Clone, Default)]
pub(in crate::table) struct ProtocolAst {
    pub(in crate::table) doc: String,
    /// Start and end of the declaration.
    pub(in crate::table) start: usize,
    pub(in crate::table) end: usize,
    /// Where its braces begin.
    pub(in crate::table) at: usize,
    pub(in crate::table) tcp: bool,
    pub(in crate::table) udp: bool,
    pub(in crate::table) ports: Vec<u16>,
    pub(in crate::table) rules: Vec<RuleAst>,
    pub(in crate::table) services: Vec<OfferAst>,
    pub(in crate::table) states: Vec<StateAst>,
}

/// `recognise client { … }`
#[derive(Debug, Clone)]
pub(in crate::table) struct RuleAst {
    pub(in crate::table) at: usize,
    /// Each datagram has to satisfy it by itself.
    pub(in crate::table) each: bool,
    pub(in crate::table) side: RuleSide,
    pub(in crate::table) conditions: Vec<Condition>,
}

/// `service NAME when client { … }`
#[derive(Debug, Clone)]
pub(in crate::table) struct OfferAst {
    pub(in crate::table) name: String,
    pub(in crate::table) at: usize,
    pub(in crate::table) when: Option<RuleAst>,
}

/// `state version = 4`
#[derive(Debug, Clone)]
pub(in crate::table) struct StateAst {
    pub(in crate::table) name: String,
    pub(in crate::table) at: usize,
    pub(in crate::table) value: u64,
}

/// Whose first bytes a rule looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleSide {
    /// Those of the client.
    Client,
    /// Those of the server.
    Server,
    /// Those of the client and those of the server: each has to satisfy the rule.
    Both,
    /// Those of either side: one that satisfies the rule is enough.
    Either,
}

/// One condition of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// The bytes from `place` on are one of these values. Only the bits of `mask` are compared;
    /// where it is empty, all.
    At {
        /// The place of the first byte.
        place: u32,
        /// The values, all equally long.
        values: Vec<Vec<u8>>,
        /// The bits that count, as long as the values, or empty.
        mask: Vec<u8>,
    },
    /// There are at least this many bytes.
    Least(u32),
    /// A datagram has at most this many bytes.
    Most(u32),
    /// The bytes are a message of the tables: a datagram from its first to its last byte.
    Fits,
    /// The server is at one of these ports; of the protocol's own, where the list is empty.
    Port(Vec<u16>),
}
