//! Splits a stream into messages, and finds the next message again where framing was lost. MOUL's
//! messages carry no length: the tables say where each ends.

use super::direction::Stage;
use super::search::{MessageReader, Search, SearchResult, search};
use super::session::{MoulSession, ParsedMessage, message_name};
use crate::capture::Moment;
use crate::session::{Context, Event, EventKind, Side};
use crate::table::Outcome;

/// The first bytes of the gatekeeper's AuthSrvIpAddressRequest, and its length from a client.
const REQUEST: [u8; 2] = [2, 0];
const REQUEST_LENGTH: usize = 6;
/// The numbers of all messages from a client to the gatekeeper are below this.
const GATEKEEPER_NUMBERS: u8 = 3;

impl MoulSession {
    pub(super) fn read_message(
        &mut self,
        side: Side,
        at: Moment,
        context: &mut Context<'_>,
    ) -> bool {
        let Some(service) = self.service else { return false };
        let Some(length) = self.readable_length(side) else {
            let direction = self.direction(side);
            direction.stream.set_need(direction.stream.waiting().len() + 1);
            return false;
        };
        let direction = side.of(&mut self.directions);
        let bytes = direction.stream.waiting().get(..length).unwrap_or(&[]);
        let Context { tables, evaluator, tree, .. } = context;
        match evaluator.message(tables, service, side.index(), bytes, tree) {
            Outcome::Message(id, length) => {
                self.latin.note_once(side, context.tree);
                let number = context.tables.message(id).and_then(|m| m.number);
                let name = message_name(id, context.tables);
                self.emit(side, ParsedMessage { name, number, id: Some(id), length }, at, context);
                true
            }
            Outcome::Need(n) if n <= context.options.max_message => {
                direction.stream.wait_for(n);
                false
            }
            Outcome::Need(n) => {
                let text =
                    format!("a message of at least {n} bytes is not put together (--max-message)");
                self.lose_framing_with(
                    side,
                    EventKind::Limit { limit: "max-message" },
                    text,
                    at,
                    context,
                )
            }
            Outcome::NoLayout(id, Some(length)) if length <= context.options.max_message => {
                if bytes.len() < length {
                    direction.stream.set_need(length);
                    return false;
                }
                let number = context.tables.message(id).and_then(|m| m.number);
                let name = message_name(id, context.tables);
                self.emit(side, ParsedMessage { name, number, id: Some(id), length }, at, context);
                true
            }
            Outcome::NoLayout(id, _) => {
                let name = message_name(id, context.tables);
                self.lose_framing(
                    side,
                    format!("{name}, whose layout is not known, ends the framing"),
                    at,
                    context,
                )
            }
            // Where messages state their length, an unknown one can be skipped and framing is kept.
            Outcome::Unknown(number, Some(length))
                if (8..=context.options.max_message).contains(&length) =>
            {
                if bytes.len() < length {
                    direction.stream.set_need(length);
                    return false;
                }
                direction.stream.pass(length, context.options.max_undecoded);
                self.requests.lose_replies(side, at);
                self.give_up_passed(
                    side,
                    &format!("no message has the number {number}"),
                    at,
                    context,
                );
                true
            }
            Outcome::Unknown(number, _) => {
                self.lose_framing(side, format!("no message has the number {number}"), at, context)
            }
            Outcome::Malformed(id) | Outcome::TooLong(id, ..) => {
                let name = message_name(id, context.tables);
                self.lose_framing(
                    side,
                    format!("its number says {name}, but the bytes do not fit"),
                    at,
                    context,
                )
            }
        }
    }

