//! A thread that does ahead what sessions will need, for outputs that work on the decoding thread.

use std::sync::{Arc, Weak};
use std::thread::Builder;

use crate::session::Preparations;

/// Preparations of a thread of their own. It begins with the first one: few captures have any.
pub(super) fn preparations_of_a_thread() -> Arc<Preparations> {
    Arc::new_cyclic(|own: &Weak<Preparations>| {
        let own = own.clone();
        Preparations::new(move || {
            if let Some(preparations) = own.upgrade() {
                // If the system cannot start a thread, sessions do all themselves.
                let _ = Builder::new()
                    .name("ahead".into())
                    .spawn(move || preparations.work_until_end());
            }
        })
    })
}
