//! Writes texts from several threads onto one stream, in the order of their numbers.
//!
//! The thread with the next text writes it, and after it the texts that were waiting for it. The
//! number and size of waiting texts is bounded: a thread that is too far ahead blocks until the
//! texts before its own are written.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::text::{Meter, Text};

/// How many texts may wait for a missing one, and how many bytes they may have together. A single
/// text may be larger.
const WAITING: u64 = 16;
const WAITING_BYTES: usize = 4 << 20;
/// The most bytes that an empty text keeps allocated, and the most empty texts kept.
const KEEP_TEXT: usize = 2 << 20;
const SPARE: usize = 4;

/// A stream, and the texts on their way to it.
pub(super) struct OrderedWriter<W> {
    state: Mutex<OrderedState<W>>,
    /// A text was written, or writing failed.
    moved: Condvar,
    failed: AtomicBool,
}

/// The stream, and the count of its bytes.
struct Metered<W> {
    meter: Meter,
    to: W,
}

struct OrderedState<W> {
    /// The stream. A thread takes it out while it writes.
    to: Option<Metered<W>>,
    /// The texts from `first` on; `None` for those that did not come yet.
    texts: VecDeque<Option<Text>>,
    /// The number of the next text to be written.
    first: u64,
    bytes: usize,
    spare: Vec<Text>,
    error: Option<io::Error>,
}

impl<W: Write> OrderedWriter<W> {
    /// Writes to `to`. The first text is number 0.
    pub(super) fn new(meter: Meter, to: W) -> Self {
        let texts = VecDeque::new();
        let to = Some(Metered { meter, to });
        let state = OrderedState { to, texts, first: 0, bytes: 0, spare: Vec::new(), error: None };
        OrderedWriter {
            state: Mutex::new(state),
            moved: Condvar::new(),
            failed: AtomicBool::new(false),
        }
    }

