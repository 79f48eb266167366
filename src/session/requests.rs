//! Requests that wait for their replies, in bounded space.
//!
//! Tables say which message answers which (`answers`), which value both share (`transaction`), which request expects a reply, and which reply is not the
//! last one (`partial`). A protocol whose requests are identified by more than a transaction makes its own [`RequestKey`]; a simple one uses
//! [`transaction_key`]. This file knows no protocol. It reads only that value and that mark from a tree.

use std::collections::{HashMap, VecDeque};

use super::{Context, Event, EventKind, Reply, Side};
use crate::capture::Moment;
use crate::table::{Expectation, MessageId, Tables};
use crate::tree::{Kind, Tree, mark};

/// The window of remembered requests is this many times the limit of waiting ones, even if few in it still wait. The oldest
/// request is then forgotten, so that one request without a reply does not keep all later ones in memory.
const SPAN: usize = 8;

/// How many requests with the same exact key a search looks at, latest first. In real traffic few wait at once; the bound keeps hostile traffic cheap.
const LOOK: usize = 64;

/// How many replies are remembered whose requests were not read yet.
const EARLY: usize = 256;

/// What a request and its reply have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestKey {
    /// Equal in both: a transaction number, or a hash of the values that identify the request.
    pub exact: u64,
    /// Hashes of values that must be equal if both messages have them.
    pub loose: [Option<u64>; 2],
}

impl RequestKey {
    /// The key of every request without a transaction, and of every reply to one. Such a reply belongs to the oldest
    /// waiting request.
    pub const NONE: RequestKey = RequestKey { exact: 0x9e37_79b9_7f4a_7c15, loose: [Some(0), Some(0)] };

    /// The key of a request that is identified by its transaction alone.
    pub fn of(transaction: u64) -> RequestKey {
        RequestKey { exact: transaction, loose: [None; 2] }
    }

    /// Whether a request and a reply with these keys agree in every value that both have.
    pub fn fits(&self, reply: &RequestKey) -> bool {
        let agree = |(a, b): (&Option<u64>, &Option<u64>)| a.is_none() || b.is_none() || a == b;
        self.exact == reply.exact && self.loose.iter().zip(&reply.loose).all(agree)
    }
}

/// A message that may be answered.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Its message.
    pub message: MessageId,
    /// The side that sent it.
    pub from: Side,
    /// What its reply has in common with it.
    pub key: RequestKey,
    /// Its record.
    pub record: u64,
    /// The frame that completed it.
    pub at: Moment,
    /// Whether its last reply came. Some requests get several replies.
    pub answered: bool,
}

/// A message that may answer a request.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The side that sent it.
    pub from: Side,
    /// The messages that it answers.
    pub answers: &'a [MessageId],
    /// What it has in common with its request.
    pub key: RequestKey,
    /// The frame that completed it.
    pub at: Moment,
    /// Whether further replies to the same request follow.
    pub partial: bool,
}

impl Request {
    /// The report on a message that answers this request at `at`.
    pub fn reply(&self, at: Moment) -> Reply {
        let seconds = at.time.seconds.saturating_sub(self.at.time.seconds);
        let nanos = i64::from(at.time.nanos) - i64::from(self.at.time.nanos);
        Reply { record: self.record, nanos: seconds.saturating_mul(1_000_000_000).saturating_add(nanos) }
    }
}

/// A reply that was read before its request: after lost bytes, requests are read late.
#[derive(Debug)]
struct EarlyReply {
    from: Side,
    answers: Vec<MessageId>,
    key: RequestKey,
    frame: u64,
}

/// A remembered request, and the one before it with the same exact key.
#[derive(Debug)]
struct OpenRequest {
    request: Request,
    before: Option<u64>,
}

