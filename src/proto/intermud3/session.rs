//! One connection: packets out of both directions, what they answer, and what they tell of the network.
//!
//! Reads no clock and does no I/O. Packets are put together only up to [`framing::MAX_TEXT`].

use super::framing::{self, Step};
use super::network::Network;
use super::pending::Pending;
use super::value::{Found, Reader};
use crate::proto::{Context, Event, EventKind, Learned, Message, Moment, Session, Side};
use crate::table::{LayoutId, Tables};
use crate::tree::{Kind, Problem, Severity, Sym, TextKind, TypeRef, decode_text};

/// Larger buffers are given back once they are empty.
const KEEP_CAPACITY: usize = 64 << 10;

/// One connection between muds and routers, or between two muds.
pub(super) struct I3Session {
    prefix: (Sym, TypeRef, usize),
    header: Option<LayoutId>,
    directions: [Direction; 2],
    service: &'static str,
    reader: Reader,
    pending: Pending,
    network: Network,
    name: String,
}

/// One direction of it.
#[derive(Default)]
struct Direction {
    /// Bytes that are no whole packet yet.
    buffer: Vec<u8>,
    /// The offset of the first of them.
    at: u64,
    /// Fewer bytes than this need not be looked at.
    need: usize,
    /// Framing is lost since this offset.
    lost: Option<u64>,
    /// Whether a missing NUL was noted already.
    nul_noted: bool,
}

impl I3Session {
    /// A session that reads by some tables, of a service where that is known already.
    pub(super) fn new(service: Option<&str>, tables: &Tables) -> Self {
        let length = tables.service_named("router").and_then(|id| tables.service(id)).and_then(|s| s.header.first());
        let types = tables.value_types();
        let (name, ty) = length.map_or((types.open_name, types.int), |(_, name, ty)| (*name, *ty));
        I3Session {
            prefix: (name, ty, framing::PREFIX),
            header: super::header(tables),
            directions: Default::default(),
            service: if service == Some("oob") { "oob" } else { "router" },
            reader: Reader::default(),
            pending: Pending::new(tables),
            network: Network::new(tables),
            name: String::new(),
        }
    }

    fn direction(&mut self, from: Side) -> &mut Direction {
        let [client, server] = &mut self.directions;
        match from {
            Side::Client => client,
            Side::Server => server,
        }
    }

    /// Takes whole packets from the start of `bytes`; returns how many bytes are done with.
    fn packets(
        &mut self,
        from: Side,
        offset: u64,
        bytes: &[u8],
        last: bool,
        at: Moment,
        context: &mut Context<'_>,
    ) -> usize {
        let mut done = 0;
        loop {
            let rest = bytes.get(done..).unwrap_or(&[]);
            let here = offset + done as u64;
            if rest.is_empty() {
                return done;
            }
            if let Some(since) = self.direction(from).lost {
                let Some(found) = framing::find(rest) else {
                    return bytes.len() - rest.len().min(framing::KEEP);
                };
                self.found(from, since, here + found as u64, at, context);
                done += found;
                continue;
            }
            match framing::step(rest, context.options.max_message, last) {
                Step::Packet(n) => {
                    let packet = rest.get(..n).unwrap_or(rest);
                    self.packet(from, here, packet, at, context);
                    done += n;
                }
                Step::Need(n) => {
                    self.direction(from).need = n;
                    return done;
                }
                Step::StrayNul => {
                    self.stray_nul(from, here, rest, at, context);
                    done += 1;
                }
                Step::TooLong(n) => {
                    let (text, limit) = match n > framing::MAX_TEXT {
                        true => {
                            let most = framing::MAX_TEXT;
                            let text = format!("a packet of {n} bytes: more than {most} are not put together");
                            (text, "intermud3 packet")
                        }
                        false => (format!("a packet of {n} bytes is not put together (--max-message)"), "max-message"),
                    };
                    let kind = EventKind::Limit { limit };
                    self.event(from, kind, Some(here), Some(4), text, at, context);
                    self.direction(from).lost = Some(here);
                    done += 1;
                }
                Step::Lost(n) => done += self.lose(from, here, n, rest, at, context),
            }
        }
    }

