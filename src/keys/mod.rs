//! Key files and session keys.
