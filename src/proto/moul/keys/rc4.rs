//! The RC4 stream cipher, as MOUL uses it in both directions of a connection.
//!
//! Decryption is most of the work on an encrypted capture, so the loop here is faster than the
//! `rc4` crate's. It makes eight keystream bytes at a time and applies them as one word; the table
//! has cells of 32 bits; and each step reads the first table cell of the next step before it writes
//! its own. The eight bytes are those of a block that begins where *i* is a multiple of 8, so that
//! the compiler knows each step's place in the block. The tests compare it with the `rc4` crate and
//! with RFC 6229. This module knows no protocol: the caller decides where the keystream starts.

use std::fmt;

/// One direction's cipher state. A clone takes one kilobyte and keeps this point of the keystream
/// for a later return.
#[derive(Clone)]
pub struct Rc4 {
    /// A permutation of 0 to 255.
    table: [u32; 256],
    /// RFC 6229's *i* of the next step, below 256. (The usual description increments *i* at the
    /// beginning of a step; here it is incremented ahead.)
    i: u32,
    /// `table[i]`, read ahead.
    ahead: u32,
    /// *j* of the last step, below 256.
    j: u32,
}

impl Rc4 {
    /// A cipher at the start of the keystream of `key`. Only the first 256 bytes of a key count; an
    /// empty one, which no protocol has, leaves the table unmixed.
    pub fn new(key: &[u8]) -> Rc4 {
        let mut table: [u8; 256] = std::array::from_fn(|at| at as u8);
        let mut j = 0u8;
        for (i, byte) in (0..=255usize).zip(key.iter().cycle()) {
            j = j.wrapping_add(cell(&table, i)).wrapping_add(*byte);
            table.swap(i, usize::from(j));
        }
        let table = table.map(u32::from);
        let [_, ahead, ..] = table;
        Rc4 { table, i: 1, ahead, j: 0 }
    }

    /// Encrypts or decrypts `bytes` in place, and moves on by that many bytes of keystream.
    pub fn apply(&mut self, bytes: &mut [u8]) {
        let (first, rest) = bytes.split_at_mut(self.to_block().min(bytes.len()));
        let (words, last) = rest.as_chunks_mut::<8>();
        self.apply_bytes(first);
        for word in words {
            *word = (u64::from_le_bytes(*word) ^ self.block()).to_le_bytes();
        }
        self.apply_bytes(last);
    }

    fn apply_bytes(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            *byte ^= self.step() as u8;
        }
    }

    /// Appends `bytes`, encrypted or decrypted, to `out`, and moves on by that many bytes of
    /// keystream.
    pub fn apply_into(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(bytes);
        if let Some(copy) = out.get_mut(start..) {
            self.apply(copy);
        }
    }

    /// Skips `count` bytes of keystream. RC4 has no shortcut: this takes as long as decrypting
    /// `count` bytes.
    pub fn skip(&mut self, count: u64) {
        let first = count.min(self.to_block() as u64);
        for _ in 0..first {
            self.step();
        }
        for _ in 0..(count - first) / 8 {
            self.block();
        }
        for _ in 0..(count - first) % 8 {
            self.step();
        }
    }

    /// How many bytes of keystream come before the next block.
    fn to_block(&self) -> usize {
        (self.i.wrapping_neg() & 7) as usize
    }

    /// The eight bytes of keystream of a block, the first one lowest. A block begins where *i* is a
    /// multiple of 8.
    #[inline(always)]
    fn block(&mut self) -> u64 {
        let begins = self.i & 0xf8;
        let mut word = 0;
        for n in 0..8 {
            word |= u64::from(self.step_at(begins | n, (begins + n + 1) & 255)) << (8 * n);
        }
        self.i = (begins + 8) & 255;
        word
    }

    /// The next byte of keystream, as a number below 256.
    #[inline(always)]
    fn step(&mut self) -> u32 {
        let here = self.i & 255;
        self.i = (here + 1) & 255;
        self.step_at(here, self.i)
    }

    /// The byte of keystream of the step whose *i* is `here`. `next` is that of the step behind it.
    /// Every index is below 256, so the compiler leaves out all bounds checks.
    ///
    /// The next step's `table[i]` is read before this step writes to the table. Reading it after
    /// the writes would be simpler, but the processor would then have to wait for both writes in
    /// case one of them changed that cell. One step in 256 does change it (`next == j`: then both
    /// cells held the same value); the branch for that case is almost always predicted right.
    #[inline(always)]
    #[allow(clippy::indexing_slicing)]
    fn step_at(&mut self, here: u32, next: u32) -> u32 {
        let Rc4 { table, ahead, j, .. } = self;
        let a = *ahead;
        *j = (*j + a) & 255;
        let b = table[*j as usize];
        // Before the writes: see above.
        *ahead = table[next as usize];
        // The swap of the textbook.
        table[*j as usize] = a;
        table[here as usize] = b;
        if *ahead == b {
            // The swap wrote the cell that was read ahead; it holds `a` now.
            *ahead = rarely(a);
        }
        table[((a + b) & 255) as usize]
    }
}

