//! What can be typed. Only words and their help; what they lead to is elsewhere.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::export::ExportCommand;
use super::given::ProtocolArgs;
use super::size::{self, Bound};
use crate::out::tree::TimeForm;

/// A passive dissector for the protocols of online worlds.
///
/// Reads captures, puts TCP streams together, recovers session keys from a shard's private keys, and prints every message as an
/// annotated tree or as JSON.
#[derive(Parser, Debug)]
#[command(
    name = "moulsniff",
    version,
    max_term_width = 110,
    args_conflicts_with_subcommands = false,
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

/// Reading captures.
#[derive(Args, Debug, Clone, Default)]
pub struct ReadArgs {
    /// Captures (pcap, pcapng; plain, gzip or zstd), read as one in the order given; `-` is standard input
    #[arg(value_name = "CAPTURE", required_unless_present_any = ["interface", "list_interfaces", "tail", "read_file"])]
    pub captures: Vec<PathBuf>,
    /// The same as a CAPTURE, as tshark and tcpdump have it
    #[arg(short = 'r', value_name = "FILE", id = "read_file")]
    pub read_files: Vec<PathBuf>,
    /// Capture on an interface, such as lo or any, until Ctrl-C
    #[arg(short, long, value_name = "IFACE")]
    #[cfg_attr(not(feature = "live"), arg(hide = true))]
    pub interface: Option<String>,
    /// With -i: only what a capture filter keeps, such as 'tcp port 14617' (man pcap-filter)
    #[arg(short = 'f', long, value_name = "FILTER", requires = "interface")]
    #[cfg_attr(not(feature = "live"), arg(hide = true))]
    pub capture_filter: Option<String>,
    /// With -i: keep what was captured, as pcapng; a file that is there is replaced once the capture ends
    #[arg(short, long, value_name = "FILE", requires = "interface")]
    #[cfg_attr(not(feature = "live"), arg(hide = true))]
    pub write: Option<PathBuf>,
    /// List the interfaces that can be captured on
    #[arg(short = 'D', long)]
    #[cfg_attr(not(feature = "live"), arg(hide = true))]
    pub list_interfaces: bool,
    /// Decode what another program still appends to a capture, across its ring of files (dumpcap -b), until Ctrl-C
    #[arg(long, value_name = "FILE")]
    pub tail: Option<PathBuf>,
    /// The protocols' own options.
    #[command(flatten)]
    pub protocols: ProtocolArgs,
    /// One JSON object a line, for jq
    #[arg(long, global = true)]
    pub json: bool,
    /// With --json: every field with its name, type and place in the bytes
    #[arg(long, global = true)]
    pub spans: bool,
    /// The bytes below each message, coloured as their fields
    #[arg(short = 'x', long = "bytes")]
    pub bytes: bool,
    /// One aligned line a record: number, time, stream, service, direction, message, and what it is about
    #[arg(long)]
    pub oneline: bool,
    /// The time before each record, in trees and lines
    #[arg(short = 't', long = "time", value_name = "FORM", default_value = "absolute")]
    pub time: TimeWord,
    /// Hide passwords, login hashes, tokens and session keys, so that the output can be shown around
    #[arg(long, global = true)]
    pub redact: bool,
    /// Replace what tells who somebody is by pseudonyms, the same ones wherever FILE is given; FILE is made where it does not exist
    #[arg(long, value_name = "FILE", conflicts_with = "write")]
    pub pseudonyms: Option<PathBuf>,
    /// With --pseudonyms: move all times back, by as much wherever FILE is given
    #[arg(long, requires = "pseudonyms")]
    pub shift_time: bool,
    /// More message tables, or other ones in place of the embedded; may be given several times
    #[arg(long, value_name = "FILE", global = true)]
    pub tables: Vec<PathBuf>,
    /// Decode a port's connections as a protocol, such as tcp:14000=moul
    #[arg(long, value_name = "PORT=PROTOCOL")]
    pub decode_as: Vec<String>,
    /// Only the records an expression keeps, such as 'message == "Auth2Cli_AcctLoginReply" and fields.result != kNetSuccess'
    #[arg(short = 'Y', long, value_name = "EXPR")]
    pub filter: Option<String>,
    /// Only the records of this session, by the number that `moulsniff sessions` gives it; the captures are read twice
    #[arg(long, value_name = "N")]
    pub session: Option<u64>,
    /// One line a record with these values, tab-separated below a header: record keys and field paths, separated by commas
    #[arg(long, value_name = "A,B,C")]
    pub columns: Option<String>,
    /// Comma-separated values for spreadsheets: with --columns, or the keys every record has
    #[arg(long)]
    pub csv: bool,
    /// Stop after N records
    #[arg(short = 'c', value_name = "N")]
    pub count: Option<u64>,
    /// How many threads work, at most 8 [default: one for each core]. The output does not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// When to use colour
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true)]
    pub color: When,
    /// Exit with 3 when something was undecoded, lost, cut or not opened by any key, or when nothing was recognised
    #[arg(long)]
    pub strict: bool,
    /// No progress and no summary on standard error
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Say which packets have a wrong IPv4, TCP or UDP checksum; where a capture was taken on the sending machine they are normal
    #[arg(long)]
    pub checksums: bool,
    /// Largest message that is put together: a number of bytes, or with a suffix such as 64K, 16M, 1G
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = size::parse)]
    pub max_message: usize,
    /// Bytes of one direction of a stream that may wait for bytes before them; beyond, what is missing is given up
    #[arg(long, value_name = "SIZE", default_value = "8M", value_parser = size::parse)]
    pub max_stream: usize,
    /// Bytes of all streams together that may wait for bytes before them, and as many again for the rest of their messages
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = size::parse)]
    pub max_total: usize,
    /// What the compressed parts of one message may become together
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = size::parse)]
    pub max_decompressed: usize,
    /// How many bytes --json and -x show of each run that became no message
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = size::parse)]
    pub max_undecoded: usize,
    /// Text that may be printed beyond 256 bytes for each byte of a message: then messages with much text lose their fields. `none`: no bound
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = size::parse_or_none)]
    pub max_output: Bound,
}

