//! What is wrong in captures, in sentences: who, what, since when, on whose side, and which records
//! show it.
//!
//! [`Conclusions`] takes the records of a capture and what is known at the end of each stream. The
//! groups of conclusions have a file each. They know no protocol: tables say what a request, a
//! refusal and an identity is, sessions say by events and facts what else they met.
//!
//! What is kept of an open stream is small and bounded. Of ended streams only what was wrong is
//! kept, [`MAX_FINDINGS`] of a kind; further ones are counted. `docs/diagnosing.md` explains every
//! kind and threshold.

mod capture;
mod disagreement;
mod keys;
mod loss;
mod numbered;
mod open_waits;
mod refusals;
mod slowness;
mod waits;
mod watch;
mod who;
mod words;

use std::collections::HashMap;
use std::net::IpAddr;

use capture::Gaps;
pub use capture::{CaptureFacts, FileOverlap, FilesFacts, NotReadFrames, PassedPort};
use disagreement::Disagreements;
use keys::ClosedConnections;
use loss::Losses;
use refusals::Refusals;
use slowness::Slowness;
use waits::Waits;
use watch::StreamWatch;
use who::SessionNames;

use super::{ClientSession, StreamMap, TransportStream};
use crate::capture::Moment;
use crate::record::{Body, Record, RoundTrips, StreamTraffic};
use crate::session::{Counts, Ends, Learned};
use crate::table::Tables;

/// The most findings of one kind that are kept one by one.
const MAX_FINDINGS: usize = 256;
/// The most clients of which the latest message is remembered.
const MAX_CLIENTS: usize = 65_536;
/// The most records and frames that one conclusion names.
const MAX_RECORDS: usize = 8;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Something could not be read, or somebody could not go on.
    Stop,
    /// It went on, but not as it should.
    Trouble,
    /// Worth knowing.
    Hint,
}

impl Weight {
    /// The word in the JSON.
    pub fn word(self) -> &'static str {
        match self {
            Weight::Stop => "stop",
            Weight::Trouble => "trouble",
            Weight::Hint => "hint",
        }
    }
}

/// What it is about. Of two conclusions of one weight the earlier kind comes first, since it may be
/// the reason for the later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // docs/diagnosing.md has each of them.
pub enum Kind {
    Clock,
    FileOrder,
    SnapLength,
    OneDirection,
    Dropped,
    Encapsulation,
    NothingRecognised,
    OtherKeys,
    NoKey,
    JoinedLate,
    Waiting,
    DownloadStopped,
    NotConfirmed,
    ClosedWaiting,
    LoginLoop,
    Kicked,
    HeldUp,
    SlowServer,
    SlowNetwork,
    SlowClient,
    Loss,
    Resent,
    StrangeAcks,
    Unread,
    UnknownVersion,
    RefusedAtEnd,
    Unhandled,
    TooLong,
    Dialect,
    Refused,
}

impl Kind {
    /// The word in the JSON.
    pub fn word(self) -> &'static str {
        match self {
            Kind::SnapLength => "snap_length",
            Kind::OneDirection => "one_direction",
            Kind::Dropped => "dropped",
            Kind::Encapsulation => "encapsulation",
            Kind::NothingRecognised => "nothing_recognised",
            Kind::OtherKeys => "other_keys",
            Kind::NoKey => "no_key",
            Kind::JoinedLate => "joined_late",
            Kind::Clock => "clock",
            Kind::FileOrder => "file_order",
            Kind::Waiting => "waiting",
            Kind::DownloadStopped => "download_stopped",
            Kind::NotConfirmed => "not_confirmed",
            Kind::ClosedWaiting => "closed_waiting",
            Kind::LoginLoop => "login_loop",
            Kind::Kicked => "kicked",
            Kind::RefusedAtEnd => "refused_at_end",
            Kind::HeldUp => "held_up",
            Kind::SlowServer => "slow_server",
            Kind::SlowNetwork => "slow_network",
            Kind::SlowClient => "slow_client",
            Kind::Loss => "loss",
            Kind::Resent => "resent",
            Kind::StrangeAcks => "strange_acks",
            Kind::Unread => "unread",
            Kind::UnknownVersion => "unknown_version",
            Kind::Unhandled => "unhandled",
            Kind::TooLong => "too_long",
            Kind::Dialect => "dialect",
            Kind::Refused => "refused",
        }
    }
}

