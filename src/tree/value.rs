//! The kinds of values, and how text on the wire becomes text.

/// How the bytes of a text are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    /// UTF-8.
    Utf8,
    /// ISO-8859-1.
    Latin1,
    /// UTF-16, little-endian.
    Utf16,
    /// UTF-8, every byte inverted.
    Inverted8,
    /// UTF-16, little-endian, every unit inverted.
    Inverted16,
    /// ISO-8859-1, every byte inverted.
    InvertedLatin1,
    /// Kept in the tree already decoded; the node's place counts there.
    Owned,
}

/// How a node's value is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An object; its fields are the children.
    Struct,
    /// A list; its elements are the children.
    List,
    /// No object where one could be.
    Null,
    /// An unsigned integer up to 32 bits.
    Unsigned,
    /// A signed integer up to 32 bits, sign-extended.
    Signed,
    /// An unsigned integer of 64 bits.
    Unsigned64,
    /// A signed integer of 64 bits.
    Signed64,
    /// A float of 32 bits, as its bits.
    F32,
    /// A float of 64 bits, as its bits.
    F64,
    /// 0 or 1. Any other value is shown as a number.
    Bool,
    /// 16 bytes in Microsoft's order, at the node's place.
    Uuid,
    /// 16 bytes as written, at the node's place.
    UuidBe,
    /// An IPv4 address, its first number in the highest 8 bits.
    Ipv4,
    /// Text; the value is the content's place.
    Text(TextKind),
    /// Bytes; the value is the content's place.
    Bytes,
    /// Bytes that no field claims.
    Undecoded,
}

impl Kind {
    /// Whether the value of a node of this kind is a place in its buffer
    /// ([`Node::place`](super::Node::place)). That of a text of the tree's own is a place in the
    /// tree's texts.
    pub fn is_place(self) -> bool {
        matches!(self, Kind::Text(_) | Kind::Bytes | Kind::Undecoded | Kind::Uuid | Kind::UuidBe)
    }
}

/// Whether bytes are all ASCII once inverted.
#[inline]
pub fn is_inverted_ascii(bytes: &[u8]) -> bool {
    const HIGHEST: u64 = 0x8080_8080_8080_8080;
    let (words, rest) = bytes.as_chunks::<8>();
    let all = words.iter().fold(HIGHEST, |all, word| all & u64::from_le_bytes(*word));
    // The last eight once more, in place of the few that are left.
    match bytes.last_chunk::<8>() {
        Some(last) => all & u64::from_le_bytes(*last) == HIGHEST,
        None => rest.iter().fold(0x80, |all, byte| all & byte) != 0,
    }
}

/// Whether bytes are UTF-8 once inverted.
#[inline]
pub fn is_inverted_utf8(bytes: &[u8]) -> bool {
    // Nearly all names are short: looked at whole they take a third of the instructions that pieces
    // take.
    let mut plain = [0; 64];
    match plain.get_mut(..bytes.len()) {
        Some(plain) => {
            plain.iter_mut().zip(bytes).for_each(|(to, from)| *to = !from);
            std::str::from_utf8(plain).is_ok()
        }
        None => decode_inverted_utf8(bytes, |_| {}),
    }
}

/// Appends the text that some bytes are, and says whether they were valid. What is not valid
/// becomes U+FFFD.
pub fn decode_text(kind: TextKind, bytes: &[u8], out: &mut String) -> bool {
    match kind {
        TextKind::Latin1 => out.extend(bytes.iter().map(|byte| char::from(*byte))),
        TextKind::InvertedLatin1 => out.extend(bytes.iter().map(|byte| char::from(!*byte))),
        _ => return decode_pieces(kind, bytes, |piece| out.push_str(piece)),
    }
    true
}

/// The same, piece by piece: nothing is allocated.
pub fn decode_pieces(kind: TextKind, bytes: &[u8], mut to: impl FnMut(&str)) -> bool {
    match kind {
        TextKind::Utf8 => decode_utf8(bytes, to),
        TextKind::Latin1 => {
            bytes.iter().for_each(|b| to(char::from(*b).encode_utf8(&mut [0; 4])));
            true
        }
        TextKind::InvertedLatin1 => {
            bytes.iter().for_each(|b| to(char::from(!*b).encode_utf8(&mut [0; 4])));
            true
        }
        TextKind::Utf16 => decode_utf16(bytes, 0, to),
        TextKind::Inverted16 => decode_utf16(bytes, 0xffff, to),
        TextKind::Inverted8 => {
            if !is_inverted_ascii(bytes) {
                return decode_inverted_utf8(bytes, to);
            }
            let mut plain = [0; 64];
            for piece in bytes.chunks(plain.len()) {
                plain.iter_mut().zip(piece).for_each(|(to, from)| *to = !from);
                to(plain
                    .get(..piece.len())
                    .and_then(|ascii| std::str::from_utf8(ascii).ok())
                    .unwrap_or_default());
            }
            true
        }
        TextKind::Owned => true,
    }
}

