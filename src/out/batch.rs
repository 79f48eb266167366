//! Records that wait to be written: copies of what outputs are handed, packed into a few vectors that are used again. Only trees are not
//! copied: whoever read them gets others for them. A message that came in outline is kept as its bytes, and read by who writes it.
//!
//! It knows what a record is made of, and neither who fills it nor who writes what is in it.

use std::net::SocketAddr;

use super::tree::{AnnotationRange, AnnotationStore, Annotations, Annotator};
use crate::capture::Moment;
use crate::captured::Captured;
use crate::proto::{Event, LazyTables, Message, Reply, Side, Transport};
use crate::record::{Body, Counts, Outlined, Record};
use crate::table::{Evaluator, MessageId, MessageLimits, Tables};
use crate::tree::{Node, Tree};

/// What an event takes with its texts, about.
const EVENT: usize = 512;

/// Records in the order they were added.
#[derive(Default)]
pub struct Batch {
    heads: Vec<Head>,
    /// The trees of messages among them. The last message's is there once nobody needs it any more.
    trees: Vec<Tree>,
    /// How many of them there will be.
    expected: usize,
    /// Bytes that the contents of all trees take, or will take once all messages are read.
    tree_bytes: usize,
    /// Trees to be used again.
    spare: Vec<Tree>,
    annotation_store: AnnotationStore,
    events: Vec<Event>,
    /// The messages' bytes, one after another.
    bytes: Vec<u8>,
    /// Names of protocols, services and messages, and texts, one after another.
    text: String,
}

/// A record without what it refers to.
struct Head {
    number: u64,
    at: Moment,
    transport: Transport,
    stream: u32,
    src: SocketAddr,
    dst: SocketAddr,
    from: Side,
    protocol: Place,
    service: Place,
    annotations: AnnotationRange,
    what: What,
}

enum What {
    Message { name: Place, number: Option<u64>, offset: u64, bytes: Place, reply: Option<Reply>, fields: Fields },
    Event(usize),
    StreamEnd { text: Place, counts: Counts },
}

/// Where a message's fields are.
#[derive(Clone, Copy)]
enum Fields {
    /// In a tree, by its place.
    Tree(usize),
    /// Only in its bytes.
    Unread(MessageId),
}

/// What reads messages that came in outline: all there is to know of these is in their bytes.
pub struct Reader {
    evaluator: Evaluator,
    tree: Tree,
}

impl Reader {
    /// One that keeps to the bounds which the outlines were read within.
    pub fn new(limits: MessageLimits) -> Reader {
        let mut evaluator = Evaluator::default();
        evaluator.limits = limits;
        Reader { evaluator, tree: Tree::new() }
    }

    fn read(&mut self, tables: &Tables, id: MessageId, from: Side, bytes: &[u8]) {
        let Some(def) = tables.message(id) else { return self.tree.clear() };
        self.evaluator.message(tables, def.service, from.index(), bytes, &mut self.tree);
    }
}

/// Start and end in one of the vectors.
type Place = (usize, usize);

impl Batch {
    /// Adds a copy of a record.
    pub fn push(&mut self, record: &Record<'_>) {
        let what = match &record.body {
            Body::Message { message, tree, .. } => {
                let fields = Fields::Tree(self.expected);
                self.expected += 1;
                self.tree_bytes += tree.size();
                self.message(message, fields)
            }
            Body::Event(event) => {
                self.events.push((*event).clone());
                What::Event(self.events.len() - 1)
            }
            Body::StreamEnd { text, counts } => What::StreamEnd { text: self.keep(text), counts: *counts },
        };
        self.head(record, what);
    }

    /// Finds the annotations of the record that was added last.
    pub fn annotate(&mut self, record: &Record<'_>, annotator: &mut Annotator) {
        let own = annotator.next(record, &mut self.annotation_store);
        if let Some(head) = self.heads.last_mut() {
            head.annotations = own;
        }
    }

