//! The trees and bytes of some hundred rows in the binary form that `data.js` reads.
//!
//! All numbers are unsigned LEB128, lowest bits first; signed ones are zigzag-coded. A chunk is: the number of texts, each as
//! its length in bytes and UTF-8 (text 0 is empty and not written); the number of forms; the number of rows; the rows. A form is
//! what many nodes have in common (`forms.rs`): name, type, kind, marks, buffer, length in bits, and the bits of what else a
//! node has. A row is
//!
//! - the text of its message's explanation,
//! - the number of buffers, each: how it was made (0 captured, 1 decompressed, 2 decrypted, 3 expanded, 4 reassembled), its
//!   length, how many of its bytes follow, and these bytes,
//! - the number of nodes, each: its form, and where the form says so: how many descendants follow it, the distance of its first
//!   bit from where it was expected (signed), its length in bits; its value; where the form says so the text of what the value
//!   means, and the text of what earlier records call it with the record that said so,
//! - the number of problems, each: severity (0 note, 1 warning, 2 error), node, text.
//!
//! A node is expected to begin where its parent begins if it is the first child, and otherwise where the node before it ended. Values
//! are numbers for integers and booleans, nothing for structures, lists, nulls and bytes (the node says where they are), texts
//! for everything else. Values that `--redact` hides are texts whatever their kind.

use super::super::json;
use super::super::problem::problem_text;
use super::super::scratch::Scratch;
use super::super::tree::{Annotations, meaning};
use super::forms::{LONG, NodeForm, NodeForms, NumberKey, NumberTexts, has};
use crate::facts::definition;
use crate::hashing::SeededMap;
use crate::leb128::{put, zigzag};
use crate::proto::Message;
use crate::table::Tables;
use crate::tree::{Buffer, BufferOrigin, Kind, Node, Sym, TextKind, Tree, decode_text, mark};

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
    known: SeededMap<Box<str>, u32>,
    forms: NodeForms,
    form_bytes: Vec<u8>,
    values: NumberTexts,
    /// Where the text is that was written last in this message, and its number in the chunk.
    last_text: (Option<(TextKind, Buffer, u64)>, u32),
    scratch: Scratch,
    text: String,
    bytes: Vec<u8>,
    redact: bool,
}

