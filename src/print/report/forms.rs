//! What many nodes of a chunk have in common, under one number: name, type, kind, marks, buffer,
//! and where they take a fixed number of bits, that number. It knows nodes, and not how a chunk is
//! laid out.
//!
//! Messages of one type have the same forms in nearly the same order. So the forms of a chunk's
//! nodes are written as how far they are as expected: how many nodes have the expected form, the
//! form of the next one, again how many, and so on. After a form that was not expected, those are
//! expected that followed when the same form came unexpectedly the last time. The page expects the
//! same, as it reads the same nodes.

use crate::leb128::put;
use crate::maps::SeededMap;
use crate::tree::{Buffer, Kind, Node, Sym, Tree, TypeRef, mark};

/// Bytes of one buffer that a report holds; of longer ones the rest is counted.
pub(super) const MAX_BUFFER: usize = 64 << 10;

/// Bits of [`NodeForm::has`]: what follows the form's number where a node is written.
pub(super) mod has {
    /// How many descendants follow the node.
    pub const DESCENDANTS: u8 = 1;
    /// Where the node begins: it does not begin where the one before it ended, or where its parent
    /// begins.
    pub const PLACE: u8 = 2;
    /// Its length in bits, which the form does not say.
    pub const LENGTH: u8 = 4;
    /// What its value means.
    pub const MEANING: u8 = 8;
    /// What earlier records call it.
    pub const NAME: u8 = 16;
    /// Its value is a text that says how much was hidden.
    pub const HIDDEN: u8 = 32;
    /// Its value is not written: the bytes at its place say it, lowest byte first.
    pub const CAPTURED: u8 = 64;
}

/// The common part of nodes, in three words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct NodeForm {
    /// Which tables `names` belongs to, by their address while a chunk is collected; 1 more where
    /// the name came with the traffic.
    tables: usize,
    /// The name's number, and above it the type's.
    names: u64,
    /// Everything else: see [`NodeForm::new`].
    rest: u64,
}

/// From this many bits on, a length is written with each node.
pub(super) const LONG: u32 = 1 << 24;

impl NodeForm {
    /// The form of a node. `name` is the name's number in the tables, or where it came with the
    /// traffic (`is_dynamic`) the number of its text in the chunk; `kind` tells how the value is
    /// read; `has` are those bits of [`has`] that type, kind and marks do not decide.
    #[inline(always)]
    pub(super) fn new(
        tables: usize,
        name: u32,
        is_dynamic: bool,
        node: &Node,
        kind: u8,
        has: u8,
    ) -> Self {
        let bits = if has & self::has::LENGTH == 0 { u64::from(node.bits) } else { 0 };
        let marks = u64::from(node.marks & !mark::NAME);
        let rest = bits
            | u64::from(has) << 24
            | u64::from(node.buffer.0) << 32
            | marks << 48
            | u64::from(kind) << 56;
        NodeForm {
            tables: tables + usize::from(is_dynamic),
            names: u64::from(name) | u64::from(node.ty.0) << 32,
            rest,
        }
    }

    /// Kind, marks, buffer, and length in bits where [`has::LENGTH`] is not set (0 otherwise), as a
    /// chunk has them.
    pub(super) fn numbers(self) -> [u64; 4] {
        let NodeForm { rest, .. } = self;
        [rest >> 56, rest >> 48 & 0xff, rest >> 32 & 0xffff, rest & 0xff_ffff]
    }
}

/// How the values of a form's nodes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueCode {
    /// Not at all.
    Nothing,
    /// As a number.
    Unsigned,
    /// As a zigzag-coded number.
    Signed,
    /// As a text of the chunk: what `--redact` writes in a secret's place.
    Hidden,
    /// As a text of the chunk, which the traffic has.
    Text,
    /// As a text of the chunk, which the JSON has.
    Json,
}

/// How the nodes of a form are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct FormCode {
    /// Bits of [`has`], those included that type, kind and marks decide.
    pub has: u8,
    /// How the value is written.
    pub value: ValueCode,
}

/// The nodes of a message that a report holds.
#[derive(Clone, Copy)]
pub(super) struct MessageNodes<'a> {
    pub nodes: &'a [Node],
    pub tree: &'a Tree,
    /// The message's own bytes.
    pub captured: &'a [u8],
    /// The tables that the nodes belong to, by their address.
    pub tables: usize,
}

