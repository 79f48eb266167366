//! Which records count.

use clap::{ArgAction, Args};

use super::size::number;

/// Where help lists these options.
const HEADING: &str = "Filter";

/// Which records count.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = HEADING)]
pub struct FilterArgs {
    /// Print only the records that match an expression, such as 'message ==
    /// "Auth2Cli_AcctLoginReply" and fields.result != kNetSuccess'
    #[arg(short = 'Y', long, value_name = "EXPR", action = ArgAction::Append)]
    pub filter: Vec<String>,
    /// Print only the records of this session, by its number in `moulsniff sessions`; the captures
    /// are read twice
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
