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
use crate::table::{
    Evaluator, MessageId, Outcome, Sender, Service, ServiceFrame, ServiceId, Tables, WholeMessage,
};
use crate::tree::Tree;

/// Takes each message with its tables and its tree.
pub type TakeMessage<'a> = &'a mut dyn FnMut(&Message<'_>, &Tables, &Tree);

/// A protocol's service and one of its directions.
#[derive(Clone, Copy)]
pub struct NamedService<'a> {
    lazy: &'a LazyTables,
    service: ServiceId,
    side: Side,
    /// Whether the name leaves open which side sent the bytes.
    either: bool,
    /// The message that the bytes begin with, where the name is a message's.
    message: Option<MessageId>,
}

impl<'a> NamedService<'a> {
    /// What a name means: a service and direction (`PROTOCOL.SERVICE.client`; without a service the
    /// protocol's first one, without a direction the client's), the same without the protocol where
    /// only one has such a service (`SERVICE.client`; without a direction either), or a message.
    ///
    /// # Errors
    /// There is no such protocol, service, direction or message, or several.
    pub fn find(all: &'a [LazyTables], name: &str) -> Result<NamedService<'a>, SettingsError> {
        let mut parts = name.split('.');
        let first = parts.next().unwrap_or("");
        if let Some(lazy) = LazyTables::of(all, first) {
            return NamedService::within(lazy, parts.next(), parts.next());
        }
        if let Some(named) = NamedService::of_message(all, name)? {
            return Ok(named);
        }
        let having: Vec<&LazyTables> =
            all.iter().filter(|lazy| lazy.get().service_named(first).is_some()).collect();
        match having.as_slice() {
            [] => Err(SettingsError::Typed(format!(
                "there is no protocol, service or message `{first}`{}",
                near(all, name)
            ))),
            [lazy] => {
                let direction = parts.next();
                let named = NamedService::within(lazy, Some(first), direction)?;
                Ok(NamedService { either: direction.is_none(), ..named })
            }
            several => {
                let names = several.iter().map(|lazy| format!("{}.{name}", lazy.protocol().name()));
                Err(SettingsError::Typed(format!(
                    "several protocols have a service `{first}`: {}",
                    names.collect::<Vec<_>>().join(", ")
                )))
            }
        }
    }

    fn within(
        lazy: &'a LazyTables,
        service: Option<&str>,
        direction: Option<&str>,
    ) -> Result<NamedService<'a>, SettingsError> {
        let tables = lazy.get();
        let service = service.unwrap_or_else(|| tables.services().first().map_or("", |s| &*s.name));
        let Some(id) = tables.service_named(service) else {
            let near = suggestion(service, tables.services().iter().map(|s| &*s.name));
            return Err(SettingsError::Typed(format!(
                "{} has no service `{service}`{near}",
                lazy.protocol().name()
            )));
        };
        let side = match direction {
            None | Some("client") => Side::Client,
            Some("server") => Side::Server,
            Some(other) => {
                return Err(SettingsError::Typed(format!(
                    "a direction is `client` or `server`, not `{other}`"
                )));
            }
        };
        Ok(NamedService { lazy, service: id, side, either: false, message: None })
    }

