//! Puts a text in the place of another one, in the bytes that hold it. The new text has as many
//! bytes, whatever the encoding.

use super::values::FILLER;
use crate::tree::TextKind;

/// Replaces the text in `content`. `new` gives, for a piece of valid text, one of as many bytes in
/// UTF-8 and as many units in UTF-16; what is not valid becomes filler.
pub(super) fn rewrite(kind: TextKind, content: &mut [u8], new: &dyn Fn(&str) -> String) {
    match kind {
        TextKind::Utf8 => utf8(content, new),
        TextKind::Inverted8 => inverted(content, |plain| utf8(plain, new)),
        TextKind::Latin1 => latin1(content, new),
        TextKind::InvertedLatin1 => inverted(content, |plain| latin1(plain, new)),
        TextKind::Utf16 => utf16(content, new),
        TextKind::Inverted16 => inverted(content, |plain| utf16(plain, new)),
        TextKind::Owned => {}
    }
}

/// Filler of the same form for a piece of text: what is 0 stays.
pub(super) fn filler(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match (c, c.len_utf8()) {
            ('\0', _) => out.push(c),
            (_, 1) => out.push(char::from(FILLER)),
            _ if u32::from(c) < 256 => out.push('\u{e6}'),
            (_, 2) => out.push('\u{3be}'),
            (_, 3) => out.push('\u{4e00}'),
            _ => out.push('\u{20000}'),
        }
    }
    out
}

/// A text of self-describing syntax: quotes and escaped characters stay.
pub(super) fn escaped(text: &str, new: &dyn Fn(&str) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['"', '\\']) {
        let (before, from) = rest.split_at(at);
        out.push_str(&new(before));
        let mut kept = from.chars();
        let first = kept.next();
        let second = kept.next().filter(|_| first == Some('\\'));
        out.extend(first.into_iter().chain(second));
        rest = kept.as_str();
        if first == Some('"') {
            rest = from.get(1..).unwrap_or("");
        }
    }
    out.push_str(&new(rest));
    out
}

fn inverted(content: &mut [u8], change: impl FnOnce(&mut [u8])) {
    content.iter_mut().for_each(|byte| *byte = !*byte);
    change(content);
    content.iter_mut().for_each(|byte| *byte = !*byte);
}

fn utf8(content: &mut [u8], new: &dyn Fn(&str) -> String) {
    let mut out = Vec::with_capacity(content.len());
    for chunk in content.utf8_chunks() {
        let text = new(chunk.valid());
        let text = if text.len() == chunk.valid().len() { text } else { filler(chunk.valid()) };
        out.extend_from_slice(text.as_bytes());
        out.extend(chunk.invalid().iter().map(|_| FILLER));
    }
    put(content, &out);
}

fn latin1(content: &mut [u8], new: &dyn Fn(&str) -> String) {
    let text: String = content.iter().map(|byte| char::from(*byte)).collect();
    let new = new(&text);
    let out: Vec<u8> = new.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(FILLER)).collect();
    put(content, &out);
}

fn utf16(content: &mut [u8], new: &dyn Fn(&str) -> String) {
    let units: Vec<u16> =
        content.as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
    let mut out: Vec<u16> = Vec::with_capacity(units.len());
    let mut piece = String::new();
    let end = |piece: &mut String, out: &mut Vec<u16>| {
        out.extend(new(piece).encode_utf16());
        piece.clear();
    };
    for unit in char::decode_utf16(units.iter().copied()) {
        match unit {
            Ok(c) => piece.push(c),
            Err(_) => {
                end(&mut piece, &mut out);
                out.push(FILLER.into());
            }
        }
    }
    end(&mut piece, &mut out);
    let bytes: Vec<u8> = out.iter().flat_map(|unit| unit.to_le_bytes()).collect();
    let even = content.len() / 2 * 2;
    put(content.get_mut(..even).unwrap_or_default(), &bytes);
    content.get_mut(even..).unwrap_or_default().fill(FILLER);
}

/// Replaces content by bytes that are as many; by filler where they are not.
fn put(content: &mut [u8], new: &[u8]) {
    if content.len() == new.len() {
        content.copy_from_slice(new);
    } else {
        content.fill(FILLER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_encoding_keeps_its_length() {
        let upper = |text: &str| text.to_ascii_uppercase();
        let mut utf8 = *b"ab\xff\xc3\xa9c";
        rewrite(TextKind::Utf8, &mut utf8, &upper);
        assert_eq!(&utf8, b"ABx\xc3\xa9C");
        let mut utf16 = *b"a\0\0\xd8b\0c";
        rewrite(TextKind::Utf16, &mut utf16, &upper);
        assert_eq!(&utf16, b"A\0x\0B\0x");
        let mut inverted = [!b'a', !b'b'];
        rewrite(TextKind::Inverted8, &mut inverted, &upper);
        assert_eq!(inverted, [!b'A', !b'B']);
        let mut latin = [0xe9, b'a'];
        rewrite(TextKind::Latin1, &mut latin, &filler);
        assert_eq!(latin, [0xe6, b'x']);
    }

    #[test]
    fn escapes_and_quotes_stay() {
        assert_eq!(escaped("\"a\\\"b\\n\"", &filler), "\"x\\\"x\\n\"");
    }
}
