//! Decompresses Zstandard frames (RFC 8878) to one stream of bytes, each block as soon as it was
//! read.
//!
//! ruzstd decodes the blocks. This file walks frames and blocks, checks the checksums, and collects
//! the bytes of each block. By itself the decoder keeps the last window of bytes until a frame's
//! last block, because later blocks may repeat them. So this file ends the frame for the decoder
//! before its first block, which does not change how blocks are decoded, and asks the decoder after
//! each block to write all it holds. The writer copies the new bytes and reports that it took none,
//! so that the decoder keeps them.
//!
//! Memory: a window of up to [`PROMPT_WINDOW`] costs up to four times its size, a larger one its
//! size (allocated at once, so that the buffer never grows by copying) and a few blocks.

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::hash::Hasher;
use std::io::{self, Read, Write};
use twox_hash::XxHash64;

const FRAME: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// An empty raw block that is marked as the last one.
const EMPTY_LAST_BLOCK: &[u8] = &[1, 0, 0];
/// The largest block (RFC 8878, section 3.1.1.2.4).
const MAX_BLOCK: usize = 128 * 1024;
/// The largest window that is accepted, as by `zstd` without options.
const MAX_WINDOW: u64 = 128 * 1024 * 1024;
/// Up to this window size the bytes of a block come out at once. Above it, to save memory, the
/// decoder keeps the last window of bytes until the frame ends. `zstd` writes such frames only with
/// `--long` and `--ultra`.
const PROMPT_WINDOW: u64 = 8 * 1024 * 1024;

// Bits of the frame header descriptor (RFC 8878, section 3.1.1.1.1).
const SINGLE_SEGMENT: u8 = 0x20;
const RESERVED: u8 = 0x08;
const HAS_CHECKSUM: u8 = 0x04;
const DICTIONARY_ID_LENGTH: u8 = 0x03;
/// A frame header descriptor with a single segment and a content size of 8 bytes.
const SINGLE_SEGMENT_SIZE_8: u8 = 0xe0;

// Types of blocks (RFC 8878, section 3.1.1.2.2).
const BLOCK_RLE: u32 = 1;
const BLOCK_RESERVED: u32 = 3;

/// A reader of the decompressed data.
pub(super) struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    frame: Option<ZstdFrame>,
    /// Set when the data is over: what follows the bytes in `ready`, an error or the end.
    over: Option<Option<io::Error>>,
    block: Vec<u8>,
    /// Decompressed bytes, of which the first `given` were returned.
    ready: Vec<u8>,
    given: usize,
}

/// The frame that is being read.
struct ZstdFrame {
    window: usize,
    /// Whether its bytes come out block by block.
    prompt: bool,
    /// The checksum of the bytes so far, if the frame ends in one.
    checksum: Option<XxHash64>,
    /// How many of the bytes that the decoder holds were copied to `ready`.
    seen: usize,
    /// Set after the last block or a damaged one: the result of the frame, for when the decoder
    /// holds no more bytes.
    result: Option<io::Result<()>>,
}

impl<R: Read> Zstd<R> {
    pub(super) fn new(source: R) -> Self {
        let block = Vec::with_capacity(8);
        let decoder = FrameDecoder::new();
        Self { source, decoder, frame: None, over: None, block, ready: Vec::new(), given: 0 }
    }

