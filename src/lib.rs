//! moulsniff: a passive dissector for the protocols of online worlds.

// The modules below are public for the program, its tests, its benchmarks and its fuzz targets. They are no part of the library's interface and change without notice.
// Data flows one way, and each module knows only modules before it:
//
// capture file ─▶ frames ─▶ streams in order ─▶ session (handshake, keys, plaintext) ─▶ tables ─▶ tree ─▶ output
//   capture/        flow/                         proto/<name>/                        table/    tree     out/

#[doc(hidden)]
pub mod capture;
#[doc(hidden)]
pub mod captured;
#[doc(hidden)]
#[cfg(feature = "cli")]
pub mod cli;
#[doc(hidden)]
#[cfg(feature = "cli")]
pub mod diff;
mod digits;
#[doc(hidden)]
#[cfg(feature = "cli")]
pub mod examples;
#[doc(hidden)]
pub mod facts;
#[doc(hidden)]
pub mod filter;
#[doc(hidden)]
pub mod flow;
mod leb128;
#[doc(hidden)]
pub mod out;
#[doc(hidden)]
#[cfg(feature = "cli")]
pub mod output_file;
#[doc(hidden)]
pub mod pdu;
#[doc(hidden)]
pub mod pipeline;
#[doc(hidden)]
pub mod proto;
#[doc(hidden)]
#[cfg(feature = "cli")]
pub mod pseudonyms;
#[doc(hidden)]
pub mod record;
mod remark;
#[doc(hidden)]
#[cfg(feature = "cli")]
pub mod run;
#[doc(hidden)]
pub mod session;
mod suggest;
#[doc(hidden)]
pub mod table;
#[doc(hidden)]
pub mod tree;
