//! A circuit: turns datagrams into messages, and links them by sequence numbers and
//! acknowledgements.
//!
//! It knows which messages open and close a circuit. `datagram` knows the layout of a datagram, and
//! `circuit` counts.

use std::collections::BTreeMap;

use super::circuit::{Arrival, CircuitDirection, Counters, SentDatagram};
use super::datagram::{DatagramForm, DatagramLayouts, NoMessage, Read};
use super::packet::{self, Packet};
use crate::captured::Captured;
use crate::digits::counted;
use crate::digits::hex;
use crate::proto::Moment;
use crate::session::{Answer, Request, RequestKey, Requests, is_partial, request_key};
use crate::session::{Context, Ends, Event, EventKind, Learned, Message, Reply, Session, Side};
use crate::table::{MessageDef, MessageId, Tables};
use crate::tree::{Kind, LinkKind, Node, Problem, Severity, Sym, Tree};

/// Numbers of the messages that open, carry and close a circuit, with all their bytes.
mod known {
    use super::packet::low;

    pub const PACKET_ACK: u32 = 0xffff_fffb;
    pub const OPEN_CIRCUIT: u32 = 0xffff_fffc;
    pub const CLOSE_CIRCUIT: u32 = 0xffff_fffd;
    pub const USE_CIRCUIT_CODE: u32 = low(3);
    pub const REGION_HANDSHAKE: u32 = low(148);
    pub const REGION_HANDSHAKE_REPLY: u32 = low(149);
    pub const DISABLE_SIMULATOR: u32 = low(152);
    pub const KICK_USER: u32 = low(163);
    pub const COMPLETE_AGENT_MOVEMENT: u32 = low(249);
    pub const LOGOUT_REPLY: u32 = low(253);
}

/// How many requests of both sides are remembered.
const REQUESTS: usize = 256;

/// After this many nanoseconds an acknowledgement is overdue. A reliable message is acknowledged,
/// or sent again, long before.
const OVERDUE: i64 = 5_000_000_000;
/// So many overdue datagrams at least show that acknowledgements were not captured.
const MIN_MISSING_ACKS: usize = 5;

/// A circuit between a viewer (or another simulator) and a simulator.
pub struct CircuitSession {
    ends: Ends,
    frame: Option<DatagramLayouts>,
    names: OpeningNames,
    requests: Requests,
    socks: Option<bool>,
    client: CircuitDirection,
    server: CircuitDirection,
    opened: bool,
    closed: bool,
    seen: Seen,
    /// Names of the messages that were counted, by number.
    counted: BTreeMap<u32, String>,
}

/// Names of fields the session looks at.
struct OpeningNames {
    packets: Option<Sym>,
    code: Option<Sym>,
    session: Option<Sym>,
}

/// Which messages of a circuit's beginning were seen.
#[derive(Default)]
struct Seen {
    first: bool,
    code: bool,
    handshake: bool,
    handshake_reply: bool,
    movement: bool,
    /// The first message was none of these: the beginning came before the capture.
    late: bool,
}

impl CircuitSession {
    /// A circuit before its first datagram.
    pub fn new(ends: Ends, tables: &Tables) -> Self {
        CircuitSession {
            ends,
            frame: DatagramLayouts::new(tables),
            names: OpeningNames {
                packets: tables.sym("Packets"),
                code: tables.sym("Code"),
                session: tables.sym("SessionID"),
            },
            requests: Requests::new(tables, REQUESTS),
            socks: None,
            client: CircuitDirection::default(),
            server: CircuitDirection::default(),
            opened: false,
            closed: false,
            seen: Seen::default(),
            counted: BTreeMap::new(),
        }
    }

    /// The counts of the datagrams that a side sent.
    pub fn counters(&self, from: Side) -> Counters {
        match from {
            Side::Client => self.client.counters,
            Side::Server => self.server.counters,
        }
    }

