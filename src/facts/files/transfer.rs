//! One file in transfer: the parts so far, their positions, and the missing ranges.

use std::collections::BTreeMap;

use super::listed::ListedFile;
use crate::capture::Moment;
use crate::facts::TransportStream;
use crate::session::Side;

/// The most separate parts of one file. Neighbours are joined.
const MAX_PIECES: usize = 1 << 18;

/// Bytes of a file, kept in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Their number.
    pub length: u64,
    /// The place of the first one in the store.
    pub stored: u64,
}

/// How a file's parts state their position. The first part decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PartOrder {
    /// No part came yet.
    #[default]
    Unknown,
    /// By the offset of their first byte.
    Offset,
    /// By a number, from 0.
    Number,
    /// They follow each other.
    Sequence,
}

/// A file that was transferred, or asked for.
#[derive(Clone, Debug)]
pub struct FileTransfer {
    /// The protocol's name.
    pub protocol: &'static str,
    /// The service's name.
    pub service: String,
    /// The stream.
    pub stream: TransportStream,
    /// The side that sent the file, or refused to.
    pub from: Option<Side>,
    /// Number of its first record.
    pub first_record: u64,
    /// Number of its last record.
    pub last_record: u64,
    /// The frame of its first record.
    pub at: Moment,
    /// The name in the request, or else in the transfer.
    pub name: Option<String>,
    /// What kind of file the messages say it is.
    pub kind: Option<String>,
    /// Its size, where a message said so.
    pub size: Option<u64>,
    /// How the parts state their position.
    pub order: PartOrder,
    /// The parts: by their offset, or by their number.
    pub pieces: BTreeMap<u64, Piece>,
    /// The number of the last part, where it is known.
    pub last_number: Option<u64>,
    /// Why the server did not send it.
    pub refused: Option<String>,
    /// Remarks on how the file was assembled.
    pub notes: Vec<&'static str>,
    /// The entries of lists for it.
    pub listed: Vec<ListedFile>,
    /// Numbers that may decrypt it, the likeliest first.
    pub keys: Vec<Vec<u32>>,
    /// All of its bytes came.
    pub complete: bool,
    /// Whether any record that the filter keeps belongs to it.
    pub(super) kept: bool,
    pub(super) stored: u64,
    pub(super) sequence: Sequence,
}

/// The state of parts that follow each other.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sequence {
    /// Where the next part begins in the file.
    next: u64,
    /// Where the last part's message ended in its direction of the stream, how long the message
    /// was, and how many bytes of the file it had.
    last: Option<(u64, u64, u64)>,
    /// Whether bytes of the stream were lost since then.
    pub(super) gap: bool,
    /// From this offset on, the position of parts is a guess: the gap before them is not as long as
    /// any number of whole parts.
    floating: Option<u64>,
}

/// A part of a file, as a message brings it.
#[derive(Clone, Copy)]
pub(super) struct FilePart<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) offset: Option<u64>,
    pub(super) number: Option<u64>,
    /// Where the message begins in its direction, and how long it is.
    pub(super) message: (u64, u64),
    /// The message says that it is the last one.
    pub(super) last: bool,
}

impl FileTransfer {
    /// An empty file in `stream`, which begins with `first_record`.
    pub(super) fn new(
        protocol: &'static str,
        stream: TransportStream,
        first_record: u64,
    ) -> FileTransfer {
        FileTransfer {
            protocol,
            service: String::new(),
            stream,
            from: None,
            first_record,
            last_record: first_record,
            at: Moment::default(),
            name: None,
            kind: None,
            size: None,
            order: PartOrder::Unknown,
            pieces: BTreeMap::new(),
            last_number: None,
            refused: None,
            notes: Vec::new(),
            listed: Vec::new(),
            keys: Vec::new(),
            complete: false,
            kept: false,
            stored: 0,
            sequence: Sequence::default(),
        }
    }

    /// Adds a part. `keep` stores bytes and returns their place.
    pub(super) fn part(
        &mut self,
        part: FilePart<'_>,
        most: u64,
        keep: &mut dyn FnMut(&[u8]) -> Option<u64>,
    ) {
        let (order, at) = match (part.offset, part.number) {
            (Some(offset), _) => (PartOrder::Offset, offset),
            (None, Some(number)) => (PartOrder::Number, number),
            (None, None) => (PartOrder::Sequence, self.sequence.place(&part, self.size)),
        };
        if self.order == PartOrder::Unknown {
            self.order = order;
        }
        if self.order != order {
            return self.note("some parts say in another way where they belong, and are left out");
        }
        if part.last && order == PartOrder::Number {
            self.last_number = Some(at);
        }
        self.add(at, part.bytes, most, keep);
        if order == PartOrder::Sequence && part.last && self.size.is_none() {
            self.size = Some(self.sequence.next);
        }
    }

