//! The file of `--pseudonyms`: a key, made where the file does not exist.

use std::io::{self, ErrorKind, Write};
use std::path::Path;

use super::error::CliError;
use super::files;
use super::options::PrivacyArgs;
use crate::captured::file_name;
use crate::output_file::{Access, Inputs};
use crate::pipeline::{Output, Setup};
use crate::pseudonyms::Pseudonyms;
use crate::record::Record;
use crate::run::{CaptureRun, FrameInput, Reading};
use crate::table::parse_hex;

/// Reads the captures once to collect the persons in them before anything is written: a name may
/// occur in an unmarked field before it occurs in a marked one. Only files can be read twice.
pub(super) fn meet(reading: &Reading, setup: Setup) -> Result<Setup, CliError> {
    let FrameInput::Files(files) = &reading.input else { return Ok(setup) };
    let plain = files.iter().all(|path| std::fs::metadata(path).is_ok_and(|facts| facts.is_file()));
    if setup.pseudonyms.is_none() || !plain {
        return Ok(setup);
    }
    let first = Reading { keep: None, quiet: true, threads: 1, ..reading.clone() };
    Ok(CaptureRun::new(&first, setup)?.into_output(&mut IgnoreRecords).pipeline.into_setup())
}

/// An output that ignores the records of the first reading.
struct IgnoreRecords;

impl Output for IgnoreRecords {
    fn record(&mut self, _: &Record<'_>) {}
}

/// The line before the key.
const FIRST_LINE: &str = "moulsniff pseudonyms 1";
/// What the file says to people.
const ABOUT: &str = "# Under this key the same person has the same pseudonym in every output and \
                     capture.\n# With the key one can find out which person has which pseudonym: \
                     keep it to yourself.\n";

/// The giver of pseudonyms, if the user asked for them.
pub(super) fn load(args: &PrivacyArgs) -> Result<Option<Pseudonyms>, CliError> {
    let Some(path) = &args.pseudonyms else { return Ok(None) };
    let fail = |e| CliError::File(file_name(path), e);
    let key = match std::fs::symlink_metadata(path) {
        Ok(_) => read(path)?,
        Err(error) if error.kind() == ErrorKind::NotFound => match make(path)? {
            Some(key) => key,
            None => read(path)?,
        },
        Err(error) => return Err(fail(error)),
    };
    Ok(Some(Pseudonyms::new(&key, args.shift_time)))
}

fn read(path: &Path) -> Result<[u8; 16], CliError> {
    let bytes = files::read(path, "a file for --pseudonyms", 4096)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let key =
        lines.next().filter(|line| *line == FIRST_LINE).and_then(|_| parse_hex(lines.next()?));
    key.and_then(|key| <[u8; 16]>::try_from(key).ok()).ok_or_else(|| {
        let text = format!(
            "no file of --pseudonyms: expected a line `{FIRST_LINE}` and below it 32 hex digits"
        );
        CliError::File(file_name(path), io::Error::new(ErrorKind::InvalidData, text))
    })
}

/// Makes a key, and a file of it that its owner alone may read. Returns none if another program
/// made the file meanwhile.
fn make(path: &Path) -> Result<Option<[u8; 16]>, CliError> {
    let fail = |error| CliError::File(file_name(path), error);
    let key = random().map_err(fail)?;
    // It replaces nothing, so it is no matter what the inputs are: another program's key is one of
    // them as soon as it is there.
    let mut file = files::create(path, Access::Owner, &Inputs::default())?;
    let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    match write!(file, "{ABOUT}{FIRST_LINE}\n{hex}\n").and_then(|()| file.commit_new()) {
        Ok(()) => Ok(Some(key)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(fail(error)),
    }
}

/// A key that no other user has.
pub(super) fn random() -> io::Result<[u8; 16]> {
    let mut key = [0; 16];
    getrandom::fill(&mut key).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(key)
}
