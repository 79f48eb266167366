//! The right side of a comparison, with every meaning it may have. The value it is compared with
//! decides which counts.

use std::cmp::Ordering;

use super::host::HostPattern;
use super::times::TimeLiteral;

/// A literal.
#[derive(Clone, Debug)]
pub(super) struct Literal {
    /// The text, without quotes.
    pub(super) raw: String,
    /// It was written in quotes.
    pub(super) quoted: bool,
    /// Set if it reads as a number.
    pub(super) number: Option<NumberLiteral>,
    /// Set if it reads as an address, a network or a port.
    pub(super) host: Option<HostPattern>,
    /// Set if it reads as a time.
    pub(super) time: Option<TimeLiteral>,
    /// Set if it reads as bytes: lower-case hex.
    pub(super) hex: Option<String>,
}

/// A number.
#[derive(Clone, Copy, Debug)]
pub(super) enum NumberLiteral {
    Int(i128),
    Float(f64),
}

impl NumberLiteral {
    pub(super) fn float(self) -> f64 {
        match self {
            NumberLiteral::Int(n) => n as f64,
            NumberLiteral::Float(f) => f,
        }
    }
}

/// How two numbers compare.
pub(super) fn numbers(a: NumberLiteral, b: NumberLiteral) -> Option<Ordering> {
    match (a, b) {
        (NumberLiteral::Int(a), NumberLiteral::Int(b)) => Some(a.cmp(&b)),
        (a, b) => a.float().partial_cmp(&b.float()),
    }
}

impl Literal {
    pub(super) fn new(raw: String, quoted: bool) -> Literal {
        Literal {
            number: number(&raw),
            host: HostPattern::parse(&raw),
            time: TimeLiteral::parse(&raw),
            hex: hex(&raw),
            raw,
            quoted,
        }
    }

    /// Whether it is an unquoted number.
    pub(super) fn is_number(&self) -> bool {
        self.number.is_some() && !self.quoted
    }

    /// The text, unless it is an unquoted number, truth value or null.
    pub(super) fn text(&self) -> Option<&str> {
        let other = self.is_number() || self.truth().is_some() || self.is_null();
        (!other).then_some(self.raw.as_str())
    }

    /// The hex digits, if it can be bytes. Unquoted digits are a number unless they begin with a
    /// zero.
    pub(super) fn bytes(&self) -> Option<&str> {
        let digits = self.raw.starts_with('0') && self.hex.is_some();
        (self.text().is_some() || digits).then(|| self.hex.as_deref().unwrap_or(&self.raw))
    }

    /// Whether it is a number above another one, or a time behind another one of its kind.
    pub(super) fn is_above(&self, other: &Literal) -> bool {
        match (self.number, other.number, self.time, other.time) {
            (Some(own), Some(other), ..) => numbers(own, other).is_some_and(Ordering::is_gt),
            (_, _, Some(own), Some(other)) => own.is_after(other),
            _ => false,
        }
    }

    pub(super) fn truth(&self) -> Option<bool> {
        match self.raw.as_str() {
            "true" if !self.quoted => Some(true),
            "false" if !self.quoted => Some(false),
            _ => None,
        }
    }

    pub(super) fn is_null(&self) -> bool {
        !self.quoted && self.raw == "null"
    }

    /// Whether an unquoted literal has a meaning of its own, so that it needs no quotes and no
    /// table has to know it.
    pub(super) fn is_no_word(&self) -> bool {
        let uuid = self.raw.len() >= 36
            && self.raw.chars().all(|c| c.is_ascii_hexdigit() || "-{}".contains(c));
        self.text().is_none()
            || uuid
            || self.host.is_some()
            || self.time.is_some()
            || self.hex.is_some()
            || matches!(self.raw.as_str(), "NaN" | "Infinity" | "-Infinity")
    }
}

fn number(raw: &str) -> Option<NumberLiteral> {
    let (sign, digits) = raw.strip_prefix('-').map_or((1, raw), |rest| (-1, rest));
    if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        let plain = hex.chars().all(|c| c.is_ascii_hexdigit());
        return i128::from_str_radix(hex, 16)
            .ok()
            .filter(|_| plain)
            .map(|n| NumberLiteral::Int(sign * n));
    }
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let int = raw.parse::<i128>().ok().map(NumberLiteral::Int);
    int.or_else(|| raw.parse::<f64>().ok().filter(|f| f.is_finite()).map(NumberLiteral::Float))
}

/// Bytes of two digits each, with colons between all of them or none.
fn hex(raw: &str) -> Option<String> {
    let plain: String = raw.split(':').collect();
    let uneven = raw.contains(':') && raw.split(':').any(|part| part.len() != 2);
    let good = !plain.is_empty()
        && plain.len().is_multiple_of(2)
        && plain.chars().all(|c| c.is_ascii_hexdigit());
    (good && !uneven).then(|| plain.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn numbers_and_bytes_are_told_from_words() {
        assert!(matches!(number("0x1001"), Some(NumberLiteral::Int(0x1001))));
        assert!(matches!(number("-7"), Some(NumberLiteral::Int(-7))));
        assert!(matches!(number("1.5"), Some(NumberLiteral::Float(_))));
        for word in ["inf", "nan", "kNetSuccess", "", "-", "0x"] {
            assert!(number(word).is_none(), "{word}");
        }
        assert_eq!(hex("0A:0b").as_deref(), Some("0a0b"));
        assert_eq!(hex("0a0"), None);
        assert_eq!(hex("a:b"), None);
    }
}
