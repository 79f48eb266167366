//! The command line's commands and options, with their help. What they do is in other files.

pub(super) mod captures;
pub(super) mod checks;
pub(super) mod completion_words;
pub(super) mod export;
pub(super) mod late_args;
pub(super) mod protocol_args;
mod read;
mod size;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::cli::commands::diagnose::DiagnoseArgs;
use completion_words::CompletionWords;
use export::ExportCommand;
use late_args::LateArgs;
use read::TIME_HELP;
pub use read::{ReadArgs, TimeWord, When};

/// A passive dissector for the protocols of online worlds.
///
/// Reads captures, reassembles TCP streams, recovers session keys from a shard's private keys, and
/// prints every message as an annotated tree or as JSON.
#[derive(Parser, Debug)]
#[command(
    name = "moulsniff",
    version,
    max_term_width = 110,
    args_conflicts_with_subcommands = false,
    args_override_self = true,
    override_usage = "moulsniff [OPTIONS] [CAPTURE]...\n       moulsniff <COMMAND> [OPTIONS] ...",
    subcommand_negates_reqs = true
)]
#[command(
    after_help = "Exit status: 0 read to its end; 1 something could not be read or written; 2 what was typed is wrong; 3 with --strict, something was undecoded, lost, cut or not opened by any key, or nothing was recognised; 4 with diff, the captures differ; 130 Ctrl-C before a capture file was read to its end."
)]
pub struct Cli {
    /// What to do instead of reading captures.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Reading captures.
    #[command(flatten)]
    pub read: ReadArgs,
}

/// What to do instead of reading captures.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// List, show or check message tables, or make a script for Wireshark
    #[command(subcommand, arg_required_else_help = true)]
    Tables(TablesCommand),
    /// Decode bytes from a log or a debugger
    Decode(DecodeArgs),
    /// Say what is wrong in captures, the worst first
    Diagnose(LateArgs<DiagnoseArgs>),
    /// Print statistics of captures: messages, problems, replies, and how much was understood
    Stats(LateArgs<ReadArgs>),
    /// Write one HTML page that shows the decoded captures
    Report(LateArgs<ReportArgs>),
    /// Divide captures into parts; all traffic between two hosts goes into the same part
    Split(SplitArgs),
    /// List clients: account, places, and requests over all connections of each
    Sessions(LateArgs<SessionsArgs>),
    /// Compare two captures: messages, fields, order and refusals
    Diff(LateArgs<DiffArgs>),
    /// Print the plaintext of a stream, handshake included
    Follow(LateArgs<FollowArgs>),
    /// Export files, the vault, chat, or decrypted messages
    #[command(subcommand, arg_required_else_help = true)]
    Export(ExportCommand),
    /// Check key files; write keys into captures, or remove them
    #[command(subcommand, arg_required_else_help = true)]
    Keys(KeysCommand),
    /// Print the JSON Schema of the JSON output
    Schema(SchemaArgs),
    /// Show the settings, and whether they come from the configuration file, the environment or the
    /// command line
    ///
    /// The file is $XDG_CONFIG_HOME/moulsniff/config.toml, else ~/.config/moulsniff/config.toml; on
    /// Windows %APPDATA%\moulsniff\config.toml. It may have: `keys`, `sdl` and `tables` (paths),
    /// `time` (as -t), and tables `[filters]` and `[columns]` of names, which -Y and --columns use
    /// as @NAME. Key files are named and never shown.
    Config(ConfigArgs),
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

/// The message tables.
#[derive(Subcommand, Debug)]
pub enum TablesCommand {
    /// List protocols, services, messages and types
    List {
        /// List only what contains this word
        #[arg(value_parser = CompletionWords::SERVICES, hide_possible_values = true)]
        word: Option<String>,
    },
    /// Show the declaration of a message, structure or enum
    Show {
        /// Show the declaration with this name
        name: String,
    },
    /// Print a Lua script with which Wireshark shows exported messages (`export messages`)
    Lua,
    /// Print a table that declares a new protocol, with every line explained, as a starting point
    New {
        /// The protocol's name: lower-case letters and digits
        name: String,
        /// Declare a protocol over this transport
        #[arg(long, value_name = "TRANSPORT", default_value = "tcp")]
        transport: TransportWord,
    },
    /// Check table files and run their examples
    Check {
        /// Check these table files, or folders with files that end in .table; all of them are added
        /// to the embedded tables
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

/// What a protocol runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TransportWord {
    /// A stream of bytes.
    Tcp,
    /// Datagrams.
    Udp,
}

/// What to print of the shape of the JSON.
#[derive(Args, Debug)]
pub struct SchemaArgs {
    /// Print the definition of a database table that takes the lines of --json with the same types
    /// for every capture
    #[arg(long, value_name = "ENGINE")]
    pub sql: Option<SqlName>,
}

/// The values in force.
#[derive(Args, Debug)]
pub struct ConfigArgs {
    #[arg(short = 't', long = "time", value_name = "FORM", help = TIME_HELP)]
    pub time: Option<TimeWord>,
}

/// An engine that reads JSON lines.
#[derive(ValueEnum, Debug, Clone, Copy)]
pub enum SqlName {
    /// DuckDB
    Duckdb,
    /// ClickHouse
    Clickhouse,
    /// Apache Spark
    Spark,
    /// SQLite
    Sqlite,
}

/// Bytes from a log or a debugger.
#[derive(Args, Debug)]
pub struct DecodeArgs {
    /// Decode as PROTOCOL.SERVICE.DIRECTION, such as moul.auth.client (not with --type); without a
    /// direction the client's, without a service the protocol's first one, such as secondlife
    #[arg(value_parser = CompletionWords::SENDERS, hide_possible_values = true)]
    pub name: Option<String>,
    /// Decode these bytes in hex; blanks and colons are ignored. Without any, bytes are read from
    /// standard input as they are
    pub hex: Vec<String>,
    /// Decode as a type of the tables, such as plUoid or 'packint(1)'
    #[arg(long = "type", value_name = "TYPE")]
    pub type_: Option<String>,
    /// Begin at this bit (with --type)
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = size::number::<usize>, requires = "type_")]
    pub bit: usize,
}

