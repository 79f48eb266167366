//! What one thread does for the others when it panics: they would wait for it without end.

use std::thread;

/// Calls a function when it is dropped, if the thread is panicking. The run then ends with an
/// error.
pub(super) struct OnPanic<F: Fn()>(pub(super) F);

impl<F: Fn()> Drop for OnPanic<F> {
    fn drop(&mut self) {
        if thread::panicking() {
            (self.0)();
        }
    }
}
