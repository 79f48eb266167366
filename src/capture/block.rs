//! Puts one pcapng block together, in either byte order (draft-ietf-opsawg-pcapng, section 3.1). It
//! knows no block's content.

use super::bytes::Endianness;
use super::pcapng::MAX_HELD;
use std::io;

/// A block that is being put together. It is used again for the next block.
#[derive(Debug)]
pub(super) struct BlockBuilder {
    order: Endianness,
    bytes: Vec<u8>,
}

impl BlockBuilder {
    pub(super) fn new(order: Endianness) -> Self {
        Self { order, bytes: Vec::new() }
    }

    /// Begins a block of the type `kind`, in place of the block before it.
    pub(super) fn begin(&mut self, order: Endianness, kind: u32) {
        self.order = order;
        self.bytes.clear();
        // The second number is the block's length, which `end` fills in.
        self.words(&[kind, 0]);
    }

    /// Appends numbers of 32 bits.
    pub(super) fn words(&mut self, words: &[u32]) {
        words.iter().for_each(|word| self.bytes.extend_from_slice(&self.order.bytes32(*word)));
    }

    /// Appends a number of 16 bits.
    pub(super) fn half(&mut self, number: u16) {
        self.bytes.extend_from_slice(&self.order.bytes16(number));
    }

    /// Appends bytes as they are.
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends zeros up to a multiple of four bytes.
    pub(super) fn pad(&mut self) {
        let length = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(length, 0);
    }

    /// Appends an option. A value of more than 65,535 bytes is cut.
    pub(super) fn option(&mut self, code: u16, value: &[u8]) {
        append_option(&mut self.bytes, self.order, code, value);
    }

    /// Fills in the length at the block's start and end, and returns the whole block.
    ///
    /// # Errors
    /// The block exceeds 16 MiB: readers refuse it.
    pub(super) fn end(&mut self) -> io::Result<&[u8]> {
        self.pad();
        let total = u32::try_from(self.bytes.len().saturating_add(4)).map_err(|_| too_long())?;
        if total > MAX_HELD {
            return Err(too_long());
        }
        let total = self.order.bytes32(total);
        if let Some(length) = self.bytes.get_mut(4..8) {
            length.copy_from_slice(&total);
        }
        self.put(&total);
        Ok(&self.bytes)
    }
}

/// Appends an option with its padding. A value of more than 65,535 bytes is cut.
pub(super) fn append_option(to: &mut Vec<u8>, order: Endianness, code: u16, value: &[u8]) {
    let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
    to.extend_from_slice(&order.bytes16(code));
    to.extend_from_slice(&order.bytes16(length));
    to.extend_from_slice(value.get(..usize::from(length)).unwrap_or(value));
    to.resize(to.len().next_multiple_of(4), 0);
}

/// The error for a block that readers would refuse.
pub(super) fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "expected a block of at most 16777216 bytes")
}
