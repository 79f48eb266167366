//! The module `table` of the build script: the stages up to the program, and its packed form. The
//! evaluator is left out, and with it all that it needs. Nothing of the crate itself includes this
//! file.

mod compile;
mod error;
mod hex;
mod packed;
mod program;
#[allow(dead_code)] // tables are only compiled here, not shown
mod scale;
mod text;

pub use error::{TableError, TableSource, WithLine};
pub use text::{Expectation, HeaderRole, PlaceRole, Sender};

/// Compiles the tables of one protocol and packs them. What the protocol's code brings is not known
/// here: a test compiles the same tables with that code.
pub fn pack(sources: &[TableSource]) -> Result<Vec<u8>, TableError> {
    let Some(first) = sources.first() else { return Ok(Vec::new()) };
    let protocol = text::parse_protocol(&first.name, &first.text)?;
    Ok(packed::pack(&compile::compile(&protocol, sources, None)?))
}
