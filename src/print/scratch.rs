//! A scratch buffer of fixed size in which a record's text is put together before it goes into a
//! vector.
//!
//! A record's text consists of some hundred pieces of a few bytes each. To append a piece to a
//! vector costs a capacity check and a `memcpy` of unknown length. In the scratch buffer a piece is
//! one store of a fixed-size block, and the write position moves by the piece's real length; the
//! next piece overwrites the excess. Measured on game traffic to JSON (2,300 bytes a message, 85
//! values and structures): 17,900 instructions a message on top of decoding with a vector, 12,900
//! with the scratch buffer.
//!
//! It knows bytes, not what they say. Text from a capture is escaped on its way in: see
//! [`TextWriter::captured`].

use std::io::Write;

use crate::captured::Captured;

/// Size of a scratch buffer in bytes: nearly all records fit.
pub(super) const SCRATCH_BYTES: usize = 16 << 10;

/// A scratch buffer. A writer keeps one and uses it for every record.
#[derive(Clone)]
pub(super) struct Scratch(Box<[u8; SCRATCH_BYTES]>);

impl Default for Scratch {
    fn default() -> Self {
        Scratch(Box::new([0; SCRATCH_BYTES]))
    }
}

impl Scratch {
    /// A writer that appends to `out`. The text is complete in `out` only after
    /// [`TextWriter::finish`].
    #[inline]
    pub(super) fn writer<'a>(&'a mut self, out: &'a mut Vec<u8>) -> TextWriter<'a> {
        TextWriter { scratch: &mut self.0, at: 0, out }
    }
}

/// Writes into a scratch buffer and moves its content to the vector whenever it is full.
///
/// Functions that are not inlined get the buffer and the position as separate arguments, never
/// `&mut TextWriter`: as soon as the address of a writer escapes, the compiler has to keep it in
/// memory, and a loop that writes can no longer hold the position in a register.
pub(super) struct TextWriter<'a> {
    scratch: &'a mut [u8; SCRATCH_BYTES],
    at: usize,
    out: &'a mut Vec<u8>,
}

impl<'a> TextWriter<'a> {
    /// A writer that goes on at position `at` of a scratch buffer, before which lies what belongs
    /// behind `out`.
    #[inline(always)]
    pub(super) fn new(
        scratch: &'a mut [u8; SCRATCH_BYTES],
        at: usize,
        out: &'a mut Vec<u8>,
    ) -> TextWriter<'a> {
        TextWriter { scratch, at, out }
    }

    /// How many bytes of the scratch buffer are written.
    #[inline(always)]
    pub(super) fn position(self) -> usize {
        self.at
    }
}

