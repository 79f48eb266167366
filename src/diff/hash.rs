//! The hashes by which contents are compared.
//!
//! Where equality decides what a person reads, a [`ContentHash`] does: its upper half is the same
//! in every run, and so is everything that depends on its order (the elements of a set); its lower
//! half is under a secret of this run, so that nobody can make two contents that have the same one.
//! Numbers stay what they are in both halves.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::LazyLock;

/// What two words of a fixed hash are mixed with.
const FIXED: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];

/// The same for this run alone.
static SECRET: LazyLock<[u64; 2]> =
    LazyLock::new(|| [1, 2].map(|number| RandomState::new().hash_one(number) | 1));

/// The hash of a content.
pub(super) type ContentHash = u128;

/// The lower half, by which messages and the numbers in them are paired.
pub(super) fn secret_half(hash: ContentHash) -> u64 {
    hash as u64
}

fn halves(hash: ContentHash) -> [u64; 2] {
    [(hash >> 64) as u64, hash as u64]
}

fn whole([fixed, secret]: [u64; 2]) -> ContentHash {
    u128::from(fixed) << 64 | u128::from(secret)
}

/// A number as content.
pub(super) fn number(number: u64) -> ContentHash {
    whole([number, number])
}

/// Adds content to content.
pub(super) fn mix_content(hash: ContentHash, word: ContentHash) -> ContentHash {
    let [fixed, secret] = halves(hash);
    let [fixed_word, secret_word] = halves(word);
    whole([mix_with(FIXED, fixed, fixed_word), mix_with(*SECRET, secret, secret_word)])
}

/// Some bytes as content.
pub(super) fn bytes_content(bytes: &[u8]) -> ContentHash {
    whole([hash_with(FIXED, bytes), hash_with(*SECRET, bytes)])
}

/// A text as content.
pub(super) fn text_content(text: &str) -> ContentHash {
    bytes_content(text.as_bytes())
}

/// Adds a word to a fixed hash.
#[inline]
pub(super) fn mix(hash: u64, word: u64) -> u64 {
    mix_with(FIXED, hash, word)
}

/// The fixed hash of a name that tables declare.
pub(super) fn hash_text(text: &str) -> u64 {
    hash_with(FIXED, text.as_bytes())
}

#[inline]
fn mix_with([first, second]: [u64; 2], hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ first).wrapping_mul(u128::from(word ^ second) | 1 << 64);
    ((product as u64) ^ ((product >> 64) as u64))
        .wrapping_add(word.rotate_left(29))
        .wrapping_mul(first)
}

fn hash_with(key: [u64; 2], bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let whole = words
        .iter()
        .fold(bytes.len() as u64, |hash, word| mix_with(key, hash, u64::from_le_bytes(*word)));
    let last = rest.iter().fold(0, |last, byte| last << 8 | u64::from(*byte));
    mix_with(key, whole, last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn small_differences_and_another_order_give_other_hashes() {
        let mut seen = HashSet::new();
        let both = |a, b| mix_content(mix_content(0, number(a)), number(b));
        for a in 0..300 {
            for b in 0..300 {
                assert!(seen.insert(halves(both(a, b))), "{a} {b}");
            }
        }
        for length in 0..40 {
            assert!(seen.insert(halves(bytes_content(&vec![0; length]))), "{length} zeros");
            assert!(
                seen.insert(halves(bytes_content(&[&vec![0; length][..], &[1]].concat()))),
                "{length} zeros and a one"
            );
        }
    }
    #[test]
    fn numbers_stay_what_they_are_and_only_the_upper_half_is_the_same_in_every_run() {
        assert_eq!(halves(number(7)), [7, 7]);
        let [fixed, secret] = halves(text_content("Alice"));
        assert_eq!(fixed, hash_text("Alice"));
        assert_ne!(fixed, secret);
    }
}
