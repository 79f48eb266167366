//! The trees and bytes of some hundred rows in the binary form that `data.js` reads.
//!
//! All numbers are unsigned LEB128, lowest bits first; signed ones are zigzag-coded. A chunk is:
//! the number of texts, each as its length in bytes and UTF-8 (text 0 is empty and not written);
//! the number of forms; the length in bytes of the forms of its nodes, and these forms in the order
//! of the nodes; the number of rows; the rows. A form is what many nodes have in common
//! (`forms.rs`, which also says how the forms of the nodes are written): name, type, kind, marks,
//! buffer, length in bits, and the bits of what else a node has. A row is
//!
//! - the text of its message's explanation,
//! - the number of buffers, each: how it was made (0 captured, 1 decompressed, 2 decrypted, 3
//!   expanded, 4 reassembled), plus 8 if its bytes are stored; its length; how many of its bytes
//!   the page has; and these bytes, unless they are stored,
//! - the number of nodes, each as its form says: how many descendants follow it, the distance of
//!   its first bit from where it was expected (signed), its length in bits, whose three lowest bits
//!   are put above the others; its value; the text of what the value means, and the text of what
//!   earlier records call it with the record that said so,
//! - the number of problems, each: severity (0 note, 1 warning, 2 error), node, text.
//!
//! A node is expected to begin where its parent begins if it is the first child, and otherwise
//! where the node before it ended. Values are numbers for integers and booleans, unless the bytes
//! at their place say the same, lowest byte first; nothing for structures, lists, nulls and bytes
//! (the node says where they are); texts for everything else. Values that `--redact` hides are
//! texts whatever their kind.
//!
//! Bytes that look random, those of compressed files and pictures for example, would take most of
//! the time that compressing a chunk takes, and would become no smaller. They are stored: they lie
//! one behind the other in a block of their own, which is not deflated.

use std::io::{self, Write};

use super::super::json;
use super::super::problem::problem_text;
use super::super::scratch::Scratch;
use super::super::tree::meaning;
use super::forms::{
    FormCode, LONG, MAX_BUFFER, MessageNodes, NodeForm, NodeForms, ValueCode, captured_bits, has,
    kind_number,
};
use super::made_texts::{MadeTexts, NumberKey, TextKey};
use crate::facts::definition;
use crate::leb128::{put, zigzag};
use crate::maps::SeededMap;
use crate::record::{MessageView, Names};
use crate::session::Message;
use crate::table::Tables;
use crate::tree::{Buffer, BufferOrigin, Kind, Node, Sym, TextKind, Tree, decode_text, mark};

/// Characters of one value that a report holds.
const MAX_TEXT: usize = 4096;
/// Lengths in bits are written with their lowest bits at the top, which makes those of whole bytes
/// small.
const WHOLE_BYTES: u32 = 3;
/// Buffers with fewer bytes are never stored.
const MIN_STORED: usize = 1 << 10;
/// Added to how a buffer was made: its bytes are stored.
const STORED: u8 = 8;
/// Nodes of one tree that a report holds.
const MAX_NODES: usize = 20_000;

/// Collects rows until their chunk is taken.
#[derive(Default)]
pub(super) struct ChunkBuilder {
    rows: u64,
    body: Vec<u8>,
    /// Bytes that compressing would not make smaller.
    stored: Vec<u8>,
    texts: Vec<u8>,
    known: SeededMap<Box<str>, u32>,
    forms: NodeForms,
    form_bytes: Vec<u8>,
    values: MadeTexts<NumberKey>,
    decoded: MadeTexts<TextKey>,
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
    message: MessageView<'a>,
    /// Where the tables are, which tells them from others.
    address: usize,
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

    /// How many bytes wait.
    pub(super) fn bytes(&self) -> usize {
        self.body.len() + self.stored.len() + self.texts.len()
    }

    /// Adds a row that has no tree.
    pub(super) fn event(&mut self) {
        self.rows += 1;
        self.body.extend_from_slice(&[0; 4]);
    }

