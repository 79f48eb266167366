//! Compiled tables as bytes, so that the embedded tables are compiled when the crate is built, and
//! only unpacked when the program starts.
//!
//! `build.rs` compiles and packs them, and the program calls [`unpack`]. The largest lists are
//! unpacked later, an element at a time ([`PackedList`]): for MOUL [`unpack`] takes 1.0 million
//! instructions, 6.6 million if it unpacked everything, and compiling the text about 40 million.
//! The bytes are always packed by the same version, since both are built together. Still, bytes
//! that are not a packed program only give `None`.
//!
//! Numbers are written as LEB128, texts as their place and length among all texts, lists with their
//! length before them, variants of an enum by their place in it, maps as lists sorted by key. It
//! knows neither table text nor how a program runs.

// The crate itself only unpacks: `build.rs` packs, and tests do.
#![cfg_attr(not(test), allow(dead_code))]

mod lists;
mod parts;
mod steps;

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

use super::compile::Compiled;
use super::program::{Program, TableText};
use crate::leb128::{self, Leb128Reader};

/// The packed form of compiled tables: the length of all texts, the texts, then the rest.
pub(in crate::table) fn pack(compiled: &Compiled) -> Vec<u8> {
    let mut out = ProgramPacker::default();
    compiled.natives.pack(&mut out);
    compiled.program.pack(&mut out);
    let Program { types, type_ops, layouts, steps, enums, infos, examples, declarations, .. } =
        &compiled.program;
    type_ops.len().pack(&mut out);
    out.bytes.extend(type_ops.iter().flat_map(parts::pack_op));
    steps::pack_layouts(layouts, &mut out);
    steps::pack(steps, &mut out);
    out.list(types);
    out.list(enums);
    out.list(infos);
    out.list(examples);
    out.list(declarations);
    let mut all = Vec::new();
    leb128::put(&mut all, out.texts.len() as u64);
    all.extend_from_slice(out.texts.as_bytes());
    all.extend_from_slice(&out.bytes);
    all
}

/// A compiled program, without the lists that are unpacked later.
pub(in crate::table) struct UnpackedProgram {
    /// Its lists of types, enums, info lines, examples and declarations are empty.
    pub(in crate::table) program: Program,
    /// The names of the types with code, by their number.
    pub(in crate::table) natives: Vec<String>,
    pub(in crate::table) types: PackedList,
    pub(in crate::table) enums: PackedList,
    pub(in crate::table) infos: PackedList,
    pub(in crate::table) examples: PackedList,
    pub(in crate::table) declarations: PackedList,
}

/// Unpacks the input of [`pack`]. Its texts are parts of `bytes`.
pub(in crate::table) fn unpack(bytes: &'static [u8]) -> Option<UnpackedProgram> {
    let mut rest = Leb128Reader::new(bytes);
    let texts = rest.text()?;
    let mut from = ProgramUnpacker { rest, texts };
    let natives = Vec::unpack(&mut from)?;
    let mut program = Program::unpack(&mut from)?;
    let ops = from.length()?.checked_mul(12)?;
    let ops = from.rest.bytes(ops)?.as_chunks().0;
    // A `collect` into an `Option` grows step by step.
    program.type_ops.reserve_exact(ops.len());
    for op in ops {
        program.type_ops.push(parts::unpack_op(*op)?);
    }
    program.layouts = steps::unpack_layouts(&mut from)?;
    program.steps = steps::unpack(&mut from, &program.type_ops)?;
    let types = from.list()?;
    let enums = from.list()?;
    let infos = from.list()?;
    let examples = from.list()?;
    let declarations = from.list()?;
    let unpacked =
        UnpackedProgram { program, natives, types, enums, infos, examples, declarations };
    (from.rest.left() == 0).then_some(unpacked)
}

/// A list whose elements can be unpacked alone.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::table) struct PackedList {
    /// For each element, the offset of its end among the bytes: 32 bits, least significant byte
    /// first.
    ends: &'static [[u8; 4]],
    bytes: &'static [u8],
    texts: &'static str,
}

impl PackedList {
    /// How many elements it has.
    pub(in crate::table) fn count(self) -> usize {
        self.ends.len()
    }

