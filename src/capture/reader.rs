//! Reads one capture file or pipe: finds out its format by its first bytes, and returns its blocks
//! one by one.
//!
//! It does not number frames; `run` does, across files.

use super::ahead::read_ahead;
use super::error::{CaptureError, CaptureProblem, Fault, ReadResult};
use super::input::{BufferRange, Input};
use super::pcap::{FoundFrame, Pcap, is_pcap};
use super::pcapng::{Block, Pcapng, SECTION};
use super::source::{Opened, Source};
use super::unpack::{packing_of, unpack};
use super::{Convert, ConvertedReader};
use std::io::Read;

/// How many bytes an error shows of a file that is not a capture: those that say its format, and no
/// more, since it may be a key.
const MAGIC_BYTES: usize = 4;

/// How many bytes have to be text in a file that is taken for text.
const TEXT_BYTES: usize = 16;

/// The most bytes of a text that are looked at for its format.
const MAX_TEXT_START: usize = 4096;

/// How many bytes of a text are looked at for what kind of text it is.
const KIND_BYTES: usize = 256;

/// Where a tar archive names its format.
const TAR_AT: usize = 257;

/// Whether a file that begins with these four bytes can be a capture, packed ones included.
pub fn is_magic(start: [u8; 4]) -> bool {
    start == SECTION.to_be_bytes() || is_pcap(&start) || packing_of(&start).is_some()
}

/// A capture being read.
pub(super) struct CaptureReader {
    name: String,
    plain: bool,
    ahead: bool,
    convert: Option<Convert>,
    input: Input,
    format: FileFormat,
}

#[derive(Clone, Debug)]
pub(super) enum FileFormat {
    /// Nothing was read yet.
    Unknown,
    Pcap(Pcap),
    Pcapng(Pcapng),
}

impl CaptureReader {
    /// Opens a source without reading from it. `count` wraps the opened reader, to count its bytes.
    /// With `ahead`, a compressed file is decompressed by a thread of its own. `convert` turns
    /// texts into captures.
    pub(super) fn open(
        source: Source,
        ahead: bool,
        convert: Option<Convert>,
        count: impl FnOnce(Box<dyn Read + Send>) -> Box<dyn Read + Send>,
    ) -> Result<Self, CaptureError> {
        let Opened { name, reader, plain } = source.open()?;
        Ok(Self {
            name,
            plain,
            ahead,
            convert,
            input: Input::new(count(reader), None),
            format: FileFormat::Unknown,
        })
    }

    /// Turns a text into a capture, if nothing was read of it yet.
    pub(super) fn convert_with(&mut self, convert: Convert) {
        self.convert = Some(convert);
    }

    /// The file's name in errors.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// How many frames the capture has that this file is a part of. Files state it at their end.
    pub(super) fn split_total(&self) -> Option<u64> {
        match &self.format {
            FileFormat::Pcapng(pcapng) => pcapng.split_total(),
            FileFormat::Unknown | FileFormat::Pcap(_) => None,
        }
    }

    /// How many frames were dropped when it was captured, as far as it says so.
    pub(super) fn dropped(&self) -> u64 {
        match &self.format {
            FileFormat::Pcapng(pcapng) => pcapng.dropped(),
            FileFormat::Unknown | FileFormat::Pcap(_) => 0,
        }
    }

    /// Whether it is a plain file, so that reading never waits for a writer.
    pub(super) fn is_plain(&self) -> bool {
        self.plain
    }

    /// Whether the next frame is in the buffer already.
    pub(super) fn is_at_hand(&self) -> bool {
        match &self.format {
            FileFormat::Pcapng(pcapng) => pcapng.is_at_hand(self.input.bytes()),
            FileFormat::Pcap(pcap) => pcap.is_at_hand(self.input.bytes()),
            FileFormat::Unknown => false,
        }
    }

