//! A table of conversations: finds one by its pair of ends, and the one that was idle longest, both
//! in constant time.
//!
//! A conversation is a value in a slot, and linked lists run through the slots. This file does not
//! know what the values are.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::net::SocketAddr;

use super::ip::{self, Address};

/// An address and a port.
#[derive(Clone, Copy)]
pub(super) struct Endpoint<'a> {
    pub address: &'a Address,
    pub port: u16,
}

/// The ends of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketEnds {
    pub pair: EndpointPair,
    pub sender: PairSide,
}

/// Two ends, in the same order whichever of them sends: two words for each address, and a word with
/// the ports and the address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EndpointPair([u64; 5]);

/// One end of an [`EndpointPair`]: the one with the lower address and port, or the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PairSide {
    Low,
    High,
}

impl Hash for EndpointPair {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for word in self.0 {
            state.write_u64(word);
        }
    }
}

impl PacketEnds {
    /// The ends of a packet from `src` to `dst`.
    pub(super) fn new(v6: bool, src: Endpoint<'_>, dst: Endpoint<'_>) -> Self {
        let words = |end: Endpoint<'_>| {
            let address = u128::from_be_bytes(*end.address);
            ((address >> 64) as u64, address as u64, end.port)
        };
        let src = words(src);
        let dst = words(dst);
        let (low, high, sender) =
            if src <= dst { (src, dst, PairSide::Low) } else { (dst, src, PairSide::High) };
        let ports = u64::from(v6) << 32 | u64::from(low.2) << 16 | u64::from(high.2);
        PacketEnds { pair: EndpointPair([low.0, low.1, high.0, high.1, ports]), sender }
    }
}

impl EndpointPair {
    /// The end on one side.
    pub(super) fn end(&self, side: PairSide) -> SocketAddr {
        let [low_a, low_b, high_a, high_b, ports] = self.0;
        let (a, b, port) = match side {
            PairSide::Low => (low_a, low_b, ports >> 16),
            PairSide::High => (high_a, high_b, ports),
        };
        let bytes = (u128::from(a) << 64 | u128::from(b)).to_be_bytes();
        SocketAddr::new(ip::address(ports >> 32 & 1 == 1, &bytes), port as u16)
    }
}

impl PairSide {
    pub(super) fn other(self) -> Self {
        match self {
            PairSide::Low => PairSide::High,
            PairSide::High => PairSide::Low,
        }
    }
}

/// The index of a slot in the table.
pub(super) type SlotId = u32;

/// A list through the slots, oldest first. A slot is in one of the first two, and may also be in
/// the third.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    /// Conversations that have not ended, in order of their last packets.
    Open,
    /// Conversations that ended, in order of their ends.
    Closed,
    /// Conversations that wait for something, in order of when they began to wait.
    Pending,
}

#[derive(Clone, Copy, Debug, Default)]
struct ListEnds {
    first: Option<SlotId>,
    last: Option<SlotId>,
    count: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct ListLink {
    before: Option<SlotId>,
    after: Option<SlotId>,
    linked: bool,
}

#[derive(Debug)]
struct Slot<V> {
    key: EndpointPair,
    value: V,
    closed: bool,
    /// Through `Open` or `Closed`, and through `Pending`.
    links: [ListLink; 2],
}

/// The table. Its memory grows with the largest number of conversations held at once; slots are
/// reused. Each is a place of its own, so that the list of them is small while it grows.
#[derive(Debug)]
pub(super) struct ConversationTable<V> {
    index: HashMap<EndpointPair, SlotId>,
    slots: Vec<Option<Box<Slot<V>>>>,
    free: Vec<SlotId>,
    lists: [ListEnds; 3],
    /// The conversation found last. The next packet is likely to belong to it.
    recent: Option<(EndpointPair, SlotId)>,
}

impl<V> ConversationTable<V> {
    pub(super) fn new() -> Self {
        ConversationTable {
            index: HashMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            lists: [ListEnds::default(); 3],
            recent: None,
        }
    }

