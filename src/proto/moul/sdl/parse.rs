//! The text of state descriptors (`.sdl` files), read as clients and servers read it.
//!
//! There is no written grammar. Three readers exist (the client's, DIRTSAND's, MOSS's), and each
//! tolerates other mistakes. This reader accepts everything that one of them accepts, and reports
//! the position of everything else. It knows nothing of records.

use super::descriptor::{Descriptor, NestedType, SimpleType, Variable, VariableKind};
use std::fmt;
use std::sync::Arc;

/// More descriptors than this in one file are an error: no real file comes near.
const MAX_DESCRIPTORS: usize = 4096;
/// More variables than this in one descriptor are an error.
const MAX_VARIABLES: usize = 65_535;

/// A mistake in a descriptor file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SdlError {
    /// The name the file was given under.
    pub file: String,
    /// The line, from 1. 0 means the whole file.
    pub line: u32,
    /// The column in characters, from 1. 0 means the whole file.
    pub column: u32,
    /// What the reader expected or found.
    pub text: String,
}

impl fmt::Display for SdlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            return write!(f, "{}: {}", self.file, self.text);
        }
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.text)
    }
}

impl std::error::Error for SdlError {}

/// The result of reading a file: everything before the first mistake, and the mistake.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parsed {
    /// The descriptors in the order of the file.
    pub descriptors: Vec<Descriptor>,
    /// Why reading ended early, if it did.
    pub error: Option<SdlError>,
}

/// Reads a descriptor file. Only errors use the name `file`.
pub fn parse(file: &str, text: &str) -> Parsed {
    let mut parser = Parser { tokens: Tokens::new(text), file, ahead: None };
    let mut parsed = Parsed::default();
    loop {
        match parser.parse_descriptor(&parsed.descriptors) {
            Ok(Some(descriptor)) => parsed.descriptors.push(descriptor),
            Ok(None) => return parsed,
            Err(error) => {
                parsed.error = Some(error);
                return parsed;
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum TokenText<'a> {
    Word(&'a str),
    Quoted(&'a str),
    Mark(char),
    End,
}

impl TokenText<'_> {
    fn is(self, word: &str) -> bool {
        matches!(self, TokenText::Word(found) if found.eq_ignore_ascii_case(word))
    }
}

impl fmt::Display for TokenText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenText::Word(word) => write!(f, "`{}`", word.escape_debug()),
            TokenText::Quoted(text) => write!(f, "\"{}\"", text.escape_debug()),
            TokenText::Mark(mark) => write!(f, "`{mark}`"),
            TokenText::End => f.write_str("the end of the file"),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    what: TokenText<'a>,
    line: u32,
    column: u32,
}

/// The text as words, quoted words and single marks. Blanks, `=` and `,` only separate, as in the
/// client.
struct Tokens<'a> {
    rest: &'a str,
    line: u32,
    column: u32,
}

impl<'a> Tokens<'a> {
    fn new(text: &'a str) -> Self {
        Tokens { rest: text.strip_prefix('\u{feff}').unwrap_or(text), line: 1, column: 1 }
    }

    fn next(&mut self) -> Token<'a> {
        self.skip();
        let line = self.line;
        let column = self.column;
        let what = match self.rest.chars().next() {
            None => TokenText::End,
            Some('"') => self.take_quoted(),
            Some(mark) if is_mark(mark) => {
                self.take(mark.len_utf8());
                TokenText::Mark(mark)
            }
            Some(_) => {
                let end = self
                    .rest
                    .find(|c| is_separator(c) || is_mark(c) || c == '#')
                    .unwrap_or(self.rest.len());
                TokenText::Word(self.take(end))
            }
        };
        Token { what, line, column }
    }

    fn take_quoted(&mut self) -> TokenText<'a> {
        self.take(1);
        let end = self.rest.find(['"', '\n']).unwrap_or(self.rest.len());
        let text = self.take(end);
        if self.rest.starts_with('"') {
            self.take(1);
        }
        TokenText::Quoted(text)
    }

    fn skip(&mut self) {
        loop {
            let end = self.rest.find(|c| !is_separator(c)).unwrap_or(self.rest.len());
            self.take(end);
            if !self.rest.starts_with('#') {
                return;
            }
            let end = self.rest.find('\n').unwrap_or(self.rest.len());
            self.take(end);
        }
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        for character in taken.chars() {
            if character == '\n' {
                self.line = self.line.saturating_add(1);
                self.column = 1;
            } else {
                self.column = self.column.saturating_add(1);
            }
        }
        taken
    }
}

