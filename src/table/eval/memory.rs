//! Values that tables remember from message to message (`remember KIND key = value`), in bounded
//! space.

use crate::maps::BoundedMap;
use crate::tree::Sym;

/// Remembered numbers, by their keys. The oldest are forgotten first.
pub struct Remembered {
    known: BoundedMap<(Sym, u64), u64>,
    /// Whether to remember no values now, because this reading is only a trial.
    pub frozen: bool,
}

/// The most values remembered.
const MAX_REMEMBERED: usize = 4096;

impl Default for Remembered {
    fn default() -> Self {
        Remembered { known: BoundedMap::new(MAX_REMEMBERED), frozen: false }
    }
}

impl Remembered {
    /// Remembers `value` under `key`; replaces an earlier value.
    pub fn learn(&mut self, kind: Sym, key: u64, value: u64) {
        if !self.frozen {
            self.known.insert((kind, key), value);
        }
    }

    /// The remembered value.
    pub fn recall(&self, kind: Sym, key: u64) -> Option<u64> {
        self.known.get(&(kind, key)).copied()
    }
}
