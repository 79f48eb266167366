//! Waits: requests that were never answered, or only in part; what the protocol owes a receipt for
//! and never got one; and connections that were closed over them.

use super::open_waits::Asked;
use super::watch::StreamWatch;
use super::words::nanos;
use super::words::{before, clock, length};
use super::{Blame, Conclusion, Kind, MAX_FINDINGS, SessionNames, StreamRef, Weight};
use crate::capture::Moment;
use crate::digits::{counted, plural};
use crate::record::EndedBy;
use crate::session::Side;
use crate::table::{Expectation, MessageId, Tables};

/// A request that waits until the capture ends waits for good after this long, in nanoseconds …
const LONG: i64 = 1_000_000_000;
/// … or after this long, where later ones of its connection were answered.
const OVERTAKEN: i64 = 100_000_000;

/// A stream with requests that were never answered.
struct WaitingStream {
    stream: StreamRef,
    asked: Vec<Asked>,
    others: u64,
    how: EndedBy,
    closed_by: Option<Side>,
    /// The latest request of client and server that was answered.
    answered: [u64; 2],
    /// The latest message of client and server.
    last: [Option<(Moment, u64)>; 2],
    /// The last gap in what client and server sent.
    gaps: [u64; 2],
}

/// What was never answered.
#[derive(Default)]
pub(super) struct Waits {
    streams: Vec<WaitingStream>,
    /// Streams that are not kept.
    more: u64,
}

impl Waits {
    /// A stream ended. Returns whether something in it was never answered. What a side should have
    /// answered that was not captured says nothing.
    pub(super) fn stream(
        &mut self,
        stream: &StreamRef,
        watch: &StreamWatch,
        missing: Option<Side>,
    ) -> bool {
        let mut asked = watch.waits.asked.clone();
        asked.retain(|asked| missing != Some(asked.asker.other()));
        if asked.is_empty() {
            return false;
        }
        if self.streams.len() >= MAX_FINDINGS {
            self.more += 1;
            return false;
        }
        let [client, server] = &watch.replies;
        self.streams.push(WaitingStream {
            stream: stream.clone(),
            asked,
            others: watch.waits.others,
            how: watch.how(),
            closed_by: watch.end.and_then(|end| end.closed_by).map(|(_, side)| side),
            // What the server answered was asked by the client.
            answered: [server.answered, client.answered],
            last: watch.last,
            gaps: watch.gaps.each_ref().map(|gaps| gaps.last),
        });
        true
    }

    pub(super) fn conclude<'t>(
        &self,
        names: &SessionNames,
        wanted: &dyn Fn(&StreamRef) -> bool,
        tables: &dyn Fn(&str) -> Option<&'t Tables>,
        all: &mut Vec<Conclusion>,
    ) {
        for waiting in self.streams.iter().filter(|waiting| wanted(&waiting.stream)) {
            let tables = tables(waiting.stream.protocol);
            for asker in [Side::Client, Side::Server] {
                let own = waiting.asked.iter().filter(|asked| asked.asker == asker);
                let (receipts, requests): (Vec<_>, Vec<_>) =
                    own.partition(|asked| wants_receipt(tables, &asked.message));
                all.extend(waiting.requests(&requests, names, tables));
                all.extend(waiting.receipts(&receipts, names));
            }
        }
        if self.more > 0
            && let Some(first) = all.iter_mut().find(|one| one.kind == Kind::Waiting)
        {
            first.text.push_str(&format!("; {} more connections wait, too", self.more));
        }
    }
}

/// Whether a message asks for nothing but that its arrival is confirmed.
fn wants_receipt(tables: Option<&Tables>, message: &str) -> bool {
    let def = tables.and_then(|tables| tables.message(tables.message_named(message)?));
    def.is_some_and(|def| !def.expects_reply || def.expects == Some(Expectation::Receipt))
}

/// The message that would answer another.
fn reply_name<'t>(tables: Option<&'t Tables>, message: &str) -> Option<&'t str> {
    let tables = tables?;
    let asked: MessageId = tables.message_named(message)?;
    let reply = tables.messages().iter().find(|def| def.answers.contains(&asked))?;
    Some(tables.name(reply.name))
}

