//! Where packets begin and end in a TCP stream. Nothing marks them but their own length, so each is proven by its checksum, and
//! where that fails the next place is looked for at which one is right.
//!
//! Knows headers and nothing of what packets say.

use super::packet::{HEADER, Header};
use crate::capture::Moment;
use crate::session::StreamBuffer;

/// One direction's bytes that were not handed on yet.
#[derive(Debug, Default)]
pub struct Reader {
    stream: StreamBuffer,
    /// Whether the last packet was padded.
    pads: Option<bool>,
    /// Where the search for a packet goes on.
    searched: usize,
    /// Framing was lost: nothing is believed before a checksum is right.
    adrift: bool,
    /// What stands before the next byte is a packet whose checksum was right, so that a length is hardly anything else.
    framed: bool,
}

/// What a stream's next bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Not to be told yet.
    Wait,
    /// A packet of so many bytes.
    Packet {
        /// Its end, padding included.
        end: usize,
        /// Whether its checksum is right.
        right: bool,
    },
    /// A packet that is too long to be put together.
    TooLong {
        /// Its bytes.
        bytes: usize,
    },
    /// Bytes that are no packet.
    Skip {
        /// How many.
        bytes: usize,
        /// Whether a packet follows them.
        found: bool,
    },
}

/// What a place in the stream leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leads {
    /// No packet can begin there.
    Nowhere,
    /// Nothing is there yet, or too little to tell.
    Unknown,
    /// A length that is likely is there.
    Possible,
    /// A packet whose checksum is right.
    Proven,
}

/// Packets with a wrong checksum, one behind the other, that are followed to one with a right one.
const CHAIN: usize = 8;

/// A packet behind one with a wrong checksum is hardly longer than this; four bytes that are no length seldom read as so little.
const LIKELY: usize = 1 << 16;

/// Bytes that are summed for each byte in which a packet is looked for; what is made to take more is passed over.
const WORK: usize = 16;

/// More bytes than this without a packet are handed on as none.
const SEARCH: usize = 1 << 20;

impl Reader {
    /// Takes the next bytes in order; `offset` is that of the first.
    pub fn push(&mut self, offset: u64, bytes: &[u8], at: Moment) {
        if self.stream.is_empty() && self.stream.offset() != offset {
            self.stream.jump(offset);
        }
        self.stream.push(bytes, at);
    }

    /// The bytes that wait.
    pub fn waiting(&self) -> &[u8] {
        self.stream.waiting()
    }

    /// The offset of the first byte that waits.
    pub fn offset(&self) -> u64 {
        self.stream.offset()
    }

    /// Memory that the waiting bytes take.
    pub fn held(&self) -> usize {
        self.stream.held()
    }

    /// Gives back the memory that no waiting byte needs.
    pub fn shrink(&mut self) {
        self.stream.shrink();
    }

    /// Bytes are missing from here on.
    pub fn lost(&mut self) {
        (self.adrift, self.framed) = (true, false);
        self.searched = 0;
    }

    /// Removes the first bytes.
    pub fn advance(&mut self, bytes: usize) {
        self.stream.advance(bytes);
        self.searched = 0;
    }

    /// What comes next; `last` says that no more bytes follow.
    pub fn next(&mut self, encrypted: bool, limit: usize, last: bool) -> Next {
        let framed = self.framed;
        let next = self.place(encrypted, limit, last);
        match next {
            Next::Wait => {}
            Next::TooLong { .. } if !framed => {
                self.framed = false;
                return self.search(limit, last);
            }
            _ => self.framed = matches!(next, Next::Packet { right: true, .. }),
        }
        next
    }

    fn place(&mut self, encrypted: bool, limit: usize, last: bool) -> Next {
        if self.stream.is_empty() {
            return Next::Wait;
        }
        let header = Header::parse(self.waiting());
        let Some(header) = header else {
            return if last { Next::Skip { bytes: self.waiting().len(), found: false } } else { Next::Wait };
        };
        if self.adrift {
            return self.search(limit, last);
        }
        if !header.possible() || header.padded() > limit {
            self.adrift = true;
            return match header.possible() {
                true => Next::TooLong { bytes: header.padded() },
                false => self.search(limit, last),
            };
        }
        self.at_start(header, encrypted, limit, last)
    }

