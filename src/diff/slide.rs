//! If one of several equal messages in a row is missing, it may be any of them. If the other
//! capture lost bytes among them, it is the one at that place.

use super::lane::LaneView;
use super::lcs::{Hole, Match, holes};

/// Messages that a hole is moved across.
const FAR: usize = 256;

/// Moves the messages that only one side has to where the other side lost bytes, across messages
/// with equal `keys`.
pub(super) fn slide_to_losses(matches: &mut [Match], lanes: [&LaneView<'_>; 2], keys: [&[u64]; 2]) {
    let [a, b] = lanes;
    if a.lane.losses.is_empty() && b.lane.losses.is_empty() {
        return;
    }
    let lengths = [a.lane.messages.len(), b.lane.messages.len()];
    let [a_keys, b_keys] = keys;
    for hole in holes(matches, lengths) {
        let behind = matches.partition_point(|one| (one.a as usize) < hole.a[0]);
        let lost = |lane: &LaneView<'_>, at: usize| !lane.lane.losses_between(at, at).is_empty();
        match hole {
            Hole { a: [from, to], b: [at, end] } if from < to && at == end && !lost(b, at) => {
                let slide = Slide { length: to - from, keys: a_keys, of_a: true };
                slide.run(matches, behind, &|at| lost(b, at));
            }
            Hole { a: [at, end], b: [from, to] } if from < to && at == end && !lost(a, at) => {
                let slide = Slide { length: to - from, keys: b_keys, of_a: false };
                slide.run(matches, behind, &|at| lost(a, at));
            }
            _ => {}
        }
    }
}

/// A hole of one side, which is moved.
struct Slide<'k> {
    length: usize,
    /// The keys of the side that has messages in the hole.
    keys: &'k [u64],
    of_a: bool,
}

impl Slide<'_> {
    fn own(&self, one: &Match) -> usize {
        (if self.of_a { one.a } else { one.b }) as usize
    }

    fn other(&self, one: &Match) -> usize {
        (if self.of_a { one.b } else { one.a }) as usize
    }

    fn run(&self, matches: &mut [Match], behind: usize, lost: &dyn Fn(usize) -> bool) {
        let (before, after) = matches.split_at_mut(behind);
        let up = before.iter().rev().take(FAR).take_while(|one| self.may_move(one, true));
        if let Some(count) =
            up.zip(1..).find(|(one, _)| lost(self.other(one))).map(|(_, count)| count)
        {
            before.iter_mut().rev().take(count).for_each(|one| self.shift(one, true));
            return;
        }
        let down = after.iter().take(FAR).take_while(|one| self.may_move(one, false));
        if let Some(count) =
            down.zip(1..).find(|(one, _)| lost(self.other(one) + 1)).map(|(_, count)| count)
        {
            after.iter_mut().take(count).for_each(|one| self.shift(one, false));
        }
    }

    /// Whether the partner may be the message on the other end of the hole instead: it is the same.
    fn may_move(&self, one: &Match, later: bool) -> bool {
        let at = self.own(one);
        let to = if later { at.checked_add(self.length) } else { at.checked_sub(self.length) };
        to.and_then(|to| self.keys.get(to)).is_some_and(|key| Some(key) == self.keys.get(at))
    }

    fn shift(&self, one: &mut Match, later: bool) {
        let at = if self.of_a { &mut one.a } else { &mut one.b };
        let length = self.length as u32;
        *at = if later { at.saturating_add(length) } else { at.saturating_sub(length) };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::super::digest::CaptureDigest;
    use super::super::lane_digest::{LaneDigest, Loss, LossCause};
    use super::*;

    #[test]
    fn of_equal_messages_the_one_at_the_loss_is_missing() {
        let digest = CaptureDigest::default();
        let gap =
            |before| Loss { before, bytes: 9, cause: LossCause::Gap, record: 1, wanted: true };
        let lane = |count: u32, loss: Option<u32>| LaneDigest {
            messages: (0..count).collect(),
            losses: loss.into_iter().map(gap).collect(),
            joined_late: false,
        };
        let whole = lane(4, None);
        let cut = lane(3, Some(1));
        let [a, b] = [&whole, &cut].map(|lane| LaneView { digest: &digest, lane });
        let keys: [&[u64]; 2] = [&[5, 7, 7, 7], &[5, 7, 7]];
        let mut matches = [(0, 0), (1, 1), (2, 2)].map(|(a, b)| Match { a, b });
        slide_to_losses(&mut matches, [&a, &b], keys);
        assert_eq!(matches, [(0, 0), (2, 1), (3, 2)].map(|(a, b)| Match { a, b }));
        let mut turned = [(0, 0), (1, 1), (2, 2)].map(|(a, b)| Match { a, b });
        slide_to_losses(&mut turned, [&b, &a], [keys[1], keys[0]]);
        assert_eq!(turned, [(0, 0), (1, 2), (2, 3)].map(|(a, b)| Match { a, b }));
    }
}
