//! Hostile input: nothing panics, memory and time stay bounded, and intact streams are still
//! delivered.

use super::*;

#[test]
fn a_segment_two_gigabytes_ahead_costs_nothing() {
    let talk = dialogue(
        "
        > 99 syn                        | open 0 Syn
        < 499 syn ack 100               |
        > 2147483600 ack 500 'far'      |
        > 100 ack 500 'hello'           | > note Implausible { len: 3 }; > 0 'hello'
        < 500 ack 2147483603            |
        < 500 ack 105                   |
        > 3000000000 fin ack 500        |
        > 105 ack 500 '!'               | > 5 '!'
        end                             | > end CaptureEnd; < end CaptureEnd
        ",
    );
    assert_eq!(talk.log.totals[0].ignored, 3);
}

#[test]
fn a_jump_that_goes_on_is_believed_and_nothing_behind_it_is_lost() {
    let talk = dialogue(
        "
        > 99 syn                        | open 0 Syn
        > 100 ack 500 'hello'           | > 0 'hello'
        > 2000000105 ack 500 'a'        |
        > 2000000106 ack 500 'b'        |
        > 2000000107 ack 500 'c'        |
        > 2000000108 ack 500 'd'        | > gap 5+2000000000 Limit @3; > 2000000005 'a' @3; > \
         2000000006 'b' @4; > 2000000007 'c' @5; > 2000000008 'd'
        > 2000000109 ack 500 'e'        | > 2000000009 'e'
        ",
    );
    assert_eq!(talk.flow.transports.tcp.waiting(), 0);
}

#[test]
fn a_jump_is_believed_when_the_receiver_confirms_it_or_the_sender_closes_behind_it() {
    dialogue(
        "
        > 99 syn                        | open 0 Syn
        < 499 syn ack 100               |
        > 2000000105 ack 500 'a'        |
        < 500 ack 2000000106            | > gap 0+2000000005 Limit @3; > 2000000005 'a' @3
        < 3000000500 ack 2000000106 'b' |
        < 3000000501 fin ack 2000000106 | < gap 0+3000000000 Limit @5; < 3000000000 'b' @5; < end \
         Fin
        ",
    );
    dialogue(
        "
        > 99 syn                        | open 0 Syn
        < 499 syn ack 100               |
        > 2000000105 ack 500 'a'        |
        > 2000000106 ack 500 'b'        |
        < 3000000106 ack 100 'c'        |
        end                             | > gap 0+2000000005 Limit @3; > 2000000005 'a' @3; > \
         2000000006 'b' @4; > end CaptureEnd; < note Implausible { len: 1 }; < end CaptureEnd
        ",
    );
}

#[test]
fn a_wrong_number_before_the_first_bytes_does_not_lose_them() {
    dialogue(
        "
        < 77 ack 5                      | open 0 Middle
        > 3000000000 ack 77 'a'         |
        > 3000000001 ack 77 'b'         |
        > 3000000002 ack 77 'c'         |
        > 3000000003 ack 77 'd'         | < 0 'a' @2; < 1 'b' @3; < 2 'c' @4; < 3 'd'
        ",
    );
}

#[test]
fn kept_segments_count_as_memory() {
    let limits = FlowLimits { total_buffer: 250, ..FlowLimits::default() };
    dialogue_with(
        limits,
        "
        > 99 syn                        | open 0 Syn
        < 499 syn ack 100               |
        > 2000000105 ack 500 'a'        |
        > 2000000106 ack 500 'b'        |
        > 2000000107 ack 500 'c'        | > note Implausible { len: 1 }
        > 100 ack 500 'hello'           | > 0 'hello'
        ",
    );
}

#[test]
fn a_fin_that_contradicts_the_data() {
    let talk = dialogue(
        "
        > 99 syn                        | open 0 Syn
        > 100 ack 500 'hello'           | > 0 'hello'
        > 102 fin ack 500               |
        > 110 fin ack 500               |
        > 105 ack 500 'world, more'     | > 5 'world'; > end Fin
        ",
    );
    assert_eq!(talk.log.totals[0].ignored, 6);
}

