//! Makes safe names for files from names in captures, which may be hostile.
//!
//! No name leads out of the folder, is a device on any system, hides, looks like another one, or
//! replaces a file that is there. This file knows paths and characters, and nothing of what is in
//! the files.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::captured::is_control;

/// Bytes of one part of a path.
const MAX_PART: usize = 120;
/// Parts of a path: what is beyond is left out at its beginning.
const MAX_PARTS: usize = 8;
/// Numbers that are tried for a name that is taken on disk.
const NUMBERS_TRIED: u32 = 100_000;

/// Which names are taken in a folder.
pub(super) struct FileNames {
    folder: PathBuf,
    /// By a path as file systems without case compare it.
    taken: HashMap<String, TakenName>,
}

struct TakenName {
    /// The folder's own path, where it is one: case may differ.
    folder: Option<String>,
    last: u32,
}

impl FileNames {
    /// Names in a folder that is there.
    pub(super) fn new(folder: &Path) -> FileNames {
        FileNames { folder: folder.to_path_buf(), taken: HashMap::new() }
    }

    /// A free path for a file, with `/` between its parts, made of a name from the wire; `end` is
    /// added to it. The folders on the way are made.
    ///
    /// # Errors
    /// Where a folder cannot be made.
    pub(super) fn take(&mut self, wire: &str, end: &str) -> io::Result<String> {
        let mut parts = safe_parts(wire);
        let last = parts.pop().unwrap_or_else(|| "unnamed".into());
        let mut path = String::new();
        for part in parts {
            path = self.folder_for(&path, &part)?;
        }
        self.free(&path, &last, end, false)
    }

    /// Keeps a name for a file of the program's own.
    pub(super) fn reserve(&mut self, name: &str) {
        self.taken.insert(folded(name), TakenName { folder: None, last: 1 });
    }

    /// Gives a path back: no file was made there.
    pub(super) fn give_back(&mut self, path: &str) {
        self.taken.remove(&folded(path));
    }

    /// Where a path is on disk.
    pub(super) fn on_disk(&self, path: &str) -> PathBuf {
        path.split('/').fold(self.folder.clone(), |disk, part| disk.join(part))
    }

    /// A folder below another one: one that was made before, one that is there, or a new one.
    fn folder_for(&mut self, above: &str, part: &str) -> io::Result<String> {
        let wanted = joined(above, part);
        if let Some(made) = self.taken.get(&folded(&wanted)).and_then(|taken| taken.folder.clone())
        {
            return Ok(made);
        }
        if self.is_folder(&wanted) {
            self.taken.insert(folded(&wanted), TakenName { folder: Some(wanted.clone()), last: 1 });
            return Ok(wanted);
        }
        let path = self.free(above, part, "", true)?;
        std::fs::create_dir(self.on_disk(&path))?;
        Ok(path)
    }

    /// Whether there is a folder on disk, and no link to one.
    fn is_folder(&self, path: &str) -> bool {
        self.on_disk(path).symlink_metadata().is_ok_and(|data| data.is_dir())
    }

    /// A path that nothing has: the name itself, or with a number.
    fn free(&mut self, above: &str, name: &str, end: &str, folder: bool) -> io::Result<String> {
        let plain = joined(above, &format!("{name}{end}"));
        let first = self.taken.get(&folded(&plain)).map_or(1, |taken| taken.last);
        for number in (first..).take(NUMBERS_TRIED as usize) {
            let path = if number == 1 {
                plain.clone()
            } else {
                joined(above, &numbered(name, end, number))
            };
            if !self.taken.contains_key(&folded(&path))
                && self.on_disk(&path).symlink_metadata().is_err()
            {
                self.taken.insert(
                    folded(&path),
                    TakenName { folder: folder.then(|| path.clone()), last: 1 },
                );
                self.taken
                    .entry(folded(&plain))
                    .or_insert(TakenName { folder: None, last: 1 })
                    .last = number;
                return Ok(path);
            }
        }
        Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!("too many files are called {plain}"),
        ))
    }
}

