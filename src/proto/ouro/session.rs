//! A link: turns its packets into records, and follows its handshake and its pieces.
//!
//! It knows the order of a link's life. `packet` says what a packet's bits mean, `link` what both
//! sides agreed on, `frame` lays a packet out as a tree, and `stream` finds packets in a TCP
//! stream.

use super::frame::{CommandLayout, FrameTables, LinkPacket, PacketContent, Pieces, UnjoinedPiece};
use super::life::LinkLife;
use super::link::Link;
use super::options::OuroSettings;
use super::packet::{Header, LinkHeader, control, padded};
use super::received::{CommandBits, Name, Received};
use super::replies::{LinkReplies, ReadCommand};
use super::sequence::{Sending, Sequences};
use super::siblings::{Joined, LostReason, PieceOutcome, PiecePayload, Set, Siblings};
use super::stream::{Next, PacketFinder};
use crate::captured::Captured;
use crate::digits::{counted, plural};
use crate::proto::Moment;
use crate::session::{
    Context, Ends, Event, EventKind, Learned, LearnedValue, Message, Session, Side, Start,
    Transport,
};
use crate::table::Tables;

/// The service of a link, unless tables declare one for its server's port.
const SERVICE: &str = "link";

/// A link between a client and a server, or two servers.
pub struct LinkSession {
    parts: Option<FrameTables>,
    service: String,
    transport: Transport,
    link: Link,
    siblings: [Siblings; 2],
    sequences: [Sequences; 2],
    finders: [PacketFinder; 2],
    replies: LinkReplies,
    ended: [bool; 2],
    ends: Ends,
    life: LinkLife,
}

impl LinkSession {
    /// A link before its first packet.
    pub fn new(start: &Start<'_>, tables: &Tables) -> Self {
        let named = start.service.and_then(|name| tables.service_named(name));
        let by_port =
            named.filter(|id| tables.service(*id).is_some_and(|service| !service.ports.is_empty()));
        let own = by_port.or_else(|| tables.service_at(start.ends.server.port()));
        let service =
            own.and_then(|id| tables.service(id)).map_or(SERVICE, |service| &service.name);
        LinkSession {
            parts: FrameTables::new(tables, own),
            service: service.to_string(),
            transport: start.transport,
            link: Link::default(),
            siblings: Default::default(),
            sequences: Default::default(),
            finders: Default::default(),
            replies: LinkReplies::new(tables),
            ended: [false; 2],
            ends: start.ends,
            life: LinkLife::default(),
        }
    }

    /// A datagram: one packet, or bytes that cannot be one. `missing` bytes of it were not
    /// captured.
    fn one_datagram(
        &mut self,
        from: Side,
        bytes: &[u8],
        missing: u64,
        at: Moment,
        context: &mut Context<'_>,
    ) {
        let there = bytes.len();
        let header = Header::parse(bytes);
        let text = match header {
            None => Some("too short for a packet's header".to_string()),
            Some(header) if !header.possible() => Some(format!(
                "the packet's length of {} bits is not more than its header's 64",
                header.bits
            )),
            Some(header) if missing > 0 || header.bytes() > there => {
                let bytes = counted(there, "byte");
                let were = plural(missing, "was", "were");
                let cut = if missing > 0 {
                    format!("; {missing} more {were} not captured")
                } else {
                    String::new()
                };
                Some(format!(
                    "the packet's length is {} bits, the datagram has {bytes}{cut}",
                    header.bits
                ))
            }
            Some(_) => None,
        };
        let Some(header) = header.filter(|_| text.is_none()) else {
            let event = self.link_event(EventKind::Undecoded, from, text.unwrap_or_default());
            self.replies.lose_replies(from, at);
            return context.emit.event(at, event.showing(0, bytes, context.options));
        };
        let proven = header.proven_end(bytes);
        let end = proven.unwrap_or_else(|| {
            if header.padded() <= there { header.padded() } else { header.bytes() }
        });
        let received = Received {
            from,
            offset: 0,
            at,
            bytes,
            header,
            end,
            right: proven.is_some(),
            sending: Sending::First,
            early: true,
        };
        self.packet(received, context);
    }