    /// One packet, its length field first.
    fn packet(&mut self, from: Side, offset: u64, bytes: &[u8], at: Moment, context: &mut Context<'_>) {
        let (tables, tree) = (context.tables, &mut *context.tree);
        let found = self.reader.read(bytes, self.prefix, self.header, tables, tree);
        if !found.nul && !std::mem::replace(&mut self.direction(from).nul_noted, true) {
            let text = "no NUL behind the text; said once in a direction";
            tree.problem(Problem::new(Severity::Note, 0, text, 0, 0));
        }
        let def = found.message.and_then(|id| tables.message(id));
        let service = def.and_then(|d| tables.service(d.service)).map(|s| s.name.as_str());
        if service == Some("oob") {
            self.service = "oob";
        }
        let reply = found.message.and_then(|id| self.pending.answered(id, from, at, bytes, tables, tree));
        match def {
            Some(def) => {
                self.name.clear();
                self.name.push_str(tables.name(def.name));
            }
            None => self.own_name(found, bytes, context),
        }
        let message = Message { name: &self.name, number: None, service: self.service, from, offset, bytes, reply };
        let record = context.emit.message(at, &message, context.tables, context.tree);
        if let Some(id) = found.message {
            let tree = &*context.tree;
            self.pending.asked(id, from, (record, at), bytes, tree);
            self.network.learn(id, bytes, context.tables, tree);
        }
        context.emit.spent(context.tree);
    }

    /// The name of a packet that no table knows: its type, or `value`. Types are words of the protocol and no texts for people: their
    /// bytes are taken one by one, so that other bytes are always another name.
    fn own_name(&mut self, found: Found, bytes: &[u8], context: &Context<'_>) {
        self.name.clear();
        let Some(node) = found.packet.and_then(|n| context.tree.get(n)) else {
            self.name.push_str("value");
            return;
        };
        match node.kind {
            Kind::Text(TextKind::Owned) => self.name.push_str(context.tree.owned(node.value)),
            Kind::Text(_) => {
                let (start, len) = node.content();
                let text = bytes.get(start..start + len).unwrap_or(&[]);
                decode_text(TextKind::Latin1, text, &mut self.name);
            }
            _ => self.name.push_str("value"),
        }
    }

    /// No packet begins here: what reads as a length is shown, and the next packet looked for behind it. Returns how many bytes are shown.
    fn lose(
        &mut self,
        from: Side,
        here: u64,
        length: u32,
        rest: &[u8],
        at: Moment,
        context: &mut Context<'_>,
    ) -> usize {
        let shown = framing::find(rest).unwrap_or(rest.len()).min(framing::PREFIX);
        let text = format!("no packet begins here: a length would be {length}");
        self.event(from, EventKind::Undecoded, Some(here), Some(shown as u64), text, at, context);
        self.direction(from).lost = Some(here + shown as u64);
        shown
    }

    /// Framing was found again.
    fn found(&mut self, from: Side, since: u64, here: u64, at: Moment, context: &mut Context<'_>) {
        self.direction(from).lost = None;
        let passed = here.saturating_sub(since);
        let text = format!("{passed} bytes passed over; a length and the start of a packet follow");
        let kind = EventKind::Resync { passed_over: passed };
        self.event(from, kind, Some(here), Some(0), text, at, context);
    }

    fn stray_nul(&mut self, from: Side, here: u64, rest: &[u8], at: Moment, context: &mut Context<'_>) {
        let text = "a NUL that the packet before it sent and did not count".to_string();
        let kind = EventKind::Undecoded;
        self.event(from, kind, Some(here), Some(1), text, at, context);
        let misread = rest.get(framing::PREFIX..).and_then(framing::length);
        if framing::length(rest) == Some(0)
            && let Some(n) = misread
        {
            let text = format!(
                "who takes that NUL for part of a length reads an empty packet before this byte and a length of {n} at it"
            );
            let kind = EventKind::Undecoded;
            self.event(from, kind, Some(here + 4), Some(0), text, at, context);
        }
    }

