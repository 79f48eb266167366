//! Records that wait to be written: copies of the records that outputs receive, packed into a few
//! vectors that are reused. Trees are not copied but swapped for unused ones. If a message came as
//! an outline, its bytes are kept, and the thread that writes the batch reads them into a tree. If
//! messages are [deferred](crate::tree::Deferring), that thread also counts what is in all of them.
//! If only some records are wanted, it chooses them, too.
//!
//! It knows the parts of a record. It knows neither the pipeline that fills it nor the output
//! formats.

mod all_sums;
mod choice;
mod head;
mod outline_reader;
mod replay;
mod trees;

use std::sync::Arc;

pub use all_sums::{AllSums, Counting, MessageTotals, StreamNumber};
use all_sums::{BatchSums, MessageToCount};
pub use choice::RecordChoice;
use head::{BatchedBody, FieldsAt, Head, Range, RecordDirection, Selection, Unread, record};
pub use outline_reader::OutlineReader;
use outline_reader::TablesByName;
pub use replay::{EndedStream, Replay};
use trees::BatchTrees;

use super::tree::{AnnotationRange, AnnotationStore, Annotations};
use crate::captured::Captured;
use crate::proto::{Event, LazyTables, Message, Side};
use crate::record::{Body, Outlined, Record};
use crate::table::PaddedBytes;
use crate::tree::{Node, Outline, SharedContext, Tree};

/// Bytes that the tree of a deferred message takes for each byte of the message, roughly: what game
/// traffic takes.
const TREE_BYTES: usize = 16;
/// Messages that came as outlines are read ahead into trees until these take so many bytes. The
/// others are read when they are written.
const AHEAD: usize = 8 << 20;
/// Bytes that an event takes with its texts, roughly.
const EVENT: usize = 512;

/// What becomes of the messages in a batch that came as outlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Most of them are read into trees.
    Trees,
    /// Some of them may be read into trees: those whose fields decide whether they are wanted.
    Choice,
    /// Whole outlines are enough.
    Outlines,
}

/// Records, in the order in which they were added.
#[derive(Default)]
pub struct Batch {
    heads: Vec<Head>,
    directions: Vec<RecordDirection>,
    /// The places of the directions of the last records of a client and of a server.
    last: [usize; 2],
    last_name: Range,
    /// The trees of messages. The last message's tree is missing until [`take`](Batch::take) brings
    /// it.
    trees: BatchTrees,
    /// Bytes of the contents of all trees, including messages that are not read yet.
    tree_bytes: usize,
    /// The outlines of messages that stay outlines, and those to be used again.
    outlines: Vec<Outline>,
    spare_outlines: Vec<Outline>,
    /// That of messages without problems.
    no_outline: Outline,
    annotation_store: AnnotationStore,
    events: Vec<Event>,
    /// The messages' bytes, one after another.
    bytes: Vec<u8>,
    /// Names of services and messages, and texts, one after another.
    text: String,
    sums: BatchSums,
    /// What deferred messages have to be read with.
    contexts: Vec<SharedContext>,
    /// Streams that are over, each with the number of records before that.
    ended: Vec<(usize, EndedStream)>,
}

impl Batch {
    /// Adds a copy of a record.
    pub fn push(&mut self, record: &Record<'_>) {
        let what = match &record.body {
            Body::Message { message, tree, .. } => {
                let fields = FieldsAt::Tree(self.trees.await_next());
                self.tree_bytes += tree.size();
                self.message(message, fields)
            }
            Body::Event(event) => {
                self.events.push((*event).clone());
                BatchedBody::Event(self.events.len() - 1)
            }
            Body::StreamEnd { end, text, counts, closed_in } => {
                let text = self.keep(text);
                BatchedBody::StreamEnd {
                    end: *end,
                    text,
                    counts: *counts,
                    closed_in: *closed_in,
                    counted: false,
                }
            }
        };
        self.head(record, what);
    }

    /// Adds a message that came as an outline.
    pub fn outline(&mut self, record: &Record<'_, Outlined<'_>>, purpose: Purpose) {
        let Outlined { message, id, outline, .. } = record.body;
        let part = outline.deferred();
        let context = outline.context().map(|context| self.context(context));
        self.tree_bytes += match (purpose, part) {
            (Purpose::Trees, Some(_)) => message.bytes.len() * TREE_BYTES,
            (Purpose::Trees, None) => outline.len() as usize * size_of::<Node>(),
            _ => 0,
        };
        let fields = match (purpose, part) {
            (Purpose::Outlines, None) if outline.problems().is_empty() => {
                FieldsAt::Outline(None, id)
            }
            _ => FieldsAt::Unread(Unread { id, context, part }),
        };
        let what = self.message(message, fields);
        self.head(record, what);
    }

