//! Follows a capture that another program is still writing, and the ring of files it may belong to.
//!
//! `dumpcap -b` calls the files of a ring `NAME_00001_20261120101621.pcapng`, or with the time
//! before the number, and removes the oldest ones. A file that belongs to no ring may be truncated,
//! removed or replaced, and is then read anew, as `tail -F` does. This module looks at names, sizes
//! and inodes only; it knows no capture format.

use super::source::Source;
use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::Duration;

/// The time between two looks at a file.
const POLL: Duration = Duration::from_millis(50);

/// Returns whether following should end.
pub type Ended = Arc<dyn Fn() -> bool + Send + Sync>;

/// A growing capture, and the files after it in its ring.
pub struct Tail {
    path: PathBuf,
    ring: Ring,
    /// The file that was returned last, with its position if it belongs to a ring.
    current: Option<Option<RingPosition>>,
    /// What ended the file that was returned last, if it was a change.
    change: Arc<Mutex<Option<FileChange>>>,
    ended: Ended,
}

/// What happened to a file of no ring while it was read. What it held before was read as far as it
/// was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// It is shorter than what was read of it.
    Truncated,
    /// There is another file of its name.
    Replaced,
    /// There is no file of its name.
    Removed,
}

impl fmt::Display for FileChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FileChange::Truncated => "was truncated: reading it from its start",
            FileChange::Replaced => "was replaced: reading the new file",
            FileChange::Removed => "was removed: waiting for a new file of its name; Ctrl-C ends",
        })
    }
}

/// The next file of a [`Tail`].
pub struct Grown {
    /// The file. It is read until the ring's next file exists or the caller wants to end.
    pub source: Source,
    /// How many files of the ring before it were removed unread.
    pub missed: u64,
}

/// A file's position in its ring: the time in its name, and its number.
type RingPosition = (u64, u64);

/// The names of a ring's files.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ring {
    dir: PathBuf,
    stem: String,
    end: String,
}

impl Tail {
    /// Follows `path`: a plain file; a file of a ring and those after it; or, if `path` is the name
    /// that was given to dumpcap, all files of its ring from the oldest on.
    pub fn new(path: impl Into<PathBuf>, ended: Ended) -> Tail {
        let path = path.into();
        Tail { ring: Ring::of(&path), path, current: None, change: Arc::default(), ended }
    }

    /// The path that is followed.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether no file exists yet.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.current.is_none() && self.first().is_none()
    }

    /// What ended the file that was returned last: to be asked, and said, before
    /// [`next_file`](Tail::next_file), which may wait long.
    #[must_use]
    pub fn change(&self) -> Option<FileChange> {
        *self.change.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the first file, or for the one after the last. `None` if the caller wants to end,
    /// or if the last file belongs to no ring and did not change.
    pub fn next_file(&mut self) -> Option<Grown> {
        loop {
            let next = match self.current {
                None => self.first(),
                // A file that belongs to no ring has no successor but itself.
                Some(None) if self.change().is_none() => return None,
                Some(None) => self.path.is_file().then(|| (None, self.path.clone())),
                Some(Some(place)) => {
                    self.ring.after(place).map(|(place, path)| (Some(place), path))
                }
            };
            if let Some((place, path)) = next {
                let missed = match (self.current.flatten(), place) {
                    (Some((_, before)), Some((_, number))) => {
                        number.saturating_sub(before).saturating_sub(1)
                    }
                    _ => 0,
                };
                self.current = Some(place);
                return Some(Grown { source: self.source(&path, place), missed });
            }
            if (self.ended)() {
                return None;
            }
            sleep(POLL);
        }
    }

    fn first(&self) -> Option<(Option<RingPosition>, PathBuf)> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        if self.path.is_file() {
            Some((self.ring.place(&name), self.path.clone()))
        } else {
            self.ring.after((0, 0)).map(|(place, path)| (Some(place), path))
        }
    }

    fn source(&self, path: &Path, place: Option<RingPosition>) -> Source {
        *self.change.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let growing = Growing {
            file: File::open(path),
            path: path.to_path_buf(),
            read: 0,
            ring: self.ring.clone(),
            place,
            change: Arc::clone(&self.change),
            ended: Arc::clone(&self.ended),
        };
        Source::reader(path.to_string_lossy(), Box::new(growing))
    }
}

impl Ring {
    /// The ring of a path, which is either one of its files or the name that was given to dumpcap.
    fn of(path: &Path) -> Ring {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (stem, end) = match name.rfind('.') {
            Some(at) if at > 0 => name.split_at(at),
            _ => (name.as_str(), ""),
        };
        let dir = path
            .parent()
            .filter(|d| !d.as_os_str().is_empty())
            .unwrap_or(Path::new("."))
            .to_path_buf();
        let stem = split_place(stem).map_or(stem, |(before, _)| before);
        Ring { dir, stem: stem.to_string(), end: end.to_string() }
    }

    /// The position of a file, by its name; `None` if it is not one of the ring's.
    fn place(&self, name: &str) -> Option<RingPosition> {
        let (stem, place) = split_place(name.strip_suffix(&self.end)?)?;
        (stem == self.stem).then_some(place)
    }

