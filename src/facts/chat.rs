//! Finds chat messages, with their speakers, recipients and channels.
//!
//! Tables mark the fields that are a speaker, a listener, a channel or the text (`chat WORD`). A
//! server relays a chat message to other clients; these copies are recognised and refer to the
//! original. This file knows no protocol and no output.

use std::collections::VecDeque;
use std::hash::BuildHasher;

use super::TransportStream;
use crate::capture::{Moment, Time};
use crate::captured::Captured;
use crate::maps::SeededMap;
use crate::record::{Body, MessageView, Record};
use crate::session::Side;
use crate::table::ChatRole;
use crate::tree::{Kind, Node, mark};

/// The most characters of a chat message and of a name.
const MAX_TEXT: usize = 65_536;
const MAX_NAME: usize = 256;
/// The most listeners of one chat message.
const MAX_LISTENERS: usize = 256;
/// A message with the same speaker and text counts as a relayed copy for this long, in nanoseconds.
const PASSED_ON_WITHIN: i64 = 10_000_000_000;
/// How many chat messages are remembered for that, and how many streams of each.
const MAX_RECENT: usize = 1024;
const MAX_SEEN_ON: usize = 256;
/// With how many of those with the same text a message is compared.
const MAX_ALIKE: usize = 64;

/// A person or object that says or receives a chat message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatParty {
    /// The name, from the message or from earlier records that name the number.
    pub name: Option<String>,
    /// The number or UUID.
    pub id: Option<String>,
}

/// One chat message.
#[derive(Clone, Debug)]
pub struct ChatLine {
    /// Its record.
    pub record: u64,
    /// Its frame.
    pub at: Moment,
    /// Its stream.
    pub stream: TransportStream,
    /// The side that sent it.
    pub side: Side,
    /// The protocol's name.
    pub protocol: &'static str,
    /// The service's name.
    pub service: String,
    /// The message's name.
    pub message: String,
    /// The sender.
    pub from: ChatParty,
    /// The receiver, if the message goes to one person.
    pub to: Vec<ChatParty>,
    /// The channel, where it is on one.
    pub channel: Option<String>,
    /// The conversation, where the protocol numbers them.
    pub session: Option<String>,
    /// What kind of speech it is.
    pub kind: Vec<String>,
    /// The text.
    pub text: String,
    /// The original record, if this one is a relayed copy.
    pub relays: Option<u64>,
}

/// Finds chat messages. Takes records in capture order.
#[derive(Default)]
pub struct Chat {
    recent: VecDeque<RecentLine>,
    /// How many messages came before those.
    before: u64,
    /// The numbers of those that may be relayed, by a hash of their texts, the oldest first.
    by_text: SeededMap<u64, VecDeque<u64>>,
}

/// A chat message that may be relayed.
struct RecentLine {
    record: u64,
    time: i64,
    from: ChatParty,
    text: String,
    hash: u64,
    protocol: &'static str,
    seen_on: Vec<(TransportStream, Side)>,
}

/// A marked node, with the structure that holds it.
struct ChatMark<'a> {
    role: ChatRole,
    index: u32,
    node: &'a Node,
    parent: u32,
}

/// A message that is searched for chat.
struct ChatSearch<'a, 'c, 'n> {
    values: MessageView<'a>,
    marked: Vec<ChatMark<'a>>,
    own: Option<(u32, &'a Node)>,
    called: &'c dyn Fn(u32) -> Option<&'n str>,
}

impl Chat {
    /// The chat message in a record. With `redact`, secrets are left out.
    pub fn record(&mut self, record: &Record<'_>, redact: bool) -> Vec<ChatLine> {
        let Body::Message { message, tables, tree } = &record.body else { return Vec::new() };
        let values = MessageView { tables, tree, bytes: message.bytes };
        if !values.may_have(|facts| facts.chat == Some(ChatRole::Text)) {
            return Vec::new();
        }
        let called = &|node| record.names.name_of(node).map(|(name, _)| name);
        let search = ChatSearch::new(values, called, redact);
        if !search.marked.iter().any(|marked| marked.role == ChatRole::Text)
            || values.is_sent_again()
        {
            return Vec::new();
        }
        let texts = search.marked.iter().filter(|marked| marked.role == ChatRole::Text);
        let mut lines = Vec::new();
        for said in texts {
            let Some(text) = values.text(said.node, MAX_TEXT) else { continue };
            let (channel, session) = (
                search.word(said.parent, ChatRole::Channel),
                search.word(said.parent, ChatRole::Session),
            );
            let mut line = ChatLine {
                record: record.number,
                at: record.at,
                stream: (record.transport, record.stream),
                side: record.from,
                protocol: record.protocol,
                service: record.service.to_string(),
                message: message.name.raw().to_string(),
                from: search.speaker(said.parent),
                to: search.listeners(said.parent),
                // A channel with the number 0 is none in particular.
                channel: channel.filter(|channel| channel != "0"),
                session,
                kind: search.kinds(said.parent),
                text,
                relays: None,
            };
            line.relays = self.first_said(&line);
            lines.push(line);
        }
        lines
    }

