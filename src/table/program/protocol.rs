//! What tables declare of a whole protocol: how it is recognised, which service a connection
//! offers, what a connection remembers.

use super::super::text::{Condition, RuleSide};
use super::TableText;
use super::ids::ServiceId;

/// A protocol that is declared in tables.
#[derive(Debug, Clone, Default)]
pub struct ProtocolDef {
    /// It runs over TCP.
    pub tcp: bool,
    /// It runs over UDP.
    pub udp: bool,
    /// Where its servers usually are.
    pub ports: Vec<u16>,
    /// The rules: a connection that satisfies one of them is the protocol's.
    pub rules: Vec<Rule>,
    /// The services a connection may offer: the first whose rule it satisfies.
    pub offers: Vec<Offer>,
    /// The names and first values of what a connection remembers.
    pub states: Vec<(TableText, u64)>,
}

/// Conditions on the first bytes of a connection. All of them must hold.
#[derive(Debug, Clone)]
pub struct Rule {
    /// It is tested on each datagram: on every other one the protocol, or the service, is not used.
    pub each: bool,
    /// Whose bytes they are about.
    pub side: RuleSide,
    /// The conditions.
    pub conditions: Vec<Condition>,
    /// Its place in its file.
    pub at: usize,
}

/// A service that a connection may offer.
#[derive(Debug, Clone)]
pub struct Offer {
    /// The service.
    pub service: ServiceId,
    /// When it is offered. `None` if it applies whenever no earlier offer does.
    pub when: Option<Rule>,
}