    /// The service and the direction of a message.
    fn of_message(
        all: &'a [LazyTables],
        name: &str,
    ) -> Result<Option<NamedService<'a>>, SettingsError> {
        let mut found: Vec<NamedService<'_>> = Vec::new();
        for lazy in all {
            let tables = lazy.get();
            let message = tables.message_named(name);
            let Some((id, def)) = message.and_then(|id| Some((id, tables.message(id)?))) else {
                continue;
            };
            let sender = def.usually.unwrap_or(def.direction);
            found.push(NamedService {
                lazy,
                service: def.service,
                side: if sender == Sender::Server { Side::Server } else { Side::Client },
                either: false,
                message: Some(id),
            });
        }
        match found.as_slice() {
            [] => Ok(None),
            [only] => Ok(Some(*only)),
            several => {
                let names: Vec<String> = several.iter().map(NamedService::name).collect();
                Err(SettingsError::Typed(format!(
                    "several protocols have a message `{name}`: {}",
                    names.join(", ")
                )))
            }
        }
    }

    /// The protocol.
    pub fn protocol(&self) -> &'static dyn super::Protocol {
        self.lazy.protocol()
    }

    /// Its whole name.
    pub fn name(&self) -> String {
        let service = self.lazy.get().service(self.service).map_or("", |service| &*service.name);
        format!("{}.{service}.{}", self.lazy.protocol().name(), self.side.word())
    }

    /// The same service, and messages of this side.
    #[must_use]
    pub fn from_side(self, side: Side) -> NamedService<'a> {
        NamedService { side, either: false, ..self }
    }

    /// Decides which side sent the bytes, where the name leaves it open: the one as whose messages
    /// all of them can be read. Returns whether it was decided here.
    ///
    /// # Errors
    /// They can be read as either side's.
    pub fn decide_side(
        self,
        pieces: &[Vec<u8>],
        settings: &AllSettings,
    ) -> Result<(NamedService<'a>, bool), SettingsError> {
        if !self.either {
            return Ok((self, false));
        }
        let mut counts = [(false, 0, String::new()), (false, 0, String::new())];
        for side in [Side::Client, Side::Server] {
            let (whole, count, first) = side.of(&mut counts);
            *whole = true;
            for piece in pieces {
                let read =
                    decode_named(self.from_side(side), piece, settings, &mut |message, _, _| {
                        if *count == 0 {
                            *first = message.name.escaped().to_string();
                        }
                        *count += 1;
                    });
                *whole &= read.is_ok();
            }
        }
        let [client, server] = counts;
        let side = match ((client.0, client.1), (server.0, server.1)) {
            ((true, 1..), (true, 1..)) => {
                let [one, other] = [Side::Client, Side::Server].map(|s| self.from_side(s).name());
                return Err(SettingsError::Typed(format!(
                    "these bytes can be {one} ({}) or {other} ({}): name one of them",
                    client.2, server.2
                )));
            }
            (client, server) if server > client => Side::Server,
            _ => Side::Client,
        };
        Ok((self.from_side(side), true))
    }

    /// The service.
    pub fn service(&self) -> ServiceId {
        self.service
    }

    /// Who sends.
    pub fn side(&self) -> Side {
        self.side
    }
}

/// What a word may have been meant to be that is no protocol, service or message.
fn near(all: &[LazyTables], name: &str) -> String {
    if all.iter().any(|lazy| lazy.get().type_named(name).is_some()) {
        return format!("; it is a type: `--type {name}`");
    }
    let names = all.iter().flat_map(|lazy| {
        let tables = lazy.get();
        tables.messages().iter().map(|message| tables.name(message.name))
    });
    let messages = offer(name, names);
    if !messages.is_empty() {
        return messages;
    }
    let first = name.split('.').next().unwrap_or(name);
    let protocols = all.iter().map(|lazy| lazy.protocol().name());
    let services =
        all.iter().flat_map(|lazy| lazy.get().services().iter().map(|service| &*service.name));
    let first = suggestion(first, protocols.chain(services));
    if !first.is_empty() {
        return first;
    }
    let types = near_types(all, name);
    if types.is_empty() { types } else { format!("{types} (a type is named behind `--type`)") }
}

