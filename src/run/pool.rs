//! Formats batches as text on threads of their own, and writes the texts in the order of the
//! batches: byte for byte what one thread writes.
//!
//! It knows neither what is formatted nor what it becomes.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use super::text::{Meter, Text};

/// So many batches may be on their way to the writing thread.
const WAITING: usize = 8;
/// More threads would wait for the decoding thread most of the time.
const MAX_THREADS: usize = 8;
/// Text of this many bytes is handed on before more is made.
const PART: usize = 256 << 10;
/// A text that keeps more bytes allocated is not used again.
const KEEP_TEXT: usize = 1 << 20;

/// Makes text of batches. Each thread has a copy.
pub trait FormatBatch: Clone + Send + 'static {
    /// A batch. An empty one is used again.
    type Batch: Default + Send + 'static;

    /// Appends the text of a batch, and empties the batch.
    fn format(&mut self, batch: &mut Self::Batch, to: &mut TextSink<'_>);
}

/// Takes the text of one batch, part by part.
pub struct TextSink<'a> {
    text: Text,
    /// Hands a part on, and returns an empty text. Blocks while earlier texts are missing and a
    /// part of this one waits already.
    put: &'a mut dyn FnMut(Text) -> Text,
}

impl TextSink<'_> {
    /// Where the next records are appended.
    pub(super) fn text(&mut self) -> &mut Text {
        if self.text.len() >= PART {
            self.hand_on();
        }
        &mut self.text
    }

    /// Appends bytes that are no records.
    pub fn extend(&mut self, append: impl FnOnce(&mut Vec<u8>)) {
        self.text().extend(append);
    }

    /// Waits until all earlier texts are written: a text that may be very large follows, and there
    /// is to be one at a time.
    pub(super) fn wait_for_turn(&mut self) {
        // The second part is taken only once the first one is written.
        self.hand_on();
        self.hand_on();
    }

    fn hand_on(&mut self) {
        self.text = (self.put)(std::mem::take(&mut self.text));
    }
}

/// Formats batches, and writes their texts in order.
pub struct FormatPool<F: FormatBatch, W: Write> {
    format: F,
    /// How many threads may format. With none, the thread that adds a batch does.
    allowed: usize,
    /// Text that this thread made and did not write yet.
    text: Text,
    shared: Arc<Shared<F::Batch, W>>,
    threads: Option<Threads<F::Batch>>,
}

/// What all threads of a pool share.
struct Shared<B, W> {
    to: Mutex<Destination<W>>,
    failed: AtomicBool,
    spare_texts: Mutex<Vec<Text>>,
    spare_batches: Mutex<Vec<B>>,
}

/// The stream, and the count of its bytes.
struct Destination<W> {
    meter: Meter,
    to: W,
    error: Option<io::Error>,
}

/// The threads of a pool.
struct Threads<B> {
    jobs: SyncSender<Job<B>>,
    order: SyncSender<Ordered>,
    all: Vec<JoinHandle<()>>,
}

/// A batch to be formatted.
struct Job<B> {
    batch: B,
    parts: SyncSender<Part>,
}

/// A part of a batch's text.
struct Part {
    text: Text,
    is_last: bool,
}

/// What the writing thread does next.
enum Ordered {
    Write(Receiver<Part>),
    /// Says that everything before is written.
    Tell(SyncSender<()>),
}

