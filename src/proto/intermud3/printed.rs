//! Packets as logs and people print them: mudmode text without its length and its zero, anywhere in
//! a line or over several, with whatever stands before.
//!
//! This only finds where a packet begins and ends. What is within, however it is written, is the
//! session's.

use std::ops::Range;

use super::framing::MAX_TEXT;
use crate::capture::Time;
use crate::proto::{Expected, MAX_PIECE, TextEnds, TextFormat, TextPiece, TextReader};
use crate::session::{Ends, Side};

/// Printed packets.
pub(super) struct Printed;

/// The number of the format in made-up addresses.
const FORMAT: u16 = 0x4933;

/// Words and signs before a packet by which its sender is told. Without any it is taken for the
/// client.
const SENT: [&str; 6] = ["sent", "send", "sending", "out", "outgoing", "tx"];
const RECEIVED: [&str; 7] = ["received", "recv", "receive", "receiving", "in", "incoming", "rx"];
const RIGHT: [&[u8]; 3] = [b"->", b"=>", b">>"];
const LEFT: [&[u8]; 3] = [b"<-", b"<=", b"<<"];

/// The most bytes before a packet that are looked at, and of its beginning.
const MAX_BEFORE: usize = 256;
const MAX_START: usize = 256;

/// The service of printed packets: the packets tell it.
pub(super) fn expected(ends: Ends) -> Option<Expected> {
    let (_, swapped) = TextEnds::service_of(FORMAT, ends)?;
    Some(Expected { service: None, swapped })
}

impl TextFormat for Printed {
    fn recognise(&self, start: &[u8]) -> bool {
        // What has a length before each packet is a stream, and no text.
        !start.contains(&0) && find_packet(start).is_some()
    }

    fn reader(&self, _name: &str) -> Box<dyn TextReader> {
        Box::new(PrintedReader::default())
    }
}

/// Where a packet begins: the first bracket, before a type and a number.
fn find_packet(text: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = memchr::memmem::find(text.get(from..)?, b"({") {
        let at = from + at;
        if begins_packet(text.get(at + 2..)?) {
            return Some(at);
        }
        from = at + 2;
    }
    None
}

/// Whether a type and a number follow a bracket.
fn begins_packet(text: &[u8]) -> bool {
    let text = text.get(..MAX_START).unwrap_or(text);
    let after_type = || {
        let text = skip_blanks(text).strip_prefix(b"\"")?;
        let length = text.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'-').count();
        let text = text.get(length..).filter(|_| length > 0)?.strip_prefix(b"\"")?;
        let text = skip_blanks(skip_blanks(text).strip_prefix(b",")?);
        text.first().map(u8::is_ascii_digit)
    };
    after_type().unwrap_or(false)
}

/// A text without the blanks and comments that it begins with.
fn skip_blanks(mut text: &[u8]) -> &[u8] {
    loop {
        text = text.trim_ascii_start();
        let Some(comment) = text.strip_prefix(b"/*") else { return text };
        let Some(end) = memchr::memmem::find(comment, b"*/") else { return &[] };
        text = comment.get(end + 2..).unwrap_or_default();
    }
}

#[derive(Default)]
struct PrintedReader {
    /// The packet that is read, after its length.
    packet: Vec<u8>,
    /// How many brackets are open.
    depth: usize,
    within: Within,
    time: Time,
    from: Option<Side>,
    /// Whether a packet was handed over.
    begun: bool,
}

/// What the next byte is part of.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Within {
    #[default]
    Values,
    Text,
    /// Behind a backslash in a text.
    Escape,
    Comment,
}

impl PrintedReader {
    /// Hands over the packet that is read.
    fn flush(&mut self, take: &mut dyn FnMut(TextPiece)) {
        self.depth = 0;
        self.within = Within::Values;
        if self.packet.is_empty() {
            return;
        }
        let mut text = std::mem::take(&mut self.packet);
        text.push(0);
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        let packet = [&length.to_be_bytes()[..], &text].concat();
        for bytes in packet.chunks(MAX_PIECE) {
            take(TextPiece {
                ends: TextEnds { format: FORMAT, connection: 1, service: 1 },
                begins: !std::mem::replace(&mut self.begun, true),
                from: self.from.unwrap_or(Side::Client),
                time: self.time,
                lost: 0,
                bytes: bytes.to_vec(),
            });
        }
    }

