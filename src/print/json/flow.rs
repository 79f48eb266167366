//! The keys of a record that say where it went: those of the record before, nearly always, which
//! are kept as they were written. It knows records and nothing of what is in them.

use std::net::SocketAddr;

use super::super::scratch::TextWriter;
use crate::record::Record;
use crate::session::Side;
use crate::session::Transport;

/// What the keys of a direction depend on.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FlowKey {
    stream: u32,
    transport: Transport,
    from: Side,
    src: SocketAddr,
    dst: SocketAddr,
    protocol: &'static str,
}

/// How many directions are remembered: a few connections take turns.
const MOST: usize = 16;

/// The keys that were written last.
#[derive(Clone, Default)]
pub(super) struct FlowTexts([FlowText; MOST]);

/// The keys of one direction.
#[derive(Clone, Default)]
struct FlowText {
    of: Option<FlowKey>,
    service: String,
    text: Vec<u8>,
}

impl FlowTexts {
    /// Appends the keys `transport` to `service`, each behind a comma, and a comma.
    pub(super) fn append(&mut self, record: &Record<'_>, w: &mut TextWriter<'_>) {
        let Record { stream, transport, from, src, dst, protocol, service, .. } = *record;
        let flow = FlowKey { stream, transport, from, src, dst, protocol };
        let place = stream as usize * 2 + usize::from(from == Side::Client);
        let Some(text) = self.0.get_mut(place % MOST) else { return };
        if text.of != Some(flow) || text.service != service {
            *text = FlowText::new(flow, service);
        }
        w.raw(&text.text);
    }
}

impl FlowText {
    #[cold]
    fn new(of: FlowKey, service: &str) -> FlowText {
        let FlowKey { stream, transport, from, src, dst, protocol } = of;
        let transport = transport.word();
        let from = from.word();
        let text = format!(
            ",\"transport\":\"{transport}\",\"stream\":{stream},\"src\":\"{src}\",\"dst\":\"{dst}\",\"from\":\"{from}\",\
             \"protocol\":\"{protocol}\",\"service\":\"{service}\","
        );
        FlowText { of: Some(of), service: service.into(), text: text.into() }
    }
}
