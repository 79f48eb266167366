//! Small captures made by hand for tests of the whole program: raw IPv4 in a pcap, segments and
//! datagrams with the numbers a test wants.

#![allow(dead_code)] // each test uses its own part

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const ACK: u8 = 16;

/// A pcap under construction; every frame is a millisecond later than the one before.
pub struct Made {
    pub bytes: Vec<u8>,
    frames: u32,
}

/// One end of a connection.
#[derive(Clone, Copy)]
pub struct End {
    pub address: [u8; 4],
    pub port: u16,
}

/// An end by the last two bytes of its address, and its port.
pub fn end(host: u16, port: u16) -> End {
    let [high, low] = host.to_be_bytes();
    End { address: [10, 9, high, low], port }
}

impl Made {
    pub fn new() -> Made {
        let mut bytes = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
        bytes.extend([2, 0, 4, 0]);
        bytes.extend([0; 8]);
        bytes.extend(262_144_u32.to_le_bytes());
        bytes.extend(101_u32.to_le_bytes());
        Made { bytes, frames: 0 }
    }

    /// Any frame.
    pub fn frame(&mut self, data: &[u8]) {
        self.frame_cut(data, data.len());
    }

    /// A frame of which only the first bytes were kept.
    pub fn frame_cut(&mut self, data: &[u8], kept: usize) {
        let second = self.frames / 1000;
        let rest = self.frames % 1000 * 1000;
        for word in [1_700_000_000 + second, rest, kept as u32, data.len() as u32] {
            self.bytes.extend(word.to_le_bytes());
        }
        self.bytes.extend(&data[..kept]);
        self.frames += 1;
    }

    /// The next frame is this many milliseconds later.
    pub fn wait(&mut self, milliseconds: u32) {
        self.frames += milliseconds;
    }

    /// A TCP segment.
    pub fn tcp(
        &mut self,
        (from, to): (End, End),
        (seq, ack, flags): (u32, u32, u8),
        payload: &[u8],
    ) {
        let segment = tcp((from, to), (seq, ack, flags), payload);
        self.frame(&ip(6, (from, to), &segment));
    }

    /// A datagram.
    pub fn udp(&mut self, (from, to): (End, End), payload: &[u8]) {
        let datagram = udp((from, to), payload);
        self.frame(&ip(17, (from, to), &datagram));
    }

    /// SYN and its answer; both sides' first byte has the number 1.
    pub fn open(&mut self, client: End, server: End) {
        self.tcp((client, server), (0, 0, SYN), b"");
        self.tcp((server, client), (0, 1, SYN | ACK), b"");
    }
}

/// A TCP connection whose sides send what a test wants: the client is side 0, the server side 1.
/// Single frames may be missing.
pub struct Talk {
    pub made: Made,
    ends: [End; 2],
    sent: [u32; 2],
}

impl Talk {
    /// A connection to a port of a server, before its first byte.
    pub fn to(port: u16) -> Talk {
        let ends = [end(1, 40_000), end(2, port)];
        let mut made = Made::new();
        made.open(ends[0], ends[1]);
        Talk { made, ends, sent: [1, 1] }
    }

    /// A side sends bytes.
    pub fn says(&mut self, side: usize, bytes: &[u8]) {
        self.segment(side, ACK, bytes);
        self.loses(side, bytes);
    }

    /// A side sends bytes that are not captured.
    pub fn loses(&mut self, side: usize, bytes: &[u8]) {
        self.sent[side] += bytes.len() as u32;
    }

    fn segment(&mut self, side: usize, flags: u8, bytes: &[u8]) {
        let from_to = (self.ends[side], self.ends[1 - side]);
        self.made.tcp(from_to, (self.sent[side], self.sent[1 - side], flags), bytes);
    }

    /// The number of the next byte of each side; the first one has 1.
    pub fn sent(&self) -> [u32; 2] {
        self.sent
    }

    /// The capture: both sides end.
    pub fn bytes(mut self) -> Vec<u8> {
        [0, 1].into_iter().for_each(|side| self.segment(side, FIN | ACK, b""));
        self.made.bytes
    }

    /// What the program prints for it.
    pub fn records(self) -> Vec<Value> {
        run(&self.bytes(), &[]).0
    }
}

/// A segment with a right checksum.
pub fn tcp((from, to): (End, End), (seq, ack, flags): (u32, u32, u8), payload: &[u8]) -> Vec<u8> {
    let mut segment = Vec::new();
    segment.extend(from.port.to_be_bytes());
    segment.extend(to.port.to_be_bytes());
    segment.extend(seq.to_be_bytes());
    segment.extend(ack.to_be_bytes());
    segment.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    segment.extend(payload);
    let sum = sum(&[&pseudo(6, (from, to), segment.len()), &segment]);
    segment[16..18].copy_from_slice(&sum.to_be_bytes());
    segment
}

/// A datagram with a right checksum.
pub fn udp((from, to): (End, End), payload: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    datagram.extend(from.port.to_be_bytes());
    datagram.extend(to.port.to_be_bytes());
    datagram.extend((payload.len() as u16 + 8).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    let sum = sum(&[&pseudo(17, (from, to), datagram.len()), &datagram]);
    datagram[6..8].copy_from_slice(&sum.to_be_bytes());
    datagram
}

/// An IPv4 packet with a right checksum.
pub fn ip(protocol: u8, (from, to): (End, End), payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((payload.len() as u16 + 20).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
    packet.extend(from.address);
    packet.extend(to.address);
    let sum = sum(&[&packet]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend(payload);
    packet
}

fn pseudo(protocol: u8, (from, to): (End, End), length: usize) -> Vec<u8> {
    let length = length as u16;
    [&from.address[..], &to.address, &[0, protocol], &length.to_be_bytes()].concat()
}

/// The Internet checksum (RFC 1071) of parts of even length, the last perhaps odd.
fn sum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0_u32;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |b| u32::from(*b));
        }
    }
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// What the program prints for a capture on its standard input, and what it says on standard error.
pub fn run(capture: &[u8], more: &[&str]) -> (Vec<Value>, String) {
    let mut program = Command::new(env!("CARGO_BIN_EXE_moulsniff"));
    program.arg("--no-config");
    program.current_dir(env!("CARGO_MANIFEST_DIR")).args(["-", "--json"]).args(more);
    let mut child = program
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let capture = capture.to_vec();
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(&capture);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let lines = output.stdout.split(|b| *b == b'\n').filter(|line| !line.is_empty());
    (lines.map(|line| serde_json::from_slice(line).unwrap()).collect(), said)
}
