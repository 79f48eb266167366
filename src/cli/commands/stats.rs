//! `moulsniff stats`: statistics of captures, and how much of them was understood.

use std::io::Write;

use clap::Args;

use crate::cli::conclusions;
use crate::cli::error::{CliError, Status};
use crate::cli::options::{CountArgs, FilterArgs, LiveArgs, ReadArgs};
use crate::cli::plan::{Plan, PlanArgs};
use crate::facts::{Stats, StreamMap, StreamSummary};
use crate::pipeline::{Diagnosis, Filtered, Output, StreamKey, StreamOver};
use crate::print::stats::{FrameSpan, stats_json, stats_text};
use crate::record::{Body, Record};
use crate::run::CaptureRun;
use crate::session::{Counts, Ends};

/// What is counted.
#[derive(Args, Debug)]
pub struct StatsArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// The captures.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Captures that still grow.
    #[command(flatten)]
    pub live: LiveArgs,
    /// Which records are counted.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// How many.
    #[command(flatten)]
    pub count: CountArgs,
}

/// Counts records.
struct StatsCounter {
    stats: Stats,
    /// With a filter, streams are those with a record that it keeps, and their bytes are those of
    /// these records. What it kept of the open streams.
    kept: Option<StreamMap<Counts>>,
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

pub(super) fn run(args: &StatsArgs) -> Result<Status, CliError> {
    let Plan { reading, mut setup, filter, limit, ending, .. } = Plan::new(PlanArgs {
        live: Some(&args.live),
        filter: Some(&args.filter),
        count: args.count.count,
        ..PlanArgs::new(&args.read)
    })?;
    // Conclusions say who it was.
    setup.names = true;
    let counter =
        StatsCounter { stats: Stats::default(), kept: filter.is_some().then(StreamMap::default) };
    let mut filtered = Filtered::new(counter, filter.clone(), limit);
    let run = CaptureRun::new(&reading, setup)?.diagnosing(Some(Diagnosis::with_sessions()));
    let mut outcome = run.into_output(&mut filtered);
    let counter = filtered.into_inner();
    let mut error = outcome.error.take();
    if let Some(error) = error.take_if(|error| !error.is_of_captures()) {
        // A file could not be written: what was counted is not the whole.
        return Err(error.into());
    }
    let flow = outcome.pipeline.summary().flow;
    let not_read = outcome.pipeline.not_read().named();
    let span = FrameSpan { frames: flow.frames, times: flow.times, not_read };
    let found = conclusions::of(&mut outcome);
    let mut out = Vec::new();
    if args.json {
        stats_json(&counter.stats, &span, &found, &mut out);
    } else {
        out.extend_from_slice(conclusions::at_head(&found, &args.read).as_bytes());
        out.extend_from_slice(stats_text(&counter.stats, &span).as_bytes());
    }
    std::io::stdout().write_all(&out).map_err(CliError::writing)?;
    if let Some(error) = error {
        return Err(error.into());
    }
    let status = ending.status(&outcome, filter.as_deref())?;
    // The tables say what the summary says.
    if args.json {
        ending.say_counts(&outcome);
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
