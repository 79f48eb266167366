//! Finds the request that a packet replies to. Packets have no transaction numbers, so the asker,
//! the asked mud and the subject identify it.
//!
//! The tables say which message answers which (`answers`) and which further element both share
//! (`transaction`). The session kit remembers the requests; this file knows what a request and its
//! reply have in common.

use std::sync::Arc;

use crate::proto::Moment;
use crate::session::{Answer, Context, ReplyShare, Request, RequestKey, Requests};
use crate::session::{Reply, Side};
use crate::table::{MessageDef, MessageId, Tables};
use crate::tree::{Kind, Node, Sym, TextKind, Tree, mark};

/// The most requests of one connection that are remembered.
const REQUESTS: usize = 256;

/// The most packets remembered that only an error may answer.
const OTHERS: usize = 64;

/// The requests of one connection, and the packets that answer them.
pub(super) struct PacketReplies {
    roles: Arc<PacketRoles>,
    requests: Requests,
    others: Requests,
}

/// What the tables say of all packets.
struct PacketRoles {
    roles: Vec<Role>,
    /// The messages that expect a reply: an error may answer each of them.
    asked: Vec<MessageId>,
}

impl PacketRoles {
    fn new(tables: &Tables) -> PacketRoles {
        let expects = tables.messages().iter().map(|def| def.expects_reply);
        let asked = (0..).map(MessageId).zip(expects).filter(|(_, expects)| *expects);
        PacketRoles {
            roles: tables.messages().iter().map(|def| role(def, tables)).collect(),
            asked: asked.map(|(id, _)| id).collect(),
        }
    }
}

/// What a packet answers.
pub(super) struct PacketReply {
    /// Its request.
    pub(super) reply: Reply,
    /// Whether other packets bring the rest of the reply.
    pub(super) partial: bool,
}

/// The part of a message in a pair of request and reply.
#[derive(Clone, Default)]
struct Role {
    /// The messages that it answers.
    answers: Vec<MessageId>,
    /// It has the six elements that name sender and receiver.
    addressed: bool,
    /// It reports an error about any other packet.
    error: bool,
    /// The element that tells refusals from mere warnings, and its texts that refuse nothing.
    warns: Option<(Sym, Vec<String>)>,
    /// The element that request and reply share.
    shared: Option<Sym>,
    /// The element that says in how many messages the reply comes.
    parts: Option<Sym>,
}

impl Role {
    fn is_warning(&self, packet: &ReadPacket<'_>) -> bool {
        let Some((name, warnings)) = &self.warns else { return false };
        let code = packet.tree.children(0).find(|(_, node)| node.name == *name);
        code.and_then(|(_, node)| text(packet.tree, node, packet.bytes))
            .is_some_and(|code| warnings.iter().any(|warning| warning.as_bytes() == code))
    }
}

/// A packet that was read, and its sender.
#[derive(Clone, Copy)]
pub(super) struct ReadPacket<'a> {
    /// Its message.
    pub(super) id: MessageId,
    /// The side that sent it.
    pub(super) from: Side,
    /// The frame that completed it.
    pub(super) at: Moment,
    /// Its bytes, the length first.
    pub(super) bytes: &'a [u8],
    /// Its tree.
    pub(super) tree: &'a Tree,
}

impl ReadPacket<'_> {
    /// The packet as the answer to one of some messages.
    fn answer<'a>(&self, answers: &'a [MessageId], key: RequestKey) -> Answer<'a> {
        Answer {
            message: self.id,
            from: self.from,
            answers,
            key,
            at: self.at,
            partial: false,
            share: None,
        }
    }
}

/// The list that a request is remembered in, and its serial number there.
enum Serial {
    Request(u64),
    Other(u64),
}

impl PacketReplies {
    /// Nothing asked yet.
    pub(super) fn new(tables: &Tables) -> Self {
        PacketReplies {
            roles: tables.derived(PacketRoles::new),
            requests: Requests::new(tables, REQUESTS),
            others: Requests::new(tables, OTHERS),
        }
    }

    /// Memory that the remembered requests take, in bytes.
    pub(super) fn held(&self) -> usize {
        self.requests.held() + self.others.held()
    }

    /// Forgets all requests.
    pub(super) fn forget(&mut self) {
        self.requests.forget();
        self.others.forget();
    }

    /// Bytes of a side are lost or unreadable: there may have been replies among them.
    pub(super) fn lose_replies(&mut self, from: Side, at: Moment) {
        self.requests.lose_replies(from, at);
    }

    /// Reports the requests that `from`, which has ended, never answered.
    pub(super) fn report_unanswered(
        &mut self,
        from: Side,
        service: &str,
        at: Moment,
        context: &mut Context<'_>,
    ) {
        self.requests.report_unanswered(from, service, at, context);
    }

