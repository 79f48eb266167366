//! Table files, and what is wrong in one: where, what, and what would be right.

use std::fmt;

use super::program::TableText;
use crate::captured::{Escaped, escape, write_mistake};

/// A table file: its name for errors, and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSource {
    /// As errors name it.
    pub name: String,
    /// The text.
    pub text: TableText,
}

/// A mistake in a message table.
#[derive(Debug, Clone)]
pub struct TableError {
    /// The file's name as it was given.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The line's text.
    pub text: String,
    /// What is wrong, and what would be right.
    pub message: String,
    /// Further lines about it: a difference.
    pub more: Vec<String>,
}

impl TableError {
    /// The error at a byte offset of a file's text.
    pub fn at(file: &str, source: &str, offset: usize, message: impl Into<String>) -> Self {
        let offset = offset.min(source.len());
        let before = source.get(..offset).unwrap_or(source);
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |i| i + 1);
        let line_text = source.get(start..).unwrap_or("").lines().next().unwrap_or("");
        let text = line_text.chars().take(MAX_LINE).collect();
        let column = before.get(start..).map_or(1, |s| s.chars().count() + 1);
        TableError {
            file: file.to_string(),
            line,
            column,
            text,
            message: message.into(),
            more: Vec::new(),
        }
    }
}

/// How many characters of a line an error shows.
const MAX_LINE: usize = 240;

impl TableError {
    /// An error about a whole file, which quotes nothing from it.
    pub fn unquoted(file: &str, message: impl Into<String>) -> Self {
        TableError {
            file: file.to_string(),
            line: 1,
            column: 1,
            text: String::new(),
            message: message.into(),
            more: Vec::new(),
        }
    }
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: ", Escaped(&self.file), self.line, self.column)?;
        let place = self.text.char_indices().nth(self.column.saturating_sub(1)).map(|(at, _)| at);
        match place.and_then(|at| self.text.get(at..)) {
            Some(rest) => write_mistake(&self.message, rest, f),
            None => write!(f, "{}", Escaped(&self.message)),
        }
    }
}

/// The error with its line below it, a mark below the place, and what else there is to show.
pub struct WithLine<'a>(pub &'a TableError);

impl fmt::Display for WithLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WithLine(TableError { file, line, column, text, message, more }) = self;
        write!(f, "{}:{line}:{column}: {}", Escaped(file), Escaped(message))?;
        let shown = text.trim_end().replace('\t', " ");
        if !shown.trim().is_empty() && *column <= MAX_LINE {
            let before: String = shown.chars().take(column.saturating_sub(1)).collect();
            write!(f, "\n  {}\n  {:2$}^", Escaped(&shown), "", escape(&before).chars().count())?;
        }
        more.iter().try_for_each(|line| write!(f, "\n    {}", Escaped(line)))
    }
}

impl std::error::Error for TableError {}
