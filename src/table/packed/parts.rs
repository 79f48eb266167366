//! Types, layouts and expressions: which fields are packed, and in which order.

use super::super::program::*;
use super::super::text::{BinaryOp, PlaceRole};
use super::{Packed, ProgramPacker, ProgramUnpacker, packed_enums, packed_numbers, packed_structs};
use crate::tree::{Concern, Kind, Severity, Sym, TextKind, TypeRef};

packed_numbers! { Sym TypeRef }

packed_structs! {
    TypeDef { read, text, symbols, shown, ids, refers, names, marks, transaction, max, expect, facts, min_bits }
    RegionType { len, inner, dialects, zlib }
    Zlib { keep, size }
    Len { from, bytes }
    FieldFacts {
        identity, own, place, leaves_unless, volatile, echoed, unordered, continues, local, same, person, chat, file, graph, share,
        change, refuses_unless, refuses_unless_texts,
    }
    InfoLine { lines }
}

packed_enums! {
    ByteOrder { Little, Big, Pdp }
    TextEnd { Whole, Zero, Zeros }
    ReadAs {
        Int { size, signed, order },
        Float { size, big },
        Bool,
        Uuid { plain },
        Ipv4 { big },
        Bytes(len),
        Text { kind, or_latin1, len, end },
        Digits { radix, len },
        List { of, len },
        Layout { layout, args },
        Family(family),
        Region(region),
        NullOr { present, of },
        Value(value),
        Native { native, args },
    }
    ValueRead { Any, Int, Uint, Float, Text, Array, Packet, Mapping { of, keys, array } }
    LenFrom { Const(n), Expr(n), Inline(ty), Rest, Zero, To(unit), Until(place), Blanks, Last }
    BinaryOp { Add, Sub, Mul, Div, Rem, BitAnd, BitXor, BitOr, Shl, Shr, Eq, Ne, Lt, Le, Gt, Ge, Has, And, Or }
    LayoutStep {
        Field { marks, slot, name, ty, op },
        Branch { test, otherwise },
        Word { name, slot },
        Jump(to),
        Switch { on, targets, otherwise },
        Say { severity, concern, text },
        Empty { name, ty },
        Undecoded,
        Partial,
        Last,
        Remember { kind, key, value },
        Checksum { sum, slot, size, from, to },
        Set { state, value },
        Chosen { number, length },
        End,
    }
    Checksum { Sum8, Xor8, Internet, Adler32, Crc16, Crc16Ccitt, Crc32, Crc32c }
    Test { Has(slot, n), Equals(slot, n), Differs(slot, n), Above(slot, n), Dialect(id, yes), More, General(expr) }
    Ex {
        Const(n),
        Slot { slot, signed },
        Binary(op, a, b),
        Not(a),
        In(a, list),
        Remaining,
        More,
        Dialect(id),
        Recall(kind, key),
        State(id),
        Here,
        Next(n),
    }
    InfoPart { Text(text), Field(path), Each { list, of }, Extends(layout), Choice { path, yes, no }, Optional(parts) }
    InfoStep { Name(name), Element(number) }
    PlaceRole { Enters, Beside, Named }
    Person { Name, Number, Text, Mail, Host, Address }
    ChatRole { From, To, Channel, FromHost, ToHost, Kind, Session, Text }
    FileRole {
        Name, Title, Kind, Id, Size, Part, CountedPart, Whole, Offset, Number, Parts, List, Listed, PackedSize, Md5,
        PackedMd5, Key,
    }
    ShareRole { Part, Whole }
    ChangeRole { Key, Values }
    GraphRole { Id, Kind, Mask, Target, Asked, Parent, Child, Removed, Owner, Saver, Deleted }
    Severity { Note, Warning, Error }
    Concern { None, Unhandled, UnknownVersion, TooLong }
    TextKind { Utf8, Latin1, Utf16, Inverted8, Inverted16, InvertedLatin1, Owned }
    Kind {
        Struct, List, Null, Unsigned, Signed, Unsigned64, Signed64, F32, F64, Bool, Uuid, UuidBe, Ipv4, Text(kind),
        Bytes, Undecoded,
    }
}

/// A type in short follows from the type: it is filled in when all types are known.
impl Packed for TypeOp {
    fn pack(&self, _: &mut ProgramPacker) {}

    fn unpack(_: &mut ProgramUnpacker) -> Option<Self> {
        Some(TypeOp::NONE)
    }
}

/// The kinds of plain numbers, and at first that of everything else.
const SCALARS: [Kind; 9] = [
    Kind::Struct,
    Kind::Unsigned,
    Kind::Signed,
    Kind::Unsigned64,
    Kind::Signed64,
    Kind::F32,
    Kind::F64,
    Kind::Bool,
    Kind::Ipv4,
];

/// The kinds of types, in the order of their numbers.
const HOW: [TypeOpKind; 6] = [
    TypeOpKind::Little,
    TypeOpKind::Layout,
    TypeOpKind::NullOr,
    TypeOpKind::Family,
    TypeOpKind::Native,
    TypeOpKind::Other,
];

/// The short form of a type in 12 bytes. There is one for every type, and all are unpacked at a
/// start: this takes a tenth of the instructions of the general form.
pub(super) fn pack_op(op: &TypeOp) -> [u8; 12] {
    let TypeOp {
        how,
        scalar: Scalar { size, signed, kind },
        marks,
        checked,
        named,
        by,
        shown,
        telling,
    } = *op;
    let place = |of: Option<usize>| of.unwrap_or(0) as u8;
    let how = place(HOW.iter().position(|known| *known == how));
    let kind = place(SCALARS.iter().position(|known| *known == kind));
    let flags = [signed, checked, shown, telling]
        .iter()
        .rev()
        .fold(0, |flags, flag| flags << 1 | u8::from(*flag));
    let [a, b, c, _] = named.to_le_bytes();
    let [e, f, g, h] = by.to_le_bytes();
    [how, size, kind, marks, flags, a, b, c, e, f, g, h]
}

/// The opposite of [`pack_op`].
#[inline]
pub(super) fn unpack_op(
    [how, size, kind, marks, flags, a, b, c, e, f, g, h]: [u8; 12],
) -> Option<TypeOp> {
    let flag = |bit: u8| flags & 1 << bit != 0;
    let scalar = Scalar { size, signed: flag(0), kind: *SCALARS.get(usize::from(kind))? };
    let named = u32::from_le_bytes([a, b, c, 0]);
    let by = u32::from_le_bytes([e, f, g, h]);
    let how = *HOW.get(usize::from(how))?;
    let checked = flag(1);
    let shown = flag(2);
    let telling = flag(3);
    Some(TypeOp { how, scalar, marks, checked, named, by, shown, telling })
}
