//! Files that a command writes, so that no fault destroys one: each is written beside its target
//! under a name of its own and takes the target's name when it is complete, synced and closed.
//! Until then the file of that name stays as it was. And no output may be an input.
//!
//! It knows paths and bytes, and nothing of what is in them.

use crate::captured::file_name;
mod folder;
mod spool;

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

pub use folder::OutputFolder;
pub use spool::Spool;

/// Paths under which a file is being written, and folders that were made for files: a signal
/// handler removes them before it exits.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Numbers the unfinished files of this process.
static NEXT_NUMBER: AtomicU32 = AtomicU32::new(0);

/// Names tried before giving up: a killed process with the same process number may have left files.
const NAMES_TRIED: u32 = 1000;

/// The files that a command reads: captures, keys, tables, descriptors. None may be written to.
#[derive(Clone, Debug, Default)]
pub struct Inputs(Vec<(FileIdentity, PathBuf)>);

/// Which file it is, whatever path leads to it: a hard link and a symbolic link are the same file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileIdentity {
    #[cfg(unix)]
    device_and_inode: (u64, u64),
    #[cfg(not(unix))]
    path: PathBuf,
}

/// Which users may read a file that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// As with other new files (the umask); where a file is replaced, its permissions.
    Usual,
    /// Its owner alone: it holds keys or decrypted traffic.
    Owner,
}

/// A file on its way to its name. Dropped before [`commit`](OutputFile::commit), it leaves nothing
/// behind.
///
/// Devices and pipes (`/dev/null`, a FIFO) cannot be replaced: they are written to as they are. A
/// symbolic link at the target is replaced and never followed.
#[derive(Debug)]
pub struct OutputFile {
    target: PathBuf,
    /// Where it is written; none where the target is a device or a pipe.
    beside: Option<(PathBuf, FileIdentity)>,
    /// Closed by [`rest`](OutputFile::rest), opened again by the next write.
    file: Option<BufWriter<File>>,
}

impl Inputs {
    /// The files at some paths. `-` is what standard input was redirected from; a folder means all
    /// files in it. What is not there is no input.
    pub fn of<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Inputs {
        let mut inputs = Inputs::default();
        for path in paths {
            let path = if path.as_os_str() == "-" { Path::new("/dev/stdin") } else { path };
            inputs.add(path);
            let within = fs::read_dir(path).into_iter().flatten().flatten();
            within.for_each(|entry| inputs.add(&entry.path()));
        }
        inputs
    }

    fn add(&mut self, path: &Path) {
        // Devices may be read and written at once: a terminal is both.
        if let Ok(found) =
            fs::metadata(path).and_then(|data| Ok(data.is_file().then_some(identity(path, &data)?)))
        {
            self.0.extend(found.map(|identity| (identity, path.to_path_buf())));
        }
    }

    /// Who may read a file that has what is in the inputs: its owner alone, where one of them is
    /// so.
    pub fn access(&self) -> Access {
        let private =
            |(_, path): &(FileIdentity, PathBuf)| fs::metadata(path).is_ok_and(is_private);
        if self.0.iter().any(private) { Access::Owner } else { Access::Usual }
    }

    /// The input that a path leads to, if any.
    pub fn find(&self, path: &Path) -> Option<&Path> {
        let found = fs::metadata(path).and_then(|data| identity(path, &data)).ok()?;
        self.0.iter().find(|(input, _)| *input == found).map(|(_, path)| path.as_path())
    }
}

