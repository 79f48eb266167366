//! Texts of 8-bit units that are not UTF-8. A server that writes Latin-1 does so in every such text, so only the first one of a connection gets a note. Further
//! ones are counted, and an event gives their number where their direction ends.

use super::super::{Context, Side};
use crate::table::ServiceId;

/// The note of a text in Latin-1.
pub(super) const LATIN_1: &str = "not UTF-8: read as Latin-1";

/// Texts in Latin-1 of one connection.
#[derive(Debug, Default)]
pub(super) struct LatinTexts {
    said: bool,
    /// Number of texts without a note: the client's and the server's.
    unsaid: [u64; 2],
}

/// A message that was read.
pub(super) struct ReadMessage<'a> {
    pub(super) service: ServiceId,
    pub(super) from: Side,
    pub(super) bytes: &'a [u8],
    /// Whether the outline holds it, and not the tree.
    pub(super) outlined: bool,
}

impl LatinTexts {
    /// How many Latin-1 texts of a direction got no note. Resets the count, since the caller now reports them.
    pub(super) fn take_unsaid(&mut self, from: Side) -> u64 {
        std::mem::take(from.of(&mut self.unsaid))
    }

    /// Removes repeated notes from a message. Returns whether the message may stay an outline: the first message with such a note needs a tree, since
    /// only some of its notes are removed.
    pub(super) fn say_once(&mut self, read: &ReadMessage<'_>, context: &mut Context<'_>) -> bool {
        let unsaid = read.from.of(&mut self.unsaid);
        if read.outlined {
            let Some(outline) = &mut context.outline else { return true };
            if self.said || !outline.problems().iter().any(|problem| problem.has_text(LATIN_1)) {
                *unsaid += outline.leave_out(LATIN_1);
                return true;
            }
            let Context { tables, evaluator, tree, .. } = context;
            evaluator.message(tables, read.service, read.from.index(), read.bytes, *tree);
        }
        if context.tree.problems().iter().any(|problem| problem.has_text(LATIN_1)) {
            let first = !std::mem::replace(&mut self.said, true);
            *unsaid += context.tree.leave_out(LATIN_1, first);
        }
        false
    }
}
