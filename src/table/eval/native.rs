//! Types with code: how a protocol lists them, and how they are called.

use super::super::Tables;
use super::super::cursor::Cursor;
use super::super::program::Read;
use super::grow::{Code, Grow};
use super::{Frame, Run};
use crate::tree::{Outline, Sym, Tree, TypeRef};

/// A type with code, as a protocol lists it.
#[derive(Debug, Clone, Copy)]
pub struct Native {
    /// The name tables use.
    pub name: &'static str,
    /// Its code: reads at the cursor, adds its nodes (exactly one without the span mark), returns the value expressions see.
    pub read: Code<Tree>,
    /// The same for outlines, where it needs neither its nodes again nor anything beside the bytes and its arguments.
    pub outline: Option<Code<Outline>>,
    /// Types of the tables that its parts have: looked up once, for [`Call::part`].
    pub parts: &'static [&'static str],
}

impl Native {
    /// One without parts of other types.
    pub const fn new(name: &'static str, read: Code<Tree>) -> Native {
        Native { name, read, outline: None, parts: &[] }
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
    /// The kept values its arguments are made of ([`Run::arg`]).
    pub(super) frame: Frame,
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

impl<T: Grow> Run<'_, T> {
    /// One of the arguments of a type with code, in 64 bits, negative ones in two's complement; 0 where it was not given or has no
    /// value. `cursor` stands where the value begins.
    pub fn arg(&mut self, call: &Call, index: usize, cursor: &Cursor<'_>) -> u64 {
        match self.tables.type_def(call.ty).map(|def| &def.read) {
            Some(Read::Native { args, .. }) => args.get(index).map_or(0, |arg| self.word(*arg, call.frame, cursor)),
            _ => 0,
        }
    }
}
