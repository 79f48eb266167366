//! Texts and bytes on their way between the quotes of JSON: nearly all texts are plain, and whether
//! one is shows eight bytes at a time.

use super::super::scratch::TextWriter;
use super::escaped_bytes;
use crate::captured::{CONTROL_LEADS, is_control};
use crate::digits::hex_block;
use crate::tree::{TextKind, decode_pieces};

/// Bytes that are looked at before they count as written.
const PART: usize = 256;

/// Appends a text, escaped for JSON, without its quotes.
pub(in crate::print) fn escaped(w: &mut TextWriter<'_>, text: &[u8]) {
    let mut rest = text;
    while !rest.is_empty() {
        let (part, after) = rest.split_at(rest.len().min(PART));
        if !plain(w, part, 0) {
            return escaped_bytes(w.vec(), rest);
        }
        rest = after;
    }
}

/// Appends bytes that are a text of some kind, with its quotes. Most are short and plain.
#[inline(always)]
pub(super) fn quoted(w: &mut TextWriter<'_>, kind: TextKind, bytes: &[u8]) {
    let flip = match kind {
        TextKind::Utf8 | TextKind::Latin1 => Some(0),
        TextKind::Inverted8 => Some(u64::MAX),
        _ => None,
    };
    if !flip.is_some_and(|flip| bytes.len() <= SHORT && short(w, bytes, flip)) {
        w.byte(b'"');
        decoded(w, kind, bytes);
        w.byte(b'"');
    }
}

/// Bytes of a short text: two words, or four, with some in both of two, so that there is no loop.
const SHORT: usize = 32;

/// Appends up to [`SHORT`] bytes, each with the bits of `flip` inverted, with quotes around them,
/// if they are ASCII of which nothing has to be escaped; says whether it did.
#[inline(always)]
fn short(w: &mut TextWriter<'_>, bytes: &[u8], flip: u64) -> bool {
    let Some([quote, room @ ..]) = w.spare::<{ SHORT + 8 }>() else { return false };
    let length = bytes.len();
    let good = match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (Some(first), Some(last)) => {
            let inner = match (bytes.first_chunk::<16>(), bytes.last_chunk::<16>()) {
                (
                    Some([_, _, _, _, _, _, _, _, second @ ..]),
                    Some([third @ .., _, _, _, _, _, _, _, _]),
                ) if length > 16 => {
                    put_word(room, 8, second, flip) | put_word(room, length - 16, third, flip)
                }
                _ => 0,
            };
            inner | put_word(room, 0, first, flip) | put_word(room, length - 8, last, flip)
        }
        _ => put_word(room, 0, &flipped(bytes, flip).to_le_bytes(), 0),
    } == 0;
    if good {
        *quote = b'"';
        if let Some(end) = room.get_mut(length) {
            *end = b'"';
        }
        w.advance(length + 2);
    }
    good
}

/// Puts eight bytes with the bits of `flip` inverted at their place. Not 0 where one of them is not
/// plain.
#[inline(always)]
fn put_word(room: &mut [u8], at: usize, word: &[u8; 8], flip: u64) -> u64 {
    let word = u64::from_le_bytes(*word) ^ flip;
    if let Some(to) = room.get_mut(at..).and_then(|to| to.first_chunk_mut()) {
        *to = word.to_le_bytes();
    }
    not_plain(word)
}

/// Appends bytes that are a text of some kind, escaped for JSON, without quotes.
pub(super) fn decoded(w: &mut TextWriter<'_>, kind: TextKind, bytes: &[u8]) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let (part, after) = rest.split_at(rest.len().min(PART));
        let good = match kind {
            TextKind::Utf8 => plain(w, part, 0) || unicode(w, part, 0),
            TextKind::Inverted8 => plain(w, part, u64::MAX) || unicode(w, part, u64::MAX),
            TextKind::Latin1 => plain(w, part, 0) || latin(w, part, 0),
            // Latin-1 is what is not all ASCII.
            TextKind::InvertedLatin1 => latin(w, part, u64::MAX),
            TextKind::Utf16 => narrow(w, part),
            TextKind::Inverted16 | TextKind::Owned => false,
        };
        if !good {
            return in_pieces(w, kind, rest);
        }
        rest = after;
    }
}

