//! Message tables: text in a small declarative language, compiled once, run by one evaluator.
//!
//! The language is documented in `docs/table-language.md`. This module knows the language, and no
//! protocol, capture or output. Its stages are its folders: `text` reads table text into a syntax
//! tree, `compile` checks that tree and makes a flat `program` of it, `eval` runs the program over
//! bytes and writes a [`Tree`](crate::tree::Tree). [`Tables::load`] goes through the first three,
//! [`Evaluator`] is the last.

mod compile;
mod cursor;
mod encode;
mod error;
mod eval;
mod hex;
mod late;
mod lookup;
mod native;
mod overlap;
mod packed;
mod program;
mod remarks;
mod scale;
mod text;

pub use cursor::{Cursor, Short};
pub use encode::{
    Bits, EncodeError, Encoder, Encoding, Field, Frame, Given, Habits, Json, JsonError, JsonKind,
    NAN_32, NAN_64, Slot, SpanLeaf, Stop as EncodeStop, Written, reads_as, write_bytes,
};
pub use error::{TableError, TableSource, WithLine};
pub use eval::{
    Call, Evaluator, MessageLimits, MessageStart, NoPackint, OTHER_FORM, Outcome, READ_AS_LATIN_1,
    Remembered, Run, Slots, Stop, WholeMessage, read_packint,
};
pub use hex::parse_hex;
pub use native::{BITSTREAM, Native};
pub use program::*;
pub use scale::Scale;
pub use text::{BinaryOp, Expectation, HeaderRole, MAX_TABLE_BYTES, PlaceRole, Sender};

use std::any::Any;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use crate::tree::TypeRef;
use late::LateLists;

/// The words `shown` knows: how trees may explain a value. [`Scale`] has further ones.
pub const SHOWN: [&str; 10] = [
    "unix_time",
    "unix_microseconds",
    "ntp_time",
    "ipv4",
    "hex",
    "milliseconds",
    "seconds",
    "microseconds",
    "bits",
    "square",
];

/// A word for `shown` that one protocol adds, and the text that trees append to such a number. Of
/// up to eight bytes, the number is the one that they are with the most significant first.
#[derive(Clone, Copy, Debug)]
pub struct Meaning {
    /// The word.
    pub name: &'static str,
    /// Appends what the number means to a line of text.
    pub write: fn(value: u64, out: &mut Vec<u8>),
}

/// The compiled tables of one protocol.
pub struct Tables {
    id: u32,
    protocol: String,
    program: Program,
    lists: LateLists,
    sources: Vec<TableSource>,
    natives: Vec<NativeType>,
    meanings: Vec<Meaning>,
    /// Values of [`Tables::derived`].
    derived: Mutex<Vec<Arc<dyn Any + Send + Sync>>>,
}

/// How many tables were made in this run.
static MADE: AtomicU32 = AtomicU32::new(0);

/// A type with code, and the types that its parts have ([`Native::parts`]).
struct NativeType {
    native: Native,
    parts: Vec<Option<TypeRef>>,
}

impl Tables {
    /// Compiles the tables of one protocol; later sources may replace what earlier ones declare.
    /// `natives` are the types with code.
    pub fn load(
        protocol: &str,
        sources: Vec<TableSource>,
        natives: &[Native],
    ) -> Result<Tables, TableError> {
        Tables::load_with(protocol, sources, natives, &[])
    }

    /// As [`load`](Tables::load), with further words for `shown`.
    pub fn load_with(
        protocol: &str,
        sources: Vec<TableSource>,
        natives: &[Native],
        meanings: &[Meaning],
    ) -> Result<Tables, TableError> {
        let natives: Vec<Native> = natives.iter().chain(&native::LANGUAGE).copied().collect();
        let names: Vec<&str> = natives.iter().map(|native| native.name).collect();
        let shown: Vec<&str> =
            SHOWN.into_iter().chain(meanings.iter().map(|meaning| meaning.name)).collect();
        let code = compile::CodeNames { natives: &names, shown: &shown };
        let mut program = compile::compile(protocol, &sources, Some(code))?.program;
        let lists = LateLists::of_compiled(&mut program);
        Ok(Tables::of(protocol, sources, program, lists, &natives, meanings))
    }

