//! Times as text: RFC 3339 in UTC, with the capture's own number of decimals; or the time of day in
//! a zone.

use std::fmt::Write;

use super::Zone;
use super::scratch::TextWriter;
use crate::capture::Time;

/// Appends a time as RFC 3339 in UTC, with the capture's own number of decimals.
pub fn format_time(time: Time, out: &mut String) {
    match second_text(time.seconds).as_ref().map(|text| str::from_utf8(text)) {
        Some(Ok(text)) => out.push_str(text),
        _ => {
            let ((year, month, day), [h, m, s]) =
                (civil(time.seconds.div_euclid(86_400)), of_day(time.seconds));
            let _ = write!(out, "{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}");
        }
    }
    if time.digits > 0 {
        let digits = usize::from(time.digits.min(9));
        let fraction = format!("{:09}", time.nanos);
        out.push('.');
        out.push_str(fraction.get(..digits).unwrap_or(&fraction));
    }
    out.push('Z');
}

/// Date and time of day as `2026-11-20T09:51:41`, if the year has four digits. Trees have such a
/// time in every message of game traffic, and formatting it with `write!` took 2,800 instructions.
pub(super) fn second_text(seconds: i64) -> Option<[u8; 19]> {
    let (year, month, day) = civil(seconds.div_euclid(86_400));
    if !(0..10_000).contains(&year) {
        return None;
    }
    let mut text = *b"0000-00-00T00:00:00";
    let [h, m, s] = of_day(seconds);
    for (at, n) in
        [(0, year / 100), (2, year % 100), (5, month), (8, day), (11, h), (14, m), (17, s)]
    {
        let [tens, ones] = text.get_mut(at..)?.first_chunk_mut()?;
        (*tens, *ones) = (b'0' + (n / 10) as u8, b'0' + (n % 10) as u8);
    }
    Some(text)
}

/// Hour, minute and second of a time.
fn of_day(seconds: i64) -> [i64; 3] {
    let second = seconds.rem_euclid(86_400);
    [second / 3600, second / 60 % 60, second % 60]
}

/// Year, month and day of a day counted from 1970-01-01 (Gregorian calendar).
fn civil(day: i64) -> (i64, i64, i64) {
    let z = day + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(month <= 2), month, doy - (153 * mp + 2) / 5 + 1)
}

/// Formats times. Most records fall into the same second as the one before, so that second's text
/// is cached.
#[derive(Clone)]
pub(super) struct Clock {
    zone: Zone,
    second: i64,
    text: String,
}

impl Default for Clock {
    fn default() -> Self {
        Clock { zone: Default::default(), second: i64::MIN, text: String::new() }
    }
}

impl Clock {
    /// A clock that shows the times of a zone.
    pub(super) fn in_zone(zone: Zone) -> Clock {
        Clock { zone, ..Clock::default() }
    }

    /// Appends a time with its date, as a time in UTC.
    #[inline]
    pub(super) fn append(&mut self, time: Time, w: &mut TextWriter<'_>) {
        w.raw(self.second(time).as_bytes());
        fraction(time, w);
        w.byte(b'Z');
    }

    /// Appends the time of day.
    #[inline]
    pub(super) fn append_clock(&mut self, time: Time, w: &mut TextWriter<'_>) {
        w.raw(self.parts(time).1);
        fraction(time, w);
    }

    /// Appends the date and the zone of all following times: `2026-11-20 (UTC)`.
    pub(super) fn append_date(&mut self, time: Time, w: &mut TextWriter<'_>) {
        let zone = self.zone.name(time.seconds);
        w.raw(self.parts(time).0);
        w.fixed(b" (");
        w.raw(zone.as_bytes());
        w.byte(b')');
    }

    /// The time of day with at most `digits` decimals.
    #[cfg(any(test, feature = "cli"))]
    pub(super) fn clock_text(&mut self, time: Time, digits: usize) -> String {
        let decimals = usize::from(time.digits).min(digits).min(9);
        let mut text = String::from_utf8_lossy(self.parts(time).1).into_owned();
        if decimals > 0 {
            let _ = write!(text, ".{}", format!("{:09}", time.nanos).get(..decimals).unwrap_or(""));
        }
        text
    }

