//! What the loops that run for every value need to know of a type, in few bytes; [`TypeDef`] has the whole of it.
//!
//! A definition spans several cache lines, and most values are plain numbers: reading and writing them from these sixteen bytes
//! took a third of the instructions away.

use super::program::*;

/// How a value is read, where that takes no more than its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    Bool,
    F32,
    F64,
    Uuid,
    UuidBe,
    Ipv4,
    /// A structure without parameters.
    Layout,
    /// As the definition says.
    Other,
}

/// A type in short.
#[derive(Debug, Clone, Copy)]
pub struct Quick {
    pub(crate) how: How,
    /// Marks for its nodes.
    pub(crate) marks: u8,
    /// Whether its values are held against what is expected.
    pub(crate) checked: bool,
    /// Whether it is the number or the name of something ([`TypeDef::ids`], [`TypeDef::names`]).
    pub linked: bool,
    /// The enum or flag set that names its values.
    pub symbols: Option<EnumId>,
    pub(crate) layout: LayoutId,
    /// Whether trees explain it.
    pub shown: bool,
}

impl Quick {
    /// A type that is not there.
    pub(crate) const NONE: Quick = Quick {
        how: How::Other,
        marks: 0,
        checked: false,
        linked: false,
        symbols: None,
        layout: LayoutId(0),
        shown: false,
    };

    /// A definition in short.
    pub(super) fn of(def: &TypeDef) -> Quick {
        let (how, layout) = how(&def.read);
        Quick {
            how,
            marks: def.marks,
            checked: def.expect.is_some() || def.max.is_some(),
            linked: !def.ids.is_empty() || !def.names.is_empty(),
            symbols: def.symbols,
            layout,
            shown: def.shown.is_some(),
        }
    }
}

fn how(read: &Read) -> (How, LayoutId) {
    let how = match read {
        Read::Int { size: 1, signed, .. } => {
            if *signed {
                How::I8
            } else {
                How::U8
            }
        }
        Read::Int { size: 2, signed, order: Order::Little } => {
            if *signed {
                How::I16
            } else {
                How::U16
            }
        }
        Read::Int { size: 4, signed, order: Order::Little } => {
            if *signed {
                How::I32
            } else {
                How::U32
            }
        }
        Read::Int { size: 8, signed, order: Order::Little } => {
            if *signed {
                How::I64
            } else {
                How::U64
            }
        }
        Read::Bool => How::Bool,
        Read::Float { size: 4, big: false } => How::F32,
        Read::Float { size: 8, big: false } => How::F64,
        Read::Uuid { plain } => {
            if *plain {
                How::UuidBe
            } else {
                How::Uuid
            }
        }
        Read::Ipv4 { big: false } => How::Ipv4,
        Read::Layout { layout, args } if args.is_empty() => return (How::Layout, *layout),
        _ => How::Other,
    };
    (how, LayoutId(0))
}
