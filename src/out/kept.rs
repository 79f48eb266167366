//! Texts of numbers that mean something, as they were written before: the same few come again and again (classes, flags, places),
//! and finding out what they mean takes longer than copying it.

use super::page::Pen;
use crate::tree::{Kind, Node};

/// Values whose text is kept, as bits of a number. Each has two places to be in: with one, two values that come again and again would drive
/// each other out. Game traffic has some hundred values.
const KEPT: u32 = 10;
/// Bytes of a text that are copied as one block.
const HEAD: usize = 64;

/// What a text was made of: the value, the tables (0: nothing yet), and the place in them with how the value was read.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key(u64, usize, u64);

/// A text as it was written.
#[derive(Clone)]
struct Text {
    key: Key,
    length: usize,
    head: [u8; HEAD],
    /// The whole of it, where it is longer.
    long: Vec<u8>,
}

/// Texts of values.
#[derive(Clone, Default)]
pub(super) struct Kept {
    texts: Vec<Text>,
    new: Vec<u8>,
}

impl Kept {
    /// Appends the text of an integer; `of` is what gives it its meaning: tables, which stay where they are as long as a run, and a
    /// place in them. Where it is not kept, `write` writes it.
    #[inline(always)]
    pub(super) fn append(
        &mut self,
        of: (usize, u32),
        node: &Node,
        pen: &mut Pen<'_>,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let read = match node.kind {
            Kind::Signed => 1,
            Kind::Unsigned64 => 2,
            Kind::Signed64 => 3,
            _ => 0,
        };
        let key = Key(node.value, of.0, u64::from(of.1) << 32 | u64::from(node.bits.min(64)) << 2 | read);
        // Classes differ in low bits, flags in high ones.
        let mixed = (node.value ^ u64::from(of.1) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let place = (mixed >> (64 - KEPT)) as usize;
        match (self.texts.get(place), self.texts.get(place ^ 1)) {
            (Some(text), _) if text.key == key => text.append(pen),
            (_, Some(text)) if text.key == key => text.append(pen),
            _ => pen.aside(|pen| self.write(key, place, pen, write)),
        }
    }

    #[cold]
    #[inline(never)]
    fn write(&mut self, key: Key, place: usize, pen: &mut Pen<'_>, write: impl FnOnce(&mut Vec<u8>)) {
        self.new.clear();
        write(&mut self.new);
        pen.text(&self.new);
        if self.texts.is_empty() {
            let none = Text { key: Key(0, 0, 0), length: 0, head: [0; HEAD], long: Vec::new() };
            self.texts.resize(1 << KEPT, none);
        }
        // Who was here moves to the other place, whoever was there goes.
        self.texts.swap(place, place ^ 1);
        let Some(text) = self.texts.get_mut(place) else { return };
        (text.key, text.length) = (key, self.new.len());
        text.head.iter_mut().zip(&self.new).for_each(|(to, from)| *to = *from);
        text.long.clear();
        if text.length > HEAD {
            text.long.extend_from_slice(&self.new);
        }
    }
}

impl Text {
    #[inline(always)]
    fn append(&self, pen: &mut Pen<'_>) {
        if self.length <= HEAD {
            pen.block(&self.head, self.length);
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
                for (of, kind) in [(1, 7), (2, 7), (1, 8)]
                    .map(|of| (of, Kind::Unsigned))
                    .into_iter()
                    .chain([((1, 7), Kind::Signed), ((1, 7), Kind::Signed64)])
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
                    kept.append(of, &node, &mut pen, |out| {
                        written += 1;
                        out.extend_from_slice(text.as_bytes());
                    });
                    pen.end();
                    assert_eq!(out, format!("> {text}").into_bytes());
                }
            }
            assert!(round == 0 || written < 500, "some are kept");
        }
    }
}