    /// An element.
    pub(in crate::table) fn item<T: Packed>(self, at: usize) -> Option<T> {
        let end = |at: usize| self.ends.get(at).map(|end| u32::from_le_bytes(*end) as usize);
        let from = at.checked_sub(1).map_or(Some(0), end)?;
        let rest = Leb128Reader::new(self.bytes.get(from..end(at)?)?);
        T::unpack(&mut ProgramUnpacker { rest, texts: self.texts })
    }
}

/// Something that can be packed.
pub(in crate::table) trait Packed: Sized {
    /// Appends the packed form.
    fn pack(&self, out: &mut ProgramPacker);

    /// Takes the packed form from the front of the bytes. `None` if they are not one.
    fn unpack(from: &mut ProgramUnpacker) -> Option<Self>;
}

/// The packed bytes so far.
#[derive(Default)]
pub(in crate::table) struct ProgramPacker {
    bytes: Vec<u8>,
    /// All texts, one behind the other.
    texts: String,
    /// The offset of each text among them. Equal texts are stored once.
    places: HashMap<String, usize>,
}

impl ProgramPacker {
    /// A list whose elements can be unpacked alone.
    fn list<T: Packed>(&mut self, items: &[T]) {
        let before = std::mem::take(&mut self.bytes);
        let mut ends = Vec::new();
        for item in items {
            item.pack(self);
            ends.extend_from_slice(&(self.bytes.len() as u32).to_le_bytes());
        }
        let packed = std::mem::replace(&mut self.bytes, before);
        (items.len(), packed.len()).pack(self);
        self.bytes.extend_from_slice(&ends);
        self.bytes.extend_from_slice(&packed);
    }
}

/// The bytes not unpacked yet.
pub(in crate::table) struct ProgramUnpacker {
    rest: Leb128Reader<'static>,
    /// All texts.
    texts: &'static str,
}

impl ProgramUnpacker {
    /// A length. An item takes at least one byte, so a length beyond the bytes left is invalid, and
    /// nothing is allocated for it.
    fn length(&mut self) -> Option<usize> {
        let length = usize::unpack(self)?;
        (length <= self.rest.left()).then_some(length)
    }

    /// A list whose elements are unpacked later.
    fn list(&mut self) -> Option<PackedList> {
        let (count, length) = <(usize, usize)>::unpack(self)?;
        let ends = self.rest.bytes(count.checked_mul(4)?)?.as_chunks().0;
        Some(PackedList { ends, bytes: self.rest.bytes(length)?, texts: self.texts })
    }

    fn text(&mut self) -> Option<&'static str> {
        let (at, length) = <(usize, usize)>::unpack(self)?;
        self.texts.get(at..at.checked_add(length)?)
    }
}

macro_rules! packed_unsigned {
    ($($number:ty),*) => {$(
        impl Packed for $number {
            fn pack(&self, out: &mut ProgramPacker) {
                leb128::put(&mut out.bytes, *self as u64);
            }

            #[inline]
            fn unpack(from: &mut ProgramUnpacker) -> Option<Self> {
                from.rest.number()?.try_into().ok()
            }
        }
    )*};
}

packed_unsigned!(u8, u16, u32, u64, usize);

/// The lower half, then the upper one.
impl Packed for i128 {
    fn pack(&self, out: &mut ProgramPacker) {
        (*self as u64, (*self >> 64) as u64).pack(out);
    }

    fn unpack(from: &mut ProgramUnpacker) -> Option<Self> {
        let (low, high) = <(u64, u64)>::unpack(from)?;
        Some(i128::from(high as i64) << 64 | i128::from(low))
    }
}

impl Packed for bool {
    fn pack(&self, out: &mut ProgramPacker) {
        out.bytes.push((*self).into());
    }

    #[inline]
    fn unpack(from: &mut ProgramUnpacker) -> Option<Self> {
        Some(from.rest.byte()? != 0)
    }
}

/// A text is its place among all texts. What is unpacked borrows it.
impl Packed for TableText {
    fn pack(&self, out: &mut ProgramPacker) {
        let at = out.places.get(self.as_ref()).copied().unwrap_or_else(|| {
            let at = out.texts.len();
            out.texts.push_str(self);
            out.places.insert(self.to_string(), at);
            at
        });
        (at, self.len()).pack(out);
    }

    #[inline]
    fn unpack(from: &mut ProgramUnpacker) -> Option<Self> {
        from.text().map(Cow::Borrowed)
    }
}

