//! The parts of a split capture hold every frame once, with its number, its time, its link type and
//! its comments.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use super::bytes::Endianness::{Big, Little};
use super::testing::*;
use super::{Capture, Source, Splitter};

/// Splits files into `parts` by the first byte of each frame.
fn split(files: &[&[u8]], parts: usize) -> Vec<Vec<u8>> {
    let mut splitter = Splitter::new((0..parts).map(|_| Vec::new()));
    for file in files {
        splitter.add(source("x", file), &mut |frame| usize::from(frame.data[0]) % parts).unwrap();
    }
    splitter.finish().unwrap().into_iter().map(|(bytes, _)| bytes).collect()
}

#[test]
fn parts_together_are_the_whole() {
    for order in [Little, Big] {
        let file = NgFile::new(order)
            .interface(1, 0)
            .clocked(9, 7)
            .packet(0, 5, &[0, 1, 2])
            .packet(1, 6, &[1, 9])
            .packet(0, 7, &[0])
            .section(if order == Big { Little } else { Big })
            .interface(101, 0)
            .packet(0, 8, &[1, 1, 1, 1, 1]);
        let whole = read(&file.bytes).frames;
        let parts = split(&[&file.bytes], 2);
        let mut together: Vec<_> = parts.iter().flat_map(|part| read(part).frames).collect();
        together.sort();
        assert_eq!(together, whole);
        assert_eq!(read(&parts[1]).frames.iter().map(|frame| frame.0).collect::<Vec<_>>(), [2, 4]);
    }
}

#[test]
fn a_part_without_frames_is_an_empty_capture() {
    let file = NgFile::new(Little).interface(1, 0).packet(0, 5, &[0]);
    let parts = split(&[&file.bytes], 3);
    assert!(read(&parts[2]).frames.is_empty());
    assert!(read(&parts[2]).errors.is_empty());
}

#[test]
fn secrets_are_in_every_part_that_has_frames() {
    let file = NgFile::new(Little).interface(1, 0).secrets(7, b"key").packet(0, 5, &[0]).packet(
        0,
        6,
        &[1],
    );
    for part in split(&[&file.bytes], 2) {
        assert_eq!(read(&part).secrets, [(7, b"key".to_vec())]);
    }
}

#[test]
fn options_of_a_frame_stay_and_its_number_is_added() {
    let file = NgFile::new(Big).interface(1, 0).packet(0, 5, &[9]).packet_with(
        6,
        0,
        6,
        1,
        &[0],
        b"\0\x01\0\x04look\0\0\0\0",
    );
    let [part] = &split(&[&file.bytes], 1)[..] else { panic!() };
    assert!(part.windows(4).any(|bytes| bytes == b"look"));
    assert_eq!(read(part).frames.iter().map(|frame| frame.0).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn numbers_go_on_over_parts_of_files_that_were_split_one_by_one() {
    let file = NgFile::new(Little).interface(1, 0).packet(0, 5, &[0]).packet(0, 6, &[1]).packet(
        0,
        7,
        &[0],
    );
    let first = split(&[&file.bytes], 2).remove(0);
    let second = first.clone();
    let named =
        |name: &str, bytes: Vec<u8>| Source::reader(name, Box::new(std::io::Cursor::new(bytes)));
    let mut capture = Capture::new([named("a", first), named("b", second)]);
    let numbers: Vec<u64> = drain(&mut capture).frames.iter().map(|frame| frame.0).collect();
    assert_eq!(numbers, [1, 3, 4, 6]);
}

#[test]
fn numbers_of_the_next_file_begin_behind_all_frames_of_the_file_that_was_split() {
    let early = NgFile::new(Little).interface(1, 0).packet(0, 5, &[1]).packet(0, 6, &[0]).packet(
        0,
        7,
        &[0],
    );
    let late = NgFile::new(Little).interface(1, 0).packet(0, 8, &[0]).packet(0, 9, &[1]);
    let parts = [&early, &late, &early].map(|file| split(&[&file.bytes], 3));
    let numbers = |part: usize| -> Vec<u64> {
        let source = |files: &Vec<Vec<u8>>| {
            Source::reader("part", Box::new(std::io::Cursor::new(files[part].clone())))
        };
        drain(&mut Capture::new(parts.iter().map(source)))
            .frames
            .iter()
            .map(|frame| frame.0)
            .collect()
    };
    assert_eq!(numbers(0), [2, 3, 4, 7, 8]);
    assert_eq!(numbers(1), [1, 5, 6]);
    assert!(numbers(2).is_empty());
}

#[test]
fn parts_of_a_part_keep_the_first_captures_numbers() {
    let file = NgFile::new(Little).interface(1, 0).packet(0, 5, &[0]).packet(0, 6, &[1]).packet(
        0,
        7,
        &[0],
    );
    let part = split(&[&file.bytes], 2).remove(0);
    let again = split(&[&part], 1).remove(0);
    assert_eq!(read(&again).frames.iter().map(|frame| frame.0).collect::<Vec<_>>(), [1, 3]);
}

#[test]
fn a_cut_capture_gives_what_was_before_the_cut() {
    let file = NgFile::new(Little).interface(1, 0).packet(0, 5, &[0]).packet(0, 6, &[0]);
    for end in 0..file.bytes.len() {
        let mut splitter = Splitter::new([Vec::new()]);
        let _ = splitter.add(source("x", &file.bytes[..end]), &mut |_| 0);
        let frames = splitter.frames();
        let [(part, _)] = &splitter.finish().unwrap()[..] else { panic!() };
        assert_eq!(read(part).frames.len() as u64, frames);
    }
}

#[test]
fn a_pcap_becomes_pcapng_with_its_times() {
    let file = PcapFile::new(Big, 0xa1b2_3c4d).packet(5, 123_456_789, &[0, 1]).packet(6, 1, &[0]);
    let whole = read(&file.bytes).frames;
    assert_eq!(read(&split(&[&file.bytes], 1)[0]).frames, whole);
}
