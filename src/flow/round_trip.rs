//! Measures the round trip of one direction: from the capturing machine to the receiver, and back
//! with the acknowledgement.
//!
//! The opening of a connection measures it best, because a SYN is acknowledged at once. An
//! acknowledgement of data may be delayed, or wait for a reply that carries it, so only the
//! shortest one counts. Data that was sent twice is not measured: the acknowledgement may belong to
//! either copy (Karn's rule, RFC 6298). One segment is timed at a time.
//!
//! It knows one direction, and no connection.

use super::elapsed;
use super::segment::{FIN, SYN, Segment};
use crate::capture::Time;

/// Times the segments of one direction.
#[derive(Debug, Default)]
pub(super) struct RoundTripTimer {
    /// The sequence number behind everything that was sent.
    sent: Option<u32>,
    timed: Option<TimedSegment>,
    shortest: Option<i64>,
    /// Whether the opening was measured.
    opening: bool,
}

/// A segment that is not acknowledged yet.
#[derive(Clone, Copy, Debug)]
struct TimedSegment {
    /// The sequence number behind it.
    end: u32,
    at: Time,
    opening: bool,
}

/// A round trip that is shorter than all before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ShorterTrip {
    pub nanos: i64,
    /// Whether the opening of the connection was measured.
    pub opening: bool,
}

impl RoundTripTimer {
    /// The sender sent a segment.
    #[inline]
    pub(super) fn sent(&mut self, segment: &Segment<'_>, at: Time) {
        let flags = u32::from(segment.has(SYN)) + u32::from(segment.has(FIN));
        let size = (segment.len as u32).wrapping_add(flags);
        if size == 0 {
            return;
        }
        let end = segment.seq.wrapping_add(size);
        if self.sent.is_some_and(|sent| behind(segment.seq, sent)) {
            self.timed = None;
            if self.sent.is_some_and(|sent| behind(sent, end)) {
                self.sent = Some(end);
            }
            return;
        }
        self.sent = Some(end);
        if self.timed.is_none() {
            self.timed = Some(TimedSegment { end, at, opening: segment.has(SYN) });
        }
    }

    /// The receiver acknowledged everything before a sequence number.
    #[inline]
    pub(super) fn acknowledged(&mut self, ack: u32, at: Time) -> Option<ShorterTrip> {
        let timed = self.timed.filter(|timed| !behind(ack, timed.end))?;
        self.timed = None;
        // Nothing is measured without times, or if the clock was set back.
        let known = timed.at != Time::default() && at != Time::default();
        let nanos = elapsed(timed.at, at);
        if !known || nanos < 0 || self.shortest.is_some_and(|shortest| shortest <= nanos) {
            return None;
        }
        self.shortest = Some(nanos);
        self.opening |= timed.opening;
        Some(ShorterTrip { nanos, opening: self.opening })
    }
}

/// Whether a sequence number is before another one.
fn behind(seq: u32, other: u32) -> bool {
    (seq.wrapping_sub(other) as i32) < 0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn at(micros: u32) -> Time {
        Time { seconds: 7, nanos: micros * 1000, digits: 6 }
    }

    /// A segment with `len` bytes of payload.
    fn segment(seq: u32, flags: u8, len: u64) -> Segment<'static> {
        let mut header = [0; 20];
        header[4..8].copy_from_slice(&seq.to_be_bytes());
        (header[12], header[13]) = (0x50, flags);
        let mut parsed = Segment::parse(Box::leak(Box::new(header)), 0).unwrap();
        parsed.len = len;
        parsed
    }

    #[test]
    fn the_opening_and_the_shortest_acknowledgement_count() {
        let mut timer = RoundTripTimer::default();
        // The numbers begin anew behind the SYN.
        timer.sent(&segment(u32::MAX, SYN, 0), at(100));
        assert_eq!(
            timer.acknowledged(0, at(130)),
            Some(ShorterTrip { nanos: 30_000, opening: true })
        );
        timer.sent(&segment(0, 0, 10), at(200));
        timer.sent(&segment(10, 0, 10), at(225));
        assert_eq!(timer.acknowledged(9, at(210)), None, "not all of the first one");
        assert_eq!(timer.acknowledged(20, at(240)), None, "longer than before");
        timer.sent(&segment(20, 0, 10), at(300));
        assert_eq!(
            timer.acknowledged(30, at(325)),
            Some(ShorterTrip { nanos: 25_000, opening: true })
        );
    }

    #[test]
    fn what_was_sent_twice_or_has_no_time_measures_nothing() {
        let mut timer = RoundTripTimer::default();
        timer.sent(&segment(50, SYN, 0), at(100));
        timer.sent(&segment(50, SYN, 0), at(1100));
        assert_eq!(timer.acknowledged(51, at(1130)), None);
        timer.sent(&segment(51, 0, 5), Time::default());
        assert_eq!(timer.acknowledged(56, at(2000)), None);
        timer.sent(&segment(56, 0, 5), at(3000));
        assert_eq!(timer.acknowledged(61, at(2999)), None, "a clock that went back");
        timer.sent(&segment(61, 0, 5), at(4000));
        assert_eq!(
            timer.acknowledged(66, at(4001)),
            Some(ShorterTrip { nanos: 1000, opening: false })
        );
    }
}
