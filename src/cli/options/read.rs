//! The words that every command which reads captures takes, with their help.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueEnum};

use super::captures::CaptureArgs;
use super::completion_words::CompletionWords;
use super::protocol_args::ProtocolArgs;
use super::size::{self, Bound};
use crate::filter::NamedExpressions;
use crate::output_file::Inputs;
use crate::print::TimeForm;

/// The help of `-t`.
pub(in crate::cli) const TIME_HELP: &str =
    "Print this time before each record, in trees and lines [default: absolute]";

/// Reading captures.
#[derive(Args, Debug, Clone, Default)]
pub struct ReadArgs {
    /// What is read.
    #[command(flatten)]
    pub captures: CaptureArgs,
    /// Capture on an interface, such as lo or any, until Ctrl-C
    #[arg(short, long, value_name = "IFACE")]
    #[cfg_attr(not(feature = "live"), arg(hide = true))]
    pub interface: Option<String>,
    /// Capture only packets that match a capture filter (with -i), such as 'tcp port 14617' (man
    /// pcap-filter)
    #[arg(short = 'f', long, value_name = "FILTER", requires = "interface")]
    #[cfg_attr(not(feature = "live"), arg(hide = true))]
    pub capture_filter: Option<String>,
    /// Also write the captured frames to a pcapng file (with -i); an existing file is replaced when
    /// the capture ends
    #[arg(short, long, value_name = "FILE", requires = "interface")]
    #[cfg_attr(not(feature = "live"), arg(hide = true))]
    pub write: Option<PathBuf>,
    /// List the interfaces that can be captured on
    #[arg(short = 'D', long)]
    #[cfg_attr(not(feature = "live"), arg(hide = true))]
    pub list_interfaces: bool,
    /// Decode a capture that another program still writes, across its ring of files (dumpcap -b),
    /// until Ctrl-C
    #[arg(long, value_name = "FILE")]
    pub tail: Option<PathBuf>,
    /// The protocols' own options.
    #[command(flatten)]
    pub protocols: ProtocolArgs,
    /// Print JSON, one object a line, for jq
    #[arg(long, global = true)]
    pub json: bool,
    /// Print every field with its name, type and place in the bytes (with --json)
    #[arg(long, global = true)]
    pub spans: bool,
    /// Print the bytes below each message, coloured as their fields
    #[arg(short = 'x', long = "bytes")]
    pub bytes: bool,
    /// Print one aligned line for each record: number, time, stream, service, direction, message,
    /// and what it is about
    #[arg(long)]
    pub oneline: bool,
    #[arg(short = 't', long = "time", value_name = "FORM", help = TIME_HELP)]
    pub time: Option<TimeWord>,
    /// Hide passwords, login hashes, tokens and session keys in the output
    #[arg(long, global = true)]
    pub redact: bool,
    /// Replace names, numbers and addresses of persons by pseudonyms, the same ones whenever FILE
    /// is given; FILE is created if necessary
    #[arg(long, value_name = "FILE", conflicts_with = "write")]
    pub pseudonyms: Option<PathBuf>,
    /// Move all times back, by the same amount whenever FILE is given (with --pseudonyms)
    #[arg(long, requires = "pseudonyms")]
    pub shift_time: bool,
    /// Add message tables, or replace embedded ones; may be given several times
    #[arg(long, value_name = "FILE", global = true)]
    pub tables: Vec<PathBuf>,
    /// Decode a port's connections as a protocol, such as tcp:14000=moul
    #[arg(long, value_name = "PORT=PROTOCOL", value_parser = CompletionWords::PORTS, hide_possible_values = true)]
    pub decode_as: Vec<String>,
    /// Print only the records that match an expression, such as 'message ==
    /// "Auth2Cli_AcctLoginReply" and fields.result != kNetSuccess'
    #[arg(short = 'Y', long, value_name = "EXPR", action = ArgAction::Append)]
    pub filter: Option<String>,
    /// Print only the records of this session, by its number in `moulsniff sessions`; the captures
    /// are read twice
    #[arg(long, value_name = "N", value_parser = size::number::<u64>)]
    pub session: Option<u64>,
    /// Print one line for each record with these values, tab-separated below a header. A value is a
    /// record key or a field path
    #[arg(long, value_name = "A,B,C")]
    pub columns: Option<String>,
    /// Print comma-separated values for spreadsheets: those of --columns, or the keys that every
    /// record has
    #[arg(long)]
    pub csv: bool,
    /// Stop after N records
    #[arg(short = 'c', value_name = "N", value_parser = size::number::<u64>)]
    pub count: Option<u64>,
    /// Use N threads, at most 8 [default: one for each core]. The output is the same with any
    /// number
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<u16>,
    /// Read no configuration file (`moulsniff config` tells which one is read)
    #[arg(long, global = true)]
    pub no_config: bool,
    /// What the configuration file says.
    #[arg(skip)]
    pub(in crate::cli) config: FromConfig,
    /// Choose when to use colour
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true)]
    pub color: When,
    /// Exit with 3 when something was undecoded, lost, cut or not opened by any key, or when
    /// nothing was recognised
    #[arg(long)]
    pub strict: bool,
    /// Print no progress and no summary on standard error
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Report packets with a wrong IPv4, TCP or UDP checksum; they are normal in a capture taken on
    /// the sending machine
    #[arg(long)]
    pub checksums: bool,
    /// Assemble no message larger than this: a number of bytes, or with a suffix such as 64K, 16M,
    /// 1G
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = size::parse)]
    pub max_message: usize,
    /// Keep at most this much of one direction while bytes before it are missing; beyond that, the
    /// missing bytes count as lost
    #[arg(long, value_name = "SIZE", default_value = "8M", value_parser = size::parse)]
    pub max_stream: usize,
    /// Keep at most this much of all streams together, and as much again of incomplete messages and
    /// remembered requests
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = size::parse)]
    pub max_total: usize,
    /// Decompress the compressed parts of one message to at most this much, together
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = size::parse)]
    pub max_decompressed: usize,
    /// Show at most this much of each run of bytes that belong to no message (--json and -x)
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = size::parse)]
    pub max_undecoded: usize,
    /// Print messages that make much text without their fields, once this much was printed beyond
    /// 256 bytes for each byte of a message. `none`: no bound
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = size::parse_or_none)]
    pub max_output: Bound,
}