    /// The place of a context. Consecutive messages mostly have the same one.
    fn context(&mut self, context: &SharedContext) -> usize {
        if self.contexts.last().is_none_or(|last| !Arc::ptr_eq(last, context)) {
            self.contexts.push(Arc::clone(context));
        }
        self.contexts.len() - 1
    }

    fn message(&mut self, message: &Message<'_>, fields: FieldsAt) -> BatchedBody {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(message.bytes);
        let Message { number, offset, reply, no_reply, once, .. } = *message;
        let name = self.name(message.name.raw());
        let bytes = (start, self.bytes.len());
        BatchedBody::Message {
            name,
            number,
            offset,
            bytes,
            reply,
            no_reply,
            fields,
            once,
            counted: None,
        }
    }

    fn head<B>(&mut self, record: &Record<'_, B>, what: BatchedBody) {
        let Record { number, at, transport, stream, from, protocol, .. } = *record;
        let (stream, direction, annotations) =
            ((transport, stream), self.direction(record), AnnotationRange::default());
        self.heads.push(Head {
            number,
            at,
            stream,
            from,
            protocol,
            direction,
            annotations,
            selection: Selection::Undecided,
            what,
        });
    }

    /// The place of a record's direction.
    fn direction<B>(&mut self, record: &Record<'_, B>) -> usize {
        let Record { transport, stream, src, dst, service, round_trips, .. } = *record;
        let stream = (transport, stream);
        let last = record.from.of(&mut self.last);
        let next = self.directions.len();
        let same = self.directions.get(*last).is_some_and(|last| {
            let ends = last.stream == stream && last.src == src && last.dst == dst;
            ends && last.service == service && last.round_trips == round_trips
        });
        if !same {
            *last = next;
            self.directions.push(RecordDirection {
                stream,
                src,
                dst,
                service: service.to_string(),
                round_trips,
            });
        }
        *last
    }

    /// Takes the tree of the message that was added last, and leaves an unused one in its place.
    /// Its content is arbitrary.
    pub fn take(&mut self, tree: &mut Tree) {
        self.trees.take(tree);
    }

    /// Reads the messages that came as outlines, as long as their trees do not take too much
    /// memory.
    pub fn read(&mut self, tables: &[LazyTables], reader: &mut OutlineReader) {
        let mut tables = TablesByName::new(tables);
        let mut ahead = 0;
        self.each_head(|batch, head| {
            if ahead < AHEAD {
                batch.prepare(head, &mut tables, reader, None);
                batch.keep_read(head, &mut ahead);
            }
        });
    }

    /// Counts what is in the messages added so far, and chooses among the records. Returns how many
    /// notes of a side's messages of a stream were left out in all.
    pub fn left_out(
        &mut self,
        stream: StreamNumber,
        from: Side,
        reading: &mut BatchReading<'_>,
        counting: Counting<'_>,
    ) -> u64 {
        if reading.choice.is_some() || reading.outlines {
            self.choose(reading, Some(counting));
        } else {
            self.read(reading.tables, reading.reader);
            let mut tables = TablesByName::new(reading.tables);
            self.each_head(|batch, head| {
                if matches!(head.what, BatchedBody::Message { .. }) {
                    batch.prepare(head, &mut tables, reading.reader, Some(counting));
                }
            });
        }
        self.sums.left_out(stream, from, counting)
    }

    /// Calls `write` with every record as it was added, unless it was not chosen, and its
    /// annotations. With `counting`, also counts what is in the messages.
    pub fn each(
        &mut self,
        reading: &mut BatchReading<'_>,
        counting: Option<Counting<'_>>,
        mut write: impl FnMut(&Record<'_>, Annotations<'_>),
    ) {
        let mut tables = TablesByName::new(reading.tables);
        self.each_head(|batch, head| {
            if matches!(head.selection, Selection::Undecided | Selection::Kept) {
                batch.prepare(head, &mut tables, reading.reader, counting);
                let annotations = batch.annotation_store.get(head.annotations);
                batch.show(head, &mut tables, |record| write(record, annotations));
            }
        });
    }

    /// Adds what was counted to the sums of all batches. Nothing more may be counted then.
    pub fn put_sums(&mut self, counting: Counting<'_>) {
        self.ended.iter().for_each(|(_, ended)| self.sums.over(ended.stream));
        counting.put(std::mem::take(&mut self.sums));
    }

