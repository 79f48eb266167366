//! Parses expressions, and explains what cannot be parsed. Paths and values have files of their
//! own.

mod named;
mod value;

use std::collections::BTreeMap;
use std::ops::Range;

use super::hints;
use super::keys::RecordKey;
use super::names::FilterNames;
use super::path::Path;
use super::{BooleanExpr, Check, CompareOp, FilterError};
use crate::suggest::suggestion;
use value::Asked;

/// The most parentheses and `not`s within each other.
const DEPTH: usize = 100;
/// Words that cannot begin a condition and are no values.
pub(super) const WORDS: [&str; 6] = ["in", "contains", "matches", "has", "and", "or"];

pub(super) type ParseResult<T> = Result<T, FilterError>;

/// What there is to say of an expression that could be parsed.
#[derive(Default)]
pub(super) struct Remarks {
    /// Names that are probably mistakes.
    pub(super) doubts: Vec<FilterError>,
    /// The expressions of the names that were used, by name with its `@`.
    pub(super) used: BTreeMap<String, String>,
    /// How often names were used.
    uses: usize,
}

/// What is known of the values at a path.
#[derive(Clone, Copy)]
pub(super) enum PathTarget {
    /// A key of the record.
    Key(&'static RecordKey),
    /// The severity of a problem.
    Severity,
    /// A field, or a part of something.
    Other,
    /// Every value.
    Anything,
}

/// Parses an expression.
pub(super) fn expression(
    text: &str,
    names: &FilterNames<'_>,
) -> ParseResult<(BooleanExpr, Remarks)> {
    let mut parser = FilterParser::new(text, names);
    parser.skip_blanks();
    if parser.rest().is_empty() {
        return Err(parser.wrong(
            0..0,
            "an empty filter; one looks like message == \"Auth2Cli_AcctLoginReply\"",
        ));
    }
    let condition = parser.or(0)?;
    if !parser.rest().is_empty() {
        return Err(parser.unexpected());
    }
    Ok((condition, parser.remarks))
}

/// Parses paths separated by commas.
pub(super) fn paths(text: &str, names: &FilterNames<'_>) -> ParseResult<(Vec<Path>, Remarks)> {
    let mut parser = FilterParser::new(text, names);
    let paths = parser.path_list()?;
    Ok((paths, parser.remarks))
}

pub(super) struct FilterParser<'a> {
    pub(super) text: &'a str,
    /// The byte offset of the next character.
    pub(super) at: usize,
    pub(super) names: &'a FilterNames<'a>,
    pub(super) remarks: Remarks,
    /// The names whose expressions this one is part of, the outermost first.
    within: Vec<&'a str>,
}

