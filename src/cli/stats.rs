//! `moulsniff stats`: what was in captures, and how much of it was understood.

use std::io::Write;

use super::args::ReadArgs;
use super::error::{CliError, Status};
use super::read::{feed, say_summary, setup, status};
use crate::out::Record;
use crate::out::stats::{Stats, StreamLine};
use crate::pipeline::{Output, Pipeline, StreamOver};

/// Counts records as they come.
struct Counter {
    stats: Stats,
    left: u64,
}

impl Output for Counter {
    fn record(&mut self, record: &Record<'_>) {
        if self.left > 0 {
            self.left -= 1;
            self.stats.record(record);
        }
    }

    fn stream_over(&mut self, over: &StreamOver<'_>) {
        let [mut bytes, server] = over.counts;
        bytes.add(server);
        self.stats.stream(StreamLine {
            transport: over.key.transport,
            stream: over.key.number,
            client: over.ends.client,
            server: over.ends.server,
            protocol: over.protocol.to_string(),
            service: over.service.to_string(),
            bytes,
        });
        self.stats.world.learn(over.learned.clone());
    }
}

pub(super) fn run(args: &ReadArgs) -> Result<Status, CliError> {
    let counter = Counter { stats: Stats::default(), left: args.count.unwrap_or(u64::MAX) };
    let mut pipeline = Pipeline::new(setup(args)?, counter);
    let read = feed(args, &mut pipeline, |counter| counter.left == 0);
    pipeline.finish();
    let summary = pipeline.summary();
    let mut out = Vec::new();
    let stats = &pipeline.output().stats;
    if args.json {
        stats.json(summary.flow.frames, &mut out);
    } else {
        out.extend_from_slice(stats.table(summary.flow.frames).as_bytes());
    }
    std::io::stdout().write_all(&out).map_err(CliError::writing)?;
    read?;
    if args.json && !args.quiet {
        say_summary(&summary);
    }
    Ok(status(args, &summary))
}
