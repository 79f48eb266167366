//! The plaintext of one stream: as a hex dump with the messages' names, as text, or as the bytes alone.
//!
//! It takes plaintext and records in order, and appends their text to a buffer; it knows no file.

use std::borrow::Cow;
use std::io::Write;

use super::clock::format_time;
use super::json;
use super::paint::Marks;
use crate::capture::Moment;
use crate::captured::{Captured, Escaped};
use crate::digits::{append_hex, hex_block, hex_pair};
use crate::proto::{Event, EventKind, Message, Side};
use crate::record::{Body, Outlined, Record, event_word};
use crate::tree::{Buffer, Tree};

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

/// Consecutive bytes of one side.
struct FollowPiece<'a> {
    from: Side,
    offset: u64,
    bytes: &'a [u8],
    /// The message that they are, and its record.
    message: Option<(Captured<'a>, u64)>,
}

/// Plaintext of one side that waits for the record with its name.
#[derive(Default)]
struct Pending {
    offset: u64,
    bytes: Vec<u8>,
}

/// More plaintext than this does not wait: a message that long is named after its bytes.
const MAX_PENDING: usize = 16 << 20;

/// Writes a stream's plaintext.
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
    /// Nothing followed yet. With `filtered`, only the messages handed on are written, else all plaintext.
    pub fn new(format: FollowFormat, side: Option<Side>, filtered: bool) -> Follow {
        Follow { format, side, filtered, ..Follow::default() }
    }

    /// Writes these marks.
    pub fn marked(self, marks: Marks) -> Follow {
        Follow { marks, ..self }
    }

    /// With `redact`, overwrites secrets with `*`. Only messages are written then, because other bytes may hold any secret.
    pub fn redacted(self, redact: bool) -> Follow {
        Follow { redact, filtered: self.filtered || redact, ..self }
    }

    /// Plaintext of a direction.
    pub fn plaintext(&mut self, from: Side, offset: u64, bytes: &[u8], out: &mut Vec<u8>) {
        if self.filtered || !self.wants(from) {
            return;
        }
        if !self.format.has_pieces() {
            return self.bytes(offset, bytes, out);
        }
        let goes_on = self.pending.get(from.index()).is_some_and(|p| p.end() == offset && p.bytes.len() < MAX_PENDING);
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
    pub fn record(&mut self, record: &Record<'_>, out: &mut Vec<u8>) {
        match &record.body {
            Body::Message { message, tree, .. } => self.message(record, message, Some(tree), out),
            Body::Event(event) => self.event(record, event, out),
            Body::StreamEnd { .. } if self.wants(record.from) => self.at = record.at,
            Body::StreamEnd { .. } => {}
        }
    }

    /// Whether outlines of messages are enough. Which bytes are secret only a tree tells.
    pub fn wants_outlines(&self) -> bool {
        !self.redact
    }

    /// The same as [`record`](Follow::record) for a message of which only the outline was read.
    pub fn outline(&mut self, record: &Record<'_, Outlined<'_>>, out: &mut Vec<u8>) {
        self.message(record, record.body.message, None, out);
    }

    fn message<B>(&mut self, record: &Record<'_, B>, message: &Message<'_>, tree: Option<&Tree>, out: &mut Vec<u8>) {
        let Message { from, offset, bytes, .. } = *message;
        if !self.wants(from) {
            return;
        }
        self.at = record.at;
        if !self.format.has_pieces() {
            if self.filtered {
                self.bytes(offset, &self.shown(bytes, tree), out);
            }
            return;
        }
        // The bytes before the message belong to no message.
        let before = self.take(from, offset);
        self.nameless(from, before, out);
        let message = Some((message.name, record.number));
        if self.filtered {
            let bytes = &self.shown(bytes, tree);
            return self.piece(FollowPiece { from, offset, bytes, message }, out);
        }
        let own = self.take(from, offset.saturating_add(bytes.len() as u64));
        self.piece(FollowPiece { from, offset: own.offset, bytes: &own.bytes, message }, out);
    }

    fn event(&mut self, record: &Record<'_>, event: &Event, out: &mut Vec<u8>) {
        if !self.wants(record.from) {
            return;
        }
        self.at = record.at;
        if event.kind == EventKind::Gap {
            self.lost += event.length.unwrap_or(0);
        }
        if self.format.has_pieces() {
            self.flush(record.from, out);
        }
        if self.format.is_json() {
            self.json_event(record, event, out);
        } else if self.format == FollowFormat::Hex {
            let _ = writeln!(out, "{}{}  {}", self.marks.rule, record.from.word(), Escaped(&event.text));
        }
    }

    /// Writes plaintext without a record.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.flush(Side::Client, out);
        self.flush(Side::Server, out);
    }

    fn flush(&mut self, from: Side, out: &mut Vec<u8>) {
        let all = self.take(from, u64::MAX);
        self.nameless(from, all, out);
    }

    /// Takes the plaintext of a side up to an offset.
    fn take(&mut self, from: Side, until: u64) -> Pending {
        let Some(pending) = self.pending.get_mut(from.index()) else { return Pending::default() };
        let count = usize::try_from(until.saturating_sub(pending.offset)).unwrap_or(usize::MAX);
        let rest = pending.bytes.split_off(count.min(pending.bytes.len()));
        let rest = Pending { offset: pending.end(), bytes: rest };
        std::mem::replace(pending, rest)
    }

    fn nameless(&mut self, from: Side, pending: Pending, out: &mut Vec<u8>) {
        if !pending.bytes.is_empty() {
            self.piece(FollowPiece { from, offset: pending.offset, bytes: &pending.bytes, message: None }, out);
        }
    }

    fn piece(&mut self, piece: FollowPiece<'_>, out: &mut Vec<u8>) {
        if self.format.is_json() {
            return self.json_piece(&piece, out);
        }
        let FollowPiece { from, offset, bytes, message } = piece;
        let Marks { rule, arrow, .. } = self.marks;
        let (count, side, other) = (bytes.len(), from.word(), from.other().word());
        let _ = write!(out, "{rule}{side}{arrow}{other}  ");
        let _ = match message {
            Some((name, record)) => {
                writeln!(out, "{}  record {record}, {count} bytes at {offset}", name.escaped())
            }
            None => writeln!(out, "{count} bytes at {offset}"),
        };
        self.bytes(offset, bytes, out);
    }

    /// `{"from":"client","time":…,"frame":7,"record":2,"message":"ConnectPacket","offset":0,"length":51,"bytes":"16…"}`
    fn json_piece(&mut self, piece: &FollowPiece<'_>, out: &mut Vec<u8>) {
        self.json_head(piece.from, out);
        if let Some((name, record)) = piece.message {
            let _ = write!(out, ",\"record\":{record},\"message\":");
            json::string(out, name.raw());
        }
        let _ = write!(out, ",\"offset\":{},\"length\":{},", piece.offset, piece.bytes.len());
        if self.format == FollowFormat::JsonHex {
            out.extend_from_slice(b"\"bytes\":\"");
            append_hex(out, piece.bytes);
            out.push(b'"');
        } else {
            let mut plain = Vec::new();
            text(piece.bytes, &mut plain);
            out.extend_from_slice(b"\"text\":");
            json::string(out, &String::from_utf8_lossy(&plain));
        }
        out.extend_from_slice(b"}\n");
    }

    /// `{"from":"server","time":…,"frame":9,"record":4,"event":"gap","text":"…"}`
    fn json_event(&mut self, record: &Record<'_>, event: &Event, out: &mut Vec<u8>) {
        self.json_head(record.from, out);
        let _ = write!(out, ",\"record\":{},\"event\":\"{}\"", record.number, event_word(&record.body));
        if let (Some(offset), Some(length)) = (event.offset, event.length) {
            let _ = write!(out, ",\"offset\":{offset},\"length\":{length}");
        }
        out.extend_from_slice(b",\"text\":");
        json::string(out, &event.text);
        out.extend_from_slice(b"}\n");
    }

    fn json_head(&mut self, from: Side, out: &mut Vec<u8>) {
        let mut time = String::new();
        format_time(self.at.time, &mut time);
        let _ = write!(out, "{{\"from\":\"{}\",\"time\":\"{time}\",\"frame\":{}", from.word(), self.at.frame);
    }

    fn wants(&self, from: Side) -> bool {
        self.side.is_none_or(|side| side == from)
    }

    /// A message's bytes as they may be shown.
    fn shown<'a>(&self, bytes: &'a [u8], tree: Option<&Tree>) -> Cow<'a, [u8]> {
        let mut shown = Cow::Borrowed(bytes);
        for (from, to) in tree.filter(|_| self.redact).into_iter().flat_map(|tree| tree.secrets(Buffer::CAPTURED)) {
            let to = to.min(bytes.len());
            shown.to_mut().get_mut(from..to).into_iter().flatten().for_each(|byte| *byte = b'*');
        }
        shown
    }

    fn bytes(&self, offset: u64, bytes: &[u8], out: &mut Vec<u8>) {
        match self.format {
            FollowFormat::Raw => out.extend_from_slice(bytes),
            FollowFormat::Text | FollowFormat::JsonText => text(bytes, out),
            FollowFormat::Hex | FollowFormat::JsonHex => dump(offset, bytes, out),
        }
    }
}

