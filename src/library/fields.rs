//! Facts about fields beside their values: their places, their problems, and names from earlier
//! records.

use crate::print::{problem_path, problem_text};
use crate::record::{Body, Record};
use crate::table::Tables;
use crate::tree::{Kind, Node, Severity, Sym, Tree, mark};

/// A problem of a field.
///
/// ```
/// let records = moulsniff::Decoder::new()
///     .keys("keys/dirtsand.ini")?
///     .open("captures/moul/kind_game.pcap")?;
/// for problem in records.filter_map(Result::ok).flat_map(|record| record.problems()) {
///     assert!(
///         problem.severity < moulsniff::Severity::Error,
///         "{}: {}",
///         problem.field,
///         problem.text
///     );
/// }
/// # Ok::<(), moulsniff::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldProblem {
    /// How bad it is.
    pub severity: Severity,
    /// The field's path without `fields.`; empty for the message as a whole.
    pub field: String,
    /// The text.
    pub text: String,
    /// The bytes it is about, where they are worth showing.
    pub bytes: Vec<u8>,
}

/// The name that an earlier record gives to a number or a UUID of this one.
///
/// ```
/// let records = moulsniff::Decoder::new()
///     .keys("keys/dirtsand.ini")?
///     .open("captures/moul/kind_game.pcap")?;
/// for record in records.filter_map(Result::ok) {
///     for name in record.names() {
///         assert!(name.record <= record.number() && !name.name.is_empty());
///     }
/// }
/// # Ok::<(), moulsniff::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldName {
    /// The field's path without `fields.`.
    pub field: String,
    /// The name.
    pub name: String,
    /// The number of the record that gave it.
    pub record: u64,
}

/// The place of a field in the bytes of its message.
///
/// ```
/// let bytes = [0x1a, 0, 7, 0, 0, 0, 0xe9, 3, 0, 0];
/// let records = moulsniff::Decoder::new().decode("moul.auth.client", &bytes)?;
/// let spans = records[0].spans();
/// let node = spans.iter().find(|span| span.name == "node_id").ok_or("no such field")?;
/// assert_eq!((node.offset(), node.length(), node.type_name.as_str()), (6, 4, "u32"));
/// assert_eq!(spans.iter().map(|span| span.bits).sum::<u64>(), 80);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldSpan {
    /// Its name; of an element of a list its number in brackets.
    pub name: String,
    /// Its type in the table language.
    pub type_name: String,
    /// Its first bit, counted from the message's first byte, or from the start of the content that
    /// it lies in (see `buffer`). Within a byte, bits count from the lowest.
    pub first_bit: u64,
    /// How many bits it has.
    pub bits: u64,
    /// Set where the children do not count in the message's own bytes: `decompressed`,
    /// `decrypted`, `expanded`.
    pub buffer: Option<&'static str>,
    /// The fields within it.
    pub children: Vec<FieldSpan>,
}

impl FieldSpan {
    /// The byte in which it begins.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().decode("moul.auth.client", &[0x1a, 0, 7, 0, 0, 0, 0xe9, 3, 0, 0])?.remove(0);
    /// let node = &record.spans()[2];
    /// assert_eq!((node.name.as_str(), node.offset()), ("node_id", 6));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn offset(&self) -> u64 {
        self.first_bit / 8
    }

    /// How many bytes it touches.
    ///
    /// ```
    /// # let record = moulsniff::Decoder::new().decode("moul.auth.client", &[0x1a, 0, 7, 0, 0, 0, 0xe9, 3, 0, 0])?.remove(0);
    /// assert_eq!(record.spans()[2].length(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn length(&self) -> u64 {
        (self.first_bit % 8 + self.bits).div_ceil(8)
    }
}

pub(super) fn problems_of(record: &Record<'_>, redact: bool) -> Vec<FieldProblem> {
    let Body::Message { message, tables, tree } = &record.body else { return Vec::new() };
    let bytes = |buffer, start: u32, len: u32| {
        let from = start as usize;
        let to = start as usize + len as usize;
        let hidden = redact && tree.secrets(buffer).any(|secret| secret.0 < to && from < secret.1);
        let shown = if hidden { None } else { tree.bytes(buffer, message.bytes).get(from..to) };
        shown.unwrap_or(&[]).to_vec()
    };
    let all = tree.problems().iter().map(|problem| FieldProblem {
        severity: problem.severity,
        field: problem_path(tree, tables, problem.node),
        text: problem_text(problem, tables, tree),
        bytes: problem
            .bytes
            .map(|(buffer, start, len)| bytes(buffer, start, len))
            .unwrap_or_default(),
    });
    all.collect()
}

pub(super) fn names_of(record: &Record<'_>, redact: bool) -> Vec<FieldName> {
    let Body::Message { tables, tree, .. } = &record.body else { return Vec::new() };
    let shown = |node: u32| !(redact && tree.get(node).is_some_and(|node| node.has(mark::SECRET)));
    let named = record.names.iter().filter(|(node, ..)| shown(*node));
    named
        .map(|(node, name, record)| FieldName {
            field: problem_path(tree, tables, node),
            name: name.into(),
            record,
        })
        .collect()
}

pub(super) fn spans_of(record: &Record<'_>) -> Vec<FieldSpan> {
    let Body::Message { tables, tree, .. } = &record.body else { return Vec::new() };
    children_of(tree, tables, 0)
}

fn children_of(tree: &Tree, tables: &Tables, parent: u32) -> Vec<FieldSpan> {
    let list = tree.get(parent).is_some_and(|node| node.kind == Kind::List);
    let mut element = 0;
    let mut spans = Vec::new();
    for (index, node) in tree.children(parent) {
        let name = if list && node.name == Sym::ELEMENT {
            format!("[{element}]")
        } else {
            name(tree, tables, node)
        };
        element += usize::from(!node.has(mark::SPAN));
        let own = node.has(mark::OWN_BUFFER).then(|| tree.get(index + 1)).flatten();
        spans.push(FieldSpan {
            name,
            type_name: tables
                .type_def(node.ty)
                .map_or_else(String::new, |def| def.text.to_string()),
            first_bit: node.start.into(),
            bits: node.bits.into(),
            buffer: own.and_then(|child| tree.made(child.buffer)).map(|made| made.word()),
            children: children_of(tree, tables, index),
        });
    }
    spans
}

fn name(tree: &Tree, tables: &Tables, node: &Node) -> String {
    match tree.dynamic(node.name) {
        Some(own) => own.raw().to_owned(),
        None => tables.name(node.name).to_owned(),
    }
}
