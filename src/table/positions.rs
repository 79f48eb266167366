//! What tables say of self-describing arrays and mappings: names and types by position and by key.

use super::Tables;
use super::program::*;
use crate::tree::{Sym, TypeRef};

/// What a self-describing value should turn out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueRead {
    /// Anything.
    Any,
    /// An integer.
    Int,
    /// An integer of 0 or more.
    Uint,
    /// A float.
    Float,
    /// A text.
    Text,
    /// An array.
    Array,
    /// An array whose first element names a message, whose positions the others stand at.
    Packet,
    /// A mapping.
    Mapping {
        /// What the values of other keys are.
        of: Option<TypeRef>,
        /// What the values of these keys are.
        keys: Option<LayoutId>,
    },
}

/// The positions a layout names: all steps from its first are fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Positions {
    /// How many there are.
    pub count: u16,
    /// How many of them have to be there.
    pub required: u16,
}

/// The types of values whose type no table names, and the names of what holds them together.
#[derive(Debug, Clone, Copy)]
pub struct ValueTypes {
    /// Anything.
    pub any: TypeRef,
    /// An integer.
    pub int: TypeRef,
    /// A float.
    pub float: TypeRef,
    /// A text.
    pub text: TypeRef,
    /// An array.
    pub array: TypeRef,
    /// A mapping.
    pub mapping: TypeRef,
    /// A key with its value, where a mapping is shown as a list.
    pub pair: TypeRef,
    /// A reference to an object of the sender's.
    pub object: TypeRef,
    /// Brackets and separators.
    pub syntax: TypeRef,
    /// The name of an opening bracket.
    pub open_name: Sym,
    /// The name of a closing bracket.
    pub close_name: Sym,
    /// The name of what ends a text.
    pub end_name: Sym,
    /// The name of a value that is no message.
    pub value_name: Sym,
}

impl Default for ValueTypes {
    fn default() -> Self {
        let (ty, name) = (TypeRef(0), Sym::ELEMENT);
        ValueTypes {
            any: ty,
            int: ty,
            float: ty,
            text: ty,
            array: ty,
            mapping: ty,
            pair: ty,
            object: ty,
            syntax: ty,
            open_name: name,
            close_name: name,
            end_name: name,
            value_name: name,
        }
    }
}

impl Tables {
    /// The types of values whose type no table names.
    pub fn value_types(&self) -> &ValueTypes {
        &self.fixed.values
    }

    /// Name and type of a position.
    #[inline]
    pub fn position(&self, layout: &Layout, index: u32) -> Option<(Sym, TypeRef)> {
        let count = layout.positions?.count;
        if index >= u32::from(count) {
            return None;
        }
        match self.step(layout.start + index)? {
            Op::Field { name, ty, .. } => Some((*name, *ty)),
            _ => None,
        }
    }

    /// The type of the value at a key, where the tables name the key.
    pub fn key(&self, keys: LayoutId, key: &str) -> Option<TypeRef> {
        let layout = self.layout(keys)?;
        let count = u32::from(layout.positions?.count);
        (0..count).filter_map(|i| self.position(layout, i)).find(|(name, _)| self.name(*name) == key).map(|(_, ty)| ty)
    }
}
