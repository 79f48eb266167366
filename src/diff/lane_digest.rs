//! What the digest of a capture has of one direction of a stream: its messages, and bytes that are
//! in none.
//!
//! It knows messages only by their places.

use std::collections::HashSet;

/// Why bytes are in no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LossCause {
    /// They were not captured.
    Gap,
    /// They were not understood.
    Undecoded,
    /// No key opens them.
    Closed,
}

/// Bytes of a direction that are in no message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loss {
    /// How many messages of the direction came before.
    pub(super) before: u32,
    pub(super) bytes: u64,
    pub(super) cause: LossCause,
    /// The record that says so.
    pub(super) record: u64,
    /// Whether the filter keeps this record.
    pub(super) wanted: bool,
}

/// One direction of a stream.
#[derive(Clone, Debug, Default)]
pub(super) struct LaneDigest {
    /// Its messages, by their places among [`CaptureDigest::messages`].
    pub(super) messages: Vec<u32>,
    pub(super) losses: Vec<Loss>,
    /// Its beginning was not captured.
    pub(super) joined_late: bool,
}

impl LaneDigest {
    /// The losses before the messages from a place up to another one. Losses are in their order.
    pub(super) fn losses_between(&self, from: usize, to: usize) -> &[Loss] {
        let first = self.losses.partition_point(|loss| (loss.before as usize) < from);
        let end = self.losses.partition_point(|loss| (loss.before as usize) <= to);
        self.losses.get(first..end).unwrap_or_default()
    }

    /// Bytes that were captured and not understood, or not opened, and the first record that says
    /// so. What is beside a gap counts as part of it.
    pub(super) fn unread(&self, cause: LossCause) -> (u64, Option<u64>) {
        let gaps: HashSet<u32> = self
            .losses
            .iter()
            .filter(|loss| loss.cause == LossCause::Gap)
            .map(|loss| loss.before)
            .collect();
        let beside = |loss: &&Loss| {
            cause == LossCause::Undecoded
                && (gaps.contains(&loss.before) || self.joined_late && loss.before == 0)
        };
        let unread =
            self.losses.iter().filter(|loss| loss.cause == cause && loss.wanted && !beside(loss));
        unread.fold((0, None), |(bytes, record), loss| {
            (bytes + loss.bytes, record.or(Some(loss.record)))
        })
    }
}
