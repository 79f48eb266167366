//! Checksums of IPv4 headers, TCP and UDP (RFC 791, 9293, 768, 8200). They are checked only on
//! request: on the sending machine the network card fills them in after the capture, so wrong ones
//! are normal there.
//!
//! It knows bytes and addresses. It skips packets that were cut, and packets with hops still to
//! come, whose final destination is not in the header yet.

use std::ops::Range;

use super::ip::IpPacket;

/// What a checksum covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Summed {
    /// The header of an IPv4 packet.
    Ip,
    /// A TCP segment with its pseudo header.
    Tcp,
    /// A UDP datagram with its pseudo header.
    Udp,
}

/// A wrong checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongSum {
    /// What it covers.
    pub of: Summed,
    /// The checksum in the packet.
    pub found: u16,
    /// The checksum that would be right.
    pub right: u16,
}

/// The wrong checksums of one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct WrongSums {
    pub(super) ip: Option<WrongSum>,
    pub(super) transport: Option<WrongSum>,
}

// Offsets of checksums and other fields in their headers, in bytes.
const IP_CHECKSUM: usize = 10;
const TCP_CHECKSUM: usize = 16;
const UDP_LENGTH: Range<usize> = 4..6;
const UDP_CHECKSUM: usize = 6;

impl WrongSums {
    pub(super) fn wrong(self) -> impl Iterator<Item = WrongSum> {
        [self.ip, self.transport].into_iter().flatten()
    }
}

/// A sum of 16-bit words in one's complement. Every part but the last must have an even length.
#[derive(Clone, Copy, Default)]
struct Sum(u64);

impl Sum {
    fn add(mut self, bytes: &[u8]) -> Self {
        let (pairs, rest) = bytes.as_chunks::<2>();
        self.0 += pairs.iter().map(|pair| u64::from(u16::from_be_bytes(*pair))).sum::<u64>();
        self.0 += rest.first().map_or(0, |last| u64::from(*last) << 8);
        self
    }

    fn finish(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }
}

/// Checks the header of an IPv4 packet.
pub(super) fn ip_header(packet: &[u8]) -> Option<WrongSum> {
    let length = usize::from(packet.first().filter(|first| **first >> 4 == 4)? & 15) * 4;
    check(Summed::Ip, Sum::default(), packet.get(..length)?, IP_CHECKSUM)
}

/// Checks the payload of a TCP or UDP packet.
pub(super) fn transport(packet: &IpPacket<'_>) -> Option<WrongSum> {
    if packet.missing > 0 || !packet.final_hop {
        return None;
    }
    let (of, place, bytes) = match packet.protocol {
        super::PROTOCOL_TCP => (Summed::Tcp, TCP_CHECKSUM, packet.payload),
        super::PROTOCOL_UDP => {
            let length = packet.payload.get(UDP_LENGTH)?;
            let bytes = match usize::from(u16::from_be_bytes(*length.first_chunk()?)) {
                0 if packet.v6 => packet.payload,
                length => packet.payload.get(..length)?,
            };
            (Summed::Udp, UDP_CHECKSUM, bytes)
        }
        _ => return None,
    };
    // Over IPv4, a UDP checksum of 0 means that there is none.
    if of == Summed::Udp && !packet.v6 && bytes.get(place..place + 2)? == [0, 0] {
        return None;
    }
    check(of, pseudo(packet, bytes.len()), bytes, place)
}

/// The sum of the pseudo header.
fn pseudo(packet: &IpPacket<'_>, length: usize) -> Sum {
    let addresses = [&packet.src, &packet.dst]
        .map(|address| if packet.v6 { &address[..] } else { &address[12..] });
    let [src, dst] = addresses;
    Sum::default().add(src).add(dst).add(&[0, packet.protocol]).add(&(length as u32).to_be_bytes())
}

