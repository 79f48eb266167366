//! Look-ups in compiled tables: by index, by name, by number.

use std::any::Any;
use std::sync::{Arc, PoisonError};

use super::program::*;
use super::{Meaning, Native, NativeType, TableSource, Tables, text};
use crate::tree::{Sym, TypeRef};

impl Tables {
    /// What sessions derive from the tables, one value of each type: made for the first of them,
    /// and shared by all, of which there may be thousands.
    pub fn derived<T: Any + Send + Sync>(&self, make: impl FnOnce(&Tables) -> T) -> Arc<T> {
        let find = |all: &[Arc<dyn Any + Send + Sync>]| {
            all.iter().find_map(|one| Arc::clone(one).downcast::<T>().ok())
        };
        let lock = || self.derived.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = find(&lock()) {
            return made;
        }
        // It may ask for values of other types itself, so nothing is locked meanwhile.
        let made = Arc::new(make(self));
        let mut all = lock();
        find(&all).unwrap_or_else(|| {
            let shared: Arc<dyn Any + Send + Sync> = made.clone();
            all.push(shared);
            made
        })
    }

    /// The protocol's own meaning of a word for `shown`.
    pub fn meaning(&self, shown: &str) -> Option<Meaning> {
        self.meanings.iter().find(|meaning| meaning.name == shown).copied()
    }

    /// The protocol's name.
    pub fn protocol(&self) -> &str {
        &self.protocol
    }

    /// What the tables declare of the protocol as a whole.
    pub fn declared(&self) -> Option<&ProtocolDef> {
        self.program.protocol.as_ref()
    }

    /// The states of a connection before its first message.
    pub fn first_states(&self) -> Vec<u64> {
        let states = self.declared().map_or(&[][..], |protocol| &protocol.states);
        states.iter().map(|(_, value)| *value).collect()
    }

    /// The sources of the tables.
    pub fn sources(&self) -> &[TableSource] {
        &self.sources
    }

    /// All declarations, in the order of the sources.
    pub fn declarations(&self) -> &[ListedDeclaration] {
        self.lists.declarations.all()
    }

    /// All examples.
    pub fn examples(&self) -> &[Example] {
        self.lists.examples.all()
    }

    /// The bytes of an example in hex, not yet checked. With `text`, the bytes themselves.
    pub fn example_bytes(&self, example: &Example) -> String {
        let source = self.sources.get(example.file as usize);
        let (from, to) = example.bytes;
        source.map_or(String::new(), |source| text::example_bytes(source, from..to, example.text))
    }

