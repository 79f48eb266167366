//! Link layers, IP, fragments and UDP.

use super::*;

/// The same IP packet on every link layer, with padding where Ethernet has some.
pub(super) fn one_of_each_link(ip: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let v6 = ip[0] >> 4 == 6;
    let kind: [u8; 2] = if v6 { [0x86, 0xdd] } else { [8, 0] };
    let ethernet = |tags: &[u8]| [&[2; 12], tags, &kind, ip, &[0xee; 30]].concat();
    let family: u8 = if v6 { 30 } else { 2 };
    let ppp: u8 = if v6 { 0x57 } else { 0x21 };
    let pppoe_length = (ip.len() as u16 + 2).to_be_bytes();
    let pppoe = [&[0x88, 0x64, 0x11, 0, 0, 1], &pppoe_length[..], &[0, ppp]].concat();
    let snap_length = (ip.len() as u16 + 8).to_be_bytes();
    let nflog_length = (ip.len() as u16 + 4).to_le_bytes();
    let nflog = [nflog_length[0], nflog_length[1], 9, 0];
    vec![
        (1, ethernet(&[])),
        (1, ethernet(&[0x81, 0, 0, 5])),
        (1, ethernet(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6])),
        (1, ethernet(&[0x91, 0, 0, 5, 0x81, 0, 0, 6])),
        (1, [&[2; 12][..], &[0x88, 0x64, 0x11, 0, 0, 1, 0, 0, 0, ppp], ip].concat()),
        (1, [&[2; 12][..], &pppoe, ip, &[0xee; 9]].concat()),
        (51, [&pppoe[2..], ip, &[0xee; 9]].concat()),
        (1, [&[2; 12][..], &[0x88, 0x47, 0, 0, 0x10, 9, 0, 1, 0x11, 64], ip].concat()),
        (1, [&[2; 12][..], &[0x88, 0x48, 0, 1, 0x11, 64, 0, 0, 0, 0], &ethernet(&[])].concat()),
        (1, [&[2; 12][..], &[0x88, 0x48, 0, 1, 0x11, 64], &ethernet(&[])].concat()),
        (1, [&[2; 12][..], &snap_length, &[0xaa, 0xaa, 3, 0, 0, 0], &kind, ip].concat()),
        (
            1,
            [&[2; 12][..], &[0x81, 0, 0, 5], &snap_length, &[0xaa, 0xaa, 3, 0, 0, 0xf8], &kind, ip]
                .concat(),
        ),
        (1, [&[2; 12][..], &[0x88, 0xe7, 0, 0, 1, 2], &ethernet(&[0x81, 0, 0, 5])].concat()),
        (113, [&[0; 14][..], &[0, 4, 0xaa, 0xaa, 3, 0, 0, 0], &kind, ip].concat()),
        (
            239,
            [&[if v6 { 10 } else { 2 }, 0, 0, 0, 8, 0, 1, 0, 8, 0, 1, 0][..], &nflog, ip].concat(),
        ),
        (
            239,
            [
                &[
                    if v6 { 10 } else { 2 },
                    0,
                    0,
                    0,
                    0,
                    7,
                    0,
                    10,
                    1,
                    1,
                    1,
                    0,
                    nflog[1],
                    nflog[0],
                    0,
                    9,
                ],
                ip,
            ]
            .concat(),
        ),
        (258, pktap(1, 1, &ethernet(&[]))),
        (149, pktap(1, 12, ip)),
        (113, [&[0; 14][..], &kind, ip].concat()),
        (113, [&[0; 14][..], &[0x81, 0, 0, 5], &kind, ip].concat()),
        (276, [&kind[..], &[0; 18], ip].concat()),
        (0, [&[family, 0, 0, 0], ip].concat()),
        (108, [&[0, 0, 0, family], ip].concat()),
        (9, [&[0xff, 3, 0, ppp], ip].concat()),
        (9, [&[ppp], ip].concat()),
        (50, [&[0xff, 3, 0, ppp], ip].concat()),
        (12, ip.to_vec()),
        (14, ip.to_vec()),
        (101, ip.to_vec()),
        (if v6 { 229 } else { 228 }, ip.to_vec()),
    ]
}

