//! Captures that are cut or damaged, and files that are not captures: everything before the damage
//! is returned, then one error, then the end. No changed byte makes the reader panic.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use super::bytes::Endianness::{Big, Little};
use super::testing::*;
use super::{Capture, CaptureProblem};
use std::io::Write;

const MICROS: u32 = 0xa1b2_c3d4;

fn pcap() -> Vec<u8> {
    PcapFile::new(Little, MICROS)
        .packet(1, 2, b"one")
        .packet(2, 3, b"")
        .packet(3, 4, b"three")
        .bytes
}

/// A capture with all kinds of blocks, in two byte orders.
fn pcapng() -> Vec<u8> {
    NgFile::new(Big)
        .secrets(0x4d4f_554c, b"key text")
        .clocked(9, 1)
        .interface(101, 4)
        .packet(0, 5, b"one")
        .simple(4, b"four")
        .block(5, b"statistics")
        .section(Little)
        .interface(1, 0)
        .packet_with(2, 0, 5, 3, b"old", &[])
        .packet_with(6, 0, 5, 3, b"new", b"\x01\0\x02\0hi\0\0\0\0\0\0")
        .bytes
}

/// The positions between two records or blocks, where a file may end without an error.
fn boundaries(file: &[u8]) -> Vec<usize> {
    let mut at = if file.starts_with(&[0xd4]) { 24 } else { 0 };
    let mut boundaries = vec![at];
    let mut order = Big;
    while at < file.len() {
        at += if file.starts_with(&[0xd4]) {
            16 + Little.u32_at(file, at + 8).unwrap() as usize
        } else {
            if file[at..].starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) {
                order = if file[at + 8] == 0x1a { Big } else { Little };
            }
            order.u32_at(file, at + 4).unwrap() as usize
        };
        boundaries.push(at);
    }
    boundaries
}

#[test]
fn a_file_cut_at_any_byte_gives_what_came_before_and_one_error() {
    for file in [pcap(), pcapng()] {
        let whole = read(&file);
        assert_eq!(whole.errors, [""; 0]);
        let boundaries = boundaries(&file);
        for end in 0..file.len() {
            let all = read(&file[..end]);
            let last = boundaries.iter().rev().find(|b| **b <= end).unwrap_or(&0);
            let before = read(&file[..*last]);
            assert_eq!(all.frames, before.frames, "cut at {end}");
            assert_eq!(all.secrets, before.secrets, "cut at {end}");
            assert!(whole.frames.starts_with(&all.frames), "cut at {end}");
            let expected = usize::from(end == 0 || !boundaries.contains(&end));
            assert_eq!(all.errors.len(), expected, "cut at {end}: {all:?}");
            assert!(all.errors.iter().all(|e| !e.contains('\n')));
        }
    }
}

/// What a careful decoder can still decompress of cut gzip data. The reader must return as much.
fn still_readable(packed: &[u8]) -> Vec<u8> {
    let mut decoder = flate2::write::MultiGzDecoder::new(Vec::new());
    let _ = decoder.write_all(packed);
    let _ = decoder.flush();
    decoder.get_ref().clone()
}

#[test]
fn compressed_files_cut_at_any_byte_give_what_was_unpacked() {
    let file = pcapng();
    let whole = read(&file);
    let (one, two) = file.split_at(201);
    for (packed, is_gzip) in [
        (gzip(&file), true),
        ([gzip(one), gzip(two)].concat(), true),
        (zstd(&file), false),
        ([zstd(one), zstd(two)].concat(), false),
    ] {
        for end in 0..packed.len() {
            let all = read(&packed[..end]);
            assert!(whole.frames.starts_with(&all.frames), "cut at {end}");
            assert!(all.errors.len() <= 1, "cut at {end}: {all:?}");
            if is_gzip {
                let unpacked = read(&still_readable(&packed[..end]));
                assert_eq!(
                    all.frames,
                    unpacked.frames,
                    "cut at {end} of {}: {:?}",
                    packed.len(),
                    all.errors
                );
            }
        }
        let all = read(&packed[..packed.len() - 1]);
        assert_eq!(all.frames, whole.frames);
        let cut = format!(
            "x: at byte {} of the unpacked data: expected more compressed data, got none: the \
             file is cut",
            file.len()
        );
        assert_eq!(all.errors, [cut]);
    }
}

