//! Requests that wait for their replies, in bounded space.
//!
//! Tables say which message answers which (`answers`), which request expects a reply, and which
//! reply is not the last one (`partial`, `share`); a [`RequestKey`](super::RequestKey) says what a
//! request and its reply have in common. This file knows no protocol.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::early::EarlyReplies;
use super::request::{Answer, Request, RequestKey};
use super::{Context, Event, EventKind, Reply, Side};
use crate::capture::Moment;
use crate::digits::{counted, plural};
use crate::table::{Expectation, MessageId, Tables};
use crate::tree::{Tree, mark};

/// The window of remembered requests is this many times the limit of waiting ones, even if few in
/// it still wait. The oldest request is then forgotten, so that one request without a reply does
/// not keep all later ones in memory.
const SPAN: usize = 8;

/// How many requests with the same exact key a search looks at, latest first. In real traffic few
/// wait at once; the bound keeps hostile traffic cheap.
const LOOK: usize = 64;

/// A remembered request, and the one before it with the same exact key.
#[derive(Debug)]
struct OpenRequest {
    request: Request,
    before: Option<u64>,
    /// The messages that were last replies to it, as bits.
    replies: u64,
    /// What its replies brought so far, where these say how much.
    brought: u64,
    /// What all its replies bring together, as the latest one that says so; 0 if none did. It is
    /// used for messages that do not say it themselves, of which there are fewer than 32 bits can
    /// count.
    whole: u32,
    /// Whether a part of its reply came.
    part: bool,
}

impl OpenRequest {
    /// Whether such a message was its last reply already.
    fn had(&self, message: MessageId) -> bool {
        self.request.answered && !self.request.several && self.replies & bit(message) != 0
    }

    /// Whether further replies follow an answer to it.
    fn leaves_open(&self, answer: &Answer<'_>) -> bool {
        answer.partial
            || answer.share.is_some_and(|share| share.leaves_more(self.brought, self.whole.into()))
    }
}

/// The bit of a message among the replies to a request. A few messages share one.
fn bit(message: MessageId) -> u64 {
    1 << (message.0 % u64::BITS)
}

/// By message: whether a reply to it may come.
#[derive(Debug, Default)]
struct MayBeAnswered(Vec<bool>);

impl MayBeAnswered {
    fn new(tables: &Tables) -> MayBeAnswered {
        let mut all: Vec<bool> =
            tables.messages().iter().map(|message| message.expects_reply).collect();
        for asked in tables.messages().iter().flat_map(|message| &message.answers) {
            if let Some(place) = all.get_mut(asked.0 as usize) {
                *place = true;
            }
        }
        MayBeAnswered(all)
    }
}

/// The requests of a connection that may still be answered.
///
/// Each request has a serial number. A request stays until it is [removed](Requests::remove), or
/// until it is forgotten: the oldest one is forgotten when more than the limit would wait. Finding
/// a request costs a hash look-up and a walk over the requests with the same exact key, latest
/// first.
#[derive(Debug, Default)]
pub struct Requests {
    limit: usize,
    /// Whether a message is at most once the last reply to a request.
    once: bool,
    /// By message: whether a reply to it may come.
    answered: Arc<MayBeAnswered>,
    /// By serial number, from `first` on. Empty places are removed requests.
    open: VecDeque<Option<OpenRequest>>,
    first: u64,
    waiting: usize,
    /// The latest request with each exact key.
    latest: HashMap<u64, u64>,
    forgotten: u64,
    /// By the side that asked: serial numbers of its waiting requests without a transaction, oldest
    /// first.
    queues: [VecDeque<u64>; 2],
    /// By the side that asked: the replies to requests before this frame may have been lost.
    certain_from: [u64; 2],
    /// By the side that asked: requests before this serial number were already reported.
    reported: [u64; 2],
    /// Whether a side sends no more.
    ended: [bool; 2],
    /// Replies whose requests were not read yet.
    early: EarlyReplies,
    /// A reply of this connection repeated a value that tables call `echoed`.
    echoes: bool,
}

