//! Text that came from outside (a capture, a file name, what was typed), and the one way to show it
//! to a person.
//!
//! Such text may hold escape sequences that move a terminal's cursor, line feeds that forge a
//! record, and controls that reverse the order of what is read. [`Captured`] therefore has no
//! `Display`: it is printed by [`Captured::escaped`], or compared and stored by [`Captured::raw`].
//! It knows characters, no output and no protocol.

use std::fmt::{self, Write};
use std::io;
use std::path::Path;

/// A text from outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Captured<'a>(&'a str);

impl<'a> Captured<'a> {
    /// Marks a text as coming from outside.
    pub fn new(text: &'a str) -> Captured<'a> {
        Captured(text)
    }

    /// The text as it was captured: to compare it, to store it, to write it in a format that
    /// escapes by its own rules.
    pub fn raw(self) -> &'a str {
        self.0
    }

    /// The text as it may be shown to a person, on one line.
    pub fn escaped(self) -> Escaped<'a> {
        Escaped(self.0)
    }
}

/// Shows a text from outside with every character escaped that [`is_control`] names: `\n`, `\t`,
/// `\u001b`. A backslash stays as it is.
#[derive(Clone, Copy)]
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_control(*c)) {
            f.write_str(rest.get(..at).unwrap_or(""))?;
            write_escape(c, f)?;
            rest = rest.get(at + c.len_utf8()..).unwrap_or("");
        }
        f.write_str(rest)
    }
}

/// Whether a character does something to a terminal or to the order of what is read, or cannot be
/// seen: C0 and C1 controls, DEL, bidirectional controls, the separators that some programs take
/// for the end of a line, characters without a width, and tags.
pub fn is_control(c: char) -> bool {
    matches!(
        c,
        '\0'..='\x1f'
            | '\x7f'..='\u{9f}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// The bytes with which the UTF-8 of those characters beyond ASCII begins; other characters begin
/// with them, too.
pub const CONTROL_LEADS: [u8; 6] = [0xc2, 0xd8, 0xe1, 0xe2, 0xef, 0xf3];

/// Writes the escape of a character: `\n`, `\r`, `\t`, or `\u` with four hex digits, as JSON has
/// it. A character beyond 16 bits is two of these.
pub fn write_escape(c: char, out: &mut dyn Write) -> fmt::Result {
    match c {
        '\n' => out.write_str("\\n"),
        '\r' => out.write_str("\\r"),
        '\t' => out.write_str("\\t"),
        other => {
            other.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(out, "\\u{unit:04x}"))
        }
    }
}

/// A text from outside on one line, as it may be shown to a person.
pub fn escape(text: &str) -> String {
    Escaped(text).to_string()
}

/// A message of several lines: every control but the line feeds between them is escaped.
pub fn escape_lines(text: &str) -> String {
    text.split('\n').map(escape).collect::<Vec<_>>().join("\n")
}

/// Why the operating system refused something, without its number.
pub fn system_text(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text.get(..at).unwrap_or(&text).to_lowercase(),
        None => text,
    }
}

/// The name of a file as it may be shown to a person.
pub fn file_name(path: &Path) -> String {
    escape(&path.to_string_lossy())
}

/// Characters of a text that show the place of a mistake.
const PLACE: usize = 40;

/// Writes what is wrong, and behind it how the text goes on at the place of the mistake (`(at …)`),
/// so that one line shows the place as well as its number. A message that quotes the first word
/// there needs no more.
pub fn write_mistake(message: &str, from_there: &str, out: &mut dyn Write) -> fmt::Result {
    write!(out, "{}", Escaped(message))?;
    let line = from_there.lines().next().unwrap_or_default();
    let word = line
        .find(|c: char| !c.is_alphanumeric() && !"_@$.".contains(c))
        .map_or(line, |at| line.get(..at.max(1)).unwrap_or(line));
    let word = word.trim_start_matches('@');
    if !word.trim().is_empty() && message.contains(&format!("`{word}`")) {
        return Ok(());
    }
    let line = line.trim();
    if line.is_empty() {
        return out.write_str(" (at the end)");
    }
    let Some((end, _)) = line.char_indices().nth(PLACE) else {
        return write!(out, " (at `{}`)", Escaped(line));
    };
    // Half a word would be half a key, which nothing can tell from a name.
    match line.get(..end).and_then(|shown| shown.rsplit_once(char::is_whitespace)) {
        Some((words, _)) => write!(out, " (at `{} …`)", Escaped(words.trim_end())),
        None => Ok(()),
    }
}

/// The line of the byte `at` of a text and the column in it, both from 1; columns count characters.
/// Beyond the text it is the end.
pub fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let before = text.get(..at).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_a_cursor_or_forges_a_line_is_escaped() {
        let text =
            "a\\b\n\t\r\x1b[2J\x07\x7f\u{85}\u{9b}é©—\u{61c}\u{200e}\u{2028}\u{202e}\u{2066}𝄞";
        let shown = Captured::new(text).escaped().to_string();
        let right = r"a\b\n\t\r\u001b[2J\u0007\u007f\u0085\u009bé©—\u061c\u200e\u2028\u202e\u2066𝄞";
        assert_eq!(shown, right);
        assert!(!shown.chars().any(is_control));
    }

    #[test]
    fn a_control_beyond_ascii_begins_with_one_of_its_leads() {
        for c in (0x80..0x11_0000).filter_map(char::from_u32).filter(|c| is_control(*c)) {
            let lead = c.encode_utf8(&mut [0; 4]).bytes().next();
            assert!(lead.is_some_and(|lead| CONTROL_LEADS.contains(&lead)), "{c:?}");
        }
    }

    #[test]
    fn a_mistake_shows_its_place_where_the_message_does_not() {
        let written = |message: &str, from_there: &str| {
            let mut out = String::new();
            write_mistake(message, from_there, &mut out).map(|()| out)
        };
        assert_eq!(written("no type `u9`", "u9, b: u8").as_deref(), Ok("no type `u9`"));
        assert_eq!(written("no name `slow`", "@slow").as_deref(), Ok("no name `slow`"));
        assert_eq!(written("expected `a`", "b {\n x").as_deref(), Ok("expected `a` (at `b {`)"));
        assert_eq!(written("too\nmuch", "\u{1b}é").as_deref(), Ok("too\\nmuch (at `\\u001bé`)"));
        assert_eq!(
            written("a value is missing", " ").as_deref(),
            Ok("a value is missing (at the end)")
        );
        let long = format!("{} {}", "é".repeat(30), "a".repeat(30));
        let shown = format!("deep (at `{} …`)", "é".repeat(30));
        assert_eq!(written("deep", &long).as_deref(), Ok(shown.as_str()));
        assert_eq!(written("deep", &"a".repeat(60)).as_deref(), Ok("deep"));
    }

    #[test]
    fn a_message_keeps_its_lines() {
        assert_eq!(escape_lines("a\n\x1bb\n"), "a\n\\u001bb\n");
    }
}
