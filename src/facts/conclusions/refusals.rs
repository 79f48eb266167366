//! Refusals that ended something: the last step of a client, being kicked off, and clients that
//! come again and again only to be refused. Refusals after which it went on are counted.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};

use super::watch::StreamWatch;
use super::words::nanos;
use super::words::{clock, shortened};
use super::{Conclusion, Kind, MAX_FINDINGS, SessionNames, StreamRef, TransportStream, Weight};
use crate::capture::Moment;
use crate::digits::{counted, plural};
use crate::record::EndedBy;
use crate::session::Side;
use crate::table::MessageId;

/// A client that failed so often in a row is in a loop.
const LOOP: u64 = 3;
/// The most clients and servers of which failures are counted.
const MAX_PAIRS: usize = 4096;
/// A refusal ended a stream if the client sent no more messages than this after it.
const AFTER: u64 = 4;
/// … and the connection was closed within so many nanoseconds.
const SOON: i64 = 10_000_000_000;
/// Who comes again later than this, in nanoseconds, is not in a loop.
const PAUSE: i64 = 300_000_000_000;

/// A client's address, and the server and service that it asked.
type FailureKey = (IpAddr, SocketAddr, String);

/// A refusal after which nothing was answered any more.
struct FinalRefusal {
    stream: StreamRef,
    at: Moment,
    record: u64,
    request: Option<u64>,
    message: String,
    reason: String,
    about: String,
    /// The steps that may have been refused.
    steps: Vec<MessageId>,
    kicked: bool,
    how: EndedBy,
}

/// Connections of one client to one server that failed one after the other.
struct Failures {
    stream: StreamRef,
    records: Vec<u64>,
    streams: Vec<TransportStream>,
    count: u64,
    first: Moment,
    last: Moment,
    reason: String,
}

/// What was refused.
#[derive(Default)]
pub(super) struct Refusals {
    last: Vec<FinalRefusal>,
    more: u64,
    harmless: u64,
    /// Main steps that servers granted to some client.
    granted: HashSet<(&'static str, MessageId)>,
    failures: HashMap<FailureKey, Failures>,
    loops: Vec<Failures>,
}

impl Refusals {
    /// A stream ended. Returns whether it ended with a refusal.
    pub(super) fn stream(&mut self, stream: &StreamRef, watch: &StreamWatch) -> bool {
        self.harmless += watch.harmless;
        for step in &watch.granted {
            if self.granted.len() < MAX_PAIRS {
                self.granted.insert((stream.protocol, *step));
            }
        }
        let refusal = watch.refusal.as_ref();
        let ended = refusal.filter(|refusal| {
            // It ended something only if nothing else followed: the connection was closed soon, or
            // the capture ended.
            let closes = watch.how() != EndedBy::Open;
            let soon = watch.end.is_none_or(|end| {
                !closes || nanos(end.at.time).saturating_sub(nanos(refusal.at.time)) <= SOON
            });
            let ends = if refusal.unasked { closes } else { !refusal.steps.is_empty() };
            refusal.after <= AFTER && soon && ends
        });
        self.harmless += u64::from(refusal.is_some() && ended.is_none());
        self.count_failure(stream, watch, ended.is_some());
        let Some(refusal) = ended else { return false };
        if self.last.len() >= MAX_FINDINGS {
            self.more += 1;
            return false;
        }
        self.last.push(FinalRefusal {
            stream: stream.clone(),
            at: refusal.at,
            record: refusal.record,
            request: refusal.request,
            message: refusal.message.clone(),
            reason: refusal.reason.clone(),
            about: refusal.about.clone(),
            steps: refusal.steps.clone(),
            kicked: refusal.unasked,
            how: watch.how(),
        });
        true
    }

    /// Counts a connection that failed: refused at its end, or closed by the server before it
    /// answered anything. One that did not fail ends the row, and so does one that began before the
    /// one before it was over: a client in a loop tries one after the other.
    fn count_failure(&mut self, stream: &StreamRef, watch: &StreamWatch, refused: bool) {
        let ends = stream.ends;
        let key = (ends.client.ip(), ends.server, stream.service.clone());
        let refusal = watch.refusal.as_ref().filter(|_| refused);
        let closed_by = watch.end.and_then(|end| end.closed_by).map(|(_, side)| side);
        let [_, answers] = &watch.replies;
        let turned_away = closed_by == Some(Side::Server) && answers.count == 0;
        let reason = match refusal {
            Some(refusal) => refusal.reason.clone(),
            None if turned_away => "closed by the server".to_string(),
            None => return self.end_row(&key),
        };
        let (Some(first), Some(last)) = (watch.first, watch.latest()) else { return };
        let record = refusal.map_or(0, |refusal| refusal.record);
        let goes_on = self.failures.get(&key).is_none_or(|row| {
            let pause = nanos(first.time).saturating_sub(nanos(row.last.time));
            (0..=PAUSE).contains(&pause)
        });
        if !goes_on {
            self.end_row(&key);
        }
        if self.failures.len() >= MAX_PAIRS && !self.failures.contains_key(&key) {
            return;
        }
        let row = self.failures.entry(key).or_insert_with(|| Failures {
            stream: stream.clone(),
            records: Vec::new(),
            streams: Vec::new(),
            count: 0,
            first,
            last,
            reason: String::new(),
        });
        row.count += 1;
        row.last = last;
        row.reason = reason;
        if row.streams.len() < MAX_FINDINGS {
            row.streams.push(stream.id);
        }
        if row.records.len() < super::MAX_RECORDS && record > 0 {
            row.records.push(record);
        }
    }