    /// The record of the original, if this is a relayed copy.
    fn first_said(&mut self, line: &ChatLine) -> Option<u64> {
        let now = nanos(line.at.time);
        let here = (line.stream, line.side);
        while self.recent.front().is_some_and(|said| !said.is_recent(now)) {
            self.forget();
        }
        let hash = self.by_text.hasher().hash_one((line.protocol, &line.text));
        let alike = self.by_text.entry(hash).or_default();
        for (place, number) in alike.iter().take(MAX_ALIKE).enumerate() {
            let at = usize::try_from(number - self.before).unwrap_or(usize::MAX);
            let Some(said) = self.recent.get_mut(at) else { continue };
            let same = said.is_recent(now)
                && said.protocol == line.protocol
                && said.from.may_be(&line.from)
                && !said.seen_on.contains(&here)
                && said.text == line.text;
            if same {
                said.seen_on.push(here);
                let record = said.record;
                if said.seen_on.len() >= MAX_SEEN_ON {
                    alike.remove(place);
                }
                return Some(record);
            }
        }
        alike.push_back(self.before + self.recent.len() as u64);
        self.recent.push_back(RecentLine {
            record: line.record,
            time: now,
            from: line.from.clone(),
            text: line.text.clone(),
            hash,
            protocol: line.protocol,
            seen_on: vec![here],
        });
        if self.recent.len() > MAX_RECENT {
            self.forget();
        }
        None
    }

    /// Forgets the oldest message.
    fn forget(&mut self) {
        let Some(said) = self.recent.pop_front() else { return };
        if let Some(alike) = self.by_text.get_mut(&said.hash) {
            if alike.front() == Some(&self.before) {
                alike.pop_front();
            }
            if alike.is_empty() {
                self.by_text.remove(&said.hash);
            }
        }
        self.before += 1;
    }
}

impl RecentLine {
    /// Whether a copy may still come at this time.
    fn is_recent(&self, now: i64) -> bool {
        now.saturating_sub(self.time) <= PASSED_ON_WITHIN
    }
}

impl ChatParty {
    /// Whether neither a name nor a number is known.
    pub fn is_nobody(&self) -> bool {
        self.name.is_none() && self.id.is_none()
    }

    /// Whether two people may be the same, as far as both are known.
    fn may_be(&self, other: &ChatParty) -> bool {
        match (&self.id, &other.id, &self.name, &other.name) {
            (Some(one), Some(two), ..) => one == two,
            (_, _, Some(one), Some(two)) => one == two,
            _ => true,
        }
    }
}

impl<'a, 'c, 'n> ChatSearch<'a, 'c, 'n> {
    fn new(
        values: MessageView<'a>,
        called: &'c dyn Fn(u32) -> Option<&'n str>,
        redact: bool,
    ) -> Self {
        let (mut marked, mut own): (Vec<ChatMark<'a>>, _) = (Vec::new(), None);
        let mut open: Vec<(u32, u32)> = Vec::new();
        for (index, node) in (0..).zip(values.tree.nodes()) {
            while open.last().is_some_and(|(_, end)| *end <= index) {
                open.pop();
            }
            let facts = values.tables.type_def(node.ty).and_then(|def| def.facts.as_deref());
            if let Some(facts) = facts.filter(|_| !(redact && node.has(mark::SECRET))) {
                let parent = open.last().map_or(0, |(index, _)| *index);
                // The marks of a type with code are on the value inside it, too.
                let within =
                    |last: &ChatMark<'_>| Some(last.role) == facts.chat && index < last.node.end;
                let role = facts.chat.filter(|_| !marked.last().is_some_and(within));
                marked.extend(role.map(|role| ChatMark { role, index, node, parent }));
                if facts.own && own.is_none() {
                    own = Some((index, node));
                }
            }
            if node.kind == Kind::Struct {
                open.push((index, node.end));
            }
        }
        ChatSearch { values, marked, own, called }
    }

    /// The nodes with a role: those beside the text, or else those anywhere in the message.
    fn with(&self, parent: u32, role: ChatRole) -> Vec<&ChatMark<'a>> {
        let all = || self.marked.iter().filter(|marked| marked.role == role);
        let beside: Vec<&ChatMark<'a>> = all().filter(|marked| marked.parent == parent).collect();
        if beside.is_empty() { all().collect() } else { beside }
    }

