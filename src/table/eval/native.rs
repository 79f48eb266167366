//! The arguments of types with code.

use super::super::cursor::Cursor;
use super::super::program::ReadAs;
use super::{Call, Run};

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
