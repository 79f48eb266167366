//! Bytes as people write them: hex with blanks and colons.

/// Hex digits to bytes; blanks and colons are ignored. `None` for any other character, and for an
/// odd number of digits.
pub fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 2);
    let mut high: Option<u32> = None;
    for c in text.chars().filter(|c| !c.is_whitespace() && *c != ':') {
        let digit = c.to_digit(16)?;
        match high.take() {
            None => high = Some(digit),
            Some(h) => out.push((h * 16 + digit) as u8),
        }
    }
    if high.is_some() { None } else { Some(out) }
}

#[cfg(test)]
mod tests {
    use super::parse_hex;

    #[test]
    fn blanks_and_colons_are_passed_over() {
        assert_eq!(parse_hex("1a:00 07"), Some(vec![0x1a, 0, 7]));
        assert_eq!(parse_hex("1a0"), None);
        assert_eq!(parse_hex("0x"), None);
    }
}
