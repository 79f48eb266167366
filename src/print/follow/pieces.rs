//! Pieces of plaintext, and their text.

use std::io::Write;

use super::FollowFormat;
use super::dump::{dump, text};
use crate::capture::Moment;
use crate::captured::{Captured, Escaped};
use crate::digits::{append_hex, counted};
use crate::print::clock::format_time;
use crate::print::json;
use crate::print::paint::Marks;
use crate::session::Side;

/// Consecutive bytes of one side, or an event between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct PieceHead {
    /// The frame of the latest record.
    pub(super) at: Moment,
    pub(super) from: Side,
    /// The offset of its first byte in the direction.
    pub(super) offset: u64,
    pub(super) kind: PieceKind,
}

/// What a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PieceKind {
    /// Bytes alone.
    Bytes,
    /// Bytes that belong to no message.
    Nameless,
    /// A message. Its text is its name.
    Message { record: u64 },
    /// An event with the word that the JSON has for it, and the offset and length of the bytes it
    /// is about.
    Event { record: u64, word: &'static str, place: Option<(u64, u64)> },
}

/// Pieces of a stream, in order.
#[derive(Debug, Default)]
pub struct FollowPieces {
    /// Each with the places behind its last byte and its text.
    heads: Vec<(PieceHead, usize, usize)>,
    bytes: Vec<u8>,
    text: String,
}

impl FollowPieces {
    pub(super) fn push(&mut self, head: PieceHead, bytes: &[u8], text: &str) {
        self.bytes.extend_from_slice(bytes);
        self.text.push_str(text);
        self.heads.push((head, self.bytes.len(), self.text.len()));
    }

    /// How many bytes they have, heads and texts included.
    pub fn size(&self) -> usize {
        self.bytes.len() + self.text.len() + size_of_val(self.heads.as_slice())
    }

    /// Forgets all of them. Each part keeps at most `keep` bytes of its allocation.
    pub fn clear(&mut self, keep: usize) {
        self.heads.clear();
        self.heads.shrink_to(keep / size_of::<(PieceHead, usize, usize)>());
        self.bytes.clear();
        self.bytes.shrink_to(keep);
        self.text.clear();
        self.text.shrink_to(keep);
    }
}

/// Writes pieces.
#[derive(Clone, Copy, Debug)]
pub struct PieceWriter {
    format: FollowFormat,
    marks: Marks,
}

impl PieceWriter {
    pub(super) fn new(format: FollowFormat, marks: Marks) -> PieceWriter {
        PieceWriter { format, marks }
    }

    /// Appends the text of pieces.
    pub fn write(&self, pieces: &FollowPieces, out: &mut Vec<u8>) {
        let mut byte = 0;
        let mut letter = 0;
        for (head, bytes_end, text_end) in &pieces.heads {
            let bytes = pieces.bytes.get(byte..*bytes_end).unwrap_or_default();
            let text = pieces.text.get(letter..*text_end).unwrap_or_default();
            match head.kind {
                PieceKind::Bytes => self.bytes(head.offset, bytes, out),
                _ if self.format.is_json() => self.json(head, bytes, text, out),
                _ => self.piece(head, bytes, text, out),
            }
            (byte, letter) = (*bytes_end, *text_end);
        }
    }

    fn piece(&self, head: &PieceHead, bytes: &[u8], text: &str, out: &mut Vec<u8>) {
        let PieceHead { from, offset, kind, .. } = *head;
        let Marks { rule, arrow, .. } = self.marks;
        let count = counted(bytes.len(), "byte");
        let side = from.word();
        let other = from.other().word();
        let _ = match kind {
            PieceKind::Event { .. } => writeln!(out, "{rule}{side}  {}", Escaped(text)),
            PieceKind::Message { record } => {
                let name = Captured::new(text).escaped();
                writeln!(
                    out,
                    "{rule}{side}{arrow}{other}  {name}  record {record}, {count} at {offset}"
                )
            }
            PieceKind::Nameless | PieceKind::Bytes => {
                writeln!(out, "{rule}{side}{arrow}{other}  {count} at {offset}")
            }
        };
        self.bytes(offset, bytes, out);
    }

    /// `{"from":"client","time":…,"frame":7,"record":2,"message":"ConnectPacket","offset":0,"
    /// length":51,"bytes":"16…"}`, or `{"from":"server","time":…,"frame":9,"record":4,"event":"gap"
    /// ,"text":"…"}`
    fn json(&self, head: &PieceHead, bytes: &[u8], said: &str, out: &mut Vec<u8>) {
        let PieceHead { from, at, offset, kind } = *head;
        let mut time = String::new();
        format_time(at.time, &mut time);
        let _ = write!(
            out,
            "{{\"from\":\"{}\",\"time\":\"{time}\",\"frame\":{}",
            from.word(),
            at.frame
        );
        match kind {
            PieceKind::Event { record, word, place } => {
                let _ = write!(out, ",\"record\":{record},\"event\":\"{word}\"");
                if let Some((offset, length)) = place {
                    let _ = write!(out, ",\"offset\":{offset},\"length\":{length}");
                }
                out.extend_from_slice(b",\"text\":");
                json::string(out, said);
                return out.extend_from_slice(b"}\n");
            }
            PieceKind::Message { record } => {
                let _ = write!(out, ",\"record\":{record},\"message\":");
                json::string(out, said);
            }
            PieceKind::Nameless | PieceKind::Bytes => {}
        }
        let _ = write!(out, ",\"offset\":{offset},\"length\":{},", bytes.len());
        if self.format == FollowFormat::JsonHex {
            out.extend_from_slice(b"\"bytes\":\"");
            append_hex(out, bytes);
            out.push(b'"');
        } else {
            let mut plain = Vec::new();
            text(bytes, &mut plain);
            out.extend_from_slice(b"\"text\":");
            json::string(out, &String::from_utf8_lossy(&plain));
        }
        out.extend_from_slice(b"}\n");
    }

    fn bytes(&self, offset: u64, bytes: &[u8], out: &mut Vec<u8>) {
        match self.format {
            FollowFormat::Raw => out.extend_from_slice(bytes),
            FollowFormat::Text | FollowFormat::JsonText => text(bytes, out),
            FollowFormat::Hex | FollowFormat::JsonHex => dump(offset, bytes, out),
        }
    }
}
