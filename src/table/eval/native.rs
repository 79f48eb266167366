//! Types with code: how a protocol lists them, and how they are called.

use super::super::cursor::Cursor;
use super::super::program::ReadAs;
use super::{Call, Run, Stop};

/// The code of a type.
pub type Code = fn(&mut Run<'_>, &mut Cursor<'_>, &Call) -> Result<u64, Stop>;

/// A type with code, as a protocol lists it.
#[derive(Debug, Clone, Copy)]
pub struct Native {
    /// The name tables use.
    pub name: &'static str,
    /// Its code: reads at the cursor, adds its nodes (exactly one without the span mark), and
    /// returns the value that expressions see.
    pub read: Code,
    /// The table types of its parts. They are looked up once, for [`Call::part`].
    pub parts: &'static [&'static str],
}

impl Native {
    /// One without parts of other types.
    pub const fn new(name: &'static str, read: Code) -> Native {
        Native { name, read, parts: &[] }
    }
}

impl Run<'_> {
    /// One of the arguments of a type with code, in 64 bits, in two's complement if negative. 0 if
    /// it was not given or has no value. `cursor` is at the start of the value.
    pub fn arg(&mut self, call: &Call, index: usize, cursor: &Cursor<'_>) -> u64 {
        match self.tables.type_def(call.ty).map(|def| &def.read) {
            Some(ReadAs::Native { args, .. }) => {
                args.get(index).map_or(0, |arg| self.word(*arg, call.frame, cursor))
            }
            _ => 0,
        }
    }
}
