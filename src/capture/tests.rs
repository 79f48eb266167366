//! Every feature of the formats. `damage_tests` has damaged files, `clock` its own tests.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use super::bytes::Endianness::{Big, Little};
use super::testing::*;
use super::{Capture, Source};
use std::io::Cursor;

const MICROS: u32 = 0xa1b2_c3d4;
const NANOS: u32 = 0xa1b2_3c4d;
const MODIFIED: u32 = 0xa1b2_cd34;

/// A whole frame of Ethernet with a microsecond clock.
fn frame(number: u64, seconds: i64, nanos: u32, data: &[u8]) -> SeenFrame {
    (number, seconds, nanos, 6, 1, data.len() as u32, data.to_vec())
}

#[test]
fn pcap_is_read_in_both_byte_orders() {
    for order in [Little, Big] {
        let file = PcapFile::new(order, MICROS)
            .packet(1_700_000_000, 123_456, b"one")
            .packet(1_700_000_001, 0, b"")
            .record([4_000_000_000, 999_999, 3, 60], &[], b"cut");
        let all = read(&file.bytes);
        assert_eq!(all.errors, [""; 0]);
        assert_eq!(
            all.frames,
            [
                frame(1, 1_700_000_000, 123_456_000, b"one"),
                frame(2, 1_700_000_001, 0, b""),
                (3, 4_000_000_000, 999_999_000, 6, 1, 60, b"cut".to_vec()),
            ]
        );
    }
}

#[test]
fn pcap_with_nanoseconds_keeps_nine_digits() {
    for order in [Little, Big] {
        let file = PcapFile::new(order, NANOS).packet(7, 123_456_789, b"x");
        let all = read(&file.bytes);
        assert_eq!(all.frames, [(1, 7, 123_456_789, 9, 1, 1, b"x".to_vec())]);
    }
}

#[test]
fn a_fraction_beyond_the_second_is_carried() {
    let file = PcapFile::new(Little, MICROS).packet(7, 2_500_000, b"x");
    assert_eq!(read(&file.bytes).frames, [frame(1, 9, 500_000_000, b"x")]);
}

#[test]
fn check_sequence_bits_are_no_part_of_the_link_type() {
    let file = PcapFile::with(Big, MICROS, (2, 4), 0, 0x2400_0114).packet(1, 2, b"x");
    assert_eq!(read(&file.bytes).frames[0].4, 0x114);
}

#[test]
fn ixia_captures_have_a_longer_header() {
    for (magic, nanos, digits) in [(0x1c00_01ac, 5, 9), (0x1c00_01ab, 5_000, 6)] {
        for order in [Little, Big] {
            let mut file = PcapFile::new(order, magic);
            file.bytes.extend([9, 9, 9, 9]);
            let file = file.packet(7, 5, b"x");
            let all = read(&file.bytes);
            assert_eq!(all.frames, [(1, 7, nanos, digits, 1, 1, b"x".to_vec())]);
        }
    }
}

#[test]
fn old_versions_have_their_lengths_the_other_way_round() {
    for version in [(2, 2), (543, 0)] {
        let file = PcapFile::with(Big, MICROS, version, 0, 1).record([7, 5, 60, 3], &[], b"cut");
        let all = read(&file.bytes);
        assert_eq!(all.frames, [(1, 7, 5_000, 6, 1, 60, b"cut".to_vec())]);
    }
    // Version 2.3 was written both ways.
    let file = PcapFile::with(Big, MICROS, (2, 3), 0, 1).record([7, 5, 60, 3], &[], b"cut").record(
        [7, 6, 3, 60],
        &[],
        b"cut",
    );
    let lengths: Vec<_> = read(&file.bytes).frames.iter().map(|f| f.5).collect();
    assert_eq!(lengths, [60, 60]);
}