    /// Takes every complete packet from a direction's waiting bytes. With `last`, no more bytes
    /// follow.
    fn drain(&mut self, from: Side, last: bool, at: Moment, context: &mut Context<'_>) {
        let mut finder = std::mem::take(from.of(&mut self.finders));
        loop {
            match finder.next(self.link.may_be_encrypted(), context.options.max_message, last) {
                Next::Wait => break,
                Next::Packet { end, right } => {
                    let offset = finder.offset();
                    let bytes = finder.waiting().get(..end).unwrap_or(finder.waiting());
                    if let Some(header) = Header::parse(bytes) {
                        self.packet(
                            Received {
                                from,
                                offset,
                                at,
                                bytes,
                                header,
                                end,
                                right,
                                sending: Sending::First,
                                early: true,
                            },
                            context,
                        );
                    }
                    finder.advance(end);
                }
                Next::TooLong { bytes } => {
                    let text =
                        format!("a packet of {bytes} bytes is not put together (--max-message)");
                    context.emit.event(
                        at,
                        self.link_event(EventKind::Limit { limit: "max-message" }, from, text),
                    );
                }
                Next::Skip { bytes, found } => {
                    let (count, are, them) = (
                        counted(bytes, "byte"),
                        plural(bytes, "is", "are"),
                        plural(bytes, "it", "them"),
                    );
                    let text = if found {
                        format!("{count} that {are} no packet; the next one begins behind {them}")
                    } else {
                        format!("{count} that {are} no whole packet")
                    };
                    let skipped = finder.waiting().get(..bytes).unwrap_or(finder.waiting());
                    let event = self.link_event(EventKind::Undecoded, from, text);
                    self.replies.lose_replies(from, at);
                    context
                        .emit
                        .event(at, event.showing(finder.offset(), skipped, context.options));
                    finder.advance(bytes);
                }
            }
        }
        *from.of(&mut self.finders) = finder;
    }

    fn packet(&mut self, received: Received<'_>, context: &mut Context<'_>) {
        let Some(parts) = self.parts else { return };
        let client = received.from == Side::Client;
        let mut packet = LinkPacket {
            bytes: received.bytes,
            header: received.header,
            end: received.end,
            right: received.right,
            link: None,
            content: PacketContent::Encrypted,
        };
        if !received.right && self.link.may_be_encrypted() {
            if padded(received.header.bytes()) == received.bytes.len() {
                packet.end = received.bytes.len();
            }
            let name = Name { fixed: Some("Encrypted"), number: None };
            self.emit(&parts, &packet, received, name, context);
            return;
        }
        if self.transport == Transport::Udp {
            packet.link = self.link.header(received.bytes, received.bits(), client);
        }
        let sending = packet.link.filter(|_| received.right).map(|link| {
            received.from.of(&mut self.sequences).again(link, received.bytes, nanos(received.at))
        });
        let early = packet.link.is_none_or(LinkHeader::is_early);
        let received = Received { sending: sending.unwrap_or_default(), early, ..received };
        match packet.link {
            Some(link) if link.compressed && link.siblings == 0 => {
                packet.content = PacketContent::Compressed;
                let name = Name { fixed: Some("Compressed"), number: None };
                self.emit(&parts, &packet, received, name, context);
            }
            Some(link) if link.siblings > 0 => {
                self.sibling(&parts, packet, link, received, context)
            }
            link => {
                let from = link.map_or(super::packet::HEADER * 8, |l| l.end);
                let bits = CommandBits { bytes: received.bytes, bits: received.bits(), from };
                let (content, name) = self.content(&parts, bits, received, context);
                packet.content = content;
                self.emit(&parts, &packet, received, name, context);
            }
        }
    }

