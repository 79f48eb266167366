//! Finds the differences in a pair of streams whose messages and numbers are paired.

use std::collections::{HashMap, HashSet};

use super::super::align::{LaneMatches, StreamScope};
use super::super::content::IdentityMark;
use super::super::digest::MessageDigest;
use super::super::lane::LaneView;
use super::super::lane_digest::LossCause;
use super::super::lcs::{Match, holes};
use super::super::pairing::StreamPair;
use super::super::renaming::{MarkParts, Naming, NamingVerdict, Said, Scope};
use super::once::SeenOnce;
use super::{
    CompareOptions, Finding, LostMessages, PairFindings, PairMatches, UnreadBytes, Work, said,
};
use crate::session::Side;

/// A reply is never called slower if it is later by less than this, in nanoseconds.
const SLOWER_BY: i64 = 5_000_000;

/// The contradictions found, and how many more messages show the same one.
pub(super) type SaidNames = HashMap<Naming, u32>;

/// Finds the differences in a pair of streams.
pub(super) struct DifferenceFinder<'w, 'd> {
    pub(super) work: &'w Work<'d>,
    pub(super) scope: StreamScope,
    pub(super) options: CompareOptions,
    pub(super) odd_sets: &'w HashSet<Said>,
    pub(super) partners: &'w [u32],
    /// The messages of the first capture that are at another place in the second one.
    pub(super) moved: &'w HashSet<u32>,
    pub(super) once: &'w SeenOnce,
    pub(super) said: &'w mut SaidNames,
}

impl DifferenceFinder<'_, '_> {
    /// Everything that differs in two streams.
    pub(super) fn pair(&mut self, pair: StreamPair, lanes: &PairMatches) -> PairFindings {
        let mut out = PairFindings { pair, findings: Vec::new(), lost: Vec::new(), same: 0 };
        for (side, matches) in lanes.iter().enumerate() {
            let views = self.work.lanes(pair, side);
            self.lane(&views, matches, &mut out);
            let from = if side == 0 { Side::Client } else { Side::Server };
            out.findings.extend(unread(from, &views));
        }
        self.sort(&mut out.findings);
        out
    }

    /// Sorts the findings of both directions in the order of the first capture. A message that only
    /// the second one has follows the one before it in its direction.
    fn sort(&self, findings: &mut Vec<Finding>) {
        let mut last = 0;
        let mut keyed: Vec<(u32, Finding)> = Vec::new();
        for finding in findings.drain(..) {
            last = match finding {
                Finding::OnlyB(_) | Finding::Unread(_) => last,
                Finding::OnlyA(a) => a,
                Finding::Moved(at)
                | Finding::Changed(at)
                | Finding::Refused(at)
                | Finding::Slower(at)
                | Finding::Once { at, .. }
                | Finding::Renamed { at, .. } => at.a,
            };
            keyed.push((last, finding));
        }
        keyed.sort_by_key(|(key, _)| *key);
        findings.extend(keyed.into_iter().map(|(_, finding)| finding));
    }

