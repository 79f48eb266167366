//! Reads messages: first the header, which tells the message and its length, then the layout.

use super::super::cursor::Cursor;
use super::super::program::*;
use super::super::text::HeaderRole;
use super::{Field, MessageStart, Outcome, Run, Slots, Stop};
use crate::tree::{Buffer, Node, Sym, TypeRef, mark};

/// The content of a message's header.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Chosen {
    /// The number that selects the message.
    pub(super) number: Option<u64>,
    /// How many bytes the message has. `Some(None)` if it states more than a message can have.
    pub(super) length: Option<Option<usize>>,
}

/// What a header's fields of a fixed layout say.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HeaderValues {
    pub(super) number: u64,
    /// How many bytes the message has, the header included; more than there can be where that does
    /// not fit.
    pub(super) whole: Option<usize>,
}

impl HeaderValues {
    /// Takes over the value of a field that ends before byte `end`.
    #[inline]
    pub(super) fn take(&mut self, role: HeaderRole, value: u64, end: usize) {
        let length = |bytes: u64| Some(usize::try_from(bytes).unwrap_or(usize::MAX));
        match role {
            HeaderRole::Number => self.number = value,
            HeaderRole::LengthWhole => self.whole = length(value),
            HeaderRole::LengthAfter => self.whole = length(value.saturating_add(end as u64)),
            HeaderRole::Other => {}
        }
    }
}

