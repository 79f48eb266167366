//! The trees and bytes of some hundred rows in the binary form that `data.js` reads.
//!
//! All numbers are unsigned LEB128, lowest bits first; signed ones are zigzag-coded. A chunk is: the number of texts, each as
//! its length in bytes and UTF-8 (text 0 is empty and not written); the number of rows; the rows. A row is
//!
//! - the text of its message's explanation,
//! - the number of buffers, each: how it was made (0 captured, 1 decompressed, 2 decrypted, 3 expanded, 4 reassembled), its
//!   length, how many of its bytes follow, and these bytes,
//! - the number of nodes, each: how many descendants follow it, name, type, kind, marks, buffer, the distance of its first bit
//!   from the one of the node before it (signed), its length in bits, its value, the text of what the value means, the text of
//!   what earlier records call it, and where that is not empty the record that said so,
//! - the number of problems, each: severity (0 note, 1 warning, 2 error), node, text.
//!
//! Values are numbers for integers and booleans, nothing for structures, lists and nulls, texts for everything else; bytes
//! have the number 0, since the node says where they are.

use std::collections::HashMap;

use super::super::json;
use super::super::problem::problem_text;
use super::super::scratch::Scratch;
use super::super::tree::{Annotations, meaning};
use crate::captured::Captured;
use crate::leb128::{put, zigzag};
use crate::proto::Message;
use crate::table::Tables;
use crate::tree::{Buffer, BufferOrigin, Kind, Node, Severity, Sym, TextKind, Tree, TypeRef, decode_text, mark};

/// Bytes of one buffer that a report holds; of longer ones the rest is counted.
const MAX_BUFFER: usize = 64 << 10;
/// Characters of one value that a report holds.
const MAX_TEXT: usize = 4096;
/// Nodes of one tree that a report holds.
const MAX_NODES: u32 = 20_000;

/// Collects rows until their chunk is taken.
#[derive(Default)]
pub(super) struct ChunkBuilder {
    rows: u64,
    body: Vec<u8>,
    texts: Vec<u8>,
    known: HashMap<Box<str>, u64>,
    scratch: Scratch,
    text: String,
    bytes: Vec<u8>,
    redact: bool,
}

/// A message with what its tree needs to be read.
#[derive(Clone, Copy)]
struct ReportSource<'a> {
    tables: &'a Tables,
    tree: &'a Tree,
    captured: &'a [u8],
}

impl ChunkBuilder {
    /// An empty chunk; `redact` hides what tables mark as secret.
    pub(super) fn new(redact: bool) -> Self {
        ChunkBuilder { redact, ..ChunkBuilder::default() }
    }

    /// How many rows wait.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// How many bytes wait, before compression.
    pub(super) fn size(&self) -> usize {
        self.body.len() + self.texts.len()
    }

    /// Adds a row that has no tree.
    pub(super) fn event(&mut self) {
        self.rows += 1;
        self.body.extend_from_slice(&[0; 4]);
    }

    /// Adds a message.
    pub(super) fn message(&mut self, message: &Message<'_>, tables: &Tables, tree: &Tree, mut names: Annotations<'_>) {
        self.rows += 1;
        let source = ReportSource { tables, tree, captured: message.bytes };
        let doc = tables.message_named(message.name.raw()).and_then(|id| tables.message(id)).map_or("", |def| &def.doc);
        self.put_text(doc);
        self.buffers(source);
        let count = tree.len().min(MAX_NODES);
        self.put(count.into());
        let mut before = 0;
        for (index, node) in (0..count).zip(tree.nodes()) {
            self.node(source, index, node, count);
            self.put(zigzag(i64::from(node.start) - i64::from(before)));
            before = node.start;
            self.put(node.bits.into());
            self.value(source, node);
            let called = names.take(index).filter(|_| !self.is_hidden(node));
            self.put_text(called.map_or("", |(name, _)| name));
            if let Some((_, record)) = called.filter(|(name, _)| !name.is_empty()) {
                self.put(record);
            }
        }
        self.problems(source);
    }

