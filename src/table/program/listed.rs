//! What tables say beside the layouts: examples, and where everything is declared.

use super::ids::{LayoutId, MessageId};

/// Bytes and the fields they must give.
#[derive(Debug, Clone)]
pub struct Example {
    /// What it is an example of.
    pub of: ExampleOf,
    /// The bytes in hex, not yet checked, or as they are.
    pub bytes: String,
    /// Whether the bytes stand there as they are.
    pub text: bool,
    /// The expected fields as JSON, not yet checked.
    pub json: String,
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

/// A declaration, for lists and references.
#[derive(Debug, Clone)]
pub struct Declaration {
    /// Its name.
    pub name: String,
    /// `message`, `struct`, `enum` …
    pub kind: &'static str,
    /// Its explanation.
    pub doc: String,
    /// Which file (index into the sources).
    pub file: u32,
    /// First and last byte of its text there.
    pub range: (usize, usize),
}
