//! The folder that a command writes its files into, which may have to be made. It knows nothing of
//! the files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::unfinished;

/// A folder for files that are written. Dropped before [`keep`](OutputFolder::keep), those folders
/// that were made for it are removed, unless something is in them. So does
/// [`exit_without_unfinished`](super::exit_without_unfinished).
pub struct OutputFolder {
    /// The folders that were not there, the innermost first.
    made: Vec<PathBuf>,
}

impl OutputFolder {
    /// Makes the folder and those that it is in, where they are not there.
    ///
    /// # Errors
    /// A folder cannot be made; [`NotADirectory`](io::ErrorKind::NotADirectory) where there is
    /// something else of this name.
    pub fn create(path: &Path) -> io::Result<OutputFolder> {
        if path.metadata().is_ok_and(|facts| !facts.is_dir()) {
            return Err(io::Error::new(
                io::ErrorKind::NotADirectory,
                "expected a folder, found a file",
            ));
        }
        let absent = path
            .ancestors()
            .take_while(|path| !path.as_os_str().is_empty() && path.symlink_metadata().is_err());
        let folder = OutputFolder { made: absent.map(Path::to_path_buf).collect() };
        unfinished(|all| {
            all.extend(folder.made.iter().cloned());
            fs::create_dir_all(path)
        })?;
        Ok(folder)
    }

    /// The folder stays, even if it is empty.
    pub fn keep(mut self) {
        let made = std::mem::take(&mut self.made);
        unfinished(|all| made.iter().for_each(|path| _ = all.remove(path)));
    }
}

impl Drop for OutputFolder {
    fn drop(&mut self) {
        unfinished(|all| self.made.iter().for_each(|path| _ = all.remove(path)));
        // A folder with something in it is not removed.
        let _ = self.made.iter().try_for_each(fs::remove_dir);
    }
}
