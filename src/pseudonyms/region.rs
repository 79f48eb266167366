//! Writes changes in the content of a region back into the bytes from which the content was made.
//!
//! A zero-coded region has its zeros where they were, so its bytes are patched. A compressed one is
//! compressed again; where the result is longer than it was, or a key would be needed, the bytes
//! become filler, and only the tree still has the content.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::values::FILLER;
use crate::tree::BufferOrigin;

/// Bytes that may stand plain before a compressed stream.
const MAX_PLAIN: usize = 16;

/// Writes content into the bytes that it came from. `before` is the content as it was.
pub(super) fn write_back(origin: BufferOrigin, coded: &mut [u8], before: &[u8], content: &[u8]) {
    match origin {
        BufferOrigin::Expanded => patch_zero_coded(coded, content),
        BufferOrigin::Decompressed => compress(coded, before, content),
        BufferOrigin::Decrypted | BufferOrigin::Reassembled => coded.fill(FILLER),
    }
}

/// Zero coding: a 0 is followed by how many zeros there are.
fn patch_zero_coded(coded: &mut [u8], content: &[u8]) {
    let mut from = content.iter();
    let mut zeros = false;
    for byte in coded {
        if zeros {
            // A count of 0 means 256 zeros.
            let count = if *byte == 0 { 256 } else { usize::from(*byte) };
            from.by_ref().take(count).for_each(drop);
            zeros = false;
        } else if *byte == 0 {
            zeros = true;
        } else if let Some(new) = from.next() {
            *byte = if *new == 0 { FILLER } else { *new };
        }
    }
}

/// Compresses content again, behind as many plain bytes as before; what is left over is 0.
fn compress(coded: &mut [u8], before: &[u8], content: &[u8]) {
    let plain = (0..=MAX_PLAIN.min(coded.len())).find(|plain| {
        let same = coded.get(..*plain) == before.get(..*plain);
        let header = coded.get(*plain..).and_then(|rest| rest.first_chunk::<2>());
        let zlib =
            |[a, b]: [u8; 2]| a & 15 == 8 && (u16::from(a) << 8 | u16::from(b)).is_multiple_of(31);
        same && header.is_some_and(|header| zlib(*header))
    });
    let packed = plain.and_then(|plain| {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(content.get(plain..)?).ok()?;
        Some((plain, encoder.finish().ok()?))
    });
    match packed {
        Some((plain, packed)) if plain + packed.len() <= coded.len() => {
            let start = content.get(..plain).unwrap_or_default().iter();
            let rest = std::iter::repeat(&0u8);
            coded
                .iter_mut()
                .zip(start.chain(&packed).chain(rest))
                .for_each(|(byte, new)| *byte = *new);
        }
        _ => coded.fill(FILLER),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn zero_coded_bytes_are_patched() {
        let mut coded = [5, 0, 3, 7, 8];
        write_back(BufferOrigin::Expanded, &mut coded, &[5, 0, 0, 0, 7, 8], &[6, 0, 0, 0, 9, 9]);
        assert_eq!(coded, [6, 0, 3, 9, 9]);
    }

    #[test]
    fn compressed_bytes_are_compressed_again_where_they_fit() {
        let before = b"abaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac";
        let after = &before.map(|byte| byte + 1);
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&before[2..]).unwrap();
        let mut coded = [b"ab".as_slice(), &encoder.finish().unwrap()].concat();
        write_back(BufferOrigin::Decompressed, &mut coded, before, after);
        let mut plain = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::ZlibDecoder::new(&coded[2..]), &mut plain)
            .unwrap();
        assert_eq!((plain.as_slice(), &coded[..2]), (&after[2..], &after[..2]));
        let mut none = *b"ab not compressed";
        write_back(BufferOrigin::Decompressed, &mut none, before, after);
        assert!(none.iter().all(|byte| *byte == FILLER));
    }
}
