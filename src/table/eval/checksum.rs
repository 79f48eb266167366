//! Checksums: a field's value is compared with the checksum of the bytes.

use super::super::cursor::Cursor;
use super::super::program::*;
use super::{Run, Stop};
use crate::tree::Severity;

/// The most bytes that all checksums of one message together may read.
const MOST: usize = 64 << 20;

/// The checksum that a field is compared with.
#[derive(Clone, Copy)]
pub(super) struct SummedField {
    pub(super) sum: Checksum,
    pub(super) value: u64,
    /// The range of the field's own bytes, which count as zeros.
    pub(super) own: (usize, usize),
    /// The first byte of the checksum, and the byte after its last one.
    pub(super) range: (usize, usize),
}

impl Run<'_> {
    /// Compares the field that was just read with the checksum of the bytes.
    pub(super) fn verify(&mut self, of: SummedField, cursor: &Cursor<'_>) -> Result<(), Stop> {
        let (from, to) = of.range;
        let bytes = cursor.behind(from, to.saturating_sub(from));
        if bytes.len() < to.saturating_sub(from) {
            return Err(Stop::Short((to as u64).saturating_mul(8)));
        }
        let node = self.tree.len().saturating_sub(1);
        self.state.summed = self.state.summed.saturating_add(bytes.len());
        if self.state.summed > MOST {
            self.problem(
                Severity::Note,
                node,
                "not compared: the checksums of one message are of more than {a} bytes",
                MOST as i64,
                0,
            );
            return Ok(());
        }
        let own = of.own.0.saturating_sub(from)..of.own.1.saturating_sub(from);
        let zeroed =
            bytes.iter().enumerate().map(|(at, byte)| if own.contains(&at) { 0 } else { *byte });
        let found = sum(of.sum, zeroed);
        if found != of.value {
            let text = "a checksum of {a}, where the bytes give {b}";
            self.problem(Severity::Warning, node, text, of.value as i64, found as i64);
        }
        Ok(())
    }
}

/// The checksum of some bytes.
pub(in crate::table) fn sum(how: Checksum, bytes: impl Iterator<Item = u8>) -> u64 {
    match how {
        Checksum::Sum8 => u64::from(bytes.fold(0u8, u8::wrapping_add)),
        Checksum::Xor8 => u64::from(bytes.fold(0, |all, byte| all ^ byte)),
        Checksum::Internet => internet(bytes),
        Checksum::Adler32 => {
            let (a, b) = bytes.fold((1u32, 0u32), |(a, b), byte| {
                let a = (a + u32::from(byte)) % 65521;
                (a, (b + a) % 65521)
            });
            u64::from(b << 16 | a)
        }
        Checksum::Crc16 => u64::from(reflected(bytes, 0, 0xa001)),
        Checksum::Crc16Ccitt => bytes.fold(0xffffu64, |crc, byte| {
            (0..8).fold(crc ^ u64::from(byte) << 8, |crc, _| {
                (if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 }) & 0xffff
            })
        }),
        Checksum::Crc32 => u64::from(!reflected(bytes, !0, 0xedb8_8320)),
        Checksum::Crc32c => u64::from(!reflected(bytes, !0, 0x82f6_3b78)),
    }
}

/// The least significant bit of each byte first.
fn reflected(bytes: impl Iterator<Item = u8>, start: u32, polynomial: u32) -> u32 {
    bytes.fold(start, |crc, byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            if crc & 1 == 0 { crc >> 1 } else { crc >> 1 ^ polynomial }
        })
    })
}

/// The ones' complement of the ones' complement sum of all units of 16 bits, most significant byte
/// first.
fn internet(bytes: impl Iterator<Item = u8>) -> u64 {
    let add = |(sum, high): (u64, bool), byte: u8| {
        (sum + if high { u64::from(byte) << 8 } else { u64::from(byte) }, !high)
    };
    let (mut sum, _) = bytes.fold((0u64, true), add);
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !sum & 0xffff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksums_of_the_nine_digits_are_the_published_ones() {
        let of = |how| sum(how, b"123456789".iter().copied());
        assert_eq!(of(Checksum::Sum8), 0xdd);
        assert_eq!(of(Checksum::Xor8), 0x31);
        assert_eq!(of(Checksum::Adler32), 0x091e_01de);
        assert_eq!(of(Checksum::Crc16), 0xbb3d);
        assert_eq!(of(Checksum::Crc16Ccitt), 0x29b1);
        assert_eq!(of(Checksum::Crc32), 0xcbf4_3926);
        assert_eq!(of(Checksum::Crc32c), 0xe306_9283);
        let header = [
            0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0,
            0xc7,
        ];
        assert_eq!(sum(Checksum::Internet, header.into_iter()), 0xb861);
    }
}
