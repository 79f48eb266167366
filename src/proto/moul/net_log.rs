//! The logs of plNetLog, a tool of H'uru's: what its client sent and received, decrypted, as text.
//!
//! A line `[>>> N]` (client to server) or `[<<< N]` begins a chunk; its bytes follow as hex, 16 a
//! line. N counts 100 ns in 32 bits and wraps. A chunk is what the client's network code had at
//! once: parts of messages, or several. Each file is of one service, which only its name says.
//! Source: H-uru/Plasma, Sources/Tools/plNetLog; see `docs/captures.md`.

use super::search::MessageReader;
use crate::capture::Time;
use crate::proto::{Expected, MAX_PIECE, TextEnds, TextFormat, TextPiece, TextReader};
use crate::session::{Ends, Side};
use crate::table::{Outcome, ServiceId};

/// plNetLog's format.
pub(super) struct NetLog;

/// The number of the format in made-up addresses.
const FORMAT: u16 = 0x4e4c;

/// The services that are logged, each at the place of its number, from 1; 0 is one that the file's
/// name does not tell.
const SERVICES: [&str; 3] = ["gatekeeper", "auth", "game"];

/// Seconds have so many ticks.
const TICKS: u64 = 10_000_000;

/// The first message of a connection has the number 1, from the client of either service.
const OPENING: [u8; 2] = [1, 0];
/// Cli2Auth_ClientRegisterRequest: number and build.
const REGISTER: usize = 6;
/// Cli2Game_JoinAgeRequest: number, transaction, age, account, player.
const JOIN: usize = 30;
/// Where the account is in it.
const ACCOUNT: std::ops::Range<usize> = 10..26;

/// Bytes of a direction that are read to find out the service.
const MAX_TRIED: usize = 4096;

/// The service of a log with these ends: none where its name does not tell it.
pub(super) fn expected(ends: Ends) -> Option<Expected> {
    let (number, swapped) = TextEnds::service_of(FORMAT, ends)?;
    let service = usize::from(number).checked_sub(1).and_then(|at| SERVICES.get(at).copied());
    Some(Expected { service, swapped })
}

impl TextFormat for NetLog {
    fn recognise(&self, start: &[u8]) -> bool {
        let whole = start.iter().rposition(|byte| *byte == b'\n').and_then(|end| start.get(..end));
        let lines = whole.unwrap_or(start).split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let mut headers = 0;
        let mut bytes = 0;
        let mut others = 0;
        for line in lines.filter(|line| !line.is_empty()) {
            match read_header(line) {
                Some((_, Some(_))) => headers += 1,
                _ if line.split(|byte| *byte == b' ').all(|word| read_pair(word).is_some()) => {
                    bytes += 1;
                }
                _ => others += 1,
            }
        }
        // A line may be damaged.
        headers > 0 && others * 8 <= headers + bytes
    }

    fn reader(&self, name: &str) -> Box<dyn TextReader> {
        let name = name.rsplit(['/', '\\']).next().unwrap_or(name).to_ascii_lowercase();
        let service = SERVICES.iter().position(|service| name.contains(service));
        let service = service.map_or(0, |at| at as u16 + 1);
        Box::new(LogReader {
            service,
            connection: 1,
            opened: false,
            begun: false,
            opening: Vec::new(),
            ticks: None,
            chunk: None,
        })
    }
}

/// The side and the time of a chunk's first line; no time where it is damaged. `None` for any other
/// line.
fn read_header(line: &[u8]) -> Option<(Side, Option<u32>)> {
    let (from, rest) = match line.split_at_checked(4)? {
        (b"[>>>", rest) => (Side::Client, rest),
        (b"[<<<", rest) => (Side::Server, rest),
        _ => return None,
    };
    let number = rest.strip_suffix(b"]").map(<[u8]>::trim_ascii);
    let number = number.and_then(|number| std::str::from_utf8(number).ok());
    // Written with a sign by the tool, and read without one.
    let ticks = number.and_then(|number| number.parse::<i64>().ok()).map(|ticks| ticks as u32);
    Some((from, ticks))
}

/// A byte as two hex digits.
fn read_pair(word: &[u8]) -> Option<u8> {
    let [high, low] = word else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    Some((digit(*high)? * 16 + digit(*low)?) as u8)
}

struct LogReader {
    service: u16,
    /// The number of the connection.
    connection: u16,
    /// Whether its client has sent something.
    opened: bool,
    /// Whether it was told of.
    begun: bool,
    /// What the file's first connection began with.
    opening: Vec<u8>,
    /// The time, with the times it has wrapped, and its lower 32 bits.
    ticks: Option<(u64, u32)>,
    chunk: Option<Chunk>,
}

