//! The part of a type that the loops over values need, in a few bytes. [`TypeDef`] has the rest.
//!
//! A [`TypeDef`] spans several cache lines. Most values are plain numbers, and for those a
//! [`TypeOp`] is enough.

use super::ids::EnumId;
use super::types::{ByteOrder, ReadAs, TypeDef};
use crate::tree::Kind;

/// Which code reads a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypeOpKind {
    /// A number of up to 8 bytes, least significant first.
    Little,
    /// A structure without parameters.
    Layout,
    /// A presence, then the value or nothing.
    NullOr,
    /// An object that begins with the number of its class.
    Family,
    /// A type with code.
    Native,
    /// Anything else: [`TypeDef`] says how.
    Other,
}

/// A number of up to eight bytes. All sizes and signs are read by the same instructions, without a
/// branch on the size: a branch that the processor mispredicts costs more than the rest of the
/// field.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scalar {
    /// Bytes.
    pub(crate) size: u8,
    /// Two's complement.
    pub(crate) signed: bool,
    pub(crate) kind: Kind,
}

impl Scalar {
    /// No number.
    const NONE: Scalar = Scalar { size: 0, signed: false, kind: Kind::Struct };

    /// The number in the lowest of eight bytes.
    #[inline]
    pub(crate) fn value(self, raw: u64) -> u64 {
        let above = 64u32.wrapping_sub(u32::from(self.size) * 8);
        let top = raw.wrapping_shl(above);
        if self.signed { (top as i64).wrapping_shr(above) as u64 } else { top.wrapping_shr(above) }
    }
}

/// The part of a type that the inner loops need.
#[derive(Debug, Clone, Copy)]
pub struct TypeOp {
    pub(crate) how: TypeOpKind,
    pub(crate) scalar: Scalar,
    /// Marks for its nodes.
    pub(crate) marks: u8,
    /// Whether its values are compared with `= N` or `max N`.
    pub(crate) checked: bool,
    /// The place of the enum or flag set that names its values, and 1; or 0.
    pub(in crate::table) named: u32,
    /// The layout, or the type with code, that it is read by: a place in their list.
    pub(crate) by: u32,
    /// Whether trees explain it.
    pub shown: bool,
    /// Whether tables say more about it than how to read it: its values are names or numbers of
    /// things, or it has facts.
    pub(crate) telling: bool,
}

impl TypeOp {
    /// A type that does not exist.
    pub(crate) const NONE: TypeOp = TypeOp {
        how: TypeOpKind::Other,
        scalar: Scalar::NONE,
        marks: 0,
        checked: false,
        named: 0,
        by: 0,
        shown: false,
        telling: false,
    };

    /// The enum or flag set that names its values.
    #[inline]
    pub fn symbols(&self) -> Option<EnumId> {
        self.named.checked_sub(1).map(EnumId)
    }

    /// The part of a definition that the inner loops need.
    pub(in crate::table) fn of(def: &TypeDef) -> TypeOp {
        let scalar = scalar(&def.read);
        let (how, by) = match &def.read {
            ReadAs::Layout { layout, args } if args.is_empty() => (TypeOpKind::Layout, layout.0),
            ReadAs::NullOr { .. } => (TypeOpKind::NullOr, 0),
            ReadAs::Family(_) => (TypeOpKind::Family, 0),
            ReadAs::Native { native, .. } => (TypeOpKind::Native, *native),
            _ => (if scalar.is_some() { TypeOpKind::Little } else { TypeOpKind::Other }, 0),
        };
        TypeOp {
            how,
            scalar: scalar.unwrap_or(Scalar::NONE),
            marks: def.marks,
            checked: def.expect.is_some() || def.max.is_some(),
            named: def.symbols.map_or(0, |id| id.0 + 1),
            by,
            shown: def.shown.is_some(),
            telling: !def.ids.is_empty() || !def.names.is_empty() || def.facts.is_some(),
        }
    }
}

fn scalar(read: &ReadAs) -> Option<Scalar> {
    let (size, signed, kind) = match *read {
        ReadAs::Int { size, order, .. } if size > 1 && order != ByteOrder::Little => return None,
        ReadAs::Int { size: 8, signed, .. } => {
            (8, signed, if signed { Kind::Signed64 } else { Kind::Unsigned64 })
        }
        ReadAs::Int { size, signed, .. } => {
            (size, signed, if signed { Kind::Signed } else { Kind::Unsigned })
        }
        ReadAs::Bool => (1, false, Kind::Bool),
        ReadAs::Float { size, big: false } => {
            (size, false, if size == 4 { Kind::F32 } else { Kind::F64 })
        }
        ReadAs::Ipv4 { big: false } => (4, false, Kind::Ipv4),
        _ => return None,
    };
    Some(Scalar { size, signed, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_what_its_bytes_say_whatever_stands_above_them() {
        let raw = 0xfedc_ba98_7654_ff80;
        let read = |size, signed| {
            let scalar = Scalar { size, signed, kind: Kind::Unsigned };
            scalar.value(raw)
        };
        assert_eq!((read(1, false), read(1, true) as i64), (0x80, -128));
        assert_eq!((read(2, false), read(2, true) as i64), (0xff80, -128));
        assert_eq!((read(4, false), read(4, true) as i64), (0x7654_ff80, 0x7654_ff80));
        assert_eq!((read(8, false), read(8, true)), (raw, raw));
    }
}
