//! A link: its packets become records, its handshake and pieces are followed.
//!
//! Knows the order of a link's life; what a packet's bits mean is `packet`'s business, what was agreed is `link`'s, how it is
//! laid out is `frame`'s, and where packets begin in a stream is `stream`'s.

use super::frame::{Content, Layout, Packet, Parts, Piece, Pieces};
use super::link::Link;
use super::options::OuroSettings;
use super::packet::{Header, LinkHeader, control, padded};
use super::sequence::Sequences;
use super::siblings::{Joined, Kept, Set, Siblings, Why};
use super::stream::{Next, Reader};
use crate::proto::{Context, Event, EventKind, Message, Moment, Session, Side, Start, Transport};
use crate::table::Tables;

/// A link between a client and a server, or two servers.
pub struct LinkSession {
    parts: Option<Parts>,
    transport: Transport,
    link: Link,
    siblings: [Siblings; 2],
    sequences: [Sequences; 2],
    readers: [Reader; 2],
    ended: [bool; 2],
}

/// A packet's bytes with what the header says of them.
#[derive(Clone, Copy)]
struct Found<'a> {
    from: Side,
    offset: u64,
    at: Moment,
    bytes: &'a [u8],
    header: Header,
    end: usize,
    right: bool,
}

/// What a packet is reported as.
#[derive(Default)]
struct Name {
    number: Option<u64>,
    fixed: Option<&'static str>,
}

impl LinkSession {
    /// A link of which nothing was seen yet.
    pub fn new(start: &Start<'_>, tables: &Tables) -> Self {
        LinkSession {
            parts: Parts::new(tables),
            transport: start.transport,
            link: Link::default(),
            siblings: Default::default(),
            sequences: Default::default(),
            readers: Default::default(),
            ended: [false; 2],
        }
    }

    /// A datagram: one packet, or something that cannot be one. `missing` bytes of it were not captured.
    fn one_datagram(&mut self, from: Side, bytes: &[u8], missing: u64, at: Moment, context: &mut Context<'_>) {
        let header = match Header::parse(bytes) {
            None => return undecoded(from, (0, bytes.len()), at, "too short for a packet's header".into(), context),
            Some(header) => header,
        };
        let there = bytes.len();
        if !header.possible() {
            let text = format!("the packet's length of {} bits is not more than its header's 64", header.bits);
            return undecoded(from, (0, there), at, text, context);
        }
        if missing > 0 || header.bytes() > there {
            let cut = if missing > 0 { format!("; {missing} more were not captured") } else { String::new() };
            let text = format!("the packet's length is {} bits, the datagram has {there} bytes{cut}", header.bits);
            return undecoded(from, (0, there), at, text, context);
        }
        let proven = header.proven_end(bytes);
        let end = proven.unwrap_or_else(|| if header.padded() <= there { header.padded() } else { header.bytes() });
        let found = Found { from, offset: 0, at, bytes, header, end, right: proven.is_some() };
        self.packet(found, context);
    }

    /// Takes every whole packet from a direction's waiting bytes; `last` says that no more bytes follow these.
    fn drain(&mut self, from: Side, last: bool, at: Moment, context: &mut Context<'_>) {
        let mut reader = std::mem::take(from.of(&mut self.readers));
        loop {
            match reader.next(self.link.may_be_encrypted(), context.options.max_message, last) {
                Next::Wait => break,
                Next::Packet { end, right } => {
                    let (offset, bytes) = (reader.offset(), reader.waiting().get(..end).unwrap_or(reader.waiting()));
                    if let Some(header) = Header::parse(bytes) {
                        self.packet(Found { from, offset, at, bytes, header, end, right }, context);
                    }
                    reader.advance(end);
                }
                Next::TooLong { bytes } => {
                    let text = format!("a packet of {bytes} bytes is not put together (--max-message)");
                    remark(EventKind::Limit { limit: "max-message" }, from, at, text, context);
                }
                Next::Skip { bytes, found } => {
                    let text = match found {
                        true => format!("{bytes} bytes that are no packet; the next one begins behind them"),
                        false => format!("{bytes} bytes that are no whole packet"),
                    };
                    undecoded(from, (reader.offset(), bytes), at, text, context);
                    reader.advance(bytes);
                }
            }
        }
        *from.of(&mut self.readers) = reader;
    }

