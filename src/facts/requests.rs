//! Counts requests that were answered, refused or never answered: for each name of a request, for a
//! stream, or for a session.
//!
//! A request counts as answered when its last reply comes; a reply that tables call partial is not
//! the last. The number of waiting requests is bounded; beyond the bound, the oldest are dropped
//! and count as neither answered nor unanswered.

use std::collections::VecDeque;

use super::Latencies;
use crate::table::{MessageDef, MessageId};
use crate::tree::{Tree, mark};

/// Requests that wait for replies, of all streams together.
const MAX_WAITING: usize = 65_536;

/// How many of some requests were answered, refused or never answered.
#[derive(Clone, Debug, Default)]
pub struct RequestCounts {
    /// Messages that expect a reply.
    pub sent: u64,
    /// Of these, those whose last reply came.
    pub answered: u64,
    /// Of the answered ones, those whose reply refused; and messages that refuse without having
    /// been asked.
    pub refused: u64,
    /// Those that never got a reply until their stream or the capture ended.
    pub unanswered: u64,
    /// Times to the last reply.
    pub latency: Latencies,
    /// Of these times, what the network took, for the replies of which the capture shows it.
    pub network: Latencies,
    /// The request that waited longest for its reply.
    pub slowest: Option<SlowestRequest>,
}

/// The request that waited longest for its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowestRequest {
    /// Its record.
    pub record: u64,
    /// How long it waited, in nanoseconds.
    pub nanos: i64,
    /// How many of these nanoseconds the network took, where the capture shows it.
    pub network: Option<i64>,
}

/// A request's last reply.
#[derive(Clone, Copy, Debug)]
pub struct LastReply {
    /// The request's record.
    pub request: u64,
    /// The time from the request to the reply, in nanoseconds.
    pub nanos: i64,
    /// How many of these nanoseconds the network took, where the capture shows it.
    pub network: Option<i64>,
    /// Whether it refuses.
    pub refused: bool,
}

impl RequestCounts {
    /// How many were neither answered nor called unanswered.
    pub fn unknown(&self) -> u64 {
        self.sent.saturating_sub(self.answered + self.unanswered)
    }

    /// Adds the counts of other requests.
    pub fn add(&mut self, other: &RequestCounts) {
        self.sent += other.sent;
        self.answered += other.answered;
        self.refused += other.refused;
        self.unanswered += other.unanswered;
        if other.latency.max() > self.latency.max() {
            self.slowest = other.slowest;
        }
        self.latency.merge(&other.latency);
        self.network.merge(&other.network);
    }

    /// Counts the last reply to a request.
    pub fn reply(&mut self, reply: LastReply) {
        let LastReply { request: record, nanos, network, refused } = reply;
        self.answered += 1;
        self.refused += u64::from(refused);
        if self.latency.add(nanos) {
            self.slowest = Some(SlowestRequest { record, nanos, network });
        }
        if let Some(network) = network {
            self.network.add(network);
        }
    }
}

/// Whether a message that names a request is its last reply. A message that only acknowledges the
/// request's datagram names it too, but does not answer it. A refusal always answers it. After a
/// partial reply another one follows. A message without a tree was read only as an outline, so it
/// is not partial.
pub(super) fn is_last_reply(
    def: &MessageDef,
    request: MessageId,
    refused: bool,
    tree: Option<&Tree>,
) -> bool {
    let partial = || tree.and_then(|tree| tree.get(0)).is_some_and(|root| root.has(mark::PARTIAL));
    refused || def.answers.contains(&request) && !partial()
}

/// Requests that wait, by record, with a value that the caller gets back when the reply comes.
#[derive(Clone, Debug)]
pub struct Waiting<T> {
    /// In the order of records.
    requests: VecDeque<(u64, Option<T>)>,
    present: usize,
    forgotten: u64,
}

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Waiting { requests: VecDeque::new(), present: 0, forgotten: 0 }
    }
}

impl<T> Waiting<T> {
    /// Adds a request. Records come in ascending order. Returns the value of the request that is
    /// forgotten for it.
    pub fn ask(&mut self, record: u64, about: T) -> Option<T> {
        let mut oldest = None;
        if self.requests.len() >= MAX_WAITING {
            oldest = self.requests.pop_front().and_then(|(_, about)| about);
            self.present -= usize::from(oldest.is_some());
            self.forgotten += u64::from(oldest.is_some());
        }
        self.requests.push_back((record, Some(about)));
        self.present += 1;
        oldest
    }

    /// Counts a request for which there is no room.
    pub fn forget_one(&mut self) {
        self.forgotten += 1;
    }

    fn place(&self, record: u64) -> Option<usize> {
        self.requests.binary_search_by_key(&record, |(record, _)| *record).ok()
    }

    /// The value of a waiting request.
    pub fn get(&self, record: u64) -> Option<&T> {
        self.requests.get(self.place(record)?)?.1.as_ref()
    }

    /// Removes a request that was answered or never will be.
    pub fn take(&mut self, record: u64) -> Option<T> {
        let at = self.place(record)?;
        let about = self.requests.get_mut(at)?.1.take();
        self.present -= usize::from(about.is_some());
        while self.requests.front().is_some_and(|(_, about)| about.is_none()) {
            self.requests.pop_front();
        }
        about
    }

    /// How many requests wait.
    pub fn len(&self) -> usize {
        self.present
    }

    /// Whether no request waits.
    pub fn is_empty(&self) -> bool {
        self.present == 0
    }

    /// How many requests were forgotten, because too many waited.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn a_request_is_taken_once_and_the_oldest_are_forgotten() {
        let mut waiting = Waiting::default();
        for record in 1..=MAX_WAITING as u64 + 2 {
            waiting.ask(record, record);
        }
        assert_eq!((waiting.len(), waiting.forgotten()), (MAX_WAITING, 2));
        assert_eq!(waiting.take(2), None);
        assert_eq!(waiting.take(3), Some(3));
        assert_eq!(waiting.take(3), None);
        assert_eq!(waiting.get(9), Some(&9));
    }

    #[test]
    fn the_slowest_reply_is_remembered_by_its_request() {
        let mut counts = RequestCounts::default();
        let slowest = SlowestRequest { record: 9, nanos: 300, network: Some(40) };
        for (request, nanos, network, refused) in
            [(7, 100, None, false), (9, 300, slowest.network, true), (11, 200, Some(90), false)]
        {
            counts.reply(LastReply { request, nanos, network, refused });
        }
        assert_eq!((counts.answered, counts.refused, counts.slowest), (3, 1, Some(slowest)));
        assert_eq!(
            (counts.network.count(), counts.network.max()),
            (2, Some(90)),
            "one reply has none"
        );
    }
}
