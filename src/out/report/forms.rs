//! What many nodes of a chunk have in common, under one number: name, type, kind, marks, buffer, and where they take a fixed
//! number of bits, that number. It knows nodes, and not how a chunk is laid out.

use super::super::value_texts::ValueKey;
use crate::hashing::SeededMap;
use crate::tree::{Node, mark};

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

/// The common part of nodes, in three words: one is looked up for every node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct NodeForm {
    /// Which tables `names` belongs to, by their address while a chunk is collected; 1 more where the name came with the traffic.
    tables: usize,
    /// The name's number, and above it the type's.
    names: u64,
    /// Everything else: see [`NodeForm::new`].
    rest: u64,
}

/// From this many bits on, a length is written with each node.
pub(super) const LONG: u32 = 1 << 24;

impl NodeForm {
    /// The form of a node. `name` is the name's number in the tables, or where it came with the traffic (`is_dynamic`) the number of its text
    /// in the chunk; `kind` tells how the value is read; `has` are the bits of [`has`].
    #[inline(always)]
    pub(super) fn new(tables: usize, name: u32, is_dynamic: bool, node: &Node, kind: u8, has: u8) -> Self {
        let bits = if has & self::has::LENGTH == 0 { u64::from(node.bits) } else { 0 };
        let marks = u64::from(node.marks & !mark::NAME);
        let rest = bits | u64::from(has) << 24 | u64::from(node.buffer.0) << 32 | marks << 48 | u64::from(kind) << 56;
        NodeForm { tables: tables + usize::from(is_dynamic), names: u64::from(name) | u64::from(node.ty.0) << 32, rest }
    }

    /// Kind, marks, buffer, length in bits where [`has::LENGTH`] is not set (0 otherwise), and the bits of [`has`], as a chunk has them.
    pub(super) fn numbers(self) -> [u64; 5] {
        let NodeForm { rest, .. } = self;
        [rest >> 56, rest >> 48 & 0xff, rest >> 32 & 0xffff, rest & 0xff_ffff, rest >> 24 & 0xff]
    }

    fn place(self) -> usize {
        place(self.names, self.rest)
    }
}

/// Entries of a cache.
const CACHED: usize = 2048;

/// A cache in which an entry has two places, so that two frequent ones with the same hash do not evict each other again and again.
struct PairCache<K> {
    entries: Vec<(K, u32)>,
}

impl<K: Copy + Default + PartialEq> Default for PairCache<K> {
    fn default() -> Self {
        // No node has a key of zeros: it begins with an address.
        PairCache { entries: vec![(K::default(), 0); CACHED] }
    }
}

impl<K: Copy + Default + PartialEq> PairCache<K> {
    #[inline(always)]
    fn get(&self, place: usize, key: K) -> Option<u32> {
        let at = |place: usize| self.entries.get(place).filter(|(known, _)| *known == key).map(|(_, number)| *number);
        at(place).or_else(|| at(place ^ 1))
    }

    /// Keeps an entry in its first place, and moves the one that was there to the second.
    fn keep(&mut self, place: usize, key: K, number: u32) {
        self.entries.swap(place, place ^ 1);
        if let Some(entry) = self.entries.get_mut(place) {
            *entry = (key, number);
        }
    }

    fn clear(&mut self) {
        self.entries.fill((K::default(), 0));
    }
}

/// The forms of a chunk, numbered from 0.
#[derive(Default)]
pub(super) struct NodeForms {
    numbers: SeededMap<NodeForm, u32>,
    cache: PairCache<NodeForm>,
}

impl NodeForms {
    /// The form's number, and whether it is new.
    #[inline]
    pub(super) fn number(&mut self, form: NodeForm) -> (u32, bool) {
        match self.cache.get(form.place(), form) {
            Some(number) => (number, false),
            None => self.look_up(form),
        }
    }

    #[inline(never)]
    fn look_up(&mut self, form: NodeForm) -> (u32, bool) {
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(form).or_insert(next);
        self.cache.keep(form.place(), form, number);
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
    cache: PairCache<NumberKey>,
}

/// What a text was made of: the tables, by address, and the value with its type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NumberKey {
    tables: usize,
    value: ValueKey,
}

impl NumberTexts {
    /// The number of the text of `key`, where it is kept.
    #[inline]
    pub(super) fn get(&self, key: NumberKey) -> Option<u32> {
        self.cache.get(key.place(), key)
    }

    /// Keeps a text's number.
    pub(super) fn keep(&mut self, key: NumberKey, number: u32) {
        self.cache.keep(key.place(), key, number);
    }

    /// Forgets all texts.
    pub(super) fn clear(&mut self) {
        self.cache.clear();
    }
}

impl NumberKey {
    /// The key of a node's value.
    #[inline(always)]
    pub(super) fn of(tables: usize, node: &Node) -> Self {
        NumberKey { tables, value: ValueKey::new(node.ty.0, node) }
    }

    fn place(self) -> usize {
        self.value.place() % CACHED
    }
}

/// A place in a cache for two numbers: the upper bits of a product with an odd constant depend on all bits of both.
fn place(first: u64, second: u64) -> usize {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = (first.wrapping_mul(ODD) ^ second).wrapping_mul(ODD);
    (mixed >> 48) as usize % CACHED
}
