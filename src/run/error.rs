//! The errors of a run. The command line chooses their exit status.

use std::fmt;
use std::io;

use crate::capture::{CaptureError, LiveError};
use crate::captured::Escaped;

/// An error of a run.
#[derive(Debug)]
pub enum RunError {
    /// A capture that cannot be read, or not to its end.
    Capture(CaptureError),
    /// An interface that cannot be captured on.
    Live(LiveError),
    /// A file, by its name, that cannot be read or written.
    File(String, io::Error),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Capture(error) => error.fmt(f),
            RunError::Live(error) => error.fmt(f),
            RunError::File(name, error) => write!(f, "{}: {error}", Escaped(name)),
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