    /// Reads on in a packet. Returns how many bytes it took.
    fn read(&mut self, text: &[u8]) -> usize {
        for (at, byte) in text.iter().enumerate() {
            let next = text.get(at + 1).copied();
            let last = self.packet.last().copied();
            match (self.within, byte) {
                (Within::Escape, _) => self.within = Within::Text,
                (Within::Text, b'\\') => self.within = Within::Escape,
                (Within::Text, b'"') => self.within = Within::Values,
                (Within::Text, _) => {}
                (Within::Comment, b'/') if at > 0 && text.get(at - 1) == Some(&b'*') => {
                    self.within = Within::Values;
                    continue;
                }
                (Within::Comment, _) => continue,
                (Within::Values, b'"') => self.within = Within::Text,
                (Within::Values, b'/') if next == Some(b'*') => {
                    self.within = Within::Comment;
                    continue;
                }
                (Within::Values, b' ' | b'\t' | b'\r' | b'\n') => continue,
                (Within::Values, b'{' | b'[' | b'<') if last == Some(b'(') => self.depth += 1,
                (Within::Values, b')') if matches!(last, Some(b'}' | b']' | b'>')) => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        self.packet.push(b')');
                        return at + 1;
                    }
                }
                (Within::Values, _) => {}
            }
            self.packet.push(*byte);
            if self.packet.len() >= MAX_TEXT as usize {
                self.depth = 0;
                return at + 1;
            }
        }
        text.len()
    }

    /// Learns from what stands before a packet.
    fn learn(&mut self, before: &[u8]) {
        let start = before.get(..MAX_BEFORE).unwrap_or(before);
        if let Some(time) = find_time(start) {
            self.time = time;
        }
        let end = before.get(before.len().saturating_sub(MAX_BEFORE)..).unwrap_or(before);
        self.from = sender(end).or(self.from.filter(|_| before.is_empty()));
    }
}

impl TextReader for PrintedReader {
    fn line(&mut self, line: &[u8], take: &mut dyn FnMut(TextPiece)) {
        let mut rest = line;
        let mut first = true;
        loop {
            if self.depth > 0 {
                // A packet that begins while another one is open shows that this one was cut.
                let next = if first { find_packet(rest) } else { None };
                let own = next.map_or(rest, |at| rest.get(..at).unwrap_or(rest));
                let cut = next.is_some_and(|_| self.within != Within::Text || first);
                if !cut {
                    let taken = self.read(rest);
                    if self.depth > 0 {
                        if self.within == Within::Text {
                            self.packet.push(b'\n');
                        }
                        return;
                    }
                    self.flush(take);
                    rest = rest.get(taken..).unwrap_or_default();
                    first = false;
                    continue;
                }
                self.flush(take);
                self.learn(own);
                rest = next.and_then(|at| rest.get(at..)).unwrap_or_default();
            } else {
                let Some(at) = find_packet(rest) else { return };
                self.learn(rest.get(..at).unwrap_or_default());
                rest = rest.get(at..).unwrap_or_default();
            }
            first = false;
            self.depth = 1;
            self.packet.extend_from_slice(b"({");
            rest = rest.get(2..).unwrap_or_default();
        }
    }

    fn end(&mut self, take: &mut dyn FnMut(TextPiece)) {
        self.flush(take);
    }
}

/// The sender of a packet, by what stands before it.
fn sender(before: &[u8]) -> Option<Side> {
    let lower = before.to_ascii_lowercase();
    let has =
        |signs: &[&[u8]]| signs.iter().filter_map(|sign| memchr::memmem::rfind(&lower, sign)).max();
    let word = |words: &[&str]| {
        lower
            .split(|byte| !byte.is_ascii_alphanumeric())
            .any(|word| words.iter().any(|known| known.as_bytes() == word))
    };
    match (has(&RIGHT), has(&LEFT)) {
        (right, left) if right > left => Some(Side::Client),
        (right, left) if left > right => Some(Side::Server),
        _ if word(&RECEIVED) => Some(Side::Server),
        _ if word(&SENT) => Some(Side::Client),
        _ => None,
    }
}

