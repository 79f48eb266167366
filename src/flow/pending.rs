//! Bytes that wait for earlier ones: runs of bytes in order of their position, which never overlap.
//!
//! It knows neither sequence numbers nor fragments: positions are plain numbers. Bytes that are
//! already there are not replaced.

use std::collections::BTreeMap;

use crate::capture::Moment;

/// The memory that a run takes beside its bytes, roughly: its entry in the tree, and the
/// allocator's overhead.
const OVERHEAD: usize = 96;

/// A run of waiting bytes.
#[derive(Debug)]
pub(super) struct PendingRun {
    /// The captured bytes.
    pub bytes: Box<[u8]>,
    /// Its length on the wire, which is more if a snap length cut it.
    pub len: u64,
    /// The frame in which it came.
    pub at: Moment,
}

/// The run or hole at a position.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Span<'p> {
    /// A run up to `end`, with its captured bytes from the position on.
    Taken { end: u64, bytes: &'p [u8] },
    /// A hole up to `end`.
    Free { end: u64 },
}

/// Waiting bytes in order.
#[derive(Debug, Default)]
pub(super) struct PendingBytes {
    map: BTreeMap<u64, PendingRun>,
    cost: usize,
}

impl PendingBytes {
    pub(super) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    pub(super) fn count(&self) -> usize {
        self.map.len()
    }

    /// Memory held, in bytes, roughly.
    pub(super) fn cost(&self) -> usize {
        self.cost
    }

    /// Position and moment of the first run.
    pub(super) fn first(&self) -> Option<(u64, Moment)> {
        self.map.first_key_value().map(|(start, piece)| (*start, piece.at))
    }

    /// The run or hole at `position`, up to `end`.
    pub(super) fn span(&self, position: u64, end: u64) -> Span<'_> {
        if let Some((start, piece)) = self.map.range(..=position).next_back() {
            let inside = position - start;
            if inside < piece.len {
                let from = usize::try_from(inside).unwrap_or(usize::MAX);
                let bytes = piece.bytes.get(from..).unwrap_or_default();
                return Span::Taken { end: end.min(start + piece.len), bytes };
            }
        }
        let next = self.map.range(position..).next().map_or(end, |(start, _)| *start);
        Span::Free { end: end.min(next) }
    }

    /// Puts a run into a hole. `bytes` beyond `len` are ignored.
    pub(super) fn put(&mut self, position: u64, bytes: &[u8], len: u64, at: Moment) {
        let bytes: Box<[u8]> = head(bytes, len).into();
        self.cost += bytes.len() + OVERHEAD;
        if let Some(old) = self.map.insert(position, PendingRun { bytes, len, at }) {
            self.cost -= old.bytes.len() + OVERHEAD;
        }
    }

    /// Removes the first run.
    pub(super) fn pop(&mut self) -> Option<(u64, PendingRun)> {
        let (start, piece) = self.map.pop_first()?;
        self.cost -= piece.bytes.len() + OVERHEAD;
        Some((start, piece))
    }
}

/// The first `len` bytes, or all of them if there are fewer.
pub(super) fn head(bytes: &[u8], len: u64) -> &[u8] {
    usize::try_from(len).ok().and_then(|len| bytes.get(..len)).unwrap_or(bytes)
}

/// The bytes after the first `len`.
pub(super) fn tail(bytes: &[u8], len: u64) -> &[u8] {
    usize::try_from(len).ok().and_then(|len| bytes.get(len..)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn pieces_tell_what_stands_where() {
        let mut pieces = PendingBytes::default();
        pieces.put(10, b"abcd", 4, Moment::default());
        pieces.put(20, b"xy", 5, Moment::default());
        assert_eq!(pieces.span(0, 100), Span::Free { end: 10 });
        assert_eq!(pieces.span(12, 100), Span::Taken { end: 14, bytes: b"cd" });
        assert_eq!(pieces.span(14, 18), Span::Free { end: 18 });
        assert_eq!(
            pieces.span(23, 100),
            Span::Taken { end: 25, bytes: b"" },
            "the cut part has no bytes"
        );
        assert_eq!(pieces.span(25, 100), Span::Free { end: 100 });
        assert_eq!(pieces.pop().map(|(start, piece)| (start, piece.len)), Some((10, 4)));
        assert_eq!(pieces.pop().map(|(start, piece)| (start, piece.len)), Some((20, 5)));
        assert_eq!(pieces.cost(), 0);
    }
}
