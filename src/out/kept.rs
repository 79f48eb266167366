//! Texts of numbers that mean something, as they were written before: the same few come again and again (classes, flags, places),
//! and finding out what they mean takes longer than copying it.

use super::page::Pen;
use crate::tree::{Kind, Node};

/// Values whose text is kept, as bits of a number. Each has two places to be in: with one, two values that come again and again would drive
/// each other out. Game traffic has some hundred values; with half the places, one in eleven was not in its first one, now it is one in fifteen.
const KEPT: u32 = 11;
/// Bytes of most texts: with what it was made of and its length, such a text is in one cache line.
const FEW: usize = 47;
/// Bytes more of nearly all the others.
const MORE: usize = 40;

/// What a text is made of: the value, and what gives it its meaning with how the value is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Key(u64, u64);

impl Key {
    /// What the text of an integer is made of; `of` is what in the tables gives it its meaning.
    #[inline(always)]
    pub(super) fn new(of: u32, node: &Node) -> Key {
        let read = match node.kind {
            Kind::Signed => 1,
            Kind::Unsigned64 => 2,
            Kind::Signed64 => 3,
            _ => 0,
        };
        // No tables have so much in them that it would not go into thirty bits.
        Key(node.value, u64::from(of) << 34 | u64::from(node.bits) << 2 | read)
    }

    /// The first of its two places; the other one is beside it.
    #[inline(always)]
    fn place(self) -> usize {
        // Classes differ in low bits, flags in high ones.
        let mixed = (self.0 ^ (self.1 >> 34) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> (64 - KEPT)) as usize
    }
}

/// A text as it was written.
#[derive(Clone)]
#[repr(C, align(64))]
pub(super) struct Text {
    key: Key,
    /// Its first bytes, and in the last place how long it is: more than all that have a place here where it is in `long`.
    few: [u8; FEW + 1],
    more: [u8; MORE],
    long: Vec<u8>,
}

/// Texts of the values of one protocol's tables.
#[derive(Clone, Default)]
pub(super) struct Kept {
    texts: Vec<Text>,
    new: Vec<u8>,
}

impl Kept {
    /// The text of a key, where it is at once found.
    #[inline(always)]
    pub(super) fn find(&self, key: Key) -> Option<&Text> {
        self.texts.get(key.place()).filter(|text| text.key == key)
    }

    /// Appends the text of a key that was not at once found. Where it is not kept, `write` writes it.
    #[inline(never)]
    pub(super) fn append(&mut self, key: Key, pen: &mut Pen<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        let place = key.place();
        if let Some(text) = self.texts.get(place ^ 1).filter(|text| text.key == key) {
            return text.append(pen);
        }
        self.new.clear();
        write(&mut self.new);
        pen.text(&self.new);
        if self.texts.is_empty() {
            // No value is that long.
            let none = Text { key: Key(0, u64::MAX), few: [0; FEW + 1], more: [0; MORE], long: Vec::new() };
            self.texts.resize(1 << KEPT, none);
        }
        // Who was here moves to the other place, whoever was there goes.
        self.texts.swap(place, place ^ 1);
        let Some(text) = self.texts.get_mut(place) else { return };
        text.key = key;
        let (few, more) = self.new.split_at(self.new.len().min(FEW));
        text.few.iter_mut().zip(few).for_each(|(to, from)| *to = *from);
        text.more.iter_mut().zip(more).for_each(|(to, from)| *to = *from);
        let [.., length] = &mut text.few;
        *length = u8::try_from(self.new.len()).unwrap_or(u8::MAX);
        text.long.clear();
        if self.new.len() > FEW + MORE {
            text.long.extend_from_slice(&self.new);
        }
    }
}

impl Text {
    /// Appends it.
    #[inline(always)]
    pub(super) fn append(&self, pen: &mut Pen<'_>) {
        let [.., length] = self.few;
        let length = usize::from(length);
        if length <= FEW {
            pen.block(&self.few, length);
        } else if length <= FEW + MORE {
            pen.block(&self.few, FEW);
            pen.block(&self.more, length - FEW);
        } else {
            pen.text(&self.long);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::out::page::Page;
    use crate::tree::{Buffer, Sym, TypeRef};

    #[test]
    fn what_is_kept_is_what_was_written() {
        let (mut kept, mut page) = (Kept::default(), Page::default());
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
                    let mut pen = page.pen(&mut out);
                    let key = Key::new(of, &node);
                    match kept.find(key) {
                        Some(text) => text.append(&mut pen),
                        None => kept.append(key, &mut pen, |out| {
                            written += 1;
                            out.extend_from_slice(text.as_bytes());
                        }),
                    }
                    pen.end();
                    assert_eq!(out, format!("> {text}").into_bytes());
                }
            }
            assert!(round == 0 || written < 500, "some are kept");
        }
    }
}
