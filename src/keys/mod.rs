//! Key files and session keys.

/// All keys that were given.
#[derive(Default)]
pub struct KeyRing;
