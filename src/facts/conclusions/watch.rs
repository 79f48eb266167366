//! What is kept of an open stream: the latest message of each side, requests that were never
//! answered, the latest refusal, how long replies took, and what could not be read.
//!
//! It is asked for every record, so it does little for a message that is well.

use super::open_waits::{OpenWaits, UnansweredRequest};
use super::words::nanos;
use crate::capture::Moment;
use crate::facts::refusal::{known_message, refused};
use crate::facts::{InfoSource, write_info};
use crate::record::{EndedBy, MessageView, Names, Record};
use crate::session::{Event, EventKind, Message, Side};
use crate::table::{Expectation, MessageDef, MessageId, Refusal, Tables};
use crate::tree::{LinkKind, Tree};

/// The most main steps of one stream that are remembered.
const MAX_STEPS: usize = 16;
/// Replies of which it is remembered that their first part came.
const RECENT: usize = 8;
/// Above this, a reply took long enough to be looked at, in nanoseconds.
pub(super) const NOTICEABLE: i64 = 200_000_000;
/// From this on, a reply was slow, and may have held up those behind it, in nanoseconds.
pub(super) const SLOW: i64 = 500_000_000;
/// A request that was held up waited at least this long, in nanoseconds.
const HELD: i64 = 100_000_000;

/// A stream that is open.
#[derive(Default)]
pub(super) struct StreamWatch {
    /// The latest message of client and server, and its record.
    pub(super) last: [Option<(Moment, u64)>; 2],
    /// When its first message came.
    pub(super) first: Option<Moment>,
    pub(super) messages: [u64; 2],
    pub(super) waits: OpenWaits,
    pub(super) refusal: Option<Box<LastRefusal>>,
    /// Refusals after which it went on.
    pub(super) harmless: u64,
    pub(super) replies: [ReplyTimes; 2],
    /// The shortest time after which client and server acknowledged, and how often they did, where
    /// messages themselves do so.
    pub(super) acknowledged: [(u64, i64); 2],
    /// Main steps of a client that the server granted.
    pub(super) granted: Vec<MessageId>,
    /// No key opens it: the kind of the event, its text and its record.
    pub(super) closed: Option<ClosedEvent>,
    /// Whether bytes were missing before that.
    pub(super) gap_before_closed: bool,
    pub(super) gaps: [SideGaps; 2],
    pub(super) unread: UnreadBytes,
    pub(super) end: Option<StreamEnding>,
}

/// The refusal that came last.
pub(super) struct LastRefusal {
    pub(super) at: Moment,
    pub(super) record: u64,
    /// The request that was refused, where it is one.
    pub(super) request: Option<u64>,
    /// The main steps of a client that may have been refused.
    pub(super) steps: Vec<MessageId>,
    pub(super) message: String,
    pub(super) reason: String,
    /// What the message is about, where nobody asked for it.
    pub(super) about: String,
    /// The message refuses whatever is in it, and nobody asked for it.
    pub(super) unasked: bool,
    /// Messages of the client that came after it.
    pub(super) after: u64,
}

/// A stream that no key opens.
pub(super) struct ClosedEvent {
    pub(super) no_key: bool,
    pub(super) text: String,
    pub(super) record: u64,
    pub(super) at: Moment,
}

/// Bytes of a direction that were never captured.
#[derive(Default)]
pub(super) struct SideGaps {
    pub(super) count: u64,
    pub(super) bytes: u64,
    pub(super) first: Option<(u64, Moment)>,
    /// The record of the last of them.
    pub(super) last: u64,
    /// Nothing of the direction was captured after the last of them.
    pub(super) is_last: bool,
}

/// Bytes that became no message.
#[derive(Default)]
pub(super) struct UnreadBytes {
    pub(super) events: u64,
    pub(super) bytes: u64,
    /// The first of them: its record, frame and text.
    pub(super) first: Option<(u64, u64, String)>,
    /// The last one comes from the end of the stream within a message.
    pub(super) last_bytes: u64,
}

