//! Which request a reply belongs to. Packets have no transaction numbers: who asked, whom and for what has to do.
//!
//! The tables say what answers what (`answers`) and which further element the two share (`transaction`). Bounded: the oldest are forgotten.

use std::collections::VecDeque;

use crate::proto::{Moment, Reply, Side};
use crate::table::{MessageDef, MessageId, Tables};
use crate::tree::{Kind, Node, Sym, TextKind, Tree, mark};

/// Requests whose replies are waited for in one connection.
const REQUESTS: usize = 256;

/// Other packets that an error may come back for.
const OTHERS: usize = 64;

/// Requests that were not answered yet.
pub(super) struct Pending {
    roles: Vec<Role>,
    asked: VecDeque<Asked>,
    others: VecDeque<Asked>,
}

/// What a message is in a pair.
#[derive(Clone, Default)]
struct Role {
    /// Something answers it.
    request: bool,
    /// What it answers.
    answers: Vec<MessageId>,
    /// It has the six elements that say from whom and to whom.
    addressed: bool,
    /// It says what went wrong with any other packet.
    error: bool,
    /// The element that request and reply share.
    shared: Option<Sym>,
}

#[derive(Clone, Copy)]
struct Asked {
    id: MessageId,
    from: Side,
    record: u64,
    at: Moment,
    key: Key,
}

/// Who asked, whom, and for what, as hashes; `None`: nobody in particular.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Key {
    asker: Option<u64>,
    asked: Option<u64>,
    shared: Option<u64>,
}

impl Pending {
    /// Nothing asked yet.
    pub(super) fn new(tables: &Tables) -> Self {
        let mut roles: Vec<Role> = tables.messages().iter().map(|def| role(def, tables)).collect();
        for def in tables.messages() {
            for id in &def.answers {
                if let Some(role) = roles.get_mut(id.0 as usize) {
                    role.request = true;
                }
            }
        }
        Pending { roles, asked: VecDeque::new(), others: VecDeque::new() }
    }

    /// Remembers a packet that may be answered, under its record's number.
    pub(super) fn asked(&mut self, id: MessageId, from: Side, (record, at): (u64, Moment), bytes: &[u8], tree: &Tree) {
        let Some(role) = self.roles.get(id.0 as usize) else { return };
        if !role.request && (role.error || !role.addressed || !role.answers.is_empty()) {
            return;
        }
        let elements = elements(tree, 0, bytes);
        let key = Key {
            asker: role.addressed.then(|| elements.who(2, 3)).flatten(),
            asked: role.addressed.then(|| elements.mud(4)).flatten(),
            shared: role.shared.and_then(|s| shared(s, tree, bytes)),
        };
        let (list, limit) = if role.request { (&mut self.asked, REQUESTS) } else { (&mut self.others, OTHERS) };
        if list.len() >= limit {
            list.pop_front();
        }
        list.push_back(Asked { id, from, record, at, key });
    }

    /// The request that a packet answers.
    pub(super) fn answered(
        &mut self,
        id: MessageId,
        from: Side,
        at: Moment,
        bytes: &[u8],
        tables: &Tables,
        tree: &Tree,
    ) -> Option<Reply> {
        let role = self.roles.get(id.0 as usize)?;
        if role.answers.is_empty() && !role.error {
            return None;
        }
        let all = elements(tree, 0, bytes);
        let key = Key {
            asker: role.addressed.then(|| all.who(4, 5)).flatten(),
            asked: role.addressed.then(|| all.mud(2)).flatten(),
            shared: role.shared.and_then(|s| shared(s, tree, bytes)),
        };
        if role.error {
            let found = self.erroneous(from, key, bytes, tables, tree)?;
            self.asked.retain(|a| a.record != found.record);
            self.others.retain(|a| a.record != found.record);
            return Some(reply(&found, at));
        }
        let fitting = |asked: &Asked| asked.from != from && role.answers.contains(&asked.id) && fits(&asked.key, &key);
        let place = self.asked.iter().rposition(fitting)?;
        let asked = *self.asked.get(place)?;
        // What was asked of nobody in particular may be answered by several.
        if asked.key.asked.is_some() || asked.key.asker.is_none() {
            self.asked.remove(place);
        }
        Some(reply(&asked, at))
    }

    /// The packet an error is about: the one it brings along, else the only one that is open between its receiver and its sender.
    fn erroneous(&self, from: Side, key: Key, bytes: &[u8], tables: &Tables, tree: &Tree) -> Option<Asked> {
        let open = self.asked.iter().chain(&self.others).filter(|a| a.from != from);
        let enclosed = tree.children(0).find(|(_, n)| n.kind == Kind::Struct && !n.has(mark::SPAN));
        if let Some((index, _)) = enclosed {
            let inner = elements(tree, index, bytes);
            let name = inner.text(0)?;
            let id = tables.message_named(std::str::from_utf8(name).ok()?)?;
            let wanted = (id, inner.who(2, 3), inner.mud(4));
            return open.filter(|a| (a.id, a.key.asker, a.key.asked) == wanted).max_by_key(|a| a.record).copied();
        }
        let mut fitting = open.filter(|a| a.key.asker == key.asker && a.key.asked == key.asked);
        let first = fitting.next()?;
        fitting.next().is_none().then_some(*first)
    }
}

