//! moulsniff: a passive dissector for the protocols of online worlds.
//!
//! Data flows one way, and each module knows only modules before it:
//!
//! ```text
//! capture file ─▶ frames ─▶ streams in order ─▶ session (handshake, keys, plaintext) ─▶ tables ─▶ tree ─▶ output
//!   capture/        flow/                         proto/<name>/                        table/    tree     out/
//! ```

pub mod capture;
pub mod captured;
pub mod cli;
pub mod diff;
pub mod examples;
pub mod facts;
pub mod filter;
pub mod flow;
mod leb128;
pub mod out;
pub mod output_file;
pub mod pdu;
pub mod pipeline;
pub mod proto;
pub mod pseudonyms;
pub mod record;
mod remark;
pub mod run;
pub mod session;
mod suggest;
pub mod table;
pub mod tree;
