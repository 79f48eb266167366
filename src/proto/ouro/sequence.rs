//! Links sequence numbers and acknowledgements of a link to their records, and counts what they
//! show of datagrams that were never captured, in bounded memory.

use std::collections::{BTreeMap, BTreeSet};

use super::packet::LinkHeader;
use crate::session::LearnedValue;
use crate::tree::{LinkKind, Tree};

/// The datagrams of one side that may still be acknowledged or sent again, indexed by the low bits
/// of their numbers.
#[derive(Debug, Default)]
pub struct Sequences {
    sent: Vec<Option<SentPacket>>,
    /// The number before the one that comes next: the highest so far on this link.
    highest: u32,
    /// Numbers that were passed over, and whether they were acknowledged.
    missing: BTreeMap<u32, bool>,
    /// Numbers that were acknowledged, and are higher than the highest that came.
    ahead: BTreeSet<u32>,
    counts: SequenceCounts,
}

/// What the numbers of one side show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceCounts {
    /// Datagrams that have a number.
    pub datagrams: u64,
    /// Those that were sent before.
    pub resends: u64,
    /// Numbers that never came.
    pub lost: u64,
    /// Those of them that the other side acknowledged.
    pub unseen_acks: u64,
    /// Those of them that are higher than any that came.
    pub unseen_at_end: u64,
}

impl SequenceCounts {
    /// All counts with their names.
    pub fn named(&self) -> Vec<(&'static str, LearnedValue)> {
        let counts = [
            ("datagrams", self.datagrams),
            ("resends", self.resends),
            ("lost", self.lost),
            ("unseen_acks", self.unseen_acks),
            ("unseen_at_end", self.unseen_at_end),
        ];
        counts.into_iter().map(|(key, n)| (key, LearnedValue::Count(n))).collect()
    }
}

/// A datagram of one side.
#[derive(Clone, Copy, Debug)]
struct SentPacket {
    sequence: u32,
    record: u64,
    nanos: i64,
    /// When it was acknowledged.
    acknowledged: Option<i64>,
    content: SentContent,
    /// Whether it was read as a CONNECT.
    connects: bool,
}

/// Whether a datagram was sent before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sending {
    /// No, as far as is known.
    #[default]
    First,
    /// It was.
    Again,
    /// It was, and is the CONNECT that opened the link.
    ConnectAgain,
}

/// What tells the content of two datagrams with the same number apart: its length and its first
/// bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct SentContent {
    bytes: usize,
    first: [u8; 16],
}

impl SentContent {
    fn of(link: LinkHeader, bytes: &[u8]) -> SentContent {
        let content = bytes.get(link.end / 8..).unwrap_or(&[]);
        let mut first = [0; 16];
        first.iter_mut().zip(content).for_each(|(to, byte)| *to = *byte);
        SentContent { bytes: content.len(), first }
    }
}

/// How many datagrams are remembered: those with the latest numbers.
const KEPT: usize = 256;
/// Nanoseconds after its acknowledgement within which a datagram may come again: its sender did not
/// have the acknowledgement yet.
const CROSSES: i64 = 5_000_000_000;
/// A larger step of numbers than this shows no loss.
const JUMP: u32 = 1 << 14;

impl Sequences {
    /// Links the datagram in the tree to the earlier one that it repeats.
    pub fn tie(&self, link: LinkHeader, nanos: i64, tree: &mut Tree) {
        if let Some(sent) = self.get(link.sequence) {
            tree.link(LinkKind::SentAgain, 0, sent.record, nanos.saturating_sub(sent.nanos));
        }
    }

    /// Links the datagram in the tree, which the other side sent, to this side's datagrams that it
    /// acknowledges. Each is acknowledged once.
    pub fn acknowledge(&mut self, link: LinkHeader, bytes: &[u8], nanos: i64, tree: &mut Tree) {
        let Sequences { sent, highest, missing, ahead, counts } = self;
        let _ = link.each_ack(bytes, |ack| {
            let slot = sent.get_mut(slot(ack)).and_then(Option::as_mut);
            let Some(sent) = slot.filter(|sent| sent.sequence == ack) else {
                if let Some(acknowledged) = missing.get_mut(&ack) {
                    counts.unseen_acks += u64::from(!std::mem::replace(acknowledged, true));
                } else if ack.wrapping_sub(*highest).wrapping_sub(1) < JUMP && ahead.len() < KEPT {
                    ahead.insert(ack);
                }
                return;
            };
            if sent.acknowledged.is_none() {
                sent.acknowledged = Some(nanos);
                tree.link(LinkKind::Acknowledges, 0, sent.record, nanos.saturating_sub(sent.nanos));
            }
        });
    }

