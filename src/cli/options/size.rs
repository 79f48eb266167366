//! Sizes in bytes as people type them: `500000`, `64K`, `16M`, `1G`; and plain numbers. It knows
//! numbers and suffixes, no option.

use std::ops::RangeInclusive;
use std::str::FromStr;

/// Reads a whole number from 0 on.
pub(in crate::cli) fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "expected a whole number, such as 10".to_string())
}

/// Reads a number that is in `range`.
pub(in crate::cli) fn number_within(text: &str, range: RangeInclusive<u16>) -> Result<u16, String> {
    let least = range.start();
    let most = range.end();
    let wrong = || format!("expected a number from {least} to {most}");
    text.parse().ok().filter(|number| range.contains(number)).ok_or_else(wrong)
}

/// Reads a size. Suffixes are powers of 1024, in either case, with or without `B` or `iB` behind
/// them.
pub(in crate::cli) fn size(text: &str) -> Result<usize, String> {
    let wrong = || "expected a number of bytes such as 500000, 64K, 16M or 1G".to_string();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, suffix) = text.split_at_checked(digits).ok_or_else(wrong)?;
    let shift = match suffix.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return Err(wrong()),
    };
    let number: usize = number.parse().map_err(|_| wrong())?;
    match number.checked_mul(1 << shift) {
        Some(0) => Err("expected at least one byte".to_string()),
        Some(bytes) => Ok(bytes),
        None => Err("expected a size that this machine can count to".to_string()),
    }
}

/// A size that may be none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bound(pub Option<u64>);

/// Reads a size; `none` and `0` are no bound.
pub(in crate::cli) fn size_or_none(text: &str) -> Result<Bound, String> {
    match text {
        "none" | "0" => Ok(Bound(None)),
        _ => size(text)
            .map(|bytes| Bound(Some(bytes as u64)))
            .map_err(|error| format!("{error}, or none")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_powers_of_1024() {
        for (text, bytes) in [
            ("1", 1),
            ("500000", 500_000),
            ("3b", 3),
            ("64K", 64 << 10),
            ("64k", 64 << 10),
            ("16M", 16 << 20),
            ("16MB", 16 << 20),
            ("16MiB", 16 << 20),
            ("2g", 2 << 30),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in [
            "",
            "K",
            "-1",
            "1.5M",
            "16 M",
            "16T",
            "1KK",
            "0",
            "0G",
            "99999999999999999999",
            "99999999999999999G",
            "é",
        ] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
