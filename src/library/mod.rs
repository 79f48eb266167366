//! The public interface of the library, which the crate's root exports. It is small, and follows
//! semantic versioning.
//!
//! It hides everything else of the crate: no type of another module is in its signatures but a few
//! plain enums. It knows no option of the command line.

#[cfg(feature = "answers")]
mod answers;
mod capture_writer;
mod decoder;
mod encoder;
mod error;
mod fields;
mod files;
mod owned;
mod records;
mod values;

#[cfg(feature = "answers")]
pub use answers::{Conclusion, Difference, Findings, Session};
pub use capture_writer::CaptureWriter;
pub use decoder::Decoder;
pub use encoder::Encoder;
pub use error::{ErrorKind, LibraryError};
pub use fields::{FieldName, FieldProblem, FieldSpan};
pub use owned::OwnedRecord;
pub use records::{Records, RunCounts};
pub use values::FieldValue;