    pub(super) fn find(&mut self, key: &EndpointPair) -> Option<SlotId> {
        if let Some((recent, slot)) = self.recent
            && recent == *key
        {
            return Some(slot);
        }
        let slot = *self.index.get(key)?;
        self.recent = Some((*key, slot));
        Some(slot)
    }

    /// Adds a conversation as the youngest open one.
    pub(super) fn insert(&mut self, key: EndpointPair, value: V) -> SlotId {
        let slot = Slot { key, value, closed: false, links: [ListLink::default(); 2] };
        let entry = Some(Box::new(slot));
        let id = match self.free.pop() {
            Some(id) => {
                if let Some(slot) = self.slots.get_mut(id as usize) {
                    *slot = entry;
                }
                id
            }
            None => {
                self.slots.push(entry);
                (self.slots.len() - 1) as SlotId
            }
        };
        self.index.insert(key, id);
        self.recent = Some((key, id));
        self.append(List::Open, id);
        id
    }

    /// Removes a conversation.
    pub(super) fn remove(&mut self, id: SlotId) -> Option<V> {
        self.unlink(List::Pending, id);
        self.unlink(self.list_of(id)?, id);
        let slot = self.slots.get_mut(id as usize)?.take()?;
        self.index.remove(&slot.key);
        self.recent = None;
        self.free.push(id);
        Some(slot.value)
    }

    pub(super) fn get(&self, id: SlotId) -> Option<&V> {
        self.slot(id).map(|slot| &slot.value)
    }

    pub(super) fn get_mut(&mut self, id: SlotId) -> Option<&mut V> {
        self.slot_mut(id).map(|slot| &mut slot.value)
    }

    pub(super) fn count(&self, list: List) -> usize {
        self.ends(list).count
    }

    pub(super) fn oldest(&self, list: List) -> Option<SlotId> {
        self.ends(list).first
    }

    /// The next younger conversation in a list.
    pub(super) fn after(&self, list: List, id: SlotId) -> Option<SlotId> {
        self.link(list, id)?.after
    }

    /// Makes a conversation the youngest open one.
    pub(super) fn touch(&mut self, id: SlotId) {
        if self.ends(List::Open).last != Some(id) {
            self.move_to(id, false);
        }
    }

    /// Makes a conversation the youngest closed one.
    pub(super) fn close(&mut self, id: SlotId) {
        self.move_to(id, true);
    }

    /// Sets whether a conversation waits for something.
    pub(super) fn set_pending(&mut self, id: SlotId, pending: bool) {
        let linked = self.link(List::Pending, id).is_some_and(|link| link.linked);
        if pending && !linked {
            self.append(List::Pending, id);
        } else if !pending && linked {
            self.unlink(List::Pending, id);
        }
    }

    fn move_to(&mut self, id: SlotId, closed: bool) {
        let Some(list) = self.list_of(id) else { return };
        self.unlink(list, id);
        if let Some(slot) = self.slot_mut(id) {
            slot.closed = closed;
        }
        self.append(if closed { List::Closed } else { List::Open }, id);
    }

    fn list_of(&self, id: SlotId) -> Option<List> {
        self.slot(id).map(|slot| if slot.closed { List::Closed } else { List::Open })
    }

    fn slot(&self, id: SlotId) -> Option<&Slot<V>> {
        self.slots.get(id as usize)?.as_deref()
    }

    fn slot_mut(&mut self, id: SlotId) -> Option<&mut Slot<V>> {
        self.slots.get_mut(id as usize)?.as_deref_mut()
    }

    fn ends(&self, list: List) -> ListEnds {
        let [open, closed, pending] = self.lists;
        match list {
            List::Open => open,
            List::Closed => closed,
            List::Pending => pending,
        }
    }

    fn ends_mut(&mut self, list: List) -> &mut ListEnds {
        let [open, closed, pending] = &mut self.lists;
        match list {
            List::Open => open,
            List::Closed => closed,
            List::Pending => pending,
        }
    }