impl<F: FormatBatch, W: Write + Send + 'static> FormatPool<F, W> {
    /// Writes to `to`. `threads` is how many threads work, the one that adds batches included.
    pub(super) fn new(format: F, meter: Meter, to: W, threads: usize) -> Self {
        let shared = Shared {
            to: Mutex::new(Destination { meter, to, error: None }),
            failed: AtomicBool::new(false),
            spare_texts: Mutex::default(),
            spare_batches: Mutex::default(),
        };
        let allowed = threads.min(MAX_THREADS).saturating_sub(1);
        let text = Text::default();
        FormatPool { format, allowed, text, shared: Arc::new(shared), threads: None }
    }

    /// Whether batches are formatted by other threads, so that large ones are better.
    pub(super) fn has_threads(&self) -> bool {
        self.allowed > 0
    }

    /// Adds a batch, and leaves an empty one in its place. Starts the threads with the first one.
    pub fn add(&mut self, batch: &mut F::Batch) {
        if self.threads.is_none() && self.allowed > 0 {
            self.start();
        }
        let Some(threads) = &self.threads else { return self.format_here(batch) };
        let (parts, texts) = sync_channel(1);
        let another = lock(&self.shared.spare_batches).pop().unwrap_or_default();
        let job = Job { batch: std::mem::replace(batch, another), parts };
        // These fail only where a thread panicked, which the writing thread reports.
        let _ = threads.jobs.send(job);
        let _ = threads.order.send(Ordered::Write(texts));
    }

    /// Writes a last batch for now: blocks until all of it is written. Starts no threads for it.
    pub fn flush(&mut self, batch: &mut F::Batch) {
        if self.threads.is_none() {
            self.format_here(batch);
            self.write_text();
            return;
        }
        self.add(batch);
        if let Some(threads) = &self.threads {
            let (tell, told) = sync_channel(0);
            let _ = threads.order.send(Ordered::Tell(tell));
            let _ = told.recv();
        }
    }

    /// Whether writing failed. If so, nothing more is written.
    pub fn has_failed(&self) -> bool {
        self.shared.failed.load(Ordering::Relaxed)
    }

    /// The first error of writing.
    pub fn take_error(&self) -> Option<io::Error> {
        lock(&self.shared.to).error.take()
    }

    /// How many messages were printed without their fields.
    pub(super) fn shortened(&self) -> u64 {
        lock(&self.shared.to).meter.shortened()
    }

    /// Formats a batch on this thread. Its last text waits for more.
    fn format_here(&mut self, batch: &mut F::Batch) {
        let mut put = |text| self.shared.write_now(text);
        let mut sink = TextSink { text: std::mem::take(&mut self.text), put: &mut put };
        self.format.format(batch, &mut sink);
        self.text = sink.text;
    }

    /// Starts the threads. If the system cannot start any, batches are formatted here.
    fn start(&mut self) {
        let (jobs, to_format) = sync_channel::<Job<F::Batch>>(1);
        let (order, to_write) = sync_channel(WAITING);
        let to_format = Arc::new(Mutex::new(to_format));
        let mut all = Vec::new();
        for _ in 0..self.allowed {
            let mut format = self.format.clone();
            let to_format = Arc::clone(&to_format);
            let shared = Arc::clone(&self.shared);
            let work = move || {
                while let Some(job) = next_job(&to_format) {
                    shared.do_job(&mut format, job);
                }
            };
            all.extend(Builder::new().name("format".into()).spawn(work));
        }
        let shared = Arc::clone(&self.shared);
        let write = move || to_write.into_iter().for_each(|next| shared.do_next(next));
        let writer = Builder::new().name("write".into()).spawn(write);
        match writer {
            Ok(writer) if !all.is_empty() => {
                all.push(writer);
                self.threads = Some(Threads { jobs, order, all });
            }
            _ => self.allowed = 0,
        }
    }
}

impl<F: FormatBatch, W: Write> FormatPool<F, W> {
    /// Writes the text that this thread made.
    fn write_text(&mut self) {
        self.text = self.shared.write_now(std::mem::take(&mut self.text));
    }
}

impl<F: FormatBatch, W: Write> Drop for FormatPool<F, W> {
    /// Waits until everything is written.
    fn drop(&mut self) {
        self.write_text();
        if let Some(Threads { jobs, order, all }) = self.threads.take() {
            drop((jobs, order));
            all.into_iter().for_each(|thread| thread.join().unwrap_or_default());
        }
    }
}

impl<B, W: Write> Shared<B, W> {
    /// Formats a batch, and hands on its text.
    fn do_job<F: FormatBatch<Batch = B>>(&self, format: &mut F, job: Job<B>) {
        let Job { mut batch, parts } = job;
        let mut put = |text| {
            let _ = parts.send(Part { text, is_last: false });
            lock(&self.spare_texts).pop().unwrap_or_default()
        };
        let text = lock(&self.spare_texts).pop().unwrap_or_default();
        let mut sink = TextSink { text, put: &mut put };
        format.format(&mut batch, &mut sink);
        let _ = parts.send(Part { text: sink.text, is_last: true });
        lock(&self.spare_batches).push(batch);
    }

