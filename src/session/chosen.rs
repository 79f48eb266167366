//! A connection of a protocol that tables declare. Its first bytes or its port select one of the
//! protocol's services. From then on, a session of that service reads it. This file knows no
//! protocol.

use super::{
    Context, Declaration, Ends, Framing, Held, Look, Resync, Session, Side, Start, TableSession,
    Transport, holds,
};
use crate::capture::Moment;
use crate::table::{Rule, RuleSide, ServiceId, Tables};

/// The most bytes that wait until the service is known.
const MAX_WAITING: usize = 4096;

/// A connection whose port or first bytes select its service, or each datagram does.
pub struct ChosenSession {
    ends: Ends,
    transport: Transport,
    /// Whether rules are tested on each datagram.
    each: bool,
    /// The service that is used now.
    service: Option<ServiceId>,
    inner: Option<TableSession>,
    waiting: Vec<EarlyPiece>,
    held: usize,
}

/// Bytes that came before the service was known.
struct EarlyPiece {
    from: Side,
    offset: u64,
    bytes: Vec<u8>,
    at: Moment,
}

impl ChosenSession {
    /// A connection before its first byte. If `start` names a service, it is that one.
    pub fn new(start: &Start<'_>, tables: &Tables) -> ChosenSession {
        let named = start.service.and_then(|name| tables.service_named(name));
        let only = || match tables.declared().map(|declared| declared.offers.as_slice()) {
            Some([offer, ..]) if offer.when.is_none() => Some(offer.service),
            Some([]) | None => Some(ServiceId(0)),
            _ => None,
        };
        let service = named.or_else(only);
        let each = start.transport == Transport::Udp
            && tables.declared().is_some_and(|declared| {
                let offers = declared.offers.iter().filter_map(|offer| offer.when.as_ref());
                declared.rules.iter().chain(offers).any(|rule| rule.each)
            });
        ChosenSession {
            ends: start.ends,
            transport: start.transport,
            each,
            service,
            inner: service.map(|service| session_of(service, tables)),
            waiting: Vec::new(),
            held: 0,
        }
    }

    /// Keeps a piece until the rules select a service. With `last`, they have to select it now.
    fn choose(&mut self, last: bool, context: &mut Context<'_>) {
        if self.inner.is_some() {
            return;
        }
        let last = last || self.held >= MAX_WAITING;
        let Some(service) = self.chosen(last, context.tables) else { return };
        let mut inner = session_of(service, context.tables);
        for piece in self.waiting.drain(..) {
            match self.transport {
                Transport::Tcp => {
                    inner.data(piece.from, piece.offset, &piece.bytes, piece.at, context)
                }
                Transport::Udp => inner.datagram(piece.from, &piece.bytes, 0, piece.at, context),
            }
        }
        self.held = 0;
        self.inner = Some(inner);
    }

    /// The service, as far as the rules can tell.
    fn chosen(&self, last: bool, tables: &Tables) -> Option<ServiceId> {
        let offers = tables.declared().map_or(&[][..], |declared| &declared.offers);
        let sent = |side: Side| {
            let pieces = self.waiting.iter().filter(|piece| piece.from == side);
            let all = pieces.map(|piece| piece.bytes.as_slice());
            match self.transport {
                Transport::Tcp => all.collect::<Vec<&[u8]>>().concat(),
                // Others before the latest datagram may be of no service.
                Transport::Udp => all.last().unwrap_or_default().to_vec(),
            }
        };
        let client = sent(Side::Client);
        let server = sent(Side::Server);
        let look =
            Look { client: &client, server: &server, ends: self.ends, transport: self.transport };
        for offer in offers {
            match offer
                .when
                .as_ref()
                .map_or(Held::Yes, |rule| holds(rule, &look, &[offer.service], tables))
            {
                Held::Yes => return Some(offer.service),
                Held::Maybe if !last => return None,
                _ => {}
            }
        }
        if self.transport == Transport::Udp && !last {
            return None;
        }
        Some(offers.last().map_or(ServiceId(0), |offer| offer.service))
    }