    /// The expected fields of an example, as JSON, not yet checked.
    pub fn example_json(&self, example: &Example) -> &str {
        let source = self.sources.get(example.file as usize);
        source.and_then(|source| source.text.get(example.json.0..example.json.1)).unwrap_or("")
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
    pub fn enums(&self) -> impl DoubleEndedIterator<Item = &EnumDef> + Clone {
        self.lists.enums.iter()
    }

    /// The text of a name. Dynamic names are in the tree instead.
    #[inline]
    pub fn name(&self, sym: Sym) -> &str {
        self.program.names.get(sym.0 as usize).map_or("", |name| name)
    }

    /// All names the tables use, by number.
    #[inline]
    pub fn names(&self) -> &[TableText] {
        &self.program.names
    }

    /// A name's number, where the tables use it.
    #[inline]
    pub fn sym(&self, text: &str) -> Option<Sym> {
        self.program.names.iter().position(|n| *n == text).map(|i| Sym(i as u32))
    }

    /// A type.
    #[inline]
    pub fn type_def(&self, ty: TypeRef) -> Option<&TypeDef> {
        self.lists.types.get(ty.0 as usize)
    }

    /// Whether values of a type say themselves how they are written, so that the type does not say
    /// which bytes they have.
    pub fn describes_itself(&self, ty: TypeRef) -> bool {
        let read = self.type_def(ty).map(|def| &def.read);
        let own = |native: &u32| self.native(*native).is_some_and(|n| !n.parts.is_empty());
        matches!(read, Some(ReadAs::Value(_)))
            || matches!(read, Some(ReadAs::Native { native, .. }) if own(native))
            || self.value_types().syntax == ty
            || self.natives.iter().any(|native| native.parts.contains(&Some(ty)))
    }

    /// Whether the bytes of a type's values may refer to those of an earlier value.
    pub fn refers(&self, ty: TypeRef) -> bool {
        self.native_of(ty).is_some_and(|native| native.refers)
    }

    fn native_of(&self, ty: TypeRef) -> Option<&Native> {
        match self.type_def(ty).map(|def| &def.read) {
            Some(ReadAs::Native { native, .. }) => self.native(*native).map(|code| &code.native),
            _ => None,
        }
    }

    /// Whether a value of a type can be written in several forms: with more digits or blanks, or
    /// in more bytes, than it needs.
    pub fn has_forms(&self, ty: TypeRef) -> bool {
        match self.type_def(ty).map(|def| &def.read) {
            Some(ReadAs::Native { .. }) => self.native_of(ty).is_some_and(|native| native.forms),
            Some(ReadAs::Digits { .. }) => true,
            Some(ReadAs::Text { len, .. } | ReadAs::Bytes(len)) => {
                matches!(len.from, LenFrom::Blanks)
            }
            _ => false,
        }
    }

    /// Whether some type has the wanted facts. It looks at all types, so callers remember the
    /// answer.
    pub fn any_type_has(&self, wanted: impl Fn(&FieldFacts) -> bool) -> bool {
        self.lists.types.iter().any(|def| def.facts.as_deref().is_some_and(&wanted))
    }

    /// Whether tables say more about a type than how to read it: its values are names or numbers of
    /// things, or it has facts.
    pub fn is_telling(&self, ty: TypeRef) -> bool {
        self.type_op(ty).telling
    }

    /// How many types there are.
    pub fn type_count(&self) -> u32 {
        self.program.type_ops.len() as u32
    }

    /// A type in short.
    #[inline]
    pub fn type_op(&self, ty: TypeRef) -> TypeOp {
        self.program.type_ops.get(ty.0 as usize).copied().unwrap_or(TypeOp::NONE)
    }

    /// An enum by place.
    pub fn enum_def(&self, id: EnumId) -> Option<&EnumDef> {
        self.lists.enums.get(id.0 as usize)
    }

    /// Whether the values of a type are numbers of up to eight bytes, least significant first.
    pub fn is_plain_number(&self, ty: TypeRef) -> bool {
        self.type_op(ty).how == TypeOpKind::Little
    }

    /// The enum of a type's values.
    #[inline]
    pub fn symbols(&self, ty: TypeRef) -> Option<&EnumDef> {
        self.enum_def(self.type_op(ty).symbols()?)
    }

    /// A service by place.
    pub fn service(&self, id: ServiceId) -> Option<&Service> {
        self.program.services.get(id.0 as usize)
    }

    /// A service by name.
    pub fn service_named(&self, name: &str) -> Option<ServiceId> {
        self.program.services.iter().position(|s| s.name == name).map(|i| ServiceId(i as u32))
    }

    /// The service of the servers at a port, if one has this port.
    pub fn service_at(&self, port: u16) -> Option<ServiceId> {
        self.program
            .services
            .iter()
            .position(|s| s.ports.contains(&port))
            .map(|i| ServiceId(i as u32))
    }

    /// A message by place.
    pub fn message(&self, id: MessageId) -> Option<&MessageDef> {
        self.program.messages.get(id.0 as usize)
    }

    /// A message by name.
    pub fn message_named(&self, name: &str) -> Option<MessageId> {
        self.program.messages_by_name.get(name).copied()
    }

    /// A message by its name among the tables' names.
    #[inline]
    pub fn message_called(&self, name: Sym) -> Option<MessageId> {
        self.program.messages_by_sym.get(name.0 as usize).copied().flatten()
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

    /// A layout by its name.
    pub fn layout_named(&self, name: &str) -> Option<LayoutId> {
        let sym = self.sym(name)?;
        let at = self.layouts().iter().position(|layout| layout.name == sym)?;
        Some(LayoutId(at as u32))
    }

    /// All layouts.
    pub fn layouts(&self) -> &[Layout] {
        &self.program.layouts
    }

    /// A declared type (struct, class, family, enum, alias without parameters) by name.
    pub fn type_named(&self, name: &str) -> Option<TypeRef> {
        self.program.types_by_name.get(name).copied()
    }
    /// One of the steps that layouts are made of, by its place.
    pub fn step(&self, at: u32) -> Option<&LayoutStep> {
        self.program.steps.get(at as usize)
    }

    /// The kinds of things that a value of a type identifies (`identity`, `id`, `refers`,
    /// `transaction`). Two captures of the same events differ in such values, but within one
    /// capture a value always means the same thing.
    pub fn identities(&self, ty: TypeRef) -> impl Iterator<Item = Sym> + '_ {
        let def = self.type_def(ty);
        let transaction =
            def.filter(|def| def.transaction).map(|_| self.program.builtins.transaction);
        let named = def.map_or(&[][..], |def| &def.ids);
        let said =
            def.and_then(|def| def.facts.as_deref()).map_or(&[][..], |facts| &facts.identity);
        transaction.into_iter().chain(named.iter().copied()).chain(said.iter().copied())
    }

    /// The fields of a layout: name and type of each, those of all branches in the order of the
    /// text.
    pub fn fields_of(&self, layout: LayoutId) -> impl Iterator<Item = (Sym, TypeRef)> + '_ {
        let start = self.layout(layout).map_or(usize::MAX, |layout| layout.start as usize);
        let steps = self.steps().get(start..).unwrap_or(&[]).iter();
        steps.take_while(|step| !matches!(step, LayoutStep::End)).filter_map(|step| match step {
            LayoutStep::Field { name, ty, .. } | LayoutStep::Empty { name, ty } => {
                Some((*name, *ty))
            }
            _ => None,
        })
    }

