//! Table text into tokens. Knows characters, not the language.

use std::borrow::Cow;

use super::super::error::TableError;

/// What a token is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Tok<'a> {
    /// A name or a keyword.
    Ident(&'a str),
    /// An integer.
    Int(u64),
    /// A quoted text, escapes resolved.
    Str(Cow<'a, str>),
    /// A sign of one or two characters.
    Sign(&'static str),
    /// A `///` line, without the slashes.
    Doc(&'a str),
    /// The end of the file.
    End,
}

impl Tok<'_> {
    /// How an error names it.
    pub(super) fn shown(&self) -> String {
        match self {
            Tok::Ident(s) => format!("`{s}`"),
            Tok::Int(n) => format!("the number {n}"),
            Tok::Str(s) => format!("the text \"{}\"", s.chars().take(60).collect::<String>()),
            Tok::Sign(s) => format!("`{s}`"),
            Tok::Doc(_) => "an explanation (///)".into(),
            Tok::End => "the end of the file".into(),
        }
    }
}

/// A token and where it begins (byte offset).
#[derive(Debug, Clone)]
pub(super) struct PlacedToken<'a> {
    pub(super) tok: Tok<'a>,
    pub(super) at: usize,
}

const SIGNS_OF_TWO: [&str; 7] = ["<<", ">>", "==", "!=", "<=", ">=", "=>"];

const SIGNS: [&str; 21] = [
    "{", "}", "(", ")", "[", "]", ":", ",", "=", "<", ">", "+", "-", "*", "/", "&", "|", "^", ".",
    "?", "%",
];

/// How many bytes a name may have.
const MAX_NAME: usize = 255;

/// Reads tokens one at a time.
pub(super) struct Lexer<'a> {
    file: &'a str,
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    /// Begins at the start of a file.
    pub(super) fn new(file: &'a str, text: &'a str) -> Self {
        let at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Lexer { file, text, at }
    }

    /// An error at an offset of this file.
    pub(super) fn error(&self, at: usize, message: impl Into<String>) -> TableError {
        TableError::at(self.file, self.text, at, message)
    }

    /// The next token.
    pub(super) fn token(&mut self) -> Result<PlacedToken<'a>, TableError> {
        self.skip_blanks();
        let at = self.at;
        let rest = self.rest();
        match rest.bytes().next() {
            None => return Ok(PlacedToken { tok: Tok::End, at }),
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => {}
            Some(0x80..) if rest.starts_with(char::is_alphabetic) => {}
            Some(b'/') if rest.starts_with("///") => return Ok(self.explanation()),
            Some(b'"') => return self.quoted(),
            Some(b'0'..=b'9') => return self.integer(),
            Some(b'\'') => return self.character(),
            Some(first) => return self.sign(first),
        }
        let word = first_word(rest);
        if word.len() > MAX_NAME {
            return Err(self.error(at, format!("a name has {MAX_NAME} bytes at most")));
        }
        self.at += word.len();
        Ok(PlacedToken { tok: Tok::Ident(word), at })
    }

    /// A `///` line.
    fn explanation(&mut self) -> PlacedToken<'a> {
        let at = self.at;
        let rest = self.rest();
        let end = rest.find('\n').unwrap_or(rest.len());
        let line = rest.get(3..end).unwrap_or("");
        self.at += end;
        PlacedToken { tok: Tok::Doc(line.trim()), at }
    }

    fn sign(&mut self, first: u8) -> Result<PlacedToken<'a>, TableError> {
        let at = self.at;
        let second = self.rest().as_bytes().get(1);
        let two = SIGNS_OF_TWO.iter().find(|sign| {
            sign.as_bytes().first() == Some(&first) && sign.as_bytes().get(1) == second
        });
        let Some(sign) =
            two.or_else(|| SIGNS.iter().find(|sign| sign.as_bytes().first() == Some(&first)))
        else {
            return self.meaningless();
        };
        self.at += sign.len();
        Ok(PlacedToken { tok: Tok::Sign(sign), at })
    }

    fn meaningless(&self) -> Result<PlacedToken<'a>, TableError> {
        let first = self.rest().chars().next().unwrap_or_default();
        Err(self.error(self.at, format!("the character `{first}` has no meaning here")))
    }

    /// Skips the JSON object that begins at `at`. Returns its end.
    pub(super) fn skip_json(&mut self, at: usize) -> Result<usize, TableError> {
        let bytes = self.text.as_bytes().get(at..).unwrap_or(&[]);
        let mut depth = 0usize;
        let mut i = 0;
        while let Some(byte) = bytes.get(i) {
            i += 1;
            match byte {
                b'"' => i = behind_text(bytes, i),
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        self.at = at + i;
                        return Ok(self.at);
                    }
                }
                _ => {}
            }
        }
        Err(self.error(at, "this JSON object is not closed before the end of the file"))
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let mut trimmed = rest.trim_ascii_start();
            if trimmed.bytes().next().is_some_and(|first| first == b'\x0b' || first >= 0x80) {
                trimmed = trimmed.trim_start();
            }
            self.at += rest.len() - trimmed.len();
            if trimmed.starts_with("//") && !trimmed.starts_with("///") {
                self.at += trimmed.find('\n').unwrap_or(trimmed.len());
            } else {
                return;
            }
        }
    }

    fn quoted(&mut self) -> Result<PlacedToken<'a>, TableError> {
        let at = self.at;
        let inside = self.rest().get(1..).unwrap_or("");
        let length = inside.find(['"', '\\', '\n']).unwrap_or(inside.len());
        if let Some((text, rest)) = inside.split_at_checked(length)
            && rest.starts_with('"')
        {
            self.at += length + 2;
            return Ok(PlacedToken { tok: Tok::Str(Cow::Borrowed(text)), at });
        }
        self.escaped()
    }

    /// A quoted text with escapes.
    fn escaped(&mut self) -> Result<PlacedToken<'a>, TableError> {
        let at = self.at;
        let mut out = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((i, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += i + 1;
                    return Ok(PlacedToken { tok: Tok::Str(Cow::Owned(out)), at });
                }
                '\n' => break,
                '\\' => match chars.next() {
                    Some((_, 'n')) => out.push('\n'),
                    Some((_, 'r')) => out.push('\r'),
                    Some((_, 't')) => out.push('\t'),
                    Some((_, '0')) => out.push('\0'),
                    Some((_, c @ ('"' | '\\'))) => out.push(c),
                    _ => {
                        return Err(self.error(
                            at + i,
                            "only \\n, \\r, \\t, \\0, \\\" and \\\\ may follow a backslash",
                        ));
                    }
                },
                c => out.push(c),
            }
        }
        Err(self.error(at, "this text has no closing quote on its line"))
    }

    /// A character in single quotes is its number.
    fn character(&mut self) -> Result<PlacedToken<'a>, TableError> {
        let at = self.at;
        let mut chars = self.rest().chars().skip(1);
        if let (Some(c @ ' '..='~'), Some('\'')) = (chars.next(), chars.next()) {
            self.at += 3;
            return Ok(PlacedToken { tok: Tok::Int(u64::from(c)), at });
        }
        Err(self.error(at, "single quotes hold one ASCII character: '+'"))
    }

    fn integer(&mut self) -> Result<PlacedToken<'a>, TableError> {
        let at = self.at;
        let rest = self.rest();
        let word = rest.get(..ascii_word(rest)).unwrap_or(rest);
        self.at += word.len();
        let digits = if word.contains('_') {
            Cow::Owned(word.replace('_', ""))
        } else {
            Cow::Borrowed(word)
        };
        let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => digits.parse(),
        };
        match value {
            Ok(n) => Ok(PlacedToken { tok: Tok::Int(n), at }),
            Err(_) => Err(self.error(at, format!("`{word}` is no integer of 64 bits (12, 0x1f)"))),
        }
    }
}

