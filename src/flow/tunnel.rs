//! Tunnels: packets within IP packets. GRE (RFC 2784, 2890, 2637), VXLAN (RFC 7348), GENEVE (RFC
//! 8926), IP in IP (RFC 2003) and 6in4 (RFC 4213).
//!
//! It finds the IP packet that a tunnel carries. It knows no conversations.

use etherparse::{EtherType, IpNumber};

use super::ip::IpPacket;
use super::link;
use super::not_read::NotRead;
use super::remaining::{Remaining, Separator};

/// Ports at which VXLAN arrives: IANA's, and the one that Linux uses if none is chosen.
const VXLAN_PORTS: [u16; 2] = [4789, 8472];
const GENEVE_PORT: u16 = 6081;

/// The flag of VXLAN that says that a network identifier is there, and the one of its extension for
/// group policies.
const VXLAN_IDENTIFIER: u8 = 0x08;
const VXLAN_POLICY: u8 = 0x80;

// Flags of GRE, in the first of its two bytes of flags and version.
const GRE_CHECKSUM: u8 = 0x80;
const GRE_ROUTING: u8 = 0x40;
const GRE_KEY: u8 = 0x20;
const GRE_SEQUENCE: u8 = 0x10;
/// In the second byte, of version 1 alone.
const GRE_ACKNOWLEDGEMENT: u8 = 0x80;
const GRE_VERSION: u8 = 0x07;

/// What an IP packet carries that is no fragment. `None` if it is no tunnel that is read.
pub(super) fn within<'a>(packet: &IpPacket<'a>) -> Option<Result<Remaining<'a>, NotRead>> {
    let mut inner = packet.remaining();
    let ends = |inner: &mut Remaining<'_>| {
        for end in [packet.src, packet.dst] {
            inner.enter(Separator::TunnelEnd, u128::from_be_bytes(end));
        }
    };
    match IpNumber(packet.protocol) {
        IpNumber::IPV4 | IpNumber::IPV6 => {
            ends(&mut inner);
            Some(inner.take::<0>().map(|_| inner))
        }
        IpNumber::GRE => {
            ends(&mut inner);
            Some(gre(inner))
        }
        _ => None,
    }
}

/// What a datagram to a port carries, if that is one of a tunnel. Others may use the port, too:
/// then it is `None`.
pub(super) fn within_datagram<'a>(
    packet: &IpPacket<'a>,
    port: u16,
    mut datagram: Remaining<'a>,
) -> Option<Result<Remaining<'a>, NotRead>> {
    for end in [packet.src, packet.dst] {
        datagram.enter(Separator::TunnelEnd, u128::from_be_bytes(end));
    }
    let found = match port {
        GENEVE_PORT => geneve(datagram)?,
        port if VXLAN_PORTS.contains(&port) => vxlan(datagram)?,
        _ => return None,
    };
    // What nobody has a name for is more likely to be of another protocol.
    let read = match found {
        Err(reason) if !reason.is_known() => return None,
        read => read,
    };
    Some(read)
}

fn vxlan(mut rest: Remaining<'_>) -> Option<Result<Remaining<'_>, NotRead>> {
    let [flags, f1, p0, p1, n0, n1, n2, reserved] = *rest.take::<8>().ok()?;
    let has_policy = flags & VXLAN_POLICY != 0;
    let is_vxlan = flags & !VXLAN_POLICY == VXLAN_IDENTIFIER
        && reserved == 0
        && (has_policy || [f1, p0, p1] == [0; 3]);
    if !is_vxlan {
        return None;
    }
    rest.enter(Separator::Virtual, u32::from_be_bytes([0, n0, n1, n2]).into());
    Some(link::ethernet(rest))
}

fn geneve(mut rest: Remaining<'_>) -> Option<Result<Remaining<'_>, NotRead>> {
    let [first, flags, p0, p1, n0, n1, n2, reserved] = *rest.take::<8>().ok()?;
    // The version is 0, and the length of the options counts words.
    if first >> 6 != 0 || flags & 0x3f != 0 || reserved != 0 {
        return None;
    }
    rest.skip(usize::from(first & 0x3f) * 4).ok()?;
    rest.enter(Separator::Virtual, u32::from_be_bytes([0, n0, n1, n2]).into());
    Some(link::by_ethertype(EtherType(u16::from_be_bytes([p0, p1])), rest))
}

/// GRE, whose version 1 (PPTP) carries PPP.
fn gre(mut rest: Remaining<'_>) -> Result<Remaining<'_>, NotRead> {
    let [flags, version, p0, p1] = *rest.take::<4>()?;
    let kind = u16::from_be_bytes([p0, p1]);
    if flags & GRE_ROUTING != 0 || version & GRE_VERSION > 1 {
        return Err(NotRead::Gre(kind));
    }
    if flags & GRE_CHECKSUM != 0 {
        rest.skip(4)?;
    }
    let mut length = None;
    if flags & GRE_KEY != 0 {
        let [k0, k1, k2, k3] = *rest.take::<4>()?;
        if version & GRE_VERSION == 1 {
            // The length of what is carried, and the number of the call.
            length = Some(u16::from_be_bytes([k0, k1]));
            rest.enter(Separator::GreKey, u16::from_be_bytes([k2, k3]).into());
        } else {
            rest.enter(Separator::GreKey, u32::from_be_bytes([k0, k1, k2, k3]).into());
        }
    }
    if flags & GRE_SEQUENCE != 0 {
        rest.skip(4)?;
    }
    if version & GRE_VERSION == 1 && version & GRE_ACKNOWLEDGEMENT != 0 {
        rest.skip(4)?;
    }
    if let Some(length) = length {
        rest.end_after(length.into());
    }
    if rest.wire_len == 0 {
        return Err(NotRead::WithoutPacket);
    }
    // Of lengths, which LLC would follow, GRE knows nothing.
    match EtherType(kind) {
        EtherType(0..0x0600) => Err(NotRead::Gre(kind)),
        ethertype => link::by_ethertype(ethertype, rest).map_err(|reason| match reason {
            NotRead::EtherType(direct) if direct == kind => NotRead::Gre(kind),
            within => within,
        }),
    }
}