/// A chunk that is read.
struct Chunk {
    from: Side,
    time: Time,
    /// Whether it is the beginning of the chunk.
    first: bool,
    /// Bytes before `bytes` that cannot be read.
    lost: u64,
    bytes: Vec<u8>,
}

impl LogReader {
    /// The time of a chunk. A file's times never go back: a smaller one has wrapped.
    fn time(&mut self, ticks: Option<u32>) -> Time {
        if let Some(ticks) = ticks {
            let (before, lower) = self.ticks.unwrap_or((ticks.into(), ticks));
            self.ticks = Some((before + u64::from(ticks.wrapping_sub(lower)), ticks));
        }
        let all = self.ticks.map_or(0, |(all, _)| all);
        let nanos = (all % TICKS) * (1_000_000_000 / TICKS);
        Time { seconds: (all / TICKS) as i64, nanos: nanos as u32, digits: 7 }
    }

    /// Hands over what there is of the chunk.
    fn flush(&mut self, take: &mut dyn FnMut(TextPiece)) {
        let Some(chunk) = &mut self.chunk else { return };
        if chunk.bytes.is_empty() {
            return;
        }
        let bytes = std::mem::take(&mut chunk.bytes);
        let lost = std::mem::take(&mut chunk.lost);
        let from = chunk.from;
        let time = chunk.time;
        if std::mem::take(&mut chunk.first) && from == Side::Client {
            self.look_for_opening(&bytes, lost);
        }
        let ends = TextEnds { format: FORMAT, connection: self.connection, service: self.service };
        let begins = !std::mem::replace(&mut self.begun, true);
        take(TextPiece { ends, begins, from, time, lost, bytes });
    }

    /// Begins a further connection where the client sends again what connections begin with.
    fn look_for_opening(&mut self, bytes: &[u8], lost: u64) {
        let opens = lost == 0 && self.opens(bytes);
        if opens && self.opening.is_empty() {
            self.opening = bytes.get(..JOIN).unwrap_or(bytes).to_vec();
        }
        if opens && self.opened {
            self.connection = self.connection.checked_add(1).unwrap_or(1);
            self.begun = false;
        }
        self.opened = true;
    }

    /// Whether a chunk is a connection's first message, or begins with it: then it repeats what the
    /// first connection of the file said, the build or the account.
    fn opens(&self, bytes: &[u8]) -> bool {
        if !bytes.starts_with(&OPENING) {
            return false;
        }
        let may_be = |service: &str| {
            let number = usize::from(self.service);
            number == 0 || SERVICES.get(number - 1).is_some_and(|known| *known == service)
        };
        let repeats = |range: std::ops::Range<usize>| {
            let before = self.opening.get(range.clone());
            before.is_some() && bytes.get(range) == before
        };
        may_be("auth") && (bytes.len() == REGISTER || repeats(0..REGISTER))
            || may_be("game") && (bytes.len() == JOIN || repeats(ACCOUNT))
    }
}

impl TextReader for LogReader {
    fn line(&mut self, line: &[u8], take: &mut dyn FnMut(TextPiece)) {
        let line = line.trim_ascii();
        if let Some((from, ticks)) = read_header(line) {
            self.flush(take);
            let lost = self.chunk.take().filter(|chunk| chunk.from == from).map_or(0, |c| c.lost);
            let time = self.time(ticks);
            self.chunk = Some(Chunk { from, time, first: true, lost, bytes: Vec::new() });
            return;
        }
        for word in line.split(|byte| *byte == b' ').filter(|word| !word.is_empty()) {
            let Some(chunk) = &mut self.chunk else { return };
            match read_pair(word) {
                Some(byte) => chunk.bytes.push(byte),
                None => {
                    self.flush(take);
                    // Each byte has two digits and a blank.
                    let bytes = (word.len() as u64 + 1) / 3;
                    self.chunk.iter_mut().for_each(|chunk| chunk.lost += bytes.max(1));
                }
            }
            if self.chunk.as_ref().is_some_and(|chunk| chunk.bytes.len() >= MAX_PIECE) {
                self.flush(take);
            }
        }
    }

    fn end(&mut self, take: &mut dyn FnMut(TextPiece)) {
        self.flush(take);
    }
}

/// The service of a log whose name does not tell it: the one whose messages the two sides sent.
/// `None` where several fit, and more bytes may come.
pub(super) fn find_service(
    bytes: [&[u8]; 2],
    last: bool,
    reader: &mut MessageReader<'_>,
) -> Option<ServiceId> {
    let tables = reader.tables;
    let mut fitting: Vec<(usize, ServiceId)> = Vec::new();
    let mut furthest: Option<(usize, ServiceId)> = None;
    for id in SERVICES.iter().filter_map(|name| tables.service_named(name)) {
        let mut read = 0;
        let mut fits = true;
        for (side, bytes) in [Side::Client, Side::Server].into_iter().zip(bytes) {
            let (length, whole) = read_messages(id, side, bytes, reader);
            read += length;
            fits &= whole;
        }
        if fits {
            fitting.push((read, id));
        }
        if furthest.is_none_or(|(most, _)| read > most) {
            furthest = Some((read, id));
        }
    }
    match fitting.as_slice() {
        [(read, only)] if *read > 0 => Some(*only),
        several if last => {
            several.iter().max_by_key(|(read, _)| *read).copied().or(furthest).map(|(_, id)| id)
        }
        [] => furthest.map(|(_, id)| id),
        _ => None,
    }
}