    /// Begins the next frame; skippable frames are skipped. False at the end of the data.
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
            let (window, checksum) = self.header()?;
            let prompt = window <= PROMPT_WINDOW;
            check_memory(if prompt { window.saturating_mul(4) } else { window })?;
            // The decoder uses the window only to decide how many bytes it keeps.
            let stated = if prompt { window.min(MAX_BLOCK as u64) } else { window };
            // A new decoder allocates nothing in advance, one that is reset allocates a window.
            // Growing step by step would need one and a half windows.
            self.reset(0)?;
            self.reset(stated)?;
            if prompt {
                self.decode(EMPTY_LAST_BLOCK)?;
            }
            let window = usize::try_from(window).unwrap_or(usize::MAX);
            let checksum = checksum.then(|| XxHash64::with_seed(0));
            self.frame = Some(ZstdFrame { window, prompt, checksum, seen: 0, result: None });
            return Ok(true);
        }
    }

    fn reset(&mut self, window: u64) -> io::Result<()> {
        self.decoder
            .reset(plain_header(window).as_slice())
            .map_err(|error| damaged(&error.to_string()))
    }

    fn skip(&mut self) -> io::Result<()> {
        let mut length = [0; 4];
        self.source.read_exact(&mut length)?;
        let length = u64::from(u32::from_le_bytes(length));
        let skipped = io::copy(&mut (&mut self.source).take(length), &mut io::sink())?;
        if skipped < length { Err(cut()) } else { Ok(()) }
    }

    /// Reads the rest of a frame's header (RFC 8878, section 3.1.1.1). Returns the window size in
    /// bytes, and whether the frame ends in a checksum.
    fn header(&mut self) -> io::Result<(u64, bool)> {
        let mut flags = [0];
        self.source.read_exact(&mut flags)?;
        let [flags] = flags;
        let single = flags & SINGLE_SEGMENT != 0;
        if flags & RESERVED != 0 {
            return Err(damaged("expected a frame header, got one with a reserved bit set"));
        }
        let mut window = 0;
        if !single {
            let log = self.number(1)?;
            let base = 1_u64 << (10 + (log >> 3));
            window = base + (base >> 3) * (log & 7);
        }
        let id_length = match flags & DICTIONARY_ID_LENGTH {
            3 => 4,
            length => u64::from(length),
        };
        if self.number(id_length)? != 0 {
            return Err(damaged("the frame needs a dictionary"));
        }
        let size = match flags >> 6 {
            0 => self.number(u64::from(single))?,
            1 => self.number(2)?.saturating_add(256),
            2 => self.number(4)?,
            _ => self.number(8)?,
        };
        if single {
            window = size;
        }
        if window > MAX_WINDOW {
            return Err(damaged(&format!(
                "the frame needs a window of {window} bytes, at most {MAX_WINDOW} are given"
            )));
        }
        Ok((window, flags & HAS_CHECKSUM != 0))
    }

    /// A number of `length` bytes, at most 8, in little-endian order.
    fn number(&mut self, length: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        let got = fill(&mut (&mut self.source).take(length), &mut bytes)?;
        if (got as u64) < length { Err(cut()) } else { Ok(u64::from_le_bytes(bytes)) }
    }

    /// Decodes the frame's next block and makes its bytes ready, also those of a damaged block
    /// before the damage. After the last block it makes the bytes ready that the decoder still
    /// holds, and then ends the frame.
    fn step(&mut self) -> io::Result<()> {
        let over = self.frame.as_ref().is_some_and(|frame| frame.result.is_some());
        if !over {
            self.decode_next()?;
        }
        self.collect()?;
        if over && self.ready.is_empty() {
            self.end()?;
        }
        Ok(())
    }

    fn decode_next(&mut self) -> io::Result<()> {
        let decoded = self.read_block().and_then(|last| {
            let block = std::mem::take(&mut self.block);
            let decoded = self.decode(&block);
            self.block = block;
            decoded.map(|()| last)
        });
        let result = match decoded {
            Ok(false) => return Ok(()),
            Ok(true) => Ok(()),
            Err(error) => Err(error),
        };
        self.decode(EMPTY_LAST_BLOCK)?;
        if let Some(frame) = &mut self.frame {
            frame.result = Some(result);
        }
        Ok(())
    }

    fn decode(&mut self, block: &[u8]) -> io::Result<()> {
        let decoded = self.decoder.decode_blocks(block, BlockDecodingStrategy::UptoBlocks(1));
        decoded.map(|_| ()).map_err(|error| damaged(&error.to_string()))
    }

    /// Reads a whole block into `self.block`. Returns whether it is the frame's last.
    fn read_block(&mut self) -> io::Result<bool> {
        let mut header = [0; 3];
        self.source.read_exact(&mut header)?;
        let [a, b, c] = header;
        let fields = u32::from_le_bytes([a, b, c, 0]);
        let length = match (fields >> 1) & 3 {
            BLOCK_RLE => 1,
            BLOCK_RESERVED => return Err(damaged("expected a block, got a reserved type")),
            _ => usize::try_from(fields >> 3).unwrap_or(usize::MAX),
        };
        if length > MAX_BLOCK {
            return Err(damaged("expected a block of at most 131072 bytes"));
        }
        self.block.clear();
        // The decoder gets every block without the mark of the last one; `EMPTY_LAST_BLOCK` ends
        // the frame for it.
        self.block.extend_from_slice(&[a & !1, b, c]);
        let got = (&mut self.source).take(length as u64).read_to_end(&mut self.block)?;
        if got < length { Err(cut()) } else { Ok(a & 1 == 1) }
    }

    /// Makes bytes ready that the decoder holds and that were not returned: all of them, or of a
    /// large window at most [`MAX_BLOCK`] a call, so that `ready` stays small.
    fn collect(&mut self) -> io::Result<()> {
        let Some(frame) = &mut self.frame else { return Ok(()) };
        let before = self.ready.len();
        if frame.prompt {
            let peek = Peek { skip: frame.seen, ready: &mut self.ready };
            self.decoder.collect_to_writer(peek)?;
            frame.seen = frame.seen.saturating_add(self.ready.len().saturating_sub(before));
        } else {
            let most = self.decoder.can_collect().min(MAX_BLOCK);
            self.ready.resize(before.saturating_add(most), 0);
            let read = self.decoder.read(self.ready.get_mut(before..).unwrap_or_default())?;
            self.ready.truncate(before.saturating_add(read));
        }
        if let Some(checksum) = &mut frame.checksum {
            checksum.write(self.ready.get(before..).unwrap_or_default());
        }
        if frame.seen > frame.window.saturating_add(frame.window.max(8 * MAX_BLOCK)) {
            self.tidy()?;
        }
        Ok(())
    }

    /// Takes everything out of the decoder and puts the last window back as raw blocks. This keeps
    /// the decoder's buffer small and contiguous.
    fn tidy(&mut self) -> io::Result<()> {
        let Some(frame) = &mut self.frame else { return Ok(()) };
        let held = self.decoder.collect().unwrap_or_default();
        let kept = held.get(held.len().saturating_sub(frame.window)..).unwrap_or_default();
        frame.seen = kept.len();
        let size = frame.window.clamp(1, MAX_BLOCK);
        for piece in kept.chunks(size) {
            let [a, b, c, _] = u32::try_from(piece.len() << 3).unwrap_or(0).to_le_bytes();
            let header = [a, b, c];
            let decoded = self.decoder.decode_blocks(
                header.as_slice().chain(piece),
                BlockDecodingStrategy::UptoBlocks(1),
            );
            decoded.map_err(|error| damaged(&error.to_string()))?;
        }
        Ok(())
    }

    /// Ends the frame: returns the error that ended it, if any, and checks the checksum after its
    /// last block.
    fn end(&mut self) -> io::Result<()> {
        let Some(ZstdFrame { prompt, checksum, result, .. }) = self.frame.take() else {
            return Ok(());
        };
        if !prompt {
            self.decoder = FrameDecoder::new();
        }
        result.unwrap_or(Ok(()))?;
        if let Some(computed) = checksum {
            let mut stated = [0; 4];
            self.source.read_exact(&mut stated)?;
            let [a, b, c, d, ..] = computed.finish().to_le_bytes();
            if stated != [a, b, c, d] {
                return Err(damaged("the frame's checksum is wrong"));
            }
        }
        Ok(())
    }

    /// Goes on by a block or to the next frame. False at the end of the data.
    fn advance(&mut self) -> io::Result<bool> {
        if self.frame.is_some() {
            return self.step().map(|()| true);
        }
        self.begin()
    }
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let ready = self.ready.get(self.given..).unwrap_or_default();
            if !ready.is_empty() {
                let given = ready.len().min(buffer.len());
                for (to, from) in buffer.iter_mut().zip(ready) {
                    *to = *from;
                }
                self.given = self.given.saturating_add(given);
                return Ok(given);
            }
            self.ready.clear();
            self.given = 0;
            match &mut self.over {
                Some(error) => return error.take().map_or(Ok(0), Err),
                None => match self.advance() {
                    Ok(true) => {}
                    Ok(false) => self.over = Some(None),
                    Err(error) => self.over = Some(Some(error)),
                },
            }
        }
    }
}

