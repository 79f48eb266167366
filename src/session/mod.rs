//! The session kit: the two sides of a connection, the input and output of a session, and parts for
//! the work that all protocols share.
//!
//! A session sees both directions of one connection in capture order. It does no I/O and reads no
//! clock: bytes in, messages and events out. This module knows tables and trees. It knows no
//! protocol, no capture file, no packet and no output.

mod chosen;
mod context;
mod count;
mod early;
mod emit;
mod framing;
mod options;
mod request;
mod requests;
mod rules;
mod settings;
mod share;
mod stream;
mod tabled;

pub use chosen::ChosenSession;
pub use context::Context;
pub use count::Counts;
pub use emit::{Emit, Event, EventKind, Message, MessageBytes, Reply, Share};
pub use framing::{CountsFrom, Extent, Framing, LengthField, LengthOrder, Unit};
pub use options::Options;
pub use request::{Answer, Request, RequestKey, is_partial, request_key, transaction_key};
pub use requests::Requests;
pub use rules::{Held, Look, holds, usual_sender};
pub use settings::{Secret, Settings};
pub use share::ReplyShare;
pub use stream::{PassedBytes, StreamBuffer};
pub use tabled::{Declaration, Resync, TableSession};

use std::fmt;
use std::net::{IpAddr, SocketAddr};

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

/// The two ends of a connection. Shown as `CLIENT and SERVER`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ends {
    /// The client's address and port.
    pub client: SocketAddr,
    /// The server's.
    pub server: SocketAddr,
}

impl Ends {
    /// Whether no host has these addresses, but a text that tells of the connection got them: those
    /// of 100::/64 (RFC 6666). Such a text may know one side only.
    pub fn are_made_up(self) -> bool {
        let discarded = |end: SocketAddr| match end.ip() {
            IpAddr::V4(_) => false,
            IpAddr::V6(address) => address.octets().starts_with(&[1, 0, 0, 0, 0, 0, 0, 0]),
        };
        discarded(self.client) && discarded(self.server)
    }
}

impl fmt::Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} and {}", self.client, self.server)
    }
}

/// TCP or UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Transport {
    /// A stream of bytes.
    Tcp,
    /// Datagrams. Each is one call of [`Session::datagram`].
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

/// What is known of a connection when its session starts.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// The two ends.
    pub ends: Ends,
    /// TCP or UDP.
    pub transport: Transport,
    /// Whether the connection's beginning was captured.
    pub whole: bool,
    /// The service, if an earlier connection of the capture told which one this server offers.
    pub service: Option<&'a str>,
    /// The name of the only message, if a user or an example says it: bytes may not tell it.
    pub message: Option<&'a str>,
}

