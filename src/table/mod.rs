//! Message tables: text in a small declarative language, compiled once, run by one evaluator.
//!
//! The language is documented in `docs/table-language.md`. This room knows the language and nothing of any protocol,
//! capture or output. [`Tables::load`] reads sources, [`Evaluator`] runs them over bytes, the tree is what comes out.

mod ast;
mod compile;
mod cursor;
mod error;
mod eval;
mod fixed;
mod hex;
mod lex;
mod listed;
mod memory;
mod numbers;
mod parse;
mod parse_body;
mod positions;
mod program;
mod quick;
mod ready;

use std::collections::HashMap;

pub use ast::{Direction, Role};
pub use compile::Source;
pub use cursor::{Cursor, Short};
pub use error::TableError;
pub use eval::{BITSTREAM, Call, Evaluator, Frame, Grow, Limits, Native, NoPackint, Outcome, Run, Stop, read_packint};
pub use hex::parse_hex;
pub use listed::{Declaration, Example, ExampleOf};
pub use memory::Memory;
pub use numbers::Numbers;
pub use positions::{Positions, ValueRead, ValueTypes};
pub use program::*;
pub use quick::Quick;
pub use ready::Ready;

use crate::tree::{Sym, TypeRef};

/// The words `shown` knows: how trees may explain a number.
pub const SHOWN: [&str; 8] =
    ["unix_time", "sequence_number", "hex", "milliseconds", "seconds", "microseconds", "time_dilation", "bits"];

/// The compiled tables of one protocol.
pub struct Tables {
    protocol: String,
    program: Program,
    sources: Vec<Source>,
    by_name: HashMap<String, TypeRef>,
    messages_by_name: HashMap<String, MessageId>,
    fixed: Fixed,
}

/// Names and types the evaluator itself needs.
struct Fixed {
    count: Sym,
    present: Sym,
    value: Sym,
    text: Sym,
    padding: Sym,
    end: Sym,
    bytes: TypeRef,
    undecoded: TypeRef,
    values: ValueTypes,
}

impl Default for Fixed {
    fn default() -> Self {
        let none = Sym::ELEMENT;
        Fixed {
            count: none,
            present: none,
            value: none,
            text: none,
            padding: none,
            end: none,
            bytes: TypeRef(0),
            undecoded: TypeRef(0),
            values: ValueTypes::default(),
        }
    }
}

impl Tables {
    /// Compiles the tables of one protocol; later sources may replace what earlier ones declare. `natives` are the types with code.
    pub fn load(protocol: &str, sources: Vec<Source>, natives: &[Native]) -> Result<Tables, TableError> {
        let (program, fixed, by_name) = compile::compile(protocol, &sources, natives)?;
        let messages_by_name = program
            .messages
            .iter()
            .enumerate()
            .filter_map(|(i, m)| Some((program.names.get(m.name.0 as usize)?.text.clone(), MessageId(i as u32))))
            .collect();
        Ok(Tables { protocol: protocol.to_string(), program, sources, by_name, messages_by_name, fixed })
    }

    /// Tables that know nothing.
    pub fn none(protocol: &str) -> Tables {
        Tables {
            protocol: protocol.to_string(),
            program: Program::default(),
            sources: Vec::new(),
            by_name: HashMap::new(),
            messages_by_name: HashMap::new(),
            fixed: Fixed::default(),
        }
    }

    /// The protocol a table file says it belongs to.
    pub fn protocol_of(source: &Source) -> Result<String, TableError> {
        Ok(parse::parse_file(&source.name, &source.text)?.protocol)
    }

    /// The protocol's name.
    pub fn protocol(&self) -> &str {
        &self.protocol
    }

    /// The texts the tables were made of.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// All declarations, in the order of the sources.
    pub fn declarations(&self) -> &[Declaration] {
        &self.program.declarations
    }

    /// All examples.
    pub fn examples(&self) -> &[Example] {
        &self.program.examples
    }

    /// All messages.
    pub fn messages(&self) -> &[MessageDef] {
        &self.program.messages
    }

    /// All services.
    pub fn services(&self) -> &[Service] {
        &self.program.services
    }

    /// All enums and flag sets.
    pub fn enums(&self) -> &[EnumDef] {
        &self.program.enums
    }

    /// The text of a name; dynamic ones are in the tree.
    pub fn name(&self, sym: Sym) -> &str {
        self.program.names.get(sym.0 as usize).map_or("", |n| &n.text)
    }

    /// A name in both its forms.
    pub fn name_forms(&self, sym: Sym) -> Option<&Name> {
        self.program.names.get(sym.0 as usize)
    }

    /// All names in both their forms, by number.
    #[inline]
    pub fn all_names(&self) -> &[Name] {
        &self.program.names
    }

