//! Counts what sequence numbers and acknowledgements show: resends, duplicates, loss, and how long
//! acknowledgements took.
//!
//! It works on numbers: it knows neither bytes nor tables. Its memory is bounded: a direction
//! remembers its last [`WINDOW`] datagrams.

use std::collections::{BTreeMap, BTreeSet};

use crate::session::LearnedValue;

/// How many datagrams of a direction are remembered.
pub const WINDOW: usize = 2048;
/// The initial capacity, in datagrams.
const FIRST: usize = 32;

/// A larger step of sequence numbers than this is a restart, not a loss.
const JUMP: u32 = 1 << 14;
/// An acknowledgement so far ahead of the datagrams that came may be of one that was lost.
const EARLY: u32 = 1 << 8;

/// One datagram that was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentDatagram {
    /// Its record number. 0 if the slot is empty.
    pub record: u64,
    /// Its time in nanoseconds.
    pub nanos: i64,
    /// Its sequence number.
    pub sequence: u32,
    /// Its message number.
    pub number: u32,
    /// How often it was sent again.
    pub resends: u16,
    /// Whether the sender asked for an acknowledgement.
    pub reliable: bool,
    /// Whether an acknowledgement came.
    pub acked: bool,
}

/// The counts of one direction of a circuit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams.
    pub datagrams: u64,
    /// Datagrams that asked for an acknowledgement, each counted once.
    pub reliable: u64,
    /// Reliable datagrams that the other side acknowledged.
    pub acknowledged: u64,
    /// Reliable datagrams that were forgotten, or were still waiting at the end.
    pub unacknowledged: u64,
    /// Datagrams that the sender marked as sent again.
    pub resends: u64,
    /// Datagrams that came twice without being marked as sent again.
    pub duplicates: u64,
    /// Sequence numbers that were never seen.
    pub lost: u64,
    /// Datagrams that came after a later one.
    pub late: u64,
    /// Acknowledgements of datagrams that this direction never sent.
    pub strange_acks: u64,
    /// Those of them that match one when their bytes are reversed.
    pub swapped_acks: u64,
    /// Acknowledgements of datagrams of this direction that were sent and never captured.
    pub unseen_acks: u64,
    /// Those of them that came after the last datagram of this direction.
    pub unseen_at_end: u64,
    /// Reliable datagrams of the other side after the last datagram of this one, long overdue and
    /// hardly ever sent again: this side acknowledged them, and that was never captured.
    pub missing_acks: u64,
    /// Sum of the times from sending to acknowledgement, in nanoseconds.
    pub ack_nanos: u64,
}

impl Counters {
    /// All counts with their names, and the mean time to an acknowledgement in microseconds.
    pub fn named(&self) -> Vec<(&'static str, LearnedValue)> {
        let counts = [
            ("datagrams", self.datagrams),
            ("reliable", self.reliable),
            ("acknowledged", self.acknowledged),
            ("unacknowledged", self.unacknowledged),
            ("resends", self.resends),
            ("duplicates", self.duplicates),
            ("lost", self.lost),
            ("late", self.late),
            ("strange_acks", self.strange_acks),
            ("swapped_acks", self.swapped_acks),
            ("unseen_acks", self.unseen_acks),
            ("unseen_at_end", self.unseen_at_end),
            ("missing_acks", self.missing_acks),
        ];
        let mean = self.ack_nanos.checked_div(self.acknowledged).unwrap_or(0) / 1000;
        let counts = counts.into_iter().map(|(key, n)| (key, LearnedValue::Count(n)));
        counts.chain([("mean_ack_microseconds", LearnedValue::Microseconds(mean))]).collect()
    }
}

/// The counts of one message in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Reliable datagrams, each counted once.
    pub reliable: u64,
    /// Reliable datagrams that were acknowledged.
    pub acknowledged: u64,
    /// Reliable datagrams that were forgotten, or were still waiting at the end.
    pub unacknowledged: u64,
    /// Datagrams that the sender marked as sent again.
    pub resends: u64,
    /// Datagrams that came twice without being marked as sent again.
    pub duplicates: u64,
    /// Sum of the times to acknowledgement, in nanoseconds.
    pub ack_nanos: u64,
}

impl Tally {
    /// The counts that are not 0 with their names, and the mean time to an acknowledgement in
    /// microseconds.
    pub fn named(&self) -> Vec<(&'static str, LearnedValue)> {
        let mean = self.ack_nanos.checked_div(self.acknowledged).unwrap_or(0) / 1000;
        let all = [
            ("reliable", self.reliable),
            ("acknowledged", self.acknowledged),
            ("unacknowledged", self.unacknowledged),
            ("resends", self.resends),
            ("duplicates", self.duplicates),
        ];
        let counts =
            all.into_iter().filter(|(_, n)| *n > 0).map(|(key, n)| (key, LearnedValue::Count(n)));
        let mean =
            (mean > 0).then_some(("mean_ack_microseconds", LearnedValue::Microseconds(mean)));
        counts.chain(mean).collect()
    }
}

