//! The bytes that encoding makes. They are written bit by bit where values do not begin with a
//! byte, the least significant bit of a byte first.

/// Bytes that grow at their end.
#[derive(Debug, Default)]
pub struct Bits {
    bytes: Vec<u8>,
    /// How many bits of the last byte are used: 0 for all.
    used: u32,
    /// These are its most significant ones.
    from_top: bool,
}

impl Bits {
    /// How many bits there are.
    pub fn pos(&self) -> usize {
        match self.used {
            0 => self.bytes.len() * 8,
            used => self.bytes.len() * 8 - 8 + used as usize,
        }
    }

    /// The bytes so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Removes all from a bit on.
    pub fn cut(&mut self, pos: usize) {
        self.bytes.truncate(pos.div_ceil(8));
        self.used = (pos % 8) as u32;
        if let (1.., Some(last)) = (self.used, self.bytes.last_mut()) {
            *last &= if self.from_top { !(0xff >> self.used) } else { (1 << self.used) - 1 };
        }
    }

    /// Appends bytes, at any bit.
    pub fn put(&mut self, bytes: &[u8]) {
        if self.used == 0 {
            self.bytes.extend_from_slice(bytes);
        } else {
            bytes.iter().for_each(|byte| self.put_bits(u64::from(*byte), 8));
        }
    }

    /// Appends zero bytes.
    pub fn put_zeros(&mut self, n: usize) {
        if self.used == 0 {
            self.bytes.resize(self.bytes.len() + n, 0);
        } else {
            (0..n).for_each(|_| self.put_bits(0, 8));
        }
    }

    /// Appends the lowest `n` bits of a number, 64 at most, the least significant first.
    pub fn put_bits(&mut self, value: u64, n: u32) {
        self.from_top = false;
        let (mut value, mut left) = (value, n.min(64));
        while left > 0 {
            if self.used == 0 {
                self.bytes.push(0);
            }
            let take = (8 - self.used).min(left);
            let part = (value & ((1 << take) - 1)) as u8;
            if let Some(last) = self.bytes.last_mut() {
                *last |= part << self.used;
            }
            self.used = (self.used + take) % 8;
            value = value.checked_shr(take).unwrap_or(0);
            left -= take;
        }
    }

    /// Appends a bit where the most significant bit of a byte is its first.
    pub fn put_bit_be(&mut self, bit: bool) {
        self.from_top = true;
        if self.used == 0 {
            self.bytes.push(0);
        }
        if let Some(last) = self.bytes.last_mut() {
            *last |= u8::from(bit) << (7 - self.used);
        }
        self.used = (self.used + 1) % 8;
    }

    /// Zero bits up to the next byte.
    pub fn align(&mut self) {
        self.used = 0;
    }

    /// Replaces bytes that begin at a bit.
    pub fn replace(&mut self, pos: usize, with: &[u8]) {
        write_bytes(&mut self.bytes, pos, with);
    }
}

/// Writes bytes over others from any bit on.
pub fn write_bytes(bytes: &mut [u8], pos: usize, new: &[u8]) {
    let shift = pos % 8;
    for (i, byte) in new.iter().enumerate() {
        let wide = u16::from(*byte) << shift;
        let mask = 0xffu16 << shift;
        for (k, (part, mask)) in wide.to_le_bytes().into_iter().zip(mask.to_le_bytes()).enumerate()
        {
            if let Some(to) = bytes.get_mut(pos / 8 + i + k) {
                *to = *to & !mask | part;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_back_as_they_were_put() {
        let mut bits = Bits::default();
        bits.put_bits(0x31, 7);
        bits.put_bits(0, 1);
        bits.put(&[0xff]);
        bits.put_bits(5, 3);
        bits.put(&[0x21, 0x43]);
        assert_eq!((bits.bytes(), bits.pos()), (&[0x31, 0xff, 0x0d, 0x19, 0x02][..], 35));
        bits.replace(19, &[0xff]);
        assert_eq!(bits.bytes(), [0x31, 0xff, 0xfd, 0x1f, 0x02]);
        bits.cut(18);
        assert_eq!((bits.bytes(), bits.pos()), (&[0x31, 0xff, 0x01][..], 18));
        bits.align();
        bits.put_bits(u64::MAX, 64);
        assert_eq!(bits.pos(), 88);
        bits.cut(0);
        [true, false, true, true].into_iter().for_each(|bit| bits.put_bit_be(bit));
        bits.cut(3);
        bits.put_bit_be(false);
        assert_eq!((bits.bytes(), bits.pos()), (&[0xa0][..], 4));
    }
}
