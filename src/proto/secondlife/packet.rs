//! A datagram's frame: the positions of header, message and appended acknowledgements, and zero
//! coding.
//!
//! Pure functions over bytes: this file knows no tables, no tree and no circuits. Sources: the page
//! "Packet Layout" of the Second Life wiki, and what `docs/secondlife.md` adds.

/// The datagram ends with acknowledgements.
pub const ACK: u8 = 0x10;
/// Sent again: an earlier datagram had the same number.
pub const RESENT: u8 = 0x20;
/// Reliable: the sender asks for an acknowledgement.
pub const RELIABLE: u8 = 0x40;
/// Zero-coded from the message number on.
pub const ZEROCODED: u8 = 0x80;

/// A message that becomes longer than this when it is expanded is cut off there.
pub const MAX_EXPANDED: usize = 1 << 16;

/// Bytes of the header that a SOCKS 5 proxy puts before a datagram with an IPv4 address.
pub const SOCKS: usize = 10;

/// Flags, sequence number and the extra header's length.
pub const HEADER: usize = 6;

/// Where the parts of a datagram lie, in bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Whether it begins with a SOCKS header.
    pub socks: bool,
    /// The flags.
    pub flags: u8,
    /// The sequence number.
    pub sequence: u32,
    /// Bytes of extra header behind the message number.
    pub extra: u8,
    /// First byte of the message number.
    pub body: usize,
    /// End of the message.
    pub end: usize,
    /// How many acknowledgements the last byte announces, if they cannot all be there.
    pub bad_acks: Option<u8>,
}

impl Packet {
    /// Finds the parts. `None` if the datagram is too short for a header and a message number (7
    /// bytes).
    pub fn parse(datagram: &[u8], socks: bool) -> Option<Packet> {
        let start = if socks { SOCKS } else { 0 };
        let (header, rest) = datagram.get(start..)?.split_first_chunk::<HEADER>()?;
        let [flags, a, b, c, d, extra] = *header;
        let (last, _) = rest.split_last()?;
        let body = start + HEADER;
        let mut packet = Packet {
            socks,
            flags,
            sequence: u32::from_be_bytes([a, b, c, d]),
            extra,
            body,
            end: datagram.len(),
            bad_acks: None,
        };
        if flags & ACK != 0 {
            // At least one byte must be left for the message.
            match rest.len().checked_sub(1 + 4 * usize::from(*last)) {
                Some(left) if left > 0 => packet.end = body + left,
                _ => packet.bad_acks = Some(*last),
            }
        }
        Some(packet)
    }

    /// Whether a flag is set.
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// The message as it lies in the datagram, zero-coded or not.
    pub fn coded<'a>(&self, datagram: &'a [u8]) -> &'a [u8] {
        datagram.get(self.body..self.end).unwrap_or(&[])
    }

    /// The appended acknowledgements, oldest first as they lie.
    pub fn acks<'a>(&self, datagram: &'a [u8]) -> impl Iterator<Item = u32> + use<'a> {
        let bytes = datagram.get(self.end..).unwrap_or(&[]);
        bytes.as_chunks::<4>().0.iter().map(|a| u32::from_be_bytes(*a))
    }
}

/// Whether a datagram begins with a SOCKS 5 header: two zeros, no fragment, an IPv4 address. A
/// datagram without flags and with a sequence number from 256 to 511 begins so too.
pub fn begins_as_socks(datagram: &[u8]) -> bool {
    datagram.starts_with(&[0, 0, 0, 1])
}

/// The number of a low-frequency message, counted as the template does, with all its bytes.
pub const fn low(number: u16) -> u32 {
    0xffff_0000 | number as u32
}

/// The result of expanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expansion {
    /// All of it was expanded.
    Whole,
    /// The last zero has no count, so it counts as one zero.
    NoCount,
    /// The content is longer than allowed, so the rest is left out.
    Limit,
}