impl Requests {
    /// Remembers at most `limit` requests: messages that another message answers, or whose table
    /// says `expects reply`.
    pub fn new(tables: &Tables, limit: usize) -> Requests {
        Requests { limit, answered: tables.derived(MayBeAnswered::new), ..Requests::default() }
    }

    /// The same, of a protocol in which a message is at most once the last reply to a request. A
    /// second one belongs to another request, which was lost or is read later.
    #[must_use]
    pub fn answered_once(self) -> Requests {
        Requests { once: true, ..self }
    }

    /// Whether a reply to this message may come, so that it is worth remembering.
    pub fn is_request(&self, message: MessageId) -> bool {
        self.answered.0.get(message.0 as usize) == Some(&true)
    }

    /// Remembers a request.
    pub fn remember(&mut self, request: Request) {
        let serial = self.first + self.open.len() as u64;
        // If its own reply may be lost, an early one rather belongs to a later request. It is not
        // reported in any case.
        let certain = request.at.frame >= *request.from.of(&mut self.certain_from);
        let early = certain && self.early.take(&request, self.echoes);
        if request.key.is_none() && !early {
            let queue = request.from.of(&mut self.queues);
            queue.push_back(serial);
            if queue.len() > self.limit {
                queue.pop_front();
            }
        }
        let before = self.latest.insert(request.key.exact, serial);
        let request = Request { answered: request.answered || early, ..request };
        self.open.push_back(Some(OpenRequest {
            request,
            before,
            replies: if early { u64::MAX } else { 0 },
            brought: 0,
            whole: 0,
            part: false,
        }));
        self.waiting += 1;
        while self.waiting > self.limit || self.open.len() > self.limit.saturating_mul(SPAN) {
            self.forget_oldest();
        }
    }

    /// The request that a message with a key answers, and its serial number. It is one of the other
    /// side, of before the message. One whose value the message repeats comes first, then one that
    /// has had no such reply yet, then the latest.
    pub fn find(&self, answer: &Answer<'_>) -> Option<(u64, &Request)> {
        let [of_client, of_server] = self.certain_from;
        let certain_from = if answer.from == Side::Server { of_client } else { of_server };
        let waits = |request: &Request| {
            request.answered || request.several || request.at.frame >= certain_from
        };
        let rank = |open: &OpenRequest| {
            let repeats = open.request.key.repeats(&answer.key) == Some(true);
            (repeats, waits(&open.request) && !open.had(answer.message))
        };
        let mut passed = false;
        let may = |(_, open): &(u64, &OpenRequest)| {
            let request = &open.request;
            let another = request.key.repeats(&answer.key) == Some(false)
                && (self.echoes || request.answered);
            if !answer.may_answer(request) || !request.key.fits(&answer.key) || another {
                return false;
            }
            // Behind one that had its reply, a request whose reply may be lost waits no more.
            let over = self.once && (open.had(answer.message) || passed && !waits(request));
            passed |= over;
            !over
        };
        let fitting = self.chain(answer.key.exact).take(LOOK).filter(may);
        let best = fitting
            .reduce(|best, earlier| if rank(earlier.1) > rank(best.1) { earlier } else { best });
        best.map(|(serial, open)| (serial, &open.request))
    }

