//! A crew that writes: the thread that decodes hands batches of records over, others make text of them, and the text goes out in the
//! order of the batches, byte for byte as if one thread had done it all.
//!
//! Decoding a message costs about half as much as writing it, and cannot be shared out, since streams share keys, numbers and names.
//! So the thread that decodes also writes when the others are behind, and no core idles. What waits is bounded, in batches and in bytes.
//! It knows forms and batches; of records nothing.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use super::form::Form;
use crate::out::tree::History;
use crate::out::{Batch, Record};
use crate::proto::LazyTables;
use crate::tree::Tree;

/// Bytes of records in a batch: enough that handing it over costs nothing beside writing it, and little enough to stay in a core's cache.
const BATCH: usize = 256 << 10;
/// Batches and their texts on the way, at most, and their bytes; a batch of one giant message may be more.
const ON_THE_WAY: usize = 16;
const BYTES_ON_THE_WAY: usize = 16 << 20;
/// Bytes that each part of a batch, a text, and a tree keep for the next one.
const KEEP: usize = 1 << 20;

/// The crew, as the thread that decodes sees it.
pub(super) struct Crew<W: Write + Send + 'static> {
    shared: Arc<Shared<W>>,
    hands: Hands,
    filling: Batch,
    hired: Vec<JoinHandle<()>>,
    /// How many may be hired yet. They are when there is something to do for them: a small capture needs none.
    to_hire: usize,
    /// Batches that may be on the way.
    limit: usize,
}

/// What somebody writes with.
struct Hands {
    form: Form,
    tree: Tree,
}

struct Shared<W> {
    tables: Arc<[LazyTables]>,
    state: Mutex<State<W>>,
    /// Something is to be written, or nothing will be any more.
    work: Condvar,
    /// Something was written.
    done: Condvar,
    failed: AtomicBool,
}

/// A batch and its number.
struct Job {
    number: u64,
    batch: Batch,
}

struct State<W> {
    /// What nobody writes yet.
    queue: VecDeque<Job>,
    /// Texts from the next one to go out on: those that are made.
    texts: VecDeque<Option<Vec<u8>>>,
    /// The number of the first of these.
    first: u64,
    /// Batches handed over whose text is not out yet, and what they take.
    on_the_way: usize,
    bytes: usize,
    /// Where texts go; not there while somebody writes one.
    to: Option<W>,
    /// How many of the crew wait for work.
    idle: usize,
    over: bool,
    error: Option<io::Error>,
    spare_batches: Vec<Batch>,
    spare_texts: Vec<Vec<u8>>,
}

impl<W: Write + Send + 'static> Crew<W> {
    /// A crew of so many besides the thread that decodes.
    pub(super) fn new(form: Form, tables: Arc<[LazyTables]>, to: W, others: usize) -> Self {
        let state = State {
            queue: VecDeque::new(),
            on_the_way: 0,
            bytes: 0,
            texts: VecDeque::new(),
            first: 0,
            to: Some(to),
            idle: 0,
            over: false,
            error: None,
            spare_batches: Vec::new(),
            spare_texts: Vec::new(),
        };
        let shared = Shared {
            tables,
            state: Mutex::new(state),
            work: Condvar::new(),
            done: Condvar::new(),
            failed: AtomicBool::new(false),
        };
        Crew {
            shared: Arc::new(shared),
            hands: Hands { form, tree: Tree::new() },
            filling: Batch::default(),
            hired: Vec::new(),
            to_hire: others,
            limit: (3 * others + 2).min(ON_THE_WAY),
        }
    }

    /// Takes a record.
    pub(super) fn record(&mut self, record: &Record<'_>, history: Option<&mut History>) {
        self.filling.push(record, history);
        if self.filling.bytes() >= BATCH {
            self.hand_on();
        }
    }

    /// Hands over what there is: it will be written and go out without anything more being done.
    pub(super) fn hand_on(&mut self) {
        if self.filling.is_empty() {
            return;
        }
        let batch = std::mem::take(&mut self.filling);
        let mut state = self.shared.lock();
        state.push(batch);
        if state.queue.len() > state.idle && self.to_hire > 0 {
            self.to_hire -= 1;
            self.hired.extend(self.hire());
        }
        self.shared.work.notify_one();
        while state.on_the_way >= self.limit || state.bytes > BYTES_ON_THE_WAY {
            state = match state.queue.pop_front() {
                Some(job) => self.shared.write(state, job, &mut self.hands),
                None if state.on_the_way > 0 && !self.has_failed() => self.shared.wait(state),
                None => break,
            };
        }
        self.filling = state.spare_batches.pop().unwrap_or_default();
    }

    /// Whether writing failed: nothing more will go out.
    pub(super) fn has_failed(&self) -> bool {
        self.shared.failed.load(Ordering::Relaxed)
    }

    /// Writes all that is left and lets the crew go.
    ///
    /// # Errors
    /// What went wrong while writing.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        let last = std::mem::take(&mut self.filling);
        let mut state = self.shared.lock();
        if !last.is_empty() {
            state.push(last);
        }
        if self.has_failed() {
            state.queue.clear();
        }
        loop {
            state = match state.queue.pop_front() {
                Some(job) => self.shared.write(state, job, &mut self.hands),
                None if state.on_the_way > 0 && !self.has_failed() => self.shared.wait(state),
                None => break,
            };
        }
        state.over = true;
        let error = state.error.take();
        drop(state);
        self.shared.work.notify_all();
        for hired in self.hired.drain(..) {
            let _ = hired.join();
        }
        error.map_or(Ok(()), Err)
    }

    /// One more for the crew, if the system has a thread to give; else there is one fewer.
    fn hire(&self) -> Option<JoinHandle<()>> {
        let shared = Arc::clone(&self.shared);
        let mut hands = Hands { form: self.hands.form.clone(), tree: Tree::new() };
        thread::Builder::new().name("writer".into()).spawn(move || shared.work(&mut hands)).ok()
    }
}

