//! The commands, one a file.

mod completions;
mod config;
mod decode;
pub(super) mod diagnose;
mod diff;
mod export;
mod follow;
mod keys;
mod man;
mod read;
mod report;
mod schema;
mod sessions;
mod split;
mod stats;
mod tables;

use std::io::{self, Write};
use std::path::PathBuf;

use super::error::{CliError, Status};
use super::files;
use super::options::late_args::LateArgs;
use super::options::{Cli, Command, KeysCommand, TablesCommand};
use crate::run::list_interfaces;

/// Does what was typed.
pub(super) fn run(cli: &Cli) -> Result<Status, CliError> {
    // Commands that read captures look at these where they find out what is read.
    let own: &[PathBuf] = match &cli.command {
        Some(
            Command::Tables(TablesCommand::Check { files })
            | Command::Keys(KeysCommand::Check { files }),
        ) => files,
        Some(Command::Diff(LateArgs(args))) => &args.ignore_files,
        _ => &[],
    };
    files::refuse_standard_output(&cli.read.inputs_and(own))?;
    match &cli.command {
        None if cli.read.list_interfaces => {
            let list = list_interfaces()?;
            print(list.as_bytes())
        }
        None => read::run(&cli.read),
        Some(Command::Schema(args)) => schema::run(args, &cli.read),
        Some(Command::Tables(tables)) => tables::run(tables, &cli.read),
        Some(Command::Decode(decode)) => decode::run(decode, &cli.read),
        Some(Command::Diagnose(LateArgs(args))) => diagnose::run(args),
        Some(Command::Stats(LateArgs(args))) => stats::run(args),
        Some(Command::Sessions(LateArgs(args))) => sessions::run(args),
        Some(Command::Split(args)) => split::run(args, &cli.read),
        Some(Command::Diff(LateArgs(args))) => diff::run(args),
        Some(Command::Report(LateArgs(args))) => report::run(args),
        Some(Command::Follow(LateArgs(args))) => follow::run(args),
        Some(Command::Export(export)) => export::run(export),
        Some(Command::Keys(keys)) => keys::run(keys, &cli.read),
        Some(Command::Config(args)) => config::run(args, &cli.read),
        Some(Command::Man { command }) => man::run(command),
        Some(Command::Completions { shell }) => {
            print(completions::script(*shell, super::command()).as_bytes())
        }
    }
}

/// Prints a text onto standard output.
fn print(text: &[u8]) -> Result<Status, CliError> {
    let mut to = io::stdout();
    to.write_all(text).and_then(|()| to.flush()).map_err(CliError::writing)?;
    Ok(Status::Good)
}