    fn word(&self, parent: u32, role: ChatRole) -> Option<String> {
        self.with(parent, role).iter().find_map(|marked| self.values.word(marked.node, MAX_NAME))
    }

    /// The speaker. The last name counts: it is the one that clients show, while an earlier one is
    /// the account's.
    fn speaker(&self, parent: u32) -> ChatParty {
        let mut speaker = ChatParty::default();
        for marked in self.with(parent, ChatRole::From) {
            self.add(&mut speaker, marked.index, marked.node);
        }
        if let Some((index, node)) = self.own {
            let mut client = ChatParty::default();
            self.add(&mut client, index, node);
            speaker.id = speaker.id.or(client.id);
            speaker.name = speaker.name.or(client.name);
        }
        let host = self.word(parent, ChatRole::FromHost);
        if let (Some(name), Some(host)) = (&mut speaker.name, host) {
            *name = format!("{name}@{host}");
        }
        speaker
    }

    /// The recipients.
    fn listeners(&self, parent: u32) -> Vec<ChatParty> {
        let mut all: Vec<ChatParty> = Vec::new();
        let mut names = ChatParty::default();
        for marked in self.with(parent, ChatRole::To) {
            match marked.node.kind {
                Kind::List => self.add_all(&mut all, marked.index, None),
                // A mapping from a host to the persons there.
                Kind::Struct => {
                    self.values.tree.members(marked.index).take(MAX_LISTENERS).for_each(
                        |(index, node)| {
                            let host = self.values.tree.dynamic(node.name).map(Captured::raw);
                            self.add_all(&mut all, index, host);
                        },
                    )
                }
                _ => self.add(&mut names, marked.index, marked.node),
            }
        }
        if let Some(host) = self.word(parent, ChatRole::ToHost) {
            names.name = Some(
                names.name.map_or_else(|| format!("@{host}"), |name| format!("{name}@{host}")),
            );
        }
        all.extend(Some(names).filter(|names| !names.is_nobody()));
        all
    }

    /// Adds the persons in a list, at this host where one is given.
    fn add_all(&self, all: &mut Vec<ChatParty>, list: u32, host: Option<&str>) {
        let room = MAX_LISTENERS.saturating_sub(all.len());
        for (index, node) in self.values.tree.members(list).take(room) {
            let mut one = ChatParty::default();
            self.add(&mut one, index, node);
            if let (Some(name), Some(host)) = (&mut one.name, host) {
                *name = format!("{name}@{host}");
            }
            all.extend(Some(one).filter(|one| !one.is_nobody()));
        }
    }

    fn add(&self, speaker: &mut ChatParty, index: u32, node: &Node) {
        match node.kind {
            Kind::Text(_) => {
                speaker.name = self.values.text(node, MAX_NAME).or(speaker.name.take())
            }
            // Number 0 names no person.
            _ if self.values.number(node) == Some(0) => {}
            _ => {
                speaker.id = self.values.word(node, MAX_NAME).or(speaker.id.take());
                speaker.name =
                    speaker.name.take().or_else(|| (self.called)(index).map(str::to_string));
            }
        }
    }

    /// The names of the kind of chat, and the numbers that have no name.
    fn kinds(&self, parent: u32) -> Vec<String> {
        let mut kinds = Vec::new();
        for marked in self.with(parent, ChatRole::Kind) {
            let flags = self.values.tables.symbols(marked.node.ty).filter(|symbols| symbols.flags);
            match (flags, self.values.number(marked.node)) {
                (Some(flags), Some(number)) => {
                    let set = || {
                        flags
                            .values
                            .iter()
                            .filter(|value| value.value != 0 && number & value.value == value.value)
                    };
                    kinds.extend(set().map(|value| value.name.to_string()));
                    let rest = set().fold(number, |rest, value| rest & !value.value);
                    kinds.extend((rest != 0).then(|| format!("{rest:#x}")));
                }
                _ => kinds.extend(self.values.word(marked.node, MAX_NAME)),
            }
        }
        kinds
    }
}

/// Nanoseconds since 1970.
fn nanos(time: Time) -> i64 {
    time.seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(time.nanos))
}
