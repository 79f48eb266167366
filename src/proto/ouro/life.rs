//! Follows the end of a link by its commands. It knows no bytes.

use crate::session::Side;

/// Whether a link was closed, and by whom.
#[derive(Debug, Default)]
pub(super) struct LinkLife {
    connected: bool,
    /// The side that asked for the end.
    asked: Option<Side>,
    acknowledged: bool,
}

impl LinkLife {
    /// Learns from a control command, by its name. Returns whether the link closes with it.
    pub(super) fn command(&mut self, name: &str, from: Side) -> bool {
        match name {
            "COMMCONTROL_CONNECT" => *self = LinkLife::default(),
            "COMMCONTROL_CONNECT_SERVER_ACK_ACK" => self.connected = true,
            "COMMCONTROL_DISCONNECT" => _ = self.asked.get_or_insert(from),
            "COMMCONTROL_DISCONNECT_ACK" => {
                return !std::mem::replace(&mut self.acknowledged, true);
            }
            _ => {}
        }
        false
    }

    /// Says in words how the link ended.
    pub(super) fn end(&self) -> String {
        let opened = if self.connected { "" } else { ", its opening is not complete" };
        match (self.asked, self.acknowledged) {
            (Some(side), true) => format!("closed by the {}, acknowledged", side.word()),
            (Some(side), false) => format!("closed by the {}, never acknowledged", side.word()),
            (None, true) => "closed; the question was not captured".into(),
            (None, false) => format!("still open{opened}"),
        }
    }
}
