//! Protocols: one folder each, and what they all have in common: how a protocol is recognised, what a session is handed, and what it gives back.
//!
//! A session sees both directions of one connection in capture order. It does no I/O and reads no clock: bytes in, messages and events out.
//! It knows nothing of captures, packets or outputs.

mod alone;
pub mod intermud3;
pub mod moul;
pub mod ouro;
mod registry;
pub mod secondlife;

pub use alone::{Said, read_alone};
pub use registry::{PROTOCOLS, protocol_named};

use std::net::SocketAddr;
use std::sync::OnceLock;

use crate::capture::Time;
use crate::keys::{KeyRing, SessionLine};
use crate::table::{Evaluator, Limits, MessageId, Native, Outcome, ServiceId, Source, TableError, Tables};
use crate::tree::{Outline, Tree};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Who opened the connection.
    Client,
    /// Who was called.
    Server,
}

impl Side {
    /// 0 for the client, 1 for the server.
    pub fn index(self) -> usize {
        match self {
            Side::Client => 0,
            Side::Server => 1,
        }
    }

    /// This side's of a pair, the client's first.
    pub fn of<T>(self, pair: &mut [T; 2]) -> &mut T {
        let [client, server] = pair;
        match self {
            Side::Client => client,
            Side::Server => server,
        }
    }

    /// The other side.
    pub fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }

    /// `client` or `server`.
    pub fn word(self) -> &'static str {
        match self {
            Side::Client => "client",
            Side::Server => "server",
        }
    }
}

/// The frame that brought something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// The frame's number.
    pub frame: u64,
    /// Its time.
    pub time: Time,
}

/// The two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ends {
    /// The client's address and port.
    pub client: SocketAddr,
    /// The server's.
    pub server: SocketAddr,
}

/// The first bytes of a TCP connection, or the latest datagram of each side of a UDP one, before its protocol is known.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    /// What the client sent so far, or its latest datagram.
    pub client: &'a [u8],
    /// The same of the server.
    pub server: &'a [u8],
    /// Both ends; where no SYN was captured, which is the client is a guess.
    pub ends: Ends,
    /// Whether the bytes begin with the connection (a SYN was captured).
    pub whole: bool,
    /// Whether no more bytes will come, or more than enough were waited for.
    pub last: bool,
    /// A server at one of the ends that was met before.
    pub known: Option<Known<'a>>,
}

/// A server that an earlier connection of the capture told about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known<'a> {
    /// The protocol it speaks.
    pub protocol: &'static str,
    /// The service it offers, if it is only one.
    pub service: Option<&'a str>,
    /// It is at the end that is taken for the client's.
    pub swapped: bool,
}

/// What a session begins with.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The two ends.
    pub ends: Ends,
    /// TCP or UDP.
    pub transport: Transport,
    /// Whether the connection's beginning was captured.
    pub whole: bool,
    /// The service, where the server was met before.
    pub service: Option<&'a str>,
}

/// Whether a protocol knows a connection as its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is not.
    No,
    /// More bytes would tell.
    Maybe,
    /// It is; the sides are as guessed, or the other way round.
    Yes {
        /// Whether what was taken for the client is the server.
        swapped: bool,
    },
}

/// A message on its way out: what the tree does not say itself.
#[derive(Clone, Debug)]
pub struct Message<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its number as on the wire.
    pub number: Option<u64>,
    /// Its service.
    pub service: &'a str,
    /// Who sent it.
    pub from: Side,
    /// Offset of its first byte in its direction, or in the datagram.
    pub offset: u64,
    /// Its bytes, which the tree's captured buffer counts in.
    pub bytes: &'a [u8],
    /// The record it answers and the time since.
    pub reply: Option<Reply>,
}

/// A reply's request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reply {
    /// The request's record number.
    pub record: u64,
    /// Nanoseconds since the request.
    pub nanos: i64,
}

/// What happened to a connection that is no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A session key was found and proved.
    Key {
        /// The file it came from.
        key_file: String,
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
        /// Which.
        limit: &'static str,
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
    /// For people.
    pub text: String,
}

/// What became of payload bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Closed for want of a key.
    Closed,
    /// Of another protocol, left alone.
    Opaque,
}

