//! A crew: threads that take turns at decoding, each of them writing what it decoded itself while the next one goes on.
//!
//! Decoding cannot be shared out, since streams share keys, numbers and names: one thread at a time has the captures and the pipeline, and
//! fills a batch with records. Then it lets the next one have them, makes text of its batch, and brings that to the outlet, which puts
//! texts in order: what comes out is byte for byte what one thread prints. A batch is written by who decoded it because it lies in that
//! core's cache: handed to another core, it would cost half as much again as all the work on it.
//!
//! While somebody waits for a turn, whoever decodes makes haste: of messages that need no more, only an outline is read, and the rest of
//! the work on them is done when they are written. It is more work in all, and nobody is idle.

use std::hint;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder, Scope};

use super::feed::Feed;
use super::form::Form;
use super::outlet::Outlet;
use super::sink::Printer;
use super::turn::Turns;
use crate::out::tree::Annotator;
use crate::out::{Batch, Body, Outlined, Reader, Record};
use crate::pipeline::{Pipeline, Setup};
use crate::proto::LazyTables;
use crate::table::MessageLimits;
use crate::tree::Tree;

/// Bytes of records in a batch: enough that taking turns costs little beside it, since what decoding works with moves to another core;
/// and little enough to stay in a core's cache until it is written. Measured on two cores with 2 MiB of cache each, 45 MB of game
/// traffic to JSON: 0.56 s with batches of 256 KiB, 0.47 with 512, 0.44 with 768 and with 1024, 0.57 with 2048; 0.70 with one thread.
const BATCH: usize = 768 << 10;
/// One frame may complete many records, where it closes a gap. A batch that has grown so far is written before there are more.
const OVERFULL: usize = 4 << 20;
/// Bytes that each part of a batch, and a text, keep for the next one.
const KEEP: usize = 1 << 20;
pub(super) const KEEP_TEXT: usize = 2 << 20;
/// How often to look whether it is one's turn before going to sleep: a turn takes 0.3 ms, and to be woken takes a good part of that. Game
/// traffic to JSON with two threads: 1.06 s without, 0.96 s with so many (about 0.1 ms), for 0.1 s of CPU time more.
const SPINS: usize = 5000;
/// More threads would wait for their turn most of the time, and each takes some MiB.
const MOST: usize = 8;

/// Decodes captures to their end, or until nobody reads what is printed.
pub(super) fn run<W: Write + Send>(feed: &mut Feed, pipeline: &mut Pipeline<Printer<W>>, threads: usize) {
    let Some(gather) = pipeline.output().gather() else { return };
    let (hands, outlet, waiting) = (gather.hands.clone(), Arc::clone(&gather.outlet), Arc::clone(&gather.waiting));
    let crew = Crew {
        outlet,
        hands,
        decoding: Mutex::new(Decoding { feed, pipeline, over: false, to_hire: threads.min(MOST).saturating_sub(1) }),
        waiting,
    };
    thread::scope(|scope| crew.work(scope));
}

/// What the crew shares.
struct Crew<'a, W: Write> {
    decoding: Mutex<Decoding<'a, W>>,
    /// How many wait for their turn at it.
    waiting: Arc<AtomicUsize>,
    outlet: Arc<Outlet<W>>,
    /// What everybody gets to write with.
    hands: Hands,
}

struct Decoding<'a, W: Write> {
    feed: &'a mut Feed,
    pipeline: &'a mut Pipeline<Printer<W>>,
    over: bool,
    /// How many threads there may be yet. They are hired when decoding would stand still: a small capture needs none.
    to_hire: usize,
}

impl<'a, W: Write + Send> Crew<'a, W> {
    /// What each of the crew does until all is decoded: a turn at decoding, then writing.
    fn work<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        let _watch = Watch(self);
        let mut hands = self.hands.clone();
        let (mut batch, mut reader, mut text) = (Batch::default(), Reader::new(self.hands.limits), Vec::new());
        while let Some((number, hire)) = self.fill(&mut batch) {
            if hire {
                // Where the system has no thread to give, there is one fewer.
                let _ = Builder::new().name("crew".into()).spawn_scoped(scope, || self.work(scope));
            }
            hands.write(number, &mut batch, &mut reader, &mut text);
            text = self.outlet.put(number, text);
        }
    }

    /// Waits for a turn at decoding.
    fn turn(&self) -> MutexGuard<'_, Decoding<'a, W>> {
        for _ in 0..SPINS {
            if let Ok(turn) = self.decoding.try_lock() {
                return turn;
            }
            hint::spin_loop();
        }
        self.decoding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn at decoding and fills a batch: until it is full, or may have to wait for input. Gives its number, and whether
    /// another thread should be hired to go on; nothing when all is decoded.
    fn fill(&self, batch: &mut Batch) -> Option<(u64, bool)> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let mut turn = self.turn();
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        let turn = &mut *turn;
        if turn.over {
            return None;
        }
        std::mem::swap(&mut turn.pipeline.output().gather()?.batch, batch);
        let more = turn.feed.run(turn.pipeline, |printer, waits| {
            printer.is_done() || printer.gather().is_none_or(|gather| gather.is_enough(waits))
        });
        if !more || self.outlet.has_failed() {
            turn.pipeline.finish();
            turn.over = true;
        }
        let hire = !turn.over && turn.to_hire > 0 && self.waiting.load(Ordering::Relaxed) == 0;
        turn.to_hire -= usize::from(hire);
        let gather = turn.pipeline.output().gather()?;
        std::mem::swap(&mut gather.batch, batch);
        gather.next += 1;
        Some((gather.next - 1, hire))
    }
}

