//! Finds packets in a TCP stream. Only their own length marks them, so the checksum must prove each
//! one. After a wrong checksum, reading goes on at the next place with a correct one.
//!
//! It knows headers, but not the content of packets.

use super::packet::{HEADER, Header};
use crate::capture::Moment;
use crate::session::StreamBuffer;

/// Finds the packets in one direction's bytes.
#[derive(Debug, Default)]
pub struct PacketFinder {
    /// The bytes that are in no packet yet.
    stream: StreamBuffer,
    /// How many bytes may still be summed for the bytes so far. Places that would take more are
    /// skipped.
    credit: usize,
    /// Whether the last packet was padded.
    pads: Option<bool>,
    /// Where the search for a packet goes on.
    searched: usize,
    /// Framing was lost: no length is trusted until a checksum is correct.
    adrift: bool,
    /// The bytes just before were a packet with a correct checksum, so the next bytes are very
    /// likely a length.
    framed: bool,
}

/// The next bytes of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// More bytes have to come first.
    Wait,
    /// A packet.
    Packet {
        /// The offset of its end, padding included.
        end: usize,
        /// Whether its checksum is right.
        right: bool,
    },
    /// A packet that is too long to be reassembled.
    TooLong {
        /// Its length in bytes.
        bytes: usize,
    },
    /// Bytes that are not a packet.
    Skip {
        /// Their number.
        bytes: usize,
        /// Whether a packet follows them.
        found: bool,
    },
}

/// What is at a place where a packet should begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Follows {
    /// No packet.
    Nothing,
    /// Too few bytes to tell.
    Unknown,
    /// Probably a length.
    Possible,
    /// A packet with a correct checksum, or one that leads to such a packet.
    Proven,
}

/// How many packets with a wrong checksum are followed, one behind the other, in search of one with
/// a correct checksum.
const CHAIN: usize = 8;

/// A packet behind one with a wrong checksum is rarely longer than this. Four random bytes rarely
/// read as a number below it.
const LIKELY: usize = 1 << 16;

/// How many bytes may be summed for each byte of the stream, and how many in any case. Without this
/// bound, bytes that look like headers with long lengths would be summed up to 65,536 times each.
const WORK: usize = 16;
const FIRST_WORK: usize = WORK << 14;

/// After this many bytes without a packet, they are reported as no packet.
const SEARCH: usize = 1 << 20;

impl PacketFinder {
    /// Appends the next bytes in order. `offset` is that of the first.
    pub fn push(&mut self, offset: u64, bytes: &[u8], at: Moment) {
        if self.stream.is_empty() && self.stream.offset() != offset {
            self.stream.jump(offset);
        }
        if self.stream.is_empty() {
            self.credit = FIRST_WORK;
        }
        self.credit = self.credit.saturating_add(WORK * bytes.len());
        self.stream.push(bytes, at);
    }

    /// The waiting bytes.
    pub fn waiting(&self) -> &[u8] {
        self.stream.waiting()
    }

    /// The offset of the first waiting byte.
    pub fn offset(&self) -> u64 {
        self.stream.offset()
    }

    /// Memory of the waiting bytes.
    pub fn held(&self) -> usize {
        self.stream.held()
    }

    /// Frees the memory that no waiting byte needs.
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

