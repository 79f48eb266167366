//! Compiles services: their headers, the beginning of their messages, and their framing.

use std::rc::Rc;

use super::super::error::TableError;
use super::super::program::*;
use super::super::text::*;
use super::Compiler;
use super::scope::{FieldScope, field_names, refs_of_expr};
use crate::maps::{SeededMap, SeededSet};

impl Compiler<'_> {
    pub(super) fn services(&mut self) -> Result<(), TableError> {
        let mut places = SeededMap::default();
        for place in self.places() {
            let Some(item) = self.item(place) else { continue };
            let ItemKind::Service(s) = &item.kind else { continue };
            let name = item.name.clone();
            self.file = place.0;
            places.insert(name.clone(), (place.0, item.at));
            if !s.ports.is_empty() && self.files.iter().any(|file| file.declared.is_some()) {
                let text = format!(
                    "`protocol NAME {{ service {name} when … }}` says when a connection offers it"
                );
                return self.error(item.at, text);
            }
            let (framing, beginning) = self.framing(item.at, &name, s)?;
            let service = Service {
                name: name.clone().into(),
                number: s.number,
                ports: s.ports.clone(),
                positional: s.positional,
                optional: s.optional,
                header: self.header(s)?,
                messages: Default::default(),
                framing,
                others: [None; 2],
                words: Default::default(),
            };
            if let Some(beginning) = beginning {
                self.beginnings.insert(name.clone(), beginning);
            }
            if let Some(id) = self.service_ids.get(&name) {
                if let Some(slot) = self.out.services.get_mut(id.0 as usize) {
                    *slot = service;
                }
                continue;
            }
            self.service_ids.insert(name, ServiceId(self.out.services.len() as u32));
            self.out.services.push(service);
        }
        self.one_service_a_port(&places)
    }

    /// Makes sure that a port belongs to one service only. Where services are declared again, the
    /// last declarations count.
    fn one_service_a_port(
        &mut self,
        places: &SeededMap<String, (usize, usize)>,
    ) -> Result<(), TableError> {
        let mut taken: SeededMap<u16, &str> = SeededMap::default();
        for service in &self.out.services {
            for port in &service.ports {
                let Some(other) =
                    taken.insert(*port, &service.name).filter(|other| service.name != *other)
                else {
                    continue;
                };
                let (file, at) = places.get(&*service.name).copied().unwrap_or_default();
                let text = format!("port {port} belongs to the service `{other}` already");
                self.file = file;
                return self.error(at, text);
            }
        }
        Ok(())
    }

    fn header(
        &mut self,
        s: &ServiceAst,
    ) -> Result<Vec<(HeaderRole, crate::tree::Sym, crate::tree::TypeRef)>, TableError> {
        let mut header = Vec::new();
        for field in &s.header {
            let ty = self.plain_type(&field.of)?;
            let name = match field.role {
                HeaderRole::Number => "type",
                HeaderRole::LengthWhole | HeaderRole::LengthAfter => "length",
                HeaderRole::Other => &field.name,
            };
            if !matches!(
                self.out.types.get(ty.0 as usize).map(|t| &t.read),
                Some(ReadAs::Int { .. })
            ) {
                return self.error(field.at, "the fields of a message's header are integers");
            }
            header.push((field.role, self.name(name), ty));
        }
        Ok(header)
    }

    /// How the messages of a service follow each other, and what they begin with.
    fn framing(
        &mut self,
        at: usize,
        name: &str,
        s: &ServiceAst,
    ) -> Result<(ServiceFraming, Option<Rc<BeginningAst>>), TableError> {
        let FramingAst { begins, selects, any_case, length, max, frame, resync } = &s.framing;
        if (begins.is_some() || selects.is_some() || length.is_some()) && !s.header.is_empty() {
            return self.error(
                at,
                "a service has a header of its own, or says what its messages begin with \
                 (`begins`, `selects`, `length`): not both",
            );
        }
        let mut framing = ServiceFraming {
            frame: frame.clone(),
            max: max.unwrap_or(0),
            resync: resync.clone(),
            ..ServiceFraming::default()
        };
        if begins.is_none() && selects.is_none() && length.is_none() {
            return Ok((framing, None));
        }
        let body = match begins {
            Some(parent) => self.beginning(&parent.name, parent.at)?,
            None => StructAst::default(),
        };
        if let Some(ExprAst { kind: ExprKind::Name(field), .. }) = selects
            && text_field(&body.entries, field)
        {
            framing.word = Some((self.name(field), *any_case));
        } else if *any_case {
            return self.error(at, "`anycase` is for a text that selects");
        }
        let number = if framing.word.is_some() { None } else { selects.clone() };
        let fields = field_names(&body.entries);
        let beginning =
            Rc::new(BeginningAst { structure: begins.clone(), number, length: length.clone() });
        let chooser = self.chooser(name, &beginning);
        framing.begins = Some(chooser.map_err(|error| with_near(error, &fields))?);
        Ok((framing, Some(beginning)))
    }

    /// The structure that messages begin with.
    fn beginning(&self, name: &str, at: usize) -> Result<StructAst, TableError> {
        match self.item_named(name).map(|(item, _)| item.kind.clone()) {
            Some(ItemKind::Struct(body))
                if body.params.is_empty() && !body.positions && body.family.is_none() =>
            {
                Ok(body)
            }
            Some(_) => self.error(at, format!("`{name}` is no structure without parameters")),
            None => {
                let near =
                    crate::suggest::suggestion(name, self.layout_ids.keys().map(String::as_str));
                self.error(at, format!("there is no structure `{name}`{near}"))
            }
        }
    }

    /// The layout that reads the beginning of a message, and then tells which message it is and how
    /// long.
    fn chooser(&mut self, service: &str, beginning: &BeginningAst) -> Result<LayoutId, TableError> {
        let id = self.new_layout("");
        let parent = beginning.structure.clone();
        let body = StructAst { parent, ..StructAst::default() };
        let mut scope = FieldScope::default();
        beginning.refs(&mut scope.wanted);
        let mut ops = Vec::new();
        self.chain_entries(&body, &mut scope, &mut ops)?;
        ops.push(self.chosen(beginning, &scope)?);
        self.store(id, ops, &scope, 0)?;
        let text = format!("what messages of {service} begin with");
        if let Some(ty) = self.out.layouts.get(id.0 as usize).map(|l| l.ty)
            && let Some(def) = self.out.types.get_mut(ty.0 as usize)
        {
            def.text = text.into();
        }
        Ok(id)
    }

    /// The step behind the beginning of a message.
    pub(super) fn chosen(
        &mut self,
        beginning: &BeginningAst,
        scope: &FieldScope,
    ) -> Result<LayoutStep, TableError> {
        let mut compile = |e: &Option<ExprAst>| e.as_ref().map(|e| self.expr(e, scope, None));
        let number = compile(&beginning.number).transpose()?;
        let length = compile(&beginning.length).transpose()?;
        Ok(LayoutStep::Chosen { number, length })
    }
}

