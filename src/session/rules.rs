//! Tests whether the first bytes of a connection satisfy a recognition rule of a table: bytes at
//! offsets, lengths, ports, a message that fits.
//!
//! It reads and keeps nothing. It knows no protocol.

use super::{Ends, Extent, Framing, Side, Transport};
use crate::table::{
    Condition, Evaluator, Outcome, Rule, RuleSide, Sender, ServiceId, Tables, WholeMessage,
};
use crate::tree::{Kind, Severity, Tree};

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Held {
    /// It does not hold.
    No,
    /// More bytes are needed to tell.
    Maybe,
    /// It holds.
    Yes,
}

/// The part of a connection that rules are tested on: its first bytes, or the latest datagram of
/// each side.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// What the client sent.
    pub client: &'a [u8],
    /// What the server sent.
    pub server: &'a [u8],
    /// Both ends.
    pub ends: Ends,
    /// Bytes of a stream, or datagrams.
    pub transport: Transport,
}

impl<'a> Look<'a> {
    /// What one side sent.
    fn of(&self, side: Side) -> &'a [u8] {
        match side {
            Side::Client => self.client,
            Side::Server => self.server,
        }
    }

    /// The same connection with client and server swapped.
    #[must_use]
    pub fn swapped(self) -> Look<'a> {
        let ends = Ends { client: self.ends.server, server: self.ends.client };
        Look { client: self.server, server: self.client, ends, ..self }
    }
}

/// Whether all conditions of a rule hold. `services` are those whose messages may fit.
pub fn holds(rule: &Rule, look: &Look<'_>, services: &[ServiceId], tables: &Tables) -> Held {
    let side = |side: Side| {
        let conditions = rule.conditions.iter();
        conditions
            .map(|condition| condition_holds(condition, look, side, services, tables))
            .min()
            .unwrap_or(Held::No)
    };
    match rule.side {
        RuleSide::Client => side(Side::Client),
        RuleSide::Server => side(Side::Server),
        RuleSide::Both => side(Side::Client).min(side(Side::Server)),
        RuleSide::Either => side(Side::Client).max(side(Side::Server)),
    }
}

fn condition_holds(
    condition: &Condition,
    look: &Look<'_>,
    side: Side,
    services: &[ServiceId],
    tables: &Tables,
) -> Held {
    let bytes = look.of(side);
    // A datagram is complete, but a side may not have sent one yet.
    let short =
        if look.transport == Transport::Tcp || bytes.is_empty() { Held::Maybe } else { Held::No };
    let told = |yes: bool| if yes { Held::Yes } else { short };
    match condition {
        Condition::At { place, values, mask } => {
            let all = values.iter().map(|value| stands_at(bytes, *place as usize, value, mask));
            all.max().unwrap_or(Held::No).max(Held::No).min_or(short)
        }
        Condition::Least(least) => told(bytes.len() >= *least as usize),
        Condition::Most(_) if bytes.is_empty() => Held::Maybe,
        Condition::Most(most) => {
            told(look.transport == Transport::Tcp || bytes.len() <= *most as usize)
        }
        Condition::Port(listed) => {
            let own = tables.declared().map_or(&[][..], |declared| &declared.ports);
            let ports = if listed.is_empty() { own } else { listed };
            if ports.contains(&look.ends.server.port()) { Held::Yes } else { Held::No }
        }
        Condition::Fits if bytes.is_empty() => Held::Maybe,
        Condition::Fits => {
            let fit = |service: &ServiceId| fits(*service, side, bytes, look.transport, tables);
            services.iter().map(fit).max().unwrap_or(Held::No)
        }
    }
}

impl Held {
    /// Replaces `Maybe` by the answer for bytes that are too few.
    fn min_or(self, short: Held) -> Held {
        if self == Held::Maybe { short } else { self }
    }
}

/// Whether a value is at a place. `Maybe` if the bytes end before the value does.
fn stands_at(bytes: &[u8], place: usize, value: &[u8], mask: &[u8]) -> Held {
    let there = bytes.get(place..).unwrap_or(&[]);
    let bits = |at: usize| mask.get(at).copied().unwrap_or(0xff);
    let differs = there.iter().zip(value).enumerate().any(|(at, (a, b))| (a ^ b) & bits(at) != 0);
    match (differs, there.len() >= value.len()) {
        (true, _) => Held::No,
        (false, true) => Held::Yes,
        (false, false) => Held::Maybe,
    }
}

/// Reads messages of a service on trial: the values that they ask to remember are not kept.
struct TrialReader<'a> {
    tables: &'a Tables,
    service: ServiceId,
    framing: Framing,
    side: Side,
    evaluator: Evaluator,
    tree: Tree,
}

impl<'a> TrialReader<'a> {
    /// A trial of bytes sent by `side`. `None` if there is no such service.
    fn new(service: ServiceId, side: Side, tables: &'a Tables) -> Option<TrialReader<'a>> {
        let framing = Framing::of(tables.service(service)?);
        let mut evaluator = Evaluator::default();
        evaluator.memory.frozen = true;
        evaluator.states = tables.first_states();
        Some(TrialReader { tables, service, framing, side, evaluator, tree: Tree::new() })
    }

    /// Reads the first message in `bytes` into the tree. `None` if no message begins so.
    fn read(&mut self, bytes: &[u8]) -> Option<Outcome> {
        let tables = self.tables;
        let side = self.side.index();
        Some(match self.framing.extent(bytes, 0) {
            Extent::ByLayout => {
                self.evaluator.message(tables, self.service, side, bytes, &mut self.tree)
            }
            Extent::Bytes(length) => match bytes.get(..length) {
                Some(bytes) => {
                    let whole = WholeMessage { bytes, behind: self.framing.behind() };
                    self.evaluator.framed(tables, self.service, side, whole, &mut self.tree)
                }
                None => Outcome::Need(length),
            },
            Extent::Need(length) => Outcome::Need(length),
            Extent::Impossible(_) => return None,
        })
    }
}

/// The side that usually sends the first message in `bytes`, if the tables say so. `side` is taken
/// for its sender.
pub fn usual_sender(
    services: &[ServiceId],
    side: Side,
    bytes: &[u8],
    tables: &Tables,
) -> Option<Side> {
    let named = services.iter().find_map(|service| {
        match TrialReader::new(*service, side, tables)?.read(bytes)? {
            Outcome::Message(id, _) => tables.message(id)?.usually,
            _ => None,
        }
    });
    match named? {
        Sender::Client => Some(Side::Client),
        Sender::Server => Some(Side::Server),
        Sender::Both => None,
    }
}

/// Whether bytes begin with a flawless message of a service. A datagram must hold nothing else.
fn fits(
    service: ServiceId,
    side: Side,
    bytes: &[u8],
    transport: Transport,
    tables: &Tables,
) -> Held {
    let Some(mut trial) = TrialReader::new(service, side, tables) else { return Held::No };
    let mut done = 0;
    while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
        match trial.read(rest) {
            Some(Outcome::Message(_, length)) if is_sound(&trial.tree) => {
                if transport == Transport::Tcp {
                    return Held::Yes;
                }
                done += length.max(1);
            }
            Some(Outcome::Need(_)) if transport == Transport::Tcp => return Held::Maybe,
            _ => return Held::No,
        }
    }
    Held::Yes
}

/// Whether a message was read without a problem.
fn is_sound(tree: &Tree) -> bool {
    tree.problems().iter().all(|problem| problem.severity == Severity::Note)
        && tree.nodes().iter().all(|node| node.kind != Kind::Undecoded)
}
