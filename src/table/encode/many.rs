//! Writes values with a length: bytes, texts, numbers in digits, lists.

use super::super::program::*;
use super::expr::Value;
use super::{Encoder, Encoding, EndMark, Field, Given, Habits, JsonKind, OpenEnds, Slot, Stop};
use crate::tree::{Sym, TextKind, TypeRef, decode_text};

/// The problem of a text that ends without the zero that it should have.
const NO_ZERO: &str = "no zero at the text's end";

impl Encoding<'_> {
    /// Writes a length where it stands before its value.
    pub(super) fn put_count(&mut self, field: &Field, ty: TypeRef, n: usize) -> Result<(), Stop> {
        self.put_number(&Field { ty, ..*field }, n as i128)
    }

    /// Writes the content of a value in units of `unit` bytes, with its length or its end.
    fn put_content(
        &mut self,
        field: &Field,
        len: Len,
        unit: usize,
        content: &[u8],
    ) -> Result<(), Stop> {
        let n = if len.bytes { content.len() } else { content.len() / unit };
        let what = if len.bytes || unit == 1 { "bytes" } else { "units" };
        match len.from {
            LenFrom::Const(size) => {
                let size = size as usize * if len.bytes { 1 } else { unit };
                let Some(left) = size.checked_sub(content.len()) else {
                    let most = size / if len.bytes { 1 } else { unit };
                    return self.fail_at(field, format!("{n} {what} do not fit {most}"));
                };
                self.out().put(content);
                return self.put_zeros(field, left as u64);
            }
            LenFrom::Inline(ty) => {
                self.put_count(field, ty, n)?;
                self.out().put(content);
            }
            LenFrom::Expr(id) => {
                self.require(id, n as i128, field, what)?;
                self.out().put(content);
            }
            LenFrom::Rest | LenFrom::Last => self.out().put(content),
            LenFrom::Zero => {
                self.out().put(content);
                self.out().put_zeros(unit);
            }
            LenFrom::To(end) => self.put_ended(content, &[end], false),
            LenFrom::Until(place) => {
                let end = self.tables.delimiter(place);
                self.put_ended(content, end, false);
            }
            LenFrom::Blanks => self.put_ended(content, b" ", true),
        }
        Ok(())
    }

    /// Writes a value and the mark of its end.
    fn put_ended(&mut self, content: &[u8], end: &[u8], blank: bool) {
        self.out().put(content);
        self.out().put(end);
        self.last_end = Some(EndMark { pos: self.pos(), bits: end.len() * 8, blank });
    }

    /// A region or, if it is `whole`, the message ends here: takes back the mark at the end of its
    /// last value, where that ends with the region anyway.
    pub(super) fn open_end(&mut self, whole: bool) {
        let pos = self.pos();
        let Some(end) = self.last_end.filter(|end| end.pos == pos) else { return };
        self.state.asked.open_ends = true;
        let is_open = match self.state.habits.open_ends {
            OpenEnds::Blanks => end.blank,
            OpenEnds::Regions => end.blank || !whole,
            OpenEnds::All => true,
            OpenEnds::None => false,
        };
        if is_open {
            self.out().cut(pos - end.bits);
        }
    }

    /// How many units the fields before say that a value has, if it has none in the JSON.
    fn units_of_nothing(&self, field: &Field, len: Len) -> Option<u64> {
        match len.from {
            LenFrom::Const(n) => Some(u64::from(n)),
            LenFrom::Expr(id) => match self.value_of(id, field.frame) {
                Value::Known(n) => u64::try_from(n).ok(),
                _ => None,
            },
            _ => None,
        }
    }

    /// The content of a text or of bytes that the JSON does not have, where there is one that is
    /// right: the text that selects the message, or the bytes that every message begins with.
    fn certain_content(&mut self, field: &Field, len: Len) -> Option<Vec<u8>> {
        if field.given != Given::Nothing {
            return None;
        }
        if let Some((_, word)) = self.word.filter(|(name, _)| *name == field.name) {
            self.last_text = Some((field.name, word.as_bytes().to_vec()));
            return Some(word.as_bytes().to_vec());
        }
        match len.from {
            LenFrom::Const(n) => self.certain_bytes(n as usize).map(<[u8]>::to_vec),
            _ => None,
        }
    }

    pub(super) fn bytes(&mut self, field: &Field, len: Len) -> Result<Slot, Stop> {
        let certain = self.certain_content(field, len);
        let content = match (certain, field.given) {
            (Some(certain), _) => certain,
            (_, Given::Json(node)) => {
                self.take(node);
                self.hex(node)?
            }
            // Padding: zeros, as many as the fields before say.
            _ if field.span => match self.units_of_nothing(field, len) {
                Some(n) => {
                    self.put_zeros(field, n)?;
                    return Ok(Slot::Number(0));
                }
                None => Vec::new(),
            },
            _ => return self.missing(field),
        };
        self.put_content(field, len, 1, &content)?;
        Ok(Slot::Number(0))
    }

    pub(super) fn text(&mut self, field: &Field, read: &ReadAs) -> Result<Slot, Stop> {
        let ReadAs::Text { kind, or_latin1, len, end } = read else { return self.missing(field) };
        let unit = if matches!(kind, TextKind::Utf16 | TextKind::Inverted16) { 2 } else { 1 };
        let kinds = [*kind, TextKind::Latin1];
        let kinds = kinds.get(..1 + usize::from(*or_latin1)).unwrap_or(&[]);
        if let Some(certain) = self.certain_content(field, *len) {
            self.put_content(field, *len, unit, &certain)?;
            return Ok(Slot::Number(0));
        }
        let mut content = self.text_bytes(field, kinds)?;
        let Given::Json(node) = field.given else { return self.missing(field) };
        let zero = |content: &[u8]| content.chunks(unit).any(|unit| unit.iter().all(|b| *b == 0));
        if matches!(len.from, LenFrom::Const(_) | LenFrom::Zero) && zero(&content) {
            return self.fail(node, "has a zero, where a text of this type ends");
        }
        self.last_text = Some((field.name, content.clone()));
        match (end, len.from) {
            (_, LenFrom::Const(_)) => {}
            (TextEnd::Zero, _) if !self.is_said(node, NO_ZERO) => {
                content.resize(content.len() + unit, 0);
            }
            (TextEnd::Zeros, _) => {
                let zeros = match self.units_of_nothing(field, *len) {
                    Some(n) => (n as usize).saturating_mul(unit).saturating_sub(content.len()),
                    None => {
                        let Habits { zeros: [empty, other], other_zeros, .. } = self.state.habits;
                        let zeros = if content.is_empty() { empty } else { other };
                        let is_other = other_zeros >> self.state.asked.zero_texts.min(63) & 1 != 0;
                        self.state.asked.zero_texts += 1;
                        unit * if is_other { usize::from(zeros == 0) } else { zeros }
                    }
                };
                content.resize((content.len() + zeros).min(super::MAX_BYTES), 0);
            }
            _ => {}
        }
        self.put_content(field, *len, unit, &content)?;
        Ok(Slot::Number(0))
    }

    /// The bytes of a text in the first of these encodings. Where a problem shows the bytes that
    /// were captured, and they are this text in one of the encodings, it is those bytes.
    pub fn text_bytes(&mut self, field: &Field, kinds: &[TextKind]) -> Result<Vec<u8>, Stop> {
        let (node, text) = self.string(field)?;
        let text = text.to_string();
        let shown = self.shown_bytes(node).find(|shown| {
            kinds.iter().any(|kind| {
                let mut read = String::new();
                decode_text(*kind, shown, &mut read);
                read == text
            })
        });
        if let Some(shown) = shown {
            return Ok(shown.to_vec());
        }
        let last = kinds.len().saturating_sub(1);
        let is_odd = last > 0 && !text.is_ascii();
        let Encoder { habits, asked, .. } = &mut self.state;
        let latin1 = is_odd && habits.latin1 >> asked.odd_texts.min(63) & 1 != 0;
        asked.odd_texts += u32::from(is_odd);
        let at = if latin1 { last } else { self.text_kind.min(last) };
        let kind = kinds.get(at).copied().unwrap_or(TextKind::Utf8);
        match encode_text(kind, &text) {
            Ok(bytes) => Ok(bytes),
            Err(c) => self.fail(node, format!("{c:?} is no character of Latin-1")),
        }
    }

    pub(super) fn digits(&mut self, field: &Field, radix: u8, len: Len) -> Result<Slot, Stop> {
        let Given::Json(node) = field.given else { return self.missing(field) };
        // Where a text stands that is no number, it stays a text.
        if self.json.kind(node) == JsonKind::Text && self.json.text(node).parse::<i64>().is_err() {
            let content = self.text_bytes(field, &[TextKind::Latin1])?;
            self.put_content(field, len, 1, &content)?;
            return Ok(Slot::Number(0));
        }
        let number = self.number(field)?;
        self.put_digits(field, radix, len, number)?;
        Ok(Slot::Number(number as u64))
    }

    /// Writes a number in digits.
    pub(super) fn put_digits(
        &mut self,
        field: &Field,
        radix: u8,
        len: Len,
        number: i128,
    ) -> Result<(), Stop> {
        let sign = if number < 0 { "-" } else { "" };
        let magnitude = number.unsigned_abs();
        let mut text = match radix {
            16 => format!("{sign}{magnitude:x}"),
            _ => format!("{sign}{magnitude}"),
        };
        if let Some(n) = self.units_of_nothing(field, len) {
            let missing = (n as usize).min(64).saturating_sub(text.len());
            text.insert_str(sign.len(), &"0".repeat(missing));
        }
        self.put_content(field, len, 1, text.as_bytes())
    }

    pub(super) fn list(&mut self, field: &Field, of: TypeRef, len: Len) -> Result<Slot, Stop> {
        let node = match field.given {
            Given::Json(node) => node,
            _ if field.span => return self.list_of_nothing(field, of, len),
            _ => return self.missing(field),
        };
        if self.json.kind(node) != JsonKind::List {
            let kind = self.json.kind(node).word();
            return self.fail(node, format!("is {kind}, where a list is expected"));
        }
        self.enter(node);
        let n = self.json.children(node).count();
        match len.from {
            LenFrom::Const(size) if !len.bytes && n != size as usize => {
                return self.fail(node, format!("{n} elements, where {size} are expected"));
            }
            LenFrom::Inline(ty) if !len.bytes => {
                self.put_count(field, ty, n)?;
                self.empty_end = (n == 0).then(|| self.pos());
            }
            LenFrom::Expr(id) if !len.bytes => self.require(id, n as i128, field, "elements")?,
            LenFrom::Inline(ty) => {
                let ended = self.ended.take();
                let slot =
                    self.counted_in_bytes(field, ty, |this| this.elements(field, node, of))?;
                self.ended = ended;
                return Ok(slot);
            }
            _ => {}
        }
        let start = self.pos();
        let ended = self.ended;
        if len.bytes {
            self.ended = None;
        }
        self.elements(field, node, of)?;
        if len.bytes {
            self.ended = ended;
        }
        match len.from {
            LenFrom::Expr(id) if len.bytes => {
                let bytes = (self.pos() - start) / 8;
                self.require(id, bytes as i128, field, "bytes")?;
            }
            LenFrom::Zero => self.put_list_end(start),
            LenFrom::Until(place) => {
                let end = self.tables.delimiter(place);
                self.out().put(end);
            }
            _ => {}
        }
        Ok(Slot::Number(0))
    }

    /// The zero behind a list. It stands in the place of the mark that ends the last text.
    fn put_list_end(&mut self, start: usize) {
        let end = self.pos();
        let mark = self.last_end.filter(|mark| mark.pos == end && end > start + mark.bits);
        self.state.asked.open_ends |= mark.is_some();
        if let Some(mark) = mark.filter(|_| self.state.habits.open_ends != OpenEnds::None) {
            self.out().cut(end - mark.bits);
        }
        self.out().put(&[0]);
        self.list_end = Some(self.pos()).filter(|_| mark.is_none());
    }

    /// At the end of a region that begins at the bit `start`: a list that is read up to a zero needs
    /// none here. One that is empty and alone has none, mostly.
    pub(super) fn cut_list_end(&mut self, start: usize, checks: usize) {
        let end = self.pos();
        let before = end.saturating_sub(8);
        if self.list_end != Some(end) {
            return;
        }
        self.state.asked.end_marks = true;
        let is_open = match self.state.habits.end_marks {
            marks if before == start => marks < 2,
            marks => self.state.open_lists != (marks == 0),
        };
        if is_open && self.are_fulfilled(checks, before) {
            self.out().cut(before);
        }
    }

    /// Whether what may be left out at the end is left out, if it is an empty list or has no values
    /// at all. Where the region ends, the step `otherwise` follows.
    pub(super) fn is_left_out(&mut self, test: Test, otherwise: usize, object: u32) -> bool {
        if !matches!(test, Test::More) {
            return false;
        }
        let list = match self.tables.steps().get(otherwise) {
            Some(LayoutStep::Empty { name, .. }) => self.lookup_sym(object, *name),
            _ => None,
        };
        let is_full = list.is_some_and(|list| self.json.children(list).next().is_some());
        if is_full {
            return false;
        }
        self.state.asked.empty_lists = true;
        let Some(written) = self.state.habits.empty_lists else { return false };
        self.empty_lists += 1;
        self.empty_lists > written
    }

    fn elements(&mut self, field: &Field, list: u32, of: TypeRef) -> Result<(), Stop> {
        let json = self.json;
        for child in json.children(list) {
            let given = Given::Json(child);
            let (name, span) = (Sym::ELEMENT, false);
            self.value(&Field { name, ty: of, span, given, ..*field })?;
        }
        Ok(())
    }

    /// A list of spans, which JSON does not have: as many zeros as its length says. Where that is
    /// not known either, it is the end mark of what is before it.
    fn list_of_nothing(&mut self, field: &Field, of: TypeRef, len: Len) -> Result<Slot, Stop> {
        let n = match (self.units_of_nothing(field, len), len.from) {
            (Some(n), _) => n,
            (None, LenFrom::Expr(id)) => {
                let n = self.state.habits.end_marks;
                self.state.asked.end_marks = true;
                self.require(id, n as i128, field, "elements")?;
                n as u64
            }
            (None, LenFrom::Inline(ty)) => {
                self.put_count(field, ty, 0)?;
                0
            }
            _ => 0,
        };
        if n > super::MAX_BYTES as u64 {
            return self.fail_at(field, format!("{n} elements are more than a message may have"));
        }
        for _ in 0..n {
            self.value(&Field { ty: of, given: Given::Number(0), ..*field })?;
        }
        Ok(Slot::Number(0))
    }

    /// Writes what has its length in bytes before it.
    pub fn counted_in_bytes(
        &mut self,
        field: &Field,
        count: TypeRef,
        write: impl FnOnce(&mut Self) -> Result<(), Stop>,
    ) -> Result<Slot, Stop> {
        let is_integer = matches!(
            self.tables.type_def(count).map(|def| &def.read),
            Some(ReadAs::Int { .. } | ReadAs::Bool)
        );
        let at = self.pos();
        let of_count = Field { ty: count, ..*field };
        if !is_integer {
            // How long the count is depends on it, so that the content is written first.
            self.open_buffer();
            let written = write(self);
            let content = self.close_buffer();
            written?;
            self.put_count(field, count, content.bytes().len())?;
            self.out().put(content.bytes());
            return Ok(Slot::Number(0));
        }
        self.put_number(&of_count, 0)?;
        let start = self.pos();
        write(self)?;
        let bytes = (self.pos() - start).div_ceil(8);
        let count = self.integer_bytes(&of_count, bytes as i128)?;
        self.out().replace(at, &count);
        Ok(Slot::Number(0))
    }
}

/// A text in an encoding, or the character that it does not have.
pub(super) fn encode_text(kind: TextKind, text: &str) -> Result<Vec<u8>, char> {
    let latin1 = || -> Result<Vec<u8>, char> {
        text.chars().map(|c| u8::try_from(u32::from(c)).map_err(|_| c)).collect()
    };
    let invert = |bytes: Vec<u8>| bytes.into_iter().map(|byte| !byte).collect();
    let utf16 = || text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    Ok(match kind {
        TextKind::Utf8 | TextKind::Owned => text.as_bytes().to_vec(),
        TextKind::Latin1 => latin1()?,
        TextKind::InvertedLatin1 => invert(latin1()?),
        TextKind::Utf16 => utf16(),
        TextKind::Inverted8 => invert(text.as_bytes().to_vec()),
        TextKind::Inverted16 => invert(utf16()),
    })
}