impl<'a> MessageNodes<'a> {
    /// The bytes of a buffer that a report holds.
    #[inline(always)]
    pub(super) fn kept(self, buffer: Buffer) -> &'a [u8] {
        let bytes = self.tree.bytes(buffer, self.captured);
        bytes.get(..MAX_BUFFER).unwrap_or(bytes)
    }

    /// How many nodes follow the node at `index` that are within it.
    #[inline(always)]
    pub(super) fn below(self, index: usize, node: &Node) -> usize {
        (node.end as usize).min(self.nodes.len()).saturating_sub(index + 1)
    }

    /// The bit at which the node at `index` begins if nothing lies between it and the node before.
    pub(super) fn expected_start(self, index: usize) -> u32 {
        match index.checked_sub(1).and_then(|before| Some((before, self.nodes.get(before)?))) {
            Some((before, node)) => start_behind(node, self.below(before, node) > 0),
            None => 0,
        }
    }
}

/// Where the node behind `node` is expected to begin.
#[inline(always)]
fn start_behind(node: &Node, is_parent: bool) -> u32 {
    if is_parent { node.start } else { node.start.wrapping_add(node.bits) }
}

/// What a chunk knows of a form.
#[derive(Clone, Copy, Debug)]
struct FormEntry {
    /// The name that nodes of this form have; [`NOT_COMPARED`] where it came with the traffic, or
    /// where earlier records say what the node is.
    name: Sym,
    ty: TypeRef,
    bits: u32,
    /// Bits of a length that all nodes of this form have; none where the length is written with
    /// each node.
    fixed: u32,
    buffer: Buffer,
    /// The kind's number, as the page knows it.
    kind: u8,
    marks: u8,
    code: FormCode,
    /// How the value is read where the bytes say it.
    captured: Bits,
    tables: usize,
    /// How many of the chunk's nodes came before the one that follows the last node that
    /// unexpectedly had this form.
    behind: usize,
}

/// A name that no node has.
const NOT_COMPARED: Sym = Sym(u32::MAX);

impl FormEntry {
    /// Whether a node that earlier records do not name certainly has this form. `bytes` are those
    /// of its buffer.
    #[inline(always)]
    fn fits(&self, node: &Node, is_parent: bool, is_in_place: bool, bytes: &[u8]) -> bool {
        let has = self.code.has;
        node.name == self.name
            && node.ty == self.ty
            && (node.bits ^ self.bits) & self.fixed == 0
            && kind_number(node.kind) == self.kind
            && node.marks & !mark::NAME == self.marks
            && node.buffer == self.buffer
            && is_parent == (has & has::DESCENDANTS != 0)
            && is_in_place == (has & has::PLACE == 0)
            && (has & has::CAPTURED == 0 || is_captured(node, self.captured, bytes))
    }
}

/// Whether the bytes at the place of a node are its value, lowest byte first.
#[inline(always)]
fn is_captured(node: &Node, bits: Bits, bytes: &[u8]) -> bool {
    let from = bytes.get(node.start as usize / 8..).unwrap_or_default();
    let raw = match from.first_chunk() {
        Some(eight) => u64::from_le_bytes(*eight),
        None => last_bytes(from),
    };
    node.start.is_multiple_of(8) && bits.value(raw) == node.value
}

/// Fewer than eight bytes as a number, lowest byte first.
#[inline(never)]
fn last_bytes(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte))
}

/// How an integer of whole bytes is read, if a node is one and its bytes are its value, lowest byte
/// first.
pub(super) fn captured_bits(nodes: MessageNodes<'_>, node: &Node) -> Option<Bits> {
    let is_signed = matches!(node.kind, Kind::Signed | Kind::Signed64);
    let is_unsigned = matches!(node.kind, Kind::Unsigned | Kind::Unsigned64 | Kind::Bool);
    let size = u8::try_from(node.bits / 8)
        .ok()
        .filter(|size| matches!(size, 1..=8) && node.bits.is_multiple_of(8))?;
    let bits = Bits::of(size, is_signed);
    let bytes = nodes.kept(node.buffer);
    let is_there = node.start as usize / 8 + usize::from(size) <= bytes.len();
    ((is_signed || is_unsigned) && is_there && is_captured(node, bits, bytes)).then_some(bits)
}

/// The forms of a chunk, numbered from 0.
#[derive(Default)]
pub(super) struct NodeForms {
    numbers: SeededMap<NodeForm, u32>,
    entries: Vec<FormEntry>,
    /// The forms of the chunk's first nodes, at most [`MAX_MODEL`].
    nodes: Vec<u32>,
    /// The next node is expected to have the form of this one of `nodes`.
    model: usize,
    /// Nodes of expected forms that were not yet written.
    run: u64,
    codes: Vec<u8>,
}

/// The first nodes of a chunk, whose forms tell what is expected.
const MAX_MODEL: usize = 1 << 20;

