//! Values by stream. The value of the latest stream is at hand without a look-up: mostly the next
//! record is of the same stream.

use super::TransportStream;
use crate::maps::SeededMap;

/// A value for each stream. Values have places of their own: a table of them would be half empty
/// after it grew.
#[derive(Default)]
pub struct StreamMap<V> {
    /// All streams but the latest one.
    others: SeededMap<TransportStream, Box<V>>,
    latest: Option<(TransportStream, Box<V>)>,
}

impl<V: Default> StreamMap<V> {
    /// The value of a stream, at first the default.
    #[inline]
    pub fn of(&mut self, stream: TransportStream) -> &mut V {
        if self.latest.as_ref().is_none_or(|latest| latest.0 != stream) {
            self.change_to(stream);
        }
        &mut self.latest.get_or_insert_with(|| (stream, Box::default())).1
    }

    #[inline(never)]
    fn change_to(&mut self, stream: TransportStream) {
        let value = self.others.remove(&stream).unwrap_or_default();
        self.others.extend(self.latest.replace((stream, value)));
    }

    /// Takes out the value of a stream; `None` if it has none.
    pub fn remove(&mut self, stream: TransportStream) -> Option<V> {
        match self.latest.take_if(|latest| latest.0 == stream) {
            Some((_, value)) => Some(*value),
            None => self.others.remove(&stream).map(|value| *value),
        }
    }

    /// All values, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&TransportStream, &V)> {
        let latest = self.latest.iter().map(|(stream, value)| (stream, value));
        self.others.iter().chain(latest).map(|(stream, value)| (stream, &**value))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;
    use crate::session::Transport;

    #[test]
    fn each_stream_has_its_own_value_in_whatever_order_they_come() {
        let mut map = StreamMap::<u32>::default();
        for (stream, add) in [(0, 1), (0, 2), (1, 10), (0, 4), (2, 100), (1, 20)] {
            *map.of((Transport::Tcp, stream)) += add;
        }
        let mut all: Vec<(u32, u32)> =
            map.iter().map(|(stream, value)| (stream.1, *value)).collect();
        all.sort_unstable();
        assert_eq!(all, [(0, 7), (1, 30), (2, 100)]);
        assert_eq!(
            [1, 0, 7].map(|stream| map.remove((Transport::Tcp, stream))),
            [Some(30), Some(7), None]
        );
        assert_eq!(*map.of((Transport::Tcp, 1)), 0);
    }
}
