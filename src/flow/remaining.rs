//! What is left of a frame behind the headers that were read so far. It knows no header.

use super::not_read::NotRead;

/// The most headers that are read of one frame. No network uses as many; a hostile frame may
/// consist of VLAN tags, labels or tunnels alone.
const MAX_HEADERS: u8 = 32;

/// The rest of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remaining<'a> {
    /// The captured bytes.
    pub bytes: &'a [u8],
    /// How many bytes there were before the capture cut them.
    pub wire_len: usize,
    pub network: Network,
    /// How many more headers may be read.
    pub headers_left: u8,
}

/// The VLANs and tunnels that a packet was found in: a number that is the same for the packets of
/// one network, and 0 outside of all. Hosts of different networks may have the same addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Network(u64);

/// What separates one network from others on the same wire.
#[derive(Clone, Copy, Debug)]
pub(super) enum Separator {
    Vlan,
    /// The service identifier of 802.1ah.
    Service,
    PppoeSession,
    MplsLabel,
    /// The VXLAN or GENEVE network identifier.
    Virtual,
    GreKey,
    /// An address at either end of a tunnel.
    TunnelEnd,
}

impl Network {
    /// The network with this number within this one.
    pub(super) fn within(self, separator: Separator, number: u128) -> Self {
        let words = [separator as u64, number as u64, (number >> 64) as u64];
        Network(words.into_iter().fold(self.0, |hash, word| {
            let product = u128::from(hash ^ word ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
            product as u64 ^ (product >> 64) as u64
        }))
    }
}

impl<'a> Remaining<'a> {
    /// A whole frame.
    pub(super) fn of_frame(bytes: &'a [u8], wire_len: usize) -> Self {
        Remaining { bytes, wire_len, network: Network::default(), headers_left: MAX_HEADERS }
    }

    /// Whether the capture cut it.
    pub(super) fn is_cut(&self) -> bool {
        self.wire_len > self.bytes.len()
    }

    /// Takes a header off.
    pub(super) fn take<const N: usize>(&mut self) -> Result<&'a [u8; N], NotRead> {
        let (header, rest) = self.bytes.split_first_chunk::<N>().ok_or_else(|| self.too_short())?;
        self.headers_left = self.headers_left.checked_sub(1).ok_or(NotRead::Nested)?;
        self.bytes = rest;
        self.wire_len = self.wire_len.saturating_sub(N);
        Ok(header)
    }

    /// Takes bytes of a header off that nobody needs.
    pub(super) fn skip(&mut self, length: usize) -> Result<(), NotRead> {
        self.bytes = self.bytes.get(length..).ok_or_else(|| self.too_short())?;
        self.wire_len = self.wire_len.saturating_sub(length);
        Ok(())
    }

    /// Drops what follows behind the first `length` bytes: padding.
    pub(super) fn end_after(&mut self, length: usize) {
        self.bytes = self.bytes.get(..length).unwrap_or(self.bytes);
        self.wire_len = self.wire_len.min(length);
    }

    /// It continues in a network within the one before.
    pub(super) fn enter(&mut self, separator: Separator, number: u128) {
        self.network = self.network.within(separator, number);
    }

    /// Why a header does not fit: because the capture cut it, or because it is wrong.
    pub(super) fn too_short(&self) -> NotRead {
        if self.is_cut() { NotRead::Cut } else { NotRead::Damaged }
    }
}
