//! Hex dumps: lines of an offset, bytes, and the same bytes as text.

use super::{Dump, DumpError, DumpForm};

/// The most bytes in a line.
const MOST: usize = 256;

/// The most words of a line that are looked at.
const MOST_WORDS: usize = 1024;

/// The line above a dump without offsets.
const CONTENTS: &str = "Buffer contents:";

const NO_BYTE: &str = "is no byte of two hex digits";
const WORDS: &str = "words in the order of the machine that printed them; print bytes instead, as \
                     hexdump -C or xxd does";
const TOO_MANY: &str = "more bytes than a line of a dump has";
const OTHER_OFFSET: &str =
    "the offset does not follow the line before: lines are missing, or damaged";

/// A line that begins with an offset.
struct DumpLine<'a> {
    /// Its number, from 1.
    number: usize,
    /// The offset's digits.
    offset: &'a str,
    /// Whether a colon follows them.
    colon: bool,
    /// The character behind them.
    column: usize,
    rest: &'a str,
}

/// A word of a line.
#[derive(Clone, Copy)]
struct Word<'a> {
    text: &'a str,
    /// Its first character, from 1.
    column: usize,
    /// The place behind it in the line.
    end: usize,
    /// How many blanks are before it.
    blanks: usize,
}

/// Reads a dump; `None` for a text in another form.
pub(super) fn read(text: &str) -> Option<Result<Dump, DumpError>> {
    if text.lines().any(|line| line.trim() == CONTENTS) {
        return Some(read_contents(text));
    }
    let dumps = split(text)?;
    Some(read_dumps(&dumps))
}

/// Splits a text into dumps, each of which begins at its offset 0. `None` if it has none.
fn split(text: &str) -> Option<Vec<Vec<Option<DumpLine<'_>>>>> {
    let mut dumps: Vec<Vec<Option<DumpLine<'_>>>> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        if line.trim() == "*" {
            dumps.last_mut()?.push(None);
            continue;
        }
        let line = offset_line(line, at + 1)?;
        let begins = line.offset.bytes().all(|digit| digit == b'0');
        if begins {
            dumps.push(Vec::new());
        }
        dumps.last_mut()?.push(Some(line));
    }
    dumps.iter().any(|dump| is_dump(dump)).then_some(dumps)
}

/// A line with an offset, if it begins with one.
fn offset_line(line: &str, number: usize) -> Option<DumpLine<'_>> {
    let before = line.len() - line.trim_start().len();
    let start = line.get(before..)?;
    let digits = start.bytes().take_while(u8::is_ascii_hexdigit).count();
    if !(4..=16).contains(&digits) {
        return None;
    }
    let (offset, rest) = start.split_at_checked(digits)?;
    let colon = rest.starts_with(':');
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    if !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return None;
    }
    Some(DumpLine { number, offset, colon, column: before + digits + usize::from(colon) + 1, rest })
}

