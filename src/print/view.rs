//! A message on its way to an output for people or programs.

use crate::record::MessageView;
use crate::tree::{Node, mark};

/// A message that is printed.
#[derive(Clone, Copy)]
pub(super) struct PrintView<'a> {
    pub(super) message: MessageView<'a>,
    /// Whether secrets are replaced by their length.
    pub(super) redact: bool,
}

impl PrintView<'_> {
    /// Whether a value is replaced by its length.
    #[inline(always)]
    pub(super) fn hides(&self, node: &Node) -> bool {
        self.redact && node.has(mark::SECRET)
    }
}
