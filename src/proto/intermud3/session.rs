//! One connection: the packets of both directions, the requests that they answer, and the facts
//! that they tell about the network.
//!
//! It reads no clock and does no I/O. It reassembles packets only up to [`framing::MAX_TEXT`].

use std::fmt::Write;

use super::framing::{self, PacketStep};
use super::network::{Network, PacketView};
use super::replies::{PacketReplies, ReadPacket};
use super::value::{FoundPacket, LengthPrefix, ValueBuffers};
use crate::captured::Captured;
use crate::digits::{counted, plural};
use crate::proto::Moment;
use crate::session::{Context, Event, EventKind, Learned, Message, Session, Side};
use crate::session::{Request, StreamBuffer};
use crate::table::{LayoutId, MessageDef, Tables};
use crate::tree::{Kind, Problem, Severity, TextKind, decode_text, mark};

/// The most bytes of a packet's type that its name has. Every record, list and page that tells of
/// the packet has the name.
const LONGEST_NAME: usize = 256;

/// One connection between muds and routers, or between two muds.
pub(super) struct I3Session {
    prefix: LengthPrefix,
    header: Option<LayoutId>,
    directions: [PacketStream; 2],
    service: &'static str,
    /// A packet that only this service has was seen: later packets do not change it.
    service_known: bool,
    reader: ValueBuffers,
    replies: PacketReplies,
    network: Network,
    /// The name of the packet that is read.
    name: String,
    /// Whether a missing NUL was noted already, by side.
    nul_noted: [bool; 2],
}

/// One direction of it.
#[derive(Default)]
struct PacketStream {
    stream: StreamBuffer,
    /// Framing is lost. Bytes that are skipped meanwhile are reported when it is found again.
    lost: bool,
}

impl I3Session {
    /// A session of a service that an earlier connection named.
    pub(super) fn new(service: Option<&str>, tables: &Tables) -> Self {
        let length = tables
            .service_named("router")
            .and_then(|id| tables.service(id))
            .and_then(|s| s.header.first());
        let types = tables.value_types();
        let (name, ty) = length.map_or((types.open_name, types.int), |(_, name, ty)| (*name, *ty));
        I3Session {
            prefix: LengthPrefix { name, ty, size: framing::PREFIX },
            header: super::header(tables),
            directions: Default::default(),
            service: if service == Some("oob") { "oob" } else { "router" },
            service_known: false,
            reader: ValueBuffers::default(),
            replies: PacketReplies::new(tables),
            network: Network::new(tables),
            name: String::new(),
            nul_noted: [false; 2],
        }
    }

    /// Takes all complete packets from a direction's waiting bytes. With `last`, no more bytes
    /// follow.
    fn packets(&mut self, from: Side, last: bool, at: Moment, context: &mut Context<'_>) {
        let mut direction = std::mem::take(from.of(&mut self.directions));
        while direction.stream.is_ready() {
            let bytes = direction.stream.waiting();
            let offset = direction.stream.offset();
            if direction.lost {
                match framing::find(bytes) {
                    Some(place) => self.found(&mut direction, from, place, at, context),
                    None => {
                        let nowhere = bytes.len().saturating_sub(framing::KEEP);
                        direction.stream.pass(nowhere, context.options.max_undecoded);
                        direction.stream.set_need(framing::KEEP + 1);
                    }
                }
                continue;
            }
            match framing::step(bytes, context.options.max_message, last) {
                PacketStep::Packet(length) => {
                    let packet = bytes.get(..length).unwrap_or(bytes);
                    self.packets_of_a_length(from, offset, packet, at, context);
                    direction.stream.advance(length);
                }
                PacketStep::Need(length) => {
                    direction.stream.set_need(length.max(bytes.len() + 1));
                    break;
                }
                PacketStep::StrayNul => {
                    self.stray_nul(from, offset, bytes, at, context);
                    direction.stream.advance(1);
                }
                PacketStep::TooLong(length) => {
                    let event = self.too_long(from, length);
                    context.emit.event(at, event.about(offset, framing::PREFIX as u64));
                    self.replies.lose_replies(from, at);
                    direction.lost = true;
                    direction.stream.pass(1, context.options.max_undecoded);
                }
                PacketStep::Lost(length) => {
                    // The bytes that look like a length are reported by themselves, up to the start
                    // of a packet within them.
                    let shown = framing::find(bytes).unwrap_or(bytes.len()).min(framing::PREFIX);
                    let text = format!("no packet begins here: a length would be {length}");
                    let event = self.event(EventKind::Undecoded, from, text);
                    let misread = bytes.get(..shown).unwrap_or(bytes);
                    context.emit.event(at, event.showing(offset, misread, context.options));
                    direction.stream.advance(shown);
                    self.replies.lose_replies(from, at);
                    direction.lost = true;
                }
            }
        }
        *from.of(&mut self.directions) = direction;
    }

