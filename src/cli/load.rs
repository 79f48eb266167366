//! Reads files named on the command line: message tables, and the files that protocols take.

use crate::captured::file_name;
use crate::remark;
use std::path::{Path, PathBuf};

use super::error::CliError;
use super::files;
use super::options::{ProtocolArgs, TableArgs};
use crate::proto::{AllSettings, LazyTables, all_tables};
use crate::table::{MAX_TABLE_BYTES, TableError, TableSource};

/// The tables of all protocols, with those that were given on top, and behind them the protocols
/// that given files declare.
pub(super) fn tables(files: &[PathBuf]) -> Result<Vec<LazyTables>, CliError> {
    let mut further = Vec::new();
    for path in &table_files(files)? {
        let name = files::name(path);
        let text = table_text(path)?;
        further.push(TableSource { name, text: text.into() });
    }
    Ok(all_tables(further)?)
}

/// The same with the tables that `args` name.
pub(super) fn tables_of(args: &TableArgs) -> Result<Vec<LazyTables>, CliError> {
    tables(&args.files).map_err(|error| match &args.place {
        Some(place) => error.named_by(place),
        None => error,
    })
}

/// The files that were given, in order; of a folder, those in it whose names end in `.table`, by
/// name, without hidden ones.
fn table_files(given: &[PathBuf]) -> Result<Vec<PathBuf>, CliError> {
    let mut files = Vec::new();
    for path in given {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let is_table = |file: &Path| file.extension().is_some_and(|e| e == "table");
        let within = files::of_folder(path, MAX_FILES, " end in .table", is_table)?;
        if within.is_empty() {
            return Err(CliError::Typed(format!(
                "{}: no file in this folder ends in .table",
                file_name(path)
            )));
        }
        files.extend(within);
    }
    Ok(files)
}

/// The most table files in one folder.
const MAX_FILES: usize = 1024;

/// What was given to each protocol. With `no_capture`, what only a capture could open is a mistake.
pub(super) fn settings(args: &ProtocolArgs, no_capture: bool) -> Result<AllSettings, CliError> {
    Ok(AllSettings::new(&args.read(no_capture)?, &mut remark::warn)?)
}

/// A table file's text.
fn table_text(path: &Path) -> Result<String, CliError> {
    let bytes = files::read(path, "a table file", MAX_TABLE_BYTES as u64)?;
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(error.as_bytes().get(..good).unwrap_or_default());
        TableError::at(&files::name(path), &before, good, "expected text in UTF-8").into()
    })
}
