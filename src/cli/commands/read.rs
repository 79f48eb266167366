//! Reading captures and printing what is in them: the main command.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use clap::Args;

use super::print;

use crate::cli::error::{CliError, Status};
use crate::cli::options::{CountArgs, FilterArgs, LiveArgs, PrintArgs, ReadArgs};
use crate::cli::plan::{Plan, PlanArgs};
use crate::digits::counted;
use crate::pipeline::Filtered;
use crate::remark;
use crate::run::{CaptureRun, Printer, list_interfaces};

/// Reading captures and printing them.
#[derive(Args, Debug)]
#[command(mut_arg("captures", |arg| arg.required_unless_present("list_interfaces")))]
pub struct PrintCommand {
    /// List the interfaces that can be captured on
    #[arg(short = 'D', long)]
    #[cfg_attr(not(feature = "live"), arg(hide = true))]
    pub list_interfaces: bool,
    /// Which records are printed.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// How many.
    #[command(flatten)]
    pub count: CountArgs,
    /// The captures.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Captures that still grow.
    #[command(flatten)]
    pub live: LiveArgs,
    /// How records are printed.
    #[command(flatten)]
    pub print: PrintArgs,
}

/// Reads captures and prints their records.
pub(super) fn run(args: &PrintCommand) -> Result<Status, CliError> {
    if args.list_interfaces {
        return print(list_interfaces()?.as_bytes());
    }
    let plan = Plan::new(PlanArgs {
        live: Some(&args.live),
        filter: Some(&args.filter),
        count: args.count.count,
        print: Some(&args.print),
        ..PlanArgs::new(&args.read)
    })?;
    let mut head = Vec::new();
    let color = args.read.general.color;
    let writer = plan.writer(&args.print, color, io::stdout().is_terminal(), &mut head)?;
    let Plan { reading, mut setup, filter, limit, ending, .. } = plan;
    setup.names |= writer.wants_names();
    let threads = reading.threads;
    let max_output = args.print.max_output.0;
    let tables = Arc::clone(&setup.tables);
    let run = CaptureRun::new(&reading, setup)?;
    let mut to = run.stdout();
    to.write_all(&head).map_err(CliError::writing)?;
    let printer = Printer::new(writer, tables, max_output, threads, to);
    let mut filtered = Filtered::new(printer, filter.clone(), limit);
    let mut outcome = run.into_output(&mut filtered);
    let mut printer = filtered.into_inner();
    printer.flush();
    if let Some(error) = printer.take_error() {
        return Err(CliError::writing(error));
    }
    if let Some(error) = outcome.error.take() {
        return Err(error.into());
    }
    let status = ending.status(&outcome, filter.as_deref())?;
    let shortened = printer.shortened();
    if shortened > 0 && !ending.quiet {
        remark::say(format_args!(
            "{} without fields (--max-output); --max-output none prints them",
            counted(shortened, "message")
        ));
    }
    ending.say_summary(&mut outcome);
    Ok(status)
}
