//! Dialogues, frame by frame, each frame with the calls that it causes.
//!
//! A line is `frame | events`. Frames: `>` from the client, `<` from the server, then a sequence
//! number, `syn`, `fin`, `rst`, `ack N`, `'text'` as payload, `cut N` if only N payload bytes were
//! captured. `wait 2s` lets time pass, `32 x …` repeats a frame, `end` ends the capture, `port N`
//! changes the client's port. Events: `> 0 'text'` (direction, offset, bytes), `> gap 5+3 Cause`,
//! `> end Fin`, `> note …`, `open 0 Syn`. `@3` after an event means that its moment is frame 3 and
//! not the current frame.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod gaps;
mod hostile;
mod order;
mod packets;
mod streams;

use super::*;

/// A sink that records its calls as text.
#[derive(Default)]
pub(super) struct Log {
    pub lines: Vec<String>,
    pub frame: u64,
    pub totals: Vec<Totals>,
    stream: u32,
}

impl Log {
    fn say(&mut self, stream: StreamId, text: String, at: Moment) {
        let number =
            if stream.0 == self.stream { String::new() } else { format!("#{} ", stream.0) };
        let frame = if at.frame == self.frame { String::new() } else { format!(" @{}", at.frame) };
        self.lines.push(format!("{number}{text}{frame}"));
    }
}

fn arrow(dir: Dir) -> char {
    if dir == Dir::Forward { '>' } else { '<' }
}

impl FlowSink for Log {
    fn tcp_open(&mut self, stream: &Stream, opening: TcpOpening, at: Moment) {
        self.stream = stream.id.0;
        self.say(stream.id, format!("open {} {opening:?}", stream.id.0), at);
    }

    fn tcp_data(&mut self, stream: StreamId, dir: Dir, offset: u64, bytes: &[u8], at: Moment) {
        self.say(
            stream,
            format!("{} {offset} '{}'", arrow(dir), String::from_utf8_lossy(bytes)),
            at,
        );
    }

    fn tcp_gap(
        &mut self,
        stream: StreamId,
        dir: Dir,
        offset: u64,
        len: u64,
        cause: Cause,
        at: Moment,
    ) {
        self.say(stream, format!("{} gap {offset}+{len} {cause:?}", arrow(dir)), at);
    }

    fn tcp_note(&mut self, stream: StreamId, dir: Dir, note: Note, at: Moment) {
        self.say(stream, format!("{} note {note:?}", arrow(dir)), at);
    }

    fn tcp_end(&mut self, stream: StreamId, dir: Dir, how: End, totals: &Totals, at: Moment) {
        self.totals.push(*totals);
        self.say(stream, format!("{} end {how:?}", arrow(dir)), at);
    }

    fn udp(&mut self, stream: &Stream, dir: Dir, bytes: &[u8], missing: u32, at: Moment) {
        let cut = if missing > 0 { format!(" missing {missing}") } else { String::new() };
        self.say(
            StreamId(self.stream),
            format!("udp {} {} '{}'{cut}", stream.id.0, arrow(dir), String::from_utf8_lossy(bytes)),
            at,
        );
    }

    fn udp_note(&mut self, stream: &Stream, dir: Dir, note: Note, at: Moment) {
        self.say(
            StreamId(self.stream),
            format!("udp {} {} note {note:?}", stream.id.0, arrow(dir)),
            at,
        );
    }

    fn udp_end(&mut self, stream: StreamId, how: End, at: Moment) {
        self.say(StreamId(self.stream), format!("udp {} end {how:?}", stream.0), at);
    }
}

/// The parts of the next frame.
#[derive(Clone, Default)]
pub(super) struct Build {
    pub back: bool,
    pub port: u16,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub text: Vec<u8>,
    pub cut: Option<usize>,
}

impl Build {
    fn read(line: &str, port: u16) -> Self {
        let (head, text) = match line.split_once('\'') {
            Some((head, rest)) => (head, rest.split_once('\'').expect("a closing quote")),
            None => (line, ("", "")),
        };
        let mut words = head.split_whitespace().chain(text.1.split_whitespace());
        let mut build = Build { port, text: text.0.into(), ..Build::default() };
        while let Some(word) = words.next() {
            let mut number = || words.next().unwrap().parse::<u32>().unwrap();
            match word {
                ">" => build.back = false,
                "<" => build.back = true,
                "syn" => build.flags |= 0x02,
                "fin" => build.flags |= 0x01,
                "rst" => build.flags |= 0x04,
                "ack" => (build.ack, build.flags) = (number(), build.flags | 0x10),
                "cut" => build.cut = Some(number() as usize),
                seq => build.seq = seq.parse().unwrap_or_else(|_| panic!("{seq:?} in {line:?}")),
            }
        }
        build
    }

    /// The TCP segment.
    pub(super) fn tcp(&self) -> Vec<u8> {
        let (src, dst) = if self.back { (80, self.port) } else { (self.port, 80) };
        let mut segment = Vec::new();
        segment.extend(src.to_be_bytes());
        segment.extend(dst.to_be_bytes());
        segment.extend(self.seq.to_be_bytes());
        segment.extend(self.ack.to_be_bytes());
        segment.extend([0x50, self.flags, 1, 0, 0, 0, 0, 0]);
        segment.extend(&self.text);
        segment
    }

