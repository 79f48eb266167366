//! Replies that were read before their requests, in bounded space.
//!
//! Behind lost bytes, the side that asked is read later than the side that answered. Such a reply is kept here until its request is read, so that the request is
//! not called unanswered. This file knows no protocol.

use std::collections::VecDeque;

use super::Side;
use super::request::{Answer, Request, RequestKey};
use crate::table::MessageId;

/// How many replies are remembered whose requests were not read yet.
const EARLY: usize = 256;

/// The replies whose requests were not read yet: the latest [`EARLY`].
#[derive(Debug, Default)]
pub(super) struct EarlyReplies {
    /// In the order in which they were read.
    replies: VecDeque<EarlyReply>,
    /// By the side that answered: the latest frame of its replies.
    latest: [u64; 2],
    /// By the side that asked: its requests before this frame were read.
    asked_to: [u64; 2],
}

#[derive(Debug)]
struct EarlyReply {
    from: Side,
    answers: Vec<MessageId>,
    key: RequestKey,
    frame: u64,
}

impl EarlyReplies {
    /// Remembers a reply whose request was not read yet.
    pub(super) fn keep(&mut self, answer: &Answer<'_>) {
        if answer.partial || answer.answers.is_empty() {
            return;
        }
        let Answer { from, key, at, .. } = *answer;
        let mut answers = self.room();
        answers.clear();
        answers.extend_from_slice(answer.answers);
        self.replies.push_back(EarlyReply { from, answers, key, frame: at.frame });
        let latest = from.of(&mut self.latest);
        *latest = at.frame.max(*latest);
    }

    /// The list of the oldest reply, if that reply has to go or no request of before it is still to come.
    fn room(&mut self) -> Vec<MessageId> {
        let full = self.replies.len() >= EARLY;
        let asked_to = &mut self.asked_to;
        let over = self.replies.front().is_some_and(|oldest| oldest.frame < *oldest.from.other().of(asked_to));
        let oldest = if full || over { self.replies.pop_front() } else { None };
        oldest.map_or(Vec::new(), |oldest| oldest.answers)
    }

    /// Whether a reply was read before its request, although its frame is later. Forgets that reply. `echoes`: this connection's replies repeat the values that
    /// tables call `echoed`.
    pub(super) fn take(&mut self, request: &Request, echoes: bool) -> bool {
        let frame = request.at.frame;
        let asked_to = request.from.of(&mut self.asked_to);
        *asked_to = frame.max(*asked_to);
        // Mostly requests are read in order, behind all replies that came before them.
        if *request.from.other().of(&mut self.latest) < frame {
            return false;
        }
        let may = |reply: &EarlyReply| {
            reply.from != request.from
                && reply.frame >= frame
                && reply.answers.contains(&request.message)
                && request.key.fits(&reply.key)
        };
        let echo = |reply: &EarlyReply| may(reply) && request.key.repeats(&reply.key) == Some(true);
        let other = |reply: &EarlyReply| may(reply) && (!echoes || request.key.repeats(&reply.key).is_none());
        let place = self.replies.iter().position(echo).or_else(|| self.replies.iter().position(other));
        place.and_then(|place| self.replies.remove(place)).is_some()
    }

    /// Forgets all replies, and gives back their memory.
    pub(super) fn forget(&mut self) {
        self.replies = VecDeque::new();
    }

    /// Their memory, roughly, in bytes.
    pub(super) fn held(&self) -> usize {
        self.replies.capacity() * size_of::<EarlyReply>()
    }
}
