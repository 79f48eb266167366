//! Declarations into the flat form the evaluator runs: names resolved, every mistake found and placed.
//!
//! Knows the language, not what any protocol means by it.

mod body;
mod expr;
mod facts;
mod optional;
mod positions;
mod ranges;
mod runs;
mod strict;
mod tied;
mod type_ops;
mod types;

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::error::{TableError, TableSource};
use super::program::*;
use super::text::*;
use crate::tree::{Sym, TypeRef};

/// Where something was declared: file and item.
type ItemId = (usize, usize);

#[derive(Default)]
pub(super) struct Compiler<'s> {
    pub(super) sources: &'s [TableSource],
    /// The words that `shown` knows.
    pub(super) shown: &'s [&'s str],
    pub(super) files: Vec<ParsedFile>,
    pub(super) out: Program,
    name_ids: HashMap<String, Sym>,
    /// Structs, classes, enums, families and aliases by name.
    by_name: HashMap<String, ItemId>,
    pub(super) layout_ids: HashMap<String, LayoutId>,
    pub(super) enum_ids: HashMap<String, EnumId>,
    pub(super) family_ids: HashMap<String, FamilyId>,
    pub(super) native_ids: HashMap<String, u32>,
    pub(super) dialect_ids: HashMap<String, u32>,
    service_ids: HashMap<String, ServiceId>,
    /// Ranges of numbers by name: what is added, and the largest number.
    ranges: HashMap<String, (u64, Option<u64>)>,
    /// Names of enum values with all enums that have them.
    pub(super) value_owners: HashMap<String, Vec<EnumId>>,
    pub(super) plain_types: HashMap<(String, u8), TypeRef>,
    alias_depth: usize,
    /// Whether the positions of a self-describing array are being compiled.
    pub(super) positional: bool,
    /// Names of fields within fields that info lines use, with file and place: checked once all layouts are known.
    info_names: Vec<(usize, usize, Sym)>,
    /// The file that is being compiled, for errors.
    pub(super) file: usize,
}

/// Compiles all files of one protocol; a message or structure declared again replaces the earlier one. `natives` are the
/// names of the types with code, by their number; `shown` are the words that may follow `shown`.
pub(super) fn compile(
    protocol: &str,
    sources: &[TableSource],
    natives: &[&str],
    shown: &[&str],
) -> Result<Program, TableError> {
    let mut c = Compiler { sources, shown, ..Compiler::default() };
    for source in sources {
        let file = parse_file(&source.name, &source.text)?;
        if file.protocol != protocol {
            let message = format!("these are tables of the protocol `{}`, not of `{protocol}`", file.protocol);
            return Err(TableError::at(&source.name, &source.text, 0, message));
        }
        c.files.push(file);
    }
    c.name(""); // Sym::ELEMENT
    c.name("undecoded"); // Sym::UNDECODED
    c.out.builtins = c.builtins();
    c.native_ids = natives.iter().zip(0..).map(|(name, id)| (name.to_string(), id)).collect();
    c.declare()?;
    c.strict()?;
    c.enums()?;
    c.layouts_and_families()?;
    c.services_and_messages()?;
    c.check_info_names()?;
    c.out.types_by_name = c.named_types()?;
    c.finish();
    Ok(c.out)
}