/// A UDP datagram behind every kind of extension header.
pub(super) fn ipv6_with_extensions() -> Vec<u8> {
    let headers = [
        vec![43, 0, 1, 4, 0, 0, 0, 0],                         // hop by hop
        vec![60, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], // routing
        vec![44, 0, 1, 4, 0, 0, 0, 0],                         // destination options
        vec![51, 0, 0, 0, 0, 0, 0, 9],                         // a fragment that is all of it
        vec![17, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], // authentication
        udp(7, 8, b"hello"),
    ]
    .concat();
    ipv6(0, [1; 16], [2; 16], &headers)
}

#[test]
fn every_link_layer_leads_to_the_same_bytes() {
    let v4 = ipv4(17, [10, 0, 0, 1], [10, 0, 0, 2], &udp(7, 8, b"hello"));
    for (link, frame) in
        one_of_each_link(&v4).into_iter().chain(one_of_each_link(&ipv6_with_extensions()))
    {
        let mut talk = Talk::new(FlowLimits::default());
        talk.frame(link, &frame);
        assert_eq!(
            talk.take_log().trim_start_matches("#0 "),
            "udp 0 > 'hello'",
            "link type {link}: {frame:02x?}"
        );
    }
}

/// An Ethernet frame with this EtherType and content.
fn ethernet(kind: u16, content: &[u8]) -> Vec<u8> {
    [&[2; 12], &kind.to_be_bytes()[..], content].concat()
}

#[test]
fn what_is_not_read_is_counted_by_its_name() {
    let frames = [
        (105, vec![0; 60], "IEEE 802.11 (link type 105)"),
        (107, vec![0; 60], "Frame Relay (link type 107)"),
        (148, vec![0; 60], "a private link type (148)"),
        (149, vec![0; 120], "a private link type (149)"),
        (300, vec![0; 60], "link type 300"),
        (1, ethernet(0x0806, &[0; 28]), "ARP"),
        (1, ethernet(0x1234, &[0; 28]), "EtherType 0x1234"),
        (1, ethernet(0x88e5, &[0; 28]), "MACsec"),
        (1, ethernet(38, &[0x42, 0x42, 3, 0, 0, 0]), "spanning tree"),
        (1, ethernet(38, &[0xaa, 0xaa, 3, 0, 0, 12, 0x20, 0]), "CDP"),
        (1, ethernet(38, &[0xaa, 0xaa, 3, 8, 0, 7, 0x80, 0x9b]), "SNAP 08:00:07 0x809b"),
        (1, ethernet(0x8864, &[0x11, 0, 0, 1, 0, 2, 0xc0, 0x21]), "PPP LCP"),
        (1, ethernet(0x8864, &[0x11, 9, 0, 1, 0, 2, 0xc0, 0x21]), "damaged headers"),
        (1, ethernet(0x8847, &[0, 0, 0x11, 64, 0x90, 0, 0, 0]), "MPLS without IP or Ethernet"),
        (1, vec![0; 5], "damaged headers"),
        (0, vec![7, 0, 0, 0, 1, 2], "protocol family 7"),
        (101, ipv4(132, [1; 4], [2; 4], &[0; 12]), "SCTP"),
        (101, ipv4(50, [1; 4], [2; 4], &[0; 12]), "ESP"),
        (101, ipv4(253, [1; 4], [2; 4], &[0; 12]), "IP protocol 253"),
        (101, ipv4(47, [1; 4], [2; 4], &[0, 0, 0x88, 0xbe, 0]), "ERSPAN in GRE"),
        (101, ipv4(47, [1; 4], [2; 4], &[0, 0, 8, 6, 0]), "ARP in GRE"),
        (101, ipv4(47, [1; 4], [2; 4], &[0, 0, 0, 0]), "headers without a packet"),
        (
            101,
            ipv4(17, [1; 4], [2; 4], &udp(9, 4789, &vxlan(7, &ethernet(0x0806, &[0; 28])))),
            "ARP",
        ),
        (239, vec![2, 0, 0, 0, 8, 0, 2, 0, 0, 0, 0, 0], "headers without a packet"),
        (258, pktap(0, 1, &[]), "headers without a packet"),
        (258, pktap(1, 127, &[0; 60]), "IEEE 802.11 with radiotap (link type 127)"),
    ];
    for (link, frame, name) in frames {
        let mut talk = Talk::new(FlowLimits::default());
        talk.frame(link, &frame);
        assert_eq!(talk.not_read(), [(name.to_string(), 1)].into(), "{frame:02x?}");
        assert_eq!(talk.take_log(), "");
    }
}

