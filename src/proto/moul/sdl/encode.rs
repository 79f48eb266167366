//! Writes the records of states by their descriptors: the inverse of `decode`.

use std::sync::Arc;

use super::descriptor::{Descriptor, NestedType, SimpleType, Variable};
use super::names::SdlNames;
use super::store::Store;
use crate::table::{EncodeStop, Encoding, Field, Given, JsonKind, Slot};
use crate::tree::{Sym, TypeRef};

/// The class number that means a null object.
const NO_OBJECT: i128 = 0x8000;

/// The first list of a record: variables with values.
pub(super) fn write_variables(
    encoding: &mut Encoding<'_>,
    field: &Field,
) -> Result<Slot, EncodeStop> {
    let (names, object) = begin(encoding, field)?;
    match find_descriptor(encoding, field) {
        Some(descriptor) => StateWriter { encoding, names, field, long: LongList::Byte }
            .write_simple_list(object, &descriptor)?,
        None => write_nothing(encoding, names, field, object)?,
    }
    Ok(Slot::Number(0))
}

/// The second list: variables with records.
pub(super) fn write_nested(encoding: &mut Encoding<'_>, field: &Field) -> Result<Slot, EncodeStop> {
    let (names, object) = begin(encoding, field)?;
    match find_descriptor(encoding, field) {
        Some(descriptor) => {
            let said = |text| encoding.is_said(object, text);
            let long = match (said(super::decode::WRAPPED), said(super::decode::WIDE)) {
                (true, _) => LongList::Wrapped,
                (_, true) => LongList::Wide,
                _ => LongList::Byte,
            };
            StateWriter { encoding, names, field, long }.write_nested_list(object, &descriptor)?
        }
        None => write_nothing(encoding, names, field, object)?,
    }
    Ok(Slot::Number(0))
}

/// An object in a region with its class before it, or null.
pub(super) fn write_creatable(
    encoding: &mut Encoding<'_>,
    field: &Field,
) -> Result<Slot, EncodeStop> {
    let names = look_up(encoding, field)?;
    let of_class = Field { ty: names.class_type, ..*field };
    if let Given::Json(node) = field.given
        && encoding.json.kind(node) == JsonKind::Null
    {
        encoding.take(node);
        encoding.put_number(&of_class, NO_OBJECT)?;
        return Ok(Slot::Number(NO_OBJECT as u64));
    }
    let object = encoding.object(field)?;
    let given = encoding.lookup_sym(object, names.class).map_or(Given::Nothing, Given::Json);
    let of_class = Field { name: names.class, object, given, ..of_class };
    let class = encoding.number(&of_class)?;
    encoding.put_number(&of_class, class)?;
    let tables = encoding.tables;
    let family = tables.families().iter().find(|family| family.name == "plCreatable");
    let member = family.and_then(|family| {
        let class = u64::try_from(class).ok()?;
        let at = family.members.binary_search_by_key(&class, |member| member.0).ok()?;
        tables.layout(family.members.get(at)?.1)
    });
    let given = encoding.lookup_sym(object, names.object);
    let inner = Field {
        name: names.object,
        object,
        given: given.map_or(Given::Nothing, Given::Json),
        ..*field
    };
    encoding.counted_in_bytes(&inner, names.size32, |encoding| match (member, given) {
        (Some(layout), Some(node)) => encoding.bounded(&inner, &[layout.ty], false, node),
        _ => encoding.undecoded(object).map(|_| ()),
    })?;
    Ok(Slot::Number(class as u64))
}

/// How long lists are counted: see `decode`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LongList {
    Byte,
    Wrapped,
    Wide,
}

fn look_up(encoding: &mut Encoding<'_>, field: &Field) -> Result<SdlNames, EncodeStop> {
    let here = encoding.tables.id();
    let kept = encoding.state.scratch.as_ref().and_then(|kept| kept.downcast_ref());
    if let Some((_, names)) = kept.filter(|(of, _): &&(u32, SdlNames)| *of == here) {
        return Ok(*names);
    }
    match SdlNames::look_up(encoding.tables) {
        Some(names) => {
            encoding.state.scratch = Some(Box::new((here, names)));
            Ok(names)
        }
        None => encoding.fail_at(field, "cannot be encoded: the tables have no states"),
    }
}

fn begin(encoding: &mut Encoding<'_>, field: &Field) -> Result<(SdlNames, u32), EncodeStop> {
    let names = look_up(encoding, field)?;
    let object = encoding.object(field)?;
    Ok((names, object))
}

/// The descriptor that the state around names.
fn find_descriptor(encoding: &Encoding<'_>, field: &Field) -> Option<Arc<Descriptor>> {
    let version = u32::try_from(encoding.arg(field, 0)).ok()?;
    let name = encoding.json.text_of(field.object, "descriptor_name")?;
    find_store(encoding).find(name, version).cloned()
}

