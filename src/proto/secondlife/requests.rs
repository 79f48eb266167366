//! Messages that may be answered, by the value their tables mark as `transaction`, in bounded space.

use std::collections::VecDeque;

use crate::proto::Reply;
use crate::table::{MessageId, Tables};
use crate::tree::{Kind, Tree};

/// More requests than this are not remembered; the oldest are forgotten first.
const LIMIT: usize = 256;

#[derive(Clone, Copy)]
struct Request {
    message: MessageId,
    transaction: u64,
    record: u64,
    nanos: i64,
}

/// What was asked on a circuit, by either side.
pub struct Requests {
    /// By message: whether some other message answers it.
    answered: Vec<bool>,
    open: VecDeque<Request>,
}

impl Requests {
    /// Nothing was asked yet.
    pub fn new(tables: &Tables) -> Self {
        let mut answered = vec![false; tables.messages().len()];
        for asked in tables.messages().iter().flat_map(|m| &m.answers) {
            if let Some(place) = answered.get_mut(asked.0 as usize) {
                *place = true;
            }
        }
        Requests { answered, open: VecDeque::new() }
    }

    /// Memory that the remembered requests take, in bytes.
    pub fn held(&self) -> usize {
        self.open.capacity() * size_of::<Request>()
    }

    /// Forgets what was asked.
    pub fn forget(&mut self) {
        self.open = VecDeque::new();
    }

    /// Remembers a message, where there are answers to it.
    pub fn ask(&mut self, message: MessageId, record: u64, nanos: i64, (tables, tree, bytes): (&Tables, &Tree, &[u8])) {
        if self.answered.get(message.0 as usize) != Some(&true) {
            return;
        }
        let Some(transaction) = transaction(tables, tree, bytes) else { return };
        if self.open.len() >= LIMIT {
            self.open.pop_front();
        }
        self.open.push_back(Request { message, transaction, record, nanos });
    }

    /// The request a message answers: the latest of the same transaction.
    pub fn answer(&self, message: MessageId, nanos: i64, tables: &Tables, tree: &Tree, bytes: &[u8]) -> Option<Reply> {
        let answers = &tables.message(message)?.answers;
        if answers.is_empty() {
            return None;
        }
        let transaction = transaction(tables, tree, bytes)?;
        let asked = self.open.iter().rev().find(|r| r.transaction == transaction && answers.contains(&r.message))?;
        Some(Reply { record: asked.record, nanos: nanos.saturating_sub(asked.nanos) })
    }
}

/// The first value that is marked as a transaction: a number, or a UUID folded into one.
fn transaction(tables: &Tables, tree: &Tree, bytes: &[u8]) -> Option<u64> {
    let node = tree.nodes().iter().find(|n| tables.type_def(n.ty).is_some_and(|t| t.transaction))?;
    if node.kind != Kind::UuidBe {
        return Some(node.value);
    }
    let (start, len) = node.content();
    let uuid = tree.bytes(node.buffer, bytes).get(start..start + len)?;
    let (high, low) = uuid.split_first_chunk::<8>()?;
    let low = low.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*high).rotate_left(1) ^ u64::from_le_bytes(*low))
}
