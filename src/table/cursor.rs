//! The cursor through which all message bytes are read. It cannot read beyond its end, and it
//! counts in bits.

use crate::tree::Buffer;

/// Reading went past the end. Holds the end that was needed, in bits from the buffer's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Short(pub u64);

/// A position in a buffer, and the end of the region it may read.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    data: &'a [u8],
    pos: usize,
    limit: usize,
    buffer: Buffer,
}

impl<'a> Cursor<'a> {
    /// The largest buffer whose positions fit the tree's 32 bits.
    pub const MAX_BYTES: usize = (u32::MAX / 8) as usize;

    /// A cursor at the start of a buffer, over all of it.
    pub fn new(data: &'a [u8], buffer: Buffer) -> Self {
        let data = data.get(..Self::MAX_BYTES).unwrap_or(data);
        Cursor { data, pos: 0, limit: data.len() * 8, buffer }
    }

    /// A cursor at a bit of a buffer, up to the buffer's end.
    pub fn at_bit(mut self, bit: usize) -> Self {
        self.pos = bit.min(self.limit);
        self
    }

    /// Which buffer this is.
    pub fn buffer(&self) -> Buffer {
        self.buffer
    }

    /// Position in bits from the buffer's start.
    #[inline]
    pub fn pos(&self) -> usize {
        self.pos
    }

    /// End of the region, in bits from the buffer's start.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Bits left in the region.
    #[inline]
    pub fn left_bits(&self) -> usize {
        self.limit - self.pos
    }

    /// Whole bytes left in the region.
    #[inline]
    pub fn left(&self) -> usize {
        self.left_bits() / 8
    }

    /// Ends the region `bytes` from here. Returns the old end for [`Cursor::restore`].
    #[inline]
    pub fn narrow(&mut self, bytes: usize) -> Result<usize, Short> {
        let end = self.end_of(bytes)?;
        Ok(std::mem::replace(&mut self.limit, end))
    }

    /// Puts the region's end back.
    pub fn restore(&mut self, limit: usize) {
        self.limit = limit.min(self.data.len() * 8);
    }

    /// Goes to a bit of the region (backwards too).
    pub fn seek(&mut self, bit: usize) {
        self.pos = bit.min(self.limit);
    }

    #[inline]
    fn end_of(&self, bytes: usize) -> Result<usize, Short> {
        let end = (bytes as u64).saturating_mul(8).saturating_add(self.pos as u64);
        if end > self.limit as u64 { Err(Short(end)) } else { Ok(end as usize) }
    }

    /// The same for a few bytes: positions stay below 2³² (`MAX_BYTES`), so nothing can overflow.
    #[inline]
    fn near_end_of(&self, bytes: usize) -> Result<usize, Short> {
        let end = self.pos + bytes * 8;
        if end > self.limit { Err(Short(end as u64)) } else { Ok(end) }
    }

