//! Numbers to which names were given. Most numbers of most messages have no name, and that shows
//! here without a look-up by hash. It knows no names.

/// Bits of the numbers that were added.
#[derive(Default)]
pub(super) struct NumberFilter(Vec<u64>);

impl NumberFilter {
    /// The logarithm of the number of bits: four for each name that is remembered.
    const BITS: u32 = 16;

    /// Where the bit of a number is: its word, and its place there.
    #[inline]
    fn place(number: u64) -> (usize, u32) {
        let bit = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - Self::BITS);
        (bit as usize / 64, bit as u32 % 64)
    }

    /// Adds a number.
    pub(super) fn add(&mut self, number: u64) {
        self.0.resize(1 << (Self::BITS - 6), 0);
        let (word, bit) = Self::place(number);
        if let Some(word) = self.0.get_mut(word) {
            *word |= 1 << bit;
        }
    }

    /// Whether a number may have been added; `false` is certain.
    #[inline]
    pub(super) fn may_have(&self, number: u64) -> bool {
        let (word, bit) = Self::place(number);
        self.0.get(word).is_some_and(|word| word >> bit & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_may_be_there_and_little_else() {
        let mut filter = NumberFilter::default();
        assert!(!filter.may_have(0));
        let numbers = || (0..1000u64).map(|n| n * n * 77);
        numbers().for_each(|n| filter.add(n));
        assert!(numbers().all(|n| filter.may_have(n)));
        assert!((0..1000u64).filter(|n| filter.may_have(n * 77_777 + 5)).count() < 100);
    }
}
