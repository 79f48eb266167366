//! The first stage: table text into a syntax tree. Knows how the language is written; names are not
//! resolved here.

mod beginning;
mod declarations;
mod expr;
mod fields;
mod lex;
mod positions;
mod protocol;
mod protocol_syntax;
mod services;
mod syntax;
mod types;

pub(in crate::table) use beginning::{declares_protocol, parse_protocol};
pub use declarations::MAX_TABLE_BYTES;
pub(in crate::table) use declarations::{ParsedFile, example_bytes, parse_file, parse_type};
pub use protocol_syntax::{Condition, RuleSide};
pub(in crate::table) use protocol_syntax::{ProtocolAst, RuleAst};
pub(in crate::table) use syntax::FramingAst;
pub use syntax::ServiceFrame;
pub(in crate::table) use syntax::*;
pub use syntax::{BinaryOp, Expectation, HeaderRole, PlaceRole, Sender};
pub(in crate::table) use types::INTEGER_TYPES;
