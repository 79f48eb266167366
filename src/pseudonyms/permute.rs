//! Keyed permutations of values that are written with a few digits, each digit with a radix of its
//! own: a value becomes another one of the same form, no two become the same, and none stays as it
//! is. Nothing is remembered.
//!
//! A value goes through a Feistel network over its digits (each half is added to by a keyed hash of
//! the other one), to the next value, and back through the network. A single digit is shuffled by
//! swaps that the key chooses ("swap or not", Hoang, Morris, Rogaway 2012).

use std::hash::Hasher;

use siphasher::sip::SipHasher24;

/// Rounds of the network: twice what is said to be enough for halves of one digit.
const ROUNDS: u64 = 12;
/// Rounds for a single digit, which has a radix of at most 4096.
const SWAPS: u64 = 96;

/// Permutes digits under a key.
#[derive(Clone)]
pub(super) struct Permuter {
    hasher: SipHasher24,
}

/// A digit and how many values it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digit {
    pub(super) value: u32,
    pub(super) radix: u32,
}

impl Permuter {
    /// Permutes under a key.
    pub(super) fn new(key: &[u8; 16]) -> Permuter {
        Permuter { hasher: SipHasher24::new_with_key(key) }
    }

    /// Hashes `bytes` with the key. Another `what_for` gives another number for the same bytes.
    pub(super) fn hash(&self, what_for: &str, bytes: &[u8]) -> u64 {
        let mut hasher = self.hasher;
        hasher.write(what_for.as_bytes());
        hasher.write_u8(0xff);
        hasher.write(bytes);
        hasher.finish()
    }

    /// Puts another value in the place of one. Values for which `stays` holds are the result of no
    /// other.
    pub(super) fn replace(
        &self,
        what_for: &str,
        digits: &mut [Digit],
        stays: impl Fn(&[Digit]) -> bool,
    ) {
        if digits.iter().all(|digit| digit.radix <= 1) || stays(digits) {
            return;
        }
        // All values are one cycle, so this comes by each that stays once at most.
        loop {
            self.there(what_for, digits);
            next(digits);
            self.back(what_for, digits);
            if !stays(digits) {
                return;
            }
        }
    }

    fn there(&self, what_for: &str, digits: &mut [Digit]) {
        match digits {
            [one] => (0..SWAPS).for_each(|round| self.swap(what_for, round, one)),
            _ => (0..ROUNDS).for_each(|round| self.round(what_for, round, digits, true)),
        }
    }

    fn back(&self, what_for: &str, digits: &mut [Digit]) {
        match digits {
            [one] => (0..SWAPS).rev().for_each(|round| self.swap(what_for, round, one)),
            _ => (0..ROUNDS).rev().for_each(|round| self.round(what_for, round, digits, false)),
        }
    }

    /// Adds to one half of the digits, or takes from it, what the other half gives.
    fn round(&self, what_for: &str, round: u64, digits: &mut [Digit], add: bool) {
        let (left, right) = digits.split_at_mut(digits.len() / 2);
        let (changed, read) = if round.is_multiple_of(2) { (right, left) } else { (left, right) };
        let mut seed = self.hasher;
        seed.write(what_for.as_bytes());
        seed.write_u8(0xfe);
        seed.write_u64(round);
        for digit in read.iter() {
            seed.write_u32(digit.value);
            seed.write_u32(digit.radix);
        }
        for (place, digit) in changed.iter_mut().enumerate() {
            let mut hasher = seed;
            hasher.write_u64(place as u64);
            let radix = u64::from(digit.radix.max(1));
            let by = hasher.finish() % radix;
            let by = if add { by } else { radix - by };
            digit.value = ((u64::from(digit.value) + by) % radix) as u32;
        }
    }

    /// Swaps a digit with its partner of this round, or not: both decide alike.
    fn swap(&self, what_for: &str, round: u64, digit: &mut Digit) {
        let radix = u64::from(digit.radix.max(1));
        let seed = |value: u64| {
            let mut hasher = self.hasher;
            hasher.write(what_for.as_bytes());
            hasher.write_u8(0xfd);
            hasher.write_u64(round);
            hasher.write_u64(radix);
            hasher.write_u64(value);
            hasher.finish()
        };
        let own = u64::from(digit.value) % radix;
        let partner = (seed(u64::MAX) % radix + radix - own) % radix;
        if seed(own.max(partner)) & 1 == 1 {
            digit.value = partner as u32;
        }
    }
}

/// The next value; the first one after the last.
fn next(digits: &mut [Digit]) {
    for digit in digits.iter_mut().rev() {
        digit.value += 1;
        if digit.value < digit.radix {
            return;
        }
        digit.value = 0;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;
    use std::collections::HashSet;

    fn all(radices: &[u32]) -> Vec<Vec<Digit>> {
        let mut values = vec![Vec::new()];
        for radix in radices {
            values = values
                .iter()
                .flat_map(|before| {
                    (0..*radix).map(|value| {
                        let mut digits: Vec<Digit> = before.clone();
                        digits.push(Digit { value, radix: *radix });
                        digits
                    })
                })
                .collect();
        }
        values
    }

    #[test]
    fn every_value_becomes_another_one_and_no_two_the_same() {
        let permuter = Permuter::new(b"0123456789abcdef");
        for radices in [&[2][..], &[10], &[255], &[26, 26], &[10, 3, 7], &[1, 5], &[30, 1, 26]] {
            let values = all(radices);
            let mut seen = HashSet::new();
            for value in &values {
                let mut new = value.clone();
                permuter.replace("test", &mut new, |_| false);
                assert_ne!(&new, value);
                assert!(seen.insert(new.iter().map(|digit| digit.value).collect::<Vec<_>>()));
            }
            assert_eq!(seen.len(), values.len());
        }
    }

    #[test]
    fn what_stays_is_the_result_of_no_other() {
        let permuter = Permuter::new(b"0123456789abcdef");
        let stays = |digits: &[Digit]| digits[0].value == 9;
        for mut value in all(&[10]) {
            let before = value[0].value;
            permuter.replace("test", &mut value, stays);
            assert_eq!(value[0].value == 9, before == 9);
        }
    }

    #[test]
    fn another_key_gives_other_values() {
        let [one, other] = [b"0123456789abcdef", b"0123456789abcdeg"].map(|key| {
            let permuter = Permuter::new(key);
            let mut values = all(&[255]);
            values.iter_mut().for_each(|value| permuter.replace("test", value, |_| false));
            values
        });
        let same = one.iter().zip(&other).filter(|(one, other)| one == other).count();
        assert!(same < 20, "{same}");
        // And the next value is not the result, which would need no key.
        let next = one
            .iter()
            .enumerate()
            .filter(|(at, one)| one[0].value as usize == (at + 1) % 255)
            .count();
        assert!(next < 20, "{next}");
    }
}
