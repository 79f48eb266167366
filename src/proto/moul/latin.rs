//! Texts of 8-bit units that are not UTF-8. A server that writes Latin-1 does so in every such
//! text, so only the first one of a connection gets a note. Further ones are counted, and an event
//! gives their number where their direction ends.

use super::super::{Context, Side};
use crate::session::{Emit, SaidOnce};
use crate::table::{READ_AS_LATIN_1, ServiceId};
use crate::tree::Problem;

/// Texts in Latin-1 of one connection.
#[derive(Debug, Default)]
pub(super) struct LatinTexts {
    once: SaidOnce,
    /// Whether the receiver may have left out notes of the client's messages, and of the server's.
    deferred: [bool; 2],
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
    /// How many texts of a side are without a note.
    pub(super) fn unsaid(&self, from: Side, emit: &mut dyn Emit) -> u64 {
        let [client, server] = self.deferred;
        let deferred = if from == Side::Client { client } else { server };
        if deferred { emit.left_out(from) } else { self.once.left_out(from) }
    }

    /// Removes repeated notes from a message, unless the receiver does that. Returns whether the
    /// message may stay an outline: the first message with such a note needs a tree, since only
    /// some of its notes are removed.
    pub(super) fn say_once(&mut self, read: &ReadMessage<'_>, context: &mut Context<'_>) -> bool {
        if context.emit.defers() {
            let outline = context.outline.as_deref().filter(|_| read.outlined);
            let problems = outline.map_or(context.tree.problems(), |outline| outline.problems());
            *read.from.of(&mut self.deferred) |=
                outline.is_some_and(|outline| outline.deferred().is_some()) || has_note(problems);
            return read.outlined;
        }
        if read.outlined {
            let Some(outline) = &mut context.outline else { return true };
            if self.once.is_said() || !has_note(outline.problems()) {
                self.once.add_left_out(read.from, outline.leave_out(READ_AS_LATIN_1));
                return true;
            }
            let Context { tables, evaluator, tree, .. } = context;
            evaluator.message(tables, read.service, read.from.index(), read.bytes, *tree);
        }
        if has_note(context.tree.problems()) {
            self.once.in_tree(READ_AS_LATIN_1, read.from, context.tree);
        }
        false
    }
}

fn has_note(problems: &[Problem]) -> bool {
    problems.iter().any(|problem| problem.has_text(READ_AS_LATIN_1))
}
