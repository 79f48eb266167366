//! What can be typed after `moulsniff export`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::ReadArgs;
use super::late_args::LateArgs;
use super::size;

/// What is taken out of captures.
#[derive(Subcommand, Debug)]
pub enum ExportCommand {
    /// Write every transferred file, assembled, decompressed and decrypted
    Files(LateArgs<ExportFilesArgs>),
    /// Write the vault as the captures show it: nodes, references, and how they changed
    Vault(LateArgs<ExportVaultArgs>),
    /// Print chat, with speakers and recipients
    Chat(LateArgs<ExportChatArgs>),
    /// Write every message decrypted, one packet each, for Wireshark and for readers without keys
    Messages(LateArgs<ExportMessagesArgs>),
}

impl ExportCommand {
    /// The captures, and how they are read.
    pub fn read(&self) -> &ReadArgs {
        match self {
            ExportCommand::Files(LateArgs(args)) => &args.read,
            ExportCommand::Vault(LateArgs(args)) => &args.read,
            ExportCommand::Chat(LateArgs(args)) => &args.read,
            ExportCommand::Messages(LateArgs(args)) => &args.read,
        }
    }

    /// The same, to be changed.
    pub fn read_mut(&mut self) -> &mut ReadArgs {
        match self {
            ExportCommand::Files(LateArgs(args)) => &mut args.read,
            ExportCommand::Vault(LateArgs(args)) => &mut args.read,
            ExportCommand::Chat(LateArgs(args)) => &mut args.read,
            ExportCommand::Messages(LateArgs(args)) => &mut args.read,
        }
    }

    /// The file or folder that it writes.
    pub fn output(&self) -> Option<&PathBuf> {
        match self {
            ExportCommand::Files(LateArgs(args)) => Some(&args.output),
            ExportCommand::Vault(LateArgs(args)) => Some(&args.output),
            ExportCommand::Messages(LateArgs(args)) => Some(&args.output),
            ExportCommand::Chat(_) => None,
        }
    }

    /// Its name with the command before it.
    pub fn name(&self) -> &'static str {
        match self {
            ExportCommand::Files(_) => "export files",
            ExportCommand::Vault(_) => "export vault",
            ExportCommand::Chat(_) => "export chat",
            ExportCommand::Messages(_) => "export messages",
        }
    }
}

/// Transferred files.
#[derive(Args, Debug)]
pub struct ExportFilesArgs {
    /// Write the files and index.csv into this folder. It is created if necessary; existing files
    /// are never replaced
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Write at most this much of one file, from its beginning
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size::parse)]
    pub max_file_size: usize,
    /// The captures, and how to read them.
    #[command(flatten)]
    pub read: ReadArgs,
}

/// The vault.
#[derive(Args, Debug)]
pub struct ExportVaultArgs {
    /// Write to this file: JSON if its name ends in .json, Graphviz if it ends in .dot; an existing
    /// file is replaced
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// The captures, and how to read them.
    #[command(flatten)]
    pub read: ReadArgs,
}

/// Chat.
#[derive(Args, Debug)]
pub struct ExportChatArgs {
    /// Also print the copies that servers relay to other clients
    #[arg(long)]
    pub copies: bool,
    /// The captures, and how to read them.
    #[command(flatten)]
    pub read: ReadArgs,
}

/// Messages.
#[derive(Args, Debug)]
pub struct ExportMessagesArgs {
    /// Write the capture to this file, as pcapng with Wireshark's exported PDUs (link type 252); an
    /// existing file is replaced
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// The captures, and how to read them.
    #[command(flatten)]
    pub read: ReadArgs,
}