/// `name-2.txt`: the number before the extension, so that programs still know the file's kind.
fn numbered(name: &str, end: &str, number: u32) -> String {
    let (stem, extension) =
        name.rfind('.').filter(|at| *at > 0).map_or((name, ""), |at| name.split_at(at));
    format!("{stem}-{number}{extension}{end}")
}

fn joined(above: &str, part: &str) -> String {
    if above.is_empty() { part.to_string() } else { format!("{above}/{part}") }
}

/// A path as a file system without case compares it.
fn folded(path: &str) -> String {
    path.chars().flat_map(char::to_lowercase).flat_map(char::to_uppercase).collect()
}

/// The parts of a name from the wire, each of which is safe as the name of a file.
pub(super) fn safe_parts(wire: &str) -> Vec<String> {
    let parts =
        wire.split(['/', '\\']).map(str::trim).filter(|part| !matches!(*part, "" | "." | ".."));
    let parts: Vec<String> = parts.map(safe_part).collect();
    let from = parts.len().saturating_sub(MAX_PARTS);
    parts.into_iter().skip(from).collect()
}

/// A part of a path that is safe on every system.
fn safe_part(part: &str) -> String {
    let mut name: String = part.chars().map(|c| if is_unsafe(c) { '_' } else { c }).collect();
    shorten(&mut name);
    // Windows leaves dots and blanks at the end out, so that `CON. ` is a device and `a.` is `a`.
    let kept = name.trim_end_matches(['.', ' ']).len();
    name.truncate(kept);
    // A dot at the beginning hides a file, a hyphen makes an option of it, a tilde a home folder.
    if name.starts_with(['.', '-', '~', ' ']) {
        name.replace_range(..1, "_");
    }
    if name.is_empty() || is_device(&name) {
        name.insert(0, '_');
    }
    name
}

/// Whether a character does not belong into the name of a file: controls and what orders or hides
/// text, signs of shells and of Windows, other separators that look like a slash, and characters
/// that show nothing.
fn is_unsafe(c: char) -> bool {
    is_control(c)
        || matches!(c, '<' | '>' | ':' | '"' | '|' | '?' | '*' | '/' | '\\')
        || matches!(
            c,
            '\u{2044}'
                | '\u{2215}'
                | '\u{29f5}'
                | '\u{29f8}'
                | '\u{ff0f}'
                | '\u{ff3c}'
                | '\u{fe68}'
        )
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'
                ..='\u{180f}'
        )
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2065}' | '\u{3164}' | '\u{ffa0}' | '\u{feff}')
        || matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{fff0}'..='\u{ffff}' | '\u{fdd0}'..='\u{fdef}')
        || matches!(c, '\u{e0000}'..='\u{e0fff}')
        || u32::from(c) & 0xfffe == 0xfffe
}

/// Whether Windows takes a name for a device, whatever extension it has.
fn is_device(name: &str) -> bool {
    const DEVICES: [&str; 7] = ["CON", "PRN", "AUX", "NUL", "CLOCK$", "CONIN$", "CONOUT$"];
    let stem = name.split('.').next().unwrap_or(name).trim_end().to_uppercase();
    let port = ["COM", "LPT"].iter().find_map(|port| stem.strip_prefix(port));
    DEVICES.contains(&stem.as_str())
        || port.is_some_and(|number| {
            number.chars().count() == 1 && number.chars().all(|c| c.is_numeric())
        })
}

/// Cuts a name to a length that every system allows, with its extension.
fn shorten(name: &mut String) {
    if name.len() <= MAX_PART {
        return;
    }
    let extension = name
        .rfind('.')
        .filter(|at| name.len() - at <= 16)
        .map_or(String::new(), |at| name.split_off(at));
    let mut end = (MAX_PART - extension.len()).min(name.len());
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    name.push_str(&extension);
}
