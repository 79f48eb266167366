//! Numbers that stand for others: the words `range(LOW, HIGH)`, `share(N)` and `share(N, FROM)`
//! behind `shown`.
//!
//! It knows one number, and neither the field that it is in nor where its meaning is shown.

use std::fmt::Write;

/// What a number stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// 0 stands for the first number, the largest value of so many bits for the second.
    Range(i64, i64),
    /// The number counts in 1 / N, from a number on.
    Share(u32, i64),
}

impl Scale {
    /// The words and their numbers, for messages about others.
    pub const WORDS: [&str; 3] = ["range(LOW, HIGH)", "share(N)", "share(N, FROM)"];

    /// The scale that a word of a table gives. `None` if it gives none.
    pub fn of_word(word: &str) -> Option<Scale> {
        let (name, numbers) = word.strip_suffix(')')?.split_once('(')?;
        let numbers: Vec<i64> =
            numbers.split(',').map(|n| n.trim().parse()).collect::<Result<_, _>>().ok()?;
        match (name, numbers.as_slice()) {
            ("range", [low, high]) if low < high => Some(Scale::Range(*low, *high)),
            ("share", [n]) if *n > 0 => Some(Scale::Share(u32::try_from(*n).ok()?, 0)),
            ("share", [n, from]) if *n > 0 => Some(Scale::Share(u32::try_from(*n).ok()?, *from)),
            _ => None,
        }
    }

    /// Appends what a number of `bits` bits stands for, with as many digits as tell it from its
    /// neighbours.
    pub fn write(self, number: i64, bits: u32, out: &mut Vec<u8>) {
        let (step, value) = match self {
            Scale::Range(low, high) => {
                let most = ((1u64 << bits.clamp(1, 63)) - 1) as f64;
                let step = (high as f64 - low as f64) / most;
                let value = low as f64 + number as f64 * step;
                // No number stands for 0 exactly where it is the middle of the range. Senders take
                // the nearest one, and readers take that for 0.
                (step, if value.abs() < step { 0.0 } else { value })
            }
            Scale::Share(n, from) => {
                (1.0 / f64::from(n), from as f64 + number as f64 / f64::from(n))
            }
        };
        let digits = (-step.log10()).ceil().clamp(0.0, 9.0) as usize;
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = write!(text, "{value:.digits$}");
        let text = if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.')
        } else {
            text.as_str()
        };
        let text = if text == "-0" { "0" } else { text };
        // What is the number itself needs no words.
        if text != number.to_string() {
            out.extend_from_slice(text.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn shown(word: &str, number: i64, bits: u32) -> String {
        let mut out = Vec::new();
        Scale::of_word(word).unwrap().write(number, bits, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_number_stands_for_its_place_in_a_range() {
        assert_eq!(shown("range(-128, 128)", 0, 16), "-128");
        assert_eq!(shown("range(-128, 128)", 65535, 16), "128");
        assert_eq!(shown("range(-128, 128)", 33307, 16), "2.107");
        assert_eq!(shown("range(-256, 4096)", 141, 8), "2150");
    }

    #[test]
    fn both_numbers_in_the_middle_of_a_range_are_zero() {
        assert_eq!(shown("range(-1, 1)", 32767, 16), "0");
        assert_eq!(shown("range(-1, 1)", 32768, 16), "0");
        assert_eq!(shown("range(-1, 1)", 32769, 16), "0.00005");
    }

    #[test]
    fn a_number_is_so_many_parts_of_one() {
        assert_eq!(shown("share(32767)", 32767, 16), "1");
        assert_eq!(shown("share(256)", 384, 16), "1.5");
        assert_eq!(shown("share(100)", -7, 8), "-0.07");
        assert_eq!(shown("share(100)", 0, 8), "");
        assert_eq!(shown("share(128, -256)", 33000, 16), "1.812");
    }

    #[test]
    fn other_words_are_no_scales() {
        for word in ["range", "range(1)", "range(2, 1)", "share(0)", "share(-3)", "scale(1)", "hex"]
        {
            assert_eq!(Scale::of_word(word), None, "{word}");
        }
    }
}
