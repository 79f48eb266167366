//! `moulsniff export`: what was transferred, stored or said in captures, taken out of them.
//!
//! Each kind of thing is one file here, which hands records to a collector of `facts` and writes what comes out.

mod args;
mod chat;
mod file_index;
mod file_name;
#[cfg(test)]
mod file_name_tests;
mod file_writer;
mod files;
mod messages;
mod vault;

pub use args::ExportCommand;

use super::error::{CliError, Status};

pub(super) fn run(command: &ExportCommand) -> Result<Status, CliError> {
    match command {
        ExportCommand::Files(args) => files::run(args),
        ExportCommand::Vault(args) => vault::run(args),
        ExportCommand::Chat(args) => chat::run(args),
        ExportCommand::Messages(args) => messages::run(args),
    }
}