fn vxlan(number: u8, frame: &[u8]) -> Vec<u8> {
    [&[8, 0, 0, 0, 0, 0, number, 0], frame].concat()
}

fn pktap(kind: u8, link: u8, frame: &[u8]) -> Vec<u8> {
    let header = [108, 0, 0, 0, kind, 0, 0, 0, link, 0, 0, 0];
    [&header[..], &[0; 96], frame].concat()
}

/// An IP packet in each kind of tunnel.
fn tunnels(ip: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let kind: u16 = if ip[0] >> 4 == 6 { 0x86dd } else { 0x0800 };
    let k = kind.to_be_bytes();
    let frame = ethernet(kind, ip);
    let over = |protocol: u8, parts: &[&[u8]]| ipv4(protocol, [9; 4], [8; 4], &parts.concat());
    let datagram = |port: u16, content: &[u8]| over(17, &[&udp(50000, port, content)]);
    let number = if kind == 0x0800 { 4 } else { 41 };
    let payload_length = (ip.len() as u16 + 2).to_be_bytes();
    let ppp: u8 = if kind == 0x0800 { 0x21 } else { 0x57 };
    vec![
        ("IP in IP", over(number, &[ip])),
        ("IP in IPv6", ipv6(number, [9; 16], [8; 16], ip)),
        ("GRE", over(47, &[&[0, 0], &k, ip])),
        ("GRE with everything", over(47, &[&[0xb0, 0], &k, &[0; 12], ip])),
        ("GRE with Ethernet", over(47, &[&[0x20, 0, 0x65, 0x58, 0, 0, 0, 7], &frame])),
        ("GRE with MPLS", over(47, &[&[0, 0, 0x88, 0x47, 0, 1, 0x11, 64], ip])),
        (
            "PPTP",
            over(
                47,
                &[
                    &[0x30, 0x81, 0x88, 0x0b],
                    &payload_length,
                    &[0, 1, 0, 0, 0, 1, 0, 0, 0, 2, 0, ppp],
                    ip,
                    &[0xee; 4],
                ],
            ),
        ),
        ("VXLAN", datagram(4789, &vxlan(7, &frame))),
        ("VXLAN of Linux", datagram(8472, &vxlan(7, &frame))),
        (
            "VXLAN with a policy",
            datagram(4789, &[&[0x88, 0, 1, 2, 0, 0, 7, 0], &frame[..]].concat()),
        ),
        ("GENEVE", datagram(6081, &[&[0, 0, 0x65, 0x58, 0, 0, 7, 0], &frame[..]].concat())),
        (
            "GENEVE with options",
            datagram(
                6081,
                &[&[2, 0x40, k[0], k[1], 0, 0, 7, 0, 1, 2, 3, 1, 5, 6, 7, 8], ip].concat(),
            ),
        ),
    ]
}

#[test]
fn tunnels_are_looked_through_and_their_datagrams_have_numbers() {
    let v4 = ipv4(17, [10, 0, 0, 1], [10, 0, 0, 2], &udp(7, 8, b"hello"));
    for ip in [v4, ipv6_with_extensions()] {
        for (name, packet) in tunnels(&ip) {
            let mut talk = Talk::new(FlowLimits::default());
            talk.frame(101, &packet);
            // Wireshark numbers the tunnel's datagram, too.
            let number = u32::from(name.starts_with("VXLAN") || name.starts_with("GENEVE"));
            let log = talk.take_log();
            assert!(log.ends_with(&format!("udp {number} > 'hello'")), "{name}: {log}");
            assert_eq!(talk.not_read(), [].into(), "{name}");
        }
    }
}

