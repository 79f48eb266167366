//! The plaintext of one stream: as a hex dump with the messages' names, as text, or as the bytes
//! alone.
//!
//! [`Follow`] takes plaintext and records in order, and collects the [`FollowPieces`] that they
//! are. A [`PieceWriter`] turns these into text, on any thread. Neither knows a file.

mod dump;
mod pieces;

use std::borrow::Cow;

pub use pieces::{FollowPieces, PieceWriter};

use super::paint::Marks;
use crate::capture::Moment;
use crate::record::{Body, Record, event_word};
use crate::session::{Event, EventKind, Message, Side};
use crate::tree::{Buffer, Tree};
use pieces::{PieceHead, PieceKind};

/// How plaintext is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FollowFormat {
    /// Offsets, bytes and text, with the messages' names.
    #[default]
    Hex,
    /// Text, with dots for bytes that are none.
    Text,
    /// The bytes alone.
    Raw,
    /// One JSON object for each piece, its bytes as hex.
    JsonHex,
    /// One JSON object for each piece, its bytes as text, with dots for all other bytes.
    JsonText,
}

impl FollowFormat {
    /// Whether pieces are separated and named by their messages.
    fn has_pieces(self) -> bool {
        !matches!(self, FollowFormat::Text | FollowFormat::Raw)
    }

    fn is_json(self) -> bool {
        matches!(self, FollowFormat::JsonHex | FollowFormat::JsonText)
    }
}

/// Plaintext of one side that waits for the record with its name.
#[derive(Default)]
struct Pending {
    offset: u64,
    bytes: Vec<u8>,
}

/// More plaintext than this does not wait: a message that long is named after its bytes.
const MAX_PENDING: usize = 16 << 20;
/// Bytes that remain allocated for the next plaintext.
const KEEP_PENDING: usize = 4 << 10;

/// Divides a stream's plaintext into pieces.
#[derive(Default)]
pub struct Follow {
    format: FollowFormat,
    /// Only this side.
    side: Option<Side>,
    /// Plaintext is written only for records that the filter kept.
    filtered: bool,
    /// Whether to overwrite bytes that tables mark as secret.
    redact: bool,
    /// Of each side, plaintext whose record is still to come, and the offset of its first byte.
    pending: [Pending; 2],
    /// Bytes that were never captured.
    pub lost: u64,
    marks: Marks,
    /// The frame of the latest record.
    at: Moment,
}

impl Follow {
    /// Nothing followed yet. With `filtered`, only the messages handed on are written, else all
    /// plaintext.
    pub fn new(format: FollowFormat, side: Option<Side>, filtered: bool) -> Follow {
        Follow { format, side, filtered, ..Follow::default() }
    }

    /// Writes these marks.
    pub fn marked(self, marks: Marks) -> Follow {
        Follow { marks, ..self }
    }

    /// With `redact`, overwrites secrets with `*`. Only messages are written then, because other
    /// bytes may hold any secret.
    pub fn redacted(self, redact: bool) -> Follow {
        Follow { redact, filtered: self.filtered || redact, ..self }
    }

    /// What writes the pieces.
    pub fn writer(&self) -> PieceWriter {
        PieceWriter::new(self.format, self.marks)
    }

    /// Plaintext of a direction.
    pub fn plaintext(&mut self, from: Side, offset: u64, bytes: &[u8], out: &mut FollowPieces) {
        if self.filtered || !self.wants(from) {
            return;
        }
        if !self.format.has_pieces() {
            return out.push(self.head(from, offset, PieceKind::Bytes), bytes, "");
        }
        let goes_on = self
            .pending
            .get(from.index())
            .is_some_and(|p| p.end() == offset && p.bytes.len() < MAX_PENDING);
        if !goes_on {
            self.flush(from, out);
        }
        if let Some(pending) = self.pending.get_mut(from.index()) {
            if pending.bytes.is_empty() {
                pending.offset = offset;
            }
            pending.bytes.extend_from_slice(bytes);
        }
    }

    /// A record of the stream; a message's comes after its plaintext.
    pub fn record(&mut self, record: &Record<'_>, out: &mut FollowPieces) {
        match &record.body {
            Body::Message { message, tree, .. } => self.message(record, message, tree, out),
            Body::Event(event) => self.event(record, event, out),
            Body::StreamEnd { .. } if self.wants(record.from) => self.at = record.at,
            Body::StreamEnd { .. } => {}
        }
    }