/// The requests of a connection that may still be answered.
///
/// Each request has a serial number. A request stays until it is [removed](Requests::remove), or until it is forgotten: the oldest one is forgotten when more
/// than the limit would wait. Finding a request costs a hash look-up and a walk over the requests with the same exact key, latest first.
#[derive(Debug, Default)]
pub struct Requests {
    limit: usize,
    /// By message: whether a reply to it may come.
    answered: Vec<bool>,
    /// By serial number, from `first` on. Empty places are removed requests.
    open: VecDeque<Option<OpenRequest>>,
    first: u64,
    waiting: usize,
    /// The latest request with each exact key.
    latest: HashMap<u64, u64>,
    forgotten: u64,
    /// By the side that asked: serial numbers of its waiting requests without a transaction, oldest first.
    queues: [VecDeque<u64>; 2],
    /// By the side that asked: the replies to requests before this frame may have been lost.
    certain_from: [u64; 2],
    /// By the side that asked: requests before this serial number were already reported.
    reported: [u64; 2],
    /// Whether a side sends no more.
    ended: [bool; 2],
    /// Replies whose requests were not read yet, the latest [`EARLY`].
    early: VecDeque<EarlyReply>,
}

impl Requests {
    /// Remembers at most `limit` requests: messages that another message answers, or whose table says `expects reply`.
    pub fn new(tables: &Tables, limit: usize) -> Requests {
        let mut answered = vec![false; tables.messages().len()];
        for (place, message) in answered.iter_mut().zip(tables.messages()) {
            *place = message.expects_reply;
        }
        for asked in tables.messages().iter().flat_map(|message| &message.answers) {
            if let Some(place) = answered.get_mut(asked.0 as usize) {
                *place = true;
            }
        }
        Requests { limit, answered, ..Requests::default() }
    }

    /// Whether a reply to this message may come, so that it is worth remembering.
    pub fn is_request(&self, message: MessageId) -> bool {
        self.answered.get(message.0 as usize) == Some(&true)
    }

    /// Remembers a request.
    pub fn remember(&mut self, request: Request) {
        let serial = self.first + self.open.len() as u64;
        if request.key == RequestKey::NONE {
            let queue = request.from.of(&mut self.queues);
            queue.push_back(serial);
            if queue.len() > self.limit {
                queue.pop_front();
            }
        }
        let before = self.latest.insert(request.key.exact, serial);
        let answered = request.answered || self.take_early(&request);
        let request = Request { answered, ..request };
        self.open.push_back(Some(OpenRequest { request, before }));
        self.waiting += 1;
        while self.waiting > self.limit || self.open.len() > self.limit.saturating_mul(SPAN) {
            self.forget_oldest();
        }
    }

    /// The request that a message sent by `from` answers, and its serial number: the latest request of the other side
    /// that is one of `answers` and whose key fits.
    pub fn find(&self, from: Side, answers: &[MessageId], key: &RequestKey) -> Option<(u64, &Request)> {
        self.with_key(key.exact)
            .find(|(_, request)| request.from != from && answers.contains(&request.message) && request.key.fits(key))
    }

    /// The request that a message answers: with a key, the result of [`find`](Self::find); without one, the oldest waiting request. The request stays,
    /// so that it may be answered again, but [`unanswered`](Self::unanswered) no longer reports it once a reply is not partial.
    pub fn answer(&mut self, answer: &Answer<'_>) -> Option<Reply> {
        let serial = match answer.key == RequestKey::NONE {
            true => self.next_in_queue(answer)?,
            false => match self.find(answer.from, answer.answers, &answer.key) {
                Some((serial, _)) => serial,
                None => return self.keep_early(answer),
            },
        };
        let open = self.open.get_mut(serial.checked_sub(self.first)? as usize)?.as_mut()?;
        open.request.answered |= !answer.partial;
        Some(open.request.reply(answer.at))
    }

