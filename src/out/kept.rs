//! Texts of numbers that mean something, as they were written before: the same few come again and again (classes, flags, places),
//! and finding out what they mean takes longer than copying it.

use crate::tree::{Kind, Node};

/// Values whose text is kept; one takes the place of another.
const KEPT: usize = 256;

/// What a text was made of.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    value: u64,
    of: (usize, u32),
    bits: u32,
    kind: Kind,
}

/// Texts of values.
#[derive(Clone, Default)]
pub(super) struct Kept {
    texts: Vec<Option<(Key, Vec<u8>)>>,
}

impl Kept {
    /// Appends the text of a value; `of` is what gives it its meaning: tables, which stay where they are as long as a run, and a
    /// place in them. Where it is not kept, `write` writes it.
    #[inline]
    pub(super) fn append(
        &mut self,
        of: (usize, u32),
        node: &Node,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let key = Key { value: node.value, of, bits: node.bits, kind: node.kind };
        // Classes differ in low bits, flags in high ones.
        let mixed = (node.value ^ u64::from(of.1) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        match self.texts.get((mixed >> 56) as usize) {
            Some(Some((known, text))) if *known == key => out.extend_from_slice(text),
            _ => self.write(key, (mixed >> 56) as usize, out, write),
        }
    }

    #[cold]
    #[inline(never)]
    fn write(&mut self, key: Key, at: usize, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        if self.texts.is_empty() {
            self.texts.resize(KEPT, None);
        }
        let start = out.len();
        write(out);
        let new = out.get(start..).unwrap_or(&[]);
        match self.texts.get_mut(at) {
            Some(Some((known, text))) => {
                *known = key;
                text.clear();
                text.extend_from_slice(new);
            }
            Some(place) => *place = Some((key, new.to_vec())),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Buffer, Sym, TypeRef};

    #[test]
    fn what_is_kept_is_what_was_written() {
        let mut kept = Kept::default();
        for round in 0..2 {
            let mut written = 0;
            for value in (0..100u64).chain([1 << 40, u64::MAX]) {
                for of in [(1, 7), (2, 7), (1, 8)] {
                    let node = Node {
                        value,
                        name: Sym::ELEMENT,
                        ty: TypeRef(0),
                        start: 0,
                        bits: 32,
                        end: 0,
                        buffer: Buffer::CAPTURED,
                        kind: Kind::Unsigned,
                        marks: 0,
                    };
                    let text = format!("{value} of {of:?}");
                    let mut out = b"> ".to_vec();
                    kept.append(of, &node, &mut out, |out| {
                        written += 1;
                        out.extend_from_slice(text.as_bytes());
                    });
                    assert_eq!(out, format!("> {text}").into_bytes());
                }
            }
            assert!(round == 0 || written < 306, "some are kept");
        }
    }
}