/// Undoes zero coding, at most up to `limit` bytes: `00 n` are n zeros; each further `00` in place
/// of n adds 256.
pub fn expand(coded: &[u8], limit: usize, out: &mut Vec<u8>) -> Expansion {
    let mut rest = coded;
    while let Some(at) = memchr::memchr(0, rest) {
        let (plain, zeros) = rest.split_at(at);
        out.extend_from_slice(plain);
        let wraps = zeros.iter().skip(1).take_while(|b| **b == 0).count();
        let counted = zeros.get(1 + wraps);
        let run = match (counted, wraps) {
            (Some(n), _) => wraps * 256 + usize::from(*n),
            (None, 0) => 1,
            (None, _) => wraps * 256 + 1,
        };
        if out.len() + run > limit {
            out.resize(limit, 0);
            return Expansion::Limit;
        }
        out.resize(out.len() + run, 0);
        match counted {
            Some(_) => rest = zeros.get(wraps + 2..).unwrap_or(&[]),
            None => return Expansion::NoCount,
        }
    }
    out.extend_from_slice(rest);
    if out.len() > limit {
        out.truncate(limit);
        return Expansion::Limit;
    }
    Expansion::Whole
}

/// A message's number as all its bytes, most significant first, and how many bytes it has: one,
/// `FF` and one, `FF FF` and two. `None` if the bytes end within it.
pub fn number(message: &[u8]) -> Option<(u32, usize)> {
    match *message {
        [a, ..] if a != 0xff => Some((u32::from(a), 1)),
        [0xff, b, ..] if b != 0xff => Some((0xff00 | u32::from(b), 2)),
        [0xff, 0xff, c, d, ..] => Some((u32::from_be_bytes([0xff, 0xff, c, d]), 4)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn expanded(coded: &[u8]) -> (Vec<u8>, Expansion) {
        let mut out = Vec::new();
        let how = expand(coded, MAX_EXPANDED, &mut out);
        (out, how)
    }

    fn zeros(n: usize) -> Vec<u8> {
        vec![0; n]
    }

    #[test]
    fn every_form_of_zero_coding() {
        assert_eq!(expanded(&[1, 2]), (vec![1, 2], Expansion::Whole));
        assert_eq!(expanded(&[0xff, 0xff, 0, 1, 3]), (vec![0xff, 0xff, 0, 3], Expansion::Whole));
        assert_eq!(expanded(&[0, 255]), (zeros(255), Expansion::Whole));
        assert_eq!(expanded(&[0, 0, 1]), (zeros(257), Expansion::Whole));
        assert_eq!(expanded(&[0, 0, 0, 2]), (zeros(514), Expansion::Whole));
        assert_eq!(expanded(&[7, 0]), ([vec![7], zeros(1)].concat(), Expansion::NoCount));
        assert_eq!(expanded(&[0, 0]), (zeros(257), Expansion::NoCount));
    }

    #[test]
    fn what_expands_without_end_is_cut_off() {
        let (out, how) = expanded(&zeros(60_000));
        assert_eq!((out.len(), how), (MAX_EXPANDED, Expansion::Limit));
    }

    #[test]
    fn numbers_have_one_two_or_four_bytes() {
        assert_eq!(number(&[5]), Some((5, 1)));
        assert_eq!(number(&[0xff, 3]), Some((0xff03, 2)));
        assert_eq!(number(&[0xff, 0xff, 0, 3]), Some((0xffff_0003, 4)));
        assert_eq!(number(&[0xff, 0xff, 0xff, 0xfb]), Some((0xffff_fffb, 4)));
        for cut in [&[][..], &[0xff], &[0xff, 0xff], &[0xff, 0xff, 0]] {
            assert_eq!(number(cut), None);
        }
    }

    #[test]
    fn appended_acknowledgements_leave_a_byte_of_message() {
        let one = [ACK, 0, 0, 0, 9, 0, 2, 0, 0, 0, 5, 1];
        let packet = Packet::parse(&one, false).unwrap();
        assert_eq!((packet.body, packet.end, packet.bad_acks), (6, 7, None));
        assert_eq!(packet.acks(&one).collect::<Vec<_>>(), [5]);
        let none_left = Packet::parse(&[ACK, 0, 0, 0, 9, 0, 0], false).unwrap();
        assert_eq!((none_left.end, none_left.bad_acks), (7, Some(0)));
        assert_eq!(Packet::parse(&[0; 6], false), None);
    }
}
