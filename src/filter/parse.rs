//! Reading expressions, with a helpful word for what cannot be read.

use regex_lite::RegexBuilder;

use super::literal::Literal;
use super::names::{KeyKind, Names};
use super::path::{Key, Path, Step};
use super::{Check, Expr, FilterError, Op};

/// Parentheses and `not`s within each other.
const DEPTH: usize = 100;
/// Steps of a path.
const STEPS: usize = 64;
const WORDS: [&str; 6] = ["in", "contains", "matches", "has", "and", "or"];

type Parsed<T> = Result<T, FilterError>;

/// What is worth saying of something that could be read.
#[derive(Default)]
pub(super) struct Remarks {
    /// Names that no table knows, and that are like no other.
    pub(super) notes: Vec<String>,
    /// Names that no table knows, and that are nearly another one.
    pub(super) doubts: Vec<FilterError>,
}

/// Reads an expression.
pub(super) fn expression(text: &str, names: &Names<'_>) -> Parsed<(Expr, Remarks)> {
    let mut parser = Parser { text, at: 0, names, remarks: Remarks::default() };
    parser.blanks();
    if parser.rest().is_empty() {
        return Err(parser.wrong((0, 0), "an empty filter; one looks like message == \"Auth2Cli_AcctLoginReply\""));
    }
    let expr = parser.or(0)?;
    if !parser.rest().is_empty() {
        return Err(parser.surplus());
    }
    Ok((expr, parser.remarks))
}

