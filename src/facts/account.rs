//! One account of the memory in which a run keeps what it knows of captures: sessions, networks, a
//! graph of nodes, the rows of a page. Each of them has a share, says how much is in it, and asks
//! for room before it takes more. So the bounds of several do not add up.
//!
//! It does not know what is kept, nor what is given up where there is no room. Bytes that wait to
//! become messages have bounds of their own (`--max-stream`, `--max-total`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The most bytes of all shares together, roughly.
const MOST: usize = 128 << 20;

/// The account of a run. Clones are the same account.
///
/// The thread that decodes is the only one that takes from it, so that what is given up does not
/// depend on the number of threads.
#[derive(Clone, Debug, Default)]
pub struct Account(Arc<AtomicUsize>);

impl Account {
    /// A share that holds nothing yet.
    pub fn share(&self) -> Share {
        Share { account: self.clone(), held: 0 }
    }
}

/// What one of the holders has of an account. It goes back when the share is dropped.
#[derive(Debug, Default)]
pub struct Share {
    account: Account,
    held: usize,
}

impl Share {
    /// How many bytes are in it.
    pub fn held(&self) -> usize {
        self.held
    }

    /// There are so many bytes in it from now on.
    #[inline]
    pub fn hold(&mut self, bytes: usize) {
        if bytes != self.held {
            self.account.0.fetch_add(bytes.wrapping_sub(self.held), Relaxed);
            self.held = bytes;
        }
    }

    /// Whether the account has room for so many bytes more. There is always room for none.
    #[inline]
    pub fn has_room_for(&self, bytes: usize) -> bool {
        bytes == 0 || self.account.0.load(Relaxed).saturating_add(bytes) <= MOST
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.hold(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_draw_on_one_account_and_give_back_what_they_had() {
        let account = Account::default();
        let [mut one, mut other] = [account.share(), account.share()];
        one.hold(MOST - 1);
        assert!(other.has_room_for(1) && !other.has_room_for(2));
        other.hold(1);
        assert!(!one.has_room_for(1) && !other.has_room_for(1) && one.has_room_for(0));
        other.hold(0);
        assert!(one.has_room_for(1));
        other.hold(MOST);
        drop(other);
        assert!(one.has_room_for(1));
        assert_eq!(one.held(), MOST - 1);
    }
}
