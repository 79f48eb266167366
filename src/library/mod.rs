//! What others build on: the interface of the library, which the crate's root shows. It is small, and changes only as a version's number says.
//!
//! It hides everything else of the crate: no type of another module is in its signatures but a few plain enums. It knows no option of the command line.

mod decoder;
mod error;
mod fields;
mod files;
mod owned;
mod records;
mod values;

pub use decoder::Decoder;
pub use error::{ErrorKind, LibraryError};
pub use fields::{FieldName, FieldProblem, FieldSpan};
pub use owned::OwnedRecord;
pub use records::{Records, RunCounts};
pub use values::FieldValue;
