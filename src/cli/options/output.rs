//! How records are printed, and what is hidden in them.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::size::{Bound, size_or_none};
use crate::filter::NamedExpressions;
use crate::print::TimeForm;

/// The help of `-t`.
pub(in crate::cli) const TIME_HELP: &str = "Choose the time before each record [default: absolute]";
/// Where help lists these options.
const HEADING: &str = "Output";

/// What every command has.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = None::<&'static str>)]
pub struct GeneralArgs {
    /// Read no configuration file (`moulsniff config` tells which one is read)
    #[arg(long, global = true, hide_short_help = true)]
    pub no_config: bool,
    /// Choose when to use colour
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true)]
    pub color: When,
    /// Print no progress and no summary on standard error
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// The configuration file, where there is one: an input.
    #[arg(skip)]
    pub(in crate::cli) config_file: Option<PathBuf>,
    /// Filters and columns that have names there.
    #[arg(skip)]
    pub(in crate::cli) named: NamedExpressions,
}

/// How records are printed.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = HEADING)]
pub struct PrintArgs {
    /// Print JSON, one object a line, for jq
    #[arg(long, conflicts_with_all = ["bytes", "oneline", "time", "columns", "csv"])]
    pub json: bool,
    /// Print the type and place of each field (with --json)
    #[arg(long, requires = "json")]
    pub spans: bool,
    /// Print the bytes below each message, coloured as their fields
    #[arg(short = 'x', long = "bytes", conflicts_with_all = ["oneline", "columns", "csv"])]
    pub bytes: bool,
    /// Print one line for each record
    ///
    /// Number, time, stream, service, direction, message, and what it is about. On a terminal
    /// lines are cut to its width.
    #[arg(long, conflicts_with_all = ["columns", "csv"])]
    pub oneline: bool,
    #[arg(short = 't', long = "time", value_name = "FORM", help = TIME_HELP)]
    #[arg(conflicts_with_all = ["columns", "csv"])]
    pub time: Option<TimeWord>,
    /// Print these values of each record, tab-separated
    ///
    /// A value is a record key or a field path. The first line is a header.
    #[arg(long, value_name = "A,B,C")]
    pub columns: Option<String>,
    /// Print comma-separated values for spreadsheets
    ///
    /// Those of --columns, or the keys that every record has.
    #[arg(long)]
    pub csv: bool,
    /// Print messages that make much text without their fields, once this much was printed beyond
    /// 256 bytes for each byte of a message. `none`: no bound
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = size_or_none)]
    #[arg(hide_short_help = true)]
    pub max_output: Bound,
}

/// What is hidden.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = HEADING)]
pub struct PrivacyArgs {
    /// Hide passwords, login hashes, tokens and session keys
    #[arg(long)]
    pub redact: bool,
    /// Replace names and addresses of persons by pseudonyms
    ///
    /// Numbers of persons too; the same ones whenever FILE is given. FILE is created if
    /// necessary.
    #[arg(long, value_name = "FILE")]
    pub pseudonyms: Option<PathBuf>,
    /// Move all times back, by the same amount whenever FILE is given (with --pseudonyms)
    #[arg(long, requires = "pseudonyms", hide_short_help = true)]
    pub shift_time: bool,
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
