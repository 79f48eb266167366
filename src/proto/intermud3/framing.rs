//! Finds packets in a stream. Each is a length of 4 bytes, most significant first, and that many
//! bytes of text.
//!
//! It knows lengths and the first bytes of a text, not its content. Mudmode text contains no NUL,
//! and a length of up to 2 MiB begins with one: this is how lost framing is found again.

use super::text::begins_value;
use crate::session::{CountsFrom, LengthField, LengthOrder, Unit};

/// The longest text that is reassembled: "new implementations should make sure to accept packets
/// upto 2mb in size".
pub(super) const MAX_TEXT: u32 = 2 << 20;

/// The bytes of a length.
pub(super) const PREFIX: usize = LENGTH.end();

/// The length of a packet's text, which follows it.
const LENGTH: LengthField = LengthField {
    at: 0,
    size: 4,
    order: LengthOrder::Big,
    unit: Unit::Bytes,
    counts: CountsFrom::BehindLength,
};

/// With this many bytes, it is plain whether a packet begins within the first four.
const LOOK: usize = 2 * PREFIX + 2;

/// What is at a place where a packet should begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketStep {
    /// A packet: its bytes, those of the length included.
    Packet(usize),
    /// Too few bytes: this many are needed from here on.
    Need(usize),
    /// A NUL that ends the packet before it, but is not in its length. The next packet begins
    /// behind it.
    StrayNul,
    /// A packet whose text is too long to be reassembled.
    TooLong(u32),
    /// No packet begins here. The number is the length that its first four bytes would give.
    Lost(u32),
}

/// The length at the start of some bytes.
pub(super) fn length(bytes: &[u8]) -> Option<u32> {
    LENGTH.read(bytes).and_then(|length| u32::try_from(length).ok())
}

/// What is at the start of `rest`. Texts longer than `most` are not reassembled. With `last`, no
/// more bytes follow `rest`.
pub(super) fn step(rest: &[u8], most: usize, last: bool) -> PacketStep {
    let Some(length) = length(rest) else {
        return PacketStep::Need(PREFIX);
    };
    let first = rest.get(PREFIX).copied();
    let plain = first.is_some_and(begins_value);
    if !plain || length > MAX_TEXT {
        let look = if length > MAX_TEXT { LOOK } else { 8 };
        if rest.len() < look && !last && !(4..=MAX_TEXT).contains(&length) {
            return PacketStep::Need(look);
        }
        if rest.first() == Some(&0) && opens(rest.get(1..).unwrap_or(&[])) {
            return PacketStep::StrayNul;
        }
        if (0..PREFIX).any(|i| rest.get(i..).is_some_and(|r| r.starts_with(b"({\""))) {
            return PacketStep::Lost(length);
        }
    }
    if length > MAX_TEXT {
        let text = rest.get(PREFIX..).unwrap_or(&[]);
        return if length < 1 << 28 && text.starts_with(b"({") {
            PacketStep::TooLong(length)
        } else {
            PacketStep::Lost(length)
        };
    }
    if length as usize > most {
        return if first.is_none() && !last {
            PacketStep::Need(PREFIX + 1)
        } else {
            PacketStep::TooLong(length)
        };
    }
    let whole = PREFIX + length as usize;
    if rest.len() < whole { PacketStep::Need(whole) } else { PacketStep::Packet(whole) }
}

/// Whether a packet plainly begins here: one with an array whose first element is a text.
pub(super) fn begins(bytes: &[u8]) -> bool {
    length(bytes).is_some_and(|n| (5..=MAX_TEXT).contains(&n))
        && bytes.get(PREFIX..).is_some_and(|text| text.starts_with(b"({\""))
}

/// Whether an array or a mapping that begins with a text may begin here.
fn opens(bytes: &[u8]) -> bool {
    let text = bytes.get(PREFIX..).unwrap_or(&[]);
    length(bytes).is_some_and(|n| (5..=MAX_TEXT).contains(&n))
        && (text.starts_with(b"({\"") || text.starts_with(b"([\""))
}

/// Where the next packet plainly begins.
pub(super) fn find(bytes: &[u8]) -> Option<usize> {
    memchr::memmem::find_iter(bytes, b"({\"")
        .filter_map(|at| at.checked_sub(PREFIX))
        .find(|at| bytes.get(*at..).is_some_and(begins))
}

/// How many of the last bytes may belong to the incomplete start of a packet.
pub(super) const KEEP: usize = PREFIX + 2;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_length_says_where_a_packet_ends() {
        assert_eq!(step(b"\0\0", usize::MAX, false), PacketStep::Need(4));
        assert_eq!(step(b"\0\0\0\x05({", usize::MAX, false), PacketStep::Need(9));
        assert_eq!(step(b"\0\0\0\x05({})\0more", usize::MAX, false), PacketStep::Packet(9));
        assert_eq!(step(b"\0\0\0\x04123\0", usize::MAX, false), PacketStep::Packet(8));
    }

    #[test]
    fn two_mebibytes_are_the_most() {
        assert_eq!(
            step(b"\0\x20\0\0({\"x", usize::MAX, false),
            PacketStep::Need(PREFIX + (2 << 20))
        );
        assert_eq!(
            step(b"\0\x20\0\x01({\"xyz", usize::MAX, false),
            PacketStep::TooLong((2 << 20) + 1)
        );
        assert_eq!(
            step(b"GET / HTTP", usize::MAX, false),
            PacketStep::Lost(u32::from_be_bytes(*b"GET "))
        );
    }

    #[test]
    fn a_nul_that_was_not_counted_is_told_from_an_empty_packet() {
        assert_eq!(step(b"\0\0\0\0", usize::MAX, false), PacketStep::Need(8));
        assert_eq!(step(b"\0\0\0\0\x44({\"tell", usize::MAX, false), PacketStep::StrayNul);
        assert_eq!(step(b"\0\0\0\x01\x44({\"tell", usize::MAX, false), PacketStep::StrayNul);
        assert_eq!(step(b"\0\0\0\0\0\0\0\x44({\"", usize::MAX, false), PacketStep::Packet(4));
        assert_eq!(step(b"\0\0\0\0", usize::MAX, true), PacketStep::Packet(4));
    }

    #[test]
    fn framing_is_found_again_by_a_length_and_a_bracket() {
        assert_eq!(find(b"ell\",5,({\"a\",})\0\0\0\0\x09({\"tell\",})"), Some(16));
        assert_eq!(find(b"chan({\"tell\",})"), None);
        assert!(matches!(step(b"\0\0\x44({\"tell\"", usize::MAX, false), PacketStep::Lost(_)));
    }
}