    /// All names the tables use.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.program.names.iter().map(|n| n.text.as_str())
    }

    /// A name's number, where the tables use it.
    pub fn sym(&self, text: &str) -> Option<Sym> {
        self.program.names.iter().position(|n| n.text == text).map(|i| Sym(i as u32))
    }

    /// A type.
    #[inline]
    pub fn type_def(&self, ty: TypeRef) -> Option<&TypeDef> {
        self.program.types.get(ty.0 as usize)
    }

    /// A type in short.
    #[inline]
    pub fn quick(&self, ty: TypeRef) -> Quick {
        self.program.quick.get(ty.0 as usize).copied().unwrap_or(Quick::NONE)
    }

    /// An enum by place.
    pub fn enum_def(&self, id: EnumId) -> Option<&EnumDef> {
        self.program.enums.get(id.0 as usize)
    }

    /// The enum of a type's values.
    #[inline]
    pub fn symbols(&self, ty: TypeRef) -> Option<&EnumDef> {
        self.enum_def(self.quick(ty).symbols?)
    }

    /// A service by place.
    pub fn service(&self, id: ServiceId) -> Option<&Service> {
        self.program.services.get(id.0 as usize)
    }

    /// A service by name.
    pub fn service_named(&self, name: &str) -> Option<ServiceId> {
        self.program.services.iter().position(|s| s.name == name).map(|i| ServiceId(i as u32))
    }

    /// A message by place.
    pub fn message(&self, id: MessageId) -> Option<&MessageDef> {
        self.program.messages.get(id.0 as usize)
    }

    /// A message by name.
    pub fn message_named(&self, name: &str) -> Option<MessageId> {
        self.messages_by_name.get(name).copied()
    }

    /// The message of a service with a number (sender 0: client, 1: server).
    #[inline]
    pub fn message_id(&self, service: &Service, sender: usize, number: u64) -> Option<MessageId> {
        let list = service.messages.get(sender)?;
        list.binary_search_by_key(&number, |m| m.0).ok().and_then(|i| list.get(i)).map(|m| m.1)
    }

    /// A layout by place.
    #[inline]
    pub fn layout(&self, id: LayoutId) -> Option<&Layout> {
        self.program.layouts.get(id.0 as usize)
    }

    /// All layouts.
    pub fn layouts(&self) -> &[Layout] {
        &self.program.layouts
    }

    /// A declared type (struct, class, family, enum, alias without parameters) by name.
    pub fn type_named(&self, name: &str) -> Option<TypeRef> {
        self.by_name.get(name).copied()
    }

    /// Any type as the language writes it (`packint(1)`, `u32[4]`, `plUoid`), compiled on request into tables of its own.
    pub fn with_type(self, text: &str) -> Result<(Tables, TypeRef), TableError> {
        if let Some(ty) = self.type_named(text) {
            return Ok((self, ty));
        }
        compile::add_type(self, text)
    }

    /// One of the steps that layouts are made of, by its place.
    pub fn step(&self, at: u32) -> Option<&Op> {
        self.program.ops.get(at as usize)
    }

    /// All families.
    pub fn families(&self) -> &[Family] {
        &self.program.families
    }

    #[inline]
    pub(crate) fn ops(&self) -> &[Op] {
        &self.program.ops
    }

    #[inline]
    pub(crate) fn fixed(&self, place: u32) -> Option<&fixed::Fixed> {
        self.program.fixed.get((place as usize).checked_sub(1)?)
    }

    #[inline]
    pub(crate) fn ex(&self, id: ExprId) -> Option<&Ex> {
        self.program.exprs.get(id.0 as usize)
    }

    pub(crate) fn family(&self, id: FamilyId) -> Option<&Family> {
        self.program.families.get(id.0 as usize)
    }

    pub(crate) fn native(&self, id: u32) -> Option<&(Native, Vec<Option<TypeRef>>)> {
        self.program.natives.get(id as usize)
    }

    pub(crate) fn dialect(&self, id: u32) -> Option<Sym> {
        self.program.dialects.get(id as usize).copied()
    }

    pub(crate) fn count_name(&self) -> Sym {
        self.fixed.count
    }

    pub(crate) fn present_name(&self) -> Sym {
        self.fixed.present
    }

    pub(crate) fn value_name(&self) -> Sym {
        self.fixed.value
    }

    pub(crate) fn text_name(&self) -> Sym {
        self.fixed.text
    }

    pub(crate) fn padding_name(&self) -> Sym {
        self.fixed.padding
    }

    pub(crate) fn end_name(&self) -> Sym {
        self.fixed.end
    }

    pub(crate) fn padding_type(&self) -> TypeRef {
        self.fixed.bytes
    }

    pub(crate) fn undecoded_type(&self) -> TypeRef {
        self.fixed.undecoded
    }
}
