//! Converts a capture's clock ticks, of any resolution, to seconds and nanoseconds without rounding
//! errors.
//!
//! It knows pcapng's `if_tsresol` and `if_tsoffset` (draft-ietf-opsawg-pcapng, section 4.2) but no
//! blocks. Fractions of a nanosecond are cut off and never rounded up, so that a frame never gets a
//! time after its own.

use super::Time;

/// The first second of the year 0, and the last one of the year 9999: RFC 3339 can write no other
/// years.
pub(super) const EARLIEST: i64 = -62_167_219_200;
/// See [`EARLIEST`].
pub(super) const LATEST: i64 = 253_402_300_799;

const BILLION: u64 = 1_000_000_000;

/// How one interface counts time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TickClock {
    scale: Scale,
    digits: u8,
    offset: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    /// A tick is a nanosecond or longer: ticks per second, and nanoseconds per tick.
    Coarse { ticks: u64, nanos: u32 },
    /// A tick is shorter than a nanosecond: ticks per second, and ticks per nanosecond.
    Fine { ticks: u64, per_nano: u64 },
    /// A second has more ticks than 64 bits can count, so every count is below one second.
    /// `per_nano` is ticks per nanosecond.
    Finest { per_nano: Option<u64> },
    /// A second has 2 to this power ticks; the power is at most 127.
    Binary { power: u32 },
}

impl TickClock {
    /// Microseconds, the default of pcap and pcapng.
    pub(super) const MICROS: Self =
        Self { scale: Scale::Coarse { ticks: 1_000_000, nanos: 1_000 }, digits: 6, offset: 0 };

    /// Nanoseconds.
    pub(super) const NANOS: Self =
        Self { scale: Scale::Coarse { ticks: BILLION, nanos: 1 }, digits: 9, offset: 0 };

    /// The clock that `if_tsresol` and `if_tsoffset` (in seconds) describe. The upper bit of
    /// `resolution` says whether the other bits are a power of two or of ten.
    pub(super) fn new(resolution: u8, offset: i64) -> Self {
        let power = u32::from(resolution & 0x7f);
        let (scale, digits) = if resolution & 0x80 == 0 {
            (decimal(power), power.min(9))
        } else {
            (Scale::Binary { power }, digits_of_binary(power))
        };
        Self { scale, digits: u8::try_from(digits).unwrap_or(9), offset }
    }

    /// Decimal digits of a second that this clock resolves, at most 9.
    pub(super) fn digits(self) -> u8 {
        self.digits
    }

    /// The time that is `ticks` after the start of 1970. A damaged clock, beyond [`EARLIEST`] and
    /// [`LATEST`], has these times.
    #[inline]
    pub(super) fn time(self, ticks: u64) -> Time {
        let (seconds, nanos) = match self.scale {
            Scale::Coarse { ticks: unit, nanos } => {
                let (seconds, rest) = divide(ticks, unit);
                (seconds, rest.wrapping_mul(u64::from(nanos)))
            }
            Scale::Fine { ticks: unit, per_nano } => {
                (ticks / unit.max(1), ticks % unit.max(1) / per_nano.max(1))
            }
            Scale::Finest { per_nano } => (0, per_nano.map_or(0, |n| ticks / n.max(1))),
            Scale::Binary { power } => binary(ticks, power),
        };
        // Every arm gives less than a second of nanoseconds. Seconds exceed 63 bits only if a tick
        // is a second and the count is garbage; then any time will do.
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        Time {
            seconds: seconds.saturating_add(self.offset).clamp(EARLIEST, LATEST),
            nanos: u32::try_from(nanos).unwrap_or(0),
            digits: self.digits,
        }
    }
}

/// Whole seconds and remaining ticks. The two common clocks have arms of their own because the
/// compiler turns a division by a constant into a multiplication.
#[inline]
fn divide(ticks: u64, per_second: u64) -> (u64, u64) {
    match per_second {
        1_000_000 => (ticks / 1_000_000, ticks % 1_000_000),
        BILLION => (ticks / BILLION, ticks % BILLION),
        _ => (ticks / per_second.max(1), ticks % per_second.max(1)),
    }
}

fn decimal(power: u32) -> Scale {
    match (10u64.checked_pow(power), power.checked_sub(9)) {
        (Some(ticks), None | Some(0)) => {
            Scale::Coarse { ticks, nanos: u32::try_from(BILLION / ticks.max(1)).unwrap_or(1) }
        }
        (Some(ticks), Some(more)) => {
            Scale::Fine { ticks, per_nano: 10u64.checked_pow(more).unwrap_or(u64::MAX) }
        }
        (None, more) => Scale::Finest { per_nano: 10u64.checked_pow(more.unwrap_or(0)) },
    }
}

