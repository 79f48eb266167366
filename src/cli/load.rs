//! Files that were named on the command line: message tables, and what protocols take.

use crate::captured::file_name;
use crate::remark;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::args::ReadArgs;
use super::error::CliError;
use crate::proto::{AllSettings, LazyTables, all_tables};
use crate::table::{MAX_TABLE_BYTES, TableSource};

/// The tables of all protocols, with those that were given on top, and behind them the protocols that given files declare.
pub(super) fn tables(files: &[PathBuf]) -> Result<Vec<LazyTables>, CliError> {
    let mut further = Vec::new();
    for path in &table_files(files)? {
        let name = file_name(path);
        let text = table_text(path).map_err(|e| CliError::File(name.clone(), e))?;
        further.push(TableSource { name, text });
    }
    Ok(all_tables(further)?)
}

/// The files that were given, in order; of a folder, those in it whose names end in `.table`, by name.
fn table_files(given: &[PathBuf]) -> Result<Vec<PathBuf>, CliError> {
    let mut files = Vec::new();
    for path in given {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let failed = |e: io::Error| CliError::File(file_name(path), e);
        let mut within = Vec::new();
        for entry in std::fs::read_dir(path).map_err(failed)? {
            let file = entry.map_err(failed)?.path();
            if file.extension().is_some_and(|e| e == "table") && within.len() < MOST_FILES {
                within.push(file);
            }
        }
        if within.is_empty() {
            return Err(CliError::Typed(format!("{}: no file in this folder ends in .table", file_name(path))));
        }
        within.sort();
        files.extend(within);
    }
    Ok(files)
}

/// Table files of one folder that are read.
const MOST_FILES: usize = 1024;

/// What was given to each protocol. With `no_capture`, what only a capture could open is a mistake.
pub(super) fn settings(args: &ReadArgs, no_capture: bool) -> Result<AllSettings, CliError> {
    let given = args.protocols.read(no_capture)?;
    let mut warn = |text: String| {
        remark::say(format_args!("moulsniff: {text}"));
    };
    Ok(AllSettings::new(&given, &mut warn)?)
}

/// A table file's text. Stops reading behind the size that a table file may have, so that `/dev/zero` has an end too.
fn table_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_TABLE_BYTES as u64 + 1).read_to_string(&mut text)?;
    if text.len() > MAX_TABLE_BYTES {
        return Err(io::Error::other("no table file: it has more than 16 MiB"));
    }
    Ok(text)
}
