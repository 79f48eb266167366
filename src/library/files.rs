//! Files that a program names for a decoder: read whole, up to the size that such a file may have.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::error::{ErrorKind, LibraryError};
use crate::captured::file_name;
use crate::folder::files_of;

/// A file's content. Of more than `most` bytes nothing is read.
pub(super) fn read(path: &Path, most: u64) -> Result<Vec<u8>, LibraryError> {
    let fail = |error: io::Error| {
        LibraryError::new(ErrorKind::File, format!("{}: {error}", file_name(path)))
    };
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(most.saturating_add(1)).read_to_end(&mut bytes))
        .map_err(fail)?;
    if bytes.len() as u64 > most {
        return Err(fail(io::Error::other(format!("more than {} MiB", most >> 20))));
    }
    Ok(bytes)
}

/// The files that a path names: the file itself, or those of a folder whose names end in
/// `extension`, in order, without hidden ones.
pub(super) fn named(path: &Path, extension: Option<&str>) -> Result<Vec<PathBuf>, LibraryError> {
    if !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let fail = |error: io::Error| {
        LibraryError::new(ErrorKind::File, format!("{}: {error}", file_name(path)))
    };
    let fits = |file: &Path| {
        let end = file.extension().unwrap_or_default();
        file.is_file() && extension.is_none_or(|wanted| end.eq_ignore_ascii_case(wanted))
    };
    files_of(path, usize::MAX, fits).map_err(fail)
}
