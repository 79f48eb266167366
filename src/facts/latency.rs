//! Times from requests to replies, and the percentiles of many of them.
//!
//! Up to [`EXACT`] latencies are kept exactly, and so are percentiles. More of them are counted in
//! buckets, and a percentile is then the middle of a bucket: at most 0.4 % off. Count and maximum
//! are always exact. Memory is at most about 100 KiB for any number of latencies.

use std::collections::HashMap;

/// Latencies that are kept as they are.
const EXACT: usize = 512;
/// Each power of two has 2 to this power buckets.
const PARTS: u32 = 7;

/// Many latencies, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    exact: Vec<i64>,
    /// How many latencies fell into each bucket, once there are too many to keep.
    buckets: HashMap<u16, u64>,
    count: u64,
    max: i64,
}

impl Latencies {
    /// Adds one, in nanoseconds. Returns whether it is the largest so far.
    pub fn add(&mut self, nanos: i64) -> bool {
        if self.buckets.is_empty() && self.exact.len() < EXACT {
            self.exact.push(nanos);
        } else {
            self.pour();
            *self.buckets.entry(bucket(nanos)).or_default() += 1;
        }
        self.count += 1;
        let largest = self.count == 1 || nanos > self.max;
        if largest {
            self.max = nanos;
        }
        largest
    }

    /// Adds all latencies of another collection.
    pub fn merge(&mut self, other: &Latencies) {
        for nanos in &other.exact {
            self.add(*nanos);
        }
        if other.buckets.is_empty() {
            return;
        }
        self.pour();
        for (bucket, count) in &other.buckets {
            *self.buckets.entry(*bucket).or_default() += count;
        }
        let more = other.count - other.exact.len() as u64;
        self.max = if self.count == 0 { other.max } else { self.max.max(other.max) };
        self.count += more;
    }

    /// How many were added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The largest, in nanoseconds; `None` without any.
    pub fn max(&self) -> Option<i64> {
        (self.count > 0).then_some(self.max)
    }

    /// The smallest latency that at least `percent` of a hundred do not exceed (the nearest rank),
    /// in nanoseconds.
    pub fn percentile(&self, percent: u64) -> Option<i64> {
        let rank = self.count.saturating_mul(percent).div_ceil(100).max(1);
        if self.buckets.is_empty() {
            let mut sorted = self.exact.clone();
            sorted.sort_unstable();
            return sorted.get(usize::try_from(rank - 1).ok()?).copied();
        }
        let mut sorted: Vec<(u16, u64)> =
            self.buckets.iter().map(|(bucket, count)| (*bucket, *count)).collect();
        sorted.sort_unstable();
        let mut before = 0;
        let (found, _) = sorted.into_iter().find(|(_, count)| {
            before += count;
            before >= rank
        })?;
        Some(middle(found).min(self.max))
    }

    /// Moves the exact latencies into buckets.
    fn pour(&mut self) {
        for nanos in std::mem::take(&mut self.exact) {
            *self.buckets.entry(bucket(nanos)).or_default() += 1;
        }
    }
}

/// The bucket of a latency: one for each value below 256 ns, and 128 for each further power of two.
/// A clock that went backwards counts as 0.
fn bucket(nanos: i64) -> u16 {
    let value = nanos.max(0).unsigned_abs();
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(PARTS + 1);
    // `shift` is at most 55, and what is left of the value has 8 bits: the sum is below 2^13.
    (shift << PARTS) as u16 + (value >> shift) as u16
}

/// The middle of a bucket, in nanoseconds.
fn middle(bucket: u16) -> i64 {
    let shift = (bucket >> PARTS).saturating_sub(1);
    let leading = i64::from(bucket - (shift << PARTS));
    (leading << shift) + ((1 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn percentiles_are_nearest_ranks() {
        let mut all = Latencies::default();
        assert_eq!((all.percentile(50), all.max()), (None, None));
        for nanos in [30, 10, 20, 40] {
            all.add(nanos);
        }
        assert_eq!(all.percentile(50), Some(20));
        assert_eq!(all.percentile(95), Some(40));
        assert_eq!((all.count(), all.max()), (4, Some(40)));
    }

    #[test]
    fn buckets_are_narrow_and_in_order() {
        let mut last = 0;
        for nanos in (0..100_000)
            .chain((17..63).flat_map(|bits| [(1 << bits) - 1, 1 << bits, (1 << bits) + 12_345]))
        {
            let found = bucket(nanos);
            assert!(found >= last, "{nanos}");
            last = found;
            assert!(
                (middle(found) - nanos).abs() as f64 <= nanos as f64 * 0.004,
                "{nanos} is {}",
                middle(found)
            );
        }
        assert!(bucket(i64::MAX) < 1 << 13);
        assert_eq!(bucket(-5), 0);
    }

    #[test]
    fn many_latencies_take_bounded_memory_and_percentiles_stay_near() {
        let mut all = Latencies::default();
        // A period that sampling every second one would miss.
        for n in 0..1_000_000 {
            all.add(if n % 2 == 0 { 1_000_000 } else { 5_000_000 + n });
        }
        assert!(all.exact.is_empty() && all.buckets.len() < 1 << 13);
        assert_eq!((all.count(), all.max()), (1_000_000, Some(5_999_999)));
        let near = |percent, exact: i64| {
            let found = all.percentile(percent).unwrap();
            assert!((found - exact).abs() * 250 <= exact, "p{percent} is {found}, not {exact}");
        };
        near(50, 1_000_000);
        near(95, 5_899_999);
        near(100, 5_999_999);
    }

    #[test]
    fn merged_latencies_are_all_of_them() {
        let [mut one, mut other, mut both] = [(); 3].map(|()| Latencies::default());
        for nanos in 1..2000 {
            if nanos % 7 == 0 {
                one.add(nanos * 1000)
            } else {
                other.add(nanos * 1000)
            };
            both.add(nanos * 1000);
        }
        one.merge(&other);
        assert_eq!((one.count(), one.max()), (both.count(), both.max()));
        assert_eq!([50, 95].map(|p| one.percentile(p)), [50, 95].map(|p| both.percentile(p)));
        let mut none = Latencies::default();
        none.merge(&one);
        assert_eq!((none.count(), none.max()), (one.count(), one.max()));
    }
}
