//! Of which texts an `info` line can consist, by the tables alone: without reading a byte.
//! `facts::write_info` writes the lines.

use super::Tables;
use super::program::*;
use crate::tree::{Sym, TextKind, TypeRef};

/// A part of an `info` line that is not a text of the message. No two values come one directly
/// behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InfoText<'a> {
    /// What comes between values.
    Between(&'a str),
    /// All of a value.
    Value(&'a str),
    /// A value of such characters alone.
    Characters(&'static str),
}

const DECIMAL: InfoText<'static> = InfoText::Characters("0123456789.-");
const HEX: InfoText<'static> = InfoText::Characters("0123456789abcdef-");

impl Tables {
    /// Whether the line of a message with a layout, or of an object of a class with it, may have a
    /// wanted part. Also `true` where the parts are not clear, or one value may come directly
    /// behind another. Objects within are not looked into, nor are names that earlier messages gave
    /// to numbers.
    pub fn info_may_have(&self, id: LayoutId, wanted: &dyn Fn(InfoText<'_>) -> bool) -> bool {
        let mut search = InfoSearch { tables: self, wanted, seen: Vec::new() };
        let is_message = self.messages().iter().any(|message| message.layout == Some(id));
        let classes = self
            .families()
            .iter()
            .flat_map(|family| family.members.iter().map(move |member| (family, member)));
        let mut classes = classes.filter(|(_, member)| member.1 == id);
        is_message && search.message(id)
            || classes.any(|(family, member)| search.class(family, member.0, member.1))
    }

    /// The encodings of all texts.
    pub fn text_kinds(&self) -> Vec<TextKind> {
        let mut kinds: Vec<TextKind> = Vec::new();
        for kind in (0..)
            .map_while(|number| self.type_def(TypeRef(number)))
            .flat_map(|def| self.encodings(def))
        {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds
    }
}

/// Looks for a wanted part. Its methods return whether there may be one.
struct InfoSearch<'t, 'w> {
    tables: &'t Tables,
    wanted: &'w dyn Fn(InfoText<'_>) -> bool,
    /// Structures whose lines were looked at.
    seen: Vec<LayoutId>,
}

impl InfoSearch<'_, '_> {
    fn between(&self, text: &str) -> bool {
        !text.is_empty() && (self.wanted)(InfoText::Between(text))
    }

    fn message(&mut self, id: LayoutId) -> bool {
        self.line(id).unwrap_or_else(|| self.first_fields(id))
    }

    /// An object: the name of its class, and the line of the class.
    fn class(&mut self, family: &Family, number: u64, id: LayoutId) -> bool {
        let tables = self.tables;
        let Some(name) = tables.symbols(family.of).and_then(|symbols| symbols.get(number)) else {
            return (self.wanted)(DECIMAL) || self.line(id).unwrap_or(false);
        };
        let named = tables.type_named(&name.name).and_then(|ty| match tables.type_def(ty)?.read {
            ReadAs::Layout { layout, .. } => Some(layout),
            _ => None,
        });
        let mut lines = [Some(id), named].into_iter().flatten();
        self.between(" ")
            || (self.wanted)(InfoText::Value(&name.name))
            || lines.any(|layout| self.line(layout).unwrap_or(false))
    }

    /// The line of a structure; `None` where it has no line of its own.
    fn line(&mut self, id: LayoutId) -> Option<bool> {
        let tables = self.tables;
        let line = tables.info_of(tables.layout(id)?)?;
        if self.seen.contains(&id) {
            return Some(false);
        }
        self.seen.push(id);
        Some(self.parts(&line.parts, id, &mut false))
    }

    /// `open` says whether a value may come directly before these parts, and then whether one may
    /// come directly before what follows.
    fn parts(&mut self, parts: &[InfoPart], id: LayoutId, open: &mut bool) -> bool {
        parts.iter().any(|part| match part {
            InfoPart::Text(text) => {
                *open &= text.is_empty();
                self.between(text)
            }
            InfoPart::Field(path) => std::mem::replace(open, true) || self.field(path, id),
            InfoPart::Choice { yes, no, .. } => {
                *open &= yes.is_empty() || no.is_empty();
                self.between(yes) || self.between(no)
            }
            InfoPart::Optional(parts) => {
                let mut inner = *open;
                let found = self.parts(parts, id, &mut inner);
                *open |= inner;
                found
            }
        })
    }

    /// The value at the end of a path from a structure's fields.
    fn field(&mut self, path: &[InfoStep], id: LayoutId) -> bool {
        let Some((InfoStep::Name(first), rest)) = path.split_first() else { return true };
        let mut types = self.named(id, *first);
        for step in rest {
            let Some(next) =
                types.iter().map(|ty| self.step(*ty, *step)).collect::<Option<Vec<_>>>()
            else {
                return true;
            };
            types = next.concat();
        }
        types.is_empty() || types.iter().any(|ty| self.value(*ty))
    }

    /// The types of a structure's fields of a name.
    fn named(&self, id: LayoutId, name: Sym) -> Vec<TypeRef> {
        self.tables.fields_of(id).filter(|(field, _)| *field == name).map(|(_, ty)| ty).collect()
    }

    /// The types that a step from a value of a type leads to; `None` where that is not clear.
    fn step(&self, ty: TypeRef, step: InfoStep) -> Option<Vec<TypeRef>> {
        match (&self.tables.type_def(ty)?.read, step) {
            (ReadAs::Layout { layout, .. }, InfoStep::Name(name)) => {
                Some(self.named(*layout, name))
            }
            (ReadAs::List { of, .. }, InfoStep::Element(_)) => Some(vec![*of]),
            (ReadAs::NullOr { of, .. }, step) => self.step(*of, step),
            (ReadAs::Region(RegionType { inner, .. }), step) => match inner.as_slice() {
                [inner] => self.step(*inner, step),
                _ => None,
            },
            _ => None,
        }
    }

    fn value(&mut self, ty: TypeRef) -> bool {
        let tables = self.tables;
        let Some(def) = tables.type_def(ty) else { return true };
        match &def.read {
            ReadAs::Int { .. } | ReadAs::Ipv4 { .. } => {
                self.symbols(ty, &|_| true) || (self.wanted)(DECIMAL)
            }
            ReadAs::Bool | ReadAs::Float { .. } => {
                let words =
                    ["true", "false", "NaN", "inf", "-inf"].into_iter().map(InfoText::Value);
                self.symbols(ty, &|_| true) || words.chain([DECIMAL]).any(self.wanted)
            }
            ReadAs::Uuid { .. } => (self.wanted)(HEX),
            ReadAs::Bytes(_) => {
                (self.wanted)(HEX) || self.between("… (") || self.between(" bytes)")
            }
            ReadAs::Text { .. } => false,
            ReadAs::Native { .. } => !tables.is_text(ty),
            ReadAs::List { .. } => (self.wanted)(DECIMAL),
            ReadAs::Layout { layout, .. } => self.line(*layout).unwrap_or(true),
            // The outline knows which class it is, if its layout is known.
            ReadAs::Family(family) => tables.family(*family).is_none_or(|family| {
                let other = |number| family.numbers.find(number).is_none();
                self.symbols(family.of, &other) || (self.wanted)(DECIMAL)
            }),
            ReadAs::Region(RegionType { inner, .. }) => {
                inner.is_empty() || inner.iter().any(|ty| self.enclosed(*ty))
            }
            ReadAs::NullOr { of, .. } => self.enclosed(*of),
            ReadAs::Digits { .. } | ReadAs::Value(_) => true,
        }
    }

    /// A value within another, whose type its node may have. Of a structure the line then has the
    /// first field, as of an object.
    fn enclosed(&mut self, ty: TypeRef) -> bool {
        let tables = self.tables;
        let first = match tables.type_def(ty).map(|def| &def.read) {
            Some(ReadAs::Layout { layout, .. }) => {
                tables.layout(*layout).and_then(|layout| tables.step(layout.start))
            }
            _ => return self.value(ty),
        };
        let Some(LayoutStep::Field { ty: first, .. }) = first else { return true };
        let names_type = |name: &str| tables.type_named(name).is_some();
        let classes = tables
            .symbols(*first)
            .is_some_and(|symbols| symbols.values.iter().any(|v| names_type(&v.name)));
        classes || self.value(*first) || self.value(ty)
    }

    /// The names of those numbers of a type that are asked for.
    fn symbols(&self, ty: TypeRef, which: &dyn Fn(u64) -> bool) -> bool {
        self.tables.symbols(ty).is_some_and(|symbols| {
            let mut values = symbols.values.iter().filter(|value| which(value.value));
            symbols.flags && self.between("+")
                || values.any(|value| (self.wanted)(InfoText::Value(&value.name)))
        })
    }

    /// The line of a message that has none in the tables: its first fields, with their names, or
    /// those of its structures if it has nothing else.
    fn first_fields(&mut self, id: LayoutId) -> bool {
        let tables = self.tables;
        let fields: Vec<(Sym, TypeRef)> = tables.fields_of(id).collect();
        if fields
            .iter()
            .any(|(name, ty)| self.first_field(&format!(" {}=", tables.name(*name)), *ty))
        {
            return true;
        }
        !self.begins_plainly(id)
            && fields.into_iter().any(|(name, ty)| match tables.type_def(ty).map(|def| &def.read) {
                Some(ReadAs::Layout { layout, .. }) => {
                    tables.fields_of(*layout).any(|(inner, ty)| {
                        self.first_field(
                            &format!(" {}.{}=", tables.name(name), tables.name(inner)),
                            ty,
                        )
                    })
                }
                _ => !self.is_plain(ty),
            })
    }

    fn first_field(&mut self, name: &str, ty: TypeRef) -> bool {
        let composite = self.tables.type_def(ty).is_some_and(|def| {
            matches!(def.read, ReadAs::Layout { .. } | ReadAs::List { .. } | ReadAs::Family(_))
                || def.transaction
        });
        self.between(name) || !composite && self.value(ty)
    }

    /// Whether a plain field comes before all that may be a structure, so that no structure is
    /// shown.
    fn begins_plainly(&self, id: LayoutId) -> bool {
        let start = self.tables.layout(id).map_or(u32::MAX, |layout| layout.start);
        let mut fields = (start..).map_while(|step| match self.tables.step(step)? {
            LayoutStep::Field { ty, .. } => Some(*ty).filter(|ty| self.is_plain(*ty)),
            _ => None,
        });
        fields.any(|ty| {
            let def = self.tables.type_def(ty);
            def.is_some_and(|def| !def.transaction && !matches!(def.read, ReadAs::List { .. }))
        })
    }

    /// Whether a type has no structure, and is there wherever it is read.
    fn is_plain(&self, ty: TypeRef) -> bool {
        self.tables.type_def(ty).is_some_and(|def| match def.read {
            ReadAs::Int { .. }
            | ReadAs::Ipv4 { .. }
            | ReadAs::Bool
            | ReadAs::Float { .. }
            | ReadAs::Uuid { .. } => true,
            ReadAs::Bytes(_)
            | ReadAs::Text { .. }
            | ReadAs::Digits { .. }
            | ReadAs::List { .. } => true,
            ReadAs::Native { .. } => self.tables.is_text(ty),
            _ => false,
        })
    }
}
