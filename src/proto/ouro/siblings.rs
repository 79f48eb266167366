//! Reassembles packets from several datagrams: keeps the pieces, in any order, until all are there.
//! Bounded in number and size.
//!
//! It does not know their content.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// Incomplete packets of one direction.
#[derive(Debug, Default)]
pub struct Siblings {
    sets: VecDeque<Set>,
    /// Identities of completed packets, to recognise pieces that are sent again.
    done: VecDeque<u32>,
    bytes: usize,
}

/// The pieces of one packet.
#[derive(Debug)]
pub struct Set {
    /// The identity that all of them share.
    pub id: u32,
    /// How many pieces the packet has.
    pub count: u32,
    /// The pieces so far, by position.
    pieces: BTreeMap<u32, KeptPiece>,
}

impl fmt::Display for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.id;
        let count = self.count;
        write!(
            f,
            "of the packet with sibling ID {id} only {} of {count} datagrams had come",
            self.have()
        )
    }
}

/// A piece that is kept.
#[derive(Debug)]
struct KeptPiece {
    bytes: Vec<u8>,
    bits: usize,
    record: u64,
}

/// A piece that came.
#[derive(Clone, Copy, Debug)]
pub struct PiecePayload<'a> {
    /// The same number for all pieces of a packet.
    pub id: u32,
    /// How many pieces the packet has.
    pub count: u32,
    /// Which of them this is, from 0.
    pub position: u32,
    /// Its payload, which begins with the first bit of the first byte.
    pub bytes: &'a [u8],
    /// Bits of the payload.
    pub bits: usize,
}

/// The result of adding a piece.
#[derive(Debug)]
pub enum PieceOutcome {
    /// More pieces are needed. Tell its record with [`Siblings::recorded`].
    Waits,
    /// It was there already, or its packet was already complete.
    Again,
    /// Another piece had come with its position; that one is kept.
    Differs,
    /// It completed the packet.
    Whole(Joined),
}

/// Why an incomplete packet was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostReason {
    /// A piece with the same identity states another number of pieces.
    Count,
    /// Too many were kept, or too many bytes.
    Room,
}

/// A packet put together.
#[derive(Debug, PartialEq, Eq)]
pub struct Joined {
    /// All payloads in order.
    pub bytes: Vec<u8>,
    /// Their bits.
    pub bits: usize,
    /// The records of the pieces that came before the last one, by position.
    pub records: Vec<u64>,
}

impl Set {
    /// How many pieces came.
    pub fn have(&self) -> u32 {
        self.pieces.len() as u32
    }

    fn size(&self) -> usize {
        self.pieces.values().map(|p| p.bytes.len()).sum()
    }
}

impl Siblings {
    /// The most incomplete packets kept.
    pub const MAX_SETS: usize = 64;
    /// The most bytes kept.
    pub const MAX_BYTES: usize = 4 << 20;

    /// Adds a piece. Calls `lost` with each incomplete packet that is given up for it.
    pub fn take(
        &mut self,
        piece: PiecePayload<'_>,
        mut lost: impl FnMut(Set, LostReason),
    ) -> PieceOutcome {
        let PiecePayload { id, count, position, bytes, bits } = piece;
        if self.done.contains(&id) {
            return PieceOutcome::Again;
        }
        if let Some(at) = self.sets.iter().position(|s| s.id == id && s.count != count)
            && let Some(set) = self.remove(at)
        {
            lost(set, LostReason::Count);
        }
        if !self.sets.iter().any(|s| s.id == id) {
            self.sets.push_back(Set { id, count, pieces: BTreeMap::new() });
        }
        let Some(at) = self.sets.iter().position(|s| s.id == id) else {
            return PieceOutcome::Again;
        };
        let Some(set) = self.sets.get_mut(at) else { return PieceOutcome::Again };
        match set.pieces.get(&position) {
            None => {
                set.pieces.insert(position, KeptPiece { bytes: bytes.to_vec(), bits, record: 0 })
            }
            Some(piece) if piece.bits != bits || piece.bytes != bytes => {
                return PieceOutcome::Differs;
            }
            Some(_) => return PieceOutcome::Again,
        };
        self.bytes += bytes.len();
        if set.have() == set.count {
            let set = self.remove(at);
            self.done.push_back(id);
            if self.done.len() > Self::MAX_SETS {
                self.done.pop_front();
            }
            return set.map_or(PieceOutcome::Again, |s| PieceOutcome::Whole(join(&s, position)));
        }
        while self.sets.len() > Self::MAX_SETS || self.bytes > Self::MAX_BYTES {
            match self.remove(0) {
                Some(set) => lost(set, LostReason::Room),
                None => break,
            }
        }
        PieceOutcome::Waits
    }

