//! The commands, one a file.

mod completions;
mod config;
mod decode;
mod diagnose;
mod diff;
mod encode;
mod export;
mod extcap;
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
mod vectors;

use std::io::{self, Write};

use clap::{Parser, Subcommand};

use super::config::{Configured, fill};
use super::error::{CliError, Status};

/// A passive dissector for the protocols of online worlds.
///
/// Reads captures, puts TCP streams together, derives the session keys from a shard's private keys,
/// and prints every message as an annotated tree or as JSON.
#[derive(Parser, Debug)]
#[command(
    name = "moulsniff",
    version,
    max_term_width = 110,
    args_override_self = true,
    override_usage = "moulsniff [OPTIONS] [CAPTURE]...\n       moulsniff <COMMAND> [OPTIONS] ...",
    subcommand_negates_reqs = true
)]
pub struct Cli {
    /// What to do instead of printing captures.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Printing captures.
    #[command(flatten)]
    pub print: read::PrintCommand,
}

/// What to do instead of printing captures.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// List clients: account, places and requests of each
    Sessions(sessions::SessionsArgs),
    /// Say what is wrong in captures, the worst first
    Diagnose(diagnose::DiagnoseArgs),
    /// Count messages, problems and replies, and what was understood
    Stats(stats::StatsArgs),
    /// Write one HTML page that shows the decoded captures
    Report(report::ReportArgs),
    /// Compare two captures
    Diff(diff::DiffArgs),
    /// Print the plaintext of a stream
    Follow(follow::FollowArgs),
    /// Export files, the vault, chat, decrypted messages, or original frames
    #[command(subcommand, arg_required_else_help = true)]
    Export(export::ExportCommand),
    /// Decode bytes from a log or a debugger
    Decode(decode::DecodeArgs),
    /// Encode messages from JSON, as `--json` and `decode --json` print them
    Encode(encode::EncodeArgs),
    /// Capture decrypted messages for Wireshark, which starts this itself
    Extcap(extcap::ExtcapArgs),
    /// Check key files; write keys into captures, or remove them
    #[command(subcommand, arg_required_else_help = true)]
    Keys(keys::KeysCommand),
    /// List, show or check message tables
    #[command(subcommand, arg_required_else_help = true)]
    Tables(tables::TablesCommand),
    /// Divide captures into parts
    ///
    /// All traffic between two hosts goes into the same part.
    Split(split::SplitArgs),
    /// Print the JSON Schema of the JSON output
    Schema(schema::SchemaArgs),
    /// Show the settings and where each comes from
    ///
    /// That is the configuration file, the environment or the command line. The file is
    /// $XDG_CONFIG_HOME/moulsniff/config.toml, else ~/.config/moulsniff/config.toml; on
    /// Windows %APPDATA%\moulsniff\config.toml. It may have: `keys`, `sdl` and `tables` (paths),
    /// `time` (as -t), and tables `[filters]` and `[columns]` of names, which -Y and --columns use
    /// as @NAME. Key files are named and never shown.
    Config(config::ConfigArgs),
    /// Print the manual page, or that of a command
    Man {
        /// Print the page of this command, such as `keys inject`
        #[arg(value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Print completions for a shell
    Completions {
        /// Print completions for this shell
        shell: clap_complete::Shell,
    },
}

impl Cli {
    /// The options that the configuration file may fill; `None` for a command that uses nothing of
    /// the file.
    fn configured(&mut self) -> Option<Configured<'_>> {
        let read = match &mut self.command {
            None if self.print.list_interfaces => return None,
            None => {
                let time = Some(&mut self.print.print.time);
                return Some(Configured { time, ..Configured::of_captures(&mut self.print.read) });
            }
            Some(Command::Decode(args)) => {
                return Some(Configured::of_keys(&mut args.keys, &mut args.general));
            }
            Some(Command::Encode(args)) => {
                return Some(Configured::of_keys(&mut args.keys, &mut args.general));
            }
            Some(Command::Keys(keys::KeysCommand::Inject(args))) => {
                return Some(Configured::of_keys(&mut args.keys, &mut args.general));
            }
            Some(Command::Tables(command)) => {
                let read = command.read_mut()?;
                return Some(Configured::of_tables(&mut read.tables, &mut read.general));
            }
            Some(Command::Schema(args)) => {
                return Some(Configured::of_tables(&mut args.read.tables, &mut args.read.general));
            }
            Some(Command::Diagnose(args)) => &mut args.read,
            Some(Command::Stats(args)) => &mut args.read,
            Some(Command::Report(args)) => &mut args.read,
            Some(Command::Sessions(args)) => &mut args.read,
            Some(Command::Diff(args)) => &mut args.read,
            Some(Command::Follow(args)) => &mut args.read,
            Some(Command::Export(command)) => command.read_mut(),
            Some(Command::Extcap(args)) => &mut args.read,
            // `config` shows the file, and says what of it was typed instead.
            Some(
                Command::Split(_)
                | Command::Keys(_)
                | Command::Config(_)
                | Command::Man { .. }
                | Command::Completions { .. },
            ) => return None,
        };
        Some(Configured::of_captures(read))
    }
}

/// Does what was typed.
pub(super) fn run(cli: &mut Cli) -> Result<Status, CliError> {
    if let Some(options) = cli.configured() {
        fill(options)?;
    }
    match &cli.command {
        None => read::run(&cli.print),
        Some(Command::Schema(args)) => schema::run(args),
        Some(Command::Tables(command)) => tables::run(command),
        Some(Command::Decode(args)) => decode::run(args),
        Some(Command::Encode(args)) => encode::run(args),
        Some(Command::Diagnose(args)) => diagnose::run(args),
        Some(Command::Stats(args)) => stats::run(args),
        Some(Command::Sessions(args)) => sessions::run(args),
        Some(Command::Split(args)) => split::run(args),
        Some(Command::Diff(args)) => diff::run(args),
        Some(Command::Report(args)) => report::run(args),
        Some(Command::Follow(args)) => follow::run(args),
        Some(Command::Export(command)) => export::run(command),
        Some(Command::Extcap(args)) => extcap::run(args),
        Some(Command::Keys(command)) => keys::run(command),
        Some(Command::Config(args)) => config::run(args),
        Some(Command::Man { command }) => man::run(command),
        Some(Command::Completions { shell }) => {
            print(completions::script(*shell, super::command()).as_bytes())
        }
    }
}

/// Prints a text onto standard output.
pub(super) fn print(text: &[u8]) -> Result<Status, CliError> {
    let mut to = io::stdout();
    to.write_all(text).and_then(|()| to.flush()).map_err(CliError::writing)?;
    Ok(Status::Good)
}