    /// Reads a command, and applies its changes to the link.
    fn content<'a>(
        &mut self,
        parts: &FrameTables,
        command_bits: CommandBits<'_>,
        received: Received<'_>,
        context: &mut Context<'_>,
    ) -> (PacketContent<'a>, Name) {
        let CommandBits { bytes, bits, from } = command_bits;
        let client = received.from == Side::Client;
        let guessed = self.link.guessed;
        let connects = received.sending == Sending::ConnectAgain;
        let Some((command, numbering)) =
            self.link.command(bytes, bits, from, client && received.early, connects)
        else {
            let version = self.link.version.filter(|_| self.link.numbering().is_none());
            let fixed = Some("Undescribed");
            return match version {
                Some(version) => {
                    (PacketContent::Undescribed(version), Name { fixed, number: None })
                }
                None => {
                    (PacketContent::Command(CommandLayout::unread()), Name { fixed, number: None })
                }
            };
        };
        let opens = command.control == Some(control::CONNECT) && command.exact;
        if self.link.version.is_none() && guessed != self.link.guessed && !opens {
            let text = format!(
                "the link's CONNECT was not captured; commands are taken to be {}",
                numbering.words()
            );
            self.event(EventKind::Remark, received, text, context);
        }
        let mut layout = CommandLayout {
            numbering,
            message: None,
            user: command.control.is_none(),
            cookies: false,
        };
        let number = match command.control {
            // The link knows it.
            Some(number) if received.sending != Sending::First => number,
            Some(number) => {
                if opens {
                    // A new link numbers its pieces from the start.
                    self.give_up(
                        Side::Client,
                        "when the link was opened again",
                        received.at,
                        context,
                    );
                    self.give_up(
                        Side::Server,
                        "when the link was opened again",
                        received.at,
                        context,
                    );
                }
                self.link.learn(command, client);
                number
            }
            None => {
                self.link.heard(client);
                self.link.cookies.setting = OuroSettings::cookies(context.settings);
                let judged = received.right && received.sending == Sending::First;
                let (cookies, text) = if judged {
                    self.link.cookies.judge(bytes, bits, command.body, client)
                } else {
                    (self.link.cookies.are_on(), None)
                };
                layout.cookies = cookies;
                if let Some(text) = text {
                    self.event(EventKind::Remark, received, text.to_string(), context);
                }
                command.user(numbering)
            }
        };
        layout.message = parts.message(context.tables, layout.user, received.from.index(), number);
        let fixed = match (layout.message, layout.user) {
            (Some(_), _) => None,
            (None, true) => Some("UserCommand"),
            (None, false) => Some("ControlCommand"),
        };
        (PacketContent::Command(layout), Name { fixed, number: Some(u64::from(command.cmd)) })
    }

    /// One of several datagrams: waits, or completes its packet.
    fn sibling(
        &mut self,
        parts: &FrameTables,
        mut packet: LinkPacket<'_>,
        link: LinkHeader,
        received: Received<'_>,
        context: &mut Context<'_>,
    ) {
        let payload = PiecePayload {
            id: link.id,
            count: link.siblings,
            position: link.position,
            bytes: received.bytes.get(link.end / 8..).unwrap_or(&[]),
            bits: received.bits().saturating_sub(link.end),
        };
        let mut lost: Vec<(Set, LostReason)> = Vec::new();
        // A piece with a wrong checksum is not reassembled with correct ones.
        let kept = (received.right && link.is_piece()).then(|| {
            received.from.of(&mut self.siblings).take(payload, |set, why| lost.push((set, why)))
        });
        for (set, why) in &lost {
            self.given_up(set, *why, received, context);
        }
        let waits = matches!(kept, Some(PieceOutcome::Waits));
        let piece = match kept {
            Some(PieceOutcome::Whole(joined)) => {
                return self.joined(parts, packet, &joined, received, context);
            }
            Some(PieceOutcome::Again) => UnjoinedPiece::Again,
            Some(PieceOutcome::Differs) => UnjoinedPiece::Differs,
            None if !link.is_piece() => UnjoinedPiece::Impossible,
            Some(PieceOutcome::Waits) | None => UnjoinedPiece::Waits,
        };
        packet.content = PacketContent::Fragment(piece);
        let name = Name { fixed: Some("Fragment"), number: None };
        let record = self.emit(parts, &packet, received, name, context);
        if let Some(record) = record.filter(|_| waits) {
            received.from.of(&mut self.siblings).recorded(link.id, link.position, record);
        }
    }

    fn joined<'a>(
        &mut self,
        parts: &FrameTables,
        mut packet: LinkPacket<'a>,
        joined: &'a Joined,
        received: Received<'_>,
        context: &mut Context<'_>,
    ) {
        if packet.link.is_some_and(|link| link.compressed) {
            // What is compressed cannot be read, even when it is put together.
            packet.content = PacketContent::Compressed;
            let name = Name { fixed: Some("Compressed"), number: None };
            self.emit(parts, &packet, received, name, context);
            return;
        }
        let bits = CommandBits { bytes: &joined.bytes, bits: joined.bits, from: 0 };
        let (content, name) = self.content(parts, bits, received, context);
        let layout = match content {
            PacketContent::Command(layout) => layout,
            _ => CommandLayout::unread(),
        };
        let pieces = Pieces { bytes: &joined.bytes, bits: joined.bits, records: &joined.records };
        packet.content = match content {
            PacketContent::Undescribed(version) => PacketContent::Undescribed(version),
            _ => PacketContent::Whole(layout, pieces),
        };
        self.emit(parts, &packet, received, name, context);
    }

    /// Reports the incomplete packets of a side, and forgets all of its pieces.
    fn give_up(&mut self, from: Side, when: &str, at: Moment, context: &mut Context<'_>) {
        let siblings = std::mem::take(from.of(&mut self.siblings));
        for set in siblings.incomplete() {
            context
                .emit
                .event(at, self.link_event(EventKind::Remark, from, format!("{set} {when}")));
        }
    }

    /// Reads the packet into the tree and emits it. Returns its record number.
    fn emit(
        &mut self,
        parts: &FrameTables,
        packet: &LinkPacket<'_>,
        received: Received<'_>,
        name: Name,
        context: &mut Context<'_>,
    ) -> Option<u64> {
        parts.read(packet, context.tables, context.evaluator, context.tree);
        let nanos = nanos(received.at);
        if let Some(link) = packet.link.filter(|_| packet.right) {
            let [client, server] = &mut self.sequences;
            let (own, other) =
                if received.from == Side::Client { (client, server) } else { (server, client) };
            own.tie(link, nanos, context.tree);
            other.acknowledge(link, packet.bytes, nanos, context.tree);
        }
        let (message, user) = match packet.content {
            PacketContent::Command(layout) | PacketContent::Whole(layout, _) => {
                (layout.message, layout.user)
            }
            _ => (None, false),
        };
        let named =
            message.and_then(|m| context.tables.message(m)).map(|m| context.tables.name(m.name));
        // What is sent again neither asks nor answers anything new.
        let first = received.sending == Sending::First;
        let link = packet.link.filter(|_| packet.right && first);
        let skips =
            link.is_some_and(|link| received.from.of(&mut self.sequences).skips(link.sequence));
        if packet.link.is_some() && packet.right && !first {
            received.from.of(&mut self.sequences).sent_again();
        }
        if skips || matches!(name.fixed, Some("Encrypted" | "Compressed" | "Undescribed")) {
            // Each of these, or a datagram that is missing before this one, may be a reply.
            self.replies.lose_replies(received.from, received.at);
        }
        let command = ReadCommand {
            message,
            from: received.from,
            at: received.at,
            user: user && packet.right,
        };
        let reply = if first { self.replies.answer(command, context.tables) } else { None };
        let message = Message {
            name: Captured::new(named.or(name.fixed).unwrap_or("UserCommand")),
            number: name.number,
            service: &self.service,
            from: received.from,
            offset: received.offset,
            bytes: packet.bytes,
            reply,
            no_reply: false,
        };
        let record = context.emit.message(received.at, &message, context.tables, context.tree);
        if first {
            self.replies.remember(command, record);
        }
        if let Some(link) = link {
            let connects = named == Some("COMMCONTROL_CONNECT");
            received.from.of(&mut self.sequences).remember(
                link,
                packet.bytes,
                nanos,
                record,
                connects,
            );
        }
        if let Some(name) = named.filter(|_| first)
            && self.life.command(name, received.from)
        {
            self.event(EventKind::Close, received, format!("the link closes: {name}"), context);
        }
        Some(record)
    }
}

