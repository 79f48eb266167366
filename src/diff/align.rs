//! Pairs the messages of a direction with those of the other capture's direction.
//!
//! Messages are paired in rounds, each between the pairs of the rounds before: first those that
//! agree in everything that is known, then those with the same content whose requests or replies
//! agree, then those with the same content, and last those that only have the same name. Before the
//! last round, unpaired messages with the same content in another place are taken as moved.

use std::collections::HashMap;

use super::content::TRANSACTION;
use super::hash::{hash_text, mix, secret_half};
use super::lane::{LaneView, exact_key};
use super::lcs::{Hole, Match, common, holes};
use super::renaming::{Renaming, Scope};
use super::slide::slide_to_losses;

/// How one direction of a pair of streams was paired. Numbers are places in the two directions'
/// lists of messages.
#[derive(Clone, Debug, Default)]
pub(super) struct LaneMatches {
    /// In order.
    pub(super) in_order: Vec<Match>,
    /// Messages with the same content in another order.
    pub(super) moved: Vec<Match>,
}

/// The kinds of identities within a pair of streams: each has transactions of its own.
#[derive(Clone, Copy)]
pub(super) struct StreamScope {
    pub(super) pair: u64,
}

impl Scope for StreamScope {
    fn kind(&self, kind: u64) -> u64 {
        if kind == hash_text(TRANSACTION) { mix(kind, self.pair) } else { kind }
    }
}

/// The facts known before a direction is paired.
#[derive(Clone, Copy)]
pub(super) struct Hints<'r> {
    pub(super) renaming: Option<&'r Renaming>,
    pub(super) scope: StreamScope,
    /// Whether most numbers are the same in both captures.
    pub(super) copies: bool,
}

/// Pairs the messages of a direction.
pub(super) fn align(a: &LaneView<'_>, b: &LaneView<'_>, hints: Hints<'_>) -> LaneMatches {
    let mut found =
        Aligner { lengths: [a.lane.messages.len(), b.lane.messages.len()], matches: Vec::new() };
    if hints.copies {
        found.round(&a.keys(|m| exact_key(a.digest, m)), &b.keys(|m| exact_key(b.digest, m)));
    }
    if let Some(renaming) = hints.renaming {
        let scope = hints.scope;
        let left = a.named(|m| m.exchange, |kind, value| renaming.of_a(scope.kind(kind), value));
        let right = b.named(|m| m.exchange, |kind, value| renaming.of_b(scope.kind(kind), value));
        found.round(&left, &right);
    }
    found.round(&a.keys(|m| m.exchange), &b.keys(|m| m.exchange));
    let [in_a, in_b] = [a, b].map(|lane| lane.keys(|m| secret_half(m.content)));
    found.round(&in_a, &in_b);
    slide_to_losses(&mut found.matches, [a, b], [&in_a, &in_b]);
    let moved = hints.renaming.map_or(Vec::new(), |renaming| {
        // A different transaction does not make it a different message, but a different thing does.
        let transaction = hash_text(TRANSACTION);
        let left = a.named(
            |m| secret_half(m.content),
            |kind, value| renaming.of_a(kind, value).filter(|_| kind != transaction),
        );
        let right = b.named(
            |m| secret_half(m.content),
            |kind, value| renaming.of_b(kind, value).filter(|_| kind != transaction),
        );
        found.moved(&left, &right)
    });
    let mut left = a.keys(|m| m.sort);
    let mut right = b.keys(|m| m.sort);
    for (n, one) in (0_u64..).zip(&moved) {
        // Moved messages have their partners: they pair with nothing else.
        if let Some(key) = left.get_mut(one.a as usize) {
            *key = mix(u64::MAX, n * 2);
        }
        if let Some(key) = right.get_mut(one.b as usize) {
            *key = mix(u64::MAX, n * 2 + 1);
        }
    }
    found.round(&left, &right);
    LaneMatches { in_order: found.matches, moved }
}

struct Aligner {
    lengths: [usize; 2],
    matches: Vec<Match>,
}

impl Aligner {
    fn holes(&self) -> Vec<Hole> {
        holes(&self.matches, self.lengths)
    }

    /// Pairs equal keys between the pairs that there are.
    fn round(&mut self, a: &[u64], b: &[u64]) {
        let before = self.matches.len();
        for hole in self.holes() {
            common(a, b, hole, &mut self.matches);
        }
        if self.matches.len() > before {
            self.matches.sort_unstable();
        }
    }

    /// Pairs the unpaired messages with equal keys in another order.
    fn moved(&self, a: &[u64], b: &[u64]) -> Vec<Match> {
        let all = self.holes();
        let mut free: HashMap<u64, Vec<u32>> = HashMap::new();
        for [from, to] in all.iter().rev().map(|hole| hole.b) {
            for at in (from..to).rev() {
                free.entry(b.get(at).copied().unwrap_or(0)).or_default().push(at as u32);
            }
        }
        let left = all.iter().flat_map(|hole| hole.a[0]..hole.a[1]);
        let moved =
            left.filter_map(|at| Some(Match { a: at as u32, b: free.get_mut(a.get(at)?)?.pop()? }));
        moved.collect()
    }
}
