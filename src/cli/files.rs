//! Files that were named on the command line. Those that are read have a largest size, and pipes
//! and devices are refused because reading them may never end. Those that are written replace no
//! input.

use crate::captured::{file_name, system_text};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::error::CliError;
use crate::capture::is_of_kernel;
use crate::folder::files_of;
use crate::output_file::{Access, Inputs, OutputFile, OutputFolder};
use crate::run;

/// How many files of one folder are read.
const MAX_FILES: usize = 4096;

/// Reads a file whole. `what` is what such a file is called in errors; a file of more than `most`
/// bytes is refused.
///
/// A file that standard output goes to is refused, too.
///
/// Besides plain files this reads `-` (standard input) and the pipes that a shell passes by number
/// (`<(command)`). A named pipe, a device or a file that the kernel makes while it is read
/// (`/proc/kmsg`) is refused without being opened, since opening or reading it might never end.
///
/// # Errors
/// The file cannot be read, is too long, or is of a kind that is not read.
pub(super) fn read(path: &Path, what: &str, most: u64) -> Result<Vec<u8>, CliError> {
    refuse_standard_output(&Inputs::of([path]))?;
    let name = name(path);
    let fail = |error| CliError::Unreadable(format!("{name}: expected {what}: {}", why(&error)));
    if path.as_os_str() == "-" {
        return bounded(io::stdin().lock(), &name, what, most);
    }
    let facts = std::fs::metadata(path).map_err(fail)?;
    if facts.is_dir() {
        return Err(CliError::Unreadable(format!("{name}: expected {what}, found a folder")));
    }
    if !is_plain(path) && !is_passed_by_number(path) {
        let found =
            if facts.is_file() { "a file of the kernel" } else { "a named pipe or a device" };
        return Err(CliError::Unreadable(format!(
            "{name}: expected {what}, found {found}, which is not read"
        )));
    }
    bounded(File::open(path).map_err(fail)?, &name, what, most)
}

/// What errors and events call a file.
pub(super) fn name(path: &Path) -> String {
    if path.as_os_str() == "-" { "standard input".into() } else { file_name(path) }
}

/// The files that a path names: the path itself, or the files in a folder, sorted by name. In a
/// folder, hidden files and everything that is not a plain file are left out, and with `extension`
/// every file with another extension (case does not matter).
///
/// # Errors
/// There is no such file or folder, or the folder holds more files than are read, or none.
pub(super) fn within(
    path: &Path,
    what: &str,
    extension: Option<&str>,
) -> Result<Vec<PathBuf>, CliError> {
    if !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    let fits = |file: &Path| {
        let end = file.extension().unwrap_or_default();
        extension.is_none_or(|wanted| end.eq_ignore_ascii_case(wanted)) && is_plain(file)
    };
    let files = of_folder(path, MAX_FILES, "", fits)?;
    if files.is_empty() {
        return Err(CliError::Unreadable(format!(
            "{}: expected {what} in this folder, found none",
            file_name(path)
        )));
    }
    Ok(files)
}

/// The files of a folder that `fits` takes (see [`files_of`]). Of more than `most`, none is read:
/// which ones would depend on the order in which the system lists them. `which` says behind "in
/// this folder" what such files have in common.
///
/// # Errors
/// The folder cannot be read, or has more such files.
pub(super) fn of_folder(
    path: &Path,
    most: usize,
    which: &str,
    fits: impl Fn(&Path) -> bool,
) -> Result<Vec<PathBuf>, CliError> {
    let files =
        files_of(path, most + 1, fits).map_err(|error| CliError::File(file_name(path), error))?;
    if files.len() > most {
        let text = format!(
            "{}: more than {most} files in this folder{which}; name those to be read",
            file_name(path)
        );
        return Err(CliError::Unreadable(text));
    }
    Ok(files)
}

/// Begins a file that is written (see [`OutputFile`]). From here on a signal leaves no unfinished
/// file.
///
/// # Errors
/// It is an input, or `-`, or cannot be made.
pub(super) fn create(path: &Path, access: Access, inputs: &Inputs) -> Result<OutputFile, CliError> {
    if path.as_os_str() == "-" {
        let text = "-: expected the name of a file; /dev/stdout is standard output, and ./- a \
                    file of this name";
        return Err(CliError::Typed(text.into()));
    }
    run::watch_signals();
    let created = if std::fs::metadata(path).is_ok_and(|facts| !facts.is_file() && !facts.is_dir())
    {
        // Opening a named pipe for writing waits for its reader.
        let target = path.to_path_buf();
        let inputs = inputs.clone();
        run::unless_interrupted(move || OutputFile::create(&target, access, &inputs))
            .and_then(|file| file)
    } else {
        OutputFile::create(path, access, inputs)
    };
    created.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => CliError::Typed(format!("{}: {error}", file_name(path))),
        _ => CliError::File(file_name(path), error),
    })
}