fn is_separator(character: char) -> bool {
    character.is_whitespace() || character.is_control() || character == ',' || character == '='
}

fn is_mark(character: char) -> bool {
    matches!(character, '{' | '}' | '[' | ']' | '(' | ')' | ';' | '"')
}

struct Parser<'a> {
    tokens: Tokens<'a>,
    file: &'a str,
    ahead: Option<Token<'a>>,
}

impl<'a> Parser<'a> {
    fn next(&mut self) -> Token<'a> {
        self.ahead.take().unwrap_or_else(|| self.tokens.next())
    }

    fn peek(&mut self) -> Token<'a> {
        let token = self.next();
        self.ahead = Some(token);
        token
    }

    fn error_at(&self, token: Token<'_>, text: impl Into<String>) -> SdlError {
        SdlError {
            file: self.file.to_owned(),
            line: token.line,
            column: token.column,
            text: text.into(),
        }
    }

    fn error_expected(&self, token: Token<'_>, what: &str) -> SdlError {
        self.error_at(token, format!("expected {what}, found {}", token.what))
    }

    fn expect_mark(&mut self, mark: char) -> Result<(), SdlError> {
        let token = self.next();
        if token.what == TokenText::Mark(mark) {
            Ok(())
        } else {
            Err(self.error_expected(token, &format!("`{mark}`")))
        }
    }

    fn expect_word(&mut self, what: &str) -> Result<&'a str, SdlError> {
        let token = self.next();
        match token.what {
            TokenText::Word(word) => Ok(word),
            _ => Err(self.error_expected(token, what)),
        }
    }

    fn expect_number(&mut self, what: &str) -> Result<u32, SdlError> {
        let token = self.next();
        let number = match token.what {
            TokenText::Word(word) => parse_whole_part(word),
            _ => None,
        };
        number.ok_or_else(|| self.error_expected(token, what))
    }

    /// `STATEDESC name { VERSION n VAR … }`
    fn parse_descriptor(&mut self, before: &[Descriptor]) -> Result<Option<Descriptor>, SdlError> {
        while self.peek().what == TokenText::Mark(';') {
            self.next();
        }
        let token = self.next();
        if token.what == TokenText::End {
            return Ok(None);
        }
        if !token.what.is("STATEDESC") {
            // Before the first descriptor is read, the file may be of any kind and hold secrets, so
            // errors quote nothing from it.
            return Err(match before {
                [] => self
                    .error_at(token, "expected `STATEDESC`, with which a state descriptor begins"),
                _ => self.error_expected(token, "`STATEDESC`"),
            });
        }
        if before.len() >= MAX_DESCRIPTORS {
            return Err(self
                .error_at(token, format!("more than {MAX_DESCRIPTORS} descriptors in one file")));
        }
        let name = Arc::from(self.expect_word("the descriptor's name")?);
        self.expect_mark('{')?;
        let token = self.next();
        if !token.what.is("VERSION") {
            return Err(self.error_expected(token, "`VERSION`, which comes first in a descriptor"));
        }
        let version = self.expect_number("the version, a number from 0")?;
        let variables = self.parse_variables(before)?;
        Ok(Some(Descriptor::new(name, version, variables)))
    }

    fn parse_variables(&mut self, before: &[Descriptor]) -> Result<Vec<Variable>, SdlError> {
        let mut variables = Vec::new();
        loop {
            let token = self.next();
            match token.what {
                TokenText::Mark('}') => return Ok(variables),
                TokenText::Mark(';') => {}
                what if what.is("VAR") => {
                    if variables.len() >= MAX_VARIABLES {
                        return Err(self.error_at(
                            token,
                            format!("more than {MAX_VARIABLES} variables in one descriptor"),
                        ));
                    }
                    variables.push(self.parse_variable(before)?);
                }
                _ => {
                    return Err(
                        self.error_expected(token, "`VAR`, an option of a variable, or `}`")
                    );
                }
            }
        }
    }

    /// `type name[count] options`
    fn parse_variable(&mut self, before: &[Descriptor]) -> Result<Variable, SdlError> {
        let token = self.next();
        let TokenText::Word(word) = token.what else {
            return Err(self.error_expected(token, "a type"));
        };
        let kind = match word.strip_prefix('$') {
            Some(name) if !name.is_empty() => VariableKind::Nested(find_nested(name, before)),
            _ => match SimpleType::named(word) {
                Some(simple) => VariableKind::Simple(simple),
                None => {
                    return Err(self
                        .error_at(token, format!("no type is called `{}`", word.escape_debug())));
                }
            },
        };
        let name = Arc::from(self.expect_word("the variable's name")?);
        self.expect_mark('[')?;
        let count = match self.peek().what {
            TokenText::Mark(']') => 0,
            _ => self.expect_number("the number of elements, or `]`")?,
        };
        self.expect_mark(']')?;
        let mut variable = Variable {
            name,
            kind,
            count: (count > 0).then_some(count),
            default: None,
            options: Vec::new(),
        };
        self.parse_options(&mut variable)?;
        Ok(variable)
    }

    fn parse_options(&mut self, variable: &mut Variable) -> Result<(), SdlError> {
        loop {
            match self.peek().what {
                what if what.is("DEFAULT") => {
                    self.next();
                    variable.default = self.parse_default(variable)?;
                }
                what if what.is("DEFAULTOPTION") || what.is("DISPLAYOPTION") => {
                    self.next();
                    let option = Arc::from(self.expect_word("an option's name")?);
                    variable.options.push(option);
                }
                TokenText::Word(word)
                    if ["INTERNAL", "PHASED"].iter().any(|old| word.eq_ignore_ascii_case(old)) =>
                {
                    self.next();
                    variable.options.push(Arc::from(word));
                }
                TokenText::Mark(';') => {
                    self.next();
                }
                _ => return Ok(()),
            }
        }
    }

    /// A value, or values in parentheses. Clients take a vector's values without parentheses too.
    fn parse_default(&mut self, variable: &Variable) -> Result<Option<Arc<str>>, SdlError> {
        let parts = match &variable.kind {
            VariableKind::Simple(simple) => simple.parts().len().max(1),
            VariableKind::Nested(_) => 1,
        };
        let mut values: Vec<&str> = Vec::new();
        let open = self.peek().what == TokenText::Mark('(');
        if open {
            self.next();
        }
        while open || values.len() < parts {
            let token = self.peek();
            match token.what {
                TokenText::Word(word) if open || values.is_empty() || is_number_like(word) => {
                    values.push(word)
                }
                TokenText::Quoted(text) if open || values.is_empty() => values.push(text),
                TokenText::Mark(')') if open => {
                    self.next();
                    break;
                }
                _ if open || values.is_empty() => {
                    return Err(self.error_expected(token, "a default value"));
                }
                _ => break,
            }
            self.next();
        }
        Ok(Some(Arc::from(values.join(","))))
    }
}

fn find_nested(name: &str, before: &[Descriptor]) -> NestedType {
    let same = before.iter().filter(|descriptor| descriptor.name.eq_ignore_ascii_case(name));
    NestedType { name: Arc::from(name), seen: same.map(|descriptor| descriptor.version).max() }
}

/// The integer part of a decimal number: readers cut off the rest.
fn parse_whole_part(word: &str) -> Option<u32> {
    let (whole, rest) = word.split_at_checked(word.find('.').unwrap_or(word.len()))?;
    let fraction = rest.strip_prefix('.').unwrap_or("");
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    whole.parse().ok()
}

fn is_number_like(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.'))
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