impl Pending {
    /// The offset behind its last byte.
    fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes.len() as u64)
    }
}

/// Text with dots for all other bytes. A carriage return is kept only before a line feed: elsewhere it would overwrite a line on a terminal.
fn text(bytes: &[u8], out: &mut Vec<u8>) {
    for (i, byte) in bytes.iter().enumerate() {
        let line_end = *byte == b'\r' && bytes.get(i + 1) == Some(&b'\n');
        let kept = plain(*byte) || line_end || matches!(byte, b'\n' | b'\t');
        out.push(if kept { *byte } else { b'.' });
    }
}

#[inline(always)]
fn plain(b: u8) -> bool {
    (0x20..0x7f).contains(&b)
}

/// Sixteen bytes a line: offset in the direction, hex, text.
fn dump(offset: u64, bytes: &[u8], out: &mut Vec<u8>) {
    let (whole, rest) = bytes.as_chunks::<16>();
    let mut at = offset;
    for line in whole {
        dump_line(at, line, 16, out);
        at = at.saturating_add(16);
    }
    if !rest.is_empty() {
        let mut line = [0; 16];
        line.iter_mut().zip(rest).for_each(|(to, byte)| *to = *byte);
        dump_line(at, &line, rest.len(), out);
    }
}

/// The line of a dump behind the offset: a blank, two groups of eight cells with a blank between them, each cell a blank and a byte, two blanks, and the text.
const LINE: [u8; 71] = {
    let mut line = [b' '; 71];
    (line[52], line[69], line[70]) = (b'|', b'|', b'\n');
    line
};

