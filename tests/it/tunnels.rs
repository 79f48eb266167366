//! One conversation in every link layer and tunnel that is read: always the same bytes, and, where
//! tshark is installed, the streams that it finds.

use std::fs;

use crate::flow_tshark::{compare, installed, ours};
use crate::made::{ACK, End, FIN, Made, SYN, end, ip, tcp, udp};

use crate::common::scratch;

/// Puts an IP packet into a frame.
type Wrap = Box<dyn Fn(&[u8]) -> Vec<u8>>;

fn ethernet(kind: u16, content: &[u8]) -> Vec<u8> {
    [&[0, 0x0c, 0x29, 1, 2, 3, 0, 0x0c, 0x29, 4, 5, 6][..], &kind.to_be_bytes(), content].concat()
}

fn outer() -> (End, End) {
    (end(0x0901, 50_000), end(0x0902, 4789))
}

fn over_udp(port: u16, content: &[u8]) -> Vec<u8> {
    let (from, to) = outer();
    let ends = (from, End { port, ..to });
    ip(17, ends, &udp(ends, content))
}

fn over_ip(protocol: u8, header: &[u8], content: &[u8]) -> Vec<u8> {
    ip(protocol, outer(), &[header, content].concat())
}

fn pppoe(packet: &[u8]) -> Vec<u8> {
    let length = (packet.len() as u16 + 2).to_be_bytes();
    ethernet(0x8864, &[&[0x11, 0, 0, 1], &length[..], &[0, 0x21], packet, &[0xee; 6]].concat())
}

fn snap(packet: &[u8]) -> Vec<u8> {
    let content = [&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], packet].concat();
    ethernet(content.len() as u16, &content)
}

/// GRE of version 1 as PPTP sends it, with trailing bytes behind its length.
fn pptp(packet: &[u8]) -> Vec<u8> {
    let length = (packet.len() as u16 + 2).to_be_bytes();
    let header = [&[0x30, 0x81, 0x88, 0x0b], &length[..], &[0, 1, 0, 0, 0, 1, 0, 0, 0, 2]].concat();
    over_ip(47, &header, &[&[0, 0x21], packet].concat())
}

fn nflog(packet: &[u8]) -> Vec<u8> {
    let length = (packet.len() as u16 + 4).to_le_bytes();
    let header = [2, 0, 0, 0, 8, 0, 1, 0, 8, 0, 1, 0, length[0], length[1], 9, 0];
    let padding = vec![0; packet.len().next_multiple_of(4) - packet.len()];
    [&header[..], packet, &padding].concat()
}

fn pktap(packet: &[u8]) -> Vec<u8> {
    [&[108, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0][..], &[0; 96], &ethernet(0x0800, packet)].concat()
}

