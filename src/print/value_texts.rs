//! A cache of the texts of numbers that have names: the same few values (classes, flags, places)
//! occur again and again, and looking up what they mean takes longer than copying the text.

use super::scratch::TextWriter;
use crate::tree::{Kind, Node};

/// The cache has at most 2^MAX_BITS slots. A value may be in two of them: with one, two frequent
/// values with the same hash would evict each other again and again. Game traffic has some hundred
/// values; with 10 bits one lookup in eleven missed its first slot, with 11 one in fifteen.
const MAX_BITS: u32 = 11;
/// It begins with 2^FIRST_BITS slots: few values occur in a small capture, and the whole cache has
/// 256 KiB.
const FIRST_BITS: u32 = 7;
/// Most texts are at most this long: a text of this length fills one cache line, with its key and
/// length.
const HEAD: usize = 47;
/// Nearly all other texts are at most this much longer.
const TAIL: usize = 40;
/// The room that [`CachedText::put`] needs.
pub(super) const MAX_CACHED: usize = HEAD + 1 + TAIL;

/// What a text depends on: the value; and the meaning, width and signedness, packed into one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ValueKey(u64, u64);

/// A key that no value has: widths end far below `u64::MAX`.
const NO_KEY: ValueKey = ValueKey(0, u64::MAX);

impl ValueKey {
    /// The key of an integer's text. `of` identifies its enum or type, as in
    /// `TableCache::meanings`.
    #[inline(always)]
    pub(super) fn new(of: u32, node: &Node) -> ValueKey {
        let read = match node.kind {
            Kind::Signed => 1,
            Kind::Unsigned64 => 2,
            Kind::Signed64 => 3,
            _ => 0,
        };
        // Enums and types are counted; no tables reach 2^30 of them.
        ValueKey(node.value, u64::from(of) << 34 | u64::from(node.bits) << 2 | read)
    }

    /// The first of the value's two slots in a cache of 2^`bits`; the second is its neighbour
    /// (`slot ^ 1`).
    #[inline(always)]
    pub(super) fn place(self, bits: u32) -> usize {
        // Classes differ in their low bits, flags in their high ones: a multiplication spreads
        // both.
        let mixed = (self.0 ^ (self.1 >> 34) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed.wrapping_shr(64 - bits) as usize
    }
}

/// A cached text.
#[derive(Clone)]
#[repr(C, align(64))]
pub(super) struct CachedText {
    key: ValueKey,
    /// The first bytes, and in the last element the length. A text too long for `head` and `tail`
    /// is in `long`.
    head: [u8; HEAD + 1],
    tail: [u8; TAIL],
    long: Vec<u8>,
}

/// Texts of the values of one protocol's tables.
#[derive(Clone, Default)]
pub(super) struct ValueTexts {
    /// None at first, then a power of two.
    texts: Vec<CachedText>,
    bits: u32,
    /// How many texts were kept since the cache has this size.
    kept: usize,
    new: Vec<u8>,
}

impl ValueTexts {
    /// The text of a key.
    #[inline(always)]
    pub(super) fn find(&self, key: ValueKey) -> Option<&CachedText> {
        let place = key.place(self.bits);
        let of = |text: &&CachedText| text.key == key;
        self.texts.get(place).filter(of).or_else(|| self.texts.get(place ^ 1).filter(of))
    }

    /// Appends the text of a key that [`ValueTexts::find`] did not find, as `write` writes it, and
    /// keeps it.
    #[inline(never)]
    pub(super) fn append(
        &mut self,
        key: ValueKey,
        w: &mut TextWriter<'_>,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        self.new.clear();
        write(&mut self.new);
        w.raw(&self.new);
        self.make_room();
        let place = key.place(self.bits);
        // The text in the first slot, if there is one, moves to the second slot, whose text is
        // dropped.
        if self.texts.get(place).is_some_and(|text| text.key != NO_KEY) {
            self.texts.swap(place, place ^ 1);
        }
        let Some(text) = self.texts.get_mut(place) else { return };
        text.key = key;
        text.long.clear();
        if self.new.len() > HEAD + TAIL {
            text.long.extend_from_slice(&self.new);
        }
        let [head @ .., length] = &mut text.head;
        *length = u8::try_from(self.new.len()).unwrap_or(u8::MAX);
        // Blocks of fixed size are copied sooner than what they hold.
        self.new.resize(HEAD + TAIL, 0);
        if let Some((first, rest)) = self.new.split_first_chunk() {
            *head = *first;
            text.tail = rest.first_chunk().copied().unwrap_or(text.tail);
        }
    }

