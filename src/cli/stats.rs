//! `moulsniff stats`: what was in captures, and how much of it was understood.

use std::io::Write;

use super::args::ReadArgs;
use super::error::{CliError, Status};
use super::intake::Intake;
use super::read::{feed, filter, say_summary, setup, status, verdict};
use crate::filter::Filter;
use crate::out::stats::{Stats, StreamSummary};
use crate::out::{Body, Counts, Outlined, Record};
use crate::pipeline::{Output, Pipeline, StreamOver};

/// Counts records as they come.
struct Counter {
    stats: Stats,
    /// With a filter, the bytes are those of the records it keeps, and no streams are listed.
    filter: Option<Filter>,
    left: u64,
}

impl Output for Counter {
    fn record(&mut self, record: &Record<'_>) {
        if self.left == 0 || self.filter.as_ref().is_some_and(|f| !f.keeps(record)) {
            return;
        }
        self.left -= 1;
        self.stats.record(record);
        if self.filter.is_some() {
            self.stats.bytes(record.protocol, record.service, bytes_of(record));
        }
    }

    fn wants_outlines(&self) -> bool {
        self.filter.is_none()
    }

    fn outline(&mut self, record: &Record<'_, Outlined<'_>>) {
        if self.left > 0 {
            self.left -= 1;
            self.stats.outline(record);
        }
    }

    fn stream_over(&mut self, over: &StreamOver<'_>) {
        if self.filter.is_some() {
            return;
        }
        let [mut bytes, server] = over.counts;
        bytes.add(server);
        self.stats.stream(StreamSummary {
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
    let setup = setup(args)?;
    let filter = filter(args, &setup)?;
    let counter = Counter { stats: Stats::default(), filter, left: args.count.unwrap_or(u64::MAX) };
    let mut pipeline = Pipeline::new(setup, counter);
    let progress = Intake::progress(args);
    let read = feed(args, progress, &mut pipeline, |counter, _| counter.left == 0);
    if !matches!(read, Ok(()) | Err(CliError::Capture(_))) {
        // Nothing could be read at all.
        return read.map(|()| Status::Good);
    }
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
    verdict(pipeline.output().filter.as_ref(), args.quiet)?;
    Ok(status(args, &summary))
}

/// What became of the bytes of one record.
fn bytes_of(record: &Record<'_>) -> Counts {
    match &record.body {
        Body::Message { message, tree, .. } => Counts::of_message(tree, message.bytes.len()),
        Body::Event(event) => Counts::of_event(event),
        Body::StreamEnd { .. } => Counts::default(),
    }
}
