//! Counts messages, and finds the second with most of them.

use crate::capture::Time;

/// The latest seconds, which are counted side by side: behind lost bytes, a stream is some seconds
/// later than others.
const SECONDS: usize = 64;

/// Messages over time.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    messages: u64,
    /// Seconds with their messages, each at the place of its number.
    seconds: [(i64, u64); SECONDS],
    busiest: (i64, u64),
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { messages: 0, seconds: [(0, 0); SECONDS], busiest: (0, 0) }
    }
}

impl Pace {
    /// Counts a message. Where the clock goes back by more than the latest seconds, a second begins
    /// anew.
    #[inline]
    pub(super) fn message(&mut self, at: Time) {
        self.messages += 1;
        let place = at.seconds.rem_euclid(SECONDS as i64) as usize;
        let Some((second, within)) = self.seconds.get_mut(place) else { return };
        if *second != at.seconds {
            (*second, *within) = (at.seconds, 0);
        }
        *within += 1;
        if *within > self.busiest.1 {
            self.busiest = (at.seconds, *within);
        }
    }

    /// How many messages came.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// The second with most messages, in seconds since 1970, and how many these are; `None` without
    /// any.
    pub fn busiest(&self) -> Option<(i64, u64)> {
        (self.messages > 0).then_some(self.busiest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_second_is_known() {
        let mut pace = Pace::default();
        assert_eq!(pace.busiest(), None);
        for seconds in [0, 0, 5, 5, 5, 7] {
            pace.message(Time { seconds, nanos: 1, digits: 6 });
        }
        assert_eq!((pace.messages(), pace.busiest()), (6, Some((5, 3))));
    }

    #[test]
    fn messages_that_are_read_late_count_in_their_own_second() {
        let mut pace = Pace::default();
        for seconds in [7, 5, 7, 5, 7, 5, -1, 5] {
            pace.message(Time { seconds, nanos: 1, digits: 6 });
        }
        assert_eq!(pace.busiest(), Some((5, 4)));
    }
}