impl LinkSession {
    /// Reports a packet that will never be complete.
    fn given_up(
        &self,
        set: &Set,
        why: LostReason,
        received: Received<'_>,
        context: &mut Context<'_>,
    ) {
        let (kind, text) = match why {
            LostReason::Room => {
                (EventKind::Limit { limit: "siblings" }, "given up to bound what is kept")
            }
            LostReason::Count => {
                (EventKind::Remark, "given up, since this one says that there are more or fewer")
            }
        };
        self.event(kind, received, format!("{set}; {text}"), context);
    }

    /// An event of the link.
    fn link_event(&self, kind: EventKind, from: Side, text: impl Into<String>) -> Event {
        Event::new(kind, &self.service, from, text)
    }

    fn event(
        &self,
        kind: EventKind,
        received: Received<'_>,
        text: String,
        context: &mut Context<'_>,
    ) {
        context.emit.event(received.at, self.link_event(kind, received.from, text));
    }
}

impl Session for LinkSession {
    fn data(
        &mut self,
        from: Side,
        offset: u64,
        bytes: &[u8],
        at: Moment,
        context: &mut Context<'_>,
    ) {
        from.of(&mut self.finders).push(offset, bytes, at);
        self.drain(from, false, at, context);
    }

    fn datagram(
        &mut self,
        from: Side,
        bytes: &[u8],
        missing: u64,
        at: Moment,
        context: &mut Context<'_>,
    ) {
        self.one_datagram(from, bytes, missing, at, context);
    }

