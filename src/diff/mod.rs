//! Two captures side by side: which messages are the same, which are in one of them alone, and
//! which fields differ.
//!
//! A capture is first read into a [`CaptureDigest`]: a few words for each message, whose hash says
//! nothing of what differs each time (`volatile`) and holds no number that only identifies a thing
//! (`identity`). [`Comparison`] pairs sessions, streams and messages of two digests, and finds the
//! renaming of identities that fits most of them. Then the messages that differ are read once more,
//! into [`DetailStore`]s, and [`differences`] tells field by field what is different. The writers
//! print that.
//!
//! This folder knows tables, trees and records. It knows no protocol, and neither files nor the
//! command line.

mod align;
mod bounds;
mod compare;
mod content;
mod detail;
mod detail_lines;
mod difference;
mod digest;
mod hash;
mod ignore;
mod lane;
mod lane_digest;
mod lcs;
mod pairing;
mod renaming;
mod slide;
mod write_json;
mod write_text;

pub use bounds::DiffBounds;
pub use compare::{CompareOptions, Comparison};
pub use detail::{DetailCollector, DetailStore};
pub use difference::{Difference, DifferenceKind, DifferenceSum, RecordOf, Section, differences};
pub use digest::{CaptureDigest, Digester};
pub use ignore::{IgnoreError, IgnoreList};
pub use write_json::{difference_json, sum_json};
pub use write_text::{DiffStyle, difference_line, section_text, summary_text};
