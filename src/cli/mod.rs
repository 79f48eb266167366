//! The command line: what was typed, what is meant by it, and the exit status.

mod args;
mod decode;
mod ending;
mod error;
mod files;
mod follow;
mod given;
mod keys;
mod load;
mod plan;
mod read;
mod schema;
mod sessions;
mod size;
mod stats;
mod tables;

use std::ffi::OsString;
use std::io::Write;

use clap::{CommandFactory, FromArgMatches};

use crate::run::list_interfaces;

pub use args::Cli;
pub use error::{CliError, Status};

/// Runs the program with what was typed; returns the exit status.
pub fn main(typed: impl IntoIterator<Item = OsString>) -> u8 {
    let cli = match parse(typed) {
        Ok(cli) => cli,
        Err(error) => {
            if !error.use_stderr() {
                // Help and version.
                let _ = error.print();
                return Status::Good as u8;
            }
            let _ = writeln!(std::io::stderr(), "moulsniff: {}", one_line(&error));
            return Status::Typed as u8;
        }
    };
    match run(&cli) {
        Ok(status) => status as u8,
        Err(CliError::BrokenPipe) => Status::Good as u8,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "moulsniff: {error}");
            error.status() as u8
        }
    }
}

/// A mistake in what was typed, in one line: what is wrong and what may have been meant, without the usage.
fn one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let said = text.split("\n\n").take_while(|part| !part.starts_with("Usage:") && !part.starts_with("For more"));
    let parts: Vec<String> = said.map(|part| part.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let text = parts.join("; ");
    format!("{} (--help tells what can be typed)", text.strip_prefix("error: ").unwrap_or(&text))
}

/// The command as clap knows it, for help, man page and completions.
pub fn command() -> clap::Command {
    let command = Cli::command();
    let status = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    command.after_help(format!("Examples:\n{}\n{status}", given::examples()))
}

fn parse(typed: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let matches = command().try_get_matches_from(typed)?;
    Cli::from_arg_matches(&matches)
}

fn run(cli: &Cli) -> Result<Status, CliError> {
    use args::Command;
    match &cli.command {
        None if cli.read.list_interfaces => {
            let list = list_interfaces()?;
            std::io::stdout().write_all(list.as_bytes()).map_err(CliError::writing)?;
            Ok(Status::Good)
        }
        None => read::run(&cli.read),
        Some(Command::Schema) => schema::run(&cli.read),
        Some(Command::Tables(tables)) => tables::run(tables, &cli.read),
        Some(Command::Decode(decode)) => decode::run(decode, &cli.read),
        Some(Command::Stats(args)) => stats::run(args),
        Some(Command::Sessions(args)) => sessions::run(args),
        Some(Command::Follow(args)) => follow::run(args),
        Some(Command::Keys(keys)) => keys::run(keys, &cli.read),
        Some(Command::Man) => man(),
        Some(Command::Completions { shell }) => {
            let mut command = command();
            // Into memory first: the crate would panic where nobody reads.
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut command, "moulsniff", &mut text);
            std::io::stdout().write_all(&text).map_err(CliError::writing)?;
            Ok(Status::Good)
        }
    }
}

fn man() -> Result<Status, CliError> {
    clap_mangen::Man::new(command()).render(&mut std::io::stdout()).map_err(CliError::writing)?;
    Ok(Status::Good)
}