    fn at_start(&mut self, header: Header, encrypted: bool, limit: usize, last: bool) -> Next {
        let (plain, padded, have) = (header.bytes(), header.padded(), self.waiting().len());
        for (end, pads) in [(plain, false), (padded, true)] {
            if self.waiting().get(..end).is_some_and(|whole| header.sums(whole)) {
                if plain != padded {
                    self.pads = Some(pads);
                }
                return Next::Packet { end, right: true };
            }
        }
        if encrypted && have >= padded {
            return Next::Packet { end: padded, right: false };
        }
        if have < padded && !last {
            return Next::Wait;
        }
        self.wrong(plain, padded, limit, encrypted, last)
    }

    /// A packet whose checksum is wrong: what its end is, by what follows. Its length may be what is wrong with it.
    fn wrong(&mut self, plain: usize, padded: usize, limit: usize, encrypted: bool, last: bool) -> Next {
        let ends = if self.pads == Some(true) || encrypted { [padded, plain] } else { [plain, padded] };
        let leads = ends.map(|end| (end, self.leads(end)));
        let to = |wanted| leads.iter().find(|(_, leads)| *leads == wanted).map(|(end, _)| *end);
        if let Some(end) = to(Leads::Proven).or(to(Leads::Possible)) {
            return Next::Packet { end, right: false };
        }
        match (self.search(limit, last), to(Leads::Unknown)) {
            // Nothing behind it is proven, and nothing speaks against it: it is a packet all the same.
            (Next::Skip { found: false, .. }, Some(end)) if end <= self.waiting().len() => {
                Next::Packet { end, right: false }
            }
            (skip @ Next::Skip { found: false, .. }, _) => {
                self.adrift = true;
                skip
            }
            (told, _) => told,
        }
    }

    /// Whether a packet begins at a place, and whether a right checksum proves it, of this one or of one behind it.
    fn leads(&self, from: usize) -> Leads {
        let mut at = from;
        for _ in 0..CHAIN {
            let Some(header) = self.waiting().get(at..).and_then(Header::parse) else { break };
            if !header.possible() || header.padded() > LIKELY {
                return if at == from { Leads::Nowhere } else { Leads::Possible };
            }
            if [header.bytes(), header.padded()].into_iter().any(|length| self.sums(at, length, header)) {
                return Leads::Proven;
            }
            at = at.saturating_add(if self.pads == Some(true) { header.padded() } else { header.bytes() });
        }
        if at == from { Leads::Unknown } else { Leads::Possible }
    }

    fn sums(&self, at: usize, length: usize, header: Header) -> bool {
        let end = at.saturating_add(length);
        self.waiting().get(at..end).is_some_and(|whole| header.sums(whole))
    }

    /// Looks for the next place at which a packet's checksum is right.
    fn search(&mut self, limit: usize, last: bool) -> Next {
        let limit = limit.min(1 << 16);
        let mut at = self.searched;
        let mut work = WORK.saturating_mul(self.waiting().len().max(1 << 14));
        while let Some(rest) = self.waiting().get(at..).filter(|rest| rest.len() > HEADER) {
            let Some(header) = Header::parse(rest).filter(|h| h.possible() && h.padded() <= limit) else {
                at += 1;
                continue;
            };
            work = work.saturating_sub(header.padded());
            if work == 0 {
                return Next::Skip { bytes: self.waiting().len(), found: false };
            }
            let right = [header.bytes(), header.padded()]
                .into_iter()
                .any(|end| rest.get(..end).is_some_and(|whole| header.sums(whole)));
            if right {
                self.adrift = false;
                return match at {
                    0 => self.next_right(header),
                    _ => Next::Skip { bytes: at, found: true },
                };
            }
            if rest.len() < header.padded() && !last && self.waiting().len() < SEARCH {
                // It may be one whose end has not come.
                break;
            }
            at += 1;
        }
        self.searched = at;
        match last || self.waiting().len() >= SEARCH {
            true => Next::Skip { bytes: self.waiting().len(), found: false },
            false => Next::Wait,
        }
    }

