//! A request, a message that may answer it, and what both have in common.
//!
//! Tables say which value both share (`transaction`), and which value a reply repeats (`echoed`). A
//! protocol whose requests are identified by more than a transaction makes its own [`RequestKey`];
//! a simple one uses [`request_key`]. This file knows no protocol. It reads only these values from
//! a tree.

use super::{Reply, ReplyShare, Side};
use crate::capture::Moment;
use crate::table::{MessageDef, MessageId, Tables, TypeDef};
use crate::tree::{Kind, Node, Tree, mark};

/// What a request and its reply have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestKey {
    /// Equal in both: a transaction number, or a hash of the values that identify the request.
    pub exact: u64,
    /// Hashes of values that must be equal if both messages have them.
    pub loose: [Option<u64>; 2],
    /// The value that a reply repeats. Of several requests, a reply belongs to the one with its
    /// value.
    pub echo: Option<u64>,
}

impl RequestKey {
    /// The key of every request without a transaction, and of every reply to one. Such a reply
    /// belongs to the oldest waiting request.
    pub const NONE: RequestKey =
        RequestKey { exact: 0x9e37_79b9_7f4a_7c15, loose: [Some(0), Some(0)], echo: None };

    /// The key of a request that is identified by its transaction alone.
    pub fn of(transaction: u64) -> RequestKey {
        RequestKey { exact: transaction, loose: [None; 2], echo: None }
    }

    /// Whether it is the key of a message without a transaction.
    pub fn is_none(&self) -> bool {
        RequestKey { echo: None, ..*self } == RequestKey::NONE
    }

    /// Whether a request and a reply with these keys agree in every value that both have.
    pub fn fits(&self, reply: &RequestKey) -> bool {
        let agree = |(a, b): (&Option<u64>, &Option<u64>)| a.is_none() || b.is_none() || a == b;
        self.exact == reply.exact && self.loose.iter().zip(&reply.loose).all(agree)
    }

    /// Whether a reply with this key repeats the request's value. `None` if one of them has no such
    /// value.
    pub fn repeats(&self, reply: &RequestKey) -> Option<bool> {
        Some(self.echo? == reply.echo?)
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
    /// Whether several may answer it, each for itself.
    pub several: bool,
}

/// A message that may answer a request.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// Its message.
    pub message: MessageId,
    /// The side that sent it.
    pub from: Side,
    /// The messages that it answers.
    pub answers: &'a [MessageId],
    /// What it has in common with its request.
    pub key: RequestKey,
    /// The frame that completed it.
    pub at: Moment,
    /// Whether further replies to the same request follow, as the message says itself.
    pub partial: bool,
    /// What it brings of a reply in several messages.
    pub share: Option<ReplyShare>,
}

impl Answer<'_> {
    /// Whether a request may be the one that this message answers, if their keys agree.
    pub(super) fn may_answer(&self, request: &Request) -> bool {
        request.from != self.from
            && request.at.frame <= self.at.frame
            && self.answers.contains(&request.message)
    }
}

impl Request {
    /// The report on a message that answers this request at `at`.
    pub fn reply(&self, at: Moment) -> Reply {
        let seconds = at.time.seconds.saturating_sub(self.at.time.seconds);
        let nanos = i64::from(at.time.nanos) - i64::from(self.at.time.nanos);
        Reply {
            record: self.record,
            nanos: seconds.saturating_mul(1_000_000_000).saturating_add(nanos),
        }
    }
}

/// Whether a message in a tree is a partial reply: another one to the same request follows.
pub fn is_partial(tree: &Tree) -> bool {
    tree.get(0).is_some_and(|root| root.has(mark::PARTIAL))
}

/// The key of a message: its transaction, and the value that is `echoed`. A message without a
/// transaction has [`RequestKey::NONE`], unless its table declares one. `captured` are the
/// message's bytes.
pub fn request_key(
    def: &MessageDef,
    tables: &Tables,
    tree: &Tree,
    captured: &[u8],
) -> Option<RequestKey> {
    let key = match transaction_key(tables, tree, captured) {
        None if def.tied => return None,
        key => key.unwrap_or(RequestKey::NONE),
    };
    let echoed = |ty: &TypeDef| ty.facts.as_ref().is_some_and(|facts| facts.echoed);
    let echo = if def.echoes { value(tables, tree, captured, echoed) } else { None };
    Some(RequestKey { echo, ..key })
}

/// The key of a message: the first value in its tree that is marked as `transaction`. `captured`
/// are the message's bytes.
pub fn transaction_key(tables: &Tables, tree: &Tree, captured: &[u8]) -> Option<RequestKey> {
    value(tables, tree, captured, |ty| ty.transaction).map(RequestKey::of)
}

/// The first value in a tree with a certain mark. A UUID is folded into a number.
fn value(
    tables: &Tables,
    tree: &Tree,
    captured: &[u8],
    marked: impl Fn(&TypeDef) -> bool,
) -> Option<u64> {
    let is_marked = |node: &&Node| tables.type_def(node.ty).is_some_and(&marked);
    let node = tree.nodes().iter().find(is_marked)?;
    if node.kind != Kind::UuidBe {
        return Some(node.value);
    }
    let (start, len) = node.content();
    let uuid = tree.bytes(node.buffer, captured).get(start..start + len)?;
    let (high, low) = uuid.split_first_chunk::<8>()?;
    let low = low.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*high).rotate_left(1) ^ u64::from_le_bytes(*low))
}