fn reply(asked: &Asked, at: Moment) -> Reply {
    let seconds = at.time.seconds.saturating_sub(asked.at.time.seconds);
    let nanos = i64::from(at.time.nanos) - i64::from(asked.at.time.nanos);
    Reply { record: asked.record, nanos: seconds.saturating_mul(1_000_000_000).saturating_add(nanos) }
}

fn role(def: &MessageDef, tables: &Tables) -> Role {
    let layout = def.layout.and_then(|l| tables.layout(l));
    let position = |i| layout.and_then(|l| tables.position(l, i));
    let shared =
        (0..32).map_while(position).find(|(_, ty)| tables.type_def(*ty).is_some_and(|d| d.transaction)).map(|p| p.0);
    Role {
        request: false,
        answers: def.answers.clone(),
        addressed: position(1).is_some_and(|p| tables.name(p.0) == "ttl"),
        error: tables.name(def.name) == "error",
        shared,
    }
}

/// Whether a request and a reply agree in all that both of them say.
fn fits(asked: &Key, reply: &Key) -> bool {
    let agree = |a: Option<u64>, b: Option<u64>| a.is_none() || b.is_none() || a == b;
    asked.asker == reply.asker && agree(asked.asked, reply.asked) && agree(asked.shared, reply.shared)
}

/// The first elements of an array.
struct Elements<'a> {
    nodes: [Option<&'a Node>; 6],
    tree: &'a Tree,
    bytes: &'a [u8],
}

fn elements<'a>(tree: &'a Tree, parent: u32, bytes: &'a [u8]) -> Elements<'a> {
    let mut nodes = [None; 6];
    let children = tree.children(parent).filter(|(_, n)| !n.has(mark::SPAN));
    for (slot, (_, node)) in nodes.iter_mut().zip(children) {
        *slot = Some(node);
    }
    Elements { nodes, tree, bytes }
}

impl<'a> Elements<'a> {
    fn text(&self, index: usize) -> Option<&'a [u8]> {
        text(self.tree, (*self.nodes.get(index)?)?, self.bytes)
    }

    fn mud(&self, index: usize) -> Option<u64> {
        self.text(index).filter(|t| !t.is_empty()).map(hash)
    }

    /// A mud and a user of it. Users' names are written in any case.
    fn who(&self, mud: usize, user: usize) -> Option<u64> {
        let user = self.text(user).unwrap_or(&[]);
        Some(user.iter().fold(self.mud(mud)?, |sum, byte| mix(sum, byte.to_ascii_lowercase())))
    }
}

fn text<'a>(tree: &'a Tree, node: &Node, bytes: &'a [u8]) -> Option<&'a [u8]> {
    match node.kind {
        Kind::Text(TextKind::Owned) => Some(tree.owned(node.value).as_bytes()),
        Kind::Text(_) => {
            let (start, len) = node.content();
            bytes.get(start..start + len)
        }
        _ => None,
    }
}

/// What request and reply share, as it is written; of a mapping the first key.
fn shared(name: Sym, tree: &Tree, bytes: &[u8]) -> Option<u64> {
    let (index, node) = tree.children(0).find(|(_, n)| n.name == name)?;
    let mut found = node;
    for _ in 0..2 {
        if !matches!(found.kind, Kind::List | Kind::Struct) {
            break;
        }
        let parent = if found.kind == Kind::Struct { index } else { index_of(tree, index)? };
        let (_, child) = tree.children(parent).find(|(_, n)| !n.has(mark::SPAN))?;
        if let Some(key) = tree.dynamic(child.name) {
            return Some(hash(key.as_bytes()));
        }
        found = child;
    }
    match found.kind {
        Kind::Unsigned | Kind::Signed => {
            let mut buffer = itoa::Buffer::new();
            Some(hash(buffer.format(found.value as i64).as_bytes()))
        }
        _ => text(tree, found, bytes).filter(|t| !t.is_empty()).map(hash),
    }
}

/// The first pair of a mapping that is a list of pairs.
fn index_of(tree: &Tree, list: u32) -> Option<u32> {
    tree.children(list).find(|(_, n)| !n.has(mark::SPAN)).map(|(i, _)| i)
}

/// FNV-1a: short, and who makes two names meet only ties a reply to the wrong one of his own requests.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| mix(sum, *byte))
}

fn mix(sum: u64, byte: u8) -> u64 {
    (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
}