impl WaitingStream {
    /// The conclusion about requests of one side: about the one that waited longest.
    fn requests(
        &self,
        requests: &[&Asked],
        names: &SessionNames,
        tables: Option<&Tables>,
    ) -> Option<Conclusion> {
        let longest = requests.iter().max_by_key(|asked| {
            (asked.part, asked.idle, std::cmp::Reverse(asked.records.first().copied()))
        })?;
        let Asked { message, asker, waited, idle, until, part, .. } = longest;
        let record = longest.records.first().copied().unwrap_or(0);
        let overtaken = self.answered.get(asker.index()).is_some_and(|last| *last > record);
        let mut weight = self.weight(*asker, *idle, overtaken && !part)?;
        let (about, frame) = names.about(&self.stream, record);
        let about = if about.is_empty() { String::new() } else { format!(" ({about})") };
        let who = names.side(&self.stream, record, *asker);
        let since = clock(before(until.time, *waited));
        let replier = asker.other();
        let other = replier.word();
        let times = match longest.times {
            1 => String::new(),
            n => format!(", {n} times"),
        };
        let name = reply_name(tables, message);
        let awaited = name.map_or_else(|| format!("the reply to {message}"), str::to_string);
        let waited_text = length(*waited);
        let end = match (self.how, self.closed_by) {
            (EndedBy::Fin, Some(side)) => format!("the {} closed the connection", side.word()),
            (EndedBy::Reset, Some(side)) => format!("the {} reset the connection", side.word()),
            (EndedBy::Fin, None) => "the connection was closed".to_string(),
            (EndedBy::Reset, None) => "the connection was reset".to_string(),
            (EndedBy::Timeout, _) => "the client connected anew".to_string(),
            (EndedBy::GivenUp, _) => "too many streams were open".to_string(),
            (EndedBy::Open, _) => "the capture ends".to_string(),
        };
        let open = matches!(self.how, EndedBy::Open | EndedBy::GivenUp);
        let (kind, mut text) = if *part {
            let text = format!(
                "{who} got a part of the reply to {message}{about}, asked at {since}, the last at \
                 {}, and nothing more in the {} until {end}",
                clock(before(until.time, *idle)),
                length(*idle)
            );
            (Kind::DownloadStopped, text)
        } else if open {
            let text = format!(
                "{who} waits for {awaited}{about} since {since}{times}, {waited_text} until {end}"
            );
            (Kind::Waiting, text)
        } else {
            let text = format!(
                "{who} asked for {awaited}{about} at {since}{times} and got none: {end} \
                 {waited_text} later"
            );
            (Kind::ClosedWaiting, text)
        };
        let after = self.last.get(replier.index()).copied().flatten().filter(|(at, _)| {
            nanos(at.time) > nanos(until.time).saturating_sub(*waited) && at.frame > frame
        });
        match (overtaken, after) {
            (true, _) => text.push_str(&format!("; the {other} answered later requests meanwhile")),
            (false, Some(_)) => text.push_str(&format!("; the {other} went on sending meanwhile")),
            (false, None) => text.push_str(&format!("; nothing came from the {other} after it")),
        }
        if self.gaps.get(replier.index()).is_some_and(|gap| *gap > record) {
            weight = weight.max(Weight::Trouble);
            text.push_str("; the reply may be among what was never captured");
        }
        let more: u64 = requests.iter().map(|asked| asked.times).sum::<u64>() + self.others;
        let more = more.saturating_sub(longest.times);
        if more > 0 {
            text.push_str(&format!(
                ", and {} {}, too",
                counted(more, "other request"),
                plural(more, "waits", "wait")
            ));
        }
        let session = names.of(&self.stream, record).map(|session| session.number);
        let further = requests.iter().filter(|asked| asked.message != *message);
        let records = longest.records.iter().chain(further.flat_map(|asked| &asked.records));
        let mut records: Vec<u64> = records.copied().collect();
        // The one that the sentence is about has to be among them.
        records.truncate(super::MAX_RECORDS);
        let blame = if *asker == Side::Client { Blame::Server } else { Blame::Client };
        let conclusion = Conclusion::new(weight, kind, text)
            .of(blame)
            .showing(records, vec![frame])
            .in_session(session)
            .sized(u64::try_from(*waited).unwrap_or(0));
        Some(conclusion.more(match session {
            Some(number) => format!("moulsniff sessions {number} … --story"),
            None => format!("moulsniff … -Y 'record == {record}'"),
        }))
    }

    /// How bad it is that a request waited so long; `None` for one that was on its way when its
    /// connection ended.
    fn weight(&self, asker: Side, waited: i64, overtaken: bool) -> Option<Weight> {
        let long = waited >= LONG;
        // Who closes the connection waits for nothing more.
        let left_alone = self.closed_by.is_some_and(|side| side != asker);
        Some(match self.how {
            _ if long => Weight::Stop,
            EndedBy::Reset | EndedBy::Fin if left_alone => Weight::Stop,
            EndedBy::Reset if self.closed_by.is_none() => Weight::Stop,
            _ if overtaken && waited >= OVERTAKEN => Weight::Stop,
            EndedBy::Reset | EndedBy::Fin | EndedBy::Timeout => Weight::Hint,
            EndedBy::Open | EndedBy::GivenUp => return None,
        })
    }

    /// The conclusion about messages whose arrival was never confirmed.
    fn receipts(&self, receipts: &[&Asked], names: &SessionNames) -> Option<Conclusion> {
        let first = receipts.iter().max_by_key(|asked| asked.times)?;
        let record = first.records.first().copied().unwrap_or(0);
        let times: u64 = receipts.iter().map(|asked| asked.times).sum();
        let replier = first.asker.other();
        let who = names.side(&self.stream, record, replier);
        let session = names.of(&self.stream, record).map(|session| session.number);
        let kinds = if receipts.len() > 1 { " and others" } else { "" };
        let text = match times {
            1 => format!(
                "{who} never confirmed {} of {}, {} until the end",
                first.message,
                clock(before(first.until.time, first.waited)),
                length(first.waited)
            ),
            n => format!(
                "{who} never confirmed {n} messages ({}{kinds}), the first of {}",
                first.message,
                clock(before(first.until.time, first.waited)),
            ),
        };
        let blame = if replier == Side::Client { Blame::Client } else { Blame::Server };
        let records = receipts.iter().flat_map(|asked| asked.records.iter().copied()).collect();
        // One message that was confirmed by nothing may be the last one of its circuit.
        let weight = if times > 1 { Weight::Trouble } else { Weight::Hint };
        let conclusion = Conclusion::new(weight, Kind::NotConfirmed, text)
            .of(blame)
            .showing(records, Vec::new())
            .in_session(session)
            .sized(times);
        Some(conclusion.more(format!("moulsniff … -Y 'record == {record}'")))
    }
}
