//! Facts that sessions learned about their network (muds, routers, channels), collected over a capture: by group and name, the latest wins.
//!
//! It does not know what the facts mean. At most `LIMIT` names are kept; further ones are ignored.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::json::string;
use crate::captured::escape;
use crate::proto::Learned;

/// How many names are kept.
const LIMIT: usize = 20_000;

/// The names of one group, each with its facts.
type FactsByName = BTreeMap<String, Vec<(&'static str, String)>>;

/// The latest facts of every name.
#[derive(Default)]
pub struct World {
    groups: BTreeMap<&'static str, FactsByName>,
    count: usize,
}

impl World {
    /// Adds what a session learned. Earlier facts of the same name are replaced.
    pub fn learn(&mut self, learned: Vec<Learned>) {
        for Learned { group, name, facts } in learned {
            let things = self.groups.entry(group).or_default();
            if let Some(known) = things.get_mut(&name) {
                *known = facts;
            } else if self.count < LIMIT {
                self.count += 1;
                things.insert(name, facts);
            }
        }
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Appends an object of groups, which are objects of names, which are objects of facts.
    pub fn json(&self, out: &mut Vec<u8>) {
        object(out, self.groups.iter(), |out, things| {
            object(out, things.iter(), |out, facts| {
                object(out, facts.iter().map(|(k, v)| (k, v)), |out, v| string(out, v))
            });
        });
    }

    /// Appends a table for people: a heading for each group, a line for each name.
    pub fn table(&self, out: &mut String) {
        for (group, things) in &self.groups {
            let width = things.keys().map(|name| escape(name).chars().count()).max().unwrap_or(0).min(32);
            let _ = writeln!(out, "\n{group}");
            for (name, facts) in things {
                let facts: Vec<String> = facts.iter().map(|(key, value)| format!("{key} {value}")).collect();
                let _ = writeln!(out, "  {:width$}  {}", escape(name), escape(&facts.join(", ")));
            }
        }
    }
}

fn object<K: AsRef<str>, V>(
    out: &mut Vec<u8>,
    entries: impl Iterator<Item = (K, V)>,
    mut value: impl FnMut(&mut Vec<u8>, V),
) {
    out.push(b'{');
    for (i, (key, of)) in entries.enumerate() {
        if i > 0 {
            out.push(b',');
        }
        string(out, key.as_ref());
        out.push(b':');
        value(out, of);
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_counts() {
        let mud = |state: &str| Learned { group: "muds", name: "A".into(), facts: vec![("state", state.into())] };
        let mut world = World::default();
        world.learn(vec![mud("up")]);
        world.learn(vec![mud("down")]);
        let mut out = Vec::new();
        world.json(&mut out);
        assert_eq!(String::from_utf8_lossy(&out), r#"{"muds":{"A":{"state":"down"}}}"#);
        let mut table = String::new();
        world.table(&mut table);
        assert_eq!(table, "\nmuds\n  A  state down\n");
    }
}