    fn gap(&mut self, from: Side, offset: u64, length: u64, at: Moment, context: &mut Context<'_>) {
        self.drain(from, true, at, context);
        context.emit.event(at, Event::gap(&self.service, from, offset, length));
        self.replies.lose_replies(from, at);
        from.of(&mut self.finders).lost();
    }

    fn held(&self) -> usize {
        let finders = self.finders.iter().map(PacketFinder::held);
        let pieces = self.siblings.iter().map(Siblings::held);
        let sequences = self.sequences.iter().map(Sequences::held);
        finders.chain(pieces).chain(sequences).chain([self.replies.held()]).sum()
    }

    fn relieve(&mut self, at: Moment, context: &mut Context<'_>) {
        self.sequences = Default::default();
        for from in [Side::Client, Side::Server] {
            let sets = std::mem::take(from.of(&mut self.siblings)).incomplete().count();
            let bytes = from.of(&mut self.finders).waiting().len();
            if sets > 0 || bytes > 0 {
                let text = format!(
                    "{} and {} given up to make room",
                    counted(sets, "packet"),
                    counted(bytes, "byte")
                );
                context.emit.event(
                    at,
                    self.link_event(EventKind::Limit { limit: "max-total" }, from, text),
                );
                self.drain(from, true, at, context);
            }
            from.of(&mut self.finders).shrink();
        }
    }

    fn end(&mut self, from: Side, at: Moment, context: &mut Context<'_>) {
        if std::mem::replace(from.of(&mut self.ended), true) {
            return;
        }
        self.drain(from, true, at, context);
        self.give_up(from, "when the capture ended", at, context);
        // What was never captured at the end may have been replies.
        for side in [Side::Client, Side::Server] {
            if side.of(&mut self.sequences).counts().unseen_at_end > 0 {
                self.replies.lose_replies(side, at);
            }
        }
        self.replies.report_unanswered(from, &self.service, at, context);
    }

    fn service(&self) -> &str {
        &self.service
    }

    fn has_beginning(&self) -> bool {
        self.link.version.is_some()
    }

    fn learned(&self) -> Vec<Learned> {
        let name = self.ends.to_string();
        let version = self.link.version.map_or("not said".into(), |version| version.to_string());
        let texts = [
            ("version", version),
            ("encryption", self.link.encryption().into()),
            ("end", self.life.end()),
        ];
        let facts = texts.into_iter().map(|(key, text)| (key, LearnedValue::Text(text))).collect();
        let link = Learned {
            group: "links",
            heading: name.len(),
            name: name.clone(),
            of_stream: true,
            facts,
        };
        let sides = [Side::Client, Side::Server].into_iter().zip(&self.sequences);
        let numbered = sides.map(|(side, sequences)| (side, sequences.counts()));
        let numbered = numbered.filter(|(_, counts)| counts.datagrams + counts.unseen_acks > 0);
        let sides = numbered.map(|(side, counts)| Learned {
            group: "link_sides",
            heading: name.len(),
            name: format!("{name}, from the {}", side.word()),
            of_stream: true,
            facts: counts.named(),
        });
        [link].into_iter().chain(sides).collect()
    }
}

fn nanos(at: Moment) -> i64 {
    at.time.seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(at.time.nanos))
}
