//! Reading captures and printing what is in them: the main command.

use std::io::{self, IsTerminal, Write};

use crate::cli::error::{CliError, Status};
use crate::cli::options::ReadArgs;
use crate::cli::plan::Plan;
use crate::digits::counted;
use crate::remark;
use crate::run::{CaptureRun, Formatter, PrintOptions, Printer};

/// Reads captures and prints their records.
pub(super) fn run(args: &ReadArgs) -> Result<Status, CliError> {
    let plan = Plan::new(args)?;
    let mut head = Vec::new();
    let writer = plan.writer(args, io::stdout().is_terminal(), &mut head)?;
    let Plan { reading, setup, filter, limit, ending, .. } = plan;
    let formatter = Formatter::new(writer, &setup);
    let run = CaptureRun::new(&reading, setup)?;
    let mut to = run.stdout();
    to.write_all(&head).map_err(CliError::writing)?;
    let printing = PrintOptions { threads: reading.threads, max_output: args.max_output.0, limit };
    let mut printer = Printer::new(formatter, filter, printing, to);
    let mut outcome = run.into_printer(&mut printer);
    if let Some(error) = printer.take_error() {
        return Err(CliError::writing(error));
    }
    if let Some(error) = outcome.error.take() {
        return Err(error.into());
    }
    let status = ending.status(&outcome, printer.filter())?;
    let shortened = printer.shortened();
    if shortened > 0 && !ending.quiet {
        remark::say(format_args!(
            "{} without fields (--max-output); --max-output none prints them",
            counted(shortened, "message")
        ));
    }
    ending.say_summary(&outcome);
    Ok(status)
}