#[test]
fn a_tunnel_in_fragments_is_put_together() {
    let inner = ipv4(17, [10, 0, 0, 1], [10, 0, 0, 2], &udp(7, 8, b"hello in a tunnel"));
    for (name, outer) in tunnels(&inner) {
        if outer[0] >> 4 == 6 {
            continue;
        }
        let payload = &outer[20..];
        let mut talk = Talk::new(FlowLimits::default());
        for (from, to) in [(16, payload.len()), (0, 16)] {
            let mut part = ipv4(outer[9], [9; 4], [8; 4], &payload[from..to]);
            let more = if to < payload.len() { 0x2000 } else { 0 };
            part[6..8].copy_from_slice(&(more | (from / 8) as u16).to_be_bytes());
            talk.frame(101, &part);
        }
        let log = talk.take_log();
        assert!(log.ends_with("> 'hello in a tunnel'"), "{name}: {log}");
    }
}

#[test]
fn other_datagrams_to_the_port_of_a_tunnel_stay_datagrams() {
    let mut talk = Talk::new(FlowLimits::default());
    for (port, content) in [
        (4789, &b"hello"[..]),
        (4789, b"\x08\0\0\0\0\0\x07\0hello"),
        (8472, b"\x08\0\0\0\0\0\x07\0hello, world, and more"),
        (6081, b"\0\0hello, world, and more"),
    ] {
        talk.frame(101, &ipv4(17, [1; 4], [2; 4], &udp(50000, port, content)));
    }
    let log = talk.take_log().replace(&format!("#{} ", u32::MAX), "");
    assert_eq!(log.matches("hello").count(), 4, "{log}");
}

#[test]
fn headers_within_each_other_have_a_bound() {
    let inner = ipv4(17, [10, 0, 0, 1], [10, 0, 0, 2], &udp(7, 8, b"hello"));
    let labels = |count: usize| {
        ethernet(0x8847, &[vec![0; 4 * count], vec![0, 0, 1, 0], inner.clone()].concat())
    };
    let tags = |count: usize| {
        [vec![2; 12], [0x81, 0, 0, 5].repeat(count), vec![8, 0], inner.clone()].concat()
    };
    let nested =
        |count: usize| (0..count).fold(inner.clone(), |packet, _| ipv4(4, [9; 4], [8; 4], &packet));
    for (link, frame, read) in [
        (1, labels(30), true),
        (1, labels(31), false),
        (1, tags(31), true),
        (1, tags(32), false),
        (101, nested(32), true),
        (101, nested(33), false),
    ] {
        let mut talk = Talk::new(FlowLimits::default());
        talk.frame(link, &frame);
        assert_eq!(talk.flow.stats().udp, u64::from(read));
        assert_eq!(talk.flow.not_read().of(NotRead::Nested), u64::from(!read));
    }
}

#[test]
fn what_a_link_layer_says_of_its_length_bounds_the_packet() {
    // Neither IP nor UDP states a length, so that all but padding is payload.
    let mut inner = ipv6(17, [1; 16], [2; 16], &udp(7, 8, b"hello"));
    (inner[4], inner[5]) = (0, 0);
    (inner[44], inner[45]) = (0, 0);
    let length = (inner.len() as u16 + 2).to_be_bytes();
    let pppoe = [&[0x11, 0, 0, 1], &length[..], &[0, 0x57], &inner, &[0xee; 9]].concat();
    let snap = [&[0xaa, 0xaa, 3, 0, 0, 0, 0x86, 0xdd], &inner[..], &[0xee; 9]].concat();
    let mut talk = Talk::new(FlowLimits::default());
    talk.frame(1, &ethernet(0x8864, &pppoe));
    talk.frame(1, &ethernet(inner.len() as u16 + 8, &snap));
    assert_eq!(talk.take_log().replace("#0 ", ""), "udp 0 > 'hello'; udp 0 > 'hello'");
}

