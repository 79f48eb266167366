//! The words of conclusions: lengths of time, times of day, lists.

use crate::capture::Time;

/// Nanoseconds since 1970.
pub(super) fn nanos(time: Time) -> i64 {
    time.seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(time.nanos))
}

/// A length of time, in a unit that says something.
pub(super) fn length(nanos: i64) -> String {
    let millis = nanos.max(0) / 1_000_000;
    match millis {
        ..10 => format!("{:.1} ms", nanos.max(0) as f64 / 1e6),
        10..1000 => format!("{millis} ms"),
        1000..100_000 => format!("{:.1} s", millis as f64 / 1000.0),
        100_000..6_000_000 => format!("{} min", (millis + 30_000) / 60_000),
        _ => format!("{:.1} h", millis as f64 / 3_600_000.0),
    }
}

/// The time of day in UTC, to the millisecond.
pub(super) fn clock(time: Time) -> String {
    let second = time.seconds.rem_euclid(86_400);
    let [h, m, s] = [second / 3600, second / 60 % 60, second % 60];
    format!("{h:02}:{m:02}:{s:02}.{:03}", time.nanos / 1_000_000)
}

/// A time some nanoseconds before another.
pub(super) fn before(time: Time, nanos: i64) -> Time {
    let all = self::nanos(time).saturating_sub(nanos);
    let nanos = u32::try_from(all.rem_euclid(1_000_000_000)).unwrap_or(0);
    Time { seconds: all.div_euclid(1_000_000_000), nanos, ..time }
}

/// `a`, `a and b`, `a, b and c`; of more than `most` the first ones and how many more.
pub(super) fn listed(all: &[String], most: usize) -> String {
    let shown = if all.len() > most { most } else { all.len() };
    let mut parts: Vec<String> = all.iter().take(shown).cloned().collect();
    if all.len() > shown {
        parts.push(format!("{} more", all.len() - shown));
    }
    match parts.pop() {
        None => String::new(),
        Some(last) if parts.is_empty() => last,
        Some(last) => format!("{} and {last}", parts.join(", ")),
    }
}

/// A part of a hundred with as many digits as say something.
pub(super) fn percent(part: u64, whole: u64) -> String {
    let share = part as f64 * 100.0 / whole.max(1) as f64;
    match share {
        10.0.. => format!("{share:.0} %"),
        0.1.. => format!("{share:.1} %"),
        _ => format!("{share:.2} %"),
    }
}

/// A text of at most so many characters.
pub(super) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_as_long_as_they_have_to_be() {
        let all = [900_000, 42_000_000, 6_123_000_000, 180_000_000_000, 7_200_000_000_000];
        assert_eq!(all.map(length), ["0.9 ms", "42 ms", "6.1 s", "3 min", "2.0 h"]);
        let time = Time { seconds: 1_795_168_301, nanos: 586_970_000, digits: 6 };
        assert_eq!(clock(time), "09:51:41.586");
        assert_eq!(clock(before(time, 600_000_000)), "09:51:40.986");
    }

    #[test]
    fn lists_end_with_and() {
        let all: Vec<String> = ["a", "b", "c"].map(String::from).to_vec();
        assert_eq!([0, 1, 2, 3].map(|n| listed(&all[..n], 3)), ["", "a", "a and b", "a, b and c"]);
        assert_eq!(listed(&all, 2), "a, b and 1 more");
    }
}
