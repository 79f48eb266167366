//! Slowness: servers and clients that take long to reply, networks over which packets take long,
//! requests that hold up others, and receivers that do not read.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::watch::{Holding, NOTICEABLE, ReplyTimes, SLOW, SlowReply, StreamWatch};
use super::words::{clock, length, percent};
use super::{Blame, Conclusion, EndedStream, Kind, MAX_FINDINGS, SessionNames, StreamRef, Weight};
use crate::digits::{counted, plural};
use crate::session::{Side, Transport};

/// The most servers that are told apart.
const MAX_SERVERS: usize = 1024;
/// A reply that takes this long keeps a player waiting, in nanoseconds.
const WAITED: i64 = 1_000_000_000;
/// Fewer replies than this say nothing of what is usual.
const FEW: u64 = 5;
/// So many replies that are all slow may be the fault of the network as well as of the server.
const ALIKE: u64 = 2;
/// A way there and back that takes this long is felt in everything, in nanoseconds …
const FAR: i64 = 250_000_000;
/// … and from this on it is worth knowing.
const AWAY: i64 = 150_000_000;
/// A request that holds up fewer others holds up nobody.
const OTHERS: u64 = 2;

/// How long the two sides of the streams of one server took to reply.
struct ServerTimes {
    stream: StreamRef,
    /// The replies of the clients and of the server.
    sides: [SideTimes; 2],
    /// Streams whose way there and back was measured, and those where it was far.
    ways: u64,
    far: u64,
    /// The longest way, with the parts to the client and to the server.
    longest: Option<(i64, [Option<i64>; 2], StreamRef)>,
    /// The shortest times of reply of both sides, added up, of the streams whose way was not
    /// measured.
    shortest: Option<i64>,
}

#[derive(Default)]
struct SideTimes {
    replies: u64,
    noticeable: u64,
    slow: u64,
    worst: Option<(SlowReply, StreamRef)>,
}

/// A side that said that it takes no more bytes.
struct FullReceiver {
    stream: StreamRef,
    side: Side,
    times: u64,
    longest: i64,
    frame: u64,
}

/// What was slow.
#[derive(Default)]
pub(super) struct Slowness {
    servers: BTreeMap<(SocketAddr, String), ServerTimes>,
    held: Vec<(Holding, StreamRef, Side)>,
    full: Vec<FullReceiver>,
}

impl Slowness {
    /// A stream ended. Returns whether something in it was slow.
    pub(super) fn stream(
        &mut self,
        stream: &StreamRef,
        watch: &StreamWatch,
        ended: &EndedStream<'_>,
    ) -> bool {
        let mut found = false;
        for side in [Side::Client, Side::Server] {
            let traffic = ended.traffic.sides.get(side.index());
            if let Some(traffic) = traffic.filter(|traffic| traffic.zero_windows > 0)
                && self.full.len() < MAX_FINDINGS
            {
                found = true;
                self.full.push(FullReceiver {
                    stream: stream.clone(),
                    side,
                    times: traffic.zero_windows,
                    longest: traffic.longest_zero_window,
                    frame: traffic.first_zero_window,
                });
            }
            let held = watch.replies.get(side.index()).and_then(|times| times.held.as_ref());
            if let Some(held) = held.filter(|held| held.others >= OTHERS)
                && self.held.len() < MAX_FINDINGS
            {
                found = true;
                self.held.push((Holding::clone(held), stream.clone(), side));
            }
        }
        let key = (stream.ends.server, stream.service.clone());
        if self.servers.len() >= MAX_SERVERS && !self.servers.contains_key(&key) {
            return found;
        }
        let server = self.servers.entry(key).or_insert_with(|| ServerTimes {
            stream: stream.clone(),
            sides: Default::default(),
            ways: 0,
            far: 0,
            longest: None,
            shortest: None,
        });
        found | server.add(stream, watch, ended)
    }

    /// The conclusions about single streams.
    pub(super) fn conclude_streams(
        &self,
        names: &SessionNames,
        wanted: &dyn Fn(&StreamRef) -> bool,
        all: &mut Vec<Conclusion>,
    ) {
        for (held, stream, side) in self.held.iter().filter(|(_, stream, _)| wanted(stream)) {
            all.push(held_up(held, stream, *side, names));
        }
        for full in self.full.iter().filter(|full| wanted(&full.stream)) {
            all.push(full.conclude(names));
        }
    }