    /// Remembers a reply whose request was not read yet.
    fn keep_early(&mut self, answer: &Answer<'_>) -> Option<Reply> {
        if !answer.partial && !answer.answers.is_empty() {
            self.early.truncate(EARLY - 1);
            let Answer { from, key, at, .. } = *answer;
            self.early.push_front(EarlyReply { from, answers: answer.answers.to_vec(), key, frame: at.frame });
        }
        None
    }

    /// Whether a reply was read before its request, although its frame is later. Forgets that reply.
    fn take_early(&mut self, request: &Request) -> bool {
        let answers = |reply: &EarlyReply| {
            reply.from != request.from
                && reply.frame >= request.at.frame
                && reply.answers.contains(&request.message)
                && request.key.fits(&reply.key)
        };
        // Mostly requests are read in order, behind all replies that came before them.
        let may = self.early.front().is_some_and(|latest| latest.frame >= request.at.frame);
        let found = if may { self.early.iter().position(answers) } else { None };
        found.and_then(|place| self.early.remove(place)).is_some()
    }

    /// The oldest request without a transaction that a message may answer. It leaves the queue unless more replies follow.
    fn next_in_queue(&mut self, answer: &Answer<'_>) -> Option<u64> {
        let asker = answer.from.other();
        let certain_from = *asker.of(&mut self.certain_from);
        let mut queue = std::mem::take(asker.of(&mut self.queues));
        // If the reply to the oldest request may have been lost, this reply belongs to a later request.
        let waits = |serial: u64| self.get(serial).is_some_and(|open| open.request.at.frame >= certain_from);
        while queue.front().is_some_and(|serial| !waits(*serial)) {
            queue.pop_front();
        }
        let fits = |serial: &u64| self.get(*serial).is_some_and(|open| answer.answers.contains(&open.request.message));
        let place = queue.iter().take(LOOK).position(fits);
        let serial = place.and_then(|place| match answer.partial {
            true => queue.get(place).copied(),
            false => queue.remove(place),
        });
        *asker.of(&mut self.queues) = queue;
        serial
    }

    /// Bytes that a side sent up to the frame of `at` are lost or unreadable, and may have held replies. Requests of the other side before that frame are
    /// no longer reported as unanswered.
    pub fn lose_replies(&mut self, from: Side, at: Moment) {
        let certain_from = from.other().of(&mut self.certain_from);
        *certain_from = at.frame.max(*certain_from);
    }

    /// A side has ended: reports the requests of the other side that it never answered, one event each, and one more event if requests were forgotten. Requests
    /// that are sent later are reported when their own side ends. Call it before reporting the end of the side.
    pub fn report_unanswered(&mut self, ended: Side, service: &str, at: Moment, context: &mut Context<'_>) {
        *ended.of(&mut self.ended) = true;
        for replier in [Side::Client, Side::Server] {
            if *replier.of(&mut self.ended) {
                self.report(replier.other(), service, at, context);
            }
        }
        if self.forgotten > 0 {
            let text = format!(
                "{} requests were forgotten, because too many waited: whether they were answered is not known",
                std::mem::take(&mut self.forgotten)
            );
            context.emit.event(at, Event::new(EventKind::Limit { limit: "requests" }, service, ended, text));
        }
    }

    /// Reports the waiting requests of a side, each once.
    fn report(&mut self, asker: Side, service: &str, at: Moment, context: &mut Context<'_>) {
        let (first, frame) = (*asker.of(&mut self.reported), *asker.of(&mut self.certain_from));
        let certain = |request: &&Request| request.from == asker && request.at.frame >= frame;
        for request in self.unanswered(first).filter(certain) {
            let Some(def) = context.tables.message(request.message).filter(|def| def.expects_reply) else { continue };
            let message = context.tables.name(def.name).to_string();
            let waited = request.reply(at).nanos;
            let text = format!("{message}, record {}, never got its reply", request.record);
            let kind = EventKind::Unanswered { request: request.record, message, waited };
            context.emit.event(at, Event::new(kind, service, asker, text));
        }
        *asker.of(&mut self.reported) = self.first + self.open.len() as u64;
    }