impl OutputFile {
    /// Begins a file that will be at `target`, replacing one that is there.
    ///
    /// # Errors
    /// Where `target` is one of the inputs or a folder, and where nothing can be made beside it.
    pub fn create(target: &Path, access: Access, inputs: &Inputs) -> io::Result<OutputFile> {
        if let Some(input) = inputs.find(target) {
            let text = format!("this is the input {}: it is not written over", file_name(input));
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let target = target.to_path_buf();
        let old = fs::metadata(&target).ok();
        if old.as_ref().is_some_and(Metadata::is_dir) {
            return Err(io::Error::new(
                io::ErrorKind::IsADirectory,
                "this is a folder, expected the name of a file",
            ));
        }
        // `/dev/stdout` leads to a plain file where it was redirected to one, and is still no name
        // to replace.
        let replaceable = old.as_ref().is_none_or(Metadata::is_file) && !target.starts_with("/dev");
        if !replaceable {
            let file = OpenOptions::new().write(true).open(&target)?;
            return Ok(OutputFile { target, beside: None, file: Some(BufWriter::new(file)) });
        }
        let (path, file) = create_beside(&target, access)?;
        if let (Access::Usual, Some(old)) = (access, old) {
            // The content is what matters; a file system without permissions keeps none.
            let _ = file.set_permissions(old.permissions());
        }
        let identity = match file.metadata().and_then(|data| identity(&path, &data)) {
            Ok(identity) => identity,
            Err(error) => {
                drop(file);
                unfinished(|all| fs::remove_file(&path).is_ok() | all.remove(&path));
                return Err(error);
            }
        };
        Ok(OutputFile { target, beside: Some((path, identity)), file: Some(BufWriter::new(file)) })
    }

    /// Closes the file until the next write, so that more files can be written at once than may be
    /// open.
    ///
    /// # Errors
    /// Where what was written does not fit.
    pub fn rest(&mut self) -> io::Result<()> {
        match (self.beside.is_some(), self.file.take()) {
            (true, Some(mut file)) => file.flush(),
            (_, file) => {
                self.file = file;
                self.flush()
            }
        }
    }

    /// Completes the file: from here on it is at its target.
    ///
    /// # Errors
    /// Where what was written does not fit, or the target's name cannot be taken. Then the target
    /// is as it was.
    pub fn commit(self) -> io::Result<()> {
        let target = self.target.clone();
        self.commit_among_many()?;
        sync_folder(&target);
        Ok(())
    }

    /// The same for one of many files of a folder. Its new name lasts through a power failure once
    /// [`sync_folder`] was called with the path of one of them.
    ///
    /// # Errors
    /// As for [`commit`](OutputFile::commit).
    pub fn commit_among_many(mut self) -> io::Result<()> {
        let replaces = self.beside.is_some();
        let written = self.file()?;
        written.flush()?;
        if replaces {
            written.get_ref().sync_all()?;
        }
        self.commit_unsynced()
    }

    /// The same without waiting for the disk: one of thousands of files, which a power failure may
    /// leave empty.
    ///
    /// # Errors
    /// As for [`commit`](OutputFile::commit).
    pub fn commit_unsynced(mut self) -> io::Result<()> {
        self.file()?.flush()?;
        let Some((path, _)) = &self.beside else { return Ok(()) };
        // Windows renames no open file.
        self.file = None;
        let target = &self.target;
        unfinished(|all| fs::rename(path, target).map(|()| all.remove(path)))?;
        self.beside = None;
        Ok(())
    }

    /// Completes the file where nothing is at its target yet. Of several programs that do so at
    /// once, one succeeds.
    ///
    /// # Errors
    /// As for [`commit`](OutputFile::commit); [`AlreadyExists`](io::ErrorKind::AlreadyExists) where
    /// there is something by now, which stays as it is.
    pub fn commit_new(mut self) -> io::Result<()> {
        let written = self.file()?;
        written.flush()?;
        written.get_ref().sync_all()?;
        if let Some((path, _)) = &self.beside {
            match fs::hard_link(path, &self.target) {
                // Dropped, the file loses its other name.
                Ok(()) => {
                    sync_folder(&self.target);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
                // Some file systems have no hard links.
                Err(error) if fs::symlink_metadata(&self.target).is_ok() => return Err(error),
                Err(_) => {}
            }
        }
        self.commit()
    }

    fn file(&mut self) -> io::Result<&mut BufWriter<File>> {
        let file = match self.file.take() {
            Some(file) => file,
            None => BufWriter::new(self.open_again()?),
        };
        Ok(self.file.insert(file))
    }

    /// Opens a file that rested. In a folder that others may write to, something else may be at its
    /// path by now.
    fn open_again(&self) -> io::Result<File> {
        let gone = || io::Error::other("its unfinished part was moved or replaced");
        let (path, expected) = self.beside.as_ref().ok_or_else(gone)?;
        let file = OpenOptions::new().append(true).open(path)?;
        if identity(path, &file.metadata()?)? == *expected { Ok(file) } else { Err(gone()) }
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some((path, _)) = self.beside.take() {
            // Not just dropped, which would write out what is still in the buffer.
            let _ = self.file.take().map(BufWriter::into_parts);
            unfinished(|all| fs::remove_file(&path).is_ok() | all.remove(&path));
        }
    }
}

/// Removes the files that are not complete, and the folders that were made for files and have none,
/// and ends the program. For a signal handler: a thread that wants to begin or complete a file
/// meanwhile waits for its end.
pub fn exit_without_unfinished(status: i32) -> ! {
    unfinished(|all| {
        // In reverse order, the files in a folder come before the folder.
        for path in all.iter().rev() {
            let _ = fs::remove_file(path).or_else(|_| fs::remove_dir(path));
        }
        std::process::exit(status)
    })
}

/// Runs `act` while the set of unfinished files and folders is locked: everything in the set is on
/// the disk, and nothing else is.
fn unfinished<T>(act: impl FnOnce(&mut BTreeSet<PathBuf>) -> T) -> T {
    act(&mut UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Makes a file in the target's folder, since only there it can be renamed to it. Its name is
/// short: the target's may be as long as names get.
fn create_beside(target: &Path, access: Access) -> io::Result<(PathBuf, File)> {
    let folder = target.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    restrict(&mut options, access);
    // In WebAssembly there are no processes beside this one.
    let process = if cfg!(target_family = "wasm") { 0 } else { std::process::id() };
    for _ in 0..NAMES_TRIED {
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!(".moulsniff-{process}-{number}.part"));
        let made = unfinished(|all| options.open(&path).inspect(|_| _ = all.insert(path.clone())));
        match made {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::AlreadyExists,
        "too many unfinished files (.moulsniff-*.part) are in its folder",
    ))
}

/// Has a new file made so that only those can read it who may.
#[cfg(unix)]
fn restrict(options: &mut OpenOptions, access: Access) {
    use std::os::unix::fs::OpenOptionsExt;
    if access == Access::Owner {
        options.mode(0o600);
    }
}

/// Elsewhere a new file is as open as its folder.
#[cfg(not(unix))]
fn restrict(_: &mut OpenOptions, _: Access) {}

/// Whether only its owner can read a file.
#[cfg(unix)]
fn is_private(data: Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    data.permissions().mode() & 0o077 == 0
}

#[cfg(not(unix))]
fn is_private(_: Metadata) -> bool {
    false
}

/// Makes the new names in the folder of `target` last through a power failure, where the system
/// can.
pub fn sync_folder(target: &Path) {
    let folder = target.parent().filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
}

#[cfg(unix)]
#[allow(clippy::unnecessary_wraps)] // elsewhere it can fail
fn identity(_path: &Path, data: &Metadata) -> io::Result<FileIdentity> {
    use std::os::unix::fs::MetadataExt;
    Ok(FileIdentity { device_and_inode: (data.dev(), data.ino()) })
}

#[cfg(not(unix))]
fn identity(path: &Path, _data: &Metadata) -> io::Result<FileIdentity> {
    match path.canonicalize() {
        Ok(path) => Ok(FileIdentity { path }),
        // Without links, as in WebAssembly, a file has one path.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            Ok(FileIdentity { path: path.to_path_buf() })
        }
        Err(error) => Err(error),
    }
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn write(target: &Path, access: Access, bytes: &[u8]) -> io::Result<()> {
        let mut file = OutputFile::create(target, access, &Inputs::default())?;
        file.write_all(bytes)?;
        file.commit()
    }

    #[test]
    fn a_file_is_at_its_name_only_when_complete() {
        let kept = tempfile::tempdir().unwrap();
        let folder = kept.path();
        let target = folder.join("out");
        fs::write(&target, "old").unwrap();
        let mut file = OutputFile::create(&target, Access::Usual, &Inputs::default()).unwrap();
        file.write_all(b"new").unwrap();
        file.flush().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"old");
        file.commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(names(folder), ["out"]);
    }

    #[test]
    fn a_file_given_up_leaves_the_old_one_and_nothing_else() {
        let kept = tempfile::tempdir().unwrap();
        let folder = kept.path();
        let target = folder.join("out");
        fs::write(&target, "old").unwrap();
        let mut file = OutputFile::create(&target, Access::Usual, &Inputs::default()).unwrap();
        file.write_all(&[7; 100_000]).unwrap();
        drop(file);
        assert_eq!(fs::read(&target).unwrap(), b"old");
        assert_eq!(names(folder), ["out"]);
    }

    #[test]
    fn a_file_that_rested_goes_on() {
        let kept = tempfile::tempdir().unwrap();
        let folder = kept.path();
        let target = folder.join("out");
        let mut file = OutputFile::create(&target, Access::Usual, &Inputs::default()).unwrap();
        for part in [&b"one "[..], b"two ", b"three"] {
            file.write_all(part).unwrap();
            file.rest().unwrap();
        }
        file.commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"one two three");
    }