/// A sequence number, compared with those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The next one, or a later one with some missing in between.
    New,
    /// One that had been missing.
    Late,
    /// Seen before. Holds the first datagram with this number.
    Again(SentDatagram),
}

/// Acknowledgements of datagrams that follow the latest one.
#[derive(Clone, Copy, Debug, Default)]
struct AheadAcks {
    count: u64,
    /// The highest number of them.
    highest: u32,
}

/// One direction: the datagrams one side sent.
#[derive(Debug, Default)]
pub struct CircuitDirection {
    next: Option<u32>,
    /// When the datagram behind the latest missing ones came, in nanoseconds. `None` if none is
    /// missing.
    lost_until: Option<i64>,
    window: Vec<SentDatagram>,
    /// When the last datagram came, in nanoseconds.
    last: i64,
    /// Acknowledgements of datagrams that would come soon.
    early_acks: BTreeSet<u32>,
    /// What was acknowledged since the latest datagram came, and lies ahead of it.
    ahead: AheadAcks,
    /// The counts.
    pub counters: Counters,
    /// The counts by message number, for messages that asked for acknowledgements or came more
    /// than once.
    pub tallies: BTreeMap<u32, Tally>,
}

impl CircuitDirection {
    /// Counts a sequence number, before its record has a number. `resent`: the sender marked the
    /// datagram as sent again. `nanos`: when it came.
    pub fn arrive(&mut self, sequence: u32, resent: bool, nanos: i64) -> Arrival {
        self.counters.datagrams += 1;
        self.last = nanos;
        let before = self.get(sequence).copied();
        let late = self.step(sequence, nanos);
        match before {
            Some(first) => {
                let tally = self.tallies.entry(first.number).or_default();
                if resent {
                    self.counters.resends += 1;
                    tally.resends += 1;
                } else {
                    self.counters.duplicates += 1;
                    tally.duplicates += 1;
                }
                Arrival::Again(first)
            }
            None if resent => {
                // The first sending was lost, or came before the capture.
                self.counters.resends += 1;
                if late { Arrival::Late } else { Arrival::New }
            }
            None if late => {
                self.counters.late += 1;
                Arrival::Late
            }
            None => Arrival::New,
        }
    }

    /// Moves the expected number on and counts what is missing. Returns whether `sequence` lies
    /// behind the expected number.
    fn step(&mut self, sequence: u32, nanos: i64) -> bool {
        self.ahead = AheadAcks::default();
        let Some(next) = self.next else {
            self.next = Some(sequence.wrapping_add(1));
            return false;
        };
        // The viewer wraps at 24 bits, others at 32.
        let ahead = sequence.wrapping_sub(next);
        let ahead = if ahead < JUMP { ahead } else { ahead & 0x00ff_ffff };
        let behind = next.wrapping_sub(sequence);
        if ahead < JUMP {
            self.counters.lost += u64::from(ahead);
            if ahead > 0 {
                self.lost_until = Some(nanos);
            }
            self.next = Some(sequence.wrapping_add(1));
            if !self.early_acks.is_empty() {
                let before = self.early_acks.len();
                self.early_acks.retain(|early| *early > sequence);
                self.counters.unseen_acks += (before - self.early_acks.len()) as u64;
            }
            return false;
        }
        if behind <= JUMP {
            if self.get(sequence).is_none() {
                self.counters.lost = self.counters.lost.saturating_sub(1);
                self.lost_until = self.lost_until.filter(|_| self.counters.lost > 0);
            }
            return true;
        }
        self.next = Some(sequence.wrapping_add(1));
        false
    }

    /// Whether datagrams are missing that may have been sent after a moment.
    pub fn lost_after(&self, nanos: i64) -> bool {
        self.lost_until.is_some_and(|until| until >= nanos)
    }

    /// Remembers a datagram under its record number. If it is sent again, the first sending stays.
    pub fn remember(&mut self, sent: SentDatagram) {
        self.make_room(sent.sequence);
        let slot = self.slot(sent.sequence);
        let Some(place) = self.window.get_mut(slot) else {
            return;
        };
        if place.record != 0 && place.sequence == sent.sequence {
            place.resends = place.resends.saturating_add(1);
            return;
        }
        if place.record != 0 && place.reliable && !place.acked {
            self.counters.unacknowledged += 1;
            self.tallies.entry(place.number).or_default().unacknowledged += 1;
        }
        if sent.reliable {
            self.counters.reliable += 1;
            self.tallies.entry(sent.number).or_default().reliable += 1;
        }
        *place = sent;
    }

