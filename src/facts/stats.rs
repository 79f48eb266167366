//! Counts what is in a capture: messages by name, problems by text, requests with their replies,
//! bytes by protocol, service and stream.
//!
//! Memory is bounded: names, texts and streams beyond the bounds are counted together.

use std::collections::{BTreeMap, HashMap};

use super::Account;
use super::bytes::{ByteCounts, StreamSummary};
use super::counters::{NameCounter, OTHERS};
use super::info::InfoSource;
use super::pace::Pace;
use super::problems::Problems;
use super::replies::{KnownMessage, Replies};
use super::world::World;
use crate::record::{Body, MessageView, Record, event_word};
use crate::session::{EventKind, Learned, Message};
use crate::table::{MessageId, Tables};

/// The counts.
#[derive(Default)]
pub struct Stats {
    records: u64,
    messages: NameCounter,
    /// For each name of `messages` the message that it names, with the address of the tables that
    /// have it.
    ids: Vec<Option<(usize, Option<MessageId>)>>,
    /// How many messages of a name carried what.
    carried: BTreeMap<String, HashMap<String, u64>>,
    /// How many names `carried` has, of messages and of what they carried.
    carried_names: usize,
    events: HashMap<&'static str, u64>,
    problems: Problems,
    replies: Replies,
    pace: Pace,
    bytes: ByteCounts,
    world: World,
}

impl Stats {
    /// Nothing counted yet.
    pub fn new(account: &Account) -> Stats {
        Stats { world: World::new(account.share()), ..Stats::default() }
    }

    /// Counts a record, not its bytes.
    pub fn record(&mut self, record: &Record<'_>) {
        self.records += 1;
        match &record.body {
            Body::Message { message, tables, tree } => {
                let number = tree.get(0).map_or(u32::MAX, |root| root.name.0);
                let place = self.message(record, message, number, tables);
                for problem in tree.problems() {
                    self.problems.add(problem, tables, Some(tree));
                }
                let id = self.id(place, message, tables);
                let def = id.and_then(|id| tables.message(id));
                let view = MessageView { tables, tree, bytes: message.bytes };
                let source = InfoSource::new(message, def, view, false);
                let carried = source.carried();
                match (source.carried_elements(), &carried) {
                    (Some(all), _) => {
                        all.iter().for_each(|one| self.carried(message.name.raw(), one))
                    }
                    (None, Some(one)) => self.carried(message.name.raw(), one),
                    (None, None) => {}
                }
                let known = id.and_then(|id| KnownMessage::new(record, message, tables, id));
                if let Some(known) = known {
                    let carried = carried.as_deref();
                    self.replies.message(KnownMessage { tree: Some(tree), ..known }, carried, true);
                }
            }
            body => *self.events.entry(event_word(body)).or_default() += 1,
        }
        self.unanswered(record);
    }

    /// Handles a record that is not counted itself: it may answer a counted request.
    pub fn not_counted(&mut self, record: &Record<'_>) {
        if let Body::Message { message, tables, tree } = &record.body
            && let Some(id) = tables.message_named(message.name.raw())
            && let Some(known) = KnownMessage::new(record, message, tables, id)
        {
            self.replies.message(KnownMessage { tree: Some(tree), ..known }, None, false);
        }
        self.unanswered(record);
    }

    /// Counts a message. Returns the index of its name.
    fn message(
        &mut self,
        record: &Record<'_>,
        message: &Message<'_>,
        number: u32,
        tables: &Tables,
    ) -> usize {
        self.pace.message(record.at.time);
        self.messages.count(std::ptr::from_ref(tables).addr(), number, message.name.raw())
    }

    /// Counts what a message carried.
    fn carried(&mut self, message: &str, carried: &str) {
        let own = self.carried.get_mut(message);
        if let Some(n) = own.and_then(|own| own.get_mut(carried)) {
            *n += 1;
            return;
        }
        let full = self.carried_names >= NameCounter::LIMIT;
        let (message, carried) = if full { (OTHERS, OTHERS) } else { (message, carried) };
        self.carried_names += 1;
        let own = self.carried.entry(message.to_string()).or_default();
        *own.entry(carried.to_string()).or_default() += 1;
    }

    /// The message that tables have under a name. It is looked up once for each name.
    #[inline]
    fn id(&mut self, place: usize, message: &Message<'_>, tables: &Tables) -> Option<MessageId> {
        let at = std::ptr::from_ref(tables).addr();
        if let Some(Some((known, id))) = self.ids.get(place)
            && *known == at
        {
            return *id;
        }
        let name = message.name.raw();
        let id = tables.message_named(name);
        if self.messages.name(place) == Some(name) {
            if self.ids.len() <= place {
                self.ids.resize(place + 1, None);
            }
            if let Some(known) = self.ids.get_mut(place) {
                *known = Some((at, id));
            }
        }
        id
    }

    fn unanswered(&mut self, record: &Record<'_>) {
        if let Body::Event(event) = &record.body
            && let EventKind::Unanswered { request, .. } = &event.kind
        {
            self.replies.unanswered(*request);
        }
    }

    /// Counts a stream that is over, and its bytes.
    pub fn stream(&mut self, stream: StreamSummary, learned: Vec<Learned>) {
        self.bytes.stream(stream);
        self.world.learn(learned);
    }

    /// How many records were counted.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// How many messages of each name, the most frequent first.
    pub fn messages(&self) -> Vec<(&str, u64)> {
        sorted(self.messages.all())
    }

    /// What messages carried whose names do not say it: for each name, how many carried what, the
    /// most frequent first.
    pub fn carries(&self) -> impl Iterator<Item = (&str, Vec<(&str, u64)>)> {
        self.carried.iter().map(|(message, own)| {
            (message.as_str(), sorted(own.iter().map(|(carried, n)| (carried.as_str(), *n))))
        })
    }

    /// How many events of each name, the most frequent first.
    pub fn events(&self) -> Vec<(&str, u64)> {
        sorted(self.events.iter().map(|(name, n)| (*name, *n)))
    }

    /// The problems of messages.
    pub fn problems(&self) -> &Problems {
        &self.problems
    }

    /// The requests and their replies.
    pub fn replies(&self) -> &Replies {
        &self.replies
    }

    /// Messages over time.
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// The bytes, by how far they were understood.
    pub fn bytes(&self) -> &ByteCounts {
        &self.bytes
    }

    /// Facts that sessions learned about their network, such as muds and channels.
    pub fn world(&self) -> &World {
        &self.world
    }
}

/// The most frequent first, then by name.
fn sorted<'a>(list: impl Iterator<Item = (&'a str, u64)>) -> Vec<(&'a str, u64)> {
    let mut all: Vec<(&str, u64)> = list.collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    all
}