    /// Sets the record of a waiting piece.
    pub fn recorded(&mut self, id: u32, position: u32, record: u64) {
        let set = self.sets.iter_mut().find(|s| s.id == id);
        if let Some(piece) = set.and_then(|s| s.pieces.get_mut(&position)) {
            piece.record = record;
        }
    }

    /// Memory of the pieces, roughly, in bytes.
    pub fn held(&self) -> usize {
        let pieces: usize = self.sets.iter().map(|s| s.pieces.len()).sum();
        self.bytes + 96 * pieces + 64 * self.sets.len()
    }

    /// All incomplete packets.
    pub fn incomplete(&self) -> impl Iterator<Item = &Set> + '_ {
        self.sets.iter()
    }

    fn remove(&mut self, at: usize) -> Option<Set> {
        let set = self.sets.remove(at)?;
        self.bytes = self.bytes.saturating_sub(set.size());
        Some(set)
    }
}

fn join(set: &Set, last: u32) -> Joined {
    let mut out = Joined { bytes: Vec::with_capacity(set.size()), bits: 0, records: Vec::new() };
    for (position, piece) in &set.pieces {
        append(&mut out, &piece.bytes, piece.bits);
        if *position != last {
            out.records.push(piece.record);
        }
    }
    out
}

/// Appends bits to bits that may end within a byte.
fn append(out: &mut Joined, bytes: &[u8], bits: usize) {
    let shift = out.bits % 8;
    for byte in bytes.iter().take(bits.div_ceil(8)) {
        match out.bytes.last_mut().filter(|_| shift != 0) {
            None => out.bytes.push(*byte),
            Some(last) => {
                *last |= byte << shift;
                out.bytes.push(byte >> (8 - shift));
            }
        }
    }
    out.bits += bits;
    out.bytes.truncate(out.bits.div_ceil(8));
    let tail = out.bits % 8;
    if let Some(last) = out.bytes.last_mut().filter(|_| tail != 0) {
        *last &= (1 << tail) - 1;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]
    use super::*;

    fn piece(id: u32, count: u32, position: u32, bytes: &[u8], bits: usize) -> PiecePayload<'_> {
        PiecePayload { id, count, position, bytes, bits }
    }

    fn none(_: Set, _: LostReason) {
        panic!("nothing is to be lost");
    }

    #[test]
    fn pieces_come_in_any_order() {
        let mut s = Siblings::default();
        assert!(matches!(s.take(piece(7, 3, 2, &[0x05], 3), none), PieceOutcome::Waits));
        s.recorded(7, 2, 10);
        assert!(matches!(s.take(piece(7, 3, 0, &[1, 2], 16), none), PieceOutcome::Waits));
        s.recorded(7, 0, 11);
        assert!(matches!(s.take(piece(7, 3, 0, &[1, 2], 16), none), PieceOutcome::Again));
        let PieceOutcome::Whole(joined) = s.take(piece(7, 3, 1, &[3], 8), none) else {
            panic!("it is complete")
        };
        assert_eq!(joined, Joined { bytes: vec![1, 2, 3, 5], bits: 27, records: vec![11, 10] });
        assert!(
            matches!(s.take(piece(7, 3, 1, &[3], 8), none), PieceOutcome::Again),
            "it came again"
        );
    }

    #[test]
    fn pieces_that_contradict_each_other_are_told() {
        let mut s = Siblings::default();
        assert!(matches!(s.take(piece(7, 2, 0, &[1], 8), none), PieceOutcome::Waits));
        assert!(matches!(s.take(piece(7, 2, 0, &[2], 8), none), PieceOutcome::Differs));
        assert!(matches!(s.take(piece(7, 2, 0, &[1], 7), none), PieceOutcome::Differs));
        let mut given_up = Vec::new();
        assert!(matches!(
            s.take(piece(7, 3, 1, &[3], 8), |set, why| given_up.push((set.count, why))),
            PieceOutcome::Waits
        ));
        assert_eq!(given_up, [(2, LostReason::Count)]);
    }

    #[test]
    fn pieces_need_not_end_with_a_byte() {
        let mut s = Siblings::default();
        assert!(matches!(s.take(piece(1, 2, 0, &[0xff], 3), none), PieceOutcome::Waits));
        let PieceOutcome::Whole(joined) = s.take(piece(1, 2, 1, &[0x01, 0x80], 16), none) else {
            panic!("it is complete")
        };
        assert_eq!((joined.bytes, joined.bits), (vec![0b0000_1111, 0, 0b100], 19));
    }

    #[test]
    fn what_never_completes_is_bounded() {
        let mut s = Siblings::default();
        let mut lost = 0;
        for id in 0..1000 {
            assert!(matches!(
                s.take(piece(id, 2, 0, &[0; 1272], 10176), |_, _| lost += 1),
                PieceOutcome::Waits
            ));
        }
        assert_eq!(lost, 1000 - Siblings::MAX_SETS);
        assert_eq!(s.incomplete().count(), Siblings::MAX_SETS);
    }
}