/// Checks the checksum at `place` in `bytes`. `before` is the sum of what is summed before them.
fn check(of: Summed, before: Sum, bytes: &[u8], place: usize) -> Option<WrongSum> {
    let found = u16::from_be_bytes(*bytes.get(place..)?.first_chunk()?);
    // In UDP a sum of 0 is written as all ones, because 0 means that there is none. In one's
    // complement both are zero.
    let right = match before.add(bytes.get(..place)?).add(bytes.get(place + 2..)?).finish() {
        0 if of == Summed::Udp => 0xffff,
        right => right,
    };
    let equal = found == right
        || (of != Summed::Udp && found.wrapping_add(1) <= 1 && right.wrapping_add(1) <= 1);
    (!equal).then_some(WrongSum { of, found, right })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::super::ip;
    use super::super::remaining::Remaining;
    use super::*;
    use etherparse::PacketBuilder;

    /// Packets as etherparse writes them, with the offset of the checksum of their payload.
    fn packets(payload: &[u8]) -> Vec<(Vec<u8>, usize)> {
        let v4 = || PacketBuilder::ipv4([10, 1, 2, 3], [192, 168, 250, 7], 64);
        let v6 = || PacketBuilder::ipv6([0xfe; 16], [7; 16], 64);
        let mut all = Vec::new();
        let mut write = |place: usize, build: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = Vec::new();
            build(&mut bytes);
            all.push((bytes, place));
        };
        write(20 + 16, &|out| v4().tcp(14617, 40000, 7, 1024).write(out, payload).unwrap());
        write(20 + 6, &|out| v4().udp(13000, 40000).write(out, payload).unwrap());
        write(40 + 16, &|out| v6().tcp(14617, 40000, 7, 1024).write(out, payload).unwrap());
        write(40 + 6, &|out| v6().udp(13000, 40000).write(out, payload).unwrap());
        all
    }

    fn parsed(bytes: &[u8], wire_len: usize) -> IpPacket<'_> {
        ip::parse(Remaining::of_frame(bytes, wire_len)).unwrap()
    }

    fn judged(bytes: &[u8]) -> Option<WrongSum> {
        transport(&parsed(bytes, bytes.len()))
    }

    #[test]
    fn what_etherparse_writes_is_right_and_one_changed_byte_is_not() {
        for payload in [&b""[..], b"odd", b"even", &[0xff; 1401]] {
            for (mut bytes, place) in packets(payload) {
                assert_eq!((ip_header(&bytes), judged(&bytes)), (None, None));
                let right = u16::from_be_bytes([bytes[place], bytes[place + 1]]);
                bytes[place] ^= 0x5a;
                let wrong = judged(&bytes).unwrap();
                assert_eq!((wrong.right, wrong.found), (right, right ^ 0x5a00));
                bytes[place] ^= 0x5a;
                if let Some(last) = bytes.last_mut().filter(|_| !payload.is_empty()) {
                    *last ^= 1;
                    assert!(judged(&bytes).is_some());
                }
            }
        }
    }

    #[test]
    fn a_header_s_own_checksum_is_judged_alone() {
        let (mut bytes, _) = packets(b"x").swap_remove(0);
        bytes[8] -= 1;
        let wrong = ip_header(&bytes).unwrap();
        assert_eq!((wrong.of, wrong.right.wrapping_sub(wrong.found)), (Summed::Ip, 0x0100));
        assert_eq!(judged(&bytes), None, "the time to live is no part of the other");
    }

    #[test]
    fn what_was_cut_or_has_none_is_not_judged() {
        for (bytes, place) in packets(b"payload") {
            let mut wrong = bytes.clone();
            wrong[place] ^= 1;
            let cut = &wrong[..wrong.len() - 1];
            assert_eq!(transport(&parsed(cut, wrong.len())), None);
        }
        let (mut none, place) = packets(b"payload").swap_remove(1);
        none[place..place + 2].fill(0);
        assert_eq!(judged(&none), None, "UDP over IPv4 without a checksum");
        let (mut none, place) = packets(b"payload").swap_remove(3);
        none[place..place + 2].fill(0);
        assert!(judged(&none).is_some(), "over IPv6 there has to be one");
    }

    #[test]
    fn a_sum_of_zero_is_written_as_ones_in_udp() {
        let (mut bytes, place) = packets(b"\0\0").swap_remove(1);
        let right = u16::from_be_bytes([bytes[place], bytes[place + 1]]);
        let end = bytes.len();
        bytes[end - 2..].copy_from_slice(&right.to_be_bytes());
        bytes[place..place + 2].fill(0xff);
        assert_eq!(judged(&bytes), None);
    }
}