/// Where a session's messages and events go.
pub trait Emit {
    /// A message, whose fields are in the tree. Returns its record number.
    fn message(&mut self, at: Moment, message: &Message<'_>, tables: &Tables, tree: &Tree) -> u64;
    /// The session needs the tree of its last message no more: it may be exchanged for another, whose content means nothing.
    fn spent(&mut self, _tree: &mut Tree) {}
    /// A message of which an outline was wanted, and which has nothing that only a tree can tell. Returns its record number. Who lends no
    /// outline ([`Context::outline`]) is told of none.
    fn outline(&mut self, _: Moment, _: &Message<'_>, _: MessageId, _: &Tables, _: &Outline) -> u64 {
        0
    }
    /// An event.
    fn event(&mut self, at: Moment, event: Event);
    /// Payload bytes that became no message and are in no event.
    fn account(&mut self, from: Side, share: Share, bytes: u64);
    /// Plaintext of a stream, for those who want to follow it: offset in the direction and bytes.
    fn plaintext(&mut self, _from: Side, _offset: u64, _bytes: &[u8]) {}
    /// The key of a session, once it is proved: for those who were asked to keep it, never to be shown.
    fn session_key(&mut self, _line: &SessionLine) {}
}

/// What somebody asked of the protocols.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether City of Heroes packets carry cookies: `None` decides by what fits.
    pub ouro_cookies: Option<bool>,
    /// Largest message that is put together, in bytes.
    pub max_message: usize,
    /// Bytes that the compressed parts of one message may become together.
    pub max_decompressed: usize,
    /// State descriptor files of MOUL: names and contents.
    pub descriptors: Vec<(String, Vec<u8>)>,
}

impl Options {
    /// The bounds of one message: whoever reads it, and whenever, has to read it within the same ones.
    pub fn limits(&self) -> Limits {
        Limits { decompressed: self.max_decompressed, ..Limits::default() }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options { ouro_cookies: None, max_message: 16 << 20, max_decompressed: 16 << 20, descriptors: Vec::new() }
    }
}

/// What a session works with: lent for one call.
pub struct Context<'a> {
    /// The protocol's tables.
    pub tables: &'a Tables,
    /// The evaluator.
    pub evaluator: &'a mut Evaluator,
    /// The tree every message is read into.
    pub tree: &'a mut Tree,
    /// Where outlines of messages are enough, the one they are read into.
    pub outline: Option<&'a mut Outline>,
    /// The keys that were given.
    pub keys: &'a KeyRing,
    /// The TCP sequence numbers of offset 0 of client and server, where they are known.
    pub sequences: [Option<u32>; 2],
    /// What was asked for.
    pub options: &'a Options,
    /// Where messages and events go.
    pub emit: &'a mut dyn Emit,
}

impl Context<'_> {
    /// Reads the message that begins with some bytes: into the outline, where that is enough, and else into the tree. Says what came of it,
    /// and whether the outline has it.
    pub fn message(&mut self, service: ServiceId, from: Side, bytes: &[u8]) -> (Outcome, bool) {
        if let Some(outline) = &mut self.outline {
            let outcome = self.evaluator.message(self.tables, service, from.index(), bytes, *outline);
            if outline.is_whole() {
                return (outcome, true);
            }
        }
        (self.evaluator.message(self.tables, service, from.index(), bytes, self.tree), false)
    }
}

