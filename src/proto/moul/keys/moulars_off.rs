//! Replaces `moulars` in a build without TOML: recognises MOULArs's files and says that this build
//! cannot read them.

use super::error::{KeyError, KeyPlace};
use super::text::KeyFileContents;

/// Refuses a `moulars.toml`.
pub(super) fn moulars(file: &str, _text: &str) -> Result<KeyFileContents, KeyError> {
    Err(KeyError::new(
        file,
        KeyPlace::Whole,
        "a MOULArs configuration: this build reads no TOML (the feature `toml` is off)",
    ))
}

/// Refuses what the key generator prints.
pub(super) fn generator(file: &str, text: &str) -> Result<KeyFileContents, KeyError> {
    moulars(file, text)
}

/// Whether a line begins the table of keys.
pub(super) fn is_table(line: &str) -> bool {
    line.trim_start().trim_start_matches('[').trim_start().starts_with("crypt_keys")
}