    /// How many of the waiting bytes the next message may be read from. `None` if more bytes have
    /// to come first.
    ///
    /// This matters for one message only. The gatekeeper's AuthSrvIpAddressRequest has 6 bytes from
    /// clients and 7 from some programs. The bytes behind the first 6 decide which form it is. A
    /// single byte there may also begin the next message: the decision then waits until the server
    /// answers or the stream ends.
    fn readable_length(&self, side: Side) -> Option<usize> {
        let [client, _] = &self.directions;
        let bytes = client.stream.waiting();
        if side != Side::Client
            || self.service_name != "gatekeeper"
            || bytes.first_chunk() != Some(&REQUEST)
        {
            let [_, server] = &self.directions;
            return Some(if side == Side::Client {
                bytes.len()
            } else {
                server.stream.waiting().len()
            });
        }
        match bytes.get(REQUEST_LENGTH..) {
            None | Some([]) => Some(bytes.len()),
            Some([number]) if *number < GATEKEEPER_NUMBERS => self.alone.then_some(bytes.len()),
            Some([number, 0, ..]) if *number < GATEKEEPER_NUMBERS => Some(bytes.len()),
            Some(_) => Some(REQUEST_LENGTH + 1),
        }
    }

    /// Framing is lost: skips the message that begins here and starts to look for the next one.
    fn lose_framing(
        &mut self,
        side: Side,
        text: String,
        at: Moment,
        context: &mut Context<'_>,
    ) -> bool {
        self.lose_framing_with(side, EventKind::Remark, text, at, context)
    }

    fn lose_framing_with(
        &mut self,
        side: Side,
        kind: EventKind,
        text: String,
        at: Moment,
        context: &mut Context<'_>,
    ) -> bool {
        let direction = self.direction(side);
        direction.begin_search(true);
        direction.predicted = None;
        direction.emit_plaintext(side, 1, context.emit);
        direction.stream.pass(1, context.options.max_undecoded);
        self.requests.lose_replies(side, at);
        self.report(side, kind, text, at, context);
        true
    }

    /// Gives up the waiting bytes, because all streams together hold too many. Remembers where the
    /// message that they begin would end, so that the next one is found there.
    pub(super) fn make_room(&mut self, at: Moment, context: &mut Context<'_>) {
        self.requests.forget();
        self.decide_encryption(true, at, context);
        if self.directions.iter().any(|direction| direction.stage == Stage::Joined) {
            self.decide_joined(true, at, context);
        }
        self.read_all(at, context);
        for side in [Side::Client, Side::Server] {
            let direction = self.direction(side);
            let (waiting, ends) = (
                direction.stream.waiting().len(),
                direction.stream.offset().saturating_add(direction.stream.need() as u64),
            );
            if waiting == 0 {
                continue;
            }
            let limit = EventKind::Limit { limit: "max-total" };
            match direction.stage {
                Stage::Messages | Stage::Lost => {
                    if direction.stage == Stage::Messages {
                        direction.predicted = (direction.stream.need() > waiting).then_some(ends);
                    }
                    self.report(side, limit, Event::given_up_text(waiting), at, context);
                    self.give_up(side, "given up to make room", at, context);
                    self.direction(side).begin_search(false);
                }
                _ => {
                    self.stop_decrypting(
                        limit,
                        "closed: how it is encrypted could not be waited for".into(),
                        at,
                        context,
                    );
                    self.read_all(at, context);
                }
            }
        }
        self.directions.iter_mut().for_each(|direction| direction.stream.shrink());
    }