/// On whose side it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The client did it, or did not do it.
    Client,
    /// The server did.
    Server,
    /// Something between the two.
    Network,
    /// The capture lacks it; the traffic itself may be well.
    Capture,
    /// The keys that were given.
    Keys,
}

impl Blame {
    /// The word in the JSON.
    pub fn word(self) -> &'static str {
        match self {
            Blame::Client => "client",
            Blame::Server => "server",
            Blame::Network => "network",
            Blame::Capture => "capture",
            Blame::Keys => "keys",
        }
    }
}

/// One thing that is wrong, or worth knowing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conclusion {
    /// How bad it is.
    pub weight: Weight,
    /// What it is about.
    pub kind: Kind,
    /// One sentence for people. Names in it are as they were captured.
    pub text: String,
    /// The session that it is about, where sessions are known and it is about one.
    pub session: Option<u64>,
    /// The records that show it.
    pub records: Vec<u64>,
    /// The frames that show it.
    pub frames: Vec<u64>,
    /// On whose side it is, where that can be told.
    pub blame: Option<Blame>,
    /// The command that shows more: `…` stands for the captures and the options that were typed.
    pub more: String,
    /// How much of it there is, to compare it with others of its kind.
    size: u64,
}

impl Conclusion {
    fn new(weight: Weight, kind: Kind, text: String) -> Conclusion {
        Conclusion {
            weight,
            kind,
            text,
            session: None,
            records: Vec::new(),
            frames: Vec::new(),
            blame: None,
            more: String::new(),
            size: 0,
        }
    }

    fn of(self, blame: Blame) -> Conclusion {
        Conclusion { blame: Some(blame), ..self }
    }

    fn showing(self, records: Vec<u64>, frames: Vec<u64>) -> Conclusion {
        let known = |all: Vec<u64>| {
            let mut all: Vec<u64> = all.into_iter().filter(|number| *number > 0).collect();
            all.sort_unstable();
            all.dedup();
            all.truncate(MAX_RECORDS);
            all
        };
        Conclusion { records: known(records), frames: known(frames), ..self }
    }

    fn more(self, more: impl Into<String>) -> Conclusion {
        Conclusion { more: more.into(), ..self }
    }

    fn sized(self, size: u64) -> Conclusion {
        Conclusion { size, ..self }
    }

    fn in_session(self, session: Option<u64>) -> Conclusion {
        Conclusion { session, ..self }
    }
}

/// A stream that ended.
pub struct EndedStream<'a> {
    /// Its transport and number.
    pub id: TransportStream,
    /// Its two ends.
    pub ends: Ends,
    /// The protocol's name.
    pub protocol: &'static str,
    /// The service's name.
    pub service: &'a str,
    /// The byte counts of the client's and of the server's direction.
    pub counts: [Counts; 2],
    /// The round trips to its ends.
    pub round_trips: RoundTrips,
    /// What its packets show beside the bytes.
    pub traffic: StreamTraffic,
    /// Facts that its session learned.
    pub learned: &'a [Learned],
}

/// Of which stream a finding is.
#[derive(Clone, Debug)]
struct StreamRef {
    id: TransportStream,
    protocol: &'static str,
    service: String,
    ends: Ends,
}

/// Collects what is wrong.
#[derive(Default)]
pub struct Conclusions {
    /// In boxes, since they move whenever the records change from one stream to another.
    open: StreamMap<Box<StreamWatch>>,
    gaps: Gaps,
    closed: ClosedConnections,
    waits: Waits,
    refusals: Refusals,
    slowness: Slowness,
    losses: Losses,
    disagreements: Disagreements,
    names: SessionNames,
    /// By client's address: its latest message, and the stream of it.
    latest: HashMap<IpAddr, (Moment, TransportStream)>,
    streams: u64,
    messages: u64,
}

