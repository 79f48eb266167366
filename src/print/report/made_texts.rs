//! Texts that a chunk has already: which number the text of a value has, without making the text
//! again. It knows values, and not how a chunk is laid out.

use super::super::value_texts::ValueKey;
use crate::tree::{Node, TextKind};

/// Entries of a cache: 2^11.
const CACHED_BITS: u32 = 11;
const CACHED: usize = 1 << CACHED_BITS;

/// What a text is made of.
pub(super) trait TextSource: Copy + Default + PartialEq {
    /// Its place in a cache, below [`CACHED`].
    fn place(self) -> usize;
}

/// Texts that were made before: their numbers in the chunk. An entry has two places, so that two
/// frequent ones with the same hash do not evict each other again and again.
pub(super) struct MadeTexts<K> {
    entries: Vec<(K, u32)>,
}

impl<K: TextSource> Default for MadeTexts<K> {
    fn default() -> Self {
        // No key is all zeros: see `NumberKey` and `TextKey`.
        MadeTexts { entries: vec![(K::default(), 0); CACHED] }
    }
}

impl<K: TextSource> MadeTexts<K> {
    /// The number of the text of `key`, where it is kept.
    #[inline(always)]
    pub(super) fn get(&self, key: K) -> Option<u32> {
        let at = |place: usize| {
            self.entries.get(place).filter(|(known, _)| *known == key).map(|(_, number)| *number)
        };
        at(key.place()).or_else(|| at(key.place() ^ 1))
    }

    /// Keeps a text's number in its first place, and moves the one that was there to the second.
    pub(super) fn keep(&mut self, key: K, number: u32) {
        let place = key.place();
        self.entries.swap(place, place ^ 1);
        if let Some(entry) = self.entries.get_mut(place) {
            *entry = (key, number);
        }
    }

    /// Forgets all texts.
    pub(super) fn clear(&mut self) {
        self.entries.fill((K::default(), 0));
    }
}

/// What a text was made of: the tables, by address, which is never 0, and the value with its type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NumberKey {
    tables: usize,
    value: ValueKey,
}

impl NumberKey {
    /// The key of a node's value.
    #[inline(always)]
    pub(super) fn of(tables: usize, node: &Node) -> Self {
        NumberKey { tables, value: ValueKey::new(node.ty.0, node) }
    }
}

impl TextSource for NumberKey {
    #[inline(always)]
    fn place(self) -> usize {
        self.value.place(CACHED_BITS)
    }
}

/// Bytes of a [`TextKey`]: most names fit.
const KEY_BYTES: usize = 40;

/// A short text as it was captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TextKey {
    /// 1 more than its length, which is never 0, and above it its kind.
    shape: u64,
    words: [u64; KEY_BYTES / 8],
}

impl TextKey {
    /// The key of the text that `bytes` are, where they are few enough.
    #[inline(always)]
    pub(super) fn of(kind: TextKind, bytes: &[u8]) -> Option<Self> {
        let mut all = [0; KEY_BYTES];
        all.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let mut words = [0; KEY_BYTES / 8];
        for (word, bytes) in words.iter_mut().zip(all.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Some(TextKey { shape: (bytes.len() as u64 + 1) | ((kind as u64) << 8), words })
    }
}

impl TextSource for TextKey {
    #[inline(always)]
    fn place(self) -> usize {
        let all = self
            .words
            .iter()
            .fold(self.shape, |all, word| all.rotate_left(23) ^ word.wrapping_mul(ODD))
            .wrapping_mul(ODD);
        (all >> 48) as usize & (CACHED - 1)
    }
}

/// An odd constant: the upper bits of a product with it depend on all bits of the other factor.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
