//! Ties of a message to earlier records, beside the one it replies to.

/// What an earlier record is to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// The message acknowledges it.
    Acknowledges,
    /// The message is the same once more.
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

/// A tie to an earlier record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordLink {
    /// What it is.
    pub kind: LinkKind,
    /// The node that says so; 0 for the message as a whole.
    pub node: u32,
    /// The earlier record's number.
    pub record: u64,
    /// Nanoseconds since then.
    pub nanos: i64,
}
