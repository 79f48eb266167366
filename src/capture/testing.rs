//! Builders of pcap and pcapng in either byte order, for the tests of this module.
//!
//! They share no code with the writer, so that a mistake made in both reader and writer is found.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use super::bytes::Endianness;
use super::{Capture, CaptureItem, Source};
use std::io::{Cursor, Read, Write};

impl Endianness {
    fn two(self, number: u16) -> [u8; 2] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }

    fn eight(self, number: i64) -> [u8; 8] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }
}

/// A pcap file under construction.
pub(super) struct PcapFile {
    order: Endianness,
    pub(super) bytes: Vec<u8>,
}

impl PcapFile {
    /// Version 2.4, Ethernet, a snap length of 65535.
    pub(super) fn new(order: Endianness, magic: u32) -> Self {
        Self::with(order, magic, (2, 4), 65_535, 1)
    }

    pub(super) fn with(
        order: Endianness,
        magic: u32,
        version: (u16, u16),
        snap_len: u32,
        link: u32,
    ) -> Self {
        let mut bytes = order.bytes32(magic).to_vec();
        bytes.extend(order.two(version.0));
        bytes.extend(order.two(version.1));
        bytes.extend([0; 8]);
        bytes.extend(order.bytes32(snap_len));
        bytes.extend(order.bytes32(link));
        Self { order, bytes }
    }

    /// A record: seconds, fraction, the two lengths in the order given, more header, data.
    pub(super) fn record(mut self, words: [u32; 4], more: &[u8], data: &[u8]) -> Self {
        for word in words {
            self.bytes.extend(self.order.bytes32(word));
        }
        self.bytes.extend(more);
        self.bytes.extend(data);
        self
    }

    /// A plain record captured whole.
    pub(super) fn packet(self, seconds: u32, fraction: u32, data: &[u8]) -> Self {
        let length = data.len() as u32;
        self.record([seconds, fraction, length, length], &[], data)
    }
}

/// A pcapng file under construction.
pub(super) struct NgFile {
    order: Endianness,
    pub(super) bytes: Vec<u8>,
}

impl NgFile {
    pub(super) fn new(order: Endianness) -> Self {
        let empty = Self { order, bytes: Vec::new() };
        empty.section(order)
    }

    /// A section header, which may change the byte order.
    pub(super) fn section(mut self, order: Endianness) -> Self {
        self.order = order;
        let mut body = order.bytes32(0x1a2b_3c4d).to_vec();
        body.extend(order.two(1));
        body.extend(order.two(0));
        body.extend([0xff; 8]);
        self.block(0x0a0d_0d0a, &body)
    }

    /// Any block.
    pub(super) fn block(mut self, kind: u32, body: &[u8]) -> Self {
        let total = 12 + body.len().next_multiple_of(4) as u32;
        self.bytes.extend(self.order.bytes32(kind));
        self.bytes.extend(self.order.bytes32(total));
        self.bytes.extend(body);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self.bytes.extend(self.order.bytes32(total));
        self
    }

    /// An interface without options.
    pub(super) fn interface(self, link: u16, snap_len: u32) -> Self {
        self.interface_with(link, snap_len, &[])
    }

    /// An interface with options: code and value.
    pub(super) fn interface_with(self, link: u16, snap_len: u32, options: &[(u16, &[u8])]) -> Self {
        let mut body = self.order.two(link).to_vec();
        body.extend([0, 0]);
        body.extend(self.order.bytes32(snap_len));
        for (code, value) in options {
            body.extend(self.order.two(*code));
            body.extend(self.order.two(value.len() as u16));
            body.extend(*value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        self.block(1, &body)
    }

    /// An Ethernet interface whose clock has this `if_tsresol` and `if_tsoffset`.
    pub(super) fn clocked(self, resolution: u8, offset: i64) -> Self {
        let offset = self.order.eight(offset);
        let options: [(u16, &[u8]); 4] = [(2, b"lo"), (9, &[resolution]), (14, &offset), (0, &[])];
        self.interface_with(1, 0, &options)
    }

    /// An Enhanced Packet Block captured whole.
    pub(super) fn packet(self, interface: u32, ticks: u64, data: &[u8]) -> Self {
        let length = data.len() as u32;
        self.packet_with(6, interface, ticks, length, data, &[])
    }

    pub(super) fn packet_with(
        self,
        kind: u32,
        interface: u32,
        ticks: u64,
        original: u32,
        data: &[u8],
        options: &[u8],
    ) -> Self {
        let order = self.order;
        let mut body = if kind == 6 {
            order.bytes32(interface).to_vec()
        } else {
            // The obsolete block: an interface, and a count of dropped packets that is no part of
            // the interface's number.
            [order.two(interface as u16), order.two(0x0102)].concat()
        };
        body.extend(order.bytes32((ticks >> 32) as u32));
        body.extend(order.bytes32(ticks as u32));
        body.extend(order.bytes32(data.len() as u32));
        body.extend(order.bytes32(original));
        body.extend(data);
        body.resize(body.len().next_multiple_of(4), 0);
        body.extend(options);
        self.block(kind, &body)
    }

    /// A Simple Packet Block.
    pub(super) fn simple(self, original: u32, data: &[u8]) -> Self {
        let body = [&self.order.bytes32(original), data].concat();
        self.block(3, &body)
    }

    /// A Decryption Secrets Block.
    pub(super) fn secrets(self, kind: u32, data: &[u8]) -> Self {
        let mut body = self.order.bytes32(kind).to_vec();
        body.extend(self.order.bytes32(data.len() as u32));
        body.extend(data);
        self.block(10, &body)
    }
}

/// A frame as tests compare it: number, seconds, nanoseconds, digits, link type, length on the
/// wire, data.
pub(super) type SeenFrame = (u64, i64, u32, u8, u16, u32, Vec<u8>);

/// Everything read from a capture: its frames, its secrets, and the texts of errors.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Everything {
    pub(super) frames: Vec<SeenFrame>,
    pub(super) secrets: Vec<(u32, Vec<u8>)>,
    pub(super) errors: Vec<String>,
}

pub(super) fn source(name: &str, bytes: &[u8]) -> Source {
    Source::reader(name, Box::new(Cursor::new(bytes.to_vec())))
}

/// Reads a capture called `x` to its end.
pub(super) fn read(bytes: &[u8]) -> Everything {
    drain(&mut Capture::new([source("x", bytes)]))
}

/// Reads a capture to its end, and continues after errors.
pub(super) fn drain(capture: &mut Capture) -> Everything {
    let mut all = Everything::default();
    loop {
        match capture.next_item() {
            Ok(None) => return all,
            Ok(Some(CaptureItem::Frame(frame))) => all.frames.push((
                frame.number,
                frame.time.seconds,
                frame.time.nanos,
                frame.time.digits,
                frame.link,
                frame.wire_len,
                frame.data.to_vec(),
            )),
            Ok(Some(CaptureItem::Secrets(secrets))) => {
                all.secrets.push((secrets.kind, secrets.data.to_vec()));
            }
            Err(error) => all.errors.push(error.to_string()),
        }
    }
}

/// A reader that returns a bounded number of bytes per read, like a slow pipe.
pub(super) struct SlowReader {
    pub(super) bytes: Cursor<Vec<u8>>,
    pub(super) step: usize,
}

impl Read for SlowReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let room = self.step.min(buffer.len());
        self.bytes.read(&mut buffer[..room])
    }
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

pub(super) fn zstd(bytes: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
}
