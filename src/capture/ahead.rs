//! A reader that works ahead on a thread of its own: for what costs time to read, which unpacking does and nothing else here.
//!
//! What comes out is what the reader within gives, piece by piece as it gives it, errors in their place. It knows no format.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Bytes of a piece, at most.
const PIECE: usize = 256 * 1024;
/// Pieces that are ready and not yet taken, at most.
const READY: usize = 2;

/// A piece: a buffer, and how much of it was filled: nothing at the end.
type Piece = (Vec<u8>, usize);

/// Takes from a thread what that reads.
struct Ahead {
    pieces: Receiver<io::Result<Piece>>,
    /// Where buffers go back to, to be filled again.
    empty: SyncSender<Vec<u8>>,
    piece: Piece,
    taken: usize,
    over: bool,
}

/// Reads ahead of whoever takes; where the system has no thread to give, the reader itself.
pub(super) fn read_ahead(reader: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
    let (give, pieces) = sync_channel(READY);
    let (empty, emptied) = sync_channel(READY + 2);
    // The reader follows once the thread is there: else it would be lost with it.
    let (start, started) = sync_channel::<Box<dyn Read + Send>>(1);
    let work = move || {
        if let Ok(reader) = started.recv() {
            fill(reader, &give, &emptied);
        }
    };
    if thread::Builder::new().name("reader".into()).spawn(work).is_err() {
        return reader;
    }
    match start.send(reader) {
        Ok(()) => Box::new(Ahead { pieces, empty, piece: (vec![0; PIECE], 0), taken: 0, over: false }),
        Err(back) => back.0,
    }
}

/// Fills buffers until the end, an error, or until nobody takes them any more.
fn fill(mut reader: Box<dyn Read + Send>, give: &SyncSender<io::Result<Piece>>, emptied: &Receiver<Vec<u8>>) {
    loop {
        let mut buffer = emptied.try_recv().unwrap_or_else(|_| vec![0; PIECE]);
        let piece = match reader.read(&mut buffer) {
            Ok(length) => Ok((buffer, length)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let last = !matches!(piece, Ok((_, 1..)));
        if give.send(piece).is_err() || last {
            return;
        }
    }
}

impl Read for Ahead {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.piece.1 {
            if self.over {
                return Ok(0);
            }
            self.over = true;
            let next = self.pieces.recv().map_err(|_| io::Error::other("the thread that unpacks is gone"))??;
            self.over = next.1 == 0;
            self.taken = 0;
            let (emptied, _) = std::mem::replace(&mut self.piece, next);
            let _ = self.empty.try_send(emptied);
        }
        let ready = self.piece.0.get(self.taken..self.piece.1).unwrap_or(&[]);
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
    use std::time::Duration;

    /// Gives pieces of some lengths, then an error.
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
        let all: usize = lengths.iter().map(|length| length.min(&PIECE)).sum();
        let mut out = Vec::new();
        let mut ahead = read_ahead(Box::new(Uneven(lengths, 0)));
        assert_eq!(ahead.read_to_end(&mut out).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(out.len(), all);
        assert!(out.iter().zip(1u64..).all(|(byte, n)| u64::from(*byte) == n % 256));
        assert_eq!(ahead.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn nobody_waits_for_a_piece_to_be_full_nor_for_one_who_has_left() {
        /// Gives a byte, then waits as long as the other end of the channel is held.
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
        let mut ahead = read_ahead(Box::new(Slow(take)));
        for byte in 1..=9 {
            give.send(byte).unwrap();
            let mut out = [0; 10];
            assert_eq!((ahead.read(&mut out).unwrap(), out[0]), (1, byte));
        }
        drop(ahead);
        // The thread finds out at the next pieces, and lets go of its reader.
        let gone = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            give.try_send(1).is_err_and(|e| matches!(e, std::sync::mpsc::TrySendError::Disconnected(_)))
        });
        assert!(gone);
    }
}
