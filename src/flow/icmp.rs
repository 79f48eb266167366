//! ICMP errors. They quote the packet that caused them, and Wireshark numbers the stream of a
//! quoted packet as if the packet had been captured there. If the packet itself is in the capture
//! before, nothing changes.

use super::conversations::{Endpoint, PacketEnds};
use super::ip::{self, IpPacket};
use super::remaining::Remaining;
use super::{PROTOCOL_ICMP, PROTOCOL_TCP, PROTOCOL_UDP};

// Types of ICMP errors (RFC 792).
const UNREACHABLE: u8 = 3;
const SOURCE_QUENCH: u8 = 4;
const REDIRECT: u8 = 5;
const TIME_EXCEEDED: u8 = 11;
const PARAMETER_PROBLEM: u8 = 12;

// Types of ICMPv6 errors (RFC 4443).
const V6_UNREACHABLE: u8 = 1;
const V6_TOO_BIG: u8 = 2;
const V6_TIME_EXCEEDED: u8 = 3;
const V6_PARAMETER_PROBLEM: u8 = 4;

/// Bytes of an ICMP header.
const HEADER: usize = 8;
/// Wireshark numbers the stream of a quoted TCP segment only if this many bytes of its header are
/// quoted.
const TCP_QUOTED: usize = 16;
const UDP_QUOTED: usize = 8;
/// How long a quoted packet may have been. Its own header states the length; the quote ends
/// earlier, like a packet that was cut.
const LONGEST_QUOTED: usize = u16::MAX as usize + 40;

/// The protocol and the ends of the TCP or UDP packet that an ICMP error quotes.
pub(super) fn quoted(packet: &IpPacket<'_>) -> Option<(u8, PacketEnds)> {
    let ([kind, ..], quote) = packet.payload.split_first_chunk::<HEADER>()?;
    let v4 = packet.protocol == PROTOCOL_ICMP;
    let error = if v4 {
        matches!(*kind, UNREACHABLE | SOURCE_QUENCH | REDIRECT | TIME_EXCEEDED | PARAMETER_PROBLEM)
    } else {
        matches!(*kind, V6_UNREACHABLE | V6_TOO_BIG | V6_TIME_EXCEEDED | V6_PARAMETER_PROBLEM)
    };
    if !error {
        return None;
    }
    let quote = Remaining { bytes: quote, wire_len: LONGEST_QUOTED, ..packet.remaining() };
    let inner = ip::parse(quote).ok().filter(|inner| inner.fragment.is_none())?;
    let needed = match inner.protocol {
        // Of the segment that a redirect quotes, Wireshark reads 8 bytes, which are too few.
        PROTOCOL_TCP if v4 && *kind == REDIRECT => return None,
        PROTOCOL_TCP => TCP_QUOTED,
        PROTOCOL_UDP => UDP_QUOTED,
        _ => return None,
    };
    let [s0, s1, d0, d1, ..] = *inner.payload.get(..needed)?.first_chunk::<8>()?;
    let src = Endpoint { address: &inner.src, port: u16::from_be_bytes([s0, s1]) };
    let dst = Endpoint { address: &inner.dst, port: u16::from_be_bytes([d0, d1]) };
    Some((inner.protocol, PacketEnds::new(inner.v6, src, dst)))
}
