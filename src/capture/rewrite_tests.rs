//! Injecting and stripping secrets changes nothing else, and the reader reads what the writer
//! writes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use super::bytes::Endianness::{Big, Little};
use super::testing::*;
use super::{EmbeddedSecrets, Frame, PcapngWriter, RewriteTarget, Rewritten, Time, inject, strip};

const KIND: u32 = 0x4d4f_554c;

fn injected(file: &[u8], payload: &[u8]) -> (Vec<u8>, Rewritten) {
    let mut out = Vec::new();
    let done = inject(source("x", file), RewriteTarget::new("y", &mut out), KIND, payload).unwrap();
    (out, done)
}

fn stripped(file: &[u8]) -> (Vec<u8>, Rewritten) {
    let mut out = Vec::new();
    let done = strip(source("x", file), RewriteTarget::new("y", &mut out)).unwrap();
    (out, done)
}

#[test]
fn secrets_go_in_and_out_and_leave_every_other_byte() {
    for order in [Little, Big] {
        let header = NgFile::new(order).bytes.len();
        let before = NgFile::new(order).clocked(9, 0);
        let behind = before.bytes.len();
        let file = before
            .secrets(0x544c_534b, b"somebody else's")
            .packet(0, 5, b"abc")
            .block(0xbad, &[7; 20])
            .section(if order == Big { Little } else { Big })
            .interface(101, 0)
            .packet(0, 6, b"def");
        let (with, done) = injected(&file.bytes, b"[keys]");
        assert_eq!(done.removed, 0);
        let secrets = NgFile::new(order).secrets(KIND, b"[keys]").bytes;
        let expected = [&file.bytes[..behind], &secrets[header..], &file.bytes[behind..]];
        assert_eq!(with, expected.concat());

        // Those of somebody else go out with ours.
        let (without, done) = stripped(&with);
        assert_eq!((done.removed, done.packets), (2, 2));
        assert!(read(&without).secrets.is_empty());
        assert_eq!(read(&without).frames, read(&file.bytes).frames);
        let (same, done) = stripped(&without);
        assert_eq!((same, done.removed), (without, 0));
    }
}

#[test]
fn injecting_again_replaces_wherever_the_old_ones_were() {
    let file = NgFile::new(Big)
        .secrets(KIND, b"old")
        .interface(1, 0)
        .packet(0, 5, b"abc")
        .secrets(KIND, b"older");
    let (with, done) = injected(&file.bytes, b"new");
    assert_eq!(done.removed, 2);
    assert_eq!(read(&with).secrets, [(KIND, b"new".to_vec())]);
    assert_eq!(read(&with).frames, read(&file.bytes).frames);
}

#[test]
fn secrets_go_in_where_there_is_nothing_else() {
    let header = NgFile::new(Big).bytes;
    assert_eq!(injected(&header, b"k").0, NgFile::new(Big).secrets(KIND, b"k").bytes);
    let twice = [&header[..], &NgFile::new(Little).bytes].concat();
    assert_eq!(read(&injected(&twice, b"k").0).secrets, [(KIND, b"k".to_vec())]);
}

#[test]
fn a_stated_section_length_becomes_unknown() {
    let mut file = NgFile::new(Little).interface(1, 0).bytes;
    let unknown = file.clone();
    file[16..24].copy_from_slice(&20u64.to_le_bytes());
    assert_eq!(stripped(&file).0, unknown);
}

#[test]
fn pcap_becomes_pcapng_with_its_times_and_link_type() {
    for magic in [0xa1b2_c3d4, 0xa1b2_3c4d] {
        for order in [Little, Big] {
            let file = PcapFile::with(order, magic, (2, 4), 96, 0x2400_0071)
                .packet(1_700_000_000, 999_999, b"one")
                .record([4_294_967_295, 1, 3, 60], &[], b"cut");
            let before = read(&file.bytes);
            let (with, _) = injected(&file.bytes, b"[keys]");
            let after = read(&with);
            assert_eq!(after.frames, before.frames);
            assert_eq!(after.secrets, [(KIND, b"[keys]".to_vec())]);
            assert_eq!(read(&stripped(&file.bytes).0).frames, before.frames);
        }
    }
}

