//! Reassembles IP fragments of both families in any order, with bounded memory.
//!
//! It knows positions and lengths, not the content of a datagram. If fragments overlap, the bytes
//! captured first are kept. If a datagram is given up incomplete, its beginning is delivered if it
//! was captured.

use std::collections::{HashMap, VecDeque};

use super::ip::{Address, Fragment, IpPacket};
use super::pending::{PendingBytes, Span, head, tail};
use super::remaining::Network;
use crate::capture::Moment;

/// The longest IP datagram in bytes.
const LONGEST: u32 = 65_535;

/// The values that all fragments of a datagram share (RFC 791, RFC 8200).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct DatagramKey {
    /// Hosts in different networks may have the same addresses.
    network: Network,
    v6: bool,
    src: Address,
    dst: Address,
    /// 0 for IPv6, which does not use it.
    protocol: u8,
    id: u32,
}

#[derive(Debug, Default)]
struct Partial {
    pieces: PendingBytes,
    /// Bytes held. Overlaps count once.
    held: u32,
    /// The datagram's length, once its last fragment was seen.
    total: Option<u32>,
    /// The protocol, once the first fragment was seen.
    protocol: Option<u8>,
    /// How many more headers may be read in it.
    headers_left: u8,
    /// When its first captured fragment was captured, in nanoseconds.
    born: i64,
    /// Distinguishes this datagram from a later one with the same identification.
    serial: u64,
}

/// A datagram that was given up incomplete: its bytes up to the first missing one.
#[derive(Debug)]
pub(super) struct IncompleteDatagram {
    pub network: Network,
    /// How many more headers may be read in it.
    pub headers_left: u8,
    pub v6: bool,
    pub src: Address,
    pub dst: Address,
    pub protocol: u8,
    pub payload: Vec<u8>,
    /// Whether it was given up because too many were waiting, and not because of its age.
    pub crowded: bool,
}

/// The limits on waiting fragments.
#[derive(Clone, Copy, Debug)]
pub(super) struct FragmentBounds {
    /// Incomplete datagrams.
    pub datagrams: usize,
    /// Memory.
    pub bytes: usize,
    /// How long a datagram may wait, in nanoseconds.
    pub age: i64,
}

/// All incomplete datagrams.
#[derive(Debug)]
pub(super) struct Fragments {
    bounds: FragmentBounds,
    partial: HashMap<DatagramKey, Partial>,
    order: VecDeque<(DatagramKey, u64)>,
    cost: usize,
    serial: u64,
    /// When the current frame was captured, in nanoseconds.
    now: i64,
    /// The payload of the datagram completed last. The buffer is reused.
    whole: Vec<u8>,
    /// Datagrams that were given up and not taken yet.
    incomplete: Vec<IncompleteDatagram>,
    /// How many datagrams were given up incomplete.
    pub(super) dropped: u64,
}

impl Fragments {
    pub(super) fn new(bounds: FragmentBounds) -> Self {
        Fragments {
            bounds,
            partial: HashMap::new(),
            order: VecDeque::new(),
            cost: 0,
            serial: 0,
            now: 0,
            whole: Vec::new(),
            incomplete: Vec::new(),
            dropped: 0,
        }
    }

    /// Handles a fragment. If it completes its datagram, returns the datagram's protocol. Its
    /// payload is then [taken](Self::take_whole).
    pub(super) fn add(&mut self, packet: &IpPacket<'_>, fragment: Fragment) -> Option<u8> {
        let key = DatagramKey {
            network: packet.network,
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

    /// Takes the payload of the datagram completed last.
    pub(super) fn take_whole(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.whole)
    }

    /// Gives its buffer back, to be used again.
    pub(super) fn reuse(&mut self, whole: Vec<u8>) {
        self.whole = whole;
    }

    /// The datagrams that were given up since the last call.
    pub(super) fn take_incomplete(&mut self) -> Vec<IncompleteDatagram> {
        std::mem::take(&mut self.incomplete)
    }

    /// Gives up all incomplete datagrams.
    pub(super) fn end(&mut self) {
        while !self.order.is_empty() {
            self.drop_oldest(false);
        }
    }

    fn begin(&mut self, key: DatagramKey) {
        if self.partial.contains_key(&key) {
            return;
        }
        while self.partial.len() >= self.bounds.datagrams.max(1) {
            self.drop_oldest(true);
        }
        self.serial += 1;
        self.order.push_back((key, self.serial));
        self.partial
            .insert(key, Partial { born: self.now, serial: self.serial, ..Partial::default() });
    }

    /// Sets the time to `now`, in nanoseconds, and gives up datagrams that have waited too long.
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
            self.incomplete.extend(partial.beginning(key, crowded));
        }
    }

    fn finish(&mut self, key: DatagramKey) -> Option<u8> {
        let mut partial = self.partial.remove(&key)?;
        self.cost -= partial.pieces.cost();
        // Its entry in `order` is stale now. Stale entries are removed when they are the majority,
        // so that they neither accumulate nor cost time for each datagram.
        if self.order.len() > 2 * self.partial.len() + 16 {
            let alive = &self.partial;
            self.order.retain(|(key, serial)| {
                alive.get(key).is_some_and(|partial| partial.serial == *serial)
            });
        }
        self.whole.clear();
        while let Some((start, piece)) = partial.pieces.pop() {
            // The lengths of contradictory fragments can add up to the total although there is a
            // hole.
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
    /// Its bytes up to the first missing one. `None` if the first fragment is missing.
    fn beginning(mut self, key: DatagramKey, crowded: bool) -> Option<IncompleteDatagram> {
        let protocol = self.protocol?;
        let mut payload = Vec::new();
        while let Some((_, piece)) =
            self.pieces.pop().filter(|(start, _)| *start == payload.len() as u64)
        {
            payload.extend_from_slice(&piece.bytes);
        }
        Some(IncompleteDatagram {
            network: key.network,
            headers_left: self.headers_left,
            v6: key.v6,
            src: key.src,
            dst: key.dst,
            protocol,
            payload,
            crowded,
        })
    }

    fn add(&mut self, packet: &IpPacket<'_>, fragment: Fragment) {
        let len = u32::try_from(packet.payload.len()).unwrap_or(u32::MAX);
        let Some(end) = fragment.offset.checked_add(len).filter(|end| *end <= LONGEST) else {
            return;
        };
        // Bytes beyond the end of the datagram are ignored, and so is a second, different end.
        let mut at = u64::from(fragment.offset);
        let limit = u64::from(end.min(self.total.unwrap_or(LONGEST)));
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
            self.headers_left = packet.headers_left;
            self.protocol = self.protocol.or(Some(packet.protocol));
        }
    }
}