/// Whether lines are a dump, and not hex digits of which the first are zeros.
fn is_dump(lines: &[Option<DumpLine<'_>>]) -> bool {
    let Some(Some(first)) = lines.first() else { return false };
    let of_one_width =
        || lines.iter().flatten().all(|line| line.offset.len() == first.offset.len());
    if lines.len() > 1 {
        return of_one_width() && (lines.iter().any(Option::is_none) || radix_of(lines).is_some());
    }
    let words = words(first);
    let pairs = || words.iter().take_while(|word| word.blanks < 3).all(|word| word.text.len() == 2);
    let apart = words.first().is_some_and(|word| word.blanks > 1);
    first.colon || apart || first.offset.len() >= 6 && !words.is_empty() && pairs()
}

/// The base in which the offsets are written: the one in which the most of them follow the line
/// before. `None` if none does.
fn radix_of(lines: &[Option<DumpLine<'_>>]) -> Option<u32> {
    let follows = |radix: u32| {
        let follow = |pair: &[Option<DumpLine<'_>>]| {
            let [Some(one), Some(other)] = pair else { return false };
            let (Some(from), Some(to)) = (offset(one, radix), offset(other, radix)) else {
                return false;
            };
            let count = to.saturating_sub(from);
            count > 0 && count <= MOST && has_bytes(one, count)
        };
        lines.windows(2).filter(|pair| follow(pair)).count()
    };
    let best = [16, 8, 10].into_iter().rev().max_by_key(|radix| follows(*radix))?;
    (follows(best) > 0).then_some(best)
}

/// Whether a line has so many bytes, and no more but text. A damaged byte counts.
fn has_bytes(line: &DumpLine<'_>, count: usize) -> bool {
    let words = words(line);
    let mut read = LineBytes::default();
    for (at, word) in words.iter().enumerate() {
        if !is_hex(word.text) || !word.text.len().is_multiple_of(2) {
            read.bytes.resize(read.bytes.len() + word.text.len().div_ceil(2), 0);
        } else {
            read.push(word.text);
        }
        if read.bytes.len() >= count {
            let next = words.get(at + 1);
            return read.bytes.len() == count
                && (next.is_none_or(|next| !is_hex(next.text) || next.blanks > 2)
                    || read.is_shown_by(line.rest.get(word.end..)));
        }
    }
    false
}

fn offset(line: &DumpLine<'_>, radix: u32) -> Option<usize> {
    usize::from_str_radix(line.offset, radix).ok()
}

/// The words behind an offset.
fn words<'a>(line: &DumpLine<'a>) -> Vec<Word<'a>> {
    let mut words = Vec::new();
    let mut at = 0;
    let mut column = line.column;
    while let Some(rest) = line.rest.get(at..).filter(|rest| !rest.is_empty()) {
        if words.len() >= MOST_WORDS {
            break;
        }
        let blanks = rest.bytes().take_while(u8::is_ascii_whitespace).count();
        let word = rest.get(blanks..).unwrap_or("");
        let length = word.find(|c: char| c.is_ascii_whitespace()).unwrap_or(word.len());
        let text = word.get(..length).unwrap_or("");
        column += blanks;
        at += blanks + length;
        if !text.is_empty() {
            words.push(Word { text, column, end: at, blanks });
        }
        column += text.chars().count();
    }
    words
}

