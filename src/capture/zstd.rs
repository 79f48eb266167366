//! Zstandard frames one after another (RFC 8878), as one stream of unpacked bytes, each block as soon as it is there.
//!
//! The decoder of blocks is ruzstd's. This file walks frames and blocks, checks the checksums, and takes out what
//! each block gave. The decoder alone would keep a window of bytes to itself until a frame's last block, since later
//! blocks may repeat them. So it is told at once that the frame is over, which changes nothing about what it decodes,
//! and is then asked to write out everything it holds; the writer it is given looks at what is new and takes nothing.

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::hash::Hasher;
use std::io::{self, Read, Write};
use twox_hash::XxHash64;

const FRAME: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// A raw block of no bytes, marked as the last one.
const EMPTY_LAST_BLOCK: &[u8] = &[1, 0, 0];
/// No block may hold more (RFC 8878, section 3.1.1.2.4).
const MAX_BLOCK: usize = 128 * 1024;
/// Frames that refer further back are not read, as by `zstd` without options.
const MAX_WINDOW: u64 = 128 * 1024 * 1024;
/// Up to this window what a block gave is looked at, which takes up to four times the window. Above, the decoder keeps
/// a window of bytes to itself until the frame ends. `zstd` writes such frames with `--long` and `--ultra` alone.
const PROMPT_WINDOW: u64 = 8 * 1024 * 1024;

/// Unpacks what `R` holds.
pub(super) struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    frame: Option<Frame>,
    /// What comes when everything in `ready` was handed out: the error that ended the data, or its end.
    over: Option<Option<io::Error>>,
    block: Vec<u8>,
    ready: Vec<u8>,
    given: usize,
}

/// The frame that is being read.
struct Frame {
    window: usize,
    /// Whether its bytes come out block by block.
    prompt: bool,
    /// Of its bytes, where it ends in a checksum.
    checksum: Option<XxHash64>,
    /// How many bytes the decoder holds that were taken note of.
    seen: usize,
}

