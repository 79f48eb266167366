//! Values that tables remember from message to message (`remember KIND key = value`), in bounded
//! space.

use std::collections::{HashMap, VecDeque};

use crate::tree::Sym;

/// Remembered numbers, by their keys. The oldest are forgotten first.
#[derive(Default)]
pub struct Remembered {
    known: HashMap<(Sym, u64), u64>,
    order: VecDeque<(Sym, u64)>,
    /// Whether to remember no values now, because this reading is only a trial.
    pub frozen: bool,
}

impl Remembered {
    /// The most values remembered.
    pub const LIMIT: usize = 4096;

    /// Remembers `value` under `key`; replaces an earlier value.
    pub fn learn(&mut self, kind: Sym, key: u64, value: u64) {
        if self.frozen {
            return;
        }
        if self.known.insert((kind, key), value).is_some() {
            return;
        }
        self.order.push_back((kind, key));
        if self.order.len() > Self::LIMIT
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// The remembered value.
    pub fn recall(&self, kind: Sym, key: u64) -> Option<u64> {
        self.known.get(&(kind, key)).copied()
    }
}
