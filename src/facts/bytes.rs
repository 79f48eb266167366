//! Counts bytes by how far they were understood: in total, by protocol, by service and by stream.
//!
//! At most [`STREAMS`] streams are listed. Further ones are only counted.

use std::net::SocketAddr;

use crate::record::RoundTrips;
use crate::session::{Counts, Transport};

/// The most streams, and services, listed one by one.
const STREAMS: usize = 10_000;

/// A stream that ended.
#[derive(Clone, Debug)]
pub struct StreamSummary {
    /// TCP or UDP.
    pub transport: Transport,
    /// Its number.
    pub stream: u32,
    /// The client's end.
    pub client: SocketAddr,
    /// The server's end.
    pub server: SocketAddr,
    /// The protocol's name.
    pub protocol: String,
    /// The service's name.
    pub service: String,
    /// The bytes of both directions.
    pub bytes: Counts,
    /// The round trips to its ends, as far as the capture shows them.
    pub round_trips: RoundTrips,
}

impl StreamSummary {
    /// What it is listed under. Several connections may have one number.
    pub fn key(&self) -> (&'static str, u32) {
        (self.transport.word(), self.stream)
    }
}

/// Bytes, counted when their stream ends.
#[derive(Debug, Default)]
pub struct ByteCounts {
    all: Counts,
    protocols: Vec<(String, Counts)>,
    services: Vec<(String, Counts)>,
    listed: Vec<StreamSummary>,
    streams: u64,
}

impl ByteCounts {
    /// Counts a stream that ended, and its bytes.
    pub fn stream(&mut self, stream: StreamSummary) {
        self.streams += 1;
        self.all.add(stream.bytes);
        add_to(&mut self.protocols, &stream.protocol, stream.bytes);
        add_to(&mut self.services, &stream.service, stream.bytes);
        if self.listed.len() < STREAMS {
            self.listed.push(stream);
        }
    }

    /// All bytes.
    pub fn all(&self) -> Counts {
        self.all
    }

    /// By protocol, in the order of their first streams.
    pub fn protocols(&self) -> &[(String, Counts)] {
        &self.protocols
    }

    /// By service, in the order of their first streams.
    pub fn services(&self) -> &[(String, Counts)] {
        &self.services
    }

    /// How many streams were counted.
    pub fn streams(&self) -> u64 {
        self.streams
    }

    /// The streams that are listed, by transport and number.
    pub fn listed(&self) -> Vec<&StreamSummary> {
        let mut all: Vec<&StreamSummary> = self.listed.iter().collect();
        all.sort_by_key(|stream| stream.key());
        all
    }

    /// How many streams are not listed.
    pub fn unlisted(&self) -> u64 {
        self.streams.saturating_sub(self.listed.len() as u64)
    }
}

fn add_to(list: &mut Vec<(String, Counts)>, name: &str, bytes: Counts) {
    if let Some((_, known)) = list.iter_mut().find(|(known, _)| known == name) {
        known.add(bytes);
    } else if list.len() < STREAMS {
        list.push((name.to_string(), bytes));
    }
}