    fn message(
        &mut self,
        record: &Record<'_>,
        message: &Message<'_>,
        tree: &Tree,
        out: &mut FollowPieces,
    ) {
        let Message { from, offset, bytes, .. } = *message;
        if !self.wants(from) {
            return;
        }
        self.at = record.at;
        if !self.format.has_pieces() {
            if self.filtered {
                out.push(self.head(from, offset, PieceKind::Bytes), &self.shown(bytes, tree), "");
            }
            return;
        }
        // The bytes before the message belong to no message.
        self.take(from, offset, PieceKind::Nameless, "", out);
        let kind = PieceKind::Message { record: record.number };
        let name = message.name.raw();
        if self.filtered {
            return out.push(self.head(from, offset, kind), &self.shown(bytes, tree), name);
        }
        self.take(from, offset.saturating_add(bytes.len() as u64), kind, name, out);
    }

    fn event(&mut self, record: &Record<'_>, event: &Event, out: &mut FollowPieces) {
        let from = record.from;
        if !self.wants(from) {
            return;
        }
        self.at = record.at;
        if event.kind == EventKind::Gap {
            self.lost += event.length.unwrap_or(0);
        }
        if self.format.has_pieces() {
            self.flush(from, out);
            let place = event.offset.zip(event.length);
            let kind =
                PieceKind::Event { record: record.number, word: event_word(&record.body), place };
            out.push(self.head(from, 0, kind), &[], &event.text);
        }
    }

    /// Writes plaintext without a record.
    pub fn finish(&mut self, out: &mut FollowPieces) {
        self.flush(Side::Client, out);
        self.flush(Side::Server, out);
    }

    fn flush(&mut self, from: Side, out: &mut FollowPieces) {
        self.take(from, u64::MAX, PieceKind::Nameless, "", out);
    }

    /// Moves the plaintext of a side up to an offset to the pieces. Without a name, no piece is
    /// made of no bytes.
    fn take(
        &mut self,
        from: Side,
        until: u64,
        kind: PieceKind,
        name: &str,
        out: &mut FollowPieces,
    ) {
        let head = self.head(from, 0, kind);
        let Some(pending) = self.pending.get_mut(from.index()) else { return };
        let count = usize::try_from(until.saturating_sub(pending.offset)).unwrap_or(usize::MAX);
        let offset = pending.offset;
        let count = count.min(pending.bytes.len());
        if count > 0 || kind != PieceKind::Nameless {
            out.push(
                PieceHead { offset, ..head },
                pending.bytes.get(..count).unwrap_or_default(),
                name,
            );
        }
        pending.bytes.drain(..count);
        // Thousands of directions may be open.
        pending.bytes.shrink_to(KEEP_PENDING);
        pending.offset = offset.saturating_add(count as u64);
    }

    fn head(&self, from: Side, offset: u64, kind: PieceKind) -> PieceHead {
        PieceHead { at: self.at, from, offset, kind }
    }

    fn wants(&self, from: Side) -> bool {
        self.side.is_none_or(|side| side == from)
    }

    /// A message's bytes as they may be shown.
    fn shown<'a>(&self, bytes: &'a [u8], tree: &Tree) -> Cow<'a, [u8]> {
        let mut shown = Cow::Borrowed(bytes);
        if !self.redact {
            return shown;
        }
        for (from, to) in tree.secrets(Buffer::CAPTURED) {
            let to = to.min(bytes.len());
            shown.to_mut().get_mut(from..to).into_iter().flatten().for_each(|byte| *byte = b'*');
        }
        shown
    }
}

impl Pending {
    /// The offset behind its last byte.
    fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plaintext_that_no_record_names_is_written_too() {
        let mut follow = Follow::new(FollowFormat::Hex, Some(Side::Client), false);
        let mut pieces = FollowPieces::default();
        let mut out = Vec::new();
        follow.plaintext(Side::Client, 0, b"ab", &mut pieces);
        follow.plaintext(Side::Server, 0, b"not asked for", &mut pieces);
        follow.finish(&mut pieces);
        follow.writer().write(&pieces, &mut out);
        let text = String::from_utf8_lossy(&out);
        assert!(text.starts_with("── client ▸ server  2 bytes at 0\n00000000  61 62 "), "{text}");
        assert!(!text.contains("not"));
    }
}
