//! How much is used while captures are read.

use clap::Args;

use super::size::{number_within, size};

/// How much is used.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Limits")]
pub struct LimitArgs {
    /// Use N threads, at most 8 [default: one for each core]. The output is the same with any
    /// number
    #[arg(long, value_name = "N", hide_short_help = true)]
    #[arg(value_parser = |text: &str| number_within(text, 1..=u16::MAX))]
    pub threads: Option<u16>,
    /// Report packets with a wrong IPv4, TCP or UDP checksum; they are normal in a capture taken on
    /// the sending machine
    #[arg(long, hide_short_help = true)]
    pub checksums: bool,
    /// Assemble no message larger than this: a number of bytes, or with a suffix such as 64K, 16M,
    /// 1G
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = size)]
    #[arg(hide_short_help = true)]
    pub max_message: usize,
    /// Keep at most this much of one direction while bytes before it are missing; beyond that, the
    /// missing bytes count as lost
    #[arg(long, value_name = "SIZE", default_value = "8M", value_parser = size)]
    #[arg(hide_short_help = true)]
    pub max_stream: usize,
    /// Keep at most this much of all streams together, and as much again of incomplete messages and
    /// remembered requests
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = size)]
    #[arg(hide_short_help = true)]
    pub max_total: usize,
    /// Decompress the compressed parts of one message to at most this much, together
    #[arg(long, value_name = "SIZE", default_value = "16M", value_parser = size)]
    #[arg(hide_short_help = true)]
    pub max_decompressed: usize,
    /// Show at most this much of each run of bytes that belong to no message
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = size)]
    #[arg(hide_short_help = true)]
    pub max_undecoded: usize,
}
