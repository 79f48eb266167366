//! Compiles the positions of self-describing arrays: which layouts name positions, and what they
//! may contain.
//!
//! It knows the language, not how a protocol writes such values.

use super::super::error::TableError;
use super::super::program::*;
use super::super::text::*;
use super::Compiler;
use super::scope::FieldScope;
use crate::tree::{Sym, TypeRef};

/// The type of a self-describing value with a name.
pub(super) fn value_type(name: &str) -> Option<ValueRead> {
    Some(match name {
        "value" => ValueRead::Any,
        "int" => ValueRead::Int,
        "uint" => ValueRead::Uint,
        "float" => ValueRead::Float,
        "text" => ValueRead::Text,
        "array" => ValueRead::Array,
        "packet" => ValueRead::Packet,
        _ => return None,
    })
}

impl Compiler<'_> {
    /// The types of values whose type no table names.
    pub(super) fn value_types(&mut self) -> ValueTypes {
        let mut plain = |text: &str, read: ValueRead| {
            self.out.types.push(TypeDef {
                read: ReadAs::Value(read),
                text: text.to_string().into(),
                ..TypeDef::blank()
            });
            TypeRef(self.out.types.len() as u32 - 1)
        };
        let mapping = ValueRead::Mapping { of: None, keys: None, array: None };
        let mut types = ValueTypes {
            any: plain("value", ValueRead::Any),
            int: plain("int", ValueRead::Int),
            float: plain("float", ValueRead::Float),
            text: plain("text", ValueRead::Text),
            array: plain("array", ValueRead::Array),
            mapping: plain("mapping", mapping),
            pair: plain("pair", ValueRead::Array),
            object: plain("object", ValueRead::Any),
            syntax: plain("syntax", ValueRead::Any),
            open_name: Sym::ELEMENT,
            close_name: Sym::ELEMENT,
            end_name: Sym::ELEMENT,
            value_name: Sym::ELEMENT,
        };
        types.open_name = self.name("open");
        types.close_name = self.name("close");
        types.end_name = self.name("text_end");
        types.value_name = self.name("value");
        types
    }

    /// Compiles `mapping`, with the types of its keys and values.
    pub(super) fn mapping(
        &mut self,
        at: usize,
        of: Option<&TypeAst>,
        keys: &[Entry],
        array: Option<&TypeAst>,
        scope: &mut FieldScope,
    ) -> Result<ReadAs, TableError> {
        let outer = std::mem::replace(&mut self.positional, true);
        let mut value = |ty: &TypeAst, scope: &mut FieldScope| {
            let of = self.type_(ty, &NO_MODS, scope)?;
            self.check_sort(ty, of)?;
            Ok(of)
        };
        let of = of.map(|ty| value(ty, scope)).transpose()?;
        let array = array.map(|ty| value(ty, scope)).transpose()?;
        let keys = match keys {
            [] => None,
            keys => match self.inline(at, keys, scope)? {
                ReadAs::Layout { layout, .. } => Some(layout),
                _ => None,
            },
        };
        self.positional = outer;
        Ok(ReadAs::Value(ValueRead::Mapping { of, keys, array }))
    }

    /// Positions extend positions, structures of bytes extend structures of bytes.
    pub(super) fn same_sort(
        &self,
        at: usize,
        parent: &StructAst,
        child: &StructAst,
    ) -> Result<(), TableError> {
        match (parent.positions, child.positions) {
            (true, false) => self.error(
                at,
                "these are positions of an array: a structure of bytes cannot go on from them",
            ),
            (false, true) => self.error(
                at,
                "this is a structure of bytes: positions are declared with `positions NAME { … }`",
            ),
            _ => Ok(()),
        }
    }

    /// Positions contain only self-describing values, and other structures contain none.
    pub(super) fn check_sort(&self, written: &TypeAst, ty: TypeRef) -> Result<(), TableError> {
        match (self.positional, self.describes_itself(ty)) {
            (true, false) => self.error(
                written.at,
                "in an array's positions stand `int`, `uint`, `float`, `text`, `value`, `packet`, \
                 `mapping`, positions declared elsewhere, and lists of these",
            ),
            (false, true) => self.error(
                written.at,
                "a self-describing value is possible only in `positions`, and in messages of a \
                 `positional` service",
            ),
            _ => Ok(()),
        }
    }

    fn describes_itself(&self, ty: TypeRef) -> bool {
        match self.out.types.get(ty.0 as usize).map(|t| &t.read) {
            Some(ReadAs::Value(_)) => true,
            Some(ReadAs::Layout { layout, .. }) => {
                self.out.layouts.get(layout.0 as usize).is_some_and(|l| l.positions.is_some())
            }
            Some(ReadAs::List { of, len }) => {
                matches!(len.from, LenFrom::Rest) && of.0 != ty.0 && self.describes_itself(*of)
            }
            _ => false,
        }
    }

    /// Counts a layout's positions, and those that are required.
    pub(super) fn fill_positions<'e>(
        &mut self,
        id: LayoutId,
        entries: impl Iterator<Item = &'e Entry>,
    ) -> Result<(), TableError> {
        let mut found = Positions::default();
        for entry in entries {
            let Entry::Field(FieldAst { at, mods, span, of, .. }) = entry else {
                return self.error(
                    0,
                    "an array's positions are fields alone: whether one is there cannot depend on \
                     another",
                );
            };
            let mods = mods.as_deref().unwrap_or(&NO_MODS);
            if *span {
                return self.error(*at, "an array's positions are fields, not spans");
            }
            if !mods.optional && found.required < found.count {
                return self.error(
                    of.at,
                    "behind an `optional` position all are `optional`: an array can only end early",
                );
            }
            found.count += 1;
            if !mods.optional {
                found.required = found.count;
            }
        }
        if let Some(layout) = self.out.layouts.get_mut(id.0 as usize) {
            layout.positions = Some(found);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::super::super::{TableError, TableSource, Tables};
    use super::*;

    fn load(text: &str) -> Result<Tables, TableError> {
        Tables::load(
            "p",
            vec![TableSource {
                name: "p.table".into(),
                text: format!("protocol p\n{text}").into(),
            }],
            &[],
        )
    }

    fn wrong(text: &str) -> String {
        load(text).err().map(|e| e.message).unwrap_or_default()
    }

    const SERVICE: &str = "service s positional { length: u32be after }\n";

    #[test]
    fn positions_have_names_and_types_in_order() {
        let text = "positions Head { type: text, ttl: uint }
            message s both \"tell\" extends Head { data: mapping of int optional, who: { name: \
                    text }[*] optional }";
        let tables = load(&format!("{SERVICE}{text}")).unwrap();
        let def = tables.message(tables.message_named("tell").unwrap()).unwrap();
        let layout = tables.layout(def.layout.unwrap()).unwrap();
        assert_eq!(layout.positions, Some(Positions { count: 4, required: 2 }));
        let names: Vec<&str> = (0..9)
            .map_while(|i| tables.position(layout, i))
            .map(|(name, _)| tables.name(name))
            .collect();
        assert_eq!(names, ["type", "ttl", "data", "who"]);
    }

    #[test]
    fn keys_of_mappings_have_types() {
        let tables = load("positions P { info: mapping { port: uint, name: text } }").unwrap();
        let ty = tables.type_named("P").unwrap();
        let ReadAs::Layout { layout, .. } = tables.type_def(ty).unwrap().read else { return };
        let (_, info) = tables.position(tables.layout(layout).unwrap(), 0).unwrap();
        let ReadAs::Value(ValueRead::Mapping { keys: Some(keys), .. }) =
            tables.type_def(info).unwrap().read
        else {
            return;
        };
        assert!(tables.key(keys, "port").is_some());
        assert!(tables.key(keys, "other").is_none());
    }

    #[test]
    fn bytes_and_values_are_kept_apart() {
        assert!(wrong("positions P { a: u32 }").contains("in an array's positions stand"));
        assert!(wrong("struct S { a: text }").contains("possible only in `positions`"));
        assert!(
            wrong("positions P { a: text }\nstruct S extends P { b: u8 }")
                .contains("these are positions")
        );
        assert!(
            wrong("struct S { b: u8 }\npositions P extends S { a: text }")
                .contains("a structure of bytes")
        );
    }

    #[test]
    fn an_array_can_only_end_early() {
        assert!(
            wrong("positions P { a: text optional, b: text }")
                .contains("behind an `optional` position")
        );
        assert!(wrong("positions P { a: int, if a == 1 { b: text } }").contains("fields alone"));
        assert!(wrong("positions P { span a: int }").contains("not spans"));
    }
}
