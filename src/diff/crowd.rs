//! Which of two captures that are read at the same time may hold very many streams: only one, since
//! their sessions and buffers take much memory. It knows nothing of either.

use std::sync::atomic::{AtomicBool, Ordering};

/// A capture of more streams needs the room.
pub(super) const MANY: usize = 4096;

/// Room for one capture of more than 4,096 streams.
#[derive(Debug, Default)]
pub struct StreamRoom {
    taken: AtomicBool,
}

impl StreamRoom {
    /// Takes the room; `false` if the other capture has it.
    pub(super) fn take(&self) -> bool {
        !self.taken.swap(true, Ordering::Relaxed)
    }
}
