//! Link layers, IP, fragments and UDP.

use super::*;

/// The same IP packet on every link layer, with padding where Ethernet has some.
pub(super) fn one_of_each_link(ip: &[u8]) -> Vec<(u16, Vec<u8>)> {
    let v6 = ip[0] >> 4 == 6;
    let kind: [u8; 2] = if v6 { [0x86, 0xdd] } else { [8, 0] };
    let ethernet = |tags: &[u8]| [&[2; 12], tags, &kind, ip, &[0xee; 30]].concat();
    let family: u8 = if v6 { 30 } else { 2 };
    let ppp: u8 = if v6 { 0x57 } else { 0x21 };
    vec![
        (1, ethernet(&[])),
        (1, ethernet(&[0x81, 0, 0, 5])),
        (1, ethernet(&[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6])),
        (1, ethernet(&[0x91, 0, 0, 5, 0x81, 0, 0, 6])),
        (1, [&[2; 12][..], &[0x88, 0x64, 0x11, 0, 0, 1, 0, 0, 0, ppp], ip].concat()),
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

#[test]
fn what_is_not_ip_is_counted() {
    let mut talk = Talk::new(FlowLimits::default());
    talk.frame(1, &[&[2; 12], &[8, 6][..], &[0; 28]].concat());
    talk.frame(105, &[0; 60]);
    talk.frame(1, &[0; 5]);
    talk.frame(101, &ipv4(132, [1; 4], [2; 4], &[0; 12]));
    talk.frame(101, &ipv4(47, [1; 4], [2; 4], &[0; 12]));
    let stats = talk.flow.stats();
    assert_eq!(
        (stats.not_ip, stats.unsupported, stats.malformed, stats.other_ip, stats.gre),
        (1, 1, 1, 2, 1)
    );
    assert_eq!(stats.unsupported_link, Some(105));
    assert_eq!(talk.take_log(), "");
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

#[test]
fn a_tunnel_is_looked_through() {
    let inner = ipv6(17, [1; 16], [2; 16], &udp(7, 8, b"hello"));
    let mut talk = Talk::new(FlowLimits::default());
    talk.frame(101, &ipv4(41, [9; 4], [8; 4], &inner));
    talk.frame(101, &ipv4(4, [9; 4], [8; 4], &ipv4(17, [1; 4], [2; 4], &udp(7, 8, b"there"))));
    assert_eq!(talk.take_log().replace("#0 ", ""), "udp 0 > 'hello'; udp 1 > 'there'");
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
    assert_eq!(talk.flow.stats().malformed, 1);
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
        "udp 0 > 'ask'; udp 1 > 'other'; udp 0 < 'answer'; udp 1 end Evicted; udp 2 > 'new'; udp 0 end CaptureEnd; udp 2 end CaptureEnd"
    );
}