fn find_store<'a>(encoding: &'a Encoding<'_>) -> &'a Store {
    let own = encoding.state.context.as_ref().and_then(|context| context.downcast_ref());
    own.unwrap_or_else(|| Store::engine())
}

/// Without a descriptor only empty lists can be written.
fn write_nothing(
    encoding: &mut Encoding<'_>,
    names: SdlNames,
    field: &Field,
    object: u32,
) -> Result<(), EncodeStop> {
    if encoding.json.children(object).next().is_some() {
        let name = encoding.json.text_of(field.object, "descriptor_name").unwrap_or("");
        let text = format!("cannot be encoded: no state descriptor `{name}` of this version");
        return encoding.fail(object, text);
    }
    encoding.put_number(&Field { ty: names.size8, ..*field }, 0)
}

struct StateWriter<'e, 'a> {
    encoding: &'e mut Encoding<'a>,
    names: SdlNames,
    /// The list around everything.
    field: &'e Field,
    long: LongList,
}

impl StateWriter<'_, '_> {
    /// A count or an index, in as many bytes as its largest possible value needs.
    fn put_sized(&mut self, number: usize, largest: usize) -> Result<(), EncodeStop> {
        let ty = self.names.sized(largest);
        self.encoding.put_number(&Field { ty, ..*self.field }, number as i128)
    }

    /// A field of an object, by name.
    fn write(&mut self, object: u32, name: Sym, ty: TypeRef) -> Result<u64, EncodeStop> {
        let given = self.encoding.lookup_sym(object, name).map_or(Given::Nothing, Given::Json);
        let field = Field { name, ty, object, given, ..*self.field };
        match given {
            Given::Nothing => self.encoding.fail_at(&field, "is missing"),
            _ => match self.encoding.value(&field)? {
                Slot::Number(number) => Ok(number),
                _ => Ok(0),
            },
        }
    }

    fn enter(&mut self, node: u32) -> Result<(), EncodeStop> {
        self.encoding.object(&Field { given: Given::Json(node), ..*self.field }).map(|_| ())
    }

    fn write_simple_list(
        &mut self,
        object: u32,
        descriptor: &Descriptor,
    ) -> Result<(), EncodeStop> {
        let places = 0..descriptor.simple_count();
        let simple: Vec<_> = places.filter_map(|place| descriptor.simple(place)).collect();
        self.write_list(object, descriptor, &simple, Self::write_simple)
    }

    fn write_nested_list(
        &mut self,
        object: u32,
        descriptor: &Descriptor,
    ) -> Result<(), EncodeStop> {
        let places = 0..descriptor.nested_count();
        let nested: Vec<_> = places.filter_map(|place| descriptor.nested(place)).collect();
        self.write_list(object, descriptor, &nested, Self::write_nested)
    }

    /// Writes the members of an object that are variables of one sort, each behind its place among
    /// these variables unless all are there.
    fn write_list<T: Copy>(
        &mut self,
        object: u32,
        descriptor: &Descriptor,
        variables: &[(&Variable, T)],
        write: impl Fn(&mut Self, u32, &Variable, T) -> Result<(), EncodeStop>,
    ) -> Result<(), EncodeStop> {
        let json = self.encoding.json;
        let members: Vec<u32> = json.children(object).collect();
        let largest = descriptor.variables().len();
        self.put_sized(members.len(), largest)?;
        let all = members.len() == variables.len();
        for (number, member) in members.into_iter().enumerate() {
            let place = variables.iter().position(|(v, _)| *v.name == *json.key(member));
            let place = self.place(member, place, descriptor, all.then_some(number))?;
            if !all {
                self.put_sized(place, largest)?;
            }
            if let Some((variable, of)) = variables.get(place) {
                self.enter(member)?;
                write(self, member, variable, *of)?;
            }
        }
        Ok(())
    }

    /// The place of a variable. Where all are there, they stand in the descriptor's order.
    fn place(
        &self,
        member: u32,
        place: Option<usize>,
        descriptor: &Descriptor,
        number: Option<usize>,
    ) -> Result<usize, EncodeStop> {
        let Descriptor { name, version, .. } = descriptor;
        match place {
            None => {
                let text = format!("is no such variable of `{name}`, version {version}");
                self.encoding.fail(member, text)
            }
            Some(place) if number.is_some_and(|number| number != place) => {
                let text = format!("is not in the order of `{name}`, version {version}");
                self.encoding.fail(member, text)
            }
            Some(place) => Ok(place),
        }
    }

    fn write_header(&mut self, object: u32) -> Result<(), EncodeStop> {
        let flags = self.write(object, self.names.save_flags, self.names.var_flags)?;
        if flags & 2 != 0 {
            self.write(object, self.names.notification_info, self.names.notification)?;
        }
        Ok(())
    }

