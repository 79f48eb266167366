//! Several captures as one: read in the order given, frame numbers going on from one to the next.

use super::error::CaptureError;
use super::pcapng::Block;
use super::reader::Reader;
use super::source::Source;
use super::{Frame, Item, Secrets};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Captures, read one after another.
///
/// Each file is opened when its turn comes, and each frame is handed out as soon as its bytes are there, so a
/// pipe can be watched while it is written. Frames borrow the reader's own buffer; nothing is allocated for
/// them and nothing copied.
///
/// An error concerns one file: what stood before it was given out, and asking again goes on with the next
/// file, if there is one.
pub struct Capture {
    waiting: VecDeque<Source>,
    current: Option<Reader>,
    frames: u64,
    bytes: Arc<AtomicU64>,
    ahead: bool,
}

impl Capture {
    /// Captures in the order they are to be read.
    pub fn new(sources: impl IntoIterator<Item = Source>) -> Self {
        Self { waiting: sources.into_iter().collect(), current: None, frames: 0, bytes: Arc::default(), ahead: false }
    }

    /// A single file, opened at once.
    ///
    /// # Errors
    /// No such file, no permission, a folder.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, CaptureError> {
        let mut capture = Self::new([Source::path(path)]);
        capture.open_next()?;
        Ok(capture)
    }

    /// A single capture from a reader (standard input, say); `name` is what errors call it. Nothing is read yet.
    pub fn from_reader(name: impl Into<String>, reader: Box<dyn Read + Send>) -> Self {
        Self::new([Source::reader(name, reader)])
    }

    /// Has compressed files unpacked ahead of their reading, by a thread of their own.
    #[must_use]
    pub fn unpacking_ahead(self, ahead: bool) -> Self {
        Self { ahead, ..self }
    }

    /// Appends one more capture.
    pub fn push(&mut self, source: Source) {
        self.waiting.push_back(source);
    }

    /// The next frame or secrets, in capture order; nothing at the end of the last file.
    ///
    /// # Errors
    /// A file that cannot be opened, is no capture, is cut or damaged. The run can go on after it.
    #[inline]
    pub fn next_item(&mut self) -> Result<Option<Item<'_>>, CaptureError> {
        let found = self.advance(true)?;
        Ok(match (found, &self.current) {
            (Some(Block::Frame(found)), Some(reader)) => Some(Item::Frame(found.frame(self.frames, reader))),
            (Some(Block::Secrets { kind, place }), Some(reader)) => {
                Some(Item::Secrets(Secrets { kind, data: reader.at(place) }))
            }
            _ => None,
        })
    }

    /// Whether the next frame can be had without waiting for whoever writes it: it was read already, or is in a plain file.
    #[must_use]
    pub fn is_at_hand(&self) -> bool {
        let reader = self.current.as_ref();
        reader.is_some_and(|reader| reader.is_at_hand() || reader.is_plain() && self.waiting.is_empty())
    }

    /// The next frame, passing over secrets.
    ///
    /// # Errors
    /// As [`next_item`](Self::next_item).
    #[inline]
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, CaptureError> {
        let found = self.advance(false)?;
        Ok(match (found, &self.current) {
            (Some(Block::Frame(found)), Some(reader)) => Some(found.frame(self.frames, reader)),
            _ => None,
        })
    }

    /// How many frames were handed out: the number of the last one.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// How many bytes were read from all files so far, as they lie on the disk (compressed ones compressed):
    /// for showing progress.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The file that is being read.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.current.as_ref().map(Reader::name)
    }

    #[inline]
    fn advance(&mut self, secrets: bool) -> Result<Option<Block>, CaptureError> {
        loop {
            let Some(reader) = &mut self.current else {
                if self.open_next()? {
                    continue;
                }
                return Ok(None);
            };
            match reader.next() {
                Ok(Some(Block::Secrets { .. })) if !secrets => {}
                Ok(Some(block)) => {
                    if let Block::Frame(_) = block {
                        self.frames = self.frames.wrapping_add(1);
                    }
                    return Ok(Some(block));
                }
                Ok(None) => self.current = None,
                Err(error) => {
                    self.current = None;
                    return Err(error);
                }
            }
        }
    }

    #[cold]
    fn open_next(&mut self) -> Result<bool, CaptureError> {
        let Some(source) = self.waiting.pop_front() else {
            return Ok(false);
        };
        let total = Arc::clone(&self.bytes);
        let count = |inner| -> Box<dyn Read + Send> { Box::new(Counted { inner, total }) };
        self.current = Some(Reader::open(source, self.ahead, count)?);
        Ok(true)
    }
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture")
            .field("file", &self.name())
            .field("waiting", &self.waiting)
            .field("frames", &self.frames)
            .finish_non_exhaustive()
    }
}

/// A reader that adds what it reads to a sum.
struct Counted {
    inner: Box<dyn Read + Send>,
    total: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.total.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}