    /// The chunk so far, which begins anew.
    pub(super) fn take(&mut self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.size() + 16);
        put(&mut all, self.known.len() as u64);
        all.extend_from_slice(&self.texts);
        put(&mut all, self.rows);
        all.extend_from_slice(&self.body);
        (self.rows, self.body, self.texts) = (0, Vec::new(), Vec::new());
        self.known.clear();
        all
    }

    fn buffers(&mut self, source: ReportSource<'_>) {
        let made = source.tree.nodes().iter().map(|node| node.buffer.0).max().unwrap_or(0);
        self.put(u64::from(made) + 1);
        for buffer in (0..=made).map(Buffer) {
            let kind = match source.tree.made(buffer) {
                None => 0,
                Some(BufferOrigin::Decompressed) => 1,
                Some(BufferOrigin::Decrypted) => 2,
                Some(BufferOrigin::Expanded) => 3,
                Some(BufferOrigin::Reassembled) => 4,
            };
            let all = source.tree.bytes(buffer, source.captured);
            let kept = all.get(..all.len().min(MAX_BUFFER)).unwrap_or(all);
            self.body.push(kind);
            self.put(all.len() as u64);
            self.put(kept.len() as u64);
            let at = self.body.len();
            self.body.extend_from_slice(kept);
            if self.redact {
                for (from, to) in source.tree.secrets(buffer) {
                    let (from, to) = (at + from.min(kept.len()), at + to.min(kept.len()));
                    self.body.get_mut(from..to).unwrap_or_default().fill(0);
                }
            }
        }
    }

    /// The part of a node before its place.
    fn node(&mut self, source: ReportSource<'_>, index: u32, node: &Node, count: u32) {
        self.put(u64::from(node.end.min(count).saturating_sub(index + 1)));
        // Elements of lists have no name: the page counts them.
        let name = source.tree.dynamic(node.name).map_or_else(|| source.tables.name(node.name), Captured::raw);
        self.put_text(if node.name == Sym::ELEMENT { "" } else { name });
        self.put_text(type_text(source.tables, node.ty));
        self.body.extend_from_slice(&[self.kind(node), node.marks]);
        self.put(node.buffer.0.into());
    }

    fn kind(&self, node: &Node) -> u8 {
        if self.is_hidden(node) {
            return NUMBER;
        }
        match node.kind {
            Kind::Struct => 0,
            Kind::List => 1,
            Kind::Null => 2,
            Kind::Unsigned => 3,
            Kind::Signed => 4,
            Kind::Unsigned64 => 5,
            Kind::Signed64 => 6,
            Kind::F32 => 7,
            Kind::F64 => 8,
            Kind::Bool => 9,
            Kind::Uuid => 10,
            Kind::UuidBe => 11,
            Kind::Ipv4 => 12,
            Kind::Text(_) => 13,
            Kind::Bytes => 14,
            Kind::Number => NUMBER,
            Kind::Undecoded => 16,
        }
    }

    /// A node's value, and what it means.
    fn value(&mut self, source: ReportSource<'_>, node: &Node) {
        if self.is_hidden(node) {
            let hidden = format!("<redacted, {} bytes>", node.bits.div_ceil(8));
            self.put_text(&hidden);
            return self.put_text("");
        }
        match node.kind {
            Kind::Struct | Kind::List | Kind::Null => {}
            Kind::Unsigned | Kind::Unsigned64 | Kind::Bool => self.put(node.value),
            Kind::Signed | Kind::Signed64 => self.put(zigzag(node.value as i64)),
            Kind::Bytes | Kind::Undecoded => self.put(0),
            Kind::Text(kind) => self.put_captured(source, node, kind),
            _ => self.put_other(source, node),
        }
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        meaning(source.tables, node, &mut bytes);
        self.put_text(&String::from_utf8_lossy(&bytes));
        self.bytes = bytes;
    }

    fn put_captured(&mut self, source: ReportSource<'_>, node: &Node, kind: TextKind) {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        if kind == TextKind::Owned {
            text.push_str(source.tree.owned(node.value).raw());
        } else {
            let (start, length) = node.content();
            // No encoding takes more than four bytes a character.
            let length = length.min(MAX_TEXT * 4);
            let all = source.tree.bytes(node.buffer, source.captured);
            decode_text(kind, all.get(start..start.saturating_add(length)).unwrap_or_default(), &mut text);
        }
        if let Some((end, _)) = text.char_indices().nth(MAX_TEXT) {
            text.truncate(end);
            text.push('…');
        }
        self.put_text(&text);
        self.text = text;
    }

    fn put_other(&mut self, source: ReportSource<'_>, node: &Node) {
        let (mut bytes, mut scratch) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.scratch));
        bytes.clear();
        let mut w = scratch.writer(&mut bytes);
        json::unquoted(source.tables, source.tree, source.captured, node, &mut w);
        w.finish();
        self.put_text(&String::from_utf8_lossy(&bytes));
        (self.bytes, self.scratch) = (bytes, scratch);
    }

    fn problems(&mut self, source: ReportSource<'_>) {
        let problems = source.tree.problems();
        self.put(problems.len() as u64);
        for problem in problems {
            self.body.push(match problem.severity {
                Severity::Note => 0,
                Severity::Warning => 1,
                Severity::Error => 2,
            });
            self.put(problem.node.into());
            self.put_text(&problem_text(problem, source.tables, source.tree));
        }
    }

    fn is_hidden(&self, node: &Node) -> bool {
        self.redact && node.has(mark::SECRET)
    }

    fn put(&mut self, number: u64) {
        put(&mut self.body, number);
    }

    /// The number of a text, which is added to the chunk's texts where it is new.
    fn put_text(&mut self, text: &str) {
        if text.is_empty() {
            return self.put(0);
        }
        let number = match self.known.get(text) {
            Some(number) => *number,
            None => {
                let number = self.known.len() as u64 + 1;
                self.known.insert(text.into(), number);
                put(&mut self.texts, text.len() as u64);
                self.texts.extend_from_slice(text.as_bytes());
                number
            }
        };
        self.put(number);
    }
}

/// The number of [`Kind::Number`], and of values that are hidden: a text without quotes.
const NUMBER: u8 = 15;

fn type_text(tables: &Tables, ty: TypeRef) -> &str {
    tables.type_def(ty).map_or("", |def| &def.text)
}
