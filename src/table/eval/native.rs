//! Types with code: how a protocol lists them, and how they are called.

use super::super::cursor::Cursor;
use super::super::program::ReadAs;
use super::sink::{Code, TreeSink};
use super::{Call, Run};
use crate::tree::{Outline, Tree};

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
    /// Its node is always a text whose bytes lie in the message as they are, or inverted.
    pub text: bool,
}

impl Native {
    /// One without parts of other types.
    pub const fn new(name: &'static str, read: Code<Tree>) -> Native {
        Native { name, read, outline: None, parts: &[], text: false }
    }
}

impl<T: TreeSink> Run<'_, T> {
    /// One of the arguments of a type with code, in 64 bits, negative ones in two's complement; 0 where it was not given or has no
    /// value. `cursor` is where the value begins.
    pub fn arg(&mut self, call: &Call, index: usize, cursor: &Cursor<'_>) -> u64 {
        match self.tables.type_def(call.ty).map(|def| &def.read) {
            Some(ReadAs::Native { args, .. }) => args.get(index).map_or(0, |arg| self.word(*arg, call.frame, cursor)),
            _ => 0,
        }
    }
}