impl Conclusions {
    /// Takes the next record.
    #[inline]
    pub fn record(&mut self, record: &Record<'_>) {
        let watch = self.open.of((record.transport, record.stream));
        match &record.body {
            Body::Message { message, tables, tree } => {
                self.messages += 1;
                watch.message(record, message, tables, tree);
                if !tree.problems().is_empty() {
                    self.disagreements.message(record, message, tables, tree);
                }
            }
            Body::Event(event) => {
                watch.event(record, event);
            }
            Body::StreamEnd { end, closed_in, .. } => watch.end(record, *end, *closed_in),
        }
    }

    /// A stream ended.
    pub fn stream_over(&mut self, ended: &EndedStream<'_>) {
        self.streams += 1;
        let watch = self.open.remove(ended.id).unwrap_or_default();
        let stream = StreamRef {
            id: ended.id,
            protocol: ended.protocol,
            service: ended.service.to_string(),
            ends: ended.ends,
        };
        if let Some(last) = watch.latest() {
            let client = ended.ends.client.ip();
            if self.latest.len() < MAX_CLIENTS || self.latest.contains_key(&client) {
                let known = self.latest.entry(client).or_insert((last, ended.id));
                if known.0 < last {
                    *known = (last, ended.id);
                }
            }
        }
        let (mut found, missing) = self.gaps.stream(&stream, &watch, ended);
        found |= self.closed.stream(&stream, &watch, ended);
        found |= self.waits.stream(&stream, &watch, missing);
        found |= self.refusals.stream(&stream, &watch);
        found |= self.slowness.stream(&stream, &watch, ended);
        found |= self.losses.stream(&stream, ended);
        found |= self.disagreements.stream(&stream, &watch, ended);
        if found {
            self.names.wanted(ended.id);
        }
    }

    /// A session is over: findings of its streams are of this session, and of whom it is.
    pub fn session(&mut self, session: &ClientSession) {
        self.names.session(session);
    }

    /// All conclusions, the heaviest first. `tables` gives the tables of a protocol.
    pub fn all<'t>(
        &self,
        capture: &CaptureFacts,
        tables: &dyn Fn(&str) -> Option<&'t Tables>,
    ) -> Vec<Conclusion> {
        let mut all = Vec::new();
        let seen = capture::Seen { streams: self.streams, messages: self.messages };
        capture.conclude(&seen, &self.gaps, &mut all);
        self.gaps.conclude(capture, &self.names, &mut all);
        self.closed.conclude(self.streams, &mut all);
        self.of_streams(&|_| true, tables, &mut all);
        self.refusals.count_harmless(&self.names, &self.latest, &mut all);
        self.slowness.conclude(&self.names, &mut all);
        self.disagreements.conclude(&mut all);
        sort(&mut all);
        all
    }

    /// The conclusions about one session, the heaviest first.
    pub fn of_session<'t>(
        &self,
        session: &ClientSession,
        tables: &dyn Fn(&str) -> Option<&'t Tables>,
    ) -> Vec<Conclusion> {
        let own = |stream: &StreamRef| session.streams.iter().any(|own| own.id == stream.id);
        let mut all = Vec::new();
        self.of_streams(&own, tables, &mut all);
        all.retain(|one| one.session == Some(session.number));
        sort(&mut all);
        all
    }

    /// The conclusions that are about single streams.
    fn of_streams<'t>(
        &self,
        wanted: &dyn Fn(&StreamRef) -> bool,
        tables: &dyn Fn(&str) -> Option<&'t Tables>,
        all: &mut Vec<Conclusion>,
    ) {
        self.waits.conclude(&self.names, wanted, tables, all);
        self.refusals.conclude(&self.names, wanted, &self.latest, all);
        self.slowness.conclude_streams(&self.names, wanted, all);
        self.losses.conclude(&self.names, wanted, all);
    }
}

/// The heaviest first. Of two that are alike in everything else the one that was found first.
fn sort(all: &mut [Conclusion]) {
    all.sort_by_key(|one| {
        let first = one.records.first().copied().unwrap_or(u64::MAX);
        (one.weight, one.kind, std::cmp::Reverse(one.size), first)
    });
}
