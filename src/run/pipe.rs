//! Reads standard input or a named pipe, and ends when a signal asks for it.
//!
//! Reading a pipe blocks until bytes come, opening one blocks until there is a writer, and a signal
//! interrupts neither. So a separate thread opens and reads, and the reader waits for that thread
//! while it checks for the signal.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::Builder;
use std::time::Duration;

use super::interrupt::Interrupt;

/// How many bytes are read at once, and how many such pieces may wait.
const PIECE: usize = 64 << 10;
const WAITING: usize = 4;
/// How often the signal is checked while no bytes come.
const LOOK: Duration = Duration::from_millis(50);

/// A pipe up to its end, or to the moment when a signal asks for the end.
pub(super) struct Pipe {
    pieces: Receiver<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    at: usize,
    interrupt: Interrupt,
}

impl Pipe {
    /// Calls `open` and reads the result on a separate thread, which ends with the input or with
    /// the program.
    ///
    /// # Errors
    /// If the system cannot start a thread. A failure of `open` is an error of the first read.
    pub(super) fn new<R: Read>(
        open: impl FnOnce() -> io::Result<R> + Send + 'static,
        interrupt: Interrupt,
    ) -> io::Result<Pipe> {
        let (to, pieces) = sync_channel(WAITING);
        Builder::new().name("pipe".into()).spawn(move || {
            let mut input = match open() {
                Ok(input) => input,
                // If there is no receiver, the run has ended.
                Err(error) => return to.send(Err(error)).unwrap_or_default(),
            };
            loop {
                let mut piece = vec![0; PIECE];
                let read = input.read(&mut piece).map(|length| {
                    piece.truncate(length);
                    piece
                });
                // An empty piece is the end of the input.
                let over = read
                    .as_ref()
                    .map_or_else(|e| e.kind() != io::ErrorKind::Interrupted, Vec::is_empty);
                if to.send(read).is_err() || over {
                    return;
                }
            }
        })?;
        Ok(Pipe { pieces, piece: Vec::new(), at: 0, interrupt })
    }

    /// Waits for the next piece; an empty one is the end.
    fn next(&mut self) -> io::Result<Vec<u8>> {
        loop {
            match self.pieces.recv_timeout(LOOK) {
                Ok(piece) => return piece,
                Err(RecvTimeoutError::Disconnected) => return Ok(Vec::new()),
                Err(RecvTimeoutError::Timeout) if self.interrupt.is_requested() => {
                    return Ok(Vec::new());
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

impl Read for Pipe {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.piece.len() {
            self.piece = self.next()?;
            self.at = 0;
        }
        let rest = self.piece.get(self.at..).unwrap_or(&[]);
        let length = rest.len().min(to.len());
        if let (Some(to), Some(from)) = (to.get_mut(..length), rest.get(..length)) {
            to.copy_from_slice(from);
        }
        self.at += length;
        Ok(length)
    }
}