fn read_dumps(dumps: &[Vec<Option<DumpLine<'_>>>]) -> Result<Dump, DumpError> {
    let mut pieces = Vec::new();
    let mut swapped = false;
    for dump in dumps {
        let mut reader =
            DumpReader { radix: radix_of(dump).unwrap_or(16), ..DumpReader::default() };
        for (at, line) in dump.iter().enumerate() {
            let next = dump.get(at + 1).and_then(Option::as_ref);
            match line {
                Some(line) => reader.line(line, next)?,
                None => reader.repeat = true,
            }
        }
        swapped |= reader.swapped;
        let bytes = if reader.swapped { reader.turned } else { reader.bytes };
        pieces.extend(Some(bytes).filter(|bytes| !bytes.is_empty()));
    }
    let form = if swapped { DumpForm::SwappedHexDump } else { DumpForm::HexDump };
    Ok(Dump { form, pieces })
}

/// The bytes of a line.
#[derive(Default)]
struct LineBytes {
    bytes: Vec<u8>,
    /// The same with the bytes of each group turned around.
    turned: Vec<u8>,
    /// Whether a group has more than a byte.
    grouped: bool,
}

impl LineBytes {
    /// Adds a group of digits.
    fn push(&mut self, digits: &str) {
        let from = self.bytes.len();
        self.bytes.extend(hex_bytes(digits));
        self.turned.extend(self.bytes.get(from..).unwrap_or_default().iter().rev());
        self.grouped |= digits.len() > 2;
    }

    /// Whether the end of the line shows them as text, in either order.
    fn is_shown_by(&self, rest: Option<&str>) -> bool {
        is_text_of(rest, &self.bytes) || self.grouped && is_text_of(rest, &self.turned)
    }
}

/// Reads one dump.
#[derive(Default)]
struct DumpReader {
    radix: u32,
    bytes: Vec<u8>,
    /// The same with the bytes of each group turned around.
    turned: Vec<u8>,
    /// How many bytes the line before had.
    width: usize,
    /// The line before is repeated up to the next offset.
    repeat: bool,
    /// Groups are written backwards.
    swapped: bool,
    /// The column behind the bytes of a full line.
    text_from: Option<usize>,
}

impl DumpReader {
    fn line(&mut self, line: &DumpLine<'_>, next: Option<&DumpLine<'_>>) -> Result<(), DumpError> {
        let at = offset(line, self.radix).ok_or(DumpError::new(
            line.number,
            0,
            "the offset is no number",
        ))?;
        if std::mem::take(&mut self.repeat) {
            self.fill(at, line.number)?;
        }
        if at != self.bytes.len() {
            return Err(DumpError::new(line.number, 0, OTHER_OFFSET));
        }
        let words = words(line);
        if !line.colon
            && words.len() > 1
            && words.iter().all(|w| is_hex(w.text) && w.text.len() > 2)
        {
            return Err(DumpError::new(line.number, 0, WORDS));
        }
        let following = next.and_then(|next| offset(next, self.radix));
        let count =
            following.and_then(|next| next.checked_sub(at)).filter(|n| (1..=MOST).contains(n));
        let mut read = LineBytes::default();
        let mut end = 0;
        for word in &words {
            let length = read.bytes.len();
            let full = count.is_some_and(|count| length >= count);
            let behind = self.text_from.is_some_and(|column| word.column > column);
            if full || behind || word.text.starts_with('|') {
                break;
            }
            if length >= MOST {
                return Err(DumpError::new(line.number, 0, TOO_MANY));
            }
            if count.is_none() && read.is_shown_by(line.rest.get(end..)) {
                break;
            }
            if !is_hex(word.text) || !word.text.len().is_multiple_of(2) {
                // Text beside the bytes is further away than a byte from the next.
                if count.is_none() && word.blanks > 1 && length > 0 {
                    break;
                }
                return Err(DumpError::new(line.number, word.column, NO_BYTE));
            }
            read.push(word.text);
            end = word.end;
        }
        if read.bytes.len() > self.width {
            self.text_from = words.iter().find(|w| w.end == end).map(|w| w.column + w.text.len());
        }
        let beside = line.rest.get(end..);
        self.swapped |= read.is_shown_by(beside) && !is_text_of(beside, &read.bytes);
        self.width = read.bytes.len();
        self.bytes.append(&mut read.bytes);
        self.turned.append(&mut read.turned);
        Ok(())
    }

    /// Repeats the line before up to an offset.
    fn fill(&mut self, to: usize, number: usize) -> Result<(), DumpError> {
        let more = to.checked_sub(self.bytes.len());
        let more = more.filter(|more| *more <= super::MOST_REPEATED && self.width > 0);
        let more = more.ok_or(DumpError::new(number, 0, OTHER_OFFSET))?;
        for bytes in [&mut self.bytes, &mut self.turned] {
            let line = bytes.len().checked_sub(self.width).and_then(|at| bytes.get(at..));
            let line = line.unwrap_or_default().to_vec();
            bytes.extend(line.iter().cycle().take(more));
        }
        Ok(())
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn hex_bytes(text: &str) -> impl Iterator<Item = u8> {
    text.as_bytes()
        .chunks_exact(2)
        .filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
}

/// Whether the end of a line shows these bytes as text.
fn is_text_of(rest: Option<&str>, bytes: &[u8]) -> bool {
    let Some(rest) = rest.filter(|_| !bytes.is_empty()) else { return false };
    let trimmed = rest.trim_start();
    let bars = trimmed.strip_prefix('|').and_then(|text| text.trim_end().strip_suffix('|'));
    let shows = |text: &str| {
        let mut characters = text.chars();
        let as_it_is = bytes.iter().all(|byte| {
            let shown =
                if byte.is_ascii_graphic() || *byte == b' ' { char::from(*byte) } else { '.' };
            characters.next() == Some(shown)
        });
        as_it_is && characters.as_str().trim().is_empty()
    };
    // The text may begin with blanks of its own.
    let blanks = rest.len() - trimmed.len();
    bars.map_or_else(
        || {
            blanks > 1
                && (0..=blanks.min(4)).any(|more| rest.get(blanks - more..).is_some_and(shows))
        },
        shows,
    )
}

/// Dumps without offsets, each behind a line that says so: 16 bytes a line in two halves, and text.
fn read_contents(text: &str) -> Result<Dump, DumpError> {
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    let mut within = false;
    for (at, line) in text.lines().enumerate() {
        if line.trim() == CONTENTS {
            pieces.push(Vec::new());
            within = true;
            continue;
        }
        let indented = line.starts_with([' ', '\t']);
        within &= indented && !line.trim().is_empty();
        let Some(piece) = pieces.last_mut().filter(|_| within) else { continue };
        let line = line.trim_start();
        for byte in 0..16 {
            let column = byte * 3 + usize::from(byte > 7);
            let Some(pair) = line.get(column..column + 2).filter(|pair| *pair != "  ") else {
                break;
            };
            if !is_hex(pair) {
                let before = text.lines().nth(at).map_or(0, |whole| whole.len() - line.len());
                return Err(DumpError::new(at + 1, before + column + 1, NO_BYTE));
            }
            piece.extend(hex_bytes(pair));
        }
    }
    pieces.retain(|piece| !piece.is_empty());
    Ok(Dump { form: DumpForm::HexDump, pieces })
}
