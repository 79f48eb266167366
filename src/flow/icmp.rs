//! ICMP errors, for one thing alone: they quote the packet they are about, and Wireshark numbers its stream as if
//! it had been captured there. Where the packet itself is in the capture, nothing changes.

use super::ip::{self, Packet};
use super::table::{Key, Side};
use super::{PROTOCOL_ICMP, PROTOCOL_TCP, PROTOCOL_UDP};

const REDIRECT: u8 = 5;
/// How much of a TCP header must be quoted before Wireshark numbers its stream: up to the window. Of what a redirect
/// quotes it reads but 8 bytes.
const TCP_QUOTED: usize = 16;
const UDP_QUOTED: usize = 8;

/// The protocol and the ends of the TCP or UDP packet that an ICMP error quotes.
pub(super) fn quoted(packet: &Packet<'_>) -> Option<(u8, Key, Side)> {
    let ([kind, ..], quote) = packet.payload.split_first_chunk::<8>()?;
    let error = if packet.protocol == PROTOCOL_ICMP {
        // Unreachable, source quench, redirect, time exceeded, parameter problem (RFC 792).
        matches!(kind, 3 | 4 | 5 | 11 | 12)
    } else {
        // Unreachable, too big, time exceeded, parameter problem (RFC 4443).
        matches!(kind, 1..=4)
    };
    if !error {
        return None;
    }
    // The quoted packet says how long it was; what of it is quoted looks like a packet that was cut.
    let inner = ip::parse(quote, usize::from(u16::MAX) + 40).ok().filter(|inner| inner.fragment.is_none())?;
    let needed = match inner.protocol {
        PROTOCOL_TCP if packet.protocol == PROTOCOL_ICMP && *kind == REDIRECT => return None,
        PROTOCOL_TCP => TCP_QUOTED,
        PROTOCOL_UDP => UDP_QUOTED,
        _ => return None,
    };
    let [s0, s1, d0, d1, ..] = *inner.payload.get(..needed)?.first_chunk::<8>()?;
    let ends = (u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1]));
    let (key, side) = Key::new(inner.v6, (&inner.src, ends.0), (&inner.dst, ends.1));
    Some((inner.protocol, key, side))
}