    /// Adds a message that came in outline.
    pub fn outline(&mut self, record: &Record<'_, Outlined<'_>>) {
        let Outlined { message, id, outline, .. } = record.body;
        self.tree_bytes += outline.len() as usize * size_of::<Node>();
        let what = self.message(message, Fields::Unread(id));
        self.head(record, what);
    }

    fn message(&mut self, message: &Message<'_>, fields: Fields) -> What {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(message.bytes);
        let Message { number, offset, reply, .. } = *message;
        let (name, bytes) = (self.keep(message.name.raw()), (start, self.bytes.len()));
        What::Message { name, number, offset, bytes, reply, fields }
    }

    fn head<B>(&mut self, record: &Record<'_, B>, what: What) {
        let (protocol, service) = (self.keep(record.protocol), self.keep(record.service));
        let Record { number, at, transport, stream, src, dst, from, .. } = *record;
        let annotations = AnnotationRange::default();
        self.heads.push(Head { number, at, transport, stream, src, dst, from, protocol, service, annotations, what });
    }

    /// Takes the tree of the message that was added last; another one, whose content means nothing, is put in its place.
    pub fn take(&mut self, tree: &mut Tree) {
        if self.trees.len() < self.expected {
            let another = self.spare.pop().unwrap_or_default();
            self.trees.push(std::mem::replace(tree, another));
        }
    }

    /// Reads all messages that are yet to be read.
    pub fn read(&mut self, tables: &[LazyTables], reader: &mut Reader) {
        for head in &mut self.heads {
            let What::Message { bytes, fields, .. } = &mut head.what else { continue };
            let Fields::Unread(id) = *fields else { continue };
            let protocol = self.text.get(head.protocol.0..head.protocol.1).unwrap_or("");
            let Some(tables) = LazyTables::of(tables, protocol) else { continue };
            reader.read(tables.get(), id, head.from, self.bytes.get(bytes.0..bytes.1).unwrap_or(&[]));
            *fields = Fields::Tree(self.trees.len());
            let another = self.spare.pop().unwrap_or_default();
            self.trees.push(std::mem::replace(&mut reader.tree, another));
        }
        self.expected = self.trees.len();
    }

    /// Finds out what earlier records have to do with these, which have all been read.
    pub fn remember(&mut self, tables: &[LazyTables], reader: &mut Reader, history: &mut Annotator) {
        let (mut heads, mut annotation_store) =
            (std::mem::take(&mut self.heads), std::mem::take(&mut self.annotation_store));
        for head in &mut heads {
            let mut annotations = AnnotationRange::default();
            self.show(head, tables, reader, |record| annotations = history.next(record, &mut annotation_store));
            head.annotations = annotations;
        }
        (self.heads, self.annotation_store) = (heads, annotation_store);
    }

    /// Shows every record to `write`, as it was. The tables are those of the run.
    pub fn each(
        &self,
        tables: &[LazyTables],
        reader: &mut Reader,
        mut write: impl FnMut(&Record<'_>, Annotations<'_>),
    ) {
        for head in &self.heads {
            self.show(head, tables, reader, |record| write(record, self.annotation_store.get(head.annotations)));
        }
    }

