//! Statistics of a capture, as tables for people and as one JSON object.
//!
//! `facts` does the counting. This folder knows no capture and no protocol.

mod json;
mod layout;
mod text;

use crate::capture::Time;
pub(super) use json::json_world;
pub use json::stats_json;
pub use text::stats_text;

/// The frames that were read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameSpan {
    /// How many.
    pub frames: u64,
    /// The times of the earliest and of the latest one; `None` where no frame has a time.
    pub times: Option<(Time, Time)>,
    /// Why others were not read, and how many.
    pub not_read: Vec<(String, u64)>,
}

impl FrameSpan {
    /// From the earliest to the latest frame, in nanoseconds; `None` if no time passed.
    pub fn nanos(&self) -> Option<i64> {
        let (first, last) = self.times?;
        let seconds = last.seconds.saturating_sub(first.seconds);
        let nanos = seconds
            .saturating_mul(1_000_000_000)
            .saturating_add(i64::from(last.nanos) - i64::from(first.nanos));
        (nanos > 0).then_some(nanos)
    }

    /// How many of something there were in a second, on average.
    fn rate(&self, count: u64) -> Option<f64> {
        Some(count as f64 * 1e9 / self.nanos()? as f64)
    }
}