    /// A packet as a request, if it may be answered. The caller fills in the record number.
    pub(super) fn as_request(&self, packet: ReadPacket<'_>) -> Option<Request> {
        let role = self.roles.roles.get(packet.id.0 as usize)?;
        // An error may come back for any packet that has an originator and a target, except a reply
        // or an error.
        if !self.requests.is_request(packet.id)
            && (role.error || !role.addressed || !role.answers.is_empty())
        {
            return None;
        }
        let elements = Elements::of(packet.tree, 0, packet.bytes);
        let asker = role.addressed.then(|| elements.who(2, 3)).flatten();
        let asked = role.addressed.then(|| elements.mud(4)).flatten();
        let shared = role.shared.and_then(|name| shared(name, packet.tree, packet.bytes));
        let ReadPacket { id: message, from, at, .. } = packet;
        // A router passes a broadcast on to all muds, and only those that know something answer: a
        // missing reply is not reported.
        let broadcast = from == Side::Server && role.addressed && asked.is_none();
        // A mud that asks itself wants the question back from its router, which shows that the
        // connection is alive, and need not answer it.
        let own = asked.is_some() && asked == elements.mud(2);
        let answered = broadcast || own;
        // A request to every mud, which names none, may be answered by several.
        let several = asked.is_none() && asker.is_some();
        Some(Request {
            message,
            from,
            key: key(asker, asked, shared),
            record: 0,
            at,
            answered,
            several,
        })
    }

    /// Remembers a request, with its record's number.
    pub(super) fn remember(&mut self, request: Request) {
        let list = if self.requests.is_request(request.message) {
            &mut self.requests
        } else {
            &mut self.others
        };
        list.remember(request);
    }

    /// The request that a packet answers.
    pub(super) fn answer(
        &mut self,
        packet: ReadPacket<'_>,
        tables: &Tables,
    ) -> Option<PacketReply> {
        let role = self.roles.roles.get(packet.id.0 as usize)?;
        if role.answers.is_empty() && !role.error {
            return None;
        }
        // In a reply, the originator is the asked mud, and the target is the asker.
        let elements = Elements::of(packet.tree, 0, packet.bytes);
        let asker = role.addressed.then(|| elements.who(4, 5)).flatten();
        let asked = role.addressed.then(|| elements.mud(2)).flatten();
        if role.error {
            // What a warning is about is still done, and answered.
            if role.is_warning(&packet) {
                return None;
            }
            let reply = self.error(packet, key(asker, asked, None), tables)?;
            return Some(PacketReply { reply, partial: false });
        }
        let key =
            key(asker, asked, role.shared.and_then(|name| shared(name, packet.tree, packet.bytes)));
        // The first message of a reply may say in how many it comes.
        let share = role.parts.map(|name| ReplyShare { part: 1, whole: number(name, packet.tree) });
        let answer = Answer { share, ..packet.answer(&role.answers, key) };
        let found = self.requests.find(&answer).map(|(serial, request)| (serial, request.several));
        let partial = found.is_some_and(|(serial, _)| self.requests.leaves_open(serial, &answer));
        let reply = self.requests.answer(&answer);
        if let Some((serial, false)) = found
            && !partial
        {
            self.requests.remove(serial);
        }
        Some(PacketReply { reply: reply?, partial })
    }

    /// The packet that an error is about: the one that it quotes, or else the only open one between
    /// its receiver and its sender. No other reply to it comes.
    fn error(
        &mut self,
        packet: ReadPacket<'_>,
        error: RequestKey,
        tables: &Tables,
    ) -> Option<Reply> {
        let enclosed =
            packet.tree.children(0).find(|(_, n)| n.kind == Kind::Struct && !n.has(mark::SPAN));
        let quoted = match enclosed {
            Some((index, _)) => {
                Some(quoted(&Elements::of(packet.tree, index, packet.bytes), tables)?)
            }
            None => None,
        };
        let found = match quoted {
            Some((id, key)) => {
                let fitting = self.open(packet, key).filter(|(_, request)| request.message == id);
                fitting.max_by_key(|(_, request)| request.record)
            }
            None => {
                let mut fitting = self.open(packet, error);
                fitting.next().filter(|_| fitting.next().is_none())
            }
        };
        let found = found.map(|(serial, request)| (serial, request.reply(packet.at)));
        match &found {
            Some((Serial::Request(serial), _)) => self.requests.remove(*serial),
            Some((Serial::Other(serial), _)) => self.others.remove(*serial),
            None => match &quoted {
                Some((id, key)) => {
                    self.requests.keep_early(&packet.answer(std::slice::from_ref(id), *key))
                }
                None => self.requests.keep_early(&packet.answer(&self.roles.asked, error)),
            },
        }
        found.map(|(_, reply)| reply)
    }

