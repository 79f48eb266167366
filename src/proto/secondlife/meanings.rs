//! Explains numbers of Second Life in words, for trees.

use std::io::Write;

use crate::table::Meaning;

/// The words that tables may write after `shown`.
pub(super) const MEANINGS: [Meaning; 1] = [Meaning { name: "time_dilation", write: time_dilation }];

/// How fast a region's time runs: 65535 is full speed.
fn time_dilation(value: u64, out: &mut Vec<u8>) {
    let _ = write!(out, "{:.4}", value as f64 / 65535.0);
}