#[test]
fn every_frame_cut_at_every_byte() {
    let mut build = Build {
        port: 4000,
        seq: 100,
        ack: 500,
        flags: 0x18,
        text: b"hello, world".to_vec(),
        ..Build::default()
    };
    build.flags = 0x18;
    let mut frames: Vec<(u16, Vec<u8>)> = packets::one_of_each_link(&build.ip());
    frames.extend(packets::one_of_each_link(&packets::ipv6_with_extensions()));
    frames.extend(packets::one_of_each_link(&ipv4(17, [1; 4], [2; 4], &udp(1, 2, b"payload"))));
    for (link, frame) in frames {
        for len in 0..=frame.len() {
            for wire_len in [frame.len(), len, 0] {
                let mut talk = Talk::new(FlowLimits::default());
                talk.frame_cut(link, &frame[..len], wire_len);
                talk.flow.finish(&mut talk.log);
                let stats = talk.flow.stats();
                let seen = stats.tcp + stats.udp + talk.not_read().values().sum::<u64>();
                assert_eq!(seen, 1, "link type {link}, {len} bytes");
            }
        }
    }
}

#[test]
fn a_header_of_impossible_length_counts_for_the_number_alone() {
    let mut talk = Talk::new(FlowLimits::default());
    let mut build =
        Build { port: 4000, seq: 100, flags: 2, text: b"hello".to_vec(), ..Build::default() };
    let mut short = build.ip();
    short[20 + 12] = 0x40;
    talk.frame(101, &short);
    assert_eq!(talk.take_log(), "", "its payload cannot be found");
    build.seq = 200;
    talk.frame(101, &build.ip());
    assert_eq!(
        talk.take_log(),
        "open 1 Syn; > 0 'hello'",
        "a SYN with another number than the first one's"
    );
    assert_eq!(talk.flow.not_read().of(NotRead::Damaged), 1);
}

#[test]
fn frames_without_a_time_do_not_end_waiting() {
    let mut talk = Talk::new(FlowLimits::default());
    talk.play("> 99 syn");
    talk.play("< 499 syn ack 100");
    talk.play("> 105 ack 500 'world'");
    for timed in [false, true, false, true, false] {
        let now = std::mem::replace(&mut talk.nanos, 0);
        if timed {
            talk.nanos = now;
            talk.play("< 500 ack 110");
        } else {
            let frame = Build::read("< 500 ack 110", 4000).ip();
            let number = talk.log.frame + 1;
            let untimed = Frame {
                number,
                time: Time::default(),
                link: 101,
                data: &frame,
                wire_len: frame.len() as u32,
            };
            talk.flow.frame(&untimed, &mut talk.log);
        }
        talk.nanos = now;
    }
    talk.take_log();
    talk.play("> 100 ack 500 'hello'");
    assert_eq!(talk.take_log(), "> 0 'hello'; > 5 'world'");
}

/// A pseudorandom generator with a fixed seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