/// Reads paths separated by commas.
pub(super) fn paths(text: &str, names: &Names<'_>) -> Parsed<(Vec<Path>, Remarks)> {
    let mut parser = Parser { text, at: 0, names, remarks: Remarks::default() };
    let mut paths = Vec::new();
    loop {
        parser.blanks();
        paths.push(parser.path()?.0);
        parser.blanks();
        if parser.rest().is_empty() {
            return Ok((paths, parser.remarks));
        }
        if !parser.take(",") {
            return Err(parser.wrong((parser.at, text.len()), "expected a comma between columns"));
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    names: &'a Names<'a>,
    remarks: Remarks,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn blanks(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn wrong(&self, place: (usize, usize), message: impl Into<String>) -> FilterError {
        FilterError::new(self.text, place, message)
    }

    fn take(&mut self, what: &str) -> bool {
        let found = self.rest().starts_with(what);
        if found {
            self.at += what.len();
        }
        found
    }

    /// The word that stands here.
    fn peek_word(&self) -> &'a str {
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

    fn or(&mut self, depth: usize) -> Parsed<Expr> {
        let mut list = vec![self.and(depth)?];
        while self.take("||") || self.take_word(&["or", "OR"]) {
            list.push(self.and(depth)?);
        }
        Ok(if list.len() == 1 { list.swap_remove(0) } else { Expr::Or(list) })
    }

    fn and(&mut self, depth: usize) -> Parsed<Expr> {
        let mut list = vec![self.not(depth)?];
        while self.take("&&") || self.take_word(&["and", "AND"]) {
            list.push(self.not(depth)?);
        }
        Ok(if list.len() == 1 { list.swap_remove(0) } else { Expr::And(list) })
    }

    fn not(&mut self, depth: usize) -> Parsed<Expr> {
        self.blanks();
        if depth > DEPTH {
            return Err(self.wrong((self.at, self.at + 1), "too many parentheses within each other"));
        }
        let bang = self.rest().starts_with('!') && !self.rest().starts_with("!=");
        if (bang && self.take("!")) || self.take_word(&["not", "NOT"]) {
            return Ok(Expr::Not(Box::new(self.not(depth + 1)?)));
        }
        let open = self.at;
        if self.take("(") {
            let inner = self.or(depth + 1)?;
            if !self.take(")") {
                let message = "this parenthesis is never closed";
                return Err(if self.rest().is_empty() {
                    self.wrong((open, open + 1), message)
                } else {
                    self.surplus()
                });
            }
            self.blanks();
            return Ok(inner);
        }
        let test = self.test()?;
        self.blanks();
        Ok(test)
    }

    fn test(&mut self) -> Parsed<Expr> {
        let (path, key) = self.path()?;
        self.blanks();
        let place = self.at;
        let negated = self.peek_word() == "not";
        if negated {
            return Err(self.wrong((place, place + 3), "`not` stands before a condition: not x in {1, 2}"));
        }
        let check = if let Some(op) = self.operator()? {
            Check::Compare(op, self.value(key, false)?)
        } else if self.take_word(&["in"]) {
            Check::In(self.set(key)?)
        } else if self.take_word(&["contains"]) {
            Check::Contains(self.plain_value()?)
        } else if self.take_word(&["matches"]) || self.take("~") {
            Check::Matches(self.regex()?)
        } else if self.take_word(&["has"]) {
            Check::Has(self.value(None, true)?)
        } else {
            Check::Present
        };
        Ok(Expr::Test(path, check))
    }

    fn operator(&mut self) -> Parsed<Option<Op>> {
        let signs = [("==", Op::Eq), ("!=", Op::Ne), ("<=", Op::Le), (">=", Op::Ge), ("<", Op::Lt), (">", Op::Gt)];
        let words = [("eq", Op::Eq), ("ne", Op::Ne), ("le", Op::Le), ("ge", Op::Ge), ("lt", Op::Lt), ("gt", Op::Gt)];
        let at = self.at;
        for (sign, op) in signs {
            if self.take(sign) {
                return match self.rest().starts_with(['=', '<', '>']) {
                    true => Err(self.wrong((at, self.at + 1), "no such operator; there are == != < <= > >=")),
                    false => Ok(Some(op)),
                };
            }
        }
        if self.rest().starts_with("=~") {
            return Err(self.wrong((at, at + 2), "a regular expression stands after `matches` (or `~`)"));
        }
        if self.rest().starts_with('=') {
            return Err(self.wrong((at, at + 1), "a comparison is written `==`"));
        }
        Ok(words.into_iter().find(|(word, _)| self.take_word(&[word])).map(|(_, op)| op))
    }

    /// A path; with it the record's key it begins with, where it is nothing more.
    fn path(&mut self) -> Parsed<(Path, Option<&'a str>)> {
        let start = self.at;
        // As jq writes them.
        if self.rest().starts_with('.') {
            self.at += 1;
        }
        let mut steps = Vec::new();
        let mut key = None;
        if self.take("*") {
            steps.push(self.anywhere()?);
        } else {
            let (at, word) = (self.at, self.peek_word());
            if word.is_empty() || word.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
                return Err(self.no_name());
            }
            self.at += word.len();
            if WORDS.contains(&word) {
                return Err(self.wrong((at, self.at), "a condition is missing before this"));
            }
            if let Err(text) = self.names.key(word) {
                return Err(self.wrong((at, self.at), text));
            }
            key = Some(word);
            steps.push(Step::Key(Key::new(word, self.names.protocols())));
        }
        while self.step(&mut steps)? {
            key = None;
            if steps.len() > STEPS {
                return Err(self.wrong((start, self.at), "a path with too many steps"));
            }
        }
        if let [Step::Key(first), _, Step::Key(last)] = steps.as_slice()
            && (first.text.as_str(), last.text.as_str()) == ("problems", "severity")
        {
            key = Some("severity");
        }
        let text = self.text.get(start..self.at).unwrap_or("").trim_start_matches('.').to_string();
        Ok((Path { text, steps }, key))
    }

    fn no_name(&self) -> FilterError {
        let found = self.rest().chars().next();
        let end = self.at + self.rest().find(char::is_whitespace).unwrap_or(self.rest().len()).max(1);
        let message = match found {
            None => "something is missing here: a condition begins with a name, such as message or fields.trans_id",
            Some(')') => "this parenthesis was never opened, or a condition is missing before it",
            Some('"' | '\'') => "a condition begins with a name, not with a text: message == \"…\"",
            Some(_) => "a condition begins with a name, such as message or fields.trans_id",
        };
        self.wrong((self.at, end.min(self.text.len())), message)
    }

    fn anywhere(&mut self) -> Parsed<Step> {
        let at = self.at;
        if !self.take(".") {
            return Err(self.wrong((at.saturating_sub(1), at), "`*` is followed by a name: *.node_id"));
        }
        Ok(Step::Anywhere(self.field_name(&[])?))
    }

    fn step(&mut self, steps: &mut Vec<Step>) -> Parsed<bool> {
        let at = self.at;
        if self.take(".*") {
            steps.push(self.anywhere()?);
        } else if self.take(".") {
            if self.rest().starts_with('[') {
                return Ok(true);
            }
            let key = self.field_name(steps)?;
            steps.push(Step::Key(key));
        } else if self.rest().starts_with("[\"") || self.rest().starts_with("['") {
            // As jq writes a name that is no word.
            self.at += 1;
            let key = self.field_name(steps)?;
            steps.push(Step::Key(key));
            if !self.take("]") {
                return Err(self.wrong((at, self.at), "a bracket is missing after this name"));
            }
        } else if self.take("[") {
            let end = self.rest().find(']').map(|n| self.at + n);
            let inner = end.and_then(|end| self.text.get(self.at..end)).map(str::trim);
            let wrong = |to| FilterError::new(self.text, (at, to), "a list's element is written [0], all of them [*]");
            steps.push(match inner {
                Some("*" | "") => Step::All,
                Some(n) => Step::Index(n.parse().map_err(|_| wrong(end.unwrap_or(at) + 1))?),
                None => return Err(wrong(self.text.len())),
            });
            self.at = end.map_or(self.text.len(), |end| end + 1);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// A name behind a dot; `before` are the steps it follows, none where it may be anywhere.
    fn field_name(&mut self, before: &[Step]) -> Parsed<Key> {
        let at = self.at;
        if self.rest().starts_with(['"', '\'']) {
            let (name, _) = self.quoted(false)?;
            return Ok(Key::new(&name, self.names.protocols()));
        }
        let word = self.peek_word();
        self.at += word.len();
        if word.is_empty() {
            return Err(self.wrong((at, at + 1), "a field's name is missing"));
        }
        let first = match before {
            [Step::Key(first)] if first.text != "fields" => Some((first, false)),
            [Step::Key(first), Step::All | Step::Index(_)] if first.text != "fields" => Some((first, true)),
            _ => None,
        };
        if let Some((first, element)) = first {
            self.names.part(&first.text, element, word).map_err(|text| self.wrong((at, self.at), text))?;
        } else if let Err(unknown) = self.names.field(word, before.is_empty()) {
            let quote = format!("a name that comes with the traffic is written in quotes: \"{word}\"");
            match unknown.near {
                false => {
                    self.remarks.notes.push(format!("{}; only one that comes with the traffic fits", unknown.text))
                }
                // What stands at the top of a message, tables alone decide.
                true if matches!(before, [Step::Key(_)]) => {
                    return Err(self.wrong((at, self.at), format!("{} ({quote})", unknown.text)));
                }
                true => {
                    let doubt = self.wrong((at, self.at), format!("{} ({quote})", unknown.text));
                    self.remarks.doubts.push(doubt);
                }
            }
        }
        Ok(Key::new(word, self.names.protocols()))
    }

    /// A value, quoted or not, without asking what it means.
    fn raw_value(&mut self, regex: bool) -> Parsed<(Literal, (usize, usize))> {
        self.blanks();
        let at = self.at;
        if self.rest().starts_with(['"', '\'']) {
            let (text, _) = self.quoted(regex)?;
            return Ok((Literal::new(text, true), (at, self.at)));
        }
        let rest = self.rest();
        let end = rest.find(|c: char| c.is_whitespace() || "(){},\"'=<>!&|".contains(c)).unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or("");
        self.at += end;
        if word.is_empty() || WORDS.contains(&word) {
            return Err(self.wrong((at, self.at.max(at + 1).min(self.text.len())), "a value is missing here"));
        }
        if word.starts_with("fields.") || word.starts_with("*.") {
            let text = "a value stands on the right: two fields cannot be compared with each other";
            return Err(self.wrong((at, self.at), text));
        }
        Ok((Literal::new(word.to_string(), false), (at, self.at)))
    }

    fn plain_value(&mut self) -> Parsed<Literal> {
        Ok(self.raw_value(false)?.0)
    }

    /// A value of a comparison: an unquoted word must be one that the tables know.
    fn value(&mut self, key: Option<&str>, flags: bool) -> Parsed<Literal> {
        let (literal, place) = self.raw_value(false)?;
        let checked = match (literal.quoted, key) {
            (true, Some("message")) => self.names.message(&literal.raw, true),
            (true, _) if flags => self.names.word(&literal.raw, None, true),
            (true, _) => Ok(()),
            (false, Some(key)) if self.names.key(key) == Ok(KeyKind::Word) => {
                self.names.word(&literal.raw, Some(key), false)
            }
            (false, Some("severity")) => self.names.word(&literal.raw, key, false),
            (false, Some("time")) if literal.time.is_none() => self.names.word(&literal.raw, key, false),
            (false, Some("src" | "dst" | "key_file" | "limit" | "text")) => Ok(()),
            (false, _) if literal.is_no_word() && literal.number().is_some() => Ok(()),
            (false, Some(key)) if self.names.key(key) == Ok(KeyKind::Number) => {
                self.names.word(&literal.raw, Some(key), false)
            }
            (false, _) if literal.is_no_word() && !flags => Ok(()),
            (false, _) => self.names.word(&literal.raw, None, flags),
        };
        checked.map_err(|text| self.wrong(place, text))?;
        Ok(literal)
    }

    fn set(&mut self, key: Option<&str>) -> Parsed<Vec<Literal>> {
        self.blanks();
        let at = self.at;
        if !self.take("{") {
            return Err(self.wrong((at, at + 1), "a set is written in braces: service in {auth, game}"));
        }
        let mut list = Vec::new();
        loop {
            self.blanks();
            list.push(self.value(key, false)?);
            self.blanks();
            if self.take("}") {
                return Ok(list);
            }
            if !self.take(",") {
                let end = (self.at + 1).min(self.text.len());
                return Err(self.wrong((self.at, end), "a comma or the closing brace of the set is missing here"));
            }
        }
    }

    fn regex(&mut self) -> Parsed<regex_lite::Regex> {
        let (literal, place) = self.raw_value(true)?;
        RegexBuilder::new(&literal.raw).size_limit(1 << 20).build().map_err(|error| {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or("").trim_start_matches("error: ");
            self.wrong(place, format!("no regular expression: {last}"))
        })
    }

    /// A quoted text. In double quotes a backslash stands before quotes and itself, and in `\n`, `\t`, `\uXXXX`; before anything else, and
    /// in single quotes, it is one.
    fn quoted(&mut self, regex: bool) -> Parsed<(String, usize)> {
        let start = self.at;
        let mut chars = self.rest().char_indices();
        let quote = chars.next().map_or('"', |c| c.1);
        let mut out = String::new();
        while let Some((i, c)) = chars.next() {
            if c == quote {
                self.at = start + i + 1;
                return Ok((out, start));
            }
            if c != '\\' || quote == '\'' {
                out.push(c);
                continue;
            }
            match chars.next().map(|c| c.1) {
                Some('"') => out.push('"'),
                Some('\\') if regex => out.push_str(if chars.as_str().starts_with('\\') { "\\\\" } else { "\\" }),
                Some('\\') => out.push('\\'),
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('u') if !regex => {
                    let code = chars.as_str().get(..4).and_then(|hex| u32::from_str_radix(hex, 16).ok());
                    match code.and_then(char::from_u32) {
                        Some(c) => {
                            out.push(c);
                            chars.by_ref().take(4).for_each(drop);
                        }
                        None => out.push_str("\\u"),
                    }
                }
                Some(other) => {
                    out.push('\\');
                    out.push(other);
                }
                None => out.push('\\'),
            }
        }
        Err(self.wrong((start, self.text.len()), "this text is never closed: a quote is missing"))
    }

    /// Something stands where the expression should go on or end.
    fn surplus(&self) -> FilterError {
        let rest = self.rest();
        let word = self.peek_word();
        let length = if word.is_empty() { rest.chars().next().map_or(0, char::len_utf8) } else { word.len() };
        let place = (self.at, self.at + length);
        if rest.starts_with(')') {
            return self.wrong(place, "this parenthesis was never opened");
        }
        let near = crate::suggest::suggestion(word, WORDS.into_iter());
        let text = match near.is_empty() || word.is_empty() {
            true => {
                "expected an operator (== != < <= > >= contains matches in has), `and`, `or`, or the end".to_string()
            }
            false => format!("`{word}` is no operator{near}"),
        };
        self.wrong(place, text)
    }
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}
