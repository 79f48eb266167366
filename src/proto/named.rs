//! Reads bytes without a capture, as those of a named service and direction (`moul.auth.client`).
//! The tables or a session of the protocol frame them.
//!
//! It reads no file and prints nothing.

use std::net::SocketAddr;

use super::{AllSettings, LazyTables, SettingsError, feed_alone};
use crate::capture::Moment;
use crate::captured::Captured;
use crate::digits::{counted, plural};
use crate::session::{Context, Emit, Ends, Event, EventKind, Message, Options, Share, Side, Start};
use crate::suggest::{offer, suggestion};
use crate::table::{Evaluator, Outcome, Sender, ServiceId, Tables};
use crate::tree::Tree;

/// Takes each message with its tables and its tree.
pub type TakeMessage<'a> = &'a mut dyn FnMut(&Message<'_>, &Tables, &Tree);

/// A protocol's service and one of its directions.
#[derive(Clone, Copy)]
pub struct NamedService<'a> {
    lazy: &'a LazyTables,
    service: ServiceId,
    side: Side,
}

impl<'a> NamedService<'a> {
    /// The service and direction of a name such as `PROTOCOL.SERVICE.client`. The default service
    /// is the protocol's first one, the default direction the client's.
    ///
    /// # Errors
    /// There is no such protocol, service or direction.
    pub fn find(all: &'a [LazyTables], name: &str) -> Result<NamedService<'a>, SettingsError> {
        let mut parts = name.split('.');
        let protocol = parts.next().unwrap_or("");
        let Some(lazy) = LazyTables::of(all, protocol) else {
            let near = match what_it_is(all, name) {
                Some(what) => what,
                None => suggestion(protocol, all.iter().map(|l| l.protocol().name())),
            };
            return Err(SettingsError::Typed(format!("there is no protocol `{protocol}`{near}")));
        };
        let tables = lazy.get();
        let service =
            parts.next().unwrap_or_else(|| tables.services().first().map_or("", |s| &*s.name));
        let Some(id) = tables.service_named(service) else {
            let near = suggestion(service, tables.services().iter().map(|s| &*s.name));
            return Err(SettingsError::Typed(format!(
                "{protocol} has no service `{service}`{near}"
            )));
        };
        let side = match parts.next() {
            None | Some("client") => Side::Client,
            Some("server") => Side::Server,
            Some(other) => {
                return Err(SettingsError::Typed(format!(
                    "a direction is `client` or `server`, not `{other}`"
                )));
            }
        };
        Ok(NamedService { lazy, service: id, side })
    }
}

/// What a word is that stands where a service and its direction are expected: a message, a type, or
/// nearly the name of a message.
fn what_it_is(all: &[LazyTables], name: &str) -> Option<String> {
    for lazy in all {
        let tables = lazy.get();
        if let Some(def) = tables.message_named(name).and_then(|id| tables.message(id)) {
            let service = tables.service(def.service).map_or("", |service| &*service.name);
            let side = if def.direction == Sender::Server { "server" } else { "client" };
            let protocol = lazy.protocol().name();
            return Some(format!(
                "; it is a message, whose bytes are read as `{protocol}.{service}.{side}`"
            ));
        }
        if tables.type_named(name).is_some() {
            return Some(format!("; it is a type: `--type {name}`"));
        }
    }
    let messages = all.iter().map(LazyTables::get);
    let names = messages.flat_map(|t| t.messages().iter().map(|m| t.name(m.name)));
    Some(offer(name, names)).filter(|near| !near.is_empty())
}

/// Hands each message in `bytes` to `take`, one after the other.
///
/// # Errors
/// Bytes that are not a whole message. The messages before them were handed over.
pub fn decode_named(
    named: NamedService<'_>,
    bytes: &[u8],
    settings: &AllSettings,
    take: TakeMessage<'_>,
) -> Result<(), SettingsError> {
    let tables = named.lazy.get();
    if tables.service(named.service).is_some_and(|s| s.positional || s.header.is_empty()) {
        return framed(named, bytes, settings, take);
    }
    let mut evaluator = Evaluator::default();
    named.lazy.protocol().prepare(&mut evaluator, settings.of(named.lazy));
    let mut tree = Tree::new();
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        match evaluator.message(tables, named.service, named.side.index(), rest, &mut tree) {
            Outcome::Message(id, length) => {
                let def = tables.message(id);
                let message = Message {
                    name: Captured::new(def.map_or("", |d| tables.name(d.name))),
                    number: def.and_then(|d| d.number),
                    service: "",
                    from: named.side,
                    offset: at as u64,
                    bytes: rest.get(..length).unwrap_or(rest),
                    reply: None,
                    no_reply: false,
                };
                take(&message, tables, &tree);
                at += length.max(1);
            }
            other => {
                let text = why(tables, other, rest.len());
                return Err(SettingsError::Unreadable(format!("at byte {at}: {text}")));
            }
        }
    }
    Ok(())
}