    fn end_row(&mut self, key: &FailureKey) {
        let row = self.failures.remove(key).filter(|row| row.count >= LOOP);
        if self.loops.len() < MAX_FINDINGS {
            self.loops.extend(row);
        }
    }

    pub(super) fn conclude(
        &self,
        names: &SessionNames,
        wanted: &dyn Fn(&StreamRef) -> bool,
        latest: &HashMap<IpAddr, (Moment, TransportStream)>,
        all: &mut Vec<Conclusion>,
    ) {
        let loops = self.loops();
        for row in loops.iter().filter(|row| wanted(&row.stream)) {
            let record = row.records.last().copied().unwrap_or(0);
            let who = names.side(&row.stream, record, Side::Client);
            let text = format!(
                "{who} connected {} times to {} {} from {} to {} and got no further: {}",
                row.count,
                row.stream.service,
                row.stream.ends.server,
                clock(row.first.time),
                clock(row.last.time),
                row.reason
            );
            let conclusion = Conclusion::new(Weight::Stop, Kind::LoginLoop, text)
                .showing(row.records.clone(), Vec::new())
                .in_session(names.of(&row.stream, record).map(|session| session.number))
                .sized(row.count);
            all.push(conclusion.more(format!(
                "moulsniff … --oneline -Y 'src == {0} or dst == {0}'",
                row.stream.ends.client.ip()
            )));
        }
        let own = self.last.iter().filter(|last| wanted(&last.stream));
        for last in own.filter(|last| !last.is_in(&loops)) {
            let is_followed = last.is_followed(names, latest);
            if last.kicked || !is_followed {
                all.push(last.conclude(names, is_followed, self.grants(last)));
            }
        }
    }

    /// Whether the same step was granted to another client: then it is a matter of this one.
    fn grants(&self, last: &FinalRefusal) -> bool {
        last.steps.iter().any(|step| self.granted.contains(&(last.stream.protocol, *step)))
    }

    /// Clients that came again and again, in the order of their first coming.
    fn loops(&self) -> Vec<&Failures> {
        let open = self.failures.values().filter(|row| row.count >= LOOP);
        let mut loops: Vec<&Failures> = self.loops.iter().chain(open).collect();
        loops.sort_by_key(|row| row.first);
        loops
    }

    /// The conclusion about refusals after which it went on.
    pub(super) fn count_harmless(
        &self,
        names: &SessionNames,
        latest: &HashMap<IpAddr, (Moment, TransportStream)>,
        all: &mut Vec<Conclusion>,
    ) {
        let loops = self.loops();
        let followed = |last: &&FinalRefusal| {
            !last.kicked && !last.is_in(&loops) && last.is_followed(names, latest)
        };
        let harmless = self.harmless + self.last.iter().filter(followed).count() as u64;
        if harmless == 0 {
            return;
        }
        let text = format!(
            "{} {} refused after which it went on",
            counted(harmless, "request"),
            plural(harmless, "was", "were")
        );
        let conclusion = Conclusion::new(Weight::Hint, Kind::Refused, text).sized(harmless);
        all.push(conclusion.more("moulsniff … --oneline -Y refused"));
    }
}

impl FinalRefusal {
    /// Whether its stream is one of those of a client that came again and again.
    fn is_in(&self, loops: &[&Failures]) -> bool {
        loops.iter().any(|row| row.streams.contains(&self.stream.id))
    }

    /// Whether the client went on, on this stream or on another.
    fn is_followed(
        &self,
        names: &SessionNames,
        latest: &HashMap<IpAddr, (Moment, TransportStream)>,
    ) -> bool {
        let last = match names.of(&self.stream, self.record) {
            Some(session) => session.last,
            None => latest.get(&self.stream.ends.client.ip()).copied(),
        };
        last.is_some_and(|(at, stream)| stream != self.stream.id && at > self.at)
    }

    /// The conclusion about it. A client that went on after it, or a step that others were granted,
    /// is not as bad.
    fn conclude(&self, names: &SessionNames, is_followed: bool, granted: bool) -> Conclusion {
        let asked = self.request.unwrap_or(self.record);
        let session = names.of(&self.stream, self.record);
        let who = names.side(&self.stream, self.record, Side::Client);
        let (about, frame) = names.about(&self.stream, asked);
        let at = clock(self.at.time);
        let end = match self.how {
            _ if is_followed => "and it came again",
            EndedBy::Open => "and nothing was granted after that until the capture ends",
            EndedBy::Reset => "and the connection was reset",
            _ => "and the connection was closed",
        };
        let (kind, text) = if self.kicked {
            let about = if self.about.is_empty() { &self.reason } else { &self.about };
            let about = shortened(about, 120);
            (
                Kind::Kicked,
                format!(
                    "the {} server sent {who} away at {at}: {about}, {end}",
                    self.stream.service
                ),
            )
        } else {
            let what = if about.is_empty() { self.message.clone() } else { shortened(&about, 120) };
            let text = format!(
                "the last step of {who} was refused at {at}: {what}: {}, {end}",
                self.reason
            );
            (Kind::RefusedAtEnd, text)
        };
        let number = session.map(|session| session.number);
        let weight = if is_followed || granted { Weight::Trouble } else { Weight::Stop };
        let conclusion = Conclusion::new(weight, kind, text)
            .showing(vec![asked, self.record], vec![frame, self.at.frame])
            .in_session(number);
        conclusion.more(match number {
            Some(number) => format!("moulsniff sessions {number} … --story"),
            None => format!("moulsniff … -Y 'record == {}'", self.record),
        })
    }
}
