//! The files in a folder that stands for them. It knows no kind of file.

use std::io;
use std::path::{Path, PathBuf};

/// Those files of a folder that `fits` takes, sorted by name; `most` of them at most, and then
/// which ones is up to the system. Hidden files are left out: macOS puts a `._x.table` beside
/// `x.table` where a file system lacks what it wants to keep.
///
/// # Errors
/// The folder cannot be read.
pub fn files_of(
    folder: &Path,
    most: usize,
    fits: impl Fn(&Path) -> bool,
) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if !entry.file_name().as_encoded_bytes().starts_with(b".") && fits(&path) {
            files.push(path);
        }
        if files.len() >= most {
            break;
        }
    }
    files.sort();
    Ok(files)
}
