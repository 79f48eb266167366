//! What a session knows of a packet before it is read: its bytes, its header, and the name under
//! which it is reported.
//!
//! It decides nothing.

use super::packet::Header;
use super::sequence::Sending;
use crate::proto::Moment;
use crate::session::Side;

/// A packet's bytes and its header.
#[derive(Clone, Copy)]
pub(super) struct Received<'a> {
    pub(super) from: Side,
    /// The offset of its first byte in the stream; 0 for a datagram.
    pub(super) offset: u64,
    pub(super) at: Moment,
    pub(super) bytes: &'a [u8],
    pub(super) header: Header,
    /// Where the packet ends in the bytes, padding included.
    pub(super) end: usize,
    /// Whether its checksum is right.
    pub(super) right: bool,
    pub(super) sending: Sending,
    /// Whether it may be one of the first packets of its side, as far as its link header says.
    pub(super) early: bool,
}

impl Received<'_> {
    /// Bits of the packet, as its header says.
    pub(super) fn bits(&self) -> usize {
        self.header.bits as usize
    }
}

/// The bits of a command: the first `bits` bits of `bytes`, from bit `from` on.
#[derive(Clone, Copy)]
pub(super) struct CommandBits<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) bits: usize,
    pub(super) from: usize,
}

/// The name and number under which a packet is reported.
#[derive(Default)]
pub(super) struct Name {
    pub(super) number: Option<u64>,
    pub(super) fixed: Option<&'static str>,
}