impl<T: Packed> Packed for Option<T> {
    fn pack(&self, out: &mut ProgramPacker) {
        self.is_some().pack(out);
        self.iter().for_each(|item| item.pack(out));
    }

    #[inline]
    fn unpack(from: &mut ProgramUnpacker) -> Option<Self> {
        if bool::unpack(from)? { T::unpack(from).map(Some) } else { Some(None) }
    }
}

impl<T: Packed> Packed for Vec<T> {
    fn pack(&self, out: &mut ProgramPacker) {
        self.len().pack(out);
        self.iter().for_each(|item| item.pack(out));
    }

    fn unpack(from: &mut ProgramUnpacker) -> Option<Self> {
        let length = from.length()?;
        let mut items = Vec::with_capacity(length);
        for _ in 0..length {
            items.push(T::unpack(from)?);
        }
        Some(items)
    }
}

impl<T: Packed> Packed for Box<[T]> {
    fn pack(&self, out: &mut ProgramPacker) {
        self.len().pack(out);
        self.iter().for_each(|item| item.pack(out));
    }

    fn unpack(from: &mut ProgramUnpacker) -> Option<Self> {
        Vec::unpack(from).map(Vec::into_boxed_slice)
    }
}

impl<T: Packed> Packed for Box<T> {
    fn pack(&self, out: &mut ProgramPacker) {
        T::pack(self, out);
    }

    fn unpack(from: &mut ProgramUnpacker) -> Option<Self> {
        T::unpack(from).map(Box::new)
    }
}

impl<T: Packed> Packed for [T; 2] {
    fn pack(&self, out: &mut ProgramPacker) {
        self.iter().for_each(|item| item.pack(out));
    }

    fn unpack(from: &mut ProgramUnpacker) -> Option<Self> {
        Some([T::unpack(from)?, T::unpack(from)?])
    }
}

impl<A: Packed, B: Packed> Packed for (A, B) {
    fn pack(&self, out: &mut ProgramPacker) {
        self.0.pack(out);
        self.1.pack(out);
    }

    #[inline]
    fn unpack(from: &mut ProgramUnpacker) -> Option<Self> {
        Some((A::unpack(from)?, B::unpack(from)?))
    }
}

impl<A: Packed, B: Packed, C: Packed> Packed for (A, B, C) {
    fn pack(&self, out: &mut ProgramPacker) {
        self.0.pack(out);
        self.1.pack(out);
        self.2.pack(out);
    }

    #[inline]
    fn unpack(from: &mut ProgramUnpacker) -> Option<Self> {
        Some((A::unpack(from)?, B::unpack(from)?, C::unpack(from)?))
    }
}

impl<K: Packed + Hash + Ord, V: Packed, S: BuildHasher + Default> Packed for HashMap<K, V, S> {
    fn pack(&self, out: &mut ProgramPacker) {
        let mut entries: Vec<(&K, &V)> = self.iter().collect();
        entries.sort_unstable_by_key(|entry| entry.0);
        entries.len().pack(out);
        for (key, value) in entries {
            key.pack(out);
            value.pack(out);
        }
    }

    fn unpack(from: &mut ProgramUnpacker) -> Option<Self> {
        let length = from.length()?;
        let mut map = HashMap::with_capacity_and_hasher(length, S::default());
        for _ in 0..length {
            map.insert(K::unpack(from)?, V::unpack(from)?);
        }
        Some(map)
    }
}

/// The names of types with code.
impl Packed for String {
    fn pack(&self, out: &mut ProgramPacker) {
        TableText::from(self.clone()).pack(out);
    }

    fn unpack(from: &mut ProgramUnpacker) -> Option<Self> {
        TableText::unpack(from).map(TableText::into_owned)
    }
}

/// The words that begin declarations.
impl Packed for &'static str {
    fn pack(&self, out: &mut ProgramPacker) {
        TableText::from(*self).pack(out);
    }

    fn unpack(from: &mut ProgramUnpacker) -> Option<Self> {
        from.text()
    }
}

