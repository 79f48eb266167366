//! A regular expression with a text that every match of it contains: most texts do not have it, and searching for it is cheaper.

use memchr::memmem::Finder;
use regex_lite::{Error, Regex, RegexBuilder};

/// A regular expression.
pub(super) struct TextPattern {
    regex: Regex,
    /// In every match; empty where this is not known.
    required: String,
    finder: Finder<'static>,
}

impl TextPattern {
    /// Compiles an expression, into `size` bytes at most.
    pub(super) fn new(text: &str, size: usize) -> Result<TextPattern, Error> {
        let regex = RegexBuilder::new(text).size_limit(size).build()?;
        let required = required(text).to_string();
        let finder = Finder::new(required.as_bytes()).into_owned();
        Ok(TextPattern { regex, required, finder })
    }

    /// Whether a text has a match.
    pub(super) fn is_match(&self, text: &str) -> bool {
        self.finder.find(text.as_bytes()).is_some() && self.regex.is_match(text)
    }

    /// A text that is in every match, if only the empty one.
    pub(super) fn required(&self) -> &str {
        &self.required
    }
}

/// The longest plain part of an expression. Behind `.`, `^`, `$` and `+` the parts before them are still required; any other sign might make them
/// optional.
fn required(expression: &str) -> &str {
    if expression.contains(['|', '(', ')', '[', ']', '{', '}', '?', '*', '\\']) {
        return "";
    }
    expression.split(['.', '^', '$', '+']).max_by_key(|part| part.len()).unwrap_or("")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_required_text_is_in_every_match() {
        let all = [("zz+", "zz"), ("^Ahny.Sphere$", "Sphere"), ("a|b", ""), ("ab?", ""), ("(?i)login", ""), (".", "")];
        for (expression, text) in all {
            assert_eq!(TextPattern::new(expression, 1 << 16).unwrap().required(), text, "{expression}");
        }
        let pattern = TextPattern::new("^Ahny.Sphere$", 1 << 16).unwrap();
        assert!(pattern.is_match("Ahny Sphere") && !pattern.is_match("Ahny Sphere 1") && !pattern.is_match("Ahny"));
    }
}
