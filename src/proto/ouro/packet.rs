//! Reads what a packet shows by itself: length, checksum, link header, command. Recognition and the
//! link's decisions use it.
//!
//! It knows neither trees nor tables, and no other packet.

use crate::table::{Cursor, read_packint};
use crate::tree::Buffer;

/// Bytes of the header: length and checksum.
pub const HEADER: usize = 8;

/// A packet's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The packet's length in bits, with the header and without padding.
    pub bits: u32,
    /// The Adler-32 of all bytes behind it.
    pub checksum: u32,
}

impl Header {
    /// The header at the start of some bytes: a length with the low byte first, a checksum with the
    /// high byte first.
    pub fn parse(bytes: &[u8]) -> Option<Header> {
        let (bits, rest) = bytes.split_first_chunk::<4>()?;
        let (checksum, _) = rest.split_first_chunk::<4>()?;
        Some(Header { bits: u32::from_le_bytes(*bits), checksum: u32::from_be_bytes(*checksum) })
    }

    /// The length in bytes. The last byte may not be full.
    pub fn bytes(self) -> usize {
        self.bits.div_ceil(8) as usize
    }

    /// The length in bytes with padding, as the client of 2004 and encrypted links send it: the
    /// bytes behind the length field are a multiple of 8.
    pub fn padded(self) -> usize {
        padded(self.bytes())
    }

    /// Whether a packet can have this length: a header and at least one bit.
    pub fn possible(self) -> bool {
        self.bits as usize > HEADER * 8
    }

    /// Whether the checksum is that of `bytes`, a whole packet with its padding.
    pub fn sums(self, bytes: &[u8]) -> bool {
        bytes.get(HEADER..).is_some_and(|rest| checksum(rest) == self.checksum)
    }

    /// The end of the packet at which its checksum is right: without padding, with it, or with all
    /// available bytes.
    pub fn proven_end(self, bytes: &[u8]) -> Option<usize> {
        [self.bytes(), self.padded(), bytes.len()]
            .into_iter()
            .find(|end| *end > HEADER && bytes.get(..*end).is_some_and(|whole| self.sums(whole)))
    }
}

/// The Adler-32 of some bytes.
pub fn checksum(bytes: &[u8]) -> u32 {
    zlib_rs::adler32::adler32(1, bytes)
}

/// The length in bytes that a packet of `bytes` bytes is padded to.
pub fn padded(bytes: usize) -> usize {
    (bytes.saturating_add(3) & !7).saturating_add(4)
}

/// How commands are numbered on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// Versions 0, 1, 2: control commands are 0 to 6, and 5 is added to the number of a user
    /// command.
    Old,
    /// Versions 4 and 5: 0 is followed by a control command's number.
    New,
}

impl Numbering {
    /// Says in words how commands are numbered, and why that is assumed.
    pub fn words(self) -> &'static str {
        match self {
            Numbering::Old => "numbered as in versions 0 to 2, which is what fits",
            Numbering::New => "numbered as in versions 4 and 5, which is what fits",
        }
    }
}

/// A cursor over the bits of a packet, from a bit on.
pub fn cursor(bytes: &[u8], bits: usize, from: usize) -> Cursor<'_> {
    let mut cursor = Cursor::new(bytes, Buffer::CAPTURED);
    cursor.restore(bits);
    cursor.at_bit(from)
}

/// The parts of the link header that the session needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkHeader {
    /// A bit whose effect is not published.
    pub debug: bool,
    /// The datagram's number.
    pub sequence: u32,
    /// How many datagrams the packet has.
    pub siblings: u32,
    /// Which of them this is.
    pub position: u32,
    /// The packet's identity, the same in all of them.
    pub id: u32,
    /// Whether what follows is compressed.
    pub compressed: bool,
    /// The bit after the header and its padding.
    pub end: usize,
    /// Whether the header is possible and something follows it.
    pub sane: bool,
}

/// A packet has at most this many datagrams.
pub const MAX_SIBLINGS: u32 = 4096;

/// The numbers of the first datagrams of a side.
const EARLY: u32 = 8;

impl LinkHeader {
    /// Whether it is one of the first datagrams of its side. Only these can be a CONNECT: SEGS'
    /// client sends it with the number 1, and others may send it again with the next ones.
    pub fn is_early(self) -> bool {
        (1..=EARLY).contains(&self.sequence)
    }

    /// Whether the piece can be reassembled with others.
    pub fn is_piece(self) -> bool {
        self.siblings <= MAX_SIBLINGS && self.position < self.siblings
    }

