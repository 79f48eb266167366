//! The first stage: table text into a syntax tree. Knows how the language is written; names are not resolved here.

mod declarations;
mod fields;
mod lex;
mod syntax;

pub(in crate::table) use declarations::{ParsedFile, parse_file, parse_type};
pub(in crate::table) use syntax::*;
pub use syntax::{BinaryOp, HeaderRole, Sender};
