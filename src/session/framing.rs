//! Framing: how messages follow each other, as a table or a protocol's code declares it, and where
//! the first message in some bytes ends.
//!
//! It knows positions and lengths, nothing of what is in a message, and keeps nothing between
//! calls.

use crate::table::{Service, ServiceFrame};

/// How messages follow each other in a stream or in a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Framing {
    /// The message's own layout in the tables says where it ends.
    Layout,
    /// A number among its first bytes says how long it is.
    Length(LengthField),
    /// These bytes end it, and belong to it.
    Delimiter(Vec<u8>),
    /// Every message has this many bytes.
    Fixed(usize),
    /// A datagram is one message. In a stream, the message ends with the stream.
    Whole,
    /// The bytes belong to another protocol, and no message is looked for.
    LeftAlone,
}

/// A number among the first bytes of a message that says how long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthField {
    /// How many bytes come before it.
    pub at: usize,
    /// How many bytes it has, 8 at most.
    pub size: usize,
    /// Its byte order.
    pub order: LengthOrder,
    /// The unit it counts.
    pub unit: Unit,
    /// The first byte it counts.
    pub counts: CountsFrom,
}

/// The order of a number's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LengthOrder {
    /// The most significant byte first.
    Big,
    /// The least significant byte first.
    Little,
}

/// The unit that a length counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Bits. A message that ends within a byte takes all of that byte.
    Bits,
}

/// The first byte that a length counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountsFrom {
    /// The message's first byte.
    Start,
    /// The byte behind the length.
    BehindLength,
}

/// Where the first message in some bytes ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The length is not known yet: this many bytes are needed, more than there are.
    Need(usize),
    /// The length of the message in bytes. It may be more than there are.
    Bytes(usize),
    /// The message states this length, which is shorter than any message can be.
    Impossible(u64),
    /// Only the layout in the tables tells.
    ByLayout,
}

impl LengthField {
    /// The length field at the start of a message. `None` if there are too few bytes.
    pub fn read(&self, bytes: &[u8]) -> Option<u64> {
        let field = bytes.get(self.at..self.at.checked_add(self.size)?)?;
        let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        Some(match self.order {
            LengthOrder::Big => field.iter().fold(0, add),
            LengthOrder::Little => field.iter().rev().fold(0, add),
        })
    }

    /// Bytes of a message up to the end of its length.
    pub const fn end(&self) -> usize {
        self.at + self.size
    }

    /// Where a message ends whose length is `value`.
    pub fn extent(&self, value: u64) -> Extent {
        let counted = match self.unit {
            Unit::Bytes => value,
            Unit::Bits => value.div_ceil(8),
        };
        let bytes = match self.counts {
            CountsFrom::Start => counted,
            CountsFrom::BehindLength => counted.saturating_add(self.end() as u64),
        };
        match usize::try_from(bytes) {
            Ok(bytes) if bytes >= self.end() => Extent::Bytes(bytes),
            Ok(_) => Extent::Impossible(value),
            Err(_) => Extent::Bytes(usize::MAX),
        }
    }
}

impl Framing {
    /// The framing that the tables declare for a service.
    pub fn of(service: &Service) -> Framing {
        match &service.framing.frame {
            ServiceFrame::Layout => Framing::Layout,
            ServiceFrame::Ends(end) => Framing::Delimiter(end.clone()),
            ServiceFrame::Fixed(bytes) => Framing::Fixed(*bytes as usize),
            ServiceFrame::Whole => Framing::Whole,
        }
    }

    /// How many bytes at a message's end belong to no field: those of a delimiter.
    pub fn behind(&self) -> usize {
        match self {
            Framing::Delimiter(end) => end.len(),
            _ => 0,
        }
    }

    /// Where the first message in `bytes` ends. An earlier call found no end in the first
    /// `searched` bytes.
    ///
    /// ```
    /// use moulsniff::session::{LengthOrder, CountsFrom, Extent, Framing, LengthField, Unit};
    ///
    /// let length = LengthField {
    ///     at: 2,
    ///     size: 2,
    ///     order: LengthOrder::Big,
    ///     unit: Unit::Bytes,
    ///     counts: CountsFrom::BehindLength,
    /// };
    /// let framing = Framing::Length(length);
    /// assert_eq!(framing.extent(&[1, 0, 0], 0), Extent::Need(4));
    /// assert_eq!(framing.extent(&[1, 0, 0, 5], 0), Extent::Bytes(9));
    ///
    /// let lines = Framing::Delimiter(b"\r\n".to_vec());
    /// assert_eq!(lines.extent(b"PING\r\nPO", 0), Extent::Bytes(6));
    /// assert_eq!(lines.extent(b"PO", 0), Extent::Need(3));
    /// ```
    pub fn extent(&self, bytes: &[u8], searched: usize) -> Extent {
        match self {
            Framing::Layout => Extent::ByLayout,
            Framing::Length(field) => match field.read(bytes) {
                Some(value) => field.extent(value),
                None => Extent::Need(field.end()),
            },
            Framing::Delimiter(end) => {
                // The delimiter may begin within the searched bytes and end behind them.
                let from = searched.saturating_sub(end.len().saturating_sub(1)).min(bytes.len());
                let found = memchr::memmem::find(bytes.get(from..).unwrap_or(&[]), end);
                match found.filter(|_| !end.is_empty()) {
                    Some(at) => Extent::Bytes(from + at + end.len()),
                    None => Extent::Need(bytes.len() + 1),
                }
            }
            Framing::Fixed(0) => Extent::Impossible(0),
            Framing::Fixed(bytes) => Extent::Bytes(*bytes),
            Framing::Whole | Framing::LeftAlone => Extent::Bytes(bytes.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELD: LengthField = LengthField {
        at: 1,
        size: 3,
        order: LengthOrder::Little,
        unit: Unit::Bits,
        counts: CountsFrom::Start,
    };

    #[test]
    fn a_length_in_bits_takes_whole_bytes() {
        assert_eq!(FIELD.extent(33), Extent::Bytes(5));
        assert_eq!(FIELD.extent(32), Extent::Bytes(4));
        assert_eq!(FIELD.read(&[9, 1, 2, 0, 7]), Some(0x201));
    }

    #[test]
    fn a_message_is_not_shorter_than_what_states_its_length() {
        assert_eq!(FIELD.extent(24), Extent::Impossible(24));
        let behind = LengthField { counts: CountsFrom::BehindLength, ..FIELD };
        assert_eq!(behind.extent(0), Extent::Bytes(4));
        let huge = LengthField { size: 8, unit: Unit::Bytes, ..behind };
        assert_eq!(huge.extent(u64::MAX), Extent::Bytes(usize::MAX));
    }

    #[test]
    fn a_delimiter_is_found_across_the_end_of_what_was_searched() {
        let framing = Framing::Delimiter(b"\r\n".to_vec());
        assert_eq!(framing.extent(b"abc\r\n", 4), Extent::Bytes(5));
        assert_eq!(Framing::Delimiter(Vec::new()).extent(b"abc", 0), Extent::Need(4));
    }
}
