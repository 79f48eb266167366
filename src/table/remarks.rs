//! Remarks about table files that are valid but probably not as intended: a message without an
//! example, or one that takes another's number.

use std::collections::HashSet;

use super::error::TableError;
use super::overlap::RuleComparison;
use super::program::*;
use super::text::{Condition, HeaderRole, RuleSide};
use super::{TableSource, Tables};
use crate::tree::{TypeRef, mark};

/// The most remarks given, and the most rules compared with each other. Finding the line of each,
/// and comparing each with all, would take long in a file with tens of thousands.
const MOST: usize = 1000;

impl Tables {
    /// Remarks about the sources from the one numbered `from` on, in the order of the sources: each
    /// with its place.
    pub fn remarks(&self, from: usize) -> Vec<TableError> {
        let mut found: Vec<(u32, usize, String)> = Vec::new();
        let tested: HashSet<MessageId> =
            self.examples().iter().filter_map(|example| example.of.message()).collect();
        for declared in
            self.declarations().iter().filter(|d| d.kind == "message" && d.file as usize >= from)
        {
            let id = self.message_named(&declared.name);
            let Some(id) =
                id.filter(|id| self.message(*id).is_some_and(|def| def.layout.is_some()))
            else {
                continue;
            };
            if !tested.contains(&id) {
                let message = format!("`{}` has no example: nothing tests it", declared.name);
                found.push((declared.file, declared.range.0, message));
            }
        }
        for taken in self.replaced().iter().filter(|taken| taken.file as usize >= from) {
            let name = |id| self.message(id).map_or("", |def| self.name(def.name));
            let old = name(taken.old);
            let new = name(taken.new);
            if old != new {
                let message = format!(
                    "`{new}` takes the number or text of `{old}`, which cannot be recognised any \
                     more"
                );
                found.push((taken.file, taken.at, message));
            }
        }
        found.extend(self.unmarked_text(from));
        found.extend(self.unreachable(from));
        found.extend(self.idle_rules(from));
        found.sort();
        found.dedup();
        let more = found.len().saturating_sub(MOST);
        if let Some((.., message)) = found.get_mut(MOST).filter(|_| more > 1) {
            *message = format!("{more} more remarks from here on");
        }
        found.into_iter().take(MOST + 1).filter_map(|remark| self.placed(remark)).collect()
    }

    fn placed(&self, (file, at, message): (u32, usize, String)) -> Option<TableError> {
        let TableSource { name, text } = self.sources().get(file as usize)?;
        Some(TableError::at(name, text, at, message))
    }

    /// The remark that no text of the sources from the one numbered `from` on will be hidden, with
    /// the place of the first.
    pub fn unmarked(&self, from: usize) -> Option<TableError> {
        self.placed(self.unmarked_text(from)?)
    }

    /// The first text of files in which no field is marked as a secret or as telling about a
    /// person, with its file and place.
    fn unmarked_text(&self, from: usize) -> Option<(u32, usize, String)> {
        let mut text = None;
        for declared in self.declarations().iter().filter(|d| d.file as usize >= from) {
            for def in self.field_types(&declared.name, declared.kind) {
                let facts = def.facts.as_deref();
                if def.marks & mark::SECRET != 0 || facts.is_some_and(|f| f.person.is_some()) {
                    return None;
                }
                if text.is_none() && def.is_text() {
                    text = Some((declared.file, declared.range.0));
                }
            }
        }
        let (file, at) = text?;
        let message = "no text is marked `person` or `secret`, so `--pseudonyms` and `--redact` \
                       hide none of them";
        Some((file, at, message.to_string()))
    }

    /// The types of a message's or structure's own fields.
    fn field_types(&self, name: &str, kind: &str) -> impl Iterator<Item = &TypeDef> {
        let layout = match kind {
            "message" => self.message_named(name).and_then(|id| self.message(id)?.layout),
            _ => self.type_named(name).and_then(|ty| match self.type_def(ty)?.read {
                ReadAs::Layout { layout, .. } => Some(layout),
                _ => None,
            }),
        };
        let fields = layout.into_iter().flat_map(|layout| self.fields_of(layout));
        fields.filter_map(|(_, ty)| self.type_def(ty))
    }

