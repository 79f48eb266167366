//! Link layers: finds the IP packet in a frame. It does not know what is in an IP packet.
//!
//! The link types are those of the tcpdump group's registry,
//! <https://www.tcpdump.org/linktypes.html>.

use etherparse::{Ethernet2HeaderSlice, SingleVlanHeaderSlice};

/// Why no IP packet could be read from a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoIp {
    /// It carries another protocol.
    Other,
    /// Its link type is not supported.
    Unsupported,
    /// It ends before its link-layer header does.
    Short,
}

/// `LINKTYPE_NULL`: BSD loopback, the protocol family in the byte order of the capturing machine.
const LINK_NULL: u16 = 0;
const LINK_ETHERNET: u16 = 1;
const LINK_PPP: u16 = 9;
/// `DLT_RAW` of most systems, which some programs write although the registry gives files another
/// number.
const LINK_RAW_DLT: u16 = 12;
/// `DLT_RAW` of OpenBSD.
const LINK_RAW_OPENBSD: u16 = 14;
/// `LINKTYPE_PPP_HDLC`.
const LINK_PPP_HDLC: u16 = 50;
/// `LINKTYPE_RAW`: IPv4 or IPv6 without a header before it.
const LINK_RAW: u16 = 101;
/// `LINKTYPE_LOOP`: OpenBSD loopback, the protocol family in network byte order.
const LINK_LOOP: u16 = 108;
/// `LINKTYPE_LINUX_SLL`: Linux cooked capture.
const LINK_LINUX_SLL: u16 = 113;
const LINK_IPV4: u16 = 228;
const LINK_IPV6: u16 = 229;
/// `LINKTYPE_LINUX_SLL2`: Linux cooked capture, version 2.
const LINK_LINUX_SLL2: u16 = 276;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERTYPE_PPPOE: u16 = 0x8864;
/// 802.1Q, 802.1ad, and what QinQ used before 802.1ad.
const ETHERTYPES_VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// The most VLAN tags that are read. No network uses as many; a hostile frame may consist of tags
/// alone.
const MOST_TAGS: usize = 8;

const FAMILY_IPV4: u32 = 2;
/// Protocol families of a loopback header that mean IPv6: Linux, NetBSD and OpenBSD, FreeBSD,
/// Darwin.
const FAMILIES_IPV6: [u32; 4] = [10, 24, 28, 30];

/// The address and control fields that may begin a PPP frame.
const PPP_ADDRESS_CONTROL: [u8; 2] = [0xff, 0x03];
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;

/// Bytes of the header of Linux cooked captures.
const SLL_HEADER: usize = 16;
const SLL2_HEADER: usize = 20;
/// Bytes of a PPPoE header: version and type, code, session (2), length (2).
const PPPOE_HEADER: usize = 6;

/// The bytes of `data`, a frame of type `link`, from the IP header on. They may have padding or a
/// checksum at their end.
pub(super) fn ip(link: u16, data: &[u8]) -> Result<&[u8], NoIp> {
    match link {
        LINK_ETHERNET => ethernet(data),
        LINK_NULL | LINK_LOOP => loopback(data),
        LINK_PPP | LINK_PPP_HDLC => ppp(data),
        LINK_RAW | LINK_RAW_DLT | LINK_RAW_OPENBSD | LINK_IPV4 | LINK_IPV6 => Ok(data),
        LINK_LINUX_SLL => {
            // The EtherType ends the header.
            let (header, rest) = data.split_first_chunk::<SLL_HEADER>().ok_or(NoIp::Short)?;
            let [.., a, b] = *header;
            by_ethertype(u16::from_be_bytes([a, b]), rest)
        }
        LINK_LINUX_SLL2 => {
            // The EtherType begins the header.
            let (header, rest) = data.split_first_chunk::<SLL2_HEADER>().ok_or(NoIp::Short)?;
            let [a, b, ..] = *header;
            by_ethertype(u16::from_be_bytes([a, b]), rest)
        }
        _ => Err(NoIp::Unsupported),
    }
}

fn ethernet(data: &[u8]) -> Result<&[u8], NoIp> {
    let header = Ethernet2HeaderSlice::from_slice(data).map_err(|_| NoIp::Short)?;
    let rest = data.get(header.slice().len()..).ok_or(NoIp::Short)?;
    by_ethertype(header.ether_type().0, rest)
}

fn by_ethertype(mut kind: u16, mut rest: &[u8]) -> Result<&[u8], NoIp> {
    for _ in 0..MOST_TAGS {
        match kind {
            ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => return Ok(rest),
            ETHERTYPE_PPPOE => {
                let (_, session) = rest.split_first_chunk::<PPPOE_HEADER>().ok_or(NoIp::Short)?;
                return ppp(session);
            }
            tag if ETHERTYPES_VLAN.contains(&tag) => {
                let vlan = SingleVlanHeaderSlice::from_slice(rest).map_err(|_| NoIp::Short)?;
                kind = vlan.ether_type().0;
                rest = rest.get(vlan.slice().len()..).ok_or(NoIp::Short)?;
            }
            _ => return Err(NoIp::Other),
        }
    }
    Err(NoIp::Other)
}

/// BSD loopback: the protocol family in four bytes, of which either byte order is accepted.
fn loopback(data: &[u8]) -> Result<&[u8], NoIp> {
    let (family, rest) = data.split_first_chunk::<4>().ok_or(NoIp::Short)?;
    let known = |family: u32| family == FAMILY_IPV4 || FAMILIES_IPV6.contains(&family);
    if known(u32::from_be_bytes(*family)) || known(u32::from_le_bytes(*family)) {
        Ok(rest)
    } else {
        Err(NoIp::Other)
    }
}

/// PPP (RFC 1661, RFC 1662): address and control may be absent, and a protocol number whose first
/// byte is odd has one byte instead of two.
fn ppp(data: &[u8]) -> Result<&[u8], NoIp> {
    let data = data.strip_prefix(&PPP_ADDRESS_CONTROL).unwrap_or(data);
    let (protocol, rest) = match data {
        [] => return Err(NoIp::Short),
        [low, rest @ ..] if low & 1 == 1 => (u16::from(*low), rest),
        [high, low, rest @ ..] => (u16::from_be_bytes([*high, *low]), rest),
        [_] => return Err(NoIp::Short),
    };
    if matches!(protocol, PPP_IPV4 | PPP_IPV6) { Ok(rest) } else { Err(NoIp::Other) }
}
