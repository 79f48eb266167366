//! What tables say beside the layouts: examples, and where everything is declared.

use super::TableText;
use super::ids::{LayoutId, MessageId};

/// Bytes and the fields they must give. They stay in the file's text, since most runs of the
/// program need none: see [`Tables::example_bytes`](crate::table::Tables::example_bytes) and
/// [`Tables::example_json`](crate::table::Tables::example_json).
#[derive(Debug, Clone)]
pub struct Example {
    /// What it is an example of.
    pub of: ExampleOf,
    /// Whether the bytes are written as text, not as hex.
    pub text: bool,
    /// Where the quoted texts of the bytes begin and end in the file.
    pub(in crate::table) bytes: (usize, usize),
    /// What earlier messages set: the states' places and their values.
    pub states: Vec<(u32, u64)>,
    /// Where the expected fields begin and end in the file.
    pub(in crate::table) json: (usize, usize),
    /// Which file (index into the sources) and byte offset.
    pub file: u32,
    /// Where in the file.
    pub at: usize,
}

/// What an example is of.
#[derive(Debug, Clone, Copy)]
pub enum ExampleOf {
    /// A message.
    Message(MessageId),
    /// A structure.
    Layout(LayoutId),
}

/// A range of message numbers with a name of its own.
#[derive(Debug, Clone)]
pub struct NumberRange {
    /// Its name.
    pub name: TableText,
    /// What is added to the numbers of the range.
    pub base: u64,
    /// The largest of its numbers.
    pub max: Option<u64>,
}

/// A message that took the number of another one, declared in an earlier file.
#[derive(Debug, Clone, Copy)]
pub struct ReplacedMessage {
    /// The message that can no longer occur.
    pub old: MessageId,
    /// The message that has its number now.
    pub new: MessageId,
    /// The file that declares the new one (index into the sources), and where.
    pub file: u32,
    /// The byte offset of its name there.
    pub at: usize,
}

impl ExampleOf {
    /// The message it is an example of.
    pub fn message(self) -> Option<MessageId> {
        match self {
            ExampleOf::Message(id) => Some(id),
            ExampleOf::Layout(_) => None,
        }
    }
}

/// A declaration, for lists and references.
#[derive(Debug, Clone)]
pub struct ListedDeclaration {
    /// Its name.
    pub name: TableText,
    /// `message`, `struct`, `enum` …
    pub kind: &'static str,
    /// Its explanation.
    pub doc: TableText,
    /// Which file (index into the sources).
    pub file: u32,
    /// First and last byte of its text there.
    pub range: (usize, usize),
}