    /// Handles an acknowledgement from the other side. Returns the datagram that it acknowledges,
    /// if it is remembered.
    pub fn acknowledge(&mut self, sequence: u32, nanos: i64) -> Option<SentDatagram> {
        let slot = self.slot(sequence);
        let found = self.window.get_mut(slot).filter(|s| s.record != 0 && s.sequence == sequence);
        let Some(sent) = found else {
            self.count_unknown(sequence);
            return None;
        };
        if !sent.acked && sent.reliable {
            sent.acked = true;
            let elapsed = u64::try_from(nanos.saturating_sub(sent.nanos)).unwrap_or(0);
            self.counters.acknowledged += 1;
            self.counters.ack_nanos += elapsed;
            let tally = self.tallies.entry(sent.number).or_default();
            tally.acknowledged += 1;
            tally.ack_nanos += elapsed;
        }
        Some(*sent)
    }

    /// Counts an acknowledgement of a datagram that is not remembered: of one that was not
    /// captured, or of one that was never sent. Of one that is not far ahead, later datagrams tell
    /// which.
    fn count_unknown(&mut self, sequence: u32) {
        let behind = self.next.map_or(0, |next| next.wrapping_sub(sequence));
        if (1..=JUMP).contains(&behind) {
            self.counters.unseen_acks += 1;
            return;
        }
        let ahead = behind.wrapping_neg();
        let AheadAcks { count, highest } = self.ahead;
        let reached = self.next.filter(|_| count > 0).map_or(0, |next| highest.wrapping_sub(next));
        if ahead < reached.saturating_add(EARLY) {
            let full = self.early_acks.len() >= EARLY as usize;
            let first =
                if full { sequence > self.ahead.highest } else { self.early_acks.insert(sequence) };
            if first {
                self.ahead.count += 1;
                self.ahead.highest = self.ahead.highest.max(sequence);
            }
            return;
        }
        self.counters.strange_acks += 1;
        self.counters.swapped_acks += u64::from(self.get(sequence.swap_bytes()).is_some());
    }

    /// The reliable datagrams that still wait for an acknowledgement, oldest first. Counts them as
    /// unacknowledged.
    pub fn waiting(&mut self) -> Vec<SentDatagram> {
        let mut all: Vec<SentDatagram> = self
            .window
            .iter()
            .filter(|s| s.record != 0 && s.reliable && !s.acked)
            .copied()
            .collect();
        all.sort_by_key(|s| s.record);
        self.counters.unacknowledged += all.len() as u64;
        for sent in &all {
            self.tallies.entry(sent.number).or_default().unacknowledged += 1;
        }
        self.window.clear();
        all
    }

    /// When the last datagram came, in nanoseconds.
    pub fn last(&self) -> i64 {
        self.last
    }

    /// The capture ends: says what the acknowledgements of datagrams that did not come mean.
    pub fn finish(&mut self) {
        let AheadAcks { count, .. } = std::mem::take(&mut self.ahead);
        let strange = (self.early_acks.len() as u64).saturating_sub(count);
        self.early_acks.clear();
        self.counters.strange_acks += strange;
        if count > 0 {
            self.counters.lost += count;
            self.counters.unseen_acks += count;
            self.counters.unseen_at_end += count;
            self.lost_until = Some(i64::MAX);
        }
    }

    /// Memory that the remembered datagrams take, in bytes.
    pub fn held(&self) -> usize {
        self.window.capacity() * size_of::<SentDatagram>()
    }

    /// Forgets the remembered datagrams. Later acknowledgements of them match nothing.
    pub fn forget(&mut self) {
        self.finish();
        self.waiting();
        self.window = Vec::new();
    }

    fn get(&self, sequence: u32) -> Option<&SentDatagram> {
        self.window.get(self.slot(sequence)).filter(|s| s.record != 0 && s.sequence == sequence)
    }

    fn slot(&self, sequence: u32) -> usize {
        sequence as usize % self.window.len().max(1)
    }