#[test]
fn compressed_captures_come_out_unpacked() {
    let file = NgFile::new(Big).interface(1, 0).packet(0, 5, b"abc");
    assert_eq!(stripped(&gzip(&file.bytes)).0, file.bytes);
    assert_eq!(stripped(&zstd(&file.bytes)).0, file.bytes);
}

#[test]
fn what_comes_before_a_cut_is_written() {
    let file = NgFile::new(Big).interface(1, 0).packet(0, 5, b"abc").packet(0, 6, b"def");
    for end in 0..file.bytes.len() {
        let mut out = Vec::new();
        let cut = source("x", &file.bytes[..end]);
        let result = inject(cut, RewriteTarget::new("y", &mut out), KIND, b"keys");
        let expected = read(&file.bytes[..end]).frames;
        let damage = match result {
            Err(error) => {
                assert_eq!(expected.len(), 0);
                Some(error)
            }
            Ok(done) => {
                // No half block is at the end.
                assert_eq!(
                    (done.packets, read(&out).errors.len()),
                    (expected.len() as u64, 0),
                    "cut at {end}"
                );
                done.damage
            }
        };
        assert!(damage.is_none_or(|error| error.to_string().starts_with("x: at byte ")));
        assert_eq!(read(&out).frames, expected, "cut at {end}");
    }
}

#[test]
fn an_output_that_fails_is_named() {
    let file = NgFile::new(Big).interface(1, 0);
    let mut nowhere: &mut [u8] = &mut [0; 30];
    let error = strip(source("x", &file.bytes), RewriteTarget::new("y", &mut nowhere));
    assert!(error.unwrap_err().to_string().starts_with("y: writing failed: "));
}

#[test]
fn what_is_written_reads_back() {
    let mut writer = PcapngWriter::new(Vec::new()).unwrap();
    let time = |seconds, nanos, digits| Time { seconds, nanos, digits };
    let frames = [
        (time(1_700_000_000, 123_456_000, 6), 1, &b"micro"[..]),
        (time(1_700_000_000, 123_456_789, 9), 1, b"nano"),
        (time(0, 999_999_000, 6), 101, b""),
        (time(1_700_000_001, 0, 6), 1, b"micro again"),
    ];
    let secrets = EmbeddedSecrets { kind: KIND, data: b"[keys]" };
    writer.secrets(secrets).unwrap();
    for (time, link, data) in frames {
        let frame = Frame { number: 77, time, link, data, wire_len: 99 };
        writer.frame(&frame).unwrap();
    }
    writer.flush().unwrap();
    let all = read(&writer.into_inner());
    assert_eq!(all.errors, [""; 0]);
    assert_eq!(all.secrets, [(KIND, b"[keys]".to_vec())]);
    for ((number, frame), seen) in (1..).zip(frames).zip(&all.frames) {
        let (time, link, data) = frame;
        let expected = (number, time.seconds, time.nanos, time.digits, link, 99, data.to_vec());
        assert_eq!(*seen, expected);
    }
    assert_eq!(all.frames.len(), 4);
}

#[test]
fn a_clock_of_other_digits_is_written_without_loss() {
    let mut writer = PcapngWriter::new(Vec::new()).unwrap();
    for (nanos, digits) in [(123_000_000, 3), (900, 7), (953, 9)] {
        let frame = Frame {
            number: 1,
            time: Time { seconds: 5, nanos, digits },
            link: 1,
            data: b"",
            wire_len: 0,
        };
        writer.frame(&frame).unwrap();
    }
    let times: Vec<_> = read(&writer.into_inner()).frames.iter().map(|f| f.2).collect();
    assert_eq!(times, [123_000_000, 900, 953]);
}

#[test]
fn a_time_the_format_cannot_say_is_refused() {
    for seconds in [-1, i64::MAX] {
        let frame = Frame {
            number: 1,
            time: Time { seconds, ..Time::default() },
            link: 1,
            data: b"",
            wire_len: 0,
        };
        let mut writer = PcapngWriter::new(Vec::new()).unwrap();
        assert!(writer.frame(&frame).is_err());
    }
}