    /// Reads a link header behind the packet's header; `None` where the bits end within it.
    pub fn parse(bytes: &[u8], bits: usize) -> Option<LinkHeader> {
        let mut c = cursor(bytes, bits, HEADER * 8);
        let debug = c.bits(1).ok()? == 1;
        let sequence = c.bits(32).ok()? as u32;
        let siblings = read_packint(&mut c, 1).ok()?;
        let mut position = 0;
        let mut id = 0;
        if siblings > 0 {
            position = read_packint(&mut c, 1).ok()?;
            id = c.bits(32).ok()? as u32;
        }
        let acks = read_packint(&mut c, 1).ok()?;
        if acks > 0 {
            c.bits(32).ok()?;
        }
        for _ in 1..acks {
            read_packint(&mut c, 1).ok()?;
        }
        let compressed = c.bits(1).ok()? == 1;
        let pad = c.pos().next_multiple_of(8) - c.pos();
        let zero = c.bits(pad as u32).ok()? == 0;
        let mut link = LinkHeader {
            debug,
            sequence,
            siblings,
            position,
            id,
            compressed,
            end: c.pos(),
            sane: false,
        };
        link.sane = zero && (siblings == 0 || link.is_piece()) && c.left_bits() > 0;
        Some(link)
    }

    /// Calls `each` with every acknowledged sequence number of a header that was parsed.
    pub fn each_ack(self, bytes: &[u8], mut each: impl FnMut(u32)) -> Option<()> {
        let mut c = cursor(bytes, self.end, HEADER * 8 + 33);
        if read_packint(&mut c, 1).ok()? > 0 {
            read_packint(&mut c, 1).ok()?;
            c.bits(32).ok()?;
        }
        let count = read_packint(&mut c, 1).ok()?;
        let mut ack = 0u32;
        for i in 0..count {
            ack = match i {
                0 => c.bits(32).ok()? as u32,
                _ => ack.wrapping_add(read_packint(&mut c, 1).ok()?).wrapping_add(1),
            };
            each(ack);
        }
        Some(())
    }
}

/// A packet's command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandNumbers {
    /// The number on the wire.
    pub cmd: u32,
    /// The control command, or `None` for a user command.
    pub control: Option<u32>,
    /// The first bit behind the numbers.
    pub body: usize,
    /// Whether the control command ends where the packet does.
    pub exact: bool,
    /// The version of a CONNECT, or whether a CONNECT_…_ACK wants encryption.
    pub value: u32,
}

/// Control commands by number.
pub mod control {
    #![allow(missing_docs)] // as the document names them
    pub const CONNECT: u32 = 1;
    pub const SERVER_ACK: u32 = 2;
    pub const CLIENT_ACK: u32 = 3;
    pub const SERVER_ACK_ACK: u32 = 4;
    pub const DISCONNECT_ACK: u32 = 6;
}

impl CommandNumbers {
    /// Reads the command that begins at the cursor.
    pub fn parse(mut c: Cursor<'_>, numbering: Numbering) -> Option<CommandNumbers> {
        let cmd = read_packint(&mut c, 1).ok()?;
        let control = match numbering {
            Numbering::Old => (cmd <= 6).then_some(cmd),
            Numbering::New if cmd > 0 => None,
            Numbering::New if c.left_bits() == 0 => Some(0),
            Numbering::New => Some(read_packint(&mut c, 1).ok()?),
        };
        let body = c.pos();
        let value = control.and_then(|n| body_of(&mut c, n));
        Some(CommandNumbers {
            cmd,
            control,
            body,
            exact: value.is_some() && c.left_bits() == 0,
            value: value.unwrap_or(0),
        })
    }

    /// The number of a user command.
    pub fn user(self, numbering: Numbering) -> u32 {
        match numbering {
            Numbering::Old => self.cmd.saturating_sub(5),
            Numbering::New => self.cmd,
        }
    }
}

/// Reads a control command's body. Returns the value to remember.
fn body_of(c: &mut Cursor<'_>, number: u32) -> Option<u32> {
    match number {
        0 | 4..=6 => Some(0),
        control::CONNECT => {
            read_packint(c, 1).ok()?;
            if c.left_bits() == 0 { Some(0) } else { read_packint(c, 1).ok() }
        }
        control::SERVER_ACK | control::CLIENT_ACK => {
            let encrypted = read_packint(c, 1).ok()?;
            if encrypted == 1 {
                c.align();
                c.skip(64).ok()?;
            }
            Some(encrypted)
        }
        7 => c.bits(32).ok().map(|_| 0),
        _ => None,
    }
}
