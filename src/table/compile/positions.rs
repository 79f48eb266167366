//! Positions of self-describing arrays into their compiled form: which layouts name positions, and what may stand in them.
//!
//! Knows the language, not how any protocol writes such values.

use super::super::ast::*;
use super::super::error::TableError;
use super::super::positions::{Positions, ValueRead, ValueTypes};
use super::super::program::*;
use super::Compiler;
use super::body::Scope;
use super::types::blank;
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
            self.out.types.push(TypeDef { read: Read::Value(read), text: text.into(), ..blank() });
            TypeRef(self.out.types.len() as u32 - 1)
        };
        let mapping = ValueRead::Mapping { of: None, keys: None };
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

    /// `mapping`, with what is known of its keys and values.
    pub(super) fn mapping(
        &mut self,
        at: usize,
        of: Option<&TypeAst>,
        keys: &[Entry],
        scope: &mut Scope,
    ) -> Result<Read, TableError> {
        let outer = std::mem::replace(&mut self.positional, true);
        let of = match of {
            Some(ty) => {
                let of = self.type_(ty, &Mods::default(), scope)?;
                self.check_sort(ty, of)?;
                Some(of)
            }
            None => None,
        };
        let keys = match keys {
            [] => None,
            keys => match self.inline(at, keys, scope)? {
                Read::Layout { layout, .. } => Some(layout),
                _ => None,
            },
        };
        self.positional = outer;
        Ok(Read::Value(ValueRead::Mapping { of, keys }))
    }

    /// Positions extend positions, structures of bytes extend structures of bytes.
    pub(super) fn same_sort(&self, at: usize, parent: &StructAst, child: &StructAst) -> Result<(), TableError> {
        match (parent.positions, child.positions) {
            (true, false) => {
                self.error(at, "these are positions of an array: a structure of bytes cannot go on from them")
            }
            (false, true) => {
                self.error(at, "this is a structure of bytes: positions are declared with `positions NAME { … }`")
            }
            _ => Ok(()),
        }
    }

    /// In positions stand self-describing values, elsewhere there are none.
    pub(super) fn check_sort(&self, written: &TypeAst, ty: TypeRef) -> Result<(), TableError> {
        match (self.positional, self.describes_itself(ty)) {
            (true, false) => self.error(
                written.at,
                "in an array's positions stand `int`, `uint`, `float`, `text`, `value`, `packet`, `mapping`, positions declared elsewhere, and lists of these",
            ),
            (false, true) => self.error(
                written.at,
                "a self-describing value stands only in `positions`, and in messages of a `positional` service",
            ),
            _ => Ok(()),
        }
    }

    fn describes_itself(&self, ty: TypeRef) -> bool {
        match self.out.types.get(ty.0 as usize).map(|t| &t.read) {
            Some(Read::Value(_)) => true,
            Some(Read::Layout { layout, .. }) => {
                self.out.layouts.get(layout.0 as usize).is_some_and(|l| l.positions.is_some())
            }
            Some(Read::List { of, len }) => {
                matches!(len.from, LenFrom::Rest) && of.0 != ty.0 && self.describes_itself(*of)
            }
            _ => false,
        }
    }

    /// Counts a layout's positions, and those that have to be there.
    pub(super) fn fill_positions<'e>(
        &mut self,
        id: LayoutId,
        entries: impl Iterator<Item = &'e Entry>,
    ) -> Result<(), TableError> {
        let mut found = Positions::default();
        for entry in entries {
            let Entry::Field { at, mods, span, of, .. } = entry else {
                return self
                    .error(0, "an array's positions are fields alone: whether one is there cannot depend on another");
            };
            if *span {
                return self.error(*at, "an array's positions are fields, not spans");
            }
            if !mods.optional && found.required < found.count {
                return self
                    .error(of.at, "behind an `optional` position all are `optional`: an array can only end early");
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