    fn next_right(&mut self, header: Header) -> Next {
        let plain = header.bytes();
        let sums = self.waiting().get(..plain).is_some_and(|whole| header.sums(whole));
        Next::Packet { end: if sums { plain } else { header.padded() }, right: true }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;

    /// A packet of whole bytes.
    fn packet(body: &[u8], pad: bool) -> Vec<u8> {
        let mut rest = body.to_vec();
        let bytes = HEADER + body.len();
        if pad {
            rest.resize(super::super::packet::padded(bytes) - HEADER, 0);
        }
        let mut out = (bytes as u32 * 8).to_le_bytes().to_vec();
        out.extend(adler2::adler32_slice(&rest).to_be_bytes());
        out.extend(rest);
        out
    }

    fn all(bytes: &[u8], step: usize) -> Vec<(u64, usize, bool)> {
        let mut reader = Reader::default();
        let mut out = Vec::new();
        let mut at = 0;
        loop {
            let last = at >= bytes.len();
            match reader.next(false, 1 << 20, last) {
                Next::Wait if last => return out,
                Next::Wait => {
                    let to = (at + step).min(bytes.len());
                    reader.push(at as u64, &bytes[at..to], Moment::default());
                    at = to;
                }
                Next::Packet { end, right } => {
                    out.push((reader.offset(), end, right));
                    reader.advance(end);
                }
                Next::TooLong { .. } => {}
                Next::Skip { bytes, .. } => reader.advance(bytes),
            }
        }
    }

    #[test]
    fn packets_are_found_however_the_stream_is_cut() {
        let parts = [packet(&[1, 2, 3], false), packet(&[9; 40], true), packet(&[7], false), packet(&[8, 8], true)];
        let stream = parts.concat();
        let mut want = Vec::new();
        let mut at = 0;
        for part in &parts {
            want.push((at, part.len(), true));
            at += part.len() as u64;
        }
        for step in 1..stream.len() {
            assert_eq!(all(&stream, step), want, "in steps of {step}");
        }
    }

    #[test]
    fn what_is_no_packet_is_passed_over() {
        let mut stream = vec![0xff; 21];
        stream.extend(packet(&[1, 2, 3], false));
        for step in 1..stream.len() {
            assert_eq!(all(&stream, step), [(21, 11, true)], "in steps of {step}");
        }
    }

    #[test]
    fn a_wrong_length_costs_one_packet_only() {
        let parts = [packet(&[1, 2, 3], false), packet(&[4; 30], false), packet(&[9; 40], false), packet(&[7], false)];
        for (damaged, length) in [(1, 0), (1, 64), (1, 38 * 8 + 8), (1, 31 * 8), (1, 0xffff_ffff), (2, 400 * 8)] {
            let mut stream = parts.concat();
            let at = parts[..damaged].iter().map(Vec::len).sum::<usize>();
            stream[at..at + 4].copy_from_slice(&u32::to_le_bytes(length));
            for step in [1, 7, 1000] {
                let right: Vec<u64> = all(&stream, step).into_iter().filter(|p| p.2).map(|p| p.0).collect();
                let want: Vec<u64> = [0, 11, 49, 97].into_iter().filter(|o| *o != at as u64).collect();
                assert_eq!(right, want, "a length of {length} bits in packet {damaged}, in steps of {step}");
            }
        }
    }

    #[test]
    fn bytes_made_to_look_like_headers_are_not_summed_without_end() {
        let stream: Vec<u8> = [0x00, 0xf0, 0x07, 0x00].repeat(SEARCH / 4 + 10);
        let begin = std::time::Instant::now();
        assert!(all(&stream, stream.len()).iter().all(|p| !p.2));
        assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
    }

    #[test]
    fn a_wrong_checksum_costs_one_packet_only() {
        let mut stream = packet(&[1, 2, 3], false);
        stream.extend(packet(&[4, 5, 6], false));
        stream[9] ^= 1;
        let ends: Vec<bool> = all(&stream, 4).into_iter().map(|p| p.2).collect();
        assert_eq!(ends.last(), Some(&true));
    }
}
