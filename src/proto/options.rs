//! The options that protocols have on the command line, and their given values.
//!
//! A protocol declares its options here with their help; the command line is built from the
//! declarations and reads the files, so that a protocol opens none. Only the protocol interprets
//! the bytes of a file.

use std::fmt;

/// An option of a protocol, as `--name VALUE`.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// The name, without its two hyphens. No two protocols may declare the same one, nor may it be
    /// one of the program's own.
    pub name: &'static str,
    /// The value's name in the help, in capitals.
    pub value_name: &'static str,
    /// The help: one short line without a full stop.
    pub help: &'static str,
    /// What `--help` says besides, in sentences.
    pub more_help: &'static str,
    /// What the value is.
    pub kind: OptionKind,
    /// An environment variable that is read if the option is not given. It holds paths, separated
    /// as in `PATH`.
    pub variable: Option<&'static str>,
    /// Whether commands that read no capture have the option too.
    pub everywhere: bool,
}

/// What the value of an option is.
#[derive(Clone, Copy, Debug)]
pub enum OptionKind {
    /// A file, or a folder: then all files in it. May be given several times.
    Files(FileRule),
    /// One of these words. The first one is the default.
    Word(&'static [&'static str]),
}

/// Which files an option takes.
#[derive(Clone, Copy, Debug)]
pub struct FileRule {
    /// What such a file is called in errors: `a key file`.
    pub what: &'static str,
    /// Longer files are refused, in bytes.
    pub most_bytes: u64,
    /// The most bytes of all files together.
    pub most_in_all: u64,
    /// The ending of the files to take from a folder (in any case, without the dot). With `None`,
    /// all files except hidden ones.
    pub extension: Option<&'static str>,
}

/// A file that was given, whole.
pub struct OptionFile {
    /// Its name, for errors and events.
    pub name: String,
    /// Its content.
    pub bytes: Vec<u8>,
    /// The folder that it was found in, if the user named a folder. Such a file may be of another
    /// kind.
    pub folder: Option<String>,
}

impl fmt::Debug for OptionFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OptionFile({}, {} bytes)", self.name, self.bytes.len())
    }
}

/// The given values of all protocols' options.
#[derive(Debug, Default)]
pub struct OptionValues {
    files: Vec<(&'static str, OptionFile)>,
    words: Vec<(&'static str, String)>,
    /// Whether no capture is read. A protocol then reports at once what only a capture could
    /// supply.
    pub no_capture: bool,
}

impl OptionValues {
    /// No value yet. `no_capture` is the field's value.
    pub fn new(no_capture: bool) -> OptionValues {
        OptionValues { no_capture, ..OptionValues::default() }
    }

    /// Adds a file that was given for an option. Files keep the order in which they are added.
    pub fn add_file(&mut self, option: &'static str, file: OptionFile) {
        self.files.push((option, file));
    }

    /// Sets the word that was given for an option.
    pub fn set_word(&mut self, option: &'static str, word: String) {
        self.words.push((option, word));
    }

    /// The files that were given for an option, in order.
    pub fn files<'a>(&'a self, option: &str) -> impl Iterator<Item = &'a OptionFile> {
        self.files.iter().filter(move |(name, _)| *name == option).map(|(_, file)| file)
    }

    /// The word that was given for an option.
    pub fn word(&self, option: &str) -> Option<&str> {
        self.words.iter().rev().find(|(name, _)| *name == option).map(|(_, word)| word.as_str())
    }
}

/// Why a protocol cannot work with the given options, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingsError {
    /// A file is not what it should be, or opens nothing.
    Unreadable(String),
    /// What was typed is wrong.
    Typed(String),
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingsError::Unreadable(text) | SettingsError::Typed(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for SettingsError {}
