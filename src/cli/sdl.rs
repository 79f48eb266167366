//! State descriptor files of the user's: found, read, and held against what such files can contain.

use std::path::{Path, PathBuf};

use super::args::ReadArgs;
use super::error::CliError;
use crate::proto::moul::sdl::store::Store;
use crate::proto::{Options, protocol_named};
use crate::table::{Evaluator, Tables};

/// More than any descriptor file has.
const MAX_BYTES: u64 = 4 << 20;

/// The files that `--sdl` names, a folder standing for the `.sdl` files in it.
pub(super) fn files(paths: &[PathBuf]) -> Result<Vec<(String, Vec<u8>)>, CliError> {
    let mut files = Vec::new();
    let mut store = Store::new();
    for path in paths {
        for file in within(path)? {
            let name = file.display().to_string();
            let size = file.metadata().map_err(|e| CliError::File(name.clone(), e))?.len();
            if size > MAX_BYTES {
                return Err(CliError::Typed(format!("{name}: {size} bytes, more than any descriptor file has")));
            }
            let bytes = std::fs::read(&file).map_err(|e| CliError::File(name.clone(), e))?;
            if let Some(error) = store.keep_file(&name, &bytes).error {
                return Err(CliError::Typed(error.to_string()));
            }
            files.push((name, bytes));
        }
    }
    Ok(files)
}

/// An evaluator for a protocol's tables, made ready with what was given, where there is no capture that could bring a key.
pub(super) fn evaluator(tables: &Tables, args: &ReadArgs) -> Result<Evaluator, CliError> {
    let mut evaluator = Evaluator::default();
    let options = Options { descriptors: files(&args.sdl)?, ..Options::default() };
    if let Some(protocol) = protocol_named(tables.protocol()) {
        protocol.prepare(&mut evaluator, &options);
    }
    if let Some(name) = Store::of(&mut evaluator).and_then(|store| store.closed().next().map(str::to_owned)) {
        return Err(CliError::Typed(format!(
            "{name}: encrypted with the key of a server, which only a capture of a login has"
        )));
    }
    Ok(evaluator)
}

/// A file, or the descriptor files of a folder in the order of their names.
fn within(path: &Path) -> Result<Vec<PathBuf>, CliError> {
    if !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let fail = |e| CliError::File(path.display().to_string(), e);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(fail)? {
        let file = entry.map_err(fail)?.path();
        if file.extension().is_some_and(|end| end.eq_ignore_ascii_case("sdl")) {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn a_folder_stands_for_its_descriptor_files() {
        let folder = std::env::temp_dir().join(format!("moulsniff-sdl-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("b.sdl"), "STATEDESC b { VERSION 1 }").unwrap();
        std::fs::write(folder.join("a.SDL"), "STATEDESC a { VERSION 1 }").unwrap();
        std::fs::write(folder.join("c.txt"), "no descriptor").unwrap();
        let found = files(std::slice::from_ref(&folder)).unwrap();
        let names: Vec<bool> = found.iter().map(|(name, _)| name.ends_with("a.SDL")).collect();
        assert_eq!(names, [true, false]);
        let wrong = files(&[folder.join("c.txt")]).unwrap_err();
        assert!(
            matches!(wrong, CliError::Typed(text) if text.ends_with("c.txt:1:1: expected `STATEDESC`, found `no`"))
        );
        assert!(matches!(files(&[folder.join("none.sdl")]), Err(CliError::File(..))));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