/// Returns `value`. A call of a cold function keeps the compiler from replacing the branch by a
/// conditional move, which would wait for the comparison in every step.
#[cold]
#[inline(never)]
fn rarely(value: u32) -> u32 {
    value
}

/// The state reveals the plaintext as the key does, so it is not shown.
impl fmt::Debug for Rc4 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rc4 { <state> }")
    }
}

fn cell(table: &[u8; 256], at: usize) -> u8 {
    table.get(at).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use ::rc4::{KeyInit, StreamCipher};

    /// RFC 6229: key, offset, sixteen bytes of keystream there.
    const RFC_6229: [(&str, u64, &str); 11] = [
        ("0102030405", 0, "b2396305f03dc027ccc3524a0a1118a8"),
        ("0102030405", 16, "6982944f18fc82d589c403a47a0d0919"),
        ("0102030405", 240, "28cb1132c96ce286421dcaadb8b69eae"),
        ("0102030405", 4096, "ff25b58995996707e51fbdf08b34d875"),
        ("01020304050607", 0, "293f02d47f37c9b633f2af5285feb46b"),
        ("01020304050607", 16, "e620f1390d19bd84e2e0fd752031afc1"),
        ("0102030405060708", 0, "97ab8a1bf0afb96132f2f67258da15a8"),
        ("0102030405060708090a0b0c0d0e0f10", 0, "9ac7cc9a609d1ef7b2932899cde41b97"),
        ("833222772a", 0, "80ad97bdc973df8a2e879e92a497efda"),
        ("c109163908ebe51debb46227c6cc8b37641910833222772a", 0, "54b64e6b5a20b5e2ec84593dc7989da7"),
        (
            "1ada31d5cf688221c109163908ebe51debb46227c6cc8b37641910833222772a",
            0,
            "dd5bcb0018e922d494759d7c395d02d3",
        ),
    ];

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len() / 2)
            .map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
            .collect()
    }

    fn oracle(key: &[u8], count: usize) -> Vec<u8> {
        let mut stream = vec![0; count];
        ::rc4::Rc4::new_from_slice(key).unwrap().apply_keystream(&mut stream);
        stream
    }

    #[test]
    fn the_published_vectors_come_out() {
        for (key, offset, stream) in RFC_6229 {
            let mut cipher = Rc4::new(&hex(key));
            cipher.skip(offset);
            let mut bytes = [0; 16];
            cipher.apply(&mut bytes);
            assert_eq!(bytes.to_vec(), hex(stream), "key {key} at {offset}");
        }
    }

    #[test]
    fn every_key_length_agrees_with_the_crate() {
        let long: Vec<u8> = (0..=255u8).map(|at| at.wrapping_mul(167).wrapping_add(13)).collect();
        for length in 1..=256 {
            let key = &long[..length];
            let mut bytes = vec![0; 700];
            Rc4::new(key).apply(&mut bytes);
            assert_eq!(bytes, oracle(key, 700), "key of {length} bytes");
        }
    }

    #[test]
    fn how_the_bytes_are_portioned_does_not_matter() {
        let key = [0xdd, 0xf1, 0xcb, 0xc1, 0xeb, 0xca, 0xe2];
        let whole = oracle(&key, 5000);
        for portion in [1, 2, 7, 8, 9, 31, 64, 1448] {
            let mut cipher = Rc4::new(&key);
            let mut out = Vec::new();
            for piece in vec![0; 5000].chunks(portion) {
                cipher.apply_into(piece, &mut out);
            }
            assert_eq!(out, whole, "in portions of {portion}");
        }
    }

    #[test]
    fn skipping_is_as_good_as_reading() {
        let key = [1, 2, 3, 4, 5, 6, 7];
        let whole = oracle(&key, 1200);
        for skipped in [0u64, 1, 7, 8, 9, 255, 256, 257, 1000] {
            let mut cipher = Rc4::new(&key);
            cipher.skip(skipped);
            let kept = cipher.clone();
            for mut cipher in [cipher, kept] {
                let mut bytes = [0; 100];
                cipher.apply(&mut bytes);
                assert_eq!(bytes[..], whole[skipped as usize..][..100], "after {skipped}");
            }
        }
    }

    #[test]
    fn the_state_is_not_shown() {
        assert_eq!(format!("{:?}", Rc4::new(&[1, 2, 3])), "Rc4 { <state> }");
        Rc4::new(&[]).apply(&mut [0; 20]);
    }
}
