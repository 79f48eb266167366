//! Reads several capture files as one capture, in the order given. Frame numbers continue from file
//! to file.

use super::error::CaptureError;
use super::pcapng::Block;
use super::reader::CaptureReader;
use super::source::Source;
use super::{CaptureItem, Convert, EmbeddedSecrets, Frame};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A capture of one or more files, read one after another.
///
/// Each file is opened after the one before it was read. Each frame is returned as soon as its last
/// byte was read, so that a pipe can be followed while it is written. A frame borrows the reader's
/// buffer; nothing is allocated or copied for it.
///
/// An error concerns one file. Everything before the error was returned before it; the next call
/// continues with the next file.
pub struct Capture {
    waiting: VecDeque<Source>,
    current: Option<CaptureReader>,
    frames: u64,
    /// How many files were opened.
    files: u64,
    /// Frames that the files before the present one say were dropped.
    dropped: u64,
    /// The number of the last frame returned.
    number: u64,
    /// The number before the present file's first frame, once that frame was numbered.
    base: Option<u64>,
    /// A part of a split capture was read to its end.
    split_ended: bool,
    bytes: Arc<AtomicU64>,
    ahead: bool,
    convert: Option<Convert>,
}

impl Capture {
    /// A capture of the given files, in this order. Nothing is opened yet.
    pub fn new(sources: impl IntoIterator<Item = Source>) -> Self {
        Self {
            waiting: sources.into_iter().collect(),
            current: None,
            frames: 0,
            files: 0,
            dropped: 0,
            number: 0,
            base: None,
            split_ended: false,
            bytes: Arc::default(),
            ahead: false,
            convert: None,
        }
    }

    /// A capture of a single file, which is opened at once.
    ///
    /// ```
    /// use moulsniff::capture::{Capture, CaptureItem};
    ///
    /// let mut capture = Capture::open("captures/moul/kind_game.pcap")?;
    /// let mut bytes = 0;
    /// while let Some(item) = capture.next_item()? {
    ///     if let CaptureItem::Frame(frame) = item {
    ///         bytes += frame.data.len();
    ///     }
    /// }
    /// assert!(bytes > 0 && capture.frames() > 0);
    /// # Ok::<(), moulsniff::capture::CaptureError>(())
    /// ```
    ///
    /// # Errors
    /// The file does not exist, is a folder, or must not be read.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, CaptureError> {
        let mut capture = Self::new([Source::path(path)]);
        capture.open_next()?;
        Ok(capture)
    }

    /// A capture from a reader, such as standard input; `name` is its name in errors. Nothing is
    /// read yet.
    pub fn from_reader(name: impl Into<String>, reader: Box<dyn Read + Send>) -> Self {
        Self::new([Source::reader(name, reader)])
    }

    /// With `ahead`, a thread of its own decompresses each compressed file ahead of its reading.
    #[must_use]
    pub fn unpacking_ahead(self, ahead: bool) -> Self {
        Self { ahead, ..self }
    }

    /// Files that are texts in a format that `convert` knows are read, too.
    #[must_use]
    pub fn converting(mut self, convert: Convert) -> Self {
        self.convert = Some(convert);
        if let Some(reader) = &mut self.current {
            reader.convert_with(convert);
        }
        self
    }

    /// Adds a file at the end.
    pub fn push(&mut self, source: Source) {
        self.waiting.push_back(source);
    }

    /// The next frame or secrets, in capture order; `None` at the end of the last file.
    ///
    /// # Errors
    /// A file cannot be opened, is not a capture, is cut or is damaged. The next call continues
    /// with the next file.
    #[inline]
    pub fn next_item(&mut self) -> Result<Option<CaptureItem<'_>>, CaptureError> {
        let found = self.advance(true)?;
        Ok(match (found, &self.current) {
            (Some(Block::Frame(found)), Some(reader)) => {
                Some(CaptureItem::Frame(found.frame(self.number, reader)))
            }
            (Some(Block::Secrets { kind, place }), Some(reader)) => {
                Some(CaptureItem::Secrets(EmbeddedSecrets { kind, data: reader.at(place) }))
            }
            _ => None,
        })
    }

    /// Whether the next frame can be returned without waiting for a writer: it is in the buffer, or
    /// the file is plain.
    #[must_use]
    pub fn is_at_hand(&self) -> bool {
        let reader = self.current.as_ref();
        reader.is_some_and(|reader| {
            reader.is_at_hand() || reader.is_plain() && self.waiting.is_empty()
        })
    }

    /// The next frame. Secrets are skipped.
    ///
    /// # Errors
    /// As [`next_item`](Self::next_item).
    #[inline]
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, CaptureError> {
        let found = self.advance(false)?;
        Ok(match (found, &self.current) {
            (Some(Block::Frame(found)), Some(reader)) => Some(found.frame(self.number, reader)),
            _ => None,
        })
    }

    /// How many frames were returned.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// How many files were opened.
    #[must_use]
    pub fn files(&self) -> u64 {
        self.files
    }

    /// How many frames the program that captured says it dropped, in the files read so far.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped + self.current.as_ref().map_or(0, CaptureReader::dropped)
    }

    /// How many bytes were read from all files so far, before decompression, for showing progress.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The name of the file that is being read.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.current.as_ref().map(CaptureReader::name)
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
                    if let Block::Frame(found) = block {
                        self.frames = self.frames.wrapping_add(1);
                        self.number = self.next_number(found.number);
                    }
                    return Ok(Some(block));
                }
                Ok(None) => {
                    let total = reader.split_total();
                    self.dropped += reader.dropped();
                    self.current = None;
                    self.end_file(total);
                }
                Err(error) => {
                    self.dropped += reader.dropped();
                    self.current = None;
                    return Err(error);
                }
            }
        }
    }

    /// Ends a file. `total`, where it is a part of a split, is the number of frames of the capture
    /// it was split from: the next file's frames come behind all of these.
    fn end_file(&mut self, total: Option<u64>) {
        if let Some(total) = total {
            self.number = self.base.unwrap_or(self.number).saturating_add(total).max(self.number);
            self.split_ended = true;
        }
    }

    /// The number of the next frame, which is the `stated`-th of the capture it was split from
    /// where the file says so. After a file that stated the size of that capture, and where a
    /// file's first number goes back, captures were split one by one, and the file's numbers
    /// continue after the last one.
    #[inline]
    fn next_number(&mut self, stated: Option<u64>) -> u64 {
        let last = self.number;
        let Some(stated) = stated else { return last.wrapping_add(1) };
        let goes_on = stated > last && !self.split_ended;
        let base = *self.base.get_or_insert(if goes_on { 0 } else { last });
        base.saturating_add(stated)
    }

    #[cold]
    fn open_next(&mut self) -> Result<bool, CaptureError> {
        let Some(source) = self.waiting.pop_front() else {
            return Ok(false);
        };
        let total = Arc::clone(&self.bytes);
        let count = |inner| -> Box<dyn Read + Send> { Box::new(Counted { inner, total }) };
        self.base = None;
        self.files += 1;
        self.current = Some(CaptureReader::open(source, self.ahead, self.convert, count)?);
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

/// A reader that counts the bytes read.
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
