//! Segments whose sequence numbers are too far from the others of their direction. They are kept
//! until it turns out that the direction goes on there, or that they belong elsewhere.
//!
//! It knows sequence numbers and bytes. `direction` decides where the bytes go.

use super::segment::Payload;
use crate::capture::Moment;

/// After this many segments that continue each other, the next one proves that the direction goes
/// on there. If the direction ends first, fewer suffice.
const JUMP_PROOF: usize = 3;
const JUMP_PROOF_AT_END: usize = 2;
/// The most bytes that are kept. A segment has up to 64 KiB.
const MAX_BYTES: usize = 256 << 10;
/// The memory of a segment beside its bytes, roughly.
const OVERHEAD: usize = 96;

/// A segment that is kept.
#[derive(Debug)]
pub(super) struct StraySegment {
    /// The captured bytes.
    pub bytes: Box<[u8]>,
    /// Its length on the wire.
    pub len: u64,
    pub at: Moment,
}

/// The segments kept for one direction. Each begins where the one before ended.
#[derive(Debug, Default)]
pub(super) struct StraySegments {
    segments: Vec<StraySegment>,
    start: u32,
    next: u32,
    cost: usize,
    /// Whether the receiver acknowledged them.
    confirmed: bool,
}

impl StraySegments {
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Memory held, in bytes, roughly.
    pub(super) fn cost(&self) -> usize {
        self.cost
    }

    /// When the first of them was captured.
    pub(super) fn first_moment(&self) -> Option<Moment> {
        self.segments.first().map(|segment| segment.at)
    }

    /// The sequence number of the first byte.
    pub(super) fn start(&self) -> u32 {
        self.start
    }

    /// Whether a sequence number is that of the byte after the last one.
    pub(super) fn end_at(&self, seq: u32) -> bool {
        !self.is_empty() && self.next == seq
    }

    /// Whether a segment that continues them proves that they belong to the direction.
    pub(super) fn prove(&self, payload: &Payload<'_>) -> bool {
        self.end_at(payload.seq) && self.segments.len() >= JUMP_PROOF
    }

    /// Whether the receiver acknowledged them.
    pub(super) fn are_confirmed(&self) -> bool {
        self.confirmed
    }

    /// Whether they are taken for the direction's when it ends.
    pub(super) fn suffice_at_end(&self) -> bool {
        self.segments.len() >= JUMP_PROOF_AT_END
    }

    /// The receiver acknowledged everything before this number.
    pub(super) fn confirm(&mut self, ack: u32) {
        self.confirmed |= self.end_at(ack);
    }

    /// Adds a segment that continues them, or begins anew with it. Returns the ones that it does
    /// not continue.
    pub(super) fn add(&mut self, payload: &Payload<'_>, at: Moment) -> Self {
        let continues = self.end_at(payload.seq) && self.cost < MAX_BYTES;
        let dropped = if continues { Self::default() } else { std::mem::take(self) };
        if self.is_empty() {
            self.start = payload.seq;
        }
        self.next = payload.seq.wrapping_add(payload.len as u32);
        self.cost += payload.bytes.len() + OVERHEAD;
        self.segments.push(StraySegment { bytes: payload.bytes.into(), len: payload.len, at });
        dropped
    }

    pub(super) fn into_segments(self) -> Vec<StraySegment> {
        self.segments
    }
}
