//! Turns texts that hold traffic into captures: each piece of a text becomes a TCP segment between
//! the made-up ends of its connection, so that every command reads a text as it reads a capture.
//!
//! What a text looks like, the protocols know (`TextFormat`). No packet that is made here claims
//! more than the text says: there is no handshake, no acknowledgement without data, no end.

mod frames;

use std::io::{self, Read};

use crate::capture::ConvertedReader;
use crate::proto::{PROTOCOLS, TextFormat, TextReader};
use frames::FrameWriter;

/// The most bytes of a line. A longer one is read in parts.
const MAX_LINE: usize = 1 << 20;
/// How many bytes are read at once.
const READ_AT_ONCE: usize = 64 << 10;

/// The format of a text, by its first bytes.
pub fn format_of(start: &[u8]) -> Option<&'static dyn TextFormat> {
    let formats = PROTOCOLS.iter().filter_map(|protocol| protocol.text_format());
    formats.into_iter().find(|format| format.recognise(start))
}

/// Turns a text into a capture while it is read, if its first bytes are in a known format. `name`
/// is the name of its file.
pub fn convert(name: &str, start: &[u8]) -> Option<ConvertedReader> {
    let format = format_of(start)?;
    let reader = format.reader(name);
    Some(Box::new(move |text| Box::new(TextCapture::new(text, reader))))
}

/// A capture that is made of a text while it is read.
struct TextCapture {
    text: Box<dyn Read + Send>,
    reader: Box<dyn TextReader>,
    /// What was read of the text, and where the next line begins in it.
    read: Vec<u8>,
    at: usize,
    /// How far no line feed was found.
    searched: usize,
    ended: bool,
    frames: FrameWriter,
}

impl TextCapture {
    fn new(text: Box<dyn Read + Send>, reader: Box<dyn TextReader>) -> TextCapture {
        TextCapture {
            text,
            reader,
            read: Vec::new(),
            at: 0,
            searched: 0,
            ended: false,
            frames: FrameWriter::default(),
        }
    }

    /// Reads on until there is something to hand over, or the text ends.
    fn advance(&mut self) -> io::Result<()> {
        while self.frames.is_empty() && !self.ended {
            let rest = self.read.get(self.at..).unwrap_or_default();
            let found = memchr::memchr(b'\n', rest.get(self.searched..).unwrap_or_default());
            let (line, next) = match found {
                Some(place) => (self.searched + place, self.searched + place + 1),
                None if rest.len() >= MAX_LINE => (rest.len(), rest.len()),
                None => {
                    self.searched = rest.len();
                    self.fill()?;
                    continue;
                }
            };
            self.searched = 0;
            let frames = &mut self.frames;
            let line = rest.get(..line).unwrap_or(rest);
            self.reader.line(line, &mut |piece| frames.write(&piece));
            self.at += next;
        }
        Ok(())
    }

    /// Reads more of the text. At its end, its last line is taken.
    fn fill(&mut self) -> io::Result<()> {
        self.read.drain(..self.at.min(self.read.len()));
        self.at = 0;
        let have = self.read.len();
        self.read.resize(have + READ_AT_ONCE, 0);
        let count = self.text.read(self.read.get_mut(have..).unwrap_or_default());
        self.read.truncate(have + *count.as_ref().unwrap_or(&0));
        if count? == 0 {
            self.ended = true;
            let frames = &mut self.frames;
            let mut take = |piece: crate::proto::TextPiece| frames.write(&piece);
            if have > 0 {
                self.reader.line(&self.read, &mut take);
            }
            self.reader.end(&mut take);
        }
        Ok(())
    }
}

impl Read for TextCapture {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.advance()?;
        self.frames.take(buffer)
    }
}