    /// Adds a message.
    pub(super) fn message(
        &mut self,
        message: &Message<'_>,
        tables: &Tables,
        tree: &Tree,
        mut names: Names<'_>,
    ) {
        self.rows += 1;
        self.last_text = (None, 0);
        let address = std::ptr::from_ref(tables).addr();
        let source =
            ReportSource { message: MessageView { tables, tree, bytes: message.bytes }, address };
        let doc = definition(message.name, tables, tree).map_or("", |def| &def.doc);
        self.put_text(doc);
        self.buffers(source);
        let nodes = tree.nodes().get(..MAX_NODES).unwrap_or(tree.nodes());
        let nodes = MessageNodes { nodes, tree, captured: message.bytes, tables: address };
        self.put(nodes.nodes.len() as u64);
        let mut index = 0;
        while index < nodes.nodes.len() {
            index += self.expected_nodes(source, nodes, index, names.next() as usize);
            if let Some(node) = nodes.nodes.get(index) {
                let called =
                    if names.next() as usize <= index { names.take(index as u32) } else { None };
                let called = called.filter(|(name, _)| !name.is_empty() && !self.is_hidden(node));
                let code = self.unexpected_form(source, nodes, index, node, called.is_some());
                self.node(source, nodes, index, node, code);
                if let Some((name, record)) = called {
                    self.put_text(name);
                    self.put(record);
                }
                index += 1;
            }
        }
        self.problems(source);
    }

    /// The stored bytes of the chunk so far.
    pub(super) fn stored(&self) -> &[u8] {
        &self.stored
    }

    /// Writes the chunk so far, without its stored bytes; an empty one begins.
    ///
    /// # Errors
    /// What writing gives.
    pub(super) fn write(&mut self, out: &mut impl Write) -> io::Result<()> {
        let forms = self.forms.len();
        let codes = self.forms.end();
        for (number, bytes) in [
            (self.known.len() as u64, self.texts.as_slice()),
            (forms, &self.form_bytes),
            (codes.len() as u64, codes),
            (self.rows, &self.body),
        ] {
            let mut written = Vec::new();
            put(&mut written, number);
            out.write_all(&written)?;
            out.write_all(bytes)?;
        }
        self.rows = 0;
        self.body.clear();
        self.stored.clear();
        self.texts.clear();
        self.form_bytes.clear();
        self.known.clear();
        self.forms.clear();
        self.values.clear();
        self.decoded.clear();
        Ok(())
    }

    fn buffers(&mut self, source: ReportSource<'_>) {
        let made = match source.message.tree.made(Buffer(1)) {
            Some(_) => {
                source.message.tree.nodes().iter().map(|node| node.buffer.0).max().unwrap_or(0)
            }
            None => 0,
        };
        self.put(u64::from(made) + 1);
        for buffer in (0..=made).map(Buffer) {
            let kind = match source.message.tree.made(buffer) {
                None => 0,
                Some(BufferOrigin::Decompressed) => 1,
                Some(BufferOrigin::Decrypted) => 2,
                Some(BufferOrigin::Expanded) => 3,
                Some(BufferOrigin::Reassembled) => 4,
            };
            let all = source.message.tree.bytes(buffer, source.message.bytes);
            let kept = all.get(..MAX_BUFFER).unwrap_or(all);
            let is_stored = looks_random(kept);
            self.body.push(if is_stored { kind + STORED } else { kind });
            self.put(all.len() as u64);
            self.put(kept.len() as u64);
            let to = if is_stored { &mut self.stored } else { &mut self.body };
            let at = to.len();
            to.extend_from_slice(kept);
            if self.redact {
                for (start, end) in source.message.tree.secrets(buffer) {
                    let start = at + start.min(kept.len());
                    let end = at + end.min(kept.len());
                    to.get_mut(start..end).unwrap_or_default().fill(0);
                }
            }
        }
    }

    /// Adds the nodes from `from` on that have the forms that are expected, but none from `until`
    /// on. Returns how many these were.
    fn expected_nodes(
        &mut self,
        source: ReportSource<'_>,
        nodes: MessageNodes<'_>,
        from: usize,
        until: usize,
    ) -> usize {
        let mut done = 0;
        // At the end of the forms so far a run continues with those that it added itself.
        loop {
            let run = self.forms.expected(nodes, from + done, until.min(nodes.nodes.len()));
            for (ahead, index) in (from + done..from + done + run).enumerate() {
                if let (Some(code), Some(node)) = (self.forms.ahead(ahead), nodes.nodes.get(index))
                {
                    self.node(source, nodes, index, node, code);
                }
            }
            if run == 0 {
                return done;
            }
            self.forms.advance(run);
            done += run;
        }
    }