#[test]
fn fragments_of_two_networks_are_two_datagrams() {
    let first = fragments(1, &udp(7, 8, b"first net"), &[(0, 8), (8, 17)]);
    let second = fragments(1, &udp(7, 8, b"other net"), &[(0, 8), (8, 17)]);
    let vlan =
        |tag: u8, ip: &[u8]| (1, [vec![2; 12], vec![0x81, 0, 0, tag, 8, 0], ip.to_vec()].concat());
    let vxlan_of = |number: u8, ip: &[u8]| {
        let datagram = udp(50000, 4789, &vxlan(number, &ethernet(0x0800, ip)));
        (101, ipv4(17, [9; 4], [8; 4], &datagram))
    };
    let gre = |end: u8, ip: &[u8]| (101, ipv4(47, [9; 4], [end; 4], &[&[0, 0, 8, 0], ip].concat()));
    let key = |key: u8, ip: &[u8]| {
        (101, ipv4(47, [9; 4], [8; 4], &[&[0x20, 0, 8, 0, 0, 0, 0, key], ip].concat()))
    };
    let label = |label: u8, ip: &[u8]| (1, ethernet(0x8847, &[&[0, label, 1, 64], ip].concat()));
    let session = |number: u8, ip: &[u8]| {
        let length = ip.len() as u8 + 2;
        (1, ethernet(0x8864, &[&[0x11, 0, 0, number, 0, length, 0, 0x21], ip].concat()))
    };
    type Wrap<'a> = &'a dyn Fn(u8, &[u8]) -> (u16, Vec<u8>);
    let all: [Wrap<'_>; 6] = [&vlan, &vxlan_of, &gre, &key, &label, &session];
    for (which, place) in all.into_iter().enumerate() {
        let mut talk = Talk::new(FlowLimits::default());
        for (network, part) in [(1, &first[0]), (2, &second[0]), (1, &first[1]), (2, &second[1])] {
            let (link, frame) = place(network, part);
            talk.frame(link, &frame);
        }
        let log = talk.take_log();
        assert!(log.contains("'first net'") && log.contains("'other net'"), "{which}: {log}");
        assert_eq!(talk.flow.stats().reassembled, 2);
    }
}

#[test]
fn ethernet_padding_is_no_payload() {
    let mut talk = Talk::new(FlowLimits::default());
    for line in ["> 99 syn", "< 499 syn ack 100"] {
        talk.play(line);
    }
    let pure = Build { port: 4000, seq: 100, ack: 500, flags: 0x10, ..Build::default() };
    let small = Build { text: b"x".to_vec(), ..pure.clone() };
    for build in [pure, small] {
        talk.frame(1, &[&[2; 12], &[8, 0][..], &build.ip(), &[0xee; 6]].concat());
    }
    assert_eq!(talk.take_log(), "open 0 Syn @1; > 0 'x'".replace(" @1", ""));
}

#[test]
fn ip_options_and_a_length_left_to_the_card() {
    let mut packet = ipv4(17, [10, 0, 0, 1], [10, 0, 0, 2], &udp(7, 8, b"hello"));
    (packet[2], packet[3]) = (0, 0);
    let mut talk = Talk::new(FlowLimits::default());
    talk.frame(101, &packet);
    let mut options =
        ipv4(17, [10, 0, 0, 1], [10, 0, 0, 2], &[&[1; 8], &udp(7, 8, b"there")[..]].concat());
    options[0] = 0x47;
    talk.frame(101, &options);
    assert_eq!(talk.take_log().replace("#0 ", ""), "udp 0 > 'hello'; udp 0 > 'there'");
}

/// Fragments of an IPv4 datagram, each with its offset in bytes.
fn fragments(id: u8, payload: &[u8], cuts: &[(usize, usize)]) -> Vec<Vec<u8>> {
    let make = |&(from, to): &(usize, usize)| {
        let mut packet = ipv4(17, [10, 0, 0, 1], [10, 0, 0, 2], &payload[from..to]);
        let more = if to < payload.len() { 0x2000 } else { 0 };
        let field = (more | (from / 8) as u16).to_be_bytes();
        (packet[5], packet[6], packet[7]) = (id, field[0], field[1]);
        packet
    };
    cuts.iter().map(make).collect()
}

#[test]
fn fragments_in_every_order() {
    let text: String = (0..40).map(|n| char::from(b'a' + n % 26)).collect();
    let payload = udp(7, 8, text.as_bytes());
    let parts = fragments(1, &payload, &[(0, 16), (16, 32), (32, 48)]);
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut talk = Talk::new(FlowLimits::default());
        for part in order {
            talk.frame(101, &parts[part]);
        }
        assert_eq!(
            talk.take_log(),
            format!("#{} udp 0 > '{text}'", u32::MAX).replace("#4294967295 ", "")
        );
        assert_eq!((talk.flow.stats().fragments, talk.flow.stats().reassembled), (3, 1));
    }
}

