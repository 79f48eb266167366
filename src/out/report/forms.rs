//! What many nodes of a chunk have in common, under one number: name, type, kind, marks, buffer, and where they take a fixed
//! number of bits, that number. It knows nodes, and not how a chunk is laid out.

use std::collections::HashMap;

use crate::table::Tables;
use crate::tree::Node;

/// Bits of [`NodeForm::has`]: what follows the form's number where a node is written.
pub(super) mod has {
    /// How many descendants follow the node.
    pub const DESCENDANTS: u8 = 1;
    /// Where the node begins: it does not begin where the one before it ended, or where its parent begins.
    pub const PLACE: u8 = 2;
    /// Its length in bits, which the form does not say.
    pub const LENGTH: u8 = 4;
    /// What its value means.
    pub const MEANING: u8 = 8;
    /// What earlier records call it.
    pub const NAME: u8 = 16;
    /// Its value is a text that says how much was hidden.
    pub const HIDDEN: u8 = 32;
}

/// The common part of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct NodeForm {
    /// Which tables `name` and `ty` belong to, by their address while a chunk is collected.
    pub tables: usize,
    /// The name's number in the tables, or where it came with the traffic the number of its text in the chunk.
    pub name: u32,
    /// Whether the name came with the traffic.
    pub dynamic: bool,
    /// The type's number in the tables.
    pub ty: u32,
    /// The number of the kind, which tells how the value is read.
    pub kind: u8,
    /// The node's marks.
    pub marks: u8,
    /// The buffer's number.
    pub buffer: u16,
    /// The length in bits where [`has::LENGTH`] is not set; otherwise 0.
    pub bits: u32,
    /// Bits of [`has`].
    pub has: u8,
}

impl NodeForm {
    /// The form with what else a node has, and with its length where that is not written for each node.
    pub(super) fn with(self, node: &Node, has: u8) -> Self {
        NodeForm { has, bits: if has & self::has::LENGTH == 0 { node.bits } else { 0 }, ..self }
    }
}

/// Entries of a cache that is looked at before the hash table: a power of two.
const CACHED: usize = 2048;

/// The forms of a chunk, numbered from 0.
#[derive(Default)]
pub(super) struct NodeForms {
    numbers: HashMap<NodeForm, u32>,
    cache: Vec<Option<(NodeForm, u32)>>,
}

impl NodeForms {
    /// The form's number, and whether it is new.
    pub(super) fn number(&mut self, form: NodeForm) -> (u32, bool) {
        self.cache.resize(CACHED, None);
        let words = u64::from(form.name) | u64::from(form.ty) << 32;
        let more = u64::from(form.has) << 8 | u64::from(form.bits) << 16 | u64::from(form.buffer) << 48;
        let Some(cached) = self.cache.get_mut(place(words, more)) else { return (0, false) };
        if let Some((_, number)) = cached.filter(|(known, _)| *known == form) {
            return (number, false);
        }
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(form).or_insert(next);
        *cached = Some((form, number));
        (number, number == next)
    }

    /// How many forms there are.
    pub(super) fn len(&self) -> u64 {
        self.numbers.len() as u64
    }

    /// Forgets all forms.
    pub(super) fn clear(&mut self) {
        self.numbers.clear();
        self.cache.clear();
    }
}

/// Texts that were made of a number before: their numbers in the chunk.
#[derive(Default)]
pub(super) struct NumberTexts {
    cache: Vec<Option<(NumberKey, u32)>>,
}

/// What a text was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NumberKey {
    /// The tables that `ty` belongs to, by address.
    pub tables: usize,
    /// The type's number.
    pub ty: u32,
    /// The value's length in bits.
    pub bits: u32,
    /// The value.
    pub value: u64,
}

impl NumberTexts {
    /// Where the number of the text of `key` is kept, which [`NumberTexts::keep`] fills.
    pub(super) fn get(&mut self, key: NumberKey) -> Option<u32> {
        self.cache.resize(CACHED, None);
        self.cache.get(key.place())?.filter(|(known, _)| *known == key).map(|(_, number)| number)
    }

    /// Keeps a text's number.
    pub(super) fn keep(&mut self, key: NumberKey, number: u32) {
        if let Some(entry) = self.cache.get_mut(key.place()) {
            *entry = Some((key, number));
        }
    }

    /// Forgets all texts.
    pub(super) fn clear(&mut self) {
        self.cache.clear();
    }
}

impl NumberKey {
    /// The key of a node's value.
    pub(super) fn of(tables: &Tables, node: &Node) -> Self {
        NumberKey { tables: std::ptr::from_ref(tables).addr(), ty: node.ty.0, bits: node.bits, value: node.value }
    }

    fn place(self) -> usize {
        place(self.value, u64::from(self.ty))
    }
}

/// A place in a cache for two numbers: the upper bits of a product with an odd constant depend on all bits of both.
fn place(first: u64, second: u64) -> usize {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = (first.wrapping_mul(ODD) ^ second).wrapping_mul(ODD);
    (mixed >> 48) as usize % CACHED
}
