//! Compiles declarations into the flat form that the evaluator runs: resolves names, and reports
//! every mistake with its place.
//!
//! It knows the language, but no protocol.

mod body;
mod expr;
mod facts;
mod lengths;
mod merge;
mod messages;
mod minimums;
mod optional;
mod positions;
mod protocol;
mod ranges;
mod scope;
mod services;
mod strict;
mod tied;
mod types;

use std::rc::Rc;

use super::error::{TableError, TableSource};
use super::program::*;
use super::text::*;
use crate::maps::SeededMap;
use crate::tree::{Sym, TypeRef};
use scope::FieldScope;

/// The place of a declaration: file and item.
type ItemId = (usize, usize);

#[derive(Default)]
pub(super) struct Compiler<'s> {
    pub(super) sources: &'s [TableSource],
    /// What the protocol's code adds. `None` if that is not known.
    pub(super) code: Option<CodeNames<'s>>,
    pub(super) files: Vec<ParsedFile>,
    pub(super) out: Program,
    name_ids: SeededMap<String, Sym>,
    /// Structs, classes, enums, families and aliases by name.
    by_name: SeededMap<String, ItemId>,
    pub(super) layout_ids: SeededMap<String, LayoutId>,
    pub(super) enum_ids: SeededMap<String, EnumId>,
    pub(super) family_ids: SeededMap<String, FamilyId>,
    /// The names of the types with code, by their number.
    natives: Vec<String>,
    pub(super) native_ids: SeededMap<String, u32>,
    pub(super) dialect_ids: SeededMap<String, u32>,
    service_ids: SeededMap<String, ServiceId>,
    /// By service: what its messages begin with.
    beginnings: SeededMap<String, Rc<BeginningAst>>,
    /// The states of a connection, by name.
    state_ids: SeededMap<String, u32>,
    /// Names of enum values with all enums that have them, in their order, and the value there.
    value_owners: SeededMap<String, Vec<(EnumId, u64)>>,
    /// The index of each message in its service's list, by service, sender (0 client, 1 server) and
    /// number.
    message_places: SeededMap<(u32, usize, u64), usize>,
    /// The messages by name, and the files and marks to check once all are known.
    message_ids: SeededMap<String, MessageId>,
    /// The types without modifiers other than marks, by their marks and their text.
    pub(super) plain_types: SeededMap<u8, SeededMap<String, TypeRef>>,
    /// The aliases that are being resolved, each inside the one before.
    open_aliases: Vec<String>,
    /// Whether the positions of a self-describing array are being compiled.
    pub(super) positional: bool,
    /// Names of nested fields that info lines use, with file and place. They are checked once all
    /// layouts are known.
    info_names: Vec<(usize, usize, Sym)>,
    /// Structures with those that they extend.
    parents: Vec<(LayoutId, LayoutId)>,
    /// The file that is being compiled, for errors.
    pub(super) file: usize,
}

/// What a protocol's code adds to its tables.
#[derive(Clone, Copy)]
pub(super) struct CodeNames<'s> {
    /// The types with code, by their number.
    pub(super) natives: &'s [&'s str],
    /// The words that may follow `shown`.
    pub(super) shown: &'s [&'s str],
}

/// A program, and the names of the types with code, by the number that the program has for them.
pub(super) struct Compiled {
    pub(super) program: Program,
    pub(super) natives: Vec<String>,
}

/// Compiles all files of one protocol. A message or structure declared again replaces the earlier
/// one. If `code` is `None`, a type that no table declares is taken for one with code, and any word
/// may follow `shown`.
pub(super) fn compile(
    protocol: &str,
    sources: &[TableSource],
    code: Option<CodeNames<'_>>,
) -> Result<Compiled, TableError> {
    let mut c = Compiler { sources, code, ..Compiler::default() };
    for source in sources {
        let file = parse_file(&source.name, &source.text)?;
        if file.protocol != protocol {
            let message = format!(
                "these are tables of the protocol `{}`, not of `{protocol}`",
                file.protocol
            );
            return Err(TableError::at(&source.name, &source.text, 0, message));
        }
        c.files.push(file);
    }
    c.name(""); // Sym::ELEMENT
    c.name("undecoded"); // Sym::UNDECODED
    c.out.builtins = c.builtins();
    for name in code.map_or(&[][..], |code| code.natives) {
        c.native(name);
    }
    c.declare()?;
    c.states()?;
    c.strict()?;
    c.enums()?;
    c.layouts_and_families()?;
    c.services()?;
    c.messages()?;
    c.protocol()?;
    c.check_info_names()?;
    c.inherit_info();
    c.out.types_by_name = c.named_types()?;
    c.finish();
    Ok(Compiled { program: c.out, natives: c.natives })
}

