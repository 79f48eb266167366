//! A passive dissector for the protocols of online worlds: MOUL, Second Life, Intermud-3, City of
//! Heroes, and those that a table file declares.
//!
//! A [`Decoder`] is given keys, tables and options; [`Decoder::open`] gives the [`Records`] of a
//! capture, an iterator over messages and events. [`Decoder::decode`] reads single messages without
//! a capture.
//!
//! ```
//! use moulsniff::Decoder;
//!
//! let decoder = Decoder::new().keys("keys/shard.keys")?;
//! let mut logins = Vec::new();
//! for record in decoder.open("captures/moul/golden.pcap")? {
//!     let record = record?;
//!     if record.message() == Some("Cli2Auth_AcctLoginRequest") {
//!         logins.push(format!(
//!             "{} logs in as {}",
//!             record.src(),
//!             record.get("fields.acct_name").unwrap_or_default()
//!         ));
//!     }
//! }
//! assert_eq!(logins, ["10.9.0.2:50001 logs in as player1@lab.test"]);
//! # Ok::<(), moulsniff::Error>(())
//! ```
//!
//! Fields have the names that the program's JSON has, and paths are those of its filters:
//! `fields.buffer.stream.message.receivers[*].object_name`, `*.trans_id`, `src`, `info`. `moulsniff
//! tables list` and `tables show NAME` print them.
//!
//! # Features
//!
//! - `cli` (default): the program. A library needs it off: `moulsniff = { version = "…",
//!   default-features = false }` needs thirteen crates.
//! - `answers`: [`Decoder::examine`] and [`Decoder::diff`]; brings serde_json, sha2 and
//!   unicode-width.
//! - `zstd`: captures compressed with zstd. gzip is always read.
//! - `toml`: MOULArs's `moulars.toml` as a key file. The other kinds are always read.
//! - `regex`: `matches` in filters.
//! - `live`: live capture, in the program alone.
//!
//! # What is promised
//!
//! The items on this page, and the JSON (`docs/json.md`). Within 0.x, a change of the second number
//! may change them, and the change log says how.

// The modules below are public for the program, its tests, its benchmarks and its fuzz targets.
// They are no part of the library's interface and change without notice. Data flows one way, and
// each module knows only modules before it:
//
// capture/ (frames) ─▶ flow/ (streams in order) ─▶ proto/<name>/ (handshake, keys, plaintext) ─▶
// table/ (messages) ─▶ tree/ ─▶ print/ (text)

#[doc(hidden)]
pub mod capture;
#[doc(hidden)]
pub mod captured;
#[doc(hidden)]
#[cfg(feature = "cli")]
pub mod cli;
#[doc(hidden)]
#[cfg(feature = "answers")]
pub mod diff;
mod digits;
#[doc(hidden)]
#[cfg(feature = "cli")]
pub mod dump;
#[doc(hidden)]
#[cfg(feature = "cli")]
pub mod examples;
#[doc(hidden)]
pub mod facts;
#[doc(hidden)]
pub mod filter;
#[doc(hidden)]
pub mod flow;
mod folder;
mod leb128;
mod library;
mod maps;
#[doc(hidden)]
#[cfg(feature = "cli")]
pub mod output_file;
#[doc(hidden)]
pub mod pdu;
#[doc(hidden)]
pub mod pipeline;
#[doc(hidden)]
pub mod print;
#[doc(hidden)]
pub mod proto;
#[doc(hidden)]
#[cfg(feature = "cli")]
pub mod pseudonyms;
#[doc(hidden)]
pub mod record;
#[doc(hidden)]
#[cfg(feature = "cli")]
pub mod reference;
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
pub mod texts;
#[doc(hidden)]
pub mod tree;

pub use library::{
    CaptureWriter, Decoder, Encoder, ErrorKind, FieldName as Name, FieldProblem as Problem,
    FieldSpan as Span, FieldValue as Value, LibraryError as Error, OwnedRecord as Record, Records,
    RunCounts as Counts,
};
#[cfg(feature = "answers")]
pub use library::{Conclusion, Difference, Findings, Session};
pub use session::{Side, Transport};
pub use tree::Severity;
