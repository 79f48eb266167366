//! Sequence numbers and acknowledgements of a link, tied to the records they belong to. Bounded.

use super::packet::LinkHeader;
use crate::tree::{LinkKind, Tree};

/// What one side sent, as far as it may still be acknowledged or sent again: each datagram at the place that the low bits of its number say.
#[derive(Debug, Default)]
pub struct Sequences {
    sent: Vec<Option<SentPacket>>,
}

/// A datagram of one side.
#[derive(Clone, Copy, Debug)]
struct SentPacket {
    sequence: u32,
    record: u64,
    nanos: i64,
    acknowledged: bool,
}

/// Datagrams that are remembered: those with the latest numbers.
const KEPT: usize = 256;

impl Sequences {
    /// Ties the datagram in the tree to an earlier one with its number, which it repeats.
    pub fn tie(&self, link: LinkHeader, nanos: i64, tree: &mut Tree) {
        if let Some(sent) = self.get(link.sequence) {
            tree.link(LinkKind::SentAgain, 0, sent.record, nanos.saturating_sub(sent.nanos));
        }
    }

    /// Ties the datagram in the tree, which the other side sent, to those of this side's datagrams that it acknowledges. Each is acknowledged once.
    pub fn acknowledge(&mut self, link: LinkHeader, bytes: &[u8], nanos: i64, tree: &mut Tree) {
        let _ = link.each_ack(bytes, |ack| {
            let slot = self.sent.get_mut(slot(ack)).and_then(Option::as_mut);
            if let Some(sent) = slot.filter(|sent| sent.sequence == ack && !sent.acknowledged) {
                sent.acknowledged = true;
                tree.link(LinkKind::Acknowledges, 0, sent.record, nanos.saturating_sub(sent.nanos));
            }
        });
    }

    /// Memory that the remembered datagrams take, in bytes.
    pub fn held(&self) -> usize {
        self.sent.capacity() * size_of::<Option<SentPacket>>()
    }

    /// Remembers a datagram and its record. Of one that is sent again, the first sending stays.
    pub fn remember(&mut self, link: LinkHeader, nanos: i64, record: u64) {
        let sequence = link.sequence;
        // Numbers begin with 1, also where the link is opened again.
        if sequence == 1 {
            self.sent.clear();
        }
        if self.get(sequence).is_some() {
            return;
        }
        let slot = slot(sequence);
        if self.sent.len() <= slot {
            self.sent.resize(slot + 1, None);
        }
        if let Some(place) = self.sent.get_mut(slot) {
            *place = Some(SentPacket { sequence, record, nanos, acknowledged: false });
        }
    }

    fn get(&self, sequence: u32) -> Option<&SentPacket> {
        self.sent.get(slot(sequence))?.as_ref().filter(|sent| sent.sequence == sequence)
    }
}

/// The place of a number.
fn slot(sequence: u32) -> usize {
    sequence as usize % KEPT
}
