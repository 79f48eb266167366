//! Several threads that decode in turns, each of them printing or counting what it decoded while
//! the next one goes on.
//!
//! Decoding cannot be split up, since streams share keys, record numbers and names. So one thread
//! at a time holds the captures and the pipeline, and fills a batch with records. Then it hands the
//! captures and the pipeline to the next thread, and consumes its batch. A printer formats it, and
//! gives the text to the [`OrderedWriter`](super::ordered::OrderedWriter), which writes texts in
//! the order of their batches: byte for byte what one thread prints. The thread that decoded a
//! batch also consumes it, because the batch is in that core's cache: on another core, all the work
//! on it would cost half as much again.
//!
//! Before a thread consumes its batch, it does what the decoding thread will need soon
//! ([`Preparations`]): keystream.
//!
//! Of some messages, if that is enough, the decoding thread reads only the outline, and the tree is
//! made when the message is printed. That is more work in total, but less while other threads wait.
//! How many messages these are follows from whether anyone waited
//! ([`BatchSink::balance`](super::batch_sink::BatchSink::balance)).

use std::hint;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder, Scope};

use super::batch_sink::{BatchConsumer, BatchSink};
use super::on_panic::OnPanic;
use super::read_loop::ReadLoop;
use crate::out::Batch;
use crate::pipeline::Pipeline;
use crate::session::Preparations;

/// How often a thread checks whether it may decode before it goes to sleep. With two threads it
/// hardly ever has to wait, and ten times as many checks take 5 % more CPU time for nothing.
const SPINS: usize = 500;
/// More threads would wait to decode most of the time, and each takes several MiB.
const MOST: usize = 8;

/// Decodes captures to their end, or until the consumer fails, with at most `threads` threads.
pub(super) fn run<C: BatchConsumer>(
    read_loop: &mut ReadLoop,
    pipeline: &mut Pipeline,
    sink: &mut BatchSink<C>,
    threads: usize,
) {
    let consumer = sink.consumer.clone();
    let waiting = Arc::clone(&sink.waiting);
    let to_spawn = threads.min(MOST).saturating_sub(1);
    let preparations = Arc::<Preparations>::default();
    pipeline.set_preparations(Some(Arc::clone(&preparations)));
    let decoding = Mutex::new(Decoding { read_loop, pipeline, sink, over: false, to_spawn });
    let workers = Workers { consumer, decoding, waiting, preparations };
    thread::scope(|scope| workers.work(scope));
    let Workers { consumer, decoding, .. } = workers;
    let Decoding { pipeline, .. } = decoding.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(all_sums) = consumer.all_sums() {
        pipeline.add_totals(all_sums.totals());
    }
}

/// The state that the threads share.
struct Workers<'a, C> {
    decoding: Mutex<Decoding<'a, C>>,
    /// How many threads wait to decode.
    waiting: Arc<AtomicUsize>,
    /// Each thread works with a copy.
    consumer: C,
    /// What the decoding thread will need soon.
    preparations: Arc<Preparations>,
}

/// The state that only the decoding thread holds.
struct Decoding<'a, C> {
    read_loop: &'a mut ReadLoop,
    pipeline: &'a mut Pipeline,
    sink: &'a mut BatchSink<C>,
    over: bool,
    /// How many threads may still be spawned. One is spawned only when no thread waits to decode,
    /// so a small capture needs none.
    to_spawn: usize,
}

impl<'a, C: BatchConsumer> Workers<'a, C> {
    /// Runs each thread: it decodes a batch and consumes it, until everything is decoded.
    fn work<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) {
        let _release = OnPanic(|| self.consumer.give_up());
        let mut consumer = self.consumer.clone();
        let mut batch = Batch::default();
        let mut reader = consumer.reader();
        while let Some((number, spawn)) = self.fill(&mut batch) {
            if spawn {
                // If the system cannot start a thread, there is one fewer.
                let _ =
                    Builder::new().name("worker".into()).spawn_scoped(scope, || self.work(scope));
            }
            // The next thread is decoding now, and the sooner it has this the less others wait for
            // it.
            self.preparations.work();
            consumer.consume(number, &mut batch, &mut reader);
        }
    }

    /// Waits until this thread may decode.
    fn wait(&self) -> MutexGuard<'_, Decoding<'a, C>> {
        for _ in 0..SPINS {
            if let Ok(decoding) = self.decoding.try_lock() {
                return decoding;
            }
            hint::spin_loop();
        }
        self.decoding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until this thread may decode, and fills a batch until it is full or the input may
    /// block. Returns the batch's number, and whether another thread should be spawned to go on
    /// decoding. `None` when everything is decoded.
    fn fill(&self, batch: &mut Batch) -> Option<(u64, bool)> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let mut decoding = self.wait();
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        let decoding = &mut *decoding;
        if decoding.over {
            return None;
        }
        std::mem::swap(&mut decoding.sink.batch, batch);
        let more = decoding.read_loop.run(decoding.pipeline, decoding.sink);
        if !more || decoding.sink.consumer.has_failed() {
            decoding.pipeline.finish(decoding.sink);
            decoding.over = true;
        }
        let waited_for = self.waiting.load(Ordering::Relaxed) > 0;
        let spawn = !decoding.over && decoding.to_spawn > 0 && !waited_for;
        decoding.to_spawn -= usize::from(spawn);
        decoding.sink.balance(waited_for);
        std::mem::swap(&mut decoding.sink.batch, batch);
        decoding.sink.next += 1;
        Some((decoding.sink.next - 1, spawn))
    }
}
