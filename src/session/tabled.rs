//! A complete session for a service that needs only its framing and its messages in the tables.
//!
//! A protocol that needs more (keys, handshakes, checksums) builds its own session from the same
//! parts. This file knows no protocol.

use super::{
    Answer, Context, Event, EventKind, Extent, Framing, Message, MessageBytes, ReplyShare, Request,
    Requests, Session, Share, Side, StreamBuffer, is_partial, request_key,
};
use crate::capture::Moment;
use crate::captured::Captured;
use crate::digits::{counted, plural};
use crate::table::{MessageId, Outcome, ServiceId, Tables, WholeMessage};

/// The most requests of a connection that are remembered.
const REQUESTS: usize = 1024;

/// The declaration of a service.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// Its name in the JSON.
    pub name: String,
    /// Its messages. `None` if none are known.
    pub service: Option<ServiceId>,
    /// How its messages follow each other.
    pub framing: Framing,
    /// How lost framing is found again.
    pub resync: Resync,
    /// A remark to make once, when the first bytes come.
    pub remark: Option<&'static str>,
}

/// How framing is found again behind a gap, or behind bytes that are no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resync {
    /// The next piece of the stream is taken to begin with a message: programs usually send message
    /// by message.
    NextPiece,
    /// Every message begins with these bytes.
    Magic(Vec<u8>),
}

/// A connection of a declared service.
pub struct TableSession {
    declared: Declaration,
    directions: [Direction; 2],
    requests: Requests,
    heard: bool,
    /// The states that messages set so far, by the states' numbers.
    states: Vec<u64>,
}

/// One direction of it.
#[derive(Default)]
struct Direction {
    stream: StreamBuffer,
    /// How many of the waiting bytes were searched without finding a delimiter.
    searched: usize,
    /// Whether framing is lost.
    lost: bool,
}

/// The result of reading the first waiting bytes.
enum Step {
    /// How many bytes were used.
    Used(usize),
    /// How many bytes are needed in all.
    Need(usize),
    /// No message begins here.
    Lost(EventKind, String),
}

impl TableSession {
    /// A connection of a declared service, before its first byte.
    pub fn new(declared: Declaration, tables: &Tables) -> TableSession {
        let requests = Requests::new(tables, REQUESTS);
        let states = tables.first_states();
        TableSession { declared, directions: Default::default(), requests, heard: false, states }
    }

    /// From now on, it reads messages of another service.
    pub(super) fn change_service(&mut self, declared: Declaration) {
        self.declared = declared;
    }

    /// Reports a datagram that is of no service.
    pub(super) fn refuse(
        &mut self,
        from: Side,
        bytes: &[u8],
        at: Moment,
        context: &mut Context<'_>,
    ) {
        let piece = MessageBytes { from, offset: 0, bytes, at };
        self.undecoded(piece, "no rule of the protocol takes this datagram".into(), context);
    }

    fn event(&self, kind: EventKind, from: Side, text: impl Into<String>) -> Event {
        Event::new(kind, &self.declared.name, from, text)
    }

    /// Emits the remark, once, with the first bytes of the connection.
    fn remark(&mut self, from: Side, at: Moment, context: &mut Context<'_>) {
        if !std::mem::replace(&mut self.heard, true)
            && let Some(text) = self.declared.remark
        {
            context.emit.event(at, self.event(EventKind::Remark, from, text));
        }
    }

    /// Takes all complete messages from a direction's waiting bytes. With `last`, no more bytes
    /// follow.
    fn drain(&mut self, from: Side, last: bool, at: Moment, context: &mut Context<'_>) {
        let mut direction = std::mem::take(from.of(&mut self.directions));
        while direction.stream.is_ready() || last && !direction.stream.is_empty() {
            if direction.lost && !self.find_again(&mut direction, from, at, context) {
                break;
            }
            let bytes = direction.stream.waiting();
            let piece = MessageBytes { from, offset: direction.stream.offset(), bytes, at };
            match self.step(piece, direction.searched, last, context) {
                Step::Used(length) => {
                    direction.stream.advance(length.max(1));
                    direction.searched = 0;
                }
                Step::Need(length) => {
                    direction.searched = bytes.len();
                    direction.stream.wait_for(length);
                    break;
                }
                Step::Lost(kind, text) => {
                    self.requests.lose_replies(from, at);
                    context.emit.event(at, self.event(kind, from, text));
                    direction.lost = true;
                    direction.searched = 0;
                    // The next message does not begin here.
                    direction.stream.pass(1, context.options.max_undecoded);
                    if self.declared.resync == Resync::NextPiece {
                        direction.stream.pass(usize::MAX, context.options.max_undecoded);
                    }
                }
            }
        }
        *from.of(&mut self.directions) = direction;
    }

