//! Formats batches of anything as text, and writes the texts in order. A thread with time does part
//! of it ([`Preparations`]); what it has not begun, the thread that adds batches does itself.
//!
//! It knows neither what is formatted nor what it becomes.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::on_panic::OnPanic;
use super::ordered::OrderedWriter;
use super::text::{Meter, Text};
use crate::session::{Preparation, Preparations};

/// So many batches may wait for a thread with time.
const WAITING: usize = 2;
/// A larger batch is formatted alone, so that there is one such text at a time.
const LARGE: usize = 1 << 20;

/// What becomes of batches.
pub trait FormatBatch: Send + Sync + 'static {
    /// A batch. An empty one is used again.
    type Batch: Default + Send;

    /// How many bytes a batch has.
    fn size(batch: &Self::Batch) -> usize;

    /// Appends the text of a batch, and empties the batch.
    fn format(&self, batch: &mut Self::Batch, text: &mut Vec<u8>);
}

/// Formats and writes batches.
pub struct FormatQueue<F: FormatBatch, W: Write> {
    shared: Arc<FormatState<F, W>>,
    /// Who may do part of it.
    preparations: Option<Arc<Preparations>>,
    /// Batches that were added last. Some may be formatted already.
    waiting: VecDeque<Arc<Job<F, W>>>,
    next: u64,
}

struct FormatState<F: FormatBatch, W> {
    format: F,
    ordered: OrderedWriter<W>,
    spare: Mutex<SpareParts<F::Batch>>,
}

/// What is empty, and used again.
struct SpareParts<B> {
    texts: Vec<Text>,
    batches: Vec<B>,
}

/// A batch and its number.
struct Job<F: FormatBatch, W> {
    number: u64,
    /// `None` once somebody formats it.
    batch: Mutex<Option<F::Batch>>,
    shared: Arc<FormatState<F, W>>,
}

impl<F: FormatBatch, W: Write + Send + 'static> FormatQueue<F, W> {
    /// Writes to `to`. Without `preparations`, each batch is written when it is added.
    pub(super) fn new(format: F, to: W, preparations: Option<Arc<Preparations>>) -> Self {
        let ordered = OrderedWriter::new(Meter::new(None), to);
        let spare = Mutex::new(SpareParts { texts: Vec::new(), batches: Vec::new() });
        let shared = Arc::new(FormatState { format, ordered, spare });
        FormatQueue { shared, preparations, waiting: VecDeque::new(), next: 0 }
    }

    /// Adds a batch, and leaves an empty one in its place.
    pub fn add(&mut self, batch: &mut F::Batch) {
        let is_large = F::size(batch) > LARGE;
        if is_large {
            self.flush();
        }
        let another = self.shared.spare().batches.pop().unwrap_or_default();
        let batch = Mutex::new(Some(std::mem::replace(batch, another)));
        let job = Arc::new(Job { number: self.next, batch, shared: Arc::clone(&self.shared) });
        self.next += 1;
        let Some(preparations) = self.preparations.as_ref().filter(|_| !is_large) else {
            return job.prepare();
        };
        preparations.add(Arc::clone(&job) as Arc<dyn Preparation>);
        self.waiting.push_back(job);
        while self.waiting.len() > WAITING {
            self.do_first();
        }
    }

    /// Writes everything that was added.
    pub fn flush(&mut self) {
        while !self.waiting.is_empty() {
            self.do_first();
        }
        self.shared.ordered.wait_until(self.next);
    }

    /// Formats the first batch that waits, unless somebody does.
    fn do_first(&mut self) {
        self.waiting.pop_front().into_iter().for_each(|job| job.prepare());
    }

    /// Whether writing failed.
    pub fn has_failed(&self) -> bool {
        self.shared.ordered.has_failed()
    }

    /// The first error of writing.
    pub fn take_error(&self) -> Option<io::Error> {
        self.shared.ordered.take_error()
    }
}

impl<F: FormatBatch, W: Write + Send> Preparation for Job<F, W> {
    fn prepare(&self) {
        let batch = self.batch.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut batch) = batch else { return };
        let fail =
            || self.shared.ordered.fail(io::Error::other("a thread that formats ended too early"));
        let _release = OnPanic(fail);
        let mut text = self.shared.spare().texts.pop().unwrap_or_default();
        text.extend(|text| self.shared.format.format(&mut batch, text));
        let another = self.shared.ordered.put(self.number, text);
        let mut spare = self.shared.spare();
        spare.texts.push(another);
        spare.batches.push(batch);
    }
}

impl<F: FormatBatch, W> FormatState<F, W> {
    fn spare(&self) -> MutexGuard<'_, SpareParts<F::Batch>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use std::thread;

    use super::*;

    /// A stream that all may look at, and that fails after `room` bytes.
    #[derive(Clone, Default)]
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

    struct Decimal;

    impl FormatBatch for Decimal {
        type Batch = Vec<u32>;

        fn size(batch: &Vec<u32>) -> usize {
            // Some are large.
            if batch.len() % 10 == 7 { LARGE + 1 } else { batch.len() }
        }

        fn format(&self, batch: &mut Vec<u32>, text: &mut Vec<u8>) {
            batch.drain(..).for_each(|number| writeln!(text, "{number}").unwrap());
        }
    }

    /// Adds batches of different sizes, with a flush now and then. Returns what was written.
    fn written(to: &Shown, preparations: Option<Arc<Preparations>>) -> bool {
        let mut queue = FormatQueue::new(Decimal, to.clone(), preparations);
        let mut next = 0;
        for count in 0..400 {
            let mut batch: Vec<u32> = (next..next + count % 50).collect();
            next += count % 50;
            queue.add(&mut batch);
            assert!(batch.is_empty());
            if count % 70 == 0 {
                queue.flush();
                let lines = to.0.lock().unwrap().iter().filter(|byte| **byte == b'\n').count();
                assert!(queue.has_failed() || lines == next as usize);
            }
        }
        queue.flush();
        let expected: String = (0..next).map(|number| format!("{number}\n")).collect();
        assert_eq!(queue.take_error().is_some(), queue.has_failed());
        *to.0.lock().unwrap() == expected.as_bytes()
    }

    fn everything() -> Shown {
        Shown(Arc::default(), usize::MAX)
    }

    #[test]
    fn batches_are_written_in_order_by_one_thread() {
        assert!(written(&everything(), None));
        // Nobody works for it.
        assert!(written(&everything(), Some(Arc::default())));
    }

    #[test]
    fn batches_are_written_in_order_by_two_threads() {
        for room in [usize::MAX, 10_000] {
            let preparations = Arc::new(Preparations::default());
            let to = Shown(Arc::default(), room);
            thread::scope(|scope| {
                scope.spawn(|| preparations.work_until_end());
                assert_eq!(written(&to, Some(Arc::clone(&preparations))), room == usize::MAX);
                preparations.end();
            });
        }
    }
}
