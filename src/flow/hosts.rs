//! Finds the two hosts of a frame, for splitting captures by host. It needs no ports and no
//! streams: every fragment of a datagram has the same two hosts.

use std::net::IpAddr;

use super::ip::{self, IpPacket, address};
use super::{PROTOCOL_ICMP, PROTOCOL_ICMPV6, icmp, link};

/// Bytes of an ICMP error before the packet it quotes.
const ICMP_HEADER: usize = 8;

/// Source and destination of the IP packet in a frame. `None` if there is no readable packet. An
/// ICMP error about a TCP or UDP packet counts as a packet of the two hosts that it quotes, since
/// it belongs to their stream. In a tunnel the outer packet counts, because not every fragment
/// shows the inner one.
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
