//! Waiting bytes of one direction, not yet read as messages: in order, at known offsets, each with
//! the frame that brought it.
//!
//! It knows no framing and no cipher. A session pushes incoming bytes, looks at
//! [`StreamBuffer::waiting`], and takes from its front with [`StreamBuffer::advance`] or
//! [`StreamBuffer::pass`]. The session bounds the memory: it asks [`StreamBuffer::held`] and gives
//! up waiting bytes.

use std::collections::VecDeque;

use crate::capture::Moment;

/// An empty buffer larger than this is freed.
const KEEP_CAPACITY: usize = 64 << 10;

/// Each attempt at an incomplete message reads its bytes again. Once all attempts together have
/// read more than `FREE` bytes and `MANY` times the waiting bytes, attempts become rare.
const MANY: usize = 64;
const FREE: usize = 1 << 20;

/// The waiting bytes of one direction.
///
/// ```
/// use moulsniff::{capture::Moment, session::StreamBuffer};
///
/// let mut stream = StreamBuffer::default();
/// let frame = |frame| Moment { frame, ..Moment::default() };
/// stream.push(b"hel", frame(1));
/// stream.push(b"lo, world", frame(2));
/// assert_eq!(stream.waiting(), b"hello, world");
/// // The first 5 bytes were all there with frame 2.
/// assert_eq!(stream.completed(5), Some(frame(2)));
/// stream.advance(5);
/// assert_eq!((stream.offset(), stream.waiting()), (5, &b", world"[..]));
/// ```
#[derive(Debug, Default)]
pub struct StreamBuffer {
    /// The bytes from `start` on wait; those before are used up.
    bytes: Vec<u8>,
    start: usize,
    /// Stream offset of the first waiting byte.
    offset: u64,
    /// How many of the last bytes are not shown yet.
    hidden: usize,
    /// No attempt at a message is made with fewer waiting bytes than this.
    need: usize,
    /// Bytes that failed attempts at the waiting message have read in all.
    tried: usize,
    /// Number of bytes right before the waiting ones that became no message and were not reported
    /// yet.
    passed: u64,
    /// The first of these bytes, for the event that will report them.
    passed_bytes: Vec<u8>,
    /// The pieces in which the waiting bytes came, oldest first.
    arrivals: VecDeque<PieceEnd>,
}

/// A piece of the stream.
#[derive(Clone, Copy, Debug)]
struct PieceEnd {
    /// Stream offset of its end.
    end: u64,
    /// The frame that brought it.
    at: Moment,
}

/// Bytes of a direction that became no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedBytes {
    /// Stream offset of the first byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
    /// The first of these bytes, as many as the session asked to keep.
    pub bytes: Vec<u8>,
}

impl StreamBuffer {
    /// Appends the next bytes of the stream, which the frame of `at` completed.
    pub fn push(&mut self, bytes: &[u8], at: Moment) {
        self.push_with(bytes.len(), at, |buffer| buffer.extend_from_slice(bytes));
    }

