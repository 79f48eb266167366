//! Integers of 16, 32 and 64 bits in either byte order, as the headers of captures have them. It
//! knows no format.

/// The byte order a file or a section was written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endianness {
    Little,
    Big,
}

impl Endianness {
    /// Two bytes as a number.
    pub(super) fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    /// Four bytes as a number.
    #[inline]
    pub(super) fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    /// A number as its two bytes.
    pub(super) fn bytes16(self, number: u16) -> [u8; 2] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }

    /// A number as its eight bytes.
    pub(super) fn bytes64(self, number: u64) -> [u8; 8] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }

    /// A number as its four bytes.
    pub(super) fn bytes32(self, number: u32) -> [u8; 4] {
        match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        }
    }

    /// Eight bytes as a number.
    pub(super) fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }

    /// Eight bytes as a signed number.
    pub(super) fn i64(self, bytes: [u8; 8]) -> i64 {
        match self {
            Self::Little => i64::from_le_bytes(bytes),
            Self::Big => i64::from_be_bytes(bytes),
        }
    }

    /// The 16-bit number `at` bytes into `data`; `None` if `data` ends before it does.
    pub(super) fn u16_at(self, data: &[u8], at: usize) -> Option<u16> {
        let bytes = data.get(at..)?.first_chunk::<2>()?;
        Some(self.u16(*bytes))
    }

    /// The 32-bit number `at` bytes into `data`; `None` if `data` ends before it does.
    pub(super) fn u32_at(self, data: &[u8], at: usize) -> Option<u32> {
        let bytes = data.get(at..)?.first_chunk::<4>()?;
        Some(self.u32(*bytes))
    }

    /// The first `N` 32-bit numbers of `data`; `None` if it holds fewer.
    #[inline]
    pub(super) fn words<const N: usize>(self, data: &[u8]) -> Option<[u32; N]> {
        let (words, _) = data.as_chunks::<4>();
        let words = words.first_chunk::<N>()?;
        Some(words.map(|word| self.u32(word)))
    }
}