    /// The request that a message answers: with a key, the result of [`find`](Self::find); without
    /// one, the oldest waiting request. The request stays, so that it may be answered again, but
    /// [`unanswered`](Self::unanswered) no longer reports it once a reply is not partial. If there
    /// is no such request, it may be read later, and is not reported then.
    pub fn answer(&mut self, answer: &Answer<'_>) -> Option<Reply> {
        let serial = if answer.key.is_none() {
            self.next_in_queue(answer)
        } else {
            self.find(answer).map(|(serial, _)| serial)
        };
        let Some(serial) = serial else {
            // A request of behind it was read already: the reply is rather to that one.
            let behind = |(_, open): (u64, &OpenRequest)| {
                open.request.from != answer.from && open.request.at.frame > answer.at.frame
            };
            let alone = !self.chain(answer.key.exact).take(LOOK).any(behind);
            self.early.keep(answer, alone);
            return None;
        };
        let open = self.open.get_mut(serial.checked_sub(self.first)? as usize)?.as_mut()?;
        let again = open.had(answer.message);
        let more = open.leaves_open(answer);
        if let (Some(share), false) = (answer.share, again) {
            open.brought = open.brought.saturating_add(share.part);
            open.whole =
                share.whole.map_or(open.whole, |whole| u32::try_from(whole).unwrap_or(u32::MAX));
        }
        open.part |= more;
        if !more {
            open.request.answered = true;
            open.replies |= bit(answer.message);
        }
        self.echoes |= open.request.key.repeats(&answer.key) == Some(true);
        let reply = open.request.reply(answer.at);
        if again {
            // It goes on with its reply, or is one to a request that is read later.
            self.keep_early(answer);
        }
        Some(reply)
    }

    /// The waiting request that a message repeats: the same message of the same side, with the same
    /// key and the same value that its reply repeats.
    pub fn repeated(&self, message: MessageId, from: Side, key: RequestKey) -> Option<&Request> {
        let mut waiting = self.with_key(key.exact).filter(|(_, request)| !request.answered);
        let same = |request: &Request| {
            request.message == message
                && request.from == from
                && request.key.fits(&key)
                && request.key.repeats(&key) == Some(true)
        };
        waiting.find(|(_, request)| same(request)).map(|(_, request)| request)
    }

    /// Whether the last part of a reply waits itself for something that the asker owes.
    fn owes(&self, asked: &Request, tables: &Tables) -> bool {
        self.with_key(asked.key.exact).any(|(_, part)| {
            let message = tables.message(part.message);
            part.from != asked.from
                && !part.answered
                && message.is_some_and(|message| message.answers.contains(&asked.message))
        })
    }

    /// Whether further replies to a request follow a message that answers it.
    pub fn leaves_open(&self, serial: u64, answer: &Answer<'_>) -> bool {
        self.get(serial).is_some_and(|open| open.leaves_open(answer))
    }

    /// The request that a message answers, as in [`answer`](Self::answer). Marks the message's tree
    /// as partial if other messages bring the rest of the reply.
    pub fn answer_in(&mut self, answer: &Answer<'_>, tree: &mut Tree) -> Option<Reply> {
        let reply = self.answer(answer)?;
        if answer.share.is_some()
            && self.of_record(reply.record).is_some_and(|request| !request.answered)
        {
            tree.mark(0, mark::PARTIAL);
        }
        Some(reply)
    }

    /// Remembers a message whose request may be read later, behind lost bytes.
    pub fn keep_early(&mut self, answer: &Answer<'_>) {
        self.early.keep(answer, false);
    }

    /// The request without a transaction that a message answers: the one whose value the message
    /// repeats, or else the oldest. It leaves the queue unless more replies follow.
    fn next_in_queue(&mut self, answer: &Answer<'_>) -> Option<u64> {
        let asker = answer.from.other();
        let certain_from = *asker.of(&mut self.certain_from);
        let mut queue = std::mem::take(asker.of(&mut self.queues));
        let may = |serial: u64| {
            self.get(serial).map(|open| &open.request).filter(|request| answer.may_answer(request))
        };
        let repeated =
            |serial: &u64| may(*serial).and_then(|request| request.key.repeats(&answer.key));
        let mut place = match answer.key.echo {
            Some(_) => queue.iter().take(LOOK).position(|serial| repeated(serial) == Some(true)),
            None => None,
        };
        if place.is_none() {
            // If the reply to the oldest request may have been lost, this reply belongs to a later
            // request.
            let waits = |serial: u64| {
                self.get(serial).is_some_and(|open| open.request.at.frame >= certain_from)
            };
            while queue.front().is_some_and(|serial| !waits(*serial)) {
                queue.pop_front();
            }
            let fits = |serial: &u64| {
                may(*serial).is_some() && !(self.echoes && repeated(serial) == Some(false))
            };
            place = queue.iter().take(LOOK).position(fits);
        }
        let more = |serial: &u64| self.leaves_open(*serial, answer);
        let serial = place.and_then(|place| {
            if queue.get(place).is_some_and(more) {
                queue.get(place).copied()
            } else {
                queue.remove(place)
            }
        });
        *asker.of(&mut self.queues) = queue;
        serial
    }