    /// Takes the next frame or secrets; `None` at the end of the file.
    ///
    /// # Errors
    /// Whatever is wrong with the file. Everything before the position of the error was returned
    /// before it.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<Block>, CaptureError> {
        self.step().map_err(|fault| self.error(fault))
    }

    #[inline]
    fn step(&mut self) -> ReadResult<Option<Block>> {
        match &mut self.format {
            FileFormat::Pcapng(pcapng) => return pcapng.next(&mut self.input),
            FileFormat::Pcap(pcap) => {
                return pcap.next(&mut self.input).map(|f| f.map(Block::Frame));
            }
            FileFormat::Unknown => {}
        }
        self.begin()?;
        match &mut self.format {
            FileFormat::Pcapng(pcapng) => pcapng.next(&mut self.input),
            FileFormat::Pcap(pcap) => pcap.next(&mut self.input).map(|f| f.map(Block::Frame)),
            FileFormat::Unknown => Ok(None),
        }
    }

    /// Finds out the format and reads the file's header.
    pub(super) fn begin(&mut self) -> ReadResult<&mut FileFormat> {
        self.input.want(4)?;
        if let Some(packing) = packing_of(self.input.bytes()) {
            let nothing = Input::new(Box::new(std::io::empty()), None);
            let packed = std::mem::replace(&mut self.input, nothing).into_reader();
            let unpacked = unpack(packing, packed);
            let unpacked = if self.ahead { read_ahead(unpacked, self.plain) } else { unpacked };
            self.input = Input::new(unpacked, Some(packing));
            self.input.want(4)?;
        }
        if let Some(convert) = self.find_converter()? {
            let packing = self.input.packing();
            let nothing = Input::new(Box::new(std::io::empty()), None);
            let text = std::mem::replace(&mut self.input, nothing).into_reader();
            self.input = Input::new(convert(text), packing);
            self.input.want(4)?;
        }
        self.format = if self.input.bytes().starts_with(&SECTION.to_be_bytes()) {
            FileFormat::Pcapng(Pcapng::new())
        } else if is_pcap(self.input.bytes()) {
            FileFormat::Pcap(Pcap::open(&mut self.input, self.plain)?)
        } else {
            return Err(self.no_capture());
        };
        Ok(&mut self.format)
    }

    /// What turns this file into a capture, if it is a text in a known format. Of a pipe no more is
    /// read than is needed to tell.
    fn find_converter(&mut self) -> ReadResult<Option<ConvertedReader>> {
        let Some(convert) = self.convert else { return Ok(None) };
        let bytes = self.input.bytes();
        if bytes.starts_with(&SECTION.to_be_bytes()) || is_pcap(bytes) {
            return Ok(None);
        }
        loop {
            let bytes = self.input.bytes();
            let have = bytes.len();
            let start = bytes.get(..MAX_TEXT_START).unwrap_or(bytes);
            if let Some(found) = convert(&self.name, start) {
                return Ok(Some(found));
            }
            let no_text = std::str::from_utf8(start).is_err_and(|e| e.error_len().is_some());
            if no_text && !begins_as_text(start)
                || start.contains(&0)
                || have >= MAX_TEXT_START
                || self.input.want(have + 1)? == have
            {
                return Ok(None);
            }
        }
    }

    fn no_capture(&mut self) -> Fault {
        let bytes = self.input.bytes();
        if bytes.is_empty() {
            return Fault::new(0, CaptureProblem::Empty);
        }
        // A text may be a key.
        let shown = if begins_as_text(bytes) { 0 } else { MAGIC_BYTES };
        let first = bytes.get(..shown).unwrap_or(bytes).to_vec();
        Fault::new(0, CaptureProblem::NotACapture { first, looks_like: looks_like(bytes) })
    }

    /// The bytes of a range that was just returned.
    #[inline]
    pub(super) fn at(&self, place: BufferRange) -> &[u8] {
        self.input.at(place)
    }

    /// The input and its format, for copying blocks.
    pub(super) fn parts(&mut self) -> (&mut Input, &mut FileFormat) {
        (&mut self.input, &mut self.format)
    }

    /// Adds this file's name to a fault.
    #[cold]
    pub(super) fn error(&self, fault: Fault) -> CaptureError {
        CaptureError::new(&self.name, self.input.packing(), fault.at, fault.problem)
    }
}

/// What a file that is not a capture may be, by its first bytes.
fn looks_like(first: &[u8]) -> Option<&'static str> {
    Some(match first {
        [0x0a, 0x0d, 0x0d] | [0xd4, 0xc3, 0xb2] | [0xa1, 0xb2, _] => {
            "a capture cut in its first bytes"
        }
        [b'B', b'Z', b'h', ..] => "bzip2, which must be unpacked first",
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "xz, which must be unpacked first",
        [0x04, 0x22, 0x4d, 0x18, ..] => "lz4, which must be unpacked first",
        [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] => "something compressed twice",
        [b'P', b'K', 3, 4, ..] => "a zip archive",
        [b's', b'n', b'o', b'o', b'p', 0, ..] => "a snoop capture",
        [b'G', b'M', b'B', b'U', ..] | [b'R', b'T', b'S', b'S', ..] => "a Network Monitor capture",
        [0x7f, b'E', b'L', b'F', ..] => "a program",
        _ if first.get(TAR_AT..).is_some_and(|rest| rest.starts_with(b"ustar")) => {
            "a tar archive, which must be unpacked first"
        }
        _ if is_event_trace(first) => {
            "a Windows event trace, which `etl2pcapng` converts if it holds packets"
        }
        _ => text_like(first)?,
    })
}

/// What a text may be.
fn text_like(first: &[u8]) -> Option<&'static str> {
    if !begins_as_text(first) {
        return None;
    }
    let first = first.get(..KIND_BYTES).unwrap_or(first);
    let has = |word: &[u8]| memchr::memmem::find(first, word).is_some();
    Some(if first.starts_with(b"[{'type': ") {
        "a log of Hippolyzer, whose messages are no datagrams any more"
    } else if first.trim_ascii_start().starts_with(b"{") && has(b"\"log\"") && has(b"\"version\"") {
        "an HTTP archive (HAR), which holds no packets"
    } else {
        "text"
    })
}

/// Whether the bytes begin like a file of Windows' event tracing: a buffer's header of 72 bytes,
/// then that of an event: its version, its type and flags.
fn is_event_trace(first: &[u8]) -> bool {
    matches!(first.get(72..76), Some([1 | 2, 0, 1 | 2, 0xc0]))
}

/// Whether a file is taken for text.
fn begins_as_text(first: &[u8]) -> bool {
    is_text(first.get(..TEXT_BYTES).unwrap_or(first))
}

/// Whether the bytes are UTF-8 without control characters other than whitespace.
fn is_text(bytes: &[u8]) -> bool {
    // The last character may be cut.
    let valid = std::str::from_utf8(bytes).map_or_else(|e| e.error_len().is_none(), |_| true);
    valid && bytes.iter().all(|b| !b.is_ascii_control() || b.is_ascii_whitespace())
}

impl FoundFrame {
    /// The frame with its number and its bytes.
    #[inline]
    pub(super) fn frame<'a>(&self, number: u64, reader: &'a CaptureReader) -> super::Frame<'a> {
        super::Frame {
            number,
            time: self.time,
            link: self.link,
            data: reader.at(self.place),
            wire_len: self.wire_len,
        }
    }
}
