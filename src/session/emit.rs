//! What a session gives back: messages with their trees, events, and the accounting of bytes.

use super::{Counts, Moment, Options, PassedBytes, Secret, Side};
use crate::captured::Captured;
use crate::table::{MessageDef, MessageId, Tables};
use crate::tree::{Outline, Tree};

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
    /// The record it answers and the time since.
    pub reply: Option<Reply>,
    /// No reply to this one is promised, although its table says that such messages expect one: a question that a router passes on to all, or a
    /// message sent again.
    pub no_reply: bool,
}

impl Message<'_> {
    /// Whether the protocol promises a reply. `def` is what the message is in the tables.
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

/// The kind of an event: something that happened in a connection and is not a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A session key was found and proved.
    Key {
        /// The file it came from.
        key_file: String,
        /// The secret that opens only this connection, for outputs that the user asked to keep it. No other output may show it.
        secret: Secret,
    },
    /// No key for this connection was given.
    NoKey,
    /// Every key was tried, none gave a message.
    WrongKey,
    /// Bytes that were never captured.
    Gap,
    /// Bytes that could not be given to a message.
    Undecoded,
    /// Framing was found again.
    Resync {
        /// Bytes between the loss of framing and here.
        passed_over: u64,
    },
    /// A bound was reached.
    Limit {
        /// Its name, as in `docs/architecture.md`.
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
    },
    /// A packet's checksum is wrong.
    Checksum,
    /// A circuit or link was opened.
    Open,
    /// A circuit or link was closed.
    Close,
    /// Something worth saying that is none of the others.
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
    /// How many bytes.
    pub length: Option<u64>,
    /// The bytes that became no message: those of an [`EventKind::Undecoded`], and those that an [`EventKind::Resync`] passed over. Where there
    /// are more than [`Options::max_undecoded`], only the first ones, and [`Event::cut`] says how many are left out. Empty for all other kinds.
    pub bytes: Vec<u8>,
    /// For people.
    pub text: String,
}

impl Event {
    /// An event that is about no bytes in particular.
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

    /// The same event, about `length` bytes from `offset` on in its direction.
    #[must_use]
    pub fn about(self, offset: u64, length: u64) -> Event {
        Event { offset: Some(offset), length: Some(length), ..self }
    }

    /// The same event, about `bytes`, which begin at `offset` in its direction and became no message. It shows as many of them as `options` allow.
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

    /// The bytes that the event accounts for: those of a gap are lost, those that became no message are undecoded.
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

    /// How many of the bytes that the event is about became no message and are not shown in `bytes`.
    pub fn cut(&self) -> u64 {
        self.counts().undecoded.saturating_sub(self.bytes.len() as u64)
    }
}

/// How payload bytes count that are in no message and no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// They are encrypted, and there is no key for them.
    Closed,
    /// They belong to another protocol, which is left alone.
    Opaque,
}

/// What a message was read into.
pub enum Decoded<'a> {
    /// The tree of its fields. The receiver may exchange the tree for another one: after the call, its content means nothing.
    Tree(&'a mut Tree),
    /// The [outline](super::Context::outline) that the context lent, for a message about which a tree would tell no more; and what the message is in the
    /// tables.
    Outline(MessageId, &'a Outline),
}

/// What a message is whose outline was read.
pub struct OutlinedMessage<'a> {
    /// What it is in the tables.
    pub id: MessageId,
    /// The tables.
    pub tables: &'a Tables,
    /// Its outline.
    pub outline: &'a Outline,
}

/// Where a session's messages and events go.
///
/// A session calls this from within the calls it gets, in the order in which its records are to come out. The receiver keeps nothing but a tree that it
/// exchanges: bytes and outline may be used again as soon as a call returns. What the session wants to know from the tree, it reads before the call.
///
/// How bytes are counted: those of a message as explained, opaque or undecoded, as its tree says; those of an [`EventKind::Undecoded`] by
/// its `length`, and of an [`EventKind::Resync`] by its `passed_over`, as undecoded; those of an [`EventKind::Gap`] by its `length` as lost;
/// and what [`account`](Emit::account) is given as it says. The session counts each byte once.
pub trait Emit {
    /// A message. `at` is the frame that completed it. A receiver that lends no outline is never handed one. Returns the message's record number, by which
    /// later messages may refer to it.
    fn message(&mut self, at: Moment, message: &Message<'_>, tables: &Tables, decoded: Decoded<'_>) -> u64;
    /// Whether a message of which only the outline was read is wanted with its tree. Asked before its record, with the sender and its bytes.
    fn wants_tree(&mut self, _from: Side, _bytes: &[u8], _outlined: &OutlinedMessage<'_>) -> bool {
        false
    }
    /// An event.
    fn event(&mut self, at: Moment, event: Event);
    /// Payload bytes that became no message and are in no event.
    fn account(&mut self, from: Side, share: Share, bytes: u64);
    /// Plaintext of a stream, for outputs that follow it: the offset in the direction and the bytes. Called only by sessions that are not
    /// [clear](super::Session::is_clear): the plaintext of all others is what was captured.
    fn plaintext(&mut self, _from: Side, _offset: u64, _bytes: &[u8]) {}
}
