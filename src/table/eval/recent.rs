//! A cache for what is worth keeping once the same key comes again: a key that comes for the second
//! time gets an empty value, and old keys are forgotten. It knows nothing of what is kept.

/// A key of a [`Recent`] cache.
pub(crate) trait RecentKey: PartialEq + Default {
    /// A hash, whose highest bits depend on the whole key. Equal keys have equal hashes.
    fn hash(&self) -> u64;
}

/// The cache. A key may be in two places: with one, two frequent keys with the same hash would
/// evict each other again and again.
#[derive(Clone)]
pub(crate) struct Recent<K, V> {
    /// None at first, then 2^`bits`.
    places: Vec<(K, V)>,
    bits: u32,
    /// How many keys were forgotten since the cache has this size.
    forgotten: usize,
    /// A part of the hash of each key that came, in 2^MOST_BITS places. Most keys may come once, so
    /// that to remember one costs little.
    came: Vec<u32>,
}

/// It begins with 2^FIRST_BITS places, and has at most 2^MOST_BITS.
const FIRST_BITS: u32 = 7;
const MOST_BITS: u32 = 12;
/// How many times as many places it has as keys that it may forget before it grows.
const FORGETS: usize = 16;

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Recent { places: Vec::new(), bits: FIRST_BITS, forgotten: 0, came: Vec::new() }
    }
}

impl<K: RecentKey, V: Default> Recent<K, V> {
    /// The value of a key that came before. Now and then it is that of a key that did not, and is
    /// empty.
    #[inline(always)]
    pub(crate) fn again(&mut self, key: K) -> Option<&mut V> {
        let first = self.first(&key);
        let is_in = |at: usize| self.places.get(at).is_some_and(|place| place.0 == key);
        let at = if is_in(first) {
            first
        } else if is_in(first ^ 1) {
            first ^ 1
        } else if self.came(key.hash()) {
            self.add(key)
        } else {
            return None;
        };
        self.places.get_mut(at).map(|place| &mut place.1)
    }

    /// The first place of a key. The second one is its neighbour.
    #[inline(always)]
    fn first(&self, key: &K) -> usize {
        key.hash().wrapping_shr(u64::BITS - self.bits) as usize
    }

    /// Whether a key with this hash came before. From now on it did.
    #[inline(always)]
    fn came(&mut self, hash: u64) -> bool {
        let part = (hash >> 16) as u32;
        match self.came.get_mut(hash.wrapping_shr(u64::BITS - MOST_BITS) as usize) {
            Some(came) => std::mem::replace(came, part) == part,
            None => {
                self.came.resize(1 << MOST_BITS, 0);
                false
            }
        }
    }

    /// Adds a key with an empty value. Returns its place.
    #[cold]
    #[inline(never)]
    fn add(&mut self, key: K) -> usize {
        self.make_room();
        self.put(key, V::default())
    }

    /// Puts a key and its value into the first place. What is there, if anything is, moves to the
    /// second place, and what is in that one is forgotten.
    fn put(&mut self, key: K, value: V) -> usize {
        let first = self.first(&key);
        if self.places.get(first).is_some_and(|place| place.0 != K::default()) {
            self.places.swap(first, first ^ 1);
        }
        if let Some(place) = self.places.get_mut(first) {
            self.forgotten += usize::from(place.0 != K::default());
            *place = (key, value);
        }
        first
    }

    /// A cache that forgot as many keys as a part of its places gets four times as many.
    fn make_room(&mut self) {
        if !self.places.is_empty() {
            if self.forgotten <= self.places.len() / FORGETS || self.bits >= MOST_BITS {
                return;
            }
            self.bits = MOST_BITS.min(self.bits + 2);
        }
        let mut places = Vec::new();
        places.resize_with(1 << self.bits, Default::default);
        for (key, value) in std::mem::replace(&mut self.places, places) {
            if key != K::default() {
                self.put(key, value);
            }
        }
        self.forgotten = 0;
    }
}

/// Mixes eight bytes into a hash.
#[inline(always)]
pub(crate) fn mixed(hash: u64, bytes: &[u8; 8]) -> u64 {
    (hash.rotate_left(29) ^ u64::from_le_bytes(*bytes)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl RecentKey for u64 {
        fn hash(&self) -> u64 {
            mixed(0, &self.to_le_bytes())
        }
    }

    #[test]
    fn a_value_belongs_to_the_key_that_it_was_put_under() {
        let mut recent = Recent::<u64, u64>::default();
        let mut kept = 0;
        for key in (1..100_000).map(|n: u64| n * n % 7_001 + 1) {
            if let Some(value) = recent.again(key) {
                assert!(*value == 0 || *value == key);
                kept += u32::from(*value == key);
                *value = key;
            }
        }
        assert!(kept > 30_000, "{kept}");
        assert!(recent.places.len() <= 1 << MOST_BITS);
    }

    #[test]
    fn what_is_kept_stays_when_the_cache_grows() {
        let mut recent = Recent::<u64, u64>::default();
        let known = |recent: &Recent<u64, u64>| {
            recent.places.iter().filter(|(key, value)| *key > 0 && key == value).count()
        };
        let mut key = 0;
        while recent.forgotten <= (1 << FIRST_BITS) / FORGETS {
            key += 1;
            recent.again(key);
            recent.again(key).into_iter().for_each(|value| *value = key);
        }
        let before = known(&recent);
        recent.add(key + 1);
        assert_eq!(recent.places.len(), 1 << (FIRST_BITS + 2));
        assert!(before > 30 && known(&recent) == before, "{before} {}", known(&recent));
    }

    #[test]
    fn a_key_that_came_once_has_no_value() {
        let mut recent = Recent::<u64, u64>::default();
        assert!((1..1000).all(|key| recent.again(key * key).is_none()));
        assert!(recent.places.is_empty());
        assert!(recent.again(999 * 999).is_some());
    }
}
