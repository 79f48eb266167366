//! A key that opens a connection whose beginning was not captured, and what searching with it costs.

use super::keys::{KeyRing, SEARCH_FAILED, SEARCH_FOUND, SessionLine};

/// A session key that opens a connection, or one direction of it so far.
pub(super) struct JoinedKey {
    pub(super) line: SessionLine,
    pub(super) file: String,
    /// The capture carries the key: its searches are taken from the budget.
    pub(super) carried: bool,
}

impl JoinedKey {
    /// Takes a search from what a run may make, and its price from the budget of carried keys. Returns whether both had something left.
    pub(super) fn may_search(&self, keys: &KeyRing) -> bool {
        (!self.carried || keys.budget.take_keystream(SEARCH_FAILED)) && keys.may_search()
    }

    /// The search found what it looked for: most of its price goes back.
    pub(super) fn search_found(&self, keys: &KeyRing) {
        if self.carried {
            keys.budget.return_keystream(SEARCH_FAILED - SEARCH_FOUND);
        }
    }
}
