//! `moulsniff export`: writes files, the vault, chat, messages or frames from captures.
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
mod frames;
pub(super) mod messages;
mod vault;

use clap::Subcommand;

use crate::cli::error::{CliError, Status};
use crate::cli::options::ReadArgs;

/// What is taken out of captures.
#[derive(Subcommand, Debug)]
pub enum ExportCommand {
    /// Write every transferred file, assembled, decompressed and decrypted
    Files(files::ExportFilesArgs),
    /// Write the vault as the captures show it: nodes, references, and how they changed
    Vault(vault::ExportVaultArgs),
    /// Print chat, with speakers and recipients
    Chat(chat::ExportChatArgs),
    /// Write every message decrypted, one packet each, for Wireshark and for readers without keys
    Messages(messages::ExportMessagesArgs),
    /// Write the original frames of what a filter keeps, with those that open their connections
    Frames(frames::ExportFramesArgs),
}

impl ExportCommand {
    /// How the captures are read.
    pub(super) fn read_mut(&mut self) -> &mut ReadArgs {
        match self {
            ExportCommand::Files(args) => &mut args.read,
            ExportCommand::Vault(args) => &mut args.read,
            ExportCommand::Chat(args) => &mut args.read,
            ExportCommand::Messages(args) => &mut args.read,
            ExportCommand::Frames(args) => &mut args.read,
        }
    }
}

pub(super) fn run(command: &ExportCommand) -> Result<Status, CliError> {
    match command {
        ExportCommand::Files(args) => files::run(args),
        ExportCommand::Vault(args) => vault::run(args),
        ExportCommand::Chat(args) => chat::run(args),
        ExportCommand::Messages(args) => messages::run(args),
        ExportCommand::Frames(args) => frames::run(args),
    }
}