    fn packet(&mut self, found: Found<'_>, context: &mut Context<'_>) {
        let Some(parts) = self.parts else { return };
        let bits = found.header.bits as usize;
        let client = found.from == Side::Client;
        let mut packet = Packet {
            bytes: found.bytes,
            header: found.header,
            end: found.end,
            right: found.right,
            link: None,
            content: Content::Encrypted,
        };
        if !found.right && self.link.may_be_encrypted() {
            if padded(found.header.bytes()) == found.bytes.len() {
                packet.end = found.bytes.len();
            }
            let name = Name { fixed: Some("Encrypted"), number: None };
            self.emit(&parts, &packet, found, name, context);
            return;
        }
        if self.transport == Transport::Udp {
            packet.link = self.link.header(found.bytes, bits, client);
        }
        match packet.link {
            Some(link) if link.compressed && link.siblings == 0 => {
                packet.content = Content::Compressed;
                let name = Name { fixed: Some("Compressed"), number: None };
                self.emit(&parts, &packet, found, name, context);
            }
            Some(link) if link.siblings > 0 => self.sibling(&parts, packet, link, found, context),
            link => {
                let from = link.map_or(super::packet::HEADER * 8, |l| l.end);
                let (content, name) = self.content(&parts, (found.bytes, bits, from), found, context);
                packet.content = content;
                self.emit(&parts, &packet, found, name, context);
            }
        }
    }