    /// The tables of these sources without compiling them: `packed` is the program compiled from
    /// them when this crate was built. `None` if the program has types with code that `natives`
    /// lacks.
    pub(crate) fn of_packed(
        protocol: &str,
        sources: Vec<TableSource>,
        natives: &[Native],
        meanings: &[Meaning],
        packed: &'static [u8],
    ) -> Option<Tables> {
        let unpacked = packed::unpack(packed)?;
        let lists = LateLists::of_unpacked(&unpacked);
        let packed::UnpackedProgram { program, natives: used, .. } = unpacked;
        let all = || natives.iter().chain(&native::LANGUAGE);
        let named = |name: &String| all().find(|native| native.name == name).copied();
        let mut natives: Vec<Native> = used.iter().map(named).collect::<Option<_>>()?;
        natives.extend(all().filter(|native| !used.iter().any(|name| name == native.name)));
        Some(Tables::of(protocol, sources, program, lists, &natives, meanings))
    }

    /// The packed form of these sources, compiled with the protocol's types with code, numbered as
    /// `build.rs` numbers them.
    #[cfg(test)]
    pub(crate) fn pack(
        protocol: &str,
        sources: &[TableSource],
        natives: &[Native],
        meanings: &[Meaning],
    ) -> Result<Vec<u8>, TableError> {
        let used = compile::compile(protocol, sources, None)?.natives;
        let all = natives.iter().chain(&native::LANGUAGE).map(|native| native.name);
        let names: Vec<&str> = used
            .iter()
            .map(String::as_str)
            .chain(all.filter(|name| !used.iter().any(|n| n == name)))
            .collect();
        let shown: Vec<&str> =
            SHOWN.into_iter().chain(meanings.iter().map(|meaning| meaning.name)).collect();
        let code = compile::CodeNames { natives: &names, shown: &shown };
        let program = compile::compile(protocol, sources, Some(code))?.program;
        Ok(packed::pack(&compile::Compiled { program, natives: used }))
    }

    fn of(
        protocol: &str,
        sources: Vec<TableSource>,
        program: Program,
        lists: LateLists,
        natives: &[Native],
        meanings: &[Meaning],
    ) -> Tables {
        let part = |name: &&str| program.types_by_name.get(*name).copied();
        let natives = natives
            .iter()
            .map(|native| NativeType {
                native: *native,
                parts: native.parts.iter().map(part).collect(),
            })
            .collect();
        let protocol = protocol.to_string();
        let meanings = meanings.to_vec();
        let id = MADE.fetch_add(1, Ordering::Relaxed);
        let derived = Mutex::default();
        Tables { id, protocol, program, lists, sources, natives, meanings, derived }
    }

    /// A number that no other tables of this run have: what is derived from tables is kept under
    /// it.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// The protocol that a table file's first line names.
    pub fn protocol_of(source: &TableSource) -> Result<String, TableError> {
        text::parse_protocol(&source.name, &source.text)
    }

    /// Whether a table file declares a whole protocol, and not only more of one.
    pub fn declares_protocol(source: &TableSource) -> bool {
        text::declares_protocol(&source.name, &source.text)
    }

    /// Any type as the language writes it (`packint(1)`, `u32[4]`, `plUoid`), compiled on request
    /// into tables of its own.
    pub fn with_type(self, text: &str) -> Result<(Tables, TypeRef), TableError> {
        if let Some(ty) = self.type_named(text) {
            return Ok((self, ty));
        }
        // The type is checked alone first, so that a mistake is shown in what was typed.
        text::parse_type(text)?;
        let is_own =
            |native: &Native| !native::LANGUAGE.iter().any(|known| known.name == native.name);
        let natives: Vec<Native> = self.natives.iter().map(|n| n.native).filter(is_own).collect();
        let mut sources = self.sources;
        let text_of_file = format!("protocol {}\ntype asked_for = {text}\n", self.protocol);
        sources.push(TableSource { name: "type".into(), text: text_of_file.into() });
        let tables = Tables::load_with(&self.protocol, sources, &natives, &self.meanings)?;
        let ty = tables.type_named("asked_for");
        ty.map(|ty| (tables, ty)).ok_or_else(|| TableError::at("type", text, 0, "this is no type"))
    }
}
