//! Writes pcapng: one section with its interfaces, packets and secrets (draft-ietf-opsawg-pcapng).
//!
//! All numbers are written in little-endian order. The writer interprets neither frames nor
//! secrets.

use super::block::{BlockBuilder, append_option, too_long};
use super::bytes::Endianness;
use super::options::{OPTION_END, OPTION_FCS, OPTION_PROGRAM, OPTION_RESOLUTION};
use super::pcapng::{INTERFACE, ORDER_MAGIC, PACKET, SECRETS, SECTION};
use super::{EmbeddedSecrets, Frame, Time};
use std::io::{self, Write};

const PROGRAM: &str = concat!("moulsniff ", env!("CARGO_PKG_VERSION"));

/// Writes one pcapng section.
///
/// The inner writer should be buffered. Call [`flush`](Self::flush) after a frame to make it
/// visible to another program that reads the file while it is written.
#[derive(Debug)]
pub struct PcapngWriter<W: Write> {
    out: W,
    interfaces: Vec<InterfaceDescription>,
    block: BlockBuilder,
}

/// The content of an Interface Description Block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InterfaceDescription {
    pub(super) link: u16,
    /// Decimal digits of a second in its times: 6 to 9.
    pub(super) digits: u8,
    /// 0: no limit.
    pub(super) snap_len: u32,
    /// Bits of the frame check sequence at each frame's end.
    pub(super) fcs_len: Option<u8>,
}

impl InterfaceDescription {
    /// The content of the block, in little-endian order.
    pub(super) fn body(&self) -> Vec<u8> {
        let mut body = Vec::new();
        body.extend_from_slice(&self.link.to_le_bytes());
        // Two reserved bytes.
        body.extend_from_slice(&[0, 0]);
        body.extend_from_slice(&self.snap_len.to_le_bytes());
        append_option(&mut body, Endianness::Little, OPTION_RESOLUTION, &[self.digits]);
        if let Some(bits) = self.fcs_len {
            append_option(&mut body, Endianness::Little, OPTION_FCS, &[bits]);
        }
        append_option(&mut body, Endianness::Little, OPTION_END, &[]);
        body
    }
}

impl<W: Write> PcapngWriter<W> {
    /// Writes the section's header.
    ///
    /// # Errors
    /// Writing failed.
    pub fn new(mut out: W) -> io::Result<Self> {
        let mut block = BlockBuilder::new(Endianness::Little);
        out.write_all(section_block(&mut block, Endianness::Little, &[], PROGRAM)?)?;
        Ok(Self { out, interfaces: Vec::new(), block })
    }

    /// Writes a frame. Its number is not written, because readers number frames by their place in
    /// the file. Before the first frame of a link type and clock, the writer describes an interface
    /// for them.
    ///
    /// # Errors
    /// Writing failed, the time is before 1970 or too late for the format, or the frame exceeds 16
    /// MiB.
    pub fn frame(&mut self, frame: &Frame<'_>) -> io::Result<()> {
        let interface = InterfaceDescription {
            link: frame.link,
            digits: frame.time.digits.clamp(6, 9),
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
        self.out.write_all(secrets_block(&mut self.block, Endianness::Little, &secrets)?)
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

    /// The inner writer, whose bytes somebody takes.
    pub fn inner_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// The inner writer.
    pub fn inner(&self) -> &W {
        &self.out
    }

    /// Writes a frame, and before it the description of its interface if that is new.
    pub(super) fn frame_of(
        &mut self,
        interface: InterfaceDescription,
        frame: &Frame<'_>,
    ) -> io::Result<()> {
        let ticks = ticks(frame.time, interface.digits)?;
        let captured = u32::try_from(frame.data.len()).map_err(|_| too_long())?;
        let index = self.index_of(interface)?;
        self.block.begin(Endianness::Little, PACKET);
        self.block.words(&[
            index,
            (ticks >> 32) as u32,
            (ticks & 0xffff_ffff) as u32,
            captured,
            frame.wire_len,
        ]);
        self.block.put(frame.data);
        self.out.write_all(self.block.end()?)
    }

    /// The number of an interface, which is described first if it is new.
    pub(super) fn index_of(&mut self, interface: InterfaceDescription) -> io::Result<u32> {
        let known = self.interfaces.iter().position(|i| *i == interface);
        if let Some(index) = known {
            return u32::try_from(index).map_err(|_| too_long());
        }
        let index = u32::try_from(self.interfaces.len()).map_err(|_| too_long())?;
        self.block.begin(Endianness::Little, INTERFACE);
        self.block.put(&interface.body());
        self.out.write_all(self.block.end()?)?;
        self.interfaces.push(interface);
        Ok(index)
    }
}

/// Begins and ends a Section Header Block in `block`: with `options`, and `program` as the program
/// that wrote the section.
///
/// # Errors
/// The options exceed 16 MiB.
pub(super) fn section_block<'a>(
    block: &'a mut BlockBuilder,
    order: Endianness,
    options: &[u8],
    program: &str,
) -> io::Result<&'a [u8]> {
    block.begin(order, SECTION);
    block.words(&[ORDER_MAGIC]);
    // The format's version is 1.0.
    block.half(1);
    block.half(0);
    // All ones: the length of the section is not known.
    block.words(&[u32::MAX; 2]);
    block.put(options);
    block.option(OPTION_PROGRAM, program.as_bytes());
    block.option(OPTION_END, &[]);
    block.end()
}

/// Begins and ends a Decryption Secrets Block in `block`.
///
/// # Errors
/// The secrets exceed 16 MiB.
pub(super) fn secrets_block<'a>(
    block: &'a mut BlockBuilder,
    order: Endianness,
    secrets: &EmbeddedSecrets<'_>,
) -> io::Result<&'a [u8]> {
    let length = u32::try_from(secrets.data.len()).map_err(|_| too_long())?;
    block.begin(order, SECRETS);
    block.words(&[secrets.kind, length]);
    block.put(secrets.data);
    block.end()
}

/// A time as ticks since 1970, of a clock with `digits` decimal digits.
pub(super) fn ticks(time: Time, digits: u8) -> io::Result<u64> {
    let nanos = 10_u32.pow(9_u8.saturating_sub(digits).into());
    let per_second = u64::from(1_000_000_000 / nanos);
    u64::try_from(time.seconds)
        .ok()
        .and_then(|seconds| seconds.checked_mul(per_second))
        .and_then(|ticks| ticks.checked_add(u64::from(time.nanos / nanos)))
        .ok_or_else(|| invalid("expected a time from 1970 on that 64 bits can count"))
}

fn invalid(text: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}