    fn write_simple(
        &mut self,
        object: u32,
        variable: &Variable,
        simple: SimpleType,
    ) -> Result<(), EncodeStop> {
        self.write_header(object)?;
        let flags = self.write(object, self.names.save_flags2, self.names.var_flags)?;
        if flags & 4 != 0 {
            self.write(object, self.names.time_stamp, self.names.time)?;
        }
        if flags & 8 != 0 {
            return Ok(());
        }
        let value = self.encoding.tables.value_name();
        match (variable.count, self.names.of_type(simple)) {
            (Some(1), Some(ty)) => self.write(object, value, ty).map(|_| ()),
            (None, None) => self.put_sized(0, usize::MAX),
            (Some(_), None) => Ok(()),
            (count, Some(ty)) => self.write_values(object, count, ty),
        }
    }

    fn list(&mut self, object: u32, name: Sym) -> Result<Vec<u32>, EncodeStop> {
        let Some(node) = self.encoding.lookup_sym(object, name) else {
            let field = Field { name, object, given: Given::Nothing, ..*self.field };
            return self.encoding.fail_at(&field, "is missing");
        };
        if self.encoding.json.kind(node) != JsonKind::List {
            return self.encoding.fail(node, "is no list");
        }
        self.encoding.enter(node);
        Ok(self.encoding.json.children(node).collect())
    }

    fn write_values(
        &mut self,
        object: u32,
        count: Option<u32>,
        ty: TypeRef,
    ) -> Result<(), EncodeStop> {
        let name = self.encoding.tables.value_name();
        let values = self.list(object, name)?;
        match count {
            None => self.put_sized(values.len(), usize::MAX)?,
            Some(count) if count as usize != values.len() => {
                let text = format!("{} values, where {count} are expected", values.len());
                return self.encoding.fail(object, text);
            }
            Some(_) => {}
        }
        for value in values {
            let given = Given::Json(value);
            self.encoding.value(&Field { name: Sym::ELEMENT, ty, given, ..*self.field })?;
        }
        Ok(())
    }

    fn write_nested(
        &mut self,
        object: u32,
        variable: &Variable,
        of: &NestedType,
    ) -> Result<(), EncodeStop> {
        self.write_header(object)?;
        self.write(object, self.names.save_flags2, self.names.var_flags)?;
        let total = match variable.count {
            Some(count) => count as usize,
            None => self.write(object, self.names.total, self.names.size32)? as usize,
        };
        let largest = match (variable.count, self.long) {
            (Some(count), _) => count as usize,
            (None, LongList::Wide) => total,
            (None, _) => 0,
        };
        let records = self.list(object, self.names.records)?;
        let count = records.len();
        let wrapped = self.long == LongList::Wrapped && total > 0xff && count == total;
        let written = if variable.count.is_none() && wrapped { count & 0xff } else { count };
        self.put_sized(written, largest)?;
        let largest = (count != total).then_some(largest);
        let store = find_store(self.encoding);
        let (seen, newest) = (store.nested(of, false).cloned(), store.nested(of, true).cloned());
        let Some(descriptor) = seen.as_ref().or(newest.as_ref()).filter(|_| count > 0) else {
            if count == 0 {
                return Ok(());
            }
            let text = format!("cannot be encoded: no state descriptor `{}` is known", of.name);
            return self.encoding.fail(object, text);
        };
        let mark = self.encoding.mark_place();
        match (self.write_records(&records, descriptor, largest), newest) {
            (Err(EncodeStop::Failed(_)), Some(newest)) if seen.as_ref() != Some(&newest) => {
                self.encoding.back_to(mark);
                self.write_records(&records, &newest, largest)
            }
            (result, _) => result,
        }
    }

    fn write_records(
        &mut self,
        records: &[u32],
        descriptor: &Descriptor,
        largest: Option<usize>,
    ) -> Result<(), EncodeStop> {
        for record in records {
            self.enter(*record)?;
            if let Some(largest) = largest {
                let ty = self.names.sized(largest);
                self.write(*record, self.names.index, ty)?;
            }
            self.write(*record, self.names.flags, self.names.record_flags)?;
            self.write(*record, self.names.io_version, self.names.size8)?;
            for name in [self.names.variables, self.names.nested] {
                let Some(list) = self.encoding.lookup_sym(*record, name) else {
                    let field =
                        Field { name, object: *record, given: Given::Nothing, ..*self.field };
                    return self.encoding.fail_at(&field, "is missing");
                };
                self.enter(list)?;
                if name == self.names.variables {
                    self.write_simple_list(list, descriptor)?;
                } else {
                    self.write_nested_list(list, descriptor)?;
                }
            }
        }
        Ok(())
    }
}