impl NodeForms {
    /// How many nodes of a message from `from` on, but before `until`, have the forms that are
    /// expected. Earlier records do not say what they are.
    pub(super) fn expected(&self, message: MessageNodes<'_>, from: usize, until: usize) -> usize {
        let model = self.nodes.get(self.model..).unwrap_or_default();
        let nodes = message.nodes.get(from..until).unwrap_or_default();
        let mut expected_start = message.expected_start(from);
        let mut buffer = Buffer::CAPTURED;
        let mut bytes = message.kept(buffer);
        let last = message.nodes.len() as u32 - 1;
        let mut run = 0;
        for (number, (index, node)) in model.iter().zip((from as u32..).zip(nodes)) {
            let Some(entry) = self.entries.get(*number as usize) else { break };
            if node.buffer != buffer {
                buffer = node.buffer;
                bytes = message.kept(buffer);
            }
            let is_parent = node.end > index + 1 && index < last;
            if !entry.fits(node, is_parent, node.start == expected_start, bytes) {
                break;
            }
            expected_start = start_behind(node, is_parent);
            run += 1;
        }
        // All of a message's nodes belong to the same tables.
        let first = model.first().and_then(|first| self.entries.get(*first as usize));
        if first.is_some_and(|entry| entry.tables == message.tables) { run } else { 0 }
    }

    /// How the node is written that has the form that is expected `ahead` nodes ahead.
    #[inline(always)]
    pub(super) fn ahead(&self, ahead: usize) -> Option<FormCode> {
        let number = *self.nodes.get(self.model + ahead)?;
        self.entries.get(number as usize).map(|entry| entry.code)
    }

    /// The next `count` nodes have the forms that are expected.
    pub(super) fn advance(&mut self, count: usize) {
        let from = self.model;
        self.model += count;
        self.run += count as u64;
        let kept = count.min(MAX_MODEL - self.nodes.len());
        self.nodes.extend_from_within(from..from + kept);
    }

    /// How the next node is written, if there is its form, which was not expected.
    pub(super) fn known(&mut self, form: NodeForm) -> Option<FormCode> {
        let number = *self.numbers.get(&form)?;
        let code = self.entries.get(number as usize)?.code;
        self.unexpected(number);
        Some(code)
    }

    /// Adds the form of the next node, which is written as `code` says. Where the bytes say the
    /// value, `captured` says how.
    pub(super) fn add(
        &mut self,
        form: NodeForm,
        node: &Node,
        code: FormCode,
        captured: Option<Bits>,
    ) {
        let number = self.entries.len() as u32;
        self.numbers.insert(form, number);
        let is_compared = node.name.0 < Sym::DYNAMIC && code.has & has::NAME == 0;
        self.entries.push(FormEntry {
            name: if is_compared { node.name } else { NOT_COMPARED },
            ty: node.ty,
            bits: node.bits,
            fixed: if code.has & has::LENGTH == 0 { u32::MAX } else { 0 },
            buffer: node.buffer,
            kind: kind_number(node.kind),
            marks: node.marks & !mark::NAME,
            code,
            captured: captured.unwrap_or(Bits::NONE),
            tables: form.tables,
            behind: 0,
        });
        self.unexpected(number);
    }

    /// Writes the form of a node that was expected to have another one.
    fn unexpected(&mut self, number: u32) {
        put(&mut self.codes, self.run);
        put(&mut self.codes, number.into());
        self.run = 0;
        if self.nodes.len() < MAX_MODEL {
            self.nodes.push(number);
        }
        if let Some(entry) = self.entries.get_mut(number as usize) {
            self.model = std::mem::replace(&mut entry.behind, self.nodes.len());
        }
    }

    /// How many forms there are.
    pub(super) fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Ends the chunk. Returns the forms of its nodes.
    pub(super) fn end(&mut self) -> &[u8] {
        put(&mut self.codes, self.run);
        self.run = 0;
        &self.codes
    }

    /// Forgets all forms.
    pub(super) fn clear(&mut self) {
        self.numbers.clear();
        self.entries.clear();
        self.nodes.clear();
        self.codes.clear();
        (self.model, self.run) = (0, 0);
    }
}

/// A kind's number, as `data.js` knows it.
pub(super) fn kind_number(kind: Kind) -> u8 {
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
        Kind::Undecoded => 16,
    }
}

/// Which of eight bytes' bits a number has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bits {
    mask: u64,
    /// The sign bit, if the number is signed.
    sign: u64,
}

impl Bits {
    /// No number: 0 whatever the bytes are.
    const NONE: Bits = Bits { mask: 0, sign: 0 };

    /// A number of `size` bytes, 1 to 8.
    fn of(size: u8, signed: bool) -> Bits {
        let mask = u64::MAX >> (64 - u32::from(size.clamp(1, 8)) * 8);
        Bits { mask, sign: if signed { mask & !(mask >> 1) } else { 0 } }
    }

    /// The number in the lowest of eight bytes.
    fn value(self, raw: u64) -> u64 {
        ((raw & self.mask) ^ self.sign).wrapping_sub(self.sign)
    }
}