    #[test]
    fn a_part_that_was_replaced_by_a_link_is_not_written_to() {
        let kept = tempfile::tempdir().unwrap();
        let folder = kept.path();
        let victim = folder.join("victim");
        fs::write(&victim, "safe").unwrap();
        let mut file =
            OutputFile::create(&folder.join("out"), Access::Usual, &Inputs::default()).unwrap();
        file.write_all(b"one").unwrap();
        file.rest().unwrap();
        let part = folder.join(names(folder).into_iter().find(|n| n.ends_with(".part")).unwrap());
        fs::remove_file(&part).unwrap();
        symlink(&victim, &part).unwrap();
        assert!(file.write_all(b"two").is_err());
        drop(file);
        assert_eq!(fs::read(&victim).unwrap(), b"safe");
    }

    #[test]
    fn an_input_is_not_written_over_by_whatever_path() {
        let kept = tempfile::tempdir().unwrap();
        let folder = kept.path();
        let input = folder.join("a");
        let hard = folder.join("b");
        let soft = folder.join("c");
        fs::write(&input, "precious").unwrap();
        fs::hard_link(&input, &hard).unwrap();
        symlink(&input, &soft).unwrap();
        let inputs = Inputs::of([input.as_path()]);
        let within = Inputs::of([folder]);
        for path in [&input, &hard, &soft, &folder.join("./a")] {
            for inputs in [&inputs, &within] {
                let error = OutputFile::create(path, Access::Usual, inputs).unwrap_err();
                assert!(error.to_string().contains("input"), "{error}");
            }
        }
        assert_eq!(fs::read(&input).unwrap(), b"precious");
        assert_eq!(names(folder), ["a", "b", "c"]);
    }

