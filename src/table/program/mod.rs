//! The third stage: the compiled form of message tables, flat lists that refer to each other by
//! number, made once and only read afterwards. Knows neither table text nor how the program is run.

mod declared;
mod facts;
mod ids;
mod listed;
mod numbers;
mod positions;
mod protocol;
mod steps;
mod type_op;
mod types;

pub use declared::*;
pub use facts::*;
pub use ids::*;
pub use listed::{Example, ExampleOf, ListedDeclaration, NumberRange, ReplacedMessage};
pub use numbers::Numbers;
pub use positions::{Positions, ValueRead, ValueTypes};
pub use protocol::{Offer, ProtocolDef, Rule};
pub use steps::*;
pub use type_op::TypeOp;
pub(in crate::table) use type_op::{Scalar, TypeOpKind};
pub use types::*;

pub use super::text::{Condition, RuleSide, ServiceFrame};
use std::borrow::Cow;

use crate::maps::SeededMap;
use crate::tree::{Sym, TypeRef};

/// A text of a program. For embedded tables it is a part of the program's own bytes.
pub type TableText = Cow<'static, str>;

/// All compiled parts.
#[derive(Default)]
pub struct Program {
    pub(in crate::table) names: Vec<TableText>,
    pub(in crate::table) types: Vec<TypeDef>,
    /// The short form of each type, for the inner loops.
    pub(in crate::table) type_ops: Vec<TypeOp>,
    pub(in crate::table) layouts: Vec<Layout>,
    pub(in crate::table) steps: Vec<LayoutStep>,
    pub(in crate::table) exprs: Vec<Ex>,
    pub(in crate::table) enums: Vec<EnumDef>,
    pub(in crate::table) infos: Vec<InfoLine>,
    pub(in crate::table) families: Vec<Family>,
    pub(in crate::table) services: Vec<Service>,
    pub(in crate::table) messages: Vec<MessageDef>,
    pub(in crate::table) ranges: Vec<NumberRange>,
    /// Messages that took the number of another one.
    pub(in crate::table) replaced: Vec<ReplacedMessage>,
    pub(in crate::table) examples: Vec<Example>,
    pub(in crate::table) declarations: Vec<ListedDeclaration>,
    pub(in crate::table) dialects: Vec<Sym>,
    /// Bytes up to which something is read.
    pub(in crate::table) delimiters: Vec<Vec<u8>>,
    /// The texts that fields are compared with, numbered from 1. Expressions compare these numbers.
    pub(in crate::table) words: SeededMap<Box<[u8]>, u64>,
    /// What the tables declare of the protocol as a whole.
    pub(in crate::table) protocol: Option<ProtocolDef>,
    /// Types that can be asked for by name: all that need no parameters.
    pub(in crate::table) types_by_name: SeededMap<TableText, TypeRef>,
    pub(in crate::table) messages_by_name: SeededMap<TableText, MessageId>,
    /// For each name, by its number, the message that has it.
    pub(in crate::table) messages_by_sym: Vec<Option<MessageId>>,
    pub(in crate::table) builtins: Builtins,
}

impl Program {
    /// Fills in the short form of every type, once every type is known.
    pub(in crate::table) fn fill_type_ops(&mut self) {
        self.type_ops = self.types.iter().map(TypeOp::of).collect();
        for step in &mut self.steps {
            if let LayoutStep::Field { ty, marks, op, .. } = step {
                *op = self.type_ops.get(ty.0 as usize).copied().unwrap_or(TypeOp::NONE);
                *marks |= op.marks;
            }
        }
    }
}

/// Names and types that the evaluator itself gives to nodes.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::table) struct Builtins {
    pub(in crate::table) count: Sym,
    pub(in crate::table) present: Sym,
    pub(in crate::table) value: Sym,
    pub(in crate::table) text: Sym,
    pub(in crate::table) padding: Sym,
    pub(in crate::table) end: Sym,
    pub(in crate::table) transaction: Sym,
    pub(in crate::table) bytes: TypeRef,
    pub(in crate::table) undecoded: TypeRef,
    pub(in crate::table) values: ValueTypes,
}
