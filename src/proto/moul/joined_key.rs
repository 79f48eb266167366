//! A session key for a connection that was joined late, and what a search with it costs.

use super::keys::{KeyRing, SEARCH_FAILED, SEARCH_FOUND, SessionLine};

/// A session key that opens a connection, or one direction of it so far.
pub(super) struct JoinedKey {
    pub(super) line: SessionLine,
    pub(super) file: String,
    /// The capture carries the key, so its searches are charged to the budget.
    pub(super) carried: bool,
}

impl JoinedKey {
    /// Takes one search from the run's limit and, for a carried key, its price from the budget.
    /// Returns whether both allow it.
    pub(super) fn may_search(&self, keys: &KeyRing) -> bool {
        (!self.carried || keys.budget.take_keystream(SEARCH_FAILED)) && keys.may_search()
    }

    /// Refunds most of the price, because the search found its position.
    pub(super) fn refund_search(&self, keys: &KeyRing) {
        if self.carried {
            keys.budget.return_keystream(SEARCH_FAILED - SEARCH_FOUND);
        }
    }
}
