//! Compares two digests: the part of the work that needs no fields.

mod finder;
mod once;

use std::collections::{HashMap, HashSet};

use super::align::{Hints, LaneMatches, StreamScope, align};
use super::digest::{CaptureDigest, MessageDigest, NO_PEER};
use super::lane::{LaneView, exact_key};
use super::lane_digest::{LaneDigest, LossCause};
use super::lcs::Match;
use super::pairing::{StreamPair, pair_streams};
use super::renaming::{
    MarkParts, Naming, NamingVerdict, NamingVotes, Renaming, Said, Scope, match_sets,
};
use crate::session::Side;
use finder::DifferenceFinder;
use once::seen_once;

/// If both captures are copies of one, at least this percentage of the messages has the same
/// numbers in both.
const COPIES: usize = 80;

/// The options of a comparison.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompareOptions {
    /// Replies that take this many times as long in the second capture are differences.
    pub latency: Option<f64>,
}

/// Something that differs. Messages are named by their places in the digests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Finding {
    /// A message of the first capture alone.
    OnlyA(u32),
    /// A message of the second capture alone.
    OnlyB(u32),
    /// The same message in another place.
    Moved(Said),
    /// Fields differ.
    Changed(Said),
    /// One capture has a refusal and the other one has none.
    Refused(Said),
    /// Numbers that identify another thing than in other messages.
    Renamed {
        /// The messages.
        at: Said,
        /// The numbers in them.
        naming: Naming,
        /// The meaning of one of them in other messages.
        known: Naming,
        /// The messages that show it.
        by: Said,
        /// How many more messages show the same.
        more: u32,
    },
    /// Numbers that occur nowhere else, and differ.
    Once {
        /// The messages.
        at: Said,
        /// The numbers in them.
        naming: Naming,
    },
    /// A reply came later.
    Slower(Said),
    /// One capture has more bytes in a direction that are not understood or not opened.
    Unread(UnreadBytes),
}

/// Bytes of a direction of both captures that could not be read, and the first record in each that
/// says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnreadBytes {
    pub(super) from: Side,
    pub(super) cause: LossCause,
    pub(super) bytes: [u64; 2],
    pub(super) records: [Option<u64>; 2],
}

/// Messages that fell into gaps of the other capture, or into bytes that could not be read there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LostMessages {
    /// 0 if the first capture lacks them.
    pub(super) side: usize,
    pub(super) messages: u64,
    /// The record that says what was lost, and its bytes.
    pub(super) record: u64,
    pub(super) bytes: u64,
    /// Whether all these bytes were captured.
    pub(super) unread: bool,
}

/// Two streams, and their differences.
#[derive(Clone, Debug)]
pub(super) struct PairFindings {
    pub(super) pair: StreamPair,
    pub(super) findings: Vec<Finding>,
    pub(super) lost: Vec<LostMessages>,
    pub(super) same: u64,
}

/// Two digests side by side.
pub struct Comparison<'d> {
    pub(super) a: &'d CaptureDigest,
    pub(super) b: &'d CaptureDigest,
    pub(super) pairs: Vec<PairFindings>,
    pub(super) renaming: Renaming,
    /// Pairs of numbers that were seen once and taken for renamed.
    pub(super) renamed_once: u64,
}

impl<'d> Comparison<'d> {
    /// Compares two digests.
    pub fn new(
        a: &'d CaptureDigest,
        b: &'d CaptureDigest,
        options: CompareOptions,
    ) -> Comparison<'d> {
        let pairs = pair_streams(a, b);
        let mut work = Work { a, b, copies: are_copies(a, b), renaming: Renaming::default() };
        let first = work.align(&pairs, false);
        work.renaming = work.vote(&pairs, &first);
        drop(first);
        let lanes = work.align(&pairs, true);
        work.renaming = work.vote(&pairs, &lanes);
        let partners = work.partners(&pairs, &lanes);
        for naming in work.contradictions(&pairs, &lanes, &partners) {
            work.renaming.report(naming);
        }
        let moved = work.moved(&pairs, &lanes);
        let once = seen_once(&work, &pairs, &lanes);
        let odd_sets = work.settle_sets(&pairs, &lanes);
        let mut said = HashMap::new();
        let mut out = Vec::new();
        for (number, (pair, lanes)) in pairs.iter().zip(&lanes).enumerate() {
            let work = &work;
            let odd_sets = &odd_sets;
            let partners = &partners;
            let moved = &moved;
            let once = &once;
            let scope = scope(number);
            let mut finder = DifferenceFinder {
                work,
                scope,
                options,
                odd_sets,
                partners,
                moved,
                once,
                said: &mut said,
            };
            out.push(finder.pair(*pair, lanes));
        }
        for finding in out.iter_mut().flat_map(|pair| &mut pair.findings) {
            if let Finding::Renamed { naming, more, .. } = finding {
                *more = said.get(naming).copied().unwrap_or(0);
            }
        }
        Comparison { a, b, pairs: out, renaming: work.renaming, renamed_once: once.renamed() }
    }

    /// The records of each capture whose fields have to be looked at, in ascending order.
    pub fn wanted(&self) -> [Vec<u64>; 2] {
        let mut a = Vec::new();
        let mut b = Vec::new();
        let record = |digest: &CaptureDigest, index: u32| {
            digest.message(index).map(|message| message.record)
        };
        for finding in self.pairs.iter().flat_map(|pair| &pair.findings) {
            let (left, right) = match finding {
                Finding::OnlyA(index) => (Some(*index), None),
                Finding::OnlyB(index) => (None, Some(*index)),
                Finding::Moved(at)
                | Finding::Changed(at)
                | Finding::Refused(at)
                | Finding::Slower(at)
                | Finding::Once { at, .. }
                | Finding::Renamed { at, .. } => (Some(at.a), Some(at.b)),
                Finding::Unread(_) => (None, None),
            };
            a.extend(left.and_then(|index| record(self.a, index)));
            b.extend(right.and_then(|index| record(self.b, index)));
        }
        for records in [&mut a, &mut b] {
            records.sort_unstable();
            records.dedup();
        }
        [a, b]
    }

    /// The name of a kind of identities by its hash.
    pub(super) fn kind_name(&self, kind: u64) -> &str {
        let known = self.a.kinds.get(&kind).or_else(|| self.b.kinds.get(&kind));
        known.map_or(super::content::TRANSACTION, String::as_str)
    }
}

