//! Conversations that no protocol recognised, counted by port. A run that recognised nothing
//! reports these counts.
//!
//! It knows no protocol. The command line chooses the words.

use std::collections::HashMap;

use crate::session::Transport;

/// The most ports that are counted one by one.
const PORTS: usize = 1024;

/// A conversation that no protocol recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Foreign {
    pub(super) transport: Transport,
    /// The server's port, as far as the packets tell: the destination of the first SYN, else the
    /// lower port.
    pub(super) port: u16,
    pub(super) bytes: u64,
    /// Only packets of one end were captured.
    pub(super) one_sided: bool,
    /// It began before the capture did.
    pub(super) joined_late: bool,
    /// Bytes of it were never captured.
    pub(super) has_gaps: bool,
    /// It begins as TLS does.
    pub(super) is_tls: bool,
}

/// The conversations on one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassedOverPort {
    /// TCP or UDP.
    pub transport: Transport,
    /// The server's port, as far as the packets tell.
    pub port: u16,
    /// How many conversations.
    pub conversations: u64,
    /// Their payload, in bytes.
    pub bytes: u64,
}

/// All conversations that no protocol recognised. Those without any payload are not counted.
#[derive(Clone, Debug, Default)]
pub struct PassedOver {
    /// TCP streams.
    pub tcp: u64,
    /// UDP conversations.
    pub udp: u64,
    /// Those with packets from one end only.
    pub one_sided: u64,
    /// TCP streams that began before the capture did.
    pub joined_late: u64,
    /// Those with bytes that were never captured.
    pub with_gaps: u64,
    /// TCP streams that begin as TLS does.
    pub tls: u64,
    ports: HashMap<(Transport, u16), (u64, u64)>,
}

impl PassedOver {
    pub(super) fn add(&mut self, foreign: Foreign) {
        let Foreign { transport, port, bytes, .. } = foreign;
        if bytes == 0 {
            return;
        }
        match transport {
            Transport::Tcp => self.tcp += 1,
            Transport::Udp => self.udp += 1,
        }
        self.one_sided += u64::from(foreign.one_sided);
        self.joined_late += u64::from(foreign.joined_late);
        self.with_gaps += u64::from(foreign.has_gaps);
        self.tls += u64::from(foreign.is_tls);
        if self.ports.len() < PORTS || self.ports.contains_key(&(transport, port)) {
            let (conversations, sum) = self.ports.entry((transport, port)).or_default();
            *conversations += 1;
            *sum += bytes;
        }
    }

    /// Adds conversations on a port that were counted elsewhere.
    pub(super) fn add_port(&mut self, at: PassedOverPort) {
        let key = (at.transport, at.port);
        if self.ports.len() < PORTS || self.ports.contains_key(&key) {
            let (conversations, sum) = self.ports.entry(key).or_default();
            *conversations += at.conversations;
            *sum += at.bytes;
        }
    }

    /// The ports, those with most bytes first.
    pub fn ports(&self) -> Vec<PassedOverPort> {
        let all =
            self.ports.iter().map(|((transport, port), (conversations, bytes))| PassedOverPort {
                transport: *transport,
                port: *port,
                conversations: *conversations,
                bytes: *bytes,
            });
        let mut all: Vec<PassedOverPort> = all.collect();
        all.sort_by_key(|p| (std::cmp::Reverse(p.bytes), p.transport.word(), p.port));
        all
    }
}