    /// Bytes that a side sent up to the frame of `at` are lost or unreadable, and may have held
    /// replies. Requests of the other side before that frame are no longer reported as unanswered.
    pub fn lose_replies(&mut self, from: Side, at: Moment) {
        let certain_from = from.other().of(&mut self.certain_from);
        *certain_from = at.frame.max(*certain_from);
    }

    /// A side has ended: reports the requests of the other side that it never answered, one event
    /// each, and one more event if requests were forgotten. Requests that are sent later are
    /// reported when their own side ends. Call it before reporting the end of the side.
    pub fn report_unanswered(
        &mut self,
        ended: Side,
        service: &str,
        at: Moment,
        context: &mut Context<'_>,
    ) {
        *ended.of(&mut self.ended) = true;
        for replier in [Side::Client, Side::Server] {
            if *replier.of(&mut self.ended) {
                self.report(replier.other(), service, at, context);
            }
        }
        if self.forgotten > 0 {
            let n = std::mem::take(&mut self.forgotten);
            let text = format!(
                "{} {} forgotten, because too many waited: whether {} answered is not known",
                counted(n, "request"),
                plural(n, "was", "were"),
                plural(n, "it was", "they were")
            );
            context.emit.event(
                at,
                Event::new(EventKind::Limit { limit: "requests" }, service, ended, text),
            );
        }
    }

    /// Reports the waiting requests of a side, each once.
    fn report(&mut self, asker: Side, service: &str, at: Moment, context: &mut Context<'_>) {
        let first = *asker.of(&mut self.reported);
        let frame = *asker.of(&mut self.certain_from);
        let certain =
            |open: &&OpenRequest| open.request.from == asker && open.request.at.frame >= frame;
        for OpenRequest { request, part, .. } in self.waiting_from(first).filter(certain) {
            let Some(def) = context.tables.message(request.message).filter(|def| def.expects_reply)
            else {
                continue;
            };
            let message = context.tables.name(def.name).to_string();
            let waited = request.reply(at).nanos;
            let part = *part;
            if part && self.owes(request, context.tables) {
                continue;
            }
            let what = if part { "all of its reply" } else { "its reply" };
            let text = format!("{message}, record {}, never got {what}", request.record);
            let kind = EventKind::Unanswered { request: request.record, message, waited, part };
            context.emit.event(at, Event::new(kind, service, asker, text));
        }
        *asker.of(&mut self.reported) = self.first + self.open.len() as u64;
    }

    /// The latest requests with an exact key, latest first, with their serial numbers. Bounded by
    /// `LOOK`.
    pub fn with_key(&self, exact: u64) -> impl Iterator<Item = (u64, &Request)> {
        self.chain(exact).take(LOOK).map(|(serial, open)| (serial, &open.request))
    }

    fn chain(&self, exact: u64) -> impl Iterator<Item = (u64, &OpenRequest)> {
        let mut next = self.latest.get(&exact).copied();
        std::iter::from_fn(move || {
            let serial = next?;
            let open = self.get(serial)?;
            next = open.before;
            Some((serial, open))
        })
    }

    /// The unanswered requests with a serial number from `first` on, oldest first.
    pub fn unanswered(&self, first: u64) -> impl Iterator<Item = &Request> {
        self.waiting_from(first).map(|open| &open.request)
    }

    fn waiting_from(&self, first: u64) -> impl Iterator<Item = &OpenRequest> {
        let skip = first.saturating_sub(self.first) as usize;
        self.open.iter().skip(skip).flatten().filter(|open| !open.request.answered)
    }

