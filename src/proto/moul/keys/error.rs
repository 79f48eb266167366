//! Errors about key files, one line each. An error must never hold a byte of a key, so it is built
//! only from fixed texts, counts and positions.

use std::fmt;

/// Where in a key file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPlace {
    /// The file as a whole.
    Whole,
    /// A line and a column of a text file, both from 1; columns count characters.
    Line {
        /// The line, from 1.
        line: usize,
        /// The character in the line, from 1.
        column: usize,
    },
    /// An offset in a binary file, from 0.
    Byte(usize),
}

/// A key file that could not be used: which one, where, and what was expected there.
///
/// Its `Display` is one line and holds nothing secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError {
    file: String,
    place: KeyPlace,
    text: String,
    nature: Nature,
}

/// How serious an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nature {
    /// The file is a damaged key file, or one that opens nothing.
    Useless,
    /// The file is not a key file at all.
    OtherKind,
    /// The file has no keys because its server needs none.
    Harmless,
}

impl KeyError {
    /// An error about `file`; control characters in its name are shown as `?`.
    pub(super) fn new(file: &str, place: KeyPlace, text: impl Into<String>) -> KeyError {
        KeyError { file: printable(file), place, text: text.into(), nature: Nature::Useless }
    }

    /// The same error about a file that is not a key file at all.
    pub(super) fn of_another_kind(self) -> KeyError {
        KeyError { nature: Nature::OtherKind, ..self }
    }

    /// The same error about a file that has no keys because its server needs none.
    pub(super) fn harmless(self) -> KeyError {
        KeyError { nature: Nature::Harmless, ..self }
    }

    /// Whether the file is not a key file at all, rather than a damaged one or one that opens
    /// nothing.
    pub fn is_of_another_kind(&self) -> bool {
        self.nature == Nature::OtherKind
    }

    /// Whether the file has no keys because its server does not encrypt. A run can go on without
    /// it.
    pub fn is_harmless(&self) -> bool {
        self.nature == Nature::Harmless
    }

    /// The file's name as the user gave it.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Where in the file.
    pub fn place(&self) -> KeyPlace {
        self.place
    }

    /// What is wrong there, without file and position.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let KeyError { file, place, text, .. } = self;
        match place {
            KeyPlace::Whole => write!(f, "{file}: {text}"),
            KeyPlace::Line { line, column } => write!(f, "{file}:{line}:{column}: {text}"),
            KeyPlace::Byte(at) => write!(f, "{file}: byte {at}: {text}"),
        }
    }
}

impl std::error::Error for KeyError {}

/// A file's name on one line, its control characters escaped.
pub(super) fn printable(name: &str) -> String {
    crate::captured::escape(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_one_line_whatever_the_file_is_called() {
        let error =
            KeyError::new("a\nb.ini", KeyPlace::Line { line: 3, column: 14 }, "expected base-64");
        assert_eq!(error.to_string(), "a\\nb.ini:3:14: expected base-64");
        assert_eq!(KeyError::new("k", KeyPlace::Byte(5), "x").to_string(), "k: byte 5: x");
        assert_eq!(KeyError::new("k", KeyPlace::Whole, "x").to_string(), "k: x");
    }
}
