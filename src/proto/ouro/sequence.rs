//! Sequence numbers and acknowledgements of a link, tied to the records they belong to. Bounded.

use std::collections::VecDeque;

use super::packet::LinkHeader;
use crate::tree::{LinkKind, Tree};

/// What one side sent, as far as it may still be acknowledged or sent again.
#[derive(Debug, Default)]
pub struct Sequences {
    sent: VecDeque<Sent>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    sequence: u32,
    record: u64,
    nanos: i64,
    acknowledged: bool,
}

/// Datagrams that are remembered.
const KEPT: usize = 256;

impl Sequences {
    /// Ties a datagram to an earlier one with its number.
    pub fn tie(&self, link: LinkHeader, nanos: i64, tree: &mut Tree) {
        if let Some(sent) = self.sent.iter().find(|s| s.sequence == link.sequence) {
            tree.link(LinkKind::SentAgain, 0, sent.record, nanos.saturating_sub(sent.nanos));
        }
    }

    /// Ties what the other side acknowledges to this side's records, once each.
    pub fn acknowledge(&mut self, link: LinkHeader, bytes: &[u8], nanos: i64, tree: &mut Tree) {
        let _ = link.each_ack(bytes, |ack| {
            if let Some(sent) = self.sent.iter_mut().rev().find(|s| s.sequence == ack && !s.acknowledged) {
                sent.acknowledged = true;
                tree.link(LinkKind::Acknowledges, 0, sent.record, nanos.saturating_sub(sent.nanos));
            }
        });
    }

    /// Memory that the remembered datagrams take, in bytes.
    pub fn held(&self) -> usize {
        self.sent.capacity() * size_of::<Sent>()
    }

    /// Remembers a datagram and its record.
    pub fn sent(&mut self, link: LinkHeader, nanos: i64, record: u64) {
        if link.sequence == 1 {
            self.sent.clear();
        }
        if self.sent.iter().any(|s| s.sequence == link.sequence) {
            return;
        }
        if self.sent.len() >= KEPT {
            self.sent.pop_front();
        }
        self.sent.push_back(Sent { sequence: link.sequence, record, nanos, acknowledged: false });
    }
}
