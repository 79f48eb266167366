//! Bytes as text, and as lines of hex and text. It knows no stream.

use crate::digits::{hex_block, hex_pair};

/// Text with dots for all other bytes. A carriage return is kept only before a line feed: elsewhere
/// it would overwrite a line on a terminal.
pub(super) fn text(bytes: &[u8], out: &mut Vec<u8>) {
    for (i, byte) in bytes.iter().enumerate() {
        let line_end = *byte == b'\r' && bytes.get(i + 1) == Some(&b'\n');
        let kept = plain(*byte) || line_end || matches!(byte, b'\n' | b'\t');
        out.push(if kept { *byte } else { b'.' });
    }
}

#[inline(always)]
fn plain(b: u8) -> bool {
    (0x20..0x7f).contains(&b)
}

/// Sixteen bytes a line: offset in the direction, hex, text.
pub(super) fn dump(offset: u64, bytes: &[u8], out: &mut Vec<u8>) {
    let (whole, rest) = bytes.as_chunks::<16>();
    let mut at = offset;
    for line in whole {
        dump_line(at, line, 16, out);
        at = at.saturating_add(16);
    }
    if !rest.is_empty() {
        let mut line = [0; 16];
        line.iter_mut().zip(rest).for_each(|(to, byte)| *to = *byte);
        dump_line(at, &line, rest.len(), out);
    }
}

/// The line of a dump behind the offset: a blank, two groups of eight cells with a blank between
/// them, each cell a blank and a byte, two blanks, and the text.
const LINE: [u8; 71] = {
    let mut line = [b' '; 71];
    (line[52], line[69], line[70]) = (b'|', b'|', b'\n');
    line
};

/// The line of the first `count` bytes, from 1 to 16. Every index is below the array's length, so
/// the compiler leaves out all bounds checks.
#[allow(clippy::indexing_slicing, clippy::needless_range_loop)]
fn dump_line(at: u64, bytes: &[u8; 16], count: usize, out: &mut Vec<u8>) {
    let mut place = [0; 16];
    for (n, byte) in (0..8).zip(at.to_be_bytes()) {
        [place[2 * n], place[2 * n + 1]] = hex_pair(byte);
    }
    let zeros = (at.leading_zeros() / 4).min(8) as usize;
    out.extend_from_slice(place.get(zeros..).unwrap_or_default());
    // One loop for each part: the compiler does many bytes at once.
    let digits = hex_block(bytes);
    let mut text = [0; 16];
    let mut line = LINE;
    for n in 0..16 {
        text[n] = if plain(bytes[n]) { bytes[n] } else { b'.' };
    }
    for n in 0..16 {
        let cell = 2 + 3 * n + n / 8;
        [line[cell], line[cell + 1]] = digits[n];
    }
    line[53..69].copy_from_slice(&text);
    if count == 16 {
        return out.extend_from_slice(&line);
    }
    // Blanks from the end of the last byte on, up to the text.
    line[1 + 3 * count + count / 9..52].fill(b' ');
    out.extend_from_slice(&line[..53 + count]);
    out.extend_from_slice(b"|\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_dump_are_aligned() {
        let mut out = Vec::new();
        dump(0x10, b"0123456789abcdefXYZ\n", &mut out);
        let text = String::from_utf8_lossy(&out);
        let expected = "00000010  30 31 32 33 34 35 36 37  38 39 61 62 63 64 65 66  |0123456789abcdef|\n\
                        00000020  58 59 5a 0a                                       |XYZ.|\n";
        assert_eq!(text, expected);
        let mut out = Vec::new();
        dump(0x1_0000_0008, b"0", &mut out);
        assert!(out.starts_with(b"100000008  30  "));
    }
}
