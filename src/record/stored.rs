//! A record with copies of all that it refers to: for threads that write records later, and for
//! users who keep them. A large tree is not copied but taken from whoever read it.

use std::net::SocketAddr;

use super::names::NameStore;
use super::{Body, EndedBy, Record, RoundTrips};
use crate::capture::{Moment, Time};
use crate::captured::Captured;
use crate::session::{Counts, Event, Message, Reply, Side, Transport};
use crate::table::Tables;
use crate::tree::Tree;

/// A tree that has this many times the memory of its content stays with who read it, and its
/// content is copied: it would take all of its memory along, and who reads would have to allocate
/// as much again.
const WIDE: usize = 4;

/// A record that owns what it refers to. It can be filled again, and keeps what was allocated.
pub struct StoredRecord {
    pub(crate) head: StoredHead,
    pub(crate) service: String,
    names: NameStore,
    pub(crate) body: StoredBody,
    /// The name of a message, or the text of a stream's end.
    pub(crate) text: String,
    /// A message's bytes.
    pub(crate) bytes: Vec<u8>,
    /// A message's tree, once it was [taken](StoredRecord::take_tree).
    tree: Tree,
}

/// The parts of a record that refer to nothing.
#[derive(Clone, Copy)]
pub(crate) struct StoredHead {
    pub(crate) number: u64,
    pub(crate) at: Moment,
    pub(crate) start: Time,
    pub(crate) transport: Transport,
    pub(crate) stream: u32,
    pub(crate) src: SocketAddr,
    pub(crate) dst: SocketAddr,
    pub(crate) from: Side,
    pub(crate) protocol: &'static str,
    pub(crate) round_trips: RoundTrips,
}

/// What the record is. Texts, bytes and the tree are beside it.
pub(crate) enum StoredBody {
    Message { number: Option<u64>, offset: u64, reply: Option<Reply>, no_reply: bool },
    Event(Event),
    StreamEnd { end: EndedBy, counts: Counts, closed_in: Option<u64> },
}

impl StoredHead {
    fn of(record: &Record<'_>) -> StoredHead {
        let Record {
            number,
            at,
            start,
            transport,
            stream,
            src,
            dst,
            from,
            protocol,
            round_trips,
            ..
        } = *record;
        StoredHead { number, at, start, transport, stream, src, dst, from, protocol, round_trips }
    }
}

impl StoredBody {
    fn of(body: &Body<'_>) -> StoredBody {
        match *body {
            Body::Message { message, .. } => {
                let Message { number, offset, reply, no_reply, .. } = *message;
                StoredBody::Message { number, offset, reply, no_reply }
            }
            Body::Event(event) => StoredBody::Event(event.clone()),
            Body::StreamEnd { end, counts, closed_in, .. } => {
                StoredBody::StreamEnd { end, counts, closed_in }
            }
        }
    }
}

impl StoredRecord {
    /// A copy of a record. The tree of a message is empty until it is
    /// [taken](StoredRecord::take_tree).
    pub fn new(record: &Record<'_>) -> StoredRecord {
        let mut stored = StoredRecord {
            head: StoredHead::of(record),
            service: String::new(),
            names: NameStore::default(),
            body: StoredBody::of(&record.body),
            text: String::new(),
            bytes: Vec::new(),
            tree: Tree::new(),
        };
        stored.copy_texts(record);
        stored
    }

    /// Becomes a copy of another record.
    pub fn store(&mut self, record: &Record<'_>) {
        self.head = StoredHead::of(record);
        self.body = StoredBody::of(&record.body);
        self.copy_texts(record);
    }

    fn copy_texts(&mut self, record: &Record<'_>) {
        self.service.clear();
        self.service.push_str(record.service);
        self.names.copy_from(record.names);
        self.text.clear();
        self.bytes.clear();
        match record.body {
            Body::Message { message, .. } => {
                self.text.push_str(message.name.raw());
                self.bytes.extend_from_slice(message.bytes);
            }
            Body::Event(_) => {}
            Body::StreamEnd { text, .. } => self.text.push_str(text),
        }
    }

    /// Takes a message's tree, and leaves another one in its place, whose content is arbitrary.
    pub fn take_tree(&mut self, tree: &mut Tree) {
        if tree.allocated() > tree.size().saturating_mul(WIDE) {
            self.tree.copy_from(tree);
        } else {
            std::mem::swap(&mut self.tree, tree);
        }
    }

    /// The protocol's name.
    pub fn protocol(&self) -> &'static str {
        self.head.protocol
    }

    /// Bytes that its content takes, without what is allocated beyond that.
    pub fn size(&self) -> usize {
        let own = match &self.body {
            StoredBody::Message { .. } => self.tree.size(),
            StoredBody::Event(event) => event.bytes.len() + event.text.len(),
            StoredBody::StreamEnd { .. } => 0,
        };
        size_of::<StoredRecord>() + self.bytes.len() + self.text.len() + own
    }

    /// Bytes that are allocated for it.
    pub fn allocated(&self) -> usize {
        size_of::<StoredRecord>()
            + self.bytes.capacity()
            + self.text.capacity()
            + self.names.allocated()
            + self.tree.allocated()
    }

    /// Calls `show` with the record. `tables` are those of its protocol.
    pub fn view<T>(&self, tables: &Tables, show: impl FnOnce(&Record<'_>) -> T) -> T {
        let StoredHead {
            number,
            at,
            start,
            transport,
            stream,
            src,
            dst,
            from,
            protocol,
            round_trips,
        } = self.head;
        let service = self.service.as_str();
        let message;
        let body = match &self.body {
            StoredBody::Message { number, offset, reply, no_reply } => {
                message = Message {
                    name: Captured::new(&self.text),
                    number: *number,
                    service,
                    from,
                    offset: *offset,
                    bytes: &self.bytes,
                    reply: *reply,
                    no_reply: *no_reply,
                };
                Body::Message { message: &message, tables, tree: &self.tree }
            }
            StoredBody::Event(event) => Body::Event(event),
            StoredBody::StreamEnd { end, counts, closed_in } => Body::StreamEnd {
                end: *end,
                text: &self.text,
                counts: *counts,
                closed_in: *closed_in,
            },
        };
        show(&Record {
            number,
            at,
            start,
            transport,
            stream,
            src,
            dst,
            from,
            protocol,
            service,
            round_trips,
            names: self.names.names(),
            body,
        })
    }
}
