//! Finds an index in a sorted list by number: by a direct table if the numbers are dense, as those
//! of classes and enums.

/// The direct table has at most this many entries for each number.
const SPREAD: u64 = 8;

/// The index of each number of a sorted list.
#[derive(Debug, Clone, Default)]
pub struct Numbers {
    pub(in crate::table) first: u64,
    /// For each number from the first to the last, its place in the list and 1, or 0; empty where
    /// the numbers lie too far apart.
    pub(in crate::table) places: Vec<u32>,
    /// All numbers, where `places` is empty.
    pub(in crate::table) sorted: Vec<u64>,
}

impl Numbers {
    /// Indexes a sorted list of numbers. If several are equal, it finds one of them.
    pub(in crate::table) fn of(sorted: impl Iterator<Item = u64>) -> Numbers {
        let mut sorted: Vec<u64> = sorted.collect();
        let (Some(first), Some(last)) = (sorted.first().copied(), sorted.last().copied()) else {
            return Numbers::default();
        };
        let room = (sorted.len() as u64).saturating_mul(SPREAD);
        let mut places = Vec::new();
        if last - first < room {
            places.resize((last - first) as usize + 1, 0);
            for (i, number) in sorted.iter().enumerate() {
                if let Some(place) = places.get_mut((number - first) as usize) {
                    *place = i as u32 + 1;
                }
            }
            sorted = Vec::new();
        }
        Numbers { first, places, sorted }
    }

    /// The place of a number.
    #[inline]
    pub fn find(&self, number: u64) -> Option<usize> {
        if self.places.is_empty() {
            return self.sorted.binary_search(&number).ok();
        }
        let place = *self.places.get(usize::try_from(number.wrapping_sub(self.first)).ok()?)?;
        (place as usize).checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_or_far_apart_each_is_found() {
        for list in [vec![3, 4, 7, 9], vec![0, 1 << 20, u64::MAX], vec![u64::MAX], vec![]] {
            let numbers = Numbers::of(list.iter().copied());
            for (i, number) in list.iter().enumerate() {
                assert_eq!(numbers.find(*number), Some(i), "{list:?}");
            }
            for absent in [2, 5, 8, 10, 1 << 40] {
                assert_eq!(numbers.find(absent), None, "{list:?}");
            }
        }
    }
}