    /// Looks for the start of the next message. Returns whether it was found.
    fn find_again(
        &self,
        direction: &mut Direction,
        from: Side,
        at: Moment,
        context: &mut Context<'_>,
    ) -> bool {
        let bytes = direction.stream.waiting();
        let (skip, found) = match &self.declared.resync {
            Resync::NextPiece => (0, true),
            Resync::Magic(magic) => match memchr::memmem::find(bytes, magic) {
                Some(place) => (place, true),
                // The last bytes may be the start of a resync mark.
                None => (bytes.len().saturating_sub(magic.len().saturating_sub(1)), false),
            },
        };
        direction.stream.pass(skip, context.options.max_undecoded);
        if !found {
            let waiting = direction.stream.waiting().len();
            direction.stream.set_need(waiting + 1);
            return false;
        }
        direction.lost = false;
        let passed = direction.stream.take_passed();
        let why = "a message may begin here";
        context.emit.event(at, Event::resync(self.service(), from, passed, why));
        true
    }

    /// Reads the first message in some bytes.
    fn step(
        &mut self,
        piece: MessageBytes<'_>,
        searched: usize,
        last: bool,
        context: &mut Context<'_>,
    ) -> Step {
        let most = context.options.max_message;
        let too_long = |length: usize| {
            let text = format!("a message of {length} bytes is not put together (--max-message)");
            Step::Lost(EventKind::Limit { limit: "max-message" }, text)
        };
        match self.declared.framing.extent(piece.bytes, searched) {
            Extent::ByLayout => self.by_layout(piece, context),
            Extent::Bytes(length) | Extent::Need(length) if length > most => too_long(length),
            Extent::Bytes(length) if self.declared.framing == Framing::Whole && !last => {
                Step::Need(length + 1)
            }
            Extent::Bytes(length) => match piece.bytes.get(..length) {
                Some(bytes) => {
                    self.framed(MessageBytes { bytes, ..piece }, context);
                    Step::Used(length)
                }
                None => Step::Need(length),
            },
            Extent::Need(length) => Step::Need(length),
            Extent::Impossible(stated) => Step::Lost(
                EventKind::Remark,
                format!("no message begins here: its length would be {stated}"),
            ),
        }
    }

    /// Reads a message whose layout says where it ends.
    fn by_layout(&mut self, piece: MessageBytes<'_>, context: &mut Context<'_>) -> Step {
        let most = context.options.max_message;
        let Some(service) = self.declared.service else { return Step::Used(piece.bytes.len()) };
        self.lend_states(context);
        let from = piece.from.index();
        let Context { tables, evaluator, tree, .. } = context;
        match evaluator.message(tables, service, from, piece.bytes, tree) {
            Outcome::Message(_, 0) => Step::Lost(
                EventKind::Remark,
                "a message without any byte would never end".to_string(),
            ),
            Outcome::Message(id, length) => {
                let bytes = piece.bytes.get(..length).unwrap_or(piece.bytes);
                self.message(id, MessageBytes { bytes, ..piece }, context);
                Step::Used(length)
            }
            Outcome::Need(length) if length > most => {
                let text = format!(
                    "a message of at least {length} bytes is not put together (--max-message)"
                );
                Step::Lost(EventKind::Limit { limit: "max-message" }, text)
            }
            Outcome::Need(length) => Step::Need(length),
            outcome @ (Outcome::Unknown(_, Some(length)) | Outcome::NoLayout(_, Some(length)))
                if (1..=most).contains(&length) =>
            {
                let Some(bytes) = piece.bytes.get(..length) else { return Step::Need(length) };
                let text = no_message(&outcome, context.tables);
                self.requests.lose_replies(piece.from, piece.at);
                self.undecoded(MessageBytes { bytes, ..piece }, text, context);
                Step::Used(length)
            }
            other => Step::Lost(EventKind::Remark, no_message(&other, context.tables)),
        }
    }