/// What records become text with.
#[derive(Clone)]
struct Hands {
    form: Form,
    tables: Arc<[LazyTables]>,
    /// The bounds of each message.
    limits: MessageLimits,
    /// What trees have to know of the records before, which goes from batch to batch.
    history: Option<Arc<Turns<Annotator>>>,
}

impl Hands {
    /// Makes text of a batch, and empties it.
    fn write(&mut self, number: u64, batch: &mut Batch, reader: &mut Reader, text: &mut Vec<u8>) {
        if let Some(history) = &self.history {
            batch.read(&self.tables, reader);
            history.take(number, |history| batch.remember(&self.tables, reader, history));
        }
        batch.each(&self.tables, reader, |record, annotations| self.form.record(record, annotations, text));
        if batch.bytes() > OVERFULL {
            *reader = Reader::new(self.limits);
        }
        batch.clear(KEEP);
    }
}

/// Where the pipeline's records go: into the batch of whose turn it is.
pub(super) struct Gather<W> {
    batch: Batch,
    /// The number of its text.
    next: u64,
    outlet: Arc<Outlet<W>>,
    hands: Hands,
    waiting: Arc<AtomicUsize>,
}

impl<W: Write> Gather<W> {
    /// Nothing yet.
    pub(super) fn new(form: Form, setup: &Setup, to: W) -> Self {
        let outlet = Arc::new(Outlet::new(to));
        let history = form.wants_annotations().then(|| Arc::new(Turns::new(Annotator::default())));
        let (tables, limits) = (Arc::clone(&setup.tables), setup.options.limits());
        let (hands, waiting) = (Hands { form, tables, limits, history }, Arc::default());
        Gather { batch: Batch::default(), next: 0, outlet, hands, waiting }
    }

    /// Whether somebody waits to decode.
    pub(super) fn makes_haste(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Takes a record.
    pub(super) fn record(&mut self, record: &Record<'_>) {
        self.batch.push(record);
        if !matches!(record.body, Body::Message { .. }) {
            self.write_overfull();
        }
    }

    /// Takes the tree of the message that was the last record.
    pub(super) fn take(&mut self, tree: &mut Tree) {
        self.batch.take(tree);
        self.write_overfull();
    }

    /// Takes a message in outline.
    pub(super) fn outline(&mut self, record: &Record<'_, Outlined<'_>>) {
        self.batch.outline(record);
        self.write_overfull();
    }

    fn write_overfull(&mut self) {
        if self.batch.bytes() >= OVERFULL {
            let mut text = Vec::new();
            let mut reader = Reader::new(self.hands.limits);
            self.hands.write(self.next, &mut self.batch, &mut reader, &mut text);
            self.outlet.put(self.next, text);
            self.next += 1;
        }
    }

    /// Whether there is enough to write; before a wait, anything is.
    fn is_enough(&self, waits: bool) -> bool {
        self.batch.bytes() >= BATCH || waits && !self.batch.is_empty()
    }

    /// Whether writing failed: nothing more will go out.
    pub(super) fn has_failed(&self) -> bool {
        self.outlet.has_failed()
    }

    /// What went wrong while writing.
    pub(super) fn take_error(&self) -> Option<io::Error> {
        self.outlet.take_error()
    }
}

/// Sees to it that nobody waits for one of the crew who is no more: a fault of the program, said instead of a wait without end.
struct Watch<'a, 'c, W: Write>(&'a Crew<'c, W>);

impl<W: Write> Drop for Watch<'_, '_, W> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.outlet.fail(io::Error::other("one of the threads came to an end too early"));
            if let Some(history) = &self.0.hands.history {
                history.end();
            }
        }
    }
}