    /// What is left in a direction's buffer, or was passed over since framing was lost, can be given to no packet any more.
    fn give_up(&mut self, from: Side, why: &str, at: Moment, context: &mut Context<'_>) {
        let direction = self.direction(from);
        let end = direction.at + direction.buffer.len() as u64;
        let since = direction.lost.unwrap_or(direction.at).min(end);
        let known = framing::length(&direction.buffer).filter(|_| direction.lost.is_none());
        direction.buffer.clear();
        direction.need = 0;
        let length = end - since;
        if length == 0 {
            return;
        }
        let text = match known {
            Some(n) => format!("{length} of the {} bytes of a packet: {why}", u64::from(n) + 4),
            None => format!("{length} bytes that belong to no whole packet: {why}"),
        };
        let kind = EventKind::Undecoded;
        self.event(from, kind, Some(since), Some(length), text, at, context);
    }

    #[allow(clippy::too_many_arguments)] // an event's own parts
    fn event(
        &mut self,
        from: Side,
        kind: EventKind,
        offset: Option<u64>,
        length: Option<u64>,
        text: String,
        at: Moment,
        context: &mut Context<'_>,
    ) {
        let event = Event { kind, service: self.service.to_string(), from, offset, length, text };
        context.emit.event(at, event);
    }
}

impl Session for I3Session {
    fn data(&mut self, from: Side, offset: u64, bytes: &[u8], at: Moment, context: &mut Context<'_>) {
        let direction = self.direction(from);
        if direction.buffer.is_empty() {
            direction.need = 0;
            direction.at = offset;
            let done = self.packets(from, offset, bytes, false, at, context);
            let direction = self.direction(from);
            direction.at = offset + done as u64;
            let rest = bytes.get(done..).unwrap_or(&[]);
            direction.buffer.extend_from_slice(rest);
            return;
        }
        direction.buffer.extend_from_slice(bytes);
        if direction.buffer.len() < direction.need && direction.lost.is_none() {
            return;
        }
        let mut buffer = std::mem::take(&mut direction.buffer);
        let start = direction.at;
        let done = self.packets(from, start, &buffer, false, at, context);
        buffer.drain(..done.min(buffer.len()));
        if buffer.is_empty() && buffer.capacity() > KEEP_CAPACITY {
            buffer = Vec::new();
        }
        let direction = self.direction(from);
        direction.at = start + done as u64;
        direction.buffer = buffer;
    }

    fn gap(&mut self, from: Side, offset: u64, length: u64, at: Moment, context: &mut Context<'_>) {
        self.give_up(from, "what follows was never captured", at, context);
        let text = format!("{length} bytes were never captured; looking for the start of a packet");
        let kind = EventKind::Gap;
        self.event(from, kind, Some(offset), Some(length), text, at, context);
        let direction = self.direction(from);
        direction.at = offset + length;
        direction.lost = Some(offset + length);
    }

    fn held(&self) -> usize {
        let [client, server] = &self.directions;
        client.buffer.capacity() + server.buffer.capacity()
    }

    fn relieve(&mut self, at: Moment, context: &mut Context<'_>) {
        for from in [Side::Client, Side::Server] {
            let direction = self.direction(from);
            if direction.buffer.is_empty() {
                continue;
            }
            let (offset, end) = (direction.at, direction.at + direction.buffer.len() as u64);
            let text = format!("the {} bytes of a packet that had come are given up to make room", end - offset);
            self.event(from, EventKind::Limit { limit: "max-total" }, Some(offset), None, text, at, context);
            self.give_up(from, "given up to make room", at, context);
            let direction = self.direction(from);
            direction.buffer = Vec::new();
            direction.at = end;
            direction.lost = Some(end);
        }
    }

    fn end(&mut self, from: Side, at: Moment, context: &mut Context<'_>) {
        let direction = self.direction(from);
        let buffer = std::mem::take(&mut direction.buffer);
        let start = direction.at;
        let done = match direction.lost {
            None => self.packets(from, start, &buffer, true, at, context),
            Some(_) => 0,
        };
        let direction = self.direction(from);
        direction.at = start + done as u64;
        direction.buffer = buffer.get(done..).unwrap_or(&[]).to_vec();
        self.give_up(from, "the stream ends here", at, context);
        self.direction(from).lost = None;
    }

    fn service(&self) -> &str {
        self.service
    }

    fn learned(&self) -> Vec<Learned> {
        self.network.learned()
    }
}