#[test]
fn noise_on_every_link_type() {
    let mut chance = Chance(1);
    let mut talk = Talk::new(FlowLimits {
        tcp_streams: 8,
        tcp_closed: 4,
        udp_streams: 4,
        fragmented: 4,
        ..FlowLimits::default()
    });
    for _ in 0..20_000 {
        let link = [0, 1, 9, 12, 101, 108, 113, 228, 276, 7][chance.below(10) as usize];
        let mut data: Vec<u8> = (0..chance.below(120)).map(|_| chance.below(256) as u8).collect();
        if chance.below(2) == 0 && data.len() > 40 && link == 101 {
            data[0] = 0x45;
            data[9] = [6, 17, 1, 4][chance.below(4) as usize];
            data[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
            data[20] = 0;
            data[22] = 0;
        }
        talk.frame(link, &data);
    }
    talk.flow.finish(&mut talk.log);
    assert_eq!(talk.flow.stats().frames, 20_000);
}

/// Segments of a known text in random order, overlapping, repeated, some lost: the output is the
/// text, with gaps exactly where nothing was captured.
#[test]
fn a_shuffled_stream_comes_out_whole() {
    for seed in 0..200 {
        let mut chance = Chance(seed);
        let text: Vec<u8> = (0..2000u32).map(|n| b'a' + (n * 7 % 26) as u8).collect();
        let mut covered = vec![false; text.len()];
        let mut segments = Vec::new();
        for _ in 0..chance.below(150) + 50 {
            let from = chance.below(text.len() as u64) as usize;
            let to = text.len().min(from + 1 + chance.below(60) as usize);
            covered[from..to].fill(true);
            segments.push((from, to));
        }
        let mut talk = Talk::new(FlowLimits::default());
        let isn = u32::MAX - 1000;
        talk.play(&format!("> {isn} syn"));
        talk.play(&format!("< 499 syn ack {}", isn.wrapping_add(1)));
        for (from, to) in segments {
            let seq = isn.wrapping_add(1).wrapping_add(from as u32);
            talk.play(&format!("> {seq} ack 500 '{}'", String::from_utf8_lossy(&text[from..to])));
        }
        talk.play("end");
        let mut bytes = Vec::new();
        let mut there = Vec::new();
        for line in talk.log.lines.iter().filter(|line| line.starts_with("> ")) {
            let words: Vec<&str> = line.split([' ', '+']).collect();
            if words[1] == "gap" {
                assert_eq!(words[2].parse::<usize>().unwrap(), bytes.len());
                let len: usize = words[3].parse().unwrap();
                bytes.resize(bytes.len() + len, 0);
                there.resize(bytes.len(), false);
            } else if let Some(data) = words.get(2).filter(|word| word.starts_with('\'')) {
                assert_eq!(words[1].parse::<usize>().unwrap(), bytes.len());
                bytes.extend(data.trim_matches('\'').bytes());
                there.resize(bytes.len(), true);
            }
        }
        let end = covered.iter().rposition(|there| *there).map_or(0, |last| last + 1);
        assert_eq!(there, covered[..end], "seed {seed}");
        for (n, (byte, there)) in bytes.iter().zip(&there).enumerate() {
            assert!(!there || *byte == text[n], "seed {seed}, byte {n}");
        }
    }
}

#[test]
fn memory_stays_bounded_under_a_flood_of_holes() {
    let limits = FlowLimits { total_buffer: 20_000, ..FlowLimits::default() };
    let mut talk = Talk::new(limits);
    for n in 0..5_000u32 {
        talk.play(&format!("port {}", 1000 + n % 100));
        if n < 100 {
            talk.play("> 99 syn");
        }
        talk.play(&format!("> {} ack 500 'something behind a hole'", 200 + 100 * n));
        assert!(talk.flow.transports.tcp.waiting() <= 20_000);
    }
}

#[test]
fn a_short_frame_that_claims_a_long_segment_costs_no_walk_over_all_that_waits() {
    let mut talk = Talk::new(FlowLimits::default());
    talk.play("> 99 syn");
    talk.play("< 499 syn ack 100");
    for n in 0..25_000 {
        talk.play(&format!("> {} ack 500 'x'", 200 + 2 * n));
    }
    // None of its payload was captured. By its length it overlaps with all of these bytes.
    let claim = Build {
        port: 4000,
        seq: 150,
        ack: 500,
        flags: 0x10,
        text: vec![b'y'; 60_000],
        ..Build::default()
    };
    let packet = claim.ip();
    let began = std::time::Instant::now();
    for _ in 0..10_000 {
        talk.frame_cut(101, &packet[..40], packet.len());
    }
    let took = began.elapsed();
    assert!(took.as_secs() < 5, "{took:?}");
}
