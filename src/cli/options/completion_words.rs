//! Words from the embedded tables that shell completions offer where any text may be typed.
//!
//! The tables are read when completions are printed, and not when a command runs.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command};

use crate::proto::{LazyTables, PROTOCOLS, all_tables};
use crate::session::Transport;

/// Takes any text, and offers some words.
#[derive(Clone)]
pub(in crate::cli) struct CompletionWords(fn() -> Vec<String>);

impl CompletionWords {
    /// Offers what `decode` takes: `moul.auth.client`.
    pub(in crate::cli) const SENDERS: CompletionWords = CompletionWords(senders);
    /// Offers protocols and services: `moul`, `moul.auth`.
    pub(in crate::cli) const SERVICES: CompletionWords = CompletionWords(services);
    /// Offers the ports where servers usually are, with their protocols: `tcp:14617=moul`.
    pub(in crate::cli) const PORTS: CompletionWords = CompletionWords(ports);

    /// The words.
    pub(in crate::cli) fn words(&self) -> Vec<String> {
        (self.0)()
    }
}

impl TypedValueParser for CompletionWords {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.words().into_iter().map(PossibleValue::new)))
    }
}

/// Each protocol's name, followed by its services.
fn services() -> Vec<String> {
    let mut names = Vec::new();
    for lazy in all_tables(Vec::new()).unwrap_or_default() {
        let protocol = lazy.protocol().name().to_owned();
        let own: Vec<String> =
            services_of(&lazy).map(|service| format!("{protocol}.{service}")).collect();
        names.push(protocol);
        names.extend(own);
    }
    names
}

fn senders() -> Vec<String> {
    let mut names = Vec::new();
    for lazy in all_tables(Vec::new()).unwrap_or_default() {
        let protocol = lazy.protocol().name();
        let sides =
            |service: &str| ["client", "server"].map(|side| format!("{protocol}.{service}.{side}"));
        names.extend(services_of(&lazy).flat_map(sides));
    }
    names
}

fn services_of(lazy: &LazyTables) -> impl Iterator<Item = &str> {
    lazy.get().services().iter().map(|service| &*service.name)
}

fn ports() -> Vec<String> {
    let of = |transport| if transport == Transport::Udp { "udp" } else { "tcp" };
    let all = PROTOCOLS.iter().flat_map(|protocol| {
        protocol.usual_ports().iter().map(move |port| (protocol.name(), port))
    });
    all.map(|(protocol, (transport, port))| format!("{}:{port}={protocol}", of(*transport)))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn what_is_offered_is_what_commands_take() {
        let all = all_tables(Vec::new()).unwrap();
        assert!(senders().iter().all(|name| crate::proto::NamedService::find(&all, name).is_ok()));
        assert!(senders().len() >= 10 && services().len() > senders().len() / 2);
        assert!(
            ports().iter().all(|port| crate::pipeline::DecodeAs::parse(port, PROTOCOLS).is_ok())
        );
        assert!(ports().len() >= PROTOCOLS.len());
    }
}