    /// Writes a text after all texts with smaller numbers: now, or on the thread with the missing
    /// one. Returns an empty buffer for the next text. Blocks if too much is waiting already.
    pub(super) fn put(&self, number: u64, mut text: Text) -> Text {
        let mut state = self.lock();
        while state.is_too_early(number, text.len()) && !self.has_failed() {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if self.has_failed() {
            text.clear(KEEP_TEXT);
            return text;
        }
        state.place(number, text);
        self.write(state).spare.pop().unwrap_or_default()
    }

    /// Writes the beginning of text `number`, and empties the buffer. Further parts may follow, and
    /// [`put`](OrderedWriter::put) writes the last one. Blocks until all texts with smaller numbers
    /// are written. From then on no other thread's text is written before this one is put.
    pub(super) fn put_part(&self, number: u64, text: &mut Text) {
        let mut state = self.lock();
        while (state.first != number || state.to.is_none()) && !self.has_failed() {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        self.write_part(state, text);
        text.clear(KEEP_TEXT);
    }

    /// The same where no text with a smaller number is missing. Otherwise leaves the text as it is,
    /// and does not block.
    pub(super) fn put_ready_part(&self, number: u64, text: &mut Text) {
        let state = self.lock();
        if state.first == number && state.to.is_some() {
            self.write_part(state, text);
            text.clear(KEEP_TEXT);
        }
    }

    /// Blocks until all texts with smaller numbers are written, or writing failed.
    pub(super) fn wait_until(&self, number: u64) {
        let mut state = self.lock();
        while (state.first < number || state.to.is_none()) && !self.has_failed() {
            state = self.moved.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Writes the beginning of the next text.
    fn write_part(&self, mut state: MutexGuard<'_, OrderedState<W>>, text: &Text) {
        let to = state.to.take();
        drop(state);
        if let Some(mut to) = to {
            if !text.is_empty() && !self.has_failed() {
                to.meter.write(text, &mut to.to).unwrap_or_else(|error| self.fail(error));
            }
            self.lock().to = Some(to);
            self.moved.notify_all();
        }
    }

    /// Whether writing failed. If so, nothing more is written.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Gives up with an error, and releases all waiting threads.
    pub(super) fn fail(&self, error: io::Error) {
        let mut state = self.lock();
        state.error.get_or_insert(error);
        self.failed.store(true, Ordering::Relaxed);
        drop(state);
        self.moved.notify_all();
    }

    /// How many messages were printed without their fields.
    pub(super) fn shortened(&self) -> u64 {
        self.lock().to.as_ref().map_or(0, |to| to.meter.shortened())
    }

    /// The first error.
    pub(super) fn take_error(&self) -> Option<io::Error> {
        self.lock().error.take()
    }

    /// Writes the next texts, unless another thread is writing: that thread goes on with them.
    fn write<'a>(
        &'a self,
        mut state: MutexGuard<'a, OrderedState<W>>,
    ) -> MutexGuard<'a, OrderedState<W>> {
        while let Some(mut to) = state.to.take() {
            let Some(mut text) = state.next() else {
                state.to = Some(to);
                break;
            };
            drop(state);
            if !text.is_empty() && !self.has_failed() {
                to.meter.write(&text, &mut to.to).unwrap_or_else(|error| self.fail(error));
            }
            let length = text.len();
            text.clear(KEEP_TEXT);
            state = self.lock();
            state.to = Some(to);
            state.bytes = state.bytes.saturating_sub(length);
            if state.spare.len() < SPARE {
                state.spare.push(text);
            }
            self.moved.notify_all();
        }
        state
    }

    fn lock(&self) -> MutexGuard<'_, OrderedState<W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W> OrderedState<W> {
    fn is_too_early(&self, number: u64, length: usize) -> bool {
        let before = number.saturating_sub(self.first);
        before > WAITING || before > 0 && self.bytes + length > WAITING_BYTES
    }

    fn place(&mut self, number: u64, text: Text) {
        let Some(at) = number.checked_sub(self.first).and_then(|at| usize::try_from(at).ok())
        else {
            return;
        };
        if self.texts.len() <= at {
            self.texts.resize_with(at + 1, || None);
        }
        if let Some(place) = self.texts.get_mut(at) {
            self.bytes += text.len();
            *place = Some(text);
        }
    }

    /// The next text, if it is there.
    fn next(&mut self) -> Option<Text> {
        let text = self.texts.front_mut()?.take()?;
        self.texts.pop_front();
        self.first += 1;
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use std::sync::atomic::AtomicU64;
    use std::thread;
    use std::time::Duration;

    /// A stream that fails after `room` bytes.
    struct FailingWriter {
        text: Vec<u8>,
        room: usize,
    }

    impl Write for FailingWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.text.len() + bytes.len() > self.room {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            self.text.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn ordered(room: usize) -> OrderedWriter<FailingWriter> {
        OrderedWriter::new(Meter::new(None), FailingWriter { text: Vec::new(), room })
    }

    /// Lets some threads write texts. The text of a number is a line with the number and
    /// `blanks(number)` blanks.
    fn bring(
        ordered: &OrderedWriter<FailingWriter>,
        threads: usize,
        texts: u64,
        blanks: impl Fn(u64) -> usize + Sync,
    ) {
        let next = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let mut text = Text::default();
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= texts {
                            break;
                        }
                        assert!(text.is_empty());
                        let line = format!("{number}{}\n", " ".repeat(blanks(number)));
                        text = ordered.put(number, Text::from(line.into_bytes()));
                    }
                });
            }
        });
    }

    #[test]
    fn texts_are_written_in_order() {
        for threads in [1, 2, 7] {
            let ordered = ordered(usize::MAX);
            bring(
                &ordered,
                threads,
                2000,
                |n| if n % 200 == 7 { 3 << 20 } else { n as usize % 97 },
            );
            assert!(ordered.take_error().is_none());
            let state = ordered.lock();
            let text = String::from_utf8(state.to.as_ref().unwrap().to.text.clone()).unwrap();
            assert!(
                text.lines().map(|line| line.trim_end().parse::<u64>().unwrap()).eq(0..2000),
                "{threads} threads"
            );
            assert_eq!((state.bytes, state.texts.len(), state.first), (0, 0, 2000));
            assert!(state.spare.len() <= SPARE);
            assert!(state.spare.iter().all(|text| text.capacity() <= KEEP_TEXT));
        }
    }

    #[test]
    fn parts_of_a_text_come_before_the_texts_behind_it() {
        let ordered = ordered(usize::MAX);
        thread::scope(|scope| {
            for number in (0..40_u64).rev() {
                let ordered = &ordered;
                scope.spawn(move || {
                    let mut text = Text::default();
                    for part in 0..5 {
                        text = Text::from(format!("{number} {part}\n").into_bytes());
                        if part < 4 {
                            ordered.put_part(number, &mut text);
                            assert!(text.is_empty());
                        }
                    }
                    ordered.put(number, text);
                });
            }
        });
        let state = ordered.lock();
        let text = String::from_utf8(state.to.as_ref().unwrap().to.text.clone()).unwrap();
        let expected: String = (0..40)
            .flat_map(|number| (0..5).map(move |part| format!("{number} {part}\n")))
            .collect();
        assert_eq!(text, expected);
    }

    #[test]
    fn a_part_is_written_early_only_if_it_is_next() {
        let ordered = ordered(usize::MAX);
        let mut first = Text::from(b"0 begins\n".to_vec());
        let mut second = Text::from(b"1 begins\n".to_vec());
        ordered.put_ready_part(1, &mut second);
        assert!(!second.is_empty());
        ordered.put_ready_part(0, &mut first);
        assert!(first.is_empty());
        ordered.put(1, second);
        ordered.put(0, Text::from(b"0 ends\n".to_vec()));
        assert_eq!(ordered.lock().to.as_ref().unwrap().to.text, b"0 begins\n0 ends\n1 begins\n");
    }

    #[test]
    fn a_thread_that_is_far_ahead_waits() {
        let ordered = ordered(usize::MAX);
        thread::scope(|scope| {
            let mut ahead: Vec<_> = [(WAITING + 1, 1), (1, 0), (2, WAITING_BYTES + 1)]
                .map(|(number, length)| {
                    scope.spawn({
                        let ordered = &ordered;
                        move || ordered.put(number, vec![b'x'; length].into())
                    })
                })
                .into();
            thread::sleep(Duration::from_millis(200));
            let still: Vec<bool> = ahead.iter().map(|thread| !thread.is_finished()).collect();
            assert_eq!(still, [true, false, true]);
            for number in [0].into_iter().chain(3..=WAITING) {
                ordered.put(number, Text::default());
            }
            ahead.drain(..).for_each(|thread| drop(thread.join().unwrap()));
        });
        assert_eq!(ordered.lock().first, WAITING + 2);
    }

    #[test]
    fn after_a_failure_no_thread_waits_and_the_error_comes_once() {
        for threads in [1, 4] {
            let ordered = ordered(10_000);
            bring(&ordered, threads, 5000, |_| 100);
            assert!(ordered.has_failed());
            assert_eq!(ordered.take_error().unwrap().kind(), io::ErrorKind::BrokenPipe);
            assert!(ordered.take_error().is_none());
            // No thread waits any more for a text that will never come.
            drop(ordered.put(1_000_000, vec![0; WAITING_BYTES + 1].into()));
            assert!(ordered.lock().texts.len() <= 1 + WAITING as usize);
        }
    }
}