/// The same for any text.
#[inline(never)]
fn in_pieces(w: &mut TextWriter<'_>, kind: TextKind, bytes: &[u8]) {
    let out = w.vec();
    decode_pieces(kind, bytes, |piece| escaped_bytes(out, piece.as_bytes()));
}

/// The highest bit of each byte.
const HIGH: u64 = each(0x80);

const fn each(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// Not 0 where one of eight bytes is not ASCII or has to be escaped. Each sum sets the highest bit
/// of the byte that it looks for. A carry or borrow can set it in a byte further up, but only where
/// a byte below was found.
#[inline(always)]
fn not_plain(word: u64) -> u64 {
    let control = word.wrapping_sub(each(0x20));
    let quote = (word ^ each(b'"')).wrapping_sub(each(1));
    let backslash = (word ^ each(b'\\')).wrapping_sub(each(1));
    let delete = word.wrapping_add(each(1));
    (control | quote | backslash | delete | word) & HIGH
}

/// Not 0 where one of eight bytes has to be escaped, whatever the bytes beyond ASCII are. What is
/// subtracted from a byte reaches its highest bit where the byte was less.
#[inline(always)]
fn special(word: u64) -> u64 {
    let less = |word: u64, than: u8| word.wrapping_sub(each(than)) & !word;
    let found = less(word, 0x20)
        | less(word ^ each(b'"'), 1)
        | less(word ^ each(b'\\'), 1)
        | less(word ^ each(0x7f), 1);
    found & HIGH
}

/// The same for UTF-8, where a control may also begin with one of [`CONTROL_LEADS`].
#[inline(always)]
fn special_or_lead(word: u64) -> u64 {
    let equal = |byte: u8| {
        let differs = word ^ each(byte);
        differs.wrapping_sub(each(1)) & !differs & HIGH
    };
    CONTROL_LEADS.iter().fold(special(word), |found, lead| found | equal(*lead))
}

/// The control with which a text begins, if it does, and its length in bytes.
pub(super) fn control(text: &[u8]) -> Option<(char, usize)> {
    let first = text.get(..text.len().min(4)).unwrap_or(text);
    let valid = first.utf8_chunks().next()?.valid();
    let c = valid.chars().next().filter(|c| is_control(*c))?;
    Some((c, c.len_utf8()))
}

/// Where the first byte is that is escaped, or may begin a character that is. The lowest bit that
/// the sums below find is always right; what a borrow makes them find in vain lies above it.
#[inline]
pub(super) fn first_special(bytes: &[u8]) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    let all = words.iter().map(|word| u64::from_le_bytes(*word)).chain([padded(rest)]);
    // Nearly all words are plain, which shows sooner.
    let found =
        |word| Some(special_or_lead(word)).filter(|found| not_plain(word) != 0 && *found != 0);
    all.enumerate().find_map(|(i, word)| Some(i * 8 + found(word)?.trailing_zeros() as usize / 8))
}