/// One connection of a protocol.
///
/// # Order of the calls
///
/// For TCP, [`data`](Session::data) and [`gap`](Session::gap) together cover each direction from
/// its first byte on, without overlap and in order: each call begins where the one before it in
/// that direction ended. Offset 0 is the first byte of the direction, or the first captured one
/// where the direction's start was not captured. Calls of the two directions interleave as the
/// capture did. [`end`](Session::end) comes once a direction, after all of its bytes; the other
/// direction may go on after it.
///
/// For UDP, each call of [`datagram`](Session::datagram) brings one datagram, in the order of the
/// capture; there are no gaps, and no offsets.
///
/// [`relieve`](Session::relieve) may come between any two calls. [`service`](Session::service),
/// [`held`](Session::held) and [`is_clear`](Session::is_clear) are asked after every call and must
/// be cheap; [`learned`](Session::learned) is asked once, at the very end.
///
/// # What may be kept
///
/// `bytes` and everything in the [`Context`] are lent for the call. A session that needs bytes
/// later must copy them, count them in `held`, and bound them.
///
/// # What has to come back
///
/// Every byte that a call of `data` or `datagram` brought must be accounted for exactly once until
/// `end` returns: in a message, in an event of the kind [`EventKind::Undecoded`], in the
/// `passed_over` of an [`EventKind::Resync`], or by [`Emit::account`]. Every call of `gap` becomes
/// one event of the kind [`EventKind::Gap`] with the same offset and length. Damage is never an
/// error: a session that cannot go on says so in an event and looks for the next place where it
/// can.
pub trait Session: Send {
    /// The next bytes of one direction of a TCP stream, in order. `offset` is that of the first of
    /// them; `at` is the frame that completed them.
    fn data(
        &mut self,
        from: Side,
        offset: u64,
        bytes: &[u8],
        at: Moment,
        context: &mut Context<'_>,
    );
    /// One UDP datagram, in the order of the capture. `bytes` is what was captured of it; `missing`
    /// more bytes followed these on the wire.
    ///
    /// A protocol that runs only over TCP leaves this method out. It gets datagrams only if the
    /// user assigns it a port, and they count as undecoded.
    fn datagram(
        &mut self,
        from: Side,
        bytes: &[u8],
        missing: u64,
        at: Moment,
        context: &mut Context<'_>,
    ) {
        let _ = missing;
        let text = "a datagram, and this protocol runs over TCP";
        let event = Event::new(EventKind::Undecoded, self.service(), from, text);
        context.emit.event(at, event.showing(0, bytes, context.options));
    }
    /// `length` bytes of a direction, from `offset` on, were never captured. A message that began
    /// before them can never be completed: the session gives it up now. The next call of `data` in
    /// this direction brings the bytes behind the gap.
    fn gap(&mut self, from: Side, offset: u64, length: u64, at: Moment, context: &mut Context<'_>);
    /// Memory of waiting bytes and remembered messages, roughly, in bytes.
    fn held(&self) -> usize {
        0
    }
    /// Gives up the waiting bytes and forgets the remembered messages, because all streams together
    /// hold too much. The session reports the bytes as undecoded, after an event of the kind
    /// [`EventKind::Limit`].
    fn relieve(&mut self, _at: Moment, _context: &mut Context<'_>) {}
    /// A direction ended: no more calls of `data` or `gap` come for it. The session reports now
    /// what still waits in it.
    fn end(&mut self, from: Side, at: Moment, context: &mut Context<'_>);
    /// Whether the bytes of the connection are its plaintext. A session that decrypts returns
    /// `false` and hands its plaintext to [`Emit::plaintext`] itself.
    fn is_clear(&self) -> bool {
        true
    }
    /// The service, as far as it is known.
    fn service(&self) -> &str;
    /// Whether the conversation's beginning was captured, as far as its messages tell. It counts
    /// for UDP; of TCP the packets tell it.
    fn has_beginning(&self) -> bool {
        true
    }
    /// Facts about the connection's network that its messages contained, over its whole life.
    fn learned(&self) -> Vec<Learned> {
        Vec::new()
    }
}

/// Facts about one thing in a connection's network, for `stats`. If several connections report the
/// same thing, the last report counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learned {
    /// The group that the thing belongs to (`muds`, `channels`).
    pub group: &'static str,
    /// Its name.
    pub name: String,
    /// How many bytes of the name are a heading that it shares with other things. Tables for
    /// people print the heading once. 0 for none.
    pub heading: usize,
    /// Whether it describes the stream itself, or a change during the stream. The client's session
    /// then shows it, too.
    pub of_stream: bool,
    /// The facts, by key.
    pub facts: Vec<(&'static str, LearnedValue)>,
}

impl Learned {
    /// Its memory, roughly, in bytes.
    pub fn held(&self) -> usize {
        let texts = self.facts.iter().map(|(_, value)| match value {
            LearnedValue::Text(text) => text.len(),
            LearnedValue::Count(_) | LearnedValue::Microseconds(_) => 0,
        });
        let places = size_of::<Learned>() + self.facts.len() * size_of::<(&str, LearnedValue)>();
        places + self.name.len() + texts.sum::<usize>()
    }
}

/// The value of a fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LearnedValue {
    /// A text.
    Text(String),
    /// A count.
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