    fn do_next(&self, next: Ordered) {
        let parts = match next {
            Ordered::Write(parts) => parts,
            Ordered::Tell(tell) => return tell.send(()).unwrap_or_default(),
        };
        loop {
            let Ok(Part { mut text, is_last }) = parts.recv() else {
                return self
                    .fail(&mut lock(&self.to), io::Error::other("a thread ended too early"));
            };
            self.write(&mut lock(&self.to), &text);
            text.clear(KEEP_TEXT);
            let mut spare = lock(&self.spare_texts);
            if spare.len() < WAITING {
                spare.push(text);
            }
            if is_last {
                return;
            }
        }
    }

    /// Writes a text, and returns it empty.
    fn write_now(&self, mut text: Text) -> Text {
        self.write(&mut lock(&self.to), &text);
        text.clear(KEEP_TEXT);
        text
    }

    fn write(&self, to: &mut Destination<W>, text: &Text) {
        if !text.is_empty() && !self.failed.load(Ordering::Relaxed) {
            let Destination { meter, to: stream, .. } = to;
            if let Err(error) = meter.write(text, stream) {
                self.fail(to, error);
            }
        }
    }

    fn fail(&self, to: &mut Destination<W>, error: io::Error) {
        to.error.get_or_insert(error);
        self.failed.store(true, Ordering::Relaxed);
    }
}

/// Waits for the next job. `None` if there are no more.
fn next_job<B>(jobs: &Mutex<Receiver<Job<B>>>) -> Option<Job<B>> {
    lock(jobs).recv().ok()
}

/// A panic of another thread is reported by the writing thread.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    /// A stream that all may look at, and that fails after `room` bytes.
    #[derive(Clone)]
    struct Shown(Arc<Mutex<Vec<u8>>>, usize);

    impl Write for Shown {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut all = self.0.lock().unwrap();
            if all.len() + bytes.len() > self.1 {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            all.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Writes numbers as lines; every tenth is long, and waits for its turn.
    #[derive(Clone)]
    struct Decimal;

    impl FormatBatch for Decimal {
        type Batch = Vec<usize>;

        fn format(&mut self, batch: &mut Vec<usize>, to: &mut TextSink<'_>) {
            for number in batch.drain(..) {
                if number % 10 == 7 {
                    to.wait_for_turn();
                }
                to.extend(|text| text.extend_from_slice(line(number).as_bytes()));
            }
        }
    }

    fn line(number: usize) -> String {
        format!("{number}{}\n", " ".repeat(if number % 10 == 7 { PART } else { number % 97 }))
    }

    /// Adds batches of different sizes, with a flush now and then. Returns what was written, and
    /// what should have been.
    fn write_numbers(threads: usize, room: usize) -> (Vec<u8>, String, bool) {
        let to = Shown(Arc::default(), room);
        let mut pool = FormatPool::new(Decimal, Meter::new(None), to.clone(), threads);
        let mut next = 0;
        for count in 0..40 {
            let mut batch: Vec<usize> = (next..next + count % 7).collect();
            next += count % 7;
            if count % 9 == 8 {
                pool.flush(&mut batch);
                let lines = to.0.lock().unwrap().iter().filter(|byte| **byte == b'\n').count();
                assert!(pool.has_failed() || lines == next);
            } else {
                pool.add(&mut batch);
            }
            assert!(batch.is_empty());
        }
        pool.flush(&mut Vec::new());
        assert_eq!(pool.take_error().is_some(), pool.has_failed());
        let failed = pool.has_failed();
        drop(pool);
        let written = to.0.lock().unwrap().clone();
        (written, (0..next).map(line).collect(), failed)
    }

    #[test]
    fn texts_are_written_in_order_by_any_number_of_threads() {
        for threads in [1, 2, 3, 7] {
            let (written, expected, failed) = write_numbers(threads, usize::MAX);
            assert!(written == expected.as_bytes() && !failed, "{threads} threads");
        }
    }

    #[test]
    fn after_a_failure_nothing_waits_and_nothing_more_is_written() {
        for threads in [1, 4] {
            let (written, expected, failed) = write_numbers(threads, 100_000);
            assert!(failed && expected.as_bytes().starts_with(&written), "{threads} threads");
        }
    }
}
