//! Bounds the work that keys carried by a capture may cause in one run. A capture may come from
//! anyone, and each of its keys is tried on each connection. The user's own keys are not bounded.
//!
//! Work that opened a connection is not charged, or charged little: a capture whose keys fit never
//! comes near the bounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What the keys of captures may cost in a run.
#[derive(Clone, Copy, Debug)]
pub struct CarriedWork {
    /// Modular powers whose keys opened no connection.
    pub powers: u64,
    /// Bytes of keystream that opened nothing.
    pub keystream: u64,
}

impl Default for CarriedWork {
    fn default() -> Self {
        CarriedWork { powers: 4096, keystream: 256 << 20 }
    }
}

/// The price of a position search that found nothing, in bytes of keystream: decrypting this many
/// bytes takes as long.
pub const SEARCH_FAILED: u64 = 64 << 20;
/// The price of a position search that succeeded.
pub const SEARCH_FOUND: u64 = 8 << 20;

/// What is left of the bounds. Clones share the counters, so they count for the whole run.
#[derive(Clone, Debug)]
pub struct Budget {
    left: Arc<Left>,
}

#[derive(Debug)]
struct Left {
    powers: AtomicU64,
    keystream: AtomicU64,
    /// Work was refused.
    refused: AtomicBool,
    /// The refusal was reported.
    reported: AtomicBool,
}

impl Default for Budget {
    fn default() -> Self {
        Budget::new(CarriedWork::default())
    }
}

impl Budget {
    /// A full budget.
    pub fn new(work: CarriedWork) -> Budget {
        let left = Left {
            powers: AtomicU64::new(work.powers),
            keystream: AtomicU64::new(work.keystream),
            refused: AtomicBool::new(false),
            reported: AtomicBool::new(false),
        };
        Budget { left: Arc::new(left) }
    }

    /// Takes one modular power, if one is left. Returns whether it did.
    pub fn take_power(&self) -> bool {
        self.take(&self.left.powers, 1)
    }

    /// Refunds a modular power whose key opened a connection.
    pub fn return_power(&self) {
        self.left.powers.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes `bytes` bytes of keystream, if that many are left. Returns whether it did.
    pub fn take_keystream(&self, bytes: u64) -> bool {
        self.take(&self.left.keystream, bytes)
    }

    /// Refunds bytes of keystream.
    pub fn return_keystream(&self, bytes: u64) {
        self.left.keystream.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Whether to tell the user that work was refused. True once at most.
    pub fn should_report(&self) -> bool {
        self.left.refused.load(Ordering::Relaxed)
            && !self.left.reported.swap(true, Ordering::Relaxed)
    }

    fn take(&self, from: &AtomicU64, amount: u64) -> bool {
        let taken = from
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(amount))
            .is_ok();
        if !taken {
            self.left.refused.store(true, Ordering::Relaxed);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_is_spent_for_all_clones_and_reported_once() {
        let budget = Budget::new(CarriedWork { powers: 2, keystream: 10 });
        let other = budget.clone();
        assert!(budget.take_power() && other.take_power() && !budget.should_report());
        assert!(!budget.take_power());
        assert!(other.should_report() && !budget.should_report());
        budget.return_power();
        assert!(other.take_power());
        assert!(
            !budget.take_keystream(11) && budget.take_keystream(10) && !budget.take_keystream(1)
        );
    }
}
