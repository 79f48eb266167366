//! Numbers as decimal digits, eight at a time in one word: most numbers are short, and looking for how short they are digit by digit
//! takes longer than writing them.

/// More than eight digits hold.
pub(super) const EIGHT: u64 = 100_000_000;

const ZEROS: u64 = u64::from_le_bytes([b'0'; 8]);

/// A number below [`EIGHT`] as eight digits.
#[inline(always)]
pub(super) fn eight(n: u64) -> [u8; 8] {
    (digits(n) + ZEROS).to_le_bytes()
}

/// A number below [`EIGHT`] without zeros before it, and how many digits it has.
#[inline(always)]
pub(super) fn short(n: u64) -> ([u8; 8], usize) {
    let digits = digits(n);
    // The last digit stands whatever it is.
    let zeros = (digits | 1 << 56).trailing_zeros() / 8;
    (((digits + ZEROS) >> (zeros * 8)).to_le_bytes(), 8 - zeros as usize)
}

/// A digit in each byte, the highest in the lowest one. Both halves of the number are divided at once, then both of these, and so on: the
/// products with 5243/2^19 and 103/2^10 are hundredths and tenths, exact for as many digits as each part has.
#[inline(always)]
fn digits(n: u64) -> u64 {
    let fours = (n / 10_000) | ((n % 10_000) << 32);
    let hundreds = ((fours * 5243) >> 19) & 0x0000_007f_0000_007f;
    let twos = hundreds | (fours - hundreds * 100) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (twos - tens * 10) << 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_number() {
        let every = (0..20_000).chain((0..EIGHT).step_by(9973)).chain(EIGHT - 20_000..EIGHT);
        for n in every {
            assert_eq!(eight(n), *format!("{n:08}").as_bytes());
            let (digits, count) = short(n);
            assert_eq!(digits.get(..count), Some(n.to_string().as_bytes()));
        }
    }
}