    /// The packet behind a length, and any further ones behind the same length. Each is a message.
    fn packets_of_a_length(
        &mut self,
        from: Side,
        offset: u64,
        bytes: &[u8],
        at: Moment,
        context: &mut Context<'_>,
    ) {
        let mut end = self.packet(from, offset, bytes, Some(self.prefix), at, context);
        while end < bytes.len() {
            let rest = bytes.get(end..).unwrap_or(&[]);
            end += self.packet(from, offset + end as u64, rest, None, at, context).max(1);
        }
        self.reader.shrink();
    }

    /// One packet, its length field first unless it follows another one. Returns how many bytes it
    /// has.
    fn packet(
        &mut self,
        from: Side,
        offset: u64,
        bytes: &[u8],
        prefix: Option<LengthPrefix>,
        at: Moment,
        context: &mut Context<'_>,
    ) -> usize {
        let tables = context.tables;
        let tree = &mut *context.tree;
        let found = self.reader.read(bytes, prefix, self.header, tables, tree);
        let last = found.end >= bytes.len();
        let bytes = bytes.get(..found.end).unwrap_or(bytes);
        if prefix.is_none() {
            tree.problem(Problem::new(
                Severity::Note,
                0,
                "a packet without a length: it follows another one behind the same length",
                0,
                0,
            ));
        }
        if last && !found.nul && !std::mem::replace(from.of(&mut self.nul_noted), true) {
            let text = "the text has no NUL at its end (noted once for each direction)";
            tree.problem(Problem::new(Severity::Note, 0, text, 0, 0));
        }
        let def = found.message.and_then(|id| tables.message(id));
        match def {
            Some(def) => {
                self.name.clear();
                self.name.push_str(tables.name(def.name));
                self.learn_service(def, tables);
            }
            None => self.own_name(found, bytes, context),
        }
        let packet =
            found.message.map(|id| ReadPacket { id, from, at, bytes, tree: &*context.tree });
        let reply = packet.and_then(|packet| self.replies.answer(packet, tables));
        let asked = packet.and_then(|packet| {
            self.network.learn(packet.id, at, &PacketView { tables, tree: packet.tree, bytes });
            self.replies.as_request(packet)
        });
        if reply.as_ref().is_some_and(|reply| reply.partial) {
            context.tree.mark(0, mark::PARTIAL);
        }
        let message = Message {
            name: Captured::new(&self.name),
            number: None,
            service: self.service,
            from,
            offset,
            bytes,
            reply: reply.map(|reply| reply.reply),
            no_reply: asked.is_some_and(|asked| asked.answered),
        };
        let record = context.emit.message(at, &message, tables, context.tree);
        if let Some(request) = asked {
            self.replies.remember(Request { record, ..request });
        }
        found.end
    }

    /// Learns the connection's service from a packet. `oob-begin` opens an out-of-band connection.
    /// Routers pass on some out-of-band packets such as `mail` too, and an `error` occurs
    /// everywhere.
    fn learn_service(&mut self, def: &MessageDef, tables: &Tables) {
        if self.service_known {
            return;
        }
        let out_of_band = tables.service(def.service).is_some_and(|service| service.name == "oob");
        self.service_known = match self.name.as_str() {
            "oob-begin" => true,
            "error" => return,
            _ => !out_of_band,
        };
        self.service = if out_of_band { "oob" } else { "router" };
    }

    /// The name of a packet that no table knows: its type, or `value`. The type's bytes become
    /// characters one by one, so that different bytes give different names. Of a type that is
    /// longer than any real one, the name has the beginning and the length.
    fn own_name(&mut self, found: FoundPacket, bytes: &[u8], context: &Context<'_>) {
        self.name.clear();
        let Some(node) = found.packet.and_then(|n| context.tree.get(n)) else {
            self.name.push_str("value");
            return;
        };
        match node.kind {
            Kind::Text(TextKind::Owned) => self.name.push_str(context.tree.owned(node.value).raw()),
            Kind::Text(_) => {
                let (start, len) = node.content();
                let text = bytes.get(start..start + len).unwrap_or(&[]);
                decode_text(TextKind::Latin1, text, &mut self.name);
            }
            _ => self.name.push_str("value"),
        }
        if self.name.len() > LONGEST_NAME {
            let whole = self.name.len();
            let end = (0..=LONGEST_NAME).rev().find(|at| self.name.is_char_boundary(*at));
            self.name.truncate(end.unwrap_or(0));
            let _ = write!(self.name, "… ({whole} bytes)");
        }
    }

    /// Framing was found again, `place` bytes on.
    fn found(
        &mut self,
        direction: &mut PacketStream,
        from: Side,
        place: usize,
        at: Moment,
        context: &mut Context<'_>,
    ) {
        direction.lost = false;
        self.replies.lose_replies(from, at);
        direction.stream.pass(place, context.options.max_undecoded);
        let passed = direction.stream.take_passed();
        let why = "a length and the start of a packet follow";
        context.emit.event(at, Event::resync(self.service(), from, passed, why));
    }

    /// A packet of `length` bytes of text is not reassembled.
    fn too_long(&self, from: Side, length: u32) -> Event {
        let most = framing::MAX_TEXT;
        let (limit, text) = if length > most {
            let text = format!("a packet of {length} bytes: more than {most} are not put together");
            ("intermud3 packet", text)
        } else {
            let text = format!("a packet of {length} bytes is not put together (--max-message)");
            ("max-message", text)
        };
        self.event(EventKind::Limit { limit }, from, text)
    }