    /// The date and the time of day: what is before and after the `T`.
    fn parts(&mut self, time: Time) -> (&[u8], &[u8]) {
        let text = self.second(time).as_bytes();
        let date = text.len().saturating_sub("T00:00:00".len());
        (text.get(..date).unwrap_or(&[]), text.get(date + 1..).unwrap_or(&[]))
    }

    /// Date and time without the fraction of the second.
    fn second(&mut self, time: Time) -> &str {
        if self.second != time.seconds || self.text.is_empty() {
            self.second = time.seconds;
            self.text.clear();
            let seconds = time.seconds.saturating_add(self.zone.offset(time.seconds));
            format_time(Time { digits: 0, seconds, ..time }, &mut self.text);
            self.text.pop();
        }
        &self.text
    }
}

#[inline]
fn fraction(time: Time, w: &mut TextWriter<'_>) {
    if time.digits == 0 {
        return;
    }
    let mut text = [b'.'; 10];
    let [_, places @ ..] = &mut text;
    let mut rest = time.nanos;
    for digit in places.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    w.block(&text, 1 + usize::from(time.digits.min(9)));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use crate::print::scratch::Scratch;

    #[test]
    fn times_have_the_captures_precision() {
        let mut out = String::new();
        format_time(Time { seconds: 1_795_168_301, nanos: 586_970_000, digits: 6 }, &mut out);
        assert_eq!(out, "2026-11-20T09:51:41.586970Z");
        out.clear();
        for seconds in [-62_167_219_201, 253_402_300_800] {
            format_time(Time { seconds, nanos: 0, digits: 0 }, &mut out);
        }
        assert_eq!(out, "-001-12-31T23:59:59Z10000-01-01T00:00:00Z");
        out.clear();
        format_time(Time { seconds: -1, nanos: 5, digits: 9 }, &mut out);
        assert_eq!(out, "1969-12-31T23:59:59.000000005Z");
    }

    #[test]
    fn a_clock_says_the_same() {
        let mut clock = Clock::default();
        for (seconds, nanos, digits) in
            [(1_795_168_301, 586_970_000, 6), (1_795_168_301, 7, 9), (0, 0, 0), (-1, 5, 3)]
        {
            let time = Time { seconds, nanos, digits };
            let mut whole = String::new();
            format_time(time, &mut whole);
            let mut said = Vec::new();
            let mut scratch = Scratch::default();
            let mut w = scratch.writer(&mut said);
            clock.append(time, &mut w);
            clock.append_date(time, &mut w);
            clock.append_clock(time, &mut w);
            w.finish();
            let (date, rest) = whole.split_at(10);
            let rest = rest[1..].trim_end_matches('Z');
            assert_eq!(String::from_utf8_lossy(&said), format!("{whole}{date} (UTC){rest}"));
            assert_eq!(clock.clock_text(time, 9), rest);
        }
    }

    #[test]
    fn a_zone_changes_date_and_offset() {
        let mut clock = Clock::in_zone(Zone::posix("CET-1CEST,M3.5.0,M10.5.0/3"));
        let mut said = |seconds| {
            let mut out = Vec::new();
            let mut scratch = Scratch::default();
            let time = Time { seconds, nanos: 120_000_000, digits: 6 };
            let mut w = scratch.writer(&mut out);
            clock.append_date(time, &mut w);
            w.finish();
            format!("{} {}", String::from_utf8(out).unwrap(), clock.clock_text(time, 3))
        };
        // 2026-03-29T00:59:59Z and the second after it, when clocks are put forward.
        assert_eq!(said(1_774_745_999), "2026-03-29 (CET, UTC+01:00) 01:59:59.120");
        assert_eq!(said(1_774_746_000), "2026-03-29 (CEST, UTC+02:00) 03:00:00.120");
        // 2026-11-20T23:30:00Z is the next day there.
        assert_eq!(said(1_795_217_400), "2026-11-21 (CET, UTC+01:00) 00:30:00.120");
    }
}