#[test]
fn looking_ahead_in_a_cut_file_loses_nothing() {
    // A plain file is read ahead to find its variant, and reading ahead meets the cut.
    let packed = gzip(&pcap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.gz");
    std::fs::write(&path, &packed[..packed.len() - 1]).unwrap();
    let all = drain(&mut Capture::open(&path).unwrap());
    assert_eq!(all.frames, read(&pcap()).frames);
    assert_eq!(all.errors.len(), 1);
}

#[test]
fn zstd_blocks_before_a_cut_come_out() {
    // More than one block of zstd: the first ones are whole.
    let mut file = PcapFile::new(Little, MICROS);
    let mut noise = 1u32;
    for second in 0..400 {
        let data: Vec<u8> = std::iter::repeat_with(|| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (noise >> 24) as u8
        })
        .take(1000)
        .collect();
        file = file.packet(second, 0, &data);
    }
    let packed = zstd(&file.bytes);
    let all = read(&packed[..packed.len() / 2]);
    assert!(all.frames.len() > 100, "{}", all.frames.len());
    assert!(read(&file.bytes).frames.starts_with(&all.frames));
    assert_eq!(all.errors.len(), 1);
}

#[test]
fn who_unpacks_makes_no_difference() {
    for packed in [gzip(&pcapng()), zstd(&pcapng())] {
        for end in 0..=packed.len() {
            let mut ahead = Capture::new([source("x", &packed[..end])]).unpacking_ahead(true);
            assert_eq!(drain(&mut ahead), read(&packed[..end]), "{end} bytes");
        }
    }
}

#[test]
fn damaged_compression_is_an_error_behind_the_frames() {
    let file = pcapng();
    for packed in [gzip(&file), zstd(&file)] {
        let mut damaged = packed.clone();
        // The checksum: in gzip 8 bytes before the end, in zstd the last 4.
        let at = damaged.len() - if packed[0] == 0x1f { 8 } else { 4 };
        damaged[at] ^= 1;
        let all = read(&damaged);
        assert_eq!(all.frames, read(&file).frames);
        assert_eq!(all.errors.len(), 1);
        assert!(all.errors[0].contains("the compressed data is damaged: "));
    }
}

#[test]
fn no_single_byte_makes_the_reader_stumble() {
    let files = [pcap(), pcapng(), gzip(&pcapng()), zstd(&pcapng())];
    for file in files {
        for at in 0..file.len() {
            for change in [1, 0x80, 0xff] {
                let mut damaged = file.clone();
                damaged[at] ^= change;
                let all = read(&damaged);
                assert!(all.errors.len() <= 1, "byte {at}: {all:?}");
                assert!(all.frames.len() <= 16, "byte {at}");
            }
        }
    }
}

fn only_error(bytes: &[u8]) -> String {
    let all = read(bytes);
    assert_eq!(all.frames, []);
    assert_eq!(all.errors.len(), 1, "{all:?}");
    all.errors[0].clone()
}

#[test]
fn what_is_no_capture_is_said_to_be_none() {
    let cases: [(&[u8], &str); 10] = [
        (b"", "expected a capture, got 0 bytes: the file is empty"),
        (b"\0\x01\x02\x03\x04", "expected a pcap or pcapng capture, got 00 01 02 03"),
        (b"hi\n", "expected a pcap or pcapng capture: this looks like text"),
        (b"\xd4\xc3", "expected a pcap or pcapng capture, got d4 c3"),
        (
            b"\xd4\xc3\xb2",
            "expected a pcap or pcapng capture, got d4 c3 b2: this looks like a capture cut in \
             its first bytes",
        ),
        (
            b"\xd4\xc3\xb2\xa1\x02\0",
            "expected a pcap file header of 24 bytes, got 6: the file is cut",
        ),
        (
            b"\x0a\x0d\x0d\x0a\x1c\0\0\0",
            "expected a section header of 28 bytes, got 8: the file is cut",
        ),
        (
            b"BZh91AY&SY\xb1\x04",
            "expected a pcap or pcapng capture, got 42 5a 68 39: this looks like bzip2, which \
             must be unpacked first",
        ),
        (
            b"snoop\0\0\0",
            "expected a pcap or pcapng capture, got 73 6e 6f 6f: this looks like a snoop capture",
        ),
        (
            b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0",
            "expected a pcap or pcapng capture, got 7f 45 4c 46: this looks like a program",
        ),
    ];
    for (bytes, expected) in cases {
        assert_eq!(only_error(bytes), format!("x: at byte 0: {expected}"));
    }
    assert_eq!(
        only_error(&gzip(b"hi\n")),
        "x: at byte 0 of the unpacked data: expected a pcap or pcapng capture: this looks like \
         text"
    );
    let mut tar = vec![0; 512];
    tar[..5].copy_from_slice(b"a.cap");
    tar[257..262].copy_from_slice(b"ustar");
    let mut trace = vec![0; 100];
    trace[72..76].copy_from_slice(&[2, 0, 2, 0xc0]);
    for (bytes, expected) in [
        (&gzip(&tar)[..], "a tar archive, which must be unpacked first"),
        (&trace, "a Windows event trace, which `etl2pcapng` converts if it holds packets"),
        (b"{\"log\": {\"version\": \"1.2\"}}", "an HTTP archive (HAR), which holds no packets"),
        (
            &gzip(b"[{'type': 'HTTP', 'region_name': ''}]"),
            "a log of Hippolyzer, whose messages are no datagrams any more",
        ),
    ] {
        let error = only_error(bytes);
        assert!(error.ends_with(&format!(": this looks like {expected}")), "{error}");
    }
    assert!(only_error(&gzip(&gzip(b"hi\n"))).ends_with("something compressed twice"));
    assert!(only_error(&gzip(b"")).ends_with("the file is empty"));
    assert!(only_error(b"\x1f\x8b").contains("the file is cut"));
    assert!(only_error(b"\x1f\x8bnonsense").contains("the compressed data is damaged: gzip: "));
    assert!(only_error(b"\x28\xb5\x2f\xfd").contains("the file is cut"));
}

