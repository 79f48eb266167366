//! The capture reader held against tshark: number, time, captured length and length on the wire of
//! every frame, for odd files made by editcap and mergecap. Where these are not installed, each
//! test says so and passes.

use moulsniff::capture::{
    Capture, Frame, PcapngWriter, RewriteTarget, Source, Time, inject, strip,
};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::scratch;

const MICROS: u8 = 6;
const NANOS: u8 = 9;
const ETHERNET: u16 = 1;
const RAW: u16 = 101;

/// A folder of its own for each test.
fn folder(name: &str) -> PathBuf {
    let folder = scratch(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn installed() -> bool {
    let there = ["tshark", "editcap", "mergecap"].iter().all(|tool| {
        Command::new(tool).arg("--version").output().is_ok_and(|out| out.status.success())
    });
    if !there {
        println!("skipped: tshark, editcap or mergecap is not installed");
    }
    there
}

fn run(tool: &str, arguments: &[&str]) -> Vec<u8> {
    let out = Command::new(tool).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{tool} {arguments:?}: {said}");
    out.stdout
}

/// What tshark says of a file: a line a frame.
fn as_tshark_reads(file: &Path) -> Vec<String> {
    let fields = [
        "-T",
        "fields",
        "-E",
        "separator=/s",
        "-e",
        "frame.number",
        "-e",
        "frame.time_epoch",
        "-e",
        "frame.cap_len",
        "-e",
        "frame.len",
        "-r",
        file.to_str().unwrap(),
    ];
    let out = run("tshark", &fields);
    let text = String::from_utf8(out).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// The same lines as this reader has them.
fn as_we_read(file: &Path) -> Vec<String> {
    let mut capture = Capture::open(file).unwrap();
    let mut lines = Vec::new();
    while let Some(frame) = capture.next_frame().unwrap() {
        lines.push(format!(
            "{} {}.{:09} {} {}",
            frame.number,
            frame.time.seconds,
            frame.time.nanos,
            frame.data.len(),
            frame.wire_len
        ));
    }
    lines
}

fn compare(file: &Path, frames: usize) {
    let ours = as_we_read(file);
    assert_eq!(ours, as_tshark_reads(file), "{}", file.display());
    assert_eq!(ours.len(), frames, "{}", file.display());
}

/// Frames that cannot be taken for a modified header's fields, of every length from 0 up.
fn write_frames(file: &Path, link: u16, digits: u8, count: u32) {
    let mut writer = PcapngWriter::new(fs::File::create(file).unwrap()).unwrap();
    for number in 0..count {
        let data: Vec<u8> = (0..20 + number).map(|byte| byte as u8 | 0x80).collect();
        let nanos = number.wrapping_mul(87_654_321) % 1_000_000_000;
        let frame = Frame {
            number: 0,
            time: Time {
                seconds: 1_700_000_000 + i64::from(number),
                nanos: if digits == NANOS { nanos } else { nanos / 1000 * 1000 },
                digits,
            },
            link,
            data: &data,
            wire_len: data.len() as u32 + number % 3,
        };
        writer.frame(&frame).unwrap();
    }
    writer.flush().unwrap();
}

#[test]
fn every_kind_of_pcap_editcap_writes() {
    if !installed() {
        return;
    }
    let folder = folder("kinds");
    for (digits, name) in [(MICROS, "micro"), (NANOS, "nano")] {
        let from = folder.join(format!("{name}.pcapng"));
        write_frames(&from, ETHERNET, digits, 40);
        compare(&from, 40);
        for kind in
            ["pcap", "nsecpcap", "pcapng", "modpcap", "rh6_1pcap", "suse6_3pcap", "nokiapcap"]
        {
            let to = folder.join(format!("{name}.{kind}"));
            let arguments = ["-F", kind, from.to_str().unwrap(), to.to_str().unwrap()];
            run("editcap", &arguments);
            compare(&to, 40);
        }
    }
}

#[test]
fn a_single_packet_is_enough_to_tell_the_kind() {
    if !installed() {
        return;
    }
    let folder = folder("single");
    let from = folder.join("one.pcapng");
    write_frames(&from, ETHERNET, MICROS, 1);
    for kind in ["pcap", "modpcap", "rh6_1pcap", "suse6_3pcap"] {
        let to = folder.join(kind);
        run("editcap", &["-F", kind, from.to_str().unwrap(), to.to_str().unwrap()]);
        compare(&to, 1);
    }
}

#[test]
fn snapped_shifted_and_chopped() {
    if !installed() {
        return;
    }
    let folder = folder("edited");
    let from = folder.join("from.pcapng");
    write_frames(&from, ETHERNET, NANOS, 30);
    let edits: [&[&str]; 5] = [
        &["-s", "24"],
        &["-t", "-0.123456789"],
        &["-C", "7"],
        &["-F", "pcap", "-s", "24", "-t", "3600.5"],
        &["-a", "3:a comment"],
    ];
    for (number, edit) in edits.iter().enumerate() {
        let to = folder.join(number.to_string());
        let names = [from.to_str().unwrap(), to.to_str().unwrap()];
        run("editcap", &[edit, &names[..]].concat());
        compare(&to, 30);
    }
}

#[test]
fn merged_files_of_different_link_types_and_clocks() {
    if !installed() {
        return;
    }
    let folder = folder("merged");
    let ethernet = folder.join("ethernet.pcapng");
    let raw = folder.join("raw.pcapng");
    write_frames(&ethernet, ETHERNET, MICROS, 20);
    write_frames(&raw, RAW, NANOS, 20);
    let names = [ethernet.to_str().unwrap(), raw.to_str().unwrap()];
    for (number, mode) in [&["-a"][..], &["-I", "none"], &["-I", "all"], &[]].iter().enumerate() {
        let to = folder.join(format!("{number}.pcapng"));
        let output = ["-w", to.to_str().unwrap()];
        run("mergecap", &[mode, &output[..], &names[..]].concat());
        compare(&to, 40);
        let mut capture = Capture::open(&to).unwrap();
        let mut links = [0, 0];
        while let Some(frame) = capture.next_frame().unwrap() {
            links[usize::from(frame.link == RAW)] += 1;
        }
        assert_eq!(links, [20, 20]);
    }
    // Put one behind the other by hand: two sections.
    let both = folder.join("sections.pcapng");
    let bytes = names.map(|name| fs::read(name).unwrap()).concat();
    fs::write(&both, bytes).unwrap();
    compare(&both, 40);
}

#[test]
fn compressed() {
    if !installed() {
        return;
    }
    let folder = folder("compressed");
    let from = folder.join("from.pcapng");
    write_frames(&from, ETHERNET, NANOS, 30);
    let to = folder.join("packed");
    let file = fs::File::create(&to).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(file, flate2::Compression::best());
    gzip.write_all(&fs::read(&from).unwrap()).unwrap();
    gzip.finish().unwrap();
    compare(&to, 30);
}

#[test]
fn clocks_of_every_resolution() {
    if !installed() {
        return;
    }
    // Powers of ten and of two, as far as tshark's own arithmetic holds: it multiplies the rest of
    // a second by 10^9 in 64 bits.
    let resolutions = [0, 1, 3, 4, 6, 7, 9, 0x80, 0x81, 0x8a, 0x94, 0x9e, 0xa0, 0xa2];
    let clocks: Vec<(u8, i64)> = resolutions
        .into_iter()
        .flat_map(|resolution| [0, 86_400, -7].map(|offset| (resolution, offset)))
        .collect();
    let file = folder("clocks").join("clocks.pcapng");
    fs::write(&file, clocked(&clocks)).unwrap();
    compare(&file, 3 * clocks.len());
}

/// A big-endian pcapng with three packets of an interface for each of these resolutions and
/// offsets.
fn clocked(clocks: &[(u8, i64)]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut block = |kind: u32, words: &[u32]| {
        let total = 12 + 4 * words.len() as u32;
        for word in [&[kind, total], words, &[total]].concat() {
            file.extend(word.to_be_bytes());
        }
    };
    let halves = |number: u64| [(number >> 32) as u32, number as u32];
    block(0x0a0d_0d0a, &[0x1a2b_3c4d, 0x0001_0000, u32::MAX, u32::MAX]);
    for (resolution, offset) in clocks {
        let resolution = u32::from(*resolution) << 24;
        let [high, low] = halves(*offset as u64);
        let options = [0x0009_0001, resolution, 0x000e_0008, high, low, 0];
        block(1, &[&[0x0001_0000, 0], &options[..]].concat());
    }
    for (index, (resolution, _)) in (0..).zip(clocks) {
        let per_second = match resolution & 0x7f {
            power if resolution & 0x80 != 0 => 1u64 << power,
            power => 10u64.pow(u32::from(power)),
        };
        for (seconds, rest) in
            [(1_000_000, 0), (1_000_000, per_second / 3), (2_000_000, per_second - 1)]
        {
            let [high, low] = halves(seconds * per_second + rest);
            block(6, &[index, high, low, 4, 4, 0x6162_6364]);
        }
    }
    file
}

#[test]
fn files_that_were_injected_and_stripped() {
    if !installed() {
        return;
    }
    let folder = folder("secrets");
    let from = folder.join("from.pcapng");
    write_frames(&from, ETHERNET, NANOS, 30);
    let pcap = folder.join("from.pcap");
    run("editcap", &["-F", "nsecpcap", from.to_str().unwrap(), pcap.to_str().unwrap()]);
    for file in [&from, &pcap] {
        let with = folder.join("with.pcapng");
        let mut out = fs::File::create(&with).unwrap();
        let output = RewriteTarget::new("with.pcapng", &mut out);
        inject(Source::path(file), output, 0x4d4f_554c, b"# keys\n").unwrap();
        compare(&with, 30);
        assert_eq!(as_tshark_reads(&with), as_tshark_reads(file));

        // editcap keeps them.
        let kept = folder.join("kept.pcapng");
        run("editcap", &[with.to_str().unwrap(), kept.to_str().unwrap()]);
        assert!(fs::read(&kept).unwrap().windows(7).any(|w| w == b"# keys\n"));

        let without = folder.join("without.pcapng");
        let mut out = fs::File::create(&without).unwrap();
        let output = RewriteTarget::new("without.pcapng", &mut out);
        let done = strip(Source::path(&kept), output).unwrap();
        assert_eq!(done.removed, 1);
        compare(&without, 30);
        assert!(!fs::read(&without).unwrap().windows(7).any(|w| w == b"# keys\n"));
    }
}

#[test]
fn secrets_editcap_puts_in_are_found() {
    if !installed() {
        return;
    }
    let folder = folder("editcap-secrets");
    let from = folder.join("from.pcapng");
    write_frames(&from, ETHERNET, MICROS, 5);
    let keys = folder.join("keys.txt");
    fs::write(&keys, "CLIENT_RANDOM 00 11\n").unwrap();
    let to = folder.join("to.pcapng");
    let inject = format!("tls,{}", keys.display());
    run("editcap", &["--inject-secrets", &inject, from.to_str().unwrap(), to.to_str().unwrap()]);
    compare(&to, 5);
    let mut capture = Capture::open(&to).unwrap();
    let mut found = Vec::new();
    while let Some(item) = capture.next_item().unwrap() {
        if let moulsniff::capture::CaptureItem::Secrets(secrets) = item {
            found.push((secrets.kind, secrets.data.to_vec()));
        }
    }
    assert_eq!(found, [(0x544c_534b, b"CLIENT_RANDOM 00 11\n".to_vec())]);
}
