//! The output of a session: messages with their trees, events, and the accounting of bytes.

use super::{Counts, Moment, Options, PassedBytes, Secret, Side};
use crate::captured::Captured;
use crate::digits::{counted, plural};
use crate::table::{MessageDef, Tables};
use crate::tree::Tree;

/// A message that a session emits: everything that is not in its tree.
#[derive(Clone, Debug)]
pub struct Message<'a> {
    /// Its name, which in some protocols comes from the wire.
    pub name: Captured<'a>,
    /// Its number as on the wire.
    pub number: Option<u64>,
    /// Its service.
    pub service: &'a str,
    /// The side that sent it.
    pub from: Side,
    /// Offset of its first byte in its direction; 0 for a datagram.
    pub offset: u64,
    /// Its bytes. Positions in the tree's captured buffer count from the first of them.
    pub bytes: &'a [u8],
    /// The request that it answers, and the time since.
    pub reply: Option<Reply>,
    /// This message is owed no reply, although its table says that it expects one: a router passes
    /// it on to all, or it was sent again.
    pub no_reply: bool,
}

impl Message<'_> {
    /// Whether the protocol promises a reply. `def` is the message's definition in the tables.
    pub fn expects_reply(&self, def: &MessageDef) -> bool {
        def.expects_reply && !self.no_reply
    }
}

/// The request that a message answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reply {
    /// The request's record number.
    pub record: u64,
    /// Nanoseconds since the request.
    pub nanos: i64,
}

/// The kind of an event: anything that happens in a connection and is not a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A session key was found and proved.
    Key {
        /// The file it came from.
        key_file: String,
        /// The secret that opens only this connection. Only outputs that the user asked to hold
        /// secrets may show it.
        secret: Secret,
    },
    /// No key for this connection was given.
    NoKey,
    /// No key gave a message, although every key was tried.
    WrongKey,
    /// Bytes that were never captured.
    Gap,
    /// Bytes that belong to no message.
    Undecoded,
    /// Framing was found again.
    Resync {
        /// Bytes between the loss of framing and here.
        passed_over: u64,
    },
    /// A bound was reached.
    Limit {
        /// The bound's name, as in `docs/architecture.md`.
        limit: &'static str,
    },
    /// A request never got its reply, until its stream or the capture ended.
    Unanswered {
        /// The request's record.
        request: u64,
        /// The request's message.
        message: String,
        /// How long it waited, in nanoseconds.
        waited: i64,
        /// Whether a part of its reply came.
        part: bool,
    },
    /// A packet's checksum is wrong.
    Checksum,
    /// A circuit or link was opened.
    Open,
    /// A circuit or link was closed.
    Close,
    /// Anything else that a user should know.
    Remark,
}

/// An event of one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// The service, where it is known.
    pub service: String,
    /// In which direction.
    pub from: Side,
    /// The offset of the bytes it is about, in that direction.
    pub offset: Option<u64>,
    /// How many bytes it is about.
    pub length: Option<u64>,
    /// The bytes that became no message: those of an [`EventKind::Undecoded`], and those that an
    /// [`EventKind::Resync`] passed over. Where there are more than [`Options::max_undecoded`],
    /// only the first ones, and [`Event::cut`] says how many are left out. Empty for all other
    /// kinds.
    pub bytes: Vec<u8>,
    /// A text for people.
    pub text: String,
}

impl Event {
    /// An event about no bytes in particular.
    pub fn new(kind: EventKind, service: &str, from: Side, text: impl Into<String>) -> Event {
        Event {
            kind,
            service: service.to_string(),
            from,
            offset: None,
            length: None,
            bytes: Vec::new(),
            text: text.into(),
        }
    }

    /// A gap: `length` bytes from `offset` on were never captured.
    pub fn gap(service: &str, from: Side, offset: u64, length: u64) -> Event {
        let text =
            format!("{} {} never captured", counted(length, "byte"), plural(length, "was", "were"));
        Event::new(EventKind::Gap, service, from, text).about(offset, length)
    }

    /// A session passed over bytes that became no message, and goes on behind them; `why` says what
    /// it found there.
    pub fn resync(service: &str, from: Side, passed: PassedBytes, why: &str) -> Event {
        let text = format!("{} passed over; {why}", counted(passed.length, "byte"));
        let kind = EventKind::Resync { passed_over: passed.length };
        let event = Event::new(kind, service, from, text);
        event.about(passed.offset + passed.length, 0).with_passed(passed)
    }

