//! Silence: the rule by which what comes later belongs to a further session.

use std::net::IpAddr;

use crate::capture::Time;

/// A session is over when nothing came for this long, in nanoseconds of capture time.
const IDLE: i64 = 600 * 1_000_000_000;

/// An address and a protocol.
pub(super) type ClientKey = (IpAddr, &'static str);

/// Nanoseconds since 1970.
pub(super) fn nanos(time: Time) -> i64 {
    time.seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(time.nanos))
}

/// From the first traffic to the last, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TrafficSpan {
    pub(super) first: i64,
    pub(super) last: i64,
}

impl TrafficSpan {
    /// A single moment.
    pub(super) fn at(time: i64) -> TrafficSpan {
        TrafficSpan { first: time, last: time }
    }

    /// Both, and what is between them.
    #[must_use]
    pub(super) fn and(self, other: TrafficSpan) -> TrafficSpan {
        TrafficSpan { first: self.first.min(other.first), last: self.last.max(other.last) }
    }

    /// Whether there is silence between the two, in whichever order they are. A clock that is set
    /// back by more is silence, too.
    pub(super) fn is_apart(self, other: TrafficSpan) -> bool {
        self.is_silent_at(other.first) || other.is_silent_at(self.first)
    }

    /// Whether nothing came for so long at a time that it is over.
    pub(super) fn is_silent_at(self, time: i64) -> bool {
        self.last.saturating_add(IDLE) < time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_ten_minutes_are_silence_in_both_directions_of_time() {
        let minute = 60_000_000_000;
        let span =
            |first: i64, last: i64| TrafficSpan { first: first * minute, last: last * minute };
        let talk = span(20, 30);
        let apart = [
            span(0, 9),
            span(0, 10),
            span(22, 24),
            span(40, 50),
            span(41, 50),
            TrafficSpan { first: 0, last: i64::MAX },
        ];
        assert_eq!(
            apart.map(|other| talk.is_apart(other)),
            [true, false, false, false, true, false]
        );
        assert_eq!(
            apart.map(|other| other.is_apart(talk)),
            [true, false, false, false, true, false]
        );
        assert_eq!(span(0, 9).and(span(20, 21)), span(0, 21));
    }
}