    fn stray_nul(
        &self,
        from: Side,
        offset: u64,
        bytes: &[u8],
        at: Moment,
        context: &mut Context<'_>,
    ) {
        let text = "a NUL that the packet before it sent and did not count";
        let nul = bytes.get(..1).unwrap_or(bytes);
        let event = self.event(EventKind::Undecoded, from, text);
        context.emit.event(at, event.showing(offset, nul, context.options));
        let misread = bytes.get(framing::PREFIX..).and_then(framing::length);
        if framing::length(bytes) == Some(0)
            && let Some(length) = misread
        {
            let text = format!(
                "a reader that takes that NUL for part of a length reads an empty packet before \
                 this byte and a length of {length} at it"
            );
            context
                .emit
                .event(at, self.event(EventKind::Undecoded, from, text).about(offset + 4, 0));
        }
    }

    /// Reports the bytes of a direction that wait, or were skipped since framing was lost: no
    /// packet will claim them.
    fn give_up(&mut self, from: Side, why: &str, at: Moment, context: &mut Context<'_>) {
        let direction = from.of(&mut self.directions);
        let known = framing::length(direction.stream.waiting()).filter(|_| !direction.lost);
        direction.stream.pass(usize::MAX, context.options.max_undecoded);
        let passed = direction.stream.take_passed();
        if passed.length == 0 {
            return;
        }
        let text = match known {
            Some(length) => format!(
                "{} of the {} bytes of a packet: {why}",
                passed.length,
                u64::from(length) + 4
            ),
            None => format!(
                "{} that {} to no whole packet: {why}",
                counted(passed.length, "byte"),
                plural(passed.length, "belongs", "belong")
            ),
        };
        let event = self.event(EventKind::Undecoded, from, text);
        context.emit.event(at, event.about(passed.offset, passed.length).with_passed(passed));
    }

    fn event(&self, kind: EventKind, from: Side, text: impl Into<String>) -> Event {
        Event::new(kind, self.service, from, text)
    }
}

impl Session for I3Session {
    fn data(
        &mut self,
        from: Side,
        offset: u64,
        bytes: &[u8],
        at: Moment,
        context: &mut Context<'_>,
    ) {
        let stream = &mut from.of(&mut self.directions).stream;
        if stream.is_empty() && stream.offset() != offset {
            stream.jump(offset);
        }
        stream.push(bytes, at);
        self.packets(from, false, at, context);
    }

    fn gap(&mut self, from: Side, offset: u64, length: u64, at: Moment, context: &mut Context<'_>) {
        self.give_up(from, "what follows was never captured", at, context);
        self.replies.lose_replies(from, at);
        let mut event = Event::gap(self.service, from, offset, length);
        event.text.push_str("; looking for the start of a packet");
        context.emit.event(at, event);
        let direction = from.of(&mut self.directions);
        direction.stream.jump(offset.saturating_add(length));
        direction.lost = true;
    }

    fn held(&self) -> usize {
        let streams: usize = self.directions.iter().map(|direction| direction.stream.held()).sum();
        streams + self.replies.held() + self.network.held()
    }

    fn relieve(&mut self, at: Moment, context: &mut Context<'_>) {
        self.replies.forget();
        if self.network.held() > 0 {
            self.network.forget();
            let text =
                "the muds and channels that this connection told of are forgotten to make room";
            context
                .emit
                .event(at, self.event(EventKind::Limit { limit: "max-total" }, Side::Client, text));
        }
        for from in [Side::Client, Side::Server] {
            let stream = &from.of(&mut self.directions).stream;
            let offset = stream.offset();
            let waiting = stream.waiting().len();
            if waiting == 0 {
                continue;
            }
            let text = format!(
                "the {} of a packet that had come {} given up to make room",
                counted(waiting, "byte"),
                plural(waiting, "is", "are")
            );
            let event = self.event(EventKind::Limit { limit: "max-total" }, from, text);
            context.emit.event(at, Event { offset: Some(offset), ..event });
            self.give_up(from, "given up to make room", at, context);
            let direction = from.of(&mut self.directions);
            direction.stream.shrink();
            direction.lost = true;
        }
    }

    fn end(&mut self, from: Side, at: Moment, context: &mut Context<'_>) {
        let direction = from.of(&mut self.directions);
        if !direction.lost {
            // A packet that only further bytes could have completed is now taken as complete.
            direction.stream.set_need(0);
            self.packets(from, true, at, context);
        }
        if from.of(&mut self.directions).lost {
            self.replies.lose_replies(from, at);
        }
        self.give_up(from, "the stream ends here", at, context);
        self.replies.report_unanswered(from, self.service, at, context);
        from.of(&mut self.directions).lost = false;
    }

    fn service(&self) -> &str {
        self.service
    }

    fn learned(&self) -> Vec<Learned> {
        self.network.learned()
    }
}
