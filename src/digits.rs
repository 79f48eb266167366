//! Bytes as hex, UUIDs, milliseconds and counts, in the one form that all outputs write. It knows
//! no output.

/// The two lower-case hex digits of a byte. They are computed and not looked up, so that the
/// compiler does many bytes at once.
#[inline(always)]
pub fn hex_pair(byte: u8) -> [u8; 2] {
    let digit = |n: u8| n + b'0' + if n > 9 { b'a' - b'9' - 1 } else { 0 };
    [digit(byte >> 4), digit(byte & 15)]
}

/// Whether a text is a UUID: 32 hex digits in either case, with four hyphens.
pub fn is_uuid(text: &[u8]) -> bool {
    text.len() == 36
        && text.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// The bytes of a UUID in its usual text, in either case.
pub fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    if !is_uuid(text.as_bytes()) {
        return None;
    }
    let mut digits = text.chars().filter_map(|c| c.to_digit(16));
    let mut bytes = [0; 16];
    for byte in &mut bytes {
        *byte = (digits.next()? << 4 | digits.next()?) as u8;
    }
    Some(bytes)
}

/// The lower-case hex digits of sixteen bytes.
#[inline(always)]
pub fn hex_block(bytes: &[u8; 16]) -> [[u8; 2]; 16] {
    let mut digits = [[0; 2]; 16];
    digits.iter_mut().zip(bytes).for_each(|(to, byte)| *to = hex_pair(*byte));
    digits
}

/// Appends bytes as lower-case hex.
pub fn append_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    let (blocks, rest) = bytes.as_chunks::<16>();
    out.reserve(bytes.len() * 2);
    for block in blocks {
        out.extend_from_slice(hex_block(block).as_flattened());
    }
    for byte in rest {
        out.extend_from_slice(&hex_pair(*byte));
    }
}

/// A count with its noun: `1 frame`, `2 frames`.
pub fn counted(n: impl TryInto<u64>, noun: &str) -> String {
    let n = n.try_into().unwrap_or(u64::MAX);
    format!("{n} {noun}{}", plural(n, "", "s"))
}

/// `one` for a count of 1, and `more` for every other: `plural(n, "is", "are")`.
pub fn plural(n: impl TryInto<u64>, one: &'static str, more: &'static str) -> &'static str {
    if n.try_into().is_ok_and(|n| n == 1) { one } else { more }
}

/// Bytes as lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    append_hex(&mut out, bytes);
    String::from_utf8(out).unwrap_or_default()
}

/// Changes a UUID from Microsoft's order of bytes, in which its first three parts are
/// little-endian, to the order of its text, and back.
pub fn swap_uuid([a, b, c, d, e, f, g, h, rest @ ..]: [u8; 16]) -> [u8; 16] {
    let [i, j, k, l, m, n, o, p] = rest;
    [d, c, b, a, f, e, h, g, i, j, k, l, m, n, o, p]
}

/// The usual text of a UUID whose bytes are in the order of that text.
#[inline]
pub fn uuid_digits(uuid: &[u8; 16]) -> [u8; 36] {
    let mut text = [b'-'; 36];
    let digits = hex_block(uuid);
    let mut places = &mut text[..];
    let mut digits = &digits[..];
    for pairs in [4, 2, 2, 2, 6] {
        let (part, later) = places.split_at_mut(pairs * 2);
        let (now, next) = digits.split_at(pairs);
        part.copy_from_slice(now.as_flattened());
        // There is a hyphen between two parts.
        (places, digits) = (later.get_mut(1..).unwrap_or_default(), next);
    }
    text
}

/// The usual text of a UUID. `microsoft` says that its first three parts are little-endian. Bytes
/// that are missing are zeros.
pub fn uuid_text(bytes: &[u8], microsoft: bool) -> String {
    let uuid = uuid_of(bytes, microsoft);
    String::from_utf8_lossy(&uuid_digits(&uuid)).into_owned()
}

/// The bytes of a UUID in the order of its text; the parameters are those of [`uuid_text`].
#[inline]
pub fn uuid_of(bytes: &[u8], microsoft: bool) -> [u8; 16] {
    let uuid = bytes.first_chunk().copied().unwrap_or_default();
    if microsoft { swap_uuid(uuid) } else { uuid }
}

/// Nanoseconds as milliseconds with at most three decimals.
pub fn milliseconds(nanos: i64) -> f64 {
    (nanos / 1000) as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_has_two_digits_a_byte_at_any_length() {
        let bytes: Vec<u8> = (0..=255).collect();
        for length in [0, 1, 15, 16, 17, 256] {
            let (bytes, _) = bytes.split_at(length);
            let right: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex(bytes), right);
        }
    }

    #[test]
    fn a_uuid_is_read_from_its_text() {
        let bytes: [u8; 16] = std::array::from_fn(|at| at as u8 * 17);
        let text = uuid_text(&bytes, false);
        assert_eq!(parse_uuid(&text), Some(bytes));
        assert_eq!(parse_uuid(&text.to_uppercase()), Some(bytes));
        assert_eq!(parse_uuid(&text.replace('-', "0")), None);
    }

    #[test]
    fn a_uuid_is_written_in_either_order() {
        let bytes: Vec<u8> = (0..16).collect();
        assert_eq!(uuid_text(&bytes, false), "00010203-0405-0607-0809-0a0b0c0d0e0f");
        assert_eq!(uuid_text(&bytes, true), "03020100-0504-0706-0809-0a0b0c0d0e0f");
        assert_eq!(
            swap_uuid(swap_uuid([7, 1, 2, 3, 4, 5, 6, 8, 9, 0, 1, 2, 3, 4, 5, 6])),
            [7, 1, 2, 3, 4, 5, 6, 8, 9, 0, 1, 2, 3, 4, 5, 6]
        );
    }

    #[test]
    fn milliseconds_keep_three_decimals() {
        assert_eq!([0, 1_999, 3_400_000, -1_500].map(milliseconds), [0.0, 0.001, 3.4, -0.001]);
    }
}
