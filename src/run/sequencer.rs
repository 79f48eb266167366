//! A value that several threads work with, one after another in the order of their numbers.

use std::sync::{Condvar, Mutex, PoisonError};

/// The value, and the number of the thread that may use it next.
pub(super) struct Sequencer<T> {
    state: Mutex<SequencerState<T>>,
    moved: Condvar,
}

struct SequencerState<T> {
    next: u64,
    /// Whether a number will never come. No thread waits any more then.
    over: bool,
    value: T,
}

impl<T> Sequencer<T> {
    /// The first number is 0.
    pub(super) fn new(value: T) -> Self {
        Sequencer {
            state: Mutex::new(SequencerState { next: 0, over: false, value }),
            moved: Condvar::new(),
        }
    }

    /// Waits until all smaller numbers have worked, and runs `work`. Each number works once.
    /// Returns without running `work` after [`end`](Sequencer::end).
    pub(super) fn take(&self, number: u64, work: impl FnOnce(&mut T)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.next != number && !state.over {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if !state.over {
            work(&mut state.value);
            state.next += 1;
            self.moved.notify_all();
        }
    }

    /// Releases all waiting threads; from now on no thread works.
    pub(super) fn end(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).over = true;
        self.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn work_is_done_in_the_order_of_the_numbers() {
        let sequencer = Sequencer::new(Vec::new());
        thread::scope(|scope| {
            for number in [3, 1, 0, 2] {
                let sequencer = &sequencer;
                scope.spawn(move || sequencer.take(number, |seen| seen.push(number)));
            }
        });
        let mut seen = Vec::new();
        sequencer.take(4, |all| seen.clone_from(all));
        assert_eq!(seen, [0, 1, 2, 3]);
    }

    #[test]
    fn no_thread_waits_for_a_number_that_will_never_come() {
        let sequencer = Sequencer::new(());
        thread::scope(|scope| {
            scope.spawn(|| sequencer.take(7, |()| unreachable!("no number before it comes")));
            sequencer.end();
        });
    }
}