/// Up to 7 bytes as a word, with spaces above them.
#[inline(always)]
fn padded(bytes: &[u8]) -> u64 {
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        // The last four bytes; they may overlap the first four.
        (Some(first), Some(last)) => {
            let above = u64::from(u32::from_le_bytes(*last)) << (bytes.len() * 8 - 32);
            let spaces = each(b' ') << (bytes.len() * 8);
            u64::from(u32::from_le_bytes(*first)) | above | spaces
        }
        _ => bytes.iter().rev().fold(each(b' '), |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// The same with the bits of `flip` inverted, but not those of the spaces.
#[inline(always)]
fn flipped(bytes: &[u8], flip: u64) -> u64 {
    padded(bytes) ^ (flip & !(u64::MAX << (bytes.len() * 8)))
}

/// Appends up to [`PART`] bytes, each with the bits of `flip` inverted, if they are ASCII of which
/// nothing has to be escaped; says whether it did.
#[inline]
fn plain(w: &mut TextWriter<'_>, bytes: &[u8], flip: u64) -> bool {
    let Some(room) = w.spare::<PART>() else { return false };
    let mut found = 0;
    if let Some(last) = bytes.last_chunk::<8>() {
        for (to, word) in room.chunks_exact_mut(8).zip(bytes.as_chunks::<8>().0) {
            found |= put_word(to, 0, word, flip);
        }
        // These overlap the ones before them, so that there is no loop over the rest.
        found |= put_word(room, bytes.len() - 8, last, flip);
    } else {
        found |= put_word(room, 0, &flipped(bytes, flip).to_le_bytes(), 0);
    }
    if found == 0 {
        w.advance(bytes.len());
    }
    found == 0
}

/// The same for UTF-8 that is more than ASCII. A character that is cut in two is none.
#[inline(never)]
fn unicode(w: &mut TextWriter<'_>, bytes: &[u8], flip: u64) -> bool {
    let Some(room) = w.spare::<PART>() else { return false };
    let (words, rest) = bytes.as_chunks::<8>();
    let all =
        words.iter().map(|word| u64::from_le_bytes(*word) ^ flip).chain([flipped(rest, flip)]);
    let mut found = 0;
    for (to, word) in room.as_chunks_mut::<8>().0.iter_mut().zip(all) {
        found |= special_or_lead(word);
        *to = word.to_le_bytes();
    }
    let good =
        found == 0 && room.get(..bytes.len()).is_some_and(|text| std::str::from_utf8(text).is_ok());
    if good {
        w.advance(bytes.len());
    }
    good
}

/// The same for Latin-1 that is more than ASCII, whose bytes become one or two.
fn latin(w: &mut TextWriter<'_>, bytes: &[u8], flip: u64) -> bool {
    let Some(room) = w.spare::<{ PART * 2 + 8 }>() else { return false };
    let mut rest = bytes;
    let mut at = 0;
    loop {
        let word = match rest.first_chunk::<8>() {
            Some(word) => u64::from_le_bytes(*word) ^ flip,
            None => flipped(rest, flip),
        };
        if special(word) != 0 {
            return false;
        }
        if let Some(to) = room.get_mut(at..).and_then(|to| to.first_chunk_mut()) {
            *to = word.to_le_bytes();
        }
        // All up to the first byte that is beyond ASCII, and that one.
        let ascii = (word & HIGH).trailing_zeros() as usize / 8;
        let Some((_, after)) = rest.split_at_checked(ascii) else {
            at += rest.len();
            break;
        };
        at += ascii;
        rest = after;
        if let Some((byte, after)) = rest.split_first().filter(|_| ascii < 8) {
            let byte = byte ^ flip as u8;
            // A C1 control.
            if byte < 0xa0 {
                return false;
            }
            if let Some(to) = room.get_mut(at..).and_then(|to| to.first_chunk_mut()) {
                *to = [0xc0 | byte >> 6, 0x80 | byte & 0x3f];
            }
            at += 2;
            rest = after;
        }
    }
    w.advance(at);
    true
}

/// The same for UTF-16 that is ASCII.
fn narrow(w: &mut TextWriter<'_>, bytes: &[u8]) -> bool {
    const WIDE: u64 = 0xff00_ff00_ff00_ff00;
    let Some(room) = w.spare::<PART>() else { return false };
    let (words, rest) = bytes.as_chunks::<8>();
    let mut found = u64::from(bytes.len() % 2 == 1);
    let mut put = |to: &mut [u8; 4], word: u64| {
        found |= word & WIDE;
        let pairs = (word | word >> 8) & 0x0000_ffff_0000_ffff;
        let four = (pairs | pairs >> 16) as u32;
        found |= not_plain(u64::from(four) | each(b' ') << 32);
        *to = four.to_le_bytes();
    };
    let places = room.as_chunks_mut::<4>().0;
    for (to, word) in places.iter_mut().zip(words) {
        put(to, u64::from_le_bytes(*word));
    }
    if let Some(to) = places.get_mut(words.len()).filter(|_| !rest.is_empty()) {
        let above = u64::MAX << (rest.len() * 8);
        put(to, padded(rest) & !(above & WIDE));
    }
    if found == 0 {
        w.advance(bytes.len() / 2);
    }
    found == 0
}

/// Appends bytes as lower-case hex.
pub(in crate::print) fn hex(w: &mut TextWriter<'_>, bytes: &[u8]) {
    let (blocks, rest) = bytes.as_chunks::<16>();
    blocks.iter().for_each(|block| hex_digits(w, block, 32));
    if !rest.is_empty() {
        let mut last = [0; 16];
        last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        hex_digits(w, &last, rest.len() * 2);
    }
}

/// Appends the first of the digits of sixteen bytes.
#[inline(always)]
fn hex_digits(w: &mut TextWriter<'_>, bytes: &[u8; 16], used: usize) {
    if let Some(room) = w.spare::<32>() {
        room.copy_from_slice(hex_block(bytes).as_flattened());
    }
    w.advance(used);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print::scratch::Scratch;

    fn written(write: impl FnOnce(&mut TextWriter<'_>)) -> String {
        let mut out = Vec::new();
        let mut scratch = Scratch::default();
        let mut w = scratch.writer(&mut out);
        write(&mut w);
        w.finish();
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn a_text_is_the_same_at_any_length_with_anything_in_it_in_every_kind() {
        for length in (0..40).chain([255, 256, 257, 264, 513, 20_000]) {
            for odd in [
                "", "x", "\"", "\\", "\n", "\u{1}", "\u{7f}", "é", "©", "\u{80}", "\u{9b}",
                "\u{a0}", "\u{61c}", "؟", "—", "\u{2028}", "\u{202e}", "𝄞",
            ] {
                for at in [0, length / 2, length] {
                    let text = format!("{}{odd}{}", "a".repeat(at), "b".repeat(length - at));
                    let mut right = Vec::new();
                    escaped_bytes(&mut right, text.as_bytes());
                    let right = String::from_utf8_lossy(&right);
                    assert_eq!(written(|w| escaped(w, text.as_bytes())), right);
                    let as_kind = |kind, bytes: &[u8]| {
                        assert_eq!(written(|w| decoded(w, kind, bytes)), right);
                        assert_eq!(written(|w| quoted(w, kind, bytes)), format!("\"{right}\""));
                    };
                    as_kind(TextKind::Utf8, text.as_bytes());
                    as_kind(TextKind::Inverted8, &text.bytes().map(|b| !b).collect::<Vec<u8>>());
                    as_kind(
                        TextKind::Utf16,
                        &text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>(),
                    );
                    let inverted = text
                        .encode_utf16()
                        .flat_map(|unit| (!unit).to_le_bytes())
                        .collect::<Vec<u8>>();
                    as_kind(TextKind::Inverted16, &inverted);
                    if let Ok(narrow) =
                        text.chars().map(u8::try_from).collect::<Result<Vec<u8>, _>>()
                    {
                        as_kind(TextKind::Latin1, &narrow);
                        as_kind(
                            TextKind::InvertedLatin1,
                            &narrow.iter().map(|b| !b).collect::<Vec<u8>>(),
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn half_a_unit_is_no_text() {
        for length in 0..20 {
            let bytes: Vec<u8> =
                b"a\0".iter().copied().cycle().take(length * 2).chain([b'b']).collect();
            assert_eq!(written(|w| decoded(w, TextKind::Utf16, &bytes)), "a".repeat(length));
        }
    }

    #[test]
    fn hex_of_any_length() {
        let bytes: Vec<u8> = (0..=255).collect();
        for length in 0..=256 {
            let right: String = bytes.iter().take(length).map(|b| format!("{b:02x}")).collect();
            assert_eq!(written(|w| hex(w, bytes.split_at(length).0)), right);
        }
    }
}
