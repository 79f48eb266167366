//! How a stream ended: who ended it and how, its bytes, and the facts of the protocol's session at
//! its end.

use crate::record::EndedBy;
use crate::session::Counts;
use crate::session::{Learned, Side};

/// The end of a direction, as its record has it.
pub(super) struct DirectionEnd {
    pub(super) how: EndedBy,
    pub(super) counts: Counts,
    /// The frame in which the sender closed or reset it.
    pub(super) closed_in: Option<u64>,
    pub(super) from: Side,
}

/// The end of a stream, as far as it is known.
#[derive(Default)]
pub(super) struct StreamEnding {
    how: EndedBy,
    /// The frame in which a side ended it, and which side: the first one.
    closed_by: Option<(u64, Side)>,
    bytes: Counts,
    learned: Vec<Learned>,
    over: bool,
}

impl StreamEnding {
    pub(super) fn how(&self) -> EndedBy {
        self.how
    }

    /// The side that closed or reset it, if one did.
    pub(super) fn closed_by(&self) -> Option<Side> {
        self.closed_by.map(|(_, side)| side)
    }

    /// Bytes of both directions.
    pub(super) fn bytes(&self) -> Counts {
        self.bytes
    }

    /// The facts of the protocol's session.
    pub(super) fn learned(&self) -> &[Learned] {
        &self.learned
    }

    /// Memory of the facts, roughly, in bytes.
    pub(super) fn held(&self) -> usize {
        self.learned.iter().map(Learned::held).sum()
    }

    /// A direction ended.
    pub(super) fn direction(&mut self, end: &DirectionEnd) {
        let DirectionEnd { how, counts, closed_in, from } = *end;
        self.bytes.add(counts);
        if self.how == EndedBy::Open || from == Side::Server {
            self.how = how;
        }
        let ours = closed_in.map(|frame| (frame, from));
        self.closed_by = self.closed_by.into_iter().chain(ours).min_by_key(|(frame, _)| *frame);
    }

    /// Whether both directions ended.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// A record came: a stream that was given up may go on.
    pub(super) fn goes_on(&mut self) {
        self.over = false;
    }

    /// Both directions ended.
    pub(super) fn stream(&mut self) {
        self.over = true;
    }

    /// What is known at the stream's end. Streams of datagrams have no ends of directions, so their
    /// byte counts come only here.
    pub(super) fn facts(&mut self, counts: [Counts; 2], learned: Vec<Learned>) {
        self.bytes = Counts::default();
        counts.into_iter().for_each(|counts| self.bytes.add(counts));
        self.learned = learned;
    }

    /// It goes on after silence, in another session.
    pub(super) fn silence(&mut self) {
        if self.how == EndedBy::Open {
            self.how = EndedBy::Timeout;
        }
    }

    /// The protocol itself said that the connection is over.
    pub(super) fn farewell(&mut self) {
        self.how = EndedBy::Fin;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_closed_first_is_told_by_the_frames_of_the_farewells_in_whatever_order_the_directions_end()
     {
        let end =
            |how, from, closed_in| DirectionEnd { how, counts: Counts::default(), closed_in, from };
        let told = |ends: [DirectionEnd; 2]| {
            let mut ending = StreamEnding::default();
            ends.iter().for_each(|end| ending.direction(end));
            (ending.how(), ending.closed_by())
        };
        let client = Side::Client;
        let server = Side::Server;
        let closed = [end(EndedBy::Fin, server, Some(8)), end(EndedBy::Fin, client, Some(7))];
        assert_eq!(told(closed), (EndedBy::Fin, Some(client)));
        // Only one side sends a RST.
        let reset = [end(EndedBy::Reset, client, None), end(EndedBy::Reset, server, Some(7))];
        assert_eq!(told(reset), (EndedBy::Reset, Some(server)));
        let open = [end(EndedBy::Open, client, None), end(EndedBy::Open, server, None)];
        assert_eq!(told(open), (EndedBy::Open, None));
    }
}
