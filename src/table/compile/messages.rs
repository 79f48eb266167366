//! Services and messages, and which of them answer each other.

use super::super::error::TableError;
use super::super::program::*;
use super::super::text::*;
use super::Compiler;

impl Compiler<'_> {
    pub(super) fn services(&mut self) -> Result<(), TableError> {
        for place in self.places() {
            let Some(item) = self.item(place) else { continue };
            let ItemKind::Service(s) = &item.kind else { continue };
            let (name, doc) = (item.name.clone(), item.doc.clone());
            self.file = place.0;
            let mut header = Vec::new();
            for field in &s.header {
                let ty = self.plain_type(&field.of)?;
                let name = match field.role {
                    HeaderRole::Number => "type",
                    HeaderRole::LengthWhole | HeaderRole::LengthAfter => "length",
                    HeaderRole::Other => &field.name,
                };
                if !matches!(self.out.types.get(ty.0 as usize).map(|t| &t.read), Some(ReadAs::Int { .. })) {
                    return self.error(field.at, "the fields of a message's header are integers");
                }
                header.push((field.role, self.name(name), ty));
            }
            let service = Service {
                name: name.clone(),
                number: s.number,
                positional: s.positional,
                optional: s.optional,
                header,
                messages: Default::default(),
                doc,
            };
            if let Some(id) = self.service_ids.get(&name) {
                if let Some(slot) = self.out.services.get_mut(id.0 as usize) {
                    *slot = service;
                }
                continue;
            }
            self.service_ids.insert(name, ServiceId(self.out.services.len() as u32));
            self.out.services.push(service);
        }
        Ok(())
    }

    pub(super) fn messages(&mut self) -> Result<(), TableError> {
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

    fn messages_named(&self, names: &[NameAst]) -> Result<Vec<MessageId>, TableError> {
        let named = |NameAst { name, at }: &NameAst| match self.message_ids.get(name) {
            Some(id) => Ok(*id),
            None => {
                let near = crate::suggest::suggestion(name, self.message_ids.keys().map(String::as_str));
                self.error(*at, format!("there is no message `{name}`{near}"))
            }
        };
        names.iter().map(named).collect()
    }

    fn message(&mut self, name: &str, at: usize, doc: String, m: &MessageAst) -> Result<MessageId, TableError> {
        let Some(service) = self.service_ids.get(&m.service).copied() else {
            let near = crate::suggest::suggestion(&m.service, self.service_ids.keys().map(String::as_str));
            return self.error(at, format!("there is no service `{}`{near}", m.service));
        };
        let layout = match &m.body {
            None => None,
            Some(body) => {
                let layout = self.new_layout(name);
                let service = self.out.services.get(service.0 as usize);
                let (positions, optional) = service.map_or((false, false), |s| (s.positional, s.optional));
                let body = StructAst { positions, optional, ..body.clone() };
                self.fill_layout(layout, &body)?;
                Some(layout)
            }
        };
        let id = MessageId(self.out.messages.len() as u32);
        let number = self.number(&m.number)?;
        if let Some(body) = &m.body {
            self.examples(body, ExampleOf::Message(id));
        }
        let name = self.name(name);
        let (direction, answers) = (m.direction, Vec::new());
        let def = MessageDef {
            name,
            service,
            direction,
            number,
            layout,
            tied: false,
            answers,
            expects: m.expects,
            expects_reply: false,
            refusal: if m.refuses { Refusal::Always } else { Refusal::Never },
            step: m.step,
            doc,
        };
        self.out.messages.push(def);
        let Some(number) = number else { return Ok(id) };
        for (sender, side) in [Sender::Client, Sender::Server].into_iter().enumerate() {
            if m.direction == Sender::Both || m.direction == side {
                self.place_message(service, sender, number, id, at);
            }
        }
        Ok(id)
    }

    /// Puts a message in its service's list, in the place of an earlier one with its number.
    fn place_message(&mut self, service: ServiceId, sender: usize, number: u64, id: MessageId, at: usize) {
        let lists = self.out.services.get_mut(service.0 as usize).map(|s| &mut s.messages);
        let Some(list) = lists.and_then(|lists| lists.get_mut(sender)) else { return };
        let place = *self.message_places.entry((service.0, sender, number)).or_insert(list.len());
        let Some(slot) = list.get_mut(place) else { return list.push((number, id)) };
        let old = std::mem::replace(&mut slot.1, id);
        self.out.replaced.push(ReplacedMessage { old, new: id, file: self.file as u32, at });
    }
}
