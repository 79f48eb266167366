//! Facts that sessions learned about their network (muds, routers, channels), collected over a
//! capture: by group and name, the latest wins.
//!
//! It does not know what the facts mean. At most `LIMIT` names are kept; further ones are ignored.

use std::collections::BTreeMap;

use crate::session::Learned;

/// How many names are kept.
const LIMIT: usize = 20_000;

/// The latest facts of every name.
#[derive(Default)]
pub struct World {
    groups: BTreeMap<&'static str, BTreeMap<String, Learned>>,
    count: usize,
}

impl World {
    /// Adds what a session learned. Earlier facts of the same name are replaced.
    pub fn learn(&mut self, learned: Vec<Learned>) {
        for thing in learned {
            let things = self.groups.entry(thing.group).or_default();
            if let Some(known) = things.get_mut(&thing.name) {
                *known = thing;
            } else if self.count < LIMIT {
                self.count += 1;
                things.insert(thing.name.clone(), thing);
            }
        }
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The groups, each with its things, sorted by name.
    pub fn groups(&self) -> impl Iterator<Item = (&'static str, Vec<&Learned>)> {
        self.groups.iter().map(|(group, things)| (*group, things.values().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::LearnedValue;

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
