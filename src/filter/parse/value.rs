//! Parses the right side of conditions, and finds values that the left side can never have.

use std::ops::Range;

use super::super::hints;
use super::super::keys::{KeyKind, KeyParts, RecordKey};
use super::super::literal::{Literal, NumberLiteral};
use super::super::names::{Unknown, Vocabulary, vocabulary_of};
use super::super::{Check, CompareOp, SetItem};
use super::{FilterParser, ParseResult, PathTarget, WORDS};
#[cfg(feature = "regex")]
use regex::RegexBuilder;

/// The most bytes that a compiled regular expression may take. `\w` with all letters takes about
/// 20 KiB, so that a word repeated up to a thousand times is refused.
#[cfg(feature = "regex")]
const REGEX_SIZE: usize = 1 << 20;
/// The most bytes that a regular expression may remember while it searches: what it remembers
/// makes it faster.
#[cfg(feature = "regex")]
const REGEX_MEMORY: usize = 1 << 20;

/// What a condition asks of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Compare(CompareOp),
    /// The operator that looks into texts.
    Text(&'static str),
    Flag,
}

impl FilterParser<'_> {
    /// A value, which must be one that the values at the path can have.
    pub(super) fn value(&mut self, target: PathTarget, asked: Asked) -> ParseResult<Literal> {
        let (literal, place) = self.raw_value(false)?;
        self.check(&literal, &place, target, asked)?;
        Ok(literal)
    }

    fn check(
        &mut self,
        literal: &Literal,
        place: &Range<usize>,
        target: PathTarget,
        asked: Asked,
    ) -> ParseResult<()> {
        let result = match (target, asked) {
            (PathTarget::Key(key), Asked::Flag) => {
                Err(format!("`has` asks which flags are set; `{}` has none", key.name))
            }
            (PathTarget::Severity, Asked::Flag) => {
                Err("`has` asks which flags are set; a severity has none".into())
            }
            (PathTarget::Other | PathTarget::Anything, Asked::Flag) => {
                return self.check_flag(literal, place);
            }
            (PathTarget::Key(key), Asked::Text(operator)) => self.check_searched(key, operator),
            (_, Asked::Text(_)) => Ok(()),
            (PathTarget::Key(key), Asked::Compare(comparison)) => match vocabulary_of(key) {
                Some(vocabulary) => return self.check_word(literal, place, vocabulary),
                None => check_key(literal, key, comparison),
            },
            (PathTarget::Severity, _) => {
                return self.check_word(literal, place, Vocabulary::Severity);
            }
            (PathTarget::Other | PathTarget::Anything, _) => {
                return self.check_field_value(literal, place);
            }
        };
        result.map_err(|text| self.wrong(place.clone(), text))
    }

    fn check_searched(&self, key: &RecordKey, operator: &str) -> Result<(), String> {
        match key.kind {
            KeyKind::Number => {
                Err(format!("`{}` is a number; `{operator}` looks into texts", key.name))
            }
            KeyKind::Composite => Err(composite(key)),
            _ => Ok(()),
        }
    }

    fn check_flag(&mut self, literal: &Literal, place: &Range<usize>) -> ParseResult<()> {
        match literal.number {
            Some(NumberLiteral::Int(0)) => Err(self.wrong(
                place.clone(),
                "no bit is set in 0; that no flag is set is asked with `== 0`",
            )),
            Some(NumberLiteral::Int(1..)) => Ok(()),
            Some(_) => {
                Err(self.wrong(place.clone(), "flags are whole numbers: has 0x1001, or has kName"))
            }
            None => self.check_word(literal, place, Vocabulary::Flag),
        }
    }

    fn check_word(
        &mut self,
        literal: &Literal,
        place: &Range<usize>,
        vocabulary: Vocabulary,
    ) -> ParseResult<()> {
        let Err(Unknown { text, near }) = self.names.word(&literal.raw, vocabulary, literal.quoted)
        else {
            return Ok(());
        };
        if let Some(hint) = hints::wildcard(&literal.raw) {
            return Err(self.wrong(place.clone(), format!("{text}{hint}")));
        }
        let error = self.wrong(place.clone(), text);
        if near {
            return Err(error);
        }
        self.remarks.doubts.push(error);
        Ok(())
    }

    fn check_field_value(&mut self, literal: &Literal, place: &Range<usize>) -> ParseResult<()> {
        if !literal.quoted && !literal.is_no_word() {
            return self.check_word(literal, place, Vocabulary::EnumValue);
        }
        if literal.quoted
            && let Some(text) = self.names.misspelt_symbol(&literal.raw)
        {
            let doubt = self.wrong(place.clone(), text);
            self.remarks.doubts.push(doubt);
        }
        Ok(())
    }

    /// The values after `in`: in braces, or a network without them.
    pub(super) fn set(&mut self, target: PathTarget) -> ParseResult<Vec<SetItem>> {
        let asked = Asked::Compare(CompareOp::Eq);
        self.skip_blanks();
        let at = self.at;
        if !self.take("{") {
            let network = self.raw_value(false).ok().filter(|(literal, _)| literal.host.is_some());
            self.at = at;
            return match network {
                Some(_) => Ok(vec![SetItem::One(self.value(target, asked)?)]),
                None => {
                    let text =
                        "a set is written in braces: service in {auth, game}, frame in {1..5}";
                    Err(self.wrong(at..at + 1, text))
                }
            };
        }
        let mut items = Vec::new();
        loop {
            self.skip_blanks();
            let (literal, place) = self.raw_value(false)?;
            items.push(match range_of(&literal) {
                Some((from, to)) => {
                    self.check(&from, &place, target, Asked::Compare(CompareOp::Ge))?;
                    self.check(&to, &place, target, Asked::Compare(CompareOp::Le))?;
                    if from.is_above(&to) {
                        return Err(
                            self.wrong(place, "this range ends before it begins: nothing is in it")
                        );
                    }
                    SetItem::Range(from, to)
                }
                None => {
                    self.check(&literal, &place, target, asked)?;
                    SetItem::One(literal)
                }
            });
            self.skip_blanks();
            if self.take("}") {
                return Ok(items);
            }
            if !self.take(",") {
                let end = (self.at + 1).min(self.text.len());
                return Err(self.wrong(
                    self.at..end,
                    "a comma or the closing brace of the set is missing here",
                ));
            }
        }
    }

    /// The pattern after `matches`.
    pub(super) fn matches(&mut self, target: PathTarget) -> ParseResult<Check> {
        let (literal, place) = self.raw_value(true)?;
        self.check(&literal, &place, target, Asked::Text("matches"))?;
        self.regex(&literal.raw, place)
    }

    #[cfg(feature = "regex")]
    fn regex(&self, text: &str, place: Range<usize>) -> ParseResult<Check> {
        let mut builder = RegexBuilder::new(text);
        let built = builder.size_limit(REGEX_SIZE).dfa_size_limit(REGEX_MEMORY).build();
        built.map(|regex| Check::Matches(regex.into())).map_err(|error| {
            let message = match error {
                regex::Error::CompiledTooBig(_) => "this regular expression is too large: its \
                                                    repetitions, written out, take more than 1 \
                                                    MiB; `\\w` and other classes are smaller with \
                                                    (?-u), which knows ASCII alone"
                    .to_string(),
                error => {
                    let text = error.to_string();
                    let last = text.lines().last().unwrap_or("").trim_start_matches("error: ");
                    format!("no regular expression: {last}")
                }
            };
            self.wrong(place, message)
        })
    }

    #[cfg(not(feature = "regex"))]
    fn regex(&self, _text: &str, place: Range<usize>) -> ParseResult<Check> {
        Err(self
            .wrong(place, "this build knows no regular expressions (the feature `regex` is off)"))
    }

    /// A value, quoted or not, and its place. With `regex`, backslashes in quotes are kept for the
    /// regular expression.
    fn raw_value(&mut self, regex: bool) -> ParseResult<(Literal, Range<usize>)> {
        self.skip_blanks();
        let at = self.at;
        if self.rest().starts_with(['"', '\'']) {
            let text = self.quoted(regex)?;
            return Ok((Literal::new(text, true), at..self.at));
        }
        let rest = self.rest();
        let end = rest
            .find(|c: char| c.is_whitespace() || "(){},\"'=<>!&|".contains(c))
            .unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or("");
        self.at += end;
        if word.is_empty() || WORDS.contains(&word) {
            return Err(
                self.wrong(at..self.at.max(at + 1).min(self.text.len()), "a value is missing here")
            );
        }
        if word.starts_with("fields.") || word.starts_with("*.") {
            let text =
                "expected a value on the right: two fields cannot be compared with each other";
            return Err(self.wrong(at..self.at, text));
        }
        Ok((Literal::new(word.to_string(), false), at..self.at))
    }

    /// A text in quotes. In double quotes a backslash escapes quotes and itself, and begins `\n`,
    /// `\t` and `\uXXXX`; before any other character, and in single quotes, it is a backslash.
    pub(in crate::filter) fn quoted(&mut self, regex: bool) -> ParseResult<String> {
        let start = self.at;
        let mut chars = self.rest().char_indices();
        let quote = chars.next().map_or('"', |c| c.1);
        let mut out = String::new();
        while let Some((i, c)) = chars.next() {
            if c == quote {
                self.at = start + i + 1;
                return Ok(out);
            }
            if c != '\\' || quote == '\'' {
                out.push(c);
                continue;
            }
            match chars.next().map(|c| c.1) {
                Some('"') => out.push('"'),
                Some('\\') if regex => {
                    out.push_str(if chars.as_str().starts_with('\\') { "\\\\" } else { "\\" })
                }
                Some('\\') => out.push('\\'),
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('u') if !regex => {
                    let code =
                        chars.as_str().get(..4).and_then(|hex| u32::from_str_radix(hex, 16).ok());
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
        Err(self.wrong(start..self.text.len(), "this text is never closed: a quote is missing"))
    }
}

/// Whether a record's key can have this value.
fn check_key(literal: &Literal, key: &RecordKey, comparison: CompareOp) -> Result<(), String> {
    let raw = &literal.raw;
    let ordered = !matches!(comparison, CompareOp::Eq | CompareOp::Ne);
    match key.kind {
        KeyKind::Number if literal.number.is_none() => {
            let hint = hints::misread_literal(key.name, raw).unwrap_or_default();
            Err(format!("`{}` is a number, not `{raw}`{hint}", key.name))
        }
        // Spans of time are below 0 where the frames of a capture are not in order.
        KeyKind::Number
            if !key.name.ends_with("_ms")
                && literal.number.is_some_and(|number| is_below_all(number, comparison)) =>
        {
            Err(format!("`{}` is never below 0: this never holds", key.name))
        }
        KeyKind::Truth if literal.truth().is_none() => {
            Err(format!("`{}` is true or absent: it is asked for by its name alone", key.name))
        }
        KeyKind::Time if literal.time.is_none() => Err(format!(
            "`{raw}` is no time; one is written 2026-11-20T09:30:27Z, or 09:30 for that time of \
             any day"
        )),
        KeyKind::Host => match (literal.host, literal.number) {
            (Some(host), _) if ordered && !host.is_single() => {
                Err(format!("the network `{raw}` has no order; use == or in"))
            }
            (Some(_), _) | (None, Some(NumberLiteral::Int(0..=0xffff))) => Ok(()),
            _ => Err(format!(
                "`{raw}` is no address; one is written 127.0.0.1, 10.0.0.0/8, :14617 or \
                 127.0.0.1:14617"
            )),
        },
        // Hex of some events, an object of others: only the object's numbers have an order.
        KeyKind::Text if ordered && matches!(key.parts, KeyParts::Object(_)) => Err(composite(key)),
        KeyKind::Composite => Err(composite(key)),
        _ => Ok(()),
    }
}

/// Whether a comparison holds for no number from 0 on.
fn is_below_all(number: NumberLiteral, comparison: CompareOp) -> bool {
    match comparison {
        CompareOp::Eq | CompareOp::Le => number.float() < 0.0,
        CompareOp::Lt => number.float() <= 0.0,
        CompareOp::Ne | CompareOp::Gt | CompareOp::Ge => false,
    }
}

fn composite(key: &RecordKey) -> String {
    let example = match key.name {
        "fields" => "fields.trans_id",
        "problems" => "problems[*].text",
        "refused" => "refused.name",
        "names" => "names[*].name",
        "bytes" => "bytes.payload",
        _ => return format!("`{0}` is a list; name a part: {0}[*].record", key.name),
    };
    format!("`{}` is no single value; name a part: {example}", key.name)
}

/// The ends of a range of numbers or times such as `1..5`.
fn range_of(literal: &Literal) -> Option<(Literal, Literal)> {
    if literal.quoted {
        return None;
    }
    let (from, to) = literal.raw.split_once("..")?;
    let ends = [from, to.trim_start_matches('=')].map(|end| Literal::new(end.to_string(), false));
    let [from, to] = ends;
    let numbers = from.number.is_some() && to.number.is_some();
    let times = from.time.is_some() && to.time.is_some();
    (numbers || times).then_some((from, to))
}
