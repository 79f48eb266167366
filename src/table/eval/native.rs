//! Types with code: how a protocol lists them, and how they are called.

use super::super::Tables;
use super::super::cursor::Cursor;
use super::{Run, Stop};
use crate::tree::{Sym, TypeRef};

/// A type with code: reads at the cursor, adds its nodes (exactly one without the span mark), returns the value expressions see.
pub type NativeFn = fn(&mut Run<'_>, &mut Cursor<'_>, &Call) -> Result<u64, Stop>;

/// A type with code, as a protocol lists it.
#[derive(Debug, Clone, Copy)]
pub struct Native {
    /// The name tables use.
    pub name: &'static str,
    /// Its code.
    pub read: NativeFn,
    /// Types of the tables that its parts have: looked up once, for [`Call::part`].
    pub parts: &'static [&'static str],
}

impl Native {
    /// One without parts of other types.
    pub const fn new(name: &'static str, read: NativeFn) -> Native {
        Native { name, read, parts: &[] }
    }
}

/// How a type with code was called.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// Which one it is.
    pub(super) native: u32,
    /// The name its node gets.
    pub name: Sym,
    /// The type its node gets.
    pub ty: TypeRef,
    /// Marks its node gets.
    pub marks: u8,
    /// Up to four arguments; those not given are 0.
    pub args: [u64; 4],
    /// Depth of structures above it.
    pub depth: u32,
}

impl Call {
    /// A type its parts have ([`Native::parts`]); its own where the tables have none of that name.
    pub fn part(&self, tables: &Tables, index: usize) -> TypeRef {
        let parts = tables.native(self.native).map(|(_, parts)| parts);
        parts.and_then(|parts| parts.get(index).copied().flatten()).unwrap_or(self.ty)
    }
}
