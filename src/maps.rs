//! Maps for keys that come from captures and tables: with a fast hash whose seed is random, so that
//! no keys can be made that collide, and with a bound. Knows nothing of what it holds.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hash;

use foldhash::fast::RandomState;

/// A map with a fast hash.
pub(crate) type SeededMap<K, V> = HashMap<K, V, RandomState>;
/// A set with a fast hash.
pub(crate) type SeededSet<K> = HashSet<K, RandomState>;

/// A map with at most so many entries: the oldest goes first.
#[derive(Debug)]
pub(crate) struct BoundedMap<K, V> {
    entries: SeededMap<K, V>,
    /// The keys, the oldest first.
    order: VecDeque<K>,
    most: usize,
}

impl<K: Clone + Eq + Hash, V> BoundedMap<K, V> {
    /// A map of at most `most` entries.
    pub(crate) fn new(most: usize) -> Self {
        BoundedMap { entries: SeededMap::default(), order: VecDeque::new(), most }
    }

    /// The value of a key.
    pub(crate) fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.entries.get(key)
    }

    /// The value of a key, to be changed. Its age stays.
    pub(crate) fn get_mut<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.entries.get_mut(key)
    }

    /// Sets the value of a key; a key that was there keeps its age. Returns the value of the oldest
    /// entry, if that had to go.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        if let Some(known) = self.entries.get_mut(&key) {
            *known = value;
            return None;
        }
        let full = self.order.len() >= self.most;
        let oldest = if full { self.order.pop_front() } else { None };
        let gone = oldest.and_then(|oldest| self.entries.remove(&oldest));
        self.order.push_back(key.clone());
        self.entries.insert(key, value);
        gone
    }

    /// How many entries there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entry_goes_where_there_are_too_many() {
        let mut map = BoundedMap::new(2);
        assert_eq!([map.insert("a", 1), map.insert("b", 2), map.insert("a", 3)], [None; 3]);
        assert_eq!(map.insert("c", 4), Some(3));
        assert_eq!(["a", "b", "c"].map(|key| map.get(key).copied()), [None, Some(2), Some(4)]);
        assert_eq!((map.len(), map.is_empty()), (2, false));
    }
}
