//! Texts that several threads make, onto one stream in the order of their numbers.
//!
//! Whoever brings the text whose turn it is writes it, and those that wait behind it. How much waits is bounded: who is too far ahead
//! waits until those before have come and are out.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// How many texts may wait for one that is missing, and how many bytes of them; a single one may be more.
const WAITING: u64 = 16;
const WAITING_BYTES: usize = 8 << 20;

/// A stream, and what is on its way there.
pub(super) struct Outlet<W> {
    state: Mutex<State<W>>,
    /// Something went out, or never will.
    moved: Condvar,
    failed: AtomicBool,
}

struct State<W> {
    /// Where texts go; not there while somebody writes one.
    to: Option<W>,
    /// Texts from the next one to go out on: those that are there.
    texts: VecDeque<Option<Vec<u8>>>,
    /// The number of the first of these.
    first: u64,
    bytes: usize,
    spare: Vec<Vec<u8>>,
    error: Option<io::Error>,
}

impl<W: Write> Outlet<W> {
    /// Numbers begin with 0.
    pub(super) fn new(to: W) -> Self {
        let texts = VecDeque::new();
        let state = State { to: Some(to), texts, first: 0, bytes: 0, spare: Vec::new(), error: None };
        Outlet { state: Mutex::new(state), moved: Condvar::new(), failed: AtomicBool::new(false) }
    }

    /// Sees to it that a text goes out in its turn; gives an empty one for the next.
    pub(super) fn put(&self, number: u64, text: Vec<u8>) -> Vec<u8> {
        let mut state = self.lock();
        while state.is_too_early(number, text.len()) && !self.has_failed() {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.place(number, text);
        self.write(state).spare.pop().unwrap_or_default()
    }

    /// Whether something went wrong: nothing more will go out.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Gives up; nobody waits from here on.
    pub(super) fn fail(&self, error: io::Error) {
        let mut state = self.lock();
        state.error.get_or_insert(error);
        self.failed.store(true, Ordering::Relaxed);
        drop(state);
        self.moved.notify_all();
    }

    /// What went wrong first.
    pub(super) fn take_error(&self) -> Option<io::Error> {
        self.lock().error.take()
    }

    /// Writes the texts whose turn it is, unless somebody is at it, who will then write these too.
    fn write<'a>(&'a self, mut state: MutexGuard<'a, State<W>>) -> MutexGuard<'a, State<W>> {
        while let Some(mut to) = state.to.take() {
            let Some(mut text) = state.next() else {
                state.to = Some(to);
                break;
            };
            drop(state);
            let failed = self.has_failed() || text.is_empty();
            let written = if failed { Ok(()) } else { to.write_all(&text).and_then(|()| to.flush()) };
            if let Err(error) = written {
                self.fail(error);
            }
            let length = text.len();
            text.clear();
            text.shrink_to(super::crew::KEEP);
            state = self.lock();
            state.to = Some(to);
            state.bytes = state.bytes.saturating_sub(length);
            state.spare.push(text);
            self.moved.notify_all();
        }
        state
    }

    fn lock(&self) -> MutexGuard<'_, State<W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W> State<W> {
    fn is_too_early(&self, number: u64, length: usize) -> bool {
        let before = number.saturating_sub(self.first);
        before > WAITING || before > 0 && self.bytes + length > WAITING_BYTES
    }

    fn place(&mut self, number: u64, text: Vec<u8>) {
        let Some(at) = number.checked_sub(self.first).and_then(|at| usize::try_from(at).ok()) else { return };
        if self.texts.len() <= at {
            self.texts.resize_with(at + 1, || None);
        }
        if let Some(place) = self.texts.get_mut(at) {
            self.bytes += text.len();
            *place = Some(text);
        }
    }

    /// The text whose turn it is, if it is there.
    fn next(&mut self) -> Option<Vec<u8>> {
        let text = self.texts.front_mut()?.take()?;
        self.texts.pop_front();
        self.first += 1;
        Some(text)
    }
}