#[test]
fn aix_counts_nanoseconds_and_pads_fddi() {
    let ethernet = PcapFile::with(Big, MICROS, (2, 2), 0, 6).record([7, 5, 1, 1], &[], b"x");
    let all = read(&ethernet.bytes);
    assert_eq!(all.frames, [(1, 7, 5, 9, 1, 1, b"x".to_vec())]);
    let fddi = PcapFile::with(Big, MICROS, (2, 2), 0, 15).record([7, 5, 4, 4], &[], b"\0\0\0x");
    let all = read(&fddi.bytes);
    assert_eq!(all.frames, [(1, 7, 5, 9, 10, 1, b"x".to_vec())]);
}

#[test]
fn modified_headers_are_told_by_what_makes_sense() {
    let index_and_protocol = [0, 0, 0, 2, 8, 0, 0, 0];
    let longer = [0, 0, 0, 2, 8, 0, 0, 0, 0, 0, 0, 0];
    let nokia = [0x9f, 0xbf, 0xb6, 0x01];
    let kinds: [(u32, &[u8]); 4] = [
        (MICROS, &index_and_protocol),
        (MICROS, &nokia),
        (MODIFIED, &index_and_protocol),
        (MODIFIED, &longer),
    ];
    for (magic, more) in kinds {
        let mut file = PcapFile::new(Big, magic);
        for second in 1..=4 {
            file = file.record([1_000_000_000 + second, 5, 20, 20], more, &[0x5a; 20]);
        }
        let all = read(&file.bytes);
        assert_eq!(all.errors, [""; 0], "{magic:x} {more:?}");
        let expected: Vec<_> =
            (1..=4).map(|n| frame(n, 1_000_000_000 + n as i64, 5_000, &[0x5a; 20])).collect();
        assert_eq!(all.frames, expected, "{magic:x} {more:?}");
    }
}

#[test]
fn a_pipe_is_not_waited_on_to_tell_a_variant() {
    // One record has come and the next has not: the most common kind is assumed.
    let file = PcapFile::new(Little, MODIFIED).record([1, 5, 3, 3], &[0; 8], b"abc");
    let mut capture = Capture::from_reader("pipe", Box::new(ThenPanic(Cursor::new(file.bytes))));
    assert_eq!(capture.next_frame().unwrap().unwrap().data, b"abc");
}

/// A pipe whose writer never writes again: reading beyond what is there fails the test.
struct ThenPanic(Cursor<Vec<u8>>);

impl std::io::Read for ThenPanic {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self.0.read(buffer)? {
            0 => panic!("waited for bytes nobody needs"),
            n => Ok(n),
        }
    }
}

#[test]
fn a_frame_is_given_as_soon_as_its_bytes_are_there() {
    let pcap = PcapFile::new(Little, MICROS).packet(1, 2, b"one").bytes;
    let pcapng = NgFile::new(Big).interface(1, 0).packet(0, 5, b"one").bytes;
    for file in [pcap, pcapng] {
        let mut capture = Capture::from_reader("pipe", Box::new(ThenPanic(Cursor::new(file))));
        assert_eq!(capture.next_frame().unwrap().unwrap().data, b"one");
    }
}

#[test]
fn pcapng_is_read_in_sections_of_both_byte_orders() {
    let file = NgFile::new(Little)
        .interface(1, 0)
        .interface(113, 0)
        .packet(1, 1_000_001, b"cooked")
        .section(Big)
        .interface(101, 0)
        .packet(0, 2_000_002, b"raw");
    let all = read(&file.bytes);
    assert_eq!(all.errors, [""; 0]);
    assert_eq!(
        all.frames,
        [(1, 1, 1_000, 6, 113, 6, b"cooked".to_vec()), (2, 2, 2_000, 6, 101, 3, b"raw".to_vec()),]
    );
}

#[test]
fn a_section_forgets_the_interfaces_before_it() {
    let file =
        NgFile::new(Little).interface(1, 0).packet(0, 1, b"x").section(Little).packet(0, 2, b"y");
    let all = read(&file.bytes);
    assert_eq!(all.frames.len(), 1);
    assert_eq!(
        all.errors,
        ["x: at byte 112: expected one of the section's 0 interfaces, got number 0"]
    );
}

