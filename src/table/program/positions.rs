//! Self-describing arrays and mappings: what tables say about their elements, by position and by
//! key.

use super::ids::LayoutId;
use crate::tree::{Sym, TypeRef};

/// The expected kind of a self-describing value.
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
    /// An array whose first element names a message. The other elements have that message's
    /// positions.
    Packet,
    /// A mapping.
    Mapping {
        /// What the values of other keys are.
        of: Option<TypeRef>,
        /// What the values of these keys are.
        keys: Option<LayoutId>,
        /// What an array in its place is, if there may be one.
        array: Option<TypeRef>,
    },
}

/// The positions a layout names: all steps from its first are fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Positions {
    /// How many there are.
    pub count: u16,
    /// How many of them are required.
    pub required: u16,
}

/// The types of values whose type no table names, and the names of what holds them together.
#[derive(Debug, Clone, Copy, Default)]
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