pub(super) fn scope(pair: usize) -> StreamScope {
    StreamScope { pair: pair as u64 + 1 }
}

/// Whether most messages have the same numbers on both sides.
fn are_copies(a: &CaptureDigest, b: &CaptureDigest) -> bool {
    let mut counts: HashMap<u64, u32> = HashMap::new();
    for message in &a.messages {
        *counts.entry(exact_key(a, message)).or_insert(0) += 1;
    }
    let mut same = 0;
    for message in &b.messages {
        if let Some(left) = counts.get_mut(&exact_key(b, message)).filter(|left| **left > 0) {
            *left -= 1;
            same += 1;
        }
    }
    same * 100 >= a.messages.len().min(b.messages.len()) * COPIES
}

/// Both directions of a pair of streams.
pub(super) type PairMatches = [LaneMatches; 2];

/// Two digests, and what is known of them.
pub(super) struct Work<'d> {
    pub(super) a: &'d CaptureDigest,
    pub(super) b: &'d CaptureDigest,
    copies: bool,
    pub(super) renaming: Renaming,
}

static NO_LANE: LaneDigest =
    LaneDigest { messages: Vec::new(), losses: Vec::new(), joined_late: false };

impl<'d> Work<'d> {
    /// A direction of a pair of streams, in both captures; an empty one where there is no stream.
    pub(super) fn lanes(&self, pair: StreamPair, side: usize) -> [LaneView<'d>; 2] {
        let view = |digest: &'d CaptureDigest, stream: Option<u32>| {
            let stream = stream.and_then(|place| digest.streams.get(place as usize));
            LaneView {
                digest,
                lane: stream.and_then(|stream| stream.lanes.get(side)).unwrap_or(&NO_LANE),
            }
        };
        [view(self.a, pair.a), view(self.b, pair.b)]
    }

    fn align(&self, pairs: &[StreamPair], named: bool) -> Vec<PairMatches> {
        let renaming = named.then_some(&self.renaming);
        let one = |number: usize, pair: StreamPair, side: usize| {
            let [a, b] = self.lanes(pair, side);
            align(&a, &b, Hints { renaming, scope: scope(number), copies: self.copies })
        };
        pairs
            .iter()
            .enumerate()
            .map(|(number, pair)| [one(number, *pair, 0), one(number, *pair, 1)])
            .collect()
    }

    /// The partner of each message of the first capture, or [`NO_PEER`].
    fn partners(&self, pairs: &[StreamPair], lanes: &[PairMatches]) -> Vec<u32> {
        let mut out = vec![NO_PEER; self.a.messages.len()];
        for (pair, lanes) in pairs.iter().zip(lanes) {
            for (side, matches) in lanes.iter().enumerate() {
                let [a, b] = self.lanes(*pair, side);
                for at in matches
                    .in_order
                    .iter()
                    .chain(&matches.moved)
                    .filter_map(|one| said(&a, &b, *one))
                {
                    if let Some(partner) = out.get_mut(at.0.a as usize) {
                        *partner = at.0.b;
                    }
                }
            }
        }
        out
    }

    /// The messages of the first capture that are at another place in the second one.
    fn moved(&self, pairs: &[StreamPair], lanes: &[PairMatches]) -> HashSet<u32> {
        let both = pairs
            .iter()
            .zip(lanes)
            .flat_map(|(pair, lanes)| lanes.iter().enumerate().map(move |of| (*pair, of)));
        both.flat_map(|(pair, (side, matches))| {
            let [a, _] = self.lanes(pair, side);
            matches.moved.iter().filter_map(move |one| a.lane.messages.get(one.a as usize).copied())
        })
        .collect()
    }

    /// The messages with the same content, in pairs.
    pub(super) fn same_content(
        &self,
        pairs: &[StreamPair],
        lanes: &[PairMatches],
        mut each: impl FnMut(usize, Said, &MessageDigest, &MessageDigest),
    ) {
        for (number, (pair, lanes)) in pairs.iter().zip(lanes).enumerate() {
            for (side, matches) in lanes.iter().enumerate() {
                let [a, b] = self.lanes(*pair, side);
                for one in matches.in_order.iter().chain(&matches.moved) {
                    let Some((at, left, right)) = said(&a, &b, *one) else { continue };
                    if left.content == right.content {
                        each(number, at, left, right);
                    }
                }
            }
        }
    }

    /// The renaming that most pairs of messages with the same content support. Sets count only if
    /// they leave no choice.
    fn vote(&self, pairs: &[StreamPair], lanes: &[PairMatches]) -> Renaming {
        let mut votes = NamingVotes::default();
        let mut with_sets = Vec::new();
        self.same_content(pairs, lanes, |number, at, left, right| {
            let x = MarkParts::new(self.a.marks_of(left));
            let y = MarkParts::new(self.b.marks_of(right));
            for (a, b) in x.plain.iter().zip(&y.plain).filter(|(a, b)| a.kind == b.kind) {
                votes.vote(Naming { kind: scope(number).kind(a.kind), a: a.value, b: b.value }, at);
            }
            if !x.sets.is_empty() {
                with_sets.push((number, at));
            }
        });
        let mut renaming = votes.renaming();
        for (number, at) in with_sets {
            self.settle_set(number, at, &mut renaming, false);
        }
        renaming
    }

    /// The contradictions of the renaming, outside of sets.
    fn contradictions(
        &self,
        pairs: &[StreamPair],
        lanes: &[PairMatches],
        partners: &[u32],
    ) -> Vec<Naming> {
        let mut out = Vec::new();
        self.same_content(pairs, lanes, |number, at, left, right| {
            let x = MarkParts::new(self.a.marks_of(left));
            let y = MarkParts::new(self.b.marks_of(right));
            for (a, b) in x.plain.iter().zip(&y.plain) {
                let naming = Naming { kind: scope(number).kind(a.kind), a: a.value, b: b.value };
                let against =
                    matches!(self.renaming.verdict(naming), NamingVerdict::Contradicts(..));
                if against && !(naming.kind != a.kind && self.is_answered_alike(at, partners)) {
                    out.push(naming);
                }
            }
        });
        out
    }

    /// Whether a request's reply, or a reply's request, has the expected partner: the number of the
    /// transaction then adds nothing.
    pub(super) fn is_answered_alike(&self, at: Said, partners: &[u32]) -> bool {
        let peer = |message: Option<&MessageDigest>| {
            message.map(|m| m.peer).filter(|peer| *peer != NO_PEER)
        };
        let (Some(a), Some(b)) = (peer(self.a.message(at.a)), peer(self.b.message(at.b))) else {
            return false;
        };
        partners.get(a as usize) == Some(&b)
    }

    /// Pairs the numbers in sets that are still open, and returns the messages whose sets do not
    /// fit.
    fn settle_sets(&mut self, pairs: &[StreamPair], lanes: &[PairMatches]) -> HashSet<Said> {
        let mut with_sets = Vec::new();
        self.same_content(pairs, lanes, |number, at, left, _| {
            if self
                .a
                .marks_of(left)
                .iter()
                .any(|mark| mark.kind == super::content::IdentityMark::END)
            {
                with_sets.push((number, at));
            }
        });
        let mut renaming = std::mem::take(&mut self.renaming);
        let odd = with_sets
            .into_iter()
            .filter(|(number, at)| !self.settle_set(*number, *at, &mut renaming, true));
        let odd = odd.map(|(_, at)| at).collect();
        self.renaming = renaming;
        odd
    }

    /// Pairs the elements of a message's sets; whether all have partners.
    fn settle_set(&self, number: usize, at: Said, renaming: &mut Renaming, guess: bool) -> bool {
        let (Some(left), Some(right)) = (self.a.message(at.a), self.b.message(at.b)) else {
            return true;
        };
        let x = MarkParts::new(self.a.marks_of(left));
        let y = MarkParts::new(self.b.marks_of(right));
        let mut all = x.sets.len() == y.sets.len();
        for (a, b) in x.sets.iter().zip(&y.sets) {
            let mut found = Vec::new();
            all &= match_sets([a, b], renaming, &scope(number), guess, &mut |left, right| {
                found.extend(left.iter().zip(right).map(|(a, b)| {
                    let kind = scope(number).kind(a.kind);
                    Naming { kind, a: a.value, b: b.value }
                }));
            });
            for naming in found {
                renaming.fix(naming, at);
            }
        }
        all
    }
}

/// Two messages of a direction, by their places in it.
pub(super) fn said<'d>(
    a: &LaneView<'d>,
    b: &LaneView<'d>,
    one: Match,
) -> Option<(Said, &'d MessageDigest, &'d MessageDigest)> {
    let at =
        Said { a: *a.lane.messages.get(one.a as usize)?, b: *b.lane.messages.get(one.b as usize)? };
    Some((at, a.get(one.a)?, b.get(one.b)?))
}
