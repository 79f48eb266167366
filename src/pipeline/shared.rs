//! The state that all streams of a run share: tables, keys, evaluators, one tree, the counts, and
//! the known servers.

use std::collections::HashMap;
use std::net::SocketAddr;

use super::passed_over::PassedOver;
use super::{Setup, Summary};
use crate::facts::NameInference;
use crate::proto::{Known, LazyTables, Opening};
use crate::session::{Ends, Transport};
use crate::table::Evaluator;
use crate::tree::Tree;

/// The most servers that are remembered, for connections that began before the capture.
const KNOWN_SERVERS: usize = 4096;

/// A protocol that the user chose.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChosenProtocol {
    /// Its index in the tables.
    pub(super) protocol: usize,
    /// The port for which it was chosen.
    pub(super) port: u16,
}

/// The state that all streams share.
pub(super) struct Shared {
    pub(super) setup: Setup,
    /// One for each protocol, in the order of [`Setup::tables`].
    pub(super) evaluators: Vec<Evaluator>,
    /// Every message is read into this one.
    pub(super) tree: Tree,
    pub(super) summary: Summary,
    pub(super) passed_over: PassedOver,
    /// Finds the names of numbers, if somebody wants them.
    pub(super) names: Option<NameInference>,
    /// The protocol of a server, and its service, unless it offers several.
    servers: HashMap<SocketAddr, (&'static str, Option<String>)>,
}

impl Shared {
    pub(super) fn new(setup: Setup) -> Shared {
        let ready = |lazy: &LazyTables| {
            let mut evaluator = Evaluator::default();
            evaluator.limits = setup.options.limits();
            lazy.protocol().prepare(&mut evaluator, setup.settings.of(lazy));
            evaluator
        };
        Shared {
            names: setup.names.then(NameInference::default),
            evaluators: setup.tables.iter().map(ready).collect(),
            setup,
            tree: Tree::new(),
            summary: Summary::default(),
            passed_over: PassedOver::default(),
            servers: HashMap::new(),
        }
    }

    /// The known server at one of the ends, from an earlier connection or from a protocol's
    /// settings.
    pub(super) fn known(&self, ends: Ends) -> Option<Known<'_>> {
        let met =
            [(ends.server, false), (ends.client, true)].into_iter().find_map(|(at, swapped)| {
                let (protocol, service) = self.servers.get(&at)?;
                Some(Known { protocol, service: service.as_deref(), swapped })
            });
        met.or_else(|| {
            self.setup.tables.iter().find_map(|tables| {
                let expected = tables.protocol().expects(ends, self.setup.settings.of(tables))?;
                let protocol = tables.protocol().name();
                Some(Known { protocol, service: expected.service, swapped: expected.swapped })
            })
        })
    }

    /// Remembers the protocol of a server. A server that offers two services is remembered without
    /// one: the next connection may be either.
    pub(super) fn remember_server(
        &mut self,
        at: SocketAddr,
        protocol: &'static str,
        service: String,
    ) {
        let full = self.servers.len() >= KNOWN_SERVERS;
        match self.servers.get_mut(&at) {
            Some((_, known)) if known.as_ref() != Some(&service) => *known = None,
            Some(_) => {}
            None if full => {}
            None => {
                self.servers.insert(at, (protocol, Some(service)));
            }
        }
    }

    /// The protocol that the user chose for one of the ports (`--decode-as`): of several choices,
    /// the first one that fits.
    pub(super) fn chosen_protocol(
        &self,
        opening: &Opening<'_>,
        transport: Transport,
    ) -> Option<ChosenProtocol> {
        let ports = [opening.ends.client.port(), opening.ends.server.port()];
        let rule = self
            .setup
            .decode_as
            .iter()
            .find(|d| d.transport == transport && ports.contains(&d.port))?;
        let port = rule.port;
        let mut tables = self.setup.tables.iter();
        let protocol = tables.position(|t| t.protocol().name() == rule.protocol)?;
        Some(ChosenProtocol { protocol, port })
    }
}