/// Reads bytes that only the protocol's own session can frame: passes them through a session, as
/// one datagram or the beginning of a stream.
fn framed(
    named: NamedService<'_>,
    bytes: &[u8],
    settings: &AllSettings,
    take: TakeMessage<'_>,
) -> Result<(), SettingsError> {
    let NamedService { lazy, side, .. } = named;
    let tables = lazy.get();
    let service = tables
        .service(named.service)
        .filter(|s| tables.declared().is_some() || !s.ports.is_empty());
    let service = service.map(|service| &*service.name);
    let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let ends = Ends { client: nowhere, server: nowhere };
    let start = Start { ends, transport: lazy.protocol().transport(), whole: true, service };
    let mut session = lazy.protocol().session(&start, tables);
    let mut emit = Handed { take, count: 0, refused: None };
    let mut context = Context {
        tables,
        evaluator: &mut Evaluator::default(),
        tree: &mut Tree::new(),
        settings: settings.of(lazy),
        sequences: [None; 2],
        options: &Options { max_message: 64 << 20, ..Options::default() },
        emit: &mut emit,
    };
    feed_alone(session.as_mut(), start.transport, side, bytes, Moment::default(), &mut context);
    match (emit.refused, emit.count) {
        (Some(text), _) => Err(SettingsError::Unreadable(text)),
        (None, 0) => Err(SettingsError::Unreadable(match bytes.len() {
            1 => "this byte is no whole message".into(),
            n => format!("these {n} bytes are no whole message"),
        })),
        (None, _) => Ok(()),
    }
}

/// Hands messages over, and keeps the first event about bytes that were not understood.
struct Handed<'a> {
    take: TakeMessage<'a>,
    count: u64,
    refused: Option<String>,
}

impl Emit for Handed<'_> {
    fn message(
        &mut self,
        _: Moment,
        message: &Message<'_>,
        tables: &Tables,
        tree: &mut Tree,
    ) -> u64 {
        self.count += 1;
        (self.take)(message, tables, tree);
        self.count
    }

    fn event(&mut self, _: Moment, event: Event) {
        if event.kind == EventKind::Undecoded && self.refused.is_none() {
            self.refused = Some(format!("at byte {}: {}", event.offset.unwrap_or(0), event.text));
        }
    }

    fn account(&mut self, _: Side, _: Share, _: u64) {}
}

fn why(tables: &Tables, outcome: Outcome, left: usize) -> String {
    let name = |id| tables.message(id).map_or("", |m| tables.name(m.name)).to_string();
    match outcome {
        Outcome::Need(n) => {
            format!(
                "the message needs {} at least, {left} {} left",
                counted(n, "byte"),
                plural(left, "is", "are")
            )
        }
        Outcome::Unknown(n, _) => {
            format!("no message of this service and direction has the number {n}")
        }
        Outcome::NoLayout(id, _) => format!("the layout of {} is not known", name(id)),
        Outcome::Malformed(id) | Outcome::Message(id, _) => {
            format!("these bytes cannot be the {} their number says", name(id))
        }
    }
}