/// Packs the fields of structures in the order in which they are listed here.
macro_rules! packed_structs {
    ($($name:ty { $($field:ident),* $(,)? })*) => {$(
        impl Packed for $name {
            fn pack(&self, out: &mut ProgramPacker) {
                let Self { $($field),* } = self;
                $($field.pack(out);)*
            }

            fn unpack(from: &mut ProgramUnpacker) -> Option<Self> {
                Some(Self { $($field: Packed::unpack(from)?),* })
            }
        }
    )*};
}

/// Packs structures that are one number.
macro_rules! packed_numbers {
    ($($name:ident)*) => {$(
        impl Packed for $name {
            fn pack(&self, out: &mut ProgramPacker) {
                self.0.pack(out);
            }

            #[inline]
            fn unpack(from: &mut ProgramUnpacker) -> Option<Self> {
                Packed::unpack(from).map($name)
            }
        }
    )*};
}

/// Packs enums: the place of the variant, then its fields.
macro_rules! packed_enums {
    ($($name:ty { $($variant:ident $(($($item:ident),*))? $({ $($field:ident),* })?),* $(,)? })*) => {$(
        impl Packed for $name {
            fn pack(&self, out: &mut ProgramPacker) {
                #[repr(u8)]
                enum Place { $($variant),* }
                match self {
                    $(Self::$variant $(($($item),*))? $({ $($field),* })? => {
                        out.bytes.push(Place::$variant as u8);
                        $($($item.pack(out);)*)?
                        $($($field.pack(out);)*)?
                    })*
                }
            }

            fn unpack(from: &mut ProgramUnpacker) -> Option<Self> {
                #[repr(u8)]
                enum Place { $($variant),* }
                let place = from.rest.byte()?;
                $(if place == Place::$variant as u8 {
                    $($(let $item = Packed::unpack(from)?;)*)?
                    $($(let $field = Packed::unpack(from)?;)*)?
                    return Some(Self::$variant $(($($item),*))? $({ $($field),* })?);
                })*
                None
            }
        }
    )*};
}

use {packed_enums, packed_numbers, packed_structs};

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::super::{TableSource, compile};
    use super::*;

    fn packed() -> &'static [u8] {
        let text = r#"protocol test
            /// Colours.
            enum Colour : u8 { red = 1 "rot", blue = 2 }
            struct Inner { a: u16, b: leb128, c: utf8[u8] }
            service main { number: u16 }
            message main client 1 Paint {
                id: u32 transaction
                colour: Colour
                if colour == red { inner: Inner[u8] } else { rest: bytes[*] }
                match id { 1 => { one: i32 = 5 } 2 => { two: f32 max 7 } }
                info "paint it {colour}"
                example "0100 01000000 02" { "colour": {"value": 2, "name": "blue"} }
            }"#;
        let source = TableSource { name: "test".into(), text: text.into() };
        pack(&compile::compile("test", &[source], None).unwrap()).leak()
    }

    #[test]
    fn what_was_packed_is_unpacked_whole() {
        let packed = packed();
        let mut unpacked = unpack(packed).unwrap();
        fn all<T: Packed>(list: PackedList) -> Vec<T> {
            (0..list.count()).map(|at| list.item(at).unwrap()).collect()
        }
        let program = &mut unpacked.program;
        program.types = all(unpacked.types);
        program.enums = all(unpacked.enums);
        program.infos = all(unpacked.infos);
        program.examples = all(unpacked.examples);
        program.declarations = all(unpacked.declarations);
        assert_eq!(
            pack(&Compiled { program: unpacked.program, natives: unpacked.natives }),
            packed
        );
    }

    #[test]
    fn bytes_that_are_cut_or_changed_are_no_program_or_another_one() {
        let packed = packed();
        for end in 0..packed.len() {
            assert!(unpack(&packed[..end]).is_none(), "{end}");
        }
        for at in 0..packed.len() {
            let mut changed = packed.to_vec();
            changed[at] ^= 0x81;
            let _ = unpack(changed.leak());
        }
    }

    #[test]
    fn numbers_of_every_size_are_themselves() {
        for shift in 0..128 {
            for number in [i128::MAX >> shift, i128::MIN >> shift] {
                let mut packed = ProgramPacker::default();
                number.pack(&mut packed);
                let mut from =
                    ProgramUnpacker { rest: Leb128Reader::new(packed.bytes.leak()), texts: "" };
                assert_eq!(i128::unpack(&mut from), Some(number));
            }
        }
    }
}
