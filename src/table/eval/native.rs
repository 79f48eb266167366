//! Types with code: how a protocol lists them, and how they are called.

use super::super::cursor::Cursor;
use super::super::program::ReadAs;
use super::sink::{Code, TreeSink};
use super::{Call, Run};
use crate::tree::{Outline, TextKind, Tree};

/// Passes over an ordinary text at the start of some bytes.
pub type SkipText = fn(&[u8]) -> Option<SkippedText>;

/// What a text with code consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkippedText {
    /// How many bytes come before the text itself.
    pub before: usize,
    /// How many bytes the text has, and how they are encoded.
    pub text: usize,
    pub kind: TextKind,
    /// How many nodes its code would add.
    pub nodes: u32,
    /// The note that it would add to its node.
    pub note: Option<&'static str>,
}

/// A type with code, as a protocol lists it.
#[derive(Debug, Clone, Copy)]
pub struct Native {
    /// The name tables use.
    pub name: &'static str,
    /// Its code: reads at the cursor, adds its nodes (exactly one without the span mark), and
    /// returns the value that expressions see.
    pub read: Code<Tree>,
    /// The same code for outlines, if it reads no nodes back and needs nothing but the bytes and
    /// its arguments. Its nodes have the name of the field, or one that the evaluator itself gives.
    pub outline: Option<Code<Outline>>,
    /// For a text: what it consists of, from its first byte on, if it is an ordinary one whatever
    /// its arguments are. `None` leaves it to `outline`.
    pub skip: Option<SkipText>,
    /// Bits of a number of two bytes, least significant first: where `skip` finds an ordinary text
    /// of three nodes (two without characters) without a note whenever one of these bits is set,
    /// and as many ASCII characters follow as the other bits say, all inverted. The nodes are the
    /// text (`Inverted8`), its count, whose type is the first of its `parts`, and its characters.
    /// Other characters take as many bytes as the other bits say, too. 0 where that does not hold.
    pub ascii: u16,
    /// The table types of its parts. They are looked up once, for [`Call::part`].
    pub parts: &'static [&'static str],
    /// If its node is always a text whose bytes are in the message as they are, or inverted: the
    /// encodings it may have. Else none.
    pub texts: &'static [TextKind],
    /// Whether its code depends on nothing but the message's bytes and the evaluator's context, and
    /// changes nothing that other messages depend on. Code for outlines never does.
    pub self_contained: bool,
}

impl Native {
    /// One without parts of other types.
    pub const fn new(name: &'static str, read: Code<Tree>) -> Native {
        Native {
            name,
            read,
            outline: None,
            skip: None,
            ascii: 0,
            parts: &[],
            texts: &[],
            self_contained: false,
        }
    }
}

impl<T: TreeSink> Run<'_, T> {
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
