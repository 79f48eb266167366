//! Compiles messages, and which of them answer each other.

use std::rc::Rc;

use super::super::error::TableError;
use super::super::program::*;
use super::super::text::*;
use super::Compiler;

impl Compiler<'_> {
    pub(super) fn messages(&mut self) -> Result<(), TableError> {
        self.marks_of_services();
        let mut all = Vec::new();
        for place in self.places() {
            let Some(item) = self.item(place) else { continue };
            let ItemKind::Message(m) = &item.kind else { continue };
            self.file = place.0;
            let id = self.message(&item.name, item.at, item.doc.clone(), m)?;
            self.message_ids.insert(item.name.clone(), id);
            all.push((id, place.0, item));
        }
        for (id, file, item) in &all {
            let ItemKind::Message(m) = &item.kind else { continue };
            self.file = *file;
            let answers = self.messages_named(&m.answers)?;
            if let Some(m) = self.out.messages.get_mut(id.0 as usize) {
                m.answers = answers;
            }
        }
        Ok(())
    }

    /// Puts the entries that a service declares for all its messages into the body of each.
    fn marks_of_services(&mut self) {
        for item in self.files.iter_mut().flat_map(|file| &mut file.items) {
            let ItemKind::Message(MessageAst { service, body: Some(body), .. }) =
                &mut Rc::make_mut(item).kind
            else {
                continue;
            };
            let id = self.service_ids.get(service);
            if let Some(def) = id.and_then(|id| self.out.services.get(id.0 as usize)) {
                (body.positions, body.optional) = (def.positional, def.optional);
                body.beginning = self.beginnings.get(service).cloned();
            }
        }
    }

    fn messages_named(&self, names: &[NameAst]) -> Result<Vec<MessageId>, TableError> {
        let named = |NameAst { name, at }: &NameAst| match self.message_ids.get(name) {
            Some(id) => Ok(*id),
            None => {
                let near =
                    crate::suggest::suggestion(name, self.message_ids.keys().map(String::as_str));
                self.error(*at, format!("there is no message `{name}`{near}"))
            }
        };
        names.iter().map(named).collect()
    }

    fn message(
        &mut self,
        name: &str,
        at: usize,
        doc: String,
        m: &MessageAst,
    ) -> Result<MessageId, TableError> {
        let Some(service) = self.service_ids.get(&m.service).copied() else {
            let near =
                crate::suggest::suggestion(&m.service, self.service_ids.keys().map(String::as_str));
            return self.error(at, format!("there is no service `{}`{near}", m.service));
        };
        let layout = match &m.body {
            None => None,
            Some(body) => {
                let layout = self.new_layout(name);
                self.fill_layout(layout, body)?;
                Some(layout)
            }
        };
        let id = MessageId(self.out.messages.len() as u32);
        let number = self.number(&m.number)?;
        if let Some(body) = &m.body {
            self.examples(body, ExampleOf::Message(id))?;
        }
        let name = self.name(name);
        let direction = m.direction;
        let answers = Vec::new();
        let word = match &m.number {
            NumberAst::Text(word) => Some(word.clone().into()),
            _ => None,
        };
        let def = MessageDef {
            name,
            service,
            direction,
            number,
            word,
            layout,
            tied: false,
            echoes: false,
            shares: None,
            answers,
            expects: m.expects,
            expects_reply: false,
            refusal: if m.refuses { Refusal::Always } else { Refusal::Never },
            step: m.step,
            usually: m.usually,
            doc: doc.into(),
        };
        self.out.messages.push(def);
        for (sender, side) in [Sender::Client, Sender::Server].into_iter().enumerate() {
            if m.direction == Sender::Both || m.direction == side {
                match number {
                    Some(number) => self.place_message(service, sender, number, id, at),
                    None => self.place_word(service, sender, &m.number, id, at),
                }
            }
        }
        Ok(id)
    }

    /// Puts a message into its service's list. It replaces an earlier one with its number.
    fn place_message(
        &mut self,
        service: ServiceId,
        sender: usize,
        number: u64,
        id: MessageId,
        at: usize,
    ) {
        let lists = self.out.services.get_mut(service.0 as usize).map(|s| &mut s.messages);
        let Some(list) = lists.and_then(|lists| lists.get_mut(sender)) else { return };
        let place = *self.message_places.entry((service.0, sender, number)).or_insert(list.len());
        let Some(slot) = list.get_mut(place) else { return list.push((number, id)) };
        let old = std::mem::replace(&mut slot.1, id);
        self.out.replaced.push(ReplacedMessage { old, new: id, file: self.file as u32, at });
    }

    /// Puts a message without a number, or one that a text selects, in its place.
    fn place_word(
        &mut self,
        service: ServiceId,
        sender: usize,
        number: &NumberAst,
        id: MessageId,
        at: usize,
    ) {
        let Some(service) = self.out.services.get_mut(service.0 as usize) else { return };
        match (number, service.framing.word) {
            (NumberAst::Any, _) => {
                service.others.get_mut(sender).into_iter().for_each(|other| *other = Some(id))
            }
            (NumberAst::Text(word), Some((_, any_case))) => {
                let word = if any_case { word.to_ascii_lowercase() } else { word.clone() };
                let words = service.words.get_mut(sender);
                if let Some(old) = words.and_then(|words| words.insert(word.into(), id)) {
                    self.out.replaced.push(ReplacedMessage {
                        old,
                        new: id,
                        file: self.file as u32,
                        at,
                    });
                }
            }
            _ => {}
        }
    }
}
