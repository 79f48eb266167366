//! The longest common subsequence of two lists of keys, in time that grows with their length.
//!
//! What both begin and end with is paired first. Of what is left, keys that occur once on each side
//! are anchors; between anchors the lists are short, or else they are compared in windows. So the
//! result may be shorter than the longest one where a list has thousands of equal keys in another
//! order, and never takes longer for it.

use std::collections::HashMap;

/// Cells of the table in which a window is compared.
const CELLS: usize = 1 << 18;
/// Elements of each side in a window, where both sides have as many.
const WINDOW: usize = 512;
/// Anchors between anchors between anchors.
const MAX_DEPTH: u32 = 24;

/// A pair of equal elements, by their places in the two lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Match {
    pub(super) a: u32,
    pub(super) b: u32,
}

/// A part of each of two lists: from a place up to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hole {
    pub(super) a: [usize; 2],
    pub(super) b: [usize; 2],
}

impl Hole {
    fn lengths(self) -> [usize; 2] {
        let [from, to] = self.a;
        let [b_from, b_to] = self.b;
        [to.saturating_sub(from), b_to.saturating_sub(b_from)]
    }

    fn is_one_sided(self) -> bool {
        self.lengths().contains(&0)
    }
}

/// The parts of two lists of these lengths that lie between matches, which are in order.
pub(super) fn holes(matches: &[Match], lengths: [usize; 2]) -> Vec<Hole> {
    let [a_end, b_end] = lengths;
    let mut a = 0;
    let mut b = 0;
    let mut out = Vec::new();
    let ends = matches.iter().map(|m| (m.a as usize, m.b as usize)).chain([(a_end, b_end)]);
    for (to_a, to_b) in ends {
        if to_a > a || to_b > b {
            out.push(Hole { a: [a, to_a], b: [b, to_b] });
        }
        (a, b) = (to_a + 1, to_b + 1);
    }
    out
}

/// Appends the matches of equal keys within a hole, in order.
pub(super) fn common(a: &[u64], b: &[u64], hole: Hole, out: &mut Vec<Match>) {
    let first = out.len();
    let mut work = vec![(hole, MAX_DEPTH)];
    while let Some((hole, depth)) = work.pop() {
        let hole = strip(a, b, hole, out);
        if hole.is_one_sided() {
            continue;
        }
        let [n, m] = hole.lengths();
        if n.saturating_mul(m) <= CELLS / 4 {
            window(a, b, hole, out);
            continue;
        }
        let anchors = if depth == 0 { Vec::new() } else { anchors(a, b, hole) };
        if anchors.is_empty() {
            windows(a, b, hole, out);
            continue;
        }
        let [mut at_a, end_a] = hole.a;
        let [mut at_b, end_b] = hole.b;
        for anchor in anchors {
            let to_a = anchor.a as usize;
            let to_b = anchor.b as usize;
            work.push((Hole { a: [at_a, to_a], b: [at_b, to_b] }, depth - 1));
            out.push(anchor);
            (at_a, at_b) = (to_a + 1, to_b + 1);
        }
        work.push((Hole { a: [at_a, end_a], b: [at_b, end_b] }, depth - 1));
    }
    if let Some(found) = out.get_mut(first..) {
        found.sort_unstable();
    }
}

/// Pairs what both parts begin and end with; what is left of them.
fn strip(a: &[u64], b: &[u64], hole: Hole, out: &mut Vec<Match>) -> Hole {
    let ([mut from_a, mut to_a], [mut from_b, mut to_b]) = (hole.a, hole.b);
    while from_a < to_a && from_b < to_b && a.get(from_a) == b.get(from_b) {
        out.push(Match { a: from_a as u32, b: from_b as u32 });
        (from_a, from_b) = (from_a + 1, from_b + 1);
    }
    while from_a < to_a && from_b < to_b && a.get(to_a - 1) == b.get(to_b - 1) {
        (to_a, to_b) = (to_a - 1, to_b - 1);
        out.push(Match { a: to_a as u32, b: to_b as u32 });
    }
    Hole { a: [from_a, to_a], b: [from_b, to_b] }
}

fn part(keys: &[u64], [from, to]: [usize; 2]) -> &[u64] {
    keys.get(from..to).unwrap_or_default()
}

/// The longest ascending series of keys that occur once in each part.
fn anchors(a: &[u64], b: &[u64], hole: Hole) -> Vec<Match> {
    let mut places: HashMap<u64, [u32; 4]> = HashMap::new();
    for (side, keys, from) in [(0, part(a, hole.a), hole.a), (1, part(b, hole.b), hole.b)] {
        for (at, key) in (from[0]..).zip(keys) {
            let known = places.entry(*key).or_default();
            let [a_count, b_count, a_at, b_at] = known;
            let (count, place) = if side == 0 { (a_count, a_at) } else { (b_count, b_at) };
            *count = count.saturating_add(1);
            *place = at as u32;
        }
    }
    let once = places.values().filter(|[in_a, in_b, ..]| *in_a == 1 && *in_b == 1);
    let mut unique: Vec<Match> = once.map(|[_, _, a, b]| Match { a: *a, b: *b }).collect();
    unique.sort_unstable();
    ascending(&unique)
}

