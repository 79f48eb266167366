//! Why a frame was not read: a reason with a name, and how often there was each.
//!
//! Link types have the names of the tcpdump group's registry, EtherTypes and IP protocols those of
//! IEEE and IANA.

use std::collections::BTreeMap;
use std::fmt;

use etherparse::IpNumber;

/// Why no TCP segment and no UDP datagram was read in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NotRead {
    /// A link type that is not read.
    LinkType(u16),
    /// An EtherType that is not IP and leads to none.
    EtherType(u16),
    /// An address of LLC (IEEE 802.2).
    Llc(u8),
    /// A number of an organization in SNAP.
    Snap([u8; 3], u16),
    /// A protocol of PPP.
    Ppp(u16),
    /// A protocol family in a loopback header or in NFLOG.
    Family(u32),
    /// MPLS that carries neither IP nor Ethernet.
    Mpls,
    /// A protocol over IP.
    Ip(u8),
    /// GRE that carries a protocol which is not read.
    Gre(u16),
    /// Headers of a tunnel or of a log, and no packet behind them.
    WithoutPacket,
    /// More headers within each other than are read.
    Nested,
    /// The capture cut the frame within its headers.
    Cut,
    /// Headers that contradict themselves, or end too early.
    Damaged,
}

/// The most reasons that are counted one by one. Hostile captures may have 65,536 EtherTypes.
const MAX_REASONS: usize = 256;

/// How many frames were not read, by their reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotReadCounts {
    counts: BTreeMap<NotRead, u64>,
    others: u64,
}

impl NotReadCounts {
    pub(super) fn add(&mut self, reason: NotRead) {
        if self.counts.len() < MAX_REASONS || self.counts.contains_key(&reason) {
            *self.counts.entry(reason).or_default() += 1;
        } else {
            self.others += 1;
        }
    }

    /// How many frames were not read for this reason.
    #[must_use]
    pub fn of(&self, reason: NotRead) -> u64 {
        self.counts.get(&reason).copied().unwrap_or(0)
    }

    /// The reasons, those of most frames first.
    #[must_use]
    pub fn reasons(&self) -> Vec<(NotRead, u64)> {
        let mut all: Vec<(NotRead, u64)> = self.counts.iter().map(|(r, n)| (*r, *n)).collect();
        all.sort_by_key(|(reason, count)| (std::cmp::Reverse(*count), *reason));
        all
    }

    /// The reasons as texts, those of most frames first, and `others` for what was not counted one
    /// by one.
    #[must_use]
    pub fn named(&self) -> Vec<(String, u64)> {
        let others = (self.others > 0).then(|| ("others".to_string(), self.others));
        let reasons = self.reasons().into_iter().map(|(reason, n)| (reason.to_string(), n));
        reasons.chain(others).collect()
    }

    /// Frames of further reasons, which are not counted one by one.
    #[must_use]
    pub fn others(&self) -> u64 {
        self.others
    }
}

impl NotRead {
    /// Whether IP packets may be in such frames.
    #[must_use]
    pub fn may_hide_packets(self) -> bool {
        match self {
            NotRead::LinkType(_) | NotRead::Mpls | NotRead::Gre(_) | NotRead::Nested => true,
            NotRead::EtherType(kind) => matches!(kind, MACSEC | TRILL | BATMAN | NSH),
            NotRead::Ppp(protocol) => PPP_HIDING.contains(&protocol),
            NotRead::Ip(protocol) => {
                let protocol = IpNumber(protocol);
                protocol == IpNumber::ENCAPSULATING_SECURITY_PAYLOAD
                    || IP_HIDING.contains(&protocol.0)
            }
            _ => false,
        }
    }