    /// Adds what is to be said of a node beyond its form.
    #[inline(always)]
    fn node(
        &mut self,
        source: ReportSource<'_>,
        nodes: MessageNodes<'_>,
        index: usize,
        node: &Node,
        code: FormCode,
    ) {
        let FormCode { has, value } = code;
        if has & has::DESCENDANTS != 0 {
            self.put(nodes.below(index, node) as u64);
        }
        if has & has::PLACE != 0 {
            self.put_distance(node, nodes.expected_start(index));
        }
        if has & has::LENGTH != 0 {
            self.put(node.bits.rotate_right(WHOLE_BYTES).into());
        }
        match value {
            ValueCode::Nothing => {}
            ValueCode::Unsigned => self.put(node.value),
            ValueCode::Signed => self.put(zigzag(node.value as i64)),
            ValueCode::Hidden => self.put_hidden(node),
            ValueCode::Text => self.put_captured(source, node),
            ValueCode::Json => self.put_other(source, node),
        }
        if has & has::MEANING != 0 {
            let meaning = self.meaning(source, node);
            self.put(meaning.into());
        }
    }

    #[inline(never)]
    fn put_distance(&mut self, node: &Node, expected: u32) {
        self.put(zigzag(i64::from(node.start) - i64::from(expected)));
    }

    #[inline(never)]
    fn put_hidden(&mut self, node: &Node) {
        self.put_text(&format!("<redacted, {} bytes>", node.bits.div_ceil(8)));
    }

    /// The form of a node that has another one than the expected one. A new form is added.
    #[inline(never)]
    fn unexpected_form(
        &mut self,
        source: ReportSource<'_>,
        nodes: MessageNodes<'_>,
        index: usize,
        node: &Node,
        is_named: bool,
    ) -> FormCode {
        let name = if node.name.0 < Sym::DYNAMIC {
            None
        } else {
            source.message.tree.dynamic(node.name).map(|name| self.number_of(name.raw()))
        };
        let captured = if self.redact { None } else { captured_bits(nodes, node) };
        let kind = kind_number(node.kind);
        let flag = |set: bool, bit: u8| u8::from(set) * bit;
        let has = flag(nodes.below(index, node) > 0, has::DESCENDANTS)
            | flag(node.start != nodes.expected_start(index), has::PLACE)
            | flag(OF_ANY_LENGTH >> (kind & 31) & 1 != 0 || node.bits >= LONG, has::LENGTH)
            | flag(is_named, has::NAME)
            | flag(captured.is_some(), has::CAPTURED);
        let form = NodeForm::new(
            source.address,
            name.unwrap_or(node.name.0),
            name.is_some(),
            node,
            kind,
            has,
        );
        if let Some(code) = self.forms.known(form) {
            return code;
        }
        // Elements of lists have no name: the page counts them.
        let name = match name {
            Some(name) => name,
            None if node.name == Sym::ELEMENT => 0,
            None => self.number_of(source.message.tables.name(node.name)),
        };
        let ty =
            self.number_of(source.message.tables.type_def(node.ty).map_or("", |def| &def.text));
        let value = match captured {
            _ if self.is_hidden(node) => ValueCode::Hidden,
            Some(_) => ValueCode::Nothing,
            None => value_code(node.kind),
        };
        let has = has
            | flag(value == ValueCode::Hidden, has::HIDDEN)
            | flag(
                value != ValueCode::Hidden && has_meaning(source.message.tables, node),
                has::MEANING,
            );
        for number in [name.into(), ty.into()].into_iter().chain(form.numbers()).chain([has.into()])
        {
            put(&mut self.form_bytes, number);
        }
        let code = FormCode { has, value };
        self.forms.add(form, node, code, captured);
        code
    }

    /// The number of the text that says what an integer's value means; 0 for none.
    #[inline(always)]
    fn meaning(&mut self, source: ReportSource<'_>, node: &Node) -> u32 {
        let key = NumberKey::of(source.address, node);
        self.values.get(key).unwrap_or_else(|| self.new_meaning(source, node, key))
    }

    #[inline(never)]
    fn new_meaning(&mut self, source: ReportSource<'_>, node: &Node, key: NumberKey) -> u32 {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        meaning(source.message.tables, node, &mut bytes);
        let number = self.number_of(&String::from_utf8_lossy(&bytes));
        self.bytes = bytes;
        self.values.keep(key, number);
        number
    }

    #[inline(never)]
    fn put_captured(&mut self, source: ReportSource<'_>, node: &Node) {
        let Kind::Text(kind) = node.kind else { return self.put(0) };
        // A text with a count has the text itself among its spans.
        let place = Some((kind, node.buffer, node.value));
        if self.last_text.0 == place {
            return self.put(self.last_text.1.into());
        }
        let number = match kind {
            TextKind::Owned => {
                self.cut_text(|text| text.push_str(source.message.tree.owned(node.value).raw()))
            }
            _ => {
                let (start, length) = node.content();
                // No encoding takes more than four bytes a character.
                let length = length.min(MAX_TEXT * 4);
                let all = source.message.tree.bytes(node.buffer, source.message.bytes);
                self.decoded_text(
                    kind,
                    all.get(start..start.saturating_add(length)).unwrap_or_default(),
                )
            }
        };
        self.last_text = (place, number);
        self.put(number.into());
    }