    /// Reads a message whose end is known: `piece` is all of it.
    fn framed(&mut self, piece: MessageBytes<'_>, context: &mut Context<'_>) {
        let Some(service) = self.declared.service else {
            context.emit.account(piece.from, Share::Opaque, piece.bytes.len() as u64);
            return;
        };
        self.lend_states(context);
        let whole = WholeMessage { bytes: piece.bytes, behind: self.declared.framing.behind() };
        let Context { tables, evaluator, tree, .. } = context;
        let outcome = evaluator.framed(tables, service, piece.from.index(), whole, tree);
        let Outcome::Message(id, length) = outcome else {
            let text = no_message(&outcome, context.tables);
            return self.undecoded(piece, text, context);
        };
        let (bytes, rest) = piece.bytes.split_at_checked(length).unwrap_or((piece.bytes, &[]));
        self.message(id, MessageBytes { bytes, ..piece }, context);
        if !rest.is_empty() {
            let text = format!("{} behind the message, in its frame", counted(rest.len(), "byte"));
            self.undecoded(
                MessageBytes { bytes: rest, offset: piece.offset + length as u64, ..piece },
                text,
                context,
            );
        }
    }

    fn undecoded(&self, piece: MessageBytes<'_>, text: String, context: &mut Context<'_>) {
        let event = self.event(EventKind::Undecoded, piece.from, text);
        context.emit.event(piece.at, event.showing(piece.offset, piece.bytes, context.options));
    }

    /// Passes the states of the connection to the evaluator.
    fn lend_states(&self, context: &mut Context<'_>) {
        if !self.states.is_empty() {
            context.evaluator.states.clone_from(&self.states);
        }
    }

    /// Takes over the states that the last message set.
    fn take_states(&mut self, context: &Context<'_>) {
        for (place, value) in &context.evaluator.set_states {
            if let Some(state) = self.states.get_mut(*place as usize) {
                *state = *value;
            }
        }
    }

    /// Emits a message, and links it to the request that it answers.
    fn message(&mut self, id: MessageId, piece: MessageBytes<'_>, context: &mut Context<'_>) {
        let MessageBytes { from, offset, bytes, at, .. } = piece;
        let Some(def) = context.tables.message(id) else { return };
        let ties = self.requests.is_request(id) || !def.answers.is_empty();
        self.take_states(context);
        let name = context.tables.name(def.name);
        let mut message = Message {
            name: Captured::new(name),
            number: def.number,
            service: &self.declared.name,
            from,
            offset,
            bytes,
            reply: None,
            no_reply: false,
        };
        // A message that lacks the transaction its table declares answers nothing.
        let key = if ties { request_key(def, context.tables, context.tree, bytes) } else { None };
        let partial = is_partial(context.tree);
        let share = ReplyShare::of(def, context.tree);
        message.reply = key.filter(|_| !def.answers.is_empty()).and_then(|key| {
            let answer =
                Answer { message: id, from, answers: &def.answers, key, at, partial, share };
            self.requests.answer_in(&answer, context.tree)
        });
        let record = context.emit.message(at, &message, context.tables, context.tree);
        if let Some(key) = key.filter(|_| self.requests.is_request(id)) {
            self.requests.remember(Request {
                message: id,
                from,
                key,
                record,
                at,
                answered: false,
                several: false,
            });
        }
    }

    /// Reports the bytes of a direction that became no message.
    fn give_up(&mut self, from: Side, text: &str, at: Moment, context: &mut Context<'_>) {
        let stream = &mut from.of(&mut self.directions).stream;
        stream.pass(usize::MAX, context.options.max_undecoded);
        let passed = stream.take_passed();
        if passed.length > 0 {
            let event = self.event(EventKind::Undecoded, from, text);
            context.emit.event(at, event.about(passed.offset, passed.length).with_passed(passed));
        }
    }
}

