//! Bytes that wait on disk until it is known which file they belong to: they are appended as they
//! come, and read by their place.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::{Access, create_beside, unfinished};

/// A file for bytes that wait. It is removed when it is dropped, and by
/// [`exit_without_unfinished`](super::exit_without_unfinished).
#[derive(Debug)]
pub struct Spool {
    path: PathBuf,
    file: File,
    end: u64,
}

impl Spool {
    /// A new one in a folder that is there.
    ///
    /// # Errors
    /// Where no file can be made there.
    pub fn create(folder: &Path) -> io::Result<Spool> {
        let (path, file) = create_beside(&folder.join("spool"), Access::Owner)?;
        drop(file);
        let opened = std::fs::OpenOptions::new().read(true).write(true).open(&path);
        match opened {
            Ok(file) => Ok(Spool { path, file, end: 0 }),
            Err(error) => {
                remove(&path);
                Err(error)
            }
        }
    }

    /// Appends bytes, and says where the first of them is.
    ///
    /// # Errors
    /// Where they do not fit.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let at = self.end;
        self.file.seek(SeekFrom::Start(at))?;
        self.file.write_all(bytes)?;
        self.end = at + bytes.len() as u64;
        Ok(at)
    }

    /// Reads from the byte at `at` on until `out` is full or the bytes end.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub fn read_at(&mut self, at: u64, out: &mut [u8]) -> io::Result<usize> {
        self.file.seek(SeekFrom::Start(at))?;
        self.file.read(out)
    }

    /// Forgets all bytes: no reader waits for them any more.
    ///
    /// # Errors
    /// Where the file cannot be shortened.
    pub fn clear(&mut self) -> io::Result<()> {
        if self.end > 0 {
            self.file.set_len(0)?;
            self.end = 0;
        }
        Ok(())
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
    unfinished(|all| all.remove(path));
}
