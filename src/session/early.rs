//! Replies that were read before their requests, in bounded space.
//!
//! Behind lost bytes, the side that asked is read later than the side that answered. Some captures
//! show the two directions in a wrong order: a reply a few frames before its request. Such a reply
//! is kept here until its request is read, so that the request is not called unanswered. This file
//! knows no protocol.

use std::collections::VecDeque;

use super::Side;
use super::request::{Answer, Request, RequestKey};
use crate::capture::Moment;
use crate::table::MessageId;

/// How many replies are remembered whose requests were not read yet.
const EARLY: usize = 256;

/// A reply is captured at most so many frames, and so many nanoseconds, before its request.
const SWAPPED: (u64, i64) = (16, 10_000_000);

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
    at: Moment,
    /// No request that was read before it has its transaction, so its request may be in one of the
    /// next frames.
    alone: bool,
}

impl EarlyReplies {
    /// Remembers a reply whose request was not read yet. `alone`: nothing that was read before fits
    /// it.
    pub(super) fn keep(&mut self, answer: &Answer<'_>, alone: bool) {
        if answer.partial || answer.answers.is_empty() {
            return;
        }
        let Answer { from, key, at, .. } = *answer;
        let mut answers = self.room();
        answers.clear();
        answers.extend_from_slice(answer.answers);
        let alone = alone && !key.is_none();
        self.replies.push_back(EarlyReply { from, answers, key, at, alone });
        let latest = from.of(&mut self.latest);
        *latest = at.frame.max(*latest);
    }

    /// The list of the oldest reply, if that reply has to go or no request of before it is still to
    /// come.
    fn room(&mut self) -> Vec<MessageId> {
        let full = self.replies.len() >= EARLY;
        let asked_to = &mut self.asked_to;
        let mut passed = |oldest: &EarlyReply| {
            oldest.at.frame.saturating_add(SWAPPED.0) < *oldest.from.other().of(asked_to)
        };
        let over = self.replies.front().is_some_and(&mut passed);
        let oldest = if full || over { self.replies.pop_front() } else { None };
        oldest.map_or(Vec::new(), |oldest| oldest.answers)
    }

    /// Whether a reply was read before its request, although its frame is later, or only a few
    /// frames earlier. Forgets that reply. `echoes`: this connection's replies repeat the values
    /// that tables call `echoed`.
    pub(super) fn take(&mut self, request: &Request, echoes: bool) -> bool {
        let frame = request.at.frame;
        let asked_to = request.from.of(&mut self.asked_to);
        *asked_to = frame.max(*asked_to);
        // Mostly requests are read in order, behind all replies that came before them.
        if request.from.other().of(&mut self.latest).saturating_add(SWAPPED.0) < frame {
            return false;
        }
        let may = |reply: &EarlyReply| {
            reply.from != request.from
                && (reply.at.frame >= frame || reply.alone && swapped(reply.at, request))
                && reply.answers.contains(&request.message)
                && request.key.fits(&reply.key)
        };
        let echo = |reply: &EarlyReply| may(reply) && request.key.repeats(&reply.key) == Some(true);
        let other = |reply: &EarlyReply| {
            may(reply) && (!echoes || request.key.repeats(&reply.key).is_none())
        };
        let place =
            self.replies.iter().position(echo).or_else(|| self.replies.iter().position(other));
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

/// Whether a reply was captured so shortly before its request that the capture may have the two in
/// the wrong order.
fn swapped(reply: Moment, request: &Request) -> bool {
    let (frames, nanos) = SWAPPED;
    request.at.frame.saturating_sub(reply.frame) <= frames && request.reply(reply).nanos >= -nanos
}