    /// The ring's first file after a position.
    fn after(&self, place: RingPosition) -> Option<(RingPosition, PathBuf)> {
        let files = std::fs::read_dir(&self.dir).ok()?.flatten();
        let placed =
            files.filter_map(|f| Some((self.place(&f.file_name().to_string_lossy())?, f.path())));
        placed.filter(|(p, _)| *p > place).min_by_key(|(p, _)| *p)
    }
}

/// Splits `NAME_00001_20261120101621`, or the same with the time first, into the name and the
/// position.
fn split_place(stem: &str) -> Option<(&str, RingPosition)> {
    let (rest, last) = stem.rsplit_once('_')?;
    let (name, first) = rest.rsplit_once('_')?;
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (number, time) = if last.len() == 14 { (first, last) } else { (last, first) };
    let good =
        time.len() == 14 && (5..14).contains(&number.len()) && digits(number) && digits(time);
    good.then(|| Some((name, (time.parse().ok()?, number.parse().ok()?))))?
}

/// A file that is read as it grows.
struct Growing {
    file: io::Result<File>,
    path: PathBuf,
    /// How many of its bytes were read.
    read: u64,
    ring: Ring,
    place: Option<RingPosition>,
    change: Arc<Mutex<Option<FileChange>>>,
    ended: Ended,
}

impl Growing {
    /// Whether the file will not grow any more. A change is noted.
    fn is_left(&self, file: &File) -> bool {
        if let Some(place) = self.place {
            return self.ring.after(place).is_some();
        }
        let change = file.metadata().ok().and_then(|open| change(&open, &self.path, self.read));
        if change.is_some() {
            *self.change.lock().unwrap_or_else(PoisonError::into_inner) = change;
        }
        change.is_some()
    }
}

impl Read for Growing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut left = false;
        loop {
            let file = match &mut self.file {
                Ok(file) => file,
                Err(error) => return Err(error.kind().into()),
            };
            let count = file.read(buffer)?;
            self.read = self.read.saturating_add(count as u64);
            if count > 0 || left {
                return Ok(count);
            }
            // Reads once more, because the file may have grown between the last read and the reason
            // to end.
            left = (self.ended)() || self.file.as_ref().is_ok_and(|file| self.is_left(file));
            if !left {
                sleep(POLL);
            }
        }
    }
}

/// How the file at `path` differs from the open one, of which `read` bytes were read.
fn change(open: &Metadata, path: &Path, read: u64) -> Option<FileChange> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(FileChange::Removed),
        // A file that cannot be looked at for another reason may be readable again later.
        Err(_) => None,
        Ok(now) if !is_same(open, &now) => Some(FileChange::Replaced),
        Ok(_) => (open.len() < read).then_some(FileChange::Truncated),
    }
}

#[cfg(unix)]
fn is_same(open: &Metadata, now: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (open.dev(), open.ino()) == (now.dev(), now.ino())
}

/// Elsewhere an open file keeps its name.
#[cfg(not(unix))]
fn is_same(_: &Metadata, _: &Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn the_files_of_a_ring_are_known_by_their_names() {
        let by_name = Ring::of(Path::new("/x/out.pcapng"));
        assert_eq!(by_name, Ring::of(Path::new("/x/out_00012_20261120101621.pcapng")));
        assert_eq!(by_name, Ring::of(Path::new("/x/out_20261120101621_00012.pcapng")));
        assert_eq!(
            by_name.place("out_00012_20261120101621.pcapng"),
            Some((20_261_120_101_621, 12))
        );
        assert_eq!(
            by_name.place("out_20261120101621_00012.pcapng"),
            Some((20_261_120_101_621, 12))
        );
        for other in [
            "out.pcapng",
            "other_00012_20261120101621.pcapng",
            "out_12_20261120101621.pcapng",
            "out_00012_x.pcapng",
        ] {
            assert_eq!(by_name.place(other), None, "{other}");
        }
        // A name without an extension and with underscores of its own.
        assert_eq!(Ring::of(Path::new("a_b_00001_20261120101621")), Ring::of(Path::new("./a_b")));
    }

    #[test]
    #[cfg(unix)]
    fn a_file_that_is_truncated_replaced_or_removed_is_read_anew() {
        let kept = tempfile::tempdir().unwrap();
        let dir = kept.path();
        let path = dir.join("growing");
        std::fs::write(&path, "first").unwrap();
        let mut tail = Tail::new(&path, Arc::new(|| false));
        let changes: [(&str, FileChange, &dyn Fn()); 3] = [
            ("first", FileChange::Truncated, &|| std::fs::write(&path, "2nd").unwrap()),
            ("2nd", FileChange::Replaced, &|| {
                std::fs::write(dir.join("new"), "third").unwrap();
                std::fs::rename(dir.join("new"), &path).unwrap();
            }),
            ("third", FileChange::Removed, &|| std::fs::remove_file(&path).unwrap()),
        ];
        for (content, expected, act) in changes {
            let mut reader = tail.next_file().unwrap().source.open().unwrap().reader;
            let mut bytes = vec![0; content.len()];
            reader.read_exact(&mut bytes).unwrap();
            assert_eq!(bytes, content.as_bytes());
            assert_eq!(tail.change(), None);
            act();
            assert_eq!(reader.read(&mut [0]).unwrap(), 0, "the old file is over");
            assert_eq!(tail.change(), Some(expected));
        }
        std::fs::write(&path, "fourth").unwrap();
        assert!(tail.next_file().is_some() && tail.change().is_none());
    }
}
