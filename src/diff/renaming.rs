//! Finds which number of one capture corresponds to which number of the other.
//!
//! Every pair of messages with the same content is a vote for each of the numbers in them. The
//! pairings with the most votes hold, each number in one of them; among those with as many, equal
//! numbers come first, and then the pairing that came first. Whatever contradicts that is a
//! difference.

use std::collections::HashMap;

use super::content::IdentityMark;

/// Pairings that are counted. Beyond, further ones are not, and numbers in them are not compared.
const MOST: usize = 8 << 20;

/// Two numbers that are taken to identify the same thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Naming {
    /// The kind; that of a transaction together with its stream.
    pub(super) kind: u64,
    pub(super) a: u64,
    pub(super) b: u64,
}

/// Where a pairing was said: two messages, by their places in their digests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Said {
    pub(super) a: u32,
    pub(super) b: u32,
}

#[derive(Clone, Copy, Debug)]
struct VoteCount {
    count: u32,
    first: Said,
    /// How many pairings came before.
    place: u32,
}

/// Counts the votes for each pairing.
#[derive(Default)]
pub(super) struct NamingVotes {
    votes: HashMap<Naming, VoteCount>,
}

impl NamingVotes {
    pub(super) fn vote(&mut self, naming: Naming, said: Said) {
        let full = self.votes.len() >= MOST;
        if let Some(votes) = self.votes.get_mut(&naming) {
            votes.count = votes.count.saturating_add(1);
            votes.first = votes.first.min(said);
        } else if !full {
            let place = self.votes.len() as u32;
            self.votes.insert(naming, VoteCount { count: 1, first: said, place });
        }
    }

    /// The renaming with the most votes.
    pub(super) fn renaming(self) -> Renaming {
        let mut all: Vec<(Naming, VoteCount)> = self.votes.into_iter().collect();
        all.sort_unstable_by_key(|(naming, votes)| {
            (std::cmp::Reverse(votes.count), naming.a != naming.b, votes.first, votes.place)
        });
        let mut out = Renaming::default();
        for (naming, votes) in all {
            out.fix(naming, votes.first);
        }
        out
    }
}

/// Which number of one capture corresponds to which of the other.
#[derive(Default)]
pub(super) struct Renaming {
    forward: HashMap<(u64, u64), (u64, Said)>,
    backward: HashMap<(u64, u64), (u64, Said)>,
    /// Contradicting numbers that are reported as differences of their own: those of the first
    /// capture, and those of the second one.
    reported_a: HashMap<(u64, u64), u64>,
    reported_b: HashMap<(u64, u64), u64>,
}

/// A pairing, compared with the known ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NamingVerdict {
    /// It is as known.
    Known,
    /// Nothing is known of either number.
    New,
    /// One of the numbers is known to correspond to another one. Holds the messages that show it.
    Contradicts(Naming, Said),
}

impl Renaming {
    /// Fixes a pairing, unless it contradicts what is known.
    pub(super) fn fix(&mut self, naming: Naming, said: Said) {
        if self.verdict(naming) == NamingVerdict::New {
            self.forward.insert((naming.kind, naming.a), (naming.b, said));
            self.backward.insert((naming.kind, naming.b), (naming.a, said));
        }
    }

    pub(super) fn verdict(&self, naming: Naming) -> NamingVerdict {
        let Naming { kind, a, b } = naming;
        match (self.forward.get(&(kind, a)), self.backward.get(&(kind, b))) {
            (None, None) => NamingVerdict::New,
            (Some((known, said)), _) if *known != b => {
                NamingVerdict::Contradicts(Naming { b: *known, ..naming }, *said)
            }
            (_, Some((known, said))) if *known != a => {
                NamingVerdict::Contradicts(Naming { a: *known, ..naming }, *said)
            }
            _ => NamingVerdict::Known,
        }
    }

    /// Notes a contradiction that is reported as a difference, so that it is not reported again in
    /// each set that has the number.
    pub(super) fn report(&mut self, naming: Naming) {
        let Naming { kind, a, b } = naming;
        match (self.forward.get(&(kind, a)), self.backward.contains_key(&(kind, b))) {
            (Some((known, _)), false) => drop(self.reported_b.insert((kind, b), *known)),
            (None, true) => drop(self.reported_a.insert((kind, a), b)),
            _ => {}
        }
    }

    /// A number of the first capture as the second one has it; `None` where that is not known.
    pub(super) fn of_a(&self, kind: u64, a: u64) -> Option<u64> {
        self.forward
            .get(&(kind, a))
            .map(|(b, _)| *b)
            .or_else(|| self.reported_a.get(&(kind, a)).copied())
    }