    /// Handles bytes that were never captured. The message that the gap cuts can never be
    /// completed, and the first message behind the gap has to be found.
    pub(super) fn lose_bytes(
        &mut self,
        from: Side,
        offset: u64,
        length: u64,
        at: Moment,
        context: &mut Context<'_>,
    ) {
        self.read_without_more(from, at, context);
        if self.direction(from).stage == Stage::Waiting
            && !self.direction(from).stream.waiting().is_empty()
        {
            self.decide_encryption(true, at, context);
            self.read_all(at, context);
        }
        self.try_once_more(from, at, context);
        while self.direction(from).stage == Stage::Lost
            && self.find_next_message(from, true, at, context)
        {
            self.read_all(at, context);
        }
        let direction = self.direction(from);
        let begun = direction.stream.waiting().len();
        let begins = direction.stream.offset();
        let ends = begins.saturating_add(direction.stream.need() as u64);
        // The layout of the cut message may still say where it ends: the next message may begin
        // there.
        let cut =
            direction.stage == Stage::Messages && begun > 0 && direction.stream.need() > begun;
        let kept = direction.predicted.filter(|_| direction.stage == Stage::Lost);
        direction.predicted = if cut { Some(ends) } else { kept }.filter(|p| *p >= offset + length);
        // The sender used keystream for the bytes that are given up, too.
        if direction.stage == Stage::Waiting {
            direction.use_keystream(begun as u64);
        }
        self.give_up(from, "cut off by a gap", at, context);
        let service = self.service_name.clone();
        self.requests.lose_replies(from, at);
        let direction = self.direction(from);
        let follows = direction.skip_keystream(length);
        direction.stream.jump(offset.saturating_add(length));
        let opening = matches!(direction.stage, Stage::Connect | Stage::Handshake);
        if matches!(direction.stage, Stage::Messages | Stage::Lost) {
            direction.begin_search(false);
        }
        context.emit.event(at, Event::gap(&service, from, offset, length));
        if !follows {
            let text =
                "closed: so much is missing that the keystream is not followed past it".to_string();
            self.direction(from).stage = Stage::Encrypted;
            self.report(from, EventKind::Limit { limit: "keystream" }, text, at, context);
        }
        if opening {
            self.stop_decrypting(
                EventKind::NoKey,
                "the handshake was not captured whole".into(),
                at,
                context,
            );
        }
    }

    /// Reads the waiting bytes when none will follow. They may hold a whole message that was not
    /// tried yet.
    pub(super) fn try_once_more(&mut self, side: Side, at: Moment, context: &mut Context<'_>) {
        let direction = self.direction(side);
        if direction.stage == Stage::Messages && direction.stream.is_tried_seldom() {
            direction.stream.set_need(1);
            self.read_all(at, context);
        }
    }

    /// Looks for the next message. Returns whether there is more to do. With `last`, no more bytes
    /// come before a gap or the end of the stream.
    pub(super) fn find_next_message(
        &mut self,
        side: Side,
        last: bool,
        at: Moment,
        context: &mut Context<'_>,
    ) -> bool {
        let Some(service) = self.service else { return false };
        let [client, server] = &mut self.directions;
        let direction = if side == Side::Client { client } else { server };
        // The rest of the message that the gap cut cannot hold the start of another.
        if let Some(ahead) =
            direction.predicted.and_then(|p| p.checked_sub(direction.stream.offset()))
        {
            let inside =
                direction.stream.waiting().len().min(usize::try_from(ahead).unwrap_or(usize::MAX));
            direction.emit_plaintext(side, inside, context.emit);
            direction.stream.pass(inside, context.options.max_undecoded);
        }
        let offset = direction.stream.offset();
        let predicted = direction.predicted.and_then(|p| p.checked_sub(offset)).map(|p| p as usize);
        if direction.stream.waiting().is_empty() {
            return false;
        }
        let starts: Vec<usize> = if direction.pieces_tell {
            direction.stream.piece_starts().collect()
        } else {
            Vec::new()
        };
        let wanted = Search {
            service,
            side,
            bytes: direction.stream.waiting(),
            from: 0,
            predicted,
            starts: &starts,
            asked: &self.requests,
            last_transaction: direction.last_transaction,
            last,
        };
        match search(&wanted, &mut MessageReader::new(context)) {
            SearchResult::Join { at: place, messages, bits } => {
                direction.emit_plaintext(side, place, context.emit);
                direction.stream.pass(place, context.options.max_undecoded);
                direction.stage = Stage::Messages;
                direction.predicted = None;
                // The event has the frame of the message's first byte, although later bytes proved
                // it: so it comes before the message.
                let at = direction.stream.completed(1).unwrap_or(at);
                let passed = direction.stream.take_passed();
                self.requests.lose_replies(side, at);
                let parsing = match messages {
                    1 => "message parses".into(),
                    n => format!("{n} messages parse"),
                };
                let why = format!("the next {parsing} ({bits} bits of evidence)");
                context.emit.event(at, Event::resync(&self.service_name, side, passed, &why));
                true
            }
            SearchResult::Nothing { from } => {
                direction.emit_plaintext(side, from, context.emit);
                direction.stream.pass(from, context.options.max_undecoded);
                direction.wait_for_search(side, context);
                false
            }
        }
    }
}
