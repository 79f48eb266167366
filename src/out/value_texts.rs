//! Texts of numbers that mean something, as they were written before: the same head come again and again (classes, flags, places),
//! and finding out what they mean takes longer than copying it.

use super::scratch::TextWriter;
use crate::tree::{Kind, Node};

/// Values whose text is kept, as bits of a number. Each has two places to be in: with one, two values that come again and again would drive
/// each other out. Game traffic has some hundred values; with half the places, one in eleven was not in its first one, now it is one in fifteen.
const SLOT_BITS: u32 = 11;
/// Bytes of most texts: with what it was made of and its length, such a text is in one cache line.
const HEAD: usize = 47;
/// Bytes tail of nearly all the others.
const TAIL: usize = 40;

/// What a text is made of: the value, and what gives it its meaning with how the value is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ValueKey(u64, u64);

impl ValueKey {
    /// What the text of an integer is made of; `of` is what in the tables gives it its meaning.
    #[inline(always)]
    pub(super) fn new(of: u32, node: &Node) -> ValueKey {
        let read = match node.kind {
            Kind::Signed => 1,
            Kind::Unsigned64 => 2,
            Kind::Signed64 => 3,
            _ => 0,
        };
        // No tables have so much in them that it would not go into thirty bits.
        ValueKey(node.value, u64::from(of) << 34 | u64::from(node.bits) << 2 | read)
    }

    /// The first of its two places; the other one is beside it.
    #[inline(always)]
    fn place(self) -> usize {
        // Classes differ in low bits, flags in high ones.
        let mixed = (self.0 ^ (self.1 >> 34) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (64 - SLOT_BITS)) as usize
    }
}

/// A text as it was written.
#[derive(Clone)]
#[repr(C, align(64))]
pub(super) struct CachedText {
    key: ValueKey,
    /// Its first bytes, and in the last place how long it is: tail than all that have a place here where it is in `long`.
    head: [u8; HEAD + 1],
    tail: [u8; TAIL],
    long: Vec<u8>,
}

/// Texts of the values of one protocol's tables.
#[derive(Clone, Default)]
pub(super) struct ValueTexts {
    texts: Vec<CachedText>,
    new: Vec<u8>,
}

impl ValueTexts {
    /// The text of a key, where it is at once found.
    #[inline(always)]
    pub(super) fn find(&self, key: ValueKey) -> Option<&CachedText> {
        self.texts.get(key.place()).filter(|text| text.key == key)
    }

    /// Appends the text of a key that was not at once found. Where it is not kept, `write` writes it.
    #[inline(never)]
    pub(super) fn append(&mut self, key: ValueKey, w: &mut TextWriter<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        let place = key.place();
        if let Some(text) = self.texts.get(place ^ 1).filter(|text| text.key == key) {
            return text.append(w);
        }
        self.new.clear();
        write(&mut self.new);
        w.text(&self.new);
        if self.texts.is_empty() {
            // No value is that long.
            let none =
                CachedText { key: ValueKey(0, u64::MAX), head: [0; HEAD + 1], tail: [0; TAIL], long: Vec::new() };
            self.texts.resize(1 << SLOT_BITS, none);
        }
        // Who was here moves to the other place, whoever was there goes.
        self.texts.swap(place, place ^ 1);
        let Some(text) = self.texts.get_mut(place) else { return };
        text.key = key;
        let (head, tail) = self.new.split_at(self.new.len().min(HEAD));
        text.head.iter_mut().zip(head).for_each(|(to, from)| *to = *from);
        text.tail.iter_mut().zip(tail).for_each(|(to, from)| *to = *from);
        let [.., length] = &mut text.head;
        *length = u8::try_from(self.new.len()).unwrap_or(u8::MAX);
        text.long.clear();
        if self.new.len() > HEAD + TAIL {
            text.long.extend_from_slice(&self.new);
        }
    }
}

impl CachedText {
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
            w.text(&self.long);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::out::scratch::Scratch;
    use crate::tree::{Buffer, Sym, TypeRef};

    #[test]
    fn what_is_kept_is_what_was_written() {
        let (mut cache, mut scratch) = (ValueTexts::default(), Scratch::default());
        for round in 0..2 {
            let mut written = 0;
            for value in (0..100u64).chain([1 << 40, u64::MAX]) {
                for (of, kind) in
                    [7, 8, 0].map(|of| (of, Kind::Unsigned)).into_iter().chain([(7, Kind::Signed), (7, Kind::Signed64)])
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
                    let text = format!("{value} of {of:?} as {kind:?}{}", "!".repeat(value as usize % 100));
                    let mut out = b"> ".to_vec();
                    let mut w = scratch.writer(&mut out);
                    let key = ValueKey::new(of, &node);
                    match cache.find(key) {
                        Some(text) => text.append(&mut w),
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