impl Compiler<'_> {
    pub(super) fn name(&mut self, text: &str) -> Sym {
        if let Some(sym) = self.name_ids.get(text) {
            return *sym;
        }
        let sym = Sym(self.out.names.len() as u32);
        self.out.names.push(text.to_string().into());
        self.name_ids.insert(text.to_string(), sym);
        sym
    }

    /// The number of a type with code.
    pub(super) fn native(&mut self, name: &str) -> u32 {
        if let Some(id) = self.native_ids.get(name) {
            return *id;
        }
        let id = self.natives.len() as u32;
        self.natives.push(name.to_string());
        self.native_ids.insert(name.to_string(), id);
        id
    }

    pub(super) fn error<T>(&self, at: usize, message: impl Into<String>) -> Result<T, TableError> {
        match self.sources.get(self.file) {
            Some(source) => Err(TableError::at(&source.name, &source.text, at, message)),
            None => Err(TableError::at("type", "", at, message)),
        }
    }

    /// All items of all files in order, as places.
    fn places(&self) -> Vec<ItemId> {
        self.files
            .iter()
            .enumerate()
            .flat_map(|(f, file)| (0..file.items.len()).map(move |i| (f, i)))
            .collect()
    }

    pub(super) fn item(&self, place: ItemId) -> Option<Rc<ItemAst>> {
        self.files.get(place.0)?.items.get(place.1).cloned()
    }

    pub(super) fn item_named(&self, name: &str) -> Option<(Rc<ItemAst>, usize)> {
        let place = *self.by_name.get(name)?;
        Some((self.item(place)?, place.0))
    }

    /// A name may be declared once in a file. A later file may replace an earlier one's
    /// declarations.
    fn declare(&mut self) -> Result<(), TableError> {
        let mut seen: SeededMap<(String, bool), usize> = SeededMap::default();
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
                return self
                    .error(item.at, format!("`{}` is declared twice in this file", item.name));
            }
            match item.kind {
                ItemKind::Dialect => {
                    let sym = self.name(&format!(
                        "in the form `{}`: {}",
                        item.name,
                        item.doc.replace('\n', " ")
                    ));
                    if self.out.dialects.len() >= 32 {
                        return self.error(item.at, "there may be 32 dialects at most");
                    }
                    self.dialect_ids.insert(item.name.clone(), self.out.dialects.len() as u32);
                    self.out.dialects.push(sym);
                }
                ItemKind::Range { base, max } => self.add_range(&item.name, base, max),
                ItemKind::Code => self.is_code(&item)?,
                ItemKind::Message(_) | ItemKind::Service(_) => {}
                _ => {
                    if let Some(before) =
                        self.by_name.insert(item.name.clone(), place).and_then(|old| self.item(old))
                    {
                        self.replace(&before, &item)?;
                    }
                }
            }
            self.declaration(&item, place);
        }
        Ok(())
    }

    /// A later file declares a name again. The protocol's code may look up the name and its fields,
    /// so these must stay.
    fn replace(&mut self, before: &ItemAst, item: &ItemAst) -> Result<(), TableError> {
        let parameters = |item: &ItemAst| match &item.kind {
            ItemKind::Struct(body) => body.params.len(),
            _ => 0,
        };
        let was = kind(before);
        let is = kind(item);
        let same = was == is
            || matches!((was, is), ("enum" | "flags" | "type", "enum" | "flags" | "type"));
        if !same || parameters(before) != parameters(item) {
            let count = parameters(before);
            let message = format!(
                "`{}` is declared already, as a {was} with {count} parameters: it stays one",
                item.name
            );
            return self.error(item.at, message);
        }
        if let ItemKind::Struct(body) = &before.kind {
            for name in scope::field_names(&body.entries) {
                self.name(&name);
            }
        }
        Ok(())
    }

    fn declaration(&mut self, item: &ItemAst, place: ItemId) {
        self.out.declarations.push(ListedDeclaration {
            name: item.name.clone().into(),
            kind: kind(item),
            doc: item.doc.clone().into(),
            file: place.0 as u32,
            range: (item.start, item.end),
        });
    }

    fn builtins(&mut self) -> Builtins {
        let plain = |c: &mut Self, text: &str| {
            c.out.types.push(TypeDef {
                read: ReadAs::Bytes(Len { from: LenFrom::Rest, bytes: true }),
                text: text.to_string().into(),
                ..TypeDef::blank()
            });
            TypeRef(c.out.types.len() as u32 - 1)
        };
        let undecoded = plain(self, "undecoded");
        let bytes = plain(self, "bytes[*]");
        Builtins {
            count: self.name("count"),
            present: self.name("present"),
            value: self.name("value"),
            text: self.name("text"),
            padding: self.name("padding"),
            end: self.name("end"),
            transaction: self.name("transaction"),
            bytes,
            undecoded,
            values: self.value_types(),
        }
    }

    /// The types that can be looked up by name: all without parameters.
    fn named_types(&mut self) -> Result<SeededMap<TableText, TypeRef>, TableError> {
        let mut out = SeededMap::default();
        for (item, file) in self.items_by_place() {
            self.file = file;
            let parameters = matches!(&item.kind, ItemKind::Struct(s) if !s.params.is_empty());
            if parameters {
                continue;
            }
            let ty = self.named(item.at, &item.name, &[], &NO_MODS, &mut FieldScope::default())?;
            out.insert(item.name.clone().into(), ty);
        }
        Ok(out)
    }

    fn enums(&mut self) -> Result<(), TableError> {
        for (item, file) in self.items_by_place() {
            let ItemKind::Enum { flags, base, values } = &item.kind else { continue };
            let name = item.name.clone();
            self.file = file;
            let id = EnumId(self.out.enums.len() as u32);
            self.enum_ids.insert(name.clone(), id);
            let base = self.plain_type(base)?;
            let read = self.out.types.get(base.0 as usize).map(|t| &t.read);
            if matches!(
                read,
                Some(
                    ReadAs::Bytes(_)
                        | ReadAs::Text { .. }
                        | ReadAs::List { .. }
                        | ReadAs::Float { .. }
                )
            ) {
                return self.error(
                    item.at,
                    format!("the values of `{name}` are integers, such as u8 or u32"),
                );
            }
            let mask = match self.out.types.get(base.0 as usize).map(|t| &t.read) {
                Some(ReadAs::Int { size: 8, .. }) => u64::MAX,
                Some(ReadAs::Int { size, .. }) => (1u64 << (u32::from(*size) * 8)) - 1,
                _ => u64::MAX,
            };
            let mut list: Vec<EnumValue> = Vec::with_capacity(values.len());
            for v in values {
                let owners = self.value_owners.entry(v.name.clone()).or_default();
                if owners.last().is_some_and(|owner| owner.0 == id) {
                    return self.error(v.at, format!("`{name}` has a value of this name already"));
                }
                if !strict::fits(v.value, mask) {
                    return self.error(
                        v.at,
                        format!("the value of `{}` does not fit the type of `{name}`", v.name),
                    );
                }
                owners.push((id, v.value & mask));
                let name = v.name.clone().into();
                let text = v.text.clone().into();
                list.push(EnumValue { value: v.value & mask, name, text });
            }
            // If two names share a number, the one declared first is shown.
            list.sort_by_key(|v| v.value);
            list.dedup_by_key(|v| v.value);
            let numbers = Numbers::of(list.iter().map(|v| v.value));
            let name = name.into();
            let doc = item.doc.clone().into();
            self.out.enums.push(EnumDef { name, flags: *flags, doc, values: list, numbers, base });
        }
        Ok(())
    }

    /// All declarations, with the number of their file, in the order of the files.
    fn items_by_place(&self) -> Vec<(Rc<ItemAst>, usize)> {
        let mut places: Vec<ItemId> = self.by_name.values().copied().collect();
        places.sort_unstable();
        places.into_iter().filter_map(|place| Some((self.item(place)?, place.0))).collect()
    }

    fn layouts_and_families(&mut self) -> Result<(), TableError> {
        let named = self.items_by_place();
        for (item, file) in &named {
            let name = &item.name;
            self.file = *file;
            match &item.kind {
                ItemKind::Struct(_) => {
                    let id = self.new_layout(name);
                    self.layout_ids.insert(name.clone(), id);
                }
                ItemKind::Family { field, of, null } => {
                    let id = FamilyId(self.out.families.len() as u32);
                    self.family_ids.insert(name.clone(), id);
                    let of = self.plain_type(of)?;
                    let null = *null;
                    let field = self.name(field);
                    let members = Vec::new();
                    let numbers = Numbers::default();
                    self.out.families.push(Family {
                        name: name.clone().into(),
                        field,
                        of,
                        null,
                        members,
                        numbers,
                    });
                }
                _ => {}
            }
        }
        for (item, file) in &named {
            let (ItemKind::Struct(body), name, at) = (&item.kind, &item.name, item.at) else {
                continue;
            };
            self.file = *file;
            let Some(id) = self.layout_ids.get(name).copied() else {
                continue;
            };
            if let Some(NameAst { name: family, at: family_at }) = &body.family {
                self.join_family(name, at, family, *family_at, id)?;
            }
            self.fill_layout(id, body)?;
            self.examples(body, ExampleOf::Layout(id))?;
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
            let near =
                crate::suggest::suggestion(family, self.family_ids.keys().map(String::as_str));
            return self.error(family_at, format!("there is no family `{family}`{near}"));
        };
        let Some(def) = self.out.families.get(family_id.0 as usize) else {
            return Ok(());
        };
        let symbols = self.out.types.get(def.of.0 as usize).and_then(|t| t.symbols);
        let number = symbols.and_then(|of| self.value_of(of, name));
        let Some(number) = number else {
            return self.error(
                at,
                format!("the enum of the family `{family}` has no value named `{name}`"),
            );
        };
        if let Some(def) = self.out.families.get_mut(family_id.0 as usize) {
            def.members.push((number, id));
        }
        Ok(())
    }

    fn examples(&mut self, body: &StructAst, of: ExampleOf) -> Result<(), TableError> {
        for e in &body.examples {
            let states = e
                .with
                .iter()
                .map(|(state, value)| Ok((self.state(&state.name, state.at)?, *value)));
            let states = states.collect::<Result<_, TableError>>()?;
            self.out.examples.push(Example {
                of,
                text: e.text,
                bytes: e.bytes,
                states,
                json: e.json,
                file: self.file as u32,
                at: e.at,
            });
        }
        Ok(())
    }

    /// Sorts the lists that are searched by number, and computes minimum sizes.
    fn finish(&mut self) {
        for family in &mut self.out.families {
            family.members.sort_by_key(|m| m.0);
            family.numbers = Numbers::of(family.members.iter().map(|m| m.0));
        }
        for list in self.out.services.iter_mut().flat_map(|service| &mut service.messages) {
            list.sort_by_key(|m| m.0);
        }
        self.out.messages_by_name =
            self.message_ids.drain().map(|(name, id)| (name.into(), id)).collect();
        self.messages_by_sym();
        tied::find(&mut self.out);
        facts::find(&mut self.out);
        minimums::fill(&mut self.out);
        self.out.fill_type_ops();
    }

    fn messages_by_sym(&mut self) {
        let mut by_sym = vec![None; self.out.names.len()];
        for id in self.out.messages_by_name.values() {
            let name =
                self.out.messages.get(id.0 as usize).map_or(0, |message| message.name.0 as usize);
            if let Some(place) = by_sym.get_mut(name) {
                *place = Some(*id);
            }
        }
        self.out.messages_by_sym = by_sym;
    }
}

/// The word that begins a declaration.
fn kind(item: &ItemAst) -> &'static str {
    match &item.kind {
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
    }
}