    fn sent_by(&mut self, side: Side) -> &mut CircuitDirection {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// Whether the datagram begins with a SOCKS header. Either all datagrams of a flow do or none
    /// does. The first one that can be read only one way decides.
    fn is_socks(&mut self, datagram: &[u8], frame: &DatagramLayouts, tables: &Tables) -> bool {
        if let Some(known) = self.socks {
            return known && packet::begins_as_socks(datagram);
        }
        if !packet::begins_as_socks(datagram) {
            self.socks = Some(false);
            return false;
        }
        let plain = frame.plausible(datagram, false, tables);
        let behind = frame.plausible(datagram, true, tables);
        if behind && !plain {
            self.socks = Some(true);
        }
        behind && !plain
    }

    fn message(
        &mut self,
        from: Side,
        bytes: &[u8],
        at: Moment,
        read: Read,
        context: &mut Context<'_>,
    ) {
        let nanos = nanos(at);
        let ack = self.tie(from, bytes, at, &read, context.tree);
        for link in context.tree.links().iter().filter(|link| link.kind == LinkKind::Acknowledges) {
            self.requests.receipt(link.record, context.tables);
        }
        self.link_repeated(from, bytes, at, &read, context);
        // A resent message is neither a new request nor a new reply.
        let again = context.tree.links().iter().any(|link| link.kind == LinkKind::SentAgain);
        let reply = if again {
            ack
        } else {
            ack.or_else(|| self.answer(read.message, from, bytes, at, context))
        };
        self.life(from, bytes, at, &read, context);
        let Some(def) = context.tables.message(read.message) else {
            return;
        };
        let message = Message {
            name: Captured::new(context.tables.name(def.name)),
            number: Some(u64::from(read.number)),
            service: "circuit",
            from,
            offset: 0,
            bytes,
            reply,
            no_reply: again,
        };
        let asked =
            (!again && self.requests.is_request(read.message)).then(|| key_of(def, bytes, context));
        let record = context.emit.message(at, &message, context.tables, context.tree);
        if let Some(key) = asked {
            self.requests.remember(Request {
                message: read.message,
                from,
                key,
                record,
                at,
                answered: false,
                several: false,
            });
        }
        self.sent_by(from).remember(SentDatagram {
            record,
            nanos,
            sequence: read.packet.sequence,
            number: read.number,
            resends: 0,
            reliable: read.packet.has(packet::RELIABLE),
            acked: false,
        });
    }

    /// Links a request that is sent again in a datagram of its own, such as a piece of a file that
    /// was not confirmed, to its first sending.
    fn link_repeated(
        &self,
        from: Side,
        bytes: &[u8],
        at: Moment,
        read: &Read,
        context: &mut Context<'_>,
    ) {
        let Some(def) = context.tables.message(read.message).filter(|def| def.echoes) else {
            return;
        };
        let key = key_of(def, bytes, context);
        if let Some(first) = self.requests.repeated(read.message, from, key) {
            let Reply { record, nanos } = first.reply(at);
            context.tree.link(LinkKind::SentAgain, 0, record, nanos);
        }
    }

    /// The request that a message answers.
    fn answer(
        &mut self,
        message: MessageId,
        from: Side,
        bytes: &[u8],
        at: Moment,
        context: &Context<'_>,
    ) -> Option<Reply> {
        let def = context.tables.message(message)?;
        let answers = &def.answers;
        if answers.is_empty() {
            return None;
        }
        let key = key_of(def, bytes, context);
        let partial = is_partial(context.tree);
        let reply = self.requests.answer(&Answer {
            message,
            from,
            answers,
            key,
            at,
            partial,
            share: None,
        })?;
        // A first part shows that the request arrived. The rest may come another way, so the
        // request counts as answered.
        self.requests.receipt(reply.record, context.tables);
        Some(reply)
    }

    /// Counts a datagram whose message is not in the tables, and handles its acknowledgements.
    fn unknown(&mut self, from: Side, bytes: &[u8], at: Moment, packet: Packet) {
        let resent = packet.has(packet::RESENT);
        self.arrive(from, packet.sequence, resent, at);
        if packet.has(packet::ACK) && packet.bad_acks.is_none() {
            for ack in packet.acks(bytes) {
                self.sent_by(from.other()).acknowledge(ack, nanos(at));
            }
        }
    }

    /// Counts a datagram's sequence number.
    fn arrive(&mut self, from: Side, sequence: u32, resent: bool, at: Moment) -> Arrival {
        let direction = self.sent_by(from);
        let lost = direction.counters.lost;
        let arrival = direction.arrive(sequence, resent, nanos(at));
        if direction.counters.lost > lost {
            // The missing datagrams before this one may have been replies.
            self.requests.lose_replies(from, at);
        }
        arrival
    }

    /// Links the datagram to its first sending and to the datagrams that it acknowledges. A
    /// PacketAck is the reply to the first one.
    fn tie(
        &mut self,
        from: Side,
        bytes: &[u8],
        at: Moment,
        read: &Read,
        tree: &mut Tree,
    ) -> Option<Reply> {
        let nanos = nanos(at);
        let Packet { sequence, .. } = read.packet;
        let resent = read.packet.has(packet::RESENT);
        if let Arrival::Again(first) = self.arrive(from, sequence, resent, at) {
            // Some viewers use the same number for another message.
            if resent || first.number == read.number {
                tree.link(LinkKind::SentAgain, 0, first.record, nanos.saturating_sub(first.nanos));
            }
            if !resent {
                let text =
                    "record {a} had the same sequence number, and this is not marked as sent again";
                let node = if read.packet.socks { 9 } else { 2 };
                let problem = Problem::new(Severity::Note, node, text, first.record as i64, 0);
                tree.problem(problem);
            }
        }
        let packets = self.names.packets;
        let other = self.sent_by(from.other());
        let mut reply = None;
        if read.number == known::PACKET_ACK {
            reply = packet_acks(tree, packets, other, nanos);
        }
        if read.packet.has(packet::ACK) && read.packet.bad_acks.is_none() {
            for ack in read.packet.acks(bytes) {
                if let Some(sent) = other.acknowledge(ack, nanos) {
                    let elapsed = nanos.saturating_sub(sent.nanos);
                    tree.link(LinkKind::Acknowledges, 0, sent.record, elapsed);
                }
            }
        }
        reply
    }

    /// Events of a circuit's life.
    fn life(
        &mut self,
        from: Side,
        bytes: &[u8],
        at: Moment,
        read: &Read,
        context: &mut Context<'_>,
    ) {
        let first = !std::mem::replace(&mut self.seen.first, true);
        match read.number {
            known::USE_CIRCUIT_CODE if !self.opened => {
                (self.opened, self.closed, self.seen.code) = (true, false, true);
                let code = find(context.tree, self.names.code).map_or(0, |n| n.value);
                let session =
                    find(context.tree, self.names.session).map(|n| context.tree.content(n, bytes));
                // The first four bytes of the session's ID tell sessions apart. The whole ID is a
                // secret.
                let start =
                    session.as_deref().and_then(|id| id.get(..4)).map(hex).unwrap_or_default();
                let text = format!("circuit {code} of session {start}… opens");
                event(EventKind::Open, from, at, text, context);
            }
            known::CLOSE_CIRCUIT
            | known::DISABLE_SIMULATOR
            | known::KICK_USER
            | known::LOGOUT_REPLY
                if !self.closed =>
            {
                (self.closed, self.opened) = (true, false);
                let name = message_name(context.tables, read.number);
                event(EventKind::Close, from, at, format!("the circuit closes: {name}"), context);
            }
            known::REGION_HANDSHAKE => self.seen.handshake = true,
            known::REGION_HANDSHAKE_REPLY => self.seen.handshake_reply = true,
            known::COMPLETE_AGENT_MOVEMENT => self.seen.movement = true,
            _ => {}
        }
        if first && !self.opened && read.number != known::OPEN_CIRCUIT {
            self.seen.late = true;
            let text = "the circuit's opening was not captured".to_string();
            event(EventKind::Remark, from, at, text, context);
        }
    }

    /// Reports each message whose acknowledgement is overdue as never answered. Leaves out
    /// requests, for which the reply counts, messages whose acknowledgement may be in a datagram
    /// that is missing, and everything if the other side was not captured at all.
    fn unacknowledged(
        &mut self,
        from: Side,
        waiting: &mut Vec<SentDatagram>,
        at: Moment,
        context: &mut Context<'_>,
    ) {
        let heard = self.counters(from.other()).datagrams > 0;
        let now = nanos(at);
        waiting.retain(|sent| {
            let waited = now.saturating_sub(sent.nanos);
            let lost = self.sent_by(from.other()).lost_after(sent.nanos);
            if lost || self.requests.remembers(sent.record) {
                return false;
            }
            if !heard || waited < OVERDUE {
                return true;
            }
            let message = message_name(context.tables, sent.number).to_string();
            let again = sent_again(sent.resends);
            let text = format!("{message}, record {}{again}, was never acknowledged", sent.record);
            let kind = EventKind::Unanswered { request: sent.record, message, waited, part: false };
            event(kind, from, at, text, context);
            false
        });
    }

    /// A side that sends nearly nothing again, though nothing acknowledges it, has got the
    /// acknowledgements: from some moment on the other side was not captured. Leaves out what was
    /// sent since then.
    fn leave_out_missing_acks(&mut self, from: Side, waiting: &mut Vec<SentDatagram>, at: Moment) {
        let silent = from.other();
        let since = self.sent_by(silent).last();
        let now = nanos(at);
        let overdue = waiting
            .iter()
            .filter(|sent| sent.nanos > since && now.saturating_sub(sent.nanos) >= OVERDUE);
        let again = overdue.clone().filter(|sent| sent.resends > 0).count();
        let all = overdue.count();
        if self.counters(silent).datagrams == 0 || all < MIN_MISSING_ACKS || again * 4 > all {
            return;
        }
        self.sent_by(silent).counters.missing_acks = all as u64;
        self.requests.lose_replies(silent, at);
        waiting.retain(|sent| sent.nanos <= since);
    }

    /// Reports at the end what never came: acknowledgements, and the steps of a login.
    fn missing(&mut self, from: Side, at: Moment, context: &mut Context<'_>) {
        for side in [Side::Client, Side::Server] {
            self.sent_by(side).finish();
            // What was never captured at the end may have been replies.
            if self.counters(side).unseen_at_end > 0 {
                self.requests.lose_replies(side, at);
            }
        }
        let mut waiting = self.sent_by(from).waiting();
        self.leave_out_missing_acks(from, &mut waiting, at);
        self.unacknowledged(from, &mut waiting, at, context);
        if !waiting.is_empty() {
            let mut text = "not acknowledged before the capture ended:".to_string();
            for sent in waiting.iter().take(10) {
                let name = message_name(context.tables, sent.number);
                let again = sent_again(sent.resends);
                text.push_str(&format!(" {name} (record {}{again}),", sent.record));
            }
            text.pop();
            if waiting.len() > 10 {
                text.push_str(&format!(", and {} more", waiting.len() - 10));
            }
            event(EventKind::Remark, from, at, text, context);
        }
        if from == Side::Client && self.seen.handshake && !self.seen.handshake_reply {
            let text = "RegionHandshake was never answered by RegionHandshakeReply".to_string();
            event(EventKind::Remark, from, at, text, context);
        }
        if from == Side::Client && self.seen.code && self.seen.handshake && !self.seen.movement {
            let text = "no CompleteAgentMovement: the agent never entered the region".to_string();
            event(EventKind::Remark, from, at, text, context);
        }
    }
}

impl Session for CircuitSession {
    /// Circuits are UDP. A TCP stream comes here only if the user assigned its port to this
    /// protocol.
    fn data(
        &mut self,
        from: Side,
        offset: u64,
        bytes: &[u8],
        at: Moment,
        context: &mut Context<'_>,
    ) {
        let text = "bytes of a TCP stream; circuits run over UDP";
        let event = Event::new(EventKind::Undecoded, "circuit", from, text);
        context.emit.event(at, event.showing(offset, bytes, context.options));
    }

