//! Memory for unpacking that several captures share: a reader that needs much of it waits until the
//! others have given enough back.
//!
//! A reader of zstd holds the last window of bytes of its frame, up to 128 MiB. Two captures that
//! are read side by side would hold two of them. It knows no format.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Bytes of memory for unpacking, shared by all clones.
///
/// Readers that share it must not wait for each other in any other way: each is read on a thread of
/// its own, to its end.
#[derive(Clone, Debug, Default)]
pub struct UnpackRoom {
    shared: Arc<UnpackAccount>,
}

#[derive(Debug, Default)]
struct UnpackAccount {
    taken: Mutex<u64>,
    given_back: Condvar,
}

/// Bytes that a reader has taken. It gives them back when it is dropped.
#[derive(Debug)]
pub(super) struct TakenRoom {
    from: UnpackRoom,
    bytes: u64,
}

impl UnpackRoom {
    /// Takes `bytes`. Waits while the sum with all other readers would exceed `most` bytes. A
    /// reader that is alone never waits.
    pub(super) fn take(&self, bytes: u64, most: u64) -> TakenRoom {
        let taken = self.shared.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |taken: &mut u64| *taken > 0 && taken.saturating_add(bytes) > most;
        let mut taken =
            self.shared.given_back.wait_while(taken, full).unwrap_or_else(PoisonError::into_inner);
        *taken = taken.saturating_add(bytes);
        TakenRoom { from: self.clone(), bytes }
    }
}

impl Drop for TakenRoom {
    fn drop(&mut self) {
        let shared = &self.from.shared;
        let mut taken = shared.taken.lock().unwrap_or_else(PoisonError::into_inner);
        *taken = taken.saturating_sub(self.bytes);
        shared.given_back.notify_all();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn readers_side_by_side_hold_no_more_than_the_bound_together() {
        let room = UnpackRoom::default();
        let held = AtomicU64::new(0);
        let most = AtomicU64::new(0);
        let read = |bytes: u64| {
            for _ in 0..100 {
                let taken = room.take(bytes, 10);
                most.fetch_max(held.fetch_add(bytes, Ordering::SeqCst) + bytes, Ordering::SeqCst);
                std::thread::yield_now();
                held.fetch_sub(bytes, Ordering::SeqCst);
                drop(taken);
            }
        };
        std::thread::scope(|scope| {
            [3, 5, 6, 9].map(|bytes| scope.spawn(move || read(bytes))).map(drop)
        });
        assert!(most.into_inner() <= 10);
        assert_eq!(*room.shared.taken.lock().unwrap(), 0);
    }

    #[test]
    fn who_is_alone_waits_for_nobody() {
        let room = UnpackRoom::default();
        assert_eq!(room.take(20, 10).bytes, 20);
        assert_eq!(room.take(20, 10).bytes, 20);
    }
}