    /// Messages and services of a declared protocol that no bytes can give: each with its file and
    /// place.
    fn unreachable(&self, from: usize) -> Vec<(u32, usize, String)> {
        let Some(protocol) = self.declared() else { return Vec::new() };
        let mut found = Vec::new();
        let always = protocol.offers.iter().position(|offer| offer.when.is_none());
        for d in self.declarations().iter().filter(|d| d.file as usize >= from) {
            let mut say = |message: String| found.push((d.file, d.range.0, message));
            if d.kind == "service" {
                let Some(id) = self.service_named(&d.name) else { continue };
                let offered = protocol.offers.iter().position(|offer| offer.service == id);
                match (offered, always) {
                    (None, _) if !protocol.offers.is_empty() || id.0 > 0 => {
                        say(format!(
                            "no connection offers the service `{}`: `service {}` in the protocol \
                             does",
                            d.name, d.name
                        ));
                    }
                    (Some(own), Some(before)) if own > before => {
                        say(format!(
                            "no connection offers the service `{}`: one before it is always taken",
                            d.name
                        ));
                    }
                    _ => {}
                }
            }
            let def = self
                .message_named(&d.name)
                .filter(|_| d.kind == "message")
                .and_then(|id| self.message(id));
            let Some((def, service)) = def.and_then(|def| Some((def, self.service(def.service)?)))
            else {
                continue;
            };
            if let Some(why) = self.never_selected(def, service) {
                say(format!("no bytes can give `{}`: {why}", d.name));
            }
        }
        found
    }

    /// Rules of the protocol that decide nothing, because an earlier one holds wherever they do.
    fn idle_rules(&self, from: usize) -> Vec<(u32, usize, String)> {
        let Some((file, protocol)) = self.declared_in(from) else { return Vec::new() };
        let mut found = Vec::new();
        let mut comparison = RuleComparison::new();
        for (i, rule) in protocol.rules.iter().enumerate().take(MOST) {
            let before = protocol.rules.get(..i).unwrap_or(&[]);
            if before.iter().any(|wider| comparison.implies(rule, protocol, wider, protocol)) {
                let message =
                    "this rule decides nothing: one before it holds wherever it does".to_string();
                found.push((file, rule.at, message));
            }
        }
        for (i, offer) in protocol.offers.iter().enumerate().take(MOST) {
            let Some(rule) = &offer.when else { continue };
            let before = protocol
                .offers
                .get(..i)
                .unwrap_or(&[])
                .iter()
                .filter(|wider| wider.service != offer.service);
            let taken = before.filter(|wider| {
                wider
                    .when
                    .as_ref()
                    .is_some_and(|wider| comparison.implies(rule, protocol, wider, protocol))
            });
            for service in taken.filter_map(|wider| self.service(wider.service)) {
                let message = format!(
                    "this service is never taken: the rule of `{}` holds wherever this one does",
                    service.name
                );
                found.push((file, rule.at, message));
            }
        }
        found
    }

    /// The declaration of the protocol with the number of its file, where that is `from` or a later
    /// one.
    fn declared_in(&self, from: usize) -> Option<(u32, &ProtocolDef)> {
        let mut declarations =
            self.declarations().iter().filter(|d| d.kind == "protocol" && d.file as usize >= from);
        Some((declarations.next_back()?.file, self.declared()?))
    }

