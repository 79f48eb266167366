//! A capture that is still written is decoded as it grows, across its ring of files, until Ctrl-C.
#![cfg(unix)]

use crate::common::{self, scratch};
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use serde_json::Value;

const CAPTURE: &str = "captures/moul/kind_game.pcap";
const KEYS: &str = "keys/dirtsand.ini";
/// No test waits longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program that follows a capture.
struct Following {
    program: Child,
    lines: Receiver<Value>,
}

impl Following {
    fn of(path: &Path) -> Following {
        let mut command = crate::common::program();
        command
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .arg("--tail")
            .arg(path)
            .args(["--keys", KEYS, "--json"]);
        let mut program = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = lines(program.stdout.take().unwrap());
        Following { program, lines }
    }

    /// The first line on standard error.
    fn first_word(&mut self) -> String {
        let mut line = Vec::new();
        let mut byte = [0];
        let stderr = self.program.stderr.as_mut().unwrap();
        while !line.ends_with(b"\n") && stderr.read(&mut byte).unwrap() > 0 {
            line.push(byte[0]);
        }
        String::from_utf8(line).unwrap()
    }

    /// The records that come until one is not there in time, or as many as are wanted.
    fn records(&self, wanted: usize) -> Vec<Value> {
        let records: Vec<Value> =
            (0..wanted).map_while(|_| self.lines.recv_timeout(PATIENCE).ok()).collect();
        assert_eq!(records.len(), wanted, "no more records came");
        records
    }

    /// Ctrl-C: the records that came after it, and what was said.
    fn end(mut self) -> (Vec<Value>, String) {
        let pid = self.program.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        let rest: Vec<Value> = self.lines.iter().collect();
        let mut said = String::new();
        self.program.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(self.program.wait().unwrap().code(), Some(0), "{said}");
        (rest, said)
    }
}

fn lines(from: ChildStdout) -> Receiver<Value> {
    let (to, lines) = channel();
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            let _ = to.send(serde_json::from_str(&line).unwrap());
        }
    });
    lines
}

fn folder(name: &str) -> PathBuf {
    let dir = scratch(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

fn append(path: &Path, bytes: &[u8]) {
    OpenOptions::new().create(true).append(true).open(path).unwrap().write_all(bytes).unwrap();
}

/// The header of a pcap, and its packets.
fn packets(pcap: &[u8]) -> (&[u8], Vec<&[u8]>) {
    let (header, mut rest) = pcap.split_at(24);
    let mut packets = Vec::new();
    while rest.len() >= 16 {
        let length = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        let (packet, after) = rest.split_at(16 + length);
        packets.push(packet);
        rest = after;
    }
    (header, packets)
}

/// How many records the packets up to one make, before the capture's end adds its own.
fn records_until(all: &[Value], frame: usize) -> usize {
    let ends = |r: &&Value| {
        r["frame"].as_u64().unwrap() as usize <= frame
            && !(r["event"] == "stream_end" && r["text"] == "still open at the capture's end")
    };
    all.iter().take_while(ends).count()
}

#[test]
fn a_file_is_decoded_as_it_grows() {
    let bytes = fs::read(common::file(CAPTURE)).unwrap();
    let all = common::records(CAPTURE, &[KEYS], &[]);
    let (header, packets) = packets(&bytes);
    let path = folder("tail-file").join("growing.pcap");
    // Begun before there is a file, and cut within a packet at first.
    let mut following = Following::of(&path);
    assert!(following.first_word().contains("not there yet"));
    let half = packets.len() / 2;
    let until = |n: usize| header.len() + packets[..n].iter().map(|p| p.len()).sum::<usize>();
    append(&path, &bytes[..until(half) + 7]);
    let early = records_until(&all, half);
    assert!(early > 10);
    let mut got = following.records(early);
    append(&path, &bytes[until(half) + 7..]);
    got.extend(following.records(records_until(&all, packets.len()) - early));
    let (rest, said) = following.end();
    got.extend(rest);
    assert_eq!(got, all);
    assert!(said.contains(" messages, "), "{said}");
}

#[test]
fn a_ring_of_files_is_followed_and_what_was_removed_unread_is_said() {
    let bytes = fs::read(common::file(CAPTURE)).unwrap();
    let all = common::records(CAPTURE, &[KEYS], &[]);
    let (header, packets) = packets(&bytes);
    let dir = folder("tail-ring");
    let part = |n: usize| -> Vec<u8> {
        let size = packets.len().div_ceil(3);
        [header, &packets.chunks(size).nth(n).unwrap().concat()].concat()
    };
    let file = |n: usize| dir.join(format!("out_{n:05}_2026112010162{n}.pcap"));
    // Another capture in the same folder is none of the ring's.
    append(&dir.join("other_00001_20261120101600.pcap"), b"nothing");
    append(&file(1), &part(0));
    let following = Following::of(&dir.join("out.pcap"));
    let size = packets.len().div_ceil(3);
    let mut got = following.records(records_until(&all, size));
    append(&file(2), &part(1));
    got.extend(following.records(records_until(&all, 2 * size) - got.len()));
    fs::remove_file(file(1)).unwrap();
    append(&file(3), &part(2));
    got.extend(following.records(records_until(&all, packets.len()) - got.len()));
    // The files after the third are gone before anybody looked.
    let empty = dir.join("hidden");
    append(&empty, header);
    fs::rename(&empty, file(6)).unwrap();
    thread::sleep(Duration::from_millis(500));
    let (rest, said) = following.end();
    got.extend(rest);
    assert_eq!(got, all);
    assert!(said.contains("2 files before"), "{said}");
}

#[test]
fn a_capture_and_a_growing_one_exclude_each_other() {
    let mut command = crate::common::program();
    let output = command.args(["--tail", "x.pcap", "y.pcap"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(String::from_utf8_lossy(&output.stderr).lines().count(), 1);
}

#[test]
fn what_never_grows_is_refused() {
    for (path, what) in [("captures", "a folder"), ("/dev/null", "a named pipe or a device")] {
        let output = common::program()
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .args(["--tail", path])
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        let expected = format!(
            "moulsniff: {path}: expected a capture file that another program writes, found {what}\n"
        );
        assert_eq!(said, expected);
    }
}
