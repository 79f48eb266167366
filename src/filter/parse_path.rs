//! Parses paths: keys of a record, fields, elements of lists, and keys at any depth.

use super::FilterError;
use super::keys::{KeyParts, RecordKey};
use super::parse::{FilterParser, ParseResult, PathTarget, WORDS};
use super::path::{Path, PathKey, PathStep};

/// The most steps in a path.
const STEPS: usize = 64;
/// The most searches at any depth in a path. Each multiplies the number of ways through a deeply
/// nested message.
const SEARCHES: usize = 3;

impl FilterParser<'_> {
    /// A path, and what is known of the values at it.
    pub(super) fn path(&mut self) -> ParseResult<(Path, PathTarget)> {
        let start = self.at;
        // jq writes a dot before the first key.
        self.take(".");
        let mut steps = Vec::new();
        let mut target = PathTarget::Other;
        if self.take("*") {
            if !self.rest().starts_with('.') {
                return Ok((Path::new("*", vec![PathStep::Everywhere]), PathTarget::Anything));
            }
            steps.push(self.anywhere()?);
        } else {
            let key = self.first_key()?;
            target = PathTarget::Key(key);
            steps.push(PathStep::Key(PathKey::new(key.name, self.names.protocols())));
        }
        while self.step(&mut steps)? {
            target = PathTarget::Other;
            if steps.len() > STEPS {
                return Err(self.wrong(start..self.at, "a path with too many steps"));
            }
            if steps.iter().filter(|step| matches!(step, PathStep::Anywhere(_))).count() > SEARCHES
            {
                return Err(
                    self.wrong(start..self.at, format!("a path may have `*.` {SEARCHES} times"))
                );
            }
        }
        if let [PathStep::Key(first), _, PathStep::Key(last)] = steps.as_slice()
            && (first.text.as_str(), last.text.as_str()) == ("problems", "severity")
        {
            target = PathTarget::Severity;
        }
        let text = self.text.get(start..self.at).unwrap_or("").trim_start_matches('.');
        Ok((Path::new(text, steps), target))
    }

    fn first_key(&mut self) -> ParseResult<&'static RecordKey> {
        let at = self.at;
        let word = self.peek_word();
        if word.is_empty() || word.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            return Err(self.no_name());
        }
        self.at += word.len();
        if WORDS.contains(&word) && word != "has" {
            return Err(self.wrong(at..self.at, "a condition is missing before this"));
        }
        self.names.key(word).map_err(|text| self.wrong(at..self.at, text))
    }

    fn no_name(&self) -> FilterError {
        let found = self.rest().chars().next();
        let end =
            self.at + self.rest().find(char::is_whitespace).unwrap_or(self.rest().len()).max(1);
        let message = match found {
            None => {
                "something is missing here: a condition begins with a name, such as message or \
                 fields.trans_id"
            }
            Some(')') => "this parenthesis was never opened, or a condition is missing before it",
            Some('"' | '\'') => "a condition begins with a name, not with a text: message == \"…\"",
            Some(_) => "a condition begins with a name, such as message or fields.trans_id",
        };
        self.wrong(self.at..end.min(self.text.len()), message)
    }

    fn anywhere(&mut self) -> ParseResult<PathStep> {
        let at = self.at;
        if !self.take(".") {
            return Err(
                self.wrong(at.saturating_sub(1)..at, "`*` is followed by a name: *.node_id")
            );
        }
        Ok(PathStep::Anywhere(self.field_name(&[])?))
    }

    /// Parses one more step, if there is one.
    fn step(&mut self, steps: &mut Vec<PathStep>) -> ParseResult<bool> {
        let at = self.at;
        if self.take(".*") {
            steps.push(self.anywhere()?);
        } else if self.take(".") {
            if self.rest().starts_with('[') {
                return Ok(true);
            }
            let key = self.field_name(steps)?;
            steps.push(PathStep::Key(key));
        } else if self.rest().starts_with("[\"") || self.rest().starts_with("['") {
            // jq writes a name with special characters in brackets and quotes.
            self.at += 1;
            let key = self.field_name(steps)?;
            steps.push(PathStep::Key(key));
            if !self.take("]") {
                return Err(self.wrong(at..self.at, "a bracket is missing after this name"));
            }
        } else if self.take("[") {
            steps.push(self.element(at)?);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// An element of a list, whose bracket at `open` was taken.
    fn element(&mut self, open: usize) -> ParseResult<PathStep> {
        let end = self.rest().find(']').map(|n| self.at + n);
        let inner = end.and_then(|end| self.text.get(self.at..end)).map(str::trim);
        let after = end.map_or(self.text.len(), |end| end + 1);
        let wrong = |_| self.wrong(open..after, "a list's element is written [0], all of them [*]");
        let step = match inner {
            Some("*" | "") => PathStep::All,
            Some(index) => PathStep::Index(index.parse().map_err(wrong)?),
            None => {
                return Err(
                    self.wrong(open..after, "a list's element is written [0], all of them [*]")
                );
            }
        };
        self.at = after;
        Ok(step)
    }

    /// A name after a dot. `before` are the steps before it, none after `*.`.
    fn field_name(&mut self, before: &[PathStep]) -> ParseResult<PathKey> {
        let at = self.at;
        if self.rest().starts_with(['"', '\'']) {
            let name = self.quoted(false)?;
            return Ok(PathKey::new(&name, self.names.protocols()));
        }
        let word = self.peek_word();
        self.at += word.len();
        if word.is_empty() {
            return Err(self.wrong(at..at + 1, "a field's name is missing"));
        }
        match composite_before(before) {
            Some((key, element)) => {
                self.names
                    .part(key, element, word)
                    .map_err(|text| self.wrong(at..self.at, text))?;
            }
            None => self.check_field(at, word, before)?,
        }
        Ok(PathKey::new(word, self.names.protocols()))
    }

    /// Checks the name of a field. Directly below `fields` tables declare all names; deeper within
    /// a message the traffic itself may bring names, such as the keys of a mapping, so that only
    /// the traffic tells whether the name is a mistake.
    fn check_field(&mut self, at: usize, word: &str, before: &[PathStep]) -> ParseResult<()> {
        let Err(unknown) = self.names.field(word, before.is_empty()) else { return Ok(()) };
        let quote = format!("a name that comes with the traffic is written in quotes: \"{word}\"");
        let doubt = self.wrong(at..self.at, format!("{unknown} ({quote})"));
        if matches!(before, [PathStep::Key(_)]) {
            return Err(doubt);
        }
        self.remarks.doubts.push(doubt);
        Ok(())
    }
}

/// The key whose part comes next, and whether the part belongs to an element of it. `None` for
/// names within fields.
fn composite_before(before: &[PathStep]) -> Option<(&'static RecordKey, bool)> {
    let (PathStep::Key(first), element) = (match before {
        [first] => (first, false),
        [first, PathStep::All | PathStep::Index(_)] => (first, true),
        _ => return None,
    }) else {
        return None;
    };
    first.record.filter(|key| key.parts != KeyParts::Fields).map(|key| (key, element))
}
