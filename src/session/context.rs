//! What a session works with during one call.

use super::{Emit, MessageBytes, Options, OutlinedMessage, Preparations, Settings};
use crate::table::{Evaluator, Outcome, ServiceId, Tables, WholeMessage};
use crate::tree::{Deferring, Outline, Tree};

/// What a session works with during one call. The pipeline makes it anew for each.
pub struct Context<'a> {
    /// The protocol's tables.
    pub tables: &'a Tables,
    /// The evaluator of the protocol, with the memory of the protocol's own types.
    pub evaluator: &'a mut Evaluator,
    /// The tree every message is read into. It is cleared by the evaluator before each message.
    pub tree: &'a mut Tree,
    /// The outline that messages are read into, if the receiver accepts outlines. It says whether
    /// it accepts only those with a [deferred](Deferring) part.
    pub outline: Option<&'a mut Outline>,
    /// The settings that the user gave to this protocol.
    pub settings: &'a Settings,
    /// The TCP sequence numbers of offset 0 of client and server, where they are known.
    pub sequences: [Option<u32>; 2],
    /// The options of the run.
    pub options: &'a Options,
    /// Where a session may ask for work to be done ahead, if threads have time for it.
    pub preparations: Option<&'a Preparations>,
    /// Where messages and events go.
    pub emit: &'a mut dyn Emit,
}

/// Whether the receiver wants the tree of a message of which only the outline was read.
#[inline]
fn wants_tree(
    emit: &mut dyn Emit,
    tables: &Tables,
    outcome: Outcome,
    waiting: MessageBytes<'_>,
    outline: &Outline,
) -> bool {
    let Outcome::Message(id, length) = outcome else { return false };
    emit.chooses()
        && emit.wants_tree(&OutlinedMessage { id, tables, outline, read: waiting.first(length) })
}

impl Context<'_> {
    /// Reads the first message in `waiting`: into the outline if that is enough, else into the
    /// tree. Returns the outcome, and whether the outline (and not the tree) holds the message.
    #[inline]
    pub fn message(&mut self, service: ServiceId, waiting: MessageBytes<'_>) -> (Outcome, bool) {
        let MessageBytes { from, bytes, .. } = waiting;
        if let Some(outline) = &mut self.outline {
            let outcome = match outline.deferring() {
                Deferring::Only => {
                    self.evaluator.deferred(self.tables, service, from.index(), bytes, outline)
                }
                _ => Some(self.evaluator.message(
                    self.tables,
                    service,
                    from.index(),
                    bytes,
                    *outline,
                )),
            };
            if let Some(outcome) = outcome
                && outline.is_whole()
                && !wants_tree(&mut *self.emit, self.tables, outcome, waiting, outline)
            {
                return (outcome, true);
            }
        }
        (self.evaluator.message(self.tables, service, from.index(), bytes, self.tree), false)
    }

    /// Reads a message that fills all of `waiting`, of which the last `behind` bytes only mark its
    /// end. Otherwise like `message`.
    #[inline]
    pub fn framed(
        &mut self,
        service: ServiceId,
        waiting: MessageBytes<'_>,
        behind: usize,
    ) -> (Outcome, bool) {
        let MessageBytes { from, bytes, .. } = waiting;
        let whole = WholeMessage { bytes, behind };
        if let Some(outline) =
            self.outline.as_deref_mut().filter(|outline| outline.deferring() != Deferring::Only)
        {
            let outcome = self.evaluator.framed(self.tables, service, from.index(), whole, outline);
            if outline.is_whole()
                && !wants_tree(&mut *self.emit, self.tables, outcome, waiting, outline)
            {
                return (outcome, true);
            }
        }
        (self.evaluator.framed(self.tables, service, from.index(), whole, self.tree), false)
    }
}
