//! What stands on the right of a comparison, with all it may mean; which of these counts, the value it is held against decides.

use std::net::IpAddr;

use crate::capture::Time;

/// A literal.
#[derive(Clone, Debug)]
pub(super) struct Literal {
    /// The text, without quotes.
    pub(super) raw: String,
    /// It stood in quotes.
    pub(super) quoted: bool,
    /// It reads as a number.
    pub(super) number: Option<Number>,
    /// It reads as an address without a port.
    pub(super) address: Option<IpAddr>,
    /// It reads as a time: nanoseconds since 1970.
    pub(super) time: Option<i128>,
    /// It reads as bytes: lower-case hex.
    pub(super) hex: Option<String>,
}

/// A number.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    pub(super) fn float(self) -> f64 {
        match self {
            Number::Int(n) => n as f64,
            Number::Float(f) => f,
        }
    }

    pub(super) fn is_int(self) -> bool {
        matches!(self, Number::Int(_))
    }
}

impl Literal {
    pub(super) fn new(raw: String, quoted: bool) -> Literal {
        Literal {
            number: number(&raw),
            address: raw.trim_start_matches('[').trim_end_matches(']').parse().ok(),
            time: time(&raw),
            hex: hex(&raw),
            raw,
            quoted,
        }
    }

    /// The number, where none but a number was meant.
    pub(super) fn number(&self) -> Option<Number> {
        self.number.filter(|_| !self.quoted)
    }

    /// The text, where text was meant.
    pub(super) fn text(&self) -> Option<&str> {
        let other = self.number().is_some() || self.truth().is_some() || self.is_null();
        (!other).then_some(self.raw.as_str())
    }

    /// The hex digits, where bytes were meant: what reads as a number is one, unless a zero before it says that digits are meant.
    pub(super) fn bytes(&self) -> Option<&str> {
        let digits = self.raw.starts_with('0') && self.hex.is_some();
        (self.text().is_some() || digits).then(|| self.hex.as_deref().unwrap_or(&self.raw))
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

    /// Whether an unquoted literal is something else than a word.
    pub(super) fn is_no_word(&self) -> bool {
        let uuid = self.raw.len() >= 36 && self.raw.chars().all(|c| c.is_ascii_hexdigit() || "-{}".contains(c));
        self.text().is_none()
            || uuid
            || self.address.is_some()
            || self.time.is_some()
            || self.hex.is_some()
            || self.raw.parse::<std::net::SocketAddr>().is_ok()
            || matches!(self.raw.as_str(), "NaN" | "Infinity" | "-Infinity")
    }
}

fn number(raw: &str) -> Option<Number> {
    let (sign, digits) = raw.strip_prefix('-').map_or((1, raw), |rest| (-1, rest));
    if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        let plain = hex.chars().all(|c| c.is_ascii_hexdigit());
        return i128::from_str_radix(hex, 16).ok().filter(|_| plain).map(|n| Number::Int(sign * n));
    }
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let int = raw.parse::<i128>().ok().map(Number::Int);
    int.or_else(|| raw.parse::<f64>().ok().filter(|f| f.is_finite()).map(Number::Float))
}

/// Bytes as two digits each, with colons between them or none.
fn hex(raw: &str) -> Option<String> {
    let plain: String = raw.split(':').collect();
    let whole = raw.contains(':') && raw.split(':').any(|part| part.len() != 2);
    let good = !plain.is_empty() && plain.len().is_multiple_of(2) && plain.chars().all(|c| c.is_ascii_hexdigit());
    (good && !whole).then(|| plain.to_ascii_lowercase())
}

/// Nanoseconds since 1970.
pub(super) fn nanoseconds(time: Time) -> i128 {
    i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos)
}

/// RFC 3339, where the time, its seconds and its zone may be missing.
fn time(raw: &str) -> Option<i128> {
    let (date, clock) = raw.split_once(['T', 't', ' ']).unwrap_or((raw, "00:00:00Z"));
    let [year, month, day] = parts(date, '-')?;
    let good = date.len() == 10 && (1..=12).contains(&month) && (1..=31).contains(&day);
    let seconds = days(year, month, day) * 86_400;
    let (clock, zone) = match clock.rfind(['+', '-']) {
        Some(at) => (clock.get(..at)?, zone(clock.get(at..)?)?),
        None => (clock.strip_suffix(['Z', 'z']).unwrap_or(clock), 0),
    };
    let (whole, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let [h, m, s] =
        if whole.matches(':').count() == 1 { parts(&format!("{whole}:00"), ':')? } else { parts(whole, ':')? };
    let digits = fraction.len() <= 9 && fraction.bytes().all(|b| b.is_ascii_digit());
    let nanos: i128 = format!("{fraction:0<9}").parse().ok()?;
    let fits = good && digits && h < 24 && m < 60 && s <= 60;
    fits.then(|| i128::from(seconds + h * 3600 + m * 60 + s - zone) * 1_000_000_000 + nanos)
}

fn parts(text: &str, between: char) -> Option<[i64; 3]> {
    let mut parts = text.split(between).map(|p| p.parse::<u32>().ok().filter(|_| p.len() <= 4));
    let all = [parts.next()??.into(), parts.next()??.into(), parts.next()??.into()];
    parts.next().is_none().then_some(all)
}

/// `+02:00` in seconds.
fn zone(text: &str) -> Option<i64> {
    let (sign, digits) = text.split_at_checked(1)?;
    let (h, m) = digits.split_once(':')?;
    let seconds = i64::from(h.parse::<u8>().ok()?) * 3600 + i64::from(m.parse::<u8>().ok()?) * 60;
    Some(if sign == "-" { -seconds } else { seconds })
}

/// Days since 1970-01-01 (Gregorian calendar).
fn days(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let yoe = y.rem_euclid(400);
    let doy = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719_468
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn times_are_read_with_any_precision() {
        let second = 1_795_168_301_i128 * 1_000_000_000;
        assert_eq!(time("2026-11-20T09:51:41Z"), Some(second));
        assert_eq!(time("2026-11-20T09:51:41.58697Z"), Some(second + 586_970_000));
        assert_eq!(time("2026-11-20T11:51:41+02:00"), Some(second));
        assert_eq!(time("2026-11-20T09:51"), Some(second - 41_000_000_000));
        assert_eq!(time("2026-11-20"), time("2026-11-20T00:00:00Z"));
        assert_eq!(time("1970-01-01"), Some(0));
        for wrong in ["", "2026", "2026-13-01", "12:30", "2026-11-20T25:00", "2026-11-20Tx", "2026-11-20T1:2:3+"] {
            assert_eq!(time(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn numbers_and_bytes_are_told_from_words() {
        assert!(matches!(number("0x1001"), Some(Number::Int(0x1001))));
        assert!(matches!(number("-7"), Some(Number::Int(-7))));
        assert!(matches!(number("1.5"), Some(Number::Float(_))));
        for word in ["inf", "nan", "kNetSuccess", "", "-", "0x"] {
            assert!(number(word).is_none(), "{word}");
        }
        assert_eq!(hex("0A:0b").as_deref(), Some("0a0b"));
        assert_eq!(hex("0a0"), None);
        assert_eq!(hex("a:b"), None);
    }
}
