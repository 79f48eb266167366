//! The requests of one open stream that were never answered.

use super::words::nanos;
use crate::capture::Moment;
use crate::session::Side;

/// The most messages of one stream that are told apart.
const MAX_MESSAGES: usize = 16;

/// An event about a request that was never answered.
pub(super) struct UnansweredRequest<'a> {
    pub(super) request: u64,
    pub(super) message: &'a str,
    pub(super) waited: i64,
    /// When the latest part of its reply came, in nanoseconds since 1970, if that is known.
    pub(super) part: Option<i64>,
    /// Whether a part of its reply came.
    pub(super) in_part: bool,
    pub(super) asker: Side,
    pub(super) at: Moment,
}

/// The requests of one message that were never answered.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) message: String,
    pub(super) asker: Side,
    /// How many, and their first records.
    pub(super) times: u64,
    pub(super) records: Vec<u64>,
    /// How long the first one waited, and until when.
    pub(super) waited: i64,
    /// How long nothing of its reply came at the end.
    pub(super) idle: i64,
    pub(super) until: Moment,
    pub(super) part: bool,
}

/// The requests of an open stream that were never answered.
#[derive(Default)]
pub(super) struct OpenWaits {
    pub(super) asked: Vec<Asked>,
    pub(super) others: u64,
}

impl OpenWaits {
    pub(super) fn add(&mut self, unanswered: UnansweredRequest<'_>) {
        let UnansweredRequest { request, message, waited, part, in_part, asker, at } = unanswered;
        // It waits since the latest part.
        let idle = part.map_or(waited, |part| nanos(at.time).saturating_sub(part).min(waited));
        let part = in_part;
        let known = |asked: &&mut Asked| asked.message == message && asked.asker == asker;
        if let Some(asked) = self.asked.iter_mut().find(known) {
            asked.times += 1;
            if asked.records.len() < super::MAX_RECORDS {
                asked.records.push(request);
            }
            if idle > asked.idle {
                (asked.waited, asked.idle, asked.until, asked.part) = (waited, idle, at, part);
            }
        } else if self.asked.len() < MAX_MESSAGES {
            let message = message.to_string();
            let records = vec![request];
            self.asked.push(Asked {
                message,
                asker,
                times: 1,
                records,
                waited,
                idle,
                until: at,
                part,
            });
        } else {
            self.others += 1;
        }
    }
}
