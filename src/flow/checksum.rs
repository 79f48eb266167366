//! Checksums of IPv4 headers, TCP and UDP (RFC 791, 9293, 768, 8200), for those who ask for them: where a capture is taken on the sending machine
//! the network card fills them in later, so that wrong ones are normal there.
//!
//! It knows bytes and addresses. What was cut off is not judged, nor what only the receiver could judge: a packet on its way through
//! further hops, whose last address is not the one in its header yet.

use super::ip::Packet;

/// What a wrong checksum belongs to.
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
    /// Of what.
    pub of: Summed,
    /// What stands there.
    pub found: u16,
    /// What ought to stand there.
    pub right: u16,
}

/// What was found wrong with one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) ip: Option<WrongSum>,
    pub(super) transport: Option<WrongSum>,
}

impl Sums {
    pub(super) fn wrong(self) -> impl Iterator<Item = WrongSum> {
        [self.ip, self.transport].into_iter().flatten()
    }
}

/// A sum of 16-bit words in one's complement that grows by parts; each but the last has an even length.
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

/// The header that begins an IPv4 packet, where its checksum is wrong.
pub(super) fn ip_header(packet: &[u8]) -> Option<WrongSum> {
    let length = usize::from(packet.first().filter(|first| **first >> 4 == 4)? & 15) * 4;
    judge(Summed::Ip, Sum::default(), packet.get(..length)?, 10)
}

/// What a TCP or UDP packet carries, where its checksum is wrong.
pub(super) fn transport(packet: &Packet<'_>) -> Option<WrongSum> {
    if packet.missing > 0 || !packet.final_hop {
        return None;
    }
    let (of, place, bytes) = match packet.protocol {
        super::PROTOCOL_TCP => (Summed::Tcp, 16, packet.payload),
        super::PROTOCOL_UDP => {
            let length = packet.payload.get(4..6)?;
            let bytes = match usize::from(u16::from_be_bytes(*length.first_chunk()?)) {
                0 if packet.v6 => packet.payload,
                length => packet.payload.get(..length)?,
            };
            (Summed::Udp, 6, bytes)
        }
        _ => return None,
    };
    // A datagram over IPv4 may do without one.
    if of == Summed::Udp && !packet.v6 && bytes.get(6..8)? == [0, 0] {
        return None;
    }
    judge(of, pseudo(packet, bytes.len()), bytes, place)
}

/// The header that is summed beside the bytes themselves.
fn pseudo(packet: &Packet<'_>, length: usize) -> Sum {
    let addresses = [&packet.src, &packet.dst].map(|address| if packet.v6 { &address[..] } else { &address[12..] });
    let [src, dst] = addresses;
    Sum::default().add(src).add(dst).add(&[0, packet.protocol]).add(&(length as u32).to_be_bytes())
}

/// Whether the checksum at a place in some bytes is right.
fn judge(of: Summed, before: Sum, bytes: &[u8], place: usize) -> Option<WrongSum> {
    let found = u16::from_be_bytes(*bytes.get(place..)?.first_chunk()?);
    // Zero stands for none in UDP, and all ones for zero; in one's complement the two are equal.
    let right = match before.add(bytes.get(..place)?).add(bytes.get(place + 2..)?).finish() {
        0 if of == Summed::Udp => 0xffff,
        right => right,
    };
    let equal = found == right || (of != Summed::Udp && found.wrapping_add(1) <= 1 && right.wrapping_add(1) <= 1);
    (!equal).then_some(WrongSum { of, found, right })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::super::ip;
    use super::*;
    use etherparse::PacketBuilder;

    /// Packets as etherparse writes them, with the place of the checksum of what they carry.
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

    fn judged(bytes: &[u8]) -> Option<WrongSum> {
        transport(&ip::parse(bytes, bytes.len()).unwrap())
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
            assert_eq!(transport(&ip::parse(cut, wrong.len()).unwrap()), None);
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
