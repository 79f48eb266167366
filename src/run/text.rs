//! Texts of records on their way to the output, and the bound on their size (`--max-output`):
//! beyond it, messages with very much text are printed without their fields.
//!
//! The bound grows with the bytes of the messages, so a long capture is printed completely, but a
//! message of a few bytes with megabytes of text is not. Whether a message is shortened depends
//! only on the records before it, not on threads or time. This file knows lengths, and no format.

use std::io::{self, Write};

use super::writer::RecordWriter;
use crate::out::tree::Annotations;
use crate::out::{Body, Record};

/// Only a record with more bytes of text than this may be shortened.
const HEAVY: u64 = 16 << 10;
/// Bytes of text allowed for each byte of a message. Captures of real programs need at most about
/// 60, with spans.
const RATIO: u64 = 256;
/// The most bytes of text of one message, in any case.
const LARGEST: u64 = 64 << 20;
/// A piece of text with so many bytes gets no more records, and so many more bytes are allocated
/// for it: most records fit.
const PIECE: usize = 64 << 10;
const PIECE_ROOM: usize = 16 << 10;

/// The most bytes of text of one message, if `--max-output` allows `allowed`.
pub(super) fn most_text(allowed: Option<u64>) -> usize {
    allowed.map_or(usize::MAX, |_| LARGEST as usize)
}

/// Text of some records, in order. It is in pieces, so that a long text is neither moved while it
/// grows nor allocated anew after it was written.
#[derive(Default)]
pub(super) struct Text {
    /// The used pieces, and behind them empty ones. The last used one gets the next record.
    pieces: Vec<TextPiece>,
    used: usize,
    /// Bytes of text in all pieces.
    length: usize,
    /// Bytes of the messages in it.
    wire: u64,
}

/// Text of whole records.
#[derive(Default)]
struct TextPiece {
    bytes: Vec<u8>,
    shortenable: Vec<ShortenableRecord>,
}

/// A record that may be printed without its fields.
struct ShortenableRecord {
    /// Where its text begins and ends in the piece.
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
        annotations: Annotations<'_>,
        most: usize,
    ) {
        let TextPiece { bytes, shortenable } = Self::last(&mut self.pieces, &mut self.used);
        let start = bytes.len();
        let whole = writer.record(record, annotations, most, bytes);
        if !whole {
            bytes.truncate(start);
        }
        let appended = bytes.len() - start;
        self.length += appended;
        let Body::Message { message, .. } = &record.body else { return };
        self.wire += message.bytes.len() as u64;
        let length = if whole { appended as u64 } else { LARGEST + 1 };
        if length > HEAVY {
            let mut short = Vec::new();
            writer.shortened(record, &mut short);
            shortenable.push(ShortenableRecord {
                start,
                end: bytes.len(),
                length,
                short,
                wire: self.wire,
            });
        }
    }

    /// Lets something append bytes that are no records.
    pub(super) fn extend(&mut self, append: impl FnOnce(&mut Vec<u8>)) {
        let bytes = &mut Self::last(&mut self.pieces, &mut self.used).bytes;
        let before = bytes.len();
        append(bytes);
        self.length += bytes.len() - before;
    }

    /// The piece that gets the next record.
    #[allow(clippy::indexing_slicing)] // it is there
    fn last<'p>(pieces: &'p mut Vec<TextPiece>, used: &mut usize) -> &'p mut TextPiece {
        let full = used
            .checked_sub(1)
            .and_then(|last| pieces.get(last))
            .is_none_or(|last| last.bytes.len() >= PIECE);
        if full {
            *used += 1;
            if pieces.len() < *used {
                pieces.push(TextPiece {
                    bytes: Vec::with_capacity(PIECE + PIECE_ROOM),
                    shortenable: Vec::new(),
                });
            }
        }
        &mut pieces[*used - 1]
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Bytes that are allocated for it.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.pieces.iter().map(|piece| piece.bytes.capacity()).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Empties it, and keeps at most `keep` bytes allocated.
    pub(super) fn clear(&mut self, keep: usize) {
        let mut left = keep;
        self.pieces.retain_mut(|piece| {
            piece.bytes.clear();
            piece.shortenable.clear();
            let fits = piece.bytes.capacity() <= left;
            left -= if fits { piece.bytes.capacity() } else { 0 };
            fits
        });
        (self.used, self.length, self.wire) = (0, 0, 0);
    }
}

impl From<Vec<u8>> for Text {
    fn from(bytes: Vec<u8>) -> Text {
        let length = bytes.len();
        Text {
            pieces: vec![TextPiece { bytes, shortenable: Vec::new() }],
            used: 1,
            length,
            wire: 0,
        }
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
        for piece in text.pieces.iter().take(text.used) {
            self.write_piece(piece, to)?;
        }
        self.wire += text.wire;
        to.flush()
    }

    fn write_piece(&mut self, piece: &TextPiece, to: &mut impl Write) -> io::Result<()> {
        let mut from = 0;
        for record in &piece.shortenable {
            self.printed += (record.start - from) as u64;
            to.write_all(piece.bytes.get(from..record.start).unwrap_or_default())?;
            let part = if self.is_too_much(record.length, record.wire) {
                self.shortened += 1;
                &record.short
            } else {
                piece.bytes.get(record.start..record.end).unwrap_or_default()
            };
            to.write_all(part)?;
            self.printed += part.len() as u64;
            from = record.end;
        }
        let rest = piece.bytes.get(from..).unwrap_or_default();
        self.printed += rest.len() as u64;
        to.write_all(rest)
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
        let mut text = Text::from(before.as_bytes().to_vec());
        let start = text.len();
        text.extend(|bytes| bytes.resize(start + large, b'x'));
        text.wire = wire;
        text.pieces[0].shortenable.push(ShortenableRecord {
            start,
            end: start + large,
            length: large as u64,
            short: b"short\n".to_vec(),
            wire,
        });
        text.extend(|bytes| bytes.extend(b"after\n"));
        text
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

    #[test]
    fn a_long_text_is_in_pieces_that_are_used_again() {
        let lines: Vec<String> =
            (0..10_000).map(|n| format!("line {n} of a long text\n")).collect();
        let mut text = Text::default();
        for keep in [usize::MAX, 3 * PIECE, 0] {
            lines
                .iter()
                .for_each(|line| text.extend(|bytes| bytes.extend_from_slice(line.as_bytes())));
            let mut to = Vec::new();
            Meter::new(None).write(&text, &mut to).unwrap();
            assert_eq!(String::from_utf8(to).unwrap(), lines.concat());
            assert_eq!((text.len(), text.used), (lines.concat().len(), 4));
            assert!(text.capacity() <= 4 * (PIECE + PIECE_ROOM), "no piece was allocated anew");
            text.clear(keep);
            assert!(text.is_empty() && text.capacity() <= keep);
        }
    }
}
