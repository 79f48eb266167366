//! `moulsniff stats`: statistics of captures, and how much of them was understood.

use std::io::Write;

use clap::Args;

use crate::cli::conclusions;
use crate::cli::error::{CliError, Status};
use crate::cli::options::{CountArgs, FilterArgs, LiveArgs, ReadArgs};
use crate::cli::plan::{Plan, PlanArgs};
use crate::cli::summary::concluded;
use crate::facts::Account;
use crate::pipeline::{Diagnosis, Filtered, StatsCounter};
use crate::print::stats::{FrameSpan, stats_json, stats_text};
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

pub(super) fn run(args: &StatsArgs) -> Result<Status, CliError> {
    let Plan { reading, mut setup, filter, limit, ending, .. } = Plan::new(PlanArgs {
        live: Some(&args.live),
        filter: Some(&args.filter),
        count: args.count.count,
        ..PlanArgs::new(&args.read)
    })?;
    // Conclusions say who it was.
    setup.names = true;
    let account = Account::default();
    let counter = StatsCounter::new(filter.is_some(), &account);
    let mut filtered = Filtered::new(counter, filter.clone(), limit);
    let diagnosis = Diagnosis::with_sessions(&account);
    let run = CaptureRun::new(&reading, setup)?.diagnosing(Some(diagnosis));
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
    let found = concluded(&mut outcome);
    let mut out = Vec::new();
    if args.json {
        stats_json(counter.stats(), &span, &found, &mut out);
    } else {
        out.extend_from_slice(conclusions::at_head(&found, &args.read).as_bytes());
        out.extend_from_slice(stats_text(counter.stats(), &span).as_bytes());
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
