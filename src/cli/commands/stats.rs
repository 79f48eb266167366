//! `moulsniff stats`: statistics of captures, and how much of them was understood.

use std::io::Write;
use std::sync::Arc;

use clap::Args;

use crate::cli::error::{CliError, Status};
use crate::cli::options::{CountArgs, FilterArgs, LiveArgs, ReadArgs};
use crate::cli::plan::{Plan, PlanArgs};
use crate::facts::{Stats, StreamMap, StreamSummary};
use crate::filter::RecordFilter;
use crate::out::stats::{FrameSpan, stats_json, stats_text};
use crate::out::{Body, Counts, EndedStream, Outlined, Record, Replay};
use crate::pipeline::{Output, StreamOver};
use crate::proto::Ends;
use crate::run::CaptureRun;

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

impl Replay for StatsCounter {
    fn record(&mut self, record: &Record<'_>, kept: bool) {
        if !kept {
            return self.stats.not_counted(record);
        }
        self.stats.record(record);
        if let Some(streams) = &mut self.kept {
            streams.of((record.transport, record.stream)).add(bytes_of(record));
        }
    }

    fn outline(&mut self, record: &Record<'_, Outlined<'_>>, kept: bool) {
        if !kept {
            return self.stats.outline_not_counted(record);
        }
        self.stats.outline(record);
        if let Some(streams) = &mut self.kept {
            let explained = record.body.message.bytes.len() as u64;
            let bytes = Counts { payload: explained, explained, ..Counts::default() };
            streams.of((record.transport, record.stream)).add(bytes);
        }
    }

    fn stream_over(&mut self, ended: EndedStream) {
        let EndedStream { stream, ends, protocol, service, counts, round_trips, learned } = ended;
        let [mut bytes, server] = counts;
        bytes.add(server);
        if let Some(streams) = &mut self.kept {
            let Some(kept) = streams.remove(stream) else { return };
            bytes = kept;
        }
        let Ends { client, server, .. } = ends;
        let (transport, stream) = stream;
        let protocol = protocol.to_string();
        let summary = StreamSummary {
            transport,
            stream,
            client,
            server,
            protocol,
            service,
            bytes,
            round_trips,
        };
        self.stats.stream(summary, learned);
    }
}

/// Counts records as they come, on one thread.
struct StatsOutput<'c> {
    counter: &'c mut StatsCounter,
    filter: RecordFilter,
    left: u64,
}

impl Output for StatsOutput<'_> {
    fn record(&mut self, record: &Record<'_>) {
        let kept = self.filter.keeps(record);
        if self.left > 0 {
            self.left -= u64::from(kept);
            self.counter.record(record, kept);
        }
    }

    fn wants_outlines(&self) -> bool {
        self.filter.wants_outlines()
    }

    fn chooses_outlines(&self) -> bool {
        self.filter.is_some()
    }

    fn wants_tree(&mut self, record: &Record<'_, Outlined<'_>>) -> bool {
        self.filter.wants_tree(record)
    }

    fn outline(&mut self, record: &Record<'_, Outlined<'_>>) {
        if self.left > 0 {
            let kept = self.filter.keeps_outline(record);
            self.left -= u64::from(kept);
            self.counter.outline(record, kept);
        }
    }

    fn stream_over(&mut self, over: &StreamOver<'_>) {
        self.counter.stream_over(over.into());
    }

    fn wants_more(&mut self, _may_block: bool) -> bool {
        self.left > 0
    }
}

pub(super) fn run(args: &StatsArgs) -> Result<Status, CliError> {
    let Plan { reading, setup, filter, limit, ending, .. } = Plan::new(PlanArgs {
        live: Some(&args.live),
        filter: Some(&args.filter),
        count: args.count.count,
        ..PlanArgs::new(&args.read)
    })?;
    let filter = filter.map(Arc::new);
    let mut counter =
        StatsCounter { stats: Stats::default(), kept: filter.is_some().then(StreamMap::default) };
    let in_order =
        setup.pseudonyms.is_some() || filter.as_ref().is_some_and(|filter| filter.wants_names());
    let run = CaptureRun::new(&reading, setup)?;
    let mut outcome = if reading.threads == 1 || in_order {
        let filter = RecordFilter::new(filter.clone());
        run.into_output(&mut StatsOutput { counter: &mut counter, filter, left: limit })
    } else {
        run.into_replay(&mut counter, filter.clone())
    };
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
    let status = ending.status(&outcome, filter.as_deref())?;
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
