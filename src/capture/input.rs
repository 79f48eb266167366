//! A growing buffer over a reader: the caller looks at bytes in place, and says when it has taken
//! them.
//!
//! It reads only until the caller's request is met, so that it never waits on a pipe for bytes that
//! the caller did not ask for. It knows no format.

use super::error::{CaptureProblem, Fault, Packing, ReadResult};
use std::io::{self, Read};

/// Initial size of the buffer in bytes. It grows only for a block that does not fit.
const BUFFER: usize = 256 * 1024;

/// A reader, and the bytes read from it that the caller has not taken yet.
pub(super) struct Input {
    source: Box<dyn Read + Send>,
    packing: Option<Packing>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    taken: u64,
    kept: Option<Fault>,
}

/// Where taken bytes are in the buffer. Valid until the next `want`, `fill` or `pass`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BufferRange {
    start: usize,
    length: usize,
}

impl Input {
    pub(super) fn new(source: Box<dyn Read + Send>, packing: Option<Packing>) -> Self {
        Self { source, packing, buffer: vec![0; BUFFER], start: 0, end: 0, taken: 0, kept: None }
    }

    /// How many bytes were taken so far: the position of the next one.
    pub(super) fn position(&self) -> u64 {
        self.taken
    }

    /// How the file was compressed.
    pub(super) fn packing(&self) -> Option<Packing> {
        self.packing
    }

    /// All bytes that were read and not yet taken.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Reads until `count` bytes are in the buffer. Returns how many are: fewer than `count` only
    /// at the end of the file.
    #[inline]
    pub(super) fn want(&mut self, count: usize) -> ReadResult<usize> {
        let have = self.end.saturating_sub(self.start);
        if have >= count {
            return Ok(have);
        }
        self.read_until(count)
    }

    /// Fills the buffer, and returns whether the file ends in it. Only for plain files, because it
    /// would wait for the writer of a pipe. A read error is kept and returned once the bytes before
    /// it were taken.
    pub(super) fn fill(&mut self) -> bool {
        match self.want(BUFFER) {
            Ok(have) => have < BUFFER,
            Err(fault) => {
                self.kept = Some(fault);
                true
            }
        }
    }

    /// Takes `total` bytes, which `want` has shown to be there. Returns the range of `length` bytes
    /// that begins `from` bytes into them.
    #[inline]
    pub(super) fn take(&mut self, total: usize, from: usize, length: usize) -> BufferRange {
        let place = BufferRange { start: self.start.saturating_add(from), length };
        let total = total.min(self.end.saturating_sub(self.start));
        self.start = self.start.saturating_add(total);
        self.taken = self.taken.saturating_add(total as u64);
        place
    }

    /// The bytes of a range that was just taken.
    #[inline]
    pub(super) fn at(&self, place: BufferRange) -> &[u8] {
        let end = place.start.saturating_add(place.length);
        self.buffer.get(place.start..end).unwrap_or_default()
    }

    /// Takes `count` bytes and gives them to `sink` piece by piece, without holding all of them.
    /// Returns how many there were: fewer than `count` only at the end of the file.
    pub(super) fn pass(
        &mut self,
        count: u64,
        mut sink: impl FnMut(&[u8]) -> ReadResult<()>,
    ) -> ReadResult<u64> {
        let mut left = count;
        while left > 0 {
            let have = self.want(1)?;
            let piece = usize::try_from(left).unwrap_or(usize::MAX).min(have);
            if piece == 0 {
                break;
            }
            let place = self.take(piece, 0, piece);
            sink(self.at(place))?;
            left = left.saturating_sub(piece as u64);
        }
        Ok(count.saturating_sub(left))
    }

    /// A reader of the bytes in the buffer and then of the rest of the file.
    pub(super) fn into_reader(self) -> Box<dyn Read + Send> {
        let head = self.bytes().to_vec();
        Box::new(io::Cursor::new(head).chain(self.source))
    }

    #[cold]
    fn read_until(&mut self, count: usize) -> ReadResult<usize> {
        if let Some(fault) = self.kept.take() {
            return Err(fault);
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end = self.end.saturating_sub(self.start);
        self.start = 0;
        while self.end < count {
            if self.end == self.buffer.len() {
                // Doubled and not grown to `count` at once: a length field must not cost memory
                // before its bytes come.
                let larger = self.buffer.len().saturating_mul(2);
                self.buffer.resize(larger, 0);
            }
            let room = self.buffer.get_mut(self.end..).unwrap_or_default();
            match self.source.read(room) {
                Ok(0) => break,
                Ok(n) => self.end = self.end.saturating_add(n).min(self.buffer.len()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.fault(error)),
            }
        }
        Ok(self.end)
    }

    fn fault(&self, error: io::Error) -> Fault {
        let at = self.taken.saturating_add(self.end as u64);
        let problem = match (self.packing, error.raw_os_error(), error.kind()) {
            (None, _, _) | (_, Some(_), _) => CaptureProblem::Read(error),
            (Some(_), None, io::ErrorKind::UnexpectedEof) => CaptureProblem::PackingCut,
            (Some(_), None, io::ErrorKind::OutOfMemory) => CaptureProblem::Read(error),
            (Some(packing), None, _) => {
                CaptureProblem::PackingDamaged(format!("{packing}: {error}"))
            }
        };
        Fault::new(at, problem)
    }
}