#[test]
fn overlapping_fragments_keep_the_first_bytes() {
    let mut talk = Talk::new(FlowLimits::default());
    let one = udp(7, 8, b"AAAAAAAABBBBBBBBCCCCCCCC");
    let two = udp(7, 8, b"ZZZZZZZZZZZZZZZZZZZZZZZZ");
    talk.frame(101, &fragments(1, &one, &[(0, 16)])[0]);
    talk.frame(101, &fragments(1, &two, &[(8, 24)])[0]);
    talk.frame(101, &fragments(1, &one, &[(16, 32)])[0]);
    assert_eq!(talk.take_log(), "udp 0 > 'AAAAAAAAZZZZZZZZCCCCCCCC'");
}

#[test]
fn ipv6_fragments_of_a_tcp_segment() {
    let segment = Build {
        port: 4000,
        seq: 99,
        flags: 2,
        text: b"data in a syn".to_vec(),
        ..Build::default()
    }
    .tcp();
    let part = |from: usize, to: usize| {
        let more = u16::from(to < segment.len());
        let field = (from as u16 | more).to_be_bytes();
        let header = [60, 0, field[0], field[1], 0, 0, 0, 7];
        ipv6(
            44,
            [1; 16],
            [2; 16],
            &[
                &header[..],
                if from == 0 { &[6, 0, 1, 4, 0, 0, 0, 0] } else { &[] },
                &segment[from..to],
            ]
            .concat(),
        )
    };
    // The destination options are in the first fragment and move everything behind them by 8 bytes.
    let first = part(0, 16);
    let mut second = part(16, segment.len());
    second[40 + 3] = 24;
    let mut talk = Talk::new(FlowLimits::default());
    talk.frame(101, &second);
    talk.frame(101, &first);
    assert_eq!(talk.take_log(), "open 0 Syn; > 0 'data in a syn'");
}

#[test]
fn fragments_are_dropped_when_there_are_too_many_or_they_are_too_old() {
    let payload = udp(7, 8, &[b'x'; 24]);
    let limits = FlowLimits { fragmented: 2, ..FlowLimits::default() };
    let mut talk = Talk::new(limits);
    let first = |id| fragments(id, &payload, &[(0, 16)]).remove(0);
    let last = |id| fragments(id, &payload, &[(16, 32)]).remove(0);
    talk.frame(101, &first(1));
    talk.frame(101, &first(2));
    talk.frame(101, &first(3));
    talk.frame(101, &last(2));
    let beginning = "udp 0 > 'xxxxxxxx' missing 16";
    assert_eq!(
        talk.take_log(),
        format!("udp 0 > note FragmentLimit; {beginning}; udp 0 > '{}'", "x".repeat(24))
    );
    assert_eq!(talk.flow.stats().fragments_dropped, 1);
    talk.play("wait 61s");
    talk.frame(101, &last(3));
    assert_eq!(talk.take_log(), beginning, "the first fragment was too old");
    let mut talk = Talk::new(FlowLimits { fragment_buffer: 600, ..FlowLimits::default() });
    for id in 0..100 {
        talk.frame(101, &first(id));
    }
    assert_eq!(talk.flow.stats().fragments_dropped, 95);
}

#[test]
fn of_a_datagram_that_stays_incomplete_the_beginning_is_told_when_its_time_is_over() {
    let text: String = (0..40).map(|n| char::from(b'a' + n % 26)).collect();
    let parts = fragments(1, &udp(7, 8, text.as_bytes()), &[(0, 16), (16, 32), (32, 48)]);
    let mut talk = Talk::new(FlowLimits::default());
    talk.frame(101, &parts[2]);
    talk.frame(101, &parts[0]);
    talk.play("wait 61s");
    talk.frame(101, &ipv4(17, [1; 4], [2; 4], &udp(1, 2, b"any other packet")));
    assert_eq!(
        talk.take_log(),
        format!("udp 0 > '{}' missing 32; udp 1 > 'any other packet'", &text[..8])
    );
    // Without the first fragment its stream is not known.
    talk.frame(101, &parts[1]);
    talk.frame(101, &parts[2]);
    talk.flow.finish(&mut talk.log);
    assert_eq!(talk.take_log(), "udp 0 end CaptureEnd; udp 1 end CaptureEnd");
    assert_eq!(talk.flow.stats().fragments_dropped, 2);
}

