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

use crate::capture::Moment;
pub use crate::session::{
    Context, Emit, Ends, Event, EventKind, Learned, Message, Options, Reply, Session, Share, Side, Start, Transport,
};
pub use alone::{Said, read_alone};
pub use registry::{PROTOCOLS, protocol_named};

use std::sync::OnceLock;

use crate::table::{Evaluator, Native, TableError, TableSource, Tables};

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

/// A protocol: its tables, how it is recognised, and its sessions.
pub trait Protocol: Sync {
    /// Its name as in the JSON.
    fn name(&self) -> &'static str;
    /// Its embedded tables.
    fn sources(&self) -> Vec<TableSource>;
    /// Makes an evaluator ready: what the types with code look things up in.
    fn prepare(&self, _evaluator: &mut Evaluator, _options: &Options) {}
    /// Its types with code.
    fn natives(&self) -> &'static [Native];
    /// What its connections run over.
    fn transport(&self) -> Transport {
        Transport::Tcp
    }
    /// A table file in another syntax of this protocol's world, as our own tables; `None` where it is none.
    fn foreign_tables(&self, _name: &str, _text: &str) -> Option<Result<TableSource, TableError>> {
        None
    }
    /// Whether a TCP connection is its own. The tables are compiled when they are first asked for: most connections need none.
    fn recognise_tcp(&self, opening: &Opening<'_>, tables: &LazyTables) -> Verdict;
    /// Whether a datagram's conversation is its own.
    fn recognise_udp(&self, opening: &Opening<'_>, tables: &LazyTables) -> Verdict;
    /// A session for a connection that was recognised (or is to be decoded as this protocol).
    fn session(&self, start: &Start<'_>, tables: &Tables) -> Box<dyn Session>;
}

/// A protocol's tables, compiled when they are first needed.
pub struct LazyTables {
    protocol: &'static dyn Protocol,
    further: Vec<TableSource>,
    compiled: OnceLock<Tables>,
}

impl LazyTables {
    /// The tables of a protocol with further sources on top; these are checked at once.
    pub fn new(protocol: &'static dyn Protocol, further: Vec<TableSource>) -> Result<LazyTables, TableError> {
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
    pub fn further(&self) -> &[TableSource] {
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
pub fn load_tables(protocol: &dyn Protocol, further: &[TableSource]) -> Result<Tables, TableError> {
    let mut sources = protocol.sources();
    sources.extend(further.iter().cloned());
    Tables::load(protocol.name(), sources, protocol.natives())
}
