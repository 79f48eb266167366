//! Zstandard frames one after another (RFC 8878), as one stream of unpacked bytes.
//!
//! The decoder of a single frame is ruzstd's. This file walks the frames, checks their checksums, and hands
//! out what was unpacked before a cut, which the decoder alone would keep to itself for good: it holds back
//! a window of bytes until a frame's last block, so where the blocks end too early, an empty last one is
//! put in their place.

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, Read};

const FRAME: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// A raw block of no bytes, marked as the last one, and a checksum nobody will look at.
const EMPTY_LAST_BLOCK: &[u8] = &[1, 0, 0, 0, 0, 0, 0];
/// No block may hold more (RFC 8878, section 3.1.1.2.4).
const MAX_BLOCK: usize = 128 * 1024;

/// Unpacks what `R` holds.
pub(super) struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    state: State,
    block: Vec<u8>,
}

enum State {
    /// Before a frame, or at the end.
    Between,
    /// Within a frame, which ends in a checksum or not.
    Blocks { checksum: bool },
    /// The last block is decoded; what is left is handed out, then comes this.
    Draining(Ending),
    /// Nothing more will come.
    Over,
}

enum Ending {
    /// The frame's own end; its checksum is right or wrong.
    Whole,
    /// The frame broke off.
    Broken(io::Error),
}

/// What comes after a block that was read.
enum After {
    Block,
    Frame,
    /// Nothing: the frame's checksum is not whole.
    Cut,
}

impl<R: Read> Zstd<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, decoder: FrameDecoder::new(), state: State::Between, block: Vec::with_capacity(8) }
    }

    /// Begins the next frame, passing over skippable ones. False at the end of the data.
    fn begin(&mut self) -> io::Result<bool> {
        loop {
            let mut magic = [0; 4];
            match fill(&mut self.source, &mut magic)? {
                0 => return Ok(false),
                4 => {}
                _ => return Err(cut()),
            }
            if let [0x50..=0x5f, 0x2a, 0x4d, 0x18] = magic {
                self.skip()?;
                continue;
            }
            if magic != FRAME {
                return Err(damaged("expected a frame, got something else"));
            }
            let mut descriptor = [0];
            self.source.read_exact(&mut descriptor)?;
            let head = magic.chain(descriptor.as_slice());
            let mut source = head.chain(&mut self.source);
            let begun = self.decoder.reset(&mut source);
            begun.map_err(|error| header_error(&error))?;
            let checksum = descriptor.iter().any(|flags| flags & 0x04 != 0);
            self.state = State::Blocks { checksum };
            return Ok(true);
        }
    }

    fn skip(&mut self) -> io::Result<()> {
        let mut length = [0; 4];
        self.source.read_exact(&mut length)?;
        let length = u64::from(u32::from_le_bytes(length));
        let skipped = io::copy(&mut (&mut self.source).take(length), &mut io::sink())?;
        if skipped < length { Err(cut()) } else { Ok(()) }
    }

    /// Decodes one block; a frame that breaks off is closed, so that what it gave so far comes out.
    fn step(&mut self, checksum: bool) {
        let decoded = self.read_block(checksum).and_then(|after| {
            let block = self.block.as_slice();
            self.decoder
                .decode_blocks(block, BlockDecodingStrategy::UptoBlocks(1))
                .map_err(|error| damaged(&error.to_string()))?;
            Ok(after)
        });
        match decoded {
            Ok(After::Block) => {}
            Ok(After::Frame) => self.state = State::Draining(Ending::Whole),
            Ok(After::Cut) => self.state = State::Draining(Ending::Broken(cut())),
            Err(error) => {
                let closed = self.decoder.decode_blocks(EMPTY_LAST_BLOCK, BlockDecodingStrategy::UptoBlocks(1));
                self.state = match closed {
                    Ok(_) => State::Draining(Ending::Broken(error)),
                    Err(_) => State::Draining(Ending::Broken(damaged("expected a block"))),
                };
            }
        }
    }

    /// Reads one block whole into `self.block`, with the frame's checksum where it is the last.
    fn read_block(&mut self, checksum: bool) -> io::Result<After> {
        let mut header = [0; 3];
        self.source.read_exact(&mut header)?;
        let [a, b, c] = header;
        let fields = u32::from_le_bytes([a, b, c, 0]);
        let last = fields & 1 == 1;
        let length = match (fields >> 1) & 3 {
            1 => 1,
            3 => return Err(damaged("expected a block, got a reserved type")),
            _ => usize::try_from(fields >> 3).unwrap_or(usize::MAX),
        };
        if length > MAX_BLOCK {
            return Err(damaged("expected a block of at most 131072 bytes"));
        }
        let trailer = if last && checksum { 4 } else { 0 };
        self.block.clear();
        self.block.extend_from_slice(&header);
        let wanted = length.saturating_add(trailer);
        let mut body = (&mut self.source).take(wanted as u64);
        let got = body.read_to_end(&mut self.block)?;
        if got < length {
            return Err(cut());
        }
        if got < wanted {
            // The block is whole and only the checksum is cut.
            self.block.resize(header.len().saturating_add(wanted), 0);
            return Ok(After::Cut);
        }
        Ok(if last { After::Frame } else { After::Block })
    }

    fn end(&mut self, ending: Ending) -> io::Result<()> {
        let error = match ending {
            Ending::Broken(error) => error,
            Ending::Whole => {
                let said = self.decoder.get_checksum_from_data();
                let found = self.decoder.get_calculated_checksum();
                if said.is_none() || said == found {
                    self.state = State::Between;
                    return Ok(());
                }
                damaged("the frame's checksum is wrong")
            }
        };
        self.state = State::Over;
        Err(error)
    }
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            match &self.state {
                State::Over => return Ok(0),
                State::Between => match self.begin() {
                    Ok(true) => {}
                    Ok(false) => self.state = State::Over,
                    Err(error) => {
                        self.state = State::Over;
                        return Err(error);
                    }
                },
                State::Blocks { checksum } => {
                    let checksum = *checksum;
                    let given = self.decoder.read(buffer)?;
                    if given > 0 {
                        return Ok(given);
                    }
                    self.step(checksum);
                }
                State::Draining(_) => {
                    let given = self.decoder.read(buffer)?;
                    if given > 0 {
                        return Ok(given);
                    }
                    if let State::Draining(ending) = std::mem::replace(&mut self.state, State::Over) {
                        self.end(ending)?;
                    }
                }
            }
        }
    }
}

/// Reads until the buffer is full or the data ends, and tells how far it came.
fn fill(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let wanted = buffer.len() as u64;
    let mut writer = buffer;
    let copied = io::copy(&mut source.take(wanted), &mut writer)?;
    Ok(usize::try_from(copied).unwrap_or(usize::MAX))
}

/// The decoder's error about a frame's header: a header that ends early is a cut file like any other.
fn header_error(error: &(dyn std::error::Error + 'static)) -> io::Error {
    let mut cause = Some(error);
    while let Some(inner) = cause {
        if let Some(io) = inner.downcast_ref::<io::Error>()
            && io.kind() == io::ErrorKind::UnexpectedEof
        {
            return cut();
        }
        cause = inner.source();
    }
    damaged(&error.to_string())
}

fn cut() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

fn damaged(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}
