//! Times from requests to replies, and the percentiles of many of them.

/// Latencies that are kept exactly. Beyond them every second one is dropped, again and again, so percentiles become
/// estimates; count and maximum stay exact.
const MAX_KEPT: usize = 16_384;

/// Many latencies, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Latencies {
    kept: Vec<i64>,
    /// One latency in `stride` is kept.
    stride: u64,
    count: u64,
    max: i64,
}

impl Default for Latencies {
    fn default() -> Self {
        Latencies { kept: Vec::new(), stride: 1, count: 0, max: 0 }
    }
}

impl Latencies {
    /// Adds one, in nanoseconds. Returns whether it is the largest so far.
    pub fn add(&mut self, nanos: i64) -> bool {
        if self.count.is_multiple_of(self.stride) {
            if self.kept.len() >= MAX_KEPT {
                let mut place = 0u64;
                self.kept.retain(|_| {
                    place += 1;
                    place % 2 == 1
                });
                self.stride *= 2;
            }
            if self.count.is_multiple_of(self.stride) {
                self.kept.push(nanos);
            }
        }
        self.count += 1;
        let largest = self.count == 1 || nanos > self.max;
        if largest {
            self.max = nanos;
        }
        largest
    }

    /// Adds all of another one. Where the other kept only some of its latencies, each of these counts for several.
    pub fn merge(&mut self, other: &Latencies) {
        for nanos in &other.kept {
            self.add(*nanos);
        }
        self.count += other.count - other.kept.len() as u64;
        self.max = self.max.max(other.max);
    }

    /// How many were added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The largest, in nanoseconds; `None` without any.
    pub fn max(&self) -> Option<i64> {
        (self.count > 0).then_some(self.max)
    }

    /// The smallest latency that at least `percent` of a hundred do not exceed (the nearest rank), in nanoseconds.
    pub fn percentile(&self, percent: u64) -> Option<i64> {
        let mut sorted = self.kept.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() as u64 * percent).div_ceil(100).max(1) - 1;
        sorted.get(usize::try_from(rank).ok()?).copied()
    }
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
    fn many_latencies_take_bounded_memory_and_percentiles_stay_near() {
        let mut all = Latencies::default();
        for nanos in 0..1_000_000 {
            all.add(nanos);
        }
        assert!(all.kept.len() <= MAX_KEPT);
        assert_eq!((all.count(), all.max()), (1_000_000, Some(999_999)));
        let half = all.percentile(50).unwrap();
        assert!((490_000..510_000).contains(&half), "{half}");
    }
}
