//! Splits a stream into messages, and finds the next message again where framing was lost. MOUL's
//! messages carry no length: the tables say where each ends.

use super::half::Stage;
use super::search::{MessageReader, Search, SearchResult, search};
use super::session::{MoulSession, Whole, message_name};
use crate::capture::Moment;
use crate::digits::counted;
use crate::session::{Context, Event, EventKind, Side};
use crate::table::Outcome;

/// The first bytes of the gatekeeper's AuthSrvIpAddressRequest, and its length from a client.
const REQUEST: [u8; 2] = [2, 0];
const REQUEST_LENGTH: usize = 6;
/// The numbers of all messages from a client to the gatekeeper are below this.
const GATEKEEPER_NUMBERS: u8 = 3;

impl MoulSession {
    pub(super) fn message(&mut self, side: Side, at: Moment, context: &mut Context<'_>) -> bool {
        let Some(service) = self.service else { return false };
        let Some(sight) = self.sight(side) else {
            let half = self.half(side);
            half.stream.set_need(half.stream.waiting().len() + 1);
            return false;
        };
        let half = side.of(&mut self.halves);
        let bytes = half.stream.waiting().get(..sight).unwrap_or(&[]);
        let Context { tables, evaluator, tree, .. } = context;
        match evaluator.message(tables, service, side.index(), bytes, tree) {
            Outcome::Message(id, length) => {
                self.latin.note_once(side, context.tree);
                let number = context.tables.message(id).and_then(|m| m.number);
                let name = message_name(id, context.tables);
                self.emit(side, Whole { name, number, id: Some(id), length }, at, context);
                true
            }
            Outcome::Need(n) if n <= context.options.max_message => {
                half.stream.wait_for(n);
                false
            }
            Outcome::Need(n) => {
                let text =
                    format!("a message of at least {n} bytes is not put together (--max-message)");
                self.lose_by(side, EventKind::Limit { limit: "max-message" }, text, at, context)
            }
            Outcome::NoLayout(id, Some(length)) if length <= context.options.max_message => {
                if bytes.len() < length {
                    half.stream.set_need(length);
                    return false;
                }
                let number = context.tables.message(id).and_then(|m| m.number);
                let name = message_name(id, context.tables);
                self.emit(side, Whole { name, number, id: Some(id), length }, at, context);
                true
            }
            Outcome::NoLayout(id, _) => {
                let name = message_name(id, context.tables);
                self.lose(
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
                    half.stream.set_need(length);
                    return false;
                }
                half.stream.pass(length, context.options.max_undecoded);
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
                self.lose(side, format!("no message has the number {number}"), at, context)
            }
            Outcome::Malformed(id) => {
                let name = message_name(id, context.tables);
                self.lose(
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
    fn sight(&self, side: Side) -> Option<usize> {
        let [client, _] = &self.halves;
        let bytes = client.stream.waiting();
        if side != Side::Client
            || self.service_name != "gatekeeper"
            || bytes.first_chunk() != Some(&REQUEST)
        {
            let [_, server] = &self.halves;
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
    fn lose(&mut self, side: Side, text: String, at: Moment, context: &mut Context<'_>) -> bool {
        self.lose_by(side, EventKind::Remark, text, at, context)
    }

    fn lose_by(
        &mut self,
        side: Side,
        kind: EventKind,
        text: String,
        at: Moment,
        context: &mut Context<'_>,
    ) -> bool {
        let half = self.half(side);
        half.lose(true);
        half.predicted = None;
        half.follow(side, 1, context.emit);
        half.stream.pass(1, context.options.max_undecoded);
        self.requests.lose_replies(side, at);
        self.say(side, kind, text, at, context);
        true
    }

    /// Gives up the waiting bytes, because all streams together hold too many. Remembers where the
    /// message that they begin would end, so that the next one is found there.
    pub(super) fn make_room(&mut self, at: Moment, context: &mut Context<'_>) {
        self.requests.forget();
        self.settle(true, at, context);
        if self.halves.iter().any(|h| h.stage == Stage::Joined) {
            self.rejoin(true, at, context);
        }
        self.pump(at, context);
        for side in [Side::Client, Side::Server] {
            let half = self.half(side);
            let (waiting, ends) = (
                half.stream.waiting().len(),
                half.stream.offset().saturating_add(half.stream.need() as u64),
            );
            if waiting == 0 {
                continue;
            }
            let limit = EventKind::Limit { limit: "max-total" };
            match half.stage {
                Stage::Messages | Stage::Lost => {
                    if half.stage == Stage::Messages {
                        half.predicted = (half.stream.need() > waiting).then_some(ends);
                    }
                    self.say(side, limit, Event::given_up_text(waiting), at, context);
                    self.give_up(side, "given up to make room", at, context);
                    self.half(side).lose(false);
                }
                _ => {
                    self.shut(
                        limit,
                        "closed: how it is encrypted could not be waited for".into(),
                        at,
                        context,
                    );
                    self.pump(at, context);
                }
            }
        }
        self.halves.iter_mut().for_each(|half| half.stream.shrink());
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
        self.no_more(from, at, context);
        if self.half(from).stage == Stage::Waiting && !self.half(from).stream.waiting().is_empty() {
            self.settle(true, at, context);
            self.pump(at, context);
        }
        self.try_once_more(from, at, context);
        while self.half(from).stage == Stage::Lost && self.find_way_back(from, true, at, context) {
            self.pump(at, context);
        }
        let half = self.half(from);
        let begun = half.stream.waiting().len();
        let begins = half.stream.offset();
        let ends = begins.saturating_add(half.stream.need() as u64);
        // The layout of the cut message may still say where it ends: the next message may begin
        // there.
        let cut = half.stage == Stage::Messages && begun > 0 && half.stream.need() > begun;
        let kept = half.predicted.filter(|_| half.stage == Stage::Lost);
        half.predicted = if cut { Some(ends) } else { kept }.filter(|p| *p >= offset + length);
        // The sender used keystream for the bytes that are given up, too.
        if half.stage == Stage::Waiting {
            half.use_keystream(begun as u64);
        }
        self.give_up(from, "cut off by a gap", at, context);
        let service = self.service_name.clone();
        self.requests.lose_replies(from, at);
        let half = self.half(from);
        let follows = half.skip_keystream(length);
        half.stream.jump(offset.saturating_add(length));
        let opening = matches!(half.stage, Stage::Connect | Stage::Handshake);
        if matches!(half.stage, Stage::Messages | Stage::Lost) {
            half.lose(false);
        }
        context.emit.event(at, Event::gap(&service, from, offset, length));
        if !follows {
            let text =
                "closed: so much is missing that the keystream is not followed past it".to_string();
            self.half(from).stage = Stage::Closed;
            self.say(from, EventKind::Limit { limit: "keystream" }, text, at, context);
        }
        if opening {
            self.shut(EventKind::NoKey, "the handshake was not captured whole".into(), at, context);
        }
    }

    /// Reads the waiting bytes when none will follow. They may hold a whole message that was not
    /// tried yet.
    pub(super) fn try_once_more(&mut self, side: Side, at: Moment, context: &mut Context<'_>) {
        let half = self.half(side);
        if half.stage == Stage::Messages && half.stream.is_tried_seldom() {
            half.stream.set_need(1);
            self.pump(at, context);
        }
    }

    /// Looks for the next message. Returns whether there is more to do. With `last`, no more bytes
    /// come before a gap or the end of the stream.
    pub(super) fn find_way_back(
        &mut self,
        side: Side,
        last: bool,
        at: Moment,
        context: &mut Context<'_>,
    ) -> bool {
        let Some(service) = self.service else { return false };
        let [client, server] = &mut self.halves;
        let half = if side == Side::Client { client } else { server };
        // The rest of the message that the gap cut cannot hold the start of another.
        if let Some(ahead) = half.predicted.and_then(|p| p.checked_sub(half.stream.offset())) {
            let inside =
                half.stream.waiting().len().min(usize::try_from(ahead).unwrap_or(usize::MAX));
            half.follow(side, inside, context.emit);
            half.stream.pass(inside, context.options.max_undecoded);
        }
        let offset = half.stream.offset();
        let predicted = half.predicted.and_then(|p| p.checked_sub(offset)).map(|p| p as usize);
        if half.stream.waiting().is_empty() {
            return false;
        }
        let starts: Vec<usize> =
            if half.pieces_tell { half.stream.piece_starts().collect() } else { Vec::new() };
        let wanted = Search {
            service,
            side,
            bytes: half.stream.waiting(),
            from: 0,
            predicted,
            starts: &starts,
            asked: &self.requests,
            last_transaction: half.last_transaction,
            last,
        };
        match search(&wanted, &mut MessageReader::of(context)) {
            SearchResult::Join { at: place, messages, bits } => {
                half.follow(side, place, context.emit);
                half.stream.pass(place, context.options.max_undecoded);
                half.stage = Stage::Messages;
                half.predicted = None;
                // The event has the frame of the message's first byte, although later bytes proved
                // it: so it comes before the message.
                let at = half.stream.completed(1).unwrap_or(at);
                let passed = half.stream.take_passed();
                self.requests.lose_replies(side, at);
                let text = format!(
                    "{} passed over; the next {} ({bits} bits of evidence)",
                    counted(passed.length, "byte"),
                    match messages {
                        1 => "message parses".into(),
                        n => format!("{n} messages parse"),
                    }
                );
                let kind = EventKind::Resync { passed_over: passed.length };
                let event = Event::new(kind, &self.service_name, side, text);
                context
                    .emit
                    .event(at, event.about(passed.offset + passed.length, 0).with_passed(passed));
                true
            }
            SearchResult::Nothing { from } => {
                half.follow(side, from, context.emit);
                half.stream.pass(from, context.options.max_undecoded);
                half.wait_for_search(side, context);
                false
            }
        }
    }
}
