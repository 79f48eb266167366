//! Facts that sessions learned about their network (muds, routers, channels), collected over a
//! capture: by group and name, the latest wins.
//!
//! It does not know what the facts mean. At most [`MOST_NAMES`] names are kept, as far as the run's
//! account has room; further ones are counted.

use std::collections::BTreeMap;

use super::account::Share;
use crate::session::Learned;

/// How many names are kept.
const MOST_NAMES: usize = 20_000;

/// The latest facts of every name.
#[derive(Default)]
pub struct World {
    groups: BTreeMap<&'static str, BTreeMap<String, Learned>>,
    count: usize,
    share: Share,
    left_out: u64,
}

impl World {
    /// Nothing known yet.
    pub fn new(share: Share) -> World {
        World { share, ..World::default() }
    }

    /// Adds what a session learned. Earlier facts of the same name are replaced.
    pub fn learn(&mut self, learned: Vec<Learned>) {
        for thing in learned {
            let things = self.groups.entry(thing.group).or_default();
            let known = things.get_mut(&thing.name);
            let before = known.as_ref().map_or(0, |known| known.held());
            let more = thing.held();
            let full = !self.share.has_room_for(more.saturating_sub(before))
                || known.is_none() && self.count >= MOST_NAMES;
            if full {
                self.left_out += 1;
                continue;
            }
            self.share.hold((self.share.held() + more).saturating_sub(before));
            if let Some(known) = known {
                *known = thing;
            } else {
                self.count += 1;
                things.insert(thing.name.clone(), thing);
            }
        }
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many things, or later facts of one, were left out because there are too many.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The groups, each with its things, sorted by name.
    pub fn groups(&self) -> impl Iterator<Item = (&'static str, Vec<&Learned>)> {
        self.groups.iter().map(|(group, things)| (*group, things.values().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Account;
    use super::*;
    use crate::session::LearnedValue;

    #[test]
    fn things_that_take_too_much_memory_are_counted() {
        let channel = |number: usize| Learned {
            group: "channels",
            name: format!("{number}"),
            heading: 0,
            of_stream: false,
            facts: vec![("host", LearnedValue::Text("x".repeat(1 << 20)))],
        };
        let account = Account::default();
        let mut others = account.share();
        let mut world = World::new(account.share());
        world.learn((0..10).map(channel).collect());
        // Others take the rest of the account.
        others.hold(usize::MAX / 2);
        world.learn((0..15).map(channel).collect());
        let kept: usize = world.groups().map(|(_, things)| things.len()).sum();
        // The same ones again take no more.
        assert_eq!((kept, world.left_out()), (10, 5));
    }

    #[test]
    fn the_last_word_counts() {
        let mud = |state: &str| Learned {
            group: "muds",
            name: "A".into(),
            heading: 0,
            of_stream: false,
            facts: vec![("state", LearnedValue::Text(state.into()))],
        };
        let mut world = World::default();
        world.learn(vec![mud("up")]);
        world.learn(vec![mud("down")]);
        let groups: Vec<_> = world.groups().collect();
        assert_eq!(groups, [("muds", vec![&mud("down")])]);
    }
}
