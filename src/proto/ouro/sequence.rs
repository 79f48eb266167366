//! Links sequence numbers and acknowledgements of a link to their records, in bounded memory.

use super::packet::LinkHeader;
use crate::tree::{LinkKind, Tree};

/// The datagrams of one side that may still be acknowledged or sent again, indexed by the low bits
/// of their numbers.
#[derive(Debug, Default)]
pub struct Sequences {
    sent: Vec<Option<SentPacket>>,
    /// The number before the one that comes next: the highest so far on this link.
    highest: u32,
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
        let _ = link.each_ack(bytes, |ack| {
            let slot = self.sent.get_mut(slot(ack)).and_then(Option::as_mut);
            if let Some(sent) =
                slot.filter(|sent| sent.sequence == ack && sent.acknowledged.is_none())
            {
                sent.acknowledged = Some(nanos);
                tree.link(LinkKind::Acknowledges, 0, sent.record, nanos.saturating_sub(sent.nanos));
            }
        });
    }

    /// Counts a datagram that is not sent [again](Sequences::again). Returns whether others are
    /// missing before it.
    pub fn skips(&mut self, sequence: u32) -> bool {
        // Numbers begin with 1, also after the link is opened again.
        let before = if sequence == 1 { 0 } else { self.highest };
        self.highest = before.max(sequence);
        sequence > before.saturating_add(1)
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
    }
}