impl Session for TableSession {
    fn data(
        &mut self,
        from: Side,
        _offset: u64,
        bytes: &[u8],
        at: Moment,
        context: &mut Context<'_>,
    ) {
        self.remark(from, at, context);
        if self.declared.framing == Framing::LeftAlone {
            return context.emit.account(from, Share::Opaque, bytes.len() as u64);
        }
        from.of(&mut self.directions).stream.push(bytes, at);
        self.drain(from, false, at, context);
    }

    fn datagram(
        &mut self,
        from: Side,
        bytes: &[u8],
        _missing: u64,
        at: Moment,
        context: &mut Context<'_>,
    ) {
        self.remark(from, at, context);
        if self.declared.framing == Framing::LeftAlone {
            return context.emit.account(from, Share::Opaque, bytes.len() as u64);
        }
        // A datagram may hold several messages. No message continues in the next datagram.
        let mut done = 0;
        while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
            let piece = MessageBytes { from, offset: done as u64, bytes: rest, at };
            match self.step(piece, 0, true, context) {
                Step::Used(length) => done += length.max(1),
                Step::Need(length) => {
                    let text = format!(
                        "{} of the {length} bytes of a message {} in the datagram",
                        rest.len(),
                        plural(rest.len(), "is", "are")
                    );
                    return self.undecoded(piece, text, context);
                }
                Step::Lost(_, text) => return self.undecoded(piece, text, context),
            }
        }
    }

    fn gap(&mut self, from: Side, offset: u64, length: u64, at: Moment, context: &mut Context<'_>) {
        self.give_up(from, "cut off by a gap", at, context);
        context.emit.event(at, Event::gap(&self.declared.name, from, offset, length));
        self.requests.lose_replies(from, at);
        let direction = from.of(&mut self.directions);
        direction.stream.jump(offset.saturating_add(length));
        direction.lost = self.declared.framing != Framing::LeftAlone;
        direction.searched = 0;
    }

    fn held(&self) -> usize {
        self.requests.held()
            + self.directions.iter().map(|direction| direction.stream.held()).sum::<usize>()
    }

    fn relieve(&mut self, at: Moment, context: &mut Context<'_>) {
        self.requests.forget();
        for from in [Side::Client, Side::Server] {
            let waiting = from.of(&mut self.directions).stream.waiting().len();
            if waiting == 0 {
                continue;
            }
            let text = Event::given_up_text(waiting);
            context.emit.event(at, self.event(EventKind::Limit { limit: "max-total" }, from, text));
            self.requests.lose_replies(from, at);
            self.give_up(from, "given up to make room", at, context);
            let direction = from.of(&mut self.directions);
            direction.stream.shrink();
            direction.lost = true;
            direction.searched = 0;
        }
    }

    fn end(&mut self, from: Side, at: Moment, context: &mut Context<'_>) {
        self.drain(from, true, at, context);
        if from.of(&mut self.directions).lost {
            self.requests.lose_replies(from, at);
        }
        self.give_up(from, "the stream ended within a message", at, context);
        self.requests.report_unanswered(from, &self.declared.name, at, context);
    }

    fn service(&self) -> &str {
        &self.declared.name
    }
}

/// Says in words why bytes are no message.
fn no_message(outcome: &Outcome, tables: &Tables) -> String {
    let name = |id: &MessageId| tables.message(*id).map_or("", |message| tables.name(message.name));
    match outcome {
        Outcome::Unknown(number, _) => format!("no message has the number {number}"),
        Outcome::NoLayout(id, _) => format!("the layout of {} is not known", name(id)),
        Outcome::Malformed(id) => format!("its number says {}, but the bytes do not fit", name(id)),
        Outcome::TooLong(id, length, max) => {
            let length = counted(*length, "byte");
            format!("its number says {}, and its length {length}, more than `max {max}`", name(id))
        }
        Outcome::Need(length) => {
            format!("a message of at least {} would begin here", counted(*length, "byte"))
        }
        Outcome::Message(id, _) => name(id).to_string(),
    }
}

#[cfg(test)]
#[path = "tabled_tests.rs"]
mod tests;
