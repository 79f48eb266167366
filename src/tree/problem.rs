//! What went wrong inside the traffic, or is worth saying: a note in its place, never an error of the program.

use super::{Buffer, Sym};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Unusual, and fully understood.
    Note,
    /// Not as the protocol asks, and still readable.
    Warning,
    /// Something could not be read.
    Error,
}

impl Severity {
    /// The word the outputs use.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// The text of a problem, put together only when it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemText {
    /// A fixed text; `{a}` and `{b}` in it stand for the two numbers.
    Fixed(&'static str),
    /// A text of the tables.
    Table(Sym),
    /// A text kept in the tree ([`super::Tree::own_text`]).
    Owned(u64),
}

/// One thing to say about one node.
#[derive(Clone, Copy, Debug)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// The node it is about.
    pub node: u32,
    /// What there is to say.
    pub text: ProblemText,
    /// The first number the text may name.
    pub a: i64,
    /// The second one.
    pub b: i64,
    /// Bytes to show with it: buffer, start and length in bytes.
    pub bytes: Option<(Buffer, u32, u32)>,
}

impl Problem {
    /// A problem with a fixed text and up to two numbers.
    pub fn new(severity: Severity, node: u32, text: &'static str, a: i64, b: i64) -> Self {
        Problem { severity, node, text: ProblemText::Fixed(text), a, b, bytes: None }
    }

    /// Writes a fixed text with its numbers in place.
    pub fn format(text: &str, a: i64, b: i64, out: &mut String) {
        use std::fmt::Write;
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            let (value, after) = match (from.strip_prefix("{a}"), from.strip_prefix("{b}")) {
                (Some(after), _) => (a, after),
                (_, Some(after)) => (b, after),
                _ => {
                    out.push('{');
                    rest = from.get(1..).unwrap_or("");
                    continue;
                }
            };
            let _ = out.write_str(itoa::Buffer::new().format(value));
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
    }
}
