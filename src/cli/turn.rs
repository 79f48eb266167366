//! Something that several threads work with, each in its turn.

use std::sync::{Condvar, Mutex, PoisonError};

/// What goes round, and whose turn it is.
pub(super) struct Turns<T> {
    state: Mutex<State<T>>,
    moved: Condvar,
}

struct State<T> {
    next: u64,
    /// Somebody will never come: nobody waits any more.
    over: bool,
    it: T,
}

impl<T> Turns<T> {
    /// The first turn is that of number 0.
    pub(super) fn new(it: T) -> Self {
        Turns { state: Mutex::new(State { next: 0, over: false, it }), moved: Condvar::new() }
    }

    /// Waits for the turn of a number, and works. Every number has one turn; where somebody will never come, none.
    pub(super) fn take(&self, number: u64, work: impl FnOnce(&mut T)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.next != number && !state.over {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if !state.over {
            work(&mut state.it);
            state.next += 1;
            self.moved.notify_all();
        }
    }

    /// Nobody waits from here on.
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
    fn all_have_their_turn_in_the_order_of_their_numbers() {
        let turns = Turns::new(Vec::new());
        thread::scope(|scope| {
            for number in [3, 1, 0, 2] {
                let turns = &turns;
                scope.spawn(move || turns.take(number, |seen| seen.push(number)));
            }
        });
        let mut seen = Vec::new();
        turns.take(4, |all| seen.clone_from(all));
        assert_eq!(seen, [0, 1, 2, 3]);
    }

    #[test]
    fn nobody_waits_for_one_that_will_never_come() {
        let turns = Turns::new(());
        thread::scope(|scope| {
            scope.spawn(|| turns.take(7, |()| unreachable!("its turn never comes")));
            turns.end();
        });
    }
}
