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

const SIGNS: [&str; 27] = [
    "<<", ">>", "==", "!=", "<=", ">=", "=>", "{", "}", "(", ")", "[", "]", ":", ",", "=", "<", ">", "+", "-", "*",
    "/", "&", "|", ".", "?", "%",
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

    /// The text between two offsets.
    pub(super) fn source(&self, from: usize, to: usize) -> &'a str {
        self.text.get(from..to).unwrap_or("")
    }

    /// The next token.
    pub(super) fn token(&mut self) -> Result<PlacedToken<'a>, TableError> {
        self.skip_blanks();
        let at = self.at;
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Ok(PlacedToken { tok: Tok::End, at });
        };
        if let Some(doc) = rest.strip_prefix("///") {
            let line = doc.lines().next().unwrap_or("");
            self.at += 3 + line.len();
            return Ok(PlacedToken { tok: Tok::Doc(line.trim()), at });
        }
        if first == '"' {
            return self.quoted();
        }
        if first.is_ascii_digit() {
            return self.integer();
        }
        if first == '\'' {
            return self.character();
        }
        if first.is_alphabetic() || first == '_' {
            let word = first_word(rest);
            if word.len() > MAX_NAME {
                return Err(self.error(at, format!("a name has {MAX_NAME} bytes at most")));
            }
            self.at += word.len();
            return Ok(PlacedToken { tok: Tok::Ident(word), at });
        }
        for sign in SIGNS {
            if sign.starts_with(first) && rest.starts_with(sign) {
                self.at += sign.len();
                return Ok(PlacedToken { tok: Tok::Sign(sign), at });
            }
        }
        Err(self.error(at, format!("the character `{first}` has no meaning here")))
    }

    /// The raw JSON object that begins at `at`, and the lexer goes on behind it.
    pub(super) fn json(&mut self, at: usize) -> Result<&'a str, TableError> {
        let mut depth = 0usize;
        let (mut quoted, mut escaped) = (false, false);
        for (i, byte) in self.text.get(at..).unwrap_or("").bytes().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                b'{' | b'[' if !quoted => depth += 1,
                b'}' | b']' if !quoted => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        self.at = at + i + 1;
                        return Ok(self.source(at, self.at));
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
            let trimmed = rest.trim_ascii_start().trim_start();
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
        let length = memchr::memchr3(b'"', b'\\', b'\n', inside.as_bytes()).unwrap_or(inside.len());
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
                        return Err(self.error(at + i, "only \\n, \\r, \\t, \\0, \\\" and \\\\ may follow a backslash"));
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
        let word = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or(rest);
        self.at += word.len();
        let digits = word.replace('_', "");
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

/// The letters, digits and underscores that a text begins with.
fn first_word(text: &str) -> &str {
    let ascii = text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
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
        std::iter::from_fn(|| lexer.token().ok().map(|token| token.tok).filter(|tok| *tok != Tok::End)).collect()
    }

    #[test]
    fn words_may_have_letters_of_any_alphabet_and_end_at_signs() {
        assert_eq!(tokens("größe_2: u8"), [Tok::Ident("größe_2"), Tok::Sign(":"), Tok::Ident("u8")]);
        assert_eq!(tokens("a\u{2003}\u{b}é…"), [Tok::Ident("a"), Tok::Ident("é")]);
    }

    #[test]
    fn quoted_texts_with_and_without_escapes() {
        assert_eq!(
            tokens(r#""" "plain é" "a\"b\n" 1"#),
            [Tok::Str("".into()), Tok::Str("plain é".into()), Tok::Str("a\"b\n".into()), Tok::Int(1),]
        );
        assert_eq!(tokens("\"open\n\""), []);
    }
}