    /// Remarks about rules of this protocol that never decide, because an earlier protocol takes
    /// the same connections first.
    pub fn taken_before(&self, earlier: &Tables) -> Vec<TableError> {
        let (Some((file, own)), Some(other)) = (self.declared_in(0), earlier.declared()) else {
            return Vec::new();
        };
        if !(own.tcp && other.tcp || own.udp && other.udp) {
            return Vec::new();
        }
        let by_port = by_ports(own);
        let other_by_port = by_ports(other);
        let rules = if own.rules.is_empty() { &by_port } else { &own.rules };
        let wider = if other.rules.is_empty() { &other_by_port } else { &other.rules };
        let mut comparison = RuleComparison::new();
        let idle = rules.iter().take(MOST).filter(|rule| {
            wider.iter().take(MOST).any(|wider| comparison.implies(rule, own, wider, other))
        });
        let Some(TableSource { name, text }) = self.sources().get(file as usize) else {
            return Vec::new();
        };
        let name_of = earlier.protocol();
        let say = |at: usize| {
            let message = format!(
                "`{name_of}` is asked first, and takes every connection that this rule of `{}` \
                 recognises",
                self.protocol()
            );
            TableError::at(name, text, at, message)
        };
        idle.map(|rule| say(rule.at)).collect()
    }

    /// Why no bytes select a message.
    fn never_selected(&self, def: &MessageDef, service: &Service) -> Option<String> {
        let number = def.number?;
        let by_header = service.header.iter().any(|(role, ..)| *role == HeaderRole::Number);
        let name = &service.name;
        if service.framing.word.is_some() {
            return Some(format!(
                "its number is {number}, and a text selects the messages of `{name}`"
            ));
        }
        let selects = self.selected_bits(service)?;
        match selects {
            None if number != 0 && !by_header => Some(format!(
                "nothing selects the messages of `{name}` (`selects FIELD`), so only number 0 can \
                 come"
            )),
            Some(bits) if bits < 64 && number >> bits != 0 => Some(format!(
                "its number is {number}, and what selects the messages of `{name}` has {bits} bits"
            )),
            _ => None,
        }
    }

    /// How many bits the field has that selects the messages of a service. `Some(None)` if nothing
    /// selects, `None` if an expression does.
    fn selected_bits(&self, service: &Service) -> Option<Option<u32>> {
        let Some(layout) = service.framing.begins.and_then(|id| self.layout(id)) else {
            return Some(None);
        };
        let steps = self.steps().get(layout.start as usize..).unwrap_or(&[]);
        let number = steps.iter().find_map(|step| match step {
            LayoutStep::Chosen { number, .. } => Some(*number),
            _ => None,
        })?;
        let Some(number) = number else { return Some(None) };
        match self.ex(number)? {
            Ex::Next(_) => Some(Some(8)),
            Ex::Slot { slot: wanted, .. } => self.widest(steps, *wanted),
            _ => None,
        }
    }

    /// How many bits a field has, in the branch where it has most. `None` if its type does not
    /// tell.
    fn widest(&self, steps: &[LayoutStep], wanted: u16) -> Option<Option<u32>> {
        let own = steps.iter().take_while(|step| !matches!(step, LayoutStep::End));
        let fields = own.filter_map(|step| match step {
            LayoutStep::Field { slot, ty, .. } if *slot == wanted => Some(self.bits_of(*ty)),
            _ => None,
        });
        let bits: Vec<u32> = fields.collect::<Option<_>>()?;
        bits.into_iter().max().map(Some)
    }

    /// How many bits a number has, where its type says so.
    fn bits_of(&self, ty: TypeRef) -> Option<u32> {
        let def = self.type_def(ty)?;
        match &def.read {
            ReadAs::Int { size, .. } => Some(u32::from(*size) * 8),
            ReadAs::Native { args, .. } if def.text.starts_with("bits") => {
                match self.ex(*args.first()?)? {
                    Ex::Const(bits) => u32::try_from(*bits).ok(),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// The implied rule of a protocol without rules: the server has one of its ports. `None` if it
/// lists no port.
fn by_ports(of: &ProtocolDef) -> Vec<Rule> {
    let port = Rule {
        each: false,
        side: RuleSide::Either,
        conditions: vec![Condition::Port(Vec::new())],
        at: 0,
    };
    if of.ports.is_empty() { Vec::new() } else { vec![port] }
}
