//! Assigns a stream that does not identify its client to one of several clients behind the same address. This is a guess, by time.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use super::stream_facts::StreamFacts;

/// Clients that identified themselves, by address and protocol.
#[derive(Default)]
pub(super) struct Clients {
    by_address: HashMap<(IpAddr, &'static str), Vec<KnownClient>>,
}

/// A client's streams.
struct KnownClient {
    group: u64,
    /// The first frames of those of its streams that identify it.
    begins: Vec<u64>,
    /// Services of which a stream was assigned to it.
    given: HashSet<String>,
}

impl Clients {
    /// Adds a group with those of its streams that identify their client.
    pub(super) fn add<'a>(&mut self, group: u64, streams: impl Iterator<Item = &'a StreamFacts>) {
        let mut key = None;
        let mut begins = Vec::new();
        for stream in streams {
            key = Some((stream.client().ip(), stream.protocol));
            begins.push(stream.first.frame);
        }
        if let Some(key) = key {
            begins.sort_unstable();
            self.by_address.entry(key).or_default().push(KnownClient { group, begins, given: HashSet::new() });
        }
    }

    /// The group whose next stream begins soonest after a stream began. Groups without a stream of its service are preferred.
    pub(super) fn next_of(&mut self, stream: &StreamFacts) -> Option<u64> {
        let clients = self.by_address.get_mut(&(stream.client().ip(), stream.protocol))?;
        let began = stream.first.frame;
        let soonest = |client: &KnownClient| {
            let place = client.begins.partition_point(|begin| *begin < began);
            client.begins.get(place).map(|begin| begin - began)
        };
        let after = clients.iter_mut().filter_map(|client| {
            let key = (client.given.contains(stream.service()), soonest(client)?);
            Some((key, client))
        });
        let (_, client) = after.min_by_key(|(key, _)| *key)?;
        client.given.insert(stream.service().to_string());
        Some(client.group)
    }
}
