//! An output behind a filter. It knows no output by name.

use std::sync::Arc;

use super::{Output, StreamKey, StreamOver};
use crate::filter::Filter;
use crate::record::{Body, Record};
use crate::session::Side;
use crate::tree::Tree;

/// Hands an output the records that a filter keeps, until there were enough of them.
pub struct Filtered<O> {
    out: O,
    filter: Option<Arc<Filter>>,
    /// How many more records are kept.
    left: u64,
    /// Whether the last record was kept, whose tree may follow.
    kept: bool,
    /// A record with which names were forgotten was dropped: the next one says so.
    forgotten: bool,
}

impl<O: Output> Filtered<O> {
    /// Hands `out` the first `limit` records that `filter` keeps.
    pub fn new(out: O, filter: Option<Arc<Filter>>, limit: u64) -> Filtered<O> {
        Filtered { out, filter, left: limit, kept: false, forgotten: false }
    }

    /// The output.
    pub fn into_inner(self) -> O {
        self.out
    }
}

impl<O: Output> Output for Filtered<O> {
    fn record(&mut self, record: &Record<'_>) {
        self.kept = self.left > 0 && self.filter.as_ref().is_none_or(|filter| filter.keeps(record));
        self.forgotten |= record.names.forgotten;
        if !self.kept {
            if self.left > 0 {
                self.out.dropped(record);
            }
            return;
        }
        self.left -= 1;
        // Only trees of messages show it.
        let tells = self.forgotten && matches!(record.body, Body::Message { .. });
        self.forgotten &= !tells;
        let mut names = record.names;
        names.forgotten = tells;
        self.out.record(&Record { names, ..*record });
    }

    fn take_tree(&mut self, tree: &mut Tree) {
        if self.kept {
            self.out.take_tree(tree);
        }
    }

    fn plaintext(&mut self, stream: &StreamKey, from: Side, offset: u64, bytes: &[u8]) {
        self.out.plaintext(stream, from, offset, bytes);
    }

    fn stream_over(&mut self, stream: &StreamOver<'_>) {
        self.out.stream_over(stream);
    }

    fn wants_more(&mut self, may_block: bool) -> bool {
        self.out.wants_more(may_block) && self.left > 0
    }
}