/// A message with what its tree needs to be read.
#[derive(Clone, Copy)]
struct ReportSource<'a> {
    tables: &'a Tables,
    /// Where the tables are, which tells them from others.
    address: usize,
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
        self.body.len() + self.texts.len() + self.form_bytes.len()
    }

    /// Adds a row that has no tree.
    pub(super) fn event(&mut self) {
        self.rows += 1;
        self.body.extend_from_slice(&[0; 4]);
    }

    /// Adds a message.
    pub(super) fn message(&mut self, message: &Message<'_>, tables: &Tables, tree: &Tree, mut names: Annotations<'_>) {
        self.rows += 1;
        self.last_text = (None, 0);
        let address = std::ptr::from_ref(tables).addr();
        let source = ReportSource { tables, address, tree, captured: message.bytes };
        let doc = definition(message.name, tables, tree).map_or("", |def| &def.doc);
        self.put_text(doc);
        self.buffers(source);
        let count = tree.len().min(MAX_NODES);
        self.put(count.into());
        let mut expected = 0;
        for (index, node) in (0..count).zip(tree.nodes()) {
            let named = names.next() <= index;
            let called = if named { names.take(index).filter(|_| !self.is_hidden(node)) } else { None };
            let called = called.filter(|(name, _)| !name.is_empty());
            let below = node.end.min(count).saturating_sub(index + 1);
            self.node(source, node, Surroundings { below, expected, called });
            expected = if below > 0 { node.start } else { node.start.saturating_add(node.bits) };
        }
        self.problems(source);
    }

    /// Takes the chunk so far; an empty one begins.
    pub(super) fn take(&mut self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.size() + 16);
        put(&mut all, self.known.len() as u64);
        all.extend_from_slice(&self.texts);
        put(&mut all, self.forms.len());
        all.extend_from_slice(&self.form_bytes);
        put(&mut all, self.rows);
        all.extend_from_slice(&self.body);
        self.rows = 0;
        self.body.clear();
        self.texts.clear();
        self.form_bytes.clear();
        self.known.clear();
        self.forms.clear();
        self.values.clear();
        all
    }

    fn buffers(&mut self, source: ReportSource<'_>) {
        let made = match source.tree.made(Buffer(1)) {
            Some(_) => source.tree.nodes().iter().map(|node| node.buffer.0).max().unwrap_or(0),
            None => 0,
        };
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

    fn node(&mut self, source: ReportSource<'_>, node: &Node, around: Surroundings<'_>) {
        let kind = kind_number(node.kind);
        let hidden = self.is_hidden(node);
        let meaning = if is_among(kind, INTEGERS) && !hidden { self.meaning(source, node) } else { 0 };
        let name = match node.name.0 < Sym::DYNAMIC {
            true => None,
            false => source.tree.dynamic(node.name).map(|name| self.number_of(name.raw())),
        };
        let has = around.has(node, kind, meaning) | if hidden { has::HIDDEN } else { 0 };
        let form = NodeForm::new(source.address, name.unwrap_or(node.name.0), name.is_some(), node, kind, has);
        let (number, is_new) = self.forms.number(form);
        if is_new {
            self.put_form(source, node, name, form);
        }
        self.put(number.into());
        if has & has::DESCENDANTS != 0 {
            self.put(around.below.into());
        }
        if has & has::PLACE != 0 {
            self.put(zigzag(i64::from(node.start) - i64::from(around.expected)));
        }
        if has & has::LENGTH != 0 {
            self.put(node.bits.into());
        }
        match hidden {
            true => self.put_text(&format!("<redacted, {} bytes>", node.bits.div_ceil(8))),
            false => self.value(source, node, kind),
        }
        if meaning != 0 {
            self.put(meaning.into());
        }
        if let Some((name, record)) = around.called {
            self.put_text(name);
            self.put(record);
        }
    }

    #[inline(never)]
    fn put_form(&mut self, source: ReportSource<'_>, node: &Node, name: Option<u32>, form: NodeForm) {
        // Elements of lists have no name: the page counts them.
        let name = match name {
            Some(name) => name,
            None if node.name == Sym::ELEMENT => 0,
            None => self.number_of(source.tables.name(node.name)),
        };
        let ty = self.number_of(source.tables.type_def(node.ty).map_or("", |def| &def.text));
        for number in [name.into(), ty.into()].into_iter().chain(form.numbers()) {
            put(&mut self.form_bytes, number);
        }
    }

    #[inline(always)]
    fn value(&mut self, source: ReportSource<'_>, node: &Node, kind: u8) {
        if is_among(kind, UNSIGNED) {
            self.put(node.value);
        } else if is_among(kind, SIGNED) {
            self.put(zigzag(node.value as i64));
        } else if !is_among(kind, WITHOUT_VALUE) {
            match node.kind {
                Kind::Text(kind) => self.put_captured(source, node, kind),
                _ => self.put_other(source, node),
            }
        }
    }

    /// The number of the text that says what an integer's value means; 0 for none.
    #[inline(always)]
    fn meaning(&mut self, source: ReportSource<'_>, node: &Node) -> u32 {
        let op = source.tables.type_op(node.ty);
        if op.symbols.is_none() && !op.shown {
            return 0;
        }
        let key = NumberKey::of(source.address, node);
        self.values.get(key).unwrap_or_else(|| self.new_meaning(source, node, key))
    }

    #[inline(never)]
    fn new_meaning(&mut self, source: ReportSource<'_>, node: &Node, key: NumberKey) -> u32 {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        meaning(source.tables, node, &mut bytes);
        let number = self.number_of(&String::from_utf8_lossy(&bytes));
        self.bytes = bytes;
        self.values.keep(key, number);
        number
    }

    fn put_captured(&mut self, source: ReportSource<'_>, node: &Node, kind: TextKind) {
        // A text with a count has the text itself among its spans.
        let place = Some((kind, node.buffer, node.value));
        if self.last_text.0 == place {
            return self.put(self.last_text.1.into());
        }
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
        if text.len() > MAX_TEXT
            && let Some((end, _)) = text.char_indices().nth(MAX_TEXT)
        {
            text.truncate(end);
            text.push('…');
        }
        let number = self.number_of(&text);
        self.last_text = (place, number);
        self.put(number.into());
        self.text = text;
    }

    fn put_other(&mut self, source: ReportSource<'_>, node: &Node) {
        // Of floats the number says all; of other kinds the bytes do.
        let key = matches!(node.kind, Kind::F32 | Kind::F64).then(|| NumberKey::of(source.address, node));
        if let Some(known) = key.and_then(|key| self.values.get(key)) {
            return self.put(known.into());
        }
        // Only the bytes are taken: a new scratch buffer would be an allocation for each value.
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        let mut w = self.scratch.writer(&mut bytes);
        json::unquoted(source.tables, source.tree, source.captured, node, &mut w);
        w.finish();
        let number = self.number_of(&String::from_utf8_lossy(&bytes));
        self.bytes = bytes;
        if let Some(key) = key {
            self.values.keep(key, number);
        }
        self.put(number.into());
    }

    fn problems(&mut self, source: ReportSource<'_>) {
        let problems = source.tree.problems();
        self.put(problems.len() as u64);
        for problem in problems {
            self.body.push(problem.severity.index());
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

    fn put_text(&mut self, text: &str) {
        let number = self.number_of(text);
        self.put(number.into());
    }

    /// The number of a text, which is added to the chunk's texts where it is new.
    fn number_of(&mut self, text: &str) -> u32 {
        if text.is_empty() {
            return 0;
        }
        if let Some(number) = self.known.get(text) {
            return *number;
        }
        let number = self.known.len() as u32 + 1;
        self.known.insert(text.into(), number);
        put(&mut self.texts, text.len() as u64);
        self.texts.extend_from_slice(text.as_bytes());
        number
    }
}

/// What a node's neighbours and earlier records say about it.
#[derive(Clone, Copy)]
struct Surroundings<'a> {
    /// How many nodes follow that are within it.
    below: u32,
    /// The bit at which it would begin if nothing lay between it and the node before.
    expected: u32,
    /// What earlier records call it, and the record that said so.
    called: Option<(&'a str, u64)>,
}

impl Surroundings<'_> {
    /// Bits of [`has`] for a node that is not hidden.
    #[inline(always)]
    fn has(self, node: &Node, kind: u8, meaning: u32) -> u8 {
        let flag = |set: bool, bit: u8| u8::from(set) * bit;
        flag(self.below > 0, has::DESCENDANTS)
            | flag(node.start != self.expected, has::PLACE)
            | flag(is_among(kind, OF_ANY_LENGTH) || node.bits >= LONG, has::LENGTH)
            | flag(meaning != 0, has::MEANING)
            | flag(self.called.is_some(), has::NAME)
    }
}

/// Sets of kinds, as bits by their numbers.
const INTEGERS: u32 = 1 << 3 | 1 << 4 | 1 << 5 | 1 << 6;
const UNSIGNED: u32 = 1 << 3 | 1 << 5 | 1 << 9;
const SIGNED: u32 = 1 << 4 | 1 << 6;
const WITHOUT_VALUE: u32 = 1 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 16;
const OF_ANY_LENGTH: u32 = 1 | 1 << 1 | 1 << 13 | 1 << 14 | 1 << 16;

/// Whether a set has the kind with a number.
#[inline(always)]
fn is_among(kind: u8, set: u32) -> bool {
    set >> (kind & 31) & 1 != 0
}

/// A kind's number, as `data.js` knows it.
fn kind_number(kind: Kind) -> u8 {
    match kind {
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
        Kind::Number => 15,
        Kind::Undecoded => 16,
    }
}
