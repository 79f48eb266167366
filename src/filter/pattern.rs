//! A regular expression with a text that every match of it contains: most texts do not have it, and
//! searching for it is cheaper. What the expression says of short texts is remembered: most texts
//! of a capture, such as names of messages, come again and again.

use std::hash::{BuildHasher, Hasher};
use std::sync::OnceLock;

use regex_lite::{Error, Regex, RegexBuilder};

use super::needle::Needle;
use crate::hashing::RandomSeed;

/// How many texts are remembered, and the most bytes of one. The first text in a place stays there.
const ANSWERS: usize = 256;
const MAX_TEXT: usize = 64;

/// A regular expression.
pub(super) struct TextPattern {
    regex: Regex,
    required: RequiredText,
    needle: Needle,
    seed: RandomSeed,
    /// A text's hash tells its place.
    answers: Box<[OnceLock<KnownText>]>,
}

/// A text that was asked about.
struct KnownText {
    text: Box<str>,
    matches: bool,
}

/// A text that is in every match; empty where this is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequiredText {
    pub(super) text: String,
    /// Whether ASCII letters may have the other case.
    pub(super) any_case: bool,
}

impl TextPattern {
    /// Compiles an expression, into `size` bytes at most.
    pub(super) fn new(text: &str, size: usize) -> Result<TextPattern, Error> {
        let regex = RegexBuilder::new(text).size_limit(size).build()?;
        let required = RequiredText::of(text);
        let plain = &required.text;
        let needle = match required.any_case {
            true => Needle::new(
                plain.to_ascii_lowercase().as_bytes(),
                plain.to_ascii_uppercase().as_bytes(),
            ),
            false => Needle::exact(plain.as_bytes()),
        };
        let answers = std::iter::repeat_with(OnceLock::new).take(ANSWERS).collect();
        Ok(TextPattern { regex, required, needle, seed: RandomSeed::default(), answers })
    }

    /// Whether a text has a match.
    pub(super) fn is_match(&self, text: &str) -> bool {
        if !self.needle.is_in(text.as_bytes()) {
            return false;
        }
        let Some(answer) = self.place(text) else { return self.regex.is_match(text) };
        let known = answer
            .get_or_init(|| KnownText { text: text.into(), matches: self.regex.is_match(text) });
        if *known.text == *text { known.matches } else { self.regex.is_match(text) }
    }

    /// Where the answer for a text is, or would be; `None` for a text that is too long.
    fn place(&self, text: &str) -> Option<&OnceLock<KnownText>> {
        if text.len() > MAX_TEXT {
            return None;
        }
        let mut hasher = self.seed.build_hasher();
        hasher.write(text.as_bytes());
        self.answers.get(hasher.finish() as usize % ANSWERS)
    }

    /// A text that is in every match, if only the empty one.
    pub(super) fn required(&self) -> &RequiredText {
        &self.required
    }
}

impl RequiredText {
    /// The longest plain part of an expression. Behind `.`, `^`, `$` and `+` the parts before them
    /// are still required; any other sign might make them optional.
    fn of(expression: &str) -> RequiredText {
        let (plain, any_case) =
            expression.strip_prefix("(?i)").map_or((expression, false), |plain| (plain, true));
        let unclear = plain.contains(['|', '(', ')', '[', ']', '{', '}', '?', '*', '\\']);
        let parts = plain.split(['.', '^', '$', '+']);
        let longest = parts.filter(|_| !unclear).max_by_key(|part| part.len()).unwrap_or("");
        RequiredText { text: longest.to_string(), any_case }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn the_required_text_is_in_every_match() {
        let all = [
            ("zz+", "zz"),
            ("^Ahny.Sphere$", "Sphere"),
            ("a|b", ""),
            ("ab?", ""),
            ("(?i)a|b", ""),
            (".", ""),
        ];
        for (expression, text) in all {
            assert_eq!(
                TextPattern::new(expression, 1 << 16).unwrap().required().text,
                text,
                "{expression}"
            );
        }
        let any_case = TextPattern::new("(?i)^logIn.+", 1 << 16).unwrap();
        assert_eq!(any_case.required(), &RequiredText { text: "logIn".into(), any_case: true });
        assert!(
            any_case.is_match("LOGiN 1")
                && !any_case.is_match("LOGi 1")
                && !any_case.is_match("a login 1")
        );
        let pattern = TextPattern::new("^Ahny.Sphere$", 1 << 16).unwrap();
        assert!(
            pattern.is_match("Ahny Sphere")
                && !pattern.is_match("Ahny Sphere 1")
                && !pattern.is_match("Ahny")
        );
    }

    #[test]
    fn a_text_is_answered_as_before_however_many_there_were() {
        let pattern = TextPattern::new("^[0-7]+$", 1 << 16).unwrap();
        let long = "1".repeat(MAX_TEXT + 1);
        for _ in 0..3 {
            for n in 0..1000 {
                let octal = n.to_string().bytes().all(|digit| digit < b'8');
                assert_eq!(pattern.is_match(&n.to_string()), octal, "{n}");
            }
            assert!(
                pattern.is_match(&long)
                    && !pattern.is_match(&(long.clone() + "8"))
                    && !pattern.is_match("")
            );
        }
    }
}
