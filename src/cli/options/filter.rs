//! Which records count.

use clap::{ArgAction, Args};

use super::size::number;

/// Where help lists these options.
const HEADING: &str = "Filter";

/// Which records count.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = HEADING)]
pub struct FilterArgs {
    /// Print only the records that match, such as 'refused'
    ///
    /// Another example is 'message == "Auth2Cli_AcctLoginReply" and fields.result != kNetSuccess'.
    /// docs/filters.md has the language.
    #[arg(short = 'Y', long, value_name = "EXPR", action = ArgAction::Append)]
    pub filter: Vec<String>,
    /// Print only the records of one session
    ///
    /// Its number is the one in `moulsniff sessions`. The captures are read twice.
    #[arg(long, value_name = "N", value_parser = number::<u64>)]
    pub session: Option<u64>,
}

/// How many records count.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = HEADING)]
pub struct CountArgs {
    /// Stop after N records
    #[arg(short = 'c', value_name = "N", value_parser = number::<u64>)]
    pub count: Option<u64>,
}