    /// Grows the window for another datagram. Most circuits never need all of it.
    fn make_room(&mut self, sequence: u32) {
        if self.window.is_empty() {
            self.window.resize(FIRST, SentDatagram::default());
        }
        while self.window.len() < WINDOW
            && self
                .window
                .get(self.slot(sequence))
                .is_some_and(|s| s.record != 0 && s.sequence != sequence)
        {
            let size = self.window.len() * 2;
            let before = std::mem::replace(&mut self.window, vec![SentDatagram::default(); size]);
            for sent in before.into_iter().filter(|s| s.record != 0) {
                let slot = self.slot(sent.sequence);
                if let Some(place) = self.window.get_mut(slot) {
                    *place = sent;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(d: &mut CircuitDirection, record: u64, sequence: u32, reliable: bool) -> Arrival {
        let arrival = d.arrive(sequence, false, record as i64 * 1000);
        d.remember(SentDatagram {
            record,
            nanos: record as i64 * 1000,
            sequence,
            reliable,
            ..SentDatagram::default()
        });
        arrival
    }

    #[test]
    fn missing_numbers_are_lost_until_they_come_late() {
        let mut d = CircuitDirection::default();
        assert_eq!(send(&mut d, 1, 10, false), Arrival::New);
        assert_eq!(send(&mut d, 2, 13, false), Arrival::New);
        assert_eq!(d.counters.lost, 2);
        assert_eq!(send(&mut d, 3, 11, false), Arrival::Late);
        assert_eq!((d.counters.lost, d.counters.late), (1, 1));
        assert_eq!(
            [d.lost_after(2000), d.lost_after(2001)],
            [true, false],
            "the 12 was before the 13"
        );
        assert_eq!(send(&mut d, 4, 12, false), Arrival::Late);
        assert!(!d.lost_after(0), "nothing is missing any more");
    }

    #[test]
    fn a_datagram_sent_again_is_tied_to_its_first_sending() {
        let mut d = CircuitDirection::default();
        send(&mut d, 1, 7, true);
        assert!(matches!(d.arrive(7, true, 0), Arrival::Again(SentDatagram { record: 1, .. })));
        assert_eq!((d.counters.resends, d.counters.duplicates), (1, 0));
        assert!(matches!(d.arrive(7, false, 0), Arrival::Again(_)));
        assert_eq!((d.counters.resends, d.counters.duplicates), (1, 1));
    }

    #[test]
    fn sequence_numbers_wrap_at_24_and_at_32_bits() {
        let mut d = CircuitDirection::default();
        for (record, sequence) in [(1, 0x00ff_fffe), (2, 0x00ff_ffff), (3, 0), (4, 1)] {
            assert_eq!(send(&mut d, record, sequence, false), Arrival::New);
        }
        let mut d = CircuitDirection::default();
        for (record, sequence) in [(1, u32::MAX), (2, 0)] {
            assert_eq!(send(&mut d, record, sequence, false), Arrival::New);
        }
        assert_eq!(d.counters.lost, 0);
    }

    #[test]
    fn acknowledgements_take_time_or_never_come() {
        let mut d = CircuitDirection::default();
        send(&mut d, 1, 1, true);
        send(&mut d, 2, 2, true);
        assert_eq!(d.acknowledge(1, 3500).map(|s| s.record), Some(1));
        assert_eq!(d.acknowledge(9, 3500), None);
        assert_eq!((d.counters.ack_nanos, d.counters.strange_acks), (2500, 0));
        assert_eq!(d.waiting().iter().map(|s| s.record).collect::<Vec<_>>(), [2]);
        assert_eq!(d.counters.unacknowledged, 1);
        let tally = d.tallies.get(&0).copied().unwrap_or_default();
        assert_eq!((tally.reliable, tally.acknowledged, tally.unacknowledged), (2, 1, 1));
    }

    #[test]
    fn acknowledgements_after_the_last_datagram_are_of_some_that_were_not_captured() {
        let mut d = CircuitDirection::default();
        send(&mut d, 1, 1, true);
        for ack in (2..1002).chain(700..800) {
            assert_eq!(d.acknowledge(ack, i64::from(ack) * 1000), None);
        }
        d.finish();
        let Counters { lost, unseen_acks, unseen_at_end, strange_acks, .. } = d.counters;
        assert_eq!([lost, unseen_acks, unseen_at_end, strange_acks], [1000, 1000, 1000, 0]);
        assert!(d.lost_after(1_001_000));
        // One alone is enough: it was sent, too.
        let mut d = CircuitDirection::default();
        send(&mut d, 1, 1, true);
        assert_eq!(d.acknowledge(9, 3500), None);
        d.finish();
        assert_eq!([d.counters.unseen_at_end, d.counters.strange_acks], [1, 0]);
        // Where a datagram with a lower number follows, they were of none.
        let mut d = CircuitDirection::default();
        send(&mut d, 1, 1, true);
        for ack in [7, 8, 9] {
            d.acknowledge(ack, 0);
        }
        send(&mut d, 2, 2, true);
        d.finish();
        assert_eq!([d.counters.unseen_at_end, d.counters.strange_acks], [0, 3]);
    }

    #[test]
    fn what_leaves_the_window_unacknowledged_is_counted() {
        let mut d = CircuitDirection::default();
        for i in 0..WINDOW as u32 + 3 {
            send(&mut d, u64::from(i) + 1, i, true);
        }
        assert_eq!(d.counters.unacknowledged, 3);
    }
}
