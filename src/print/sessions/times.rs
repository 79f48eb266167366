//! Times of sessions, as short as they can be told apart.

use super::time_text;
use crate::capture::Time;

/// How many decimals of a second times need, and whether they need a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Precision {
    decimals: usize,
    dated: bool,
}

impl Precision {
    /// What these times need: as many decimals as tell those that follow each other apart, in
    /// steps of three, and a date where they are of several days.
    pub(super) fn of(times: impl Iterator<Item = Time>) -> Precision {
        let mut all: Vec<Time> = times.collect();
        all.sort_unstable();
        all.dedup();
        let pairs = || all.iter().zip(all.iter().skip(1));
        let digits = all.iter().map(|time| usize::from(time.digits)).max().unwrap_or(0).min(9);
        let apart = |decimals: usize| pairs().all(|(a, b)| cut(*a, decimals) != cut(*b, decimals));
        let decimals = [0, 3, 6].into_iter().find(|decimals| apart(*decimals)).unwrap_or(9);
        let dated = pairs().any(|(a, b)| date(*a) != date(*b));
        Precision { decimals: decimals.min(digits), dated }
    }

    /// A time as it needs to be.
    pub(super) fn text(self, time: Time) -> String {
        let clock = self.clock(time);
        if self.dated { format!("{} {clock}", date(time)) } else { clock }
    }

    /// The time of day.
    pub(super) fn clock(self, time: Time) -> String {
        cut(time, self.decimals)
    }
}

/// The date.
pub(super) fn date(time: Time) -> String {
    let text = time_text(time);
    text.split_once('T').map_or("", |(date, _)| date).to_string()
}

/// The time of day, cut to so many decimals.
fn cut(time: Time, decimals: usize) -> String {
    let text = time_text(time);
    let clock = text.split_once('T').map_or("", |(_, clock)| clock).trim_end_matches('Z');
    let length = if decimals == 0 { 8 } else { 9 + decimals };
    clock.get(..length).unwrap_or(clock).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_as_many_decimals_as_tell_them_apart() {
        let at = |seconds, nanos| Time { seconds, nanos, digits: 9 };
        let shown = |all: [Time; 2]| {
            let precision = Precision::of(all.into_iter());
            all.map(|time| precision.text(time))
        };
        assert_eq!(shown([at(1, 5), at(2, 7)]), ["00:00:01", "00:00:02"]);
        assert_eq!(shown([at(1, 5), at(1, 7_000_000)]), ["00:00:01.000", "00:00:01.007"]);
        assert_eq!(shown([at(1, 5), at(1, 7)]), ["00:00:01.000000005", "00:00:01.000000007"]);
        let days = shown([at(1, 5), at(86_402, 5)]);
        assert_eq!(days, ["1970-01-01 00:00:01", "1970-01-02 00:00:02"]);
    }
}
