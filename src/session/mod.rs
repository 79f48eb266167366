//! What every protocol's session works with: the two sides of a connection, what a session is lent, what it gives back, and ready-made parts for the
//! work that all of them share.
//!
//! A session sees both directions of one connection in capture order. It does no I/O and reads no clock: bytes in, messages and events out.
//! This module knows tables and trees. It knows no protocol, no capture file, no packet and no output.

mod chosen;
mod count;
mod emit;
mod framing;
mod lent;
mod options;
mod requests;
mod rules;
mod settings;
mod stream;
mod tabled;

pub use chosen::ChosenSession;
pub use count::Counts;
pub use emit::{Decoded, Emit, Event, EventKind, Message, OutlinedMessage, Reply, Share};
pub use framing::{CountsFrom, Extent, Framing, LengthField, LengthOrder, Unit};
pub use lent::Context;
pub use options::Options;
pub use requests::{Answer, Request, RequestKey, Requests, is_partial, transaction_key};
pub use rules::{Held, Look, holds, usual_sender};
pub use settings::{Secret, Settings};
pub use stream::{PassedBytes, StreamBuffer};
pub use tabled::{Declaration, Resync, TableSession};

use std::fmt;
use std::net::SocketAddr;

use crate::capture::Moment;

/// One of the two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The end that opened the connection.
    Client,
    /// The end that accepted it.
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

    /// This side's element of a pair in which the client's comes first.
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

/// The two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ends {
    /// The client's address and port.
    pub client: SocketAddr,
    /// The server's.
    pub server: SocketAddr,
}

/// TCP or UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Transport {
    /// A stream of bytes.
    Tcp,
    /// Datagrams: each is one call of [`Session::datagram`].
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

/// What a session begins with.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The two ends.
    pub ends: Ends,
    /// TCP or UDP.
    pub transport: Transport,
    /// Whether the connection's beginning was captured.
    pub whole: bool,
    /// The service, where an earlier connection of the capture told which service this server offers.
    pub service: Option<&'a str>,
}

/// One connection of a protocol.
///
/// # Order of the calls
///
/// For TCP, [`data`](Session::data) and [`gap`](Session::gap) together cover each direction from its first byte on, without overlap and in
/// order: each call begins where the one before it in that direction ended. Offset 0 is the first byte of the direction, or the first captured one where the
/// direction's start was not captured. Calls of the two directions interleave as the capture did. [`end`](Session::end) comes once a direction, after
/// all of its bytes; the other direction may go on after it.
///
/// For UDP, each call of [`datagram`](Session::datagram) brings one datagram, in the order of the capture; there are no gaps, and no offsets.
///
/// [`relieve`](Session::relieve) may come between any two calls. [`service`](Session::service), [`held`](Session::held) and
/// [`is_clear`](Session::is_clear) are asked after every call and must be cheap; [`learned`](Session::learned) is asked once, at the very end.
///
/// # What may be kept
///
/// `bytes` and everything in the [`Context`] are lent for the call. A session that needs bytes later copies them, counts them in `held`, and bounds them.
///
/// # What has to come back
///
/// Every byte that a call of `data` or `datagram` brought must be accounted for exactly once until `end` returns: in a message, in an event of the kind
/// [`EventKind::Undecoded`], in the `passed_over` of an [`EventKind::Resync`], or by [`Emit::account`]. Every call of `gap` becomes one
/// event of the kind [`EventKind::Gap`] with the same offset and length. Damage is never an error: a session that cannot go on says so in an event and looks
/// for the next place where it can.
pub trait Session: Send {
    /// The next bytes of one direction of a TCP stream, in order. `offset` is that of the first of them; `at` is the frame that completed them.
    fn data(&mut self, from: Side, offset: u64, bytes: &[u8], at: Moment, context: &mut Context<'_>);
    /// One UDP datagram, in the order of the capture. `bytes` is what was captured of it; `missing` more bytes followed these on the wire.
    ///
    /// A protocol that runs over TCP alone leaves this method out. It is handed datagrams only where the user asked for it by port, and
    /// they are counted as undecoded.
    fn datagram(&mut self, from: Side, bytes: &[u8], missing: u64, at: Moment, context: &mut Context<'_>) {
        let _ = missing;
        let text = "a datagram, and this protocol runs over TCP";
        let event = Event::new(EventKind::Undecoded, self.service(), from, text);
        context.emit.event(at, event.showing(0, bytes, context.options));
    }
    /// `length` bytes of a direction, from `offset` on, that were never captured. What was begun before them will never be whole; the session
    /// gives it up now, and the next call of `data` in this direction brings the bytes behind the gap.
    fn gap(&mut self, from: Side, offset: u64, length: u64, at: Moment, context: &mut Context<'_>);
    /// Memory that waiting bytes and remembered messages take, in bytes and roughly.
    fn held(&self) -> usize {
        0
    }
    /// Gives up the bytes that wait and forgets the messages that are remembered, because all streams together hold too much. Bytes that are given up
    /// are reported as undecoded, after an event of the kind [`EventKind::Limit`].
    fn relieve(&mut self, _at: Moment, _context: &mut Context<'_>) {}
    /// A direction ended: no more calls of `data` or `gap` come for it. What still waits in it is reported now.
    fn end(&mut self, from: Side, at: Moment, context: &mut Context<'_>);
    /// Whether the bytes of the connection are its plaintext. A session that decrypts returns `false` and hands its plaintext to
    /// [`Emit::plaintext`] itself.
    fn is_clear(&self) -> bool {
        true
    }
    /// The service, as far as it is known.
    fn service(&self) -> &str;
    /// Facts that the connection's messages contained about its network, over its whole life.
    fn learned(&self) -> Vec<Learned> {
        Vec::new()
    }
}

/// Facts about one thing in a connection's network, for `stats`. If several connections have facts about the same thing, the last one counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learned {
    /// What sort of thing it is about (`muds`, `channels`).
    pub group: &'static str,
    /// Its name.
    pub name: String,
    /// How many bytes of the name are a heading that it shares with other things: tables for people print the heading once. 0 for none.
    pub heading: usize,
    /// Whether it describes the stream itself, or a change during the stream. The client's session then shows it, too.
    pub of_stream: bool,
    /// What is known of it.
    pub facts: Vec<(&'static str, LearnedValue)>,
}

/// One thing that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LearnedValue {
    /// A text.
    Text(String),
    /// How many.
    Count(u64),
    /// A time in microseconds, under a key that ends in `_microseconds`.
    Microseconds(u64),
}

impl fmt::Display for LearnedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LearnedValue::Text(text) => f.write_str(text),
            LearnedValue::Count(n) | LearnedValue::Microseconds(n) => write!(f, "{n}"),
        }
    }
}