/// The same, where `-` is standard output.
///
/// # Errors
/// As for [`create`].
pub(super) fn create_or_stdout(
    path: &Path,
    access: Access,
    inputs: &Inputs,
) -> Result<OutputFile, CliError> {
    let stdout = cfg!(unix) && path.as_os_str() == "-";
    create(if stdout { Path::new("/dev/stdout") } else { path }, access, inputs)
}

/// The name of such a file in errors.
pub(super) fn output_name(path: &Path) -> String {
    let stdout = ["-", "/dev/stdout"].iter().any(|name| path.as_os_str() == *name);
    if stdout { "standard output".into() } else { file_name(path) }
}

/// Makes a folder for files that are written (see [`OutputFolder`]).
///
/// # Errors
/// It cannot be made.
pub(super) fn create_folder(path: &Path) -> Result<OutputFolder, CliError> {
    OutputFolder::create(path).map_err(|error| CliError::File(file_name(path), error))
}

/// Refuses to write to a file that is read.
///
/// # Errors
/// The path leads to one of the inputs.
pub(super) fn refuse_input(path: &Path, inputs: &Inputs) -> Result<(), CliError> {
    let Some(input) = inputs.find(path) else { return Ok(()) };
    Err(CliError::Typed(format!(
        "{}: this is the input {}: it is not written over",
        file_name(path),
        file_name(input)
    )))
}

/// Refuses an output at the place where the file of `--pseudonyms` will be. It may not be there
/// yet, so that it is no input yet.
///
/// # Errors
/// They have the same name in the same folder.
pub(super) fn refuse_future_key(key: &Path, output: &Path) -> Result<(), CliError> {
    let folder = |path: &Path| {
        let folder =
            path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        folder.canonicalize().ok()
    };
    if key.file_name() != output.file_name()
        || folder(key).is_none()
        || folder(key) != folder(output)
    {
        return Ok(());
    }
    let name = file_name(output);
    Err(CliError::Typed(format!(
        "{name}: this is the file of --pseudonyms: it is not written over"
    )))
}

/// Refuses to print into a file that is read.
///
/// # Errors
/// Standard output is one of the inputs.
pub(super) fn refuse_standard_output(inputs: &Inputs) -> Result<(), CliError> {
    let Some(input) = inputs.find(Path::new("/dev/stdout")) else { return Ok(()) };
    Err(CliError::Typed(format!(
        "standard output is the input {}: it is not written over",
        file_name(input)
    )))
}

/// Why a file could not be read, without the operating system's number.
fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        _ => system_text(error),
    }
}

fn bounded(reader: impl Read, name: &str, what: &str, most: u64) -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    let read = reader.take(most.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| CliError::File(name.to_owned(), error))?;
    if bytes.len() as u64 > most {
        let most =
            if most < 1 << 20 { format!("{most} bytes") } else { format!("{} MiB", most >> 20) };
        return Err(CliError::Unreadable(format!(
            "{name}: expected {what}, found more than {most}"
        )));
    }
    Ok(bytes)
}

/// Whether there is a plain file, which has an end: no named pipe, no device, and no file that the
/// kernel makes while it is read.
pub(super) fn is_plain(path: &Path) -> bool {
    path.is_file() && !is_of_kernel(path)
}

/// Whether a path names an open file of this process by its number, as shells do for `<(command)`.
fn is_passed_by_number(path: &Path) -> bool {
    ["/dev/fd", "/proc/self/fd"].iter().any(|folder| path.starts_with(folder))
        || path == Path::new("/dev/stdin")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn a_folder_stands_for_its_files_in_order() {
        let kept = tempfile::tempdir().unwrap();
        let folder = kept.path();
        std::fs::create_dir_all(folder.join("empty")).unwrap();
        for name in ["b.key", "a.KEY", "c.txt", ".hidden", "._b.key"] {
            std::fs::write(folder.join(name), "x").unwrap();
        }
        let names = |extension| {
            let files = within(folder, "a file", extension).unwrap();
            files
                .iter()
                .map(|f| f.file_name().unwrap().to_string_lossy().into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(Some("key")), ["a.KEY", "b.key"]);
        assert_eq!(names(None), ["a.KEY", "b.key", "c.txt"]);
        let none = within(&folder.join("empty"), "a key file", None).unwrap_err().to_string();
        assert!(none.ends_with("empty: expected a key file in this folder, found none"), "{none}");
    }

    #[test]
    fn what_is_too_long_or_endless_is_refused() {
        let error = bounded(io::repeat(0), "zero", "a key file", 1 << 20).unwrap_err();
        assert_eq!(error.to_string(), "zero: expected a key file, found more than 1 MiB");
        if cfg!(unix) {
            let error =
                read(Path::new("/dev/zero"), "a key file", 1 << 20).unwrap_err().to_string();
            assert!(
                error.contains("/dev/zero: expected a key file, found a named pipe or a device"),
                "{error}"
            );
        }
    }
}