/// Following streams.
#[derive(Args, Debug)]
#[command(
    override_usage = "moulsniff follow [OPTIONS] [tcp:|udp:]N CAPTURE...\n       moulsniff follow [OPTIONS] --all -o DIR CAPTURE..."
)]
pub struct FollowArgs {
    /// Print a hex dump with the messages' names (the default)
    #[arg(long, conflicts_with_all = ["text", "raw"])]
    pub hex: bool,
    /// Print text, with dots for all other bytes
    #[arg(long, conflicts_with = "raw")]
    pub text: bool,
    /// Print only the bytes
    #[arg(long)]
    pub raw: bool,
    /// Print one side only
    #[arg(long, value_name = "SIDE")]
    pub from: Option<FromSide>,
    /// Write all streams, one file for each direction
    #[arg(long)]
    pub all: bool,
    /// Write the files into this folder (with --all); files of an earlier run are replaced, and
    /// those of other streams stay
    #[arg(short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// The stream (unless --all), the captures, and how to read them.
    #[command(flatten)]
    pub read: ReadArgs,
}

/// One side of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FromSide {
    /// The end that opened the connection.
    Client,
    /// The end that accepted it.
    Server,
}

/// Key files.
#[derive(Subcommand, Debug)]
pub enum KeysCommand {
    /// Show what key files contain, without secrets
    Check {
        /// The files
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Write keys into a capture, so that it can be read without --keys
    Inject {
        /// The capture
        input: PathBuf,
        /// Write the capture here, as pcapng; an existing file is replaced
        #[arg(short, value_name = "OUT")]
        output: PathBuf,
        /// Write the shard's private keys, too, not only the session keys
        #[arg(long)]
        private: bool,
    },
    /// Take keys out of a capture
    Strip {
        /// The capture
        input: PathBuf,
        /// Write the capture here, as pcapng; an existing file is replaced
        #[arg(short, value_name = "OUT")]
        output: PathBuf,
    },
}

/// Sessions.
#[derive(Args, Debug)]
#[command(override_usage = "moulsniff sessions [OPTIONS] [N] CAPTURE...")]
pub struct SessionsArgs {
    /// List what each client did, step by step
    #[arg(long)]
    pub story: bool,
    /// The session (where only one is wanted), the captures, and how to read them.
    #[command(flatten)]
    pub read: ReadArgs,
}

/// Two captures side by side.
#[derive(Args, Debug)]
#[command(override_usage = "moulsniff diff [OPTIONS] A B")]
pub struct DiffArgs {
    /// Do not compare PATH, such as 'fields.buffer.time_sent' or '*.time_sent', or MESSAGE, a name
    /// in which * stands for any characters; may be given several times
    #[arg(long, value_name = "PATH|MESSAGE")]
    pub ignore: Vec<String>,
    /// Read --ignore entries from a file, one a line; # begins a comment
    #[arg(long = "ignore-file", value_name = "FILE")]
    pub ignore_files: Vec<PathBuf>,
    /// Report replies that take this many times as long in B, and at least 5 ms longer
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    pub latency: Option<f64>,
    /// Use at most this much memory for both captures, roughly. Messages beyond it are counted and
    /// not compared; differences beyond it are counted and not printed
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = size::parse)]
    pub max_memory: usize,
    /// The two captures, and how to read them.
    #[command(flatten)]
    pub read: ReadArgs,
}

/// How many times as long.
fn factor(text: &str) -> Result<f64, String> {
    let factor: Option<f64> = text.trim_end_matches('x').parse().ok();
    factor
        .filter(|factor| factor.is_finite() && *factor >= 1.0)
        .ok_or_else(|| "expected a number from 1 on, such as 3".into())
}

/// How many parts.
fn parts(text: &str) -> Result<u16, String> {
    size::number_within(text, 1..=256)
}

/// Dividing captures.
#[derive(Args, Debug)]
pub struct SplitArgs {
    /// Divide these captures (pcap, pcapng; plain, gzip or zstd) as one, in the order given; `-` is
    /// standard input
    #[arg(value_name = "CAPTURE", required = true)]
    pub captures: Vec<PathBuf>,
    /// Write this many parts, at most 256
    #[arg(long, value_name = "N", value_parser = parts)]
    pub into: u16,
    /// Write part-00.pcapng, part-01.pcapng and so on into this folder. It is created if necessary;
    /// existing parts are replaced, and a folder with further parts is refused
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Take these addresses or networks, separated by commas, for servers: a client's traffic with
    /// all of them stays in one part
    #[arg(long, value_name = "NET,...", value_delimiter = ',')]
    pub servers: Vec<String>,
    /// Print no summary on standard error
    #[arg(short, long)]
    pub quiet: bool,
}

/// A page to look at.
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// Write the page to this file; an existing file is replaced
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Put at most N records into the page; later ones are only counted
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = size::number::<u64>)]
    pub max_messages: u64,
    /// The captures, and how to read them.
    #[command(flatten)]
    pub read: ReadArgs,
}
