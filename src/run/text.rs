//! Texts of records on their way to the output, and the bound on their size (`--max-output`):
//! beyond it, messages with very much text are printed without their fields.
//!
//! The bound grows with the bytes of the messages, so a long capture is printed completely, but a
//! message of a few bytes with megabytes of text is not. Whether a message is shortened depends
//! only on the records before it, not on threads or time. This file knows lengths, and no format.

use std::io::{self, Write};

use super::writer::RecordWriter;
use crate::print::PrintedTime;
use crate::record::{Body, Record};

/// Only a record with more bytes of text than this may be shortened.
const HEAVY: u64 = 16 << 10;
/// Bytes of text allowed for each byte of a message. Captures of real programs need at most about
/// 60, with spans.
const RATIO: u64 = 256;
/// The most bytes of text of one message, in any case.
const LARGEST: u64 = 64 << 20;

/// The most bytes of text of one message, if `--max-output` allows `allowed`.
pub(super) fn most_text(allowed: Option<u64>) -> usize {
    allowed.map_or(usize::MAX, |_| LARGEST as usize)
}

/// Text of some records, in order.
#[derive(Default)]
pub(super) struct Text {
    bytes: Vec<u8>,
    shortenable: Vec<ShortenableRecord>,
    /// Bytes of the messages in it.
    wire: u64,
}

/// A record that may be printed without its fields.
struct ShortenableRecord {
    /// Where its text begins and ends.
    start: usize,
    end: usize,
    /// The length of its text. If the text was too long to be made, a lower bound.
    length: u64,
    /// Its text without fields.
    short: Vec<u8>,
    /// Bytes of the messages up to this one, within the text.
    wire: u64,
}

/// The text allowed, and the text used.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    /// Bytes allowed beyond [`RATIO`] for each byte of a message. `None` if everything is printed.
    allowed: Option<u64>,
    printed: u64,
    wire: u64,
    shortened: u64,
}

impl Text {
    /// Appends a record with at most `most` bytes of text.
    pub(super) fn record(
        &mut self,
        writer: &mut RecordWriter,
        record: &Record<'_>,
        time: PrintedTime,
        most: usize,
    ) {
        let start = self.bytes.len();
        let whole = writer.record(record, time, most, &mut self.bytes);
        if !whole {
            self.bytes.truncate(start);
        }
        let Body::Message { message, .. } = &record.body else { return };
        self.wire += message.bytes.len() as u64;
        let end = self.bytes.len();
        let length = if whole { (end - start) as u64 } else { LARGEST + 1 };
        if length > HEAVY {
            let mut short = Vec::new();
            writer.shortened(record, &mut short);
            self.shortenable.push(ShortenableRecord { start, end, length, short, wire: self.wire });
        }
    }

    /// Lets something append bytes that are no records.
    pub(super) fn extend(&mut self, append: impl FnOnce(&mut Vec<u8>)) {
        append(&mut self.bytes);
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is nothing to write, no record without its fields either.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.shortenable.is_empty()
    }

    /// Empties it, and keeps at most `keep` bytes allocated.
    pub(super) fn clear(&mut self, keep: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(keep);
        self.shortenable.clear();
        self.wire = 0;
    }
}

impl Meter {
    /// Allows `allowed` bytes of text beyond what the bytes of messages allow. `None` prints
    /// everything.
    pub(super) fn new(allowed: Option<u64>) -> Meter {
        Meter { allowed, printed: 0, wire: 0, shortened: 0 }
    }

    /// How many messages were printed without their fields.
    pub(super) fn shortened(&self) -> u64 {
        self.shortened
    }

    /// Writes a text. Texts come in the order of their records.
    ///
    /// # Errors
    /// If the disk is full, or the reader has closed the pipe.
    pub(super) fn write(&mut self, text: &Text, to: &mut impl Write) -> io::Result<()> {
        let mut from = 0;
        for record in &text.shortenable {
            self.printed += (record.start - from) as u64;
            to.write_all(text.bytes.get(from..record.start).unwrap_or_default())?;
            let part = if self.is_too_much(record.length, record.wire) {
                self.shortened += 1;
                &record.short
            } else {
                text.bytes.get(record.start..record.end).unwrap_or_default()
            };
            to.write_all(part)?;
            self.printed += part.len() as u64;
            from = record.end;
        }
        let rest = text.bytes.get(from..).unwrap_or_default();
        self.printed += rest.len() as u64;
        to.write_all(rest)?;
        self.wire += text.wire;
        to.flush()
    }

    /// Whether a message's text is more than is allowed when `wire` more bytes of messages have
    /// come.
    fn is_too_much(&self, length: u64, wire: u64) -> bool {
        let within = |allowed: u64| {
            self.printed + length
                <= allowed.saturating_add((self.wire + wire).saturating_mul(RATIO))
        };
        self.allowed.is_some_and(|allowed| length > LARGEST || !within(allowed))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    /// A text of small records and one large message of `wire` bytes between them.
    fn text(before: &str, large: usize, wire: u64) -> Text {
        let start = before.len();
        let end = start + large;
        let length = large as u64;
        let bytes = [before.as_bytes(), &vec![b'x'; large], b"after\n"].concat();
        let short = b"short\n".to_vec();
        Text {
            bytes,
            shortenable: vec![ShortenableRecord { start, end, length, short, wire }],
            wire,
        }
    }

    fn written(meter: &mut Meter, text: &Text) -> usize {
        let mut to = Vec::new();
        meter.write(text, &mut to).unwrap();
        assert!(to.ends_with(b"after\n"));
        to.len()
    }

    #[test]
    fn a_large_message_is_shortened_where_too_much_was_printed() {
        let mut meter = Meter::new(Some(100_000));
        let own = "before\n".len() + "after\n".len();
        assert_eq!(written(&mut meter, &text("before\n", 60_000, 10)), 60_000 + own);
        assert_eq!(written(&mut meter, &text("before\n", 60_000, 10)), "short\n".len() + own);
        // The bytes of messages allow more text.
        assert_eq!(written(&mut meter, &text("before\n", 60_000, 200)), 60_000 + own);
        assert_eq!(meter.shortened(), 1);
    }

    #[test]
    fn without_a_bound_everything_is_printed() {
        let mut meter = Meter::new(None);
        (0..10).for_each(|_| assert_eq!(written(&mut meter, &text("", 1 << 20, 1)), (1 << 20) + 6));
        assert_eq!(meter.shortened(), 0);
    }
}