    /// The next bytes of the stream. With `last`, no more bytes follow.
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
            return if last {
                Next::Skip { bytes: self.waiting().len(), found: false }
            } else {
                Next::Wait
            };
        };
        if self.adrift {
            return self.search(limit, last);
        }
        if !header.possible() || header.padded() > limit {
            self.adrift = true;
            return if header.possible() {
                Next::TooLong { bytes: header.padded() }
            } else {
                self.search(limit, last)
            };
        }
        self.at_start(header, encrypted, limit, last)
    }

    fn at_start(&mut self, header: Header, encrypted: bool, limit: usize, last: bool) -> Next {
        let plain = header.bytes();
        let padded = header.padded();
        let have = self.waiting().len();
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

    /// A packet with a wrong checksum. Its length may be wrong, so the bytes behind it tell where
    /// it ends, with or without padding.
    fn wrong(
        &mut self,
        plain: usize,
        padded: usize,
        limit: usize,
        encrypted: bool,
        last: bool,
    ) -> Next {
        let ends =
            if self.pads == Some(true) || encrypted { [padded, plain] } else { [plain, padded] };
        let follows = ends.map(|end| (end, self.follows(end)));
        let to = |wanted| follows.iter().find(|(_, what)| *what == wanted).map(|(end, _)| *end);
        if let Some(end) = to(Follows::Proven).or(to(Follows::Possible)) {
            return Next::Packet { end, right: false };
        }
        match (self.search(limit, last), to(Follows::Unknown)) {
            // The bytes behind it neither prove nor disprove it, so it is taken for a packet.
            (Next::Skip { found: false, .. }, Some(end)) if end <= self.waiting().len() => {
                Next::Packet { end, right: false }
            }
            (skip @ Next::Skip { found: false, .. }, _) => {
                self.adrift = true;
                skip
            }
            (next, _) => next,
        }
    }

    /// What is at a place where a packet should begin. Its checksum proves it, or that of a packet
    /// behind it.
    fn follows(&mut self, from: usize) -> Follows {
        let mut at = from;
        for _ in 0..CHAIN {
            let Some(header) = self.waiting().get(at..).and_then(Header::parse) else { break };
            if !header.possible() || header.padded() > LIKELY {
                return if at == from { Follows::Nothing } else { Follows::Possible };
            }
            if self.is_right(at, header) {
                return Follows::Proven;
            }
            at = at.saturating_add(if self.pads == Some(true) {
                header.padded()
            } else {
                header.bytes()
            });
        }
        if at == from { Follows::Unknown } else { Follows::Possible }
    }

    /// Whether the checksum of a packet is correct, with or without padding. False if it is not
    /// complete, or if too many bytes were summed already.
    fn is_right(&mut self, at: usize, header: Header) -> bool {
        [header.bytes(), header.padded()].into_iter().any(|length| {
            let Some(whole) = self.stream.waiting().get(at..at.saturating_add(length)) else {
                return false;
            };
            let paid = self.credit.checked_sub(length);
            self.credit = paid.unwrap_or(0);
            paid.is_some() && header.sums(whole)
        })
    }

    /// Looks for the next place at which a packet's checksum is correct.
    fn search(&mut self, limit: usize, last: bool) -> Next {
        let limit = limit.min(1 << 16);
        let have = self.stream.waiting().len();
        let mut at = self.searched;
        while let Some(rest) = self.stream.waiting().get(at..).filter(|rest| rest.len() > HEADER) {
            let Some(header) = Header::parse(rest).filter(|h| h.possible() && h.padded() <= limit)
            else {
                at += 1;
                continue;
            };
            let whole = rest.len() >= header.padded();
            if self.is_right(at, header) {
                self.adrift = false;
                return match at {
                    0 => self.next_right(header),
                    _ => Next::Skip { bytes: at, found: true },
                };
            }
            if self.credit == 0 {
                return Next::Skip { bytes: have, found: false };
            }
            if !whole && !last && have < SEARCH {
                // It may be a packet whose end has not come yet.
                break;
            }
            at += 1;
        }
        self.searched = at;
        if last || have >= SEARCH { Next::Skip { bytes: have, found: false } } else { Next::Wait }
    }

    fn next_right(&mut self, header: Header) -> Next {
        let plain = header.bytes();
        let sums = self.stream.waiting().get(..plain).is_some_and(|whole| header.sums(whole));
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
        out.extend(super::super::packet::checksum(&rest).to_be_bytes());
        out.extend(rest);
        out
    }

    fn all(bytes: &[u8], step: usize) -> Vec<(u64, usize, bool)> {
        let mut finder = PacketFinder::default();
        let mut out = Vec::new();
        let mut at = 0;
        loop {
            let last = at >= bytes.len();
            match finder.next(false, 1 << 20, last) {
                Next::Wait if last => return out,
                Next::Wait => {
                    let to = (at + step).min(bytes.len());
                    finder.push(at as u64, &bytes[at..to], Moment::default());
                    at = to;
                }
                Next::Packet { end, right } => {
                    out.push((finder.offset(), end, right));
                    finder.advance(end);
                }
                Next::TooLong { .. } => {}
                Next::Skip { bytes, .. } => finder.advance(bytes),
            }
        }
    }

    #[test]
    fn packets_are_found_however_the_stream_is_cut() {
        let parts = [
            packet(&[1, 2, 3], false),
            packet(&[9; 40], true),
            packet(&[7], false),
            packet(&[8, 8], true),
        ];
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
        let parts = [
            packet(&[1, 2, 3], false),
            packet(&[4; 30], false),
            packet(&[9; 40], false),
            packet(&[7], false),
        ];
        for (damaged, length) in
            [(1, 0), (1, 64), (1, 38 * 8 + 8), (1, 31 * 8), (1, 0xffff_ffff), (2, 400 * 8)]
        {
            let mut stream = parts.concat();
            let at = parts[..damaged].iter().map(Vec::len).sum::<usize>();
            stream[at..at + 4].copy_from_slice(&u32::to_le_bytes(length));
            for step in [1, 7, 1000] {
                let right: Vec<u64> =
                    all(&stream, step).into_iter().filter(|p| p.2).map(|p| p.0).collect();
                let want: Vec<u64> =
                    [0, 11, 49, 97].into_iter().filter(|o| *o != at as u64).collect();
                assert_eq!(
                    right, want,
                    "a length of {length} bits in packet {damaged}, in steps of {step}"
                );
            }
        }
    }

    #[test]
    fn bytes_made_to_look_like_headers_are_not_summed_without_end() {
        let stream: Vec<u8> = [0x00, 0xf0, 0x07, 0x00].repeat(SEARCH / 4 + 10);
        for step in [stream.len(), 512] {
            let begin = std::time::Instant::now();
            assert!(all(&stream, step).iter().all(|p| !p.2));
            assert!(begin.elapsed().as_secs() < 20, "in steps of {step}: {:?}", begin.elapsed());
        }
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
