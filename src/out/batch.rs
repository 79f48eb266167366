//! Records that wait to be written: copies of what outputs are handed, packed into a few vectors that are used again. Only trees are not
//! copied: whoever read them gets others for them.
//!
//! It knows what a record is made of, and neither who fills it nor who writes what is in it.

use std::net::SocketAddr;

use super::record::{Body, Counts, Record};
use super::tree::{History, Past, PastAt, Pasts};
use crate::proto::{Event, LazyTables, Message, Moment, Reply, Side, Transport};
use crate::tree::Tree;

/// What an event takes with its texts, about.
const EVENT: usize = 512;

/// Records in the order they were added.
#[derive(Default)]
pub struct Batch {
    heads: Vec<Head>,
    /// The trees of the messages among them, in their order. The last message's is there once nobody needs it any more.
    trees: Vec<Tree>,
    /// How many messages there are.
    messages: usize,
    /// Bytes that the contents of their trees take.
    tree_bytes: usize,
    /// Trees to be used again.
    spare: Vec<Tree>,
    pasts: Pasts,
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
    past: PastAt,
    what: What,
}

enum What {
    Message { name: Place, number: Option<u64>, offset: u64, bytes: Place, reply: Option<Reply>, tree: usize },
    Event(usize),
    StreamEnd { text: Place, counts: Counts },
}

/// Start and end in one of the vectors.
type Place = (usize, usize);

impl Batch {
    /// Adds a copy of a record; trees need the history of the records before it.
    pub fn push(&mut self, record: &Record<'_>, history: Option<&mut History>) {
        let past = history.map(|history| history.next(record, &mut self.pasts)).unwrap_or_default();
        let what = match &record.body {
            Body::Message { message, tree, .. } => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(message.bytes);
                What::Message {
                    name: self.keep(message.name),
                    number: message.number,
                    offset: message.offset,
                    bytes: (start, self.bytes.len()),
                    reply: message.reply,
                    tree: self.expect(tree),
                }
            }
            Body::Event(event) => {
                self.events.push((*event).clone());
                What::Event(self.events.len() - 1)
            }
            Body::StreamEnd { text, counts } => What::StreamEnd { text: self.keep(text), counts: *counts },
        };
        let (protocol, service) = (self.keep(record.protocol), self.keep(record.service));
        let Record { number, at, transport, stream, src, dst, from, .. } = *record;
        self.heads.push(Head { number, at, transport, stream, src, dst, from, protocol, service, past, what });
    }

    /// Takes the tree of the message that was added last; another one, whose content means nothing, is put in its place.
    pub fn take(&mut self, tree: &mut Tree) {
        if self.trees.len() < self.messages {
            let another = self.spare.pop().unwrap_or_default();
            self.trees.push(std::mem::replace(tree, another));
        }
    }

    /// Shows every record to `write`, as it was. The tables are those of the run.
    pub fn each(&self, tables: &[LazyTables], mut write: impl FnMut(&Record<'_>, Past<'_>)) {
        for head in &self.heads {
            let protocol = self.text(head.protocol);
            let message;
            let body = match head.what {
                What::Message { name, number, offset, bytes, reply, tree: at } => {
                    let Some(tables) = tables.iter().find(|t| t.protocol().name() == protocol) else { continue };
                    let Some(tree) = self.trees.get(at) else { continue };
                    message = Message {
                        name: self.text(name),
                        number,
                        service: self.text(head.service),
                        from: head.from,
                        offset,
                        bytes: self.bytes.get(bytes.0..bytes.1).unwrap_or(&[]),
                        reply,
                    };
                    Body::Message { message: &message, tables: tables.get(), tree }
                }
                What::Event(at) => {
                    let Some(event) = self.events.get(at) else { continue };
                    Body::Event(event)
                }
                What::StreamEnd { text, counts } => Body::StreamEnd { text: self.text(text), counts },
            };
            let service = self.text(head.service);
            let Head { number, at, transport, stream, src, dst, from, .. } = *head;
            let record = Record { number, at, transport, stream, src, dst, from, protocol, service, body };
            write(&record, self.pasts.get(head.past));
        }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// How many bytes it takes, about.
    pub fn bytes(&self) -> usize {
        size_of_val(self.heads.as_slice())
            + self.tree_bytes
            + self.pasts.bytes()
            + self.events.len() * EVENT
            + self.bytes.len()
            + self.text.len()
    }

    /// Empties it, keeping of each part what was allocated up to so many bytes.
    pub fn clear(&mut self, keep: usize) {
        self.heads.clear();
        self.heads.shrink_to(keep / size_of::<Head>());
        self.messages = 0;
        self.tree_bytes = 0;
        self.keep_trees(keep * 4);
        self.pasts.clear(keep);
        self.events.clear();
        self.bytes.clear();
        self.bytes.shrink_to(keep);
        self.text.clear();
        self.text.shrink_to(keep);
    }

    /// A message's tree will follow; its place.
    fn expect(&mut self, tree: &Tree) -> usize {
        self.messages += 1;
        self.tree_bytes += tree.size();
        self.messages - 1
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
