//! Remarks: lines for people on standard error. Everything that the program says there beside its progress goes through [`say`], so that no name
//! of a file and no text of a library reaches a terminal raw, and no word that may be a key reaches it at all. It knows no output and no option.

mod key_words;

use std::fmt;
#[cfg(feature = "cli")]
use std::io::IsTerminal;
use std::io::{self, Write};
#[cfg(feature = "cli")]
use std::sync::Mutex;

use crate::captured::escape_lines;

/// Writes a line onto standard error. Every control in it is escaped, except line feeds; names of files come escaped
/// ([`file_name`](crate::captured::file_name)), so they have none. A word that may be a key is replaced. A standard error that is closed or full is nothing to say anywhere.
pub fn say(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{}", escape_lines(&key_words::without_keys(&line.to_string())));
}

/// Whether somebody may be reading while the program runs.
#[cfg(feature = "cli")]
pub fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Lines that [`say_once`] remembers.
#[cfg(feature = "cli")]
const REMEMBERED: usize = 4096;

/// Writes a line as [`say`] does, unless it was written by this before: a command that reads two captures reads its key files and its filter for each.
#[cfg(feature = "cli")]
pub fn say_once(line: String) {
    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let Ok(mut said) = SAID.lock() else { return };
    if said.contains(&line) {
        return;
    }
    say(format_args!("{line}"));
    if said.len() < REMEMBERED {
        said.push(line);
    }
}