/// One connection of a protocol.
pub trait Session: Send {
    /// The next bytes of a direction, in order; `offset` is that of the first.
    fn data(&mut self, from: Side, offset: u64, bytes: &[u8], at: Moment, context: &mut Context<'_>);
    /// Bytes of a direction that were never captured.
    fn gap(&mut self, from: Side, offset: u64, length: u64, at: Moment, context: &mut Context<'_>);
    /// Memory that waiting bytes and remembered messages take, in bytes and roughly.
    fn held(&self) -> usize {
        0
    }
    /// Gives up what waits and forgets what is remembered, because all streams together hold too much; says so where bytes are given up.
    fn relieve(&mut self, _at: Moment, _context: &mut Context<'_>) {}
    /// A direction ended.
    fn end(&mut self, from: Side, at: Moment, context: &mut Context<'_>);
    /// Whether what comes in is plaintext already. A session that decrypts hands its plaintext on itself.
    fn is_clear(&self) -> bool {
        true
    }
    /// The service, as far as it is known.
    fn service(&self) -> &str;
    /// What the connection told of the world it belongs to, summed up over its whole life.
    fn learned(&self) -> Vec<Learned> {
        Vec::new()
    }
}

/// Something that is known from a connection, for `stats`: where several connections tell of the same, the last word counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learned {
    /// What sort of thing it is (`muds`, `channels`).
    pub group: &'static str,
    /// Its name.
    pub name: String,
    /// What is known of it.
    pub facts: Vec<(&'static str, String)>,
}

/// A protocol: its tables, how it is recognised, and its sessions.
pub trait Protocol: Sync {
    /// Its name as in the JSON.
    fn name(&self) -> &'static str;
    /// Its embedded tables.
    fn sources(&self) -> Vec<Source>;
    /// Makes an evaluator ready: what the types with code look things up in.
    fn prepare(&self, _evaluator: &mut Evaluator, _options: &Options) {}
    /// Its types with code.
    fn natives(&self) -> &'static [Native];
    /// What its connections run over.
    fn transport(&self) -> Transport {
        Transport::Tcp
    }
    /// A table file in another syntax of this protocol's world, as our own tables; `None` where it is none.
    fn foreign_tables(&self, _name: &str, _text: &str) -> Option<Result<Source, TableError>> {
        None
    }
    /// Whether a TCP connection is its own. The tables are compiled when they are first asked for: most connections need none.
    fn recognise_tcp(&self, opening: &Opening<'_>, tables: &LazyTables) -> Verdict;
    /// Whether a datagram's conversation is its own.
    fn recognise_udp(&self, opening: &Opening<'_>, tables: &LazyTables) -> Verdict;
    /// A session for a connection that was recognised (or is to be decoded as this protocol).
    fn session(&self, start: &Start<'_>, tables: &Tables) -> Box<dyn Session>;
}

/// TCP or UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// A stream of bytes.
    Tcp,
    /// Datagrams: each is one call of [`Session::data`].
    Udp,
}

impl Transport {
    /// `tcp` or `udp`.
    pub fn word(self) -> &'static str {
        match self {
            Transport::Tcp => "tcp",
            Transport::Udp => "udp",
        }
    }
}

/// A protocol's tables, compiled when they are first needed.
pub struct LazyTables {
    protocol: &'static dyn Protocol,
    further: Vec<Source>,
    compiled: OnceLock<Tables>,
}

impl LazyTables {
    /// The tables of a protocol with further sources on top; these are checked at once.
    pub fn new(protocol: &'static dyn Protocol, further: Vec<Source>) -> Result<LazyTables, TableError> {
        let lazy = LazyTables { protocol, further, compiled: OnceLock::new() };
        if !lazy.further.is_empty() {
            let tables = load_tables(protocol, &lazy.further)?;
            let _ = lazy.compiled.set(tables);
        }
        Ok(lazy)
    }

    /// Those of a protocol, by its name.
    pub fn of<'a>(all: &'a [LazyTables], protocol: &str) -> Option<&'a LazyTables> {
        all.iter().find(|lazy| lazy.protocol.name() == protocol)
    }

    /// The protocol.
    pub fn protocol(&self) -> &'static dyn Protocol {
        self.protocol
    }

    /// The sources on top of the embedded ones.
    pub fn further(&self) -> &[Source] {
        &self.further
    }

    /// The compiled tables. The embedded ones are known to compile: a test holds them to it.
    pub fn get(&self) -> &Tables {
        self.compiled.get_or_init(|| {
            load_tables(self.protocol, &self.further).unwrap_or_else(|_| Tables::none(self.protocol.name()))
        })
    }
}

/// Compiles a protocol's tables, with further sources on top.
pub fn load_tables(protocol: &dyn Protocol, further: &[Source]) -> Result<Tables, TableError> {
    let mut sources = protocol.sources();
    sources.extend(further.iter().cloned());
    Tables::load(protocol.name(), sources, protocol.natives())
}
