//! Which time of a record is shown, and what of it depends on the records printed before.

use super::Zone;
use crate::capture::Time;
use crate::record::Record;

/// Which time of a record is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeForm {
    /// The time of day.
    #[default]
    Absolute,
    /// Seconds since the capture's first record.
    Relative,
    /// Seconds since the record printed before.
    Delta,
}

/// What a printed record shows of the records printed before it.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrintedTime {
    /// The record is the first of its day, or the first after clocks were changed.
    pub new_day: bool,
    /// Nanoseconds since the capture's first record.
    pub since_first: i64,
    /// Nanoseconds since the record printed before; 0 for the first.
    pub since_previous: i64,
}

/// Follows the times of printed records, in the order in which they are printed.
#[derive(Default)]
pub struct PrintedTimes {
    zone: Zone,
    /// The day of the record before, counted from 1970, and how far its clocks were ahead of UTC.
    day: Option<(i64, i64)>,
    /// The time of the record before, in nanoseconds.
    previous: Option<i64>,
}

impl PrintedTimes {
    /// Days begin as in a zone.
    pub fn in_zone(zone: Zone) -> PrintedTimes {
        PrintedTimes { zone, ..PrintedTimes::default() }
    }

    /// What to show of the next record.
    pub fn next(&mut self, record: &Record<'_>) -> PrintedTime {
        let seconds = record.at.time.seconds;
        let offset = self.zone.offset(seconds);
        let day = Some((seconds.saturating_add(offset).div_euclid(86_400), offset));
        let new_day = day != self.day;
        self.day = day;
        let now = nanoseconds(record.at.time);
        PrintedTime {
            new_day,
            since_first: now.wrapping_sub(nanoseconds(record.start)),
            since_previous: now.wrapping_sub(self.previous.replace(now).unwrap_or(now)),
        }
    }
}

/// A time in nanoseconds since 1970. Times beyond the year 2262 wrap around; only differences are
/// used.
fn nanoseconds(time: Time) -> i64 {
    time.seconds.wrapping_mul(1_000_000_000).wrapping_add(time.nanos.into())
}