    /// The conclusions about servers.
    pub(super) fn conclude(&self, names: &SessionNames, all: &mut Vec<Conclusion>) {
        for server in self.servers.values() {
            for side in [Side::Client, Side::Server] {
                let own = server.sides.get(side.index());
                let worst_held = |reply: &SlowReply| {
                    self.held.iter().any(|(held, ..)| held.slow.request == reply.request)
                };
                all.extend(own.and_then(|own| own.conclude(side, names, &worst_held)));
            }
            all.extend(server.network(names));
        }
    }
}

impl ServerTimes {
    fn add(&mut self, stream: &StreamRef, watch: &StreamWatch, ended: &EndedStream<'_>) -> bool {
        let parts = [ended.round_trips.client, ended.round_trips.server]
            .map(|trip| trip.map(|trip| trip.nanos));
        let whole: i64 = parts.iter().flatten().fold(0, |sum, part| sum.saturating_add(*part));
        if parts.iter().any(Option::is_some) {
            self.ways += 1;
            self.far += u64::from(whole >= AWAY);
            if self.longest.as_ref().is_none_or(|longest| longest.0 < whole) {
                self.longest = Some((whole, parts, stream.clone()));
            }
        }
        // What no reply and no acknowledgement was faster than may be the network.
        let fastest = |(times, acks): (&ReplyTimes, &(u64, i64))| {
            let (count, shortest) = *acks;
            let replies = times.shortest.filter(|_| times.count >= ALIKE);
            replies.into_iter().chain((count >= ALIKE).then_some(shortest)).min()
        };
        let mut floors = [None, None];
        if parts.iter().all(Option::is_none) {
            let both = watch.replies.iter().zip(&watch.acknowledged).map(fastest);
            floors.iter_mut().zip(both).for_each(|(floor, fastest)| *floor = fastest);
            if let Some(sum) = floors.iter().flatten().copied().reduce(i64::saturating_add) {
                self.shortest = Some(self.shortest.map_or(sum, |known| known.min(sum)));
            }
        }
        let mut found = whole >= AWAY;
        for ((own, times), floor) in self.sides.iter_mut().zip(&watch.replies).zip(floors) {
            found |= own.add(stream, times, floor.filter(|floor| *floor >= FAR));
        }
        found
    }

    /// The conclusion about the way between the clients and the server.
    fn network(&self, names: &SessionNames) -> Option<Conclusion> {
        let service = &self.stream.service;
        if let Some((whole, parts, stream)) = &self.longest
            && self.far * 2 > self.ways
        {
            let weight = if *whole >= FAR { Weight::Trouble } else { Weight::Hint };
            let [client, server] = parts.map(|part| part.map(length));
            let parts = match (client, server) {
                (Some(client), Some(server)) => {
                    format!(
                        ": {client} between the capture and the client, {server} between it and \
                         the server"
                    )
                }
                (Some(_), None) => " between the capture and the client".to_string(),
                _ => " between the capture and the server".to_string(),
            };
            let text = format!(
                "packets between clients and the {service} server {} take {} there and back{parts}",
                self.stream.ends.server,
                length(*whole)
            );
            let conclusion = Conclusion::new(weight, Kind::SlowNetwork, text)
                .of(Blame::Network)
                .in_session(names.of(stream, 0).map(|session| session.number))
                .sized(u64::try_from(*whole).unwrap_or(0));
            return Some(conclusion.more("moulsniff sessions …"));
        }
        let shortest = self.shortest.filter(|shortest| *shortest >= FAR)?;
        let datagrams = self.stream.id.0 == Transport::Udp;
        let why = if datagrams { "nothing in UDP tells" } else { "the capture does not show" };
        let text = format!(
            "nothing between clients and the {service} server {} was answered within {}: the \
             network or the programs, {why} which",
            self.stream.ends.server,
            length(shortest)
        );
        let conclusion = Conclusion::new(Weight::Trouble, Kind::SlowNetwork, text)
            .sized(u64::try_from(shortest).unwrap_or(0));
        Some(conclusion.more("moulsniff stats …"))
    }
}

impl SideTimes {
    /// Adds the times of a stream. Returns whether its slowest reply is the slowest of all.
    /// `floor` is what each reply may have taken on the network, if that was long.
    fn add(&mut self, stream: &StreamRef, times: &ReplyTimes, floor: Option<i64>) -> bool {
        self.replies += times.count;
        if floor.is_none() {
            self.noticeable += times.noticeable;
            self.slow += times.slow;
        }
        let by_itself = |worst: &&SlowReply| floor.is_none_or(|floor| worst.own() - floor >= SLOW);
        let Some(worst) = times.worst.as_ref().filter(by_itself) else { return false };
        let slower = self.worst.as_ref().is_none_or(|(known, _)| known.own() < worst.own());
        if slower {
            self.worst = Some((worst.clone(), stream.clone()));
        }
        slower
    }