    /// The fields of a structure, by its type: name and type of each, those of all branches in the
    /// order of the text.
    pub fn fields(&self, ty: TypeRef) -> impl Iterator<Item = (Sym, TypeRef)> + '_ {
        let layout = match self.type_def(ty).map(|def| &def.read) {
            Some(ReadAs::Layout { layout, .. }) => self.layout(*layout),
            _ => None,
        };
        let steps = layout
            .and_then(|layout| self.steps().get(layout.start as usize..))
            .unwrap_or(&[])
            .iter();
        steps.take_while(|step| !matches!(step, LayoutStep::End)).filter_map(|step| match step {
            LayoutStep::Field { name, ty, .. } => Some((*name, *ty)),
            _ => None,
        })
    }

    /// A message's number as the protocol's literature has it: the name of the range, and the
    /// number there. `None` if the tables declare no range that it is in.
    pub fn number_in_range(&self, number: u64) -> Option<(&str, u64)> {
        let of = |range: &NumberRange| {
            number.checked_sub(range.base).filter(|n| range.max.is_none_or(|max| *n <= max))
        };
        let inside = self.program.ranges.iter().filter(|range| of(range).is_some());
        // One range may hold others.
        let nearest =
            inside.min_by_key(|range| (u64::MAX - range.base, range.max.unwrap_or(u64::MAX)))?;
        Some((&nearest.name, of(nearest)?))
    }

    /// Messages whose number a later file gave to another message.
    pub fn replaced(&self) -> &[ReplacedMessage] {
        &self.program.replaced
    }

    /// All families.
    pub fn families(&self) -> &[Family] {
        &self.program.families
    }

    #[inline]
    pub(in crate::table) fn steps(&self) -> &[LayoutStep] {
        &self.program.steps
    }

    /// The lines that say what a structure is about.
    pub fn info_of(&self, layout: &Layout) -> Option<&InfoLine> {
        self.lists.infos.get(layout.info?.0 as usize)
    }

    /// The path of the value that says what a structure carries; of the elements of a list, the
    /// path of the list and the one from an element on.
    pub fn carries_of(&self, layout: &Layout) -> Option<(&[InfoStep], Option<&[InfoStep]>)> {
        let line = self.lists.infos.get(layout.carries?.0 as usize)?.lines.first()?;
        match line.first()? {
            InfoPart::Field(path) => Some((path, None)),
            InfoPart::Each { list, of } => Some((list, Some(of))),
            _ => None,
        }
    }

    /// An expression by place.
    #[inline]
    pub fn ex(&self, id: ExprId) -> Option<&Ex> {
        self.program.exprs.get(id.0 as usize)
    }

    pub(in crate::table) fn family(&self, id: FamilyId) -> Option<&Family> {
        self.program.families.get(id.0 as usize)
    }

    pub(in crate::table) fn native(&self, id: u32) -> Option<&NativeType> {
        self.natives.get(id as usize)
    }

    /// The number of a word that fields are compared with. 0 for any other text.
    pub fn word_number(&self, text: &[u8]) -> u64 {
        self.program.words.get(text).copied().unwrap_or(0)
    }

    /// Bytes up to which something is read.
    pub fn delimiter(&self, place: u32) -> &[u8] {
        self.program.delimiters.get(place as usize).map_or(&[], Vec::as_slice)
    }

    pub(in crate::table) fn dialect(&self, id: u32) -> Option<Sym> {
        self.program.dialects.get(id as usize).copied()
    }

    /// Whether a text of the tables is the note of a dialect, which says that a region was read in
    /// this dialect.
    pub fn is_dialect(&self, text: Sym) -> bool {
        self.program.dialects.contains(&text)
    }

    /// The note of a dialect with this text.
    pub(crate) fn dialect_note(&self, text: &str) -> Option<Sym> {
        self.program.dialects.iter().copied().find(|note| self.name(*note) == text)
    }

    pub(crate) fn count_name(&self) -> Sym {
        self.program.builtins.count
    }

    pub(crate) fn present_name(&self) -> Sym {
        self.program.builtins.present
    }

    pub(crate) fn value_name(&self) -> Sym {
        self.program.builtins.value
    }

    pub(crate) fn text_name(&self) -> Sym {
        self.program.builtins.text
    }

    pub(crate) fn padding_name(&self) -> Sym {
        self.program.builtins.padding
    }

    pub(crate) fn end_name(&self) -> Sym {
        self.program.builtins.end
    }

    pub(crate) fn padding_type(&self) -> TypeRef {
        self.program.builtins.bytes
    }

    pub(crate) fn undecoded_type(&self) -> TypeRef {
        self.program.builtins.undecoded
    }
}

impl Tables {
    /// The types of values whose type no table names.
    pub fn value_types(&self) -> &ValueTypes {
        &self.program.builtins.values
    }

    /// Name and type of a position.
    #[inline]
    pub fn position(&self, layout: &Layout, index: u32) -> Option<(Sym, TypeRef)> {
        let count = layout.positions?.count;
        if index >= u32::from(count) {
            return None;
        }
        match self.step(layout.start + index)? {
            LayoutStep::Field { name, ty, .. } => Some((*name, *ty)),
            _ => None,
        }
    }

    /// The type of the value at a key, if the tables name the key.
    pub fn key(&self, keys: LayoutId, key: &str) -> Option<TypeRef> {
        let layout = self.layout(keys)?;
        let count = u32::from(layout.positions?.count);
        (0..count)
            .filter_map(|i| self.position(layout, i))
            .find(|(name, _)| self.name(*name) == key)
            .map(|(_, ty)| ty)
    }
}
