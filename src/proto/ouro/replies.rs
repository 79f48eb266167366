//! Finds the request that a command answers, and knows which packets show that an answer was there,
//! even if it was not captured.
//!
//! Commands have no transaction. On a link without link headers, CONNECT and its acknowledgements
//! have no sequence number either, so that a lost acknowledgement shows only in what the link does
//! next.

use crate::proto::Moment;
use crate::session::{Answer, Request, RequestKey, Requests};
use crate::session::{Context, Reply, Side};
use crate::table::{MessageId, Tables};

/// How many requests of both sides are remembered.
const REQUESTS: usize = 64;

/// The requests of a link.
#[derive(Default)]
pub(super) struct LinkReplies {
    requests: Requests,
    /// What a client sends to open a link: CONNECT, and its acknowledgement of the server's answer.
    of_client: Vec<MessageId>,
    /// The server's answer to CONNECT, which the client acknowledges.
    of_server: Vec<MessageId>,
    /// Whether one of these may wait for its reply.
    opening: bool,
}

/// A command that was read.
#[derive(Clone, Copy)]
pub(super) struct ReadCommand {
    pub(super) message: Option<MessageId>,
    pub(super) from: Side,
    pub(super) at: Moment,
    /// Whether it is a user command: a side sends these only on an open link.
    pub(super) user: bool,
}

impl LinkReplies {
    /// Nothing asked yet.
    pub(super) fn new(tables: &Tables) -> LinkReplies {
        let ids =
            |names: &[&str]| names.iter().filter_map(|name| tables.message_named(name)).collect();
        LinkReplies {
            requests: Requests::new(tables, REQUESTS),
            of_client: ids(&["COMMCONTROL_CONNECT", "COMMCONTROL_CONNECT_CLIENT_ACK"]),
            of_server: ids(&["COMMCONTROL_CONNECT_SERVER_ACK"]),
            opening: false,
        }
    }

    /// The request that a command answers: the oldest waiting one.
    pub(super) fn answer(&mut self, command: ReadCommand, tables: &Tables) -> Option<Reply> {
        let ReadCommand { message, from, at, user } = command;
        let name = message.and_then(|id| tables.message(id)).map(|def| tables.name(def.name));
        if !self.opening {
            return self.oldest(message, from, at, tables);
        }
        if name == Some("COMMCONTROL_CONNECT_CLIENT_ACK") {
            // A client sends it only after the server's answer to its CONNECT.
            self.requests.settle(from, self.of_client.get(..1).unwrap_or(&[]));
        }
        let reply = self.oldest(message, from, at, tables);
        if user || name == Some("COMMCONTROL_CONNECT_SERVER_ACK_ACK") {
            self.requests.settle(Side::Client, &self.of_client);
            self.requests.settle(Side::Server, &self.of_server);
            self.opening = false;
        }
        reply
    }

    fn oldest(
        &mut self,
        message: Option<MessageId>,
        from: Side,
        at: Moment,
        tables: &Tables,
    ) -> Option<Reply> {
        let message = message?;
        let answers = &tables.message(message)?.answers;
        if answers.is_empty() {
            return None;
        }
        self.requests.answer(&Answer {
            message,
            from,
            answers,
            key: RequestKey::NONE,
            at,
            partial: false,
            share: None,
        })
    }

    /// Remembers a command with its record's number, if it may be answered.
    pub(super) fn remember(&mut self, command: ReadCommand, record: u64) {
        let ReadCommand { message, from, at, .. } = command;
        let Some(message) = message.filter(|id| self.requests.is_request(*id)) else { return };
        self.opening |= self.of_client.contains(&message) || self.of_server.contains(&message);
        let key = RequestKey::NONE;
        self.requests.remember(Request {
            message,
            from,
            key,
            record,
            at,
            answered: false,
            several: false,
        });
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

    /// Memory that the remembered requests take, in bytes.
    pub(super) fn held(&self) -> usize {
        self.requests.held()
    }
}