/// A time such as `2026-11-20 09:30:27.123`, taken for one in UTC.
fn find_time(text: &[u8]) -> Option<Time> {
    let number = |range: Range<usize>| {
        let digits = text.get(range)?;
        digits.iter().try_fold(0_i64, |all, byte| {
            byte.is_ascii_digit().then(|| all * 10 + i64::from(byte - b'0'))
        })
    };
    let is = |at: usize, bytes: &[u8]| text.get(at).is_some_and(|byte| bytes.contains(byte));
    let at = (0..text.len().saturating_sub(18)).find(|at| {
        is(at + 4, b"-/.")
            && is(at + 7, b"-/.")
            && is(at + 10, b"T _")
            && is(at + 13, b":")
            && is(at + 16, b":")
            && number(*at..at + 4).is_some()
    })?;
    let [year, month, day] =
        [number(at..at + 4)?, number(at + 5..at + 7)?, number(at + 8..at + 10)?];
    let hour = number(at + 11..at + 13)?;
    let minute = number(at + 14..at + 16)?;
    let second = number(at + 17..at + 19)?;
    if !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
        || hour > 23
        || minute > 59
        || second > 60
    {
        return None;
    }
    let fraction = text.get(at + 19..).and_then(|rest| rest.strip_prefix(b".")).unwrap_or_default();
    let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count().min(9);
    let nanos = number(at + 20..at + 20 + digits).filter(|_| digits > 0).unwrap_or(0)
        * 10_i64.pow(9 - digits as u32);
    Some(Time {
        seconds: days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second,
        nanos: nanos as u32,
        digits: digits as u8,
    })
}

/// The days from 1970-01-01 to a date of the Gregorian calendar. March begins the year, so that the
/// leap day is its last one.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month < 3 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year
        - 719_468
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(text: &str) -> Vec<(Side, String)> {
        let mut pieces = Vec::new();
        let mut take = |piece: TextPiece| {
            let length = u32::from_be_bytes(*piece.bytes.first_chunk().unwrap()) as usize;
            assert_eq!(length, piece.bytes.len() - 4);
            let text = piece.bytes.get(4..piece.bytes.len() - 1).unwrap();
            pieces.push((piece.from, String::from_utf8(text.to_vec()).unwrap()));
        };
        let mut reader = Printed.reader("");
        text.lines().for_each(|line| reader.line(line.as_bytes(), &mut take));
        reader.end(&mut take);
        pieces
    }

    const TELL: &str = r#"({"tell",5,"A","bob","B","al","Bob","hi (\"x\")",})"#;

    #[test]
    fn a_packet_may_stand_anywhere() {
        let text = format!("log begins\n10:00 -> {TELL} sent\n10:01 <- {TELL}{TELL}\n");
        let expected =
            [Side::Client, Side::Server, Side::Server].map(|side| (side, TELL.to_string()));
        assert_eq!(read(&text), expected);
        assert!(Printed.recognise(text.as_bytes()));
        assert!(!Printed.recognise(b"({ \"A\", \"B\" }) ({\"tell\",\"x\"})"));
    }

    #[test]
    fn a_packet_may_have_several_lines_and_comments() {
        let text = "({ /* sizeof() == 3 */ \"who-req\", 5,\n  ([ \"a b\" : 1, ]),\n})\n";
        assert_eq!(read(text), [(Side::Client, "({\"who-req\",5,([\"a b\":1,]),})".to_string())]);
    }

    #[test]
    fn a_packet_that_was_cut_does_not_take_the_next() {
        let cut = TELL.get(..30).unwrap();
        let pieces = read(&format!("{cut}\nrecv {TELL}\n"));
        assert_eq!(pieces.last(), Some(&(Side::Server, TELL.to_string())));
        assert_eq!(pieces.len(), 2);
    }

    #[test]
    fn a_time_before_a_packet_is_its_time() {
        let time = find_time(b"[2026-11-20 09:30:27.125] x").unwrap();
        assert_eq!((time.seconds, time.nanos, time.digits), (1_795_167_027, 125_000_000, 3));
        assert_eq!(find_time(b"1970-01-01T00:00:01").unwrap().seconds, 1);
        assert_eq!(find_time(b"2000-13-01 00:00:00"), None);
    }
}