    /// The IPv4 packet.
    pub(super) fn ip(&self) -> Vec<u8> {
        let (src, dst) =
            if self.back { ([10, 0, 0, 2], [10, 0, 0, 1]) } else { ([10, 0, 0, 1], [10, 0, 0, 2]) };
        ipv4(6, src, dst, &self.tcp())
    }
}

/// An IPv4 packet.
pub(super) fn ipv4(protocol: u8, src: [u8; 4], dst: [u8; 4], payload: &[u8]) -> Vec<u8> {
    let total = u16::try_from(20 + payload.len()).unwrap().to_be_bytes();
    let mut packet = vec![0x45, 0, total[0], total[1], 0, 1, 0, 0, 64, protocol, 0, 0];
    packet.extend(src);
    packet.extend(dst);
    packet.extend(payload);
    packet
}

/// An IPv6 packet.
pub(super) fn ipv6(next: u8, src: [u8; 16], dst: [u8; 16], payload: &[u8]) -> Vec<u8> {
    let len = u16::try_from(payload.len()).unwrap().to_be_bytes();
    let mut packet = vec![0x60, 0, 0, 0, len[0], len[1], next, 64];
    packet.extend(src);
    packet.extend(dst);
    packet.extend(payload);
    packet
}

/// A UDP datagram.
pub(super) fn udp(src: u16, dst: u16, payload: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    datagram.extend(src.to_be_bytes());
    datagram.extend(dst.to_be_bytes());
    datagram.extend(u16::try_from(8 + payload.len()).unwrap().to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    datagram
}

/// A flow, a log of its calls, and a clock.
pub(super) struct Talk {
    pub flow: Flow,
    pub log: Log,
    pub nanos: u64,
    port: u16,
}

impl Talk {
    pub(super) fn new(limits: FlowLimits) -> Self {
        let log = Log { stream: u32::MAX, ..Log::default() };
        Talk { flow: Flow::new(limits), log, nanos: 1_000_000_000, port: 4000 }
    }

    /// Feeds a frame, `wire_len` long before it was cut.
    pub(super) fn frame_cut(&mut self, link: u16, data: &[u8], wire_len: usize) {
        self.log.frame += 1;
        self.nanos += 1_000;
        let time = Time {
            seconds: (self.nanos / 1_000_000_000) as i64,
            nanos: (self.nanos % 1_000_000_000) as u32,
            digits: 6,
        };
        let frame = Frame { number: self.log.frame, time, link, data, wire_len: wire_len as u32 };
        self.flow.frame(&frame, &mut self.log);
    }

    pub(super) fn frame(&mut self, link: u16, data: &[u8]) {
        self.frame_cut(link, data, data.len());
    }

    /// Plays one line, without its events.
    pub(super) fn play(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [] => {}
            ["end"] => self.flow.finish(&mut self.log),
            ["port", port] => self.port = port.parse().unwrap(),
            ["wait", time] => {
                let (number, unit) = time.split_at(time.find(char::is_alphabetic).unwrap());
                let unit = if unit == "s" { 1_000_000_000 } else { 1_000_000 };
                self.nanos += number.parse::<u64>().unwrap() * unit;
            }
            [count, "x", ..] => {
                let (_, rest) = line.split_once('x').unwrap();
                for _ in 0..count.parse::<u32>().unwrap() {
                    self.play(rest);
                }
            }
            _ => {
                let build = Build::read(line, self.port);
                let packet = build.ip();
                let kept = build.cut.map_or(packet.len(), |cut| 40 + cut);
                self.frame_cut(101, &packet[..kept], packet.len());
            }
        }
    }

    /// The frames that were not read, by their reasons.
    pub(super) fn not_read(&self) -> std::collections::BTreeMap<String, u64> {
        let reasons = self.flow.not_read().reasons();
        reasons.into_iter().map(|(reason, count)| (reason.to_string(), count)).collect()
    }

    pub(super) fn take_log(&mut self) -> String {
        std::mem::take(&mut self.log.lines).join("; ")
    }
}

/// Plays a dialogue, and compares the events of every line with those written after it.
pub(super) fn dialogue_with(limits: FlowLimits, text: &str) -> Talk {
    let mut talk = Talk::new(limits);
    let mut wanted = Vec::new();
    let mut found = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (frame, events) = line.split_once('|').unwrap_or((line, ""));
        talk.play(frame);
        let frame = frame.trim();
        wanted.push(format!("{frame} | {}", events.trim()));
        found.push(format!("{frame} | {}", talk.take_log()));
    }
    assert_eq!(wanted.join("\n"), found.join("\n"), "\nfound:\n{}", found.join("\n"));
    talk
}

pub(super) fn dialogue(text: &str) -> Talk {
    dialogue_with(FlowLimits::default(), text)
}
