//! Ctrl-C and SIGTERM as a request: what was begun is finished, and what was collected is printed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit status of a program that a signal ended.
const INTERRUPTED: i32 = 130;

/// Whether the end was requested.
#[derive(Clone, Default)]
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Watches for signals from now on. The first one is a request; a second one exits at once.
    pub(super) fn watch() -> Interrupt {
        let interrupt = Interrupt::default();
        let requested = Arc::clone(&interrupt.0);
        // Where signals cannot be watched, Ctrl-C ends the program at once, as without this.
        let _ = ctrlc::set_handler(move || {
            if requested.swap(true, Ordering::Relaxed) {
                std::process::exit(INTERRUPTED);
            }
        });
        interrupt
    }

    /// Whether the end was requested.
    pub(super) fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