    /// The other side acknowledged the message of a record. A request that expects only a receipt
    /// is then no longer reported as unanswered. A reply still belongs to it.
    pub fn receipt(&mut self, record: u64, tables: &Tables) {
        let Some(request) = self.of_record(record) else { return };
        if tables.message(request.message).and_then(|def| def.expects) == Some(Expectation::Receipt)
        {
            request.answered = true;
        }
    }

    /// What followed shows that requests of a side were answered, although no reply to them was
    /// seen. They wait no longer, and are not reported.
    pub fn settle(&mut self, from: Side, messages: &[MessageId]) {
        let settled =
            |request: &Request| request.from == from && messages.contains(&request.message);
        for open in self.open.iter_mut().flatten().filter(|open| settled(&open.request)) {
            open.request.answered = true;
        }
        let first = self.first;
        let open = &self.open;
        from.of(&mut self.queues).retain(|serial| {
            let place = serial.checked_sub(first).and_then(|place| open.get(place as usize));
            place.is_some_and(|open| open.as_ref().is_some_and(|open| !settled(&open.request)))
        });
    }

    /// Whether the message of a record is a request that is remembered.
    pub fn remembers(&mut self, record: u64) -> bool {
        self.of_record(record).is_some()
    }

    /// Record numbers ascend, so the walk goes from the latest down to the wanted one.
    fn of_record(&mut self, record: u64) -> Option<&mut Request> {
        let later = self.open.iter_mut().rev().flatten().map(|open| &mut open.request);
        later
            .take_while(|request| request.record >= record)
            .last()
            .filter(|request| request.record == record)
    }

    /// Removes a request that is answered for good.
    pub fn remove(&mut self, serial: u64) {
        let Some(place) =
            serial.checked_sub(self.first).and_then(|place| self.open.get_mut(place as usize))
        else {
            return;
        };
        let Some(open) = place.take() else { return };
        self.waiting -= 1;
        self.unchain(open.request.key.exact, serial, open.before);
        while let Some(None) = self.open.front() {
            self.open.pop_front();
            self.first += 1;
        }
    }

    /// Forgets all requests, and gives back their memory.
    pub fn forget(&mut self) {
        self.forgotten += self.unanswered(0).count() as u64;
        self.first += self.open.len() as u64;
        (self.open, self.latest, self.waiting) = (VecDeque::new(), HashMap::new(), 0);
        self.queues = Default::default();
        self.early.forget();
    }

    /// Memory of the remembered requests, roughly, in bytes.
    pub fn held(&self) -> usize {
        let queues: usize = self.queues.iter().map(VecDeque::capacity).sum();
        queues * size_of::<u64>()
            + self.early.held()
            + self.open.capacity() * size_of::<Option<OpenRequest>>()
            + self.latest.capacity() * (size_of::<(u64, u64)>() + 1)
    }

    fn get(&self, serial: u64) -> Option<&OpenRequest> {
        let place = usize::try_from(serial.checked_sub(self.first)?).ok()?;
        self.open.get(place)?.as_ref()
    }

    /// Takes a request out of the chain of its exact key. `before` is the request before it.
    fn unchain(&mut self, exact: u64, serial: u64, before: Option<u64>) {
        if self.latest.get(&exact) == Some(&serial) {
            match before.filter(|before| self.get(*before).is_some()) {
                Some(before) => self.latest.insert(exact, before),
                None => self.latest.remove(&exact),
            };
            return;
        }
        let later = self
            .chain(exact)
            .map(|(later, _)| later)
            .find(|later| self.get(*later).is_some_and(|open| open.before == Some(serial)));
        let later = later.and_then(|later| self.open.get_mut((later - self.first) as usize));
        if let Some(Some(later)) = later {
            later.before = before;
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(Some(open)) = self.open.pop_front() {
            // Nothing to mend for the oldest request of a chain: later requests that refer to it
            // find nothing, and the walk stops.
            if self.latest.get(&open.request.key.exact) == Some(&self.first) {
                self.latest.remove(&open.request.key.exact);
            }
            self.waiting -= 1;
            self.forgotten += u64::from(!open.request.answered);
        }
        self.first += 1;
    }
}

#[cfg(test)]
#[path = "requests_tests.rs"]
mod tests;
