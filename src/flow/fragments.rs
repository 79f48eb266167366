//! IP fragments of both families, put together in whatever order they come, with bounded memory.
//!
//! It knows positions and lengths; what the datagram carries is not its business. Where fragments overlap, the
//! first captured bytes stay.

use std::collections::{HashMap, VecDeque};

use super::ip::{Address, Fragment, Packet};
use super::pieces::{Pieces, Span, head, tail};
use super::sink::Moment;

/// The longest datagram there is, in bytes.
const LONGEST: u32 = 65_535;

/// Fragments of one datagram are alike in these (RFC 791, RFC 8200).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Whole {
    v6: bool,
    src: Address,
    dst: Address,
    /// IPv6 tells datagrams apart without it.
    protocol: u8,
    id: u32,
}

#[derive(Debug, Default)]
struct Partial {
    pieces: Pieces,
    /// Bytes held, overlaps counted once.
    held: u32,
    /// The whole length, once the last fragment was seen.
    total: Option<u32>,
    /// What the first fragment says the datagram carries.
    protocol: Option<u8>,
    /// When the first of them was captured, in nanoseconds.
    born: i64,
    /// Tells this one from another that later has the same identification.
    serial: u64,
}

/// How many fragments may wait, and how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub datagrams: usize,
    pub bytes: usize,
    /// In nanoseconds.
    pub age: i64,
}

/// Datagrams of which parts are missing.
#[derive(Debug)]
pub(super) struct Fragments {
    bounds: Bounds,
    partial: HashMap<Whole, Partial>,
    order: VecDeque<(Whole, u64)>,
    cost: usize,
    serial: u64,
    /// The datagram completed last; its room is used again.
    whole: Vec<u8>,
    /// Datagrams given up incomplete.
    pub(super) dropped: u64,
}

impl Fragments {
    pub(super) fn new(bounds: Bounds) -> Self {
        Fragments {
            bounds,
            partial: HashMap::new(),
            order: VecDeque::new(),
            cost: 0,
            serial: 0,
            whole: Vec::new(),
            dropped: 0,
        }
    }

    /// Takes a fragment; gives the datagram's protocol and payload when this was its last missing part.
    pub(super) fn add(&mut self, packet: &Packet<'_>, fragment: Fragment, now: i64) -> Option<(u8, &[u8])> {
        let key = Whole {
            v6: packet.v6,
            src: packet.src,
            dst: packet.dst,
            protocol: if packet.v6 { 0 } else { packet.protocol },
            id: fragment.id,
        };
        self.age(now);
        self.begin(key, now);
        let partial = self.partial.get_mut(&key)?;
        let before = partial.pieces.cost();
        partial.add(packet, fragment);
        let complete = partial.total == Some(partial.held);
        self.cost += partial.pieces.cost() - before;
        if complete {
            return self.finish(key);
        }
        while self.cost > self.bounds.bytes {
            self.drop_oldest();
        }
        None
    }

    /// Gives up what is still incomplete.
    pub(super) fn end(&mut self) {
        while !self.order.is_empty() {
            self.drop_oldest();
        }
    }

    fn begin(&mut self, key: Whole, now: i64) {
        if self.partial.contains_key(&key) {
            return;
        }
        while self.partial.len() >= self.bounds.datagrams.max(1) {
            self.drop_oldest();
        }
        self.serial += 1;
        self.order.push_back((key, self.serial));
        self.partial.insert(key, Partial { born: now, serial: self.serial, ..Partial::default() });
    }

    fn age(&mut self, now: i64) {
        while let Some((key, serial)) = self.order.front() {
            let partial = self.partial.get(key).filter(|partial| partial.serial == *serial);
            if partial.is_some_and(|partial| now.saturating_sub(partial.born) < self.bounds.age) {
                break;
            }
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        let Some((key, serial)) = self.order.pop_front() else {
            return;
        };
        if self.partial.get(&key).is_some_and(|partial| partial.serial == serial)
            && let Some(partial) = self.partial.remove(&key)
        {
            self.cost -= partial.pieces.cost();
            self.dropped += 1;
        }
    }

    fn finish(&mut self, key: Whole) -> Option<(u8, &[u8])> {
        let mut partial = self.partial.remove(&key)?;
        self.cost -= partial.pieces.cost();
        // Its entry in `order` is stale now; many of them would be a leak.
        if self.order.len() > 2 * self.partial.len() + 16 {
            let alive = &self.partial;
            self.order.retain(|(key, serial)| alive.get(key).is_some_and(|partial| partial.serial == *serial));
        }
        self.whole.clear();
        while let Some((start, piece)) = partial.pieces.pop() {
            // Fragments that contradict each other may add up and still leave a hole.
            if start != self.whole.len() as u64 {
                self.dropped += 1;
                return None;
            }
            self.whole.extend_from_slice(&piece.bytes);
        }
        Some((partial.protocol?, &self.whole))
    }
}

impl Partial {
    fn add(&mut self, packet: &Packet<'_>, fragment: Fragment) {
        let len = u32::try_from(packet.payload.len()).unwrap_or(u32::MAX);
        let Some(end) = fragment.offset.checked_add(len).filter(|end| *end <= LONGEST) else {
            return;
        };
        // Bytes beyond the datagram's end, or an end before bytes that are there: the first word stands.
        let (mut at, limit) = (u64::from(fragment.offset), u64::from(end.min(self.total.unwrap_or(LONGEST))));
        let mut bytes = packet.payload;
        while at < limit {
            match self.pieces.span(at, limit) {
                Span::Taken { end, .. } => {
                    bytes = tail(bytes, end - at);
                    at = end;
                }
                Span::Free { end } => {
                    self.pieces.put(at, head(bytes, end - at), end - at, Moment::default());
                    self.held += (end - at) as u32;
                    bytes = tail(bytes, end - at);
                    at = end;
                }
            }
        }
        if !fragment.more && packet.missing == 0 && self.total.is_none() {
            self.total = Some(end);
        }
        if fragment.offset == 0 {
            self.protocol = self.protocol.or(Some(packet.protocol));
        }
    }
}