/// A number of threads.
fn threads(text: &str) -> Result<u16, String> {
    size::number_within(text, 1..=u16::MAX)
}

/// What the configuration file says beside values of options.
#[derive(Debug, Clone, Default)]
pub(in crate::cli) struct FromConfig {
    /// The file, where there is one: an input.
    pub(in crate::cli) path: Option<PathBuf>,
    /// Filters and columns that have names.
    pub(in crate::cli) named: NamedExpressions,
    /// The line that names the tables, where it does and none were typed.
    pub(in crate::cli) tables_place: Option<String>,
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
    /// The word as it is typed.
    pub(in crate::cli) fn name(self) -> String {
        self.to_possible_value().map(|word| word.get_name().to_owned()).unwrap_or_default()
    }

    /// The form that the word means.
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

impl ReadArgs {
    /// The options among those of every command that were typed and may do nothing there, without
    /// hyphens.
    pub(in crate::cli) fn typed_everywhere(&self) -> impl Iterator<Item = &'static str> {
        let own = [
            ("json", self.json),
            ("spans", self.spans),
            ("redact", self.redact),
            ("tables", !self.tables.is_empty()),
        ];
        let own = own.into_iter().filter(|(_, typed)| *typed).map(|(name, _)| name);
        own.chain(self.protocols.typed_files())
    }

    /// Every file that the command reads.
    pub(in crate::cli) fn inputs(&self) -> Inputs {
        self.inputs_and(&[])
    }

    /// The same, and further files.
    pub(in crate::cli) fn inputs_and(&self, more: &[PathBuf]) -> Inputs {
        let protocols: Vec<PathBuf> = self.protocols.paths().collect();
        let captures = self.captures.paths().chain(&self.tail);
        let own = self.tables.iter().chain(&self.pseudonyms).chain(&self.config.path);
        let all = captures.chain(own).chain(&protocols).chain(more);
        Inputs::of(all.map(PathBuf::as_path))
    }
}