    fn link(&self, list: List, id: SlotId) -> Option<ListLink> {
        let [main, pending] = self.slot(id)?.links;
        Some(if list == List::Pending { pending } else { main })
    }

    fn change_link(&mut self, list: List, id: Option<SlotId>, change: impl FnOnce(&mut ListLink)) {
        let Some(slot) = id.and_then(|id| self.slot_mut(id)) else {
            return;
        };
        let [main, pending] = &mut slot.links;
        change(if list == List::Pending { pending } else { main });
    }

    fn append(&mut self, list: List, id: SlotId) {
        let last = self.ends(list).last;
        self.change_link(list, Some(id), |link| {
            *link = ListLink { before: last, after: None, linked: true }
        });
        self.change_link(list, last, |link| link.after = Some(id));
        let ends = self.ends_mut(list);
        ends.first = ends.first.or(Some(id));
        ends.last = Some(id);
        ends.count += 1;
    }

    fn unlink(&mut self, list: List, id: SlotId) {
        let Some(link) = self.link(list, id).filter(|link| link.linked) else {
            return;
        };
        self.change_link(list, link.before, |before| before.after = link.after);
        self.change_link(list, link.after, |after| after.before = link.before);
        self.change_link(list, Some(id), |link| *link = ListLink::default());
        let ends = self.ends_mut(list);
        if ends.first == Some(id) {
            ends.first = link.after;
        }
        if ends.last == Some(id) {
            ends.last = link.before;
        }
        ends.count -= 1;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    fn ends(v6: bool, src: u8, src_port: u16, dst: u8, dst_port: u16) -> PacketEnds {
        let src = [src; 16];
        let dst = [dst; 16];
        PacketEnds::new(
            v6,
            Endpoint { address: &src, port: src_port },
            Endpoint { address: &dst, port: dst_port },
        )
    }

    fn key(port: u16) -> EndpointPair {
        ends(false, 1, port, 2, 80).pair
    }

    fn order(table: &ConversationTable<u16>, list: List) -> Vec<u16> {
        let mut at = table.oldest(list);
        let mut found = Vec::new();
        while let Some(id) = at {
            found.push(*table.get(id).unwrap());
            at = table.after(list, id);
        }
        assert_eq!(found.len(), table.count(list));
        found
    }

    #[test]
    fn both_directions_have_the_same_key() {
        let there = ends(true, 1, 4000, 2, 80);
        let back = ends(true, 2, 80, 1, 4000);
        assert_eq!(there.pair, back.pair);
        assert_eq!(there.sender.other(), back.sender);
        assert_eq!(
            there.pair.end(there.sender).to_string(),
            "[101:101:101:101:101:101:101:101]:4000"
        );
        assert_ne!(
            key(4000),
            there.pair,
            "pairs of different families differ even if their bytes are equal"
        );
    }

    #[test]
    fn lists_keep_their_order() {
        let mut table = ConversationTable::new();
        let ids: Vec<_> = (0..5).map(|n| table.insert(key(n), n)).collect();
        assert_eq!(order(&table, List::Open), [0, 1, 2, 3, 4]);
        table.touch(ids[1]);
        table.close(ids[3]);
        table.set_pending(ids[2], true);
        table.set_pending(ids[0], true);
        table.set_pending(ids[2], true);
        assert_eq!(order(&table, List::Open), [0, 2, 4, 1]);
        assert_eq!(order(&table, List::Closed), [3]);
        assert_eq!(order(&table, List::Pending), [2, 0]);
        assert_eq!(table.remove(ids[0]), Some(0));
        assert_eq!(table.remove(ids[3]), Some(3));
        assert_eq!(table.find(&key(0)), None);
        assert_eq!(order(&table, List::Pending), [2]);
        let again = table.insert(key(9), 9);
        assert!(again == ids[0] || again == ids[3], "places are used again");
        assert_eq!(order(&table, List::Open), [2, 4, 1, 9]);
        assert_eq!(table.find(&key(2)), Some(ids[2]));
    }
}