#[test]
fn every_interface_has_its_own_clock() {
    for order in [Little, Big] {
        let file = NgFile::new(order)
            .clocked(3, 0)
            .clocked(6, 10)
            .clocked(9, -1)
            .clocked(0x8a, 0)
            .clocked(0x94, 0)
            .interface(1, 0)
            .packet(0, 1_700_000_000_123, b"")
            .packet(1, 1_700_000_000_123_456, b"")
            .packet(2, 1_700_000_000_123_456_789, b"")
            .packet(3, (1_700_000_000 << 10) + 1, b"")
            .packet(4, (1_700_000_000 << 20) + 1, b"")
            .packet(5, 1_700_000_000_123_456, b"");
        let times: Vec<_> = read(&file.bytes).frames.iter().map(|f| (f.1, f.2, f.3)).collect();
        assert_eq!(
            times,
            [
                (1_700_000_000, 123_000_000, 3),
                (1_700_000_010, 123_456_000, 6),
                (1_699_999_999, 123_456_789, 9),
                (1_700_000_000, 976_562, 4),
                (1_700_000_000, 953, 7),
                (1_700_000_000, 123_456_000, 6),
            ]
        );
    }
}

#[test]
fn simple_packets_have_no_time_and_end_at_the_snap_length() {
    let file = NgFile::new(Big).interface(1, 4).simple(60, b"four").simple(2, b"xy");
    assert_eq!(
        read(&file.bytes).frames,
        [(1, 0, 0, 6, 1, 60, b"four".to_vec()), (2, 0, 0, 6, 1, 2, b"xy".to_vec()),]
    );
}

#[test]
fn obsolete_packet_blocks_are_read() {
    for order in [Little, Big] {
        let file = NgFile::new(order).interface(1, 0).interface(101, 0);
        let file = file.packet_with(2, 1, 1_000_001, 60, b"cut", &[]);
        let all = read(&file.bytes);
        assert_eq!(all.frames, [(1, 1, 1_000, 6, 101, 60, b"cut".to_vec())]);
    }
}

#[test]
fn options_of_a_packet_are_no_part_of_it() {
    let comment = b"\x01\0\x03\0hey\0\0\0\0\0";
    let file = NgFile::new(Little).interface(1, 0).packet_with(6, 0, 5, 3, b"abc", comment);
    assert_eq!(read(&file.bytes).frames, [frame(1, 0, 5_000, b"abc")]);
}

#[test]
fn other_blocks_are_passed_over_however_large() {
    let names = 4;
    let statistics = 5;
    let custom = 0xbad;
    let file = NgFile::new(Little)
        .block(custom, &vec![7; 20 << 20])
        .interface(1, 0)
        .block(names, &[0; 8])
        .packet(0, 5, b"abc")
        .block(0x8000_1234, b"local")
        .block(statistics, &[0; 12]);
    let all = read(&file.bytes);
    assert_eq!(all.errors, [""; 0]);
    assert_eq!(all.frames, [frame(1, 0, 5_000, b"abc")]);
}

#[test]
fn secrets_come_in_their_place() {
    for order in [Little, Big] {
        let file = NgFile::new(order)
            .secrets(0x4d4f_554c, b"odd length")
            .interface(1, 0)
            .packet(0, 5, b"abc")
            .secrets(0x544c_534b, b"");
        let all = read(&file.bytes);
        assert_eq!(
            all.secrets,
            [(0x4d4f_554c, b"odd length".to_vec()), (0x544c_534b, b"".to_vec())]
        );
        assert_eq!(all.frames.len(), 1);
        let mut frames_only = Capture::new([source("x", &file.bytes)]);
        assert_eq!(frames_only.next_frame().unwrap().unwrap().number, 1);
        assert!(frames_only.next_frame().unwrap().is_none());
    }
}

#[test]
fn secrets_are_never_shown_by_debug() {
    let file = NgFile::new(Little).secrets(1, b"hunter2");
    let mut capture = Capture::new([source("x", &file.bytes)]);
    let shown = format!("{:?}", capture.next_item().unwrap().unwrap());
    assert!(shown.contains("length: 7"), "{shown}");
    assert!(!shown.contains("104"), "{shown}");
}

