//! The one error of the library.

use std::fmt;

use crate::capture::CaptureError;
use crate::captured::{escape, escape_lines};
use crate::filter::FilterError;
use crate::proto::SettingsError;
use crate::table::{EncodeError, JsonError, TableError};

/// Why something could not be read. Its `Display` is what the program would print: the file, the
/// place, what was expected.
///
/// ```
/// let error = moulsniff::Decoder::new().open("no.pcap").err().ok_or("a file?")?;
/// assert_eq!(error.kind(), moulsniff::ErrorKind::Capture);
/// assert!(error.to_string().starts_with("no.pcap: "));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct LibraryError {
    kind: ErrorKind,
    text: String,
}

/// The kind of thing that could not be read.
///
/// ```
/// let error = moulsniff::Decoder::new().keys("nowhere.keys").err().ok_or("there is one")?;
/// assert_eq!(error.kind(), moulsniff::ErrorKind::File);
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A capture: there is none, it is damaged, or it ends in the middle.
    Capture,
    /// A file with keys or the like.
    File,
    /// A table.
    Table,
    /// An argument of the caller: an option's name, a path, a filter, the name of a service.
    Given,
    /// Bytes that are not a message of the service that they were decoded as.
    Bytes,
    /// JSON that is no message, or not the one that it says.
    Json,
    /// The decoding thread ended early.
    Thread,
}

impl LibraryError {
    pub(super) fn new(kind: ErrorKind, text: impl Into<String>) -> LibraryError {
        LibraryError { kind, text: text.into() }
    }

    /// The kind of thing that could not be read.
    ///
    /// ```
    /// let error = moulsniff::Decoder::new()
    ///     .decode("moul.autz.client", &[])
    ///     .err()
    ///     .ok_or("there is one")?;
    /// assert_eq!(error.kind(), moulsniff::ErrorKind::Given);
    /// # Ok::<(), &str>(())
    /// ```
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for LibraryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for LibraryError {}

impl From<CaptureError> for LibraryError {
    fn from(error: CaptureError) -> Self {
        LibraryError::new(ErrorKind::Capture, error.to_string())
    }
}

impl From<TableError> for LibraryError {
    fn from(error: TableError) -> Self {
        LibraryError::new(ErrorKind::Table, error.to_string())
    }
}

impl From<EncodeError> for LibraryError {
    fn from(error: EncodeError) -> Self {
        LibraryError::new(ErrorKind::Json, escape(&error.to_string()))
    }
}

impl From<JsonError> for LibraryError {
    fn from(error: JsonError) -> Self {
        LibraryError::new(ErrorKind::Json, error.to_string())
    }
}

impl From<FilterError> for LibraryError {
    fn from(error: FilterError) -> Self {
        LibraryError::new(ErrorKind::Given, escape_lines(&error.to_string()))
    }
}

impl From<SettingsError> for LibraryError {
    fn from(error: SettingsError) -> Self {
        match error {
            SettingsError::Unreadable(text) => LibraryError::new(ErrorKind::File, escape(&text)),
            SettingsError::Typed(text) => LibraryError::new(ErrorKind::Given, escape(&text)),
        }
    }
}