    /// What an [`EventKind::Limit`] says of `waiting` bytes of a message whose rest has not come,
    /// when all streams together hold too much.
    pub fn given_up_text(waiting: usize) -> String {
        let bytes = counted(waiting, "byte");
        let are = plural(waiting, "is", "are");
        format!("{bytes} that waited for the rest of a message {are} given up to make room")
    }

    /// The same event, about `length` bytes from `offset` on in its direction.
    #[must_use]
    pub fn about(self, offset: u64, length: u64) -> Event {
        Event { offset: Some(offset), length: Some(length), ..self }
    }

    /// The same event, about `bytes`, which begin at `offset` in its direction and became no
    /// message. It shows as many bytes as `options` allows.
    #[must_use]
    pub fn showing(self, offset: u64, bytes: &[u8], options: &Options) -> Event {
        let shown = bytes.get(..options.max_undecoded).unwrap_or(bytes).to_vec();
        Event { bytes: shown, ..self.about(offset, bytes.len() as u64) }
    }

    /// The same event, showing the bytes that were passed.
    #[must_use]
    pub fn with_passed(self, passed: PassedBytes) -> Event {
        Event { bytes: passed.bytes, ..self }
    }

    /// Counts the bytes of the event: those of a gap as lost, those that became no message as
    /// undecoded.
    pub fn counts(&self) -> Counts {
        let length = self.length.unwrap_or(0);
        let undecoded = |bytes| Counts { payload: bytes, undecoded: bytes, ..Counts::default() };
        match self.kind {
            EventKind::Gap => Counts { lost: length, ..Counts::default() },
            EventKind::Undecoded => undecoded(length),
            EventKind::Resync { passed_over } => undecoded(passed_over),
            _ => Counts::default(),
        }
    }

    /// How many of the bytes that the event is about became no message and are not shown in
    /// `bytes`.
    pub fn cut(&self) -> u64 {
        self.counts().undecoded.saturating_sub(self.bytes.len() as u64)
    }
}

/// How to count payload bytes that are in no message and no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// They are encrypted, and there is no key for them.
    Closed,
    /// They belong to another protocol, which is not decoded.
    Opaque,
}

/// The bytes in which a message begins, and their place in the stream.
#[derive(Clone, Copy)]
pub struct MessageBytes<'a> {
    /// The side that sent them.
    pub from: Side,
    /// Offset of the first one in its direction.
    pub offset: u64,
    /// The bytes.
    pub bytes: &'a [u8],
    /// The frame that is read now.
    pub at: Moment,
}

/// Where a session's messages and events go.
///
/// A session calls this from within the calls it gets, in the order of its records. The receiver
/// keeps at most a tree that it swapped: the session may reuse bytes and outline as soon as a call
/// returns. A session reads what it needs from the tree before the call.
///
/// The receiver counts bytes as follows. The tree of a message says which of its bytes are
/// explained, opaque or undecoded. The `length` of an [`EventKind::Undecoded`] and the
/// `passed_over` of an [`EventKind::Resync`] are undecoded. The `length` of an [`EventKind::Gap`]
/// is lost. [`account`](Emit::account) says for itself how its bytes count. The session reports
/// each byte once.
pub trait Emit {
    /// A message and its tree. `at` is the frame that completed it. The receiver may swap in
    /// another tree, so the session must not use the tree after the call. Returns the message's
    /// record number, by which later messages may refer to it.
    fn message(
        &mut self,
        at: Moment,
        message: &Message<'_>,
        tables: &Tables,
        tree: &mut Tree,
    ) -> u64;
    /// An event.
    fn event(&mut self, at: Moment, event: Event);
    /// Payload bytes that became no message and are in no event.
    fn account(&mut self, from: Side, share: Share, bytes: u64);
    /// Plaintext of a stream, for outputs that follow it: the offset in the direction and the
    /// bytes. Called only by sessions that are not [clear](super::Session::is_clear): the plaintext
    /// of all others is what was captured.
    fn plaintext(&mut self, _from: Side, _offset: u64, _bytes: &[u8]) {}
}
