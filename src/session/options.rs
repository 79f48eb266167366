//! Options for every protocol.

use crate::table::MessageLimits;

/// The user's options for all protocols.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The largest message that is reassembled, in bytes.
    pub max_message: usize,
    /// The most bytes that all compressed parts of one message may unpack to.
    pub max_decompressed: usize,
    /// The most bytes that an event shows of those that became no message. All are counted, shown
    /// or not.
    pub max_undecoded: usize,
}

impl Options {
    /// The bounds of one message. A message that is read again later must be read within the same
    /// bounds.
    pub fn limits(&self) -> MessageLimits {
        MessageLimits { decompressed: self.max_decompressed, ..MessageLimits::default() }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options { max_message: 16 << 20, max_decompressed: 16 << 20, max_undecoded: 4 << 10 }
    }
}