impl Run<'_> {
    /// Reads a message.
    pub(super) fn message(&mut self, message: MessageStart<'_>) -> Outcome {
        let MessageStart { service, sender, bytes, behind } = message;
        let tables = self.tables;
        let Some(service) = tables.service(service) else {
            return Outcome::Unknown(0, None);
        };
        let mut cursor = Cursor::new(bytes, Buffer::CAPTURED);
        let root = self.open(&cursor, Sym::ELEMENT, TypeRef(0), 0);
        self.tree.set_telling(true);
        if service.framing.begins.is_some() || service.header.is_empty() {
            return self.chosen_message(service, sender, behind, &mut cursor);
        }
        let mut header = HeaderValues::default();
        for (role, name, ty) in &service.header {
            let field = Field { name: *name, ty: *ty, marks: mark::SPAN };
            let value = match self.number(&mut cursor, field, Slots::default()) {
                Ok(value) => value,
                Err(Stop::Short(bits)) => return Outcome::need(bits),
                Err(_) => return Outcome::Unknown(0, None),
            };
            header.take(*role, value, cursor.pos() / 8);
        }
        let HeaderValues { number, whole } = header;
        let Some(id) = tables.message_id(service, sender, number) else {
            return Outcome::Unknown(number, whole);
        };
        let Some(def) = tables.message(id) else {
            return Outcome::Unknown(number, whole);
        };
        self.tree.amend(root, |node| node.name = def.name);
        let Some(layout) = def.layout.and_then(|l| tables.layout(l)) else {
            if let Some(rest) = whole.and_then(|w| w.checked_sub(cursor.pos() / 8))
                && cursor.narrow(rest).is_ok()
            {
                self.say_stop(Some(Stop::Unknown), root, &cursor);
                self.undecoded(&mut cursor);
                self.tree.close(root, cursor.pos());
            }
            return Outcome::NoLayout(id, whole);
        };
        self.tree.amend(root, |node| node.ty = layout.ty);
        match whole.or(behind.map(|_| bytes.len())) {
            None => self.stream_message(id, layout, root, &mut cursor),
            Some(whole) => self.ended_message(id, layout, whole, behind.unwrap_or(0), &mut cursor),
        }
    }

    /// Reads a message of `whole` bytes, of which the last `behind` only mark its end.
    fn ended_message(
        &mut self,
        id: MessageId,
        layout: &Layout,
        whole: usize,
        behind: usize,
        cursor: &mut Cursor<'_>,
    ) -> Outcome {
        let root = 0;
        let limit = cursor.limit();
        let outcome = self.framed_message(id, layout, root, whole.saturating_sub(behind), cursor);
        if behind == 0 || !matches!(outcome, Outcome::Message(..)) {
            return outcome;
        }
        cursor.restore(limit);
        self.ending(behind, cursor);
        self.tree.close(root, cursor.pos());
        Outcome::Message(id, cursor.pos() / 8)
    }

    fn stream_message(
        &mut self,
        id: MessageId,
        layout: &Layout,
        root: u32,
        cursor: &mut Cursor<'_>,
    ) -> Outcome {
        match self.steps(layout, &[], root, cursor) {
            Ok(()) => {
                self.tree.close(root, cursor.pos());
                Outcome::Message(id, cursor.pos().div_ceil(8))
            }
            Err(Stop::Short(bits)) => Outcome::need(bits),
            Err(_) => Outcome::Malformed(id),
        }
    }

    fn framed_message(
        &mut self,
        id: MessageId,
        layout: &Layout,
        root: u32,
        whole: usize,
        cursor: &mut Cursor<'_>,
    ) -> Outcome {
        let header = cursor.pos() / 8;
        let Some(rest) = whole.checked_sub(header) else {
            return Outcome::Malformed(id);
        };
        if cursor.narrow(rest).is_err() {
            return Outcome::Need(whole);
        }
        self.state.regions += 1;
        let result = self.steps(layout, &[], root, cursor);
        self.say_stop(result.err(), root, cursor);
        self.undecoded(cursor);
        self.tree.close(root, cursor.pos());
        Outcome::Message(id, whole)
    }

    /// Reads a message of a service whose tables declare the beginning and the end of messages.
    fn chosen_message(
        &mut self,
        service: &Service,
        sender: usize,
        behind: Option<usize>,
        cursor: &mut Cursor<'_>,
    ) -> Outcome {
        let tables = self.tables;
        let root = 0;
        let start = *cursor;
        let all = cursor.left();
        // If the message's end is known, no more bytes can come.
        self.state.regions += u32::from(behind.is_some());
        let found = self.choose(service, sender, cursor);
        self.state.regions -= u32::from(behind.is_some());
        let (chosen, id) = match found {
            Ok(found) => found,
            Err(Stop::Short(bits)) => return Outcome::need(bits),
            Err(_) => return Outcome::Unknown(0, None),
        };
        let read = cursor.pos() / 8;
        *cursor = start;
        let number = chosen.number.unwrap_or(0);
        let whole = match chosen.length {
            Some(None) => return id.map_or(Outcome::Unknown(number, None), Outcome::Malformed),
            Some(length) => length,
            None => behind.map(|_| all),
        };
        let max = service.framing.max;
        let short = |whole: usize| whole == 0 || whole < read;
        let long = |whole: usize| max != 0 && whole as u64 > max;
        let Some(id) = id else {
            return Outcome::Unknown(number, whole.filter(|whole| !short(*whole) && !long(*whole)));
        };
        match whole {
            Some(whole) if short(whole) => return Outcome::Malformed(id),
            Some(whole) if long(whole) => return Outcome::TooLong(id, whole, max),
            _ => {}
        }
        let Some(def) = tables.message(id) else {
            return Outcome::Unknown(number, whole);
        };
        self.tree.amend(root, |node| node.name = def.name);
        let Some(layout) = def.layout.and_then(|l| tables.layout(l)) else {
            return Outcome::NoLayout(id, whole);
        };
        self.tree.amend(root, |node| node.ty = layout.ty);
        let Some(whole) = whole else { return self.stream_message(id, layout, root, cursor) };
        self.ended_message(id, layout, whole, behind.unwrap_or(0), cursor)
    }

    /// Reads the header for the message's number and length, and removes its nodes again. The
    /// cursor stays behind the header.
    fn choose(
        &mut self,
        service: &Service,
        sender: usize,
        cursor: &mut Cursor<'_>,
    ) -> Result<(Chosen, Option<MessageId>), Stop> {
        let other = service.others.get(sender).copied().flatten();
        let Some(layout) = service.framing.begins.and_then(|l| self.tables.layout(l)) else {
            return Ok((Chosen::default(), self.tables.message_id(service, sender, 0).or(other)));
        };
        let before = self.tree.checkpoint();
        self.state.chosen = Chosen::default();
        self.steps(layout, &[], 0, cursor)?;
        let chosen = self.state.chosen;
        let found = match (service.framing.word, chosen.number) {
            (Some(_), _) => self.by_word(service, sender, cursor)?,
            (None, Some(number)) => self.tables.message_id(service, sender, number),
            (None, None) => None,
        };
        self.tree.back_to(before);
        self.state.set_states.clear();
        Ok((chosen, found.or(other)))
    }

    /// The message that the text of a field selects.
    fn by_word(
        &mut self,
        service: &Service,
        sender: usize,
        cursor: &Cursor<'_>,
    ) -> Result<Option<MessageId>, Stop> {
        let Some((field, any_case)) = service.framing.word else { return Ok(None) };
        let node = self.tree.nodes().iter().skip(1).find(|node| node.name == field);
        let Some((at, length)) = node.map(Node::content) else { return Ok(None) };
        let word = cursor.behind(at, length);
        let words = service.words.get(sender);
        Ok(words.and_then(|words| {
            if any_case {
                words.get(&word.to_ascii_lowercase()).copied()
            } else {
                words.get(word).copied()
            }
        }))
    }
}