    /// Appends the next `length` bytes of the stream, which `write` appends to the buffer:
    /// decrypted, for example.
    pub fn push_with(&mut self, length: usize, at: Moment, write: impl FnOnce(&mut Vec<u8>)) {
        // Waiting bytes move to the front only when at least as many bytes were used up, so all
        // moves together stay linear.
        let waiting = self.bytes.len() - self.start;
        if self.start > 0 && (waiting == 0 || self.start > KEEP_CAPACITY.max(waiting)) {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        let end = self.offset + (waiting + length) as u64;
        match self.arrivals.back_mut() {
            Some(last) if last.at == at => last.end = end,
            _ => self.arrivals.push_back(PieceEnd { end, at }),
        }
        write(&mut self.bytes);
    }

    /// The waiting bytes, without hidden ones.
    pub fn waiting(&self) -> &[u8] {
        self.bytes.get(self.start..self.bytes.len() - self.hidden).unwrap_or(&[])
    }

    /// The waiting bytes including hidden ones, to be changed in place: decrypted, for example.
    pub fn waiting_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.start..).unwrap_or(&mut [])
    }

    /// Whether there are no waiting bytes, apart from hidden ones.
    pub fn is_empty(&self) -> bool {
        self.waiting().is_empty()
    }

    /// Stream offset of the first waiting byte.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Memory of the waiting bytes, in bytes.
    pub fn held(&self) -> usize {
        self.bytes.capacity()
            + self.passed_bytes.capacity()
            + self.arrivals.capacity() * size_of::<PieceEnd>()
    }

    /// Gives back the memory that no waiting byte needs.
    pub fn shrink(&mut self) {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.shrink_to_fit();
        self.arrivals.shrink_to_fit();
    }

    /// The frame that completed the first `length` waiting bytes.
    #[inline]
    pub fn completed(&self, length: usize) -> Option<Moment> {
        let end = self.offset + length as u64;
        let first = self.arrivals.front()?;
        if first.end >= end {
            return Some(first.at);
        }
        let place = self.arrivals.partition_point(|arrival| arrival.end < end);
        self.arrivals.get(place).map(|arrival| arrival.at)
    }

    /// Places among the waiting bytes at which a new piece of the stream begins, ascending. A
    /// program that sends message by message begins most messages at such a place.
    pub fn piece_starts(&self) -> impl Iterator<Item = usize> + '_ {
        let shown = self.waiting().len();
        let ends =
            self.arrivals.iter().map(|arrival| arrival.end.saturating_sub(self.offset) as usize);
        ends.take_while(move |end| *end < shown)
    }

    /// The first `bytes` waiting bytes were used: they are in a message, or were reported.
    #[inline]
    pub fn advance(&mut self, bytes: usize) {
        let bytes = bytes.min(self.waiting().len());
        self.start += bytes;
        self.offset += bytes as u64;
        self.need = 0;
        self.tried = 0;
        if self.start == self.bytes.len() && self.bytes.capacity() > KEEP_CAPACITY {
            self.bytes = Vec::new();
            self.start = 0;
        }
        while self.arrivals.front().is_some_and(|arrival| arrival.end <= self.offset) {
            self.arrivals.pop_front();
        }
    }

    /// Skips the first `bytes` waiting bytes, which become no message. They are counted until
    /// [`take_passed`](Self::take_passed) reports them. The first `keep` bytes of all that are
    /// skipped until then are kept, to be shown.
    pub fn pass(&mut self, bytes: usize, keep: usize) {
        let bytes = bytes.min(self.waiting().len());
        self.passed += bytes as u64;
        let kept = bytes.min(keep.saturating_sub(self.passed_bytes.len()));
        let shown = self.bytes.get(self.start..self.start + kept).unwrap_or(&[]);
        self.passed_bytes.extend_from_slice(shown);
        self.advance(bytes);
    }

    /// Takes the bytes that were skipped since the last call. They end where the waiting bytes
    /// begin.
    pub fn take_passed(&mut self) -> PassedBytes {
        let length = std::mem::take(&mut self.passed);
        let bytes = std::mem::take(&mut self.passed_bytes);
        PassedBytes { offset: self.offset - length, length, bytes }
    }

    /// The stream goes on at `offset`, behind a gap. Drops the waiting bytes: report them first.
    pub fn jump(&mut self, offset: u64) {
        self.bytes = Vec::new();
        self.arrivals.clear();
        (self.start, self.hidden, self.need, self.tried) = (0, 0, 0, 0);
        self.offset = offset;
    }

    /// Whether enough bytes wait for another attempt at a message: at least one, and at least as
    /// many as [`wait_for`](Self::wait_for) or [`set_need`](Self::set_need) asked for.
    #[inline]
    pub fn is_ready(&self) -> bool {
        let waiting = self.waiting().len();
        waiting > 0 && waiting >= self.need
    }

    /// How many waiting bytes the next attempt needs; 0 and 1 mean any.
    pub fn need(&self) -> usize {
        self.need
    }

    /// No attempt is made before `bytes` wait. Lasts until bytes are used.
    pub fn set_need(&mut self, bytes: usize) {
        self.need = bytes;
    }

    /// The waiting message has at least `bytes` bytes: no attempt is made before they are there.
    /// After many failed attempts at a long message, attempts become ever rarer, so that all of
    /// them together stay linear in its bytes.
    pub fn wait_for(&mut self, bytes: usize) {
        let waiting = self.waiting().len();
        self.tried = self.tried.saturating_add(waiting);
        let more = if self.is_tried_seldom() { waiting / 8 } else { 1 };
        self.need = bytes.max(waiting + more);
    }

    /// Whether attempts became rare, so that a whole message may wait unnoticed. If so, try once
    /// more when no more bytes will come.
    pub fn is_tried_seldom(&self) -> bool {
        self.tried > FREE.saturating_add(MANY.saturating_mul(self.waiting().len()))
    }

    /// Hides all waiting bytes. [`reveal`](Self::reveal) shows them again piece by piece. So a
    /// session that could read nothing at first can read both directions in the order in which they
    /// came.
    pub fn hide(&mut self) {
        self.hidden = self.bytes.len() - self.start;
        self.need = 0;
    }

    /// The frame that brought the next hidden piece.
    pub fn next_hidden(&self) -> Option<Moment> {
        if self.hidden == 0 {
            return None;
        }
        self.completed(self.waiting().len() + 1)
    }

    /// Shows the next hidden piece.
    pub fn reveal(&mut self) {
        let shown = self.offset + self.waiting().len() as u64;
        let place = self.arrivals.partition_point(|arrival| arrival.end <= shown);
        let end = self.arrivals.get(place).map_or(u64::MAX, |arrival| arrival.end);
        self.hidden =
            self.hidden.saturating_sub(usize::try_from(end - shown).unwrap_or(usize::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(frame: u64) -> Moment {
        Moment { frame, ..Moment::default() }
    }

    fn stream(pieces: &[&[u8]]) -> StreamBuffer {
        let mut stream = StreamBuffer::default();
        for (i, piece) in pieces.iter().enumerate() {
            stream.push(piece, frame(i as u64 + 1));
        }
        stream
    }

    #[test]
    fn each_byte_knows_the_frame_that_brought_it() {
        let mut stream = stream(&[b"abc", b"d", b"efgh"]);
        let frames: Vec<u64> =
            (1..=8).filter_map(|n| stream.completed(n)).map(|at| at.frame).collect();
        assert_eq!(frames, [1, 1, 1, 2, 3, 3, 3, 3]);
        stream.advance(3);
        assert_eq!(stream.completed(1), Some(frame(2)));
        assert_eq!(stream.completed(6), None, "only 5 bytes wait");
        assert_eq!(stream.piece_starts().collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn passed_bytes_are_reported_once_and_with_their_place() {
        let mut stream = stream(&[b"abcdef"]);
        stream.advance(1);
        stream.pass(2, 2);
        stream.pass(1, 2);
        assert_eq!(
            stream.take_passed(),
            PassedBytes { offset: 1, length: 3, bytes: b"bc".to_vec() }
        );
        assert_eq!(stream.take_passed(), PassedBytes { offset: 4, length: 0, bytes: Vec::new() });
    }

    #[test]
    fn a_gap_moves_the_offset_and_forgets_what_waited() {
        let mut stream = stream(&[b"abcdef"]);
        stream.jump(100);
        stream.push(b"xy", frame(9));
        assert_eq!(
            (stream.offset(), stream.waiting(), stream.completed(2)),
            (100, &b"xy"[..], Some(frame(9)))
        );
    }

    #[test]
    fn hidden_bytes_come_back_piece_by_piece() {
        let mut stream = stream(&[b"abc", b"d", b"efgh"]);
        stream.hide();
        assert!(stream.is_empty());
        let mut seen = Vec::new();
        while let Some(at) = stream.next_hidden() {
            stream.reveal();
            seen.push((at.frame, stream.waiting().len()));
            stream.advance(1);
        }
        assert_eq!(seen, [(1, 3), (2, 3), (3, 6)]);
    }

    #[test]
    fn a_message_that_comes_byte_by_byte_is_not_read_again_for_each() {
        let mut stream = StreamBuffer::default();
        let mut attempts = 0;
        let mut read = 0;
        for i in 0..1 << 20 {
            stream.push(&[1], frame(i));
            if stream.is_ready() {
                attempts += 1;
                read += stream.waiting().len();
                // The reader reports that one more byte is missing.
                stream.wait_for(stream.waiting().len() + 1);
            }
        }
        assert!(attempts > 100, "{attempts} attempts");
        assert!(read < 256 << 20, "{read} bytes were read for 1 MiB");
        stream.advance(5);
        assert!(stream.is_ready() && !stream.is_tried_seldom(), "the next message begins anew");
    }

    #[test]
    fn one_byte_at_a_time_stays_linear() {
        let mut stream = StreamBuffer::default();
        for i in 0..2_000_000 {
            stream.push(&[1], frame(i));
            if i % 3 == 2 {
                stream.advance(2);
            }
        }
        assert!(stream.waiting().len() > 600_000);
    }
}