fn decode_utf8(bytes: &[u8], mut to: impl FnMut(&str)) -> bool {
    let mut valid = true;
    for chunk in bytes.utf8_chunks() {
        to(chunk.valid());
        if !chunk.invalid().is_empty() {
            valid = false;
            to("\u{fffd}");
        }
    }
    valid
}

/// Turns a few bytes at a time round. A character that would be cut in two is left to the next
/// ones.
fn decode_inverted_utf8(bytes: &[u8], mut to: impl FnMut(&str)) -> bool {
    let mut plain = [0; 64];
    let mut rest = bytes;
    let mut valid = true;
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(rest.len().min(plain.len()));
        plain.iter_mut().zip(piece).for_each(|(to, from)| *to = !from);
        let begins = |at: &usize| piece.get(*at).is_some_and(|byte| !byte >= 0xc0);
        let cut = (piece.len().saturating_sub(3)..piece.len())
            .rfind(begins)
            .filter(|at| *at > 0 && !behind.is_empty());
        let used = cut.unwrap_or(piece.len());
        valid &= decode_utf8(plain.get(..used).unwrap_or(&[]), &mut to);
        rest = rest.get(used..).unwrap_or(&[]);
    }
    valid
}

fn decode_utf16(bytes: &[u8], flip: u16, mut to: impl FnMut(&str)) -> bool {
    let (pairs, odd) = bytes.as_chunks::<2>();
    let units = pairs.iter().map(|pair| u16::from_le_bytes(*pair) ^ flip);
    let mut valid = odd.is_empty();
    for unit in char::decode_utf16(units) {
        valid &= unit.is_ok();
        to(unit.unwrap_or(char::REPLACEMENT_CHARACTER).encode_utf8(&mut [0; 4]));
    }
    valid
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;

    fn text(kind: TextKind, bytes: &[u8]) -> (String, bool) {
        let mut out = String::new();
        let valid = decode_text(kind, bytes, &mut out);
        (out, valid)
    }

    #[test]
    fn every_kind_of_text() {
        assert_eq!(text(TextKind::Utf8, "Zé".as_bytes()), ("Zé".into(), true));
        assert_eq!(text(TextKind::Latin1, &[0x5a, 0xe9]), ("Zé".into(), true));
        assert_eq!(text(TextKind::Utf16, &[0x5a, 0, 0xe9, 0]), ("Zé".into(), true));
        assert_eq!(text(TextKind::Inverted8, &[!0x5a, !0x41]), ("ZA".into(), true));
        assert_eq!(text(TextKind::Inverted16, &[!0x5a, 0xff]), ("Z".into(), true));
        assert_eq!(text(TextKind::InvertedLatin1, &[!0x5a, !0xe9]), ("Zé".into(), true));
    }

    #[test]
    fn inverted_ascii_is_known_at_any_length() {
        for length in 0..20 {
            let mut bytes = vec![!b'x'; length];
            assert!(is_inverted_ascii(&bytes));
            for at in 0..length {
                bytes[at] = b'x';
                assert!(!is_inverted_ascii(&bytes), "{at} of {length}");
                bytes[at] = !b'x';
            }
        }
    }

    #[test]
    fn inverted_text_of_any_length_is_what_it_was() {
        let text = |kind, bytes: &[u8]| {
            let read = text(kind, bytes);
            assert!(kind != TextKind::Inverted8 || is_inverted_utf8(bytes) == read.1);
            read
        };
        for length in 0..140 {
            for odd in ["é", "Я", "€", "𝄞", "\u{fffd}"] {
                let whole = "a".repeat(length) + &odd.repeat(50) + "z";
                let inverted: Vec<u8> = whole.bytes().map(|b| !b).collect();
                assert_eq!(text(TextKind::Inverted8, &inverted), (whole, true));
            }
            for bad in [&b"\xff"[..], b"\xe2\x82", b"\xf0\x9d\x84", b"\xc3", b"\x84\x84\x84\x84"] {
                let whole = [&b"a".repeat(length), bad, b"z\xc3"].concat();
                let inverted: Vec<u8> = whole.iter().map(|b| !b).collect();
                assert_eq!(
                    text(TextKind::Inverted8, &inverted),
                    text(TextKind::Utf8, &whole),
                    "{length} {bad:?}"
                );
            }
        }
    }

    #[test]
    fn what_is_not_valid_is_said() {
        assert_eq!(text(TextKind::Utf8, &[0x41, 0xff]), ("A\u{fffd}".into(), false));
        assert_eq!(text(TextKind::Utf16, &[0x00, 0xd8]), ("\u{fffd}".into(), false));
        assert_eq!(text(TextKind::Utf16, &[0x41, 0, 7]), ("A".into(), false));
    }
}
