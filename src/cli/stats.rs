//! `moulsniff stats`: statistics of captures, and how much of them was understood.

use std::collections::HashMap;
use std::io::Write;

use super::args::ReadArgs;
use super::error::{CliError, Status};
use super::plan::Plan;
use crate::facts::{Stats, StreamSummary};
use crate::filter::RecordFilter;
use crate::out::stats::{FrameSpan, stats_json, stats_text};
use crate::out::{Body, Counts, Outlined, Record};
use crate::pipeline::{Output, StreamKey, StreamOver};
use crate::run::CaptureRun;

/// Counts records as they come.
struct StatsOutput {
    stats: Stats,
    /// With a filter, streams are those with a record that it keeps, and their bytes are those of these records.
    filter: RecordFilter,
    /// With a filter, what it kept of the open streams.
    kept: HashMap<StreamKey, Counts>,
    /// The record that the filter was asked about last, and whether it is kept.
    asked: (u64, Option<bool>),
    left: u64,
}

impl Output for StatsOutput {
    fn record(&mut self, record: &Record<'_>) {
        let kept = self.filter.keeps(record);
        if self.left == 0 {
            return;
        }
        if !kept {
            return self.stats.not_counted(record);
        }
        self.left -= 1;
        self.stats.record(record);
        if self.filter.is_some() {
            let key = StreamKey { transport: record.transport, number: record.stream };
            self.kept.entry(key).or_default().add(bytes_of(record));
        }
    }

    fn wants_outlines(&self) -> bool {
        !self.filter.is_some() || self.filter.judges_outlines()
    }

    fn chooses_outlines(&self) -> bool {
        self.filter.is_some()
    }

    fn wants_tree(&mut self, record: &Record<'_, Outlined<'_>>) -> bool {
        self.asked = (record.number, self.filter.decides(record));
        self.asked.1.is_none()
    }

    fn outline(&mut self, record: &Record<'_, Outlined<'_>>) {
        if self.left == 0 {
            return;
        }
        if self.filter.is_some() {
            // This record came as an outline because of what the filter said of it.
            if self.asked != (record.number, Some(true)) {
                return self.stats.outline_not_counted(record);
            }
            let key = StreamKey { transport: record.transport, number: record.stream };
            let explained = record.body.message.bytes.len() as u64;
            self.kept.entry(key).or_default().add(Counts { payload: explained, explained, ..Counts::default() });
        }
        self.left -= 1;
        self.stats.outline(record);
    }

    fn stream_over(&mut self, over: &StreamOver<'_>) {
        let [mut bytes, server] = over.counts;
        bytes.add(server);
        if self.filter.is_some() {
            let Some(kept) = self.kept.remove(&over.key) else { return };
            bytes = kept;
        }
        let summary = StreamSummary {
            transport: over.key.transport,
            stream: over.key.number,
            client: over.ends.client,
            server: over.ends.server,
            protocol: over.protocol.to_string(),
            service: over.service.to_string(),
            bytes,
            round_trips: over.round_trips,
        };
        self.stats.stream(summary, over.learned.clone());
    }

    fn wants_more(&mut self, _may_block: bool) -> bool {
        self.left > 0
    }
}

pub(super) fn run(args: &ReadArgs) -> Result<Status, CliError> {
    let Plan { reading, setup, filter, limit, ending, .. } = Plan::new(args)?;
    let filter = RecordFilter::new(filter);
    let mut counter =
        StatsOutput { stats: Stats::default(), filter, kept: HashMap::new(), asked: (0, None), left: limit };
    let mut outcome = CaptureRun::new(&reading, setup)?.into_output(&mut counter);
    let mut error = outcome.error.take();
    if let Some(error) = error.take_if(|error| !error.is_of_captures()) {
        // A file could not be written: what was counted is not the whole.
        return Err(error.into());
    }
    let flow = outcome.pipeline.summary().flow;
    let span = FrameSpan { frames: flow.frames, times: flow.times };
    let mut out = Vec::new();
    if args.json {
        stats_json(&counter.stats, &span, &mut out);
    } else {
        out.extend_from_slice(stats_text(&counter.stats, &span).as_bytes());
    }
    std::io::stdout().write_all(&out).map_err(CliError::writing)?;
    if let Some(error) = error {
        return Err(error.into());
    }
    let status = ending.status(&outcome, counter.filter.filter())?;
    // The tables say what the summary says.
    if args.json {
        ending.say_summary(&outcome);
    } else {
        ending.explain_nothing(&outcome);
    }
    Ok(status)
}

/// The byte counts of one record.
fn bytes_of(record: &Record<'_>) -> Counts {
    match &record.body {
        Body::Message { message, tree, .. } => Counts::of_message(tree, message.bytes.len()),
        Body::Event(event) => event.counts(),
        Body::StreamEnd { .. } => Counts::default(),
    }
}