    /// Whether Wireshark can write the IP packets in such frames into a capture of their own.
    #[must_use]
    pub fn is_convertible(self) -> bool {
        let encrypted = [
            NotRead::EtherType(MACSEC),
            NotRead::Ppp(PPP_ENCRYPTED),
            NotRead::Ip(IpNumber::ENCAPSULATING_SECURITY_PAYLOAD.0),
        ];
        let upper = matches!(self, NotRead::LinkType(link) if NO_PACKETS.contains(&link));
        self.may_hide_packets() && !encrypted.contains(&self) && !upper
    }

    /// Whether it has a name.
    pub(super) fn is_known(self) -> bool {
        match self {
            NotRead::EtherType(kind) => name(&ETHERTYPES, kind).is_some(),
            NotRead::Llc(address) => name(&LLC_ADDRESSES, address).is_some(),
            NotRead::Ppp(protocol) => name(&PPP_PROTOCOLS, protocol).is_some(),
            NotRead::Damaged => false,
            _ => true,
        }
    }
}

impl fmt::Display for NotRead {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            NotRead::LinkType(link) => match name(&LINK_TYPES, link) {
                Some(name) => write!(out, "{name} (link type {link})"),
                None if PRIVATE_LINKS.contains(&link) => {
                    write!(out, "a private link type ({link})")
                }
                None => write!(out, "link type {link}"),
            },
            NotRead::EtherType(kind) => match name(&ETHERTYPES, kind) {
                Some(name) => out.write_str(name),
                None => write!(out, "EtherType 0x{kind:04x}"),
            },
            NotRead::Llc(address) => match name(&LLC_ADDRESSES, address) {
                Some(name) => out.write_str(name),
                None => write!(out, "LLC address 0x{address:02x}"),
            },
            NotRead::Snap([a, b, c], kind) => match name(&CISCO, kind) {
                Some(name) if [a, b, c] == [0, 0, 0x0c] => out.write_str(name),
                _ => write!(out, "SNAP {a:02x}:{b:02x}:{c:02x} 0x{kind:04x}"),
            },
            NotRead::Ppp(protocol) => match name(&PPP_PROTOCOLS, protocol) {
                Some(name) => out.write_str(name),
                None => write!(out, "PPP protocol 0x{protocol:04x}"),
            },
            NotRead::Family(family) => write!(out, "protocol family {family}"),
            NotRead::Mpls => out.write_str("MPLS without IP or Ethernet"),
            NotRead::Ip(protocol) => match IpNumber(protocol).keyword_str() {
                Some(name) => out.write_str(name),
                None => write!(out, "IP protocol {protocol}"),
            },
            NotRead::Gre(kind) => match name(&GRE_KINDS, kind).or(name(&ETHERTYPES, kind)) {
                Some(name) => write!(out, "{name} in GRE"),
                None => write!(out, "type 0x{kind:04x} in GRE"),
            },
            NotRead::WithoutPacket => out.write_str("headers without a packet"),
            NotRead::Nested => out.write_str("too many headers within each other"),
            NotRead::Cut => out.write_str("cut within the headers"),
            NotRead::Damaged => out.write_str("damaged headers"),
        }
    }
}

