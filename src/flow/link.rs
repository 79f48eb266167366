//! Link layers: finds the IP packet in a frame. It must not know what IP says.
//!
//! Link types are numbered as in the tcpdump group's registry, <https://www.tcpdump.org/linktypes.html>.

use etherparse::{Ethernet2HeaderSlice, SingleVlanHeaderSlice};

/// Why a frame holds no IP packet that could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoIp {
    /// It carries another protocol.
    Other,
    /// Its link type is not known here.
    Unsupported,
    /// It ends before its own header does.
    Short,
}

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERTYPE_PPPOE: u16 = 0x8864;
/// 802.1Q, 802.1ad, and what was used for QinQ before that.
const ETHERTYPES_VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// More tags than any network stacks; a frame of nothing but tags ends here.
const MOST_TAGS: usize = 8;
/// Protocol families of a BSD null header that mean IPv6: Linux, NetBSD and OpenBSD, FreeBSD, Darwin.
const FAMILIES_IPV6: [u32; 4] = [10, 24, 28, 30];

/// The bytes from the IP header on, whatever follows the packet (padding, checksum) included.
pub(super) fn ip(link: u16, data: &[u8]) -> Result<&[u8], NoIp> {
    match link {
        1 => ethernet(data),
        0 | 108 => loopback(data),
        9 | 50 => ppp(data),
        12 | 14 | 101 | 228 | 229 => Ok(data),
        113 => {
            let (header, rest) = data.split_first_chunk::<16>().ok_or(NoIp::Short)?;
            let [.., a, b] = *header;
            by_ethertype(u16::from_be_bytes([a, b]), rest)
        }
        276 => {
            let (header, rest) = data.split_first_chunk::<20>().ok_or(NoIp::Short)?;
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
                // Version and type, code, session (2), length (2): then PPP without its address and control.
                let (_, session) = rest.split_first_chunk::<6>().ok_or(NoIp::Short)?;
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

/// BSD loopback: the protocol family in four bytes, in the byte order of the machine that captured (null) or of the
/// network (loop).
fn loopback(data: &[u8]) -> Result<&[u8], NoIp> {
    let (family, rest) = data.split_first_chunk::<4>().ok_or(NoIp::Short)?;
    let known = |family: u32| family == 2 || FAMILIES_IPV6.contains(&family);
    if known(u32::from_be_bytes(*family)) || known(u32::from_le_bytes(*family)) { Ok(rest) } else { Err(NoIp::Other) }
}

/// PPP (RFC 1661, RFC 1662): address and control may be left out, and the protocol is one byte where that is odd.
fn ppp(data: &[u8]) -> Result<&[u8], NoIp> {
    let data = data.strip_prefix(&[0xff, 0x03]).unwrap_or(data);
    let (protocol, rest) = match data {
        [] => return Err(NoIp::Short),
        [low, rest @ ..] if low & 1 == 1 => (u16::from(*low), rest),
        [high, low, rest @ ..] => (u16::from_be_bytes([*high, *low]), rest),
        [_] => return Err(NoIp::Short),
    };
    if matches!(protocol, 0x0021 | 0x0057) { Ok(rest) } else { Err(NoIp::Other) }
}
