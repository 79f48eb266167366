//! `moulsniff diagnose`: what is wrong in captures, the worst first.

use std::io::{IsTerminal, Write};

use clap::Args;

use crate::cli::conclusions::{self, print_conclusions};
use crate::cli::error::{CliError, Status};
use crate::cli::options::ReadArgs;
use crate::cli::plan::Plan;
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
    /// The captures, and how to read them.
    #[command(flatten)]
    pub read: ReadArgs,
}

/// Takes records: what is collected is collected beside it.
struct Nothing;

impl Output for Nothing {
    fn record(&mut self, _: &Record<'_>) {}
}

pub(super) fn run(args: &DiagnoseArgs) -> Result<Status, CliError> {
    let mut read = args.read.clone();
    // Sessions are collected here, so that nothing is read twice for the one that is wanted.
    let session = read.session.take();
    let Plan { reading, mut setup, limit, ending, .. } = Plan::new(&read)?;
    setup.names = true;
    let run = CaptureRun::new(&reading, setup)?.diagnosing(Some(Diagnosis::with_sessions()));
    let mut outcome = run.into_output(&mut Filtered::new(Nothing, None, limit));
    let mut all = conclusions::of(&mut outcome);
    if session.is_some() {
        all.retain(|one| one.session == session);
    }
    let mut out = Vec::new();
    if read.json {
        conclusion_lines(&all, &mut out);
    } else {
        let lines = if args.all { usize::MAX } else { SCREEN };
        let terminal = std::io::stdout().is_terminal();
        out = print_conclusions(&all, &read, terminal, lines).into_bytes();
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