/// How many bytes are messages of a service, and whether nothing contradicts that.
fn read_messages(
    service: ServiceId,
    side: Side,
    bytes: &[u8],
    reader: &mut MessageReader<'_>,
) -> (usize, bool) {
    let bytes = bytes.get(..MAX_TRIED).unwrap_or(bytes);
    let mut at = 0;
    reader.evaluator.memory.frozen = true;
    let whole = loop {
        let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) else { break true };
        match reader.evaluator.message(reader.tables, service, side.index(), rest, reader.tree) {
            Outcome::Message(_, length) => at += length.max(1),
            Outcome::Need(length) => break length <= reader.max_message,
            _ => break false,
        }
    };
    reader.evaluator.memory.frozen = false;
    (at, whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, text: &str) -> Vec<(u16, bool, Side, u64, String)> {
        let mut pieces = Vec::new();
        let mut take = |piece: TextPiece| {
            let hex = crate::digits::hex(&piece.bytes);
            pieces.push((piece.ends.connection, piece.begins, piece.from, piece.lost, hex));
        };
        let mut reader = NetLog.reader(name);
        text.lines().for_each(|line| reader.line(line.as_bytes(), &mut take));
        reader.end(&mut take);
        pieces
    }

    #[test]
    fn a_chunk_has_a_side_and_bytes() {
        let text = "[>>> 12345]\r\n1A 00 07\r\n[<<< -5]\r\n18 00\r\n[>>> 9]\r\n";
        let expected = [
            (1, true, Side::Client, 0, "1a0007".to_string()),
            (1, false, Side::Server, 0, "1800".to_string()),
        ];
        assert_eq!(read("Auth.log", text), expected);
    }

    #[test]
    fn times_wrap() {
        let mut reader = NetLog.reader("Game.log");
        let mut times = Vec::new();
        for line in ["[>>> 4294967290]", "00 00", "[>>> 4]", "00 00", "[<<< -1]", "00 00"] {
            reader.line(line.as_bytes(), &mut |piece| times.push(piece.time));
        }
        reader.end(&mut |piece| times.push(piece.time));
        let ticks = |time: &Time| time.seconds as u64 * TICKS + u64::from(time.nanos / 100);
        let times: Vec<u64> = times.iter().map(ticks).collect();
        assert_eq!(times, [0xffff_fffa, 0x1_0000_0004, 0x1_ffff_ffff]);
    }

    #[test]
    fn a_repeated_opening_begins_a_connection() {
        let text = "[>>> 1]\n01 00 96 03 00 00\n[>>> 2]\n01 00 96 03 00 00 00 00\n[>>> 3]\n01 00 \
                    97 03 00 00 00 00\n";
        let pieces = read("Auth.log", text);
        let begins: Vec<(u16, bool)> = pieces.iter().map(|piece| (piece.0, piece.1)).collect();
        assert_eq!(begins, [(1, true), (2, true), (2, false)]);
        let begins: Vec<u16> = read("GateKeeper.log", text).iter().map(|piece| piece.0).collect();
        assert_eq!(begins, [1, 1, 1]);
    }

    #[test]
    fn what_cannot_be_read_is_lost() {
        let pieces = read("Game.log", "[>>> 1]\n00 0G 01 02\n??????????\n03 00\n[>>> 2]\n04\n");
        let pieces: Vec<_> = pieces.into_iter().map(|piece| (piece.3, piece.4)).collect();
        let expected = [(0, "00"), (1, "0102"), (3, "0300"), (0, "04")];
        assert_eq!(pieces, expected.map(|(lost, hex)| (lost, hex.to_string())));
    }

    #[test]
    fn other_texts_are_no_logs() {
        for text in ["", "1A 00\n", "[>>> 1]\nhello\n", "[>>> x]\n1A\n"] {
            assert!(!NetLog.recognise(text.as_bytes()), "{text}");
        }
        for text in ["[>>> 1]\n", "[>>> 1]", "1A 00\n[<<< -1]\r\n1A 00\r\n1", "[>>> 1]\n1A 00\n[<"]
        {
            assert!(NetLog.recognise(text.as_bytes()), "{text}");
        }
    }
}
