//! The plaintext of one stream: as a hex dump with the messages' names, as text, or as the bytes alone.
//!
//! It is handed plaintext and records in order and appends what they look like; it knows no file.

use std::borrow::Cow;
use std::io::Write;

use super::paint::Marks;
use crate::captured::Escaped;
use crate::proto::{EventKind, Side};
use crate::record::{Body, Record};
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
}

/// Plaintext of one side that waits for the record that names it.
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
    /// What the tables mark as a secret is overwritten.
    redact: bool,
    /// Of each side, plaintext whose record is still to come, and the offset of its first byte.
    pending: [Pending; 2],
    /// Bytes that were never captured.
    pub lost: u64,
    marks: Marks,
}

impl Follow {
    /// Nothing followed yet. With `filtered`, only the messages handed on are written, else all plaintext.
    pub fn new(format: FollowFormat, side: Option<Side>, filtered: bool) -> Follow {
        Follow { format, side, filtered, redact: false, pending: Default::default(), lost: 0, marks: Marks::default() }
    }

    /// Writes these marks.
    pub fn marked(self, marks: Marks) -> Follow {
        Follow { marks, ..self }
    }

    /// Overwrites secrets with `*` where asked to. Only messages are written then: what is no message may hold any.
    pub fn redacted(self, redact: bool) -> Follow {
        Follow { redact, filtered: self.filtered || redact, ..self }
    }

    /// Plaintext of a direction.
    pub fn plaintext(&mut self, from: Side, offset: u64, bytes: &[u8], out: &mut Vec<u8>) {
        if self.filtered || !self.wants(from) {
            return;
        }
        if self.format != FollowFormat::Hex {
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
        if !self.wants(record.from) {
            return;
        }
        match &record.body {
            Body::Message { message, tree, .. } if self.format == FollowFormat::Hex => {
                // What came before the message belongs to none.
                let before = self.take(message.from, message.offset);
                self.nameless(message.from, before, out);
                let _ = writeln!(
                    out,
                    "{}{}{}{}  {}  record {}, {} bytes at {}",
                    self.marks.rule,
                    record.from.word(),
                    self.marks.arrow,
                    record.from.other().word(),
                    message.name.escaped(),
                    record.number,
                    message.bytes.len(),
                    message.offset
                );
                if self.filtered {
                    return self.bytes(message.offset, &self.shown(message.bytes, tree), out);
                }
                let own = self.take(message.from, message.offset.saturating_add(message.bytes.len() as u64));
                self.bytes(own.offset, &own.bytes, out);
            }
            Body::Message { message, tree, .. } if self.filtered => {
                self.bytes(message.offset, &self.shown(message.bytes, tree), out);
            }
            Body::Event(event) => {
                if event.kind == EventKind::Gap {
                    self.lost += event.length.unwrap_or(0);
                }
                if self.format == FollowFormat::Hex {
                    self.flush(record.from, out);
                    let _ = writeln!(out, "{}{}  {}", self.marks.rule, record.from.word(), Escaped(&event.text));
                }
            }
            _ => {}
        }
    }

    /// Writes plaintext that no record came for.
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

    fn nameless(&self, from: Side, pending: Pending, out: &mut Vec<u8>) {
        if !pending.bytes.is_empty() {
            let (from, to, count) = (from.word(), from.other().word(), pending.bytes.len());
            let Marks { rule, arrow, .. } = self.marks;
            let _ = writeln!(out, "{rule}{from}{arrow}{to}  {count} bytes at {}", pending.offset);
            self.bytes(pending.offset, &pending.bytes, out);
        }
    }

    fn wants(&self, from: Side) -> bool {
        self.side.is_none_or(|side| side == from)
    }

    /// A message's bytes as they may be shown.
    fn shown<'a>(&self, bytes: &'a [u8], tree: &Tree) -> Cow<'a, [u8]> {
        let mut shown = Cow::Borrowed(bytes);
        for (from, to) in tree.secrets(Buffer::CAPTURED).filter(|_| self.redact) {
            let to = to.min(bytes.len());
            shown.to_mut().get_mut(from..to).into_iter().flatten().for_each(|byte| *byte = b'*');
        }
        shown
    }

    fn bytes(&self, offset: u64, bytes: &[u8], out: &mut Vec<u8>) {
        match self.format {
            FollowFormat::Raw => out.extend_from_slice(bytes),
            FollowFormat::Text => text(bytes, out),
            FollowFormat::Hex => dump(offset, bytes, out),
        }
    }
}

impl Pending {
    /// The offset behind its last byte.
    fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes.len() as u64)
    }
}

/// Text with dots for what is none. A carriage return stays before a line feed alone: elsewhere it would let text overwrite a terminal's line.
fn text(bytes: &[u8], out: &mut Vec<u8>) {
    for (i, byte) in bytes.iter().enumerate() {
        let line_end = *byte == b'\r' && bytes.get(i + 1) == Some(&b'\n');
        let kept = plain(*byte) || line_end || matches!(byte, b'\n' | b'\t');
        out.push(if kept { *byte } else { b'.' });
    }
}

fn plain(b: u8) -> bool {
    (0x20..0x7f).contains(&b)
}

/// Sixteen bytes a line: offset in the direction, hex, text.
fn dump(offset: u64, bytes: &[u8], out: &mut Vec<u8>) {
    let mut at = offset;
    for line in bytes.chunks(16) {
        let _ = write!(out, "{at:08x} ");
        for (i, b) in line.iter().enumerate() {
            out.extend_from_slice(if i == 8 { b"  " } else { b" " });
            super::json::hex(out, &[*b]);
        }
        let missing = 16 - line.len();
        out.resize(out.len() + missing * 3 + usize::from(line.len() <= 8) + 2, b' ');
        out.push(b'|');
        out.extend(line.iter().map(|b| if plain(*b) { *b } else { b'.' }));
        out.extend_from_slice(b"|\n");
        at = at.saturating_add(line.len() as u64);
    }
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
