//! IP fragments of both families, put together in whatever order they come, with bounded memory.
//!
//! It knows positions and lengths; what the datagram carries is not its business. Where fragments overlap, the
//! first captured bytes stay. Of a datagram that is given up incomplete the beginning is handed on, if it was captured.

use std::collections::{HashMap, VecDeque};

use super::ip::{Address, Fragment, Packet};
use super::pieces::{Pieces, Span, head, tail};
use crate::capture::Moment;

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

/// A datagram given up incomplete, from its first byte to the first one that is missing.
#[derive(Debug)]
pub(super) struct Broken {
    pub v6: bool,
    pub src: Address,
    pub dst: Address,
    pub protocol: u8,
    pub payload: Vec<u8>,
    /// Given up because there were too many, and not because time had run out.
    pub crowded: bool,
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
    /// When the latest frame was captured, in nanoseconds.
    now: i64,
    /// The datagram completed last; its room is used again.
    whole: Vec<u8>,
    /// What was given up and not yet taken.
    broken: Vec<Broken>,
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
            now: 0,
            whole: Vec::new(),
            broken: Vec::new(),
            dropped: 0,
        }
    }

    /// Takes a fragment; gives the datagram's protocol when this was its last missing part, and its payload is [`whole`](Self::whole).
    pub(super) fn add(&mut self, packet: &Packet<'_>, fragment: Fragment) -> Option<u8> {
        let key = Whole {
            v6: packet.v6,
            src: packet.src,
            dst: packet.dst,
            protocol: if packet.v6 { 0 } else { packet.protocol },
            id: fragment.id,
        };
        self.begin(key);
        let partial = self.partial.get_mut(&key)?;
        let before = partial.pieces.cost();
        partial.add(packet, fragment);
        let complete = partial.total == Some(partial.held);
        self.cost += partial.pieces.cost() - before;
        if complete {
            return self.finish(key);
        }
        while self.cost > self.bounds.bytes {
            self.drop_oldest(true);
        }
        None
    }

    /// The datagram that was completed last.
    pub(super) fn whole(&self) -> &[u8] {
        &self.whole
    }

    /// Takes what was given up since this was asked last.
    pub(super) fn take_broken(&mut self) -> Vec<Broken> {
        std::mem::take(&mut self.broken)
    }

    /// Gives up what is still incomplete.
    pub(super) fn end(&mut self) {
        while !self.order.is_empty() {
            self.drop_oldest(false);
        }
    }

    fn begin(&mut self, key: Whole) {
        if self.partial.contains_key(&key) {
            return;
        }
        while self.partial.len() >= self.bounds.datagrams.max(1) {
            self.drop_oldest(true);
        }
        self.serial += 1;
        self.order.push_back((key, self.serial));
        self.partial.insert(key, Partial { born: self.now, serial: self.serial, ..Partial::default() });
    }

    /// It is so late now, in nanoseconds: gives up what has waited for too long.
    #[inline]
    pub(super) fn age(&mut self, now: i64) {
        self.now = now;
        while let Some((key, serial)) = self.order.front() {
            let partial = self.partial.get(key).filter(|partial| partial.serial == *serial);
            if partial.is_some_and(|partial| now.saturating_sub(partial.born) < self.bounds.age) {
                break;
            }
            self.drop_oldest(false);
        }
    }

    fn drop_oldest(&mut self, crowded: bool) {
        let Some((key, serial)) = self.order.pop_front() else {
            return;
        };
        if self.partial.get(&key).is_some_and(|partial| partial.serial == serial)
            && let Some(partial) = self.partial.remove(&key)
        {
            self.cost -= partial.pieces.cost();
            self.dropped += 1;
            self.broken.extend(partial.beginning(key, crowded));
        }
    }

    fn finish(&mut self, key: Whole) -> Option<u8> {
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
        partial.protocol
    }
}

impl Partial {
    /// What there is of it from the first byte on.
    fn beginning(mut self, key: Whole, crowded: bool) -> Option<Broken> {
        let protocol = self.protocol?;
        let mut payload = Vec::new();
        while let Some((_, piece)) = self.pieces.pop().filter(|(start, _)| *start == payload.len() as u64) {
            payload.extend_from_slice(&piece.bytes);
        }
        Some(Broken { v6: key.v6, src: key.src, dst: key.dst, protocol, payload, crowded })
    }

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