/// How a stream ended.
#[derive(Clone, Copy)]
pub(super) struct StreamEnding {
    pub(super) how: EndedBy,
    pub(super) closed_by: Option<(u64, Side)>,
    pub(super) at: Moment,
}

/// How long one side took to reply.
#[derive(Default)]
pub(super) struct ReplyTimes {
    /// Replies, each request counted once.
    pub(super) count: u64,
    /// Those that took [`NOTICEABLE`] without the network's part.
    pub(super) noticeable: u64,
    /// Those that took [`SLOW`] without the network's part.
    pub(super) slow: u64,
    /// The slowest one, without the network's part.
    pub(super) worst: Option<SlowReply>,
    /// The shortest time of all, the network's part included.
    pub(super) shortest: Option<i64>,
    /// The latest request that was answered.
    pub(super) answered: u64,
    /// The latest requests that were answered, and when the latest part of their replies came.
    recent: [(u64, i64); RECENT],
    next: usize,
    /// A slow request that may hold up others.
    holding: Option<Box<Holding>>,
    /// The one that held up most.
    pub(super) held: Option<Box<Holding>>,
}

/// A reply that took long.
#[derive(Clone)]
pub(super) struct SlowReply {
    pub(super) request: u64,
    pub(super) reply: u64,
    pub(super) at: Moment,
    pub(super) nanos: i64,
    pub(super) network: Option<i64>,
    pub(super) message: String,
    /// A part of a reply, that long after the part before it.
    pub(super) part: bool,
}

impl SlowReply {
    /// Without the network's part.
    pub(super) fn own(&self) -> i64 {
        self.nanos.saturating_sub(self.network.unwrap_or(0))
    }
}

/// A slow request, and those that waited for it.
#[derive(Clone)]
pub(super) struct Holding {
    pub(super) slow: SlowReply,
    start: i64,
    end: i64,
    /// Requests that were sent while it waited, and answered only after it.
    pub(super) others: u64,
    pub(super) longest: i64,
    pub(super) records: Vec<u64>,
}

impl StreamWatch {
    #[inline]
    pub(super) fn message(
        &mut self,
        record: &Record<'_>,
        message: &Message<'_>,
        tables: &Tables,
        tree: &Tree,
    ) {
        let side = record.from.index();
        if let (Some(last), Some(count)) = (self.last.get_mut(side), self.messages.get_mut(side)) {
            *last = Some((record.at, record.number));
            *count += 1;
        }
        self.first.get_or_insert(record.at);
        if let Some(gaps) = self.gaps.get_mut(side) {
            gaps.is_last = false;
        }
        if let Some(refusal) = &mut self.refusal {
            refusal.after += u64::from(record.from == Side::Client);
        }
        // What only confirms that something arrived is no reply, and one that nobody waits for may
        // take as long as it likes.
        let awaited = |asked: &MessageId| {
            tables.message(*asked).is_some_and(|def| def.expects != Some(Expectation::Nothing))
        };
        let answers = |(_, def): (_, &MessageDef)| def.answers.iter().any(awaited);
        if let Some(reply) = message.reply
            && known_message(message.name, tables, tree).is_some_and(answers)
        {
            let network = record.network(reply.nanos);
            let asked = self.last.get(record.from.other().index()).copied().flatten();
            let reply = NewReply {
                request: reply.record,
                record: record.number,
                at: record.at,
                nanos: reply.nanos,
                network,
                message: message.name.raw(),
                part: false,
            };
            record.from.of(&mut self.replies).add(reply, asked.map_or(0, |(at, _)| nanos(at.time)));
        }
        for link in tree.links() {
            if link.kind == LinkKind::Acknowledges {
                let (count, shortest) = record.from.of(&mut self.acknowledged);
                *shortest = if *count == 0 { link.nanos } else { link.nanos.min(*shortest) };
                *count += 1;
            }
        }
        if record.from == Side::Server {
            self.of_server(record, message, tables, tree);
        }
    }