    fn conclude(
        &self,
        side: Side,
        names: &SessionNames,
        is_held_up: &dyn Fn(&SlowReply) -> bool,
    ) -> Option<Conclusion> {
        let (worst, stream) = self.worst.as_ref()?;
        let most = |n: u64| self.replies > 1 && n * 2 > self.replies;
        let usual = if most(self.slow) {
            Some((self.slow, SLOW))
        } else {
            Some((self.noticeable, NOTICEABLE)).filter(|(n, _)| most(*n))
        };
        let often = self.replies >= FEW && most(self.slow);
        let weight = if worst.own() >= WAITED || often {
            Weight::Trouble
        } else if worst.own() >= SLOW || usual.is_some() {
            Weight::Hint
        } else {
            return None;
        };
        if usual.is_none() && is_held_up(worst) {
            return None;
        }
        let who = names.side(stream, worst.reply, side);
        let (about, frame) = names.about(stream, worst.request);
        let about = if about.is_empty() { String::new() } else { format!(" ({about})") };
        let parts = match worst.network {
            Some(network) => format!(", of which the network took {}", length(network)),
            None => String::new(),
        };
        let without = if worst.network.is_some() { " without the network" } else { "" };
        let share = match usual {
            Some((n, from)) => format!(
                "{} of {} of {who} took {} or longer{without}; the slowest is",
                percent(n, self.replies),
                format_args!("{} {}", self.replies, plural(self.replies, "reply", "replies")),
                length(from)
            ),
            None => format!("{who} was slow:"),
        };
        let text = format!(
            "{share} {}{about} {}after {} at {}{parts}",
            worst.message,
            if worst.part { "as a further part " } else { "" },
            length(worst.nanos),
            clock(worst.at.time)
        );
        let (kind, blame) = match side {
            Side::Client => (Kind::SlowClient, Blame::Client),
            Side::Server => (Kind::SlowServer, Blame::Server),
        };
        let session = names.of(stream, worst.reply).map(|session| session.number);
        let conclusion = Conclusion::new(weight, kind, text)
            .of(blame)
            .showing(vec![worst.request, worst.reply], vec![frame, worst.at.frame])
            .in_session(session)
            .sized(u64::try_from(worst.own()).unwrap_or(0));
        let milliseconds = NOTICEABLE / 1_000_000;
        Some(conclusion.more(format!("moulsniff … --oneline -Y 'elapsed_ms > {milliseconds}'")))
    }
}

fn held_up(held: &Holding, stream: &StreamRef, side: Side, names: &SessionNames) -> Conclusion {
    let slow = &held.slow;
    let who = names.side(stream, slow.reply, side);
    let (about, frame) = names.about(stream, slow.request);
    let about = if about.is_empty() { String::new() } else { format!(" ({about})") };
    let text = format!(
        "{who} took {} for {}{about} until {}, and {} behind it had to wait for that, up to {}",
        length(slow.own()),
        slow.message,
        clock(slow.at.time),
        counted(held.others, "request"),
        length(held.longest)
    );
    let blame = if side == Side::Server { Blame::Server } else { Blame::Client };
    let session = names.of(stream, slow.reply).map(|session| session.number);
    let conclusion = Conclusion::new(Weight::Trouble, Kind::HeldUp, text)
        .of(blame)
        .showing(held.records.clone(), vec![frame, slow.at.frame])
        .in_session(session)
        .sized(u64::try_from(slow.own()).unwrap_or(0));
    conclusion.more(format!("moulsniff … --oneline -Y 'elapsed_ms > {}'", 100))
}

impl FullReceiver {
    fn conclude(&self, names: &SessionNames) -> Conclusion {
        let FullReceiver { stream, side, times, longest, frame } = self;
        let who = names.side(stream, 0, *side);
        let text = format!(
            "{who} did not read what came: it took nothing for up to {}, {} in all ({}, tcp {})",
            length(*longest),
            counted(*times, "time"),
            stream.service,
            stream.id.1
        );
        let weight = if *longest >= SLOW { Weight::Trouble } else { Weight::Hint };
        let (kind, blame) = match side {
            Side::Client => (Kind::SlowClient, Blame::Client),
            Side::Server => (Kind::SlowServer, Blame::Server),
        };
        let session = names.of(stream, 0).map(|session| session.number);
        let conclusion = Conclusion::new(weight, kind, text)
            .of(blame)
            .showing(Vec::new(), vec![*frame])
            .in_session(session)
            .sized(*times);
        conclusion.more(format!(
            "moulsniff … --oneline -Y 'transport == tcp and stream == {}'",
            stream.id.1
        ))
    }
}