    /// The next `N` bytes. At a bit that begins no byte, they are put together from the bits.
    #[inline(always)]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Short> {
        let end = self.near_end_of(N)?;
        let at = self.pos >> 3;
        let bytes = match self.data.get(at..).and_then(|rest| rest.first_chunk::<N>()) {
            Some(bytes) if self.pos & 7 == 0 => *bytes,
            _ => self.unaligned(),
        };
        self.pos = end;
        Ok(bytes)
    }

    /// The next `size` bytes (8 at most) as a number, least significant first, in the lowest bytes.
    /// The bytes above them are unspecified.
    #[inline(always)]
    pub(super) fn little(&mut self, size: u8) -> Result<u64, Short> {
        let end = self.near_end_of(usize::from(size))?;
        let value = match self.data.get(self.pos >> 3..).and_then(|rest| rest.first_chunk::<8>()) {
            Some(bytes) if self.pos & 7 == 0 => u64::from_le_bytes(*bytes),
            _ => self.few(size),
        };
        self.pos = end;
        Ok(value)
    }

    /// Where less than eight bytes follow: they are the end of the buffer's last eight bytes.
    #[inline(never)]
    fn few(&self, size: u8) -> u64 {
        let follow = self.data.len().saturating_sub(self.pos >> 3) as u32;
        match self.data.last_chunk::<8>() {
            Some(last) if self.pos & 7 == 0 && follow < 8 => {
                u64::from_le_bytes(*last).checked_shr(64 - follow * 8).unwrap_or(0)
            }
            _ => {
                let mut copy = *self;
                copy.bits(u32::from(size) * 8).unwrap_or(0)
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn unaligned<const N: usize>(&self) -> [u8; N] {
        let mut copy = *self;
        std::array::from_fn(|_| copy.bits(8).unwrap_or(0) as u8)
    }

    /// The next `n` bytes, without moving. `None` within a byte.
    #[inline]
    pub fn peek(&self, n: usize) -> Result<Option<&'a [u8]>, Short> {
        let end = self.end_of(n)?;
        if self.pos & 7 != 0 {
            return Ok(None);
        }
        Ok(self.data.get(self.pos >> 3..end >> 3))
    }

    /// The next `n` bytes and the offset of the first one in the buffer. Moves behind them. Within
    /// a byte there are no bytes to be had.
    #[inline]
    pub fn take(&mut self, n: usize) -> Result<(usize, &'a [u8]), Short> {
        let end = self.end_of(n)?;
        let from = self.pos;
        self.pos = end;
        let bytes = if from & 7 == 0 {
            self.data.get(from >> 3..end >> 3).unwrap_or_default()
        } else {
            &[]
        };
        Ok((from >> 3, bytes))
    }

    /// The bytes of the region from here on.
    pub fn rest(&self) -> &'a [u8] {
        self.data.get(self.pos.div_ceil(8)..self.limit >> 3).unwrap_or(&[])
    }

    /// Bytes of the buffer before the cursor or behind it, wherever the region ends.
    pub fn behind(&self, at: usize, n: usize) -> &'a [u8] {
        self.data.get(at..at.saturating_add(n)).unwrap_or(&[])
    }

    /// Moves `n` bytes on. Returns the first byte's offset in the buffer.
    #[inline]
    pub fn skip(&mut self, n: usize) -> Result<usize, Short> {
        let end = self.end_of(n)?;
        let at = self.pos >> 3;
        self.pos = end;
        Ok(at)
    }

    /// The next `n` bits (at most 64), least significant first.
    #[inline]
    pub fn bits(&mut self, n: u32) -> Result<u64, Short> {
        let end = self.pos.saturating_add(n as usize);
        if end > self.limit {
            return Err(Short(end as u64));
        }
        let mut value = 0u64;
        let mut got = 0u32;
        while got < n.min(64) {
            let byte = u64::from(self.data.get(self.pos >> 3).copied().unwrap_or(0));
            let shift = (self.pos & 7) as u32;
            let take = (8 - shift).min(n - got);
            value |= ((byte >> shift) & ((1 << take) - 1)) << got;
            got += take;
            self.pos += take as usize;
        }
        self.pos = end;
        Ok(value)
    }

    /// Moves to the next byte's start. Returns how many bits it skipped.
    pub fn align(&mut self) -> usize {
        let to = self.pos.next_multiple_of(8).min(self.limit);
        let passed = to - self.pos;
        self.pos = to;
        passed
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn bits_come_least_significant_first() {
        let mut c = Cursor::new(&[0x31, 0xff], Buffer::CAPTURED);
        assert_eq!(c.bits(7), Ok(0x31));
        assert_eq!(c.bits(1), Ok(0));
        assert_eq!(c.bits(9), Err(Short(17)));
        assert_eq!(c.bits(8), Ok(0xff));
    }

    #[test]
    fn bytes_may_begin_at_any_bit() {
        let mut c = Cursor::new(&[0x10, 0x32, 0x04], Buffer::CAPTURED).at_bit(4);
        assert_eq!(c.array::<2>(), Ok([0x21, 0x43]));
    }

    #[test]
    fn a_number_at_the_end_is_read_as_anywhere() {
        let bytes: Vec<u8> = (1..=20).collect();
        for end in 1..=bytes.len() {
            for (at, size) in (0..end).flat_map(|at| (1..=8).map(move |size| (at, size))) {
                let mut c = Cursor::new(&bytes[..end], Buffer::CAPTURED);
                (0..at).for_each(|_| assert!(c.array::<1>().is_ok()));
                let expected = (at + size <= end).then(|| {
                    bytes[at..at + size]
                        .iter()
                        .rev()
                        .fold(0u64, |number, byte| number << 8 | u64::from(*byte))
                });
                let mask = u64::MAX >> (64 - 8 * size);
                assert_eq!(
                    c.little(size as u8).ok().map(|number| number & mask),
                    expected,
                    "{at} {size} {end}"
                );
            }
        }
    }

    #[test]
    fn a_region_has_an_end() {
        let mut c = Cursor::new(&[1, 2, 3], Buffer::CAPTURED);
        let limit = c.narrow(2).unwrap();
        assert_eq!(c.array::<3>(), Err(Short(24)));
        assert_eq!(c.array::<2>(), Ok([1, 2]));
        c.restore(limit);
        assert_eq!(c.left(), 1);
    }
}
