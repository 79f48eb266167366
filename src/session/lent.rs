//! What a session is lent for the time of one call.

use super::{Emit, Options, OutlinedMessage, Settings, Side};
use crate::table::{Evaluator, Outcome, ServiceId, Tables, WholeMessage};
use crate::tree::{Outline, Tree};

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
    /// What the user gave to this protocol.
    pub settings: &'a Settings,
    /// The TCP sequence numbers of offset 0 of client and server, where they are known.
    pub sequences: [Option<u32>; 2],
    /// What the user asked for.
    pub options: &'a Options,
    /// Where messages and events go.
    pub emit: &'a mut dyn Emit,
}

/// Whether a message of which only the outline was read is wanted with its tree.
fn wants_tree(
    emit: &mut dyn Emit,
    tables: &Tables,
    outcome: Outcome,
    from: Side,
    bytes: &[u8],
    outline: &Outline,
) -> bool {
    let Outcome::Message(id, length) = outcome else { return false };
    let outlined = OutlinedMessage { id, tables, outline };
    emit.wants_tree(from, bytes.get(..length).unwrap_or(bytes), &outlined)
}

impl Context<'_> {
    /// Reads the message of a service that `bytes` begin with, sent by `from`: into the outline if that is enough, else into the tree. Returns
    /// what came of it, and whether the outline (and not the tree) holds it.
    pub fn message(&mut self, service: ServiceId, from: Side, bytes: &[u8]) -> (Outcome, bool) {
        if let Some(outline) = &mut self.outline {
            let outcome = self.evaluator.message(self.tables, service, from.index(), bytes, *outline);
            if outline.is_whole() && !wants_tree(&mut *self.emit, self.tables, outcome, from, bytes, outline) {
                return (outcome, true);
            }
        }
        (self.evaluator.message(self.tables, service, from.index(), bytes, self.tree), false)
    }

    /// The same of a message that has all of `bytes`, of which the last `behind` only say that it ends.
    pub fn framed(&mut self, service: ServiceId, from: Side, bytes: &[u8], behind: usize) -> (Outcome, bool) {
        let whole = WholeMessage { bytes, behind };
        if let Some(outline) = &mut self.outline {
            let outcome = self.evaluator.framed(self.tables, service, from.index(), whole, *outline);
            if outline.is_whole() && !wants_tree(&mut *self.emit, self.tables, outcome, from, bytes, outline) {
                return (outcome, true);
            }
        }
        (self.evaluator.framed(self.tables, service, from.index(), whole, self.tree), false)
    }
}