impl BeginningAst {
    /// Adds the names of the fields that it uses.
    pub(super) fn refs(&self, wanted: &mut SeededSet<String>) {
        self.number.iter().chain(&self.length).for_each(|e| refs_of_expr(e, wanted));
    }
}

/// Whether some fields include a text of this name, choices included.
fn text_field(entries: &[Entry], field: &str) -> bool {
    entries.iter().any(|entry| match entry {
        Entry::Field(found) if found.name == field => match &found.of.kind {
            TypeKind::Many { of, .. } => {
                matches!(&of.kind, TypeKind::Named { name, .. } if matches!(name.as_str(), "utf8" | "latin1" | "bytes"))
            }
            _ => false,
        },
        Entry::If { arms, otherwise } => {
            arms.iter().any(|arm| text_field(&arm.1, field)) || text_field(otherwise, field)
        }
        Entry::Match { arms, otherwise, .. } => {
            arms.iter().any(|arm| text_field(&arm.1, field)) || text_field(otherwise, field)
        }
        _ => false,
    })
}

/// An error about a word that is not a field, with the field that was probably meant.
fn with_near(mut error: TableError, fields: &SeededSet<String>) -> TableError {
    let word = error.message.split('`').nth(1).unwrap_or("").to_string();
    if error.message.contains("is no field") && !error.message.contains("did you mean") {
        error
            .message
            .push_str(&crate::suggest::suggestion(&word, fields.iter().map(String::as_str)));
    }
    error
}