    /// What the bits from a place on say, and what changes by it.
    fn content<'a>(
        &mut self,
        parts: &Parts,
        (bytes, bits, from): (&[u8], usize, usize),
        found: Found<'_>,
        context: &mut Context<'_>,
    ) -> (Content<'a>, Name) {
        let client = found.from == Side::Client;
        let guessed = self.link.guessed;
        let Some((command, numbering)) = self.link.command(bytes, bits, from, client) else {
            let version = self.link.version.filter(|_| self.link.numbering().is_none());
            let fixed = Some("Undescribed");
            return match version {
                Some(version) => (Content::Undescribed(version), Name { fixed, number: None }),
                None => (Content::Command(Layout::unread()), Name { fixed, number: None }),
            };
        };
        if self.link.version.is_none() && guessed != self.link.guessed {
            let text = format!("the link's CONNECT was not captured; commands are taken to be {}", describe(numbering));
            event(EventKind::Remark, found, text, context);
        }
        let mut layout = Layout { numbering, message: None, user: command.control.is_none(), cookies: false };
        let number = match command.control {
            Some(number) => {
                if number == control::CONNECT && command.exact {
                    // Numbers of pieces begin anew with the link.
                    self.give_up(Side::Client, "when the link was opened again", found.at, context);
                    self.give_up(Side::Server, "when the link was opened again", found.at, context);
                }
                self.link.learn(command, client);
                number
            }
            None => {
                self.link.heard(client);
                self.link.cookies.setting = OuroSettings::cookies(context.settings);
                let (cookies, text) = self.link.cookies.judge(bytes, bits, command.body, client);
                layout.cookies = cookies;
                if let Some(text) = text {
                    event(EventKind::Remark, found, text.to_string(), context);
                }
                command.user(numbering)
            }
        };
        layout.message = parts.message(context.tables, layout.user, found.from.index(), number);
        let fixed = match (layout.message, layout.user) {
            (Some(_), _) => None,
            (None, true) => Some("UserCommand"),
            (None, false) => Some("ControlCommand"),
        };
        (Content::Command(layout), Name { fixed, number: Some(u64::from(command.cmd)) })
    }

    /// One of several datagrams: it waits, or it completes its packet.
    fn sibling(
        &mut self,
        parts: &Parts,
        mut packet: Packet<'_>,
        link: LinkHeader,
        found: Found<'_>,
        context: &mut Context<'_>,
    ) {
        let payload = found.bytes.get(link.end / 8..).unwrap_or(&[]);
        let bits = (found.header.bits as usize).saturating_sub(link.end);
        let mut lost: Vec<(Set, Why)> = Vec::new();
        let kept = match found.right && link.is_piece() {
            // What a wrong checksum vouches for is not put together with what is right.
            false => None,
            true => {
                let siblings = found.from.of(&mut self.siblings);
                Some(
                    siblings
                        .take((link.id, link.siblings, link.position), (payload, bits), |s, why| lost.push((s, why))),
                )
            }
        };
        for (set, why) in &lost {
            given_up(set, *why, found, context);
        }
        let waits = matches!(kept, Some(Kept::Waits));
        let piece = match kept {
            Some(Kept::Whole(joined)) => return self.joined(parts, packet, &joined, found, context),
            Some(Kept::Again) => Piece::Again,
            Some(Kept::Differs) => Piece::Differs,
            None if !link.is_piece() => Piece::Impossible,
            Some(Kept::Waits) | None => Piece::Waits,
        };
        packet.content = Content::Fragment(piece);
        let name = Name { fixed: Some("Fragment"), number: None };
        let record = self.emit(parts, &packet, found, name, context);
        if let Some(record) = record.filter(|_| waits) {
            found.from.of(&mut self.siblings).recorded(link.id, link.position, record);
        }
    }

    fn joined<'a>(
        &mut self,
        parts: &Parts,
        mut packet: Packet<'a>,
        joined: &'a Joined,
        found: Found<'_>,
        context: &mut Context<'_>,
    ) {
        let (content, name) = self.content(parts, (&joined.bytes, joined.bits, 0), found, context);
        let layout = match content {
            Content::Command(layout) => layout,
            _ => Layout::unread(),
        };
        let pieces = Pieces { bytes: &joined.bytes, bits: joined.bits, records: &joined.records };
        packet.content = match content {
            Content::Undescribed(version) => Content::Undescribed(version),
            _ => Content::Whole(layout, pieces),
        };
        self.emit(parts, &packet, found, name, context);
    }

    /// Says which packets of a side were not complete at a time, and forgets all of its pieces.
    fn give_up(&mut self, from: Side, when: &str, at: Moment, context: &mut Context<'_>) {
        let siblings = std::mem::take(from.of(&mut self.siblings));
        for set in siblings.incomplete() {
            remark(EventKind::Remark, from, at, format!("{} {when}", incomplete(set)), context);
        }
    }

    /// Lays the packet out and hands it on; returns its record number.
    fn emit(
        &mut self,
        parts: &Parts,
        packet: &Packet<'_>,
        found: Found<'_>,
        name: Name,
        context: &mut Context<'_>,
    ) -> Option<u64> {
        parts.read(packet, context.tables, context.evaluator, context.tree);
        let nanos = nanos(found.at);
        if let Some(link) = packet.link.filter(|_| packet.right) {
            let [client, server] = &mut self.sequences;
            let (own, other) = if found.from == Side::Client { (client, server) } else { (server, client) };
            own.tie(link, nanos, context.tree);
            other.acknowledge(link, packet.bytes, nanos, context.tree);
        }
        let message = match packet.content {
            Content::Command(layout) | Content::Whole(layout, _) => layout.message,
            _ => None,
        };
        let named = message.and_then(|m| context.tables.message(m)).map(|m| context.tables.name(m.name));
        let message = Message {
            name: named.or(name.fixed).unwrap_or("UserCommand"),
            number: name.number,
            service: "link",
            from: found.from,
            offset: found.offset,
            bytes: packet.bytes,
            reply: None,
        };
        let record = context.emit.message(found.at, &message, context.tables, context.tree);
        context.emit.spent(context.tree);
        if let Some(link) = packet.link.filter(|_| packet.right) {
            found.from.of(&mut self.sequences).sent(link, nanos, record);
        }
        Some(record)
    }
}