#[test]
fn errors_say_what_was_expected_and_where() {
    let header = PcapFile::new(Little, MICROS).bytes;
    let cases: [(&[u8], &str); 3] = [
        (&[0; 7], "x: at byte 24: expected a packet header of 16 bytes, got 7: the file is cut"),
        (
            b"\0\0\0\0\0\0\0\0\x3c\0\0\0\x3c\0\0\0abc",
            "x: at byte 24: expected a packet of 60 bytes, got 3: the file is cut",
        ),
        (
            &[0xff; 16],
            "x: at byte 24: expected a packet of at most 262144 bytes, its length field says \
             4294967295",
        ),
    ];
    for (rest, expected) in cases {
        assert_eq!(only_error(&[&header, rest].concat()), expected);
    }
    let version = PcapFile::with(Big, MICROS, (1, 9), 0, 1).bytes;
    assert_eq!(only_error(&version), "x: at byte 4: expected pcap of version 2 or later, got 1.9");
}

#[test]
fn pcapng_errors_say_what_was_expected_and_where() {
    let header = NgFile::new(Big).interface(1, 0).bytes;
    let cases: [(&[u32], &str); 7] = [
        (&[6, 0], "expected a block of at least 12 bytes, got 0"),
        (&[6, 16, 0, 16], "expected a block of at least 32 bytes, got 16"),
        (&[9, 12, 13], "expected a block whose two lengths agree, got 12 and 13"),
        (
            &[6, u32::MAX, 0],
            "expected a block of at most 16777216 bytes, its length field says 4294967295",
        ),
        (
            &[77, u32::MAX, 0],
            "expected a block of at most 134217728 bytes, its length field says 4294967295",
        ),
        (
            &[6, 32, 0, 0, 0, 1, 1, 32],
            "expected a packet of at most 0 bytes in its block, got one of 1",
        ),
        (&[10, 20, 1, 1, 20], "expected secrets of at most 0 bytes in their block, got 1"),
    ];
    for (words, expected) in cases {
        let words: Vec<u8> = words.iter().flat_map(|w| w.to_be_bytes()).collect();
        assert_eq!(
            only_error(&[header.as_slice(), &words].concat()),
            format!("x: at byte 48: {expected}")
        );
    }
    let mut version = NgFile::new(Big).bytes;
    version[13] = 2;
    assert_eq!(only_error(&version), "x: at byte 12: expected pcapng of version 1.0, got 2.0");
    let mut order = NgFile::new(Big).bytes;
    order[8] = 0;
    assert!(only_error(&order).starts_with("x: at byte 8: expected the byte-order magic"));
}

#[test]
fn a_claimed_length_costs_nothing_until_its_bytes_come() {
    // Just below the limit, and then the file ends.
    let mut file = NgFile::new(Little).interface(1, 0).bytes;
    file.extend(6u32.to_le_bytes());
    file.extend((16u32 << 20).to_le_bytes());
    let mut capture = Capture::new([source("x", &file)]);
    let error = capture.next_frame().unwrap_err();
    assert!(matches!(error.problem(), CaptureProblem::Cut { wanted: 16_777_216, got: 8, .. }));
    assert_eq!(error.position(), 48);
    assert_eq!(error.file(), "x");
}

#[test]
fn interfaces_without_end_are_refused() {
    let interface = NgFile::new(Little).interface(1, 0).bytes[28..].to_vec();
    let mut file = NgFile::new(Little).bytes;
    for _ in 0..65_537 {
        file.extend(&interface);
    }
    assert!(
        only_error(&file).ends_with("expected at most 65536 interfaces in a section, got more")
    );
}

#[test]
fn a_name_cannot_break_the_line() {
    let all = drain(&mut Capture::new([source("a\nb\x1b[31m", b"")]));
    assert_eq!(
        all.errors,
        ["a\u{fffd}b\u{fffd}[31m: at byte 0: expected a capture, got 0 bytes: the file is empty"]
    );
}