    /// Reads a datagram as the service that it is of. The connection's states and requests are
    /// those of all its services.
    fn read_by_itself(
        &mut self,
        from: Side,
        bytes: &[u8],
        missing: u64,
        at: Moment,
        context: &mut Context<'_>,
    ) {
        let tables = context.tables;
        let service = self.service_of(from, bytes, tables);
        let first = tables.declared().and_then(|declared| declared.offers.first());
        let used = service.or(self.service).or(first.map(|offer| offer.service));
        let used = used.unwrap_or(ServiceId(0));
        let inner = self.inner.get_or_insert_with(|| session_of(used, tables));
        if self.service.replace(used) != Some(used) {
            inner.change_service(declaration_of(used, tables));
        }
        match service {
            Some(_) => inner.datagram(from, bytes, missing, at, context),
            None => inner.refuse(from, bytes, at, context),
        }
    }

    /// The service of a datagram, by the rules that are about each of them. `None` if none holds.
    fn service_of(&self, from: Side, bytes: &[u8], tables: &Tables) -> Option<ServiceId> {
        let declared = tables.declared()?;
        let mut look =
            Look { client: bytes, server: &[], ends: self.ends, transport: self.transport };
        if from == Side::Server {
            (look.client, look.server) = (look.server, look.client);
        }
        let satisfies = |rule: &Rule, services: &[ServiceId]| {
            // The other side's bytes are another datagram's.
            let side = if rule.side == RuleSide::Both { RuleSide::Either } else { rule.side };
            holds(&Rule { side, ..rule.clone() }, &look, services, tables) == Held::Yes
        };
        let services: Vec<ServiceId> = declared.offers.iter().map(|offer| offer.service).collect();
        let services = if services.is_empty() { vec![ServiceId(0)] } else { services };
        let mut rules = declared.rules.iter().filter(|rule| rule.each).peekable();
        if rules.peek().is_some() && !rules.any(|rule| satisfies(rule, &services)) {
            return None;
        }
        if declared.offers.is_empty() {
            return Some(ServiceId(0));
        }
        let mut offers = declared.offers.iter();
        let taken = offers
            .find(|offer| offer.when.as_ref().is_none_or(|rule| satisfies(rule, &[offer.service])));
        taken.map(|offer| offer.service)
    }

    fn keep(&mut self, from: Side, offset: u64, bytes: &[u8], at: Moment) {
        self.held += bytes.len() + size_of::<EarlyPiece>();
        self.waiting.push(EarlyPiece { from, offset, bytes: bytes.to_vec(), at });
    }
}

/// The session of a service, as its tables declare it.
fn session_of(service: ServiceId, tables: &Tables) -> TableSession {
    TableSession::new(declaration_of(service, tables), tables)
}

fn declaration_of(service: ServiceId, tables: &Tables) -> Declaration {
    let def = tables.service(service);
    let resync =
        def.and_then(|def| def.framing.resync.clone()).map_or(Resync::NextPiece, Resync::Magic);
    let framing = def.map_or(Framing::Layout, Framing::of);
    let name = def.map_or(String::new(), |def| def.name.to_string());
    Declaration { name, service: Some(service), framing, resync, remark: None }
}

impl Session for ChosenSession {
    fn data(
        &mut self,
        from: Side,
        offset: u64,
        bytes: &[u8],
        at: Moment,
        context: &mut Context<'_>,
    ) {
        if let Some(inner) = &mut self.inner {
            return inner.data(from, offset, bytes, at, context);
        }
        self.keep(from, offset, bytes, at);
        self.choose(false, context);
    }

    fn datagram(
        &mut self,
        from: Side,
        bytes: &[u8],
        missing: u64,
        at: Moment,
        context: &mut Context<'_>,
    ) {
        if self.each {
            return self.read_by_itself(from, bytes, missing, at, context);
        }
        if let Some(inner) = &mut self.inner {
            return inner.datagram(from, bytes, missing, at, context);
        }
        self.keep(from, 0, bytes, at);
        self.choose(false, context);
    }

    fn gap(&mut self, from: Side, offset: u64, length: u64, at: Moment, context: &mut Context<'_>) {
        self.choose(true, context);
        if let Some(inner) = &mut self.inner {
            inner.gap(from, offset, length, at, context);
        }
    }

    fn held(&self) -> usize {
        self.held + self.inner.as_ref().map_or(0, TableSession::held)
    }

    fn relieve(&mut self, at: Moment, context: &mut Context<'_>) {
        self.choose(true, context);
        if let Some(inner) = &mut self.inner {
            inner.relieve(at, context);
        }
    }

    fn end(&mut self, from: Side, at: Moment, context: &mut Context<'_>) {
        self.choose(true, context);
        if let Some(inner) = &mut self.inner {
            inner.end(from, at, context);
        }
    }

    fn service(&self) -> &str {
        self.inner.as_ref().map_or("unknown", Session::service)
    }
}
