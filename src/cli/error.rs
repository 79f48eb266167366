//! The errors of all commands, each with its exit status.

use std::fmt;
use std::io;

use crate::capture::{CaptureError, CaptureProblem, LiveError};
use crate::captured::{Escaped, escape, system_text};
use crate::proto::SettingsError;
use crate::run::RunError;
use crate::table::TableError;

/// Exit statuses. Scripts rely on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Read to its end.
    Good = 0,
    /// Something could not be read or written.
    Unreadable = 1,
    /// What was typed is wrong.
    Typed = 2,
    /// With `--strict`: something was undecoded, lost or closed.
    Strict = 3,
    /// `diff` alone: the captures differ.
    Different = 4,
    /// A signal ended the run before a capture file was read to its end.
    Interrupted = 130,
}

/// At most this many files are listed in one error.
const MAX_LISTED: usize = 8;

/// An error of the command line.
#[derive(Debug)]
pub enum CliError {
    /// The reader of the output closed it.
    BrokenPipe,
    /// A capture.
    Capture(CaptureError),
    /// A table file.
    Table(TableError),
    /// A file.
    File(String, io::Error),
    /// What was typed.
    Typed(String),
    /// Input that cannot be understood, or that no key opens.
    Unreadable(String),
    /// A signal ended the run; what there is of its output.
    Interrupted(String),
}

impl CliError {
    /// An error while writing results.
    pub fn writing(error: io::Error) -> CliError {
        match error.kind() {
            io::ErrorKind::BrokenPipe => CliError::BrokenPipe,
            _ => CliError::File("standard output".into(), error),
        }
    }

    /// The error about a file, which says that the line `place` of the configuration file names it.
    pub(super) fn named_by(self, place: &str) -> CliError {
        let text = |error: &CliError| format!("{error} (named in {place})");
        match self {
            CliError::Unreadable(_) | CliError::File(..) => CliError::Unreadable(text(&self)),
            CliError::Typed(_) => CliError::Typed(text(&self)),
            other => other,
        }
    }

    /// One error, and one line, of what is wrong with several files.
    pub(super) fn several(mut texts: Vec<String>) -> CliError {
        let more = texts.len().saturating_sub(MAX_LISTED);
        texts.truncate(MAX_LISTED);
        if more > 0 {
            texts.push(format!("and {more} more"));
        }
        CliError::Unreadable(texts.join("; "))
    }

    /// Whether the reader of what is written closed it: of standard output, or of a pipe that was
    /// named as a file.
    pub(super) fn is_closed_pipe(&self) -> bool {
        let closed = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
        match self {
            CliError::BrokenPipe => true,
            CliError::File(_, error) => closed(error),
            CliError::Capture(error) => {
                matches!(error.problem(), CaptureProblem::Write(error) if closed(error))
            }
            _ => false,
        }
    }

    /// Appends the pending remarks to the error.
    pub(super) fn with_remarks(self, remarks: Vec<String>) -> CliError {
        if remarks.is_empty() {
            return self;
        }
        CliError::several(std::iter::once(self.to_string()).chain(remarks).collect())
    }

    /// Its exit status.
    pub fn status(&self) -> Status {
        match self {
            CliError::BrokenPipe => Status::Good,
            CliError::Capture(_) | CliError::File(..) | CliError::Unreadable(_) => {
                Status::Unreadable
            }
            CliError::Table(_) | CliError::Typed(_) => Status::Typed,
            CliError::Interrupted(_) => Status::Interrupted,
        }
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CliError::BrokenPipe => f.write_str("the output was closed"),
            CliError::Capture(e) => e.fmt(f),
            CliError::Table(e) => e.fmt(f),
            CliError::File(name, e) => write!(f, "{}: {}", Escaped(name), system_text(e)),
            CliError::Typed(text) | CliError::Unreadable(text) => f.write_str(&escape(text)),
            CliError::Interrupted(text) => write!(f, "interrupted: {}", escape(text)),
        }
    }
}

impl std::error::Error for CliError {}

impl From<CaptureError> for CliError {
    fn from(error: CaptureError) -> Self {
        CliError::Capture(error)
    }
}

impl From<LiveError> for CliError {
    fn from(error: LiveError) -> Self {
        let text = error.to_string();
        match error {
            LiveError::NotBuilt | LiveError::Filter(..) => CliError::Typed(text),
            LiveError::NoInterface(..) | LiveError::NoRight(_) | LiveError::Other(..) => {
                CliError::Unreadable(text)
            }
        }
    }
}

impl From<RunError> for CliError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Capture(error) => error.into(),
            RunError::Live(error) => error.into(),
            RunError::File(name, error) => CliError::File(name, error),
            several @ RunError::Several(..) => CliError::Unreadable(several.to_string()),
        }
    }
}

impl From<SettingsError> for CliError {
    fn from(error: SettingsError) -> Self {
        match error {
            SettingsError::Unreadable(text) => CliError::Unreadable(text),
            SettingsError::Typed(text) => CliError::Typed(text),
        }
    }
}

impl From<TableError> for CliError {
    fn from(error: TableError) -> Self {
        CliError::Table(error)
    }
}
