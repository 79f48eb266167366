//! The errors of a run. The command line chooses their exit status.

use std::fmt;
use std::io;

use crate::capture::{CaptureError, LiveError};
use crate::captured::{Escaped, system_text};

/// An error of a run.
#[derive(Debug)]
pub enum RunError {
    /// A capture that cannot be read, or not up to its end.
    Capture(CaptureError),
    /// An interface that cannot be captured on.
    Live(LiveError),
    /// A file, by its name, that cannot be read or written.
    File(String, io::Error),
    /// Several of these, in the order in which they came, and how many more there were.
    Several(Vec<RunError>, u64),
}

impl RunError {
    /// Whether the system could not read a capture to its end.
    pub(crate) fn is_of_reading(&self) -> bool {
        match self {
            RunError::Capture(error) => error.is_of_reading(),
            RunError::Live(_) | RunError::File(..) => false,
            RunError::Several(errors, _) => errors.iter().any(RunError::is_of_reading),
        }
    }

    /// Whether captures that could not be read, or not to their end, are all that went wrong.
    pub fn is_of_captures(&self) -> bool {
        match self {
            RunError::Capture(_) => true,
            RunError::Live(_) | RunError::File(..) => false,
            RunError::Several(errors, _) => errors.iter().all(RunError::is_of_captures),
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Capture(error) => error.fmt(f),
            RunError::Live(error) => error.fmt(f),
            RunError::File(name, error) => write!(f, "{}: {}", Escaped(name), system_text(error)),
            RunError::Several(errors, more) => {
                for (number, error) in errors.iter().enumerate() {
                    write!(f, "{}{error}", if number == 0 { "" } else { "; " })?;
                }
                if *more > 0 { write!(f, "; and {more} more") } else { Ok(()) }
            }
        }
    }
}

impl std::error::Error for RunError {}

impl From<CaptureError> for RunError {
    fn from(error: CaptureError) -> Self {
        RunError::Capture(error)
    }
}

impl From<LiveError> for RunError {
    fn from(error: LiveError) -> Self {
        RunError::Live(error)
    }
}
