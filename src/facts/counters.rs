//! Counters by name that avoid a hash lookup for frequent names. Memory is bounded: names beyond a
//! limit are counted together as [`OTHERS`].

use std::collections::HashMap;

/// The name under which everything beyond the limit is counted.
pub(super) const OTHERS: &str = "others";

/// How often each name occurred. A name of the tables is found by its number, without hashing its
/// text.
#[derive(Default)]
pub(super) struct NameCounter {
    list: Vec<(String, u64)>,
    by_text: HashMap<String, usize>,
    /// For the tables at an address: by the name's number, its index in `list` plus 1, or 0. Tables
    /// do not move during a run.
    by_number: Vec<(usize, Vec<u32>)>,
}

impl NameCounter {
    /// How many different names are counted separately.
    pub(super) const LIMIT: usize = 10_000;

    /// Counts a name by its number in the tables at the address `tables`. Returns its index in the
    /// list.
    #[inline]
    pub(super) fn count(&mut self, tables: usize, number: u32, name: &str) -> usize {
        if let Some((_, places)) = self.by_number.iter().find(|(at, _)| *at == tables)
            && let Some(place) = places.get(number as usize).and_then(|place| place.checked_sub(1))
            && let Some((known, n)) = self.list.get_mut(place as usize)
            && known == name
        {
            *n += 1;
            return place as usize;
        }
        let place = self.count_text(name);
        if self.list.get(place).is_some_and(|(known, _)| known == name) {
            self.remember(tables, number, place);
        }
        place
    }

    /// Counts a name by its text; returns its index in the list.
    pub(super) fn count_text(&mut self, name: &str) -> usize {
        let place = self.by_text.get(name).copied().unwrap_or_else(|| {
            let name = if self.list.len() < Self::LIMIT { name } else { OTHERS };
            *self.by_text.entry(name.to_string()).or_insert_with(|| {
                self.list.push((name.to_string(), 0));
                self.list.len() - 1
            })
        });
        if let Some((_, n)) = self.list.get_mut(place) {
            *n += 1;
        }
        place
    }

    fn remember(&mut self, tables: usize, number: u32, place: usize) {
        // Names that are not in tables have high numbers, and another number in the next message.
        if number as usize >= Self::LIMIT {
            return;
        }
        if !self.by_number.iter().any(|(at, _)| *at == tables) {
            self.by_number.push((tables, Vec::new()));
        }
        let Some((_, places)) = self.by_number.iter_mut().find(|(at, _)| *at == tables) else {
            return;
        };
        if places.len() <= number as usize {
            places.resize(number as usize + 1, 0);
        }
        if let Some(at) = places.get_mut(number as usize) {
            *at = place as u32 + 1;
        }
    }

    /// The name at an index; `None` where names are counted together.
    pub(super) fn name(&self, place: usize) -> Option<&str> {
        self.list.get(place).map(|(name, _)| name.as_str()).filter(|name| *name != OTHERS)
    }

    /// All names with their counts.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, u64)> {
        self.list.iter().map(|(name, n)| (name.as_str(), *n))
    }
}

/// Counts of the last few different keys, in front of a map that is slower.
pub(super) struct RecentCounts<K> {
    last: Vec<(K, u64)>,
    oldest: usize,
}

impl<K> Default for RecentCounts<K> {
    fn default() -> Self {
        RecentCounts { last: Vec::new(), oldest: 0 }
    }
}

impl<K: PartialEq> RecentCounts<K> {
    const KEPT: usize = 16;

    /// Counts a key. If another key has to make room for it, returns that key with its count.
    pub(super) fn count(&mut self, key: K) -> Option<(K, u64)> {
        if let Some((_, n)) = self.last.iter_mut().find(|(known, _)| *known == key) {
            *n += 1;
            return None;
        }
        if self.last.len() < Self::KEPT {
            self.last.push((key, 1));
            return None;
        }
        self.oldest = (self.oldest + 1) % Self::KEPT;
        self.last.get_mut(self.oldest).map(|place| std::mem::replace(place, (key, 1)))
    }

    /// All keys that were counted and not returned by [`RecentCounts::count`].
    pub(super) fn iter(&self) -> impl Iterator<Item = &(K, u64)> {
        self.last.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_counted_by_number_and_by_text() {
        let mut names = NameCounter::default();
        for (tables, number, name) in
            [(1, 7, "A"), (1, 7, "A"), (2, 7, "B"), (1, 8, "A"), (1, u32::MAX, "C")]
        {
            names.count(tables, number, name);
        }
        // The number was that of another name before, so the text decides.
        names.count(1, 7, "B");
        let mut all: Vec<_> = names.all().collect();
        all.sort_unstable();
        assert_eq!(all, [("A", 3), ("B", 2), ("C", 1)]);
    }

    #[test]
    fn names_beyond_the_limit_are_counted_together() {
        let mut names = NameCounter::default();
        for i in 0..NameCounter::LIMIT as u32 + 5 {
            names.count(0, i, &i.to_string());
        }
        assert_eq!(names.all().find(|(name, _)| *name == OTHERS), Some((OTHERS, 5)));
    }

    #[test]
    fn nothing_recent_is_lost() {
        let mut recent = RecentCounts::default();
        let mut sums = HashMap::new();
        let mut add = |(key, n): (u32, u64)| *sums.entry(key).or_insert(0) += n;
        for key in (0..1000).map(|i| (i * 7 + i / 3) % 40) {
            recent.count(key).into_iter().for_each(&mut add);
        }
        recent.iter().copied().for_each(&mut add);
        assert_eq!(sums.values().sum::<u64>(), 1000);
        assert_eq!(sums.len(), 40);
    }
}
