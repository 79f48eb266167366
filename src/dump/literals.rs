//! Bytes as programming languages write them: lists of numbers, and strings with escapes.

use super::{Dump, DumpError, DumpForm};

/// The most bytes of text with strings or lists.
const MOST: usize = 4 << 20;

const TOO_LONG: &str = "strings and lists of numbers have at most 4 MiB of text";
const NO_NUMBER: &str = "is no number of a byte";
const NO_ESCAPE: &str = "is no escape of a byte";

/// A character with its place.
#[derive(Clone, Copy)]
struct Placed {
    c: char,
    line: u32,
    column: u32,
}

impl Placed {
    fn mistake(self, why: &'static str) -> DumpError {
        DumpError::new(self.line as usize, self.column as usize, why)
    }
}

fn placed(text: &str) -> Vec<Placed> {
    let lines = text.lines().enumerate();
    lines
        .flat_map(|(at, line)| {
            let characters = line.chars().chain(['\n']).enumerate();
            characters.map(move |(column, c)| Placed {
                c,
                line: at as u32 + 1,
                column: column as u32 + 1,
            })
        })
        .collect()
}

/// Reads string literals, or escapes without quotes; `None` for a text in another form.
pub(super) fn read_strings(text: &str) -> Option<Result<Dump, DumpError>> {
    let start = text.trim_start();
    let of_bytes = ["b'", "b\"", "B'", "B\""].iter().any(|prefix| start.starts_with(prefix));
    if !of_bytes && !text.contains("\\x") && !start.starts_with('"') {
        return None;
    }
    if text.len() > MOST {
        return Some(Err(DumpError::new(0, 0, TOO_LONG)));
    }
    let reader = StringReader { text: &placed(text), at: 0 };
    Some(reader.read(text.contains(['"', '\''])))
}

struct StringReader<'a> {
    text: &'a [Placed],
    at: usize,
}

impl StringReader<'_> {
    fn next(&mut self) -> Option<Placed> {
        let next = self.text.get(self.at).copied();
        self.at += usize::from(next.is_some());
        next
    }

    fn peek(&self) -> Option<char> {
        self.text.get(self.at).map(|placed| placed.c)
    }

    /// Reads all literals. Each `b'…'` at the beginning of a line is a piece; others are one.
    fn read(mut self, quoted: bool) -> Result<Dump, DumpError> {
        let mut pieces: Vec<Vec<u8>> = Vec::new();
        let mut goes_on = false;
        while let Some(placed) = self.next() {
            match placed.c {
                '"' | '\'' if quoted => {
                    let of_bytes = self
                        .at
                        .checked_sub(2)
                        .and_then(|before| self.text.get(before))
                        .is_some_and(|before| matches!(before.c, 'b' | 'B'));
                    let bytes = self.literal(placed)?;
                    match pieces.last_mut().filter(|_| !of_bytes || goes_on) {
                        Some(piece) => piece.extend(bytes),
                        None => pieces.push(bytes),
                    }
                    goes_on = true;
                }
                '\n' => goes_on &= pieces.is_empty(),
                // The literal goes on in the next line.
                '\\' if quoted && self.peek() == Some('\n') => {
                    self.at += 1;
                }
                '\\' if !quoted => {
                    let byte = self.escape(placed)?;
                    match pieces.last_mut().filter(|_| goes_on) {
                        Some(piece) => piece.extend(byte),
                        None => pieces.push(byte.into_iter().collect()),
                    }
                    goes_on = true;
                }
                c if !quoted && !c.is_whitespace() => {
                    let mut buffer = [0; 4];
                    let bytes = c.encode_utf8(&mut buffer).as_bytes();
                    match pieces.last_mut().filter(|_| goes_on) {
                        Some(piece) => piece.extend_from_slice(bytes),
                        None => pieces.push(bytes.to_vec()),
                    }
                    goes_on = true;
                }
                _ => {}
            }
        }
        Ok(Dump { form: DumpForm::Literal, pieces })
    }

    /// The bytes of a literal, whose opening quote was read.
    fn literal(&mut self, quote: Placed) -> Result<Vec<u8>, DumpError> {
        let mut bytes = Vec::new();
        while let Some(placed) = self.next() {
            match placed.c {
                c if c == quote.c => return Ok(bytes),
                '\\' => bytes.extend(self.escape(placed)?),
                c => {
                    let mut buffer = [0; 4];
                    bytes.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
                }
            }
        }
        Err(quote.mistake("is a quote that is never closed"))
    }

    /// The byte of an escape, whose backslash was read; none for a line that goes on.
    fn escape(&mut self, backslash: Placed) -> Result<Option<u8>, DumpError> {
        let mistake = backslash.mistake(NO_ESCAPE);
        let kind = self.next().ok_or(mistake.clone())?.c;
        Ok(Some(match kind {
            'x' => {
                let digits = [self.next(), self.next()];
                let mut value = 0;
                for digit in digits {
                    let digit = digit.and_then(|placed| placed.c.to_digit(16));
                    value = value * 16 + digit.ok_or(mistake.clone())?;
                }
                value as u8
            }
            '0'..='7' => {
                let mut value = kind.to_digit(8).unwrap_or(0);
                for _ in 0..2 {
                    let Some(digit) = self.peek().and_then(|c| c.to_digit(8)) else { break };
                    value = value * 8 + digit;
                    self.at += 1;
                }
                u8::try_from(value).map_err(|_| mistake)?
            }
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'a' => 7,
            'b' => 8,
            'v' => 11,
            'f' => 12,
            'e' => 27,
            '\\' | '"' | '\'' | '?' => kind as u8,
            '\n' => return Ok(None),
            _ => return Err(mistake),
        }))
    }
}

