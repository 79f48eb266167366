//! Finds the two hosts of a frame, for splitting captures by host. It needs no ports and no
//! streams: every fragment of a datagram has the same two hosts.

use std::net::IpAddr;

use super::ip::{self, IpPacket, address};
use super::remaining::Remaining;
use super::{PROTOCOL_ICMP, PROTOCOL_ICMPV6, icmp, link};

/// Bytes of an ICMP error before the packet it quotes.
const ICMP_HEADER: usize = 8;

/// Source and destination of the IP packet in a frame. `None` if there is no readable packet. An
/// ICMP error about a TCP or UDP packet counts as a packet of the two hosts that it quotes, since
/// it belongs to their stream. In a tunnel the outer packet counts, because not every fragment
/// shows the inner one.
pub fn hosts(link: u16, data: &[u8], wire_len: u32) -> Option<(IpAddr, IpAddr)> {
    let frame = Remaining::of_frame(data, wire_len as usize);
    let packet = ip::parse(link::ip(link, frame).ok()?).ok()?;
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
    let bytes = packet.payload.get(ICMP_HEADER..)?;
    let wire_len = usize::from(u16::MAX);
    ip::parse(Remaining { bytes, wire_len, ..packet.remaining() }).ok()
}
