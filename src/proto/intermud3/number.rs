//! Numbers as mudmode writes them: finds where one ends, and how it differs from the document.
//!
//! It knows digits, not trees.

/// The forms of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberForm {
    /// Digits, perhaps with a minus sign before them.
    Int,
    /// With a point or an exponent.
    Float,
    /// It begins like a number but is not one.
    Bad,
}

/// A number's form, its end, and its oddities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) form: NumberForm,
    /// Offset behind its last byte.
    pub(super) end: usize,
    /// Bits of [`odd`].
    pub(super) odd: u8,
}

/// How a number may differ from the document.
pub(super) mod odd {
    /// Digits behind a leading zero.
    pub(in super::super) const LEADING_ZERO: u8 = 1;
    /// An exponent without a sign.
    pub(in super::super) const UNSIGNED_EXPONENT: u8 = 2;
    /// An exponent with a capital E.
    pub(in super::super) const CAPITAL: u8 = 4;
    /// No digit behind the point.
    pub(in super::super) const NO_FRACTION: u8 = 8;
    /// A plus sign before the number.
    pub(in super::super) const PLUS: u8 = 16;
    /// No digit before the point.
    pub(in super::super) const NO_INTEGER: u8 = 32;
    /// The note for each.
    pub(in super::super) const TEXTS: [(u8, &str); 6] = [
        (LEADING_ZERO, "a leading zero in the number at byte {a}"),
        (UNSIGNED_EXPONENT, "an exponent without a sign in the number at byte {a}"),
        (CAPITAL, "an exponent with a capital E in the number at byte {a}"),
        (NO_FRACTION, "no digit behind the point in the number at byte {a}"),
        (PLUS, "a plus sign before the number at byte {a}"),
        (NO_INTEGER, "no digit before the point in the number at byte {a}"),
    ];
}

/// Reads the number that begins at `at`.
pub(super) fn scan(bytes: &[u8], at: usize, end: usize) -> Number {
    let text = bytes.get(at..end).unwrap_or(&[]);
    let byte = |i: usize| text.get(i).copied().unwrap_or(0);
    let digits = |mut i: usize| {
        while byte(i).is_ascii_digit() {
            i += 1;
        }
        i
    };
    let mut odd = 0;
    let first = match byte(0) {
        b'-' => 1,
        b'+' => {
            odd |= odd::PLUS;
            1
        }
        _ => 0,
    };
    let mut i = digits(first);
    let whole = i - first;
    if whole > 1 && byte(first) == b'0' {
        odd |= odd::LEADING_ZERO;
    }
    let mut form = NumberForm::Int;
    let mut fraction = 0;
    if byte(i) == b'.' {
        form = NumberForm::Float;
        let from = i + 1;
        i = digits(from);
        fraction = i - from;
        if fraction == 0 {
            odd |= odd::NO_FRACTION;
        }
        if whole == 0 {
            odd |= odd::NO_INTEGER;
        }
    }
    if whole + fraction == 0 {
        form = NumberForm::Bad;
    } else if matches!(byte(i), b'e' | b'E') {
        form = NumberForm::Float;
        if byte(i) == b'E' {
            odd |= odd::CAPITAL;
        }
        let signed = matches!(byte(i + 1), b'+' | b'-');
        if !signed {
            odd |= odd::UNSIGNED_EXPONENT;
        }
        let from = i + 1 + usize::from(signed);
        i = digits(from);
        if i == from {
            form = NumberForm::Bad;
        }
    }
    Number { form, end: at + i.min(text.len()), odd }
}

/// The magnitude of up to 20 digits that fit 64 bits.
pub(super) fn magnitude(digits: &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for d in digits {
        value = value.checked_mul(10)?.checked_add(u64::from(d.wrapping_sub(b'0')))?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(text: &str) -> (NumberForm, usize, u8) {
        let n = scan(text.as_bytes(), 0, text.len());
        (n.form, n.end, n.odd)
    }

    #[test]
    fn integers_and_floats_end_where_they_should() {
        assert_eq!(of("5,"), (NumberForm::Int, 1, 0));
        assert_eq!(of("-12})"), (NumberForm::Int, 3, 0));
        assert_eq!(of("1.5,"), (NumberForm::Float, 3, 0));
        assert_eq!(of("-1.5e+300:"), (NumberForm::Float, 9, 0));
        assert_eq!(of("0x10"), (NumberForm::Int, 1, 0));
    }

    #[test]
    fn oddities_are_told() {
        assert_eq!(of("007"), (NumberForm::Int, 3, odd::LEADING_ZERO));
        assert_eq!(of("1e5"), (NumberForm::Float, 3, odd::UNSIGNED_EXPONENT));
        assert_eq!(of("1E+5"), (NumberForm::Float, 4, odd::CAPITAL));
        assert_eq!(of("1."), (NumberForm::Float, 2, odd::NO_FRACTION));
        assert_eq!(of(".5"), (NumberForm::Float, 2, odd::NO_INTEGER));
        assert_eq!(of("+5"), (NumberForm::Int, 2, odd::PLUS));
    }

    #[test]
    fn what_is_no_number_is_said() {
        for bad in ["-", "1e", "1e+", "+", ".", "-."] {
            assert_eq!(of(bad).0, NumberForm::Bad, "{bad}");
        }
    }

    #[test]
    fn magnitudes_fit_or_do_not() {
        assert_eq!(magnitude(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(magnitude(b"18446744073709551616"), None);
    }
}