    fn decoded_text(&mut self, kind: TextKind, bytes: &[u8]) -> u32 {
        let key = TextKey::of(kind, bytes);
        if let Some(number) = key.and_then(|key| self.decoded.get(key)) {
            return number;
        }
        let number = self.cut_text(|text| {
            decode_text(kind, bytes, text);
        });
        if let Some(key) = key {
            self.decoded.keep(key, number);
        }
        number
    }

    /// The number of a text, of which a report holds [`MAX_TEXT`] characters.
    #[inline(never)]
    fn cut_text(&mut self, write: impl FnOnce(&mut String)) -> u32 {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        write(&mut text);
        if text.len() > MAX_TEXT
            && let Some((end, _)) = text.char_indices().nth(MAX_TEXT)
        {
            text.truncate(end);
            text.push('…');
        }
        let number = self.number_of(&text);
        self.text = text;
        number
    }

    #[inline(never)]
    fn put_other(&mut self, source: ReportSource<'_>, node: &Node) {
        // Of floats the number says all; of other kinds the bytes do.
        let key =
            matches!(node.kind, Kind::F32 | Kind::F64).then(|| NumberKey::of(source.address, node));
        if let Some(known) = key.and_then(|key| self.values.get(key)) {
            return self.put(known.into());
        }
        // Only the bytes are taken: a new scratch buffer would be an allocation for each value.
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        let mut w = self.scratch.writer(&mut bytes);
        json::unquoted(source.message, node, &mut w);
        w.finish();
        let number = self.number_of(&String::from_utf8_lossy(&bytes));
        self.bytes = bytes;
        if let Some(key) = key {
            self.values.keep(key, number);
        }
        self.put(number.into());
    }

    fn problems(&mut self, source: ReportSource<'_>) {
        let problems = source.message.tree.problems();
        self.put(problems.len() as u64);
        for problem in problems {
            self.body.push(problem.severity.index());
            self.put(problem.node.into());
            self.put_text(&problem_text(problem, source.message.tables, source.message.tree));
        }
    }

    fn is_hidden(&self, node: &Node) -> bool {
        self.redact && node.has(mark::SECRET)
    }

    #[inline(always)]
    fn put(&mut self, number: u64) {
        match number {
            0..0x80 => self.body.push(number as u8),
            _ => self.put_long(number),
        }
    }

    #[inline(never)]
    fn put_long(&mut self, number: u64) {
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

/// Kinds whose nodes have different lengths though their type is the same, as bits by their
/// numbers.
const OF_ANY_LENGTH: u32 = 1 | 1 << 1 | 1 << 13 | 1 << 14 | 1 << 16;

/// How values of a kind are written.
fn value_code(kind: Kind) -> ValueCode {
    match kind {
        Kind::Struct | Kind::List | Kind::Null | Kind::Bytes | Kind::Undecoded => {
            ValueCode::Nothing
        }
        Kind::Unsigned | Kind::Unsigned64 | Kind::Bool => ValueCode::Unsigned,
        Kind::Signed | Kind::Signed64 => ValueCode::Signed,
        Kind::Text(_) => ValueCode::Text,
        Kind::F32 | Kind::F64 | Kind::Uuid | Kind::UuidBe | Kind::Ipv4 => ValueCode::Json,
    }
}

/// Whether values of a kind are integers, or booleans of a byte.
fn is_integer(kind: Kind) -> bool {
    matches!(value_code(kind), ValueCode::Unsigned | ValueCode::Signed)
}

/// Whether the page says what an integer's value means.
fn has_meaning(tables: &Tables, node: &Node) -> bool {
    let op = tables.type_op(node.ty);
    is_integer(node.kind) && node.kind != Kind::Bool && (op.symbols().is_some() || op.shown)
}

/// Whether compressing these bytes would hardly make them smaller. Of 256 bytes among them, 162
/// different ones are expected if they are random, and far fewer if they are text, numbers or code.
fn looks_random(bytes: &[u8]) -> bool {
    const SAMPLE: usize = 256;
    const RANDOM: usize = 145;
    if bytes.len() < MIN_STORED {
        return false;
    }
    let mut seen = [false; 256];
    for byte in bytes.iter().step_by(bytes.len() / SAMPLE).take(SAMPLE) {
        if let Some(seen) = seen.get_mut(usize::from(*byte)) {
            *seen = true;
        }
    }
    seen.iter().filter(|seen| **seen).count() >= RANDOM
}