impl<R: Read> Zstd<R> {
    pub(super) fn new(source: R) -> Self {
        let block = Vec::with_capacity(8);
        Self { source, decoder: FrameDecoder::new(), frame: None, over: None, block, ready: Vec::new(), given: 0 }
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
            let (window, checksum) = self.header()?;
            let prompt = window <= PROMPT_WINDOW;
            // To the decoder the window is only how much of a block and of its own bytes it keeps.
            let told = if prompt { window.min(MAX_BLOCK as u64) } else { window };
            self.decoder.reset(plain_header(told).as_slice()).map_err(|error| damaged(&error.to_string()))?;
            if prompt {
                self.decode(EMPTY_LAST_BLOCK)?;
            }
            let window = usize::try_from(window).unwrap_or(usize::MAX);
            self.frame = Some(Frame { window, prompt, checksum: checksum.then(|| XxHash64::with_seed(0)), seen: 0 });
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

    /// Reads the rest of a frame's header (RFC 8878, section 3.1.1.1): its window, and whether a checksum ends it.
    fn header(&mut self) -> io::Result<(u64, bool)> {
        let mut flags = [0];
        self.source.read_exact(&mut flags)?;
        let [flags] = flags;
        let single = flags & 0x20 != 0;
        if flags & 0x08 != 0 {
            return Err(damaged("expected a frame header, got one with a reserved bit set"));
        }
        let mut window = 0;
        if !single {
            let log = self.number(1)?;
            let base = 1_u64 << (10 + (log >> 3));
            window = base + (base >> 3) * (log & 7);
        }
        let length = if flags & 3 == 3 { 4 } else { u64::from(flags & 3) };
        if self.number(length)? != 0 {
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
        Ok((window, flags & 0x04 != 0))
    }

    /// A number of `length` bytes, at most 8, in little-endian order.
    fn number(&mut self, length: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        let got = fill(&mut (&mut self.source).take(length), &mut bytes)?;
        if (got as u64) < length { Err(cut()) } else { Ok(u64::from_le_bytes(bytes)) }
    }

    /// Decodes the frame's next block and makes ready what it gave. What a damaged one gave before the damage comes out too.
    fn step(&mut self) -> io::Result<()> {
        let decoded = self.read_block().and_then(|last| {
            let block = std::mem::take(&mut self.block);
            let decoded = self.decode(&block);
            self.block = block;
            decoded.map(|()| last)
        });
        if !matches!(decoded, Ok(false)) {
            self.decode(EMPTY_LAST_BLOCK)?;
        }
        self.look()?;
        if decoded? {
            self.end()?;
        }
        Ok(())
    }

    fn decode(&mut self, block: &[u8]) -> io::Result<()> {
        let decoded = self.decoder.decode_blocks(block, BlockDecodingStrategy::UptoBlocks(1));
        decoded.map(|_| ()).map_err(|error| damaged(&error.to_string()))
    }

    /// Reads one block whole into `self.block`, and tells whether it is the last.
    fn read_block(&mut self) -> io::Result<bool> {
        let mut header = [0; 3];
        self.source.read_exact(&mut header)?;
        let [a, b, c] = header;
        let fields = u32::from_le_bytes([a, b, c, 0]);
        let length = match (fields >> 1) & 3 {
            1 => 1,
            3 => return Err(damaged("expected a block, got a reserved type")),
            _ => usize::try_from(fields >> 3).unwrap_or(usize::MAX),
        };
        if length > MAX_BLOCK {
            return Err(damaged("expected a block of at most 131072 bytes"));
        }
        self.block.clear();
        // The decoder is told elsewhere which block is the last.
        self.block.extend_from_slice(&[a & !1, b, c]);
        let got = (&mut self.source).take(length as u64).read_to_end(&mut self.block)?;
        if got < length { Err(cut()) } else { Ok(a & 1 == 1) }
    }

    /// Makes ready what the decoder has that was not given out.
    fn look(&mut self) -> io::Result<()> {
        let Some(frame) = &mut self.frame else { return Ok(()) };
        let before = self.ready.len();
        if frame.prompt {
            let look = Look { skip: frame.seen, ready: &mut self.ready };
            self.decoder.collect_to_writer(look)?;
            frame.seen = frame.seen.saturating_add(self.ready.len().saturating_sub(before));
        } else {
            self.decoder.collect_to_writer(&mut self.ready)?;
        }
        if let Some(checksum) = &mut frame.checksum {
            checksum.write(self.ready.get(before..).unwrap_or_default());
        }
        if frame.seen > frame.window.saturating_add(frame.window.max(8 * MAX_BLOCK)) {
            self.tidy()?;
        }
        Ok(())
    }

    /// Takes everything out of the decoder and puts the last window back, as blocks of plain bytes: so what it holds
    /// stays small, and in one piece for who looks at it.
    fn tidy(&mut self) -> io::Result<()> {
        let Some(frame) = &mut self.frame else { return Ok(()) };
        let held = self.decoder.collect().unwrap_or_default();
        let kept = held.get(held.len().saturating_sub(frame.window)..).unwrap_or_default();
        frame.seen = kept.len();
        let size = frame.window.clamp(1, MAX_BLOCK);
        for piece in kept.chunks(size) {
            let [a, b, c, _] = u32::try_from(piece.len() << 3).unwrap_or(0).to_le_bytes();
            let header = [a, b, c];
            let decoded =
                self.decoder.decode_blocks(header.as_slice().chain(piece), BlockDecodingStrategy::UptoBlocks(1));
            decoded.map_err(|error| damaged(&error.to_string()))?;
        }
        Ok(())
    }

    /// Reads and checks what stands behind a frame's last block.
    fn end(&mut self) -> io::Result<()> {
        if let Some(Frame { checksum: Some(found), .. }) = self.frame.take() {
            let mut said = [0; 4];
            self.source.read_exact(&mut said)?;
            let [a, b, c, d, ..] = found.finish().to_le_bytes();
            if said != [a, b, c, d] {
                return Err(damaged("the frame's checksum is wrong"));
            }
        }
        Ok(())
    }

    /// The next bytes, or what ends them.
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

/// A writer that copies what comes behind the first `skip` bytes and says it took nothing, so that the decoder keeps it all.
struct Look<'a> {
    skip: usize,
    ready: &'a mut Vec<u8>,
}

impl Write for Look<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.ready.extend_from_slice(bytes.get(self.skip..).unwrap_or_default());
        Ok(0)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A frame header that says nothing but how large the window is.
fn plain_header(window: u64) -> Vec<u8> {
    let mut header = FRAME.to_vec();
    // A single segment whose size stands in 8 bytes.
    header.push(0xe0);
    header.extend_from_slice(&window.to_le_bytes());
    header
}

/// Reads until the buffer is full or the data ends, and tells how far it came.
fn fill(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let wanted = buffer.len() as u64;
    let mut writer = buffer;
    let copied = io::copy(&mut source.take(wanted), &mut writer)?;
    Ok(usize::try_from(copied).unwrap_or(usize::MAX))
}

fn cut() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

fn damaged(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}
