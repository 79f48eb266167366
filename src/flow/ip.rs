//! Headers of IPv4 and IPv6: addresses, protocol, payload, and how many of its bytes the capture
//! cut off.
//!
//! It knows extension headers and fragment headers. It does not reassemble fragments and knows no
//! transport.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::not_read::NotRead;
use super::remaining::{Network, Remaining};
use etherparse::{
    IpAuthHeaderSlice, IpNumber, Ipv4HeaderSlice, Ipv6FragmentHeaderSlice, Ipv6HeaderSlice,
    Ipv6RawExtHeaderSlice,
};

/// An address of either family in 16 bytes. The family is not part of it.
pub(super) type Address = [u8; 16];

/// An IP packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct IpPacket<'a> {
    pub v6: bool,
    pub src: Address,
    pub dst: Address,
    /// The payload's protocol, by IANA's protocol numbers.
    pub protocol: u8,
    /// The captured bytes of the payload.
    pub payload: &'a [u8],
    /// How many more bytes the payload had on the wire.
    pub missing: u32,
    /// Set if the payload is a fragment.
    pub fragment: Option<Fragment>,
    /// Whether checksums can be computed from the header: it lists no further hops, and it states
    /// the length.
    pub final_hop: bool,
    /// Whether its end is missing because too many fragments were waiting and this datagram's were
    /// given up.
    pub crowded: bool,
    /// The VLANs and tunnels that it was found in.
    pub network: Network,
    /// How many more headers may be read behind it.
    pub headers_left: u8,
}

/// The part of a datagram that a fragment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fragment {
    pub id: u32,
    /// In bytes.
    pub offset: u32,
    pub more: bool,
}

/// IPv4 options that list hops: loose and strict source route. Any option byte with one of these
/// values counts, because packets with options are rare.
const SOURCE_ROUTES: [u8; 2] = [131, 137];
/// The most extension headers that are read.
const MAX_EXTENSIONS: usize = 16;

/// Reads an IP packet.
pub(super) fn parse(rest: Remaining<'_>) -> Result<IpPacket<'_>, NotRead> {
    let parsed = match rest.bytes.first().map(|first| first >> 4) {
        Some(4) => parse_v4(rest),
        Some(6) => parse_v6(rest),
        _ => None,
    };
    let mut packet = parsed.ok_or_else(|| rest.too_short())?;
    if packet.fragment.is_none() {
        packet.walk_extensions()?;
    }
    Ok(packet)
}

impl<'a> IpPacket<'a> {
    /// Skips extension headers, up to a transport header or the header of a fragment.
    pub(super) fn walk_extensions(&mut self) -> Result<(), NotRead> {
        for _ in 0..MAX_EXTENSIONS {
            let (next, len, fragment) = match self.extension()? {
                Some(extension) => extension,
                None => return Ok(()),
            };
            // With hops still to come, the destination changes on the way.
            let hops = self.protocol == IpNumber::IPV6_ROUTE_HEADER.0
                && self.payload.get(3).is_some_and(|left| *left > 0);
            self.final_hop &= !(self.v6 && hops);
            self.protocol = next.0;
            self.payload = self.payload.get(len..).ok_or_else(|| self.too_short())?;
            if fragment.is_some() {
                self.fragment = fragment;
                return Ok(());
            }
        }
        Err(NotRead::Nested)
    }

    /// Why a header behind it does not fit.
    fn too_short(&self) -> NotRead {
        self.remaining().too_short()
    }

    /// What it carries.
    pub(super) fn remaining(&self) -> Remaining<'a> {
        Remaining {
            bytes: self.payload,
            wire_len: self.payload.len() + self.missing as usize,
            network: self.network,
            headers_left: self.headers_left,
        }
    }

    /// The next extension header, if there is one: the protocol after it, its length, and the
    /// fragment it describes.
    fn extension(&self) -> Result<Option<(IpNumber, usize, Option<Fragment>)>, NotRead> {
        let plain = |next, len| Ok(Some((next, len, None)));
        match IpNumber(self.protocol) {
            IpNumber::AUTHENTICATION_HEADER => {
                let header =
                    IpAuthHeaderSlice::from_slice(self.payload).map_err(|_| self.too_short())?;
                plain(header.next_header(), header.slice().len())
            }
            IpNumber::IPV6_HEADER_HOP_BY_HOP
            | IpNumber::IPV6_ROUTE_HEADER
            | IpNumber::IPV6_DESTINATION_OPTIONS
                if self.v6 =>
            {
                let header = Ipv6RawExtHeaderSlice::from_slice(self.payload)
                    .map_err(|_| self.too_short())?;
                plain(header.next_header(), header.slice().len())
            }
            IpNumber::IPV6_FRAGMENTATION_HEADER if self.v6 => {
                let header = Ipv6FragmentHeaderSlice::from_slice(self.payload)
                    .map_err(|_| self.too_short())?;
                let fragment = header.is_fragmenting_payload().then(|| Fragment {
                    id: header.identification(),
                    offset: u32::from(header.fragment_offset().value()) * 8,
                    more: header.more_fragments(),
                });
                Ok(Some((header.next_header(), header.slice().len(), fragment)))
            }
            _ => Ok(None),
        }
    }
}