impl Compiler<'_> {
    pub(super) fn name(&mut self, text: &str) -> Sym {
        if let Some(sym) = self.name_ids.get(text) {
            return *sym;
        }
        let sym = Sym(self.out.names.len() as u32);
        self.out.names.push(text.to_string());
        self.name_ids.insert(text.to_string(), sym);
        sym
    }

    pub(super) fn error<T>(&self, at: usize, message: impl Into<String>) -> Result<T, TableError> {
        match self.sources.get(self.file) {
            Some(source) => Err(TableError::at(&source.name, &source.text, at, message)),
            None => Err(TableError::at("type", "", at, message)),
        }
    }

    /// All items of all files in order, as places.
    fn places(&self) -> Vec<ItemId> {
        self.files.iter().enumerate().flat_map(|(f, file)| (0..file.items.len()).map(move |i| (f, i))).collect()
    }

    pub(super) fn item(&self, place: ItemId) -> Option<Rc<ItemAst>> {
        self.files.get(place.0)?.items.get(place.1).cloned()
    }

    pub(super) fn item_named(&self, name: &str) -> Option<(Rc<ItemAst>, usize)> {
        let place = *self.by_name.get(name)?;
        Some((self.item(place)?, place.0))
    }

    /// Every name is taken once in a file; a later file may replace what an earlier one declared.
    fn declare(&mut self) -> Result<(), TableError> {
        let mut seen: HashMap<(String, bool), usize> = HashMap::new();
        for place in self.places() {
            let Some(item) = self.item(place) else {
                continue;
            };
            self.file = place.0;
            let message = matches!(item.kind, ItemKind::Message(_));
            if let Some(before) = seen.insert((item.name.clone(), message), place.0)
                && before == place.0
                && !message
            {
                return self.error(item.at, format!("`{}` is declared twice in this file", item.name));
            }
            match item.kind {
                ItemKind::Dialect => {
                    let sym = self.name(&format!("in the form `{}`: {}", item.name, item.doc.replace('\n', " ")));
                    if self.out.dialects.len() >= 32 {
                        return self.error(item.at, "there may be 32 dialects at most");
                    }
                    self.dialect_ids.insert(item.name.clone(), self.out.dialects.len() as u32);
                    self.out.dialects.push(sym);
                }
                ItemKind::Range { base, max } => drop(self.ranges.insert(item.name.clone(), (base, max))),
                ItemKind::Code => self.is_code(&item)?,
                ItemKind::Message(_) | ItemKind::Service(_) => {}
                _ => {
                    self.by_name.insert(item.name.clone(), place);
                }
            }
            self.declaration(&item, place);
        }
        Ok(())
    }

    fn declaration(&mut self, item: &ItemAst, place: ItemId) {
        let kind = match &item.kind {
            ItemKind::Service(_) => "service",
            ItemKind::Message(_) => "message",
            ItemKind::Struct(s) if s.family.is_some() => "class",
            ItemKind::Struct(s) if s.positions => "positions",
            ItemKind::Struct(_) => "struct",
            ItemKind::Enum { flags: true, .. } => "flags",
            ItemKind::Enum { .. } => "enum",
            ItemKind::Family { .. } => "family",
            ItemKind::Alias { .. } => "type",
            ItemKind::Dialect => "dialect",
            ItemKind::Range { .. } => "numbers",
            ItemKind::Code => "code",
        };
        self.out.declarations.push(Declaration {
            name: item.name.clone(),
            kind,
            doc: item.doc.clone(),
            file: place.0 as u32,
            range: (item.start, item.end),
        });
    }

    fn builtins(&mut self) -> Builtins {
        let plain = |c: &mut Self, text: &str| {
            c.out.types.push(TypeDef {
                read: ReadAs::Bytes(Len { from: LenFrom::Rest, bytes: true }),
                text: text.into(),
                ..types::blank()
            });
            TypeRef(c.out.types.len() as u32 - 1)
        };
        let (undecoded, bytes) = (plain(self, "undecoded"), plain(self, "bytes[*]"));
        Builtins {
            count: self.name("count"),
            present: self.name("present"),
            value: self.name("value"),
            text: self.name("text"),
            padding: self.name("padding"),
            end: self.name("end"),
            bytes,
            undecoded,
            values: self.value_types(),
        }
    }

    /// Types that can be asked for by name: all that need no parameters.
    fn named_types(&mut self) -> Result<HashMap<String, TypeRef>, TableError> {
        let mut out = HashMap::new();
        for (name, place) in self.sorted_names() {
            self.file = place.0;
            let Some(item) = self.item(place) else {
                continue;
            };
            let parameters = matches!(&item.kind, ItemKind::Struct(s) if !s.params.is_empty());
            if parameters {
                continue;
            }
            let kind = TypeKind::Named { name: name.clone(), args: Vec::new() };
            let ty = self.plain_type(&TypeAst { at: item.at, kind })?;
            out.insert(name, ty);
        }
        Ok(out)
    }

    fn enums(&mut self) -> Result<(), TableError> {
        let named: Vec<(String, ItemId)> = self.sorted_names();
        for (name, place) in named {
            let Some(item) = self.item(place) else { continue };
            let ItemKind::Enum { flags, base, values } = &item.kind else { continue };
            self.file = place.0;
            let id = EnumId(self.out.enums.len() as u32);
            self.enum_ids.insert(name.clone(), id);
            let base = self.plain_type(base)?;
            let read = self.out.types.get(base.0 as usize).map(|t| &t.read);
            if matches!(read, Some(ReadAs::Bytes(_) | ReadAs::Text { .. } | ReadAs::List { .. } | ReadAs::Float { .. }))
            {
                return self.error(item.at, format!("the values of `{name}` are integers, such as u8 or u32"));
            }
            let mask = match self.out.types.get(base.0 as usize).map(|t| &t.read) {
                Some(ReadAs::Int { size: 8, .. }) => u64::MAX,
                Some(ReadAs::Int { size, .. }) => (1u64 << (u32::from(*size) * 8)) - 1,
                _ => u64::MAX,
            };
            let mut list: Vec<EnumValue> = Vec::with_capacity(values.len());
            for v in values {
                let owners = self.value_owners.entry(v.name.clone()).or_default();
                if owners.contains(&id) {
                    return self.error(v.at, format!("`{name}` has a value of this name already"));
                }
                if !strict::fits(v.value, mask) {
                    return self.error(v.at, format!("the value of `{}` does not fit the type of `{name}`", v.name));
                }
                owners.push(id);
                let (name, text, doc) = (v.name.clone(), v.text.clone(), v.doc.clone());
                list.push(EnumValue { value: v.value & mask, name, text, doc });
            }
            // Where two names share a number the first one declared is shown.
            list.sort_by_key(|v| v.value);
            list.dedup_by_key(|v| v.value);
            let numbers = Numbers::of(list.iter().map(|v| v.value));
            self.out.enums.push(EnumDef { name, flags: *flags, doc: item.doc.clone(), values: list, numbers, base });
        }
        Ok(())
    }

    fn sorted_names(&self) -> Vec<(String, ItemId)> {
        let sorted: BTreeMap<ItemId, String> = self.by_name.iter().map(|(n, p)| (*p, n.clone())).collect();
        sorted.into_iter().map(|(p, n)| (n, p)).collect()
    }

    fn layouts_and_families(&mut self) -> Result<(), TableError> {
        let named = self.sorted_names();
        for (name, place) in &named {
            self.file = place.0;
            let Some(item) = self.item(*place) else { continue };
            match &item.kind {
                ItemKind::Struct(_) => {
                    let id = self.new_layout(name);
                    self.layout_ids.insert(name.clone(), id);
                }
                ItemKind::Family { field, of, null } => {
                    let id = FamilyId(self.out.families.len() as u32);
                    self.family_ids.insert(name.clone(), id);
                    let (of, null) = (self.plain_type(of)?, *null);
                    let field = self.name(field);
                    let (members, numbers) = (Vec::new(), Numbers::default());
                    self.out.families.push(Family { name: name.clone(), field, of, null, members, numbers });
                }
                _ => {}
            }
        }
        for (name, place) in &named {
            let Some(item) = self.item(*place) else { continue };
            let (ItemKind::Struct(body), at) = (&item.kind, item.at) else { continue };
            self.file = place.0;
            let Some(id) = self.layout_ids.get(name).copied() else {
                continue;
            };
            if let Some((family, family_at)) = &body.family {
                self.join_family(name, at, family, *family_at, id)?;
            }
            self.fill_layout(id, body)?;
            self.examples(body, ExampleOf::Layout(id));
        }
        Ok(())
    }

    fn join_family(
        &mut self,
        name: &str,
        at: usize,
        family: &str,
        family_at: usize,
        id: LayoutId,
    ) -> Result<(), TableError> {
        let Some(family_id) = self.family_ids.get(family).copied() else {
            let near = crate::suggest::suggestion(family, self.family_ids.keys().map(String::as_str));
            return self.error(family_at, format!("there is no family `{family}`{near}"));
        };
        let Some(def) = self.out.families.get(family_id.0 as usize) else {
            return Ok(());
        };
        let symbols = self.out.types.get(def.of.0 as usize).and_then(|t| t.symbols);
        let number = symbols
            .and_then(|e| self.out.enums.get(e.0 as usize))
            .and_then(|e| e.values.iter().find(|v| v.name == name))
            .map(|v| v.value);
        let Some(number) = number else {
            return self.error(at, format!("the enum of the family `{family}` has no value named `{name}`"));
        };
        if let Some(def) = self.out.families.get_mut(family_id.0 as usize) {
            def.members.push((number, id));
        }
        Ok(())
    }

    fn services_and_messages(&mut self) -> Result<(), TableError> {
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
        let mut answers = Vec::new();
        let mut ids: HashMap<String, MessageId> = HashMap::new();
        for place in self.places() {
            let Some(item) = self.item(place) else { continue };
            let ItemKind::Message(m) = &item.kind else { continue };
            self.file = place.0;
            let id = self.message(&item.name, item.at, item.doc.clone(), m)?;
            ids.insert(item.name.clone(), id);
            answers.push((place.0, id, m.answers.clone()));
        }
        for (file, id, names) in answers {
            self.file = file;
            let mut list = Vec::new();
            for (name, at) in names {
                match ids.get(&name) {
                    Some(asked) => list.push(*asked),
                    None => {
                        let near = crate::suggest::suggestion(&name, ids.keys().map(String::as_str));
                        return self.error(at, format!("there is no message `{name}`{near}"));
                    }
                }
            }
            if let Some(m) = self.out.messages.get_mut(id.0 as usize) {
                m.answers = list;
            }
        }
        Ok(())
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
        let lists = self.out.services.get_mut(service.0 as usize).map(|s| &mut s.messages);
        let (Some([client, server]), Some(number)) = (lists, number) else {
            return Ok(id);
        };
        for (list, side) in [(client, Sender::Client), (server, Sender::Server)] {
            if m.direction != Sender::Both && m.direction != side {
                continue;
            }
            match list.iter_mut().find(|(n, _)| *n == number) {
                Some(slot) => slot.1 = id,
                None => list.push((number, id)),
            }
        }
        Ok(id)
    }

    fn examples(&mut self, body: &StructAst, of: ExampleOf) {
        for e in &body.examples {
            self.out.examples.push(Example {
                of,
                bytes: e.bytes.clone(),
                text: e.text,
                json: e.json.clone(),
                file: self.file as u32,
                at: e.at,
            });
        }
    }

    /// Sorts what is looked up by number, and computes how long everything is at least.
    fn finish(&mut self) {
        for family in &mut self.out.families {
            family.members.sort_by_key(|m| m.0);
            family.numbers = Numbers::of(family.members.iter().map(|m| m.0));
        }
        for list in self.out.services.iter_mut().flat_map(|service| &mut service.messages) {
            list.sort_by_key(|m| m.0);
        }
        let messages = self.out.messages.iter().zip(0..);
        let named = messages.filter_map(|(m, i)| Some((self.out.names.get(m.name.0 as usize)?.clone(), MessageId(i))));
        self.out.messages_by_name = named.collect();
        tied::find(&mut self.out);
        facts::find(&mut self.out);
        types::fill_minimums(&mut self.out);
        type_ops::fill(&mut self.out);
        runs::find(&mut self.out);
    }
}
