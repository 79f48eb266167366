//! Numbers that were seen once in each capture, and are not the same there.
//!
//! Such a number may have been changed, or it may be the other run's number of the same thing: a
//! single occurrence cannot show which. If B is a changed copy of A, it is reported as a
//! difference. B counts as a copy if values that differ in each run (`volatile`) are equal in both,
//! and nearly all other numbers are, too. Otherwise the number counts as renamed.

use std::collections::{HashMap, HashSet};

use super::super::digest::CaptureDigest;
use super::super::pairing::StreamPair;
use super::super::renaming::{MarkParts, Naming, Said, Scope};
use super::{PairMatches, Work, scope};

/// B is a copy of A if at least this percentage of the message pairs with volatile values have
/// equal ones.
const ONE_RECORDING: u64 = 90;
/// The fewest such pairs that prove a copy.
const FEWEST: u64 = 3;
/// B is a copy of A if at least this percentage of the paired numbers are equal.
const EQUAL_NUMBERS: u64 = 95;

/// Numbers that were seen once.
#[derive(Default)]
pub(super) struct SeenOnce {
    /// Where they are, and which.
    pub(super) all: HashMap<Said, Vec<Naming>>,
    /// They are differences; otherwise they are counted.
    pub(super) differ: bool,
}

impl SeenOnce {
    /// How many pairs of numbers were taken for renamed.
    pub(super) fn renamed(&self) -> u64 {
        if self.differ { 0 } else { self.all.values().map(|list| list.len() as u64).sum() }
    }

    /// The numbers in a pair of messages that are a difference.
    pub(super) fn at(&self, at: Said) -> &[Naming] {
        self.all.get(&at).filter(|_| self.differ).map_or(&[], Vec::as_slice)
    }
}

/// Finds the numbers that were seen once.
pub(super) fn seen_once(work: &Work<'_>, pairs: &[StreamPair], lanes: &[PairMatches]) -> SeenOnce {
    let mut seen: HashMap<Naming, (u32, Said, usize)> = HashMap::new();
    let mut alike = 0;
    let mut either = 0;
    work.same_content(pairs, lanes, |number, at, left, right| {
        if left.volatile != 0 && right.volatile != 0 {
            either += 1;
            alike += u64::from(left.volatile == right.volatile);
        }
        let x = MarkParts::new(work.a.marks_of(left));
        let y = MarkParts::new(work.b.marks_of(right));
        for (a, b) in x.plain.iter().zip(&y.plain).filter(|(a, b)| a.kind == b.kind) {
            let naming = Naming { kind: scope(number).kind(a.kind), a: a.value, b: b.value };
            let place = seen.len();
            seen.entry(naming).or_insert((0, at, place)).0 += 1;
        }
    });
    let equal = seen.keys().filter(|naming| naming.a == naming.b).count() as u64;
    let one_recording = either >= FEWEST && alike * 100 >= either * ONE_RECORDING;
    let differ = one_recording && equal * 100 >= seen.len() as u64 * EQUAL_NUMBERS;
    let mut odd: Vec<(usize, Naming, Said)> = seen
        .into_iter()
        .filter(|(naming, (count, ..))| naming.a != naming.b && *count == 1)
        .map(|(naming, (_, at, place))| (place, naming, at))
        .collect();
    odd.sort_unstable();
    let odd: Vec<(Naming, Said)> = odd.into_iter().map(|(_, naming, at)| (naming, at)).collect();
    let in_a = often(work.a, odd.iter().map(|(naming, _)| (naming.kind, naming.a)));
    let in_b = often(work.b, odd.iter().map(|(naming, _)| (naming.kind, naming.b)));
    let once = |naming: &Naming| {
        !in_a.contains(&(naming.kind, naming.a)) && !in_b.contains(&(naming.kind, naming.b))
    };
    let mut all: HashMap<Said, Vec<Naming>> = HashMap::new();
    let mut values: HashSet<(Said, u64, u64)> = HashSet::new();
    for (naming, at) in odd.into_iter().filter(|(naming, _)| once(naming)) {
        // One number may stand for things of several kinds.
        if values.insert((at, naming.a, naming.b)) {
            all.entry(at).or_default().push(naming);
        }
    }
    SeenOnce { all, differ }
}

/// The numbers, each with its kind, that occur in several messages of a capture. Transactions are
/// left out: each stream has its own.
fn often(digest: &CaptureDigest, numbers: impl Iterator<Item = (u64, u64)>) -> HashSet<(u64, u64)> {
    let mut messages: HashMap<(u64, u64), u32> = numbers.map(|number| (number, 0)).collect();
    if messages.is_empty() {
        return HashSet::new();
    }
    let mut here = HashSet::new();
    for message in &digest.messages {
        here.clear();
        here.extend(digest.marks_of(message).iter().map(|mark| (mark.kind, mark.value)));
        for number in &here {
            if let Some(count) = messages.get_mut(number) {
                *count += 1;
            }
        }
    }
    messages.into_iter().filter(|(_, count)| *count > 1).map(|(number, _)| number).collect()
}