/// The offset behind the closing quote of a JSON string whose content begins at `i`.
fn behind_text(bytes: &[u8], mut i: usize) -> usize {
    while let Some(byte) = bytes.get(i) {
        i += match byte {
            b'"' => return i + 1,
            b'\\' => 2,
            _ => 1,
        };
    }
    i
}

/// How many ASCII letters, digits and underscores a text begins with.
fn ascii_word(text: &str) -> usize {
    text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count()
}

/// The letters, digits and underscores that a text begins with.
fn first_word(text: &str) -> &str {
    let ascii = ascii_word(text);
    let rest = text.get(ascii..).unwrap_or("");
    let further = match rest.bytes().next() {
        Some(0x80..) => rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len()),
        _ => 0,
    };
    text.get(..ascii + further).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Tok<'_>> {
        let mut lexer = Lexer::new("file", text);
        std::iter::from_fn(|| {
            lexer.token().ok().map(|token| token.tok).filter(|tok| *tok != Tok::End)
        })
        .collect()
    }

    #[test]
    fn words_may_have_letters_of_any_alphabet_and_end_at_signs() {
        assert_eq!(
            tokens("größe_2: u8"),
            [Tok::Ident("größe_2"), Tok::Sign(":"), Tok::Ident("u8")]
        );
        assert_eq!(tokens("a\u{2003}\u{b}é…"), [Tok::Ident("a"), Tok::Ident("é")]);
    }

    #[test]
    fn signs_of_two_characters_come_before_those_of_one() {
        let signs = ["<<", "<", "=>", "==", "=", "%"].map(Tok::Sign);
        assert_eq!(tokens("<< < => === %"), [&signs[..1], &signs[1..]].concat());
        assert!(
            Lexer::new("file", "!").token().is_err()
                && Lexer::new("file", "\u{663}").token().is_err()
        );
    }

    #[test]
    fn json_ends_where_its_braces_do() {
        let text = r#"{ "a}\"": ["{", {}], "b": "\\" } next"#;
        assert_eq!(Lexer::new("file", text).skip_json(0).ok(), Some(text.len() - " next".len()));
        assert!(Lexer::new("file", r#"{ "a}"#).skip_json(0).is_err());
    }

    #[test]
    fn quoted_texts_with_and_without_escapes() {
        assert_eq!(
            tokens(r#""" "plain é" "a\"b\n" 1"#),
            [
                Tok::Str("".into()),
                Tok::Str("plain é".into()),
                Tok::Str("a\"b\n".into()),
                Tok::Int(1),
            ]
        );
        assert_eq!(tokens("\"open\n\""), []);
    }
}