    #[inline]
    fn of_server(
        &mut self,
        record: &Record<'_>,
        message: &Message<'_>,
        tables: &Tables,
        tree: &Tree,
    ) {
        let Some((_, def)) = known_message(message.name, tables, tree) else { return };
        let values = MessageView { tables, tree, bytes: message.bytes };
        let refusal = match def.refusal {
            Refusal::Never => None,
            Refusal::Always | Refusal::ByField => refused(def, &values),
        };
        match refusal {
            Some(refused) => {
                self.harmless += u64::from(self.refusal.is_some());
                let unasked = message.reply.is_none();
                let mut about = String::new();
                if unasked {
                    let source = InfoSource { view: values, layout: def.layout, redact: true };
                    write_info(source, Names::default(), &mut about);
                }
                self.refusal = Some(Box::new(LastRefusal {
                    at: record.at,
                    record: record.number,
                    request: message.reply.map(|reply| reply.record),
                    steps: steps(def, tables).collect(),
                    message: message.name.raw().to_string(),
                    reason: refused.reason(message.name.raw(), &values),
                    about,
                    unasked: unasked && def.answers.is_empty(),
                    after: 0,
                }));
            }
            None if message.reply.is_some() => {
                for step in steps(def, tables) {
                    if self.granted.len() < MAX_STEPS && !self.granted.contains(&step) {
                        self.granted.push(step);
                    }
                }
                // It went on.
                self.harmless += u64::from(self.refusal.take().is_some());
            }
            None => {}
        }
    }

    pub(super) fn event(&mut self, record: &Record<'_>, event: &Event) {
        match &event.kind {
            EventKind::Unanswered { request, message, waited, part } => {
                let replies = event.from.other().of(&mut self.replies);
                self.waits.add(UnansweredRequest {
                    request: *request,
                    message,
                    waited: *waited,
                    part: part.then(|| replies.last_part(*request)).flatten(),
                    in_part: *part,
                    asker: event.from,
                    at: record.at,
                });
            }
            EventKind::NoKey | EventKind::WrongKey if self.closed.is_none() => {
                self.closed = Some(ClosedEvent {
                    no_key: event.kind == EventKind::NoKey,
                    text: event.text.clone(),
                    record: record.number,
                    at: record.at,
                });
                self.gap_before_closed = self.gaps.iter().any(|gaps| gaps.count > 0);
            }
            EventKind::Gap => {
                let gaps = event.from.of(&mut self.gaps);
                gaps.count += 1;
                gaps.bytes += event.length.unwrap_or(0);
                gaps.first = gaps.first.or(Some((record.number, record.at)));
                gaps.last = record.number;
                gaps.is_last = true;
            }
            EventKind::Undecoded | EventKind::Resync { .. } => {
                let bytes = event.counts().undecoded;
                let unread = &mut self.unread;
                unread.events += u64::from(bytes > 0);
                unread.bytes += bytes;
                unread.last_bytes = bytes;
                if unread.first.is_none() && bytes > 0 {
                    unread.first = Some((record.number, record.at.frame, event.text.clone()));
                }
                event.from.of(&mut self.gaps).is_last = false;
            }
            // The protocol's own farewell.
            EventKind::Close => {
                let closed_by = Some((record.at.frame, event.from));
                let at = record.at;
                self.end.get_or_insert(StreamEnding { how: EndedBy::Fin, closed_by, at });
            }
            _ => {}
        }
    }

    pub(super) fn end(&mut self, record: &Record<'_>, how: EndedBy, closed_in: Option<u64>) {
        let ours = closed_in.map(|frame| (frame, record.from));
        let gaps = record.from.of(&mut self.gaps);
        gaps.is_last &= closed_in.is_none();
        let known = self.end.get_or_insert(StreamEnding { how, closed_by: ours, at: record.at });
        if known.how == EndedBy::Open || how == EndedBy::Reset {
            known.how = how;
        }
        known.closed_by = known.closed_by.into_iter().chain(ours).min_by_key(|(frame, _)| *frame);
        known.at = known.at.max(record.at);
    }

