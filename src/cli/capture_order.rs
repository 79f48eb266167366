//! Which captures are read, and in which order: a folder is all captures in it, and several
//! captures are read in the order of their first frames, whatever the order in which a shell lists
//! them.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::error::CliError;
use super::files;
use crate::capture::{Capture, Source, Time, is_magic};
use crate::captured::file_name;
use crate::texts;

/// The most captures in one folder.
const MAX_IN_FOLDER: usize = 4096;

/// How many bytes of a file tell whether it is a text that is read as a capture.
const TEXT_START: u64 = 4096;

/// Captures in the order in which they are read.
pub(super) struct OrderedCaptures {
    /// The captures.
    pub(super) paths: Vec<PathBuf>,
    /// Whether that is another order than the one given.
    pub(super) sorted: bool,
}

impl OrderedCaptures {
    /// Puts captures into the order of their first frames, unless they are to be read `as_given`.
    /// What has no first frame that can be read stays behind the capture before it. Where one of
    /// them is a pipe, all stay as they are.
    ///
    /// # Errors
    /// A folder that cannot be read, or has no capture in it.
    pub(super) fn new(given: &[PathBuf], as_given: bool) -> Result<OrderedCaptures, CliError> {
        let mut paths = Vec::new();
        for path in given {
            if path.is_dir() {
                paths.extend(of_folder(path)?);
            } else {
                paths.push(path.clone());
            }
        }
        if as_given || paths.len() < 2 || !paths.iter().all(|path| files::is_plain(path)) {
            return Ok(OrderedCaptures { paths, sorted: false });
        }
        let mut latest = None;
        let mut timed: Vec<(Option<Time>, PathBuf)> = Vec::new();
        for path in paths {
            latest = first_time(&path).or(latest);
            timed.push((latest, path));
        }
        let sorted = !timed.is_sorted_by_key(|(time, _)| *time);
        timed.sort_by_key(|(time, _)| *time);
        let paths = timed.into_iter().map(|(_, path)| path).collect();
        Ok(OrderedCaptures { paths, sorted })
    }

    /// The names of the captures, where they are in another order than given.
    pub(super) fn sorted_names(&self) -> Vec<String> {
        if !self.sorted {
            return Vec::new();
        }
        self.paths.iter().map(|path| name_alone(path)).collect()
    }
}

/// The captures of a folder, by name.
fn of_folder(folder: &Path) -> Result<Vec<PathBuf>, CliError> {
    let captures = files::of_folder(folder, MAX_IN_FOLDER, " are captures", is_capture)?;
    if captures.is_empty() {
        return Err(CliError::Unreadable(format!(
            "{}: none of the files in this folder is a capture",
            file_name(folder)
        )));
    }
    Ok(captures)
}

/// Whether a plain file begins as captures do, packed ones and texts included.
pub(super) fn is_capture(path: &Path) -> bool {
    if !files::is_plain(path) {
        return false;
    }
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(TEXT_START).read_to_end(&mut start));
    let Some(magic) = start.first_chunk().filter(|_| read.is_ok()) else { return false };
    is_magic(*magic) || texts::format_of(&start).is_some()
}

/// The time of a capture's first frame, if it has one.
fn first_time(path: &Path) -> Option<Time> {
    let mut capture = Capture::new([Source::path(path)]).converting(texts::convert);
    let time = capture.next_frame().ok()??.time;
    (time.seconds != 0 || time.nanos != 0).then_some(time)
}

/// The name of a file without its folder.
fn name_alone(path: &Path) -> String {
    path.file_name().map_or_else(|| file_name(path), |name| file_name(Path::new(name)))
}