impl Session for LinkSession {
    fn data(&mut self, from: Side, offset: u64, bytes: &[u8], at: Moment, context: &mut Context<'_>) {
        from.of(&mut self.readers).push(offset, bytes, at);
        self.drain(from, false, at, context);
    }

    fn datagram(&mut self, from: Side, bytes: &[u8], missing: u64, at: Moment, context: &mut Context<'_>) {
        self.one_datagram(from, bytes, missing, at, context);
    }

    fn gap(&mut self, from: Side, offset: u64, length: u64, at: Moment, context: &mut Context<'_>) {
        self.drain(from, true, at, context);
        context.emit.event(
            at,
            Event {
                kind: EventKind::Gap,
                service: "link".into(),
                from,
                offset: Some(offset),
                length: Some(length),
                text: format!("{length} bytes were never captured"),
            },
        );
        from.of(&mut self.readers).lost();
    }

    fn held(&self) -> usize {
        let readers = self.readers.iter().map(Reader::held);
        let pieces = self.siblings.iter().map(Siblings::held);
        readers.chain(pieces).chain(self.sequences.iter().map(Sequences::held)).sum()
    }

    fn relieve(&mut self, at: Moment, context: &mut Context<'_>) {
        self.sequences = Default::default();
        for from in [Side::Client, Side::Server] {
            let sets = std::mem::take(from.of(&mut self.siblings)).incomplete().count();
            let waiting = from.of(&mut self.readers).waiting().len();
            if sets > 0 || waiting > 0 {
                let text = format!("{sets} packets and {waiting} bytes given up to make room");
                remark(EventKind::Limit { limit: "max-total" }, from, at, text, context);
                self.drain(from, true, at, context);
            }
            from.of(&mut self.readers).shrink();
        }
    }

    fn end(&mut self, from: Side, at: Moment, context: &mut Context<'_>) {
        if std::mem::replace(from.of(&mut self.ended), true) {
            return;
        }
        self.drain(from, true, at, context);
        self.give_up(from, "when the capture ended", at, context);
    }

    fn service(&self) -> &str {
        "link"
    }
}

fn describe(numbering: super::packet::Numbering) -> &'static str {
    match numbering {
        super::packet::Numbering::Old => "numbered as in versions 0 to 2, which is what fits",
        super::packet::Numbering::New => "numbered as in versions 4 and 5, which is what fits",
    }
}

/// Says which packet will never be complete.
fn given_up(set: &Set, why: Why, found: Found<'_>, context: &mut Context<'_>) {
    match why {
        Why::Room => {
            let text = format!("{}; given up to bound what is kept", incomplete(set));
            event(EventKind::Limit { limit: "siblings" }, found, text, context);
        }
        Why::Count => {
            let text = format!("{}; given up, since this one says that there are more or fewer", incomplete(set));
            event(EventKind::Remark, found, text, context);
        }
    }
}

fn incomplete(set: &Set) -> String {
    format!("of the packet with sibling ID {} only {} of {} datagrams had come", set.id, set.have(), set.count)
}

fn undecoded(from: Side, (offset, length): (u64, usize), at: Moment, text: String, context: &mut Context<'_>) {
    let (offset, length) = (Some(offset), Some(length as u64));
    let event = Event { kind: EventKind::Undecoded, service: "link".into(), from, offset, length, text };
    context.emit.event(at, event);
}

fn event(kind: EventKind, found: Found<'_>, text: String, context: &mut Context<'_>) {
    remark(kind, found.from, found.at, text, context);
}

fn remark(kind: EventKind, from: Side, at: Moment, text: String, context: &mut Context<'_>) {
    context.emit.event(at, Event { kind, service: "link".into(), from, offset: None, length: None, text });
}

fn nanos(at: Moment) -> i64 {
    at.time.seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(at.time.nanos))
}