/// An address as the standard library's type.
pub(super) fn address(v6: bool, bytes: &Address) -> IpAddr {
    if v6 {
        return IpAddr::V6(Ipv6Addr::from(*bytes));
    }
    let [.., a, b, c, d] = *bytes;
    IpAddr::V4(Ipv4Addr::new(a, b, c, d))
}

/// Reads an IPv4 packet. `None` if its header does not fit or contradicts itself.
fn parse_v4(rest: Remaining<'_>) -> Option<IpPacket<'_>> {
    let header = Ipv4HeaderSlice::from_slice(rest.bytes).ok()?;
    let header_len = header.slice().len();
    // With segmentation offload, the network card fills in the length after the capture; until then
    // it is 0.
    let total = match usize::from(header.total_len()) {
        0 => rest.wire_len,
        total if total < header_len => return None,
        total => total.min(rest.wire_len),
    };
    let (payload, missing) = bounded(rest.bytes, header_len, total)?;
    Some(IpPacket {
        v6: false,
        src: widen(header.source()),
        dst: widen(header.destination()),
        protocol: header.protocol().0,
        payload,
        missing,
        fragment: header.is_fragmenting_payload().then(|| Fragment {
            id: u32::from(header.identification()),
            offset: u32::from(header.fragments_offset().value()) * 8,
            more: header.more_fragments(),
        }),
        final_hop: header.total_len() != 0
            && !header.options().iter().any(|option| SOURCE_ROUTES.contains(option)),
        crowded: false,
        network: rest.network,
        headers_left: rest.headers_left,
    })
}

/// Reads an IPv6 packet. `None` if its header does not fit.
fn parse_v6(rest: Remaining<'_>) -> Option<IpPacket<'_>> {
    let header = Ipv6HeaderSlice::from_slice(rest.bytes).ok()?;
    let header_len = header.slice().len();
    // 0 is the length of a jumbogram (RFC 2675), or offload as in IPv4.
    let total = match usize::from(header.payload_length()) {
        0 => rest.wire_len,
        payload => (header_len + payload).min(rest.wire_len),
    };
    let (payload, missing) = bounded(rest.bytes, header_len, total)?;
    Some(IpPacket {
        v6: true,
        src: header.source(),
        dst: header.destination(),
        protocol: header.next_header().0,
        payload,
        missing,
        fragment: None,
        final_hop: header.payload_length() != 0,
        crowded: false,
        network: rest.network,
        headers_left: rest.headers_left,
    })
}

/// The captured payload of a packet of `total` bytes, and how many of its bytes were not captured.
fn bounded(data: &[u8], header_len: usize, total: usize) -> Option<(&[u8], u32)> {
    let payload = data.get(header_len..total.min(data.len()))?;
    let missing = total.saturating_sub(data.len());
    Some((payload, u32::try_from(missing).unwrap_or(u32::MAX)))
}

fn widen(v4: [u8; 4]) -> Address {
    let [a, b, c, d] = v4;
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d]
}
