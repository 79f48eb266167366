//! One direction of a capture, and the hashes by which its messages are paired.

use super::content::IdentityMark;
use super::digest::{CaptureDigest, MessageDigest};
use super::hash::{mix, secret_half};
use super::lane_digest::LaneDigest;

/// One direction of a capture with its messages.
#[derive(Clone, Copy)]
pub(super) struct LaneView<'d> {
    pub(super) digest: &'d CaptureDigest,
    pub(super) lane: &'d LaneDigest,
}

impl<'d> LaneView<'d> {
    pub(super) fn get(&self, at: u32) -> Option<&'d MessageDigest> {
        self.digest.message(*self.lane.messages.get(at as usize)?)
    }

    pub(super) fn keys(&self, key: impl Fn(&MessageDigest) -> u64) -> Vec<u64> {
        self.lane.messages.iter().map(|index| self.digest.message(*index).map_or(0, &key)).collect()
    }

    /// A hash of each message, and all identities as the second capture has them; those that are
    /// not known are all alike.
    pub(super) fn named(
        &self,
        first: impl Fn(&MessageDigest) -> u64,
        known: impl Fn(u64, u64) -> Option<u64>,
    ) -> Vec<u64> {
        self.keys(|message| {
            let mut all = MarkFold::new(first(message));
            for mark in self.digest.marks_of(message) {
                all.add(mark, known(mark.kind, mark.value));
            }
            all.end()
        })
    }
}

/// The hash of identities; those of a set in any order.
struct MarkFold {
    all: u64,
    element: Option<u64>,
    set: u64,
}

impl MarkFold {
    fn new(first: u64) -> MarkFold {
        MarkFold { all: first, element: None, set: 0 }
    }

    fn add(&mut self, mark: &IdentityMark, value: Option<u64>) {
        match (mark.kind, &mut self.element) {
            (IdentityMark::ELEMENT | IdentityMark::END, element) => {
                self.set =
                    self.set.wrapping_add(element.take().map_or(0, |element| mix(element, 3)));
                if mark.kind == IdentityMark::END {
                    self.all = mix(self.all, std::mem::take(&mut self.set));
                } else {
                    *element = Some(mark.value);
                }
            }
            (kind, Some(element)) => *element = mix(mix(*element, kind), value.unwrap_or(1)),
            (kind, None) => self.all = mix(mix(self.all, kind), value.unwrap_or(1)),
        }
    }

    fn end(self) -> u64 {
        self.all
    }
}

/// The hash of a message with its identities as they are.
pub(super) fn exact_key(digest: &CaptureDigest, message: &MessageDigest) -> u64 {
    let mut all = MarkFold::new(secret_half(message.content));
    digest.marks_of(message).iter().for_each(|mark| all.add(mark, Some(mark.value)));
    all.end()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn elements_of_a_set_hash_alike_in_any_order() {
        let element = |value| IdentityMark { kind: IdentityMark::ELEMENT, value };
        let id = |value| IdentityMark { kind: 77, value };
        let end = IdentityMark { kind: IdentityMark::END, value: 0 };
        let hash = |marks: &[IdentityMark]| {
            let mut fold = MarkFold::new(0);
            marks.iter().for_each(|mark| fold.add(mark, Some(mark.value)));
            fold.end()
        };
        let one = hash(&[id(1), element(5), id(2), element(5), id(3), end]);
        assert_eq!(one, hash(&[id(1), element(5), id(3), element(5), id(2), end]));
        assert_ne!(one, hash(&[id(2), element(5), id(3), element(5), id(1), end]));
        assert_ne!(one, hash(&[id(1), element(5), id(2), element(5), id(2), end]));
    }
}
