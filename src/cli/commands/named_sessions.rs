//! Sessions with the names that earlier records give. It prints nothing.

use crate::facts::{ClientSession, Sessions};
use crate::out::Record;
use crate::out::tree::{AnnotationStore, Annotator};
use crate::pipeline::StreamOver;

/// Bytes of names that are kept from record to record.
const KEEP: usize = 64 << 10;

/// Collects sessions, with the names that earlier records give.
#[derive(Default)]
pub(super) struct NamedSessions {
    sessions: Sessions,
    names: Annotator,
    store: AnnotationStore,
}

impl NamedSessions {
    /// Takes the next record. Returns the sessions that are over by then.
    pub(super) fn record(&mut self, record: &Record<'_>) -> Vec<ClientSession> {
        self.store.clear(KEEP);
        let range = self.names.next(record, &mut self.store);
        let names = self.store.get(range);
        self.sessions.record(record, &|node| names.name_of(node).map(|(name, _)| name));
        self.sessions.take_finished()
    }

    /// A stream is over.
    pub(super) fn stream_over(&mut self, over: &StreamOver<'_>) {
        self.sessions.stream_over(
            (over.key.transport, over.key.number),
            over.counts,
            &over.learned,
        );
    }

    /// The captures are over: every session is.
    pub(super) fn finish(&mut self) -> impl Iterator<Item = ClientSession> {
        self.sessions.finish()
    }
}