    /// Its latest message.
    pub(super) fn latest(&self) -> Option<Moment> {
        self.last.iter().flatten().map(|(at, _)| *at).max()
    }

    /// How it ended: as far as nothing says so, with the capture.
    pub(super) fn how(&self) -> EndedBy {
        self.end.map_or(EndedBy::Open, |end| end.how)
    }
}

/// The main steps of a client that a message answers.
fn steps(def: &MessageDef, tables: &Tables) -> impl Iterator<Item = MessageId> {
    let is_step = |asked: &MessageId| tables.message(*asked).is_some_and(|asked| asked.step);
    def.answers.iter().copied().filter(is_step)
}

/// A reply as its record has it.
struct NewReply<'a> {
    request: u64,
    record: u64,
    at: Moment,
    nanos: i64,
    network: Option<i64>,
    message: &'a str,
    part: bool,
}

impl NewReply<'_> {
    /// Without the network's part.
    fn own(&self) -> i64 {
        self.nanos.saturating_sub(self.network.unwrap_or(0))
    }

    fn kept(&self) -> SlowReply {
        SlowReply {
            request: self.request,
            reply: self.record,
            at: self.at,
            nanos: self.nanos,
            network: self.network,
            message: self.message.to_string(),
            part: self.part,
        }
    }
}

impl ReplyTimes {
    /// Counts a reply. Of a reply in several messages the first one counts; a later one may be slow
    /// by itself, after the one before it and after `asked`, the asker's latest message, in
    /// nanoseconds since 1970.
    #[inline]
    fn add(&mut self, mut reply: NewReply<'_>, asked: i64) {
        let now = nanos(reply.at.time);
        if let Some((_, last)) = self.recent.iter_mut().find(|(of, _)| *of == reply.request) {
            (reply.nanos, reply.part) = (now.saturating_sub(asked.max(*last)), true);
            *last = now;
            if reply.nanos >= SLOW {
                self.keep_worst(&reply);
            }
            return;
        }
        self.next = (self.next + 1) % RECENT;
        if let Some(place) = self.recent.get_mut(self.next) {
            *place = (reply.request, now);
        }
        self.count += 1;
        self.shortest = Some(self.shortest.map_or(reply.nanos, |known| known.min(reply.nanos)));
        if reply.nanos >= HELD {
            self.took_long(&reply);
        }
        self.answered = self.answered.max(reply.request);
    }

    /// When the latest part of the reply to a request came, in nanoseconds since 1970, if it is one
    /// of the latest.
    fn last_part(&self, request: u64) -> Option<i64> {
        self.recent.iter().find(|(of, _)| *of == request).map(|(_, last)| *last)
    }

    fn keep_worst(&mut self, reply: &NewReply<'_>) {
        let own = reply.own();
        if own >= NOTICEABLE && self.worst.as_ref().is_none_or(|worst| worst.own() < own) {
            self.worst = Some(reply.kept());
        }
    }

    fn took_long(&mut self, reply: &NewReply<'_>) {
        let own = reply.own();
        self.noticeable += u64::from(own >= NOTICEABLE);
        self.slow += u64::from(own >= SLOW);
        self.keep_worst(reply);
        let end = nanos(reply.at.time);
        let start = end.saturating_sub(reply.nanos);
        if let Some(holding) = &mut self.holding
            && start > holding.start
            && start < holding.end
            && end >= holding.end
        {
            holding.others += 1;
            holding.longest = holding.longest.max(reply.nanos);
            if holding.records.len() < super::MAX_RECORDS {
                holding.records.push(reply.request);
            }
            if self.held.as_ref().is_none_or(|held| held.others <= holding.others) {
                self.held = Some(holding.clone());
            }
            return;
        }
        // Where a later request was answered before, requests do not wait for each other.
        if own >= SLOW && self.answered < reply.request {
            let slow = reply.kept();
            let records = vec![reply.request];
            let holding = Holding { slow, start, end, others: 0, longest: 0, records };
            self.holding = Some(Box::new(holding));
        }
    }
}
