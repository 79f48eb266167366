//! Reads messages that came as outlines, from their bytes, on any thread: into trees, or into
//! outlines again.
//!
//! It knows tables and the evaluator. It knows no batch and no thread.

use std::sync::Arc;

use super::head::Unread;
use crate::proto::LazyTables;
use crate::session::Side;
use crate::table::{Evaluator, MessageId, MessageLimits, PaddedBytes, Tables};
use crate::tree::{Outline, SharedContext, Tree};

/// Reads messages that came as outlines, from their bytes.
pub struct OutlineReader {
    evaluator: Evaluator,
    pub(super) outline: Outline,
}

impl OutlineReader {
    /// `limits` are the bounds that the outlines were read within, so that a message reads the same
    /// twice.
    pub fn new(limits: MessageLimits) -> OutlineReader {
        let mut evaluator = Evaluator::default();
        evaluator.limits = limits;
        OutlineReader { evaluator, outline: Outline::default() }
    }

    /// Sets what messages are read with, if they need it.
    pub(super) fn set_context(&mut self, context: Option<&SharedContext>) {
        if let Some(context) = context
            && self.evaluator.context.as_ref().is_none_or(|own| !Arc::ptr_eq(own, context))
        {
            self.evaluator.context = Some(Arc::clone(context));
        }
    }

    /// Reads a message into a tree.
    pub(super) fn read(
        &mut self,
        tables: &Tables,
        id: MessageId,
        from: Side,
        bytes: PaddedBytes<'_>,
        tree: &mut Tree,
    ) {
        let Some(def) = tables.message(id) else { return tree.clear() };
        self.evaluator.padded(tables, def.service, from.index(), bytes, tree);
    }

    /// Reads a message into an outline, of which `part` is what another outline left out. Returns
    /// whether that is all there is to know.
    pub(super) fn read_outline(
        &mut self,
        tables: &Tables,
        Unread { id, part, .. }: Unread,
        from: Side,
        bytes: PaddedBytes<'_>,
    ) -> bool {
        let OutlineReader { evaluator, outline } = self;
        let Some(def) = tables.message(id) else { return false };
        if !part.is_some_and(|part| evaluator.deferred_part(tables, id, part, bytes, outline)) {
            evaluator.padded(tables, def.service, from.index(), bytes, outline);
        }
        outline.is_whole()
    }
}

/// The tables of a run by protocol. Consecutive messages are mostly of one protocol, which is then
/// looked up once for all of them.
pub(super) struct TablesByName<'t> {
    all: &'t [LazyTables],
    last: Option<(&'static str, &'t Tables)>,
}

impl<'t> TablesByName<'t> {
    pub(super) fn new(all: &'t [LazyTables]) -> Self {
        TablesByName { all, last: None }
    }

    pub(super) fn of(&mut self, protocol: &'static str) -> Option<&'t Tables> {
        // The names are constants: the same address is the same name. Should one name have two
        // addresses, it is only looked up more often.
        if let Some((_, tables)) = self.last.filter(|(name, _)| std::ptr::eq(*name, protocol)) {
            return Some(tables);
        }
        let tables = LazyTables::of(self.all, protocol)?.get();
        self.last = Some((protocol, tables));
        Some(tables)
    }
}
