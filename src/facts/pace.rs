//! Counts messages, and finds the second with most of them.

use crate::capture::Time;

/// Messages over time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    messages: u64,
    second: i64,
    within: u64,
    busiest: (i64, u64),
}

impl Pace {
    /// Counts a message. Where the clock goes back, a second begins anew.
    #[inline]
    pub(super) fn message(&mut self, at: Time) {
        self.messages += 1;
        if at.seconds != self.second {
            self.second = at.seconds;
            self.within = 0;
        }
        self.within += 1;
        if self.within > self.busiest.1 {
            self.busiest = (self.second, self.within);
        }
    }

    /// How many messages came.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// The second with most messages, in seconds since 1970, and how many these are; `None` without any.
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
}