    /// A number of the second capture, if the first one has it too.
    pub(super) fn of_b(&self, kind: u64, b: u64) -> Option<u64> {
        let known = self.backward.contains_key(&(kind, b)).then_some(b);
        known.or_else(|| self.reported_b.get(&(kind, b)).copied())
    }
}

/// One element of a set.
#[derive(Clone, Copy, Debug)]
pub(super) struct SetPart<'m> {
    content: u64,
    marks: &'m [IdentityMark],
}

/// The identities of a message in parts: those outside of sets, and the elements of each set.
pub(super) struct MarkParts<'m> {
    pub(super) plain: Vec<IdentityMark>,
    pub(super) sets: Vec<Vec<SetPart<'m>>>,
}

impl<'m> MarkParts<'m> {
    pub(super) fn new(marks: &'m [IdentityMark]) -> MarkParts<'m> {
        let mut parts = MarkParts { plain: Vec::new(), sets: Vec::new() };
        let mut rest = marks;
        while let Some((first, behind)) = rest.split_first() {
            if first.kind != IdentityMark::ELEMENT {
                parts.plain.push(*first);
                rest = behind;
                continue;
            }
            let mut set = Vec::new();
            while let Some((head, behind)) = rest.split_first() {
                if head.kind == IdentityMark::END {
                    rest = behind;
                    break;
                }
                let bound = |mark: &IdentityMark| {
                    matches!(mark.kind, IdentityMark::ELEMENT | IdentityMark::END)
                };
                let (marks, next) =
                    behind.split_at(behind.iter().position(bound).unwrap_or(behind.len()));
                set.push(SetPart { content: head.value, marks });
                rest = next;
            }
            parts.sets.push(set);
        }
        parts
    }
}

/// How the kind of a mark is named within a pair of streams.
pub(super) trait Scope {
    fn kind(&self, kind: u64) -> u64;
}

/// Pairs the elements of two sets, as far as what is known allows only one way; `found` gets each
/// pair of elements. Where `guess`, what is left is paired in order if it contradicts nothing.
/// Returns whether every element has its partner.
pub(super) fn match_sets(
    sets: [&[SetPart<'_>]; 2],
    known: &Renaming,
    scope: &dyn Scope,
    guess: bool,
    found: &mut dyn FnMut(&[IdentityMark], &[IdentityMark]),
) -> bool {
    let [a, b] = sets;
    let mut exact: HashMap<u64, Vec<usize>> = HashMap::new();
    for (at, part) in b.iter().enumerate() {
        let key = set_key(part, |kind, value| known.of_b(scope.kind(kind), value));
        exact.entry(key).or_default().push(at);
    }
    exact.values_mut().for_each(|places| places.reverse());
    let mut free = vec![true; b.len()];
    let mut rest = Vec::new();
    for part in a {
        let unknown =
            part.marks.iter().any(|mark| known.of_a(scope.kind(mark.kind), mark.value).is_none());
        let key = set_key(part, |kind, value| known.of_a(scope.kind(kind), value));
        let places = exact.get_mut(&key).filter(|places| guess || !unknown || places.len() == 1);
        match places.and_then(Vec::pop) {
            Some(at) => {
                if let Some(free) = free.get_mut(at) {
                    *free = false;
                }
                if let Some(other) = b.get(at) {
                    found(part.marks, other.marks);
                }
            }
            None => rest.push(part),
        }
    }
    rest.is_empty() && !free.contains(&true)
}

/// Content and identities of an element, those that are not known all alike.
fn set_key(part: &SetPart<'_>, known: impl Fn(u64, u64) -> Option<u64>) -> u64 {
    part.marks.iter().fold(part.content, |hash, mark| {
        super::hash::mix(
            super::hash::mix(hash, mark.kind),
            known(mark.kind, mark.value).unwrap_or(1),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naming(a: u64, b: u64) -> Naming {
        Naming { kind: 9, a, b }
    }

    #[test]
    fn most_votes_hold_and_the_rest_contradicts() {
        let mut votes = NamingVotes::default();
        let said = |n| Said { a: n, b: n };
        votes.vote(naming(1, 12), said(1));
        for n in 2..5 {
            votes.vote(naming(1, 11), said(n));
        }
        votes.vote(naming(2, 12), said(5));
        let renaming = votes.renaming();
        assert_eq!(renaming.verdict(naming(1, 11)), NamingVerdict::Known);
        assert_eq!(
            renaming.verdict(naming(2, 12)),
            NamingVerdict::Known,
            "12 is free, because 1 is 11"
        );
        assert_eq!(
            renaming.verdict(naming(1, 12)),
            NamingVerdict::Contradicts(naming(1, 11), said(2))
        );
        assert_eq!(renaming.verdict(naming(7, 7)), NamingVerdict::New);
    }
}