#[test]
fn an_empty_but_valid_capture_just_ends() {
    for file in [
        PcapFile::new(Little, MICROS).bytes,
        NgFile::new(Big).bytes,
        NgFile::new(Big).interface(1, 0).bytes,
        gzip(&PcapFile::new(Little, NANOS).bytes),
    ] {
        assert_eq!(read(&file), Everything::default());
    }
}

#[test]
fn several_files_are_one_run() {
    let a = PcapFile::new(Little, MICROS).packet(1, 0, b"a").bytes;
    let b = NgFile::new(Big).interface(1, 0).packet(0, 5, b"b").bytes;
    let c = PcapFile::new(Big, MICROS).packet(2, 0, b"c").bytes;
    let cut = &b[..b.len() - 1];
    let mut capture = Capture::new([source("a", &a), source("b", cut), source("c", &gzip(&c))]);
    capture.push(source("d", &b));
    let all = drain(&mut capture);
    let numbers: Vec<_> = all.frames.iter().map(|f| (f.0, f.6.clone())).collect();
    assert_eq!(numbers, [(1, b"a".to_vec()), (2, b"c".to_vec()), (3, b"b".to_vec())]);
    assert_eq!(
        all.errors,
        ["b: at byte 48: expected a block of 36 bytes, got 35: the file is cut"]
    );
    assert_eq!(capture.frames(), 3);
    let total = a.len() + cut.len() + gzip(&c).len() + b.len();
    assert_eq!(capture.bytes_read(), total as u64);
}

#[test]
fn gzip_and_zstd_are_told_by_content() {
    let pcap = PcapFile::new(Little, MICROS).packet(1, 0, b"a").bytes;
    let pcapng = NgFile::new(Big).interface(1, 0).packet(0, 5, b"b").bytes;
    for file in [pcap, pcapng] {
        let expected = read(&file);
        let (one, two) = file.split_at(30);
        let skippable = [&b"\x53\x2a\x4d\x18\x02\0\0\0hi"[..], &zstd(&file)].concat();
        for packed in [
            gzip(&file),
            zstd(&file),
            [gzip(one), gzip(two)].concat(),
            [zstd(one), zstd(two)].concat(),
            skippable,
        ] {
            assert_eq!(read(&packed), expected);
            let dribble = SlowReader { bytes: Cursor::new(packed), step: 1 };
            let mut slow = Capture::from_reader("x", Box::new(dribble));
            assert_eq!(drain(&mut slow), expected);
        }
    }
}

#[test]
fn a_dribbling_pipe_gives_what_a_file_gives() {
    let file =
        NgFile::new(Big).interface(1, 0).packet(0, 5, &vec![1; 300_000]).packet(0, 6, b"small");
    for step in [1, 7, 4096] {
        let dribble = SlowReader { bytes: Cursor::new(file.bytes.clone()), step };
        let mut slow = Capture::from_reader("x", Box::new(dribble));
        assert_eq!(drain(&mut slow), read(&file.bytes));
    }
}

#[test]
fn files_are_opened_by_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.pcap");
    let bytes = PcapFile::new(Little, MODIFIED).record([1, 5, 3, 3], &[0; 8], b"abc");
    std::fs::write(&path, &bytes.bytes).unwrap();
    assert_eq!(Source::path(&path).size(), Some(bytes.bytes.len() as u64));
    let all = drain(&mut Capture::open(&path).unwrap());
    assert_eq!(all.frames, [frame(1, 1, 5_000, b"abc")]);

    let folder_error = Capture::open(folder.path()).unwrap_err().to_string();
    assert!(folder_error.ends_with(": expected a capture file: this is a folder"));
    let missing = Capture::open("no/such.pcap").unwrap_err().to_string();
    assert_eq!(missing, "no/such.pcap: expected a capture file: no such file");
}