/// The values of `-t`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TimeWord {
    /// The time of day in UTC.
    #[default]
    Absolute,
    /// The time of day in the zone of this machine, or in the one that TZ names.
    Local,
    /// Seconds since the first record.
    Relative,
    /// Seconds since the record before.
    Delta,
}

impl TimeWord {
    /// The form that the word stands for.
    pub fn form(self) -> TimeForm {
        match self {
            TimeWord::Absolute | TimeWord::Local => TimeForm::Absolute,
            TimeWord::Relative => TimeForm::Relative,
            TimeWord::Delta => TimeForm::Delta,
        }
    }
}

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What to do instead of reading captures.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// The message tables: list them, show one, check a file, make a script for Wireshark
    #[command(subcommand, arg_required_else_help = true)]
    Tables(TablesCommand),
    /// Decode bytes from a log or a debugger
    Decode(DecodeArgs),
    /// What was in captures, and how much of it was understood
    Stats(ReadArgs),
    /// Make one HTML page of captures, to look at and to hand on
    Report(ReportArgs),
    /// Divide captures into several, so that what passed between two hosts stays in one of them
    Split(SplitArgs),
    /// Who was there: what each client did over all its connections, and what became of it
    Sessions(SessionsArgs),
    /// Compare two captures: which messages, fields, orders and refusals differ
    Diff(DiffArgs),
    /// The plaintext of a stream, handshake included
    Follow(FollowArgs),
    /// What was transferred, stored or said, taken out of captures
    #[command(subcommand, arg_required_else_help = true)]
    Export(ExportCommand),
    /// Key files: what they hold, without their secrets
    #[command(subcommand, arg_required_else_help = true)]
    Keys(KeysCommand),
    /// Print the JSON Schema of the JSON output
    Schema(SchemaArgs),
    /// Print the manual page, or that of a command
    Man {
        /// The command, such as `keys inject`
        #[arg(value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Print completions for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

/// The message tables.
#[derive(Subcommand, Debug)]
pub enum TablesCommand {
    /// List protocols, services, messages and types
    List {
        /// Only what contains this word
        word: Option<String>,
    },
    /// Show a message, structure or enum as the tables have it
    Show {
        /// Its name
        name: String,
    },
    /// Print a Lua script with which Wireshark shows exported messages (`export messages`)
    Lua,
    /// Print a table that declares a protocol of your own, every line explained, to begin with
    New {
        /// The protocol's name: lower-case letters and digits
        name: String,
        /// What it runs over
        #[arg(long, value_name = "TRANSPORT", default_value = "tcp")]
        transport: TransportWord,
    },
    /// Check table files and run their examples
    Check {
        /// The files, or folders with files that end in .table; together they are read on top of the embedded tables
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
    /// Print the definition of a database table that takes the lines of --json with the same types for every capture
    #[arg(long, value_name = "ENGINE")]
    pub sql: Option<SqlName>,
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
    /// PROTOCOL.SERVICE.DIRECTION, such as moul.auth.client; intermud3 and secondlife alone (not with --type)
    pub name: Option<String>,
    /// The bytes in hex, blanks and colons ignored; without any they are read from standard input as they are
    pub hex: Vec<String>,
    /// Decode as a type of the tables, such as plUoid or 'packint(1)'
    #[arg(long = "type", value_name = "TYPE")]
    pub type_: Option<String>,
    /// With --type: begin at this bit
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub bit: usize,
}

/// Following streams.
#[derive(Args, Debug)]
#[command(
    override_usage = "moulsniff follow [OPTIONS] [tcp:|udp:]N CAPTURE...\n       moulsniff follow [OPTIONS] --all -o DIR CAPTURE..."
)]
pub struct FollowArgs {
    /// A hex dump with the messages' names (the default)
    #[arg(long, conflicts_with_all = ["text", "raw"])]
    pub hex: bool,
    /// Text, with dots for what is none
    #[arg(long, conflicts_with = "raw")]
    pub text: bool,
    /// The bytes alone
    #[arg(long)]
    pub raw: bool,
    /// One side only
    #[arg(long, value_name = "SIDE")]
    pub from: Option<FromSide>,
    /// All streams, one file a direction
    #[arg(long)]
    pub all: bool,
    /// With --all: the folder the files go to; those of an earlier run are replaced
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
    /// Say what key files hold, never the secrets
    Check {
        /// The files
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Write keys into a capture, so that it can be read without --keys
    Inject {
        /// The capture
        input: PathBuf,
        /// Where to write it, as pcapng; a file that is there is replaced
        #[arg(short, value_name = "OUT")]
        output: PathBuf,
        /// Put the shard's long-term private keys in, not only the sessions' own
        #[arg(long)]
        private: bool,
    },
    /// Take keys out of a capture
    Strip {
        /// The capture
        input: PathBuf,
        /// Where to write it, as pcapng; a file that is there is replaced
        #[arg(short, value_name = "OUT")]
        output: PathBuf,
    },
}

/// Sessions.
#[derive(Args, Debug)]
#[command(override_usage = "moulsniff sessions [OPTIONS] [N] CAPTURE...")]
pub struct SessionsArgs {
    /// Tell what each session did, step by step
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
    /// What is not compared: a path such as 'fields.buffer.time_sent' or '*.time_sent', or a message's name, in which * stands for
    /// anything; may be given several times
    #[arg(long, value_name = "PATH|MESSAGE")]
    pub ignore: Vec<String>,
    /// A file with one such entry a line; # begins a comment
    #[arg(long = "ignore-file", value_name = "FILE")]
    pub ignore_files: Vec<PathBuf>,
    /// Replies that take this many times as long in B, and 5 ms longer, are differences
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    pub latency: Option<f64>,
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

/// Dividing captures.
#[derive(Args, Debug)]
pub struct SplitArgs {
    /// Captures (pcap, pcapng; plain, gzip or zstd), divided as one in the order given; `-` is standard input
    #[arg(value_name = "CAPTURE", required = true)]
    pub captures: Vec<PathBuf>,
    /// How many parts to write
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub into: u16,
    /// The folder for part-00.pcapng, part-01.pcapng and so on, which is made where it does not exist; parts that are there are replaced
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Addresses or networks of servers, separated by commas: a client's traffic with all of them stays in one part
    #[arg(long, value_name = "NET,...", value_delimiter = ',')]
    pub servers: Vec<String>,
    /// No summary on standard error
    #[arg(short, long)]
    pub quiet: bool,
}

/// A page to look at.
#[derive(Args, Debug)]
pub struct ReportArgs {
    /// The page to write, which replaces a file of that name
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Records in the page at most; what comes after them is counted
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub max_messages: u64,
    /// The captures, and how to read them.
    #[command(flatten)]
    pub read: ReadArgs,
}
