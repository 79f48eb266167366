//! Requests by their message: how many were sent, answered, refused and never answered, and how
//! long their replies took; and what was refused.
//!
//! It keeps the requests that wait ([`Waiting`] says how many) and at most [`KINDS`] messages and
//! refusals; further ones are counted together.

use std::collections::{BTreeMap, HashMap};

use super::counters::OTHERS;
use super::requests::is_last_reply;
use super::{LastReply, RequestCounts, Waiting, refused};
use crate::record::{MessageView, Record};
use crate::session::Message;
use crate::table::{Expectation, MessageDef, MessageId, Refusal, Tables};
use crate::tree::Tree;

/// Messages that are counted one by one, and refusals.
const KINDS: usize = 2_000;

/// The requests of one message, counted.
#[derive(Clone, Debug)]
pub struct RequestKind {
    /// The request's message.
    pub message: String,
    /// What it carries, where its name does not say it.
    pub carries: Option<String>,
    /// Whether an acknowledgement is enough for it.
    pub receipt: bool,
    /// How many were answered, refused or never answered.
    pub counts: RequestCounts,
}

impl RequestKind {
    /// The message, and behind it what it carries.
    pub fn name(&self) -> String {
        match &self.carries {
            Some(carried) => format!("{} {carried}", self.message),
            None => self.message.clone(),
        }
    }
}

/// All requests, counted by message and by what it carries.
#[derive(Debug, Default)]
pub struct Replies {
    kinds: Vec<RequestKind>,
    /// The place of a kind by its message and by what that carries; nothing is the empty text.
    by_name: HashMap<String, HashMap<String, u32>>,
    waiting: Waiting<(MessageId, u32)>,
    /// By message and reason.
    refusals: BTreeMap<(String, String), u64>,
}

/// A message as the tables know it.
#[derive(Clone, Copy)]
pub(super) struct KnownMessage<'a> {
    pub(super) message: &'a Message<'a>,
    pub(super) tables: &'a Tables,
    pub(super) id: MessageId,
    pub(super) def: &'a MessageDef,
    /// Its record's number.
    pub(super) record: u64,
    /// How many nanoseconds of its time as a reply the network took, if the capture shows it.
    pub(super) network: Option<i64>,
    /// Its fields; `None` where only its outline was read, so that it neither refuses nor is part
    /// of a reply.
    pub(super) tree: Option<&'a Tree>,
}

impl<'a> KnownMessage<'a> {
    pub(super) fn new(
        record: &Record<'a>,
        message: &'a Message<'a>,
        tables: &'a Tables,
        id: MessageId,
    ) -> Option<Self> {
        let def = tables.message(id)?;
        let number = record.number;
        let network = message.reply.and_then(|reply| record.network(reply.nanos));
        Some(KnownMessage { message, tables, id, def, record: number, network, tree: None })
    }
}

impl Replies {
    /// Takes the next message. A message that is not `counted` can only complete a counted request,
    /// as its reply.
    #[inline]
    pub(super) fn message(
        &mut self,
        known: KnownMessage<'_>,
        carried: Option<&str>,
        counted: bool,
    ) {
        let KnownMessage { message, def, .. } = known;
        if message.reply.is_some() || def.refusal != Refusal::Never {
            self.reply(known, counted);
        }
        if message.expects_reply(def) && counted {
            self.request(known, carried);
        }
    }

    fn request(&mut self, known: KnownMessage<'_>, carried: Option<&str>) {
        let receipt = known.def.expects == Some(Expectation::Receipt);
        let place = self.kind(known.message.name.raw(), carried, receipt);
        if let Some(kind) = self.kinds.get_mut(place as usize) {
            kind.counts.sent += 1;
            let _ = self.waiting.ask(known.record, (known.id, place));
        }
    }

    /// The place of a request's message, and of what it carries, in the list.
    fn kind(&mut self, name: &str, carried: Option<&str>, receipt: bool) -> u32 {
        let own = self.by_name.get(name);
        if let Some(place) = own.and_then(|own| own.get(carried.unwrap_or_default())) {
            return *place;
        }
        let full = self.kinds.len() >= KINDS;
        let (name, carried, receipt) =
            if full { (OTHERS, None, false) } else { (name, carried, receipt) };
        let own = self.by_name.entry(name.to_string()).or_default();
        *own.entry(carried.unwrap_or_default().to_string()).or_insert_with(|| {
            self.kinds.push(RequestKind {
                message: name.to_string(),
                carries: carried.map(str::to_string),
                receipt,
                counts: RequestCounts::default(),
            });
            self.kinds.len() as u32 - 1
        })
    }

    fn reply(&mut self, known: KnownMessage<'_>, counted: bool) {
        let KnownMessage { message, tables, def, tree, network, .. } = known;
        let values = tree.map(|tree| MessageView { tables, tree, bytes: message.bytes });
        let refusal = values.as_ref().and_then(|values| refused(def, values));
        if let Some(reply) = message.reply {
            let refused = refusal.is_some();
            if self
                .waiting
                .get(reply.record)
                .is_some_and(|(request, _)| is_last_reply(def, *request, refused, tree))
                && let Some((_, place)) = self.waiting.take(reply.record)
                && let Some(kind) = self.kinds.get_mut(place as usize)
            {
                kind.counts.reply(LastReply {
                    request: reply.record,
                    nanos: reply.nanos,
                    network,
                    refused,
                });
            }
        }
        if let (Some(refusal), Some(values), true) = (refusal, &values, counted) {
            let key = (message.name.raw().to_string(), refusal.reason(message.name.raw(), values));
            let full = self.refusals.len() >= KINDS && !self.refusals.contains_key(&key);
            let key = if full { (OTHERS.to_string(), OTHERS.to_string()) } else { key };
            *self.refusals.entry(key).or_default() += 1;
        }
    }

    /// Counts a request that will never be answered.
    pub(super) fn unanswered(&mut self, request: u64) {
        if let Some((_, place)) = self.waiting.take(request)
            && let Some(kind) = self.kinds.get_mut(place as usize)
        {
            kind.counts.unanswered += 1;
        }
    }

    /// The requests by message: those that were never answered first, then those that were refused,
    /// then the most frequent.
    pub fn kinds(&self) -> Vec<&RequestKind> {
        let mut all: Vec<&RequestKind> = self.kinds.iter().collect();
        let order =
            |kind: &RequestKind| (kind.counts.unanswered, kind.counts.refused, kind.counts.sent);
        all.sort_by(|a, b| order(b).cmp(&order(a)).then_with(|| a.name().cmp(&b.name())));
        all
    }

    /// The counts of all requests together.
    pub fn all(&self) -> RequestCounts {
        let mut all = RequestCounts::default();
        self.kinds.iter().for_each(|kind| all.add(&kind.counts));
        all
    }

    /// What was refused: message, reason and how often, the most frequent first.
    pub fn refusals(&self) -> Vec<(&str, &str, u64)> {
        let mut all: Vec<_> = self
            .refusals
            .iter()
            .map(|((m, reason), n)| (m.as_str(), reason.as_str(), *n))
            .collect();
        all.sort_by_key(|(_, _, n)| std::cmp::Reverse(*n));
        all
    }

    /// How many requests were forgotten because too many waited: whether they were answered is not
    /// known.
    pub fn forgotten(&self) -> u64 {
        self.waiting.forgotten()
    }
}
