//! Links from a message to earlier records, besides the one that it replies to.

/// The relation of a message to an earlier record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// The message acknowledges it.
    Acknowledges,
    /// The message repeats it.
    SentAgain,
}

impl LinkKind {
    /// The key the JSON uses.
    pub fn word(self) -> &'static str {
        match self {
            LinkKind::Acknowledges => "acknowledges",
            LinkKind::SentAgain => "sent_again",
        }
    }
}

/// A link to an earlier record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordLink {
    /// Its kind.
    pub kind: LinkKind,
    /// The node that says so; 0 for the message as a whole.
    pub node: u32,
    /// The earlier record's number.
    pub record: u64,
    /// Nanoseconds since then.
    pub nanos: i64,
}
