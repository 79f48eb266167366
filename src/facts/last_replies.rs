//! Tells which messages are the last reply to their request, so that a request's time is counted
//! once. It keeps the requests that wait ([`Waiting`] says how many).

use super::Waiting;
use super::refusal::{known_message, refused};
use super::requests::is_last_reply;
use crate::record::{Body, MessageView, Record};
use crate::table::MessageId;

/// The requests that wait for their last reply.
#[derive(Debug, Default)]
pub struct LastReplies {
    waiting: Waiting<MessageId>,
}

impl LastReplies {
    /// Takes the next record. Returns whether it is the last reply to a request that an earlier
    /// call was given.
    pub fn record(&mut self, record: &Record<'_>) -> bool {
        let Body::Message { message, tables, tree } = &record.body else { return false };
        let Some((id, def)) = known_message(message.name, tables, tree) else { return false };
        let asked =
            message.reply.and_then(|reply| Some((reply.record, *self.waiting.get(reply.record)?)));
        let values = MessageView { tables, tree, bytes: message.bytes };
        let refuses = || refused(def, &values).is_some();
        let last = asked.filter(|(_, asked)| is_last_reply(def, *asked, refuses(), Some(tree)));
        if let Some((request, _)) = last {
            let _ = self.waiting.take(request);
        }
        if message.expects_reply(def) {
            let _ = self.waiting.ask(record.number, id);
        }
        last.is_some()
    }
}
