//! The header of a TCP segment. It knows no connection.

use super::checksum::WrongSums;

// Flags (RFC 9293).
pub(super) const FIN: u8 = 0x01;
pub(super) const SYN: u8 = 0x02;
pub(super) const RST: u8 = 0x04;
pub(super) const ACK: u8 = 0x10;

/// Bytes of the fixed part of the header.
const SMALLEST_HEADER: u8 = 20;

/// A segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment<'a> {
    pub src_port: u16,
    pub dst_port: u16,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    /// The window as the header states it, not scaled.
    pub window: u16,
    /// The header's length in bytes, as the header states it.
    header_len: u8,
    /// Whether a header of that length fits into the segment.
    pub measured: bool,
    /// The captured payload.
    pub bytes: &'a [u8],
    /// Length of the payload on the wire.
    pub len: u64,
    pub sums: WrongSums,
    /// Whether its end is missing because too many IP fragments were waiting and this segment's
    /// were given up.
    pub crowded: bool,
}

impl<'a> Segment<'a> {
    /// Reads a header (RFC 9293) from the captured bytes of an IP payload that was `missing` bytes
    /// longer. `None` if the fields up to the flags were not captured.
    #[inline]
    pub(super) fn parse(data: &'a [u8], missing: u32) -> Option<Self> {
        let (ports, rest) = data.split_first_chunk::<4>()?;
        let (seq, rest) = rest.split_first_chunk::<4>()?;
        let (ack, rest) = rest.split_first_chunk::<4>()?;
        let [header, flags, window @ ..] = *rest.first_chunk::<4>()?;
        let [src_high, src_low, dst_high, dst_low] = *ports;
        let header_len = usize::from(header >> 4) * 4;
        let whole = data.len() as u64 + u64::from(missing);
        Some(Segment {
            src_port: u16::from_be_bytes([src_high, src_low]),
            dst_port: u16::from_be_bytes([dst_high, dst_low]),
            seq: u32::from_be_bytes(*seq),
            ack: u32::from_be_bytes(*ack),
            flags,
            window: u16::from_be_bytes(window),
            header_len: (header >> 4) * 4,
            measured: whole >= header_len as u64,
            bytes: data.get(header_len..).unwrap_or_default(),
            len: whole.saturating_sub(header_len as u64),
            sums: WrongSums::default(),
            crowded: false,
        })
    }

    /// Whether the stated length of the header is one that a TCP header can have.
    pub(super) fn full(&self) -> bool {
        self.header_len >= SMALLEST_HEADER
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Whether its sender says that it takes no more bytes for now. In a segment that opens or ends
    /// a connection the window says nothing of that.
    pub(super) fn closes_window(&self) -> bool {
        self.window == 0 && self.flags & (SYN | RST | FIN) == 0
    }

    pub(super) fn opens(&self) -> bool {
        self.flags & (SYN | ACK) == SYN
    }

    /// Sequence number of the first payload byte.
    pub(super) fn first(&self) -> u32 {
        self.seq.wrapping_add(u32::from(self.has(SYN)))
    }
}
