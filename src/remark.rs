//! Remarks: lines for people on standard error. Everything that the program says there beside its progress goes through [`say`], so that no name
//! of a file and no text of a library reaches a terminal raw. It knows no output and no option.

use std::fmt;
use std::io::{self, Write};

use crate::captured::escape_lines;

/// Writes a line onto standard error. Every control in it is escaped, except line feeds; names of files come escaped
/// ([`file_name`](crate::captured::file_name)), so they have none. A standard error that is closed or full is nothing to say anywhere.
pub fn say(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{}", escape_lines(&line.to_string()));
}