    fn show(&self, head: &Head, tables: &[LazyTables], reader: &mut Reader, to: impl FnOnce(&Record<'_>)) {
        let (protocol, service) = (self.text(head.protocol), self.text(head.service));
        let Head { number, at, transport, stream, src, dst, from, .. } = *head;
        let message;
        let body = match head.what {
            What::Message { name, number, offset, bytes, reply, fields } => {
                let Some(tables) = LazyTables::of(tables, protocol) else { return };
                let (name, bytes) = (self.text(name), self.bytes.get(bytes.0..bytes.1).unwrap_or(&[]));
                let tree = match fields {
                    Fields::Tree(at) => self.trees.get(at),
                    Fields::Unread(id) => {
                        reader.read(tables.get(), id, from, bytes);
                        Some(&reader.tree)
                    }
                };
                let Some(tree) = tree else { return };
                message = Message { name: Captured::new(name), number, service, from, offset, bytes, reply };
                Body::Message { message: &message, tables: tables.get(), tree }
            }
            What::Event(at) => {
                let Some(event) = self.events.get(at) else { return };
                Body::Event(event)
            }
            What::StreamEnd { text, counts } => Body::StreamEnd { text: self.text(text), counts },
        };
        to(&Record { number, at, transport, stream, src, dst, from, protocol, service, body });
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// How many bytes it takes, about.
    pub fn bytes(&self) -> usize {
        size_of_val(self.heads.as_slice())
            + self.tree_bytes
            + self.annotation_store.bytes()
            + self.events.len() * EVENT
            + self.bytes.len()
            + self.text.len()
    }

    /// Empties it, keeping of each part what was allocated up to so many bytes.
    pub fn clear(&mut self, keep: usize) {
        self.heads.clear();
        self.heads.shrink_to(keep / size_of::<Head>());
        self.expected = 0;
        self.tree_bytes = 0;
        self.keep_trees(keep * 4);
        self.annotation_store.clear(keep);
        self.events.clear();
        self.bytes.clear();
        self.bytes.shrink_to(keep);
        self.text.clear();
        self.text.shrink_to(keep);
    }

    /// Keeps trees to be used again, as many as take so many bytes.
    fn keep_trees(&mut self, keep: usize) {
        self.spare.append(&mut self.trees);
        let mut room = keep;
        self.spare.retain(|tree| match room.checked_sub(size_of::<Tree>() + tree.allocated()) {
            Some(rest) => {
                room = rest;
                true
            }
            None => false,
        });
    }

    fn keep(&mut self, text: &str) -> Place {
        let start = self.text.len();
        self.text.push_str(text);
        (start, self.text.len())
    }

    fn text(&self, place: Place) -> &str {
        self.text.get(place.0..place.1).unwrap_or("")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;
    use crate::proto::protocol_named;
    use crate::table::{Outcome, parse_hex};
    use crate::tree::Outline;

    /// A net message of the game, with a date.
    const MESSAGE: &str = "0200 b8020000 12000000 b802010002008527006be1c3070000000000";

    /// The problems of a message that came in outline, as it is written.
    fn problems_within(limits: MessageLimits) -> usize {
        let tables = [LazyTables::new(protocol_named("moul").unwrap(), Vec::new()).unwrap()];
        let bytes = parse_hex(MESSAGE).unwrap();
        let game = tables[0].get().service_named("game").unwrap();
        let mut outline = Outline::default();
        let said = Evaluator::default().message(tables[0].get(), game, Side::Server.index(), &bytes, &mut outline);
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
        };
        let mut batch = Batch::default();
        batch.outline(&Record {
            number: 1,
            at: Moment::default(),
            transport: Transport::Tcp,
            stream: 0,
            src: at,
            dst: at,
            from: Side::Server,
            protocol: "moul",
            service: "game",
            body: Outlined { message: &message, id, tables: tables[0].get(), outline: &outline },
        });
        let mut found = Vec::new();
        batch.each(&tables, &mut Reader::new(limits), |record, _| {
            let Body::Message { message, tree, .. } = &record.body else { panic!("a message") };
            assert_eq!((message.name.raw(), message.bytes), (name, &bytes[..]));
            found.push(tree.problems().len());
        });
        assert_eq!(found.len(), 1);
        found[0]
    }

    #[test]
    fn a_message_that_came_in_outline_is_read_within_the_bounds_it_was_outlined_in() {
        assert_eq!(problems_within(MessageLimits::default()), 0);
        assert!(problems_within(MessageLimits { nodes: 4, ..MessageLimits::default() }) > 0);
    }
}
