//! Link layers: finds the IP packet in a frame. It does not know what is in an IP packet.
//!
//! The link types are those of the tcpdump group's registry,
//! <https://www.tcpdump.org/linktypes.html>.

use etherparse::{EtherType, Ethernet2HeaderSlice, SingleVlanHeaderSlice};

use super::not_read::NotRead;
use super::remaining::{Remaining, Separator};

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
/// `LINKTYPE_PPP_ETHER`: begins with the header of PPPoE.
const LINK_PPP_ETHER: u16 = 51;
/// `LINKTYPE_RAW`: IPv4 or IPv6 without a header before it.
const LINK_RAW: u16 = 101;
/// `LINKTYPE_LOOP`: OpenBSD loopback, the protocol family in network byte order.
const LINK_LOOP: u16 = 108;
/// `LINKTYPE_LINUX_SLL`: Linux cooked capture.
const LINK_LINUX_SLL: u16 = 113;
/// `LINKTYPE_USER2`, under which macOS 10.9 wrote PKTAP.
const LINK_USER2: u16 = 149;
const LINK_IPV4: u16 = 228;
const LINK_IPV6: u16 = 229;
/// `LINKTYPE_NFLOG`: what the Linux firewall logs.
const LINK_NFLOG: u16 = 239;
/// `LINKTYPE_PKTAP`: macOS, with the process that a packet belongs to.
const LINK_PKTAP: u16 = 258;
/// `LINKTYPE_LINUX_SLL2`: Linux cooked capture, version 2.
const LINK_LINUX_SLL2: u16 = 276;

/// 802.1Q, 802.1ad, and what QinQ used before 802.1ad.
const ETHERTYPES_VLAN: [EtherType; 3] = [
    EtherType::VLAN_TAGGED_FRAME,
    EtherType::PROVIDER_BRIDGING,
    EtherType::VLAN_DOUBLE_TAGGED_FRAME,
];
pub(super) const ETHERTYPE_ETHERNET: EtherType = EtherType(0x6558);
pub(super) const ETHERTYPE_PPP: EtherType = EtherType(0x880b);
const ETHERTYPES_MPLS: [EtherType; 2] = [EtherType(0x8847), EtherType(0x8848)];
const ETHERTYPE_PPPOE: EtherType = EtherType(0x8864);
/// 802.1ah, provider backbone bridges: a service tag, and an Ethernet frame.
const ETHERTYPE_BACKBONE: EtherType = EtherType(0x88e7);
/// Below this, the type of an Ethernet frame is its length, and LLC follows (IEEE 802.3).
const FIRST_ETHERTYPE: u16 = 0x0600;

/// Addresses of LLC: a further header with an EtherType (SNAP), and IP without one.
const LLC_SNAP: u8 = 0xaa;
const LLC_IP: u8 = 0x06;
/// Organizations whose SNAP numbers are EtherTypes: RFC 1042 and 802.1H.
const ETHERTYPE_ORGANIZATIONS: [[u8; 3]; 2] = [[0, 0, 0], [0, 0, 0xf8]];

/// `ETH_P_802_2` of Linux: LLC follows a cooked header.
const COOKED_LLC: u16 = 0x0004;

const FAMILY_IPV4: u32 = 2;
/// Protocol families of a loopback header that mean IPv6: Linux, NetBSD and OpenBSD, FreeBSD,
/// Darwin.
const FAMILIES_IPV6: [u32; 4] = [10, 24, 28, 30];

/// The address and control fields that may begin a PPP frame.
const PPP_ADDRESS_CONTROL: [u8; 2] = [0xff, 0x03];
const PPP_IPV4: u16 = 0x0021;
const PPP_IPV6: u16 = 0x0057;
const PPP_MPLS: u16 = 0x0281;

/// Type of the attribute of NFLOG that holds the packet.
const NFLOG_PAYLOAD: u16 = 9;
/// The highest type of such an attribute that there may be; a larger one shows the other byte
/// order.
const NFLOG_TYPES: u16 = 0x100;

/// The shortest header of PKTAP. It begins with its length, a type and a link type.
const PKTAP_HEADER: usize = 108;
/// The type of a PKTAP record with a packet.
const PKTAP_PACKET: u32 = 1;