/// The line of the first `count` bytes, from 1 to 16. Every index is below the array's length, so the compiler leaves out all bounds checks.
#[allow(clippy::indexing_slicing)]
fn dump_line(at: u64, bytes: &[u8; 16], count: usize, out: &mut Vec<u8>) {
    let mut place = [0; 16];
    for (n, byte) in (0..8).zip(at.to_be_bytes()) {
        [place[2 * n], place[2 * n + 1]] = hex_pair(byte);
    }
    let zeros = (at.leading_zeros() / 4).min(8) as usize;
    out.extend_from_slice(place.get(zeros..).unwrap_or_default());
    // One loop for each part: the compiler does many bytes at once.
    let (digits, mut text, mut line) = (hex_block(bytes), [0; 16], LINE);
    for n in 0..16 {
        text[n] = if plain(bytes[n]) { bytes[n] } else { b'.' };
    }
    for n in 0..16 {
        let cell = 2 + 3 * n + n / 8;
        [line[cell], line[cell + 1]] = digits[n];
    }
    line[53..69].copy_from_slice(&text);
    if count == 16 {
        return out.extend_from_slice(&line);
    }
    // Blanks from the end of the last byte on, up to the text.
    line[1 + 3 * count + count / 9..52].fill(b' ');
    out.extend_from_slice(&line[..53 + count]);
    out.extend_from_slice(b"|\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_dump_are_aligned() {
        let mut out = Vec::new();
        dump(0x10, b"0123456789abcdefXYZ\n", &mut out);
        let text = String::from_utf8_lossy(&out);
        let expected = "00000010  30 31 32 33 34 35 36 37  38 39 61 62 63 64 65 66  |0123456789abcdef|\n\
                        00000020  58 59 5a 0a                                       |XYZ.|\n";
        assert_eq!(text, expected);
        let mut out = Vec::new();
        dump(0x1_0000_0008, b"0", &mut out);
        assert!(out.starts_with(b"100000008  30  "));
    }

    #[test]
    fn plaintext_that_no_record_names_is_written_too() {
        let mut follow = Follow::new(FollowFormat::Hex, Some(Side::Client), false);
        let mut out = Vec::new();
        follow.plaintext(Side::Client, 0, b"ab", &mut out);
        follow.plaintext(Side::Server, 0, b"not asked for", &mut out);
        follow.finish(&mut out);
        let text = String::from_utf8_lossy(&out);
        assert!(text.starts_with("── client ▸ server  2 bytes at 0\n00000000  61 62 "), "{text}");
        assert!(!text.contains("not"));
    }
}
