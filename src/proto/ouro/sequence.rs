//! Links sequence numbers and acknowledgements of a link to their records, in bounded memory.

use super::packet::LinkHeader;
use crate::tree::{LinkKind, Tree};

/// The datagrams of one side that may still be acknowledged or sent again, indexed by the low bits of their numbers.
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

/// How many datagrams are remembered: those with the latest numbers.
const KEPT: usize = 256;

impl Sequences {
    /// Links the datagram in the tree to the earlier one that it repeats.
    pub fn tie(&self, link: LinkHeader, nanos: i64, tree: &mut Tree) {
        if let Some(sent) = self.get(link.sequence) {
            tree.link(LinkKind::SentAgain, 0, sent.record, nanos.saturating_sub(sent.nanos));
        }
    }

    /// Links the datagram in the tree, which the other side sent, to this side's datagrams that it acknowledges. Each
    /// is acknowledged once.
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

    /// Remembers a datagram and its record. If it is sent again, the first sending stays.
    pub fn remember(&mut self, link: LinkHeader, nanos: i64, record: u64) {
        let sequence = link.sequence;
        // Numbers begin with 1, also after the link is opened again.
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

/// The index of a number.
fn slot(sequence: u32) -> usize {
    sequence as usize % KEPT
}
