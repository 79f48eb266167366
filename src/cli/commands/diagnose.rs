//! `moulsniff diagnose`: what is wrong in captures, the worst first.

use std::io::{IsTerminal, Write};

use clap::Args;

use crate::cli::conclusions::{self, print_conclusions};
use crate::cli::error::{CliError, Status};
use crate::cli::options::{CountArgs, LiveArgs, ReadArgs, number};
use crate::cli::plan::{Plan, PlanArgs};
use crate::cli::summary::concluded;
use crate::facts::Account;
use crate::pipeline::{Diagnosis, Filtered, Output};
use crate::print::conclusion_lines;
use crate::record::Record;
use crate::run::CaptureRun;

/// Lines of a screen.
const SCREEN: usize = 22;

/// What is wrong.
#[derive(Args, Debug)]
pub struct DiagnoseArgs {
    /// Print all conclusions, not only a screen of them
    #[arg(long)]
    pub all: bool,
    /// Print JSON, one object a conclusion
    #[arg(long)]
    pub json: bool,
    /// Print only what is wrong in this session, by its number in `moulsniff sessions`
    #[arg(long, value_name = "N", value_parser = number::<u64>)]
    pub session: Option<u64>,
    /// The captures.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Captures that still grow.
    #[command(flatten)]
    pub live: LiveArgs,
    /// How many records are read.
    #[command(flatten)]
    pub count: CountArgs,
}

/// Takes records: what is collected is collected beside it.
struct Nothing;

impl Output for Nothing {
    fn record(&mut self, _: &Record<'_>) {}
}

pub(super) fn run(args: &DiagnoseArgs) -> Result<Status, CliError> {
    let Plan { reading, mut setup, limit, ending, .. } = Plan::new(PlanArgs {
        live: Some(&args.live),
        count: args.count.count,
        ..PlanArgs::new(&args.read)
    })?;
    setup.names = true;
    let diagnosis = Diagnosis::with_sessions(&Account::default());
    let run = CaptureRun::new(&reading, setup)?.diagnosing(Some(diagnosis));
    let mut outcome = run.into_output(&mut Filtered::new(Nothing, None, limit));
    let mut all = concluded(&mut outcome);
    if args.session.is_some() {
        all.retain(|one| one.session == args.session);
    }
    let mut out = Vec::new();
    if args.json {
        conclusion_lines(&all, &mut out);
    } else {
        let lines = if args.all { usize::MAX } else { SCREEN };
        let terminal = std::io::stdout().is_terminal();
        out = print_conclusions(&all, &args.read, terminal, lines).into_bytes();
        if all.is_empty() {
            out = conclusions::nothing_wrong(&outcome).into_bytes();
        }
    }
    std::io::stdout().write_all(&out).map_err(CliError::writing)?;
    if let Some(error) = outcome.error.take() {
        return Err(error.into());
    }
    let status = ending.status(&outcome, None)?;
    ending.say_counts(&outcome);
    Ok(status)
}