    #[test]
    fn a_new_file_replaces_none() {
        let kept = tempfile::tempdir().unwrap();
        let folder = kept.path();
        let target = folder.join("out");
        let begin = |text: &[u8]| {
            let mut file = OutputFile::create(&target, Access::Owner, &Inputs::default()).unwrap();
            file.write_all(text).unwrap();
            file
        };
        let first = begin(b"first");
        let second = begin(b"second");
        second.commit_new().unwrap();
        assert_eq!(first.commit_new().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&target).unwrap(), b"second");
        assert_eq!(names(folder), ["out"]);
    }

    #[test]
    fn a_link_at_the_target_is_replaced_and_not_followed() {
        let kept = tempfile::tempdir().unwrap();
        let folder = kept.path();
        let victim = folder.join("victim");
        let target = folder.join("out");
        fs::write(&victim, "safe").unwrap();
        symlink(&victim, &target).unwrap();
        write(&target, Access::Usual, b"new").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"safe");
        assert_eq!(fs::read(&target).unwrap(), b"new");
    }

    #[test]
    fn secrets_are_the_owners_and_permissions_stay() {
        let kept = tempfile::tempdir().unwrap();
        let folder = kept.path();
        let secret = folder.join("secret");
        let plain = folder.join("plain");
        fs::write(&secret, "old").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
        write(&secret, Access::Owner, b"key").unwrap();
        assert_eq!(fs::metadata(&secret).unwrap().mode() & 0o777, 0o600);
        fs::write(&plain, "old").unwrap();
        fs::set_permissions(&plain, fs::Permissions::from_mode(0o640)).unwrap();
        write(&plain, Access::Usual, b"new").unwrap();
        assert_eq!(fs::metadata(&plain).unwrap().mode() & 0o777, 0o640);
    }

    #[test]
    fn devices_are_written_to_and_folders_refused() {
        write(Path::new("/dev/null"), Access::Usual, b"nothing").unwrap();
        assert!(
            fs::metadata("/dev/null").unwrap().mtime() >= 0
                && !fs::metadata("/dev/null").unwrap().is_file()
        );
        assert!(write(tempfile::tempdir().unwrap().path(), Access::Usual, b"").is_err());
        assert!(write(Path::new("/nowhere/at/all"), Access::Usual, b"").is_err());
    }
}
