//! The AuthServer's connections: named, and left alone. Theirs is another protocol.

use crate::proto::{Context, Event, EventKind, Moment, Session, Share, Side};

/// A connection to an AuthServer.
#[derive(Debug, Default)]
pub struct AuthSession {
    named: bool,
}

impl Session for AuthSession {
    fn data(&mut self, from: Side, _offset: u64, bytes: &[u8], at: Moment, context: &mut Context<'_>) {
        if !std::mem::replace(&mut self.named, true) {
            let text = "the AuthServer's own protocol by its port, which is not the one of links; left alone".into();
            let (kind, service) = (EventKind::Remark, "auth_server".into());
            context.emit.event(at, Event { kind, service, from, offset: None, length: None, text });
        }
        context.emit.account(from, Share::Opaque, bytes.len() as u64);
    }

    fn gap(&mut self, from: Side, offset: u64, length: u64, at: Moment, context: &mut Context<'_>) {
        let text = format!("{length} bytes were never captured");
        let (offset, length) = (Some(offset), Some(length));
        let event = Event { kind: EventKind::Gap, service: "auth_server".into(), from, offset, length, text };
        context.emit.event(at, event);
    }

    fn end(&mut self, _: Side, _: Moment, _: &mut Context<'_>) {}

    fn service(&self) -> &str {
        "auth_server"
    }
}
