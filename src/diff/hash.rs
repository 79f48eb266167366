//! The hash by which contents are compared. Two different contents have the same one with a chance
//! of about one in 2^64.
//!
//! It is the same in every run, and so is everything that depends on its order (the elements of a
//! set).

const FIRST: u64 = 0x9e37_79b9_7f4a_7c15;
const SECOND: u64 = 0xd6e8_feb8_6659_fd93;

/// Adds a word to a hash.
#[inline]
pub(super) fn mix(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ FIRST).wrapping_mul(u128::from(word ^ SECOND) | 1 << 64);
    ((product as u64) ^ ((product >> 64) as u64))
        .wrapping_add(word.rotate_left(29))
        .wrapping_mul(FIRST)
}

/// The hash of some bytes.
pub(super) fn hash_bytes(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let whole =
        words.iter().fold(bytes.len() as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let last = rest.iter().fold(0, |last, byte| last << 8 | u64::from(*byte));
    mix(whole, last)
}

/// The hash of a text.
pub(super) fn hash_text(text: &str) -> u64 {
    hash_bytes(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn small_differences_and_another_order_give_other_hashes() {
        let mut seen = HashSet::new();
        for a in 0..300 {
            for b in 0..300 {
                assert!(seen.insert(mix(mix(0, a), b)), "{a} {b}");
            }
        }
        for length in 0..40 {
            assert!(seen.insert(hash_bytes(&vec![0; length])), "{length} zeros");
            assert!(
                seen.insert(hash_bytes(&[&vec![0; length][..], &[1]].concat())),
                "{length} zeros and a one"
            );
        }
    }
}
