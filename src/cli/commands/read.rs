//! Reading captures and printing what is in them: the main command.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;

use crate::cli::error::{CliError, Status};
use crate::cli::options::ReadArgs;
use crate::cli::plan::Plan;
use crate::digits::counted;
use crate::pipeline::Filtered;
use crate::remark;
use crate::run::{CaptureRun, Printer};

/// Reads captures and prints their records.
pub(super) fn run(args: &ReadArgs) -> Result<Status, CliError> {
    let plan = Plan::new(args)?;
    let mut head = Vec::new();
    let writer = plan.writer(args, io::stdout().is_terminal(), &mut head)?;
    let Plan { reading, mut setup, filter, limit, ending, .. } = plan;
    setup.names |= writer.wants_names();
    let threads = reading.threads;
    let max_output = args.max_output.0;
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
