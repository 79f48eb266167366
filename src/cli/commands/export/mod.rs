//! `moulsniff export`: writes files, the vault, chat or messages from captures.
//!
//! Each of these is one file here, which passes records to a collector of `facts` and writes the
//! result.

mod chat;
mod file_index;
mod file_name;
#[cfg(test)]
mod file_name_tests;
mod file_writer;
mod files;
mod messages;
mod vault;

use crate::cli::options::export::ExportCommand;

use crate::cli::error::{CliError, Status};
use crate::cli::options::late_args::LateArgs;

pub(super) fn run(command: &ExportCommand) -> Result<Status, CliError> {
    match command {
        ExportCommand::Files(LateArgs(args)) => files::run(args),
        ExportCommand::Vault(LateArgs(args)) => vault::run(args),
        ExportCommand::Chat(LateArgs(args)) => chat::run(args),
        ExportCommand::Messages(LateArgs(args)) => messages::run(args),
    }
}