    fn each_head(&mut self, mut each: impl FnMut(&mut Batch, &mut Head)) {
        let mut heads = std::mem::take(&mut self.heads);
        heads.iter_mut().for_each(|head| each(self, head));
        self.heads = heads;
    }

    /// Reads a message that is only in its bytes, and counts what is in it, unless that was done.
    fn prepare(
        &mut self,
        head: &mut Head,
        tables: &mut TablesByName<'_>,
        reader: &mut OutlineReader,
        counting: Option<Counting<'_>>,
    ) {
        let stream = head.stream;
        let from = head.from;
        let (bytes, fields, once, counted) = match &mut head.what {
            BatchedBody::Message { bytes, fields, once, counted, .. } => {
                (*bytes, *fields, *once, counted)
            }
            BatchedBody::StreamEnd { counts, counted, .. } => {
                if let Some(counting) = counting.filter(|_| !*counted) {
                    *counted = true;
                    counts.add(self.sums.end(stream, from, counting));
                }
                return;
            }
            BatchedBody::Event(_) => return,
        };
        let tree = match fields {
            FieldsAt::Tree(at) if counting.is_some() && counted.is_none() => self.trees.get_mut(at),
            FieldsAt::Tree(_) | FieldsAt::Outline(..) => return,
            FieldsAt::Unread(Unread { id, context, .. }) => {
                tables.of(head.protocol).map(|tables| {
                    reader.set_context(context.and_then(|context| self.contexts.get(context)));
                    let tree = self.trees.free();
                    reader.read(tables, id, from, padded_bytes(&self.bytes, bytes), tree);
                    tree
                })
            }
        };
        let Some(tree) = tree else { return };
        match (*counted, once) {
            (Some(keeps_first), Some(text)) => drop(tree.leave_out(text, keeps_first)),
            (Some(_), None) => {}
            (None, _) => {
                let message = MessageToCount { stream, from, length: bytes.1 - bytes.0, once };
                *counted = counting.map(|counting| self.sums.message(&message, tree, counting));
            }
        }
    }

    /// Calls `to` with a record. A message that is still only in its bytes has to be the last one
    /// that was [prepared](Batch::prepare).
    fn show(&self, head: &Head, tables: &mut TablesByName<'_>, to: impl FnOnce(&Record<'_>)) {
        let Head { from, protocol, .. } = *head;
        let Some(direction) = self.directions.get(head.direction) else { return };
        let message;
        let body = match head.what {
            BatchedBody::Message {
                name,
                number,
                offset,
                bytes,
                reply,
                no_reply,
                fields,
                once,
                ..
            } => {
                let Some(tables) = tables.of(protocol) else { return };
                let tree = match fields {
                    FieldsAt::Tree(at) => self.trees.get(at),
                    FieldsAt::Unread(_) => self.trees.get_free(),
                    FieldsAt::Outline(..) => None,
                };
                let Some(tree) = tree else { return };
                let name = Captured::new(self.text(name));
                let bytes = message_bytes(&self.bytes, bytes);
                let service = direction.service.as_str();
                message =
                    Message { name, number, service, from, offset, bytes, reply, no_reply, once };
                Body::Message { message: &message, tables, tree }
            }
            BatchedBody::Event(at) => {
                let Some(event) = self.events.get(at) else { return };
                Body::Event(event)
            }
            BatchedBody::StreamEnd { end, text, counts, closed_in, .. } => {
                Body::StreamEnd { end, text: self.text(text), counts, closed_in }
            }
        };
        to(&record(head, direction, body));
    }

    /// Whether it has no records.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// Bytes of memory it takes, roughly.
    pub fn bytes(&self) -> usize {
        size_of_val(self.heads.as_slice())
            + self.tree_bytes
            + self.annotation_store.bytes()
            + self.events.len() * EVENT
            + self.bytes.len()
            + self.text.len()
    }

    /// Empties it. Each vector retains up to `keep` bytes of its allocation, and the trees together
    /// up to four times as much.
    pub fn clear(&mut self, keep: usize) {
        self.heads.clear();
        self.heads.shrink_to(keep / size_of::<Head>());
        self.directions.clear();
        self.directions.shrink_to(keep / size_of::<RecordDirection>());
        self.tree_bytes = 0;
        self.trees.clear(keep * 4);
        self.annotation_store.clear(keep);
        self.events.clear();
        self.bytes.clear();
        self.bytes.shrink_to(keep);
        self.contexts.clear();
        self.ended.clear();
        self.spare_outlines.append(&mut self.outlines);
        self.spare_outlines.truncate(keep / size_of::<Outline>());
        self.text.clear();
        self.text.shrink_to(keep);
        self.last_name = Range::default();
    }

    /// Copies a name into the batch, if it is not that of the last message.
    fn name(&mut self, name: &str) -> Range {
        if self.text(self.last_name) != name {
            self.last_name = self.keep(name);
        }
        self.last_name
    }

    /// Copies a text into the batch.
    fn keep(&mut self, text: &str) -> Range {
        let start = self.text.len();
        self.text.push_str(text);
        (start, self.text.len())
    }

    fn text(&self, place: Range) -> &str {
        self.text.get(place.0..place.1).unwrap_or("")
    }
}