    fn datagram(
        &mut self,
        from: Side,
        bytes: &[u8],
        _missing: u64,
        at: Moment,
        context: &mut Context<'_>,
    ) {
        let Some(frame) = self.frame else {
            let text = "the tables do not say how a datagram is laid out: PacketHeader, body or \
                        PacketEnd is missing";
            return undecoded(from, at, bytes, text.into(), context);
        };
        let socks = self.is_socks(bytes, &frame, context.tables);
        let framing = DatagramForm { socks, sender: from.index() };
        let read = frame.read(bytes, framing, context.tables, context.evaluator, context.tree);
        let (why, packet) = match read {
            Ok(read) => return self.message(from, bytes, at, read, context),
            Err(no) => no,
        };
        let text = match why {
            NoMessage::TooShort => "too short for a header and a message number".to_string(),
            NoMessage::NoNumber => "ends inside the message number".to_string(),
            NoMessage::Unknown(n) => format!("no message has the number {n} ({n:#x})"),
        };
        undecoded(from, at, bytes, text, context);
        if let (Some(packet), NoMessage::Unknown(_)) = (packet, why) {
            self.unknown(from, bytes, at, packet);
        }
    }

    fn gap(&mut self, _: Side, _: u64, _: u64, _: Moment, _: &mut Context<'_>) {}

    fn held(&self) -> usize {
        self.client.held() + self.server.held() + self.requests.held()
    }

    fn relieve(&mut self, at: Moment, context: &mut Context<'_>) {
        self.client.forget();
        self.server.forget();
        self.requests.forget();
        let text = "sent datagrams and requests were forgotten to make room: later answers and \
                    acknowledgements are not matched to them"
            .into();
        event(EventKind::Limit { limit: "max-total" }, Side::Client, at, text, context);
    }

    fn end(&mut self, from: Side, at: Moment, context: &mut Context<'_>) {
        self.missing(from, at, context);
        self.requests.report_unanswered(from, "circuit", at, context);
        for number in self.client.tallies.keys().chain(self.server.tallies.keys()) {
            self.counted
                .entry(*number)
                .or_insert_with(|| message_name(context.tables, *number).to_string());
        }
    }

    fn service(&self) -> &str {
        "circuit"
    }

    fn has_beginning(&self) -> bool {
        !self.seen.late
    }

    fn learned(&self) -> Vec<Learned> {
        let circuit = self.ends.to_string();
        let side = |from: Side| format!("{circuit}, from the {}", from.word());
        let mut all = Vec::new();
        for from in [Side::Client, Side::Server] {
            let facts = self.counters(from).named();
            all.push(Learned {
                group: "circuits",
                name: side(from),
                heading: circuit.len(),
                of_stream: true,
                facts,
            });
        }
        for (from, direction) in [(Side::Client, &self.client), (Side::Server, &self.server)] {
            let side = side(from);
            for (number, tally) in &direction.tallies {
                let message = self.counted.get(number).map_or("?", String::as_str);
                let name = format!("{side}: {message}");
                let facts = tally.named();
                let heading = side.len();
                all.push(Learned {
                    group: "reliable_messages",
                    name,
                    heading,
                    of_stream: false,
                    facts,
                });
            }
        }
        all
    }
}

/// What a request and its reply have in common.
fn key_of(def: &MessageDef, bytes: &[u8], context: &Context<'_>) -> RequestKey {
    request_key(def, context.tables, context.tree, bytes).unwrap_or(RequestKey::NONE)
}

fn event(kind: EventKind, from: Side, at: Moment, text: String, context: &mut Context<'_>) {
    context.emit.event(at, Event::new(kind, "circuit", from, text));
}

/// Reports a datagram that is not a message.
fn undecoded(from: Side, at: Moment, bytes: &[u8], text: String, context: &mut Context<'_>) {
    let event = Event::new(EventKind::Undecoded, "circuit", from, text);
    context.emit.event(at, event.showing(0, bytes, context.options));
}

fn nanos(at: Moment) -> i64 {
    at.time.seconds.saturating_mul(1_000_000_000).saturating_add(i64::from(at.time.nanos))
}

fn message_name(tables: &Tables, number: u32) -> &str {
    tables
        .messages()
        .iter()
        .find(|m| m.number == Some(u64::from(number)))
        .map_or("?", |m| tables.name(m.name))
}

fn find(tree: &Tree, name: Option<Sym>) -> Option<&Node> {
    tree.nodes().iter().find(|n| Some(n.name) == name)
}

/// The datagrams that a PacketAck acknowledges, as links. It is the reply to the first of them.
fn packet_acks(
    tree: &mut Tree,
    packets: Option<Sym>,
    other: &mut CircuitDirection,
    nanos: i64,
) -> Option<Reply> {
    let list = tree.nodes().iter().position(|n| Some(n.name) == packets && n.kind == Kind::List)?;
    let end = tree.nodes().get(list)?.end;
    let mut reply = None;
    for index in list as u32 + 1..end {
        let Some(ack) = tree.get(index).filter(|n| n.kind == Kind::Unsigned) else {
            continue;
        };
        let Some(sent) = other.acknowledge(ack.value as u32, nanos) else {
            continue;
        };
        let elapsed = nanos.saturating_sub(sent.nanos);
        tree.link(LinkKind::Acknowledges, index, sent.record, elapsed);
        reply.get_or_insert(Reply { record: sent.record, nanos: elapsed });
    }
    reply
}

/// How often a message was sent again, as part of a sentence.
fn sent_again(times: u16) -> String {
    if times > 0 { format!(", sent again {}", counted(times, "time")) } else { String::new() }
}
