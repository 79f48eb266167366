//! Divides the memory of a comparison among its parts.

/// Bytes for each part of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct DiffBounds {
    /// For the digest of one capture. Messages beyond are not compared.
    pub(super) digest: usize,
    /// For the fields of differing messages of one capture. Messages beyond are reported without
    /// their fields.
    pub(super) details: usize,
    /// For the texts of differences. Differences beyond are only counted.
    pub(super) texts: usize,
}

impl DiffBounds {
    /// The bounds of a comparison that takes `memory` bytes in all, roughly: the parts, what is
    /// found while they are compared, and the reading, which takes half of it where very many
    /// streams are open.
    pub fn of(memory: usize) -> DiffBounds {
        DiffBounds { digest: memory / 12, details: memory / 16, texts: memory / 8 }
    }
}
