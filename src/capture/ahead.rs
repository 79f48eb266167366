//! A reader that reads ahead on a thread of its own. Used for decompression, the only reading here
//! that costs CPU time.
//!
//! It returns exactly what the inner reader returns, chunk by chunk, with errors at their place. It
//! knows no format.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// The most bytes in one chunk.
const CHUNK: usize = 256 * 1024;
/// The most chunks that are read and not yet taken.
const READY: usize = 2;

/// A buffer and how many of its bytes were filled: 0 at the end of the data.
type Chunk = (Vec<u8>, usize);

/// The reading end: takes chunks that the thread has filled.
struct Ahead {
    chunks: Receiver<io::Result<Chunk>>,
    /// Returns empty buffers to the thread for reuse.
    empty: SyncSender<Vec<u8>>,
    chunk: Chunk,
    taken: usize,
    over: bool,
    /// The thread, if the end of this reader waits for it.
    thread: Option<JoinHandle<()>>,
}

/// Moves `reader` to a thread that reads ahead. Returns `reader` itself if the system cannot start
/// a thread. With `wait`, dropping the returned reader waits until the thread has freed its memory:
/// for a reader that never waits for input, so that the next file finds the memory free.
pub(super) fn read_ahead(reader: Box<dyn Read + Send>, wait: bool) -> Box<dyn Read + Send> {
    let (give, chunks) = sync_channel(READY);
    let (empty, emptied) = sync_channel(READY + 2);
    // The reader is sent to the thread after it has started: a failing `spawn` drops its closure,
    // and the reader with it.
    let (start, started) = sync_channel::<Box<dyn Read + Send>>(1);
    let work = move || {
        if let Ok(reader) = started.recv() {
            fill(reader, &give, &emptied);
        }
    };
    let Ok(thread) = thread::Builder::new().name("reader".into()).spawn(work) else {
        return reader;
    };
    if let Err(back) = start.send(reader) {
        return back.0;
    }
    let chunk = (vec![0; CHUNK], 0);
    let thread = wait.then_some(thread);
    Box::new(Ahead { chunks, empty, chunk, taken: 0, over: false, thread })
}

/// Fills buffers until the data ends, an error occurs, or the reading end is dropped.
fn fill(
    mut reader: Box<dyn Read + Send>,
    give: &SyncSender<io::Result<Chunk>>,
    emptied: &Receiver<Vec<u8>>,
) {
    loop {
        let mut buffer = emptied.try_recv().unwrap_or_else(|_| vec![0; CHUNK]);
        let chunk = match reader.read(&mut buffer) {
            Ok(length) => Ok((buffer, length)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let last = !matches!(chunk, Ok((_, 1..)));
        if give.send(chunk).is_err() || last {
            return;
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            // Without a receiver the thread ends with its next chunk.
            self.chunks = sync_channel(0).1;
            // A panic of the thread was already reported as an error of reading.
            let _ = thread.join();
        }
    }
}

impl Read for Ahead {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.chunk.1 {
            if self.over {
                return Ok(0);
            }
            self.over = true;
            let next = self
                .chunks
                .recv()
                .map_err(|_| io::Error::other("the thread that unpacks is gone"))??;
            self.over = next.1 == 0;
            self.taken = 0;
            let (emptied, _) = std::mem::replace(&mut self.chunk, next);
            let _ = self.empty.try_send(emptied);
        }
        let ready = self.chunk.0.get(self.taken..self.chunk.1).unwrap_or(&[]);
        let count = ready.len().min(out.len());
        let (now, _) = ready.split_at(count);
        if let Some(out) = out.get_mut(..count) {
            out.copy_from_slice(now);
        }
        self.taken += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;

    /// Returns chunks of the given lengths (last one first), then an error.
    struct Uneven(Vec<usize>, u8);

    impl Read for Uneven {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let Some(length) = self.0.pop() else { return Err(io::ErrorKind::InvalidData.into()) };
            let length = length.min(out.len());
            out[..length].fill_with(|| {
                self.1 = self.1.wrapping_add(1);
                self.1
            });
            Ok(length)
        }
    }

    #[test]
    fn everything_comes_out_in_order_and_the_error_last() {
        let lengths: Vec<usize> = (1..200).map(|n| n * 7919 % 300_000 + 1).collect();
        let all: usize = lengths.iter().map(|length| length.min(&CHUNK)).sum();
        let mut out = Vec::new();
        let mut ahead = read_ahead(Box::new(Uneven(lengths, 0)), true);
        assert_eq!(ahead.read_to_end(&mut out).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(out.len(), all);
        assert!(out.iter().zip(1u64..).all(|(byte, n)| u64::from(*byte) == n % 256));
        assert_eq!(ahead.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn bytes_come_out_before_a_chunk_is_full_and_the_thread_ends_with_its_reader() {
        /// Returns one byte at a time, as the channel delivers them.
        struct Slow(Receiver<u8>);
        impl Read for Slow {
            fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
                self.0.recv().map_or(Ok(0), |byte| {
                    out[0] = byte;
                    Ok(1)
                })
            }
        }
        let (give, take) = sync_channel(1);
        let mut ahead = read_ahead(Box::new(Slow(take)), false);
        for byte in 1..=9 {
            give.send(byte).unwrap();
            let mut out = [0; 10];
            assert_eq!((ahead.read(&mut out).unwrap(), out[0]), (1, byte));
        }
        drop(ahead);
        // The thread notices at one of the next chunks and drops its reader.
        let gone = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            give.try_send(1)
                .is_err_and(|e| matches!(e, std::sync::mpsc::TrySendError::Disconnected(_)))
        });
        assert!(gone);
    }

    #[test]
    fn with_wait_the_inner_reader_is_gone_once_the_outer_one_is() {
        struct Endless(Arc<()>);
        impl Read for Endless {
            fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
                // Held by this reader and by the test.
                assert_eq!(Arc::strong_count(&self.0), 2);
                Ok(out.len().min(1000))
            }
        }
        let held = Arc::new(());
        for _ in 0..20 {
            let mut ahead = read_ahead(Box::new(Endless(Arc::clone(&held))), true);
            assert_eq!(ahead.read(&mut [0; 10]).unwrap(), 10);
            drop(ahead);
            assert_eq!(Arc::strong_count(&held), 1);
        }
    }
}