/// What a batch is read with.
pub struct BatchReading<'r> {
    /// The tables of the run.
    pub tables: &'r [LazyTables],
    /// Reads messages that came as outlines.
    pub reader: &'r mut OutlineReader,
    /// Which records are wanted; all, if there is none.
    pub choice: Option<&'r dyn RecordChoice>,
    /// Whether the names in records that are not wanted matter.
    pub learns: bool,
    /// Whether outlines are enough for messages whose trees the choice does not need.
    pub outlines: bool,
}

/// The bytes of a message, of those of all.
fn message_bytes(all: &[u8], place: Range) -> &[u8] {
    all.get(place.0..place.1).unwrap_or(&[])
}

/// The bytes of a message, with those of the messages behind it.
fn padded_bytes(all: &[u8], place: Range) -> PaddedBytes<'_> {
    PaddedBytes { bytes: all.get(place.0..).unwrap_or(&[]), length: place.1 - place.0 }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use std::net::SocketAddr;

    use super::*;
    use crate::capture::Moment;
    use crate::proto::{Transport, protocol_named};
    use crate::record::RoundTrips;
    use crate::table::{Evaluator, MessageLimits, Outcome, parse_hex};
    use crate::tree::Outline;

    /// A net message of the game, with a date.
    const MESSAGE: &str = "0200 b8020000 12000000 b802010002008527006be1c3070000000000";

    /// How many problems a message that came as an outline has when it is written.
    fn problems_within(limits: MessageLimits) -> usize {
        let tables = [LazyTables::new(protocol_named("moul").unwrap(), Vec::new()).unwrap()];
        let bytes = parse_hex(MESSAGE).unwrap();
        let game = tables[0].get().service_named("game").unwrap();
        let mut outline = Outline::default();
        let said = Evaluator::default().message(
            tables[0].get(),
            game,
            Side::Server.index(),
            &bytes,
            &mut outline,
        );
        let Outcome::Message(id, _) = said else { panic!("{said:?}") };
        assert!(outline.is_whole() && outline.problems().is_empty());
        let at = SocketAddr::from(([127, 0, 0, 1], 14617));
        let name = "Game2Cli_PropagateBuffer";
        let message = Message {
            name: Captured::new(name),
            number: Some(2),
            service: "game",
            from: Side::Server,
            offset: 0,
            bytes: &bytes,
            reply: None,
            no_reply: false,
            once: None,
        };
        let mut batch = Batch::default();
        let record = Record {
            number: 1,
            at: Moment::default(),
            transport: Transport::Tcp,
            stream: 0,
            src: at,
            dst: at,
            from: Side::Server,
            protocol: "moul",
            service: "game",
            round_trips: RoundTrips::default(),
            body: Outlined { message: &message, id, tables: tables[0].get(), outline: &outline },
        };
        batch.outline(&record, Purpose::Trees);
        let mut found = Vec::new();
        let reader = &mut OutlineReader::new(limits);
        batch.each(
            &mut BatchReading {
                tables: &tables,
                reader,
                choice: None,
                learns: false,
                outlines: false,
            },
            None,
            |record, _| {
                let Body::Message { message, tree, .. } = &record.body else { panic!("a message") };
                assert_eq!((message.name.raw(), message.bytes), (name, &bytes[..]));
                found.push(tree.problems().len());
            },
        );
        assert_eq!(found.len(), 1);
        found[0]
    }

    #[test]
    fn an_outlined_message_is_read_again_within_the_same_bounds() {
        assert_eq!(problems_within(MessageLimits::default()), 0);
        assert!(problems_within(MessageLimits { nodes: 4, ..MessageLimits::default() }) > 0);
    }
}