impl<W: Write> Shared<W> {
    /// What one of the crew does, until there is nothing more to do.
    fn work(&self, hands: &mut Hands) {
        let _watch = Watch(self);
        let mut state = self.lock();
        loop {
            state = match state.queue.pop_front() {
                Some(job) => self.write(state, job, hands),
                None if state.over => return,
                None => {
                    state.idle += 1;
                    let mut state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                    state.idle = state.idle.saturating_sub(1);
                    state
                }
            };
        }
    }

    /// Makes text of a batch, and sees to it that it goes out in its turn.
    fn write<'a>(
        &'a self,
        mut state: MutexGuard<'a, State<W>>,
        mut job: Job,
        hands: &mut Hands,
    ) -> MutexGuard<'a, State<W>> {
        let mut text = state.spare_texts.pop().unwrap_or_default();
        drop(state);
        let Hands { form, tree } = hands;
        job.batch.each(&self.tables, tree, |record, past| form.record(record, past, &mut text));
        let took = job.batch.bytes();
        if took > KEEP {
            *tree = Tree::new();
        }
        job.batch.clear(KEEP);
        let mut state = self.lock();
        state.bytes = state.bytes.saturating_sub(took).saturating_add(text.len());
        state.spare_batches.push(job.batch);
        state.made(job.number, text);
        self.put_out(state)
    }

    /// Writes the texts whose turn it is, unless somebody else is at it, who will then write these too.
    fn put_out<'a>(&'a self, mut state: MutexGuard<'a, State<W>>) -> MutexGuard<'a, State<W>> {
        while let Some(mut to) = state.to.take() {
            let Some(mut text) = state.next_text() else {
                state.to = Some(to);
                break;
            };
            drop(state);
            let failed = self.failed.load(Ordering::Relaxed);
            let written = if failed { Ok(()) } else { to.write_all(&text).and_then(|()| to.flush()) };
            let length = text.len();
            text.clear();
            text.shrink_to(KEEP);
            state = self.lock();
            state.to = Some(to);
            state.on_the_way = state.on_the_way.saturating_sub(1);
            state.bytes = state.bytes.saturating_sub(length);
            state.spare_texts.push(text);
            if let Err(error) = written {
                self.fail(&mut state, error);
            }
        }
        self.done.notify_all();
        state
    }

    fn fail(&self, state: &mut State<W>, error: io::Error) {
        state.error.get_or_insert(error);
        self.failed.store(true, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State<W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something was written.
    fn wait<'a>(&'a self, state: MutexGuard<'a, State<W>>) -> MutexGuard<'a, State<W>> {
        self.done.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

impl<W> State<W> {
    fn push(&mut self, batch: Batch) {
        self.on_the_way += 1;
        self.bytes += batch.bytes();
        self.queue.push_back(Job { number: self.first + self.texts.len() as u64, batch });
        self.texts.push_back(None);
    }

    /// The text of a batch is there.
    fn made(&mut self, number: u64, text: Vec<u8>) {
        let place = number.checked_sub(self.first).and_then(|at| self.texts.get_mut(at as usize));
        if let Some(place) = place {
            *place = Some(text);
        }
    }

    /// The text whose turn it is, if it is there.
    fn next_text(&mut self) -> Option<Vec<u8>> {
        let text = self.texts.front_mut()?.take()?;
        self.texts.pop_front();
        self.first += 1;
        Some(text)
    }
}

/// Sees to it that nobody waits for one of the crew who is no more: a fault of the program, said instead of a wait without end.
struct Watch<'a, W: Write>(&'a Shared<W>);

impl<W: Write> Drop for Watch<'_, W> {
    fn drop(&mut self) {
        if thread::panicking() {
            let mut state = self.0.lock();
            self.0.fail(&mut state, io::Error::other("a thread that writes came to an end too early"));
            drop(state);
            self.0.done.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use crate::out::json::{JsonWriter, Style};
    use crate::out::{Body, Counts};
    use crate::proto::{Moment, Side, Transport};

    /// Where a crew writes to, with a fault after so many bytes.
    #[derive(Clone)]
    struct Wall {
        text: Arc<Mutex<Vec<u8>>>,
        room: usize,
    }

    impl Write for Wall {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut text = self.text.lock().unwrap();
            if text.len() + bytes.len() > self.room {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            text.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn crew(room: usize, others: usize) -> (Crew<Wall>, Arc<Mutex<Vec<u8>>>) {
        let wall = Wall { text: Arc::default(), room };
        let text = Arc::clone(&wall.text);
        let form = Form::Json(JsonWriter::new(Style::default()));
        (Crew::new(form, Arc::new([]), wall, others), text)
    }

    /// Gives a crew a record whose text has a length of its own.
    fn give(crew: &mut Crew<Wall>, number: u64, length: usize) {
        let text = "x".repeat(length);
        let record = Record {
            number,
            at: Moment::default(),
            transport: Transport::Tcp,
            stream: 0,
            src: "10.0.0.1:1".parse().unwrap(),
            dst: "10.0.0.2:2".parse().unwrap(),
            from: Side::Client,
            protocol: "moul",
            service: "game",
            body: Body::StreamEnd { text: &text, counts: Counts::default() },
        };
        crew.record(&record, None);
    }

    fn numbers(text: &Mutex<Vec<u8>>) -> Vec<u64> {
        let text = text.lock().unwrap();
        let lines = text.split(|b| *b == b'\n').filter(|line| !line.is_empty());
        lines
            .map(|line| serde_json::from_slice::<serde_json::Value>(line).unwrap()["record"].as_u64().unwrap())
            .collect()
    }

    #[test]
    fn all_records_come_out_in_order_whoever_writes_them() {
        for others in [1, 2, 7] {
            let (mut crew, text) = crew(usize::MAX, others);
            for number in 1..=3000 {
                // Batches of very unequal work: some of one giant record, some handed on when they are hardly begun.
                give(&mut crew, number, if number % 250 == 0 { 2 * BATCH } else { number as usize % 997 });
                if number % 17 == 0 {
                    crew.hand_on();
                }
            }
            assert!(!crew.hired.is_empty());
            crew.finish().unwrap();
            assert!(numbers(&text).into_iter().eq(1..=3000), "{others} others");
            let state = crew.shared.lock();
            assert_eq!((state.on_the_way, state.bytes, state.queue.len(), state.texts.len()), (0, 0, 0, 0));
            let kept = state.spare_batches.len() + state.spare_texts.len();
            assert!(kept <= 2 * (crew.limit + 1), "{kept} batches and texts are kept");
        }
    }

    #[test]
    fn for_a_little_nobody_is_hired() {
        let (mut crew, text) = crew(usize::MAX, 7);
        (1..=100).for_each(|number| give(&mut crew, number, 10));
        assert!(crew.hired.is_empty());
        crew.finish().unwrap();
        assert!(crew.hired.is_empty() && numbers(&text).into_iter().eq(1..=100));
        let (mut idle, text) = self::crew(usize::MAX, 7);
        idle.finish().unwrap();
        assert!(numbers(&text).is_empty());
    }

    #[test]
    fn that_nobody_reads_any_more_is_found_out_and_said_once() {
        for others in [1, 4] {
            let (mut crew, text) = crew(BATCH, others);
            let mut number = 0;
            while !crew.has_failed() {
                number += 1;
                give(&mut crew, number, 1000);
                assert!(number < 1_000_000, "nobody tells");
            }
            // What is given then is lost without a wait.
            (0..10_000).for_each(|_| give(&mut crew, 0, 1000));
            assert_eq!(crew.finish().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
            assert!(text.lock().unwrap().len() <= BATCH);
            crew.finish().unwrap();
        }
    }
}
