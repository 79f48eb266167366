//! Protocols that table files declare as a whole, without any code of their own.
//!
//! It knows the form of declarations, but no protocol.

use super::{LazyTables, Opening, Protocol, Verdict};
use crate::session::{ChosenSession, Held, Look, Side, holds, usual_sender};
use crate::session::{Session, Start, Transport};
use crate::table::{
    BITSTREAM, Condition, Native, ProtocolDef, Rule, RuleSide, ServiceId, TableSource, Tables,
};

/// A protocol that is declared in table files.
#[derive(Debug)]
pub struct DeclaredProtocol {
    name: String,
    ports: Vec<(Transport, u16)>,
    transports: Vec<Transport>,
}

impl DeclaredProtocol {
    /// The protocol that tables declare. `None` if they declare none.
    pub fn of(tables: &Tables) -> Option<DeclaredProtocol> {
        let declared = tables.declared()?;
        let transports = transports(declared);
        let ports =
            transports.iter().flat_map(|t| declared.ports.iter().map(|port| (*t, *port))).collect();
        let known = !transports.is_empty();
        known.then(|| DeclaredProtocol { name: tables.protocol().to_string(), ports, transports })
    }

    /// The types with code that such tables may use, beside the types of the language.
    pub(super) const NATIVES: &'static [Native] = &BITSTREAM;
}

fn transports(declared: &ProtocolDef) -> Vec<Transport> {
    let both = [(Transport::Tcp, declared.tcp), (Transport::Udp, declared.udp)];
    both.into_iter().filter(|(_, runs)| *runs).map(|(transport, _)| transport).collect()
}

impl Protocol for DeclaredProtocol {
    fn name(&self) -> &str {
        &self.name
    }

    fn sources(&self) -> Vec<TableSource> {
        Vec::new()
    }

    fn natives(&self) -> &'static [Native] {
        DeclaredProtocol::NATIVES
    }

    fn usual_ports(&self) -> &[(Transport, u16)] {
        &self.ports
    }

    fn transports(&self) -> &[Transport] {
        &self.transports
    }

    fn recognise_tcp(&self, opening: &Opening<'_>, tables: &LazyTables) -> Verdict {
        recognise(&self.name, opening, Transport::Tcp, tables.get())
    }

    fn recognise_udp(&self, opening: &Opening<'_>, tables: &LazyTables) -> Verdict {
        recognise(&self.name, opening, Transport::Udp, tables.get())
    }

    fn session(&self, start: &Start<'_>, tables: &Tables) -> Box<dyn Session> {
        Box::new(ChosenSession::new(start, tables))
    }
}

/// Whether a connection satisfies one of the rules, as it is or with its sides swapped.
fn recognise(name: &str, opening: &Opening<'_>, transport: Transport, tables: &Tables) -> Verdict {
    let Some(declared) =
        tables.declared().filter(|declared| transports(declared).contains(&transport))
    else {
        return Verdict::No;
    };
    let look =
        Look { client: opening.client, server: opening.server, ends: opening.ends, transport };
    if let Some(known) =
        opening.known.filter(|known| known.protocol == name && transport == Transport::Tcp)
    {
        return Verdict::Yes { swapped: known.swapped };
    }
    let port = [Rule {
        each: false,
        side: RuleSide::Either,
        conditions: vec![Condition::Port(Vec::new())],
        at: 0,
    }];
    let rules = if declared.rules.is_empty() { &port[..] } else { &declared.rules };
    let services: Vec<ServiceId> = match declared.offers.as_slice() {
        [] => vec![ServiceId(0)],
        offers => offers.iter().map(|offer| offer.service).collect(),
    };
    let best =
        |look: &Look<'_>| rules.iter().map(|rule| holds(rule, look, &services, tables)).max();
    let straight = best(&look).unwrap_or(Held::No);
    if straight == Held::Yes {
        let told = || told_swapped(opening, &services, tables);
        let swapped = || told().unwrap_or_else(|| stands_better_swapped(declared, opening));
        return Verdict::Yes { swapped: !opening.whole && swapped() };
    }
    let other = if opening.whole { Held::No } else { best(&look.swapped()).unwrap_or(Held::No) };
    match straight.max(other) {
        Held::Yes => Verdict::Yes { swapped: true },
        Held::Maybe if !opening.last => Verdict::Maybe,
        _ => Verdict::No,
    }
}

/// Whether the first message came from the side that usually does not send it. `None` if the tables
/// do not say which side sends it.
fn told_swapped(opening: &Opening<'_>, services: &[ServiceId], tables: &Tables) -> Option<bool> {
    [(Side::Client, opening.client), (Side::Server, opening.server)]
        .into_iter()
        .find_map(|(side, bytes)| Some(usual_sender(services, side, bytes, tables)? != side))
}

/// Whether the end that is taken for the client has one of the protocol's ports, and the other end
/// has not.
fn stands_better_swapped(declared: &ProtocolDef, opening: &Opening<'_>) -> bool {
    let at = |port: u16| declared.ports.contains(&port);
    at(opening.ends.client.port()) && !at(opening.ends.server.port())
}