impl TextWriter<'_> {
    /// Moves what is left to the vector.
    #[inline]
    pub(super) fn finish(mut self) {
        self.vec();
    }

    /// The vector, which then has everything that was written so far. For text that is long or
    /// rare: the caller appends to the vector.
    #[inline(always)]
    pub(super) fn vec(&mut self) -> &mut Vec<u8> {
        self.at = flush(self.scratch, self.at, self.out);
        self.out
    }

    /// Calls a function that takes the parts of a writer and returns the new position.
    #[inline(always)]
    pub(super) fn by_parts(
        &mut self,
        write: impl FnOnce(&mut [u8; SCRATCH_BYTES], usize, &mut Vec<u8>) -> usize,
    ) {
        self.at = write(self.scratch, self.at, self.out);
    }

    /// Calls `write` with a copy of this writer, so that the address of this one does not escape
    /// (see [`TextWriter`]).
    #[inline(always)]
    pub(super) fn by_copy<R>(&mut self, write: impl FnOnce(&mut TextWriter<'_>) -> R) -> R {
        let mut other = TextWriter { scratch: self.scratch, at: self.at, out: self.out };
        let result = write(&mut other);
        self.at = other.at;
        result
    }

    /// The next `N` bytes of the scratch buffer. The caller fills them and then calls
    /// [`TextWriter::advance`] with the number that count.
    #[inline(always)]
    pub(super) fn spare<const N: usize>(&mut self) -> Option<&mut [u8; N]> {
        const { assert!(N <= SCRATCH_BYTES) };
        if self.at > SCRATCH_BYTES - N {
            self.at = flush(self.scratch, self.at, self.out);
        }
        self.scratch.get_mut(self.at..)?.first_chunk_mut()
    }

    /// Keeps the first `used` of the bytes that [`TextWriter::spare`] gave.
    #[inline(always)]
    pub(super) fn advance(&mut self, used: usize) {
        self.at += used;
    }

    /// Appends the first `used` bytes of a block.
    #[inline(always)]
    pub(super) fn block<const N: usize>(&mut self, block: &[u8; N], used: usize) {
        if let Some(room) = self.spare() {
            *room = *block;
        }
        self.at += used;
    }

    /// Appends a text of a length known when compiling.
    #[inline(always)]
    pub(super) fn fixed<const N: usize>(&mut self, text: &[u8; N]) {
        self.block(text, N);
    }

    /// Appends a byte.
    #[inline(always)]
    pub(super) fn byte(&mut self, byte: u8) {
        self.fixed(&[byte]);
    }

    /// Appends a word of ours.
    #[inline(always)]
    pub(super) fn word(&mut self, word: &'static str) {
        self.raw(word.as_bytes());
    }

    /// Appends bytes as they are: digits, colour codes, names that tables declare, and what was
    /// escaped before. Never text from outside, which goes through [`TextWriter::captured`] or is
    /// escaped as JSON. Up to 32 bytes are fast.
    #[inline(always)]
    pub(super) fn raw(&mut self, text: &[u8]) {
        self.at = put(self.scratch, self.at, self.out, text);
    }

    /// Appends text from outside for people to read, its controls escaped.
    #[inline(always)]
    pub(super) fn captured(&mut self, text: Captured<'_>) {
        self.at = put_captured(self.scratch, self.at, self.out, text);
    }

    /// Appends a number in decimal.
    #[inline(always)]
    pub(super) fn number(&mut self, n: u64) {
        if n < 10 {
            self.byte(b'0' + n as u8);
        } else {
            self.at = digits(self.scratch, self.at, self.out, n);
        }
    }

    /// Appends a number that nearly always has more than eight digits.
    #[inline(always)]
    pub(super) fn long_number(&mut self, n: u64) {
        self.at = digits(self.scratch, self.at, self.out, n);
    }

    /// Appends a signed number in decimal.
    #[inline(always)]
    pub(super) fn signed(&mut self, n: i64) {
        if n < 0 {
            self.byte(b'-');
        }
        self.number(n.unsigned_abs());
    }
}

/// Appends the written part of the scratch buffer to the vector; returns the new position, 0.
#[inline(never)]
fn flush(scratch: &[u8; SCRATCH_BYTES], at: usize, out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(scratch.get(..at).unwrap_or(&[]));
    0
}

/// Appends a text. A length between two block sizes is copied as one block from its start and one
/// from its end, which overlap: two fixed-size copies are cheaper than one of unknown length.
#[inline(never)]
fn put(scratch: &mut [u8; SCRATCH_BYTES], at: usize, out: &mut Vec<u8>, text: &[u8]) -> usize {
    let length = text.len();
    let Some(room) = scratch
        .get_mut(at..)
        .and_then(|rest| rest.first_chunk_mut::<32>())
        .filter(|_| length <= 32)
    else {
        return put_long(scratch, at, out, text);
    };
    if let (Some(first), Some(last)) = (text.first_chunk::<16>(), text.last_chunk::<16>()) {
        ends(room, first, last, length);
    } else if let (Some(first), Some(last)) = (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        ends(room, first, last, length);
    } else if let (Some(first), Some(last)) = (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        ends(room, first, last, length);
    } else if let (Some(first), Some(last)) = (text.first_chunk::<2>(), text.last_chunk::<2>()) {
        ends(room, first, last, length);
    } else if let (Some(to), Some(only)) = (room.first_mut(), text.first()) {
        *to = *only;
    }
    at + length
}

/// Appends text from outside: as it is where it is plain ASCII, as nearly all names are.
#[inline(never)]
fn put_captured(
    scratch: &mut [u8; SCRATCH_BYTES],
    at: usize,
    out: &mut Vec<u8>,
    text: Captured<'_>,
) -> usize {
    if text.raw().bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return put(scratch, at, out, text.raw().as_bytes());
    }
    let at = flush(scratch, at, out);
    let _ = write!(out, "{}", text.escaped());
    at
}

