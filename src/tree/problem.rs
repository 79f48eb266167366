//! Problems in the traffic: a note, warning or error at a node, never an error of the program.

use std::fmt;

use super::{Buffer, Sym};
use crate::digits::counted;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Unusual, and fully understood.
    Note,
    /// Not as the protocol asks, and still readable.
    Warning,
    /// Something could not be read.
    Error,
}

impl Severity {
    /// 0 for a note, 1 for a warning, 2 for an error.
    pub fn index(self) -> u8 {
        self as u8
    }

    /// The word the outputs use.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// What a problem says of the programs that talk, beyond the message that it is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Concern {
    /// Nothing.
    #[default]
    None,
    /// The receiver does not handle such a thing.
    Unhandled,
    /// It has a version that is not known.
    UnknownVersion,
    /// It is longer than the client's own bound, or ends earlier there.
    TooLong,
}

/// Problems of messages by their severity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProblemCounts {
    /// Something could not be read.
    pub errors: u64,
    /// Something is not as the protocol asks, and still readable.
    pub warnings: u64,
    /// Something is unusual, and fully understood.
    pub notes: u64,
}

impl ProblemCounts {
    /// Counts one problem.
    #[inline]
    pub fn count(&mut self, severity: Severity) {
        match severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
            Severity::Note => self.notes += 1,
        }
    }

    /// Counts the problems of one message.
    pub fn add(&mut self, problems: &[Problem]) {
        problems.iter().for_each(|problem| self.count(problem.severity));
    }

    /// Adds the problems of other messages.
    pub fn add_counts(&mut self, other: ProblemCounts) {
        self.errors += other.errors;
        self.warnings += other.warnings;
        self.notes += other.notes;
    }
}

impl fmt::Display for ProblemCounts {
    /// `2 errors, 134 notes`: the worst first, and only what there is; `all decoded` where there is
    /// nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [(self.errors, "error"), (self.warnings, "warning"), (self.notes, "note")];
        let mut comma = "";
        for (n, word) in all.into_iter().filter(|(n, _)| *n > 0) {
            write!(f, "{comma}{}", counted(n, word))?;
            comma = ", ";
        }
        if comma.is_empty() { f.write_str("all decoded") } else { Ok(()) }
    }
}

/// The text of a problem, put together only when it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemText {
    /// A fixed text. `{a}` and `{b}` in it are replaced by the two numbers, `{a bytes}` by the
    /// first one with this noun, which lacks its `s` behind 1.
    Fixed(&'static str),
    /// A text of the tables.
    Table(Sym),
    /// A text kept in the tree ([`super::Tree::own_text`]).
    Owned(u64),
    /// [`SHORT`](ProblemText::SHORT) with the name of the field for which the bytes did not
    /// suffice, one of the tables.
    ShortFor(Sym),
}

impl ProblemText {
    /// A region ends within a field or before it: how many bytes are missing, and how many are left
    /// of the region.
    pub const SHORT: &'static str = "the region ends {a bytes} too early; {b bytes} before its end";
}

/// A problem of one node.
#[derive(Clone, Copy, Debug)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// The node it is about.
    pub node: u32,
    /// The text.
    pub text: ProblemText,
    /// The first number the text may name.
    pub a: i64,
    /// The second one.
    pub b: i64,
    /// Bytes to show with it: buffer, start and length in bytes.
    pub bytes: Option<(Buffer, u32, u32)>,
    /// What it says of the programs that talk.
    pub concern: Concern,
}

impl Problem {
    /// Whether its text is this fixed one, without numbers.
    #[inline]
    pub fn has_text(&self, text: &str) -> bool {
        matches!(self.text, ProblemText::Fixed(own) if own == text)
    }

    /// A problem with a fixed text and up to two numbers.
    pub fn new(severity: Severity, node: u32, text: &'static str, a: i64, b: i64) -> Self {
        let text = ProblemText::Fixed(text);
        Problem { severity, node, text, a, b, bytes: None, concern: Concern::None }
    }

    /// The same problem, which says this of the programs that talk.
    pub fn concerning(self, concern: Concern) -> Self {
        Problem { concern, ..self }
    }

    /// The same problem with `length` bytes to show, from byte `at` of a buffer on.
    pub fn showing(self, buffer: Buffer, at: usize, length: usize) -> Self {
        Problem { bytes: Some((buffer, at as u32, length as u32)), ..self }
    }

    /// Writes a fixed text with its numbers in place.
    pub fn format(text: &str, a: i64, b: i64, out: &mut String) {
        Self::fill(text, Some([a, b]), out);
    }

    /// Appends a text that has numbers; those of the tables and of the tree have none. `name` looks
    /// up a name in the tables.
    pub fn write_numbered<'n>(&self, name: impl FnOnce(Sym) -> &'n str, out: &mut String) {
        let Problem { a, b, .. } = *self;
        match self.text {
            ProblemText::Fixed(text) => Self::format(text, a, b, out),
            ProblemText::ShortFor(field) => {
                Self::format("the region ends {a bytes} too early for ", a, b, out);
                out.push_str(name(field));
                Self::format("; {b bytes} before its end", a, b, out);
            }
            ProblemText::Table(_) | ProblemText::Owned(_) => {}
        }
    }

    /// Writes a fixed text with `…` in the place of each number.
    pub fn format_without_numbers(text: &str, out: &mut String) {
        Self::fill(text, None, out);
    }

    fn fill(text: &str, numbers: Option<[i64; 2]>, out: &mut String) {
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            let place = [("{a", 0), ("{b", 1)].into_iter().find_map(|(sign, at)| {
                let (noun, after) = from.strip_prefix(sign)?.split_once('}')?;
                (noun.is_empty() || noun.starts_with(' ')).then_some((at, noun, after))
            });
            let Some((at, noun, after)) = place else {
                out.push('{');
                rest = from.get(1..).unwrap_or("");
                continue;
            };
            let value = numbers.and_then(|numbers| numbers.get(at).copied());
            match value {
                Some(value) => out.push_str(itoa::Buffer::new().format(value)),
                None => out.push('…'),
            }
            out.push_str(noun.strip_suffix('s').filter(|_| value == Some(1)).unwrap_or(noun));
            rest = after;
        }
        out.push_str(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_takes_its_numbers() {
        let mut out = String::new();
        Problem::format("{a} units where {b} are allowed {x}", 261, -1, &mut out);
        assert_eq!(out, "261 units where -1 are allowed {x}");
        out.clear();
        Problem::format("{a bytes} and {b bits}, {a bytes", 1, 2, &mut out);
        assert_eq!(out, "1 byte and 2 bits, {a bytes");
        out.clear();
        Problem::format_without_numbers("{a bytes} of {b}", &mut out);
        assert_eq!(out, "… bytes of …");
    }
}
