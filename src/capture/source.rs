//! Where a capture comes from: a file by its path, or a reader that the caller opened.
//!
//! A file is opened when the files before it were read. Nothing is read here.

use super::error::{CaptureError, CaptureProblem};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A capture file or reader that is not opened yet.
pub struct Source {
    name: String,
    origin: SourceOrigin,
}

enum SourceOrigin {
    Path(PathBuf),
    Reader(Box<dyn Read + Send>),
}

/// A source that is open.
pub(super) struct Opened {
    pub(super) name: String,
    pub(super) reader: Box<dyn Read + Send>,
    /// It is a plain file, so that reading never waits for a writer.
    pub(super) plain: bool,
}

impl Source {
    /// A file (or a named pipe) by its path.
    pub fn path(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { name: path.to_string_lossy().into_owned(), origin: SourceOrigin::Path(path) }
    }

    /// A reader, such as standard input; `name` is its name in errors.
    pub fn reader(name: impl Into<String>, reader: Box<dyn Read + Send>) -> Self {
        Self { name: name.into(), origin: SourceOrigin::Reader(reader) }
    }

    /// Its name in errors.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its size on the disk in bytes; `None` if it is not a plain file.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        match &self.origin {
            SourceOrigin::Path(path) => {
                let facts = std::fs::metadata(path).ok()?;
                facts.is_file().then_some(facts.len())
            }
            SourceOrigin::Reader(_) => None,
        }
    }

    /// Opens it.
    ///
    /// # Errors
    /// No such file, no permission, a folder.
    pub(super) fn open(self) -> Result<Opened, CaptureError> {
        let name = self.name;
        let path = match self.origin {
            SourceOrigin::Reader(reader) => {
                return Ok(Opened { name, reader, plain: false });
            }
            SourceOrigin::Path(path) => path,
        };
        let fail = |problem| CaptureError::new(&name, None, 0, problem);
        let file = File::open(path).map_err(|e| fail(CaptureProblem::Open(e)))?;
        let facts = file.metadata().map_err(|e| fail(CaptureProblem::Open(e)))?;
        if facts.is_dir() {
            return Err(fail(CaptureProblem::Folder));
        }
        Ok(Opened { plain: facts.is_file(), name, reader: Box::new(file) })
    }
}

/// Whether a file is one of those that the kernel makes while they are read, in `/proc` and `/sys`.
/// The system calls them plain files. They say that they have no bytes, and reading one may wait
/// forever (`/proc/kmsg`).
#[must_use]
pub fn is_of_kernel(path: &Path) -> bool {
    let in_kernel = |real: PathBuf| real.starts_with("/proc") || real.starts_with("/sys");
    let is_empty = path.metadata().is_ok_and(|facts| facts.is_file() && facts.len() == 0);
    is_empty && path.canonicalize().is_ok_and(in_kernel)
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("name", &self.name).finish_non_exhaustive()
    }
}
