//! Gives the records of a batch to an output that counts them, in the order in which they were
//! added.

use super::head::{BatchedBody, FieldsAt, Head, Selection, record};
use super::{Batch, BatchReading, Counting, StreamNumber, TablesByName, message_bytes};
use crate::captured::Captured;
use crate::proto::{Ends, Learned, Message, Side};
use crate::record::{Counts, Outlined, Record, RoundTrips};

/// Takes the records of batches, one batch after another, on any thread.
pub trait Replay {
    /// The next record: a message with its tree, an event, or the end of a direction. It is not
    /// `kept` if it is not wanted, but it may answer a request.
    fn record(&mut self, record: &Record<'_>, kept: bool);

    /// The same for a message whose outline is enough.
    fn outline(&mut self, record: &Record<'_, Outlined<'_>>, kept: bool);

    /// A stream is over, with all its bytes.
    fn stream_over(&mut self, ended: EndedStream);
}

impl<R: Replay> Replay for &mut R {
    fn record(&mut self, record: &Record<'_>, kept: bool) {
        (**self).record(record, kept);
    }

    fn outline(&mut self, record: &Record<'_, Outlined<'_>>, kept: bool) {
        (**self).outline(record, kept);
    }

    fn stream_over(&mut self, ended: EndedStream) {
        (**self).stream_over(ended);
    }
}

/// A recognised stream that is over.
#[derive(Clone, Debug)]
pub struct EndedStream {
    /// Its transport and number.
    pub stream: StreamNumber,
    /// Its two ends.
    pub ends: Ends,
    /// The protocol's name.
    pub protocol: &'static str,
    /// The service's name.
    pub service: String,
    /// The byte counts of the client's and of the server's direction.
    pub counts: [Counts; 2],
    /// The round trips to its ends.
    pub round_trips: RoundTrips,
    /// What the stream told about its network.
    pub learned: Vec<Learned>,
}

impl Batch {
    /// A stream is over. It had no record after those added so far.
    pub fn stream_over(&mut self, ended: EndedStream) {
        self.ended.push((self.heads.len(), ended));
    }

    /// Whether a stream is over whose records are in the batch.
    pub fn has_ended(&self, stream: StreamNumber) -> bool {
        self.ended.iter().any(|(_, ended)| ended.stream == stream)
    }

    /// Adds to the bytes of streams that are over what was counted in their messages. All messages
    /// of the batch have to be [chosen](Batch::choose).
    pub fn count_ended(&mut self, counting: Counting<'_>) {
        for (_, ended) in &mut self.ended {
            for (counts, from) in ended.counts.iter_mut().zip([Side::Client, Side::Server]) {
                counts.add(self.sums.end(ended.stream, from, counting));
            }
        }
    }

    /// Gives all records to an output. They have to be [chosen](Batch::choose) before.
    pub fn replay(&mut self, reading: &mut BatchReading<'_>, to: &mut dyn Replay) {
        let (mut tables, mut ended) = (
            TablesByName::new(reading.tables),
            std::mem::take(&mut self.ended).into_iter().peekable(),
        );
        let mut at = 0;
        let mut next_end = ended.peek().map(|(before, _)| *before);
        self.each_head(|batch, head| {
            while next_end.is_some_and(|before| before <= at) {
                ended.next().into_iter().for_each(|(_, over)| to.stream_over(over));
                next_end = ended.peek().map(|(before, _)| *before);
            }
            at += 1;
            let kept = head.selection == Selection::Kept;
            if !batch.replay_outline(head, &mut tables, kept, to) {
                batch.prepare(head, &mut tables, reading.reader, None);
                batch.show(head, &mut tables, |record| to.record(record, kept));
            }
        });
        ended.for_each(|(_, over)| to.stream_over(over));
    }

    /// Gives a message to an output as an outline, if it has one.
    fn replay_outline(
        &self,
        head: &Head,
        tables: &mut TablesByName<'_>,
        kept: bool,
        to: &mut dyn Replay,
    ) -> bool {
        let BatchedBody::Message {
            name, number, offset, bytes, reply, no_reply, fields, once, ..
        } = head.what
        else {
            return false;
        };
        let FieldsAt::Outline(at, id) = fields else { return false };
        let outline = at.map_or(Some(&self.no_outline), |at| self.outlines.get(at));
        if let (Some(outline), Some(tables)) = (outline, tables.of(head.protocol))
            && let Some(direction) = self.directions.get(head.direction)
        {
            let name = Captured::new(self.text(name));
            let service = direction.service.as_str();
            let from = head.from;
            let bytes = message_bytes(&self.bytes, bytes);
            let message =
                &Message { name, number, service, from, offset, bytes, reply, no_reply, once };
            to.outline(&record(head, direction, Outlined { message, id, tables, outline }), kept);
        }
        true
    }
}
