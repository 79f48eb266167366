//! Writes pcapng: one section with its interfaces, packets and secrets (draft-ietf-opsawg-pcapng).
//!
//! All numbers are written in little-endian order. The writer interprets neither frames nor secrets.

use super::bytes::{Endianness, padded};
use super::options::{OPTION_END, OPTION_FCS, OPTION_PROGRAM, OPTION_RESOLUTION};
use super::pcapng::{INTERFACE, MAX_HELD, ORDER_MAGIC, PACKET, SECRETS, SECTION};
use super::{EmbeddedSecrets, Frame, Time};
use std::io::{self, Write};

const PROGRAM: &str = concat!("moulsniff ", env!("CARGO_PKG_VERSION"));

/// Writes one pcapng section.
///
/// The inner writer should be buffered. Call [`flush`](Self::flush) after a frame to make it visible to another
/// program that reads the file while it is written.
#[derive(Debug)]
pub struct PcapngWriter<W: Write> {
    out: W,
    interfaces: Vec<InterfaceDescription>,
    block: Vec<u8>,
}

/// The content of an Interface Description Block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InterfaceDescription {
    pub(super) link: u16,
    /// Decimal digits of a second in its times: 6 or 9.
    pub(super) digits: u8,
    /// 0: no limit.
    pub(super) snap_len: u32,
    /// Bits of the frame check sequence at each frame's end.
    pub(super) fcs_len: Option<u8>,
}

impl<W: Write> PcapngWriter<W> {
    /// Writes the section's header.
    ///
    /// # Errors
    /// Writing failed.
    pub fn new(out: W) -> io::Result<Self> {
        let mut writer = Self { out, interfaces: Vec::new(), block: Vec::new() };
        writer.begin(SECTION);
        writer.word(ORDER_MAGIC);
        writer.put(&1u16.to_le_bytes());
        writer.put(&0u16.to_le_bytes());
        // All ones: the length of the section is not known.
        writer.put(&u64::MAX.to_le_bytes());
        writer.option(OPTION_PROGRAM, PROGRAM.as_bytes());
        writer.option(OPTION_END, &[]);
        writer.end()?;
        Ok(writer)
    }

    /// Writes a frame. Its number is not written, because readers number frames by their place in the file. Before
    /// the first frame of a link type and clock, the writer describes an interface for them.
    ///
    /// # Errors
    /// Writing failed, the time is before 1970 or too late for the format, or the frame exceeds 16 MiB.
    pub fn frame(&mut self, frame: &Frame<'_>) -> io::Result<()> {
        let interface = InterfaceDescription {
            link: frame.link,
            digits: if frame.time.digits > 6 { 9 } else { 6 },
            snap_len: 0,
            fcs_len: None,
        };
        self.frame_of(interface, frame)
    }

    /// Writes secrets, which decrypt the frames written after them.
    ///
    /// # Errors
    /// Writing failed, or the secrets exceed 16 MiB.
    pub fn secrets(&mut self, secrets: EmbeddedSecrets<'_>) -> io::Result<()> {
        let block = secrets_block(Endianness::Little, secrets)?;
        self.out.write_all(&block)
    }

    /// Flushes the inner writer.
    ///
    /// # Errors
    /// Writing failed.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// The inner writer.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// Writes a frame, and before it the description of its interface if that is new.
    pub(super) fn frame_of(&mut self, interface: InterfaceDescription, frame: &Frame<'_>) -> io::Result<()> {
        let ticks = ticks(frame.time, interface.digits)?;
        let captured = u32::try_from(frame.data.len()).map_err(|_| too_long())?;
        let index = self.index_of(interface)?;
        self.begin(PACKET);
        self.word(index);
        self.word((ticks >> 32) as u32);
        self.word((ticks & 0xffff_ffff) as u32);
        self.word(captured);
        self.word(frame.wire_len);
        self.put(frame.data);
        self.pad();
        self.end()
    }

    /// The number of an interface, which is described first if it is new.
    pub(super) fn index_of(&mut self, interface: InterfaceDescription) -> io::Result<u32> {
        let known = self.interfaces.iter().position(|i| *i == interface);
        if let Some(index) = known {
            return u32::try_from(index).map_err(|_| too_long());
        }
        let index = u32::try_from(self.interfaces.len()).map_err(|_| too_long())?;
        self.begin(INTERFACE);
        self.put(&interface.link.to_le_bytes());
        self.put(&[0, 0]);
        self.word(interface.snap_len);
        self.option(OPTION_RESOLUTION, &[interface.digits]);
        if let Some(bits) = interface.fcs_len {
            self.option(OPTION_FCS, &[bits]);
        }
        self.option(OPTION_END, &[]);
        self.end()?;
        self.interfaces.push(interface);
        Ok(index)
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.word(kind);
        // A place for the length, which `end` fills in.
        self.word(0);
    }

    fn word(&mut self, word: u32) {
        self.put(&word.to_le_bytes());
    }

    fn put(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
    }

    fn pad(&mut self) {
        let length = self.block.len().next_multiple_of(4);
        self.block.resize(length, 0);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
        self.put(&code.to_le_bytes());
        self.put(&length.to_le_bytes());
        self.put(value.get(..usize::from(length)).unwrap_or(value));
        self.pad();
    }

    fn end(&mut self) -> io::Result<()> {
        finish(&mut self.block, Endianness::Little)?;
        self.out.write_all(&self.block)
    }
}

/// A Decryption Secrets Block.
pub(super) fn secrets_block(order: Endianness, secrets: EmbeddedSecrets<'_>) -> io::Result<Vec<u8>> {
    let length = u32::try_from(secrets.data.len()).map_err(|_| too_long())?;
    let mut block = Vec::with_capacity(secrets.data.len().saturating_add(24));
    for word in [SECRETS, 0, secrets.kind, length] {
        block.extend_from_slice(&order.bytes32(word));
    }
    block.extend_from_slice(secrets.data);
    block.resize(block.len().next_multiple_of(4), 0);
    finish(&mut block, order)?;
    Ok(block)
}

/// Fills in a block's length in its header, and appends it as the trailer.
fn finish(block: &mut Vec<u8>, order: Endianness) -> io::Result<()> {
    let total = padded((block.len() as u64).saturating_add(4));
    let total = u32::try_from(total).map_err(|_| too_long())?;
    if total > MAX_HELD {
        return Err(too_long());
    }
    let total = order.bytes32(total);
    if let Some(length) = block.get_mut(4..8) {
        length.copy_from_slice(&total);
    }
    block.extend_from_slice(&total);
    Ok(())
}

/// A time as ticks since 1970, of a clock with `digits` decimal digits.
pub(super) fn ticks(time: Time, digits: u8) -> io::Result<u64> {
    let (per_second, nanos) = if digits == 9 { (1_000_000_000, 1) } else { (1_000_000, 1_000) };
    u64::try_from(time.seconds)
        .ok()
        .and_then(|seconds| seconds.checked_mul(per_second))
        .and_then(|ticks| ticks.checked_add(u64::from(time.nanos / nanos)))
        .ok_or_else(|| invalid("expected a time from 1970 on that 64 bits can count"))
}

fn too_long() -> io::Error {
    invalid("expected a block of at most 16777216 bytes")
}

fn invalid(text: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}