impl<'a> FilterParser<'a> {
    fn new(text: &'a str, names: &'a FilterNames<'a>) -> FilterParser<'a> {
        FilterParser { text, at: 0, names, remarks: Remarks::default(), within: Vec::new() }
    }

    /// All paths to the end, separated by commas.
    fn path_list(&mut self) -> ParseResult<Vec<Path>> {
        let mut paths = Vec::new();
        loop {
            self.skip_blanks();
            if self.rest().is_empty() || self.rest().starts_with(',') {
                return Err(self.wrong(
                    self.at..self.at + 1,
                    "a column is missing here, such as message or fields.trans_id",
                ));
            }
            if self.rest().starts_with('@') {
                paths.extend(self.named_columns()?);
            } else {
                let at = self.at;
                let (path, target) = self.path()?;
                if matches!(target, PathTarget::Anything) {
                    return Err(self.wrong(at..self.at, "`*` is followed by a name: *.node_id"));
                }
                paths.push(path);
            }
            self.skip_blanks();
            if self.rest().is_empty() {
                return Ok(paths);
            }
            if !self.take(",") {
                return Err(
                    self.wrong(self.at..self.text.len(), "expected a comma between columns")
                );
            }
        }
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    pub(super) fn skip_blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    pub(super) fn wrong(&self, place: Range<usize>, message: impl Into<String>) -> FilterError {
        FilterError::new(self.text, place, message)
    }

    /// Takes `what` if the text goes on with it.
    pub(super) fn take(&mut self, what: &str) -> bool {
        let found = self.rest().starts_with(what);
        if found {
            self.at += what.len();
        }
        found
    }

    /// The word at the current place, which may be empty.
    pub(super) fn peek_word(&self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
        rest.get(..end).unwrap_or("")
    }

    fn take_word(&mut self, words: &[&str]) -> bool {
        let word = self.peek_word();
        let found = words.contains(&word);
        if found {
            self.at += word.len();
        }
        found
    }

    fn or(&mut self, depth: usize) -> ParseResult<BooleanExpr> {
        let mut list = vec![self.and(depth)?];
        while self.take("||") || self.take_word(&["or", "OR"]) {
            list.push(self.and(depth)?);
        }
        Ok(if list.len() == 1 { list.swap_remove(0) } else { BooleanExpr::Or(list) })
    }

    fn and(&mut self, depth: usize) -> ParseResult<BooleanExpr> {
        let mut list = vec![self.not(depth)?];
        while self.take("&&") || self.take_word(&["and", "AND"]) {
            list.push(self.not(depth)?);
        }
        Ok(if list.len() == 1 { list.swap_remove(0) } else { BooleanExpr::And(list) })
    }

    fn not(&mut self, depth: usize) -> ParseResult<BooleanExpr> {
        self.skip_blanks();
        if depth > DEPTH {
            return Err(self.wrong(self.at..self.at + 1, "too many parentheses within each other"));
        }
        let bang = self.rest().starts_with('!') && !self.rest().starts_with("!=");
        if (bang && self.take("!")) || self.take_word(&["not", "NOT"]) {
            return Ok(BooleanExpr::Not(Box::new(self.not(depth + 1)?)));
        }
        let open = self.at;
        if self.take("(") {
            let inner = self.or(depth + 1)?;
            if !self.take(")") {
                return Err(if self.rest().is_empty() {
                    self.wrong(open..open + 1, "this parenthesis is never closed")
                } else {
                    self.unexpected()
                });
            }
            self.skip_blanks();
            return Ok(inner);
        }
        let named = self.rest().starts_with('@');
        let condition = if named { self.named_filter(depth)? } else { self.test()? };
        self.skip_blanks();
        Ok(condition)
    }

    fn test(&mut self) -> ParseResult<BooleanExpr> {
        let (path, target) = self.path()?;
        self.skip_blanks();
        let at = self.at;
        if self.peek_word() == "not" {
            return Err(self.wrong(at..at + 3, "`not` comes before a condition: not x in {1, 2}"));
        }
        let check = if let Some(comparison) = self.comparison()? {
            Check::Compare(comparison, self.value(target, Asked::Compare(comparison))?)
        } else if self.take_word(&["in"]) {
            Check::In(self.set(target)?)
        } else if self.take_word(&["contains"]) {
            Check::Contains(self.value(target, Asked::Text("contains"))?)
        } else if self.take_word(&["matches"]) || self.take("~") {
            self.matches(target)?
        } else if self.take_word(&["has"]) {
            Check::Has(self.value(target, Asked::Flag)?)
        } else if matches!(target, PathTarget::Anything) {
            return Err(self.wrong(
                at..self.text.len().min(at + 1),
                "`*` alone is every value, and is searched: * contains \"Player Two\", * == 7; or \
                 a name follows: *.node_id",
            ));
        } else {
            Check::Present
        };
        Ok(BooleanExpr::Test(path, check))
    }

    fn comparison(&mut self) -> ParseResult<Option<CompareOp>> {
        use CompareOp::{Eq, Ge, Gt, Le, Lt, Ne};
        let signs = [("==", Eq), ("!=", Ne), ("<=", Le), (">=", Ge), ("<", Lt), (">", Gt)];
        let words = [("eq", Eq), ("ne", Ne), ("le", Le), ("ge", Ge), ("lt", Lt), ("gt", Gt)];
        let at = self.at;
        if let Some((spelled, hint)) = hints::foreign_operator(self.peek_word(), self.rest()) {
            return Err(
                self.wrong(at..at + spelled.len(), format!("`{spelled}` is no operator; {hint}"))
            );
        }
        for (sign, comparison) in signs {
            if self.take(sign) {
                return if self.rest().starts_with(['=', '<', '>']) {
                    Err(self.wrong(at..self.at + 1, "no such operator; there are == != < <= > >="))
                } else {
                    Ok(Some(comparison))
                };
            }
        }
        if self.rest().starts_with('=') {
            return Err(self.wrong(at..at + 1, "a comparison is written `==`"));
        }
        Ok(words
            .into_iter()
            .find(|(word, _)| self.take_word(&[word]))
            .map(|(_, comparison)| comparison))
    }

    /// The error for text that neither continues nor ends the expression.
    fn unexpected(&self) -> FilterError {
        let rest = self.rest();
        let word = self.peek_word();
        let length = if word.is_empty() {
            rest.chars().next().map_or(0, char::len_utf8)
        } else {
            word.len()
        };
        let place = self.at..self.at + length;
        if rest.starts_with(')') {
            return self.wrong(place, "this parenthesis was never opened");
        }
        if rest.starts_with(',') {
            return self
                .wrong(place, "several values are written in braces: service in {auth, game}");
        }
        if let Some((spelled, hint)) = hints::foreign_operator(word, rest) {
            return self.wrong(
                self.at..self.at + spelled.len(),
                format!("`{spelled}` is no operator; {hint}"),
            );
        }
        let near = suggestion(word, WORDS.into_iter());
        let text = if near.is_empty() || word.is_empty() {
            "expected an operator (== != < <= > >= contains matches in has), `and`, `or`, or the \
             end"
            .to_string()
        } else {
            format!("`{word}` is no operator{near}")
        };
        self.wrong(place, text)
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}
