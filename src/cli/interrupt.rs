//! Ctrl-C (and being asked to end) as a wish: what was begun is finished, and the summary said.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Knows whether an end is wished for.
#[derive(Clone, Default)]
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Watches from now on. Who wishes twice does not want to wait.
    pub(super) fn watch() -> Interrupt {
        let wished = Interrupt::default();
        let seen = Arc::clone(&wished.0);
        // Where it cannot be watched, Ctrl-C ends the program at once, as always.
        let _ = ctrlc::set_handler(move || {
            if seen.swap(true, Ordering::Relaxed) {
                std::process::exit(130);
            }
        });
        wished
    }

    /// Whether an end is wished for.
    pub(super) fn is_wished(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
