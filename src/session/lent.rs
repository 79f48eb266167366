//! What a session is lent for the time of one call.

use super::{Emit, Side};
use crate::proto::moul::keys::KeyRing;
use crate::table::{Evaluator, MessageLimits, Outcome, ServiceId, Tables};
use crate::tree::{Outline, Tree};

/// What the user asked of the protocols.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether City of Heroes packets carry cookies: `None` decides by what fits.
    pub ouro_cookies: Option<bool>,
    /// Largest message that is put together, in bytes.
    pub max_message: usize,
    /// Bytes that the compressed parts of one message may become together.
    pub max_decompressed: usize,
    /// State descriptor files of MOUL: names and contents.
    pub descriptors: Vec<(String, Vec<u8>)>,
}

impl Options {
    /// The bounds of one message. A message that is read again later has to be read within the same bounds.
    pub fn limits(&self) -> MessageLimits {
        MessageLimits { decompressed: self.max_decompressed, ..MessageLimits::default() }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options { ouro_cookies: None, max_message: 16 << 20, max_decompressed: 16 << 20, descriptors: Vec::new() }
    }
}

/// What a session works with. All of it is lent for one call.
pub struct Context<'a> {
    /// The protocol's tables.
    pub tables: &'a Tables,
    /// The evaluator of the protocol, with what the protocol's own types remember.
    pub evaluator: &'a mut Evaluator,
    /// The tree every message is read into. It is cleared by the evaluator before each message.
    pub tree: &'a mut Tree,
    /// The outline that messages are read into, where the receiver is content with outlines.
    pub outline: Option<&'a mut Outline>,
    /// The keys that were given.
    pub keys: &'a KeyRing,
    /// The TCP sequence numbers of offset 0 of client and server, where they are known.
    pub sequences: [Option<u32>; 2],
    /// What the user asked for.
    pub options: &'a Options,
    /// Where messages and events go.
    pub emit: &'a mut dyn Emit,
}

impl Context<'_> {
    /// Reads the message of a service that `bytes` begin with, sent by `from`: into the outline, where that is enough, and else into the tree. Returns
    /// what came of it, and whether the outline (and not the tree) holds it.
    pub fn message(&mut self, service: ServiceId, from: Side, bytes: &[u8]) -> (Outcome, bool) {
        if let Some(outline) = &mut self.outline {
            let outcome = self.evaluator.message(self.tables, service, from.index(), bytes, *outline);
            if outline.is_whole() {
                return (outcome, true);
            }
        }
        (self.evaluator.message(self.tables, service, from.index(), bytes, self.tree), false)
    }
}
