//! Connections that stay closed for want of a key: why, in one sentence for all that stay closed
//! for the same reason.

use std::collections::BTreeMap;

use super::watch::StreamWatch;
use super::words::listed;
use super::{Blame, Conclusion, EndedStream, Kind, StreamRef, Weight};
use crate::digits::{counted, plural};

/// The most reasons that are told apart.
const MAX_REASONS: usize = 64;
/// The most services of one reason that are told apart.
const MAX_SERVICES: usize = 16;

/// Stands in texts for the services of the connections.
const SERVICES: &str = "\u{0}";

/// How texts name the key of a service.
fn own_key(service: &str) -> String {
    format!(" for {service} ")
}

/// Why connections stay closed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// Their beginning was not captured.
    Late,
    /// Bytes of their beginning are missing.
    Gap,
    /// No key was given.
    NoKey,
    /// Those that were given do not fit.
    WrongKey,
}

#[derive(Default)]
struct ClosedGroup {
    connections: u64,
    bytes: u64,
    services: BTreeMap<String, u64>,
    records: Vec<u64>,
    frames: Vec<u64>,
}

/// The connections that stay closed.
#[derive(Default)]
pub(super) struct ClosedConnections {
    groups: BTreeMap<(Reason, String), ClosedGroup>,
}

impl ClosedConnections {
    /// A stream ended. Returns whether it stayed closed.
    pub(super) fn stream(
        &mut self,
        stream: &StreamRef,
        watch: &StreamWatch,
        ended: &EndedStream<'_>,
    ) -> bool {
        let Some(closed) = &watch.closed else { return false };
        let reason = if !ended.traffic.whole {
            Reason::Late
        } else if watch.gap_before_closed {
            Reason::Gap
        } else if closed.no_key {
            Reason::NoKey
        } else {
            Reason::WrongKey
        };
        // The texts of several services differ in the service's name alone.
        let text = closed.text.replacen(&own_key(&stream.service), &own_key(SERVICES), 1);
        let key = (reason, text);
        if self.groups.len() >= MAX_REASONS && !self.groups.contains_key(&key) {
            return false;
        }
        let group = self.groups.entry(key).or_default();
        group.connections += 1;
        group.bytes += ended.counts.iter().map(|counts| counts.closed).sum::<u64>();
        let named = group.services.len() < MAX_SERVICES;
        if named || group.services.contains_key(&stream.service) {
            *group.services.entry(stream.service.clone()).or_default() += 1;
        }
        if group.records.len() < super::MAX_RECORDS {
            group.records.push(closed.record);
            group.frames.push(closed.at.frame);
        }
        true
    }

    pub(super) fn conclude(&self, streams: u64, all: &mut Vec<Conclusion>) {
        for ((reason, text), group) in &self.groups {
            let named: Vec<String> = group.services.keys().cloned().collect();
            let why = text.replacen(SERVICES, &listed(&named, MAX_SERVICES), 1);
            let services: Vec<String> = group
                .services
                .iter()
                .map(|(service, n)| match n {
                    1 => service.clone(),
                    n => format!("{service} {n}"),
                })
                .collect();
            let which = match streams {
                1 => format!("the connection ({})", listed(&services, 6)),
                _ => format!(
                    "{} of {} ({})",
                    group.connections,
                    counted(streams, "connection"),
                    listed(&services, 6)
                ),
            };
            let stay = plural(group.connections, "stays", "stay");
            let bytes = counted(group.bytes, "byte");
            let (kind, blame, text, more) = match reason {
                Reason::Late => (
                    Kind::JoinedLate,
                    Blame::Capture,
                    format!(
                        "{which} began before the capture and {stay} closed, {bytes}: start to \
                         capture before the client connects"
                    ),
                    "moulsniff … --oneline -Y 'event in {no_key, wrong_key}'",
                ),
                Reason::Gap => (
                    Kind::Dropped,
                    Blame::Capture,
                    format!(
                        "{which} {stay} closed, {bytes}, since frames of the beginning were not \
                         captured whole"
                    ),
                    "moulsniff … --oneline -Y 'event == gap'",
                ),
                Reason::NoKey => (
                    Kind::NoKey,
                    Blame::Keys,
                    format!("{which} {stay} closed, {bytes}: {why}"),
                    "moulsniff … --keys FILE",
                ),
                Reason::WrongKey => (
                    Kind::OtherKeys,
                    Blame::Keys,
                    format!("{which} {stay} closed, {bytes}: {why}"),
                    "moulsniff keys check FILE",
                ),
            };
            let conclusion = Conclusion::new(Weight::Stop, kind, text)
                .of(blame)
                .showing(group.records.clone(), group.frames.clone())
                .sized(group.bytes);
            all.push(conclusion.more(more));
        }
    }
}