fn binary(ticks: u64, power: u32) -> (u64, u64) {
    let seconds = ticks.checked_shr(power).unwrap_or(0);
    let whole = seconds.checked_shl(power).unwrap_or(0);
    let rest = u128::from(ticks.wrapping_sub(whole));
    // Less than 2^64 times 10^9 stays far below 2^128, and `power` is at most 127.
    let nanos = rest.wrapping_mul(u128::from(BILLION)).checked_shr(power).unwrap_or(0);
    (seconds, u64::try_from(nanos).unwrap_or(0))
}

/// The fewest decimal digits that still tell every tick of 2^-power seconds from the next.
fn digits_of_binary(power: u32) -> u32 {
    let ticks = 1u64.checked_shl(power).unwrap_or(u64::MAX);
    (0..9).find(|&digits| 10u64.pow(digits) >= ticks).unwrap_or(9)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    fn time(resolution: u8, offset: i64, ticks: u64) -> (i64, u32, u8) {
        let time = TickClock::new(resolution, offset).time(ticks);
        (time.seconds, time.nanos, time.digits)
    }

    #[test]
    fn powers_of_ten_are_exact() {
        assert_eq!(time(0, 0, 1_700_000_000), (1_700_000_000, 0, 0));
        assert_eq!(time(3, 0, 1_700_000_000_123), (1_700_000_000, 123_000_000, 3));
        assert_eq!(time(6, 0, 1_700_000_000_123_456), (1_700_000_000, 123_456_000, 6));
        assert_eq!(time(9, 0, 1_700_000_000_123_456_789), (1_700_000_000, 123_456_789, 9));
        assert_eq!(time(12, 0, 1_700_000_123_456_789_012), (1_700_000, 123_456_789, 9));
        assert_eq!(time(19, 0, u64::MAX), (1, 844_674_407, 9));
    }

    #[test]
    fn clocks_finer_than_64_bits_can_count_never_reach_a_second() {
        assert_eq!(time(20, 0, u64::MAX), (0, 184_467_440, 9));
        assert_eq!(time(28, 0, u64::MAX), (0, 1, 9));
        assert_eq!(time(29, 0, u64::MAX), (0, 0, 9));
        assert_eq!(time(0x7f, 0, u64::MAX), (0, 0, 9));
        assert_eq!(time(0xc0, 0, u64::MAX), (0, 999_999_999, 9));
        assert_eq!(time(0xff, 0, u64::MAX), (0, 0, 9));
    }

    #[test]
    fn powers_of_two_are_exact() {
        // 2^-10: 1/1024 s is 976,562.5 ns; the half is cut off.
        assert_eq!(time(0x8a, 0, 5 * 1024 + 1), (5, 976_562, 4));
        assert_eq!(time(0x8a, 0, 5 * 1024 + 512), (5, 500_000_000, 4));
        // 2^-20: the last tick before the next second.
        assert_eq!(time(0x94, 0, (7 << 20) + (1 << 20) - 1), (7, 999_999_046, 7));
        assert_eq!(time(0x80, 0, 9), (9, 0, 0));
        assert_eq!(time(0x81, 0, 3), (1, 500_000_000, 1));
        assert_eq!(time(0xbf, 0, u64::MAX), (1, 999_999_999, 9));
    }

    #[test]
    fn the_offset_is_added_and_never_overflows() {
        assert_eq!(time(6, 1_000, 1_500_000), (1_001, 500_000_000, 6));
        assert_eq!(time(6, -3, 1_500_000), (-2, 500_000_000, 6));
        assert_eq!(time(0, i64::MAX, u64::MAX), (LATEST, 0, 0));
        assert_eq!(time(0, i64::MIN, 0), (EARLIEST, 0, 0));
        assert_eq!(time(0, LATEST - 1, 5), (LATEST, 0, 0));
    }

    #[test]
    fn the_named_clocks_are_those_of_their_resolution() {
        assert_eq!(TickClock::MICROS, TickClock::new(6, 0));
        assert_eq!(TickClock::NANOS, TickClock::new(9, 0));
    }

    #[test]
    fn nanoseconds_always_stay_below_a_second() {
        for resolution in 0..=u8::MAX {
            for ticks in [0, 1, 999, 1_000_000, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
                let time = TickClock::new(resolution, 0).time(ticks);
                assert!(time.nanos < 1_000_000_000, "{resolution:#x} {ticks}");
                assert!(time.digits <= 9);
            }
        }
    }
}
