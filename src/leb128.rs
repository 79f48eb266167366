//! Numbers in as many bytes as they need: unsigned LEB128, seven bits a byte, lowest bits first;
//! signed ones zigzag-coded.
//!
//! It knows bytes, and nothing of what the numbers mean.

/// Appends a number.
#[inline]
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A signed number as an unsigned one that is small where the signed one is near 0.
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The signed number that [`zigzag`] made `value` of.
pub fn unzigzag(value: u64) -> i64 {
    ((value >> 1) as i64) ^ -((value & 1) as i64)
}

/// Reads numbers, and bytes between them. Every method returns `None` where the bytes end too
/// early.
#[derive(Clone, Copy, Debug)]
pub struct Leb128Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Leb128Reader<'a> {
    /// Reads from the first of `bytes` on.
    pub fn new(bytes: &'a [u8]) -> Self {
        Leb128Reader { rest: bytes }
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// The next number; `None` also where it has more than 64 bits.
    #[inline]
    pub fn number(&mut self) -> Option<u64> {
        match self.rest {
            // Most numbers have up to three bytes.
            [first, rest @ ..] if *first < 0x80 => {
                self.rest = rest;
                Some(u64::from(*first))
            }
            [first, second, rest @ ..] if *second < 0x80 => {
                self.rest = rest;
                Some(u64::from(*first & 0x7f) | u64::from(*second) << 7)
            }
            [first, second, third, rest @ ..] if *third < 0x80 => {
                self.rest = rest;
                Some(
                    u64::from(*first & 0x7f)
                        | u64::from(*second & 0x7f) << 7
                        | u64::from(*third) << 14,
                )
            }
            _ => self.long_number(),
        }
    }

    fn long_number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for (at, byte) in self.rest.iter().enumerate().take(10) {
            let bits = u64::from(byte & 0x7f);
            if at == 9 && bits > 1 {
                return None;
            }
            value |= bits << (7 * at);
            if byte & 0x80 == 0 {
                self.rest = self.rest.get(at + 1..)?;
                return Some(value);
            }
        }
        None
    }

    /// The next number, where it fits into 32 bits.
    pub fn number32(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    /// The next byte.
    #[inline]
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// The next `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(bytes)
    }

    /// Bytes behind a number that counts them.
    pub fn counted(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.number()?).ok()?;
        self.bytes(count)
    }

    /// UTF-8 behind a number that counts its bytes.
    pub fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.counted()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for value in [
            0,
            1,
            127,
            128,
            300,
            16_383,
            16_384,
            2_097_151,
            2_097_152,
            u64::from(u32::MAX),
            u64::MAX,
        ] {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            let mut reader = Leb128Reader::new(&bytes);
            assert_eq!((reader.number(), reader.left()), (Some(value), 0));
        }
        for value in [0, -1, 1, i64::MIN, i64::MAX] {
            assert_eq!(unzigzag(zigzag(value)), value);
        }
    }

    #[test]
    fn what_is_cut_or_too_large_is_no_number() {
        assert_eq!(Leb128Reader::new(&[0x80, 0x80]).number(), None);
        assert_eq!(Leb128Reader::new(&[0xff; 11]).number(), None);
        assert_eq!(
            Leb128Reader::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).number(),
            None
        );
        assert_eq!(Leb128Reader::new(&[5, 1, 2]).counted(), None);
    }
}
