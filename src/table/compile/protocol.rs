//! What the tables declare of the protocol as a whole.

use super::super::error::TableError;
use super::super::program::*;
use super::super::text::*;
use super::Compiler;

/// How many states a connection may have.
const MAX_STATES: usize = 64;

impl Compiler<'_> {
    /// The file that declares the protocol, and the declaration; the last one where there are
    /// several.
    fn declaration_of_protocol(&self) -> Option<(usize, ProtocolAst)> {
        let found =
            self.files.iter().enumerate().rev().find(|(_, file)| file.declared.is_some())?;
        Some((found.0, found.1.declared.clone()?))
    }

    /// Numbers the states, which layouts use.
    pub(super) fn states(&mut self) -> Result<(), TableError> {
        let Some((file, declared)) = self.declaration_of_protocol() else { return Ok(()) };
        self.file = file;
        let name = self.files.get(file).map_or(String::new(), |file| file.protocol.clone());
        let ProtocolAst { doc, start, end, .. } = &declared;
        let kind = "protocol";
        let doc = doc.clone();
        let range = (*start, *end);
        self.out.declarations.push(ListedDeclaration {
            name: name.into(),
            kind,
            doc: doc.into(),
            file: file as u32,
            range,
        });
        for (place, state) in (0..).zip(&declared.states) {
            if self.state_ids.insert(state.name.clone(), place).is_some() {
                return self.error(state.at, format!("there is a state `{}` already", state.name));
            }
            if self.state_ids.len() > MAX_STATES {
                return self
                    .error(state.at, format!("a connection has {MAX_STATES} states at most"));
            }
        }
        Ok(())
    }

    /// The place of a state.
    pub(super) fn state(&self, name: &str, at: usize) -> Result<u32, TableError> {
        match self.state_ids.get(name) {
            Some(place) => Ok(*place),
            None => {
                let near =
                    crate::suggest::suggestion(name, self.state_ids.keys().map(String::as_str));
                let text = format!(
                    "there is no state `{name}`: `protocol NAME {{ state {name} = 0 }}` declares \
                     it{near}"
                );
                self.error(at, text)
            }
        }
    }

    /// The declaration itself, once services are known.
    pub(super) fn protocol(&mut self) -> Result<(), TableError> {
        let Some((file, declared)) = self.declaration_of_protocol() else { return Ok(()) };
        self.file = file;
        if !declared.tcp && !declared.udp {
            return self.error(
                declared.at,
                "a protocol has a transport: `transport tcp`, `transport udp`, or both",
            );
        }
        let mut offers = Vec::new();
        for offer in &declared.services {
            let Some(service) = self.service_ids.get(&offer.name).copied() else {
                let near = crate::suggest::suggestion(
                    &offer.name,
                    self.service_ids.keys().map(String::as_str),
                );
                return self.error(offer.at, format!("there is no service `{}`{near}", offer.name));
            };
            offers.push(Offer { service, when: offer.when.as_ref().map(rule) });
        }
        if self.out.services.is_empty() {
            return self
                .error(declared.at, "a protocol has a service at least: `service NAME { … }`");
        }
        for rule in declared
            .rules
            .iter()
            .chain(declared.services.iter().filter_map(|offer| offer.when.as_ref()))
        {
            if rule.each && !declared.udp {
                return self.error(
                    rule.at,
                    "`each` is about datagrams: the protocol says `transport udp` then",
                );
            }
            let without = rule
                .conditions
                .iter()
                .any(|c| matches!(c, Condition::Port(ports) if ports.is_empty()));
            if without && declared.ports.is_empty() {
                return self.error(
                    rule.at,
                    "`port` alone means the protocol's own ports, and it lists none: `ports 1234`",
                );
            }
        }
        self.out.protocol = Some(ProtocolDef {
            tcp: declared.tcp,
            udp: declared.udp,
            ports: declared.ports,
            rules: declared.rules.iter().map(rule).collect(),
            offers,
            states: declared
                .states
                .into_iter()
                .map(|state| (state.name.into(), state.value))
                .collect(),
        });
        Ok(())
    }
}

fn rule(of: &RuleAst) -> Rule {
    Rule { each: of.each, side: of.side, conditions: of.conditions.clone(), at: of.at }
}