    fn add(
        &mut self,
        at: u64,
        bytes: &[u8],
        most: u64,
        keep: &mut dyn FnMut(&[u8]) -> Option<u64>,
    ) {
        let length = bytes.len() as u64;
        if self.pieces.get(&at).is_some_and(|have| have.length >= length) {
            return;
        }
        let end =
            if self.order == PartOrder::Number { self.stored } else { at }.saturating_add(length);
        if end > most
            || self.pieces.len() >= MAX_PIECES
            || self.stored.saturating_add(length) > most.saturating_mul(2)
        {
            return self.note("longer than a file may be (--max-file-size)");
        }
        let Some(stored) = keep(bytes) else { return };
        self.stored += length;
        // Parts that follow each other in the file and in the store become one.
        let before =
            self.pieces.range_mut(..at).next_back().filter(|_| self.order != PartOrder::Number);
        match before {
            Some((start, piece))
                if *start + piece.length == at && piece.stored + piece.length == stored =>
            {
                piece.length += length;
            }
            _ => {
                self.pieces.insert(at, Piece { length, stored });
            }
        }
    }

    /// Adds a remark, once.
    pub(super) fn note(&mut self, note: &'static str) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Whether no more parts are to be expected.
    pub(super) fn is_over(&self) -> bool {
        match self.order {
            PartOrder::Unknown => false,
            PartOrder::Number => {
                let all = self
                    .last_number
                    .is_some_and(|last| self.pieces.len() as u64 == last.saturating_add(1));
                all || self.size.is_some_and(|size| size > 0 && self.stored >= size)
            }
            PartOrder::Sequence => self.size.is_some_and(|size| self.sequence.next >= size),
            PartOrder::Offset => {
                self.size.is_some_and(|size| self.stored >= size && self.holes().is_empty())
            }
        }
    }

    /// No more parts come: fixes the positions of all parts.
    pub(super) fn settle(&mut self) {
        if let (Some(from), Some(size), PartOrder::Sequence) =
            (self.sequence.floating, self.size, self.order)
        {
            let shift = size.saturating_sub(self.sequence.next);
            let moved = self.pieces.split_off(&from);
            self.pieces.extend(moved.into_iter().map(|(at, piece)| (at + shift, piece)));
            if shift > 0 {
                self.note("where the bytes behind a gap belong is a guess");
            }
        }
        self.complete = self.order != PartOrder::Unknown && self.holes().is_empty();
    }

    /// The missing ranges of offsets or of part numbers, from and to (exclusive). An unknown end is
    /// `u64::MAX`.
    pub fn holes(&self) -> Vec<(u64, u64)> {
        let by_number = self.order == PartOrder::Number;
        let mut holes = Vec::new();
        let mut next = 0;
        for (at, piece) in &self.pieces {
            if *at > next {
                holes.push((next, *at));
            }
            next = next.max(at.saturating_add(if by_number { 1 } else { piece.length }));
        }
        let end =
            if by_number { self.last_number.map(|last| last.saturating_add(1)) } else { self.size };
        match end {
            Some(end) if next < end => holes.push((next, end)),
            None if by_number && self.size.is_some_and(|size| self.stored >= size) => {}
            None => holes.push((next, u64::MAX)),
            Some(_) => {}
        }
        holes
    }
}

impl Sequence {
    /// Where a part begins in the file.
    fn place(&mut self, part: &FilePart<'_>, size: Option<u64>) -> u64 {
        let length = part.bytes.len() as u64;
        let (begins, message_length) = part.message;
        if std::mem::take(&mut self.gap) {
            // If whole messages were lost, each as long as the one before the gap, the gap is a
            // multiple of that length.
            let lost = self.last.and_then(|(end, each, bytes)| {
                let gap = begins.checked_sub(end)?;
                let count = gap.checked_div(each)?;
                (count.checked_mul(each)? == gap).then(|| count.saturating_mul(bytes))
            });
            let fits = |lost: &u64| {
                size.is_none_or(|size| {
                    self.next.saturating_add(*lost).saturating_add(length) <= size
                })
            };
            match lost.filter(fits) {
                Some(lost) => self.next = self.next.saturating_add(lost),
                None => {
                    self.floating.get_or_insert(self.next);
                }
            }
        }
        let at = self.next;
        self.next = at.saturating_add(length);
        self.last = Some((begins.saturating_add(message_length), message_length, length));
        at
    }
}