    /// Counts a datagram that is not sent [again](Sequences::again). Returns whether others are
    /// missing before it.
    pub fn skips(&mut self, sequence: u32) -> bool {
        self.counts.datagrams += 1;
        // Numbers begin with 1, also after the link is opened again.
        let before = if sequence == 1 { 0 } else { self.highest };
        if sequence == 1 {
            self.missing.clear();
            self.ahead.clear();
        }
        self.highest = before.max(sequence);
        if let Some(acknowledged) = self.missing.remove(&sequence) {
            self.counts.lost -= 1;
            self.counts.unseen_acks -= u64::from(acknowledged);
        }
        // What came before the first one may have come before the capture.
        if before > 0 && sequence.saturating_sub(before) < JUMP {
            (before + 1..sequence).for_each(|number| self.passed_over(number));
        }
        self.ahead.remove(&sequence);
        sequence > before.saturating_add(1)
    }

    fn passed_over(&mut self, number: u32) {
        let acknowledged = self.ahead.remove(&number);
        self.counts.lost += 1;
        self.counts.unseen_acks += u64::from(acknowledged);
        self.missing.insert(number, acknowledged);
        if self.missing.len() > KEPT {
            self.missing.pop_first();
        }
    }

    /// Counts a datagram that is sent [again](Sequences::again).
    pub fn sent_again(&mut self) {
        self.counts.datagrams += 1;
        self.counts.resends += 1;
    }

    /// What the numbers show so far.
    pub fn counts(&self) -> SequenceCounts {
        let mut counts = self.counts;
        let behind_end = self.ahead.len() as u64;
        counts.lost += behind_end;
        counts.unseen_acks += behind_end;
        counts.unseen_at_end += behind_end;
        counts
    }

    /// Memory that the remembered datagrams take, in bytes.
    pub fn held(&self) -> usize {
        self.sent.capacity() * size_of::<Option<SentPacket>>()
    }

    /// Whether a datagram was sent before, and not only one with the same number on an earlier
    /// link.
    pub fn again(&self, link: LinkHeader, bytes: &[u8], nanos: i64) -> Sending {
        let before = self.get(link.sequence).filter(|sent| {
            let crosses = sent.acknowledged.is_none_or(|at| nanos.saturating_sub(at) < CROSSES);
            crosses && sent.content == SentContent::of(link, bytes)
        });
        match before {
            None => Sending::First,
            Some(SentPacket { connects: true, .. }) => Sending::ConnectAgain,
            Some(_) => Sending::Again,
        }
    }

    /// Remembers a datagram that is not sent [again](Sequences::again), its record, and whether it
    /// was a CONNECT. If there was one with its number on this link, that one stays.
    pub fn remember(
        &mut self,
        link: LinkHeader,
        bytes: &[u8],
        nanos: i64,
        record: u64,
        connects: bool,
    ) {
        let sequence = link.sequence;
        // Numbers begin with 1, also after the link is opened again.
        if sequence == 1 {
            self.sent.clear();
        }
        if self.get(sequence).is_some() {
            return;
        }
        let content = SentContent::of(link, bytes);
        let slot = slot(sequence);
        if self.sent.len() <= slot {
            self.sent.resize(slot + 1, None);
        }
        if let Some(place) = self.sent.get_mut(slot) {
            *place =
                Some(SentPacket { sequence, record, nanos, acknowledged: None, content, connects });
        }
    }

    fn get(&self, sequence: u32) -> Option<&SentPacket> {
        self.sent.get(slot(sequence))?.as_ref().filter(|sent| sent.sequence == sequence)
    }
}

/// The index of a number.
fn slot(sequence: u32) -> usize {
    sequence as usize % KEPT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_passed_over_are_missing() {
        let mut sequences = Sequences::default();
        let skips = [1, 2, 4, 3, 5, 1, 2, 4].map(|sequence| sequences.skips(sequence));
        assert_eq!(skips, [false, false, true, false, false, false, false, true]);
        let SequenceCounts { datagrams, lost, .. } = sequences.counts();
        assert_eq!(
            [datagrams, lost],
            [8, 1],
            "the 3 came late, and after 2 the second link lacks one"
        );
    }
}