/// Every way in which a frame may carry an IP packet, with its link type.
fn ways() -> Vec<(&'static str, u16, Wrap)> {
    fn way(
        name: &'static str,
        link: u16,
        wrap: impl Fn(&[u8]) -> Vec<u8> + 'static,
    ) -> (&'static str, u16, Wrap) {
        (name, link, Box::new(wrap))
    }
    let vxlan = |p: &[u8]| [&[8, 0, 0, 0, 0, 0, 7, 0], &ethernet(0x0800, p)[..]].concat();
    vec![
        way("raw", 101, <[u8]>::to_vec),
        way("vlan", 1, |p| ethernet(0x8100, &[&[0, 5, 8, 0], p].concat())),
        way("pppoe", 1, pppoe),
        way("mpls", 1, |p| ethernet(0x8847, &[&[0, 1, 0, 64, 0, 2, 1, 64], p].concat())),
        way("pseudo_wire", 1, |p| {
            ethernet(0x8847, &[&[0, 2, 1, 64, 0, 0, 0, 0], &ethernet(0x0800, p)[..]].concat())
        }),
        way("snap", 1, snap),
        way("backbone", 1, |p| {
            ethernet(0x88e7, &[&[0, 0, 1, 2], &ethernet(0x0800, p)[..]].concat())
        }),
        way("gre", 101, |p| over_ip(47, &[0, 0, 8, 0], p)),
        way("gre_key", 101, |p| over_ip(47, &[0x30, 0, 8, 0, 0, 0, 0, 1, 0, 0, 0, 2], p)),
        way("gre_ethernet", 101, |p| over_ip(47, &[0, 0, 0x65, 0x58], &ethernet(0x0800, p))),
        way("gre_mpls", 101, |p| over_ip(47, &[0, 0, 0x88, 0x47, 0, 2, 1, 64], p)),
        way("pptp", 101, pptp),
        way("ip_in_ip", 101, |p| over_ip(4, &[], p)),
        way("vxlan", 101, move |p| over_udp(4789, &vxlan(p))),
        way("vxlan_in_vxlan", 101, move |p| over_udp(4789, &vxlan(&over_udp(4789, &vxlan(p))))),
        way("geneve", 101, |p| {
            over_udp(
                6081,
                &[&[1, 0, 0x65, 0x58, 0, 0, 7, 0, 1, 2, 3, 0], &ethernet(0x0800, p)[..]].concat(),
            )
        }),
        way("geneve_ip", 101, |p| over_udp(6081, &[&[0, 0, 8, 0, 0, 0, 7, 0], p].concat())),
        way("nflog", 239, nflog),
        way("pktap", 258, pktap),
    ]
}

/// A connection with segments out of order and repeated, datagrams, and one in fragments.
fn conversation(link: u16, wrap: &Wrap) -> Vec<u8> {
    let mut made = Made::new();
    made.bytes[20..22].copy_from_slice(&link.to_le_bytes());
    let (client, server) = (end(1, 40_000), end(2, 7777));
    let up = (client, server);
    let down = (server, client);
    for (ends, numbers, payload) in [
        (up, (0, 0, SYN), &b""[..]),
        (down, (0, 1, SYN | ACK), b""),
        (up, (1, 1, ACK), b""),
        (up, (1, 1, ACK), b"hello "),
        (up, (12, 1, ACK), b"again"),
        (up, (7, 1, ACK), b"there"),
        (up, (7, 1, ACK), b"there"),
        (down, (1, 17, ACK), b"yes"),
        (up, (17, 4, FIN | ACK), b""),
        (down, (4, 18, FIN | ACK), b""),
    ] {
        made.frame(&wrap(&ip(6, ends, &tcp(ends, numbers, payload))));
    }
    for (ends, text) in [(up, "a datagram"), (down, "and another one")] {
        made.frame(&wrap(&ip(17, ends, &udp(ends, text.as_bytes()))));
    }
    let whole = udp(up, b"a datagram in two fragments, of 48 bytes");
    for (from, to, more) in [(24, 48, 0x00), (0, 24, 0x20)] {
        let mut part = ip(17, up, &whole[from..to]);
        (part[6], part[7]) = (more, (from / 8) as u8);
        made.frame(&wrap(&part));
    }
    made.bytes
}

#[test]
fn every_tunnel_gives_the_same_streams_and_tshark_agrees() {
    let folder = scratch("tunnels");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let tshark = installed("tshark");
    let mut plain = None;
    for (name, link, wrap) in ways() {
        let path = folder.join(format!("{name}.pcap"));
        fs::write(&path, conversation(link, &wrap)).unwrap();
        let found = ours(&path);
        let datagrams: Vec<String> = found.udp.iter().map(|(_, _, text)| text.clone()).collect();
        let found = (found.tcp, datagrams);
        let plain = plain.get_or_insert_with(|| found.clone());
        assert_eq!(plain.1.len(), 3);
        assert!(*plain == found, "{name}: {found:?}");
        if tshark {
            compare(&path);
        }
    }
}
