//! Remarks: lines for people on standard error. Everything that the program says there beside its
//! progress goes through [`say`], so that no name of a file and no text of a library reaches a
//! terminal raw, and no word that may be a key reaches it at all. It knows no output and no option.

mod key_words;

use std::fmt;
#[cfg(feature = "cli")]
use std::io::IsTerminal;
use std::io::{self, Write};
#[cfg(feature = "cli")]
use std::sync::Mutex;

use crate::captured::escape_lines;

/// Writes a line onto standard error, behind the lines that wait ([`warn`]). Every control in
/// it is escaped, except line feeds; names of files come escaped
/// ([`file_name`](crate::captured::file_name)), so they have none. A word that may be a key is
/// replaced. A standard error that is closed or full is nothing to say anywhere.
pub fn say(line: fmt::Arguments<'_>) {
    #[cfg(feature = "cli")]
    say_waiting();
    write(line);
}

fn write(line: fmt::Arguments<'_>) {
    let line = line.to_string();
    let _ = writeln!(io::stderr(), "{}", escape_lines(&key_words::without_keys(&line)));
}

/// Whether somebody may be reading while the program runs.
#[cfg(feature = "cli")]
fn is_watched() -> bool {
    io::stderr().is_terminal()
}

/// Lines that [`warn`] remembers.
#[cfg(feature = "cli")]
const REMEMBERED: usize = 4096;

/// What [`warn`] was given.
#[cfg(feature = "cli")]
struct SaidBefore {
    /// Every line, up to [`REMEMBERED`].
    all: Vec<String>,
    /// How many of them are not written yet: the last ones.
    waiting: usize,
    /// Whether nothing need wait any more.
    at_once: bool,
}

#[cfg(feature = "cli")]
static SAID: Mutex<SaidBefore> =
    Mutex::new(SaidBefore { all: Vec::new(), waiting: 0, at_once: false });

/// Says something that is known before the captures are read to their end. An error comes as one
/// line, so where nobody watches, this line waits until it is certain that the command does not end
/// with an error: until the next [`say`] or [`say_waiting`]. A line that was given before is left
/// out: a command that reads two captures reads its key files and its filter for each.
#[cfg(feature = "cli")]
pub fn warn(line: String) {
    let Ok(mut said) = SAID.lock() else { return };
    if said.all.contains(&line) {
        return;
    }
    if said.all.len() >= REMEMBERED {
        drop(said);
        return say(format_args!("moulsniff: {line}"));
    }
    if said.at_once || is_watched() {
        write(format_args!("moulsniff: {line}"));
    } else {
        said.waiting += 1;
    }
    said.all.push(line);
}

/// Writes the lines that wait. From here on none does.
#[cfg(feature = "cli")]
pub fn say_waiting() {
    if let Ok(mut said) = SAID.lock() {
        said.at_once = true;
    }
    take_waiting().iter().for_each(|line| write(format_args!("moulsniff: {line}")));
}

/// Takes the lines that wait: for an error that says them itself, or that makes them needless.
#[cfg(feature = "cli")]
pub fn take_waiting() -> Vec<String> {
    let Ok(mut said) = SAID.lock() else { return Vec::new() };
    let first = said.all.len().saturating_sub(std::mem::take(&mut said.waiting));
    said.all.get(first..).map(<[String]>::to_vec).unwrap_or_default()
}