/// A writer that copies all bytes after the first `skip`, and reports that it took none, so that
/// the decoder keeps them.
struct Peek<'a> {
    skip: usize,
    ready: &'a mut Vec<u8>,
}

impl Write for Peek<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.ready.extend_from_slice(bytes.get(self.skip..).unwrap_or_default());
        Ok(0)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A frame header that states nothing but the size of the window.
fn plain_header(window: u64) -> Vec<u8> {
    let mut header = FRAME.to_vec();
    header.push(SINGLE_SEGMENT_SIZE_8);
    header.extend_from_slice(&window.to_le_bytes());
    header
}

/// Reads until the buffer is full or the data ends. Returns how many bytes were read.
fn fill(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let wanted = buffer.len() as u64;
    let mut writer = buffer;
    let copied = io::copy(&mut source.take(wanted), &mut writer)?;
    Ok(usize::try_from(copied).unwrap_or(usize::MAX))
}

/// Fails if there is no memory for a frame's window and a few blocks: the decoder would panic.
fn check_memory(window: u64) -> io::Result<()> {
    let bytes = usize::try_from(window).unwrap_or(usize::MAX).saturating_add(8 * MAX_BLOCK);
    let mut probe: Vec<u8> = Vec::new();
    probe.try_reserve_exact(bytes).map_err(|_| {
        let text = format!(
            "there is no memory for the {} MiB that unpacking it takes",
            bytes.div_ceil(1 << 20)
        );
        io::Error::new(io::ErrorKind::OutOfMemory, text)
    })
}

fn cut() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

fn damaged(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}
