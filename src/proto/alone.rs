//! Reads bytes that come without a capture, as one direction of a connection: the examples in
//! tables, and the bytes that `decode` gets.

use super::Protocol;
use crate::capture::Moment;
use crate::session::Settings;
use crate::session::{
    Context, Emit, Ends, Event, EventKind, Message, Options, Session, Share, Side, Start, Transport,
};
use crate::table::{Evaluator, Tables};
use crate::tree::Tree;
use std::net::{Ipv4Addr, SocketAddr};

/// A message or event of a session.
pub enum MessageOrEvent<'a> {
    /// A message, with its fields.
    Message(&'a Message<'a>, &'a Tree),
    /// An event.
    Event(&'a Event),
}

/// Reads `bytes` as everything that `side` sent in a connection, and hands each message and event
/// to `take`. `message` is the name of the only message.
pub fn read_alone(
    protocol: &dyn Protocol,
    tables: &Tables,
    (transport, side): (Transport, Side),
    message: Option<&str>,
    bytes: &[u8],
    take: &mut dyn FnMut(MessageOrEvent<'_>),
) {
    let nowhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let ends = Ends { client: nowhere, server: nowhere };
    let start = Start { ends, transport, whole: true, service: None, message };
    let mut session = protocol.session(&start, tables);
    let mut context = Context {
        tables,
        evaluator: &mut Evaluator::default(),
        tree: &mut Tree::new(),
        settings: &Settings::default(),
        sequences: [None; 2],
        options: &Options::default(),
        emit: &mut EmitTo { take, messages: 0 },
    };
    feed_alone(session.as_mut(), transport, side, bytes, Moment::default(), &mut context);
}

/// Hands `bytes` to a session as everything that `side` sent, and ends that side. They are one
/// datagram, or the beginning of a stream.
pub fn feed_alone(
    session: &mut dyn Session,
    transport: Transport,
    side: Side,
    bytes: &[u8],
    at: Moment,
    context: &mut Context<'_>,
) {
    match transport {
        Transport::Tcp => session.data(side, 0, bytes, at, context),
        Transport::Udp => session.datagram(side, bytes, 0, at, context),
    }
    session.end(side, at, context);
}

/// Hands messages and events to a closure.
struct EmitTo<'a> {
    take: &'a mut dyn FnMut(MessageOrEvent<'_>),
    messages: u64,
}

impl Emit for EmitTo<'_> {
    fn message(&mut self, _: Moment, message: &Message<'_>, _: &Tables, tree: &mut Tree) -> u64 {
        (self.take)(MessageOrEvent::Message(message, tree));
        self.messages += 1;
        self.messages
    }

    fn event(&mut self, _: Moment, event: Event) {
        // Bytes of only one side hold no replies.
        if !matches!(event.kind, EventKind::Unanswered { .. }) {
            (self.take)(MessageOrEvent::Event(&event));
        }
    }

    fn account(&mut self, _: Side, _: Share, _: u64) {}
}