#[test]
fn of_a_segment_that_stays_incomplete_the_rest_may_come_again() {
    let build = |seq, text: &[u8]| {
        Build { port: 4000, seq, flags: 16, text: text.to_vec(), ..Build::default() }.tcp()
    };
    let syn = Build { port: 4000, seq: 99, flags: 2, ..Build::default() }.tcp();
    let segment = build(100, b"abcdefghijklmnopqrst");
    let mut part = ipv4(6, [10, 0, 0, 1], [10, 0, 0, 2], &segment[..32]);
    part[6] = 0x20;
    let mut talk = Talk::new(FlowLimits::default());
    talk.frame(101, &ipv4(6, [10, 0, 0, 1], [10, 0, 0, 2], &syn));
    talk.frame(101, &part);
    talk.play("wait 61s");
    talk.frame(101, &ipv4(6, [10, 0, 0, 1], [10, 0, 0, 2], &build(112, b"mnopqrst")));
    assert_eq!(talk.take_log(), "open 0 Syn; > 0 'abcdefghijkl'; > 12 'mnopqrst'");
}

#[test]
fn fragments_that_contradict_each_other_about_the_end() {
    let payload = udp(7, 8, &[b'x'; 40]);
    let mut talk = Talk::new(FlowLimits::default());
    talk.frame(101, &fragments(1, &payload, &[(0, 16)])[0]);
    talk.frame(101, &fragments(1, &payload, &[(32, 40)])[0]);
    talk.frame(101, &fragments(1, &payload[..24], &[(16, 24)])[0]);
    talk.flow.finish(&mut talk.log);
    // 24 bytes in all, and 8 beyond them: the bytes before the hole are delivered.
    assert_eq!(talk.take_log(), "udp 0 > 'xxxxxxxxxxxxxxxx' missing 24; udp 0 end CaptureEnd");
    let stats = talk.flow.stats();
    assert_eq!((stats.reassembled, stats.fragments_dropped), (0, 1));
}

#[test]
fn of_a_datagram_whose_first_fragment_was_cut_the_beginning_is_told() {
    let payload = udp(7, 8, &[b'x'; 40]);
    let parts = fragments(1, &payload, &[(0, 24), (24, 48)]);
    let mut talk = Talk::new(FlowLimits::default());
    talk.frame_cut(101, &parts[0][..38], parts[0].len());
    talk.frame(101, &parts[1]);
    talk.flow.finish(&mut talk.log);
    assert_eq!(talk.take_log(), "udp 0 > 'xxxxxxxxxx' missing 30; udp 0 end CaptureEnd");
}

#[test]
fn the_udp_length_bounds_the_payload() {
    let mut talk = Talk::new(FlowLimits::default());
    let mut short = udp(7, 8, b"hello and more");
    short[5] = 8 + 5;
    talk.frame(101, &ipv4(17, [1; 4], [2; 4], &short));
    let whole = ipv4(17, [1; 4], [2; 4], &udp(7, 8, b"hello"));
    talk.frame_cut(101, &whole[..whole.len() - 3], whole.len());
    short[5] = 7;
    talk.frame(101, &ipv4(17, [1; 4], [2; 4], &short));
    assert_eq!(talk.take_log(), "udp 0 > 'hello'; udp 0 > 'he' missing 3");
    assert_eq!(talk.flow.not_read().of(NotRead::Damaged), 1);
}

#[test]
fn udp_streams_are_pairs_of_ends() {
    let mut talk = Talk::new(FlowLimits { udp_streams: 2, ..FlowLimits::default() });
    let a = [10, 0, 0, 1];
    let b = [10, 0, 0, 2];
    talk.frame(101, &ipv4(17, a, b, &udp(1, 2, b"ask")));
    talk.frame(101, &ipv4(17, a, b, &udp(1, 3, b"other")));
    talk.frame(101, &ipv4(17, b, a, &udp(2, 1, b"answer")));
    talk.frame(101, &ipv4(17, b, a, &udp(1, 2, b"new")));
    talk.flow.finish(&mut talk.log);
    assert_eq!(
        talk.take_log(),
        "udp 0 > 'ask'; udp 1 > 'other'; udp 0 < 'answer'; udp 1 end Evicted; udp 2 > 'new'; udp \
         0 end CaptureEnd; udp 2 end CaptureEnd"
    );
}