    fn lane(&mut self, views: &[LaneView<'_>; 2], matches: &LaneMatches, out: &mut PairFindings) {
        let [a, b] = views;
        let moved_a: HashMap<u32, Match> = matches.moved.iter().map(|one| (one.a, *one)).collect();
        let moved_b: HashMap<u32, Match> = matches.moved.iter().map(|one| (one.b, *one)).collect();
        let lengths = [a.lane.messages.len(), b.lane.messages.len()];
        let mut next = matches.in_order.iter().peekable();
        for hole in holes(&matches.in_order, lengths) {
            while let Some(one) = next.next_if(|one| (one.a as usize) < hole.a[0]) {
                self.both(views, *one, out);
            }
            let left: Vec<u32> = (hole.a[0] as u32..hole.a[1] as u32)
                .filter(|at| !moved_a.contains_key(at))
                .collect();
            let right: Vec<u32> = (hole.b[0] as u32..hole.b[1] as u32)
                .filter(|at| !moved_b.contains_key(at))
                .collect();
            let left = self.not_lost(a, &left, b, hole.b, out);
            let right = self.not_lost(b, &right, a, hole.a, out);
            let index = |view: &LaneView<'_>, at: u32| view.lane.messages.get(at as usize).copied();
            let wanted =
                |view: &LaneView<'_>, at: &u32| view.get(*at).is_some_and(|message| message.wanted);
            let left = left.into_iter().filter(|at| wanted(a, at));
            let right = right.into_iter().filter(|at| wanted(b, at));
            out.findings.extend(left.filter_map(|at| index(a, at)).map(Finding::OnlyA));
            out.findings.extend(right.filter_map(|at| index(b, at)).map(Finding::OnlyB));
            for one in (hole.a[0] as u32..hole.a[1] as u32).filter_map(|at| moved_a.get(&at)) {
                self.moved(views, *one, out);
            }
        }
        for one in next {
            self.both(views, *one, out);
        }
    }

    /// Those of the messages `only` that no loss in the other capture explains. A loss of some
    /// bytes explains messages of as many bytes.
    fn not_lost(
        &self,
        own: &LaneView<'_>,
        only: &[u32],
        other: &LaneView<'_>,
        hole: [usize; 2],
        out: &mut PairFindings,
    ) -> Vec<u32> {
        let [from, to] = hole;
        let losses = other.lane.losses_between(from, to);
        let late = other.lane.joined_late && from == 0;
        let bytes: u64 = losses.iter().map(|loss| loss.bytes).sum();
        if only.is_empty() || bytes == 0 && !late {
            return only.to_vec();
        }
        // Another run has messages of nearly the same length.
        let mut left = if late { u64::MAX } else { bytes + bytes / 8 + 16 };
        let length = |at: u32| own.get(at).map_or(0, |message| u64::from(message.length));
        let mut kept = Vec::new();
        for at in only {
            match left.checked_sub(length(*at)) {
                Some(rest) => left = rest,
                None => kept.push(*at),
            }
        }
        let record = losses.first().map_or(0, |loss| loss.record);
        let side = usize::from(!std::ptr::eq(other.digest, self.work.a));
        let wanted = |at: &&u32| own.get(**at).is_some_and(|message| message.wanted);
        let messages =
            (only.iter().filter(wanted).count() - kept.iter().filter(wanted).count()) as u64;
        let unread = !late && losses.iter().all(|loss| loss.cause != LossCause::Gap);
        out.lost.push(LostMessages { side, messages, record, bytes, unread });
        kept
    }

    /// The same message at two places. A reply follows its request, so its place is no further
    /// difference.
    fn moved(&mut self, views: &[LaneView<'_>; 2], one: Match, out: &mut PairFindings) {
        let [a, b] = views;
        let Some((at, left, right)) = said(a, b, one) else { return };
        let follows = left.reply_to != 0 && self.work.is_answered_alike(at, self.partners);
        if !left.wanted && !right.wanted {
            return;
        }
        if follows && self.moved.contains(&left.peer) {
            out.same += 1;
        } else {
            out.findings.push(Finding::Moved(at));
        }
    }

    /// A pair of messages.
    fn both(&mut self, views: &[LaneView<'_>; 2], one: Match, out: &mut PairFindings) {
        let [a, b] = views;
        let Some((at, left, right)) = said(a, b, one).filter(|(_, a, b)| a.wanted || b.wanted)
        else {
            return;
        };
        let before = out.findings.len();
        let mut fits = true;
        if (left.refused == 0) != (right.refused == 0) {
            out.findings.push(Finding::Refused(at));
        } else if left.content != right.content
            || left.form != right.form
            || self.odd_sets.contains(&at)
        {
            out.findings.push(Finding::Changed(at));
        } else {
            fits = self.names(at, left, right, out);
            // A number may stand for things of several kinds, of which one contradicts what other
            // messages say.
            let reported: HashSet<[u64; 2]> =
                out.findings.get(before..).unwrap_or_default().iter().filter_map(renamed).collect();
            let once =
                self.once.at(at).iter().filter(|naming| !reported.contains(&[naming.a, naming.b]));
            out.findings.extend(once.map(|naming| Finding::Once { at, naming: *naming }));
        }
        if self.is_slower(left, right) {
            out.findings.push(Finding::Slower(at));
        }
        out.same += u64::from(fits && out.findings.len() == before);
    }

    /// Reports the identities that contradict the renaming, each contradiction once. Returns
    /// whether there is none.
    fn names(
        &mut self,
        at: Said,
        left: &MessageDigest,
        right: &MessageDigest,
        out: &mut PairFindings,
    ) -> bool {
        let x = self.work.a.marks_of(left);
        let y = self.work.b.marks_of(right);
        if x.iter().any(|mark| mark.kind == IdentityMark::END) {
            let x = MarkParts::new(x);
            let y = MarkParts::new(y);
            return self.plain_names(at, &x.plain, &y.plain, out);
        }
        self.plain_names(at, x, y, out)
    }

    fn plain_names(
        &mut self,
        at: Said,
        x: &[IdentityMark],
        y: &[IdentityMark],
        out: &mut PairFindings,
    ) -> bool {
        let mut fits = true;
        let mut last = None;
        for (a, b) in x.iter().zip(y) {
            let naming = Naming { kind: self.scope.kind(a.kind), a: a.value, b: b.value };
            let NamingVerdict::Contradicts(known, by) = self.work.renaming.verdict(naming) else {
                continue;
            };
            if naming.kind != a.kind && self.work.is_answered_alike(at, self.partners) {
                continue;
            }
            fits = false;
            // One number may identify things of several kinds: reported once.
            let again = last.replace((naming.a, naming.b)) == Some((naming.a, naming.b));
            if let Some(more) = self.said.get_mut(&naming) {
                *more += 1;
            } else if !again {
                self.said.insert(naming, 0);
                out.findings.push(Finding::Renamed { at, naming, known, by, more: 0 });
            }
        }
        fits
    }

    fn is_slower(&self, left: &MessageDigest, right: &MessageDigest) -> bool {
        let Some(factor) = self.options.latency else { return false };
        let both = left.reply_to != 0 && right.reply_to != 0;
        both && right.elapsed as f64 > left.elapsed as f64 * factor
            && right.elapsed.saturating_sub(left.elapsed) > SLOWER_BY
    }
}

/// The numbers in a contradiction.
fn renamed(finding: &Finding) -> Option<[u64; 2]> {
    match finding {
        Finding::Renamed { naming, .. } => Some([naming.a, naming.b]),
        _ => None,
    }
}

/// Bytes of a direction that could not be read, where one capture has more of them.
fn unread(from: Side, views: &[LaneView<'_>; 2]) -> impl Iterator<Item = Finding> {
    [LossCause::Undecoded, LossCause::Closed].into_iter().filter_map(move |cause| {
        let unread = views.each_ref().map(|view| view.lane.unread(cause));
        let bytes = unread.map(|(bytes, _)| bytes);
        let records = unread.map(|(_, record)| record);
        let [a, b] = bytes;
        (a != b).then_some(Finding::Unread(UnreadBytes { from, cause, bytes, records }))
    })
}
