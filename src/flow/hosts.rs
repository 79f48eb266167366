//! The two hosts that a frame passed between, for dividing captures by host. No ports and no streams: every fragment of a
//! datagram has the same two hosts.

use std::net::IpAddr;

use super::ip::{self, IpPacket, address};
use super::{PROTOCOL_ICMP, PROTOCOL_ICMPV6, icmp, link};

/// Bytes of an ICMP error before the packet it quotes.
const ICMP_HEADER: usize = 8;

/// Source and destination of the IP packet in a frame of a link type; nothing where there is none that can be read. An ICMP
/// error about a TCP or UDP packet counts as a packet of the two hosts it quotes, since it belongs to their stream. Of a
/// tunnel the outer packet counts: its fragments do not all show the inner one.
pub fn hosts(link: u16, data: &[u8], wire_len: u32) -> Option<(IpAddr, IpAddr)> {
    let bytes = link::ip(link, data).ok()?;
    let cut = (wire_len as usize).saturating_sub(data.len());
    let packet = ip::parse(bytes, bytes.len() + cut).ok()?;
    let inner = quoted(&packet);
    let packet = inner.as_ref().unwrap_or(&packet);
    Some((address(packet.v6, &packet.src), address(packet.v6, &packet.dst)))
}

/// The packet that an ICMP error is about.
fn quoted<'a>(packet: &IpPacket<'a>) -> Option<IpPacket<'a>> {
    if packet.fragment.is_some() || !matches!(packet.protocol, PROTOCOL_ICMP | PROTOCOL_ICMPV6) {
        return None;
    }
    icmp::quoted(packet)?;
    ip::parse(packet.payload.get(ICMP_HEADER..)?, usize::from(u16::MAX)).ok()
}