    /// Makes room for another text. A cache that becomes full gets four times as many slots; a text
    /// whose two slots are taken replaces one.
    fn make_room(&mut self) {
        self.kept += 1;
        if self.kept > self.texts.len() / 2 && self.bits < MAX_BITS {
            self.bits = if self.texts.is_empty() { FIRST_BITS } else { self.bits + 2 };
            self.kept = 0;
            let none =
                CachedText { key: NO_KEY, head: [0; HEAD + 1], tail: [0; TAIL], long: Vec::new() };
            let before = std::mem::replace(&mut self.texts, vec![none; 1 << self.bits]);
            for text in before.into_iter().filter(|text| text.key != NO_KEY) {
                let first = text.key.place(self.bits);
                let taken = self.texts.get(first).is_some_and(|slot| slot.key != NO_KEY);
                if let Some(slot) = self.texts.get_mut(first ^ usize::from(taken)) {
                    *slot = text;
                }
            }
        }
    }
}

impl CachedText {
    /// Puts it into a room, if it is not long; returns its length.
    #[inline(always)]
    pub(super) fn put(&self, room: &mut [u8; MAX_CACHED]) -> Option<usize> {
        let [.., length] = self.head;
        let length = usize::from(length);
        *room.first_chunk_mut()? = self.head;
        if length > HEAD {
            *room.get_mut(HEAD..)?.first_chunk_mut()? = self.tail;
        }
        Some(length).filter(|length| *length <= HEAD + TAIL)
    }

    /// Appends it.
    #[inline(always)]
    pub(super) fn append(&self, w: &mut TextWriter<'_>) {
        let [.., length] = self.head;
        let length = usize::from(length);
        if length <= HEAD {
            w.block(&self.head, length);
        } else if length <= HEAD + TAIL {
            w.block(&self.head, HEAD);
            w.block(&self.tail, length - HEAD);
        } else {
            w.raw(&self.long);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print::scratch::Scratch;
    use crate::tree::{Buffer, Sym, TypeRef};

    #[test]
    fn what_is_kept_is_what_was_written() {
        let mut cache = ValueTexts::default();
        let mut scratch = Scratch::default();
        for round in 0..2 {
            let mut written = 0;
            for value in (0..100u64).chain([1 << 40, u64::MAX]) {
                for (of, kind) in [7, 8, 0]
                    .map(|of| (of, Kind::Unsigned))
                    .into_iter()
                    .chain([(7, Kind::Signed), (7, Kind::Signed64)])
                {
                    let node = Node {
                        value,
                        name: Sym::ELEMENT,
                        ty: TypeRef(0),
                        start: 0,
                        bits: 32,
                        end: 0,
                        buffer: Buffer::CAPTURED,
                        kind,
                        marks: 0,
                    };
                    let text = format!(
                        "{value} of {of:?} as {kind:?}{}",
                        "!".repeat(value as usize % 100)
                    );
                    let mut out = b"> ".to_vec();
                    let mut w = scratch.writer(&mut out);
                    let key = ValueKey::new(of, &node);
                    match cache.find(key) {
                        Some(found) => {
                            let mut room = [0; MAX_CACHED];
                            let length = found.put(&mut room);
                            assert_eq!(length.is_some(), text.len() < MAX_CACHED);
                            assert!(
                                length.is_none_or(
                                    |length| room.get(..length) == Some(text.as_bytes())
                                )
                            );
                            found.append(&mut w);
                        }
                        None => cache.append(key, &mut w, |out| {
                            written += 1;
                            out.extend_from_slice(text.as_bytes());
                        }),
                    }
                    w.finish();
                    assert_eq!(out, format!("> {text}").into_bytes());
                }
            }
            assert!(round == 0 || written < 500, "some are kept");
        }
    }
}
