//! A capture that another program still writes, and the ring of files it may go on in.
//!
//! `dumpcap -b` calls the files of a ring `NAME_00001_20261120101621.pcapng`, or with the time before the number, and removes the oldest.
//! Here only their names and their growth are looked at; what is in them is the reader's business.

use super::source::Source;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

/// How often a file is looked at again.
const POLL: Duration = Duration::from_millis(50);

/// Says whether to come to an end.
pub type Ended = Arc<dyn Fn() -> bool + Send + Sync>;

/// A growing capture, and those that follow it in its ring.
pub struct Tail {
    path: PathBuf,
    ring: Ring,
    /// The file that was given out last.
    current: Option<Option<Place>>,
    ended: Ended,
}

/// What comes next.
pub struct Grown {
    /// The file; its end is where the next one is there, or where an end was wished for.
    pub source: Source,
    /// Files between it and the one before that were removed before they were read.
    pub missed: u64,
}

/// A file's place in its ring: when it was begun, and its number.
type Place = (u64, u64);

/// The names of a ring's files.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ring {
    dir: PathBuf,
    stem: String,
    end: String,
}

impl Tail {
    /// Follows a file, a file of a ring from there on, or by the name that was given to the program that writes it the ring's oldest.
    pub fn new(path: impl Into<PathBuf>, ended: Ended) -> Tail {
        let path = path.into();
        Tail { ring: Ring::of(&path), path, current: None, ended }
    }

    /// Whether there is nothing to be read yet.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.current.is_none() && self.first().is_none()
    }

    /// Waits for the first file, or the one after the last; nothing once an end is wished for, or where no ring goes on.
    pub fn next_file(&mut self) -> Option<Grown> {
        loop {
            let next = match self.current {
                None => self.first(),
                // A file that belongs to no ring is the only one.
                Some(None) => return None,
                Some(Some(place)) => self.ring.after(place).map(|(place, path)| (Some(place), path)),
            };
            if let Some((place, path)) = next {
                let missed = match (self.current.flatten(), place) {
                    (Some((_, before)), Some((_, number))) => number.saturating_sub(before).saturating_sub(1),
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

    fn first(&self) -> Option<(Option<Place>, PathBuf)> {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        match self.path.is_file() {
            true => Some((self.ring.place(&name), self.path.clone())),
            false => self.ring.after((0, 0)).map(|(place, path)| (Some(place), path)),
        }
    }

    fn source(&self, path: &Path, place: Option<Place>) -> Source {
        let (ring, ended) = (self.ring.clone(), Arc::clone(&self.ended));
        Source::reader(path.to_string_lossy(), Box::new(Growing { file: File::open(path), ring, place, ended }))
    }
}

impl Ring {
    /// The ring a path belongs to, as one of its files or as the name they are made of.
    fn of(path: &Path) -> Ring {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (stem, end) = match name.rfind('.') {
            Some(at) if at > 0 => name.split_at(at),
            _ => (name.as_str(), ""),
        };
        let dir = path.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_path_buf();
        let stem = split_place(stem).map_or(stem, |(before, _)| before);
        Ring { dir, stem: stem.to_string(), end: end.to_string() }
    }

    /// The place of a file by its name, where it is one of the ring's.
    fn place(&self, name: &str) -> Option<Place> {
        let (stem, place) = split_place(name.strip_suffix(&self.end)?)?;
        (stem == self.stem).then_some(place)
    }

    /// The ring's next file after a place.
    fn after(&self, place: Place) -> Option<(Place, PathBuf)> {
        let files = std::fs::read_dir(&self.dir).ok()?.flatten();
        let placed = files.filter_map(|f| Some((self.place(&f.file_name().to_string_lossy())?, f.path())));
        placed.filter(|(p, _)| *p > place).min_by_key(|(p, _)| *p)
    }
}

/// `NAME_00001_20261120101621`, or the time first, as the name and the place.
fn split_place(stem: &str) -> Option<(&str, Place)> {
    let (rest, last) = stem.rsplit_once('_')?;
    let (name, first) = rest.rsplit_once('_')?;
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (number, time) = if last.len() == 14 { (first, last) } else { (last, first) };
    let good = time.len() == 14 && (5..14).contains(&number.len()) && digits(number) && digits(time);
    good.then(|| Some((name, (time.parse().ok()?, number.parse().ok()?))))?
}

/// A file that is read as it grows.
struct Growing {
    file: io::Result<File>,
    ring: Ring,
    place: Option<Place>,
    ended: Ended,
}

impl Read for Growing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let file = match &mut self.file {
            Ok(file) => file,
            Err(error) => return Err(error.kind().into()),
        };
        let mut left = false;
        loop {
            let count = file.read(buffer)?;
            if count > 0 || left {
                return Ok(count);
            }
            // What was written between the last look and the end is still read.
            left = (self.ended)() || self.place.is_some_and(|place| self.ring.after(place).is_some());
            if !left {
                sleep(POLL);
            }
        }
    }
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
        assert_eq!(by_name.place("out_00012_20261120101621.pcapng"), Some((20_261_120_101_621, 12)));
        assert_eq!(by_name.place("out_20261120101621_00012.pcapng"), Some((20_261_120_101_621, 12)));
        for other in
            ["out.pcapng", "other_00012_20261120101621.pcapng", "out_12_20261120101621.pcapng", "out_00012_x.pcapng"]
        {
            assert_eq!(by_name.place(other), None, "{other}");
        }
        // Without an ending, and with a name that has underlines of its own.
        assert_eq!(Ring::of(Path::new("a_b_00001_20261120101621")), Ring::of(Path::new("./a_b")));
    }
}
