//! Files that help to decode: the protocols' keys and the like, and message tables.

use std::path::PathBuf;

use clap::Args;

use super::protocol_args::{HEADING, ProtocolArgs};

/// Key files, message tables and the like.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = HEADING)]
pub struct KeyArgs {
    /// The protocols' own options.
    #[command(flatten)]
    pub protocols: ProtocolArgs,
    /// Message tables.
    #[command(flatten)]
    pub tables: TableArgs,
}

/// Message tables.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = HEADING)]
pub struct TableArgs {
    /// Add message tables
    ///
    /// Messages of embedded tables that have the same name are replaced. May be given several
    /// times.
    #[arg(long = "tables", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The line of the configuration file that names them, where it does.
    #[arg(skip)]
    pub place: Option<String>,
}
