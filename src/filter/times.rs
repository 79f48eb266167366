//! Times as people type them: RFC 3339, or parts of it, and times of day. All in UTC where no zone
//! is given.

use std::cmp::Ordering;

const NANOS_PER_SECOND: i128 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// A time to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeLiteral {
    /// Nanoseconds since 1970.
    Instant(i128),
    /// Nanoseconds since midnight, of any day.
    OfDay(i128),
}

impl TimeLiteral {
    /// Reads a time; `None` if `raw` is none.
    pub(super) fn parse(raw: &str) -> Option<TimeLiteral> {
        instant(raw).map(TimeLiteral::Instant).or_else(|| {
            let clock = raw.strip_suffix(['Z', 'z']).unwrap_or(raw);
            time_of_day(clock).map(TimeLiteral::OfDay)
        })
    }

    /// Whether it is after another time of the same kind.
    pub(super) fn is_after(self, other: TimeLiteral) -> bool {
        match (self, other) {
            (TimeLiteral::Instant(own), TimeLiteral::Instant(other))
            | (TimeLiteral::OfDay(own), TimeLiteral::OfDay(other)) => own > other,
            _ => false,
        }
    }

    /// How a time, in nanoseconds since 1970, compares with it.
    pub(super) fn compare(self, nanos: i128) -> Ordering {
        match self {
            TimeLiteral::Instant(wanted) => nanos.cmp(&wanted),
            TimeLiteral::OfDay(wanted) => {
                nanos.rem_euclid(i128::from(SECONDS_PER_DAY) * NANOS_PER_SECOND).cmp(&wanted)
            }
        }
    }
}

/// RFC 3339, where the time, its seconds and its zone may be missing.
fn instant(raw: &str) -> Option<i128> {
    let (date, clock) = raw.split_once(['T', 't', ' ']).unwrap_or((raw, "00:00:00Z"));
    let [year, month, day] = parts(date, '-')?;
    let written = date.len() == 10 && date.find('-') == Some(4) && date.rfind('-') == Some(7);
    let good = written && (1..=days_of_month(year, month)).contains(&day);
    let midnight = days(year, month, day) * SECONDS_PER_DAY;
    let (clock, zone) = match clock.rfind(['+', '-']) {
        Some(at) => (clock.get(..at)?, zone(clock.get(at..)?)?),
        None => (clock.strip_suffix(['Z', 'z']).unwrap_or(clock), 0),
    };
    let nanos = time_of_day(clock).filter(|_| good)?;
    Some(i128::from(midnight - zone) * NANOS_PER_SECOND + nanos)
}

/// `09:30`, `09:30:27` or `09:30:27.5` in nanoseconds.
fn time_of_day(clock: &str) -> Option<i128> {
    let (whole, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let [h, m, s] = if whole.matches(':').count() == 1 {
        parts(&format!("{whole}:00"), ':')?
    } else {
        parts(whole, ':')?
    };
    let digits = fraction.len() <= 9 && fraction.bytes().all(|b| b.is_ascii_digit());
    let nanos: i128 = format!("{fraction:0<9}").parse().ok()?;
    let fits = digits && h < 24 && m < 60 && s <= 60;
    fits.then(|| i128::from(h * 3600 + m * 60 + s) * NANOS_PER_SECOND + nanos)
}

fn parts(text: &str, between: char) -> Option<[i64; 3]> {
    let mut parts = text.split(between).map(|p| number(p).filter(|_| p.len() <= 4));
    let all = [parts.next()??.into(), parts.next()??.into(), parts.next()??.into()];
    parts.next().is_none().then_some(all)
}

/// A number of digits alone.
fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()))
}

/// `+02:00` in seconds.
fn zone(text: &str) -> Option<i64> {
    let (sign, digits) = text.split_at_checked(1)?;
    let (h, m) = digits.split_once(':')?;
    let h = number(h).filter(|h| *h < 24)?;
    let m = number(m).filter(|m| *m < 60)?;
    let seconds = i64::from(h) * 3600 + i64::from(m) * 60;
    Some(if sign == "-" { -seconds } else { seconds })
}

/// How many days a month of the Gregorian calendar has; none if there is no such month.
fn days_of_month(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    }
}

/// Days from 1970-01-01 to a date of the Gregorian calendar (Howard Hinnant's `days_from_civil`).
fn days(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn times_are_read_with_any_precision() {
        let second = 1_795_168_301_i128 * NANOS_PER_SECOND;
        assert_eq!(instant("2026-11-20T09:51:41Z"), Some(second));
        assert_eq!(instant("2026-11-20T09:51:41.58697Z"), Some(second + 586_970_000));
        assert_eq!(instant("2026-11-20T11:51:41+02:00"), Some(second));
        assert_eq!(instant("2026-11-20T09:51"), Some(second - 41 * NANOS_PER_SECOND));
        assert_eq!(instant("2026-11-20"), instant("2026-11-20T00:00:00Z"));
        assert_eq!(instant("1970-01-01"), Some(0));
        for wrong in [
            "",
            "2026",
            "2026-13-01",
            "12:30",
            "2026-11-20T25:00",
            "2026-11-20Tx",
            "2026-11-20T1:2:3+",
        ] {
            assert_eq!(instant(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_that_do_not_exist_are_none() {
        for wrong in [
            "2026-02-29",
            "1900-02-29",
            "2026-04-31",
            "2026-01-00",
            "2026-00-01",
            "202-010-01",
            "2026-+1-01",
        ] {
            assert_eq!(instant(wrong), None, "{wrong}");
        }
        for zone in ["+24:00", "+99:99", "-10:60", "++2:00"] {
            assert_eq!(instant(&format!("2026-01-01T10:00{zone}")), None, "{zone}");
        }
        assert!(instant("2024-02-29").is_some() && instant("2000-02-29").is_some());
        assert!(instant("2026-01-01T10:00-23:59").is_some());
    }

    #[test]
    fn a_time_of_day_compares_on_every_day() {
        let ten = TimeLiteral::parse("10:17").unwrap();
        let at = |text: &str| instant(text).unwrap();
        assert!(ten.compare(at("2026-11-20T10:17")).is_eq());
        assert!(ten.compare(at("2030-01-01T10:17:00.5")).is_gt());
        assert!(ten.compare(at("1969-12-31T10:16:59")).is_lt());
        assert_eq!(TimeLiteral::parse("25:00"), None);
        assert_eq!(TimeLiteral::parse("10:17:30Z"), TimeLiteral::parse("10:17:30"));
    }
}
