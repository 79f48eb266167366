//! How much memory a comparison may take, and what each part of it gets.

/// Bytes for each part of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct DiffBounds {
    /// For the digest of one capture. Messages beyond are not compared.
    pub(super) digest: usize,
    /// For the fields of messages of one capture that differ. Of messages beyond it is only said that they differ.
    pub(super) details: usize,
    /// For what is told of differences. Those beyond are counted.
    pub(super) told: usize,
}

impl DiffBounds {
    /// The bounds of a comparison that takes `memory` bytes in all, roughly: the parts, what is found while they are compared, and the reading.
    pub fn of(memory: usize) -> DiffBounds {
        DiffBounds { digest: memory / 8, details: memory / 8, told: memory / 4 }
    }
}