#[inline(never)]
fn put_long(
    scratch: &mut [u8; SCRATCH_BYTES],
    mut at: usize,
    out: &mut Vec<u8>,
    text: &[u8],
) -> usize {
    if at + text.len() > SCRATCH_BYTES {
        at = flush(scratch, at, out);
    }
    match scratch.get_mut(at..at + text.len()) {
        Some(room) => {
            room.copy_from_slice(text);
            at + text.len()
        }
        None => {
            out.extend_from_slice(text);
            at
        }
    }
}

/// Appends the digits of a number.
#[inline(never)]
fn digits(scratch: &mut [u8; SCRATCH_BYTES], at: usize, out: &mut Vec<u8>, n: u64) -> usize {
    let room = scratch.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<16>());
    // What is rare is called last of all, so that nothing has to be kept for it.
    let Some(used) =
        room.and_then(|room| short_digits(room, n).or_else(|| two_part_digits(room, n)))
    else {
        return long_digits(scratch, at, out, n);
    };
    at + used
}

/// Puts the digits of a number below 100,000,000 at the beginning of a room; returns how many there
/// are. They are found together: found by `itoa` and copied from its buffer, they took 1,340
/// instructions for the numbers of a message of game traffic, and 810 this way, where JSON takes
/// 30,000.
#[inline(always)]
pub(super) fn short_digits<const N: usize>(room: &mut [u8; N], n: u64) -> Option<usize> {
    if n < 10 {
        *room.first_mut()? = b'0' + n as u8;
        return Some(1);
    }
    if n >= 100_000_000 {
        return None;
    }
    let all = eight(n);
    let zeros = all.trailing_zeros() / 8;
    *room.first_chunk_mut()? = ((all | ZEROS) >> (zeros * 8)).to_le_bytes();
    Some(8 - zeros as usize)
}

/// The same for a number of 9 to 16 digits.
#[inline(always)]
fn two_part_digits(room: &mut [u8; 16], n: u64) -> Option<usize> {
    let used = short_digits(room, n / 100_000_000)?;
    *room.get_mut(used..)?.first_chunk_mut()? = (eight(n % 100_000_000) | ZEROS).to_le_bytes();
    Some(used + 8)
}

/// Eight digits 0.
const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);

#[inline(never)]
fn long_digits(scratch: &mut [u8; SCRATCH_BYTES], at: usize, out: &mut Vec<u8>, n: u64) -> usize {
    put(scratch, at, out, itoa::Buffer::new().format(n).as_bytes())
}

/// The eight digits of a number, the first one in the lowest byte. Halves of four digits, then of
/// two, then of one are divided side by side, by multiplying with what is near enough to the
/// hundredth and the tenth.
#[inline(always)]
fn eight(n: u64) -> u64 {
    let fours = (n / 10_000) | ((n % 10_000) << 32);
    let hundreds = ((fours * 5243) >> 19) & 0x0000_007f_0000_007f;
    let twos = hundreds | ((fours - hundreds * 100) << 16);
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((twos - tens * 10) << 8)
}

/// Puts the two ends of a text of some length where they belong.
#[inline(always)]
fn ends<const N: usize>(room: &mut [u8; 32], first: &[u8; N], last: &[u8; N], length: usize) {
    if let Some(to) = room.first_chunk_mut() {
        *to = *first;
    }
    if let Some(to) = room.get_mut(length - N..length).and_then(|to| to.first_chunk_mut()) {
        *to = *last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_are_what_they_are() {
        let powers = (0..20).map(|length| 10u64.pow(length));
        let around = powers.flat_map(|n| [n - 1, n, n + 1, n / 9 * 8, n / 10 * 9]);
        for n in around.chain(0..20_000).chain([12_345_678, 99_999_999, 100_000_000, u64::MAX]) {
            let mut out = Vec::new();
            let mut scratch = Scratch::default();
            let mut w = scratch.writer(&mut out);
            w.number(n);
            w.finish();
            assert_eq!(String::from_utf8_lossy(&out), n.to_string());
        }
    }

    #[test]
    fn numbers_at_the_end_of_a_page_go_on_with_the_next_one() {
        for left in 0..40 {
            let mut out = Vec::new();
            let mut scratch = Scratch::default();
            let mut w = scratch.writer(&mut out);
            (left..SCRATCH_BYTES).for_each(|_| w.byte(b'-'));
            w.number(1_234_567);
            w.number(u64::MAX);
            w.finish();
            let right = format!("{}1234567{}", "-".repeat(SCRATCH_BYTES - left), u64::MAX);
            assert_eq!(String::from_utf8_lossy(&out), right);
        }
    }
}