fn name<N: PartialEq + Copy>(names: &[(N, &'static str)], number: N) -> Option<&'static str> {
    names.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

const MACSEC: u16 = 0x88e5;
const TRILL: u16 = 0x22f3;
const BATMAN: u16 = 0x4305;
const NSH: u16 = 0x894f;
const PPP_ENCRYPTED: u16 = 0x0053;
/// Compressed headers, several links, encrypted, compressed (also what MPPE encrypts).
const PPP_HIDING: [u16; 6] = [0x002d, 0x002f, 0x003d, PPP_ENCRYPTED, 0x00fb, 0x00fd];
/// EtherIP, IPComp, L2TP, MPLS.
const IP_HIDING: [u8; 4] = [97, 108, 115, 137];
/// Link types without IP packets.
const NO_PACKETS: [u16; 16] =
    [187, 189, 195, 201, 220, 227, 230, 231, 243, 249, 251, 253, 254, 266, 283, 288];

/// `LINKTYPE_USER0` and the following: everybody may use them for anything.
const PRIVATE_LINKS: std::ops::RangeInclusive<u16> = 147..=162;
/// <https://www.tcpdump.org/linktypes.html>
const LINK_TYPES: [(u16, &str); 75] = [
    (3, "AX.25"),
    (6, "Token Ring"),
    (7, "ARCNET"),
    (8, "SLIP"),
    (10, "FDDI"),
    (99, "Symantec firewall"),
    (100, "ATM RFC 1483"),
    (104, "Cisco HDLC"),
    (105, "IEEE 802.11"),
    (107, "Frame Relay"),
    (114, "LocalTalk"),
    (117, "OpenBSD pflog"),
    (119, "IEEE 802.11 with a Prism header"),
    (122, "IP over Fibre Channel"),
    (123, "SunATM"),
    (127, "IEEE 802.11 with radiotap"),
    (129, "ARCNET of Linux"),
    (130, "Juniper MLPPP"),
    (131, "Juniper MLFR"),
    (133, "Juniper GGSN"),
    (135, "Juniper ATM2"),
    (136, "Juniper services"),
    (137, "Juniper ATM1"),
    (138, "IP over IEEE 1394"),
    (140, "SS7 MTP2"),
    (141, "SS7 MTP3"),
    (142, "SS7 SCCP"),
    (143, "DOCSIS"),
    (144, "IrDA of Linux"),
    (163, "IEEE 802.11 with an AVS header"),
    (166, "PPP with a direction (pppd)"),
    (167, "Juniper PPPoE"),
    (177, "LAPD of Linux"),
    (178, "Juniper Ethernet"),
    (179, "Juniper PPP"),
    (180, "Juniper Frame Relay"),
    (181, "Juniper Cisco HDLC"),
    (187, "Bluetooth HCI"),
    (189, "USB of Linux"),
    (192, "Per-Packet Information"),
    (195, "IEEE 802.15.4"),
    (197, "Endace ERF"),
    (201, "Bluetooth HCI with a direction"),
    (203, "LAPD"),
    (204, "PPP with a direction"),
    (205, "Cisco HDLC with a direction"),
    (206, "Frame Relay with a direction"),
    (220, "USB of Linux, padded"),
    (224, "Fibre Channel FC-2"),
    (226, "Solaris IPNET"),
    (227, "SocketCAN"),
    (230, "IEEE 802.15.4 without a checksum"),
    (231, "D-Bus"),
    (240, "NetANALYZER"),
    (242, "IP over InfiniBand"),
    (243, "MPEG-2 transport stream"),
    (247, "InfiniBand"),
    (248, "SCTP"),
    (249, "USBPcap"),
    (251, "Bluetooth Low Energy"),
    (252, "Wireshark's exported PDUs"),
    (253, "Netlink"),
    (254, "Bluetooth of Linux"),
    (259, "EPON"),
    (266, "USB of Darwin"),
    (268, "SDLC"),
    (271, "vsock of Linux"),
    (274, "Ethernet mPackets"),
    (281, "Ethernet with a Broadcom switch tag"),
    (282, "Ethernet behind a Broadcom switch tag"),
    (283, "IEEE 802.15.4 TAP"),
    (284, "Ethernet with a DSA tag"),
    (285, "Ethernet with an EDSA tag"),
    (288, "USB 2.0"),
    (290, "Windows ETW"),
];

const ETHERTYPES: [(u16, &str); 46] = [
    (0x0001, "IPX over 802.3"),
    (0x000c, "CAN"),
    (0x0805, "X.25"),
    (0x0806, "ARP"),
    (0x0842, "Wake-on-LAN"),
    (TRILL, "TRILL"),
    (BATMAN, "B.A.T.M.A.N."),
    (0x6002, "DEC MOP"),
    (0x6003, "DECnet"),
    (0x6004, "DEC LAT"),
    (0x8035, "RARP"),
    (0x809b, "AppleTalk"),
    (0x80f3, "AppleTalk ARP"),
    (0x8137, "IPX"),
    (0x814c, "SNMP over Ethernet"),
    (0x8808, "Ethernet flow control"),
    (0x8809, "slow protocols (LACP)"),
    (0x8819, "CobraNet"),
    (0x8863, "PPPoE discovery"),
    (0x886d, "Intel ANS probes"),
    (0x8870, "jumbo frame"),
    (0x887b, "HomePlug 1.0"),
    (0x888e, "EAPOL"),
    (0x8892, "PROFINET"),
    (0x8899, "Realtek"),
    (0x88a2, "ATA over Ethernet"),
    (0x88a4, "EtherCAT"),
    (0x88ab, "POWERLINK"),
    (0x88b8, "GOOSE"),
    (0x88ba, "sampled values"),
    (0x88ca, "TIPC"),
    (0x88cc, "LLDP"),
    (0x88cd, "SERCOS III"),
    (0x88e1, "HomePlug AV"),
    (0x88e3, "MRP"),
    (MACSEC, "MACsec"),
    (0x88f5, "MVRP"),
    (0x88f7, "PTP"),
    (0x8902, "802.1ag CFM"),
    (0x8906, "FCoE"),
    (0x8914, "FCoE initialization"),
    (0x8915, "RoCE"),
    (0x892f, "HSR"),
    (NSH, "NSH"),
    (0x9000, "Ethernet loopback test"),
    (0x22f0, "AVTP"),
];

const LLC_ADDRESSES: [(u8, &str); 8] = [
    (0x00, "LLC without an address"),
    (0x42, "spanning tree"),
    (0x7e, "X.25 over LLC"),
    (0x98, "ARP over LLC"),
    (0xe0, "IPX"),
    (0xf0, "NetBIOS over LLC"),
    (0xfe, "OSI (IS-IS)"),
    (0xff, "IPX over 802.3"),
];

/// Numbers of Cisco in SNAP.
const CISCO: [(u16, &str); 7] = [
    (0x0104, "PAgP"),
    (0x010b, "PVST+"),
    (0x010c, "VLAN bridge"),
    (0x0111, "UDLD"),
    (0x2000, "CDP"),
    (0x2003, "VTP"),
    (0x2004, "DTP"),
];

const PPP_PROTOCOLS: [(u16, &str); 24] = [
    (0x002b, "IPX over PPP"),
    (0x002d, "Van Jacobson compressed TCP/IP"),
    (0x002f, "Van Jacobson uncompressed TCP/IP"),
    (0x003d, "PPP multilink"),
    (PPP_ENCRYPTED, "encrypted PPP"),
    (0x00fb, "compressed PPP of one link"),
    (0x00fd, "compressed or encrypted PPP"),
    (0x8021, "PPP IPCP"),
    (0x802b, "PPP IPXCP"),
    (0x8031, "PPP BCP"),
    (0x8053, "PPP ECP"),
    (0x8057, "PPP IPV6CP"),
    (0x80fb, "PPP link CCP"),
    (0x80fd, "PPP CCP"),
    (0x8281, "PPP MPLSCP"),
    (0xc021, "PPP LCP"),
    (0xc023, "PPP PAP"),
    (0xc025, "PPP LQR"),
    (0xc029, "PPP CBCP"),
    (0xc02b, "PPP BACP"),
    (0xc02d, "PPP BAP"),
    (0xc223, "PPP CHAP"),
    (0xc227, "PPP EAP"),
    (0x0049, "PPP serial data"),
];

const GRE_KINDS: [(u16, &str); 5] = [
    (0x0000, "a keep-alive"),
    (0x2001, "NHRP"),
    (0x22eb, "ERSPAN III"),
    (0x883e, "WCCP"),
    (0x88be, "ERSPAN"),
];
