//! How much a message brings of a reply that comes in several messages, where no message says of
//! itself that it is the last one.
//!
//! This file knows no protocol: tables mark what a message brings (`share part`), and how much all
//! bring together (`share whole`).

use crate::table::MessageDef;
use crate::tree::{Kind, Tree, mark};

/// A message's share of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyShare {
    /// What the message brings, in bytes or elements.
    pub part: u64,
    /// What all messages of the reply bring together. `None`: as an earlier message to the same
    /// request said, if one did.
    pub whole: Option<u64>,
}

impl ReplyShare {
    /// The share of a message, which was read into `tree`. `None` if its table does not say.
    pub fn of(def: &MessageDef, tree: &Tree) -> Option<ReplyShare> {
        let (part, whole) = def.shares?;
        let amount = |name| {
            let (index, node) = tree.children(0).find(|(_, node)| node.name == name)?;
            Some(match node.kind {
                Kind::Unsigned => node.value,
                Kind::List => {
                    tree.children(index).filter(|(_, child)| !child.has(mark::SPAN)).count() as u64
                }
                _ => node.content().1 as u64,
            })
        };
        Some(ReplyShare { part: amount(part)?, whole: Some(amount(whole)?) })
    }

    /// Whether more messages follow one that brings this share, behind others that brought `before`
    /// and `said` what all bring (0 if none did). A message that brings nothing is the last one.
    pub fn leaves_more(&self, before: u64, said: u64) -> bool {
        self.part > 0 && before.saturating_add(self.part) < self.whole.unwrap_or(said)
    }
}