    /// The latest requests with an exact key, latest first, with their serial numbers. Bounded by `LOOK`.
    pub fn with_key(&self, exact: u64) -> impl Iterator<Item = (u64, &Request)> {
        self.chain(exact).take(LOOK)
    }

    fn chain(&self, exact: u64) -> impl Iterator<Item = (u64, &Request)> {
        let mut next = self.latest.get(&exact).copied();
        std::iter::from_fn(move || {
            let serial = next?;
            let open = self.get(serial)?;
            next = open.before;
            Some((serial, &open.request))
        })
    }

    /// The unanswered requests with a serial number from `first` on, oldest first.
    pub fn unanswered(&self, first: u64) -> impl Iterator<Item = &Request> {
        let skip = first.saturating_sub(self.first) as usize;
        self.open.iter().skip(skip).flatten().map(|open| &open.request).filter(|request| !request.answered)
    }

    /// The other side acknowledged the message of a record. A request that expects only a receipt is then no longer reported as unanswered. A reply still
    /// belongs to it.
    pub fn receipt(&mut self, record: u64, tables: &Tables) {
        let Some(request) = self.of_record(record) else { return };
        if tables.message(request.message).and_then(|def| def.expects) == Some(Expectation::Receipt) {
            request.answered = true;
        }
    }

    /// Whether the message of a record is a request that is remembered.
    pub fn remembers(&mut self, record: u64) -> bool {
        self.of_record(record).is_some()
    }

    /// Record numbers ascend, so the walk goes from the latest down to the wanted one.
    fn of_record(&mut self, record: u64) -> Option<&mut Request> {
        let later = self.open.iter_mut().rev().flatten().map(|open| &mut open.request);
        later.take_while(|request| request.record >= record).last().filter(|request| request.record == record)
    }

    /// Removes a request that is answered for good.
    pub fn remove(&mut self, serial: u64) {
        let Some(place) = serial.checked_sub(self.first).and_then(|place| self.open.get_mut(place as usize)) else {
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
        self.early = VecDeque::new();
    }

    /// Memory of the remembered requests, roughly, in bytes.
    pub fn held(&self) -> usize {
        let queues: usize = self.queues.iter().map(VecDeque::capacity).sum();
        queues * size_of::<u64>()
            + self.early.capacity() * size_of::<EarlyReply>()
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
            // Nothing to mend for the oldest request of a chain: later requests that refer to it find nothing, and the
            // walk stops.
            if self.latest.get(&open.request.key.exact) == Some(&self.first) {
                self.latest.remove(&open.request.key.exact);
            }
            self.waiting -= 1;
            self.forgotten += u64::from(!open.request.answered);
        }
        self.first += 1;
    }
}

/// Whether a message in a tree is a partial reply: another one to the same request follows.
pub fn is_partial(tree: &Tree) -> bool {
    tree.get(0).is_some_and(|root| root.has(mark::PARTIAL))
}

/// The key of a message: the first value in its tree that is marked as `transaction`. A UUID is folded into a number. `captured` are
/// the message's bytes.
pub fn transaction_key(tables: &Tables, tree: &Tree, captured: &[u8]) -> Option<RequestKey> {
    let node = tree.nodes().iter().find(|n| tables.type_def(n.ty).is_some_and(|t| t.transaction))?;
    if node.kind != Kind::UuidBe {
        return Some(RequestKey::of(node.value));
    }
    let (start, len) = node.content();
    let uuid = tree.bytes(node.buffer, captured).get(start..start + len)?;
    let (high, low) = uuid.split_first_chunk::<8>()?;
    let low = low.first_chunk::<8>()?;
    Some(RequestKey::of(u64::from_le_bytes(*high).rotate_left(1) ^ u64::from_le_bytes(*low)))
}

#[cfg(test)]
#[path = "requests_tests.rs"]
mod tests;
