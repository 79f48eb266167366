//! Work that sessions will need soon and that depends on nothing but themselves: keystream, for
//! example. A thread with time does it ahead. What nobody has done when it is needed, the session
//! does itself.
//!
//! It knows neither the work nor the threads.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A piece of work.
pub trait Preparation: Send + Sync {
    /// Does it.
    fn prepare(&self);
}

/// The right to take memory for what is prepared. It ends when this is dropped.
pub struct PreparedRoom {
    /// Only counted.
    _one: Arc<()>,
}

/// What waits to be done.
#[derive(Default)]
pub struct Preparations {
    state: Mutex<State>,
    added: Condvar,
    rooms: Arc<()>,
    /// Called when the first work was added.
    begin: Option<Box<dyn Fn() + Send + Sync>>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Arc<dyn Preparation>>,
    /// Whether there was any.
    begun: bool,
    /// Whether no more is needed.
    over: bool,
}

impl Preparations {
    /// So many may take memory at once.
    pub const ROOMS: usize = 32;

    /// Preparations of somebody who begins when `begin` is called: when the first work was added.
    pub fn new(begin: impl Fn() + Send + Sync + 'static) -> Preparations {
        Preparations { begin: Some(Box::new(begin)), ..Preparations::default() }
    }

    /// The right to take memory, unless too many have it.
    pub fn room(&self) -> Option<PreparedRoom> {
        (Arc::strong_count(&self.rooms) <= Self::ROOMS)
            .then(|| PreparedRoom { _one: Arc::clone(&self.rooms) })
    }

    /// Adds work. If nobody does any, only a little waits.
    pub fn add(&self, work: Arc<dyn Preparation>) {
        let mut state = self.lock();
        if state.waiting.len() < Self::ROOMS {
            state.waiting.push_back(work);
        }
        let first = !std::mem::replace(&mut state.begun, true);
        drop(state);
        match &self.begin {
            Some(begin) if first => begin(),
            _ => self.added.notify_one(),
        }
    }

    /// Does what waits.
    pub fn work(&self) {
        while let Some(work) = self.next() {
            work.prepare();
        }
    }

    /// Does what waits and what is added later, until the [end](Preparations::end).
    pub fn work_until_end(&self) {
        while self.wait() {
            self.work();
        }
    }

    /// No more is needed.
    pub fn end(&self) {
        self.lock().over = true;
        self.added.notify_all();
    }

    fn next(&self) -> Option<Arc<dyn Preparation>> {
        self.lock().waiting.pop_front()
    }

    /// Waits for work. Returns `false` at the end.
    fn wait(&self) -> bool {
        let mut state = self.lock();
        while state.waiting.is_empty() && !state.over {
            state = self.added.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.over
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
