//! What the user asks of every protocol.

use crate::table::MessageLimits;

/// What the user asked of all protocols.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Largest message that is put together, in bytes.
    pub max_message: usize,
    /// Bytes that the compressed parts of one message may become together.
    pub max_decompressed: usize,
    /// Most bytes that an event shows of those that became no message. All of them are counted, shown or not.
    pub max_undecoded: usize,
}

impl Options {
    /// The bounds of one message. A message that is read again later has to be read within the same bounds.
    pub fn limits(&self) -> MessageLimits {
        MessageLimits { decompressed: self.max_decompressed, ..MessageLimits::default() }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options { max_message: 16 << 20, max_decompressed: 16 << 20, max_undecoded: 4 << 10 }
    }
}