/// Types of the tables that a word may have been meant to be.
pub fn near_types(all: &[LazyTables], name: &str) -> String {
    let declared = all.iter().flat_map(|lazy| lazy.get().declarations());
    let types =
        declared.filter(|d| !matches!(d.kind, "message" | "service" | "numbers" | "dialect"));
    offer(name, types.map(|declaration| &*declaration.name))
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
    if tables.service(named.service).is_some_and(|service| needs_session(service, tables)) {
        return framed(named, bytes, settings, take);
    }
    let mut evaluator = Evaluator::default();
    named.lazy.protocol().prepare(&mut evaluator, settings.of(named.lazy));
    let mut tree = Tree::new();
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let side = named.side.index();
        let outcome = evaluator.message(tables, named.service, side, rest, &mut tree);
        let cut = matches!(outcome, Outcome::Need(_));
        let shown = if cut {
            // The fields that are there are shown, too.
            let whole = WholeMessage { bytes: rest, behind: 0 };
            evaluator.framed(tables, named.service, side, whole, &mut tree)
        } else {
            outcome
        };
        if let Outcome::Message(id, length) = shown {
            if at == 0 {
                named.expect_message(id)?;
            }
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
            if !cut {
                at += length.max(1);
                continue;
            }
        }
        let text = why(tables, outcome, rest.len());
        return Err(SettingsError::Unreadable(format!("at byte {at}: {text}")));
    }
    Ok(())
}

/// Whether the tables alone do not say which message bytes begin with and where it ends, or not
/// without what earlier messages set.
fn needs_session(service: &Service, tables: &Tables) -> bool {
    let framed_here = service.framing.begins.is_some()
        && service.framing.frame == ServiceFrame::Layout
        && service.ports.is_empty()
        && tables.declared().is_none();
    service.positional || service.header.is_empty() && !framed_here
}

impl NamedService<'_> {
    /// Refuses bytes that begin with another message than the one that was named.
    fn expect_message(&self, found: MessageId) -> Result<(), SettingsError> {
        let tables = self.lazy.get();
        let name = |id| tables.message(id).map_or("", |def| tables.name(def.name));
        match self.message {
            Some(named) if named != found => Err(SettingsError::Unreadable(format!(
                "at byte 0: this is {}, and not {}",
                name(found),
                name(named)
            ))),
            _ => Ok(()),
        }
    }
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
    let service = tables.service(named.service);
    let transport = lazy.protocol().transport_of(service);
    let service = service.filter(|s| tables.declared().is_some() || !s.ports.is_empty());
    let service = service.map(|service| &*service.name);
    let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let ends = Ends { client: nowhere, server: nowhere };
    let expected = named.message.and_then(|id| tables.message(id)).map(|def| tables.name(def.name));
    let start = Start { ends, transport, whole: true, service, message: expected };
    let mut session = lazy.protocol().session(&start, tables);
    let mut emit = Handed { take, expected, other: None, count: 0, refused: None };
    let mut context = Context {
        tables,
        evaluator: &mut Evaluator::default(),
        tree: &mut Tree::new(),
        settings: settings.of(lazy),
        sequences: [None; 2],
        options: &Options { max_message: 64 << 20, ..Options::default() },
        emit: &mut emit,
    };
    feed_alone(session.as_mut(), transport, side, bytes, Moment::default(), &mut context);
    if let (Some(expected), Some(other)) = (expected, emit.other) {
        let text = format!("at byte 0: this is {other}, and not {expected}");
        return Err(SettingsError::Unreadable(text));
    }
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
    /// The name of the first message, where it was named.
    expected: Option<&'a str>,
    /// The name that it has instead.
    other: Option<String>,
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
        if self.count == 0 && self.expected.is_some_and(|name| name != message.name.raw()) {
            self.other = Some(message.name.escaped().to_string());
        }
        self.count += 1;
        if self.other.is_none() {
            (self.take)(message, tables, tree);
        }
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
            let missing = n.saturating_sub(left);
            format!(
                "the message needs {} at least, {left} {} left: {missing} {} missing",
                counted(n, "byte"),
                plural(left, "is", "are"),
                plural(missing, "is", "are")
            )
        }
        Outcome::Unknown(n, _) => {
            format!("no message of this service and direction has the number {n}")
        }
        Outcome::NoLayout(id, _) => format!("the layout of {} is not known", name(id)),
        Outcome::TooLong(id, length, max) => {
            format!(
                "the {} would have {}, more than `max {max}`",
                name(id),
                counted(length, "byte")
            )
        }
        Outcome::Malformed(id) | Outcome::Message(id, _) => {
            format!("these bytes cannot be the {} their number says", name(id))
        }
    }
}
