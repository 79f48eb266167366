//! What can be typed, in groups of options: a command has the groups that it can use.
//!
//! What the options mean is in `cli::plan`. The commands, with the options that only one of them
//! has, are in `cli::commands`.

mod completion_words;
mod filter;
mod input;
mod keys;
mod limits;
mod output;
mod protocol_args;
mod size;

use clap::Args;

pub(super) use completion_words::CompletionWords;
pub use filter::{CountArgs, FilterArgs};
pub use input::{CaptureArgs, LiveArgs};
pub use keys::{KeyArgs, TableArgs};
pub use limits::LimitArgs;
pub(super) use output::TIME_HELP;
pub use output::{GeneralArgs, PrintArgs, PrivacyArgs, TimeWord, When};
pub use protocol_args::ProtocolArgs;
pub(super) use protocol_args::{example_protocol, examples, file_options};
pub(super) use size::{number, number_within, size};

/// What every command that reads captures can use.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = None::<&'static str>)]
pub struct ReadArgs {
    /// Exit with 3 when something was not decoded
    ///
    /// It was undecoded, lost, cut or not opened by any key, or nothing was recognised.
    #[arg(long)]
    pub strict: bool,
    /// Read captures in the order given, not in that of their first frames
    #[arg(long, help_heading = input::HEADING, hide_short_help = true)]
    pub as_given: bool,
    /// What every command has.
    #[command(flatten)]
    pub general: GeneralArgs,
    /// What is read.
    #[command(flatten)]
    pub captures: CaptureArgs,
    /// The files that help to decode it.
    #[command(flatten)]
    pub keys: KeyArgs,
    /// The protocols' options that matter to captures alone.
    #[command(flatten)]
    pub of_captures: protocol_args::CaptureOptions,
    /// Decode a port's connections as a protocol, such as tcp:14000=moul
    #[arg(long, value_name = "PORT=PROTOCOL", value_parser = CompletionWords::PORTS)]
    #[arg(hide_possible_values = true, help_heading = protocol_args::HEADING)]
    pub decode_as: Vec<String>,
    /// What is hidden.
    #[command(flatten)]
    pub privacy: PrivacyArgs,
    /// What is used at most.
    #[command(flatten)]
    pub limits: LimitArgs,
}