/// Reads lists of numbers; `None` for a text in another form.
pub(super) fn read_arrays(text: &str) -> Option<Result<Dump, DumpError>> {
    if !text.contains("0x") && !text.contains("0X") && !text.contains(['{', '[']) {
        return None;
    }
    if text.len() > MOST {
        return Some(Err(DumpError::new(0, 0, TOO_LONG)));
    }
    let text = placed(text);
    let bare = without_comments(&text);
    let hex = bare
        .windows(2)
        .any(|pair| matches!(pair, [zero, x] if zero.c == '0' && matches!(x.c, 'x' | 'X')));
    let has = |wanted: char| bare.iter().any(|placed| placed.c == wanted);
    let brackets = if has('{') {
        Some(('{', '}'))
    } else if has('[') {
        Some(('[', ']'))
    } else {
        None
    };
    if !hex && brackets.is_none() {
        return None;
    }
    let pieces = match brackets {
        Some(brackets) => within(&bare, brackets),
        None => lines(&bare),
    };
    let read = pieces.into_iter().map(|piece| numbers(&piece)).collect::<Result<Vec<_>, _>>();
    Some(read.map(|pieces| Dump {
        form: if hex { DumpForm::Array } else { DumpForm::DecimalArray },
        pieces: pieces.into_iter().filter(|piece| !piece.is_empty()).collect(),
    }))
}

/// A text with blanks in the place of its comments.
fn without_comments(text: &[Placed]) -> Vec<Placed> {
    let mut bare = Vec::with_capacity(text.len());
    let mut ends: Option<[char; 2]> = None;
    let mut last = ' ';
    for (at, placed) in text.iter().enumerate() {
        let next = text.get(at + 1).map_or(' ', |next| next.c);
        match ends {
            Some([first, second]) => {
                if placed.c == second && (first == ' ' || last == first) {
                    ends = None;
                    bare.extend(Some(*placed).filter(|placed| placed.c == '\n'));
                    last = ' ';
                    continue;
                }
                last = placed.c;
            }
            None if placed.c == '/' && next == '*' => (ends, last) = (Some(['*', '/']), ' '),
            None if placed.c == '/' && next == '/' => ends = Some([' ', '\n']),
            None => bare.push(*placed),
        }
    }
    bare
}

/// What is within each pair of brackets, the outer ones where they are nested.
fn within(text: &[Placed], (open, close): (char, char)) -> Vec<Vec<Placed>> {
    let mut pieces: Vec<Vec<Placed>> = Vec::new();
    let mut depth = 0_usize;
    for placed in text {
        if placed.c == open {
            if depth == 0 {
                pieces.push(Vec::new());
            }
            depth += 1;
        } else if placed.c == close {
            depth = depth.saturating_sub(1);
        } else if let Some(piece) = pieces.last_mut().filter(|_| depth > 0) {
            piece.push(*placed);
        }
    }
    pieces
}

/// The lines of a list without brackets. One that ends with a comma goes on in the next.
fn lines(text: &[Placed]) -> Vec<Vec<Placed>> {
    let mut pieces: Vec<Vec<Placed>> = Vec::new();
    let mut goes_on = false;
    for line in text.split(|placed| placed.c == '\n') {
        let Some(last) = line.iter().rfind(|placed| !placed.c.is_whitespace()) else { continue };
        match pieces.last_mut().filter(|_| goes_on) {
            Some(piece) => piece.extend_from_slice(line),
            None => pieces.push(line.to_vec()),
        }
        goes_on = last.c == ',';
    }
    pieces
}

/// The bytes of a list.
fn numbers(list: &[Placed]) -> Result<Vec<u8>, DumpError> {
    let mut bytes = Vec::new();
    let words = list.split(|placed| placed.c.is_whitespace() || matches!(placed.c, ',' | ';'));
    for word in words.filter(|word| !word.is_empty()) {
        let text: String = word.iter().map(|placed| placed.c).collect();
        // A cast of Java's or C's.
        let number = text.rsplit(')').next().unwrap_or("");
        if number.is_empty() {
            continue;
        }
        let Some(first) = word.first() else { continue };
        let mistake = |why| first.mistake(why);
        match number.strip_prefix("0x").or_else(|| number.strip_prefix("0X")) {
            Some(digits) => {
                let digits = digits.trim_end_matches("u8").trim_end_matches(['u', 'U']);
                let values: Option<Vec<u8>> =
                    digits.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
                let values =
                    values.filter(|values| !values.is_empty()).ok_or(mistake(NO_NUMBER))?;
                match values.as_slice() {
                    [one] => bytes.push(*one),
                    several if several.len().is_multiple_of(2) => {
                        bytes.extend(
                            several.chunks(2).map(|pair| {
                                pair.iter().fold(0_u8, |byte, digit| byte << 4 | digit)
                            }),
                        );
                    }
                    _ => return Err(mistake("is more than a byte, and no whole number of bytes")),
                }
            }
            None => {
                let number = number.strip_suffix("u8").unwrap_or(number);
                let value: i16 = number.parse().map_err(|_| mistake(NO_NUMBER))?;
                // Java's bytes are signed.
                let byte =
                    u8::try_from(value).or_else(|_| i8::try_from(value).map(i8::cast_unsigned));
                bytes.push(byte.map_err(|_| mistake("is more than a byte"))?);
            }
        }
    }
    Ok(bytes)
}