    /// The unanswered packets that the other side sent before a packet, from the asker to the mud
    /// of a key.
    fn open(
        &self,
        packet: ReadPacket<'_>,
        key: RequestKey,
    ) -> impl Iterator<Item = (Serial, &Request)> {
        let requests = self
            .requests
            .with_key(key.exact)
            .map(|(serial, request)| (Serial::Request(serial), request));
        let others = self
            .others
            .with_key(key.exact)
            .map(|(serial, request)| (Serial::Other(serial), request));
        let ReadPacket { from, at, .. } = packet;
        let between = move |request: &Request| {
            request.from != from
                && request.at.frame <= at.frame
                && request.key.loose.first() == key.loose.first()
        };
        requests.chain(others).filter(move |(_, request)| between(request))
    }
}

/// A number among a packet's elements.
fn number(name: Sym, tree: &Tree) -> Option<u64> {
    let (_, node) = tree.children(0).find(|(_, node)| node.name == name)?;
    (node.kind == Kind::Unsigned).then_some(node.value)
}

/// The message and the key of a packet that an error quotes.
fn quoted(packet: &Elements<'_>, tables: &Tables) -> Option<(MessageId, RequestKey)> {
    let id = tables.message_named(std::str::from_utf8(packet.text(0)?).ok()?)?;
    Some((id, key(packet.who(2, 3), packet.mud(4), None)))
}

/// The exact part of a key without an asker.
const NOBODY: u64 = 0;

/// Request and reply agree on the asker and, if both name them, on the asked mud and the subject.
fn key(asker: Option<u64>, asked: Option<u64>, shared: Option<u64>) -> RequestKey {
    RequestKey { exact: asker.unwrap_or(NOBODY), loose: [asked, shared], echo: None }
}

fn role(def: &MessageDef, tables: &Tables) -> Role {
    let layout = def.layout.and_then(|l| tables.layout(l));
    let position = |i| layout.and_then(|l| tables.position(l, i));
    let shared = (0..32)
        .map_while(position)
        .find(|(_, ty)| tables.type_def(*ty).is_some_and(|d| d.transaction))
        .map(|p| p.0);
    let warns = (0..32).map_while(position).find_map(|(name, ty)| {
        let texts = &tables.type_def(ty)?.facts.as_ref()?.refuses_unless_texts;
        (!texts.is_empty()).then(|| (name, texts.clone()))
    });
    Role {
        answers: def.answers.clone(),
        warns,
        addressed: position(1).is_some_and(|p| tables.name(p.0) == "ttl"),
        error: tables.name(def.name) == "error",
        shared,
        parts: (0..32).map_while(position).map(|p| p.0).find(|name| tables.name(*name) == "parts"),
    }
}

/// The first elements of an array.
struct Elements<'a> {
    nodes: [Option<&'a Node>; 6],
    tree: &'a Tree,
    bytes: &'a [u8],
}

impl<'a> Elements<'a> {
    /// Those of the array at a node.
    fn of(tree: &'a Tree, parent: u32, bytes: &'a [u8]) -> Elements<'a> {
        let mut nodes = [None; 6];
        let children = tree.children(parent).filter(|(_, n)| !n.has(mark::SPAN));
        for (slot, (_, node)) in nodes.iter_mut().zip(children) {
            *slot = Some(node);
        }
        Elements { nodes, tree, bytes }
    }

    /// The bytes of an element that is a text.
    fn text(&self, index: usize) -> Option<&'a [u8]> {
        text(self.tree, (*self.nodes.get(index)?)?, self.bytes)
    }

    /// Hash of a mud's name. `None` if no mud is named.
    fn mud(&self, index: usize) -> Option<u64> {
        self.text(index).filter(|t| !t.is_empty()).map(hash)
    }

    /// Hash of a mud and a user of it. Upper and lower case are the same in users' names.
    fn who(&self, mud: usize, user: usize) -> Option<u64> {
        let user = self.text(user).unwrap_or(&[]);
        Some(user.iter().fold(self.mud(mud)?, |sum, byte| mix(sum, byte.to_ascii_lowercase())))
    }
}

fn text<'a>(tree: &'a Tree, node: &Node, bytes: &'a [u8]) -> Option<&'a [u8]> {
    match node.kind {
        Kind::Text(TextKind::Owned) => Some(tree.owned(node.value).raw().as_bytes()),
        Kind::Text(_) => {
            let (start, len) = node.content();
            bytes.get(start..start + len)
        }
        _ => None,
    }
}

/// Hash of the element that request and reply share, as it is written; of a mapping, hash of its
/// first key.
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
            return Some(hash(key.raw().as_bytes()));
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

/// FNV-1a, because it is short. A sender that makes two names collide only links a reply to the
/// wrong one of its own requests.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| mix(sum, *byte))
}

fn mix(sum: u64, byte: u8) -> u64 {
    (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
}