/// The longest series in which `b` ascends, too (patience sorting).
fn ascending(all: &[Match]) -> Vec<Match> {
    let mut before: Vec<Option<usize>> = Vec::with_capacity(all.len());
    let mut tops: Vec<usize> = Vec::new();
    for (index, one) in all.iter().enumerate() {
        let pile = tops.partition_point(|top| all.get(*top).is_some_and(|other| other.b < one.b));
        before.push(pile.checked_sub(1).and_then(|pile| tops.get(pile).copied()));
        match tops.get_mut(pile) {
            Some(top) => *top = index,
            None => tops.push(index),
        }
    }
    let mut series = Vec::new();
    let mut next = tops.last().copied();
    while let Some(index) = next {
        series.extend(all.get(index));
        next = before.get(index).copied().flatten();
    }
    series.reverse();
    series
}

/// Compares a large hole piece by piece. Of each window the last quarter is left to the next one,
/// unless it is the last.
fn windows(a: &[u64], b: &[u64], hole: Hole, out: &mut Vec<Match>) {
    let mut rest = hole;
    while !rest.is_one_sided() {
        let [n, m] = rest.lengths();
        let wide_a = n.min((CELLS / m.min(WINDOW)).max(1)).min(if m < WINDOW { n } else { WINDOW });
        let wide_b = m.min((CELLS / wide_a).max(1));
        let [from_a, end_a] = rest.a;
        let [from_b, end_b] = rest.b;
        let last = wide_a == n && wide_b == m;
        let first = out.len();
        window(a, b, Hole { a: [from_a, from_a + wide_a], b: [from_b, from_b + wide_b] }, out);
        if last {
            return;
        }
        let keep_a = if wide_a == n { end_a } else { from_a + wide_a * 3 / 4 };
        let keep_b = if wide_b == m { end_b } else { from_b + wide_b * 3 / 4 };
        let kept = |m: &Match| (m.a as usize) < keep_a && (m.b as usize) < keep_b;
        let keep = out.get(first..).unwrap_or_default().iter().take_while(|m| kept(m)).count();
        out.truncate(first + keep);
        let next = out.get(first..).unwrap_or_default().last();
        let (at_a, at_b) = match next {
            Some(m) => (m.a as usize + 1, m.b as usize + 1),
            None => (from_a + (wide_a / 2).max(1), from_b + (wide_b / 2).max(1)),
        };
        rest = Hole { a: [at_a, end_a], b: [at_b, end_b] };
        rest = strip(a, b, rest, out);
    }
}

/// The longest common subsequence of a small hole, by the table of all lengths. Earlier elements
/// are preferred.
fn window(a: &[u64], b: &[u64], hole: Hole, out: &mut Vec<Match>) {
    let left = part(a, hole.a);
    let right = part(b, hole.b);
    let width = right.len() + 1;
    let mut table = vec![0_u32; (left.len() + 1) * width];
    let at = |table: &[u32], i: usize, j: usize| table.get(i * width + j).copied().unwrap_or(0);
    for (i, x) in left.iter().enumerate().rev() {
        for (j, y) in right.iter().enumerate().rev() {
            let longest = if x == y {
                at(&table, i + 1, j + 1) + 1
            } else {
                at(&table, i + 1, j).max(at(&table, i, j + 1))
            };
            if let Some(cell) = table.get_mut(i * width + j) {
                *cell = longest;
            }
        }
    }
    let mut i = 0;
    let mut j = 0;
    while let (Some(x), Some(y)) = (left.get(i), right.get(j)) {
        if x == y {
            out.push(Match { a: (hole.a[0] + i) as u32, b: (hole.b[0] + j) as u32 });
            (i, j) = (i + 1, j + 1);
        } else if at(&table, i + 1, j) >= at(&table, i, j + 1) {
            i += 1;
        } else {
            j += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    fn matched(a: &[u64], b: &[u64]) -> usize {
        let mut out = Vec::new();
        common(a, b, Hole { a: [0, a.len()], b: [0, b.len()] }, &mut out);
        assert!(out.windows(2).all(|w| w[0].a < w[1].a && w[0].b < w[1].b), "in order");
        assert!(out.iter().all(|m| a[m.a as usize] == b[m.b as usize]), "equal keys");
        out.len()
    }

    #[test]
    fn one_element_more_and_one_exchanged() {
        assert_eq!(matched(&[1, 2, 3, 4], &[1, 2, 9, 3, 4]), 4);
        assert_eq!(matched(&[1, 2, 3, 4], &[1, 3, 2, 4]), 3);
        assert_eq!(matched(&[], &[1]), 0);
        assert_eq!(matched(&[1, 1, 1], &[1, 1]), 2);
    }

    #[test]
    fn long_lists_with_few_differences_lose_only_these() {
        let a: Vec<u64> = (0..200_000).map(|n| n * n % 977).collect();
        let mut b = a.clone();
        b.remove(150_000);
        b[70_000] = 10_000;
        b.insert(20_000, 10_001);
        assert_eq!(matched(&a, &b), a.len() - 2);
    }

    #[test]
    fn long_lists_of_few_keys_are_compared_in_windows() {
        let a: Vec<u64> =
            (0..100_000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62).collect();
        let b: Vec<u64> = a
            .iter()
            .copied()
            .enumerate()
            .filter(|(at, _)| at % 1000 != 500)
            .map(|(_, key)| key)
            .collect();
        let found = matched(&a, &b);
        assert!(found > b.len() - b.len() / 50, "{found} of {}", b.len());
    }

    #[test]
    fn holes_lie_between_matches() {
        let found = holes(&[Match { a: 1, b: 0 }, Match { a: 2, b: 3 }], [4, 4]);
        let right = [([0, 1], [0, 0]), ([2, 2], [1, 3]), ([3, 4], [4, 4])];
        assert_eq!(found, right.map(|(a, b)| Hole { a, b }));
    }
}
