//! Explains numbers of Plasma in words, for trees. It knows no message and no output.

use std::io::Write;

use crate::table::Meaning;

/// The words that tables may write after `shown`.
pub(super) const MEANINGS: [Meaning; 1] =
    [Meaning { name: "sequence_number", write: sequence_number }];

/// A location's sequence number as age and page: see `docs/moul.md`.
fn sequence_number(value: u64, out: &mut Vec<u8>) {
    let n = value as u32;
    let _ = match n {
        0 => write!(out, "fixed keys"),
        1..=0x20 => write!(out, "reserved for local use"),
        0x21..=0xfeff_0020 => write!(out, "age {}, page {}", (n - 0x21) >> 16, (n - 0x21) & 0xffff),
        0xff01_0001..=0xffff_fffe => {
            write!(out, "age -{}, page {}", (n - 0xff00_0001) >> 16, (n - 0xff00_0001) & 0xffff)
        }
        u32::MAX => write!(out, "invalid"),
        _ => write!(out, "reserved"),
    };
}