/// The IP packet in a frame of type `link`. It may have padding or a checksum at its end.
pub(super) fn ip(link: u16, mut frame: Remaining<'_>) -> Result<Remaining<'_>, NotRead> {
    match link {
        LINK_ETHERNET => ethernet(frame),
        LINK_NULL | LINK_LOOP => loopback(frame),
        LINK_PPP | LINK_PPP_HDLC => ppp(frame),
        LINK_PPP_ETHER => pppoe(frame),
        LINK_RAW | LINK_RAW_DLT | LINK_RAW_OPENBSD | LINK_IPV4 | LINK_IPV6 => Ok(frame),
        LINK_LINUX_SLL => {
            // The EtherType ends the header.
            let [.., a, b] = *frame.take::<16>()?;
            cooked(u16::from_be_bytes([a, b]), frame)
        }
        LINK_LINUX_SLL2 => {
            // The EtherType begins the header.
            let [a, b, ..] = *frame.take::<20>()?;
            cooked(u16::from_be_bytes([a, b]), frame)
        }
        LINK_NFLOG => nflog(frame),
        LINK_PKTAP => pktap(frame),
        // Anybody may use this number for anything else.
        LINK_USER2 => pktap(frame).map_err(|_| NotRead::LinkType(link)),
        _ => Err(NotRead::LinkType(link)),
    }
}

/// An Ethernet frame.
pub(super) fn ethernet(mut rest: Remaining<'_>) -> Result<Remaining<'_>, NotRead> {
    let header =
        Ethernet2HeaderSlice::from_slice(rest.take::<14>()?).map_err(|_| NotRead::Damaged)?;
    by_ethertype(header.ether_type(), rest)
}

/// What follows an EtherType.
pub(super) fn by_ethertype(kind: EtherType, rest: Remaining<'_>) -> Result<Remaining<'_>, NotRead> {
    match kind {
        EtherType::IPV4 | EtherType::IPV6 => Ok(rest),
        ETHERTYPE_PPPOE => pppoe(rest),
        ETHERTYPE_PPP => ppp(rest),
        ETHERTYPE_ETHERNET => ethernet(rest),
        ETHERTYPE_BACKBONE => backbone(rest),
        tag if ETHERTYPES_VLAN.contains(&tag) => vlan(rest),
        label if ETHERTYPES_MPLS.contains(&label) => mpls(rest),
        EtherType(length) if length < FIRST_ETHERTYPE => {
            let mut rest = rest;
            rest.end_after(length.into());
            llc(rest)
        }
        EtherType(other) => Err(NotRead::EtherType(other)),
    }
}

fn vlan(mut rest: Remaining<'_>) -> Result<Remaining<'_>, NotRead> {
    let tag = SingleVlanHeaderSlice::from_slice(rest.take::<4>()?).map_err(|_| NotRead::Damaged)?;
    // 0 is no VLAN: the tag has a priority alone.
    if tag.vlan_identifier().value() != 0 {
        rest.enter(Separator::Vlan, tag.vlan_identifier().value().into());
    }
    by_ethertype(tag.ether_type(), rest)
}

/// LLC (IEEE 802.2), and SNAP.
fn llc(mut rest: Remaining<'_>) -> Result<Remaining<'_>, NotRead> {
    let [to, ..] = *rest.take::<3>()?;
    match to {
        LLC_IP => Ok(rest),
        LLC_SNAP => {
            let [a, b, c, high, low] = *rest.take::<5>()?;
            let organization = [a, b, c];
            let kind = u16::from_be_bytes([high, low]);
            let is_ethertype = ETHERTYPE_ORGANIZATIONS.contains(&organization);
            if is_ethertype && kind >= FIRST_ETHERTYPE {
                by_ethertype(EtherType(kind), rest)
            } else {
                Err(NotRead::Snap(organization, kind))
            }
        }
        _ => Err(NotRead::Llc(to)),
    }
}

/// Linux cooked captures.
fn cooked(kind: u16, rest: Remaining<'_>) -> Result<Remaining<'_>, NotRead> {
    match kind {
        COOKED_LLC => llc(rest),
        // Other low numbers are those of Linux, and no lengths.
        0..FIRST_ETHERTYPE => Err(NotRead::EtherType(kind)),
        _ => by_ethertype(EtherType(kind), rest),
    }
}

/// 802.1ah: flags and a service identifier, and then the customer's frame.
fn backbone(mut rest: Remaining<'_>) -> Result<Remaining<'_>, NotRead> {
    let [_, a, b, c] = *rest.take::<4>()?;
    rest.enter(Separator::Service, u32::from_be_bytes([0, a, b, c]).into());
    ethernet(rest)
}

/// MPLS (RFC 3032): a stack of labels. Nothing says what follows; it is told by its first four bits
/// (RFC 4928), as everywhere.
fn mpls(mut rest: Remaining<'_>) -> Result<Remaining<'_>, NotRead> {
    let label = loop {
        let entry = u32::from_be_bytes(*rest.take::<4>()?);
        // The bottom of the stack.
        if entry & 0x100 != 0 {
            break entry >> 12;
        }
    };
    rest.enter(Separator::MplsLabel, label.into());
    match rest.bytes.first().map(|first| first >> 4) {
        Some(4 | 6) => Ok(rest),
        // A pseudo wire (RFC 4448): a control word, if its ends agreed on one, and a frame.
        Some(0) => {
            let mut behind_control_word = rest;
            let framed = behind_control_word.skip(4).and_then(|()| ethernet(behind_control_word));
            framed.or_else(|_| ethernet(rest)).map_err(|_| NotRead::Mpls)
        }
        Some(_) => Err(NotRead::Mpls),
        None => Err(rest.too_short()),
    }
}

/// BSD loopback: the protocol family in four bytes, of which either byte order is accepted.
fn loopback(mut rest: Remaining<'_>) -> Result<Remaining<'_>, NotRead> {
    let family = *rest.take::<4>()?;
    let known = |family: u32| family == FAMILY_IPV4 || FAMILIES_IPV6.contains(&family);
    let big = u32::from_be_bytes(family);
    let little = u32::from_le_bytes(family);
    if known(big) || known(little) { Ok(rest) } else { Err(NotRead::Family(big.min(little))) }
}

/// PPPoE (RFC 2516): version and type, a code, the session, and the length of what follows. Behind
/// that, the frame may have padding.
fn pppoe(mut rest: Remaining<'_>) -> Result<Remaining<'_>, NotRead> {
    let [_, code, s0, s1, l0, l1] = *rest.take::<6>()?;
    // Others belong to the discovery of the other end.
    if code != 0 {
        return Err(NotRead::Damaged);
    }
    rest.enter(Separator::PppoeSession, u16::from_be_bytes([s0, s1]).into());
    // As in IP, 0 is a length that was not filled in yet.
    let length = u16::from_be_bytes([l0, l1]);
    if length != 0 {
        rest.end_after(length.into());
    }
    ppp(rest)
}

/// PPP (RFC 1661, RFC 1662): address and control may be absent, and a protocol number whose first
/// byte is odd has one byte instead of two.
pub(super) fn ppp(mut rest: Remaining<'_>) -> Result<Remaining<'_>, NotRead> {
    if rest.bytes.starts_with(&PPP_ADDRESS_CONTROL) {
        rest.skip(PPP_ADDRESS_CONTROL.len())?;
    }
    let [first] = *rest.take::<1>()?;
    let protocol = if first & 1 == 1 {
        u16::from(first)
    } else {
        let [second] = *rest.take::<1>()?;
        u16::from_be_bytes([first, second])
    };
    match protocol {
        PPP_IPV4 | PPP_IPV6 => Ok(rest),
        PPP_MPLS => mpls(rest),
        _ => Err(NotRead::Ppp(protocol)),
    }
}

/// NFLOG: a protocol family, a version and a number of two bytes; then attributes, each with its
/// length, its type and padding to four bytes, in the byte order of the capturing machine.
fn nflog(mut rest: Remaining<'_>) -> Result<Remaining<'_>, NotRead> {
    let [family, ..] = *rest.take::<4>()?;
    let family = u32::from(family);
    let read = |little: bool, bytes: [u8; 2]| {
        if little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) }
    };
    let [l0, l1, t0, t1, ..] = *rest.bytes else { return Err(rest.too_short()) };
    let fits = |little: bool| {
        read(little, [l0, l1]) >= 4 && (1..NFLOG_TYPES).contains(&read(little, [t0, t1]))
    };
    let little = fits(true);
    if !little && !fits(false) {
        return Err(NotRead::Damaged);
    }
    while !rest.bytes.is_empty() {
        let mut attribute = rest;
        let [l0, l1, t0, t1] = *attribute.take::<4>()?;
        let length = usize::from(read(little, [l0, l1]));
        let content = length.checked_sub(4).ok_or(NotRead::Damaged)?;
        if read(little, [t0, t1]) == NFLOG_PAYLOAD {
            attribute.end_after(content);
            let is_ip = family == FAMILY_IPV4 || FAMILIES_IPV6.contains(&family);
            return if is_ip { Ok(attribute) } else { Err(NotRead::Family(family)) };
        }
        rest.skip(length.next_multiple_of(4))?;
    }
    Err(NotRead::WithoutPacket)
}

/// PKTAP of macOS: a header that says how long it is, and of which link type the frame behind it
/// is. All numbers are little-endian.
fn pktap(mut rest: Remaining<'_>) -> Result<Remaining<'_>, NotRead> {
    let mut header = rest;
    let length = u32::from_le_bytes(*header.take::<4>()?) as usize;
    let kind = u32::from_le_bytes(*header.take::<4>()?);
    let link = u32::from_le_bytes(*header.take::<4>()?);
    if length < PKTAP_HEADER {
        return Err(NotRead::Damaged);
    }
    rest.headers_left = header.headers_left;
    rest.skip(length)?;
    if kind != PKTAP_PACKET {
        return Err(NotRead::WithoutPacket);
    }
    ip(u16::try_from(link).map_err(|_| NotRead::Damaged)?, rest)
}
