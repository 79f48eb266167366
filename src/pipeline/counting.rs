//! An output that counts records for statistics.

use super::{Output, StreamKey, StreamOver};
use crate::facts::{Account, Stats, StreamMap, StreamSummary};
use crate::record::{Body, Record};
use crate::session::{Counts, Ends};

/// Counts records for statistics.
pub struct StatsCounter {
    stats: Stats,
    /// With a filter, streams are those with a record that it keeps, and their bytes are those of
    /// these records. What it kept of the open streams.
    kept: Option<StreamMap<Counts>>,
}

impl StatsCounter {
    /// Counts all records, or, where it is behind a filter, only the kept ones and their bytes.
    pub fn new(filtered: bool, account: &Account) -> StatsCounter {
        StatsCounter { stats: Stats::new(account), kept: filtered.then(StreamMap::default) }
    }

    /// What was counted so far.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
}

impl Output for StatsCounter {
    fn record(&mut self, record: &Record<'_>) {
        self.stats.record(record);
        if let Some(streams) = &mut self.kept {
            streams.of((record.transport, record.stream)).add(bytes_of(record));
        }
    }

    /// It may answer a request that is counted.
    fn dropped(&mut self, record: &Record<'_>) {
        self.stats.not_counted(record);
    }

    fn stream_over(&mut self, over: &StreamOver<'_>) {
        let StreamKey { transport, number } = over.key;
        let [mut bytes, server] = over.counts;
        bytes.add(server);
        if let Some(streams) = &mut self.kept {
            let Some(kept) = streams.remove((transport, number)) else { return };
            bytes = kept;
        }
        let Ends { client, server } = over.ends;
        let summary = StreamSummary {
            transport,
            stream: number,
            client,
            server,
            protocol: over.protocol.to_string(),
            service: over.service.to_string(),
            bytes,
            round_trips: over.round_trips,
        };
        self.stats.stream(summary, over.learned.clone());
    }
}

/// The byte counts of one record.
fn bytes_of(record: &Record<'_>) -> Counts {
    match &record.body {
        Body::Message { message, tree, .. } => Counts::of_message(tree, message.bytes.len()),
        Body::Event(event) => event.counts(),
        Body::StreamEnd { .. } => Counts::default(),
    }
}
