//! Requests that wait for their replies, by transaction, in bounded space.

use std::collections::{HashMap, VecDeque};

use super::super::{Moment, Reply};
use crate::capture::Time;
use crate::table::{MessageId, Tables};
use crate::tree::Tree;

/// More requests than this are not remembered; the oldest are forgotten first.
const LIMIT: usize = 1024;

#[derive(Clone, Copy)]
struct Request {
    message: MessageId,
    record: u64,
    time: Time,
}

/// The requests of one side.
#[derive(Default)]
pub(super) struct Requests {
    open: HashMap<u64, Request>,
    order: VecDeque<u64>,
}

impl Requests {
    /// Memory that the remembered requests take, in bytes and roughly.
    pub(super) fn held(&self) -> usize {
        self.open.capacity() * (size_of::<(u64, Request)>() + 1) + self.order.capacity() * size_of::<u64>()
    }

    /// Remembers a message that may be answered.
    pub(super) fn ask(&mut self, transaction: u64, message: MessageId, record: u64, at: Moment) {
        let request = Request { message, record, time: at.time };
        if self.open.insert(transaction, request).is_some() {
            return;
        }
        self.order.push_back(transaction);
        if self.order.len() > LIMIT
            && let Some(oldest) = self.order.pop_front()
        {
            self.open.remove(&oldest);
        }
    }

    /// Whether a request of this transaction waits for one of these answers.
    pub(super) fn is_asked(&self, transaction: u64, answers: &[MessageId]) -> bool {
        self.open.get(&transaction).is_some_and(|r| answers.contains(&r.message))
    }

    /// The request a message answers. It stays: some requests are answered more than once.
    pub(super) fn answer(&self, transaction: u64, answers: &[MessageId], at: Moment) -> Option<Reply> {
        let request = self.open.get(&transaction).filter(|r| answers.contains(&r.message))?;
        let seconds = at.time.seconds.saturating_sub(request.time.seconds);
        let nanos = i64::from(at.time.nanos) - i64::from(request.time.nanos);
        Some(Reply { record: request.record, nanos: seconds.saturating_mul(1_000_000_000).saturating_add(nanos) })
    }
}

/// The message's transaction, where its table marks one.
pub(super) fn transaction(tables: &Tables, tree: &Tree) -> Option<u64> {
    tree.children(0)
        .find(|(_, node)| tables.type_def(node.ty).is_some_and(|t| t.transaction))
        .map(|(_, node)| node.value)
}
